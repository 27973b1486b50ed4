"""Variational approximation q(u) q(s): Gaussian whitened values, Gamma inverse scale, and their KL divergence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import digamma, gammaln

from predilect._types import FloatArray
from predilect.gaussian.dense import Factor, factorise


@dataclass(frozen=True, slots=True)
class Approximation:
    """q(u) = N(mean, precision⁻¹) of the whitened values u at M points; f = B u + r."""

    precision: FloatArray  # Λ
    linear: FloatArray  # h = Λ mean
    factor: Factor  # of Λ
    mean: FloatArray
    square: float  # E uᵀ u = E f_mᵀ K_mm⁻¹ f_m

    @classmethod
    def of(cls, precision: FloatArray, linear: FloatArray) -> Self:
        """Approximation of given natural parameters; M³ operations."""
        return cls(precision, linear, *solved(precision, linear))

    @classmethod
    def prior(cls, n_points: int, scale: float) -> Self:
        """Prior N(0, I / scale)."""
        return cls.of(scale * np.eye(n_points), np.zeros(n_points))

    def towards(self, precision: FloatArray, linear: FloatArray, step: float) -> Approximation:
        """Natural-gradient step: a convex mix of natural parameters."""
        if step == 1.0:
            return Approximation.of(precision, linear)
        return Approximation.of(
            (1.0 - step) * self.precision + step * precision, (1.0 - step) * self.linear + step * linear
        )


def solved(precision: FloatArray, linear: FloatArray) -> tuple[Factor, FloatArray, float]:
    """Factor of Λ, mean u and E uᵀu of N(Λ⁻¹h, Λ⁻¹); M³ operations."""
    factor = factorise(precision)
    mean = factor.solve(linear)
    root = factor.solve_lower(np.eye(len(linear)))
    return factor, mean, float(mean @ mean) + float(np.sum(root * root))


@dataclass(frozen=True, slots=True)
class Scale:
    """q(s) = Gamma(shape, rate) of the inverse scale s: f_m ~ N(0, K_mm / s), r ~ N(0, R / s)."""

    shape: float
    rate: float
    prior_shape: float  # α₀
    prior_rate: float  # β₀, "scale" in the paper
    learned: bool = True  # if not, s is α₀/β₀ for certain, and the Gamma has no part in the bound

    @classmethod
    def prior(cls, shape: float, rate: float, n_points: int, learned: bool = True) -> Self:
        """Prior mean with the shape of the posterior, α₀ + M/2; ValueError if shape or rate is not positive."""
        if not (shape > 0.0 and rate > 0.0 and math.isfinite(shape) and math.isfinite(rate)):
            raise ValueError(f"the prior of the inverse scale needs a positive shape and rate, not {shape} and {rate}")
        alpha = shape + 0.5 * n_points
        return cls(alpha, alpha * rate / shape, shape, rate, learned)

    @property
    def value(self) -> float:
        """Mean E s."""
        return self.shape / self.rate

    @property
    def log(self) -> float:
        """E log s = ψ(α) - log β (crowdgppl.md 2.2, eq. 55 corrected)."""
        return float(digamma(self.shape)) - math.log(self.rate) if self.learned else math.log(self.value)

    def at(self, value: float) -> Scale:
        """Scale with another mean, the shape kept."""
        return replace(self, rate=self.shape / value)

    def best(self, square: float, residual: float = 0.0) -> float:
        """Optimal mean of s given q(u); arguments as :func:`best_scale`."""
        return best_scale(self.shape, self.prior_rate, square, residual)


def best_scale(alpha: float, rate: float, square: float, residual: float = 0.0) -> float:
    """Mean of q(s) = Gamma(α, α/ŝ) at the optimum of the bound given q(u).

    ``alpha`` is α = α₀ + M/2, ``rate`` β₀, ``square`` E uᵀ u, ``residual`` Σ_p weight_p λ_p r_p with r_p the residual
    variance of answer p at s = 1 (times E w² of its weight in the margin). The bound depends on q(s) by

        (α₀ + M/2 - α) (ψ(α) - log α) terms + (α₀ + M/2) log ŝ - (β₀ + E uᵀu / 2) ŝ + Σ_p weight_p ℓ_p(v_p + r_p/ŝ),

    so α = α₀ + M/2 whatever the data, and with dℓ/dv = -λ/2 held, ŝ solves a ŝ - b ŝ² + residual/2 = 0 with a = α, b =
    β₀ + E uᵀu / 2. In log ŝ the held problem is concave, so the step to its solution is an ascent direction of the
    bound itself; a caller who needs ascent halves the step where that is too long. Without residuals it is the
    conjugate update of crowdgppl.md 2.2; modern.md 6 takes a gradient step where there are residuals.
    """
    b = rate + 0.5 * square
    return (alpha + math.sqrt(alpha * alpha + 2.0 * b * residual)) / (2.0 * b)


def divergence(q: Approximation, scale: Scale) -> float:
    """KL(q(u, s) || p(u, s)): crowdgppl.md 2.6 (eqs. 35, 53 corrected), whitened: log |K_mm| - log |S| = log |Λ|."""
    M = len(q.mean)
    gaussian = 0.5 * (q.factor.log_det() - M * scale.log - M + scale.value * q.square)
    if not scale.learned:
        return gaussian
    a, b, a_0, b_0 = scale.shape, scale.rate, scale.prior_shape, scale.prior_rate
    gamma = (
        float(gammaln(a_0) - gammaln(a)) - a_0 * math.log(b_0) + a * math.log(b)
        + (a - a_0) * scale.log - (b - b_0) * scale.value
    )  # fmt: skip
    return gaussian + gamma
