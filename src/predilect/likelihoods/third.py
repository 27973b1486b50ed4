"""Third derivative of log P(outcome | z), for the gradient of Laplace's evidence.

With r = y z - δ, ρ = φ(r)/Φ(r) and c = ρ(ρ + r), a strict answer has ∂c/∂z = y (ρ - c (2ρ + r)). A tie has, with
a = -δ - z, b = δ - z, N = φ/P at either and ℓ = log P,

    ℓ''' = (a² - 1) N_a - (b² - 1) N_b - 3 ℓ' ℓ'' - ℓ'³ .
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from predilect._compile import kernel
from predilect.likelihoods.probit import tilted_scalar
from predilect.likelihoods.special import mills_curvature_scalar, mills_ratio_scalar

__all__ = ["curvature_slope"]

FloatArray = npt.NDArray[np.float64]


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
