"""Natural-gradient ascent of the bound on all answers, with exact expectations."""

from __future__ import annotations

import math
from dataclasses import dataclass

from predilect._types import FloatArray
from predilect.gaussian.design import Sites
from predilect.latent.sparse.approximation import Approximation, Scale, divergence
from predilect.latent.sparse.margins import natural_parameters
from predilect.latent.sparse.problem import Batch, Problem
from predilect.likelihoods.expectation import expected

_SLACK = 1e-13  # of the bound: rounding alone may lower it by as much
_LEAST_STEP = 2.0**-20


@dataclass(frozen=True, slots=True)
class View:
    """Margins as the inducing points explain them, and the lower bound."""

    mean: FloatArray  # (n,), as the next four
    variance: FloatArray
    value: FloatArray  # E log P of one copy of each answer
    slope: FloatArray  # g, in the mean
    curvature: FloatArray  # λ = -2 times the slope in the variance
    bound: float  # in nats


@dataclass(frozen=True, slots=True)
class Ascent:
    """Result of the ascent; ``view`` belongs to ``q`` and ``scale``, ``change`` is of the bound in the last pass."""

    q: Approximation
    scale: Scale
    view: View
    iterations: int
    change: float
    converged: bool


def view(batch: Batch, q: Approximation, scale: Scale, delta: float) -> View:
    """Bound and its slopes at q, with all variances computed anew."""
    return _at(batch, q, scale, delta, batch.margins.mean(q.mean), batch.margins.variance(q.factor.lower))


def _at(batch: Batch, q: Approximation, scale: Scale, delta: float, mean: FloatArray, variance: FloatArray) -> View:
    value, slope, curvature = expected(batch.outcome, mean, variance + batch.residual / scale.value, delta)
    bound = float(batch.weight @ value) - divergence(q, scale)
    return View(mean, variance, value, slope, curvature, bound)


def natural_target(batch: Batch, sites: Sites, scale: float, factor: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Target of a natural-gradient step: s I + π Σ w τ x xᵀ, π Σ w ν x; ``factor`` is π, the answers a row stands for.

    crowdgppl.md 2.2, eqs. 17, 18. The natural gradient of the bound is this less the natural parameters of q.
    """
    together = sites.times(factor * batch.weight)
    return natural_parameters(batch.margins, together.precision, together.linear, scale)


def ascend(
    problem: Problem,
    q: Approximation,
    scale: Scale,
    *,
    max_iter: int,
    tolerance: float,
    hold_scale: bool = False,
) -> Ascent:
    """Natural-gradient ascent: steps of 1, halved where the bound would fall, each followed by a step of the scale.

    ``hold_scale`` holds q(s) although it is to be learned. modern.md 3.5, 4, 10. One pass costs what
    :class:`~predilect.latent.sparse.margins.ItemMargins` says, and one more evaluation of E log P where the scale is
    learned and M < n_items. **Differs from modern.md section 4**: there a pass is reverted if the bound falls by more
    than 1e-3 an answer; with one latent function a step that is short enough never lets it fall, so it may not.
    """
    batch, delta = problem.all(), problem.delta
    now = view(batch, q, scale, delta)
    step, change, converged, iterations = 1.0, math.inf, False, 0
    while iterations < max_iter and not converged:
        iterations += 1
        before = now.bound
        least = before - _SLACK * abs(before)
        target = natural_target(batch, Sites(now.curvature, now.slope + now.curvature * now.mean), scale.value)
        step = min(2.0 * step, 1.0)
        while True:
            tried_q = q.towards(*target, step)
            tried = view(batch, tried_q, scale, delta)
            if tried.bound >= least:
                q, now = tried_q, tried
                break
            step *= 0.5
            if step < _LEAST_STEP:  # no ascent beyond rounding
                break
        if scale.learned and not hold_scale:
            scale, now = _scaled(batch, q, scale, delta, now)
        change = now.bound - before
        converged = change <= tolerance * problem.n_answers and (step >= 0.25 or step < _LEAST_STEP)
        step = max(step, _LEAST_STEP)
    return Ascent(q, scale, now, iterations, change, converged)


def _scaled(batch: Batch, q: Approximation, scale: Scale, delta: float, now: View) -> tuple[Scale, View]:
    """Ascent step of s (modern.md section 6: with a residual it is no conjugate update)."""
    residual = float((batch.weight * now.curvature) @ batch.residual)
    way = math.log(scale.best(q.square, residual) / scale.value)
    least = now.bound - _SLACK * abs(now.bound)
    part = 1.0
    while part >= _LEAST_STEP:
        tried = scale.at(scale.value * math.exp(part * way))
        # The bound at the tried scale; the part of the margins that the points explain stays.
        seen = _at(batch, q, tried, delta, now.mean, now.variance)
        if seen.bound >= least:
            return tried, seen
        part *= 0.5
    return scale, now
