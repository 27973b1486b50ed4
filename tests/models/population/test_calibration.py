"""The variance factor: found where answers say it, near 1 where they do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from predilect.inference.likelihoods.calibration import Calibration
from predilect.inference.likelihoods.probit import outcome_log_probabilities, tilted
from predilect.models.population.search.calibration import variance_factor
from predilect.models.population.search.held_out import HeldOut
from tolerances import EXACT, STATISTICAL

PRIOR_RATE = 4.0  # of |log κ|: a Laplace prior of scale 1/4
TOLERANCE = 2e-3  # of log κ, by the minimiser


def margins(seed: int, n: int, factor: float, delta: float):
    """Answers at margins whose variance is ``factor`` times what is said."""
    rng = np.random.default_rng(seed)
    mean, var = 1.5 * rng.standard_normal(n), rng.uniform(0.5, 3.0, n)
    z = mean + np.sqrt(factor * var) * rng.standard_normal(n) + rng.standard_normal(n)
    return np.where(np.abs(z) <= delta, 0, np.sign(z)).astype(np.int8), mean, var


def factor_of(outcome, mean, var, weight, delta) -> float:
    """The variance factor of pairs."""
    kind, delta = np.zeros(len(mean), dtype=np.int8), np.broadcast_to(delta, np.shape(mean))
    return variance_factor(HeldOut(outcome, mean, var, weight, delta, kind))


def information(outcome, mean, var, factor, delta) -> float:
    """Of log κ, by finite differences of each answer's log-likelihood."""
    high, low = (tilted(outcome, mean, factor * math.exp(h) * var, delta)[0] for h in (1e-4, -1e-4))
    return float(np.sum(((high - low) / 2e-4) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 0.6])
@pytest.mark.parametrize("factor", [0.2, 1.0, 4.0])
def test_the_factor_of_simulated_margins_is_found(factor, delta):
    n = 100_000
    outcome, mean, var = margins(0, n, factor, delta)
    assert (delta > 0) == np.any(outcome == 0)
    found = math.log(factor_of(outcome, mean, var, np.ones(n), delta))
    known = information(outcome, mean, var, factor, delta)
    assert known > 300
    # To second order the prior pulls by its rate over the information, and to nothing where that is all there is.
    pull = min(PRIOR_RATE / known, abs(math.log(factor)))
    expected = math.log(factor) - math.copysign(pull, math.log(factor))
    assert abs(found - expected) < STATISTICAL / math.sqrt(known) + TOLERANCE
    assert abs(found - math.log(factor)) < 0.25


def test_it_predicts_better_than_its_neighbours():
    outcome, mean, var = margins(1, 3000, 0.3, 0.4)
    weight = np.random.default_rng(2).integers(1, 4, 3000).astype(float)
    found = factor_of(outcome, mean, var, weight, 0.4)

    def loss(factor):
        log_p = tilted(outcome, mean, factor * var, 0.4)[0]
        return -weight @ log_p + PRIOR_RATE * abs(math.log(factor))

    assert loss(found) < min(loss(found * 1.02), loss(found / 1.02))
    assert loss(found) < loss(1.0) - 1.0


@pytest.mark.parametrize("as_expected", [True, False])
@pytest.mark.parametrize("delta", [0.0, 0.6])
def test_a_handful_of_answers_leaves_it_near_one_and_many_do_not(as_expected, delta):
    mean = np.array([2.0, -1.5, 3.0, 1.0, -2.5])
    outcome = (np.sign(mean) * (1 if as_expected else -1)).astype(np.int8)
    few, many = (factor_of(outcome, mean, np.full(5, 4.0), np.full(5, n), delta) for n in (1.0, 40.0))
    assert 0.85 < few < 1.4  # 1 is the corner of its prior
    for found in (few, many):  # right, as people easier to predict are; wrong, and less is certain
        assert (found <= 1.0) if as_expected else (found >= 1.0)
    assert many != 1.0


