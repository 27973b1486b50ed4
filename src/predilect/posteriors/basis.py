"""Utilities that hang on a few functions of the items, with what is left to each item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Basis", "Effects"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Basis:
    """f_u = Φ β_u + e_u: a function of the items, and what each item has to itself (population.md section 6).

    Attributes
    ----------
    Phi : array of float, shape (n_items, M)
        Φ.
    rho : array of float, shape (n_items,)
        Variance over people of e_ui; empty if Φ says everything.
    offset, offset_variance : arrays of float, shape (n_items,)
        Posterior of the mean of e_ui over people, item by item; empty like ``rho``.
    own_scale : float
        What ``rho`` is per unit of an item's share of the prior variance; for new items.
    """

    Phi: FloatArray
    rho: FloatArray
    offset: FloatArray
    offset_variance: FloatArray
    own_scale: float

    @property
    def has_own(self) -> bool:
        """Whether items have anything to themselves."""
        return len(self.rho) > 0

    def mean(self, m: FloatArray) -> FloatArray:
        """Consensus of the items, shape (n_items,), from that of the functions."""
        return self.Phi @ m + self.offset if self.has_own else np.asarray(self.Phi @ m)

    def extended(self, Phi: FloatArray, share: FloatArray, consensus_scale: float) -> Basis:
        """With new items, on which there are no answers, appended.

        Parameters
        ----------
        Phi : array of float, shape (n_new, M)
        share : array of float, shape (n_new,)
            Their share of the prior variance; empty if they have nothing to themselves.
        consensus_scale : float
            s_t.
        """
        rows = np.vstack([self.Phi, Phi])
        if not self.has_own and not len(share):
            return Basis(rows, self.rho, self.offset, self.offset_variance, self.own_scale)
        nothing, zero = np.zeros(len(self.Phi)), np.zeros(len(Phi))
        share = share if len(share) else zero

        def join(old: FloatArray, new: FloatArray) -> FloatArray:
            return np.concatenate([old if self.has_own else nothing, new])

        return Basis(
            rows, join(self.rho, self.own_scale * share), join(self.offset, zero),
            join(self.offset_variance, consensus_scale * share), self.own_scale,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Effects:
    """How traits of people move their utilities: the prior mean of person u is shifted by B x_u.

    Attributes
    ----------
    B : array of float, shape (M, n_traits)
        On the functions that carry the population covariance.
    covariance : array of float, shape (M, M)
        Posterior covariance of the effect of one trait; traits are standardised and uncorrelated, so their effects
        count as independent.
    """

    B: FloatArray
    covariance: FloatArray
