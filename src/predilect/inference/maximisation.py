"""The closed-form M steps of the population model (population.md section 4)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from predilect.covariance.dense import factorise, symmetrise
from predilect.inference.expectation import Expectation

__all__ = ["consensus_step", "covariance_step", "threshold_step"]

FloatArray = npt.NDArray[np.float64]

_LARGEST_LOG_STEP = 1.0


def consensus_step(m: FloatArray, precision: FloatArray, current: Expectation) -> tuple[FloatArray, FloatArray]:
    """Posterior N(m', C_m) of the consensus, people integrated out, sites fixed.

    Parameters
    ----------
    m : array of float, shape (n_items,)
        The consensus at which ``current`` was computed.
    precision : array of float, shape (n_items, n_items)
        (s_t K_t)⁻¹.
    current : Expectation
        Sums over people.

    Returns
    -------
    m_new, C_m : arrays of float, shapes (n_items,) and (n_items, n_items)

    Notes
    -----
    C_m = ((s_t K_t)⁻¹ + H)⁻¹, m' = C_m (r + H m): the Newton step of J in m. n_items³ operations.
    """
    factor = factorise(symmetrise(precision + current.H))
    return factor.solve(current.r + current.H @ m), factor.inverse()


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
    Sigma : array of float, shape (n_items, n_items)
        The covariance at which ``current`` was computed.
    current : Expectation
        Sums over people, with D = N - H.
    n_users : int
        U.
    prior_mean : array of float, shape (n_items, n_items)
        s₀ K₀.
    strength : float
        ν₀.
    power : float, default 1
        ω: 1 is the EM step, 2 goes twice as far along the geodesic from Σ to Σ'.

    Notes
    -----
    Positive definite for every ω. About 12 n_items³ operations.
    """
    new = symmetrise((n_users * Sigma + Sigma @ current.D @ Sigma + strength * prior_mean) / (n_users + strength))
    if power == 1.0:
        return new
    factor = factorise(Sigma)
    whitened = factor.solve_lower(factor.solve_lower(new).T)
    values, vectors = eigh(symmetrise(whitened), check_finite=False)
    root = factor.lower @ vectors
    return symmetrise((root * values**power) @ root.T)


def threshold_step(delta: float, current: Expectation) -> float:
    """Newton step of the evidence in log δ, with the cavities held, at most a factor e."""
    slope = delta * current.slope_delta
    curvature = delta * delta * current.curvature_delta + slope
    step = -slope / curvature if curvature < 0.0 else math.copysign(_LARGEST_LOG_STEP, slope)
    return delta * math.exp(float(np.clip(step, -_LARGEST_LOG_STEP, _LARGEST_LOG_STEP)))
