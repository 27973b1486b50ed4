"""Kernel of odd functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from predilect.gaussian.dense import symmetrise
from predilect.gaussian.kernels.base import Kernel
from predilect.gaussian.kernels.combine import Combinable

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Antisymmetric(Combinable):
    """Kernel of odd functions, [k(x, y) - k(x, -y)] / 2: f(-x) = -f(x), and f(0) = 0.

    Attributes
    ----------
    kernel : Kernel
        With k(-x, -y) = k(x, y), as stationary kernels and the linear one have it.

    Notes
    -----
    gaspk.md F13: with a trade-off for x, "left or right?" and "right or left?" are one question. It is the covariance
    of the odd part [g(x) - g(-x)] / 2 of g ~ GP(0, k): k(x, x) / 2 far from 0. Two evaluations of k.
    """

    kernel: Kernel

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the kernel."""
        return self.kernel.names

    @property
    def theta(self) -> FloatArray:
        """Those of the kernel."""
        return self.kernel.theta

    def with_theta(self, theta: FloatArray) -> Self:
        """The same at other hyper-parameters, given by their logarithms."""
        return replace(self, kernel=self.kernel.with_theta(theta))

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """[k(x_i, y_j) - k(x_i, -y_j)] / 2, shape (n, m)."""
        K = self.kernel(x, x if y is None else y)  # white noise is no function of x
        K -= self.kernel(x, -(x if y is None else y))
        K *= 0.5
        return symmetrise(K) if y is None else K

    def diagonal(self, x: FloatArray) -> FloatArray:
        """[k(x_i, x_i) - k(x_i, -x_i)] / 2, shape (n,)."""
        return self.pairs(x, x)

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """[k(x_i, y_i) - k(x_i, -y_i)] / 2, shape (n,)."""
        return 0.5 * (self.kernel.pairs(x, y) - self.kernel.pairs(x, -y))

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Half the difference of the kernel's gradients."""
        other = x if y is None else y
        return 0.5 * (self.kernel.gradient(x, other, weights) - self.kernel.gradient(x, -other, weights))

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """The same for the diagonal, from blocks of ``_BLOCK`` rows: a kernel need not have a gradient by pairs."""
        total = np.zeros(len(self.theta))
        for start in range(0, len(x), _BLOCK):
            some, part = x[start : start + _BLOCK], np.diag(weights[start : start + _BLOCK])
            total += self.kernel.gradient(some, some, part) - self.kernel.gradient(some, -some, part)
        return 0.5 * total


_BLOCK = 250
