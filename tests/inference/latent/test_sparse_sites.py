"""The paper's surrogate against Beta and Gaussian integrals, and both rules' sites at their fixed points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from predilect.inference.latent.sparse.problem import (
    SparseGaussian,
    expected_sites,
    linearised_sites,
    surrogate_variance,
)
from predilect.inference.latent.sparse.stochastic import natural_target
from predilect.inference.likelihoods.expectation import expected
from predilect.inference.likelihoods.views import Probit
from simulate_sparse import small
from tolerances import EXACT, ITERATIVE


def spread_of_probability(V):
    """Var Φ(z), z ~ N(0, V)."""
    sd = math.sqrt(V)
    moment = quad(lambda x: ndtr(sd * x) ** 2 * stats.norm.pdf(x), -12, 12, epsabs=1e-13, epsrel=1e-13, limit=400)[0]
    return moment - 0.25


@pytest.mark.parametrize("V", [0.01, 0.5, 2.0, 30.0])
def test_the_surrogate_is_the_posterior_mean_of_the_bernoulli_variance(V):
    v = spread_of_probability(V)
    assert v == pytest.approx(math.asin(V / (1 + V)) / (2 * math.pi), abs=EXACT)
    gamma = (1 / (4 * v) - 1) / 2
    corrected, article = (float(surrogate_variance(np.array([V]), form)[0]) for form in ("corrected", "2020"))
    for y in (0, 1):
        a, b = gamma + y, gamma + 1 - y
        law = stats.beta(a, b)
        assert corrected == pytest.approx(law.mean() - law.moment(2), abs=EXACT)
        assert article == pytest.approx(a * b / (a + b) ** 2, abs=EXACT)
        # eq. 9 as printed has n for n² in its first term, and gives what no Bernoulli variance can be
        printed = a * b / (a + b) - a * b / ((a + b) ** 2 * (a + b + 1))
        assert printed > 1.05 * corrected


def test_the_surrogate_lies_between_nothing_and_a_quarter():
    V = np.array([0.0, 1e-9, 1.0, 4200.0, 1e12])
    for form in ("corrected", "2020"):
        Q = surrogate_variance(V, form)
        assert np.all((Q > 0.0) & (Q <= 0.25))
        assert np.all(np.diff(Q[1:]) < 0.0)
    np.testing.assert_allclose(surrogate_variance(V[[3]]), 0.0035, atol=5e-5)  # the vague Sushi presets
    np.testing.assert_allclose(surrogate_variance(V[[3]], "2020"), 0.007, atol=2e-4)
    assert surrogate_variance(V[:1])[0] == 0.25
    with pytest.raises(ValueError, match="corrected, 2020"):
        surrogate_variance(V, "2021")


def test_fisher_scoring_finds_the_mode_of_the_probit_posterior():
    data = small(3)
    p, s = data.problem(sparse=False), 0.7
    assert p.n_points == 20
    batch = p.all()
    q = SparseGaussian.prior(20, s)
    for _ in range(200):
        m = batch.margins.mean(q.mean)
        Q = ndtr(m) * ndtr(-m)
        q = q.towards(*natural_target(batch, linearised_sites(p.outcome, m, Q), s), 1.0)
    K = data.kernel(data.X)
    K_inv = np.linalg.inv(K)

    def negative(f):
        z = p.outcome * (f[p.left] - f[p.right])
        slope = p.outcome * p.weight * np.exp(-0.5 * z**2 - log_ndtr(z)) / math.sqrt(2 * math.pi)
        gradient = s * K_inv @ f - np.bincount(p.left, slope, 20) + np.bincount(p.right, slope, 20)
        return 0.5 * s * f @ K_inv @ f - p.weight @ log_ndtr(z), gradient

    mode = minimize(negative, np.zeros(20), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    lower = np.linalg.cholesky(K)
    np.testing.assert_allclose(lower @ q.mean, mode, atol=ITERATIVE)
    z = mode[p.left] - mode[p.right]
    D = np.eye(20)[p.left] - np.eye(20)[p.right]
    fisher = p.weight * stats.norm.pdf(z) ** 2 / (ndtr(z) * ndtr(-z))
    S = np.linalg.inv(s * K_inv + D.T @ (fisher[:, None] * D))
    np.testing.assert_allclose(lower @ q.factor.inverse() @ lower.T, S, atol=ITERATIVE)


def test_the_jacobian_as_printed_turns_answers_round():
    # crowdgppl.md 2.1, eq. 11: with its factor 2y - 1 a lost comparison pulls the loser up.
    lost = np.array([-1], dtype=np.int8)
    right = linearised_sites(lost, np.zeros(1), np.array([0.2]))
    assert right.linear[0] < 0.0
    g = -stats.norm.pdf(0.0)  # times (2y - 1)
    assert g / 0.2 * (0.0 - 0.5) > 0.0


def test_a_tie_is_half_a_win_for_each_side():
    m, Q = np.array([0.7]), np.array([0.2])
    won, tied, lost = (linearised_sites(np.array([y], dtype=np.int8), m, Q) for y in (1, 0, -1))
    assert tied.linear[0] == pytest.approx(0.5 * (won.linear[0] + lost.linear[0]), rel=EXACT)
    assert tied.precision[0] == won.precision[0] == lost.precision[0]


@pytest.mark.parametrize("delta", [0.0, 0.4])
def test_expected_sites_are_slopes_of_the_expectation(delta):
    outcome = np.array([1, -1, 1, 0] if delta else [1, -1, 1, -1], dtype=np.int8)
    m, v = np.array([0.3, 1.0, -2.0, 0.5]), np.array([0.2, 1.0, 1.5, 0.7])
    sites, value = expected_sites(outcome, m, v, Probit(delta))
    h = 1e-5
    in_mean = (expected(outcome, m + h, v, delta)[0] - expected(outcome, m - h, v, delta)[0]) / (2 * h)
    in_variance = (expected(outcome, m, v + h, delta)[0] - expected(outcome, m, v - h, delta)[0]) / (2 * h)
    np.testing.assert_allclose(sites.precision, -2.0 * in_variance, atol=ITERATIVE)
    np.testing.assert_allclose(sites.linear, in_mean + sites.precision * m, atol=ITERATIVE)
    np.testing.assert_array_equal(value, expected(outcome, m, v, delta)[0])
