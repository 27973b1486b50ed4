"""White, linear and antisymmetric kernels, and one with an item-specific share of the variance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from predilect._base.types import FloatArray
from predilect.inference.gaussian.dense import symmetrise
from predilect.inference.gaussian.kernels.base import Kernel, check_rows, positive, theta_of
from predilect.inference.gaussian.kernels.combine import Combinable, Of


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
        return ("variance",)

    @property
    def theta(self) -> FloatArray:
        return np.log([self.variance])

    def with_theta(self, theta: FloatArray) -> Self:
        return replace(self, variance=theta_of(theta, 1)[0])

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """Variance · I without ``y``, else zeros, shape (n, m)."""
        check_rows(x, y)
        return self.variance * np.eye(len(x)) if y is None else np.zeros((len(x), len(y)))

    def diagonal(self, x: FloatArray) -> FloatArray:
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
        return np.array([self.variance * float(weights.sum())])


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
        n = len(self.variances)
        return ("variance",) if n == 1 else tuple(f"variance[{d}]" for d in range(n))

    @property
    def theta(self) -> FloatArray:
        return np.log(self.variances)

    def with_theta(self, theta: FloatArray) -> Self:
        return replace(self, variances=theta_of(theta, len(self.variances)))

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """k(x_i, y_j), shape (n, m)."""
        self._check(x, y)
        root = np.sqrt(self._weights(x))
        a = x * root
        return symmetrise(a @ a.T) if y is None else np.asarray(a @ (y * root).T)

    def diagonal(self, x: FloatArray) -> FloatArray:
        return self.pairs(x, x)

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        self._check(x, y)
        return np.asarray((x * y) @ self._weights(x))

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        self._check(x, y)
        return self._by_variance(x, np.einsum("id,id->d", x, weights @ (x if y is None else y)))

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
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


@dataclass(frozen=True, slots=True, eq=False)
class Antisymmetric(Of):
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

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """[k(x_i, y_j) - k(x_i, -y_j)] / 2, shape (n, m)."""
        K = self.kernel(x, x if y is None else y)  # white noise is no function of x
        K -= self.kernel(x, -(x if y is None else y))
        K *= 0.5
        return symmetrise(K) if y is None else K

    def diagonal(self, x: FloatArray) -> FloatArray:
        return self.pairs(x, x)

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return 0.5 * (self.kernel.pairs(x, y) - self.kernel.pairs(x, -y))

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
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
    rows are left out, as in :class:`~predilect.inference.gaussian.kernels.White`.
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
        return ("odds", *self.kernel.names)

    @property
    def theta(self) -> FloatArray:
        return np.concatenate([[np.log(self.odds)], self.kernel.theta])

    def with_theta(self, theta: FloatArray) -> Self:
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
        return (1.0 - self.share) * self.kernel.diagonal(x) + self.share

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return (1.0 - self.share) * self.kernel.pairs(x, y)

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Gradient; by the log odds it is w (1 - w) Σ_ij weights_ij (1[same row] - k)."""
        same = float(np.trace(weights)) if y is None else 0.0
        own = self.share * (1.0 - self.share) * (same - float(np.vdot(weights, self.kernel(x, y))))
        return np.concatenate([[own], (1.0 - self.share) * self.kernel.gradient(x, y, weights)])

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        own = self.share * (1.0 - self.share) * float(weights @ (1.0 - self.kernel.diagonal(x)))
        return np.concatenate([[own], (1.0 - self.share) * self.kernel.diagonal_gradient(x, weights)])
