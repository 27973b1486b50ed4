"""A covariance of few common directions and much that is independent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from predilect.covariance.dense import Factor, FloatArray, factorise
from predilect.covariance.operators.base import IntArray, by_columns, check_length
from predilect.covariance.operators.diagonal import Diagonal

__all__ = ["LowRankPlusDiagonal"]


@dataclass(frozen=True, eq=False)
class LowRankPlusDiagonal:
    """R Rᵀ + diag(own).

    Attributes
    ----------
    root : array of float, shape (n, r)
        R. Of eigenpairs (Q, s) it is Q √s.
    own : array of float, shape (n,)
        Not negative; positive where ``solve`` or ``log_det`` is asked for.

    Notes
    -----
    n r memory and operations a product. The inverse by Woodbury, the determinant by its lemma:
    A⁻¹ = D⁻¹ - D⁻¹ R C⁻¹ Rᵀ D⁻¹ and log |A| = log |C| + log |D|, C = I + Rᵀ D⁻¹ R; n r² once, then n r. Digits are
    lost where ``own`` is much smaller than R Rᵀ: the relative error of ``solve`` grows with their ratio.
    """

    root: FloatArray
    own: FloatArray

    def __post_init__(self) -> None:
        root, own = np.asarray(self.root, dtype=np.float64), np.asarray(self.own, dtype=np.float64)
        if root.ndim != 2 or own.shape != (len(root),):
            raise ValueError(f"root and own must have shapes (n, r) and (n,), not {root.shape} and {own.shape}")
        if (own < 0.0).any():
            raise ValueError("the diagonal part of a covariance must not be negative")
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "own", own)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return len(self.own), len(self.own)

    def matvec(self, x: FloatArray) -> FloatArray:
        """The product with a vector or with each column of a matrix."""
        check_length(x, len(self.own))
        return np.asarray(self.root @ (self.root.T @ x)) + Diagonal(self.own).matvec(x)

    def diagonal(self) -> FloatArray:
        """Shape (n,)."""
        return np.asarray(np.einsum("ir,ir->i", self.root, self.root) + self.own)

    def rows(self, indices: IntArray) -> FloatArray:
        """Some rows, shape (len(indices), n)."""
        return np.asarray(self.root[indices] @ self.root.T + Diagonal(self.own).rows(indices))

    def dense(self) -> FloatArray:
        """The whole matrix, shape (n, n)."""
        return np.asarray(self.root @ self.root.T + np.diag(self.own))

    def solve(self, right: FloatArray) -> FloatArray:
        """A⁻¹ right.

        Raises
        ------
        NotPositiveDefiniteError
            If ``own`` is not positive.
        """
        own = Diagonal(self.own)

        def woodbury(columns: FloatArray) -> FloatArray:
            plain = own.solve(columns)
            return plain - own.solve(self.root @ self._inner.solve(self.root.T @ plain))

        return by_columns(woodbury, right, len(self.own))

    def log_det(self) -> float:
        """Log |A|.

        Raises
        ------
        NotPositiveDefiniteError
            If ``own`` is not positive.
        """
        return Diagonal(self.own).log_det() + self._inner.log_det()

    @cached_property
    def _inner(self) -> Factor:
        """Of C = I + Rᵀ D⁻¹ R."""
        return factorise(np.eye(self.root.shape[1]) + self.root.T @ Diagonal(self.own).solve(self.root))
