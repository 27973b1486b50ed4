"""The mixed logit on choices of electricity suppliers, whose maxima and trade-offs are known from other programs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from predilect import Comparisons, MixedLogit
from predilect.choice.mixed_logit.outputs import chances_of_sets

pytestmark = [pytest.mark.data, pytest.mark.slow]
FULL = {"loc": 2.43, "wk": 1.83, "tod": -9.45, "seas": -9.58}
DIAGONAL = {"loc": 2.35, "wk": 1.64, "tod": -9.65, "seas": -9.73}


@pytest.fixture(scope="module")
def data():
    folder = Path(os.environ["PREDILECT_DATA"]) / "electricity"
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing")
    return pl.read_csv(folder / "comparisons.csv.gz"), pl.read_csv(folder / "items.csv")


def held_out(model, frame, items):
    """Hit rate and log loss of the last two tasks of each person."""
    last = frame.group_by("user").agg(pl.col("task").unique().sort().tail(2)).explode("task")
    train, test = (frame.join(last, on=["user", "task"], how=how) for how in ("anti", "semi"))
    model.fit(Comparisons.from_frame(train), items=items)
    sets, users = [], []
    for (user, _), one in test.group_by(["user", "task"], maintain_order=True):
        best = one["winner"][0]
        sets.append([best, *sorted({*one["left"], *one["right"]} - {best})])
        users.append(user)
    chances = chances_of_sets(model, sets, users)
    assert len(chances) == 722
    return np.mean([one.argmax() == 0 for one in chances]), -np.mean([np.log(one[0]) for one in chances])


def trade_offs(model):
    table = model.worth.coefficients()
    mean = dict(zip(table["attribute"], table["mean"], strict=True))
    return {name: -mean[name] / mean["pf"] for name in mean}


def test_hierarchical_bayes(data):
    frame, items = data
    model = MixedLogit(n_jobs=1).fit(Comparisons.from_frame(frame), items=items)
    found = model.report_["prior"]
    assert max(found["r_hat_means"]) < 1.02
    assert max(found["r_hat_variances"]) < 1.05
    assert min(found["effective_size_means"]) > 200
    value = trade_offs(model)
    assert all(abs(value[name] / FULL[name] - 1.0) < 0.05 for name in FULL)
    hits, loss = held_out(MixedLogit(n_jobs=1), frame, items)
    assert hits >= 0.67
    assert loss <= 0.80


def test_simulated_likelihood(data):
    frame, items = data
    model = MixedLogit(method="simulated", covariance="diagonal", n_jobs=1).fit(
        Comparisons.from_frame(frame), items=items
    )  # fmt: skip
    assert -3921.0 < model.log_evidence_ < -3893.0
    value = trade_offs(model)
    assert all(abs(value[name] / DIAGONAL[name] - 1.0) < 0.05 for name in DIAGONAL)
    hits, loss = held_out(MixedLogit(method="simulated", covariance="diagonal", n_jobs=1), frame, items)
    assert hits >= 0.60
    assert loss <= 0.88
