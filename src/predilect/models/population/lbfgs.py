"""L-BFGS: quasi-Newton steps up a smooth function, by its gradients at the last few points."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from predilect._base.types import FloatArray

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
Pairs = deque[tuple[FloatArray, FloatArray, float]]

_LEAST_RISE, _MOST_SLOPE = 1e-3, 0.9  # Wolfe's conditions: of what the slope promises, and of the slope itself
_MOST_TRIALS = 20  # of the length of a step
# Shares of an interval, between whose ends, or after which, the next trial is.
_WITHIN, _BEYOND = (0.1, 0.9), (-4.0, -1.1)
_NARROW = 0.1  # interval, in units of its end, in which no better length is sought
_SLOWLY, _MOST_SLOW = 0.5, 1  # share of an interval that is left, and trials that leave more before it is halved


def ascent(
    objective: Objective, found: tuple[float, FloatArray], reach: FloatArray, n_pairs: int
) -> Iterator[tuple[FloatArray, float, FloatArray]]:
    """Points x from 0 on, each with a larger ``objective`` than the last, its value and its gradient.

    ``found`` is the objective at 0. The first step is the gradient, for an objective whose Hessian is about -1; later
    ones take its inverse from ``n_pairs`` differences of points and gradients (Nocedal and Wright, algorithm 7.4). No
    coordinate goes further than its ``reach``; whoever asks for points should stop there. They end where no step along
    the gradient goes up. 4 n_pairs operations a coordinate and step; memory 2 n_pairs numbers a coordinate.
    """
    x, (value, gradient) = np.zeros(len(reach)), found
    pairs: Pairs = deque(maxlen=n_pairs)
    while True:
        better = _higher(objective, x, value, gradient, _newton_step(pairs, gradient), reach)
        if better is None:
            if not pairs:
                return
            pairs.clear()
            continue
        step, change = better[0] - x, gradient - better[2]
        curvature = float(step @ change)
        if curvature > np.finfo(float).eps * float(step @ gradient):
            pairs.append((step, change, curvature))
        x, value, gradient = better
        yield better


def _newton_step(pairs: Pairs, gradient: FloatArray) -> FloatArray:
    """The gradient over the curvature that pairs tell of."""
    step = gradient.copy()
    shares = []
    for moved, change, curvature in reversed(pairs):
        shares.append(float(moved @ step) / curvature)
        step -= shares[-1] * change
    if pairs:
        _, change, curvature = pairs[-1]
        step *= curvature / float(change @ change)
    for (moved, change, curvature), share in zip(pairs, reversed(shares), strict=True):
        step += (share - float(change @ step) / curvature) * moved
    return step


def _higher(
    objective: Objective, x: FloatArray, value: float, gradient: FloatArray, direction: FloatArray, reach: FloatArray
) -> tuple[FloatArray, float, FloatArray] | None:
    """Where Wolfe's conditions hold along a direction, with value and gradient; None if it does not lead up.

    Until a trial is too long the next is longer, and then between the best one and one on the other side of the top, in
    both cases where the slope would be 0 if it were linear, or, where that is slow, in the middle.
    """
    slope = float(gradient @ direction)
    if not slope > 0.0:
        return None
    furthest = 1.0 / float((direction / (np.copysign(reach, direction) - x)).max())
    length = min(1.0, furthest)
    best = None
    low, other, bracketed = (0.0, value, slope), (0.0, value, slope), False
    before, n_slow = 0.0, 0
    for _ in range(_MOST_TRIALS):
        place = x + length * direction
        there, gradient_there = objective(place)
        trial = length, there, float(gradient_there @ direction)
        is_higher = value + _LEAST_RISE * length * slope <= there < math.inf and math.isfinite(trial[2])
        if not is_higher or there < low[1]:
            other, bracketed = trial, True
        else:
            best = place, there, gradient_there
            if abs(trial[2]) <= _MOST_SLOPE * slope or (trial[2] > 0.0 and length == furthest):
                return best
            # The top lies where the slope points to.
            if not bracketed or trial[2] * (other[0] - length) < 0.0:
                other, bracketed = low, trial[2] < 0.0 or bracketed
            low = trial
        gap = other[0] - low[0]
        if best is not None and bracketed and abs(gap) <= _NARROW * max(other[0], low[0]):
            break
        bend = low[2] - other[2]
        if bracketed:
            share = low[2] / bend if low[2] * other[2] < 0.0 else 0.5
            n_slow = n_slow + 1 if abs(gap) > _SLOWLY * before > 0.0 else 0
            share = 0.5 if n_slow > _MOST_SLOW else min(max(share, _WITHIN[0]), _WITHIN[1])
            before = abs(gap)
        else:
            share = max(_BEYOND[0], min(low[2] / bend, _BEYOND[1])) if bend < 0.0 else _BEYOND[0]
        length = min(low[0] + share * gap, furthest)
    return best
