"""Segments of people out of tables of people and of answers, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from predilect.data import PersonFeatures
from predilect.errors import DataError

VOTES = {
    "user": ["ann", "bob", "ann", "cas", "dan"],
    "left": ["a", "b", "a", "b", "a"],
    "right": ["b", "c", "c", "c", "b"],
    "language": ["de", "en", None, "en", " "],
    "panel": [1, 2, 1, 2, 1],
}


def segments(frame, *names, **settings):
    return PersonFeatures.from_frame(frame, segments=names, **settings)


@pytest.mark.parametrize("kind", [dict, pl.DataFrame, pd.DataFrame])
def test_answers_tell_the_segments_of_people_and_empty_cells_count_for_nothing(kind):
    found = segments(kind(VOTES), "language", "panel")
    assert found.ids.ids == ["ann", "bob", "cas", "dan"]
    assert found.columns == ["language=de", "language=en", "panel=1", "panel=2"]
    raw = np.array([one.scale for one in found.outputs]) * found.matrix + [one.centre for one in found.outputs]
    np.testing.assert_allclose(raw, [[1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]], atol=1e-12)
    assert found.segments == ("language", "panel")


def test_further_columns_are_features_only_if_named():
    frame = {"user": ["ann", "bob"], "language": ["de", "en"], "age": [30.0, 40.0]}
    assert segments(frame, "language").sources == ["language"]
    assert segments(frame, "language", columns=["age", "language"]).sources == ["language", "age"]


def test_segments_survive_saving_and_encode_new_people():
    found = segments(VOTES, "language")
    again = PersonFeatures.from_dict(found.to_dict())
    assert again.segments == ("language",)
    new = {"user": ["eve"], "language": ["de"]}
    np.testing.assert_array_equal(again.transform(new), found.transform(new))
    with pytest.raises(ValueError, match="segments without a column"):
        PersonFeatures.from_dict(found.to_dict() | {"segments": ["panel"]})


@pytest.mark.parametrize(
    ("frame", "names", "says"),
    [
        (
            {"user": [1, 1, 2, 2], "topic": ["x", "y", "x", "z"]},
            ["topic"],
            r'2 people stand in .*"x" and "y".*Give each value a fit of its own, or',
        ),
        (
            {"user": [1, 2], "topic": ["x", "x"]},
            ["topic"],
            r'one value only \("x"\).*predict_proba\(\.\.\., people=frame\)',
        ),
        ({"user": [1, 2], "topic": [None, ""]}, ["topic"], "no value at all"),
        ({"user": range(10_000), "topic": range(10_000)}, ["topic"], "10000 different values.*at most 200"),
        ({"user": [1, 2], "topic": ["x", "y"]}, ["panel"], 'no column "panel"'),
        ({"who knows": [1, 2], "topic": ["x", "y"]}, ["topic"], "no column with the person ids"),
        ({"user": [1, 2], "topic": ["x", "y"]}, ["user"], '"user" says who somebody is, and is no segment'),
    ],
)
def test_what_is_no_segment_is_refused_with_what_to_do(frame, names, says):
    with pytest.raises(DataError, match=says):
        segments(frame, *names)


def test_rows_without_a_person_belong_to_nobody():
    found = segments({"user": ["ann", None, "bob"], "topic": ["x", "y", "z"]}, "topic")
    assert found.columns == ["topic=x", "topic=z"]
