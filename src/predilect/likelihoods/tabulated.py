"""log Φ and φ/Φ of very many margins by piecewise polynomials, four times as quick.

Degree 9 on pieces of length 1/8 between -5 and 5, through :mod:`~predilect.likelihoods.special` at Chebyshev points,
relative errors below 1e-13; beyond, those functions themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from predilect._compile import inner_kernel, kernel
from predilect.likelihoods.probit import tilted_scalar
from predilect.likelihoods.special import log_ndtr, log_ndtr_scalar, mills_ratio, strict_scalar

__all__ = ["at", "log_ndtr_both"]

FloatArray = npt.NDArray[np.float64]

_REACH, _PER_UNIT, _N = 5.0, 8.0, 10
_WITHIN, _N_PIECES = 4.999, 80  # where both sides are surely inside


def _pieces(function: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Coefficients of u^0, u^1, ... for u from -1 to 1 across each piece, (81, 10).

    One piece more than from -5 to 5: the number before 5, plus 5, rounds to 10.
    """
    angles = np.pi * (np.arange(_N) + 0.5) / _N
    left = np.arange(-_REACH * _PER_UNIT, _REACH * _PER_UNIT + 1.0) / _PER_UNIT
    values = function(left[:, None] + (np.cos(angles) + 1.0) / (2.0 * _PER_UNIT))
    by_degree = 2.0 / _N * values @ np.cos(np.outer(angles, np.arange(_N)))
    by_degree[:, 0] *= 0.5
    powers = [np.polynomial.chebyshev.cheb2poly(row[: j + 1]) for j, row in enumerate(np.eye(_N))]
    return np.ascontiguousarray(by_degree @ np.array([np.pad(p, (0, _N - len(p))) for p in powers]))


_LOG_NDTR, _RATIO = _pieces(log_ndtr), _pieces(mills_ratio)


@inner_kernel
def _place(z: float) -> tuple[int, float]:
    """Piece of z from -5 to 5, and position in it, from -1 to 1."""
    s = (z + _REACH) * _PER_UNIT
    k = int(s)
    return k, 2.0 * (s - k) - 1.0


@inner_kernel
def _evaluate(pieces: FloatArray, k: int, u: float) -> float:
    a = pieces[k]
    # Even and odd powers side by side: half as many dependent steps.
    v = u * u
    even = (((a[8] * v + a[6]) * v + a[4]) * v + a[2]) * v + a[0]
    return even + u * ((((a[9] * v + a[7]) * v + a[5]) * v + a[3]) * v + a[1])


@inner_kernel
def log_ndtr_both(z: float, delta: float) -> tuple[float, float]:
    """Log Φ(z - δ) and log Φ(-z - δ)."""
    if delta == 0.0 and abs(z) < _WITHIN:
        k, u = _place(z)
        return _evaluate(_LOG_NDTR, k, u), _evaluate(_LOG_NDTR, _N_PIECES - 1 - k, -u)
    return _log_ndtr_of(z - delta), _log_ndtr_of(-z - delta)


@inner_kernel
def _log_ndtr_of(z: float) -> float:
    if not -_REACH <= z < _REACH:
        return log_ndtr_scalar(z)
    k, u = _place(z)
    return _evaluate(_LOG_NDTR, k, u)


@kernel
def _at_arrays(outcome: npt.NDArray[np.int8], z: FloatArray, delta: float, out: FloatArray) -> None:
    values, slopes, curvatures = out[0], out[1], out[2]
    for p in range(z.shape[0]):
        y = outcome[p]
        r = y * z[p] - delta
        if y == 0:
            value, slope, curvature, _, _ = tilted_scalar(y, z[p], 0.0, delta)
        elif -_REACH <= r < _REACH:
            k, u = _place(r)
            value, rho = _evaluate(_LOG_NDTR, k, u), _evaluate(_RATIO, k, u)
            slope, curvature = y * rho, rho * (rho + r)
        else:
            value, rho, curvature = strict_scalar(r)
            slope = y * rho
        values[p], slopes[p], curvatures[p] = value, slope, curvature


def at(outcome: npt.ArrayLike, z: npt.ArrayLike, delta: float = 0.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log P(outcome | z), ∂/∂z and -∂²/∂z², (n,): the first three of :func:`predilect.likelihoods.probit.at`."""
    y, m = np.asarray(outcome, dtype=np.int8), np.asarray(z, dtype=np.float64)
    if y.shape != m.shape:
        y, m = np.broadcast_arrays(y, m)
    out = np.empty((3, m.size))
    # Columns that are read-only would have the loop compiled again.
    _at_arrays(*(np.require(column.ravel(), None, ["C", "W"]) for column in (y, m)), float(delta), out)
    return out[0], out[1], out[2]
