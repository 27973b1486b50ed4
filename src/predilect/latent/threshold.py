"""Maximum likelihood of the tie threshold under Gaussian margins."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from predilect.likelihoods.expectation import expected
from predilect.likelihoods.probit import threshold_for_tie_share

FloatArray = npt.NDArray[np.float64]

_MOST_ROWS = 20_000
_FURTHEST = 1.5  # of log δ in a step: the rest comes with the next margins


def starting_threshold(outcome: npt.NDArray[np.int8], weight: FloatArray) -> float:
    """Tie threshold δ as if all margins were 0; 0 without ties."""
    ties = float(weight[outcome == 0].sum())
    return threshold_for_tie_share(ties / float(weight.sum())) if ties else 0.0


def best_threshold(
    outcome: npt.NDArray[np.int8], weight: FloatArray, m: FloatArray, v: FloatArray, delta: float
) -> float:
    """Tie threshold of the largest Σ w E log P(outcome | z; δ), z ~ N(m, v); arrays (n,).

    Coordinate ascent on the bound, found within a factor of 4.5 of ``delta``. population.md section 2 has the
    likelihood. Some 15 evaluations on at most 20 000 rows, evenly spaced ones of more.
    """
    rows = slice(None, None, max(1, len(m) // _MOST_ROWS))
    y, w, mean, var = outcome[rows], weight[rows], m[rows], v[rows]
    at = math.log(delta)
    found = minimize_scalar(
        lambda log_delta: -float(w @ expected(y, mean, var, math.exp(log_delta))[0]),
        bounds=(at - _FURTHEST, at + _FURTHEST), method="bounded", options={"xatol": 1e-4},
    )  # fmt: skip
    return math.exp(float(found.x))
