"""The kernel of a constant."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels.base import check_rows
from predilect.covariance.kernels.combine import Combinable
from predilect.covariance.kernels.variance import OneVariance

__all__ = ["Constant"]

FloatArray = npt.NDArray[np.float64]


class Constant(OneVariance, Combinable):
    """k(x, y) = variance: a function that is the same everywhere.

    Attributes
    ----------
    variance : float
        > 0, in squared utilities.

    Notes
    -----
    Added to a kernel of items it changes nothing that answers show, since only differences of utilities exist. It
    matters for people: what all share of a taste.
    """

    __slots__ = ()

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """The variance, shape (n, m)."""
        check_rows(x, y)
        return np.full((len(x), len(x if y is None else y)), self.variance)

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """The variance, shape (n,)."""
        check_rows(x, y)
        return np.full(len(x), self.variance)

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Variance times the sum of the weights, shape (1,)."""
        return np.array([self.variance * float(weights.sum())])
