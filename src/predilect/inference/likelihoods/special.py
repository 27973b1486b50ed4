"""log Φ, the ratio φ/Φ and their relatives, accurate in both tails.

``_scalar`` functions are for compiled loops; the others take arrays, and are made of the same code.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr as log_ndtr_by_scipy

from predilect._base.compile import elementwise, inner_kernel, kernel
from predilect._base.types import FloatArray

Z_95 = 1.959963984540054  # 97.5 % quantile of the standard normal: half of a 95 % interval, in sd
TAILS_95 = (0.025, 0.975)  # between which a 95 % interval of draws lies
_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
# Below this point exp(-z²/2) and erfc lose digits against each other (z² / 2 ulp), and the continued fraction is quick.
_TAIL = -5.0
_N_FRACTION_TERMS = 60


@kernel
def _tail_excess(t: float) -> float:
    """φ(t) / Φ(-t) - t for t >= 5, by Laplace's continued fraction 1/(t + 2/(t + 3/(t + ...)))."""
    value = t
    # From the inside out; far in the tail a few terms are exact to the last bit.
    n_terms = _N_FRACTION_TERMS if t < 12.0 else 16
    for k in range(n_terms, 1, -1):
        value = t + k / value
    return 1.0 / value


@kernel
def mills_curvature_scalar(z: float) -> float:
    """Minus the second derivative of log Φ, ρ(ρ + z) in (0, 1)."""
    return mills_scalar(z)[1]


@kernel
def mills_ratio_scalar(z: float) -> float:
    """ρ(z) = φ(z) / Φ(z), the derivative of log Φ (modern.md A.1)."""
    if z < _TAIL:
        return _tail_excess(-z) - z
    return _SQRT_2_OVER_PI * math.exp(-0.5 * z * z) / math.erfc(-z * _SQRT_HALF)


@kernel
def log_ndtr_scalar(z: float) -> float:
    """Log Φ(z)."""
    if z < _TAIL:
        return -0.5 * z * z - _HALF_LOG_2PI - math.log(_tail_excess(-z) - z)
    if z > 0.0:
        return math.log1p(-0.5 * math.erfc(z * _SQRT_HALF))
    return math.log(0.5 * math.erfc(-z * _SQRT_HALF))


@inner_kernel
def mills_scalar(z: float) -> tuple[float, float]:
    """ρ and ρ(ρ + z), without the cancellation of ρ + z in the tail."""
    if z < _TAIL:
        excess = _tail_excess(-z)
        return excess - z, (excess - z) * excess
    rho = mills_ratio_scalar(z)
    return rho, rho * (rho + z)


@inner_kernel
def strict_scalar(z: float) -> tuple[float, float, float]:
    """(log Φ, ρ, ρ(ρ + z)): the functions above, to the bit, with one exponential and one erfc fewer."""
    if z < _TAIL:
        excess = _tail_excess(-z)
        return -0.5 * z * z - _HALF_LOG_2PI - math.log(excess - z), excess - z, (excess - z) * excess
    below = math.erfc(-z * _SQRT_HALF)
    rho = _SQRT_2_OVER_PI * math.exp(-0.5 * z * z) / below
    value = math.log1p(-0.5 * math.erfc(z * _SQRT_HALF)) if z > 0.0 else math.log(0.5 * below)
    return value, rho, rho * (rho + z)


@elementwise
def mills_ratio(z: FloatArray) -> None:
    """ρ(z) = φ(z) / Φ(z), elementwise; right for |z| up to 10^4 and beyond. modern.md A.1.

    Relative error below 1e-14 for -40 <= z <= 30. ``ρ' = -ρ (ρ + z)``.
    """
    for i in range(len(z)):
        z[i] = mills_ratio_scalar(z[i])


@elementwise
def log_ndtr(z: FloatArray) -> None:
    """Log Φ(z), elementwise, without underflow.

    Equal to ``scipy.special.log_ndtr`` to 1e-13 relative for |z| <= 37. Compiled loops need a scalar form that Numba
    can cache, and arrays and loops should not use two formulas.
    """
    for i in range(len(z)):
        z[i] = log_ndtr_scalar(z[i])


# Taylor coefficients of log Φ about nodes 1/8 apart, by which it and φ/Φ have an error below 1e-13 in between.
FROM, TO, PER_UNIT = -5.0, 9.0, 8.0
_DEGREE = 10


def _table() -> FloatArray:
    """Coefficients (n_nodes, _DEGREE + 1), by the recurrence that ρ' = -ρ (ρ + z) gives for those of ρ = φ/Φ."""
    z = np.arange(FROM, TO + 0.5 / PER_UNIT, 1.0 / PER_UNIT)
    value = log_ndtr_by_scipy(z)
    of_rho = [np.exp(-0.5 * z * z - value - _HALF_LOG_2PI)]
    for k in range(_DEGREE - 1):
        product = sum(of_rho[i] * of_rho[k - i] for i in range(k + 1)) + z * of_rho[k]
        of_rho.append(-(product + (of_rho[k - 1] if k else 0.0)) / (k + 1))
    return np.column_stack([value, *(of_rho[k] / (k + 1) for k in range(_DEGREE))])


TABLE = _table()
