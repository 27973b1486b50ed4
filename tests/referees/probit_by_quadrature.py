"""Log E P(outcome | z), z ~ N(m, v), and its derivatives, by integration alone.

With noise of variance 1 the answer is a window on t = z + noise ~ N(m, s²), s² = 1 + v, and

    log Ẑ = log of the mass of the window,   ∂ log Ẑ/∂m = (E t - m)/s²,   -∂²/∂m² = (1 - Var t / s²)/s²

with the moments of t inside the window: no difference of two tails anywhere, so this stays right at any margin.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def window(outcome: int, delta: float) -> tuple[float, float]:
    """Values of z + noise that give this answer."""
    return {1: (delta, math.inf), 0: (-delta, delta), -1: (-math.inf, -delta)}[outcome]


def tilted_by_moments(outcome: int, m: float, v: float, delta: float) -> tuple[float, float, float]:
    """(log Ẑ, slope in m, curvature in m), the last as 1 - variance."""
    s = math.sqrt(1.0 + v)
    low, high = (np.array(window(outcome, delta)) - m) / s
    if low + high < 0.0:  # mirror, so that the edge nearest to the mean (or the mean itself) is the lower one
        sign, low, high = -1.0, -high, -low
    else:
        sign = 1.0
    # The integrand exp(-low t - t²/2), t >= 0 from the lower edge, is below 1e-300 of its peak beyond this reach.
    reach = min(high - low, -low + math.sqrt(low * low + 200.0))
    edges = np.linspace(0.0, reach, 21)
    half = 0.5 * np.diff(edges)[:, None]
    t = (edges[:-1, None] + half + half * _NODES).ravel()
    log_integrand = -low * t - 0.5 * t * t
    peak = log_integrand.max()
    mass = (half * _WEIGHTS).ravel() * np.exp(log_integrand - peak)
    total = mass.sum()
    mean = float(mass @ t / total)
    variance = float(mass @ (t - mean) ** 2 / total)
    log_z = math.log(total) + peak - 0.5 * low * low - 0.5 * math.log(2.0 * math.pi)
    return log_z, sign * (low + mean) / s, (1.0 - variance) / s**2


def tilted_by_expectation(outcome: int, m: float, v: float, delta: float) -> float:
    """Log of the integral of P(outcome | z) N(z; m, v): the definition itself, for moderate margins."""

    def integrand(x: float) -> float:
        z = m + math.sqrt(v) * x
        probability = ndtr(outcome * z - delta) if outcome else ndtr(delta - abs(z)) - ndtr(-delta - abs(z))
        return probability * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)

    return math.log(quad(integrand, -14.0, 14.0, epsabs=0.0, epsrel=1e-12, limit=400)[0])
