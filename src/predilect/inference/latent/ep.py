"""Expectation propagation for one latent function, parallel with step control or sequential."""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from predilect._base.types import FloatArray
from predilect.inference.gaussian.condition import Conditioned
from predilect.inference.gaussian.design import MarginMatrix, Sites
from predilect.inference.latent.single import Problem, SingleLatent, change_of_margin, report_of
from predilect.inference.likelihoods.views import Likelihood

_SMALLEST_STEP = 0.05
_STEP_GROWTH = 1.2
_MAX_INNER = 200  # inner iterations of a row of many identical answers
_INNER_TOLERANCE = 1e-13


def ep(
    problem: Problem,
    *,
    schedule: Literal["parallel", "sequential"] = "parallel",
    tolerance: float = 1e-8,
    max_iter: int = 300,
    start: Sites | None = None,
) -> SingleLatent:
    """Expectation propagation of f ~ N(mean, K) given answers.

    ``tolerance`` is the largest change of a margin, in units of the answer noise, that an undamped sweep would make.
    "parallel" costs one factorisation, min(n_items, n_answers)³, a sweep; "sequential" n_answers min(n_items,
    n_answers)² more for rank-one updates, but fewer sweeps without oscillation. Both have the same fixed point.

    vvm.md 2.2 and 2.3, with the sites of :func:`predilect.inference.likelihoods.probit.tilted`. Copies of an answer
    (``weight``) have one site each and move together, to the fixed point of the group given everything else: undamped
    they would overshoot together. A site whose cavity or new value is not proper is kept. The posterior is computed
    from scratch after every sweep (modern.md A.6).

    **Differs from the paper**: modern.md damps by 0.8 and halves that where the evidence oscillates; here the step
    starts at 1, is halved where the residual grows, and grows by a fifth where it falls. Exact likelihoods then need
    one sweep, and the rule needs no evidence.
    """
    began = time.perf_counter()
    sites = problem.starting_sites(start)
    state = problem.condition(sites)
    step, last, iterations = 1.0, np.inf, 0
    while True:
        target = refreshed(
            problem.likelihood, problem.outcome, problem.weight, sites, state.margin_mean, state.margin_var
        )
        residual = change_of_margin(problem.weight, sites, target, state.margin_mean, state.margin_var)
        if residual <= tolerance or iterations == max_iter:
            break
        iterations += 1
        if schedule == "sequential":
            sites = _sweep(problem, sites, state)
        else:
            step = max(0.5 * step, _SMALLEST_STEP) if residual > last else min(_STEP_GROWTH * step, 1.0)
            sites = sites.towards(target, step)
        last = residual
        state = problem.condition(sites)
    evidence = _evidence(problem, sites, state)
    advice = 'try schedule="sequential", or look for extreme weights or scales.'
    report = report_of(f"{schedule} EP", iterations, residual, tolerance, state, began, advice)
    return SingleLatent("ep", evidence, sites, report, state, problem)


def refreshed(
    likelihood: Likelihood, outcome: npt.NDArray[Any], w: FloatArray, old: Sites, mean: FloatArray, var: FloatArray
) -> Sites:
    """New sites of rows of weights ``w``, given the posterior of their margins."""
    group = w != 1.0
    new = _settled(likelihood, outcome, w, old, mean, var, 1)
    if group.any():
        several = _settled(
            likelihood, outcome[group], w[group], Sites(old.precision[group], old.linear[group]), mean[group],
            var[group], _MAX_INNER,
        )  # fmt: skip
        new.precision[group], new.linear[group] = several.precision, several.linear
    return new


