"""A diagonal covariance: what is independent of everything else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predilect.covariance.dense import FloatArray, NotPositiveDefiniteError
from predilect.covariance.operators.base import IntArray, by_columns

__all__ = ["Diagonal"]


@dataclass(frozen=True, slots=True, eq=False)
class Diagonal:
    """A diagonal matrix; ``Diagonal(np.ones(n))`` is the identity.

    Attributes
    ----------
    values : array of float, shape (n,)
        Not copied. Zeros are allowed, but then there is no ``solve``.

    Notes
    -----
    n memory and operations a product.
    """

    values: FloatArray

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(f"a diagonal must have shape (n,), not {values.shape}")
        object.__setattr__(self, "values", values)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return len(self.values), len(self.values)

    def matvec(self, x: FloatArray) -> FloatArray:
        """The product with a vector or with each column of a matrix."""
        return by_columns(lambda columns: self.values[:, None] * columns, x, len(self.values))

    def diagonal(self) -> FloatArray:
        """Shape (n,)."""
        return self.values.copy()

    def rows(self, indices: IntArray) -> FloatArray:
        """Some rows, shape (len(indices), n)."""
        indices = np.asarray(indices)
        out = np.zeros((len(indices), len(self.values)))
        out[np.arange(len(indices)), indices] = self.values[indices]
        return out

    def dense(self) -> FloatArray:
        """The whole matrix, shape (n, n)."""
        return np.diag(self.values)

    def solve(self, right: FloatArray) -> FloatArray:
        """A⁻¹ right.

        Raises
        ------
        NotPositiveDefiniteError
            Unless all values are positive.
        """
        self._check_positive()
        return by_columns(lambda columns: columns / self.values[:, None], right, len(self.values))

    def log_det(self) -> float:
        """Log |A|.

        Raises
        ------
        NotPositiveDefiniteError
            Unless all values are positive.
        """
        self._check_positive()
        return float(np.log(self.values).sum())

    def _check_positive(self) -> None:
        if not (np.isfinite(self.values) & (self.values > 0.0)).all():
            raise NotPositiveDefiniteError("a diagonal covariance must hold positive finite values to be inverted")
