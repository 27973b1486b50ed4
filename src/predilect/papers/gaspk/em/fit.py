"""Alternating estimation of characteristics and weights, from several starts: the paper's algorithm 1."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from predilect._base.progress import Report
from predilect._base.text import either
from predilect._base.types import FloatArray
from predilect.inference.latent.scaled import best_threshold
from predilect.inference.likelihoods.probit import starting_threshold
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.dirichlet import open_weights, weights_of_data
from predilect.papers.gaspk.em.mode import (
    CurvaturePoint,
    Mode,
    Newton,
    find_mode,
    log_det_at,
    state_at,
)
from predilect.papers.gaspk.em.weights import heuristic_weights, likeliest_weights, random_weights
from predilect.papers.gaspk.posterior.basis import PointBasis
from predilect.papers.gaspk.posterior.sums import scatter
from predilect.papers.gaspk.settings import FitSettings

_LAST = 1e-8  # tolerance of the final mode
_SHORTER, _LONGER = 0.5, 1.2  # factors of a person's damping: of a step that turns back, of one that goes on
_LONGEST = 1.5  # most over-relaxation: 1 goes to the new weights
_COARSEST = 1e-2  # tolerance of earlier modes, relative to how much weights still move
# Share of E fᵀ cov(γ) f/2 that characteristics pay: all of it is the variational bound, which on choices among cars
# makes ten characteristics a few; without it characteristics follow the noise of people with few answers.
_COUNTED = 0.5
_FIRST_ROUNDS = 8  # of each start
_FAR = 0.1  # weights that move by more need another mode anyway: its tolerance is up to ten times as large


@dataclass(frozen=True, slots=True, eq=False)
class EM:
    """Result of the iteration."""

    mode: Mode
    gamma: FloatArray  # (n_users, n_c)
    left_open: FloatArray | None  # (n_users, n_c, n_c), covariance of the weights; None without a prior
    delta: float  # tie threshold
    evidence: float  # Laplace's log evidence given the weights, nats; NaN if not asked for
    objectives: tuple[float, ...]  # ψ after each round; never falls with exact weights, no damping, δ given
    report: Report


def run(
    basis: PointBasis, answers: TradeOffAnswers, gamma: FloatArray, settings: FitSettings, *,
    start: FloatArray | None = None, executor: ThreadPoolExecutor | None = None,
    progress: Callable[[float], None] | None = None, with_evidence: bool = True,
) -> EM:  # fmt: skip
    """Characteristics and weights, alternated until convergence from the weights ``gamma`` (n_users, n_c).

    Uniform weights stay uniform: all characteristics would be one. ``start`` (rank, n_c) are coordinates to begin with.
    The determinant of the evidence can take as long as twenty rounds.

    docs/math/gaspk.md section 3, steps 3 to 5. With exact weights this climbs the joint posterior of characteristics
    and weights; with the heuristic it is no ascent, and may cycle, which damping ends: a person's step is damped more
    where it turns back and forth, and grows to 1.5 where steps go on the same way (with damping 1 never above 1).
    Without such over-relaxation 100 rounds were not enough for 20 000 people of 10 answers each; with it 70 were. With
    a prior of the weights characteristics pay for what answers leave open of these, step 3.0.
    """
    began = time.perf_counter()
    threshold = starting_threshold(answers.outcome, answers.weight, settings.delta)
    learned = settings.delta is None and threshold > 0.0
    mode: Mode | None = None
    objectives, direction = [], Newton()
    change, rounds = np.inf, 0
    longest = _LONGEST if settings.damping < 1.0 else 1.0
    step, share = np.zeros_like(gamma), np.full(len(gamma), settings.damping)
    penalty: FloatArray | None = None
    if start is not None:
        penalty = penalty_at(state_at(basis, answers, gamma, Probit(threshold), start), basis.forward(start), settings)
    while True:
        likelihood = Probit(threshold)
        moved, last = min(1.0, change), change < settings.tolerance or rounds == settings.max_rounds
        tolerance = _LAST if last else max(_LAST, _COARSEST * moved * max(1.0, moved / _FAR))
        begin = start if mode is None else mode
        mode = find_mode(
            basis, answers, gamma, likelihood, direction, start=begin, penalty=penalty, tolerance=tolerance
        )
        objectives.append(mode.psi)
        if rounds == settings.max_rounds:
            break
        before, step = step, weights_given(settings, answers, mode.F, gamma, threshold, executor) - gamma
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
        penalty = penalty_at(replace(mode.state, gamma=gamma), mode.F, settings)
        rounds += 1
        if progress is not None:
            progress(rounds / settings.max_rounds)
    # As computed from w when a model is loaded: the same bits.
    mode = replace(mode, state=state_at(basis, answers, gamma, likelihood, mode.w))
    left_open = left_open_at(mode.state, mode.w, settings.estimator, settings.concentration)
    evidence = mode.psi - 0.5 * log_det_at(mode.state, settings.random_state) if with_evidence else np.nan
    report = Report(
        method=f"GaSPK ({settings.estimator} weights)", iterations=rounds, residual=change,
        tolerance=settings.tolerance, converged=change < settings.tolerance and mode.report.converged, jitter=0.0,
        seconds=time.perf_counter() - began, unit="of the largest difference between a weight and its next",
        advice=either(
            "take fewer characteristics (--model gaspk,n_components=...).",
            "raise max_iter, or take fewer characteristics.",
        ),
    )  # fmt: skip
    return EM(mode, gamma, left_open, threshold, evidence, tuple(objectives), report)


def _furthest(gamma: FloatArray, step: FloatArray) -> FloatArray:
    """How often a person's step fits into the simplex, at least once; (n_users,)."""
    times = np.divide(gamma, -step, out=np.full(gamma.shape, np.inf), where=step < 0.0)
    return np.asarray(np.maximum(times.min(axis=1, initial=np.inf), 1.0))


