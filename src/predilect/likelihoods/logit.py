"""Logistic likelihood of pairs, by the trapezoid rule."""

from __future__ import annotations

import math
from typing import ClassVar

from predilect._compile import kernel
from predilect.likelihoods.views import PairLikelihood

_REACH = 12.0  # in standard deviations: the peak of the integrand may lie far out
_STEP = 0.25


@kernel
def tilted_scalar(outcome: int, m: float, v: float, delta: float) -> tuple[float, float, float, float, float]:
    """(log Ẑ, ∂/∂m, -∂²/∂m², ∂/∂δ, ∂²/∂δ²) of log E P(outcome | z), z ~ N(m, v), by the trapezoid rule.

    P(left) = σ(z - δ), P(right) = σ(-z - δ), and P(tie) = (1 - exp(-2δ)) σ(δ + z) σ(δ - z) is the rest.
    """
    root = math.sqrt(v)
    step = min(_STEP, 0.6 / root) if root > 0.0 else 1.0  # the nearest singularities of σ are π away
    n = math.ceil(_REACH / step) if root > 0.0 else 0
    sign = 1.0 if outcome == 0 else -1.0
    largest, total, slope, second, slope_delta, second_delta = -math.inf, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(-n, n + 1):
        x = k * step
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
    log_z = largest + math.log(total) + (math.log(step) - 0.5 * math.log(2.0 * math.pi) if n else 0.0)
    return log_z, slope, slope * slope - second / total, slope_delta, second_delta / total - slope_delta * slope_delta


class Logit(PairLikelihood):
    """Answer with logistic noise."""

    __slots__ = ()
    name: ClassVar[str] = "logit"
    unit: ClassVar[str] = "log-odds"
    tilted_scalar = tilted_scalar
