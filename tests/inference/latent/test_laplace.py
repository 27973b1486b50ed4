"""Laplace's approximation against an independent optimiser, orthants and its own definition (T2)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from predilect.inference.latent.laplace import laplace
from referees.orthants import exact_evidence
from single_problems import small
from tolerances import CONVERGED, ITERATIVE


def test_the_mode_and_evidence_by_an_independent_optimiser():
    for pairs in (True, False):
        s = small(20, n_items=5, n_answers=12, delta=0.3, scale=2.0, pairs=pairs, repeated=True)
        s = s._replace(K=s.K + 0.1 * np.eye(5))
        fit = s.fit(laplace)
        precision = np.linalg.inv(s.K)

        def negative(f, s=s, precision=precision):
            value, slope, _ = s.likelihood.at(s.outcome, s.A @ f)
            e = f - s.mean
            gradient = precision @ e - s.A.T @ (s.weight * slope)
            return 0.5 * e @ precision @ e - s.weight @ value, gradient

        found = minimize(negative, s.mean, jac=True, method="BFGS", options={"gtol": 1e-9})
        np.testing.assert_allclose(fit.mean, found.x, atol=ITERATIVE)
        curvature = s.weight * s.likelihood.at(s.outcome, s.A @ fit.mean)[2]
        hessian = precision + s.A.T @ np.diag(curvature) @ s.A
        np.testing.assert_allclose(fit.covariance(), np.linalg.inv(hessian), atol=CONVERGED)
        log_det = np.linalg.slogdet(s.K)[1] + np.linalg.slogdet(hessian)[1]
        assert abs(fit.evidence - (-found.fun - 0.5 * log_det)) < CONVERGED
        # f̂ = mean + K Aᵀ slope
        slope = s.likelihood.at(s.outcome, s.A @ fit.mean)[1]
        np.testing.assert_allclose(fit.mean, s.mean + s.K @ s.A.T @ (s.weight * slope), atol=CONVERGED)


@pytest.mark.slow
def test_evidence_against_orthants():
    for seed in range(4):
        for delta in (0.0, 0.5):
            s = small(seed, n_answers=7, delta=delta)
            exact, error = exact_evidence(s.K, s.A, s.outcome, delta, s.mean)
            assert error < 1e-4
            assert abs(s.fit(laplace).evidence - exact) < 0.2


def test_a_step_is_halved_where_a_full_one_overshoots():
    # From far away on the flat side of the likelihood a Newton step of full length would leave for good.
    s = small(21, n_items=4, n_answers=6, scale=400.0)
    start = s.fit(laplace).sites
    start.linear *= -50.0
    away = s.fit(laplace, start=start)
    assert away.report.converged
    np.testing.assert_allclose(away.mean, s.fit(laplace).mean, atol=1e-6)
