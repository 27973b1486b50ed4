"""How unsure the noise of one answer is, in which scores of the crowd are told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from predilect import Population
from predilect.models.population import effects
from predilect.models.population.prior import log_prior_of_variances
from simulate_features import featured_crowd

DIFFERING = {"strength": 30.0, "consensus_variance": 4.0, "consistency": 0.0, "calibration": None, "n_jobs": 1}


def answers_of(n_people, n_each, n_items=6, seed=0):
    """People about one order, who differ from it with standard deviation 1; the noise of an answer is 1."""
    rng = np.random.default_rng(seed)
    f = np.linspace(-1.0, 1.0, n_items) + rng.standard_normal((n_people, n_items))
    user = np.repeat(np.arange(n_people), n_each)
    left = rng.integers(0, n_items, len(user))
    right = (left + rng.integers(1, n_items, len(user))) % n_items
    first = f[user, left] - f[user, right] + rng.standard_normal(len(user)) > 0.0
    names = np.array([f"i{k}" for k in range(n_items)])
    return pl.DataFrame({
        "user": [f"p{u}" for u in user], "left": names[left], "right": names[right],
        "winner": np.where(first, names[left], names[right]),
    })  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return Population(**DIFFERING).fit(answers_of(40, 6))


def test_it_widens_scores_by_their_size_and_moves_no_order(model):
    sure = model.posterior_.crowd().in_sure_unit()
    tau = model.hyperparameters_.unit_sd
    assert 0.05 < tau < 0.5
    assert sum(f"within {196 * tau:.0f} %" in line for line in model.describe()) == 1
    board = model.rank().sort("item")
    mean, variance = sure.centred_marginals()
    np.testing.assert_allclose(board["sd"].to_numpy() ** 2, variance + (tau * mean) ** 2)
    left, right = np.triu_indices(len(mean), 1)
    wide = model.posterior_.crowd()
    np.testing.assert_array_equal(wide.p_better(left, right), sure.p_better(left, right))
    apart, near = wide.differences(left, right), sure.differences(left, right)
    np.testing.assert_allclose(apart.variance, near.variance + (tau * near.mean) ** 2)
    np.testing.assert_array_equal(apart.p_better, near.p_better)
    np.testing.assert_allclose(np.diag(model.utility_distribution()[1]), variance)


@pytest.mark.slow
def test_chances_are_as_in_a_unit_that_is_sure(model):
    other = Population(**DIFFERING).fit(answers_of(40, 6))
    calibration = replace(other.posterior_.calibration, unit_sd=0.0)
    other.posterior_ = replace(other.posterior_, calibration=calibration)
    same = ["item", "mean", "rank", "rank_low", "rank_high", "p_best", "tier", "tied_with_leader"]
    assert model.rank()[same].equals(other.rank()[same])
    assert (model.rank()["sd"] > other.rank()["sd"]).all()
    asked = {"user": ["p0", "p1"], "left": ["i0", "i1"], "right": ["i3", "i4"]}
    np.testing.assert_array_equal(model.predict_proba(asked), other.predict_proba(asked))
    assert model.separation_reliability() == other.separation_reliability()
    on_ends = [one.rank(scale="0-100")["sd"].to_numpy() for one in (model, other)]
    np.testing.assert_allclose(*on_ends)  # a share of the range, whatever the unit


@pytest.mark.slow
def test_at_the_scale_of_the_fit_nothing_moves_whatever_features_of_items_say(monkeypatch):
    # Between what features say of an item and what is its own a fit may shift much, and utilities stay.
    truth = featured_crowd(101, 200, 12, scale=25.0, feature_weight=0.5, delta=0.0)
    monkeypatch.setattr(effects, "_LOG_SCALES", np.zeros(1))
    columns, outcome = truth.answers(15)
    assert Population(n_jobs=1).fit(columns, outcome, items=truth.items).hyperparameters_.unit_sd < 0.1


def test_one_answer_of_everybody_says_nothing_of_it():
    """Then the evidence of all scales is the same, and the gap of two items is √(1 + v s) times Φ⁻¹ of the share.

    What is known is the prior of the scale alone.
    """
    many, n = {"left": "a", "right": "b"}, 150
    frame = pl.DataFrame([many | {"user": f"p{k}", "winner": "a" if k % 3 else "b"} for k in range(n)])
    given = DIFFERING | {"consensus_variance": 1e4}
    model = Population(**given).fit(frame)
    v = np.array([1.0, -1.0]) @ model.posterior_.Sigma @ [1.0, -1.0]
    scales = np.exp(np.linspace(-2.0, 2.0, 9))
    factors = np.sqrt((1.0 + v * scales) / (1.0 + v))
    variance = np.trace(model.posterior_.Sigma) / 2.0
    log_prior = [log_prior_of_variances(one * variance, 1e4) for one in scales]
    weights = np.exp(np.array(log_prior) - max(log_prior)) * factors  # flat of the gap, and so of the share
    expected = np.sqrt(weights @ (factors - 1.0) ** 2 / weights.sum())
    assert model.hyperparameters_.unit_sd == pytest.approx(expected, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("n_people", "given"), [(40, {"variance": 1.0}), (201, {})])
def test_it_is_sure_where_the_scale_is_given_or_a_crowd_tells_it(n_people, given):
    assert Population(**DIFFERING, **given).fit(answers_of(n_people, 3)).hyperparameters_.unit_sd == 0.0


def test_it_outlives_updates_and_is_saved(model, tmp_path):
    model.save(tmp_path / "model")
    again = Population.load(tmp_path / "model")
    assert again.rank().equals(model.rank())
    again.update(user="p1", left="i0", right="i5", winner="i5")
    assert again.posterior_.crowd().unit_sd == model.hyperparameters_.unit_sd