def test_surprises_may_ask_for_more_and_never_beyond_the_range():
    outcome, mean = np.full(5000, -1, dtype=np.int8), np.full(5000, 5.0)
    assert 5.0 < factor_of(outcome, mean, np.ones(5000), np.ones(5000), 0.0) <= 10.0
    found = factor_of(-outcome, 0.5 * mean, np.full(5000, 50.0), np.full(5000, 1e4), 0.0)
    assert 1e-3 <= found < 0.05


def test_answers_that_say_nothing_leave_one():
    nothing = np.zeros(0)
    assert abs(math.log(factor_of(nothing.astype(np.int8), nothing, nothing, nothing, 0.0))) < TOLERANCE
    # margins that are certain, and margins of mean 0 without ties, whose answers are even whatever the variance
    outcome, mean, var = margins(3, 500, 1.0, 0.0)
    for say in ((mean, np.zeros(500)), (np.zeros(500), var)):
        assert abs(math.log(factor_of(outcome, *say, np.ones(500), 0.0))) < TOLERANCE


def test_ties_say_how_wide_even_margins_are():
    # Margins of mean 0 say nothing by who won; by how many tie they do.
    rng = np.random.default_rng(4)
    n, var = 50_000, np.full(50_000, 2.0)
    z = math.sqrt(1.0 + 0.2 * 2.0) * rng.standard_normal(n)
    outcome = np.where(np.abs(z) <= 0.6, 0, np.sign(z)).astype(np.int8)
    found = math.log(factor_of(outcome, np.zeros(n), var, np.ones(n), 0.6))
    known = information(outcome, np.zeros(n), var, 0.2, 0.6)
    expected = math.log(0.2) + PRIOR_RATE / known
    assert abs(found - expected) < STATISTICAL / math.sqrt(known) + 0.02


def test_sides_do_not_matter_and_a_weight_is_that_many_answers():
    outcome, mean, var = margins(5, 400, 0.3, 0.4)
    found = factor_of(outcome, mean, var, np.full(400, 3.0), 0.4)
    assert abs(factor_of(-outcome, -mean, var, np.full(400, 3.0), 0.4) - found) < EXACT
    copies = (np.tile(values, 3) for values in (outcome, mean, var))
    assert abs(factor_of(*copies, np.ones(1200), 0.4) - found) < TOLERANCE * found


VAR = np.array([1.0, 4.0, 9.0, 4.0])
KIND = np.array([0, 1, 2, 3])


def test_pairs_of_one_item_that_was_not_answered_on_lie_between_and_implied_ones_have_their_own():
    found = Calibration(0.2, 16.0)
    ((share, v, noise),) = found.components(VAR, KIND)
    assert share == noise == 1.0
    np.testing.assert_allclose(v, [0.2, 0.4 * 4.0, 3.2 * 9.0, 0.2 / 16.0**6 * 4.0], rtol=EXACT)
    ((_, same, _),) = Calibration().components(VAR, KIND)
    np.testing.assert_array_equal(same, VAR)
    assert found.depends_on_pair
    assert not Calibration(0.3, 1.0, 0.1).depends_on_pair


@pytest.mark.parametrize("delta", [0.0, 0.6])
def test_chances_are_those_of_answers_drawn_with_the_noise_of_care_or_of_little(delta):
    found = Calibration(0.5, lapse_rate=0.2)
    mean, var = np.array([0.8, -2.0]), np.array([1.5, 0.4])
    log_p = found.log_chances(lambda v, noise: outcome_log_probabilities(mean, v + noise - 1.0, delta), var)
    rng = np.random.default_rng(0)
    n = 400_000
    for i in range(2):
        lapsed = rng.random(n) < 0.2
        sd = np.where(lapsed, 5.0, 1.0)
        z = mean[i] + math.sqrt(0.5 * var[i]) * rng.standard_normal(n) + sd * rng.standard_normal(n)
        expected = [(z > delta).mean(), (np.abs(z) <= delta).mean(), (z < -delta).mean()]
        np.testing.assert_allclose(np.exp(log_p[i]), expected, atol=STATISTICAL * 0.5 / math.sqrt(n))
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1.0, atol=EXACT)
