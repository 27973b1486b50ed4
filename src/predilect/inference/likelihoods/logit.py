"""Logistic likelihood of pairs, by the trapezoid rule."""

from __future__ import annotations

import math
from typing import ClassVar

from predilect._base.compile import inner_kernel, kernel
from predilect.inference.likelihoods.probit import tilted_scalar as normal_scalar
from predilect.inference.likelihoods.views import PairLikelihood

_REACH = 12.0  # in standard deviations: the peak of the integrand may lie far out
_STEP = 0.25
_WIDE = 16.0  # the variance from which the integral over the noise takes fewer nodes than that over z
_NOISE_STEP = 0.5  # the density of the noise has its nearest poles at ±iπ: the rule errs by exp(-2π²/0.5)
_NOISE_REACH = 45.0  # where the logistic density is exp(-45) of its value at 0


@inner_kernel
def _integrated(outcome: int, m: float, v: float, delta: float, wide: bool) -> tuple[float, float, float, float, float]:
    """:func:`tilted_scalar` by the trapezoid rule over z or, where N(m, v) is ``wide``, over the noise L of the answer.

    P(left) = E Φ((m + L - δ) / √v), and so on: an answer with normal noise of variance v at the margin m + L.
    """
    root = math.sqrt(v)
    if wide:
        # Far out, log Φ((m + L) / √v) rises by up to |m| / v <= ½ with L, and the density has to fall further.
        step, n = _NOISE_STEP, math.ceil((1.0 + min(1.0, 2.0 * (abs(m) + delta) / v)) * _NOISE_REACH / _NOISE_STEP)
    elif root > 0.0:
        step = min(_STEP, 0.6 / root)  # the nearest singularities of σ are π away
        n = math.ceil(_REACH / step)
    else:
        step, n = 1.0, 0
    sign = 1.0 if outcome == 0 else -1.0
    largest, total, slope, second, slope_delta, second_delta = -math.inf, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(-n, n + 1):
        x = k * step
        if wide:
            log_p, d, dd, e, ee = normal_scalar(outcome, m + x, v - 1.0, delta)
            log_p -= abs(x) + 2.0 * math.log1p(math.exp(-abs(x)))
            dd = -dd
        else:
            log_p, d, dd, e, ee = -0.5 * x * x, 0.0, 0.0, 0.0, 0.0
            for side in (-1, 1):
                if outcome == -side:
                    continue
                r = side * (m + root * x) + sign * delta
                small = math.exp(-abs(r))
                log_p += min(r, 0.0) - math.log1p(small)
                rest = (small if r > 0.0 else 1.0) / (1.0 + small)  # 1 - σ(r)
                bend = small / (1.0 + small) ** 2
                d, dd, e, ee = d + side * rest, dd - bend, e + sign * rest, ee - bend
            if outcome == 0:
                odds = 2.0 / math.expm1(2.0 * delta)
                log_p, e, ee = log_p + math.log(-math.expm1(-2.0 * delta)), e + odds, ee - odds * (odds + 2.0)
        if log_p > largest:
            scale = math.exp(largest - log_p)
            total, slope, second = scale * total, scale * slope, scale * second
            slope_delta, second_delta = scale * slope_delta, scale * second_delta
            largest = log_p
        p = math.exp(log_p - largest)
        total += p
        slope, second = slope + p * d, second + p * (dd + d * d)
        slope_delta, second_delta = slope_delta + p * e, second_delta + p * (ee + e * e)
    slope, slope_delta = slope / total, slope_delta / total
    log_z = largest + math.log(total)
    if n:
        log_z += math.log(step) - (0.0 if wide else 0.5 * math.log(2.0 * math.pi))
    return log_z, slope, slope * slope - second / total, slope_delta, second_delta / total - slope_delta * slope_delta


@inner_kernel
def _log_sigmoid(y: float, v: float) -> tuple[float, float, float, float]:
    """(log E σ(z), ∂/∂y, -∂²/∂y², and log E σ(z) - y to full precision) for z ~ N(y, v) with a large v.

    Where the noise that turns the answer is out of reach, by σ(z) = exp(z) σ(-z), which makes log E σ(z)
    y + v/2 + log E σ(-z) with z ~ N(y + v, v).
    """
    if y >= -0.5 * v:
        value, slope, bend, _, _ = _integrated(1, y, v, 0.0, True)
        return value, slope, bend, value - y
    value, slope, bend, _, _ = _integrated(-1, y + v, v, 0.0, True)
    value += 0.5 * v
    return y + value, 1.0 + slope, bend, value


@kernel
def tilted_scalar(outcome: int, m: float, v: float, delta: float) -> tuple[float, float, float, float, float]:
    """(log Ẑ, ∂/∂m, -∂²/∂m², ∂/∂δ, ∂²/∂δ²) of log E P(outcome | z), z ~ N(m, v); at most 361 nodes for any v.

    P(left) = σ(z - δ), P(right) = σ(-z - δ), and P(tie) = (1 - exp(-2δ)) σ(δ + z) σ(δ - z) is the rest.
    """
    if v < _WIDE:
        return _integrated(outcome, m, v, delta, False)
    if outcome != 0:
        value, slope, bend, _ = _log_sigmoid(outcome * m - delta, v)
        return value, outcome * slope, bend, -slope, -bend
    if abs(m) <= 0.5 * v:
        return _integrated(0, m, v, delta, True)
    # The difference of two sides, of which the farther one is about exp(-2δ) of the other.
    value, a, bend_a, nearer = _log_sigmoid(delta - abs(m), v)
    _, b, bend_b, farther = _log_sigmoid(-delta - abs(m), v)
    log_odds = farther - nearer - 2.0 * delta
    rest = -math.expm1(log_odds)
    wa, wb = 1.0 / rest, -math.exp(log_odds) / rest
    slope, slope_delta = wa * a + wb * b, wa * a - wb * b
    second = wa * (a * a - bend_a) + wb * (b * b - bend_b)
    outward = -1.0 if m > 0.0 else 1.0
    return value + math.log(rest), outward * slope, slope * slope - second, slope_delta, second - slope_delta**2


class Logit(PairLikelihood):
    """Answer with logistic noise."""

    __slots__ = ()
    name: ClassVar[str] = "logit"
    unit: ClassVar[str] = "log-odds"
    tilted_scalar = tilted_scalar
    log_odds: ClassVar[float] = 1.0
