"""Kernel of features with an item-specific share of the variance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from predilect._types import FloatArray
from predilect.gaussian.kernels.base import Kernel, positive, theta_of
from predilect.gaussian.kernels.combine import Combinable


@dataclass(frozen=True, slots=True, eq=False)
class Own(Combinable):
    """(1 - w) k(x, y) + w 1[same row] with w = odds / (1 + odds): the variance stays that of a stationary k.

    Attributes
    ----------
    kernel : Kernel
        With k(x, x) = 1.
    odds : float
        > 0.

    Notes
    -----
    vvm.md 5: features with a one-hot of the id as a further feature of one length-scale ℓ make k · exp(-1[other]/ℓ²)
    of a squared exponential k. That is this kernel with w = 1 - exp(-1/ℓ²). Rows are the same only where the second
    rows are left out, as in :class:`~predilect.gaussian.kernels.White`.
    """

    kernel: Kernel
    odds: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "odds", float(positive(self.odds, "odds", 1)[0]))

    @classmethod
    def of_share(cls, kernel: Kernel, share: float) -> Self:
        """From w, between 0 and 1."""
        return cls(kernel, share / (1.0 - share))

    @property
    def share(self) -> float:
        """w, the row-specific share of the variance."""
        return self.odds / (1.0 + self.odds)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the odds, then those of the kernel."""
        return ("odds", *self.kernel.names)

    @property
    def theta(self) -> FloatArray:
        """Logarithms of the odds and of the kernel's hyper-parameters."""
        return np.concatenate([[np.log(self.odds)], self.kernel.theta])

    def with_theta(self, theta: FloatArray) -> Self:
        """The same at other hyper-parameters, given by their logarithms."""
        odds = theta_of(theta, 1 + len(self.kernel.theta))[0]
        return replace(self, kernel=self.kernel.with_theta(np.asarray(theta)[1:]), odds=odds)

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """(1 - w) k(x_i, y_j), plus w on the diagonal without ``y``; shape (n, m)."""
        K = self.kernel(x, y)
        K *= 1.0 - self.share
        if y is None:
            K[np.diag_indices(len(x))] += self.share
        return K

    def diagonal(self, x: FloatArray) -> FloatArray:
        """(1 - w) k(x_i, x_i) + w, shape (n,)."""
        return (1.0 - self.share) * self.kernel.diagonal(x) + self.share

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """(1 - w) k(x_i, y_i) of different points, row by row; shape (n,)."""
        return (1.0 - self.share) * self.kernel.pairs(x, y)

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Gradient; by the log odds it is w (1 - w) Σ_ij weights_ij (1[same row] - k)."""
        same = float(np.trace(weights)) if y is None else 0.0
        own = self.share * (1.0 - self.share) * (same - float(np.vdot(weights, self.kernel(x, y))))
        return np.concatenate([[own], (1.0 - self.share) * self.kernel.gradient(x, y, weights)])

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """The same for the diagonal."""
        own = self.share * (1.0 - self.share) * float(weights @ (1.0 - self.kernel.diagonal(x)))
        return np.concatenate([[own], (1.0 - self.share) * self.kernel.diagonal_gradient(x, weights)])
