"""Collaborative Gaussian process over items, with the full covariance of each person's weights."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from predilect._types import FloatArray
from predilect.factors.answers import FactorAnswers, ItemDesign
from predilect.factors.posterior import FactorPosterior
from predilect.factors.state import FactorState, assemble, moments, random_start
from predilect.factors.sweep import Effects, item_sweep, people_step
from predilect.gaussian.design import Sites
from predilect.gaussian.projection import Projection
from predilect.latent.single import change_of_margin
from predilect.models.collaborative.functions import CollaborativeFit, CrowdWeights, importances, moved_threshold
from predilect.models.collaborative.sites import answer_evidence, refreshed_sites
from predilect.progress import Report

_SMALLEST_STEP = 0.1
_STEP_GROWTH = 1.2
_FIRST_EFFECTS = 3  # sweeps before the weights have a mean


def fit_modern(
    answers: FactorAnswers, projection: Projection, *, n_components: int = 20, traits: FloatArray | None = None,
    fixed_weights: bool = False, delta: float | None = None, tolerance: float = 0.1, max_iter: int = 200,
    random_state: int = 0, watch: Callable[[int, float], None] | None = None,
) -> CollaborativeFit:  # fmt: skip
    """Posterior of f_u = Σ_d w_ud h_d by q = Π_d q(h_d) Π_u q(w_u), with EP messages of answers.

    ``traits`` (n_users, n_traits): standardised features of people, zeros where unknown. ``fixed_weights``: all weights
    are 1 and known, one function is then Gaussian process classification, several a ValueError. ``delta=None`` follows
    the evidence where there are ties. Stops once an undamped update would move no margin by more than ``tolerance``, in
    noise units.

    modern.md 3 without the consensus and with scales of 1: the blocks are those of the factor model. n_rows D² +
    n_users D³ + D (items of the design) operations a sweep.

    **Differs from modern.md**, as measured on Sushi: sites are those of expectation propagation, not of the expected
    logarithm of the likelihood (same time; log loss .310 against .315 nats, and .580 against .587 from five answers a
    person); and weights have a mean, w_u ~ N(b + B x_u, I), estimated over people (log loss .312 and .559).
    """
    began = time.perf_counter()
    if fixed_weights and n_components != 1:
        raise ValueError("weights that are fixed at 1 need one function")
    design = ItemDesign.of(projection, answers.left, answers.right)
    n_users, active = answers.n_users, np.diff(answers.user_ptr) > 0
    rows = np.ones((n_users, 1)) if traits is None else np.column_stack([np.ones(n_users), traits])
    effects = None if fixed_weights else Effects.start(rows, n_components, active)
    prior = np.ones((n_users, 1)) if effects is None else effects.prior_mean()
    rng = np.random.default_rng(random_state)
    state = random_start(answers, design, n_components, False, prior, delta, rng, s=1.0)
    if fixed_weights:
        state.mu[:], state.Sigma[:] = 1.0, 0.0
    run = _Run(state, Sites.flat(len(answers.user)), effects)
    _advance(run, answers, design, delta is None, tolerance, max_iter, watch)
    report = Report(
        "EP of shared functions", run.sweeps, run.residual, tolerance, run.residual <= tolerance,
        projection.factor.jitter, time.perf_counter() - began,
        "noise units of the largest change of a margin without damping", "allow more iterations.",
    )  # fmt: skip
    parts = importances(answers.user, answers.pair, answers.weight, state.mu, state.delta)
    posterior = _posterior(run, projection, rows)
    return CollaborativeFit(posterior, state.threshold, run.evidence, parts, run.n_improper, run.sites, report)


@dataclass(slots=True)
class _Run:
    """State of a fit."""

    state: FactorState
    sites: Sites
    effects: Effects | None
    evidence: float = -math.inf
    residual: float = math.inf
    sweeps: int = 0
    n_improper: int = 0


def _advance(
    run: _Run, answers: FactorAnswers, design: ItemDesign, learn_delta: bool, tolerance: float, most: int,
    watch: Callable[[int, float], None] | None,
) -> None:  # fmt: skip
    """Sweeps to convergence, or ``most``; the site step is halved where the residual grew, else grows by a fifth."""
    y, w, state = answers.outcome, answers.weight, run.state
    mean, var = moments(state, answers)
    moved, last, step = math.inf, math.inf, 1.0
    while True:
        new = refreshed_sites(y, w, run.sites, mean, var, state.threshold, keep=False)
        change = change_of_margin(w, run.sites, new.sites, mean, var)
        run.residual = max(change, moved)
        if watch is not None and run.sweeps:
            watch(run.sweeps, run.residual)
        if run.residual <= tolerance or run.sweeps == most:
            return
        step = max(0.5 * step, _SMALLEST_STEP) if change > last else min(_STEP_GROWTH * step, 1.0)
        last = change
        run.sites = run.sites.towards(new.sites, step)
        run.n_improper = int(new.improper.sum())
        if run.effects is not None:
            people_step(state, run.sites, answers)
        item_sweep(state, run.sites, moments(state, answers)[0], answers, design)
        if run.effects is not None and run.sweeps >= _FIRST_EFFECTS:
            run.effects = run.effects.settled(state)
        before = mean
        mean, var = moments(state, answers)
        moved = float(np.max(np.abs(mean - before)))
        found = answer_evidence(y, w, run.sites, mean, var, state.threshold)
        run.evidence = found.value - _divergence(run)
        if learn_delta and state.threshold > 0.0:
            state.threshold = moved_threshold(state.threshold, found.slope, found.curvature)
        run.sweeps += 1


def _divergence(run: _Run) -> float:
    """KL of functions, weights and their mean from their priors."""
    state = run.state
    total = sum(function.divergence(1.0) for function in state.components)
    if run.effects is None:
        return total
    square = np.einsum("ucc->", state.Sigma) + np.sum((state.mu - state.prior) ** 2)
    return total + 0.5 * float(square - state.mu.size - state.log_det.sum()) + run.effects.divergence()


def _posterior(run: _Run, projection: Projection, rows: FloatArray) -> FactorPosterior:
    """Posterior of a state; people without answers follow their traits."""
    state, effects = run.state, run.effects
    if effects is None:
        return assemble(state, projection, state.mu, state.Sigma, CrowdWeights.average(state.mu, state.Sigma[:, :, 0]))
    D = state.n_components
    weights = CrowdWeights(effects.mean, effects.covariance, np.ones(D))
    silent = np.flatnonzero(~effects.active)
    mu, Sigma = state.mu.copy(), state.Sigma.copy()
    mu[silent], spread = weights.law(D, rows[silent, 1:])
    Sigma[silent] = spread[:, :, None] * np.eye(D)
    return assemble(state, projection, mu, Sigma, weights)
