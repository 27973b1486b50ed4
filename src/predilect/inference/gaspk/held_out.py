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
    """Mean and variance of the margins of answers at the points of a fit, shapes (n,).

    Parameters
    ----------
    found : EM
    answers : TradeOffAnswers
    n_eigenpairs : int, optional
        Where a curvature on a grid is not factorised, take variances from so many eigenpairs of each characteristic,
        as predictions do: 1 500 solutions of equations took 100 s where these take one. By default exact.
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
    """Rows of Φ: of a large grid it is never made whole."""
    if isinstance(basis, GridBasis) and basis.Phi is None:
        return basis.at(basis.places[points])
    return basis.dense()[points]


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
