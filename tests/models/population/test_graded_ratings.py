"""Graded answers on real ratings: what grades say beyond the side."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from predilect import Comparisons, Population

PAIRS = 40  # of each person, to fit and to predict


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("most", [2, 4])
def test_differences_of_ratings_predict_sides_better_than_sides_do(most):
    folder = Path(os.environ["PREDILECT_DATA"]) / "facebook_social"
    frame = pl.read_csv(folder / "comparisons.csv.gz").select("user", "left", "right")
    ratings = pl.concat([
        pl.read_csv(folder / f"ratings_{kind}.csv").unpivot(index="user", variable_name="item", value_name="score")
        for kind in ("pubs", "restaurants")
    ]).with_columns(pl.col("item").cast(frame["left"].dtype))  # fmt: skip
    for side in ("left", "right"):
        frame = frame.join(ratings.rename({"item": side, "score": f"{side}_score"}), on=["user", side])
    frame = frame.filter((pl.col("left_score") > 0) & (pl.col("right_score") > 0)).sample(
        fraction=1.0, shuffle=True, seed=0
    )
    place = frame.select(pl.int_range(pl.len()).over("user")).to_series()
    known, asked = frame.filter(place < PAIRS), frame.filter((place >= PAIRS) & (place < 2 * PAIRS))

    def outcome(rows: pl.DataFrame) -> np.ndarray:
        return (rows["left_score"] - rows["right_score"]).to_numpy()

    y = np.sign(outcome(asked))
    losses = {}
    for name, values in (("grades", np.clip(outcome(known), -most, most)), ("signs", np.sign(outcome(known)))):
        answers = Comparisons.from_frame(known, outcome=values, reading={"side": False})
        p = Population(n_jobs=1).fit(answers).predict_log_proba(asked.select("user", "left", "right"))
        losses[name] = -p[np.arange(len(y)), 1 - y]
    gain = losses["signs"] - losses["grades"]
    assert gain.mean() - 2.0 * gain.std() / np.sqrt(len(gain)) > 0.008
