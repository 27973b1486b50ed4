"""Posterior of one utility function through inducing points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from predilect.gaussian.dense import symmetrise
from predilect.gaussian.pairs import pair_variance
from predilect.gaussian.posterior import Posterior
from predilect.gaussian.projection import Projection, item_covariance
from predilect.gaussian.utilities import Utilities

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class SparsePosterior(Posterior):
    """f = A f_m + r with f_m ~ N(mean, covariance) and r ~ N(0, R/scale), the same for every user.

    crowdgppl.md 2.2, eqs. 14 and 20 corrected: A S Aᵀ + (K_nn - A K_mn)/E s.
    """

    is_pooled: ClassVar[bool] = True

    projection: Projection  # A and R
    mean: FloatArray  # of f at the inducing points, (M,)
    covariance: FloatArray
    scale: float  # E s, the inverse scale of the prior

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.projection.n_items

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f(left) - f(right), (n,), residual included; ``users`` makes no difference."""
        left, right = np.asarray(left), np.asarray(right)
        f = self.projection.expand(self.mean)
        var = pair_variance(self.covariance, left, right, self.projection.A)
        return f[left] - f[right], var + self.projection.residual_pairs(left, right) / self.scale

    def utilities(self, user: int = -1) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items) of the utilities; exact for any number of items."""
        S = self.covariance if self.projection.A is None else self.projection.A @ self.covariance @ self.projection.A.T
        return self.projection.expand(self.mean), symmetrise(S + self.projection.residual() / self.scale)

    def consensus(self) -> tuple[FloatArray, FloatArray]:
        """The same as :meth:`utilities`: one function for all users."""
        return self.utilities()

    def person(self, user: int = -1) -> Utilities:
        """Utilities in the form that boards are made from: for very many items coarser than :meth:`margins`."""
        return Utilities.through(self.projection, self.mean, self.covariance, 1.0 / self.scale)

    def crowd(self) -> Utilities:
        """The same as :meth:`person`."""
        return self.person()

    def prior(self) -> Utilities:
        """Prior of the utilities."""
        p = self.projection
        return Utilities.of(np.zeros(p.n_items), item_covariance(p.kernel, p.features, p.known) / self.scale)

    def with_items(self, features: FloatArray, known: npt.NDArray[np.bool_]) -> SparsePosterior:
        """With items appended that have no answers; those without features get the prior, uncorrelated with others."""
        return replace(self, projection=self.projection.with_items(features, known))
