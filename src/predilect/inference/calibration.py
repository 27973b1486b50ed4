"""How much of the posterior variance of a margin held-out answers ask for."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from predilect.likelihoods.probit import tilted

__all__ = ["variance_factor"]

FloatArray = npt.NDArray[np.float64]

_RANGE = (1e-3, 10.0)
_PRIOR_SCALE = 0.25  # of a Laplace prior of log κ about 0: a handful of answers must not move it, but many may, far
_TOLERANCE = 1e-3


def variance_factor(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: float
) -> float:
    """The κ with which N(mean, κ var) predicts held-out answers best.

    Parameters
    ----------
    outcome : array of int, shape (n,)
        +1, 0 or -1.
    mean, var : arrays of float, shape (n,)
        Margins, predicted without these answers.
    weight : array of float, shape (n,)
    delta : float
        Tie threshold.

    Notes
    -----
    Maximises the log-likelihood plus a Laplace prior of log κ, scale 0.25. Some 20 passes over the n rows.
    """

    def loss(log_factor: float) -> float:
        log_p = tilted(outcome, mean, math.exp(log_factor) * var, delta)[0]
        return float(-weight @ log_p) + abs(log_factor) / _PRIOR_SCALE

    found = minimize_scalar(
        loss, bounds=(math.log(_RANGE[0]), math.log(_RANGE[1])), method="bounded", options={"xatol": _TOLERANCE}
    )
    return math.exp(float(found.x))
