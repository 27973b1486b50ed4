"""Expected log-likelihood E log P(outcome | z) for z ~ N(m, v), with derivatives, for variational inference.

There is no closed form. Quadrature with nodes x_q and weights ω_q, Σ ω_q = 1, gives

    value = Σ ω_q ℓ(m + √v x_q)      slope = ∂ value/∂m = Σ ω_q ℓ'(m + √v x_q)
    curvature = -2 ∂ value/∂v = -Σ ω_q ℓ'(m + √v x_q) x_q / √v

so that the three agree whatever the error of the quadrature: a step with slope and curvature is the natural gradient of
the bound that the value gives, to the last digit. The average of -ℓ'' is another estimate of the curvature, the better
one only where v is so small that x_q / √v magnifies rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.compile import inner_kernel, kernel
from predilect._base.types import FloatArray, IntArray
from predilect.inference.likelihoods.probit import tilted_scalar
from predilect.inference.likelihoods.special import mills_ratio_scalar

# Up to the first bound 20 Gauss-Hermite nodes, modern.md A.2. Beyond, ℓ(m + √v x) has its singularities at a distance
# of about 2.8/√v from the real line, and the midpoint rule of step h errs by exp(-2π 2.8/(h √v)): it needs nodes in
# proportion to √v, where Gauss-Hermite needs them in proportion to v. 31 nodes do for v = 5, 59 for v = 30.
BOUNDS = np.array([2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 1280.0])
_REACH = 6.5
_SQRT_HALF = math.sqrt(0.5)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
_SMALL_VARIANCE = 0.01  # below it 20 nodes integrate ℓ'' to the last digit


def _hermite(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    x, omega = np.polynomial.hermite_e.hermegauss(n_nodes)
    positive = x > 0.0  # the rule is symmetric, and n_nodes even
    return x[positive], omega[positive] / (2.0 * omega[positive].sum())


def _midpoint(largest: float) -> tuple[FloatArray, FloatArray]:
    step = 0.5 * math.sqrt(8.0 / (8.0 + largest))
    x = step * (np.arange(math.ceil(_REACH / step), dtype=np.float64) + 0.5)
    omega = np.exp(-0.5 * x * x)
    return x, np.asarray(omega / (2.0 * omega.sum()))


def _rules() -> tuple[FloatArray, FloatArray, IntArray]:
    """Nodes, weights and their number for each bound; variances beyond the last have its rule."""
    rules = [_hermite(20), *(_midpoint(bound) for bound in BOUNDS[1:])]
    counts = np.array([len(x) for x, _ in rules])
    x, omega = np.zeros((2, len(rules), counts.max()))
    for row, (nodes, weights) in enumerate(rules):
        x[row, : len(nodes)], omega[row, : len(nodes)] = nodes, weights
    return x, omega, counts


RULES = _rules()


@inner_kernel
def value_and_slope(outcome: int, z: float, delta: float) -> tuple[float, float]:
    """(ℓ, ℓ') of one answer."""
    if outcome == 0:
        value, slope, _, _, _ = tilted_scalar(outcome, z, 0.0, delta)
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
def expected_arrays(
    outcome: npt.NDArray[np.int8],
    m: FloatArray,
    v: FloatArray,
    delta: float,
    nodes: FloatArray,
    weights: FloatArray,
    counts: IntArray,
    bounds: FloatArray,
    small: float,
    out: FloatArray,
) -> None:
    """The loop of :func:`expected`."""
    for p in range(m.shape[0]):
        rule = 0
        while rule < bounds.shape[0] - 1 and v[p] > bounds[rule]:
            rule += 1
        x, omega, n = nodes[rule], weights[rule], counts[rule]
        root = math.sqrt(v[p])
        value = 0.0
        slope = 0.0
        curvature = 0.0
        for q in range(n):
            up, slope_up = value_and_slope(outcome[p], m[p] + root * x[q], delta)
            down, slope_down = value_and_slope(outcome[p], m[p] - root * x[q], delta)
            value += omega[q] * (up + down)
            slope += omega[q] * (slope_up + slope_down)
            curvature += omega[q] * x[q] * (slope_down - slope_up)
        if v[p] >= small:
            curvature /= root
        else:
            curvature = 0.0
            for q in range(n):
                _, _, up, _, _ = tilted_scalar(outcome[p], m[p] + root * x[q], 0.0, delta)
                _, _, down, _, _ = tilted_scalar(outcome[p], m[p] - root * x[q], 0.0, delta)
                curvature += omega[q] * (up + down)
        out[0, p] = value
        out[1, p] = slope
        out[2, p] = curvature


def expected(
    outcome: npt.ArrayLike, m: npt.ArrayLike, v: npt.ArrayLike, delta: float = 0.0, loop: Any = expected_arrays
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E log P(outcome | z) for z ~ N(m, v), with derivatives, (n,); modern.md A.2 and (3.2).

    value, slope ∂/∂m, curvature -2 ∂/∂v, which is E(-∂² log P/∂z²) in (0, 1). 20 nodes for v <= 2, then 3.6 √(8 + v)
    evenly spaced ones: 1e-7 of the value. Ties need ``delta`` > 0. ``loop``: of another likelihood.

    **Differs from the paper**: modern.md takes 20 Gauss-Hermite nodes up to v = 10 and 64 beyond. The jump of 1e-4 of
    every answer's value where the number of nodes changes would stop a search for hyper-parameters; and curvature is
    differentiated from the value instead of averaged (see the module).
    """
    m, v, y = np.broadcast_arrays(
        np.asarray(m, dtype=float), np.asarray(v, dtype=float), np.asarray(outcome, dtype=np.int8)
    )
    out = np.empty((3, m.size))
    loop(
        np.array(y).ravel(), np.array(m).ravel(), np.array(v).ravel(), float(delta), *RULES, BOUNDS,
        _SMALL_VARIANCE, out,
    )  # fmt: skip
    return out[0], out[1], out[2]
