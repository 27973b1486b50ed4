"""Gaussian posterior of a function of the items in whitened coordinates, given answers on pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from predilect._types import FloatArray, IntArray
from predilect.gaussian.projection import Projection
from predilect.latent.sparse.approximation import best_scale, solved
from predilect.latent.sparse.margins import Margins, margins_of


class GammaPrior(NamedTuple):
    """s ~ Gamma(shape, rate); (0, 0): s maximises the bound (ML-II)."""

    shape: float
    rate: float


@dataclass(frozen=True, slots=True)
class FunctionState:
    """q(x) = N(mean, (L Lᵀ)⁻¹) of a function f = G x + r with prior x ~ N(0, I/s), r ~ N(0, R/s)."""

    mean: FloatArray
    lower: FloatArray  # L, (M, M)
    square: float  # E xᵀx
    log_det: float  # of the covariance
    delta: FloatArray  # mean of f(left) - f(right), (n_pairs,); of people's weights, of each
    D: FloatArray  # its variance without that of r

    def divergence(self, s: float) -> float:
        """KL(q(x) || N(0, I/s))."""
        M = len(self.mean)
        return 0.5 * (s * self.square - M - M * math.log(s) - self.log_det)

    @classmethod
    def of(cls, margins: Margins, precision: FloatArray, linear: FloatArray) -> FunctionState:
        """q(x) with natural parameters ``precision`` (M, M), prior included, and ``linear`` (M,)."""
        factor, mean, square = solved(precision, linear)
        variances = margins.variance(factor.lower)
        return cls(mean, factor.lower, square, -factor.log_det(), margins.mean(mean), variances)


@dataclass(frozen=True, slots=True)
class ItemDesign:
    """Design of item functions: rows G = A L_K, K_mm = L_K L_Kᵀ, so that no kernel matrix is ever inverted."""

    projection: Projection
    G: FloatArray
    left: IntArray
    right: IntArray
    margins: Margins
    residual: FloatArray  # (n_pairs,): variance of r(left) - r(right) at s = 1

    @classmethod
    def of(cls, projection: Projection, left: IntArray, right: IntArray) -> ItemDesign:
        """Design for given pairs."""
        G = projection.roots()
        return cls(projection, G, left, right, margins_of(G, left, right), projection.residual_pairs(left, right, G))

    @property
    def n_points(self) -> int:
        """Number of points M."""
        return int(self.G.shape[1])

    def prior_variances(self) -> FloatArray:
        """Variance of f(left) - f(right) at s = 1, without that of r; shape (n_pairs,)."""
        return self.margins.variance(np.eye(self.n_points))


def scale_step(prior: GammaPrior, n_points: int, square: float, residual: float) -> float:
    """E s that maximises the bound with all else held; the last two as in ``best_scale``."""
    return best_scale(prior.shape + 0.5 * n_points, prior.rate, square, residual)


def scale_bound(prior: GammaPrior, n_points: int, s: float) -> float:
    """Part of the bound at E s = s of q(s) = Gamma(α, α/s): E ln p(s) - E ln q(s) + M (E ln s - ln s)/2."""
    alpha = prior.shape + 0.5 * n_points
    gap = float(digamma(alpha)) - math.log(alpha)  # E ln s - ln s
    log_s = math.log(s) + gap
    entropy = alpha - math.log(alpha / s) + float(gammaln(alpha)) + (1.0 - alpha) * float(digamma(alpha))
    if prior.shape <= 0.0 or prior.rate <= 0.0:  # p(s) ∝ 1/s, up to a constant
        return entropy - log_s + 0.5 * n_points * gap
    a, b = prior
    prior_term = a * math.log(b) - float(gammaln(a)) + (a - 1.0) * log_s - b * s
    return entropy + prior_term + 0.5 * n_points * gap
