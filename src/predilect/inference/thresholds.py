"""People's own tie thresholds at a frozen population: brought to rest together with the sites.

log δ_u = log δ + θ_u with θ_u ~ N(0, σ²). Given m, Σ, δ and σ a person's θ_u depends on nobody else's, so the result is
that of the person's answers, however and in whatever order they came.
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
    """The θ_u at which each person's evidence less θ_u² / 2σ² is largest, by Newton's first step and then chords.

    Parameters
    ----------
    evaluate : callable
        Brings the sites to rest at some θ (n,) and returns gradient and curvature in them, (n, 2).
    log_factor : array of float, shape (n,)
        Where to start.
    spread : float
        σ.
    tolerance : float
        Stop when no θ would move by more.

    Returns
    -------
    log_factor : array of float, shape (n,)
        With the sites at rest at it.
    last : float
        The largest step that was left.

    Notes
    -----
    The curvature is that with the cavities held, since what the sites add to it would take a system of the size of a
    person's answers; chords see it for nothing. Some four to eight evaluations.
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
    """The same for one person, whose sweeps need not end at every θ.

    Parameters
    ----------
    evaluate : callable
        Brings the sites to rest at some θ, up to a change of a margin, and returns gradient and curvature in θ.
    log_factor, spread, tolerance : float
        As in :func:`thresholds_at_rest`.

    Notes
    -----
    Sites stand as still as the last step of θ asks for, and at the end as still as ``tolerance`` says. What
    :func:`~predilect.inference.compiled.person_at_rest.person_at_rest` does for a person with few answers.
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
