"""BI by expectation maximisation against dense algebra and the space of pairs (baselines.md B3)."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from predilect.inference.gaussian.design import Sites
from predilect.inference.latent.ep import ep
from predilect.inference.latent.single import Problem
from predilect.inference.likelihoods.views import Probit
from predilect.inference.people.empirical_bayes import (
    GaussianPrior,
    Moments,
    consensus_covariance,
    fit_hierarchical,
    moments,
)
from predilect.inference.people.expectation import converge
from predilect.inference.people.law import Law
from referees.dense_population import crowd_ep
from simulate import crowd, laid_out, random_covariance
from tolerances import CONVERGED, EXACT, ITERATIVE

ROWS = crowd(2, 12, 5, 9, delta=0.3)
PEOPLE = laid_out(ROWS)
RNG = np.random.default_rng(4)
SIGMA, MU = random_covariance(RNG, 5, 1.5), RNG.normal(size=5)
PRIOR = GaussianPrior(random_covariance(RNG, 5), 8.0, 1.5)


def settled(Sigma=SIGMA, mu=MU):
    sites = Sites.flat(PEOPLE.n_rows)
    return converge(PEOPLE, sites, Law(Sigma, mu), 0.3, tolerance=1e-13)


def test_moments_are_those_of_everybodys_dense_posterior():
    found = moments(settled(), SIGMA, PEOPLE.n_active)
    first, second = np.zeros(5), np.zeros((5, 5))
    for person in crowd_ep(SIGMA, MU, ROWS, 0.3):
        m, S = person.utilities(MU, np.zeros((5, 5)))
        first += m - MU
        second += S + np.outer(m - MU, m - MU)
    np.testing.assert_allclose(found.first, first, atol=CONVERGED)
    np.testing.assert_allclose(found.second, second, atol=CONVERGED)
    shift = RNG.normal(size=5)
    about = second - np.outer(first, shift) - np.outer(shift, first) + 12 * np.outer(shift, shift)
    np.testing.assert_allclose(found.about(shift), about, atol=CONVERGED)


def test_utilities_and_pairs_say_the_same():
    """EP of one person's margins, d ~ N(H μ, H Σ Hᵀ), without any utility."""
    found, total = settled(), 0.0
    for u in range(ROWS.n_users):
        own = ROWS.user == u
        H = np.eye(5)[ROWS.left[own]] - np.eye(5)[ROWS.right[own]]
        problem = Problem.of(
            H @ SIGMA @ H.T, np.arange(own.sum()), None, ROWS.outcome[own], likelihood=Probit(0.3), mean=H @ MU
        )
        fit = ep(problem, tolerance=1e-13, schedule="sequential")
        total += fit.evidence
    assert abs(total - found.evidence) < CONVERGED


@pytest.mark.parametrize(("strength", "consensus_strength"), [(0.0, 0.0), (8.0, 1.5), (8.0, 0.0)])
def test_the_step_is_a_maximum(strength, consensus_strength):
    """Of E log Π N(f_u; μ', Σ') + log prior, in every direction."""
    prior = GaussianPrior(PRIOR.K, strength, consensus_strength)
    found, s = moments(settled(), SIGMA, 12), 1.3

    def value(mu, Sigma):
        inverse = np.linalg.inv(Sigma)
        log_p = -0.5 * (12 * np.linalg.slogdet(Sigma)[1] + np.sum(inverse * found.about(mu - MU)))
        return log_p + prior.log_density(mu, Sigma, s)

    mu, Sigma = prior.maximum(MU, found, s)
    best = value(mu, Sigma)
    for _ in range(10):
        step = 1e-3 * RNG.normal(size=(5, 6))
        root = np.linalg.cholesky(Sigma) + np.tril(step[:, :5])
        assert value(mu + step[:, 5], root @ root.T) < best
    # A stationary point: the slope is nothing beside the curvature's 1e-6 of such a step.
    d = RNG.normal(size=5)
    assert abs(value(mu + 1e-4 * d, Sigma) - value(mu - 1e-4 * d, Sigma)) / 2e-4 < ITERATIVE
    V = random_covariance(RNG, 5)
    assert abs(value(mu, Sigma + 1e-4 * V) - value(mu, Sigma - 1e-4 * V)) / 2e-4 < 1e-4


def test_the_best_scale_is_a_maximum():
    scale = PRIOR.best_scale(SIGMA)
    at = [PRIOR.log_density(MU, SIGMA, factor * scale) for factor in (0.99, 1.0, 1.01)]
    assert at[1] > max(at[0], at[2])
    np.testing.assert_allclose(scale, 5 * (9.0 / 8.0) / np.trace(PRIOR.K @ np.linalg.inv(SIGMA)), rtol=EXACT)


def test_the_prior_does_not_ask_for_utilities_that_are_nothing():
    """(μ, Σ, s) and (√c μ, c Σ, c s) are as likely as each other before any answer."""
    at = [PRIOR.log_density(np.sqrt(c) * MU, c * SIGMA, 1.3 * c) for c in (1e-6, 1.0, 1e6)]
    np.testing.assert_allclose(at, at[1], atol=CONVERGED)


@pytest.mark.parametrize(("strength", "consensus_strength"), [(0.0, 0.0), (8.0, 1.5)])
def test_the_objective_never_falls(strength, consensus_strength):
    prior = GaussianPrior(PRIOR.K, strength, consensus_strength)
    options = {"scale": 1.0, "learn_scale": strength > 0.0, "tolerance": 1e-12}
    values = [fit_hierarchical(PEOPLE, prior, max_iter=n, **options).objective for n in (1, 2, 3, 5, 8, 13, 21)]
    assert np.all(np.diff(values) > 0.0)
    assert values[-1] > values[0] + 0.5


def test_the_covariance_of_the_consensus():
    found = settled()
    expected = np.linalg.inv(2.0 * np.linalg.inv(SIGMA) + found.H)
    np.testing.assert_allclose(consensus_covariance(SIGMA, found, 2.0), expected, atol=EXACT)


def test_people_without_answers_do_not_count():
    """They are nobody in the sums, and somebody in the posterior."""
    silent = laid_out(SimpleNamespace(**(vars(ROWS) | {"n_users": 15})))
    assert silent.n_active == 12
    one, other = (fit_hierarchical(p, PRIOR, scale=1.0, tolerance=1e-6) for p in (PEOPLE, silent))
    np.testing.assert_allclose(one.posterior.Sigma, other.posterior.Sigma, atol=EXACT)
    mean, covariance = other.posterior.utilities(14)
    np.testing.assert_allclose(mean, one.posterior.m, atol=EXACT)
    assert np.trace(covariance) > np.trace(other.posterior.utilities(0)[1])


def test_moments_of_nobody():
    assert Moments(0, np.zeros(2), np.zeros((2, 2))).about(np.ones(2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
