"""E log P by quadrature: accuracy, derivatives, and the plain NumPy form of the compiled loop."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from predilect.inference.likelihoods.expectation import RULES, expected
from predilect.inference.likelihoods.tabulated import at
from tolerances import CONVERGED, EXACT, ITERATIVE

ANSWERS = [(1, 0.0), (-1, 0.0), (1, 0.7), (0, 0.7), (0, 0.05)]
MEANS = np.array([-6.0, -2.5, -0.3, 0.0, 1.0, 6.0])


def by_quadrature(outcome, m, v, delta, k):
    """E of value, slope or curvature by adaptive quadrature over pieces of the line."""
    s = np.sqrt(v)
    edges = np.unique(np.clip([-20.0, -8.0, -3.0, 0.0, 3.0, 8.0, 20.0, m], m - 14 * s, m + 14 * s))
    edges = np.concatenate([[m - 14 * s], edges, [m + 14 * s]])

    def integrand(z):
        return at([outcome], [z], delta)[k][0] * np.exp(-0.5 * (z - m) ** 2 / v) / np.sqrt(2 * np.pi * v)

    return sum(quad(integrand, a, b, epsabs=1e-15, epsrel=1e-12)[0] for a, b in pairwise(edges))


# At most 1e-8, 1e-5 and 5e-4 at v = 1, 4, 10.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("v", "tolerance"), [(1e-4, 1e-9), (0.1, 1e-9), (1.0, 1e-7), (2.0, 5e-6), (4.0, 1e-7), (10.0, 5e-6), (60.0, 2e-5)]
)
def test_value_slope_and_curvature_against_adaptive_quadrature(v, tolerance):
    for outcome, delta in [(1, 0.0), (-1, 0.7), (0, 0.7)]:
        for m in (-2.5, 0.0, 1.0):
            found = expected([outcome], [m], [v], delta)
            for k in range(3):
                exact = by_quadrature(outcome, m, v, delta, k)
                assert abs(found[k][0] - exact) < tolerance * max(1.0, abs(exact)), (outcome, delta, m, k)


def test_the_value_of_a_strict_answer_meets_the_printed_relative_errors():
    # Except where the value itself is tiny: at m = 6, v = 1 it is -1e-5, and 20 nodes are 6e-13 off, 6e-8 of it.
    for v, tolerance in ((0.1, 1e-8), (1.0, 1e-8), (4.0, 1e-5), (10.0, 5e-4)):
        x, omega = np.polynomial.hermite_e.hermegauss(200)
        omega = omega / omega.sum()
        exact = np.array([omega @ at(np.ones(200), m + np.sqrt(v) * x)[0] for m in MEANS])
        np.testing.assert_allclose(expected(np.ones(6), MEANS, np.full(6, v))[0], exact, rtol=tolerance, atol=1e-12)


@pytest.mark.parametrize(("outcome", "delta"), ANSWERS)
def test_slope_and_curvature_are_derivatives_of_the_value(outcome, delta):
    # Of the value as computed, whatever the error of the quadrature: also where it is large.
    step = 1e-5
    # Between the variances where the number of nodes changes, of course.
    for v in (0.05, 0.5, 1.5, 4.0, 7.0, 50.0, 1000.0):
        y, variances = np.full(6, outcome), np.full(6, v)
        value, slope, curvature = expected(y, MEANS, variances, delta)
        up, down = expected(y, MEANS + step, variances, delta), expected(y, MEANS - step, variances, delta)
        np.testing.assert_allclose((up[0] - down[0]) / (2 * step), slope, atol=ITERATIVE, rtol=ITERATIVE)
        dv = step * v
        up, down = expected(y, MEANS, variances + dv, delta), expected(y, MEANS, variances - dv, delta)
        np.testing.assert_allclose(-(up[0] - down[0]) / dv, curvature, atol=ITERATIVE, rtol=ITERATIVE)
        assert np.all(value < 0)
        assert np.all(curvature >= 0)
        assert np.all(curvature <= 1.0 + ITERATIVE)


@pytest.mark.parametrize(("outcome", "delta"), ANSWERS)
def test_the_compiled_loop_equals_numpy(outcome, delta):
    nodes, weights, counts = RULES
    for rule, v in enumerate([1.7, 4.0, 7.0, 15.0, 30.0, 50.0, 100.0, 300.0, 5000.0]):
        x, omega = nodes[rule, : counts[rule]], weights[rule, : counts[rule]]
        x, omega = np.concatenate([-x, x]), np.concatenate([omega, omega])
        assert abs(omega.sum() - 1.0) < EXACT
        z = MEANS[:, None] + np.sqrt(v) * x
        value, slope, _ = (part.reshape(z.shape) for part in at(np.full(z.size, outcome), z.ravel(), delta)[:3])
        found = expected(np.full(6, outcome), MEANS, np.full(6, v), delta)
        np.testing.assert_allclose(found[0], value @ omega, rtol=EXACT, atol=EXACT)
        np.testing.assert_allclose(found[1], slope @ omega, rtol=EXACT, atol=EXACT)
        np.testing.assert_allclose(found[2], -(slope * x) @ omega / np.sqrt(v), rtol=EXACT, atol=EXACT)


def test_no_variance_is_the_plain_likelihood():
    z = np.linspace(-60.0, 60.0, 25)
    for outcome, delta in ANSWERS:
        for one, other in zip(
            expected(np.full(25, outcome), z, np.zeros(25), delta), at(np.full(25, outcome), z, delta)[:3], strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=CONVERGED, atol=EXACT)


def test_swapping_left_and_right_changes_signs_only():
    v = np.full(6, 3.0)
    for outcome, delta in ANSWERS:
        here = expected(np.full(6, outcome), MEANS, v, delta)
        there = expected(np.full(6, -outcome), -MEANS, v, delta)
        for one, other, sign in zip(here, there, (1, -1, 1), strict=True):
            np.testing.assert_allclose(one, sign * other, rtol=EXACT, atol=1e-14)
