"""The posterior of one utility function shared by everybody: the pooled model, and the consensus of a population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import symmetrise
from predilect.posteriors.pairs import pair_variance
from predilect.posteriors.utilities import Utilities

__all__ = ["GaussianPosterior", "centre", "pair_variance"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


def centre(mean: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Utilities centred over the items: only differences exist. Shapes (n,) and (n, n), as given."""
    row = covariance.mean(axis=0)
    return mean - mean.mean(), covariance - row[None, :] - row[:, None] + row.mean()


@dataclass(frozen=True, slots=True)
class GaussianPosterior:
    """f ~ N(mean, covariance) over items, or f = Φ m with m ~ N(mean, covariance), the same for every person.

    Attributes
    ----------
    mean : array of float, shape (M,)
    covariance : array of float, shape (M, M)
    Phi : array of float, shape (n_items, M), optional
        Functions of the items; by default m are the utilities of the items, M = n_items.
    """

    mean: FloatArray
    covariance: FloatArray
    Phi: FloatArray | None = None

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.mean if self.Phi is None else self.Phi)

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f(left) - f(right); ``users`` makes no difference. Shapes (n,)."""
        return self.person().margins(left, right)

    def utilities(self, user: int = -1) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items) of the utilities."""
        return self.person().dense()

    def consensus(self) -> tuple[FloatArray, FloatArray]:
        """The same as :meth:`utilities`: one function stands for everybody."""
        return self.utilities()

    def person(self, user: int = -1) -> Utilities:
        """The utilities in the form that boards are made of."""
        if self.Phi is None:
            return Utilities.of(self.mean, self.covariance)
        return Utilities(self.Phi @ self.mean, self.covariance, self.Phi, np.zeros(0, dtype=np.int64), np.zeros(0))

    def crowd(self) -> Utilities:
        """The same as :meth:`person`."""
        return self.person()

    def extended(self, A: FloatArray, R: FloatArray, *, consensus_scale: float) -> GaussianPosterior:
        """With new items appended: mean A f, covariance s_t R + A C Aᵀ (population.md section 6).

        Parameters
        ----------
        A : array of float, shape (n_new, n_items)
            K_*o K_oo⁻¹.
        R : array of float, shape (n_new, n_new)
            K_** - A K_o*.
        consensus_scale : float
            s_t.
        """
        cross = A @ self.covariance
        block = np.block([[self.covariance, cross.T], [cross, consensus_scale * R + cross @ A.T]])
        return GaussianPosterior(np.concatenate([self.mean, A @ self.mean]), symmetrise(block))
