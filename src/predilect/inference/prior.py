"""Hyper-parameters of the population model, and the item covariance K₀."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels import squared_exponential

__all__ = ["FeatureSpace", "Hyperparameters"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Hyper-parameters of the population model (population.md section 1). Variances are in units of the answer noise.

    Attributes
    ----------
    strength : float
        ν₀, weight of the prior of the population covariance, in people.
    scale : float
        s₀, prior variance of a person's utility about the consensus.
    consensus_scale : float
        s_t, prior variance of a consensus utility.
    feature_weight : float
        w, share of the prior variance that item features explain.
    length_scale : float
        ℓ of the squared exponential kernel, in standard deviations of a feature.
    consensus_feature_weight : float, optional
        w of the consensus; by default ``feature_weight``. Features may explain how people differ but not what they
        agree on, or the other way round.
    trait_scale : float
        s_b, prior variance of the effect of a person's trait on a utility; 0 if traits are not used.
    variance_factor : float
        κ: the probability of an answer is that of a margin with mean E z and variance κ (Var z)ᵉ. With e = 1: 1 where
        utilities are Gaussian as modelled, smaller where people are easier to predict than that, larger where a point
        estimate of the population is overconfident.
    variance_factor_unseen : float, optional
        κ₀: the same for two items on which the person has no answer; by default κ. A pair with one such item takes
        √(κ κ₀).
    variance_factor_implied : float, optional
        κ₌: the same where the answer follows from others of the person by transitivity; by default κ.
    variance_power : float
        e: above 1 where margins of small variance are known better still than κ says.
    threshold_factor : float
        γ: factor of the tie threshold in predictions.
    noise_factor : float
        τ²: variance of the answer noise in predictions; 1 in the fit.
    lapse_rate, lapse_noise : float
        λ and k: share of careless answers, and the variance of their noise; inf is a fair coin.
    tie_spread : float
        σ_δ: the logarithm of a person's own tie threshold is N(log δ, σ_δ²); 0 where all share one.
    """

    strength: float
    scale: float
    consensus_scale: float
    feature_weight: float
    length_scale: float
    consensus_feature_weight: float | None = None
    trait_scale: float = 0.0
    variance_factor: float = 1.0
    variance_factor_unseen: float | None = None
    variance_factor_implied: float | None = None
    variance_power: float = 1.0
    threshold_factor: float = 1.0
    noise_factor: float = 1.0
    lapse_rate: float = 0.0
    lapse_noise: float = math.inf
    tie_spread: float = 0.0

    @property
    def consensus_weight(self) -> float:
        """W of the consensus, given or shared."""
        return self.feature_weight if self.consensus_feature_weight is None else self.consensus_feature_weight

    @property
    def unseen_factor(self) -> float:
        """κ₀, given or equal to κ."""
        return self.variance_factor if self.variance_factor_unseen is None else self.variance_factor_unseen

    @property
    def implied_factor(self) -> float:
        """κ₌, given or equal to κ."""
        return self.variance_factor if self.variance_factor_implied is None else self.variance_factor_implied

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        return {
            **asdict(self), "consensus_feature_weight": self.consensus_weight,
            "variance_factor_unseen": self.unseen_factor, "variance_factor_implied": self.implied_factor,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class FeatureSpace:
    """Standardised item features, (n_items, n_columns), for the kernel part of K₀."""

    matrix: FloatArray
    known: npt.NDArray[np.bool_]  # an item without features is uncorrelated with all others

    @classmethod
    def empty(cls, n_items: int) -> FeatureSpace:
        """Feature space of items without features."""
        return cls(np.zeros((n_items, 0)), np.zeros(n_items, dtype=bool))

    @property
    def informative(self) -> bool:
        """Whether features can explain anything: at least one column, and two items that have it."""
        return self.matrix.shape[1] > 0 and int(self.known.sum()) > 1

    def covariance(self, weight: float, length_scale: float) -> FloatArray:
        """Prior covariance K₀ = w K_θ + (1 - w) I, shape (n_items, n_items); unit diagonal."""
        n_items = len(self.known)
        if weight == 0.0 or not self.informative:
            return np.eye(n_items)
        K = weight * self._kernel(self, length_scale)
        np.fill_diagonal(K, 1.0)
        return K

    def cross(self, new: FeatureSpace, weight: float, length_scale: float) -> FloatArray:
        """Kernel part K_*o of the covariance between new items and these, shape (n_new, n_items)."""
        if weight == 0.0 or not self.informative:
            return np.zeros((len(new.known), len(self.known)))
        return np.asarray(weight * self._kernel(new, length_scale).T)

    def _kernel(self, other: FeatureSpace, length_scale: float) -> FloatArray:
        kernel = squared_exponential(self.matrix, other.matrix, length_scale)
        kernel[~self.known] = 0.0
        kernel[:, ~other.known] = 0.0
        return kernel
