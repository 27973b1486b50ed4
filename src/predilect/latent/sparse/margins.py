"""Margins of pairs as linear functions of whitened values, by rows or by items, whichever costs less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array

from predilect._types import FloatArray, IntArray
from predilect.gaussian.design import pair_variance, squared_differences
from predilect.latent.pooled import laplacian

# Nanoseconds an element, measured on one core: they only choose between two ways to the same result.
_SYRK, _GEMM, _GATHER, _SPARSE, _LOOKUP = 0.04, 0.08, 2.5, 2.0, 20.0
_MOST_ELEMENTS = 2**25  # of differences of rows kept in memory: 256 MB
_ITEMS_AT_ONCE = 10_000
_MOST_ITEMS_SQUARED = 2000  # of which items x items arrays are made for variances


class Margins(Protocol):
    """Margins z_p = x_pᵀ u + residual of some answers, with u the whitened values at M points."""

    def mean(self, u: FloatArray) -> FloatArray:
        """x_pᵀ u, shape (n,)."""
        ...

    def variance(self, lower: FloatArray) -> FloatArray:
        """x_pᵀ Λ⁻¹ x_p with Λ = lower lowerᵀ, shape (n,)."""
        ...

    def information(self, weight: FloatArray) -> FloatArray:
        """Σ_p weight_p x_p x_pᵀ for weights of at least 0, shape (M, M)."""
        ...

    def gather(self, values: FloatArray) -> FloatArray:
        """Σ_p values_p x_p, shape (M,)."""
        ...


@dataclass(frozen=True, slots=True)
class RowMargins:
    """Margins by rows: X holds x_p. n M² operations each for variances and information."""

    X: FloatArray

    def mean(self, u: FloatArray) -> FloatArray:
        """See :class:`Margins`."""
        return np.asarray(self.X @ u)

    def variance(self, lower: FloatArray) -> FloatArray:
        """See :class:`Margins`."""
        half = _whitened(self.X, lower)
        return np.asarray(np.einsum("pm,pm->p", half, half))

    def information(self, weight: FloatArray) -> FloatArray:
        """See :class:`Margins`."""
        X = np.sqrt(weight)[:, None] * self.X
        return np.asarray(X.T @ X)

    def gather(self, values: FloatArray) -> FloatArray:
        """See :class:`Margins`."""
        return np.asarray(values @ self.X)


@dataclass(frozen=True, slots=True)
class ItemMargins:
    """Margins by items: x_p = B[left_p] - B[right_p]. n_items M² operations, and n M that move memory.

    Information is Bᵀ (L B) with L the graph Laplacian of the weights (modern.md A.7), dense where most pairs occur.
    """

    B: FloatArray
    left: IntArray
    right: IntArray

    def mean(self, u: FloatArray) -> FloatArray:
        """See :class:`Margins`."""
        f = self.B @ u
        return np.asarray(f[self.left] - f[self.right])

    def variance(self, lower: FloatArray) -> FloatArray:
        """See :class:`Margins`."""
        T = _whitened(self.B, lower)
        if _all_pairs(len(T), len(lower), len(self.left)):
            return pair_variance(T @ T.T, self.left, self.right)
        return squared_differences(T, self.left, self.right)

    def information(self, weight: FloatArray) -> FloatArray:
        """See :class:`Margins`."""
        n_items, M = self.B.shape
        L = graph_laplacian(n_items, self.left, self.right, weight)
        total = np.zeros((M, M))
        for start in range(0, n_items, _ITEMS_AT_ONCE):  # L B is never formed as a whole
            some = slice(start, start + _ITEMS_AT_ONCE)
            total += self.B[some].T @ (L[some] @ self.B)
        return total

    def gather(self, values: FloatArray) -> FloatArray:
        """See :class:`Margins`."""
        return np.asarray(gathered(len(self.B), self.left, self.right, values) @ self.B)


def natural_parameters(
    margins: Margins, weight: FloatArray, values: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Natural parameters s I + Σ weight_p x_p x_pᵀ, Σ values_p x_p of prior and answers; weights at least 0."""
    precision = margins.information(weight)
    precision[np.diag_indices(len(precision))] += scale
    return precision, margins.gather(values)


def gathered(n_items: int, left: IntArray, right: IntArray, values: FloatArray) -> FloatArray:
    """Σ_p values_p (e_left - e_right), shape (n_items,)."""
    total = np.bincount(left, values, n_items) - np.bincount(right, values, n_items)
    return np.asarray(total, dtype=np.float64)


def graph_laplacian(n_items: int, left: IntArray, right: IntArray, weight: FloatArray) -> FloatArray | csr_array:
    """Graph Laplacian Σ_p weight_p (e_left - e_right)(e_left - e_right)ᵀ, dense where products cost less so."""
    if _GEMM * n_items**2 < _SPARSE * 2 * len(weight):
        return laplacian(n_items, left, right, weight)
    return sparse_laplacian(n_items, left, right, weight)


def sparse_laplacian(n_items: int, left: IntArray, right: IntArray, weight: FloatArray) -> csr_array:
    """Graph Laplacian Σ_p weight_p (e_left - e_right)(e_left - e_right)ᵀ, sparse."""
    diagonal = np.bincount(left, weight, n_items) + np.bincount(right, weight, n_items)
    places = np.arange(n_items)
    values = np.concatenate([diagonal, -weight, -weight])
    index = (np.concatenate([places, left, right]), np.concatenate([places, right, left]))
    return csr_array((values, index), shape=(n_items, n_items))


def margins_of(B: FloatArray, left: IntArray, right: IntArray) -> Margins:
    """Margins of some pairs, from ``B = Projection.roots`` (n_items, M).

    For variances and information together, rows cost n M (3 M + gather) and items n_items M (4 M) + n M (gather +
    sparse product), or n_items M (n_items) for the latter where most pairs occur, with n_items those that occur; the
    cheaper is taken, rows only while they fit into 256 MB.
    """
    n, M = len(left), B.shape[1]
    occurs = np.zeros(len(B), dtype=bool)
    occurs[left] = occurs[right] = True
    n_items = int(occurs.sum())
    laplacian_cost = min(_GEMM * n_items**2, 2.0 * _SPARSE * n)
    variance_cost = _SYRK * n_items**2 + n * _LOOKUP / M if _all_pairs(n_items, M, n) else n * _GATHER
    by_items = n_items * M * 2.0 * _GEMM + variance_cost + laplacian_cost
    by_rows = n * ((_SYRK + _GEMM) * M + _GATHER)
    if by_rows <= by_items and n * M <= _MOST_ELEMENTS:
        X = B[left]
        X -= B[right]
        return RowMargins(X)
    if 2 * n_items > len(B):
        return ItemMargins(B, left, right)
    place = np.cumsum(occurs) - 1
    return ItemMargins(B[occurs], place[left], place[right])


def _whitened(rows: FloatArray, lower: FloatArray) -> FloatArray:
    """Rows times lower⁻ᵀ: a product with the inverse is three times as quick as solving for all rows."""
    inverse = solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False)
    return np.asarray(rows @ inverse.T)


def _all_pairs(n_items: int, M: int, n: int) -> bool:
    """Whether the covariance of all items is the cheaper way to the variances of n pairs."""
    if n_items > _MOST_ITEMS_SQUARED:
        return False
    return _SYRK * n_items**2 * M + n * _LOOKUP < n * M * _GATHER
