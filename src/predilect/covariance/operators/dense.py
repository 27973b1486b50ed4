"""A covariance matrix as it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from predilect.covariance.dense import Factor, FloatArray, eigenpairs, factorise
from predilect.covariance.operators.base import IntArray, check_length

__all__ = ["Dense"]


@dataclass(frozen=True, eq=False)
class Dense:
    """A symmetric matrix.

    Attributes
    ----------
    matrix : array of float, shape (n, n)
        Symmetric; not copied.

    Notes
    -----
    n² memory and operations a product; n³/3 once for the first ``solve`` or ``log_det``, of the matrix plus
    ``factor.jitter`` on its diagonal.
    """

    matrix: FloatArray

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"a covariance must be a square matrix, not an array of shape {matrix.shape}")
        object.__setattr__(self, "matrix", matrix)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return len(self.matrix), len(self.matrix)

    def matvec(self, x: FloatArray) -> FloatArray:
        """The product with a vector or with each column of a matrix."""
        check_length(x, len(self.matrix))
        return np.asarray(self.matrix @ x)

    def diagonal(self) -> FloatArray:
        """Shape (n,)."""
        return np.diagonal(self.matrix).copy()

    def rows(self, indices: IntArray) -> FloatArray:
        """Some rows, shape (len(indices), n)."""
        return self.matrix[indices]

    def dense(self) -> FloatArray:
        """A copy of the matrix."""
        return self.matrix.copy()

    @cached_property
    def factor(self) -> Factor:
        """Cholesky factor, made when it is first asked for."""
        return factorise(self.matrix)

    def solve(self, right: FloatArray) -> FloatArray:
        """A⁻¹ right."""
        check_length(right, len(self.matrix))
        return self.factor.solve(right)

    def log_det(self) -> float:
        """Log |A|."""
        return self.factor.log_det()

    @cached_property
    def eigen(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues (n,), descending, and eigenvectors (n, n) as columns, made when first asked for."""
        return eigenpairs(self.matrix)
