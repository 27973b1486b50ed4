"""Alternating estimation of characteristics and weights (gaspk.md algorithm 1), its length-scales and amplitude."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import pdist

from predilect._types import FloatArray, IntArray
from predilect.gaussian.kernels import Kernel, Linear, Product, Selected, median_length_scales
from predilect.gaussian.kernels.stationary import drawn_rows
from predilect.latent.evidence import EvidenceSearch, maximise_evidence
from predilect.latent.scaled import best_threshold
from predilect.likelihoods.probit import starting_threshold, tilted
from predilect.likelihoods.views import Probit
from predilect.models.gaspk.em.mode import Mode, Newton, TradeOffAnswers, curvature_at, find_mode, log_det_at, state_at
from predilect.models.gaspk.em.weights import heuristic_weights, likeliest_weights, random_weights
from predilect.models.gaspk.posterior.curvature import in_parts
from predilect.models.gaspk.posterior.grid import GridBasis
from predilect.models.gaspk.posterior.low_rank import LowRank
from predilect.models.gaspk.posterior.scores import Basis
from predilect.models.gaspk.posterior.solver import ByProducts
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
    threshold = starting_threshold(answers.outcome, answers.weight, delta)
    learned = delta is None and threshold > 0.0
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
    V = curvature_at(mode.state).blocks(mode.state.basis.dense()) if estimator == "expected" else None
    return likeliest_weights(answers, mode.F, V, start=gamma, delta=delta, executor=executor).weights


LENGTH_RULES = ("median", "median-sqrt-half", "per-dimension")
_MOST_POINTS = 1000
_MOST_ROWS = 600
_MOST_EVALUATIONS = 25


def length_scales_by_rule(points: FloatArray, rule: str, antisymmetric: bool, random_state: int) -> FloatArray:
    """The median heuristic, shape (d,), over distinct trade-offs (n_points, d).

    Mirror images are included if antisymmetric. "median": median distance; "median-sqrt-half": √(median squared
    distance / 2), after Houlsby et al.; "per-dimension": √d times the median difference in each dimension, of those
    that differ. At most 1 000 points, drawn at random. gaspk.md 4: the paper leaves open whether there is one
    length-scale or one a dimension.
    """
    everything = np.vstack([points, -points]) if antisymmetric else points
    if rule == "per-dimension":
        return median_length_scales(everything, "root", random_state)
    apart = pdist(drawn_rows(everything, _MOST_POINTS, random_state))
    apart = apart[apart > 0.0]
    length = float(np.median(apart)) if len(apart) else 1.0
    return np.full(points.shape[1], length / math.sqrt(2.0) if rule == "median-sqrt-half" else length)


def by_evidence(
    kernel: Kernel,
    points: FloatArray,
    answers: TradeOffAnswers,
    gamma: FloatArray,
    delta: float,
    *,
    fixed: tuple[str, ...],
    random_state: int,
) -> EvidenceSearch[Kernel]:
    """Hyper-parameters of largest Laplace evidence given the weights ``gamma`` (n_users, n_c), but for those ``fixed``.

    Of 600 rows, those of people drawn at random. gaspk.md 1.1: given the weights the answers are classified by one
    process with the kernel (γ · γ') k(t, t'). The evidence takes the weights as known, and so likes large amplitudes
    that fit them too well.
    """
    n_users, n_c = gamma.shape
    order = np.random.default_rng(random_state).permutation(n_users)
    rows = np.argsort(np.argsort(order)[answers.user], kind="stable")[:_MOST_ROWS]
    x = np.hstack([gamma[answers.user[rows]], points[answers.point[rows]]])
    together = Product(
        (
            Selected(Linear(np.array([float(n_c)])), tuple(range(n_c))),
            Selected(kernel, tuple(range(n_c, x.shape[1]))),
        ),
        ("people", "trade-offs"),
    )
    values = dict(zip(together.names, np.exp(together.theta).tolist(), strict=True))
    still = {name: (values[name], values[name]) for name in ("people.variance", *(f"trade-offs.{n}" for n in fixed))}
    found = maximise_evidence(
        together, x, np.arange(len(rows)), None, answers.outcome[rows], answers.weight[rows], Probit(delta),
        method="laplace", bounds=still, tolerance=1e-6, max_evaluations=_MOST_EVALUATIONS,
    )  # fmt: skip
    learned = kernel.with_theta(found.kernel.theta[1:])
    return EvidenceSearch(learned, found.fit, found.gradient[1:], found.at_bound, found.report)


_WIDEST = math.log(100.0)
_RATE = 1.0  # of an exponential prior of log T²: a handful of answers must not widen everything
_TOLERANCE = 1e-3
_NUMBERS_AT_ONCE = 20_000_000


def held_out_margins(
    found: EM, answers: TradeOffAnswers, n_eigenpairs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (n,) of the margins of answers at the points of a fit.

    Where a curvature on a grid is not factorised, ``n_eigenpairs`` gives variances from so many eigenpairs of each
    characteristic, as predictions do: 1 500 solutions of equations took 100 s where these take one. None is exact.
    """
    gamma, basis = found.gamma[answers.user], found.mode.state.basis
    mean = np.einsum("ic,ic->i", gamma, found.mode.F[answers.point])
    curvature = curvature_at(found.mode.state)
    if n_eigenpairs is not None and isinstance(curvature, ByProducts) and isinstance(basis, GridBasis):
        points, code = np.unique(answers.point, return_inverse=True)
        low_rank = LowRank.of(basis, found.mode.state.B, n_eigenpairs)
        return mean, low_rank.variances(basis.trade_offs(basis.places[points]), gamma, code)[0]
    var = np.empty(answers.n_rows)
    for some in in_parts(answers.n_rows, basis.rank, _NUMBERS_AT_ONCE):
        var[some] = curvature.variances(_rows(basis, answers.point[some]), gamma[some])
    return mean, var


