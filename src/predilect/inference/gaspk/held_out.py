"""Held-out log loss of evaluations, and the calibration of their variance."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from predilect.inference.gaspk.answers import TradeOffAnswers
from predilect.inference.gaspk.em import EM
from predilect.inference.gaspk.solve import curvature_at
from predilect.likelihoods.probit import tilted
from predilect.posteriors.gaspk.basis import Basis
from predilect.posteriors.gaspk.grid import GridBasis
from predilect.posteriors.gaspk.low_rank import LowRank
from predilect.posteriors.gaspk.products import ByProducts

__all__ = ["held_out_margins", "log_loss", "spread_factor"]

FloatArray = npt.NDArray[np.float64]

_WIDEST = math.log(100.0)
_RATE = 1.0  # of an exponential prior of log T²: a handful of answers must not widen everything
_TOLERANCE = 1e-3
_NUMBERS_AT_ONCE = 20_000_000


def held_out_margins(
    found: EM, answers: TradeOffAnswers, n_eigenpairs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (n,) of the margins of answers at the points of a fit.

    Where a curvature on a grid is not factorised, ``n_eigenpairs`` gives variances from so many eigenpairs of each
    characteristic, as predictions do: 1 500 solutions of equations took 100 s where these take one. None is exact.
    """
    gamma, basis = found.gamma[answers.user], found.mode.state.basis
    mean = np.einsum("ic,ic->i", gamma, found.mode.F[answers.point])
    curvature = curvature_at(found.mode.state)
    if n_eigenpairs is not None and isinstance(curvature, ByProducts) and isinstance(basis, GridBasis):
        points, code = np.unique(answers.point, return_inverse=True)
        low_rank = LowRank.of(basis, found.mode.state.B, n_eigenpairs)
        return mean, low_rank.variances(basis.trade_offs(basis.places[points]), gamma, code).values
    var = np.empty(answers.n_rows)
    step = max(1, _NUMBERS_AT_ONCE // max(basis.rank, 1))
    for start in range(0, answers.n_rows, step):
        some = slice(start, start + step)
        var[some] = curvature.variances(_rows(basis, answers.point[some]), gamma[some])
    return mean, var


def _rows(basis: Basis, points: npt.NDArray[np.int64]) -> FloatArray:
    """Rows of Φ, without ever forming all of it on a large grid."""
    if isinstance(basis, GridBasis) and basis.Phi is None:
        return basis.at(basis.places[points])
    return basis.dense()[points]


def spread_factor(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: float
) -> float:
    """Calibration of Φ(mean / (T √(1 + var))) on held-out answers: mode of T² ≥ 1 under an exponential prior of log T².

    Characteristics and weights are fitted to each other, and weights are then taken as known: margins come out too
    sure. Some 20 passes over the answers.
    """

    def loss(log_factor: float) -> float:
        wider = math.exp(log_factor) * (1.0 + var) - 1.0
        return float(-weight @ tilted(outcome, mean, wider, delta)[0]) + _RATE * log_factor

    found = minimize_scalar(loss, bounds=(0.0, _WIDEST), method="bounded", options={"xatol": _TOLERANCE})
    return math.exp(float(found.x)) if found.fun < loss(0.0) else 1.0


def log_loss(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: float, spread: float
) -> float:
    """Mean log loss in nats an answer, with 1 + var multiplied by T²."""
    value = tilted(outcome, mean, spread * (1.0 + var) - 1.0, delta)[0]
    return float(-(weight @ value) / weight.sum())
