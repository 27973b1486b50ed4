"""How well evaluations predict answers that were held out, and how much wider than they say they are."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from predilect.inference.gaspk.answers import TradeOffAnswers
from predilect.inference.gaspk.em import EM
from predilect.inference.gaspk.solve import curvature_at
from predilect.likelihoods.probit import tilted

__all__ = ["held_out_margins", "log_loss", "spread_factor"]

FloatArray = npt.NDArray[np.float64]

_WIDEST = math.log(100.0)
_RATE = 1.0  # of an exponential prior of log T²: a handful of answers must not widen everything
_TOLERANCE = 1e-3


def held_out_margins(found: EM, answers: TradeOffAnswers) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the margins of answers at the points of a fit, shapes (n,)."""
    gamma, basis = found.gamma[answers.user], found.mode.state.basis
    mean = np.einsum("ic,ic->i", gamma, found.mode.F[answers.point])
    return mean, curvature_at(found.mode.state).variances(basis.dense()[answers.point], gamma)


def spread_factor(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: float
) -> float:
    """T² ≥ 1 with which Φ(mean / (T √(1 + var))) predicts held-out answers best.

    Notes
    -----
    Characteristics and weights are fitted to each other, and weights are then taken as known: margins come out too
    sure. An exponential prior of log T², rate 1. Some 20 passes over the answers.
    """

    def loss(log_factor: float) -> float:
        wider = math.exp(log_factor) * (1.0 + var) - 1.0
        return float(-weight @ tilted(outcome, mean, wider, delta)[0]) + _RATE * log_factor

    found = minimize_scalar(loss, bounds=(0.0, _WIDEST), method="bounded", options={"xatol": _TOLERANCE})
    return math.exp(float(found.x)) if found.fun < loss(0.0) else 1.0


def log_loss(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: float, spread: float
) -> float:
    """Mean log loss in nats an answer, with margins that are T² wider."""
    value = tilted(outcome, mean, spread * (1.0 + var) - 1.0, delta)[0]
    return float(-(weight @ value) / weight.sum())
