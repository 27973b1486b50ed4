"""The informative vector machine against dense recomputation after every step."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.compression.criteria import filter_answers
from predilect.likelihoods.views import Probit
from referees.gaussian_likelihood import Gaussian
from tolerances import EXACT


def problem(n=25, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, 8))
    G = root @ root.T + 0.1 * np.eye(n)
    return G, np.where(rng.normal(size=n) > 0, 1, -1).astype(np.int8)


def dense(G, active, tau, nu):
    """Posterior of all margins given the sites of the active answers."""
    S = G[np.ix_(active, active)] + np.diag(1.0 / tau)
    gain = np.linalg.solve(S, G[active]).T
    return gain @ (nu / tau), G - gain @ G[active]


@pytest.mark.parametrize("likelihood", [Probit(), Probit(0.4)])
def test_rank_one_updates_are_dense_conditioning_and_the_gain_its_entropy(likelihood):
    G, outcome = problem()
    if likelihood.delta:
        outcome[::4] = 0
    active, tau, nu = [], [], []
    mean, C = np.zeros(len(G)), G
    for k, gain, precision, linear, m, v in filter_answers(lambda k: G[:, k], np.diag(G), outcome, likelihood):
        # The best of all that are left, by the dense posterior before this step.
        _, _slope, curvature = likelihood.tilted(outcome, mean, np.diag(C))
        of_all = -0.5 * np.log1p(-curvature * np.diag(C))
        of_all[active] = -np.inf
        assert k == np.argmax(of_all)
        assert abs(gain - of_all[k]) < EXACT
        before = np.linalg.slogdet(C)[1]
        active, tau, nu = [*active, k], [*tau, precision], [*nu, linear]
        mean, C = dense(G, active, np.array(tau), np.array(nu))
        assert np.abs(m - mean).max() < EXACT
        assert np.abs(v - np.diag(C)).max() < EXACT
        if len(active) <= 5:
            assert abs(gain - 0.5 * (before - np.linalg.slogdet(C)[1])) < 1e-8
    assert sorted(active) == list(range(len(G)))


def test_moments_of_the_answer_taken_are_matched():
    G, outcome = problem(seed=1)
    k, *_, mean, var = next(filter_answers(lambda k: G[:, k], np.diag(G), outcome, Probit()))
    f = np.linspace(-12, 12, 20_001) * np.sqrt(G[k, k])
    from scipy.stats import norm

    p = norm.pdf(f, 0, np.sqrt(G[k, k])) * norm.cdf(outcome[k] * f)
    p /= p.sum()
    assert abs(mean[k] - p @ f) < 1e-8
    assert abs(var[k] - (p @ f**2 - (p @ f) ** 2)) < 1e-8


def test_with_gaussian_answers_all_taken_is_the_exact_posterior():
    G, _ = problem(seed=2)
    y = np.random.default_rng(3).normal(size=len(G))
    *_, (*_, mean, var) = filter_answers(lambda k: G[:, k], np.diag(G), y, Gaussian(0.5))
    gain = np.linalg.solve(G + 0.5 * np.eye(len(G)), G).T
    assert np.abs(mean - gain @ y).max() < EXACT
    assert np.abs(var - np.diag(G - gain @ G)).max() < EXACT


def test_ties_go_to_the_first_answer():
    found = filter_answers(lambda k: np.eye(4)[k], np.ones(4), np.ones(4, dtype=np.int8), Probit())
    assert [step[0] for step in found] == [0, 1, 2, 3]
