"""The posterior through inducing points against its dense form and against sampling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from predilect.inference.gaussian import posterior as utilities
from predilect.inference.gaussian.kernels import matern
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.sparse.fit import SparsePosterior
from tolerances import EXACT

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
KNOWN = np.ones(12, dtype=bool)
KERNEL = matern([0.8, 1.3])
USERS = np.zeros(4, dtype=int)
LEFT, RIGHT = np.array([0, 3, 5, 6]), np.array([1, 4, 5, 11])


def posterior(points=X[:4] + 0.1):
    projection = Projection.of(KERNEL, X, KNOWN, points)
    M = projection.n_points
    root = np.random.default_rng(1).normal(size=(M, M)) / M
    mean = np.random.default_rng(2).normal(size=M)
    return SparsePosterior(projection, mean, root @ root.T + 0.05 * np.eye(M), 0.6)


def dense(p, features=X):
    """A m and K/s + A (S - K_mm/s) Aᵀ, eq. 14 as corrected."""
    K_mm = KERNEL(p.projection.points)
    A = KERNEL(features, p.projection.points) @ np.linalg.inv(K_mm)
    return A @ p.mean, KERNEL(features) / p.scale + A @ (p.covariance - K_mm / p.scale) @ A.T


@pytest.mark.parametrize("points", [X[:4] + 0.1, None])
def test_margins_and_utilities_are_the_dense_ones(points):
    p = posterior(points)
    f, C = dense(p)
    d = C[LEFT, LEFT] + C[RIGHT, RIGHT] - 2 * C[LEFT, RIGHT]
    for margins in (p.margins(USERS, LEFT, RIGHT), p.person().margins(LEFT, RIGHT), p.crowd().margins(LEFT, RIGHT)):
        np.testing.assert_allclose(margins[0], f[LEFT] - f[RIGHT], atol=1e-9)
        np.testing.assert_allclose(margins[1], d, atol=1e-9)
    for law in (p.utilities(), p.crowd().dense()):
        np.testing.assert_allclose(law[0], f, atol=1e-9)
        np.testing.assert_allclose(law[1], C, atol=1e-9)
    assert p.n_items == 12
    every = np.triu_indices(12, 1)  # more pairs than items: another route
    var = np.diag(C)[every[0]] + np.diag(C)[every[1]] - 2 * C[every]
    np.testing.assert_allclose(p.margins(np.zeros(66), *every)[1], var, atol=1e-9)


@pytest.mark.slow
def test_prediction_against_sampling():
    # eq. 3 with its 2 C_ab: P(left) = Phi(m / sqrt(1 + v)).
    p = posterior()
    f, C = p.utilities()
    draws = np.random.default_rng(3).multivariate_normal(f, C, 400_000)
    m, v = p.margins(USERS, LEFT, RIGHT)
    np.testing.assert_allclose(ndtr(draws[:, LEFT] - draws[:, RIGHT]).mean(axis=0), ndtr(m / np.sqrt(1 + v)), atol=2e-3)


def test_many_items_keep_the_diagonal_of_the_residual(monkeypatch):
    p = posterior()
    monkeypatch.setattr(utilities, "_DENSE_ITEMS", 5)
    many = p.person()
    assert many.covariance.shape == (4, 4)
    f, C = p.utilities()
    np.testing.assert_allclose(many.dense()[0], f, atol=EXACT)
    np.testing.assert_allclose(np.diag(many.dense()[1]), np.diag(C), atol=EXACT)
    A = p.projection.A
    np.testing.assert_allclose(
        many.dense()[1], A @ p.covariance @ A.T + np.diag(p.projection.own) / p.scale, atol=EXACT
    )
    # What nobody can see there stays exact.
    np.testing.assert_allclose(p.margins(USERS, LEFT, RIGHT)[1], posterior().margins(USERS, LEFT, RIGHT)[1], atol=EXACT)


@pytest.mark.parametrize("points", [X[:4] + 0.1, None])
def test_new_items_follow_from_the_kernel(points):
    p = posterior(points)
    new = np.array([[0.1, 0.2], [90.0, -80.0], [0.0, 0.0]])
    known = np.array([True, True, False])
    more = p.with_items(new, known)
    assert more.n_items == 15
    f, C = dense(p, np.vstack([X, new[:1]]))
    np.testing.assert_allclose(more.utilities()[0][:13], f, atol=1e-9)
    np.testing.assert_allclose(more.utilities()[1][:13, :13], C, atol=1e-9)
    # Far from everything, and without features: the prior, a coin.
    m, v = more.margins(np.zeros(1), np.array([13]), np.array([14]))
    assert abs(m[0]) < EXACT
    assert v[0] == pytest.approx(2 / 0.6)
    assert ndtr(m[0] / np.sqrt(1 + v[0])) == pytest.approx(0.5)
