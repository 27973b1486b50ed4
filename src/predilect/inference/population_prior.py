"""The prior of the population model on whatever utilities hang on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigvalsh
from scipy.optimize import brentq

from predilect.inference.basis import Functions
from predilect.inference.prior import FeatureSpace, Hyperparameters

__all__ = ["LEAST_STRENGTH", "PopulationPrior", "are_few", "dimension", "first_scale", "least_strength"]

FloatArray = npt.NDArray[np.float64]

# With less strength than this, in directions that matter, one person can have a direction of Σ to himself, and J keeps
# rewarding it.
LEAST_STRENGTH = 0.5
_SMALLEST_FIRST_SCALE = 0.5
# What J gains at most by one more direction of Σ that holds answers by heart, over what it pays for it per person and
# unit of strength: .57 nats an answer, over half of log(v / s₀), which is about 9 where that happens.
_GAIN_OVER_COST = 1.0 / 8.0
_FEW_PEOPLE = 0.5  # as a share of the functions that may vary on their own


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


def dimension(prior: PopulationPrior) -> float:
    """In how many directions people's prior variance exceeds the noise of an answer: Σ λ / (1 + λ) over s₀ K₀."""
    return _dimension(prior.scale * _spectrum(prior.K))


def n_free_functions(prior: PopulationPrior) -> float:
    """How many functions vary on their own: the participation ratio (tr K₀)² / tr K₀² of the prior's spectrum."""
    return float(np.trace(prior.K)) ** 2 / float(np.vdot(prior.K, prior.K))


def are_few(n_people: int, prior: PopulationPrior) -> bool:
    """Whether people are few for the functions that may vary on their own: then they may be learned by heart."""
    return n_people < _FEW_PEOPLE * n_free_functions(prior)


def least_strength(prior: PopulationPrior, n_people: int, n_answers: float) -> float:
    """The strength below which J may be largest where answers are learned by heart.

    Notes
    -----
    A direction over n items separates up to 2n answers without error (Cover's capacity), whoever gave them. It gains
    J the log loss of so many answers, and costs ½ (U + ν₀) log(v / s₀) for its variance v.
    """
    by_heart = _GAIN_OVER_COST * min(2.0 * n_free_functions(prior), n_answers) - n_people
    return max(LEAST_STRENGTH * dimension(prior), by_heart)


def first_scale(prior: PopulationPrior, n_people: int) -> float:
    """Prior scale of the Σ from which a search starts, for a crowd of so many people who answered.

    Notes
    -----
    Σ shrinks in a few passes where it must, but grows slowly, so that a small prior is no good start. But from a Σ that
    is large in more directions than people and prior can hold, the search goes to another maximum of J, where a few
    directions, far beyond the prior, hold every answer of everybody by heart; it takes hundreds of passes to get there.
    """
    if prior.scale >= _SMALLEST_FIRST_SCALE:
        return prior.scale
    most = (prior.strength + n_people) / LEAST_STRENGTH
    if min(prior.n_functions, _SMALLEST_FIRST_SCALE * float(np.trace(prior.K))) <= most:  # a bound of the dimension
        return _SMALLEST_FIRST_SCALE
    values = _spectrum(prior.K)

    def excess(log_scale: float) -> float:
        return _dimension(math.exp(log_scale) * values) - most

    low, high = math.log(prior.scale), math.log(_SMALLEST_FIRST_SCALE)
    if excess(high) <= 0.0:
        return _SMALLEST_FIRST_SCALE
    return prior.scale if excess(low) >= 0.0 else math.exp(brentq(excess, low, high))


def _spectrum(K: FloatArray) -> FloatArray:
    diagonal = np.diagonal(K)
    plain = np.array_equal(K, np.diag(diagonal))
    return np.maximum(diagonal if plain else eigvalsh(K, check_finite=False), 0.0)


def _dimension(values: FloatArray) -> float:
    shares: list[float] = (values / (1.0 + values)).tolist()
    return math.fsum(shares)
