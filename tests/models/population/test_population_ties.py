"""A model whose people have tie thresholds of their own: what it predicts of whom, and what updates and files keep."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from predilect import Calibration, Population
from predilect.errors import DataWarning
from predilect.inference.likelihoods.probit import outcome_log_probabilities, outcome_probabilities
from simulate import comparisons, crowd
from tolerances import EXACT

ROWS = crowd(3, 30, 5, 12, delta=0.5)
NODES = 1e-3  # of a probability, by the rule of 15 nodes
GIVEN = {
    "consistency": 0.0, "clickers": 0.0,
    "strength": 10.0, "variance": 1.0, "consensus_variance": 2.0, "calibration": Calibration(0.9),
    "tie_threshold": ("auto", 0.6), "n_jobs": 1,
}  # fmt: skip
SOMEONE = {"user": [0, 1, 2], "left": [0, 2, 1], "right": [1, 3, 4]}
NOBODY = {"user": [99] * 3, "left": [0, 2, 1], "right": [1, 3, 4]}


@pytest.fixture(scope="module")
def model():
    return Population(**GIVEN).fit(comparisons(ROWS))


def by_quadrature(mean, var, delta, spread):
    """P(tie) with a threshold whose logarithm is N(log δ, spread²)."""
    s = math.sqrt(1.0 + var)

    def tie(x):
        d = delta * math.exp(spread * x)
        return norm.pdf(x) * (norm.cdf((d - mean) / s) - norm.cdf((-d - mean) / s))

    return quad(tie, -8.0, 8.0, epsabs=1e-12)[0]


def test_known_people_answer_by_their_own_threshold(model):
    mean, var, proba = model._predict_margin_and_proba(SOMEONE)
    np.testing.assert_allclose(proba, model.predict_proba(SOMEONE), atol=EXACT)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(SOMEONE)), proba, atol=EXACT)
    factor = model.posterior_.tie_factors(np.array([0, 1, 2]))
    assert np.ptp(factor) > 0.05
    for i in range(3):
        one = outcome_probabilities(mean[i : i + 1], 0.9 * var[i : i + 1], model.tie_threshold_ * factor[i])
        np.testing.assert_allclose(proba[i], one[0], atol=EXACT)
    score = model.score(SOMEONE, [1, 0, -1])
    assert abs(score - np.log(proba[[0, 1, 2], [0, 1, 2]]).mean()) < EXACT


def test_someone_new_may_have_any_threshold(model):
    with pytest.warns(DataWarning, match="without answers"):
        mean, var, proba = model._predict_margin_and_proba(NOBODY)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=EXACT)
    for i in range(3):
        expected = by_quadrature(mean[i], 0.9 * var[i], model.tie_threshold_, 0.6)
        assert abs(proba[i, 1] - expected) < 1e-5
        assert abs(outcome_probabilities(mean, 0.9 * var, model.tie_threshold_)[i, 1] - expected) > 1e-4


def test_the_nodes_are_enough_for_any_spread_that_is_seen():
    for mean, var, delta, spread in [(0.0, 0.5, 0.5, 0.3), (1.5, 1.0, 0.8, 0.6), (-3.0, 0.2, 1.0, 0.8)]:
        found = np.exp(outcome_log_probabilities([mean], [var], delta, spread))[0]
        assert abs(found[1] - by_quadrature(mean, var, delta, spread)) < NODES
        assert abs(found.sum() - 1.0) < EXACT


def test_thresholds_row_by_row():
    mean, var, delta = np.array([0.3, -1.0, 60.0]), np.array([0.5, 1.0, 0.1]), np.array([0.4, 0.0, 2.0])
    found = outcome_log_probabilities(mean, var, delta)
    for i in range(3):
        one = outcome_log_probabilities(mean[i : i + 1], var[i : i + 1], delta[i])
        np.testing.assert_array_equal(found[i], one[0])
    assert found[1, 1] == -np.inf
    assert found[2, 2] < -1000.0


def test_an_update_learns_the_threshold_of_someone_new_and_forgetting_unlearns_it():
    model = Population(**GIVEN).fit(comparisons(ROWS))
    ties = {"user": [99] * 4, "left": [0, 1, 2, 3], "right": [1, 2, 3, 4]}
    with pytest.warns(DataWarning, match="without answers"):
        before = model.predict_proba(NOBODY)
    model.update(ties, [0, 0, 0, 0])
    assert model.posterior_.tie_factors(np.array([30]))[0] > 1.2
    model.forget(ties, [0, 0, 0, 0])
    np.testing.assert_allclose(model.predict_proba(NOBODY), before, atol=EXACT)


def test_without_ties_nobody_has_a_threshold():
    strict = crowd(4, 20, 5, 10)
    model = Population(**GIVEN).fit(comparisons(strict))
    assert model.hyperparameters_.tie_spread == 0.0
    assert model.tie_threshold_ == 0.0


def test_variance_factors_follow_what_people_answered_on():
    rows = crowd(5, 12, 8, 3)
    given = GIVEN | {"calibration": Calibration(0.5, 1.44)}
    model = Population(**given).fit(comparisons(rows))
    a, b = np.nonzero(np.triu(np.ones((8, 8)), 1))
    users = np.repeat(np.arange(12), len(a))
    left, right = np.tile(a, 12), np.tile(b, 12)
    kind = model.posterior_.pair_kinds(users, left, right)
    assert set(kind.tolist()) == {0, 1, 2, 3}
    frame = {"user": users, "left": left, "right": right}
    mean, var, proba = model._predict_margin_and_proba(frame)
    factor = np.array([0.5, 0.5 * 1.44**0.25, 0.72, 0.5 * 1.44**-6])[kind]
    np.testing.assert_allclose(proba, outcome_probabilities(mean, factor * var, 0.0), atol=EXACT)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(frame)), proba, atol=EXACT)
    # The same with people beside the layout: an answer more makes others follow.
    model.update(user=3, left=0, right=7, outcome=1)
    mean, var, proba = model._predict_margin_and_proba(frame)
    changed = model.posterior_.pair_kinds(users, left, right)
    assert 0 < np.count_nonzero(changed != kind) <= np.count_nonzero(users == 3)
    factor = np.array([0.5, 0.5 * 1.44**0.25, 0.72, 0.5 * 1.44**-6])[changed]
    np.testing.assert_allclose(proba, outcome_probabilities(mean, factor * var, 0.0), atol=EXACT)


def test_nobody_has_answered_on_an_item_that_is_new():
    # Of person 0 it was once read as the first items of person 1.
    rows = {"user": [0, 0, 1, 1], "left": ["b", "c", "a", "b"], "right": ["c", "d", "b", "c"]}
    given = GIVEN | {"calibration": Calibration(0.5, 4.0), "tie_threshold": ("auto", 0.0)}
    model = Population(**given).fit(rows, [1, 1, 1, 1])
    asked = {"user": [0, 0], "left": ["b", "a"], "right": ["new", "new"]}
    with pytest.warns(DataWarning, match="new"):
        mean, var, proba = model._predict_margin_and_proba(asked)
    factor = np.array([0.5 * 4.0**0.25, 2.0])  # one item that is unseen, and two
    np.testing.assert_allclose(proba, outcome_probabilities(mean, factor * var, 0.0), atol=EXACT)
