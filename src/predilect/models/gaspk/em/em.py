"""Alternating estimation of characteristics and people's weights: gaspk.md algorithm 1."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from predilect._types import FloatArray
from predilect.latent.scaled import best_threshold, starting_threshold
from predilect.likelihoods.views import Probit
from predilect.models.gaspk.em.answers import TradeOffAnswers
from predilect.models.gaspk.em.mode import Mode, Newton, curvature_at, find_mode, log_det_at, state_at
from predilect.models.gaspk.em.weights import exact_weights, expected_weights, heuristic_weights
from predilect.models.gaspk.posterior.scores import Basis
from predilect.progress import Report

Estimator = Literal["heuristic", "exact", "expected"]
ESTIMATORS = ("heuristic", "exact", "expected")

_LAST = 1e-8  # tolerance of the final mode
_SHORTER, _LONGER = 0.5, 1.2  # factors of a person's damping: of a step that turns back, of one that goes on
_LONGEST = 1.5  # most over-relaxation: 1 goes to the new weights
_COARSEST = 1e-2  # tolerance of earlier modes, relative to how much weights still move
_FAR = 0.1  # weights that move by more need another mode anyway: its tolerance is up to ten times as large


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the iteration."""

    estimator: Estimator = "heuristic"
    damping: float = 0.7  # first share of the new weights, in (0, 1]
    tolerance: float = 1e-2  # largest undamped change of a weight in the last round
    max_rounds: int = 100


@dataclass(frozen=True, slots=True, eq=False)
class EM:
    """Result of the iteration."""

    mode: Mode
    gamma: FloatArray  # (n_users, n_c)
    delta: float  # tie threshold
    evidence: float  # Laplace's log evidence given the weights, nats; NaN if not asked for
    objectives: tuple[float, ...]  # ψ after each round; never falls with exact weights, no damping, δ given
    report: Report


def run(
    basis: Basis,
    answers: TradeOffAnswers,
    gamma: FloatArray,
    settings: Settings,
    *,
    delta: float | None = None,
    start: FloatArray | None = None,
    executor: ThreadPoolExecutor | None = None,
    progress: Callable[[float], None] | None = None,
    random_state: int = 0,
    with_evidence: bool = True,
) -> EM:
    """Characteristics and weights, alternated until convergence from the weights ``gamma`` (n_users, n_c).

    Uniform weights stay uniform: all characteristics would be one. ``delta`` None learns the tie threshold (0 without
    ties); ``start`` (rank, n_c) are coordinates to begin with. The determinant of the evidence can take as long as
    twenty rounds.

    gaspk.md 3, steps 3 to 5. With exact weights this climbs the joint posterior of characteristics and weights; with
    the heuristic it is no ascent, and may cycle, which damping ends: a person's step is damped more where it turns back
    and forth, and grows to 1.5 where steps go on the same way (with damping 1 never above 1). Without such
    over-relaxation 100 rounds were not enough for 20 000 people of 10 answers each; with it 70 were.
    """
    began = time.perf_counter()
    learned = delta is None
    threshold = starting_threshold(answers.outcome, answers.weight) if delta is None else delta
    learned = learned and threshold > 0.0
    mode: Mode | None = None
    objectives, direction = [], Newton()
    change, rounds = np.inf, 0
    longest = _LONGEST if settings.damping < 1.0 else 1.0
    step, share = np.zeros_like(gamma), np.full(len(gamma), settings.damping)
    while True:
        likelihood = Probit(threshold)
        moved, last = min(1.0, change), change < settings.tolerance or rounds == settings.max_rounds
        tolerance = _LAST if last else max(_LAST, _COARSEST * moved * max(1.0, moved / _FAR))
        begin = start if mode is None else mode
        mode = find_mode(basis, answers, gamma, likelihood, direction, start=begin, tolerance=tolerance)
        objectives.append(mode.psi)
        if rounds == settings.max_rounds:
            break
        before, step = step, _weights(settings.estimator, answers, mode, gamma, threshold, executor) - gamma
        change = float(np.abs(step).max(initial=0.0))
        if last and change < settings.tolerance:  # judged by an accurate mode, never by a coarse one
            break
        back = np.einsum("uc,uc->u", before, step) < 0.0
        share = np.where(back, _SHORTER * share, np.minimum(_LONGER * share, longest))
        gamma = gamma + np.minimum(share, _furthest(gamma, step))[:, None] * step
        if learned:
            threshold = best_threshold(
                answers.outcome, answers.weight, mode.margin, np.zeros(answers.n_rows), threshold
            )
        rounds += 1
        if progress is not None:
            progress(rounds / settings.max_rounds)
    # As computed from w when a model is loaded: the same bits.
    mode = replace(mode, state=state_at(basis, answers, gamma, likelihood, mode.w))
    evidence = mode.psi - 0.5 * log_det_at(mode.state, random_state) if with_evidence else np.nan
    report = Report(
        method=f"GaSPK ({settings.estimator} weights)", iterations=rounds, residual=change,
        tolerance=settings.tolerance, converged=change < settings.tolerance and mode.report.converged, jitter=0.0,
        seconds=time.perf_counter() - began, unit="of the largest difference between a weight and its next",
        advice="raise max_iter, or take fewer characteristics.",
    )  # fmt: skip
    return EM(mode, gamma, threshold, evidence, tuple(objectives), report)


def _furthest(gamma: FloatArray, step: FloatArray) -> FloatArray:
    """How often a person's step fits into the simplex, at least once; (n_users,)."""
    times = np.divide(gamma, -step, out=np.full(gamma.shape, np.inf), where=step < 0.0)
    return np.asarray(np.maximum(times.min(axis=1, initial=np.inf), 1.0))


def _weights(
    estimator: Estimator,
    answers: TradeOffAnswers,
    mode: Mode,
    gamma: FloatArray,
    delta: float,
    executor: ThreadPoolExecutor | None,
) -> FloatArray:
    if gamma.shape[1] == 1:
        return gamma
    if estimator == "heuristic":
        return heuristic_weights(answers, mode.F, delta=delta)
    if estimator == "exact":
        return exact_weights(answers, mode.F, start=gamma, delta=delta, executor=executor).weights
    V = curvature_at(mode.state).blocks(mode.state.basis.dense())
    return expected_weights(answers, mode.F, V, start=gamma, delta=delta, executor=executor).weights
