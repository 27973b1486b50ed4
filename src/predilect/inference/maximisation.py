"""The closed-form M steps of the population model (population.md section 4)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from predilect.covariance.dense import Factor, factorise, symmetrise
from predilect.inference.expectation import Expectation

__all__ = [
    "consensus_mode",
    "consensus_step",
    "covariance_step",
    "effects_step",
    "offset_step",
    "own_scale_step",
    "threshold_step",
    "tie_spread_of",
    "ties_step",
]

FloatArray = npt.NDArray[np.float64]

_LARGEST_LOG_STEP = 1.0
_MOST_SPREAD_STEPS, _SPREAD_TOLERANCE, _SMALLEST_SPREAD = 500, 1e-4, 1e-3


def consensus_mode(m: FloatArray, precision: FloatArray, current: Expectation) -> FloatArray:
    """The first of what :func:`consensus_step` returns; without the covariance, M³/3 operations."""
    return _consensus(m, precision, current)[0]


def consensus_step(m: FloatArray, precision: FloatArray, current: Expectation) -> tuple[FloatArray, FloatArray]:
    """Posterior N(m', C_m) of the consensus, people integrated out, sites fixed.

    Parameters
    ----------
    m : array of float, shape (M,)
        The consensus at which ``current`` was computed.
    precision : array of float, shape (M, M)
        (s_t K_t)⁻¹.
    current : Expectation
        Sums over people.

    Returns
    -------
    m_new, C_m : arrays of float, shapes (M,) and (M, M)

    Notes
    -----
    C_m = ((s_t K_t)⁻¹ + H)⁻¹, m' = C_m (r + H m): the Newton step of J in m. M³ operations.
    """
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
    """New population covariance Σ' = (U Σ + Σ (N - H) Σ + ν₀ s₀ K₀) / (U + ν₀), over-relaxed along the geodesic.

    Parameters
    ----------
    Sigma : array of float, shape (M, M)
        The covariance at which ``current`` was computed.
    current : Expectation
        Sums over people, with D = N - H.
    n_users : int
        U.
    prior_mean : array of float, shape (M, M)
        s₀ K₀.
    strength : float
        ν₀.
    power : float, default 1
        ω: 1 is the EM step, 2 goes twice as far along the geodesic from Σ to Σ'.

    Notes
    -----
    Positive definite for every ω. 4 M³ operations for ω = 1, 6 for 2, and some 15 for others.
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
    """Effects of traits of people, and the covariance of each: the Newton step with uncorrelated traits.

    Parameters
    ----------
    B : array of float, shape (M, n_traits)
        The effects at which ``current`` was computed.
    precision : array of float, shape (M, M)
        (s_b K_t)⁻¹.
    current : Expectation
        Sums over people.

    Notes
    -----
    Traits have mean 0, variance 1 and no correlation over people, and information about a person is taken not to depend
    on them: then Σ_u x_uj x_uk H_u is H for j = k and 0 otherwise.
    """
    factor = factorise(symmetrise(precision + current.H))
    return factor.solve(current.r_traits + current.H @ B), factor.inverse()


def offset_step(offset: FloatArray, precision: FloatArray, current: Expectation) -> FloatArray:
    """What the consensus gives each item to itself; shape (n_items,), empty as given.

    Notes
    -----
    Twice the diagonal bounds the information of one answer from above, so that the step, unlike a Newton step on the
    diagonal alone, does not overshoot where two items are compared. It is no bound on that of several answers of one
    person, but no crowd was found in which repeated steps fail to settle.
    """
    if not len(offset):
        return offset
    return np.asarray(offset + (current.r_items - precision * offset) / (precision + 2.0 * current.own_H))


def own_scale_step(
    own_scale: float, share: FloatArray, current: Expectation, n_own: int, scale: float, strength: float
) -> float:
    """EM step of the variance over people of what items have to themselves, per unit of their share.

    Parameters
    ----------
    own_scale : float
        Its value at which ``current`` was computed.
    share : array of float, shape (n_items,)
    n_own : int
        Number of (person, item) that have it.
    scale, strength : float
        s₀ and ν₀: its prior is that of Σ in one dimension.
    """
    if not len(share):
        return own_scale
    scatter = n_own * own_scale + own_scale**2 * float(share @ current.own_D)
    return (scatter + strength * scale) / (n_own + strength)


def threshold_step(delta: float, current: Expectation) -> float:
    """Newton step of the evidence in log δ, with the cavities held, at most a factor e."""
    slope = delta * current.slope_delta
    curvature = delta * delta * current.curvature_delta + slope
    step = -slope / curvature if curvature < 0.0 else math.copysign(_LARGEST_LOG_STEP, slope)
    return delta * math.exp(float(np.clip(step, -_LARGEST_LOG_STEP, _LARGEST_LOG_STEP)))


def ties_step(log_factor: FloatArray, spread: float, current: Expectation) -> tuple[FloatArray, FloatArray]:
    """Newton step of each person's own threshold, log δ_u = log δ + θ_u with θ_u ~ N(0, σ²), the cavities held.

    Parameters
    ----------
    log_factor : array of float, shape (n_users,)
        θ_u at which ``current`` was computed.
    spread : float
        σ.
    current : Expectation
        Sums over people.

    Returns
    -------
    log_factor, information : arrays of float, shape (n_users,)
        The new θ_u, a step of at most a factor e away; and what each person's answers say about it, without the prior.
    """
    slope, curvature = current.ties.T
    information = np.maximum(-curvature, 0.0)
    step = (slope - log_factor / spread**2) / (information + spread**-2)
    return log_factor + np.clip(step, -_LARGEST_LOG_STEP, _LARGEST_LOG_STEP), information


def tie_spread_of(log_factor: FloatArray, information: FloatArray, spread: float) -> float:
    """The σ of largest evidence, by EM, taking each person's likelihood of θ_u for Gaussian about its mode.

    Parameters
    ----------
    log_factor, information : arrays of float, shape (n,)
        Modes under N(0, ``spread``²), and what these people's answers say about them.
    spread : float
        The σ that they were found with.
    """
    linear = log_factor * (information + spread**-2)  # of the likelihood alone
    for _ in range(_MOST_SPREAD_STEPS):
        variance = 1.0 / (information + spread**-2)
        new = math.sqrt(float(np.mean((linear * variance) ** 2 + variance)))
        done = abs(new - spread) < _SPREAD_TOLERANCE * spread
        spread = max(new, _SMALLEST_SPREAD)
        if done:
            break
    return spread
