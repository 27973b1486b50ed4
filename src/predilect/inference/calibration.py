"""How much of the posterior variance of a margin held-out answers ask for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from predilect.likelihoods.probit import tilted

__all__ = ["variance_factor", "variance_factors"]

FloatArray = npt.NDArray[np.float64]

_LOG_RANGE = (math.log(1e-3), math.log(10.0))
_PRIOR_SCALE = 0.25  # of a Laplace prior of log κ about 0: a handful of answers must not move it, but many may, far
_TOLERANCE = 1e-3
_ROUNDS, _STILL = 12, 5e-3


def variance_factor(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: npt.ArrayLike
) -> float:
    """The κ with which N(mean, κ var) predicts held-out answers best.

    Parameters
    ----------
    outcome : array of int, shape (n,)
        +1, 0 or -1.
    mean, var : arrays of float, shape (n,)
        Margins, predicted without these answers.
    weight : array of float, shape (n,)
    delta : float or array of float, shape (n,)
        Tie threshold.

    Notes
    -----
    Maximises the log-likelihood plus a Laplace prior of log κ, scale 0.25. Some 20 passes over the n rows.
    """

    def loss(log_factor: float) -> float:
        return float(-weight @ tilted(outcome, mean, math.exp(log_factor) * var, delta)[0])

    return math.exp(_lowest(loss))


def variance_factors(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: npt.ArrayLike,
    n_unseen: npt.NDArray[np.int8], factor: float,
) -> tuple[float, float]:  # fmt: skip
    """κ, and κ₀ for pairs of items that the person has no answer on; in between where that is so of one of the two.

    Answers of a person who never contradicts himself on the items he answered on are easier to predict than a Gaussian
    has it, and ask for a small κ. That says nothing of items he was never asked about.

    Parameters
    ----------
    outcome, mean, var, weight, delta
        As in :func:`variance_factor`.
    n_unseen : array of int, shape (n,)
        On how many of the two items, 0 to 2, the person has no other answer.
    factor : float
        What :func:`variance_factor` finds.

    Notes
    -----
    log κ of a row lies on the line through log κ and log κ₀, by its number of unseen items. log κ has a Laplace prior
    about 0, log κ₀ - log κ another, scale 0.25 each, so that few rows, or rows of one kind, make no difference between
    the two. One coordinate after the other, a dozen times at most: the priors are corners only along these.
    """
    if n_unseen.min(initial=2) == n_unseen.max(initial=0):
        return factor, factor
    share = 0.5 * n_unseen
    a, d = math.log(factor), 0.0

    def loss(a: float, d: float) -> float:
        return float(-weight @ tilted(outcome, mean, np.exp(a + d * share) * var, delta)[0])

    def along_a(a: float) -> float:
        return loss(a, d)

    def along_d(d: float) -> float:
        return loss(a, d)

    for _ in range(_ROUNDS):
        last = a, d
        d = _lowest(along_d)
        a = _lowest(along_a)
        if abs(a - last[0]) + abs(d - last[1]) < _STILL:
            break
    return math.exp(a), float(np.exp(np.clip(a + d, *_LOG_RANGE)))


def _lowest(loss: Callable[[float], float]) -> float:
    found = minimize_scalar(
        lambda x: loss(float(x)) + abs(float(x)) / _PRIOR_SCALE, bounds=_LOG_RANGE, method="bounded",
        options={"xatol": _TOLERANCE},
    )  # fmt: skip
    return float(found.x)
