"""The kernel of a constant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels.base import check_rows, positive, theta_of
from predilect.covariance.kernels.combine import Combinable

__all__ = ["Constant"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Combinable):
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

    variance: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", float(positive(self.variance, "variances", 1)[0]))

    @property
    def names(self) -> tuple[str, ...]:
        """Variance."""
        return ("variance",)

    @property
    def theta(self) -> FloatArray:
        """Logarithm of the variance, shape (1,)."""
        return np.log([self.variance])

    def with_theta(self, theta: FloatArray) -> Self:
        """The kernel at another variance, given by its logarithm."""
        return replace(self, variance=theta_of(theta, 1)[0])

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """The variance, shape (n, m)."""
        check_rows(x, y)
        return np.full((len(x), len(x if y is None else y)), self.variance)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """The variance, shape (n,)."""
        check_rows(x, None)
        return np.full(len(x), self.variance)

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """The variance, shape (n,)."""
        check_rows(x, y)
        return np.full(len(x), self.variance)

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Variance times the sum of the weights, shape (1,)."""
        return np.array([self.variance * float(weights.sum())])

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Variance times the sum of the weights, shape (1,)."""
        return np.array([self.variance * float(weights.sum())])