def _settled(
    likelihood: Likelihood, y: npt.NDArray[Any], w: FloatArray, old: Sites, mean: FloatArray, var: FloatArray, most: int
) -> Sites:
    """Site updates in ``most`` inner iterations to the fixed point of a row's copies; a row of one copy needs one."""
    precision, linear = old.precision, old.linear
    proper = 1.0 - precision * var > 0.0
    # Margin without any of the copies. With one copy that is the cavity, and one step is enough.
    rest = np.where(proper, 1.0 - w * precision * var, 1.0)
    rest = np.where(rest > 0.0, rest, 1.0)
    v_rest, m_rest = var / rest, (mean - var * w * linear) / rest
    new = Sites(precision.copy(), linear.copy())
    step, last = np.ones(len(w)), np.zeros(len(w))
    for _ in range(most):
        spread = 1.0 + w * new.precision * v_rest
        v, m = v_rest / spread, (m_rest + v_rest * w * new.linear) / spread
        share = 1.0 - new.precision * v
        keep = ~(proper & (share > 0.0))
        share[keep] = 1.0
        v_cavity, m_cavity = v / share, (m - v * new.linear) / share
        _, slope, curvature = likelihood.tilted(y, m_cavity, v_cavity)
        share = 1.0 - curvature * v_cavity
        d_precision = curvature / share - new.precision
        d_linear = (slope + curvature * m_cavity) / share - new.linear
        keep |= ~((share > 0.0) & np.isfinite(d_precision) & np.isfinite(d_linear))
        keep |= new.precision + d_precision < 0.0
        d_precision[keep] = 0.0
        d_linear[keep] = 0.0
        step = np.where(d_precision * last < 0.0, np.maximum(0.5 * step, _SMALLEST_STEP), step)
        last = d_precision
        new = Sites(new.precision + step * d_precision, new.linear + step * d_linear)
        moving = np.abs(d_precision) > _INNER_TOLERANCE * (1.0 + new.precision)
        moving |= np.abs(d_linear) > _INNER_TOLERANCE * (1.0 + np.abs(new.linear))
        if not moving.any():
            break
    return new


def _sweep(problem: Problem, sites: Sites, state: Conditioned) -> Sites:
    """Sequential EP sweep."""
    sites = sites.copy()
    # In the space of answers the latent values are the margins themselves.
    if problem.prior.space == "answers":
        design = MarginMatrix(np.arange(problem.n_answers), None, problem.n_answers)
        S, mu = problem.prior.design.gram(state.covariance()), state.margin_mean.copy()
    else:
        design = problem.prior.design
        S, mu = state.covariance(), state.mean()
    for p in range(problem.n_answers):
        i = design.left[p]
        if design.right is None:
            c, m = S[:, i].copy(), mu[i]
            v = c[i]
        else:
            j = design.right[p]
            c, m = S[:, i] - S[:, j], mu[i] - mu[j]
            v = c[i] - c[j]
        row = slice(p, p + 1)
        old = Sites(sites.precision[row], sites.linear[row])
        law = np.array([m]), np.array([max(v, 0.0)])
        new = refreshed(problem.likelihood, problem.outcome[row], problem.weight[row], old, *law)
        d_precision = problem.weight[p] * (new.precision[0] - sites.precision[p])
        d_linear = problem.weight[p] * (new.linear[0] - sites.linear[p])
        spread = 1.0 + d_precision * v
        mu += c * ((d_linear - d_precision * m) / spread)
        S -= np.outer(c, c * (d_precision / spread))
        sites.precision[row], sites.linear[row] = new.precision, new.linear
    return sites


def _evidence(problem: Problem, sites: Sites, state: Conditioned) -> float:
    """EP's log evidence (vvm.md 2.3, in a form that divides by no variance and no precision).

    A row adds w (log Ẑ + F(cavity) - F(posterior)), F the log-partition function of a Gaussian, and the messages
    together log ∫ N(f; mean, K) Π exp(w (η z - ½ λ z²)) df.
    """
    precision, linear, w = sites.precision, sites.linear, problem.weight
    m, v, z_bar = state.margin_mean, state.margin_var, problem.prior.margin_mean
    share = 1.0 - precision * v
    log_z, _, _ = problem.likelihood.tilted(problem.outcome, (m - v * linear) / share, v / share)
    message = 0.5 * ((precision * m - 2.0 * linear) * m + linear * linear * v) / share - 0.5 * np.log(share)
    prior = (linear - 0.5 * precision * z_bar) * z_bar + 0.5 * (linear - precision * z_bar) * (m - z_bar)
    return float(w @ (log_z + message + prior)) - 0.5 * state.log_det
