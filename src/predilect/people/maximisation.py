"""Closed-form M steps of the population model (population.md section 4)."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigh

from predilect._types import FloatArray
from predilect.gaussian.dense import Factor, factorise, symmetrise
from predilect.people.expectation import Expectation

_LARGEST_LOG_STEP = 1.0
_MOST_SPREAD_STEPS, _SPREAD_TOLERANCE, _SMALLEST_SPREAD = 500, 1e-4, 1e-3


def consensus_mode(m: FloatArray, precision: FloatArray, current: Expectation) -> FloatArray:
    """Consensus mode: the first result of :func:`consensus_step`, without the covariance; M³/3 operations."""
    return _consensus(m, precision, current)[0]


def consensus_step(m: FloatArray, precision: FloatArray, current: Expectation) -> tuple[FloatArray, FloatArray]:
    """Newton step of J in m, sites fixed: C_m = ((s_t K_t)⁻¹ + H)⁻¹, m' = C_m (r + H m); M³ operations."""
    m_new, factor = _consensus(m, precision, current)
    return m_new, factor.inverse()


def _consensus(m: FloatArray, precision: FloatArray, current: Expectation) -> tuple[FloatArray, Factor]:
    factor = factorise(symmetrise(precision + current.H))
    return factor.solve(current.r + current.H @ m), factor


def covariance_step(
    Sigma: FloatArray,
    current: Expectation,
    n_users: int,
    prior_mean: FloatArray,
    strength: float,
    *,
    power: float = 1.0,
) -> FloatArray:
    """Population covariance Σ' = (U Σ + Σ (N - H) Σ + ν₀ s₀ K₀) / (U + ν₀), over-relaxed along the geodesic.

    ``prior_mean`` is s₀ K₀, ``strength`` ν₀; ``power`` 1 is the EM step. Positive definite for every power. 4 M³
    operations for 1, 6 for 2, and some 15 for others.
    """
    new = symmetrise((n_users * Sigma + Sigma @ current.D @ Sigma + strength * prior_mean) / (n_users + strength))
    if power == 1.0:
        return new
    factor = factorise(Sigma)
    if power == 2.0:  # Σ' Σ⁻¹ Σ', which takes no eigenvectors
        half = factor.solve_lower(new)
        return symmetrise(half.T @ half)
    whitened = factor.solve_lower(factor.solve_lower(new).T)
    values, vectors = eigh(symmetrise(whitened), check_finite=False)
    root = factor.lower @ vectors
    return symmetrise((root * values**power) @ root.T)


def effects_step(B: FloatArray, precision: FloatArray, current: Expectation) -> tuple[FloatArray, FloatArray]:
    """Newton step of the trait effects B (M, n_traits), and the covariance of each; ``precision`` is (s_b K_t)⁻¹.

    Traits have mean 0, variance 1 and no correlation over people, and a person's information is taken not to depend on
    them: then Σ_u x_uj x_uk H_u is H for j = k and 0 otherwise.
    """
    factor = factorise(symmetrise(precision + current.H))
    return factor.solve(current.r_traits + current.H @ B), factor.inverse()


def offset_step(offset: FloatArray, precision: FloatArray, current: Expectation) -> FloatArray:
    """Item-specific residuals of the consensus, one step; shape (n_items,), empty as given.

    Twice the diagonal bounds the information of one answer from above, so that the step, unlike a Newton step on the
    diagonal only, does not overshoot where two items are compared. It is no bound on that of several answers of one
    person, but no crowd was found in which repeated steps fail to converge.
    """
    if not len(offset):
        return offset
    return np.asarray(offset + (current.r_items - precision * offset) / (precision + 2.0 * current.own_H))


def own_scale_step(
    own_scale: float, share: FloatArray, current: Expectation, n_own: int, scale: float, strength: float
) -> float:
    """EM step of the variance over people of item-specific residuals, per unit of their share (n_items,).

    ``n_own`` counts the (person, item) pairs that have one; ``scale``, ``strength``: s₀ and ν₀, the prior of Σ in 1-D.
    """
    if not len(share):
        return own_scale
    scatter = n_own * own_scale + own_scale**2 * float(share @ current.own_D)
    return (scatter + strength * scale) / (n_own + strength)


def threshold_step(delta: float, current: Expectation) -> float:
    """Newton step of the evidence in log δ, cavities held, at most a factor e."""
    slope = delta * current.slope_delta
    curvature = delta * delta * current.curvature_delta + slope
    step = -slope / curvature if curvature < 0.0 else math.copysign(_LARGEST_LOG_STEP, slope)
    return delta * math.exp(float(np.clip(step, -_LARGEST_LOG_STEP, _LARGEST_LOG_STEP)))


def ties_step(log_factor: FloatArray, spread: float, current: Expectation) -> tuple[FloatArray, FloatArray]:
    """Newton step of people's own thresholds, log δ_u = log δ + θ_u, θ_u ~ N(0, spread²), with the cavities held.

    Returns the new θ (n_users,), at most a factor e away, and its information from the answers, prior excluded.
    """
    slope, curvature = current.ties.T
    information = np.maximum(-curvature, 0.0)
    step = (slope - log_factor / spread**2) / (information + spread**-2)
    return log_factor + np.clip(step, -_LARGEST_LOG_STEP, _LARGEST_LOG_STEP), information


def tie_spread_of(log_factor: FloatArray, information: FloatArray, spread: float) -> float:
    """Empirical-Bayes σ of people's thresholds by EM, with a Gaussian likelihood of each θ_u about its mode.

    The modes ``log_factor`` (n,) were found under N(0, ``spread``²); ``information`` excludes the prior.
    """
    linear = log_factor * (information + spread**-2)  # of the likelihood without the prior
    for _ in range(_MOST_SPREAD_STEPS):
        variance = 1.0 / (information + spread**-2)
        new = math.sqrt(float(np.mean((linear * variance) ** 2 + variance)))
        done = abs(new - spread) < _SPREAD_TOLERANCE * spread
        spread = max(new, _SMALLEST_SPREAD)
        if done:
            break
    return spread
