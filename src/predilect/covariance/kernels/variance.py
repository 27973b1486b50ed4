"""Base of kernels whose one hyper-parameter is a variance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels.base import check_rows, positive, theta_of

__all__ = ["OneVariance"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class OneVariance:
    """Kernel with k(x, x) = variance > 0, in squared utilities."""

    variance: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", float(positive(self.variance, "variances", 1)[0]))

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the variance."""
        return ("variance",)

    @property
    def theta(self) -> FloatArray:
        """Logarithm of the variance, shape (1,)."""
        return np.log([self.variance])

    def with_theta(self, theta: FloatArray) -> Self:
        """The kernel at another variance, given by its logarithm."""
        return replace(self, variance=theta_of(theta, 1)[0])

    def diagonal(self, x: FloatArray) -> FloatArray:
        """The variance, shape (n,)."""
        check_rows(x, None)
        return np.full(len(x), self.variance)

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Variance times the sum of the weights, shape (1,)."""
        return np.array([self.variance * float(weights.sum())])
