"""Population distribution of the factor weights: standard, linear in features, or a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from predilect._types import BoolArray, FloatArray
from predilect.gaussian.projection import Projection


class WeightPrior(Protocol):
    """Mean and variance of the weights of unseen users."""

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Shapes (n, C) for traits (n, n_traits), or (1, C) without any."""
        ...


@dataclass(frozen=True, slots=True)
class StandardWeights:
    """w_c ~ N(0, variance), whatever the features; a variance (C,) of None is 1."""

    variance: FloatArray | None = None

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """See :class:`WeightPrior`."""
        n = 1 if traits is None else len(traits)
        variance = np.ones(n_components) if self.variance is None else self.variance
        return np.zeros((n, n_components)), np.tile(variance, (n, 1))


@dataclass(frozen=True, slots=True)
class LinearWeights:
    """w = B x + ε with ε ~ N(0, I): modern.md 5."""

    effects: FloatArray  # E B, (C, n_traits)
    covariance: FloatArray  # of each row of B, (C, n_traits, n_traits)

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """See :class:`WeightPrior`; unknown features have the mean, zero."""
        if traits is None:
            return np.zeros((1, n_components)), np.ones((1, n_components))
        spread = np.einsum("nk,ckl,nl->nc", traits, self.covariance, traits)
        return traits @ self.effects.T, 1.0 + spread


@dataclass(frozen=True, slots=True)
class ProcessWeights:
    """Weights w_c of some components as Gaussian processes of user features; the others N(0, variance)."""

    projection: Projection  # from the points to the users
    process: BoolArray  # components that are processes, (C,)
    mean: FloatArray  # at the points, (M, C), with covariance (C, M, M); read where ``process``
    covariance: FloatArray
    variance: FloatArray  # 1/s of the prior of each, (C,)

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """See :class:`WeightPrior`: the Gaussian process at the user's features, crowdgppl.md 2.2, eq. 20."""
        if traits is None:
            return np.zeros((1, n_components)), self.variance[None, :].copy()
        n, old = len(traits), self.projection.n_items
        rows = self.projection.with_items(traits, np.ones(n, dtype=bool))
        assert rows.A is not None
        A, own = rows.A[old:], rows.own[old:]
        mean, var = np.zeros((n, n_components)), np.tile(self.variance, (n, 1))
        for c in np.flatnonzero(self.process):
            mean[:, c] = A @ self.mean[:, c]
            var[:, c] = own * self.variance[c] + np.einsum("nm,nm->n", A @ self.covariance[c], A)
        return mean, var
