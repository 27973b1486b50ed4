"""Utilities as linear functions of basis functions of the items, with an item-specific residual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Basis", "Effects"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Basis:
    """f_u = Φ β_u + e_u: basis functions of the items, and item-specific residuals (population.md section 6)."""

    Phi: FloatArray  # Φ, (n_items, M)
    rho: FloatArray  # variance over people of e_ui, (n_items,); empty without residuals
    offset: FloatArray  # posterior of the mean over people of e_ui, item by item; empty like ``rho``
    offset_variance: FloatArray
    own_scale: float  # ``rho`` per unit of an item's share of the prior variance, for new items

    @property
    def has_own(self) -> bool:
        """Whether items have residuals of their own."""
        return len(self.rho) > 0

    def mean(self, m: FloatArray) -> FloatArray:
        """Consensus of the items, (n_items,), from that of the functions."""
        return self.Phi @ m + self.offset if self.has_own else np.asarray(self.Phi @ m)

    def extended(self, Phi: FloatArray, share: FloatArray, consensus_scale: float) -> Basis:
        """With new items without answers: rows ``Phi``, residual ``share`` (n_new,); ``consensus_scale`` is s_t."""
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
    """Effects B x_u of user traits on the prior mean of user u's utilities."""

    B: FloatArray  # (M, n_traits), on the basis of the population covariance
    # (M, M), posterior of one trait's effect; traits are uncorrelated, their effects independent
    covariance: FloatArray
