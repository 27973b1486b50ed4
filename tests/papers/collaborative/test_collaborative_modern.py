"""The modern preset: its fixed point by dense algebra, a Gibbs sampler, and the mean of the weights."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.factors.answers import FactorAnswers
from predilect.inference.gaussian.projection import Projection
from predilect.inference.likelihoods.expectation import expected
from predilect.inference.likelihoods.probit import outcome_probabilities, tilted
from predilect.papers.collaborative.training import fit_modern
from referees.gibbs import gibbs_probabilities
from simulate_collaborative import simulate_shared
from tolerances import EXACT, ITERATIVE

TIGHT = {"tolerance": 1e-10, "max_iter": 5000}


def rows_of(data):
    a = data.answers
    return a.user, a.left[a.pair], a.right[a.pair]


@pytest.fixture(scope="module")
def data():
    return simulate_shared(seed=3, strength=0.7, delta=0.3)


@pytest.fixture(scope="module")
def fit(data):
    return fit_modern(data.answers, data.projection, n_components=2, **TIGHT)


@pytest.mark.slow
def test_it_ends_where_every_block_is_what_the_others_ask_for(data, fit):
    """modern.md (3.4) and (3.6) by dense algebra, with sites by the tilted moments."""
    assert fit.report.converged
    a, p = data.answers, fit.posterior
    D = (np.eye(6)[a.left] - np.eye(6)[a.right])[a.pair]
    tau, nu = a.weight * fit.sites.precision, a.weight * fit.sites.linear
    delta = D @ p.v_mean
    spread = np.stack([np.einsum("pi,ij,pj->p", D, C, D) for C in p.v_covariance], axis=1)
    b = p.weights.effects[:, 0]
    for u in range(a.n_users):
        rows = a.user == u
        d = delta[rows]
        precision = np.eye(2) + d.T @ (tau[rows, None] * d) + np.diag(tau[rows] @ spread[rows])
        S = np.linalg.inv(precision)
        np.testing.assert_allclose(p.w_covariance[u], S, atol=ITERATIVE)
        np.testing.assert_allclose(p.w_mean[u], S @ (b + d.T @ nu[rows]), atol=1e-5)
    mu, Sigma = p.w_mean[a.user], p.w_covariance[a.user]
    second = Sigma + mu[:, :, None] * mu[:, None, :]
    for c in range(2):
        precision = np.linalg.inv(data.K) + D.T @ ((tau * second[:, c, c])[:, None] * D)
        S = np.linalg.inv(precision)
        other = second[:, c, 1 - c] * delta[:, 1 - c]
        np.testing.assert_allclose(p.v_covariance[c], S, atol=1e-5)
        np.testing.assert_allclose(p.v_mean[:, c], S @ D.T @ (nu * mu[:, c] - tau * other), atol=1e-4)
    mean, var = p.margins(*rows_of(data))
    share = 1.0 - fit.sites.precision * var
    proper = share > 0.0
    m, v = (mean - var * fit.sites.linear) / share, var / share
    _, _, curvature, _, _ = tilted(a.outcome, m, np.where(proper, v, 1.0), fit.delta)
    want = np.where(proper, curvature / (1.0 - curvature * v), expected(a.outcome, mean, var, fit.delta)[2])
    np.testing.assert_allclose(fit.sites.precision, want, atol=1e-5)


@pytest.mark.slow
def test_the_mean_of_the_weights_is_that_of_the_people(fit):
    law, p = fit.posterior.weights, fit.posterior
    n = len(p.w_mean)
    for c in range(2):
        # b_c | w ~ N: prior precision τ, of which the covariance says what it is.
        tau = 1.0 / law.covariance[c, 0, 0] - n
        np.testing.assert_allclose(law.effects[c, 0], p.w_mean[:, c].sum() / (n + tau), atol=ITERATIVE)
    np.testing.assert_array_equal(law.spread, 1.0)


@pytest.mark.slow
def test_the_threshold_of_ties_is_at_the_top_of_the_evidence():
    data = simulate_shared(seed=2, strength=0.7, delta=0.3)
    fit = fit_modern(data.answers, data.projection, n_components=2, **TIGHT)
    values = [
        fit_modern(data.answers, data.projection, n_components=2, delta=delta, **TIGHT).evidence
        for delta in (0.8 * fit.delta, fit.delta, 1.25 * fit.delta)
    ]
    assert values[1] == max(values)
    np.testing.assert_allclose(values[1], fit.evidence, atol=1e-5)
    assert abs(np.log(fit.delta / 0.3)) < 0.5


def test_copies_are_weights(data):
    pair = np.tile(np.arange(90), 3)
    columns = (data.user, data.left, data.right, data.outcome)
    heavy = FactorAnswers.of(*columns, np.full(90, 3.0), 8)
    thrice = FactorAnswers.of(*(column[pair] for column in columns), None, 8)
    one, other = (fit_modern(answers, data.projection, n_components=2) for answers in (heavy, thrice))
    assert one.evidence == other.evidence


def test_very_many_copies(data):
    heavy = FactorAnswers.of(data.user, data.left, data.right, data.outcome, np.full(90, 1e4), 8)
    found = fit_modern(heavy, data.projection, n_components=2)
    assert np.isfinite(found.evidence)
    assert np.all(found.sites.precision >= 0.0)


@pytest.mark.slow
def test_inducing_points_at_the_items_change_little_and_few_are_finite(data):
    kernel, known = data.projection.kernel, np.ones(6, bool)
    full = fit_modern(data.answers, data.projection, n_components=2, delta=0.3, **TIGHT)
    at = Projection.of(kernel, data.X, known, data.X + 1e-9)
    near = fit_modern(data.answers, at, n_components=2, delta=0.3, **TIGHT)
    for a, b in zip(near.posterior.margins(*rows_of(data)), full.posterior.margins(*rows_of(data)), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-3)  # the nugget of 1e-4, which points do not know of
    few = fit_modern(data.answers, Projection.of(kernel, data.X, known, data.X[:3]), n_components=2)
    assert np.isfinite(few.evidence)


def test_features_of_people_move_their_weights():
    data = simulate_shared(seed=9, n_users=40, n_components=1, n_answers=800, strength=1.5)
    rng = np.random.default_rng(0)
    truth = np.array([np.mean(data.margin[data.user == u] ** 2) for u in range(40)])
    first = fit_modern(data.answers, data.projection, n_components=1)
    x = first.posterior.w_mean[:, 0] + 0.1 * rng.standard_normal(40)
    found = fit_modern(data.answers, data.projection, n_components=1, traits=(x - x.mean())[:, None] / x.std())
    law = found.posterior.weights
    assert law.effects.shape == (1, 2)
    likes, dislikes = law.law(1, np.array([[1.5], [-1.5]]))[0][:, 0]
    assert abs(likes - dislikes) > 1.0
    np.testing.assert_allclose(law.law(1, None)[0], law.law(1, np.zeros((1, 1)))[0], atol=EXACT)
    assert truth.max() > 0.0


@pytest.mark.slow
def test_predictions_are_near_those_of_the_sampler():
    data = simulate_shared(seed=3, n_users=30, n_items=10, n_components=3, n_answers=360, strength=1.4)
    rng = np.random.default_rng(0)
    a = rng.integers(10, size=300)
    test = rng.integers(30, size=300), a, (a + rng.integers(1, 10, size=300)) % 10
    truth = gibbs_probabilities(
        data.user, data.left, data.right, data.outcome, data.K, 30, 3, test, s_0=1e8, s=0.5, sweeps=4000, seed=1
    )  # fmt: skip
    doubled = Projection.of(2.0 * data.projection.kernel, data.X, np.ones(10, bool), None)
    ours = outcome_probabilities(
        *fit_modern(data.answers, doubled, n_components=3, tolerance=1e-4).posterior.margins(*test)
    )
    assert np.mean(np.abs(ours[:, 0] - truth)) < 0.04  # the sampler's weights have mean zero
