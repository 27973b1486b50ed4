"""Posterior of one utility function shared by all users: the pooled model, and the consensus of a population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from predilect.gaussian.dense import symmetrise
from predilect.gaussian.posterior import Posterior
from predilect.gaussian.utilities import Utilities

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


def centre(mean: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (n,) and covariance (n, n) of utilities centred over the items: only differences are identified."""
    row = covariance.mean(axis=0)
    return mean - mean.mean(), covariance - row[None, :] - row[:, None] + row.mean()


@dataclass(frozen=True, slots=True)
class GaussianPosterior(Posterior):
    """Pooled utilities f ~ N(mean, covariance), or f = Φ m with m ~ N(mean, covariance), the same for every user."""

    is_pooled: ClassVar[bool] = True

    mean: FloatArray  # (M,), of the items by default
    covariance: FloatArray
    Phi: FloatArray | None = None  # basis functions of the items, (n_items, M)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.mean if self.Phi is None else self.Phi)

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f(left) - f(right), (n,); ``users`` makes no difference."""
        return self.person().margins(left, right)

    def person(self, user: int = -1) -> Utilities:
        """Utilities in the form that boards are made from."""
        if self.Phi is None:
            return Utilities.of(self.mean, self.covariance)
        return Utilities(self.Phi @ self.mean, self.covariance, self.Phi, np.zeros(0, dtype=np.int64), np.zeros(0))

    def crowd(self) -> Utilities:
        """The same as :meth:`person`."""
        return self.person()

    def extended(self, A: FloatArray, R: FloatArray, *, consensus_variance: float) -> GaussianPosterior:
        """With new items: mean A f, covariance s_t R + A C Aᵀ (population.md section 6).

        A = K_*o K_oo⁻¹ (n_new, n_items), R = K_** - A K_o* (n_new, n_new); ``consensus_variance`` is s_t.
        """
        cross = A @ self.covariance
        block = np.block([[self.covariance, cross.T], [cross, consensus_variance * R + cross @ A.T]])
        return GaussianPosterior(np.concatenate([self.mean, A @ self.mean]), symmetrise(block))
