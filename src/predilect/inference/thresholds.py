"""Modes of people's own tie thresholds at a fixed population, found together with the sites.

log δ_u = log δ + θ_u with θ_u ~ N(0, σ²). Given m, Σ, δ and σ a person's θ_u depends on nobody else's, so the result
depends on the person's answers only, not on their order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from predilect.inference.compiled.person_at_rest import (
    FIRST_REST,
    HIGHEST_CHORD,
    LARGEST_STEP,
    LOWEST_CHORD,
    MOST_THRESHOLD_STEPS,
    TOO_SHORT,
    next_threshold,
)

__all__ = ["threshold_at_rest", "thresholds_at_rest"]

FloatArray = npt.NDArray[np.float64]


def thresholds_at_rest(
    evaluate: Callable[[FloatArray], FloatArray], log_factor: FloatArray, spread: float, tolerance: float
) -> tuple[FloatArray, float]:
    """Modes θ_u of each person's evidence less θ_u² / 2σ², by one Newton step and then chords; the largest step left.

    ``evaluate`` runs the sites to convergence at θ (n,) and returns gradient and curvature, (n, 2). The curvature is
    that with the cavities held, since the sites' part would take a system of the size of a person's answers; chords see
    it for nothing. Some four to eight evaluations.
    """
    theta, last = log_factor, 0.0
    ties = evaluate(theta)
    gradient = ties[:, 0] - theta / spread**2
    chord = np.zeros_like(theta)  # not known yet
    for _ in range(MOST_THRESHOLD_STEPS):
        hessian = np.maximum(-ties[:, 1], 0.0) + spread**-2
        hessian = np.where(chord > 0.0, np.clip(chord, LOWEST_CHORD * hessian, HIGHEST_CHORD * hessian), hessian)
        step = np.clip(gradient / hessian, -LARGEST_STEP, LARGEST_STEP)
        last = float(np.max(np.abs(step), initial=0.0))
        if not last > tolerance:
            break
        theta, before = theta + step, gradient
        ties = evaluate(theta)
        gradient = ties[:, 0] - theta / spread**2
        chord = np.divide(before - gradient, step, out=np.zeros_like(step), where=np.abs(step) > TOO_SHORT)
    return theta, last


def threshold_at_rest(
    evaluate: Callable[[float, float], tuple[float, float]], log_factor: float, spread: float, tolerance: float
) -> tuple[float, float]:
    """The same for one person, whose sweeps need not converge at every θ.

    ``evaluate`` sweeps the sites at θ to a tolerance; it need be only as tight as the last step of θ, and ``tolerance``
    at the end. For a person with few answers :func:`~predilect.inference.compiled.person_at_rest.person_at_rest` does
    this.
    """
    theta, gradient, step, chord, last, rest = log_factor, 0.0, 0.0, 0.0, 1.0, max(FIRST_REST, tolerance)
    slope, curvature = evaluate(theta, rest)
    for _ in range(MOST_THRESHOLD_STEPS):
        theta, gradient, step, chord, last, rest, done = next_threshold(
            theta, slope, curvature, spread, tolerance, gradient, step, chord, last, rest
        )
        if done:
            break
        slope, curvature = evaluate(theta, rest)
    return theta, last
