"""Gaussian process through pseudo-inputs (FITC), conditioned on sites: n m² operations, n m memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import Factor, factorise, symmetrise
from predilect.posteriors.sites import Sites

__all__ = ["Fitc", "FitcConditioned"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FitcConditioned:
    """FITC posterior given sites."""

    mean: FloatArray  # marginals, (n,)
    var: FloatArray
    log_z: float  # log ∫ N(f; 0, K') Π_i exp(linear_i f_i - precision_i f_i²/2) df
    point_mean: FloatArray  # of the values at the pseudo-inputs, (m,), with covariance (m, m)
    point_covariance: FloatArray


@dataclass(frozen=True, slots=True)
class Fitc:
    """FITC prior K' = K_nm K_m⁻¹ K_mn + Δ with Δ = diag(K - K_nm K_m⁻¹ K_mn)."""

    factor: Factor  # of K_m
    cross: FloatArray  # K_nm, (n, m)
    own: FloatArray  # Δ, (n,), at least 0

    @classmethod
    def of(cls, K_m: FloatArray, K_nm: FloatArray, diagonal: FloatArray) -> Fitc:
        """From covariances (m, m), (n, m) and variances (n,); NotPositiveDefiniteError if K_m is singular."""
        factor = factorise(K_m)
        half = factor.solve_lower(K_nm.T)
        own = diagonal - np.einsum("mn,mn->n", half, half)
        return cls(factor, K_nm, np.maximum(own, 0.0))

    def condition(self, sites: Sites) -> FitcConditioned:
        """Posterior given sites of precision 0 or more. collaborative.md 4, without dividing by a precision.

        Whitened, B = L_K (I + Wᵀ T' W) L_Kᵀ, W = K_nm L_K⁻ᵀ, T' = τ/(1 + Δτ): a nearly singular K_m does no harm.
        """
        tau, nu = sites.precision, sites.linear
        spread = 1.0 + self.own * tau
        W = self.factor.solve_lower(self.cross.T).T
        B = factorise(symmetrise(np.eye(W.shape[1]) + W.T @ ((tau / spread)[:, None] * W)))
        half = B.solve_lower(W.T) / spread  # L_B⁻¹ P'ᵀ
        pull = half @ nu
        mean = self.own * nu / spread + pull @ half
        var = self.own / spread + np.einsum("mn,mn->n", half, half)
        log_z = 0.5 * float(nu @ mean) - 0.5 * B.log_det() - 0.5 * float(np.log(spread).sum())
        root = B.solve_lower(self.factor.lower.T)  # L_B⁻¹ L_Kᵀ
        return FitcConditioned(mean, var, log_z, pull @ root, symmetrise(root.T @ root))
