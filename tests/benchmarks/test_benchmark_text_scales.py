"""Length-scales for features of texts: by hand, and as the models take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.models import build
from benchmarks.predilect_model import MOST_LENGTH_SCALES
from benchmarks.scaling import crowded_items
from benchmarks.task import Task
from benchmarks.text_scales import MULTIPLE, STRETCH, text_length_scales

from predilect.data import ItemFeatures
from tolerances import EXACT


def table(n: int = 30, n_vectors: int = 2) -> pl.DataFrame:
    x = np.random.default_rng(0).standard_normal((n, n_vectors + 1))
    vectors = {f"characters_{k}": x[:, k] for k in range(n_vectors)}
    return pl.DataFrame({"item": np.arange(n), "log_characters": np.exp(x[:, -1])} | vectors)


def median(values: np.ndarray) -> float:
    first, second = np.triu_indices(len(values), 1)
    return float(np.median(np.abs(values[first] - values[second])))


def test_length_scales_by_hand() -> None:
    features = ItemFeatures.from_frame(table())
    found = text_length_scales(features, 3.0, 2.0)
    expected = [median(column) * 3.0 * np.sqrt(3) for column in features.matrix.T]
    # log_characters is a count, in spite of its name; the vectors' are twice as long.
    np.testing.assert_allclose(found, np.array(expected) * [1.0, 2.0, 2.0], rtol=EXACT)
    np.testing.assert_allclose(text_length_scales(features, 3.0, 1.0), expected, rtol=EXACT)


def with_items(items: pl.DataFrame | None) -> Task:
    plain = crowded_items(30, 1, 400)
    return Task(plain.name, 0, plain.train, plain.test, items=items)


def test_models_take_them() -> None:
    task = with_items(table())
    scales = text_length_scales(ItemFeatures.from_frame(table()))
    fitted: Any = build("gppl-texts")(task)
    np.testing.assert_allclose(np.exp(fitted.model.hyperparameters_.kernel.theta), scales, rtol=EXACT)
    assert fitted.report()["hyperparameters"]["stretch"] == STRETCH
    assert fitted.report()["hyperparameters"]["multiple"] == MULTIPLE
    other: Any = build("crowd-gppl-texts@stretch=1@n_components=2@own_share=0")(task)
    np.testing.assert_allclose(np.exp(other.model.hyperparameters_.kernel.theta), scales / [1, STRETCH, STRETCH])
    with pytest.raises(ValueError, match="no features of items"):
        build("gppl-texts")(with_items(None))


def test_many_length_scales_are_told_by_their_range() -> None:
    fitted: Any = build("gppl")(with_items(table(n_vectors=MOST_LENGTH_SCALES)))
    told = fitted.report()["hyperparameters"]["length_scales"]
    scales = np.exp(fitted.model.hyperparameters_.kernel.theta)
    assert told == {
        "columns": MOST_LENGTH_SCALES + 1, "smallest": pytest.approx(scales.min()),
        "median": pytest.approx(np.median(scales)), "largest": pytest.approx(scales.max()),
    }  # fmt: skip
    few: Any = build("gppl")(with_items(table()))
    assert few.report()["hyperparameters"]["length_scale[2]"] > 0
