"""E log P(outcome | z) for z ~ N(m, v), with its derivatives: what variational inference asks of an answer.

There is no closed form. Gauss-Hermite quadrature with nodes x_q and weights ω_q (Σ ω_q = 1) gives

    value = Σ ω_q ℓ(m + √v x_q)      slope = ∂ value/∂m = Σ ω_q ℓ'(m + √v x_q)
    curvature = -2 ∂ value/∂v = -Σ ω_q ℓ'(m + √v x_q) x_q / √v

so that the three belong together whatever the error of the quadrature: a step that uses slope and curvature is the
natural gradient of the bound that the value gives, to the last digit. The average of -ℓ'' is another estimate of the
curvature, the same up to that error, and the better one only where v is so small that x_q / √v magnifies rounding.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from predilect._compile import inner_kernel, kernel
from predilect.likelihoods.probit import tilted_scalar
from predilect.likelihoods.special import mills_ratio_scalar

__all__ = ["expected"]

FloatArray = npt.NDArray[np.float64]

# modern.md A.2. Fewer nodes where they are as good; many where the answer is a step in a wide margin.
_VARIANCES = (2.0, 10.0)
_N_NODES = (20, 64, 200)
_SQRT_HALF = math.sqrt(0.5)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
_SMALL_VARIANCE = 0.01  # below it 20 nodes integrate ℓ'' to the last digit


def _hermite(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    x, omega = np.polynomial.hermite_e.hermegauss(n_nodes)
    positive = x > 0.0  # the rule is symmetric, and every n_nodes even
    keep = positive & (omega > 1e-18 * omega.max())  # what is left out is below rounding, and half of the nodes
    return x[keep], omega[keep] / (2.0 * omega[positive].sum())


_RULES = [_hermite(n) for n in _N_NODES]


@inner_kernel
def _value_and_slope(outcome, z, delta):  # type: ignore[no-untyped-def]
    """(ℓ, ℓ') of one answer."""
    if outcome == 0:
        value, slope, _, _, _ = tilted_scalar(0, z, 0.0, delta)
        return value, slope
    r = outcome * z - delta
    if r < -5.0:
        rho = mills_ratio_scalar(r)
        return -0.5 * r * r - _HALF_LOG_2PI - math.log(rho), outcome * rho
    # log Φ and φ/Φ as in ``special``, with one erfc for both: half of the time of this loop.
    tail = 0.5 * math.erfc(abs(r) * _SQRT_HALF)
    density = _INV_SQRT_2PI * math.exp(-0.5 * r * r)
    if r > 0.0:
        return math.log1p(-tail), outcome * density / (1.0 - tail)
    return math.log(tail), outcome * density / tail


@kernel
def _expected_arrays(  # type: ignore[no-untyped-def]
    outcome, m, v, delta, x_0, omega_0, x_1, omega_1, x_2, omega_2, bound_0, bound_1, small, out
):  # fmt: skip
    for p in range(m.shape[0]):
        x, omega = x_0, omega_0
        if v[p] > bound_1:
            x, omega = x_2, omega_2
        elif v[p] > bound_0:
            x, omega = x_1, omega_1
        root = math.sqrt(v[p])
        value = 0.0
        slope = 0.0
        curvature = 0.0
        for q in range(x.shape[0]):
            up, slope_up = _value_and_slope(outcome[p], m[p] + root * x[q], delta)
            down, slope_down = _value_and_slope(outcome[p], m[p] - root * x[q], delta)
            value += omega[q] * (up + down)
            slope += omega[q] * (slope_up + slope_down)
            curvature += omega[q] * x[q] * (slope_down - slope_up)
        if v[p] >= small:
            curvature /= root
        else:
            curvature = 0.0
            for q in range(x.shape[0]):
                _, _, up, _, _ = tilted_scalar(outcome[p], m[p] + root * x[q], 0.0, delta)
                _, _, down, _, _ = tilted_scalar(outcome[p], m[p] - root * x[q], 0.0, delta)
                curvature += omega[q] * (up + down)
        out[0, p] = value
        out[1, p] = slope
        out[2, p] = curvature


def expected(
    outcome: npt.ArrayLike, m: npt.ArrayLike, v: npt.ArrayLike, delta: float = 0.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E log P(outcome | z) for z ~ N(m, v), with its derivatives.

    Parameters
    ----------
    outcome : array of int, shape (n,)
        +1 left, 0 tie, -1 right.
    m, v : arrays of float, shape (n,)
        Mean and variance of the margin, in units of the answer noise.
    delta : float, default 0
        Tie threshold, in the same units; ties need ``delta > 0``.

    Returns
    -------
    value, slope, curvature : arrays of float, shape (n,)
        E log P, its derivative in m, and -2 times its derivative in v, which is E(-∂² log P/∂z²) in (0, 1).

    Notes
    -----
    modern.md A.2 and (3.2). 20 nodes for v <= 2, 64 for v <= 10, 200 beyond.

    **Differs from the paper**: modern.md takes 20 nodes up to v = 10 and 64 beyond. The jump of 1e-4 of every answer's
    value where the number of nodes changes would stop a search for hyper-parameters; and curvature is differentiated
    from the value instead of averaged (see the module).
    """
    m, v, y = np.broadcast_arrays(
        np.asarray(m, dtype=float), np.asarray(v, dtype=float), np.asarray(outcome, dtype=np.int8)
    )
    out = np.empty((3, m.size))
    (x_0, omega_0), (x_1, omega_1), (x_2, omega_2) = _RULES
    _expected_arrays(
        np.array(y).ravel(), np.array(m).ravel(), np.array(v).ravel(), float(delta),
        x_0, omega_0, x_1, omega_1, x_2, omega_2, *_VARIANCES, _SMALL_VARIANCE, out,
    )  # fmt: skip
    return out[0], out[1], out[2]
