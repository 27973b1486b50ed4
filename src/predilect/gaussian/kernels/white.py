"""White-noise kernel: row-specific variance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from predilect.gaussian.kernels.base import check_rows, positive, theta_of
from predilect.gaussian.kernels.combine import Combinable

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class White(Combinable):
    """White noise: variance for a row and itself, 0 for any two rows, even of equal features.

    Attributes
    ----------
    variance : float
        > 0, in squared utilities.

    Notes
    -----
    Rows are the same only where the second rows are left out: ``kernel(x)`` is variance · I, ``kernel(x, y)`` and
    ``pairs`` are 0 even where y is x. So an item-specific residual is never shared by another item with the same
    features.
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
        """Variance · I without ``y``, else zeros, shape (n, m)."""
        check_rows(x, y)
        return self.variance * np.eye(len(x)) if y is None else np.zeros((len(x), len(y)))

    def diagonal(self, x: FloatArray) -> FloatArray:
        """The variance, shape (n,)."""
        check_rows(x, None)
        return np.full(len(x), self.variance)

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Zeros: they are pairs of different points; shape (n,)."""
        check_rows(x, y)
        return np.zeros(len(x))

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Variance times the trace of the weights without ``y``, else 0, shape (1,)."""
        return np.array([self.variance * float(np.trace(weights)) if y is None else 0.0])

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Variance times the sum of the weights, shape (1,)."""
        return np.array([self.variance * float(weights.sum())])
