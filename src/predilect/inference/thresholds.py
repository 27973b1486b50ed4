"""People's own tie thresholds at a frozen population: brought to rest together with the sites.

log δ_u = log δ + θ_u with θ_u ~ N(0, σ²). Given m, Σ, δ and σ a person's θ_u depends on nobody else's, so the result is
that of the person's answers, however and in whatever order they came.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["threshold_at_rest", "thresholds_at_rest"]

FloatArray = npt.NDArray[np.float64]

_MOST_STEPS = 40
_LARGEST_STEP = 1.0
# A chord's slope is believed within these factors of the curvature with the cavities held.
_LOWEST, _HIGHEST = 0.2, 5.0
_TOO_SHORT = 1e-9  # a step whose chord would be rounding
_FIRST_REST, _REST = (
    1e-3,
    0.02,
)  # how still the sites of one person must stand at first, and as a share of the last step
_OF_THRESHOLD = 5.0  # how much more a threshold may be left to move, in its logarithm, than a margin


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
    for _ in range(_MOST_STEPS):
        hessian = np.maximum(-ties[:, 1], 0.0) + spread**-2
        hessian = np.where(chord > 0.0, np.clip(chord, _LOWEST * hessian, _HIGHEST * hessian), hessian)
        step = np.clip(gradient / hessian, -_LARGEST_STEP, _LARGEST_STEP)
        last = float(np.max(np.abs(step), initial=0.0))
        if not last > tolerance:
            break
        theta, before = theta + step, gradient
        ties = evaluate(theta)
        gradient = ties[:, 0] - theta / spread**2
        chord = np.divide(before - gradient, step, out=np.zeros_like(step), where=np.abs(step) > _TOO_SHORT)
    return theta, last


def threshold_at_rest(
    evaluate: Callable[[float, float], tuple[float, float]], log_factor: float, spread: float, tolerance: float
) -> tuple[float, float]:
    """The same for one person, for whom numbers are quicker than arrays, and sweeps need not end at every θ.

    Parameters
    ----------
    evaluate : callable
        Brings the sites to rest at some θ, up to a change of a margin, and returns gradient and curvature in θ.
    log_factor, spread, tolerance : float
        As in :func:`thresholds_at_rest`.

    Notes
    -----
    Sites stand as still as the last step of θ asks for, and at the end as still as ``tolerance`` says.
    """
    theta, last, chord, rest = log_factor, 1.0, 0.0, max(_FIRST_REST, tolerance)
    slope, curvature = evaluate(theta, rest)
    for _ in range(_MOST_STEPS):
        gradient = slope - theta / spread**2
        hessian = max(-curvature, 0.0) + spread**-2
        if chord > 0.0:
            hessian = min(max(chord, _LOWEST * hessian), _HIGHEST * hessian)
        step = min(max(gradient / hessian, -_LARGEST_STEP), _LARGEST_STEP)
        before, last = last, abs(step)
        if last > _OF_THRESHOLD * tolerance:
            theta += step
            # Chords leave an error of the order of the last two steps' product: where that is little, it was the last.
            rest = tolerance if last * before < tolerance else max(min(rest, _REST * last), tolerance)
        elif rest > tolerance:
            rest, step = tolerance, 0.0
        else:
            break
        slope, curvature = evaluate(theta, rest)
        if abs(step) > _TOO_SHORT:
            chord = (gradient - slope + theta / spread**2) / step
    return theta, last
