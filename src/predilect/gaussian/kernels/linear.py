"""Kernel of linear functions: part-worths with a Gaussian prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from predilect.gaussian.dense import symmetrise
from predilect.gaussian.kernels.base import check_rows, positive, theta_of
from predilect.gaussian.kernels.combine import Combinable

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Linear(Combinable):
    """Linear kernel, k(x, y) = Σ_d v_d x_d y_d / D, of D features.

    Attributes
    ----------
    variances : array of float, shape (D,) or (1,)
        v > 0: one for each feature (automatic relevance determination) or one for all; in squared utilities, for
        features of mean square 1. Then k(x, x) is about the mean of v, however many features there are.

    Notes
    -----
    The function is Σ_d b_d x_d with b_d ~ N(0, v_d / D). A length-scale would only divide the square root of v. No
    constant is in it: differences of utilities do not show one. n m D operations.
    """

    variances: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "variances", positive(self.variances, "variances"))

    @property
    def names(self) -> tuple[str, ...]:
        """variance, or variance[0], variance[1], ..."""
        n = len(self.variances)
        return ("variance",) if n == 1 else tuple(f"variance[{d}]" for d in range(n))

    @property
    def theta(self) -> FloatArray:
        """Logarithms of the variances."""
        return np.log(self.variances)

    def with_theta(self, theta: FloatArray) -> Self:
        """The kernel at other variances, given by their logarithms."""
        return replace(self, variances=theta_of(theta, len(self.variances)))

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """k(x_i, y_j), shape (n, m)."""
        self._check(x, y)
        root = np.sqrt(self._weights(x))
        a = x * root
        return symmetrise(a @ a.T) if y is None else np.asarray(a @ (y * root).T)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """k(x_i, x_i), shape (n,)."""
        return self.pairs(x, x)

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """k(x_i, y_i), shape (n,)."""
        self._check(x, y)
        return np.asarray((x * y) @ self._weights(x))

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Σ_ij weights_ij ∂k(x_i, y_j)/∂ log v, shape (D,) or (1,)."""
        self._check(x, y)
        return self._by_variance(x, np.einsum("id,id->d", x, weights @ (x if y is None else y)))

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Σ_i weights_i ∂k(x_i, x_i)/∂ log v, shape (D,) or (1,)."""
        self._check(x, None)
        return self._by_variance(x, weights @ (x * x))

    def _weights(self, x: FloatArray) -> FloatArray:
        """Prior variance of each part-worth, shape (D,)."""
        return np.full(x.shape[1], self.variances / max(1, x.shape[1]))

    def _by_variance(self, x: FloatArray, sums: FloatArray) -> FloatArray:
        parts = sums * self._weights(x)
        return parts if len(self.variances) > 1 else np.array([parts.sum()])

    def _check(self, x: FloatArray, y: FloatArray | None) -> None:
        check_rows(x, y, len(self.variances) if len(self.variances) > 1 else None)
