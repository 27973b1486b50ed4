"""Check the numbers that a caller may fix in a model's constructor."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

__all__ = ["check_settings", "given_hyperparameters", "given_threshold"]

# Name: smallest and largest value allowed.
_RANGES = {
    "strength": (1e-6, 1e12),
    "scale": (1e-8, 1e8),
    "consensus_scale": (1e-8, float("inf")),
    "feature_weight": (0.0, 1.0),
    "consensus_feature_weight": (0.0, 1.0),
    "length_scale": (1e-6, 1e6),
    "variance_factor": (0.0, 1e3),
}


def given_hyperparameters(model: Any) -> dict[str, float]:
    """The hyper-parameters that are numbers and not "auto", checked.

    Raises
    ------
    ValueError
        If one is neither "auto" nor a number in its range.
    """
    given: dict[str, float] = {}
    for name, (low, high) in _RANGES.items():
        value = getattr(model, name)
        if isinstance(value, str) and value == "auto":
            continue
        given[name] = _number(name, value, low, high)
    return given


def check_settings(model: Any) -> None:
    """Check what says how to compute and not what to believe.

    Raises
    ------
    ValueError
        If tolerance is no positive number, max_passes no whole number from 1, or random_state none from 0.
    """
    tolerance = model.tolerance
    automatic = isinstance(tolerance, str) and tolerance == "auto"
    number = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if not automatic and not (number and 0.0 < float(tolerance) < float("inf")):
        raise ValueError(f'tolerance must be "auto" or a number above 0, in nats an answer, not {tolerance!r}')
    for name, least in (("max_passes", 1), ("random_state", 0)):
        value = getattr(model, name)
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be a whole number from {least} up, not {value!r}")


def given_threshold(value: Any) -> float | None:
    """The tie threshold, or None for "auto".

    Raises
    ------
    ValueError
        If it is neither "auto" nor a number from 0 to 1e4.
    """
    if isinstance(value, str) and value == "auto":
        return None
    return _number("tie_threshold", value, 0.0, 1e4)


def _number(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise ValueError(f'{name} must be "auto" or a number from {low:g} to {high:g}, not {value!r}')
    return float(value)
