"""The posterior of one utility function known through its values at inducing points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import symmetrise
from predilect.posteriors.pairs import pair_variance
from predilect.posteriors.projection import Projection
from predilect.posteriors.utilities import Utilities

__all__ = ["SparsePosterior"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class SparsePosterior:
    """f = A f_m + r with f_m ~ N(mean, covariance) and r ~ N(0, R/scale), the same for every person.

    Attributes
    ----------
    projection : Projection
        A and R.
    mean : array of float, shape (M,)
        Of f at the inducing points.
    covariance : array of float, shape (M, M)
    scale : float
        E s, the inverse scale of the prior.

    Notes
    -----
    crowdgppl.md 2.2, eqs. 14 and 20 corrected: A S Aᵀ + (K_nn - A K_mn)/E s.
    """

    projection: Projection
    mean: FloatArray
    covariance: FloatArray
    scale: float

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.projection.n_items

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f(left) - f(right), residual included; ``users`` makes no difference. Shapes (n,).

        Notes
        -----
        Operations as :func:`~predilect.posteriors.pairs.pair_variance` and :meth:`Projection.residual_pairs` have them.
        """
        left, right = np.asarray(left), np.asarray(right)
        f = self.projection.expand(self.mean)
        var = pair_variance(self.covariance, left, right, self.projection.A)
        return f[left] - f[right], var + self.projection.residual_pairs(left, right) / self.scale

    def utilities(self, user: int = -1) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items) of the utilities; exact for any number of items."""
        S = self.covariance if self.projection.A is None else self.projection.A @ self.covariance @ self.projection.A.T
        return self.projection.expand(self.mean), symmetrise(S + self.projection.residual() / self.scale)

    def consensus(self) -> tuple[FloatArray, FloatArray]:
        """The same as :meth:`utilities`: one function stands for everybody."""
        return self.utilities()

    def person(self, user: int = -1) -> Utilities:
        """The utilities in the form that boards are made of: of very many items coarser than :meth:`margins`."""
        return Utilities.through(self.projection, self.mean, self.covariance, 1.0 / self.scale)

    def crowd(self) -> Utilities:
        """The same as :meth:`person`."""
        return self.person()

    def with_items(self, features: FloatArray, known: npt.NDArray[np.bool_]) -> SparsePosterior:
        """With items appended that nobody was asked about.

        Parameters
        ----------
        features : array of float, shape (n_new, d)
        known : array of bool, shape (n_new,)
            Whether an item has features; one without has the prior, apart from all others.
        """
        return replace(self, projection=self.projection.with_items(features, known))
