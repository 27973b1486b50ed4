"""Conjugate gradients and their preconditioners against dense solutions; pivoted Cholesky."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.gaussian.dense import NotPositiveDefiniteError, pivoted_cholesky
from predilect.inference.gaussian.kernels import Stationary, matern
from predilect.inference.gaussian.solve import conjugate_gradients, jacobi
from tolerances import CONVERGED, EXACT, ITERATIVE

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
K = 20.0 * Stationary(1.0, "squared-exponential")(X)
W = RNG.uniform(0.05, 1.0, size=60)
ROOT = np.sqrt(W)
WKW = ROOT[:, None] * K * ROOT
SYSTEM = np.eye(60) + WKW  # a Newton step (gaspk.md 3.3): condition 1 + max w λ_max(K)
RIGHT = RNG.normal(size=(60, 3))


def of_rank(rank):
    """Preconditioner: the inverse of I + the pivoted Cholesky of W^½ K W^½ of that rank."""
    root, _ = pivoted_cholesky(np.diagonal(WKW), lambda rows: WKW[rows], rank)
    near = np.linalg.inv(np.eye(60) + root @ root.T)
    return lambda columns: near @ columns


PRECONDITIONERS = {"none": None, "jacobi": jacobi(np.diagonal(SYSTEM)), "low rank": of_rank(15)}


@pytest.mark.parametrize("name", PRECONDITIONERS)
def test_the_solution_is_the_dense_one(name):
    right = RIGHT.copy()
    found = conjugate_gradients(lambda x: SYSTEM @ x, right, precondition=PRECONDITIONERS[name], tolerance=1e-10)
    assert found.converged
    assert found.residual <= found.tolerance == 1e-10
    np.testing.assert_allclose(found.x, np.linalg.solve(SYSTEM, RIGHT), atol=CONVERGED)
    true = np.linalg.norm(RIGHT - SYSTEM @ found.x, axis=0) / np.linalg.norm(RIGHT, axis=0)
    assert abs(found.residual - true.max()) < 1e-14
    np.testing.assert_array_equal(right, RIGHT)
    one = conjugate_gradients(lambda x: SYSTEM @ x, RIGHT[:, 1], precondition=PRECONDITIONERS[name], tolerance=1e-10)
    assert one.x.shape == (60,)
    np.testing.assert_allclose(one.x, found.x[:, 1], atol=CONVERGED)


def test_the_residual_of_the_recurrence_is_the_residual_and_saves_a_product():
    for tolerance in (3e-2, 1e-4, 1e-6):
        found = {}
        for check in (True, False):
            asked = []

            def product(x, asked=asked):
                asked.append(x)
                return SYSTEM @ x

            result = conjugate_gradients(
                product, RIGHT, precondition=PRECONDITIONERS["low rank"], tolerance=tolerance, check=check
            )
            assert result.converged
            assert len(asked) == result.iterations + check
            found[check] = result
        np.testing.assert_array_equal(found[False].x, found[True].x)
        assert abs(found[False].residual - found[True].residual) < 1e-14


def test_preconditioners_save_iterations():
    scaled = np.geomspace(1e-3, 1e3, 60)
    system = scaled[:, None] * SYSTEM * scaled
    plain = conjugate_gradients(lambda x: system @ x, RIGHT, tolerance=ITERATIVE).iterations
    with_diagonal = conjugate_gradients(
        lambda x: system @ x, RIGHT, precondition=jacobi(np.diagonal(system)), tolerance=ITERATIVE
    )
    assert with_diagonal.converged
    assert with_diagonal.iterations < plain / 2
    alone = conjugate_gradients(lambda x: SYSTEM @ x, RIGHT, tolerance=ITERATIVE).iterations
    helped = conjugate_gradients(
        lambda x: SYSTEM @ x, RIGHT, precondition=PRECONDITIONERS["low rank"], tolerance=ITERATIVE
    )
    assert helped.iterations < alone / 2


def test_the_whole_rank_takes_one_iteration():
    assert conjugate_gradients(lambda x: SYSTEM @ x, RIGHT, precondition=of_rank(60)).iterations <= 2


def test_a_grid_is_solved_by_products_alone():
    levels = np.linspace(-1, 1, 12)[:, None]
    A, B, C = matern(0.7)(levels), matern(0.4)(levels), matern(1.0)(levels[:5])

    def product(x):
        grid = np.einsum("ai,bj,ck,ijkn->abcn", A, B, C, x.reshape(12, 12, 5, -1), optimize=True)
        return grid.reshape(x.shape) + 0.5 * x

    right = RNG.normal(size=720)
    found = conjugate_gradients(product, right, tolerance=1e-10)
    assert found.converged
    dense = np.kron(np.kron(A, B), C) + 0.5 * np.eye(720)
    np.testing.assert_allclose(found.x, np.linalg.solve(dense, right), atol=CONVERGED)


def test_columns_do_not_disturb_each_other():
    easy = np.linalg.eigh(SYSTEM)[1][:, 0]  # an eigenvector: solved in one step
    both = np.column_stack([easy, RIGHT[:, 0], np.zeros(60)])
    widths = []

    def matvec(x):
        widths.append(x.shape[1])
        return SYSTEM @ x

    found = conjugate_gradients(matvec, both, tolerance=1e-10)
    assert widths[:3] == [2, 1, 1]  # what has converged rests
    assert found.converged
    np.testing.assert_allclose(found.x, np.linalg.solve(SYSTEM, both), atol=CONVERGED)
    np.testing.assert_array_equal(found.x[:, 2], 0.0)


def test_nothing_to_solve():
    for right in (np.zeros(60), np.zeros((60, 2)), RIGHT[:, :0]):
        found = conjugate_gradients(lambda x: SYSTEM @ x, right)
        assert found.converged
        assert found.iterations == 0
        np.testing.assert_array_equal(found.x, right)


def test_too_few_iterations_are_said():
    found = conjugate_gradients(lambda x: SYSTEM @ x, RIGHT, tolerance=1e-10, max_iter=3)
    assert not found.converged
    assert found.iterations == 3
    true = np.linalg.norm(RIGHT - SYSTEM @ found.x, axis=0) / np.linalg.norm(RIGHT, axis=0)
    assert abs(found.residual - true.max()) < 1e-14
    solution = np.linalg.solve(SYSTEM, RIGHT)
    error = found.x - solution
    for k in range(3):  # in the norm of A every step helps, though the residual may grow
        assert error[:, k] @ SYSTEM @ error[:, k] < 0.9 * solution[:, k] @ SYSTEM @ solution[:, k]


def test_a_tolerance_below_rounding_ends_and_is_said():
    system = np.diag(np.geomspace(1e-10, 1.0, 60))
    rotation = np.linalg.qr(RNG.normal(size=(60, 60)))[0]
    system = rotation @ system @ rotation.T
    found = conjugate_gradients(lambda x: system @ x, RIGHT, tolerance=1e-17)
    assert not found.converged
    assert np.isfinite(found.x).all()


def test_a_singular_but_consistent_system():
    system = np.diag([2.0, 1.0, 0.0])
    found = conjugate_gradients(lambda x: system @ x, np.array([1.0, 1.0, 0.0]))
    assert found.converged
    np.testing.assert_allclose(found.x, [0.5, 1.0, 0.0], atol=EXACT)
    without = conjugate_gradients(lambda x: system @ x, np.array([1.0, 1.0, 1.0]))
    assert not without.converged
    assert without.residual <= 1.0  # no worse than the start


def test_what_is_not_positive_definite():
    with pytest.raises(NotPositiveDefiniteError, match="negative"):
        conjugate_gradients(lambda x: -SYSTEM @ x, RIGHT)
    with pytest.raises(NotPositiveDefiniteError, match="negative"):
        conjugate_gradients(lambda x: SYSTEM @ x, RIGHT, precondition=lambda x: -x)
    with pytest.raises(NotPositiveDefiniteError, match="not finite"):
        conjugate_gradients(lambda x: x * np.nan, RIGHT)
    with pytest.raises(NotPositiveDefiniteError, match="positive finite"):
        jacobi(np.array([1.0, 0.0]))


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="a vector or a matrix"):
        conjugate_gradients(lambda x: x, np.zeros((2, 2, 2)))


# Pivoted Cholesky


@pytest.mark.parametrize("matrix", [K, np.kron(matern(1.0)(X[:8]), np.eye(3))], ids=["kernel", "grid"])
def test_a_pivoted_cholesky_of_full_rank_is_a_root(matrix):
    n = len(matrix)
    root, pivots = pivoted_cholesky(np.diagonal(matrix), lambda rows: matrix[rows], n)
    np.testing.assert_allclose(root @ root.T, matrix, atol=1e-10 * np.diagonal(matrix).max())
    assert len(set(pivots.tolist())) == root.shape[1] <= n


def test_a_pivoted_cholesky_of_some_rank_is_the_projection_on_its_pivots():
    root, pivots = pivoted_cholesky(np.diagonal(K), lambda rows: K[rows], 10)
    expected = K[:, pivots] @ np.linalg.solve(K[np.ix_(pivots, pivots)], K[pivots])  # Nyström
    np.testing.assert_allclose(root @ root.T, expected, atol=CONVERGED)
    assert np.linalg.eigvalsh(K - root @ root.T).min() > -EXACT * 20
    np.testing.assert_allclose((root @ root.T)[pivots], K[pivots], atol=EXACT)
    assert pivots[0] == 0  # the first of equals
    left = np.diagonal(K) - np.sum(root[:, :5] ** 2, axis=1)
    assert pivots[5] == left.argmax()


def test_a_pivoted_cholesky_stops_at_the_rank_that_there_is():
    thin = RNG.normal(size=(30, 3))
    matrix = thin @ thin.T
    root, pivots = pivoted_cholesky(np.diagonal(matrix), lambda rows: matrix[rows], 30)
    assert root.shape == (30, 3)
    assert len(pivots) == 3
    np.testing.assert_allclose(root @ root.T, matrix, atol=EXACT)
    assert pivoted_cholesky(np.zeros(4), lambda rows: np.zeros((1, 4)), 4)[0].shape == (4, 0)
    assert pivoted_cholesky(np.zeros(0), lambda rows: np.zeros((1, 0)), 4)[0].shape == (0, 0)


@pytest.mark.parametrize("bad", [np.nan, -1.0])
def test_a_diagonal_that_is_none(bad):
    with pytest.raises(ValueError, match="finite and not negative"):
        pivoted_cholesky(np.array([1.0, bad]), lambda rows: np.eye(2)[rows], 2)
