"""The probit likelihood of strict answers and ties against quadrature, finite differences and symmetries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from predilect.inference.likelihoods.probit import (
    moments_scalar,
    outcome_probabilities,
    threshold_for_tie_share,
    tilted,
    tilted_scalar,
)
from referees.probit_by_quadrature import tilted_by_expectation, tilted_by_moments
from tolerances import CONVERGED, EXACT, ITERATIVE

MODERATE = [(m, v) for m in (-6.0, -2.5, -0.3, 0.0, 1.0, 4.0) for v in (0.0, 0.1, 1.0, 9.0)]
EXTREME = [(m, v) for m in (-1e3, -40.0, 40.0, 1e3) for v in (0.0, 4.0)]
# A strict answer is what a referee with no tie threshold can give too; ties need one.
ANSWERS = [(1, 0.0), (-1, 0.0), (1, 0.7), (-1, 0.7), (0, 0.05), (0, 0.7), (0, 3.0)]


@pytest.mark.parametrize(("outcome", "delta"), ANSWERS)
def test_tilted_is_the_expectation_of_the_answer_probability(outcome, delta):
    for m, v in MODERATE:
        value = tilted_scalar(outcome, m, v, delta)[0]
        assert abs(value - tilted_by_expectation(outcome, m, v, delta)) < EXACT * max(1.0, abs(value)), (m, v)


@pytest.mark.parametrize(("outcome", "delta"), [*ANSWERS, (1, 1e-6), (0, 1e-6), (0, 1e-3)])
def test_value_slope_and_curvature_equal_moments_by_quadrature(outcome, delta):
    for m, v in MODERATE + EXTREME:
        value, slope, curvature, _, _ = tilted_scalar(outcome, m, v, delta)
        log_z, d1, h = tilted_by_moments(outcome, m, v, delta)
        # δ = 1e-6 leaves ten digits of a probability that is the difference of two.
        assert abs(value - log_z) < EXACT * 10 * max(1.0, abs(log_z)), (m, v)
        assert abs(slope - d1) < CONVERGED * max(1.0, abs(d1)), (m, v)
        assert abs(curvature - h) < ITERATIVE, (m, v)


@pytest.mark.parametrize(("outcome", "delta"), [*ANSWERS, (0, 1e-3), (0, 1e-6)])
def test_curvature_lies_between_zero_and_one(outcome, delta):
    # Sites stay positive and cavities proper only if so: λ' = h/(1 - h v), h (1 + v) < 1.
    m = np.concatenate([np.linspace(-30.0, 30.0, 601), [-1e3, -300.0, 300.0, 1e3]])
    # The true value is within 1e-13 of 1 for a tie at δ = 1e-6, whose probability keeps ten digits.
    rounding = ITERATIVE if delta == 1e-6 else CONVERGED
    for v in (0.0, 1.0, 25.0):
        curvature = tilted(np.full(m.shape, outcome), m, np.full(m.shape, v), delta)[2] * (1.0 + v)
        assert np.all(curvature <= 1.0 + rounding), curvature.max()
        assert np.all(curvature >= 0.0)
        assert np.all(curvature[np.abs(m) <= 10.0] > 0.0)


@pytest.mark.parametrize(("outcome", "delta"), [answer for answer in ANSWERS if answer[1] > 0])
def test_derivatives_by_finite_differences(outcome, delta):
    step = 1e-5
    m, v = (np.array(column) for column in zip(*MODERATE, strict=True))
    y = np.full(m.shape, outcome)

    def difference(k, dm, ddelta):
        up = tilted(y, m + dm, v, delta + ddelta)[k]
        down = tilted(y, m - dm, v, delta - ddelta)[k]
        return (up - down) / (2 * step)

    _, slope, curvature, slope_delta, curvature_delta = tilted(y, m, v, delta)
    scale = 1.0 + np.abs(slope_delta)
    np.testing.assert_allclose(difference(0, step, 0), slope, rtol=ITERATIVE, atol=ITERATIVE)
    np.testing.assert_allclose(difference(1, step, 0), -curvature, rtol=ITERATIVE, atol=ITERATIVE)
    np.testing.assert_allclose(difference(0, 0, step), slope_delta, rtol=ITERATIVE, atol=ITERATIVE)
    # Third derivatives in δ grow as δ⁻³, and with them the error of the difference quotient.
    np.testing.assert_allclose(difference(3, 0, step) / scale**2, curvature_delta / scale**2, atol=ITERATIVE)


def test_left_tie_and_right_add_up_to_one():
    for delta in (1e-6, 0.1, 2.0):
        m, v = (np.array(column) for column in zip(*MODERATE, strict=True))
        total = sum(np.exp(tilted(np.full(m.shape, y), m, v, delta)[0]) for y in (1, 0, -1))
        np.testing.assert_allclose(total, 1.0, atol=EXACT)


def test_swapping_left_and_right_changes_signs_only():
    m, v = (np.array(column) for column in zip(*(MODERATE + EXTREME), strict=True))
    for outcome, delta in ANSWERS:
        here = tilted(np.full(m.shape, outcome), m, v, delta)
        there = tilted(np.full(m.shape, -outcome), -m, v, delta)
        for k, sign in enumerate((1, -1, 1, 1, 1)):
            np.testing.assert_array_equal(here[k], sign * there[k])


def test_without_variance_it_is_the_logarithm_of_a_probability():
    z = np.linspace(-5, 5, 11)
    left, tie, right = (np.exp(tilted(np.full(11, y), z, 0.0, 0.4)[0]) for y in (1, 0, -1))
    np.testing.assert_allclose(left, ndtr(z - 0.4), rtol=EXACT)
    np.testing.assert_allclose(right, ndtr(-z - 0.4), rtol=EXACT)
    np.testing.assert_allclose(tie, 1.0 - left - right, atol=EXACT)


def test_variance_is_noise_on_the_same_answer():
    # Two ways to widen the noise: v in the margin, or a margin and threshold in units of the wider noise.
    for outcome, delta in ANSWERS:
        for m, v in MODERATE:
            s = np.sqrt(1 + v)
            narrow = tilted_scalar(outcome, m / s, 0.0, delta / s)[0]
            assert abs(tilted_scalar(outcome, m, v, delta)[0] - narrow) < EXACT


def test_outcome_probabilities_are_the_three_answers():
    m, v = (np.array(column) for column in zip(*(MODERATE + EXTREME), strict=True))
    for delta in (0.0, 1e-6, 0.7):
        rows = outcome_probabilities(m, v, delta)
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=EXACT)
        np.testing.assert_allclose(rows, outcome_probabilities(-m, v, delta)[:, ::-1], atol=EXACT)
        for column, y in ((0, 1), (1, 0), (2, -1)):
            if y == 0 and delta == 0.0:
                assert np.all(rows[:, 1] == 0.0)
                continue
            expected = np.exp([tilted_by_moments(y, *point, delta)[0] for point in zip(m, v, strict=True)])
            np.testing.assert_allclose(rows[:, column], expected, rtol=CONVERGED, atol=1e-300)


def test_threshold_for_a_tie_share_gives_that_share_at_margin_zero():
    for share in (0.05, 0.3, 0.8):
        assert abs(outcome_probabilities([0.0], [0.0], threshold_for_tie_share(share))[0, 1] - share) < EXACT
    # shares of 0 and 1 are no thresholds, but starting points must be finite and positive
    assert 0 < threshold_for_tie_share(0.0) < threshold_for_tie_share(1.0) < 10


def test_moments_are_the_two_derivatives_of_tilted():
    for outcome, delta in ANSWERS:
        for m, v in MODERATE + EXTREME:
            assert moments_scalar(outcome, m, v, delta) == tilted_scalar(outcome, m, v, delta)[1:3]
