"""Laplace's approximation for one latent function, by Newton's method without an inverse of K."""

from __future__ import annotations

import time

import numpy as np

from predilect._base.types import FloatArray
from predilect.inference.gaussian.design import Sites
from predilect.inference.latent.single import Problem, SingleLatent, report_of

_MAX_HALVINGS = 40


def laplace(
    problem: Problem, *, tolerance: float = 1e-8, max_iter: int = 100, start: Sites | None = None
) -> SingleLatent:
    """Laplace's approximation of f ~ N(mean, K) given answers.

    ``tolerance``: largest last step of a margin, relative to 1 + the largest margin. The mode does not depend on the
    sites of ``start``.

    ψ(f) = Σ w log p(y | A f) - ½ (f - mean)ᵀ K⁻¹ (f - mean) with f = mean + K α, which is concave; a step is halved
    while it lowers ψ (modern.md A.5). log Z = ψ(f̂) - ½ log |B|. A factorisation of min(n_items, n_answers)³ a step.
    """
    began = time.perf_counter()
    prior, y, w = problem.prior, problem.outcome, problem.weight

    def sites_at(z: FloatArray) -> tuple[float, Sites]:
        value, slope, curvature = problem.likelihood.at(y, z)
        return float(w @ value), Sites(curvature, slope + curvature * z)

    z, alpha, shift = prior.margin_mean, np.zeros(len(prior.mean)), np.zeros(len(prior.mean))
    if start is not None:
        state = problem.condition(problem.starting_sites(start))
        z, alpha, shift = state.margin_mean, state.alpha, state.shift
    log_likelihood, sites = sites_at(z)
    iterations = 0
    while True:
        state = problem.condition(sites)
        step_z, step_alpha, step_shift = state.margin_mean - z, state.alpha - alpha, state.shift - shift
        size = float(np.abs(step_z).max(initial=0.0) / (1.0 + np.abs(z).max(initial=0.0)))
        if size <= tolerance or iterations == max_iter:
            break
        iterations += 1
        value = log_likelihood - 0.5 * float(alpha @ shift)
        step = 1.0
        for _ in range(_MAX_HALVINGS):
            new_alpha, new_shift = alpha + step * step_alpha, shift + step * step_shift
            log_likelihood, sites = sites_at(z + step * step_z)
            # Rounding alone may lower the value by a few ulps at the mode.
            if log_likelihood - 0.5 * float(new_alpha @ new_shift) >= value - 1e-12 * abs(value):
                break
            step *= 0.5
        z, alpha, shift = z + step * step_z, new_alpha, new_shift
    # The last step is taken, and the curvature is that of the mode it leads to: the evidence is then right to the
    # square of the tolerance, and so are its differences between hyper-parameters.
    log_likelihood, sites = sites_at(state.margin_mean)
    state = problem.condition(sites)
    evidence = log_likelihood - 0.5 * state.quadratic - 0.5 * state.log_det
    advice = "look for extreme weights or scales, or raise max_iter."
    report = report_of("Laplace", iterations, size, tolerance, state, began, advice)
    return SingleLatent("laplace", evidence, sites, report, state, problem)
