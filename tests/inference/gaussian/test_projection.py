"""The sparse projection against its dense form."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.gaussian.kernels import matern
from predilect.inference.gaussian.projection import Projection
from tolerances import EXACT, ITERATIVE

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
KNOWN = np.ones(12, dtype=bool)
KNOWN[[3, 7]] = False
X[~KNOWN] = 0.0
KERNEL = matern([0.8, 1.3])
LEFT, RIGHT = np.array([0, 3, 3, 5, 6]), np.array([1, 4, 7, 5, 11])


def dense_covariance(features=X, known=KNOWN):
    K = KERNEL(features)
    K[~known, :] = K[:, ~known] = 0.0
    K[~known, ~known] = 1.0
    return K


def test_the_items_as_points_are_the_identity():
    p = Projection.of(KERNEL, X, KNOWN, None)
    np.testing.assert_allclose(p.factor.lower @ p.factor.lower.T, dense_covariance(), atol=EXACT)
    assert p.A is None
    np.testing.assert_array_equal(p.expand(np.eye(12)), np.eye(12))
    np.testing.assert_array_equal(p.roots(), p.factor.lower)
    assert np.all(p.residual_pairs(LEFT, RIGHT) == 0.0)
    assert np.all(p.residual() == 0.0)
    assert p.n_points == p.n_items == 12


def test_points_at_the_items_reproduce_them():
    p = Projection.of(KERNEL, X, KNOWN, X[KNOWN])
    assert p.A is not None
    np.testing.assert_allclose(p.A @ (p.factor.lower @ p.factor.lower.T) @ p.A.T, dense_covariance(), atol=ITERATIVE)
    assert p.residual_pairs(LEFT, RIGHT).max() < ITERATIVE


@pytest.mark.parametrize("at_once", [5, 20_000])
def test_rows_and_residuals_of_few_points(at_once, monkeypatch):
    monkeypatch.setattr("predilect.inference.gaussian.projection._ROWS_AT_ONCE", at_once)
    points = RNG.normal(size=(4, 2))
    p = Projection.of(KERNEL, X, KNOWN, points)
    assert p.n_points == 4 + 2
    alone = np.flatnonzero(~KNOWN)
    K_mm = np.block([[KERNEL(points), np.zeros((4, 2))], [np.zeros((2, 4)), np.eye(2)]])
    K_nm = np.zeros((12, 6))
    K_nm[KNOWN, :4] = KERNEL(X[KNOWN], points)
    K_nm[alone, [4, 5]] = 1.0
    A = K_nm @ np.linalg.inv(K_mm)
    R = dense_covariance() - A @ K_nm.T
    np.testing.assert_allclose(p.A, A, atol=EXACT)
    np.testing.assert_allclose(p.residual(), R, atol=EXACT)
    np.testing.assert_allclose(np.diag(R), p.own, atol=EXACT)
    assert np.all(p.own[alone] == 0.0)  # what is answered on them is all theirs
    d = R[LEFT, LEFT] + R[RIGHT, RIGHT] - 2 * R[LEFT, RIGHT]
    np.testing.assert_allclose(p.residual_pairs(LEFT, RIGHT), d, atol=EXACT)
    np.testing.assert_allclose(p.roots() @ p.roots().T, A @ K_nm.T, atol=EXACT)
    values = RNG.normal(size=(6, 3))
    np.testing.assert_allclose(p.expand(values), A @ values, atol=EXACT)


@pytest.mark.parametrize("known", [np.ones(12, dtype=bool), KNOWN])
def test_residuals_of_pairs_are_those_of_the_items_whatever_roots_are_at_hand(known):
    p = Projection.of(KERNEL, X, known, RNG.normal(size=(4, 2)))
    left, right = (part[np.r_[0:40, 5, 5]] for part in np.triu_indices(12))  # not all items, some with themselves
    R = p.residual()
    expected = np.diag(R)[left] + np.diag(R)[right] - 2 * R[left, right]
    for roots in (None, p.roots()):
        variance = p.residual_pairs(left, right, roots)
        np.testing.assert_allclose(variance, expected, atol=EXACT)
        assert np.all(variance[left == right] == 0.0)
        assert variance.max() > 0.1


@pytest.mark.parametrize("sparse", [False, True])
def test_new_items_follow_from_the_points(sparse):
    points = RNG.normal(size=(4, 2)) if sparse else None
    new = np.vstack([RNG.normal(size=(2, 2)), [[0.0, 0.0]], [[80.0, 80.0]]])
    known = np.array([True, True, False, True])
    p = Projection.of(KERNEL, X, KNOWN, points)
    more = p.with_items(new, known)
    assert more.n_items == 16
    assert more.A is not None
    np.testing.assert_allclose(more.A[:12], np.eye(12) if p.A is None else p.A, atol=EXACT)
    if not sparse:
        K = dense_covariance(np.vstack([X, new]), np.concatenate([KNOWN, known]))
        np.testing.assert_allclose(more.A[12:], K[12:, :12] @ np.linalg.inv(K[:12, :12]), atol=ITERATIVE)
        np.testing.assert_allclose(more.residual()[12:, 12:], K[12:, 12:] - more.A[12:] @ K[:12, 12:], atol=ITERATIVE)
    assert np.all(more.A[14] == 0.0)
    np.testing.assert_allclose(more.A[15], 0.0, atol=EXACT)  # far from everything: the prior
    np.testing.assert_allclose(more.own[14:], 1.0, atol=EXACT)
    assert more.residual_pairs(np.array([14]), np.array([15])) == pytest.approx(2.0)
    twice = more.with_items(new, known)
    np.testing.assert_allclose(twice.A[16:], more.A[12:], atol=EXACT)
