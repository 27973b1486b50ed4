"""The closed-form M steps as formulas, and the geometry of their over-relaxation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import eigvalsh, sqrtm

from predilect.inference.gaussian.design import Sites
from predilect.inference.people.empirical_bayes import consensus_step, covariance_step, threshold_step
from predilect.inference.people.expectation import Expectation, expectation
from predilect.inference.people.law import Law
from referees.dense_population import crowd_ep
from simulate import crowd, laid_out, random_covariance
from tolerances import CONVERGED, EXACT, ITERATIVE

ROWS = crowd(1, 12, 5, 8, delta=0.5)
PEOPLE = laid_out(ROWS)


def at(Sigma, m, delta) -> Expectation:
    return expectation(PEOPLE, Sites.flat(PEOPLE.n_rows), Law(Sigma, m), delta, n_sweeps=200, tolerance=1e-12)


@pytest.fixture(scope="module")
def setting():
    rng = np.random.default_rng(0)
    Sigma, m, K = random_covariance(rng, 5, 2.0), rng.standard_normal(5), random_covariance(rng, 5)
    return Sigma, m, K, at(Sigma, m, 0.5)


def test_consensus_step_is_its_formula(setting):
    _, m, K, current = setting
    precision = np.linalg.inv(3.0 * K)
    new, C_m = consensus_step(m, precision, current)
    expected = np.linalg.inv(precision + current.H)
    np.testing.assert_allclose(C_m, expected, atol=EXACT)
    np.testing.assert_allclose(new, expected @ (current.r + current.H @ m), atol=EXACT)


def test_covariance_step_is_its_formula(setting):
    Sigma, _, K, current = setting
    new = covariance_step(Sigma, current, 12, 2.0 * K, 7.0)
    S = 12 * Sigma + Sigma @ current.D @ Sigma
    np.testing.assert_allclose(new, (S + 7.0 * 2.0 * K) / (12 + 7.0), atol=EXACT)
    np.testing.assert_array_equal(new, new.T)


def test_the_expected_scatter_is_that_of_the_people(setting):
    # U Σ + Σ (N - H) Σ = Σ_u E[(f_u - m)(f_u - m)ᵀ], from every person's posterior by dense conditioning.
    Sigma, m, K, current = setting
    scatter = np.zeros((5, 5))
    for person in crowd_ep(Sigma, m, ROWS, 0.5):
        mean, covariance = person.utilities(m, np.zeros((5, 5)))
        scatter += np.outer(mean - m, mean - m) + covariance
    new = covariance_step(Sigma, current, 12, K, 0.0)
    np.testing.assert_allclose(new, scatter / 12, atol=CONVERGED)


@pytest.mark.parametrize("power", [0.5, 2.0, 4.0])
def test_over_relaxation_moves_along_the_geodesic(setting, power):
    # In the affine-invariant geometry Σ'' = Σ^½ (Σ^-½ Σ' Σ^-½)^ω Σ^½: the logs of the relative eigenvalues scale by ω.
    Sigma, _, K, current = setting
    plain = covariance_step(Sigma, current, 12, 2.0 * K, 7.0)
    far = covariance_step(Sigma, current, 12, 2.0 * K, 7.0, power=power)
    np.testing.assert_allclose(np.log(eigvalsh(far, Sigma)), power * np.log(eigvalsh(plain, Sigma)), atol=CONVERGED)
    root = np.real(sqrtm(Sigma))
    inverse = np.linalg.inv(root)
    values, vectors = np.linalg.eigh(inverse @ plain @ inverse)
    np.testing.assert_allclose(far, root @ (vectors * values**power) @ vectors.T @ root, atol=CONVERGED)


def test_the_plain_step_is_the_midpoint_of_the_doubled_one(setting):
    Sigma, _, K, current = setting
    plain = covariance_step(Sigma, current, 12, 2.0 * K, 7.0)
    far = covariance_step(Sigma, current, 12, 2.0 * K, 7.0, power=2.0)
    # Σ' Σ⁻¹ Σ' = Σ'': the plain step is the geometric mean of start and end.
    np.testing.assert_allclose(plain @ np.linalg.solve(Sigma, plain), far, atol=CONVERGED)
    assert np.linalg.eigvalsh(far).min() > 0


def test_any_power_is_positive_definite_even_where_a_linear_step_is_not():
    # A step to 1/100 of the variance; twice as far in a straight line would be negative.
    Sigma, n = np.eye(4), 4
    current = Expectation(
        0.0, np.eye(n), -9.9 * np.eye(n), *[np.zeros(n)] * 2, np.zeros((n, 0)), np.zeros(0), np.zeros(0), 0.0, -1.0, 0.0
    )  # fmt: skip
    new = covariance_step(Sigma, current, 10, 1e-3 * np.eye(n), 1e-3, power=2.0)
    plain = covariance_step(Sigma, current, 10, 1e-3 * np.eye(n), 1e-3)
    assert np.linalg.eigvalsh(2 * plain - Sigma).min() < 0
    np.testing.assert_allclose(new, plain @ plain, atol=EXACT)
    assert np.linalg.eigvalsh(new).min() > 0


def test_plain_steps_never_lower_j_in_the_covariance(setting):
    _, m, K, _ = setting
    Sigma, prior, strength = 5.0 * np.eye(5), 2.0 * K, 7.0

    def objective(Sigma, current):
        spread = np.linalg.slogdet(Sigma)[1] + np.trace(np.linalg.solve(Sigma, prior))
        return current.evidence - 0.5 * strength * spread

    current = at(Sigma, m, 0.5)
    values = [objective(Sigma, current)]
    for _ in range(15):
        Sigma = covariance_step(Sigma, current, 12, prior, strength)
        current = at(Sigma, m, 0.5)
        values.append(objective(Sigma, current))
    assert np.all(np.diff(values) > -CONVERGED)
    assert values[-1] - values[0] > 1.0


def test_the_threshold_step_goes_uphill_and_rests_at_the_top(setting):
    Sigma, m, _, _ = setting
    low, high = at(Sigma, m, 0.1), at(Sigma, m, 2.0)
    assert low.slope_delta > 0 > high.slope_delta
    assert threshold_step(0.1, low) > 0.1
    assert threshold_step(2.0, high) < 2.0
    delta = 0.1
    for _ in range(30):
        delta = threshold_step(delta, at(Sigma, m, delta))
    assert abs(at(Sigma, m, delta).slope_delta) < ITERATIVE
    assert at(Sigma, m, delta).evidence > max(at(Sigma, m, delta * f).evidence for f in (0.99, 1.01))


def test_the_threshold_step_is_a_newton_step_in_its_logarithm_with_a_bound(setting):
    *_, current = setting
    slope, curvature = 3.0, -40.0
    near = replace(current, slope_delta=slope, curvature_delta=curvature)
    by_log = 0.5**2 * curvature + 0.5 * slope
    assert abs(threshold_step(0.5, near) - 0.5 * math.exp(-0.5 * slope / by_log)) < EXACT
    for sign in (1.0, -1.0):  # at most a factor e, uphill too where the curvature has the wrong sign
        flat = replace(current, slope_delta=sign * 10.0, curvature_delta=-sign * 20.0 - 0.4)  # a Newton step of 50
        assert abs(threshold_step(0.5, flat) - 0.5 * math.exp(sign)) < EXACT
        convex = replace(current, slope_delta=sign * 1e-3, curvature_delta=50.0)
        assert abs(threshold_step(0.5, convex) - 0.5 * math.exp(sign)) < EXACT
