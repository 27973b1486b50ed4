"""Calibrated variances of people in boards, exports and questions."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from predilect import Calibration, Population
from predilect.errors import DataError
from predilect.models.population import tables
from predilect.show.report.folder import write_people
from tolerances import EXACT

SETTING = {
    "strength": 10.0,
    "variance": 1.0,
    "consensus_variance": 2.0,
    "consistency": 0.0,
    "clickers": 0.0,
    "n_jobs": 1,
}
RNG = np.random.default_rng(4)
N = 120
ANSWERS = {
    "user": [f"p{i % 12}" for i in range(N)],
    "left": [f"i{i}" for i in RNG.integers(0, 3, N)],
    "right": [f"i{i}" for i in RNG.integers(3, 6, N)],
    "winner": RNG.choice(["right", "left"], N).tolist(),
}
ANSWERS["left"][:10] = ["i0"] * 10  # of p0 nothing is known of some items


def fitted(**numbers):
    return Population(calibration=Calibration(**numbers), **SETTING).fit(ANSWERS)


def test_variances_take_the_factor_and_means_and_the_crowd_none():
    plain, wide = fitted(), fitted(variance_factor=2.0)
    one, other = plain.rank("p3"), wide.rank("p3")
    np.testing.assert_array_equal(one["mean"], other["mean"])
    np.testing.assert_allclose(other["sd"], np.sqrt(2.0) * one["sd"], atol=EXACT)
    assert other["p_best"].max() < one["p_best"].max()
    assert plain.rank().equals(wide.rank())


@pytest.mark.parametrize("factor", [0.4, 1.15])
def test_a_factor_below_one_or_near_it_is_none(factor):
    assert fitted().rank("p3").equals(fitted(variance_factor=factor).rank("p3"))


def test_where_ties_are_left_out_variances_are_compared_with_each_other_alone():
    plain, compared, wide = fitted(), fitted(unseen_ratio=5.0, omitted_ties=3.0), fitted(unseen_ratio=5.0)
    for model in (plain, compared, wide):
        model.update({"user": ["new"], "left": ["i0"], "right": ["i3"], "winner": ["i0"]})
    assert plain.rank("new").equals(compared.rank("new"))
    assert (wide.rank("new")["sd"] > 1.2 * plain.rank("new")["sd"]).all()


def test_what_predictions_take_besides_the_margins_is_said():
    assert "ties were left out" in fitted(omitted_ties=0.4).describe()[0]
    with_ties = Population(calibration=Calibration(omitted_ties=0.4), **SETTING).fit(
        ANSWERS | {"winner": ["tie", "tie", *ANSWERS["winner"][2:]]}
    )
    assert not any("left out" in line for line in with_ties.describe())


def test_it_is_that_of_the_persons_pairs():
    """κ R^(½ s + ½ s²) κ_n for the share s of items without an answer: the mean power over pairs of items drawn so."""
    model = fitted(variance_factor=1.4, unseen_ratio=3.0, newcomer_factor=1.5)
    plain = fitted()
    who = {"user": ["new"] * 2, "left": ["i0"] * 2, "right": ["i3", "i4"], "winner": ["i0", "i4"]}
    model.update(who)
    plain.update(who)
    for user, of_items, newcomer in (("p3", None, 1.0), ("new", 3, 1.5)):
        code = plain._now()._user_code(user)
        n_answered = of_items or len(np.unique(plain.posterior_.answered_rows(code)[:2]))
        unseen = 1.0 - n_answered / 6
        factor = 1.4 * 3.0 ** (0.5 * unseen + 0.5 * unseen**2) * newcomer
        ratio = model.rank(user).sort("item")["sd"] / plain.rank(user).sort("item")["sd"]
        np.testing.assert_allclose(ratio, np.sqrt(factor), atol=1e-9)


def test_the_export_has_the_deviations_of_the_boards(tmp_path):
    model = fitted(variance_factor=2.0, unseen_ratio=2.0)
    write_people(tmp_path / "users.parquet", model)
    table = pl.read_parquet(tmp_path / "users.parquet").filter(pl.col("user") == "p3").sort("item")
    np.testing.assert_allclose(table["sd"], model.rank("p3").sort("item")["sd"], atol=1e-6)


def test_the_top_of_everybody_is_that_of_their_boards(monkeypatch):
    model = fitted(unseen_ratio=5.0)
    model.update({"user": ["new"], "left": ["i0"], "right": ["i4"], "winner": ["left"]})
    monkeypatch.setattr(tables, "_PEOPLE_AT_ONCE", 5)  # three blocks
    top = model.top(2)
    assert top["user"].unique(maintain_order=True).to_list() == sorted({*ANSWERS["user"], "new"})
    for (user,), rows in top.group_by("user"):
        board = model.rank(user).sort("rank").head(2)
        assert rows["item"].to_list() == board["item"].to_list()
        assert rows["rank"].to_list() == [1, 2]
        for name in ("mean", "sd"):
            np.testing.assert_allclose(rows[name], board[name], atol=EXACT)
    assert len(model.top(100)) == 13 * 6
    with pytest.raises(ValueError, match="k must be a whole number from 1 up, not 0"):
        model.top(0)
    with pytest.raises(DataError, match="tells nobody apart"):
        Population(personal=False, n_jobs=1).fit(ANSWERS).top()


@pytest.mark.parametrize("strategy", ["bald", "eubo"])
def test_questions_take_them_and_for_one_person_as_for_many(strategy):
    pairs = [("i0", "i1"), ("i0", "i4"), ("i2", "i5")]
    scores = []
    for numbers in ({}, {"variance_factor": 3.0}):
        model = fitted(**numbers)
        candidates = {"user": ["p3"] * 3, "left": [a for a, _ in pairs], "right": [b for _, b in pairs]}
        each = model.suggest_each(candidates, strategy=strategy, repeat=True)
        one = model.suggest("p3", candidates=candidates, strategy=strategy, repeat=True)
        assert abs(each["score"][0] - one["score"][0]) < 1e-9
        scores.append(one["score"][0])
    assert scores[1] > scores[0]


def test_the_best_of_nobody_is_a_table_without_rows():
    nobody = Population(n_jobs=1).fit(None, items=["tea", "milk"]).top(1)
    assert nobody.columns == ["user", "item", "mean", "sd", "rank"]
    assert nobody.height == 0
