"""Times of answers: dates, timestamps and numbers are read; anything else is refused in words."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

from predilect import Comparisons
from predilect.errors import DataError

ROWS = {"user": ["ann", "bob", "ann"], "left": ["x", "y", "x"], "right": ["y", "z", "z"], "winner": ["x", "z", "z"]}


def read(times, **options):
    return Comparisons.from_frame(ROWS | {"t": times}, columns={"time": "t"}, **options)


def by_left_right(answers):
    ids = answers.items.ids
    return {(ids[a], ids[b]): t for a, b, t in zip(answers.left, answers.right, answers.time, strict=True)}


@pytest.mark.parametrize(
    "times",
    [
        ["1970-01-02", "1970-01-03", "1970-01-11"],
        ["1970-01-02 00:00", "1970-01-03T00:00:00", "1970-01-11 00:00:00.000"],
        ["1970-01-02T00:00Z", "1970-01-03T02:00+02:00", "1970-01-10T19:00:00-0500"],
        [datetime.date(1970, 1, 2), datetime.date(1970, 1, 3), datetime.date(1970, 1, 11)],
        np.array(["1970-01-02", "1970-01-03", "1970-01-11"], dtype="datetime64[D]"),
[datetime.datetime(1970, 1, 2), datetime.datetime(1970, 1, 3), datetime.datetime(1970, 1, 11)],
        [datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC), datetime.datetime(1970, 1, 3, tzinfo=datetime.UTC),
         datetime.datetime(1970, 1, 11, tzinfo=datetime.UTC)],
    ],
)  # fmt: skip
def test_dates_are_days(times):
    found = read(times)
    assert found.clock == "dates"
    assert by_left_right(found) == {("x", "y"): 1.0, ("y", "z"): 2.0, ("x", "z"): 10.0}


@pytest.mark.parametrize("times", [[1, 2, 10], [1.0, 2.0, 10.0], ["1", "2.0", "1e1"]])
def test_numbers_are_themselves(times):
    found = read(times)
    assert found.clock == "numbers"
    assert by_left_right(found) == {("x", "y"): 1.0, ("y", "z"): 2.0, ("x", "z"): 10.0}
    assert found.intake.columns["time"] == "t"


@pytest.mark.parametrize(
    ("times", "why"),
    [
        (["1970-01-02", "3", "4"], "mixes dates and numbers"), ([None, 1, 2], "row 1 no time"),
        (["1970-01-02", "", "1970-01-04"], "row 2 no time"), (["29/11/2026", "1", "2"], "not understood"),
        (["1970-01-02", "1970-02-30", "1970-01-03"], "no such date"),
        ([20240101, 20240102, 20240103], "look like dates"),
        (["1970-01-02T00:00Z", "1970-01-03T00:00", "1970-01-03"], "with a zone and without"),
        ([True, False, True], "and no times"), ([1.0, float("inf"), 2.0], "row 2 no time"),
        ([datetime.time(1), datetime.time(2), datetime.time(3)], "and no dates"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(times, why):
    with pytest.raises(DataError, match=why):
        read(times)


def test_a_time_that_is_missing_in_a_row_left_out_does_not_matter():
    rows = ROWS | {"winner": ["x", None, "z"], "t": [1, None, 3]}
    found = Comparisons.from_frame(rows, columns={"time": "t"}, reading={"drop": "unknown"})
    assert found.time.tolist() == [1.0, 3.0]


def test_times_keep_answers_apart_and_are_read_back():
    rows = {name: [column[0]] * 3 for name, column in ROWS.items()} | {"t": ["2024-01-01", "2024-01-02", "2024-01-02"]}
    found = Comparisons.from_frame(rows, columns={"time": "t"})
    assert found.weight.tolist() == [1.0, 2.0]
    assert found.without_times().weight.tolist() == [3.0]
    frame = found.to_frame("polars")
    assert frame["when"].dtype == pl.Date
    assert (
        Comparisons.from_frame(frame, columns={"time": "when", "weights": "weight"}, reading={"side": False}) == found
    )
    assert Comparisons.from_rows(frame) == found
    first, rest = (
        Comparisons.from_frame({name: column[some] for name, column in rows.items()}, columns={"time": "t"})
        for some in (slice(1), slice(1, 3))
    )
    assert first.append(rest) == found
    with pytest.raises(DataError, match="different times"):
        found.append(found.without_times())


def test_the_order_of_rows_makes_no_difference():
    order = [2, 0, 1]
    rows = {name: [column[k] for k in order] for name, column in (ROWS | {"t": [1.5, 2.5, 0.5]}).items()}
    assert Comparisons.from_frame(rows, columns={"time": "t"}) == read([1.5, 2.5, 0.5])
    assert np.array_equal(read([1.5, 2.5, 0.5]).pooled().time, [1.5, 0.5, 2.5])
