"""The variance factor: found where answers say it, near 1 where they do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from predilect.inference.calibration import Calibration, calibration, variance_factor
from predilect.likelihoods.probit import outcome_probabilities, tilted
from tolerances import EXACT, STATISTICAL

PRIOR_RATE = 4.0  # of |log κ|: a Laplace prior of scale 1/4
LAPSE_MEAN = 0.02  # of the exponential prior of a lapse rate
TOLERANCE = 2e-3  # of log κ, by the minimiser


def margins(seed: int, n: int, factor: float, delta: float):
    """Answers at margins whose variance is ``factor`` times what is said."""
    rng = np.random.default_rng(seed)
    mean, var = 1.5 * rng.standard_normal(n), rng.uniform(0.5, 3.0, n)
    z = mean + np.sqrt(factor * var) * rng.standard_normal(n) + rng.standard_normal(n)
    return np.where(np.abs(z) <= delta, 0, np.sign(z)).astype(np.int8), mean, var


def information(outcome, mean, var, factor, delta) -> float:
    """Of log κ, by finite differences of each answer's log-likelihood."""
    high, low = (tilted(outcome, mean, factor * math.exp(h) * var, delta)[0] for h in (1e-4, -1e-4))
    return float(np.sum(((high - low) / 2e-4) ** 2))


@pytest.mark.parametrize("delta", [0.0, 0.6])
@pytest.mark.parametrize("factor", [0.2, 1.0, 4.0])
def test_the_factor_of_simulated_margins_is_found(factor, delta):
    n = 100_000
    outcome, mean, var = margins(0, n, factor, delta)
    assert (delta > 0) == np.any(outcome == 0)
    found = math.log(variance_factor(outcome, mean, var, np.ones(n), delta))
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
    found = variance_factor(outcome, mean, var, weight, 0.4)

    def loss(factor):
        log_p = tilted(outcome, mean, factor * var, 0.4)[0]
        return -weight @ log_p + PRIOR_RATE * abs(math.log(factor))

    assert loss(found) < min(loss(found * 1.02), loss(found / 1.02))
    assert loss(found) < loss(1.0) - 1.0


@pytest.mark.parametrize("as_expected", [True, False])
@pytest.mark.parametrize("delta", [0.0, 0.6])
def test_a_handful_of_answers_leaves_it_near_one(as_expected, delta):
    mean = np.array([2.0, -1.5, 3.0, 1.0, -2.5])
    outcome = (np.sign(mean) * (1 if as_expected else -1)).astype(np.int8)
    found = variance_factor(outcome, mean, np.full(5, 4.0), np.ones(5), delta)
    assert 0.85 < found < 1.4
    assert (found < 1.0) == as_expected  # right, as people easier to predict are; wrong, and less is certain


def test_surprises_may_ask_for_more_and_never_beyond_the_range():
    outcome, mean = np.full(5000, -1, dtype=np.int8), np.full(5000, 5.0)
    assert 5.0 < variance_factor(outcome, mean, np.ones(5000), np.ones(5000), 0.0) <= 10.0
    found = variance_factor(-outcome, 0.5 * mean, np.full(5000, 50.0), np.full(5000, 1e4), 0.0)
    assert 1e-3 <= found < 0.05


def test_answers_that_say_nothing_leave_one():
    nothing = np.zeros(0)
    assert abs(math.log(variance_factor(nothing.astype(np.int8), nothing, nothing, nothing, 0.0))) < TOLERANCE
    # margins that are certain, and margins of mean 0 without ties, whose answers are even whatever the variance
    outcome, mean, var = margins(3, 500, 1.0, 0.0)
    for say in ((mean, np.zeros(500)), (np.zeros(500), var)):
        assert abs(math.log(variance_factor(outcome, *say, np.ones(500), 0.0))) < TOLERANCE


