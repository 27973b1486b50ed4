"""FITC against the dense covariance that it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.kernels import squared_exponential
from predilect.papers.collaborative.functions import Fitc
from tolerances import CONVERGED, EXACT

RNG = np.random.default_rng(3)
X = RNG.normal(size=(12, 2))
K = squared_exponential(X, X, 1.0) + 1e-3 * np.eye(12)
SITES = Sites(np.where(np.arange(12) % 4 == 0, 0.0, RNG.uniform(0.1, 3.0, size=12)), RNG.normal(size=12))


def build(m):
    fitc = Fitc.of(K[:m, :m], K[:, :m], np.diagonal(K))
    Q = K[:, :m] @ np.linalg.solve(K[:m, :m], K[:m])
    return fitc, Q + np.diag(np.diagonal(K - Q))


@pytest.mark.parametrize("m", [1, 4, 11])
def test_marginals_and_predictions_are_those_of_the_dense_covariance(m):
    fitc, prior = build(m)
    found = fitc.condition(SITES)
    S = np.linalg.inv(np.linalg.inv(prior) + np.diag(SITES.precision))
    np.testing.assert_allclose(found.mean, S @ SITES.linear, atol=EXACT)
    np.testing.assert_allclose(found.var, np.diagonal(S), atol=EXACT)
    # The values at the pseudo-inputs, jointly: their covariance with the others is K_mn.
    cross = K[:m]
    gain = np.linalg.solve(prior, cross.T).T
    np.testing.assert_allclose(found.point_mean, gain @ S @ SITES.linear, atol=CONVERGED)
    covariance = K[:m, :m] - gain @ cross.T + gain @ S @ gain.T
    np.testing.assert_allclose(found.point_covariance, covariance, atol=CONVERGED)


def test_the_evidence_is_that_of_gaussian_observations():
    fitc, prior = build(4)
    some = SITES.precision > 0.0
    tau, nu = SITES.precision[some], SITES.linear[some]
    sites = Sites(SITES.precision, np.where(some, SITES.linear, 0.0))
    # log ∫ N(f; 0, K') Π N(r; f, 1/τ) df, less what the messages lack of being normalised.
    log_p = multivariate_normal(np.zeros(len(tau)), prior[np.ix_(some, some)] + np.diag(1.0 / tau)).logpdf(nu / tau)
    lacking = np.sum(0.5 * np.log(2.0 * np.pi / tau) + nu**2 / (2.0 * tau))
    np.testing.assert_allclose(fitc.condition(sites).log_z, log_p + lacking, atol=EXACT)


def test_with_all_points_it_is_the_process_itself():
    fitc = Fitc.of(K, K, np.diagonal(K))
    S = np.linalg.inv(np.linalg.inv(K) + np.diag(SITES.precision))
    found = fitc.condition(SITES)
    np.testing.assert_allclose(found.mean, S @ SITES.linear, atol=CONVERGED)
    np.testing.assert_allclose(found.point_covariance, S, atol=CONVERGED)
    assert fitc.own.max() < CONVERGED


def test_nothing_said_is_the_prior():
    found = build(4)[0].condition(Sites.flat(12))
    np.testing.assert_allclose(found.var, np.diagonal(K), atol=EXACT)
    np.testing.assert_array_equal(found.mean, 0.0)
    assert abs(found.log_z) < EXACT
