"""Risks of dropping an item: closed forms against quadrature, tails, signs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from predilect.papers.compression.criteria import log_improvement
from referees.risks import improvement_risk
from tolerances import EXACT

CASES = [(0.3, 0.5, 1.0), (-2.0, 1.3, 0.4), (1.5, 0.2, 0.0), (-1.0, 4.0, -3.0)]


def expected(g, mean, var, *points):
    sd = np.sqrt(var)
    ends = np.clip([mean - 12 * sd, *points, mean + 12 * sd], mean - 12 * sd, mean + 12 * sd)
    return sum(
        quad(lambda f: g(f) * norm.pdf(f, mean, sd), a, b, epsabs=1e-13, epsrel=1e-12)[0]
        for a, b in itertools.pairwise(ends)
    )


@pytest.mark.parametrize(("mean", "var", "best"), CASES)
def test_value_of_information_is_the_expected_improvement(mean, var, best):
    by_quadrature = -expected(lambda f: max(f - best, 0.0), mean, var, best)
    found = improvement_risk(np.array(mean), np.array(var), best)
    assert abs(found - by_quadrature) < EXACT
    assert found < 0.0  # Table 1 of the paper prints it positive, and minimises
    assert abs(np.exp(log_improvement(np.array(mean), np.array(var), best)) + by_quadrature) < EXACT


@pytest.mark.parametrize("c", [-3.0, -12.0, -40.0, -1e3, -9e4, -2e5, -1e7])
def test_the_logarithm_holds_where_the_value_underflows(c):
    # φ(c) / c² ∫ s exp(-s - s² / (2 c²)) ds, of which only the integral needs a computer.
    integral = quad(lambda s: s * np.exp(-s - 0.5 * (s / c) ** 2), 0.0, 60.0, epsabs=0, epsrel=1e-12)[0]
    exact = -0.5 * c * c - 0.5 * np.log(2.0 * np.pi) - 2.0 * np.log(-c) + np.log(integral)
    found = float(log_improvement(np.array(2.0 * c), np.array(4.0), 0.0))
    assert abs(found - (exact + np.log(2.0))) < EXACT * abs(exact)


def test_without_variance_the_improvement_is_what_it_is():
    risk = improvement_risk(np.array([1.0, -1.0]), np.zeros(2), 0.25)
    np.testing.assert_array_equal(risk, [-0.75, 0.0])
    np.testing.assert_array_equal(log_improvement(np.array([1.25, -1.0]), np.zeros(2), 0.25), [0.0, -np.inf])
