"""The prior of the population model on whatever utilities hang on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from predilect.inference.basis import Functions
from predilect.inference.prior import FeatureSpace, Hyperparameters

__all__ = ["PopulationPrior"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PopulationPrior:
    """What is believed before any answer.

    Attributes
    ----------
    K : array of float, shape (M, M)
        K₀: how alike items are, unit diagonal (M = n_items), or the prior shape of Σ on the functions of a basis.
    strength : float
        ν₀, the weight of the prior of Σ, in people.
    scale : float
        s₀, prior variance of a person's utility about the consensus.
    consensus_scale : float
        s_t, prior variance of a consensus utility.
    K_consensus : array of float, shape (M, M), optional
        K_t; K₀ unless given.
    Phi : array of float, shape (n_items, M), optional
        The basis; by default the items.
    own_share : array of float, shape (n_items,)
        Share of the prior variance that an item has to itself; empty if none has any.
    trait_scale : float
        s_b, prior variance of the effect of a trait of people; its shape is K_t.
    tie_spread : float
        σ_δ, prior standard deviation of the logarithm of a person's own tie threshold; 0: one for all.
    """

    K: FloatArray
    strength: float
    scale: float
    consensus_scale: float
    K_consensus: FloatArray | None = None
    Phi: FloatArray | None = None
    own_share: FloatArray = field(default_factory=lambda: np.zeros(0))
    trait_scale: float = 1.0
    tie_spread: float = 0.0

    @classmethod
    def of(
        cls,
        h: Hyperparameters,
        space: FeatureSpace,
        functions: Functions | None = None,
        Phi: FloatArray | None = None,
    ) -> PopulationPrior:
        """The prior that hyper-parameters and features make; ``Phi`` saves computing the rows of the functions."""
        traits = h.trait_scale or 1.0
        if functions is not None:
            Phi = functions.rows(space) if Phi is None else Phi
            share = functions.own_share(Phi, space.known, h.feature_weight)
            K = functions.prior_covariance(h.feature_weight)
            return cls(K, h.strength, h.scale, h.consensus_scale, None, Phi, share, traits, h.tie_spread)
        K = space.covariance(h.feature_weight, h.length_scale)
        shared = h.consensus_weight == h.feature_weight
        K_t = None if shared else space.covariance(h.consensus_weight, h.length_scale)
        return cls(K, h.strength, h.scale, h.consensus_scale, K_t, trait_scale=traits, tie_spread=h.tie_spread)

    @property
    def n_functions(self) -> int:
        """M."""
        return len(self.K)