def left_open_at(state: CurvaturePoint, w: FloatArray, estimator: str, concentration: float) -> FloatArray | None:
    """Covariances (n_users, n_c, n_c) of the weights that a state is about; None without a prior of them."""
    if concentration == 0.0 or state.gamma.shape[1] == 1:
        return None
    return left_open_of(state.answers, state.basis.forward(w), state.gamma, state.precision, estimator, concentration)


def left_open_of(
    answers: TradeOffAnswers, F: FloatArray, gamma: FloatArray, precision: FloatArray, estimator: str,
    concentration: float,
) -> FloatArray:  # fmt: skip
    """Covariances (n_users, n_c, n_c) of the weights under their prior, given the characteristics at the points."""
    if estimator != "heuristic":
        return open_weights(answers, F, gamma, precision, concentration)
    n_c = gamma.shape[1]
    total = n_c * concentration + np.bincount(answers.user, answers.weight, answers.n_users)
    out = gamma[:, :, None] * np.eye(n_c) - gamma[:, :, None] * gamma[:, None, :]
    return np.asarray(out / (total + 1.0)[:, None, None])  # of a Dirichlet


def penalty_at(state: CurvaturePoint, F: FloatArray, settings: FitSettings) -> FloatArray | None:
    """Triangles of Σ over the answers about a trade-off of their curvature times half the covariance of the weights."""
    n_c = state.gamma.shape[1]
    if settings.concentration == 0.0 or n_c == 1:
        return None
    left_open = left_open_of(state.answers, F, state.gamma, state.precision, settings.estimator, settings.concentration)
    return penalty_of(state, left_open)


def penalty_of(state: CurvaturePoint, left_open: FloatArray) -> FloatArray:
    """The same of people whose weights have the covariances ``left_open`` (n_users, n_c, n_c)."""
    triangles, rows = left_open[:, *np.tril_indices(left_open.shape[1])], state.answers.by_point
    return scatter(rows.user, rows.point, _COUNTED * state.by_point, triangles, state.basis.n_points)


def weights_given(
    settings: FitSettings, answers: TradeOffAnswers, F: FloatArray, gamma: FloatArray, delta: float,
    executor: ThreadPoolExecutor | None = None,
) -> FloatArray:  # fmt: skip
    """Weights (n_users, n_c) given the characteristics at the points, beginning at ``gamma``."""
    if gamma.shape[1] == 1:
        return gamma
    alpha = settings.concentration
    if settings.estimator == "heuristic":
        return heuristic_weights(answers, F, delta=delta, concentration=alpha)
    # With a prior there is one maximum, and one Newton step more finds it to all digits.
    return likeliest_weights(
        answers, F, start=gamma, delta=delta, concentration=alpha, executor=executor,
        tolerance=1e-6 if alpha == 0.0 else 1e-10,
    ).weights  # fmt: skip


def weights_to_start(
    basis: PointBasis, answers: TradeOffAnswers, n_c: int, settings: FitSettings, number: int
) -> FloatArray:
    """Weights of a start: with a prior of the weights number 0 is that of the answers, and none depends on the seed."""
    if number == 0 and settings.concentration > 0.0 and n_c > 1:
        threshold = starting_threshold(answers.outcome, answers.weight, settings.delta)
        return weights_of_data(basis, answers, n_c, settings.concentration, threshold)
    first, kind = answers.kinds
    seed = settings.random_state if settings.concentration == 0.0 else 0
    return random_weights(len(first), n_c, np.random.default_rng([number, seed]))[kind]


@dataclass(frozen=True, slots=True, eq=False)
class BestStart:
    """The best of several starts; ``evidences`` are log evidences (nats) of each start after its first rounds."""

    em: EM
    evidences: tuple[float, ...]
    report: Report


def best_start(
    basis: PointBasis, answers: TradeOffAnswers, n_c: int, settings: FitSettings, *,
    executor: ThreadPoolExecutor | None = None, progress: Callable[[float], None] | None = None,
) -> BestStart:  # fmt: skip
    """Starts of 8 rounds each, of which the one with the highest evidence is continued.

    With a prior of the weights the first start is that of the answers; others are random, each from a stream of its
    own. docs/math/gaspk.md section 2.1: uniform weights are a saddle where all characteristics are one.
    """
    began = time.perf_counter()
    n_starts = 1 if n_c == 1 else settings.n_starts
    first = settings if n_starts == 1 else replace(settings, max_rounds=min(settings.max_rounds, _FIRST_ROUNDS))
    best: EM | None = None
    evidences, rounds = [], 0
    for start in range(n_starts):
        gamma = weights_to_start(basis, answers, n_c, settings, start)
        found = run(basis, answers, gamma, first, executor=executor)
        evidences.append(found.evidence)
        rounds += found.report.iterations
        if best is None or found.evidence > best.evidence:
            best = found
        if progress is not None:
            progress(0.7 * (start + 1) / n_starts)
    assert best is not None
    left = settings.max_rounds - best.report.iterations
    if not best.report.converged and left > 0:
        # The tie threshold is not passed on: it is learned again within a round or two.
        on = replace(settings, max_rounds=left)
        best = run(basis, answers, best.gamma, on, start=best.mode.w, executor=executor)
        rounds += best.report.iterations
    report = replace(best.report, iterations=rounds, seconds=time.perf_counter() - began)
    return BestStart(best, tuple(evidences), report)