def _rows(basis: Basis, points: IntArray) -> FloatArray:
    """Rows of Φ, without ever forming all of it on a large grid."""
    if isinstance(basis, GridBasis) and basis.Phi is None:
        return basis.at(basis.places[points])
    return basis.dense()[points]


def spread_factor(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: float
) -> float:
    """Calibration of Φ(mean / (T √(1 + var))) on held-out answers: mode of T² ≥ 1 under an exponential prior of log T².

    Characteristics and weights are fitted to each other, and weights are then taken as known: margins come out too
    sure. Some 20 passes over the answers.
    """

    def loss(log_factor: float) -> float:
        wider = math.exp(log_factor) * (1.0 + var) - 1.0
        return float(-weight @ tilted(outcome, mean, wider, delta)[0]) + _RATE * log_factor

    found = minimize_scalar(loss, bounds=(0.0, _WIDEST), method="bounded", options={"xatol": _TOLERANCE})
    return math.exp(float(found.x)) if found.fun < loss(0.0) else 1.0


def log_loss(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: float, spread: float
) -> float:
    """Mean log loss in nats an answer, with 1 + var multiplied by T²."""
    value = tilted(outcome, mean, spread * (1.0 + var) - 1.0, delta)[0]
    return float(-(weight @ value) / weight.sum())


_TRIAL_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel of the characteristics and their number."""

    kernel: Kernel
    n_c: int


@dataclass(frozen=True, slots=True)
class Trial:
    """Held-out log loss of a candidate (nats an answer), at its ``spread`` T²."""

    candidate: Candidate
    log_loss: float
    spread: float


def try_candidates(
    candidates: Sequence[Candidate],
    basis_of: Callable[[Kernel], Basis],
    folds: Sequence[tuple[TradeOffAnswers, TradeOffAnswers]],
    settings: Settings,
    *,
    delta: float | None,
    random_state: int,
    n_eigenpairs: int | None = None,
    executor: ThreadPoolExecutor | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Trial]:
    """Cross-validated log loss of each candidate over ``folds`` of (kept, held out); at most 8 rounds a trial.

    The evidence takes weights as known, and prefers amplitudes that fit them too well: on choices among cars it rises
    to an amplitude of 155, where held-out answers have a log loss of .30, against .25 at 20.
    """
    short = replace(settings, max_rounds=min(settings.max_rounds, _TRIAL_ROUNDS))
    trials = []
    for number, candidate in enumerate(candidates):
        basis = basis_of(candidate.kernel)
        said: list[npt.NDArray[np.int8]] = []
        columns: tuple[list[FloatArray], ...] = ([], [], [])
        deltas = []
        for kept, out in folds:
            gamma = random_weights(kept.n_users, candidate.n_c, np.random.default_rng(random_state))
            found = run(
                basis, kept, gamma, short, delta=delta, executor=executor, random_state=random_state,
                with_evidence=False,
            )  # fmt: skip
            said.append(out.outcome)
            for column, part in zip(columns, (*held_out_margins(found, out, n_eigenpairs), out.weight), strict=True):
                column.append(part)
            deltas.append(found.delta)
        outcome, (mean, var, weight) = np.concatenate(said), (np.concatenate(column) for column in columns)
        threshold = float(np.mean(deltas))
        spread = spread_factor(outcome, mean, var, weight, threshold)
        trials.append(Trial(candidate, log_loss(outcome, mean, var, weight, threshold, spread), spread))
        if progress is not None:
            progress((number + 1) / len(candidates))
    return trials


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The best of several starts; ``evidences`` are log evidences (nats) of each start after its first rounds."""

    em: EM
    evidences: tuple[float, ...]
    report: Report


def best_start(
    basis: Basis,
    answers: TradeOffAnswers,
    n_c: int,
    settings: Settings,
    n_starts: int,
    *,
    delta: float | None,
    random_state: int,
    executor: ThreadPoolExecutor | None = None,
    progress: Callable[[float], None] | None = None,
) -> Fitted:
    """Restarts from random weights, 8 rounds each, of which the one with the highest evidence is continued.

    Start r has the seed ``random_state`` + r. gaspk.md 2.1: uniform weights are a saddle where all characteristics are
    one, hence random ones.
    """
    began = time.perf_counter()
    n_starts = 1 if n_c == 1 else n_starts
    first = settings if n_starts == 1 else replace(settings, max_rounds=min(settings.max_rounds, _TRIAL_ROUNDS))
    best: EM | None = None
    evidences, rounds = [], 0
    for start in range(n_starts):
        gamma = random_weights(answers.n_users, n_c, np.random.default_rng(random_state + start))
        found = run(basis, answers, gamma, first, delta=delta, executor=executor, random_state=random_state)
        evidences.append(found.evidence)
        rounds += found.report.iterations
        if best is None or found.evidence > best.evidence:
            best = found
        if progress is not None:
            progress(0.7 * (start + 1) / n_starts)
    assert best is not None
    left = settings.max_rounds - best.report.iterations
    if not best.report.converged and left > 0:
        on = replace(settings, max_rounds=left)
        # The tie threshold is not passed on: it is learned again within a round or two.
        best = run(
            basis, answers, best.gamma, on, delta=delta, start=best.mode.w, executor=executor, random_state=random_state
        )
        rounds += best.report.iterations
    report = replace(best.report, iterations=rounds, seconds=time.perf_counter() - began)
    return Fitted(best, tuple(evidences), report)
