"""Slopes by finite differences, of searches too in which sites move along a little with every call."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

STEP = 1e-3


def slope_along(value: Callable[[np.ndarray], float], x: np.ndarray, direction: np.ndarray) -> float:
    """Central differences of the fourth order, for a value in the hundreds cannot have a tiny step."""
    ahead = [value(x + k * STEP * direction) for k in (-2, -1, 1, 2)]
    return (ahead[0] - 8 * ahead[1] + 8 * ahead[2] - ahead[3]) / (12 * STEP)


def at_rest(evaluate: Callable[[np.ndarray], tuple[float, Any]], x: np.ndarray) -> tuple[float, Any]:
    """Value and gradient once sites, and what else is learned along, stand still: each call moves them a little."""
    before = math.inf
    for _ in range(1000):
        value, gradient = evaluate(x)
        if abs(value - before) <= 1e-13 * abs(value):
            return value, gradient
        before = value
    raise AssertionError("the value does not come to rest")
