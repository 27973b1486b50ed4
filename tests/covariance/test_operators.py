"""Every operator under the contract (T3.8), and what each can do besides."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.linalg import block_diag

from contracts.operator import OperatorContract, SolvableOperatorContract
from predilect.covariance.dense import NotPositiveDefiniteError, eigenpairs
from predilect.covariance.kernels import Stationary, matern
from predilect.covariance.operators import (
    BlockDiagonal,
    Dense,
    Diagonal,
    Kronecker,
    LowRankPlusDiagonal,
    SolvableOperator,
)
from tolerances import EXACT


def covariance(n, seed=0):
    root = np.random.default_rng(seed).normal(size=(n, n))
    return root @ root.T / n + 0.5 * np.eye(n)


def kron(*factors):
    """By the definition: entry ((i, j, ...), (k, l, ...)) is A_ik B_jl ..., indices in row-major order."""
    sizes = [len(factor) for factor in factors]
    places = list(product(*map(range, sizes)))
    return np.array(
        [[np.prod([F[a, b] for F, a, b in zip(factors, p, q, strict=True)]) for q in places] for p in places]
    )


A, B, C = covariance(3), covariance(4, 1), covariance(2, 2)
ONES = np.ones(3)


class TestDense(SolvableOperatorContract):
    operator, matrix = Dense(B), B


class TestDiagonal(SolvableOperatorContract):
    operator, matrix = Diagonal(np.array([0.5, 2.0, 3.0])), np.diag([0.5, 2.0, 3.0])


class TestDiagonalWithZeros(OperatorContract):
    operator, matrix = Diagonal(np.array([0.5, 0.0, 3.0])), np.diag([0.5, 0.0, 3.0])


class TestKronecker(SolvableOperatorContract):
    operator, matrix = Kronecker((A, B)), kron(A, B)


class TestKroneckerOfThree(SolvableOperatorContract):
    operator, matrix = Kronecker((A, B, C)), kron(A, B, C)


class TestKroneckerOfOne(SolvableOperatorContract):
    operator, matrix = Kronecker((B,)), B


class TestKroneckerWithAnIdentity(SolvableOperatorContract):
    operator, matrix = Kronecker((Diagonal(ONES), C)), block_diag(C, C, C)


class TestKroneckerOfStructures(SolvableOperatorContract):
    operator = Kronecker((BlockDiagonal((C, Diagonal(np.array([2.0])))), LowRankPlusDiagonal(A[:, :1], ONES)))
    matrix = kron(block_diag(C, 2.0), np.outer(A[:, 0], A[:, 0]) + np.eye(3))


class TestBlockDiagonal(SolvableOperatorContract):
    operator, matrix = BlockDiagonal((A, Diagonal(ONES), B)), block_diag(A, np.eye(3), B)


class TestLowRankPlusDiagonal(SolvableOperatorContract):
    operator = LowRankPlusDiagonal(B[:, :2], np.array([0.5, 1.0, 2.0, 4.0]))
    matrix = B[:, :2] @ B[:, :2].T + np.diag([0.5, 1.0, 2.0, 4.0])


class TestLowRankAlone(OperatorContract):
    operator, matrix = LowRankPlusDiagonal(B[:, :2], np.zeros(4)), B[:, :2] @ B[:, :2].T


class TestNoRankAtAll(SolvableOperatorContract):
    operator, matrix = LowRankPlusDiagonal(np.zeros((3, 0)), 2.0 * ONES), 2.0 * np.eye(3)


# Kronecker products


def test_vectors_are_row_major():
    # T3.8: (A ⊗ B) vec(X) = vec(A X Bᵀ) for rows one after the other.
    X = np.random.default_rng(3).normal(size=(3, 4))
    np.testing.assert_allclose(Kronecker((A, B)).matvec(X.ravel()), (A @ X @ B.T).ravel(), atol=EXACT)


def test_a_kernel_over_a_grid_is_a_product_of_its_factors():
    levels = [np.linspace(-1, 1, 4), np.array([-1.0, 0.0, 1.0]), np.array([0.0, 2.0])]
    grid = np.array(list(product(*levels)))
    scales = [0.5, 1.0, 3.0]
    for kernel, one in (
        (Stationary(scales, "squared-exponential"), lambda s: Stationary(s, "squared-exponential")),
        (matern(scales, 1.5, "product"), matern),
    ):
        operator = Kronecker(tuple(one(s)(level[:, None]) for s, level in zip(scales, levels, strict=True)))
        np.testing.assert_allclose(operator.dense(), kernel(grid), atol=EXACT)


@pytest.mark.parametrize("n_pairs", [0, 1, 5, 24])
def test_the_largest_eigenpairs(n_pairs):
    operator, matrix = Kronecker((A, B, C)), kron(A, B, C)
    values, vectors = operator.largest(n_pairs)
    expected = np.linalg.eigvalsh(matrix)[::-1][:n_pairs]
    np.testing.assert_allclose(values, expected, atol=EXACT)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n_pairs), atol=EXACT)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=EXACT)
    if n_pairs == len(matrix):
        np.testing.assert_allclose((vectors * values) @ vectors.T, matrix, atol=EXACT)


def test_the_largest_eigenpairs_where_many_are_equal_or_zero():
    singular = np.ones((3, 3))  # eigenvalues 3, 0, 0
    operator = Kronecker((singular, Diagonal(np.array([1.0, 2.0, 2.0])), np.eye(2)))
    values, vectors = operator.largest(18)
    np.testing.assert_allclose(values, [6.0] * 4 + [3.0] * 2 + [0.0] * 12, atol=EXACT)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(18), atol=EXACT)
    np.testing.assert_allclose(operator.matvec(vectors), vectors * values, atol=EXACT)
    again = Kronecker((singular, Diagonal(np.array([1.0, 2.0, 2.0])), np.eye(2))).largest(18)
    np.testing.assert_array_equal(again[1], vectors)


def test_the_largest_eigenpairs_of_a_grid_that_cannot_be_written_out():
    factor = matern(0.5)(np.linspace(-1, 1, 11)[:, None])
    operator = Kronecker((factor,) * 5)  # 161 051 rows, 207 GB
    values, vectors = operator.largest(20)
    assert vectors.shape == (161_051, 20)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(20), atol=EXACT)
    np.testing.assert_allclose(operator.matvec(vectors), vectors * values, atol=EXACT * values[0])
    spectrum = np.linalg.eigvalsh(factor)
    every = np.sort(np.prod(np.array(list(product(spectrum[-4:], repeat=5))), axis=1))[::-1]
    np.testing.assert_allclose(values, every[:20], rtol=EXACT)


def test_a_large_product_takes_little_memory_and_is_right_in_places():
    operator = Kronecker((covariance(40), covariance(30, 1), covariance(20, 2)))
    x = np.random.default_rng(4).normal(size=24_000)
    some = np.array([0, 12_345, 23_999])
    np.testing.assert_allclose(operator.matvec(x)[some], operator.rows(some) @ x, atol=EXACT * 100)
    np.testing.assert_allclose(operator.matvec(operator.solve(x)), x, atol=EXACT * 100)


def test_what_has_no_eigenpairs():
    with pytest.raises(NotPositiveDefiniteError, match="eigenvalue -1"):
        Kronecker((A, np.diag([1.0, -1.0]))).largest(2)
    for n in (-1, 7):
        with pytest.raises(ValueError, match="eigenpairs"):
            Kronecker((A, C)).largest(n)


# Factors


def test_eigenpairs_are_sorted_and_signed():
    values, vectors = eigenpairs(B)
    assert np.all(np.diff(values) <= 0)
    np.testing.assert_allclose((vectors * values) @ vectors.T, B, atol=EXACT)
    assert np.all(vectors[np.abs(vectors).argmax(axis=0), np.arange(4)] > 0)
    with pytest.raises(NotPositiveDefiniteError, match="not finite"):
        eigenpairs(np.full((2, 2), np.nan))
    assert eigenpairs(np.zeros((0, 0)))[1].shape == (0, 0)


def test_a_singular_factor_gets_jitter_of_its_own():
    operator = Kronecker((np.ones((2, 2)), B))
    right = operator.matvec(np.arange(8.0))
    assert operator.factors[0].factor.jitter > 0.0
    assert operator.factors[1].factor.jitter == 0.0
    assert np.isfinite(operator.solve(right)).all()


# Bad input


def test_what_is_no_operator():
    with pytest.raises(ValueError, match="square"):
        Dense(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="square"):
        Kronecker((A, np.zeros(3)))
    with pytest.raises(ValueError, match="at least one factor"):
        Kronecker(())
    with pytest.raises(ValueError, match="none of them empty"):
        Kronecker((A, np.zeros((0, 0))))
    with pytest.raises(ValueError, match="diagonal must have shape"):
        Diagonal(A)
    with pytest.raises(ValueError, match=r"shapes \(n, r\) and \(n,\)"):
        LowRankPlusDiagonal(A, np.ones(2))
    with pytest.raises(ValueError, match="must not be negative"):
        LowRankPlusDiagonal(A, -ONES)


@pytest.mark.parametrize("operator", [Diagonal(np.array([1.0, 0.0])), LowRankPlusDiagonal(C, np.array([1.0, 0.0]))])
def test_what_is_singular_is_not_solved(operator):
    with pytest.raises(NotPositiveDefiniteError, match="positive finite values"):
        operator.solve(np.ones(2))
    with pytest.raises(NotPositiveDefiniteError, match="positive finite values"):
        operator.log_det()


def test_a_part_without_an_inverse_says_what_to_do():
    class Shifted:
        """An operator without an inverse of its own."""

        shape = (2, 2)

        def matvec(self, x):
            return C @ x

        def diagonal(self):
            return np.diagonal(C)

        def rows(self, indices):
            return C[indices]

        def dense(self):
            return C

    for operator in (Kronecker((A, Shifted())), BlockDiagonal((A, Shifted()))):
        x = np.ones(operator.shape[0])
        np.testing.assert_allclose(operator.matvec(x), operator.dense() @ x, atol=EXACT)
        with pytest.raises(TypeError, match="Shifted has no exact inverse; solve by conjugate_gradients"):
            operator.solve(x)
        with pytest.raises(TypeError, match="conjugate_gradients"):
            operator.log_det()
    assert not isinstance(Shifted(), SolvableOperator)
    values, vectors = Kronecker((A, Shifted())).largest(6)
    np.testing.assert_allclose((vectors * values) @ vectors.T, kron(A, C), atol=EXACT)
