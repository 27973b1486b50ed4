"""The calibration: found where answers say it, and nothing where they do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from predilect.inference.likelihoods.calibration import LAPSE_NOISE, Calibration
from predilect.inference.likelihoods.probit import outcome_probabilities, tilted
from predilect.inference.likelihoods.views import Probit
from predilect.inference.people.queries import NEWCOMER
from predilect.models.population.search import calibration as module
from predilect.models.population.search.calibration import _UP as UP
from predilect.models.population.search.calibration import _Objective, calibration
from predilect.models.population.search.held_out import HeldOut
from tolerances import CONVERGED, EXACT

PRIOR_RATE = 4.0  # of the Laplace priors: a scale of 1/4
LAPSE_MEAN = 0.05  # of the exponential prior of a lapse rate
TOLERANCE = 2e-3  # of a logarithm, by the minimiser
NOTHING = Calibration()
KINDS = 4
STEP = 1e-5
DIFFERENCES = 1e-7  # second order in the step


def calibrated_margins(seed: int, n: int, truth: Calibration, delta: float):
    """Answers whose chances come from margins as ``truth`` says, and all that is said of them."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(KINDS, size=n)
    mean, var = 1.5 * rng.standard_normal(n), np.exp(rng.uniform(-1.0, 2.5, n))
    chances = sum(
        share * outcome_probabilities(mean, v + noise - 1.0, delta) for share, v, noise in truth.components(var, kind)
    )
    u = rng.random(n)
    outcome = 1 - (u > chances[:, 0]).astype(np.int8) - (u > chances[:, :2].sum(axis=1)).astype(np.int8)
    return outcome.astype(np.int8), mean, var, np.ones(n), np.full(n, delta), kind


def logs(found: Calibration) -> np.ndarray:
    """What has a prior about 0: log κ, log R, λ in units of its prior, and log (1 + δ₀)."""
    lapses = found.lapse_rate / LAPSE_MEAN / PRIOR_RATE
    factors = math.log(found.variance_factor), math.log(found.unseen_ratio)
    return np.array([*factors, lapses, math.log1p(found.omitted_ties)])


def penalised_loss(x, outcome, mean, var, weight, delta, kind) -> float:
    a, d, lapses, _ = x
    rate = lapses * LAPSE_MEAN * PRIOR_RATE
    v = np.exp(a + d * np.array([0.0, 0.25, 1.0, -6.0])[kind]) * var

    def chances(own_noise):
        # A noise of another variance is another unit of everything else.
        s = math.sqrt(own_noise)
        return np.exp(tilted(outcome, mean / s, v / own_noise, delta / s)[0])

    p = (1.0 - rate) * chances(1.0) + rate * chances(LAPSE_NOISE)
    return float(-weight @ np.log(p) + PRIOR_RATE * np.abs(x).sum())


@pytest.mark.parametrize("truth", [
    Calibration(0.3, 4.0), Calibration(0.6, 1.2),
    pytest.param(Calibration(2.0, 1.1), marks=pytest.mark.slow),
    pytest.param(Calibration(0.4, 2.0), marks=pytest.mark.slow),
    pytest.param(Calibration(0.4, 1.2, 0.15), marks=pytest.mark.slow),
])  # fmt: skip
def test_the_calibration_of_simulated_answers_is_found(truth):
    n = 400_000 if truth.lapse_rate else 80_000  # lapses hide what large margins tell of the rest
    columns = calibrated_margins(5, n, truth, 0.6)
    found = calibration(HeldOut(*columns))
    x = logs(found)
    np.testing.assert_allclose(x, logs(truth), atol=0.2)
    best = penalised_loss(x, *columns)
    for step in np.vstack([0.03 * np.eye(4)[:3], -0.03 * np.eye(4)[:3]]):
        y = x + step
        if y[1] >= 0.0 and y[2] >= 0.0:  # bounds
            assert best < penalised_loss(y, *columns)


@pytest.mark.parametrize("rate", [0.0, 0.1])
@pytest.mark.parametrize("delta", [0.0, 0.6])
def test_the_gradient_is_that_of_finite_differences(delta, rate):
    outcome, mean, var, weight, delta, kind = calibrated_margins(3, 200, NOTHING, delta)
    powers = 0.5 * (kind % 3) - (kind == 3)
    objective = _Objective(HeldOut(outcome, mean, var, weight + kind, delta, kind), powers)
    parts = np.array([0.3, 0.2, rate, 0.0, 0.0, 0.4, 0.0, 0.0])
    if not delta.any():
        parts[3] = 0.5  # where ties are left out
    gradient = objective(parts)[1]
    for i in range(8):
        if rate == 0.0 and i % 4 == 2:  # lapses that begin
            continue
        step = STEP * np.eye(8)[i]
        found = (objective(parts + step)[0] - objective(parts - step)[0]) / (2.0 * STEP)
        assert abs(found - gradient[i]) < DIFFERENCES * (1.0 + abs(found))