def test_ties_say_how_wide_even_margins_are():
    # Margins of mean 0 say nothing by who won; by how many tie they do.
    rng = np.random.default_rng(4)
    n, var = 50_000, np.full(50_000, 2.0)
    z = math.sqrt(1.0 + 0.2 * 2.0) * rng.standard_normal(n)
    outcome = np.where(np.abs(z) <= 0.6, 0, np.sign(z)).astype(np.int8)
    found = math.log(variance_factor(outcome, np.zeros(n), var, np.ones(n), 0.6))
    known = information(outcome, np.zeros(n), var, 0.2, 0.6)
    expected = math.log(0.2) + PRIOR_RATE / known
    assert abs(found - expected) < STATISTICAL / math.sqrt(known) + 0.02


def test_sides_do_not_matter_and_a_weight_is_that_many_answers():
    outcome, mean, var = margins(5, 400, 0.3, 0.4)
    found = variance_factor(outcome, mean, var, np.full(400, 3.0), 0.4)
    assert abs(variance_factor(-outcome, -mean, var, np.full(400, 3.0), 0.4) - found) < EXACT
    copies = (np.tile(values, 3) for values in (outcome, mean, var))
    assert abs(variance_factor(*copies, np.ones(1200), 0.4) - found) < TOLERANCE * found


NOTHING = Calibration()


def calibrated_margins(seed: int, n: int, truth: Calibration, delta: float):
    """Answers whose chances come from margins as ``truth`` says, and all that is said of them."""
    rng = np.random.default_rng(seed)
    n_unseen = rng.integers(3, size=n)
    mean, var = 1.5 * rng.standard_normal(n), np.exp(rng.uniform(-1.0, 2.5, n))
    chances = outcome_probabilities(mean, truth.variance(var, n_unseen), truth.threshold_factor * delta)
    chances = (1.0 - truth.lapse_rate) * chances + truth.lapse_rate / 3.0
    u = rng.random(n)
    outcome = 1 - (u > chances[:, 0]).astype(np.int8) - (u > chances[:, :2].sum(axis=1)).astype(np.int8)
    return outcome.astype(np.int8), mean, var, np.ones(n), np.full(n, delta), n_unseen


def logs(found: Calibration, var) -> np.ndarray:
    """What has a prior about 0: a, d, e - 1, log γ, and λ in units of a quarter of its mean."""
    centre = np.log(var).mean()
    a = math.log(found.factor) + (found.power - 1.0) * centre
    return np.array(
        [a, math.log(found.factor_unseen / found.factor), found.power - 1.0, math.log(found.threshold_factor),
         found.lapse_rate / LAPSE_MEAN / PRIOR_RATE]
    )  # fmt: skip


def penalised_loss(x, outcome, mean, var, weight, delta, n_unseen) -> float:
    a, d, rest, log_gamma, lapses = x
    rate = lapses * LAPSE_MEAN * PRIOR_RATE
    log_var = np.log(var)
    v = np.exp(a + 0.5 * d * n_unseen + rest * (log_var - np.average(log_var, weights=weight)) + log_var)
    chances = np.exp(tilted(outcome, mean, v, math.exp(log_gamma) * delta)[0])
    return float(-weight @ np.log((1.0 - rate) * chances + rate / 3.0) + PRIOR_RATE * np.abs(x).sum())


@pytest.mark.parametrize("truth", [
    Calibration(0.3, 1.2, 1.0, 1.0), Calibration(0.5, 0.5, 1.6, 1.0), Calibration(1.0, 1.0, 0.6, 0.7),
    Calibration(0.4, 1.5, 1.4, 1.3), pytest.param(Calibration(0.4, 0.8, 1.0, 1.0, 0.1), marks=pytest.mark.slow),
])  # fmt: skip
def test_the_calibration_of_simulated_answers_is_found(truth):
    n = 240_000 if truth.lapse_rate else 60_000  # lapses hide what large margins tell of the rest
    columns = calibrated_margins(5, n, truth, 0.6)
    found = calibration(*columns)
    x, var = logs(found, columns[2]), columns[2]
    np.testing.assert_allclose(x, logs(truth, var), atol=0.12)
    best = penalised_loss(x, *columns)
    for step in np.vstack([0.03 * np.eye(5), -0.03 * np.eye(5)]):
        if x[4] + step[4] >= 0.0:
            assert best < penalised_loss(x + step, *columns)


