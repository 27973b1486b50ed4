"""Checks of the numbers that a caller may fix in a model's constructor."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np

from predilect._json import typed
from predilect.inference.basis import BASES
from predilect.inference.prior import Hyperparameters
from predilect.models.fields import LARGEST

__all__ = ["check_flags", "check_settings", "given_hyperparameters", "given_threshold", "restored_hyperparameters"]

# Name: smallest and largest value allowed.
_RANGES = {
    "strength": (1e-6, 1e12),
    "scale": (1e-8, 1e8),
    "consensus_scale": (1e-8, float("inf")),
    "feature_weight": (0.0, 1.0),
    "consensus_feature_weight": (0.0, 1.0),
    "length_scale": (1e-6, 1e6),
    "variance_factor": (0.0, 1e12),
    "variance_factor_unseen": (0.0, 1e12),
    "variance_factor_implied": (0.0, 1e12),
    "variance_power": (0.0, 2.0),
    "threshold_factor": (1e-3, 1e3),
    "noise_factor": (1e-6, 1.0),
    "lapse_rate": (0.0, 0.5),
    "lapse_noise": (1.0, float("inf")),
    "tie_spread": (0.0, 10.0),
}
_SEARCHED = ("strength", "scale", "consensus_scale", "length_scale")


def given_hyperparameters(model: Any) -> dict[str, float]:
    """Hyper-parameters that are numbers and not "auto"; ValueError if one is neither, or out of its range."""
    given: dict[str, float] = {}
    for name, (low, high) in _RANGES.items():
        value = getattr(model, name)
        if _is_auto(value):
            continue
        given[name] = _number(name, value, low, high)
    return given


def restored_hyperparameters(values: Mapping[str, Any]) -> Hyperparameters:
    """Hyper-parameters of a saved model; ValueError if one is out of its range."""
    found: Hyperparameters = typed(Hyperparameters, values, "hyperparameters")
    for name, (low, high) in {**_RANGES, "trait_scale": (0.0, LARGEST)}.items():
        value = getattr(found, name)
        if name in _SEARCHED:  # which may go beyond what may be given
            low, high = 1.0 / LARGEST, LARGEST
        if value is not None and not low <= value <= high:
            raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
    if 0.0 < found.tie_spread < 1.0 / LARGEST:  # whose square is divided by
        raise ValueError(f"tie_spread must be 0, or more than {1.0 / LARGEST:g}, not {found.tie_spread!r}")
    return found


def check_settings(model: Any) -> None:
    """ValueError if an argument that says how to compute is neither "auto" nor in its range."""
    tolerance = model.tolerance
    automatic = isinstance(tolerance, str) and tolerance == "auto"
    number = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if not automatic and not (number and 0.0 < float(tolerance) < float("inf")):
        raise ValueError(f'tolerance must be "auto" or a number above 0, in nats an answer, not {tolerance!r}')
    for name, least in (("max_passes", 1), ("random_state", 0)):
        value = getattr(model, name)
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be a whole number from {least} up, not {value!r}")
    _check_basis(model)


def check_flags(model: Any) -> None:
    """ValueError if an argument whose default is True or False is neither: any text, "no" too, counts as true."""
    given = model.get_params(deep=False)
    for name, parameter in signature(type(model)).parameters.items():
        value = given[name]
        if isinstance(parameter.default, bool) and not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, not {value!r}")


def _check_basis(model: Any) -> None:
    """ValueError for an unknown basis."""
    basis, n_inducing, user_features = model.basis, model.n_inducing, model.user_features
    names = ("auto", *BASES)
    if not isinstance(basis, str) or basis not in names:
        raise ValueError(f"basis must be one of {', '.join(names)}, not {basis!r}")
    no_count = isinstance(n_inducing, bool) or not isinstance(n_inducing, Integral) or int(n_inducing) < 1
    if no_count and not _is_auto(n_inducing):
        raise ValueError(f'n_inducing must be "auto" or a whole number from 1 up, not {n_inducing!r}')
    if not isinstance(user_features, bool) and not _is_auto(user_features):
        raise ValueError(f'user_features must be "auto", True or False, not {user_features!r}')


def given_threshold(value: Any) -> float | None:
    """The tie threshold, or None for "auto"; ValueError if it is neither "auto" nor a number from 0 to 1e4."""
    if _is_auto(value):
        return None
    return _number("tie_threshold", value, 0.0, 1e4)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _number(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise ValueError(f'{name} must be "auto" or a number from {low:g} to {high:g}, not {value!r}')
    return float(value)