def test_answers_that_are_as_the_model_says_change_nothing():
    columns = calibrated_margins(6, 60_000, NOTHING, 0.5)
    assert np.abs(logs(calibration(HeldOut(*columns)))).max() < 0.1
    few = [column[:6] for column in columns]
    assert np.abs(logs(calibration(HeldOut(*few)))).max() == 0.0
    assert calibration(HeldOut(*(column[:0] for column in columns))) == NOTHING


@pytest.mark.slow
def test_what_cannot_be_told_stays():
    *others, kind = calibrated_margins(7, 20_000, Calibration(0.4, 1.3), 0.6)
    assert calibration(HeldOut(*others, kind)).unseen_ratio > 1.2
    for number in range(KINDS):
        assert calibration(HeldOut(*others, np.full_like(kind, number))).unseen_ratio == 1.0
    # No answer is less certain for being implied: the kinds of before, of which two changed places.
    assert calibration(HeldOut(*others, np.array([3, 1, 2, 0])[kind])).unseen_ratio == 1.0


@pytest.mark.slow
def test_rows_weigh_as_their_copies_and_somebody_without_other_answers_has_seen_no_item():
    outcome, mean, var, weight, delta, kind = calibrated_margins(9, 40_000, Calibration(0.3, 1.4), 0.3)
    one = calibration(HeldOut(outcome, mean, var, 2.0 * weight, delta, kind))
    columns = (outcome, mean, var, weight, delta, kind)
    two = calibration(HeldOut(*(np.tile(column, 2) for column in columns)))
    np.testing.assert_allclose(logs(one), logs(two), atol=TOLERANCE)
    silent = np.where(kind == 2, kind + NEWCOMER, kind)
    assert calibration(HeldOut(outcome, mean, var, 2.0 * weight, delta, silent)) == one


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 0.6])
def test_answers_that_had_no_chance_are_lapses_and_hide_nothing_else(delta, monkeypatch):
    truth = Calibration(0.2)
    columns = calibrated_margins(9, 20_000, truth, delta)
    slips = (
        np.ones(40, np.int8),
        np.full(40, -40.0),
        np.full(40, 0.01),
        np.ones(40),
        np.full(40, delta),
        np.full(40, 2),
    )
    together = [np.concatenate(pair).astype(pair[0].dtype) for pair in zip(columns, slips, strict=True)]
    found = calibration(HeldOut(*together))
    assert abs(math.log(found.variance_factor / truth.variance_factor)) < 0.3
    # Lapses are those of noise 25, and answers that are nearly a toss-up hardly tell them.
    assert 0.001 < found.lapse_rate < 0.06
    monkeypatch.setattr(module, "_UP", UP * [1.0, 1.0, 0.0, 1.0])
    assert calibration(HeldOut(*together)).variance_factor > 2.0 * found.variance_factor


def without_ties(seed: int, n: int, threshold: float) -> HeldOut:
    """Answers at margins of known variance, of which those within the threshold are left out."""
    rng = np.random.default_rng(seed)
    mean, var = 1.5 * rng.standard_normal(n), np.exp(rng.uniform(-1.0, 2.5, n))
    felt = mean + np.sqrt(var + 1.0) * rng.standard_normal(n)
    told = np.abs(felt) > threshold
    mean, var, outcome = mean[told], var[told], np.sign(felt[told]).astype(np.int8)
    nothing = np.zeros(len(mean))
    return HeldOut(outcome, mean, var, nothing + 1.0, nothing, nothing.astype(np.int8))


def test_the_threshold_of_ties_that_data_leave_out_is_found_and_moves_no_variance():
    asked = without_ties(11, 120_000, 3.0)
    x = logs(calibration(asked))
    np.testing.assert_allclose(x, logs(Calibration(omitted_ties=3.0)), atol=0.2)

    def loss(a, d):
        s = np.sqrt(1.0 + math.exp(a) * asked.var)
        near, far = (special.ndtr((y * asked.mean - math.expm1(d)) / s) for y in (asked.outcome, -asked.outcome))
        return -np.log(near / (near + far)).sum() + PRIOR_RATE * (abs(a) + d)

    best = loss(x[0], x[3])
    for step in ((0.05, 0.0), (0.0, 0.05), (0.1, 0.1)):
        assert best < min(loss(x[0] + step[0], x[3] + step[1]), loss(x[0] - step[0], x[3] - step[1]))
    assert x[0] == 0.0