def test_answers_that_are_as_the_model_says_change_nothing():
    columns = calibrated_margins(6, 60_000, NOTHING, 0.5)
    assert np.abs(logs(calibration(*columns), columns[2])).max() < 0.1
    few = [column[:6] for column in columns]
    assert np.abs(logs(calibration(*few), few[2])).max() == 0.0
    assert calibration(*(column[:0] for column in columns)) == NOTHING


def test_what_is_given_or_cannot_be_told_stays():
    columns = calibrated_margins(7, 20_000, Calibration(0.4, 1.5, 1.4, 1.3), 0.6)
    found = calibration(*columns, power=1.2, threshold_factor=0.9, lapse_rate=0.05)
    assert abs(found.lapse_rate - 0.05) < EXACT
    assert abs(found.power - 1.2) < EXACT
    assert abs(found.threshold_factor - 0.9) < EXACT
    assert found.factor != found.factor_unseen
    *others, n_unseen = columns
    for number in (0, 2):
        one = calibration(*others, np.full_like(n_unseen, number))
        assert one.factor == one.factor_unseen
    strict = calibrated_margins(8, 20_000, Calibration(0.4), 0.0)
    assert calibration(*strict).threshold_factor == 1.0
    # Variances all the same say nothing of a power.
    same = (*others[:2], np.full(20_000, 3.0), *others[3:], n_unseen)
    assert calibration(*same).power == 1.0


def test_a_power_is_bounded_and_rows_weigh_as_their_copies():
    outcome, mean, var, weight, delta, n_unseen = calibrated_margins(9, 40_000, Calibration(0.3, 0.3, 2.0), 0.3)
    steep = calibration(outcome, mean, np.sqrt(var), weight, delta, n_unseen)  # asks for a power of 4
    assert abs(steep.power - 2.0) < EXACT
    one = calibration(outcome, mean, var, 2.0 * weight, delta, n_unseen)
    columns = (outcome, mean, var, weight, delta, n_unseen)
    two = calibration(*(np.tile(column, 2) for column in columns))
    np.testing.assert_allclose(logs(one, var), logs(two, var), atol=TOLERANCE)


def test_pairs_of_one_item_that_was_not_answered_on_lie_between():
    found = Calibration(0.2, 1.8, 1.5)
    var = np.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(found.variance(var, [0, 1, 2]), [0.2, 0.6 * 8.0, 1.8 * 27.0], rtol=EXACT)
    np.testing.assert_array_equal(NOTHING.variance(var, [0, 1, 2]), var)


@pytest.mark.parametrize("delta", [0.0, 0.6])
def test_answers_that_had_no_chance_are_lapses_and_hide_nothing_else(delta):
    truth = Calibration(0.2, 0.2)
    columns = calibrated_margins(9, 20_000, truth, delta)
    slips = (np.ones(40, np.int8), np.full(40, -40.0), np.full(40, 0.01), np.ones(40), np.full(40, delta), np.zeros(40))
    together = [np.concatenate(pair).astype(pair[0].dtype) for pair in zip(columns, slips, strict=True)]
    found = calibration(*together, power=1.0, threshold_factor=1.0)
    assert abs(math.log(found.factor / truth.factor)) < 0.3
    assert 0.002 < found.lapse_rate < 0.05  # answers that are nearly a toss-up hardly tell them
    without = calibration(*together, power=1.0, threshold_factor=1.0, lapse_rate=0.0)
    assert without.factor > 2.0 * found.factor
