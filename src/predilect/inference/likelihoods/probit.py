"""Probit likelihood of one answer, strict or with ties.

    strict  P(left) = Φ(z)                                      (δ = 0: no ties)
    ties    P(left) = Φ(z - δ),  P(right) = Φ(-z - δ),  P(tie) = Φ(δ - z) - Φ(-δ - z),  δ > 0

``outcome`` is +1 (left), 0 (tie) or -1 (right), z is the margin and the noise of one answer has variance 1. Since
z ~ N(m, v) only widens the noise, E P(outcome | z) has the same form at (m, s = sqrt(1 + v)): :func:`tilted` gives
log E P, for expectation propagation and prediction; at v = 0 it is log P.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from predilect._base.compile import inner_kernel, kernel
from predilect._base.types import FloatArray
from predilect.inference.likelihoods.special import (
    FROM,
    PER_UNIT,
    TABLE,
    TO,
    log_ndtr,
    log_ndtr_scalar,
    mills_ratio_scalar,
    mills_scalar,
    strict_scalar,
)

_NODES = 15  # of the quadrature over an uncertain threshold


@kernel
def tilted_scalar(outcome: int, m: float, v: float, delta: float) -> tuple[float, float, float, float, float]:
    """(log Ẑ, ∂/∂m, -∂²/∂m², ∂/∂δ, ∂²/∂δ²) of log E P(outcome | z), z ~ N(m, v), for one answer."""
    s = math.sqrt(1.0 + v)
    if outcome != 0:
        r = (outcome * m - delta) / s
        value, rho, curvature = strict_scalar(r)
        curvature /= s * s
        return value, outcome * rho / s, curvature, -rho / s, -curvature
    # A tie. By symmetry work with |m|, and relative to the density φ(b) at the nearer end of the interval (a, b): so
    # exponents of the size of m² never cancel.
    sign = -1.0 if m >= 0.0 else 1.0
    centre = abs(m) / s
    half = delta / s
    a = -half - centre
    b = half - centre
    rho_b = mills_ratio_scalar(b)
    far = math.exp(-2.0 * half * centre)  # φ(a) / φ(b)
    inside = 1.0 - far * rho_b / mills_ratio_scalar(a)  # Z / Φ(b)
    edge_b = rho_b / inside  # φ(b) / Z
    edge_a = far * edge_b
    drop = -math.expm1(-2.0 * half * centre)
    log_z = log_ndtr_scalar(b) + math.log(inside)
    slope = drop * edge_b
    curvature = edge_b * (drop * slope + b - far * a)
    slope_delta = edge_b + edge_a
    curvature_delta = -edge_b * ((1.0 + far) * slope_delta + b - far * a)
    return log_z, sign * slope / s, curvature / (s * s), slope_delta / s, curvature_delta / (s * s)


@kernel
def moments_scalar(outcome: int, m: float, v: float, delta: float) -> tuple[float, float]:
    """(∂/∂m, -∂²/∂m²) of :func:`tilted_scalar`; a strict answer needs no logarithm for them."""
    if outcome != 0:
        s = math.sqrt(1.0 + v)
        rho, curvature = mills_scalar((outcome * m - delta) / s)
        return outcome * rho / s, curvature / (s * s)
    _, slope, curvature, _, _ = tilted_scalar(outcome, m, v, delta)
    return slope, curvature


@inner_kernel
def tilted_in_lanes(outcome: Any, row: Any, y: Any, m: Any, v: Any, delta: Any, n: int, out: Any) -> None:
    """:func:`tilted_scalar` of ``n`` answers into the columns of ``out`` (5, n): of ``outcome[row]``, which is y where
    it is strict. A row of -1 is none, and has slopes of 0.
    """
    value, slope, curvature, slope_delta, curvature_delta = out[0], out[1], out[2], out[3], out[4]
    n_others = 0
    for lane in range(n):
        s = 1.0 / math.sqrt(1.0 + v[lane])
        z = (y[lane] * m[lane] - delta[lane]) * s
        x = z if z > FROM else FROM
        x = x if x < TO else TO
        k = int((x - FROM) * PER_UNIT + 0.5)
        h = x - FROM - k / PER_UNIT
        p = TABLE[k, 10]
        q = 10.0 * TABLE[k, 10]
        for i in range(9, 0, -1):
            p = p * h + TABLE[k, i]
            q = q * h + i * TABLE[k, i]
        p = p * h + TABLE[k, 0]
        is_strict = y[lane] * y[lane]
        bend = is_strict * q * (q + x) * s * s
        value[lane] = is_strict * p
        slope[lane] = y[lane] * q * s
        curvature[lane] = bend
        slope_delta[lane] = -is_strict * q * s
        curvature_delta[lane] = -bend
        n_others += x != z or y[lane] == 0.0
    if n_others:
        for lane in range(n):
            z = (y[lane] * m[lane] - delta[lane]) / math.sqrt(1.0 + v[lane])
            if row[lane] >= 0 and not (y[lane] != 0.0 and FROM <= z <= TO):
                value[lane], slope[lane], curvature[lane], slope_delta[lane], curvature_delta[lane] = tilted_scalar(
                    outcome[row[lane]], m[lane], v[lane], delta[lane]
                )


@kernel
def tilted_arrays(
    outcome: npt.NDArray[np.int8], m: FloatArray, v: FloatArray, delta: FloatArray, out: FloatArray
) -> None:
    """The loop of :func:`tilted`."""
    for p in range(m.shape[0]):
        value, slope, curvature, slope_delta, curvature_delta = tilted_scalar(outcome[p], m[p], v[p], delta[p])
        out[0, p] = value
        out[1, p] = slope
        out[2, p] = curvature
        out[3, p] = slope_delta
        out[4, p] = curvature_delta


def tilted(
    outcome: npt.ArrayLike, m: npt.ArrayLike, v: npt.ArrayLike, delta: npt.ArrayLike = 0.0, loop: Any = tilted_arrays
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Log E P(outcome | z) for z ~ N(m, v), and its derivatives, (n,); population.md section 2.

    ∂/∂m, -∂²/∂m² in (0, 1), ∂/∂δ and ∂²/∂δ². Right beyond ±40, nothing is clipped. Ties need ``delta`` > 0. ``loop``:
    of another likelihood.
    """
    m, v, y = np.broadcast_arrays(
        np.asarray(m, dtype=float), np.asarray(v, dtype=float), np.asarray(outcome, dtype=np.int8)
    )
    out = np.empty((5, m.size))
    loop(
        np.array(y).ravel(),  # a copy: the loop would be compiled again for a column that is read-only
        np.ascontiguousarray(m).ravel(),
        np.ascontiguousarray(v).ravel(),
        np.full(m.shape, delta, dtype=float).ravel(),
        out,
    )
    return out[0], out[1], out[2], out[3], out[4]


