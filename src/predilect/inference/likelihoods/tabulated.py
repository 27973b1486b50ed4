"""The probit from tables: log Φ by pieces, and the third derivative of log P(outcome | z), for Laplace's evidence.

With r = y z - δ, ρ = φ(r)/Φ(r) and c = ρ(ρ + r), a strict answer has ∂c/∂z = y (ρ - c (2ρ + r)). A tie has, with
a = -δ - z, b = δ - z, N = φ/P at either and ℓ = log P,

    ℓ''' = (a² - 1) N_a - (b² - 1) N_b - 3 ℓ' ℓ'' - ℓ'³ .
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from predilect._base.compile import inner_kernel, kernel
from predilect._base.types import FloatArray
from predilect.inference.likelihoods.probit import tilted_scalar
from predilect.inference.likelihoods.special import (
    log_ndtr,
    log_ndtr_scalar,
    mills_curvature_scalar,
    mills_ratio,
    mills_ratio_scalar,
    strict_scalar,
)


@kernel
def _strict(y: int, z: float, delta: float) -> float:
    r = y * z - delta
    rho = mills_ratio_scalar(r)
    return y * (rho - mills_curvature_scalar(r) * (2.0 * rho + r))


@kernel
def _tie(outcome: int, z: float, delta: float) -> float:
    # Odd in z: work with z >= 0, where b is the nearer end, and P φ-ratios follow from ∂ log P/∂δ = N_a + N_b.
    size = abs(z)
    a = -delta - size
    b = delta - size
    _, slope, curvature, slope_delta, _ = tilted_scalar(outcome, size, 0.0, delta)
    n_a = slope_delta / (1.0 + math.exp(2.0 * delta * size))
    n_b = slope_delta - n_a
    third = (a * a - 1.0) * n_a - (b * b - 1.0) * n_b + slope * (3.0 * curvature - slope * slope)
    return -third if z >= 0.0 else third


@kernel
def _arrays(outcome: npt.NDArray[np.int8], z: FloatArray, delta: float, out: FloatArray) -> None:
    for p in range(z.shape[0]):
        out[p] = _tie(outcome[p], z[p], delta) if outcome[p] == 0 else _strict(outcome[p], z[p], delta)


def curvature_slope(outcome: npt.ArrayLike, z: npt.ArrayLike, delta: float = 0.0) -> FloatArray:
    """∂/∂z of -∂² log P(outcome | z)/∂z², (n,); ties need ``delta`` > 0.

    Right to about 1e-14 max(1, |z|³) absolutely: far in a tail it is the small difference of large numbers.
    """
    z, y = np.broadcast_arrays(np.asarray(z, dtype=float), np.asarray(outcome, dtype=np.int8))
    out = np.empty(z.size)
    _arrays(np.array(y).ravel(), np.array(z).ravel(), float(delta), out)
    return out


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
        out[0, p] = value
        out[1, p] = slope
        out[2, p] = curvature


def at(outcome: npt.ArrayLike, z: npt.ArrayLike, delta: float = 0.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log P(outcome | z), ∂/∂z and -∂²/∂z², (n,): ``probit.tilted`` at variance 0."""
    y, m = np.asarray(outcome, dtype=np.int8), np.asarray(z, dtype=np.float64)
    if y.shape != m.shape:
        y, m = np.broadcast_arrays(y, m)
    out = np.empty((3, m.size))
    # Columns that are read-only would have the loop compiled again.
    _at_arrays(*(np.require(column.ravel(), None, ["C", "W"]) for column in (y, m)), float(delta), out)
    return out[0], out[1], out[2]
