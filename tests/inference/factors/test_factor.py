"""The factor posterior against sampling, dense algebra and the special cases it must meet."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.factors.answers import LinearWeights, ProcessWeights, StandardWeights
from predilect.inference.factors.posterior import FactorPosterior
from predilect.inference.gaussian.kernels import matern
from predilect.inference.gaussian.projection import Projection
from tolerances import EXACT

N_ITEMS, C, N_USERS = 7, 3, 4
X = np.random.default_rng(0).normal(size=(N_ITEMS, 2))
KNOWN = np.ones(N_ITEMS, bool)
KERNEL = matern([1.5, 1.5])


def covariances(rng, n, k):
    R = rng.normal(size=(n, k, k))
    return 0.3 * R @ R.transpose(0, 2, 1) / k + 0.05 * np.eye(k)


def posterior(n_points=None, *, diagonal=False, consensus=True, weights=None):
    rng = np.random.default_rng(1)
    projection = Projection.of(KERNEL, X, KNOWN, None if n_points is None else X[:n_points] + 0.2)
    M = projection.n_points
    Sigma = covariances(rng, N_USERS, C)
    t_cov, v_cov = covariances(rng, 1, M)[0], covariances(rng, C, M)
    return FactorPosterior(
        projection, rng.normal(size=M) if consensus else None, t_cov if consensus else None, 0.7,
        rng.normal(size=(M, C)), v_cov, rng.uniform(0.5, 2.0, C), rng.normal(size=(N_USERS, C)),
        np.einsum("ucc->uc", Sigma) if diagonal else Sigma, StandardWeights() if weights is None else weights,
    )  # fmt: skip


def draws(p, user, n, rng, mean=None, covariance=None):
    """f of one person at all items, sampled from every factor."""
    pr = p.projection
    R = np.linalg.cholesky(pr.residual() + 1e-9 * np.eye(N_ITEMS)) if pr.A is not None else np.zeros((N_ITEMS, N_ITEMS))

    def function(m, S, s):
        at_points = rng.multivariate_normal(m, S, size=n)
        return pr.expand(at_points.T).T + rng.normal(size=(n, N_ITEMS)) @ R.T / np.sqrt(s)

    if mean is None:
        mean = p.w_mean[user]
        covariance = p.w_covariance[user] if p.w_covariance.ndim == 3 else np.diag(p.w_covariance[user])
    w = rng.multivariate_normal(mean, covariance, size=n)
    f = function(p.t_mean, p.t_covariance, p.t_scale) if p.t_mean is not None else np.zeros((n, N_ITEMS))
    for c in range(C):
        f = f + w[:, [c]] * function(p.v_mean[:, c], p.v_covariance[c], p.v_scale[c])
    return f


@pytest.mark.parametrize(
    ("n_points", "diagonal"),
    [(4, False), *(pytest.param(*case, marks=pytest.mark.slow) for case in [(None, False), (None, True), (4, True)])],
)
def test_moments_are_those_of_samples(n_points, diagonal):
    p = posterior(n_points, diagonal=diagonal)
    for user in (1, -1):
        law = {"mean": np.zeros(C), "covariance": np.eye(C)} if user < 0 else {}
        f = draws(p, user, 200_000, np.random.default_rng(2), **law)
        mean, cov = p.utilities(user)
        np.testing.assert_allclose(mean, f.mean(axis=0), atol=0.02 * np.sqrt(np.diag(cov).max()))
        np.testing.assert_allclose(cov, np.cov(f.T), atol=0.02 * np.diag(cov).max())


@pytest.mark.parametrize("n_points", [None, 4])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("consensus", [False, True])
def test_margins_are_differences_of_utilities(n_points, diagonal, consensus):
    p = posterior(n_points, diagonal=diagonal, consensus=consensus)
    left, right = (x.ravel() for x in np.indices((N_ITEMS, N_ITEMS)))
    for user in (-1, 0, 3):
        mean, var = p.margins(np.full(len(left), user), left, right)
        for ours, theirs in zip((mean, var), p.person(user).margins(left, right), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=EXACT)


def test_points_at_the_items_are_no_points():
    whole = posterior()
    points = Projection.of(KERNEL, X, KNOWN, X.copy())
    from dataclasses import replace

    sparse = replace(whole, projection=points)
    for ours, theirs in zip(sparse.utilities(1), whole.utilities(1), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_many_items_are_factored(monkeypatch):
    p = posterior(4)
    dense = p.person(2)
    monkeypatch.setattr("predilect.inference.gaussian.posterior._DENSE_ITEMS", 3)
    monkeypatch.setattr("predilect.inference.gaussian.design._DENSE_ITEMS", 3)
    factored = p.person(2)
    assert factored.Phi is not None
    np.testing.assert_allclose(factored.mean, dense.mean, atol=EXACT)
    # The same variances; what is shared between the points is each item's own, so margins are wider at most.
    np.testing.assert_allclose(np.diag(factored.dense()[1]), np.diag(dense.covariance), atol=EXACT)
    # By rows of pairs instead of items x items.
    left, right = np.triu_indices(N_ITEMS, 1)
    np.testing.assert_allclose(
        p.margins(np.full(len(left), 2), left, right)[1], dense.margins(left, right)[1], atol=EXACT
    )


def test_somebody_unseen_is_the_consensus_and_more_uncertain():
    p = posterior()
    mean, cov = p.utilities(-1)
    crowd_mean, crowd_cov = p.crowd().dense()
    np.testing.assert_allclose(mean, crowd_mean, atol=EXACT)
    np.testing.assert_allclose(crowd_cov, p.t_covariance, atol=EXACT)
    assert np.all(np.diag(cov) > np.diag(crowd_cov))


def test_the_crowd_without_consensus_is_the_average_person():
    p = posterior(consensus=False)
    np.testing.assert_allclose(
        p.crowd().dense()[0], np.mean([p.utilities(u)[0] for u in range(N_USERS)], axis=0), atol=EXACT
    )
    rng = np.random.default_rng(3)
    law = {"mean": p.w_mean.mean(axis=0), "covariance": p.w_covariance.sum(axis=0) / N_USERS**2}
    f = draws(p, -1, 200_000, rng, **law)
    np.testing.assert_allclose(p.crowd().dense()[1], np.cov(f.T), atol=0.02 * np.diag(p.crowd().dense()[1]).max())


def test_new_items_follow_from_their_features():
    """One at the place of another is like it; one far away is a coin."""
    from dataclasses import replace

    old = posterior()
    K = old.projection.factor.lower @ old.projection.factor.lower.T
    old = replace(old, t_covariance=0.01 * K, v_covariance=np.tile(0.01 * K, (C, 1, 1)))
    p = old.with_items(np.vstack([X[2] + 1e-9, [500.0, 500.0], [-500.0, 500.0]]), np.ones(3, bool))
    assert p.n_items == N_ITEMS + 3
    mean, _ = p.utilities(1)
    np.testing.assert_allclose(mean[:N_ITEMS], old.utilities(1)[0], atol=EXACT)
    assert abs(mean[N_ITEMS] - mean[2]) < 1e-4
    far, var = p.margins(np.array([1]), np.array([N_ITEMS + 1]), np.array([N_ITEMS + 2]))
    assert abs(far[0]) < EXACT
    second = old.w_mean[1] ** 2 + np.diag(old.w_covariance[1])
    assert var[0] == pytest.approx(2.0 * (1.0 / old.t_scale + np.sum(second / old.v_scale)), rel=EXACT)


@pytest.mark.slow
def test_features_of_somebody_unseen():
    rng = np.random.default_rng(4)
    B, cov = rng.normal(size=(C, 2)), covariances(rng, C, 2)
    p = posterior(weights=LinearWeights(B, cov))
    x = np.array([[1.0, -2.0], [0.0, 0.0]])
    mean, var = p.margins(np.array([-1, -1]), np.array([0, 0]), np.array([1, 1]), traits=x)
    for row in (0, 1):
        spread = np.array([1.0 + x[row] @ cov[c] @ x[row] for c in range(C)])
        f = draws(p, -1, 200_000, rng, mean=B @ x[row], covariance=np.diag(spread))
        d = f[:, 0] - f[:, 1]
        assert mean[row] == pytest.approx(d.mean(), abs=0.02 * d.std())
        assert var[row] == pytest.approx(d.var(), rel=0.02)
    nothing = p.margins(np.array([-1]), np.array([0]), np.array([1]))
    assert nothing[0][0] == pytest.approx(mean[1], abs=EXACT)


def test_a_process_over_people_returns_its_points():
    people = np.random.default_rng(5).normal(size=(6, 2))
    projection = Projection.of(KERNEL, people, np.ones(6, bool), None)
    mean = np.random.default_rng(6).normal(size=(6, C))
    K = projection.factor.lower @ projection.factor.lower.T
    process = np.array([True, False, True])
    law = ProcessWeights(projection, process, mean, np.tile(0.3 * K, (C, 1, 1)), np.full(C, 2.0))
    m, v = law.law(C, people[:2] + 1e-10)
    np.testing.assert_allclose(m[:, process], mean[:2][:, process], atol=1e-6)
    np.testing.assert_allclose(v[:, process], 0.3, atol=1e-6)
    np.testing.assert_allclose(m[:, 1], 0.0, atol=EXACT)
    np.testing.assert_allclose(v[:, 1], 2.0, atol=EXACT)
    far_mean, far_var = law.law(C, np.array([[300.0, 300.0]]))
    np.testing.assert_allclose(far_mean, 0.0, atol=EXACT)
    np.testing.assert_allclose(far_var, 2.0, atol=EXACT)
