"""Gaussian variational inference for one latent function, with exact expectations of the likelihood."""

from __future__ import annotations

import time
from typing import NamedTuple

from predilect.inference.gaussian.condition import Conditioned
from predilect.inference.gaussian.design import Sites
from predilect.inference.latent.single import Problem, SingleLatent, change_of_margin, report_of

_SMALLEST_STEP = 1e-8
_SMALLEST_SWING = 0.05  # a step is made shorter than this only because the bound falls, not because margins oscillate
_STEP_GROWTH = 1.2
# What rounding may take from the bound at the optimum, relative to it: below that the residual alone decides.
_SLACK = 1e-10


class _Point(NamedTuple):
    """Approximation q, its bound, and the sites of a full natural-gradient step."""

    sites: Sites
    state: Conditioned
    bound: float
    target: Sites
    residual: float


def variational(
    problem: Problem, *, tolerance: float = 1e-8, max_iter: int = 500, start: Sites | None = None
) -> SingleLatent:
    """Gaussian variational inference of f ~ N(mean, K) given answers.

    ``tolerance`` is the largest change of a margin, in units of the answer noise, that a full step would make; the
    sites hold λ = E(-ℓ'') and g + λ m_z, ``evidence`` is the lower bound.

    modern.md 10: with m_z = A m and V_z = diag A S Aᵀ,

        bound = Σ w E log p(y | z) - ½ (log |B| - Σ w λ V_z + αᵀ K α),  S⁻¹ = K⁻¹ + Aᵀ diag(w λ) A,

    where the last three terms are KL(q || prior) without an inverse of K. A natural-gradient step of length 1 replaces
    the sites by (λ, g + λ m_z) at the current q; it is halved while it lowers the bound, so the bound never falls, and
    doubled again afterwards. A factorisation of min(n_items, n_answers)³ a step.
    """
    began = time.perf_counter()
    w = problem.weight

    def at(sites: Sites) -> _Point:
        state = problem.condition(sites)
        value, slope, curvature = problem.likelihood.expected(problem.outcome, state.margin_mean, state.margin_var)
        divergence = 0.5 * (state.log_det - float(w @ (sites.precision * state.margin_var)) + state.quadratic)
        target = Sites(curvature, slope + curvature * state.margin_mean)
        residual = change_of_margin(w, sites, target, state.margin_mean, state.margin_var)
        return _Point(sites, state, float(w @ value) - divergence, target, residual)

    here = at(problem.starting_sites(start))
    step, iterations = 1.0, 0
    while True:
        if here.residual <= tolerance or iterations == max_iter or step < _SMALLEST_STEP:
            break
        iterations += 1
        trial = at(here.sites.towards(here.target, step))
        if trial.bound >= here.bound - _SLACK * (1.0 + abs(here.bound)):  # False where it is not a number
            step = max(0.5 * step, _SMALLEST_SWING) if trial.residual > here.residual else min(_STEP_GROWTH * step, 1.0)
            here = trial
        else:
            step *= 0.5
    advice = "raise max_iter, or look for extreme weights or scales."
    report = report_of("variational inference", iterations, here.residual, tolerance, here.state, began, advice)
    return SingleLatent("variational", here.bound, here.sites, report, here.state, problem)
