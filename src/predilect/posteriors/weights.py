"""The law of the weights of somebody who has not answered: nothing known, linear in features, or a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from predilect.posteriors.projection import Projection

__all__ = ["LinearWeights", "ProcessWeights", "StandardWeights", "WeightPrior"]

FloatArray = npt.NDArray[np.float64]


class WeightPrior(Protocol):
    """Mean and variance of the weights of people without answers."""

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Shapes (n, C) for traits of shape (n, n_traits), or (1, C) if nothing is known."""
        ...


@dataclass(frozen=True, slots=True)
class StandardWeights:
    """w_c ~ N(0, variance), whatever is known of the person.

    Attributes
    ----------
    variance : array of float, shape (C,), or None
        None: 1.
    """

    variance: FloatArray | None = None

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """See :class:`WeightPrior`."""
        n = 1 if traits is None else len(traits)
        variance = np.ones(n_components) if self.variance is None else self.variance
        return np.zeros((n, n_components)), np.tile(variance, (n, 1))


@dataclass(frozen=True, slots=True)
class LinearWeights:
    """w = B x + ε with ε ~ N(0, I): modern.md 5.

    Attributes
    ----------
    effects : array of float, shape (C, n_traits)
        E B.
    covariance : array of float, shape (C, n_traits, n_traits)
        Of each row of B.
    """

    effects: FloatArray
    covariance: FloatArray

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """See :class:`WeightPrior`; unknown features are those of the average person, zero."""
        if traits is None:
            return np.zeros((1, n_components)), np.ones((1, n_components))
        spread = np.einsum("nk,ckl,nl->nc", traits, self.covariance, traits)
        return traits @ self.effects.T, 1.0 + spread


@dataclass(frozen=True, slots=True)
class ProcessWeights:
    """Some components have w_c = a Gaussian process of people's features, at points; the others N(0, variance).

    Attributes
    ----------
    projection : Projection
        From the points to the people.
    process : array of bool, shape (C,)
        Which components are processes.
    mean, covariance : arrays of float, shapes (M, C) and (C, M, M)
        At the points; read where ``process``.
    variance : array of float, shape (C,)
        1/s of the prior of each.
    """

    projection: Projection
    process: npt.NDArray[np.bool_]
    mean: FloatArray
    covariance: FloatArray
    variance: FloatArray

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """See :class:`WeightPrior`: the Gaussian process at the person's features, crowdgppl.md 2.2, eq. 20."""
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