def test_of_the_variance_and_the_threshold_that_is_learned_by_which_answers_are_likelier():
    outcome, mean, var, weight, _, kind = calibrated_margins(14, 40_000, Calibration(0.2), 0.0)
    narrow = calibration(HeldOut(outcome, mean, var, weight, np.zeros(len(mean)), kind))
    assert narrow.omitted_ties == 0.0
    assert abs(math.log(narrow.variance_factor / 0.2)) < 0.2


def test_where_no_tie_is_left_out_there_is_no_threshold():
    assert calibration(without_ties(12, 60_000, 0.0)).omitted_ties < 0.25
    # Where ties are answers their threshold is known.
    assert calibration(HeldOut(*calibrated_margins(13, 5_000, Calibration(0.3), 0.6))).omitted_ties == 0.0


@pytest.mark.parametrize("lapse_rate", [0.0, 0.1])
@pytest.mark.parametrize("margin", [0.3, -2.0, 150.0])
def test_chances_where_ties_are_left_out_are_those_of_a_side_over_either(margin, lapse_rate):
    given = Calibration(lapse_rate=lapse_rate, omitted_ties=1.7)
    mean, var = np.array([margin]), np.array([2.5])
    arguments = mean, var, 0.0, 1.0, None, 0
    log_p = given.outcome_log_proba(*arguments)[0]
    expected = 0.0
    for share, v, noise in given.components(var):
        sides = outcome_probabilities(mean, v + noise - 1.0, 1.7)[0]
        expected += share * sides[0] / (sides[0] + sides[2])
    assert math.isclose(math.exp(log_p[0]), expected, rel_tol=EXACT)
    assert log_p[1] == -math.inf
    assert math.isclose(np.exp(log_p).sum(), 1.0, rel_tol=EXACT)
    assert np.isfinite(log_p[[0, 2]]).all()
    np.testing.assert_allclose(given.outcome_proba(*arguments)[0], np.exp(log_p), atol=EXACT)
    # Where ties are answers nothing is left out.
    with_ties = mean, var, 0.5, 1.0, None, 0
    plain = Calibration(lapse_rate=lapse_rate)
    np.testing.assert_array_equal(given.outcome_proba(*with_ties), plain.outcome_proba(*with_ties))


def test_chances_of_who_never_tied_are_averages_over_thresholds():
    """And those of others, beside them, are of their own threshold; the logarithm of a threshold is normal."""
    mean, var, factor = np.array([0.3, -1.0, 0.5, 2.0]), np.array([0.5, 1.0, 0.2, 0.0]), np.array([1.0, 1.4, 0.6, 2.0])
    silent, spread, delta = np.array([True, False, True, False]), 0.5, 0.7
    given = Calibration(tie_spread=spread)
    logs = np.linspace(-8.0, 8.0, 1601)
    expected = outcome_probabilities(mean, var, delta * factor)
    for row in np.flatnonzero(silent):
        own = outcome_probabilities(np.full(1601, mean[row]), var[row], delta * factor[row] * np.exp(spread * logs))
        expected[row] = np.average(own, weights=np.exp(-0.5 * logs**2), axis=0)
    asked = mean, var, delta, factor, silent, 0
    np.testing.assert_allclose(given.outcome_proba(*asked), expected, atol=CONVERGED)
    np.testing.assert_allclose(np.exp(given.outcome_log_proba(*asked)), expected, atol=CONVERGED)


@pytest.mark.parametrize("delta", [0.2, 3.0, 40.0])
def test_chances_of_either_side_have_the_slopes_of_finite_differences_and_are_log_concave(delta):
    m, v = np.linspace(-60.0, 60.0, 241), np.full(241, 1.4)
    outcome = np.where(np.arange(241) % 3, 1, -1).astype(np.int8)
    _, slope, curvature, along, along_delta = Probit.decided(outcome, m, v, delta)
    assert (curvature >= 0.0).all()
    h = 1e-4

    def difference(name, column=0):
        high, low = (Probit.decided(outcome, m + s * (name == "m"), v + s * (name == "v"), delta + s * (name == "d"))
                     for s in (h, -h))  # fmt: skip
        return (high[column] - low[column]) / (2.0 * h)

    for found, expected in ((slope, difference("m")), (-curvature, difference("m", 1)), (along, difference("v")),
                            (along_delta, difference("d"))):  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
