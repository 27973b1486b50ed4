"""Held-out answers: their log loss, and the factor of a variance that they ask for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from predilect._base.types import FloatArray
from predilect.inference.likelihoods.probit import tilted

_WIDEST = math.log(100.0)
_RATE = 1.0  # of an exponential prior of a log factor: a handful of answers must not widen everything
_TOLERANCE = 1e-3


def log_loss(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: float
) -> float:
    """Mean log loss in nats an answer of margins N(mean, var), with the tie threshold ``delta``."""
    return float(-(weight @ tilted(outcome, mean, var, delta)[0]) / weight.sum())


def log_prior(log_factor: float) -> float:
    """Minus the log density, in nats, of the logarithm of a factor."""
    return _RATE * log_factor


def likeliest_factor(loss: Callable[[float], float]) -> float:
    """The factor from 1 to 100 whose logarithm has the least ``loss`` (nats), the exponential prior included."""

    def penalised(log_factor: float) -> float:
        return loss(log_factor) + log_prior(log_factor)

    least = penalised(0.0)
    if penalised(_TOLERANCE) >= least:
        return 1.0
    found = minimize_scalar(penalised, bounds=(0.0, _WIDEST), method="bounded", options={"xatol": _TOLERANCE})
    return math.exp(float(found.x)) if found.fun < least else 1.0
