"""Variational inference against an independent optimiser of (m, S) and exact orthants."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from predilect.inference.latent.variational import variational
from referees.orthants import exact_evidence
from single_problems import small
from tolerances import EXACT, ITERATIVE


def bound(s, m, S):
    """The bound at any Gaussian, from its definition, and its gradients in m and S."""
    A, n = s.A, len(m)
    value, slope, curvature = s.likelihood.expected(s.outcome, A @ m, np.diag(A @ S @ A.T))
    precision = np.linalg.inv(s.K)
    e = m - s.mean
    divergence = 0.5 * (
        np.trace(precision @ S) - n + e @ precision @ e + np.linalg.slogdet(s.K)[1] - np.linalg.slogdet(S)[1]
    )
    in_m = A.T @ (s.weight * slope) - precision @ e
    in_S = -0.5 * (A.T @ np.diag(s.weight * curvature) @ A + precision - np.linalg.inv(S))
    return s.weight @ value - divergence, in_m, in_S


@pytest.mark.parametrize("pairs", [True, False])
def test_the_optimum_of_an_independent_optimiser(pairs):
    s = small(30, n_items=4, n_answers=9, delta=0.3, scale=1.0, pairs=pairs, repeated=True)
    s = s._replace(K=s.K + 0.2 * np.eye(4))
    fit = s.fit(variational, tolerance=1e-11)
    lower = np.tril_indices(4)

    def negative(theta):
        L = np.zeros((4, 4))
        L[lower] = theta[4:]
        value, in_m, in_S = bound(s, theta[:4], L @ L.T)
        return -value, -np.concatenate([in_m, (2.0 * in_S @ L)[lower]])

    found = minimize(
        negative, np.append(np.zeros(4), np.eye(4)[lower]), jac=True, method="BFGS", options={"gtol": 1e-8}
    )
    L = np.zeros((4, 4))
    L[lower] = found.x[4:]
    assert abs(fit.evidence + found.fun) < ITERATIVE
    np.testing.assert_allclose(fit.mean, found.x[:4], atol=1e-5)
    np.testing.assert_allclose(fit.covariance(), L @ L.T, atol=1e-5)
    # and at the fixed point the definition gives the same bound, stationary in every parameter
    value, in_m, in_S = bound(s, fit.mean, fit.covariance())
    assert abs(value - fit.evidence) < EXACT
    assert np.abs(in_m).max() < ITERATIVE
    assert np.abs(in_S).max() < ITERATIVE


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 0.5])
def test_the_bound_is_below_the_exact_evidence_and_near_it(delta):
    for seed in range(4):
        s = small(seed, n_answers=7, delta=delta)
        exact, error = exact_evidence(s.K, s.A, s.outcome, delta, s.mean)
        gap = exact - s.fit(variational).evidence
        assert -4 * error < gap < 0.15


def test_the_bound_never_falls():
    s = small(31, n_items=10, n_answers=60, delta=0.3, scale=300.0)
    last, report = -np.inf, None
    for n in range(0, 40, 4):
        fit = s.fit(variational, max_iter=n)
        assert fit.evidence >= last - 1e-9 * abs(fit.evidence)
        last, report = fit.evidence, fit.report
    assert report.iterations == 36
    assert s.fit(variational).report.converged