_CARE_NODES, _CARE_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_CARE_WEIGHTS = _CARE_WEIGHTS / _CARE_WEIGHTS.sum()


def margins_in_noise(
    mean: FloatArray, var: FloatArray, consistency: FloatArray, sd: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Margins N(mean, var) in units of the noise of somebody's answers, log a ~ N(log ``consistency``, ``sd``²); (n,).

    Where a is not known for sure, the variance is that at ``consistency``, and the mean is the one at which left is
    chosen without ties as often as on average over a, by seven Gauss-Hermite nodes.
    """
    plain, spread = consistency * mean, consistency * consistency * var
    rows = np.flatnonzero((sd > 0.0) & (mean != 0.0))
    if not len(rows):
        return plain, spread
    against = np.zeros(len(rows))  # the chance of the less likely side keeps its digits
    for node, weight in zip(_CARE_NODES.tolist(), _CARE_WEIGHTS.tolist(), strict=True):
        a = consistency[rows] * np.exp(node * sd[rows])
        against += weight * ndtr(-a * np.abs(mean[rows]) / np.sqrt(1.0 + a * a * var[rows]))
    seen = against > 0.0
    rows, against = rows[seen], against[seen]
    plain[rows] = -np.sign(mean[rows]) * np.sqrt(1.0 + spread[rows]) * ndtri(against)
    return plain, spread


def with_random_clicks(mean: FloatArray, var: FloatArray, engaged: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Margins of people some of whom may click at random: the variance as it is, and the mean at which left is chosen
    without ties as often as if the margin counted with probability ``engaged``, and chance otherwise; (n,).
    """
    rows = np.flatnonzero((engaged < 1.0) & (mean != 0.0))
    if not len(rows):
        return mean, var
    mean, root = mean.copy(), np.sqrt(1.0 + var[rows])
    against = engaged[rows] * ndtr(-np.abs(mean[rows]) / root) + 0.5 * (1.0 - engaged[rows])
    mean[rows] = -np.sign(mean[rows]) * root * ndtri(against)
    return mean, var


def outcome_probabilities(m: npt.ArrayLike, v: npt.ArrayLike, delta: npt.ArrayLike = 0.0) -> FloatArray:
    """Probabilities of (left, tie, right) for margins z ~ N(m, v), (n, 3); rows sum to 1."""
    m = np.asarray(m, dtype=float)
    s = np.sqrt(1.0 + np.asarray(v, dtype=float))
    left = np.exp(log_ndtr((m - delta) / s))
    right = np.exp(log_ndtr((-m - delta) / s))
    if not np.any(delta):
        return np.column_stack([left, np.zeros_like(left), right])
    tie = np.exp(tilted(np.zeros(m.shape, dtype=np.int8), m, s * s - 1.0, delta)[0])
    probabilities = np.column_stack([left, tie, right])
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def outcome_log_probabilities(
    m: npt.ArrayLike, v: npt.ArrayLike, delta: npt.ArrayLike = 0.0, spread: float = 0.0,
    tilted: Callable[..., tuple[FloatArray, ...]] = tilted,
) -> FloatArray:  # fmt: skip
    """Log-probabilities of (left, tie, right) for margins z ~ N(m, v), (n, 3); nothing is clipped.

    ``spread`` σ > 0: an uncertain threshold with logarithm N(log δ, σ²), by a Gauss-Hermite rule of 15 nodes.
    ``tilted``: of another likelihood.
    """
    if spread:
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        parts = [
            outcome_log_probabilities(m, v, np.asarray(delta) * math.exp(spread * node), tilted=tilted)
            + math.log(weight)
            for node, weight in zip(nodes.tolist(), (weights / weights.sum()).tolist(), strict=True)
        ]
        return np.asarray(np.logaddexp.reduce(parts))
    m, v = np.asarray(m, dtype=float), np.asarray(v, dtype=float)
    delta = np.full(m.shape, delta, dtype=float)
    left, right = (tilted(np.full(m.shape, y), m, v, delta)[0] for y in (1, -1))
    tie = np.full(m.shape, -np.inf)
    may_tie = delta > 0.0
    tie[may_tie] = tilted(0, m[may_tie], v[may_tie], delta[may_tie])[0]
    return np.column_stack([left, tie, right])


def threshold_for_tie_share(share: float) -> float:
    """Threshold that gives ties a share if all margins were zero: the start of the search for δ."""
    return max(1e-3, float(ndtri(0.5 * (1.0 + min(share, 0.99)))))


def starting_threshold(outcome: npt.NDArray[np.int8], weight: FloatArray, given: float | None = None) -> float:
    """Tie threshold that is given or, for None, that of the share of ties; 0 without ties."""
    if given is not None:
        return given
    ties = float(weight[outcome == 0].sum())
    return threshold_for_tie_share(ties / float(weight.sum())) if ties else 0.0


def moved_threshold(delta: float, slope: float, curvature: float, furthest: float = 0.5) -> float:
    """Newton step of δ in its logarithm, of at most ``furthest``, by slope and curvature in δ of what is maximised."""
    gradient = delta * slope
    # In log δ: second derivative δ² h + δ g, negative near the maximum of a log-concave likelihood.
    bend = min(delta * delta * curvature + gradient, -1e-12 - 0.5 * abs(gradient))
    return delta * math.exp(float(np.clip(-gradient / bend, -furthest, furthest)))
