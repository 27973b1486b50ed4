"""Compression of ``GaSPK``: to the scores of a person's boards, which its evaluations of trade-offs are not made of."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import predilect
from predilect import GaSPK
from predilect.errors import DataError
from predilect.papers.compression.losses import LOSSES
from simulate import random_pairs
from tolerances import EXACT

CARS = {
    "item": [f"c{k}" for k in range(9)], "price": np.repeat([1.0, 2.0, 3.0], 3), "doors": np.tile([3.0, 4.0, 5.0], 3),
}  # fmt: skip
SETTINGS = {"n_components": 3, "n_jobs": 1, "variance": 20.0, "concentration": 1.0, "spread": 1.1}
USERS = [f"p{u:02d}" for u in range(20)]


def fitted(**settings):
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(20), 8)
    left, right = random_pairs(rng, len(user), 9)
    utility = np.column_stack([-CARS["price"], CARS["doors"]])
    margin = ((utility[left] - utility[right]) * rng.dirichlet([1.0, 1.0], 20)[user]).sum(axis=1)
    names, people = np.array(CARS["item"]), np.array(USERS)
    won = np.where(margin + 0.5 * rng.normal(size=len(user)) > 0.0, names[left], names[right])
    answers = {"user": people[user], "left": names[left], "right": names[right], "winner": won}
    return GaSPK(**SETTINGS | settings).fit(answers, items=CARS)


@pytest.fixture(scope="module")
def full():
    return fitted()


def kept_pairs(small):
    rows = [(user, *pair) for user in USERS for pair in combinations(small.kept(user), 2)]
    return dict(zip(("user", "left", "right"), map(list, zip(*rows, strict=True)), strict=True))


def test_with_all_kept_scores_and_boards_are_those_of_the_full_model(full):
    small = full.compress("100%", precision="double")
    for user in (0, 7):
        for one, other in zip(small.posterior_.utilities(user), full.posterior_.utilities(user), strict=True):
            np.testing.assert_allclose(one, other, atol=EXACT)
    for user in (None, "p03"):
        columns = ["mean", "lower", "upper"]
        one, other = (model.rank(user).sort("item").select(columns).to_numpy() for model in (small, full))
        np.testing.assert_allclose(one, other, atol=EXACT)


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_kept_keeps_its_scores_and_the_best_one_is_recommended(full, loss):
    small = full.compress(3, loss, precision="double")
    for code, user in enumerate(USERS):
        S = small.posterior_.kept(code)
        mean, covariance = full.posterior_.utilities(code)
        np.testing.assert_allclose(small.posterior_.moments(code)[0], mean[S], atol=EXACT)
        np.testing.assert_allclose(small.posterior_.moments(code)[1], covariance[np.ix_(S, S)], atol=EXACT)
        if loss in ("regret", "recommendation"):
            assert small.recommend(user) == full.rank(user)["item"][0]


def test_it_says_how_far_probabilities_are_from_evaluations_of_trade_offs(full, tmp_path):
    small = full.compress(3, precision="single")
    asked = kept_pairs(small)
    moved = np.abs(small.predict_proba(asked) - full.predict_proba(asked)).max(axis=1)
    said = small.report_["compressed"]["moved"]
    np.testing.assert_allclose([said["mean"], said["quantile"]], [moved.mean(), np.quantile(moved, 0.95)], atol=EXACT)
    assert f"{moved.mean():.2g} on average" in " ".join(small.describe())
    small.save(tmp_path / "small")
    again = predilect.load(tmp_path / "small")
    np.testing.assert_array_equal(again.predict_proba(asked), small.predict_proba(asked))
    assert again.describe() == small.describe()
    assert full.compress(1).report_["compressed"]["moved"] is None


def test_where_evaluations_are_linear_kept_pairs_have_the_full_models_means():
    # With a long length-scale and many answers the squared exponential, made antisymmetric, is k(t, t') ∝ t · t'.
    full = fitted(length_scale=300.0, variance=1e6)
    small = full.compress(4, precision="double")
    asked = kept_pairs(small)
    np.testing.assert_allclose(small.predict_margin(asked)[0], full.predict_margin(asked)[0], rtol=1e-3, atol=1e-3)


def test_what_scores_cannot_give_is_refused(full):
    with pytest.raises(DataError, match="one process of people and items"):
        full.compress(3, local=False)
    answers = full.comparisons_.to_frame().drop("user")
    pooled = GaSPK(**SETTINGS).fit(predilect.Comparisons.from_frame(answers, reading={"side": False}), items=CARS)
    with pytest.raises(DataError, match="personal"):
        pooled.compress(3)
