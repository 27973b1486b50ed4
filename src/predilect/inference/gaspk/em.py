"""Characteristics and people's weights, turn about: gaspk.md algorithm 1."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from predilect.inference.gaspk.answers import TradeOffAnswers
from predilect.inference.gaspk.mode import Mode, find_mode, state_at
from predilect.inference.gaspk.solve import Newton, curvature_at, log_det_at
from predilect.inference.gaspk.weights import exact_weights, expected_weights, heuristic_weights
from predilect.inference.report import Report
from predilect.inference.threshold import best_threshold, starting_threshold
from predilect.likelihoods.views import Probit
from predilect.posteriors.gaspk.basis import Basis

__all__ = ["EM", "ESTIMATORS", "Estimator", "Settings", "run"]

FloatArray = npt.NDArray[np.float64]
Estimator = Literal["heuristic", "exact", "expected"]
ESTIMATORS = ("heuristic", "exact", "expected")

_LAST = 1e-8  # of the mode that is kept
_SHORTER, _LONGER = 0.5, 1.2  # a person's step that turns back, and one that goes on
_LONGEST = 1.5  # times as far as the new weights
_COARSEST = 1e-2  # of modes on the way, relative to how much weights still move
_FAR = 0.1  # weights that move by more will make another mode of it anyway: up to ten times as coarse


@dataclass(frozen=True, slots=True)
class Settings:
    """How to iterate.

    Attributes
    ----------
    estimator : {"heuristic", "exact", "expected"}
        Of people's weights.
    damping : float
        Share of the new weights in the next ones to begin with, in (0, 1]; less for somebody whose steps turn back and
        forth, and up to 1.5 for somebody whose steps go on and on the same way. With 1 it is never more than 1.
    tolerance : float
        Largest difference between a weight and the new one in the last round, before damping.
    max_rounds : int
    """

    estimator: Estimator = "heuristic"
    damping: float = 0.7
    tolerance: float = 1e-2
    max_rounds: int = 100


@dataclass(frozen=True, slots=True, eq=False)
class EM:
    """Where the iteration ended.

    Attributes
    ----------
    mode : Mode
        Of the characteristics under the weights ``gamma``.
    gamma : array of float, shape (n_users, n_c)
    delta : float
        Tie threshold.
    evidence : float
        Laplace's log evidence of the answers given the weights, in nats; NaN where it was not asked for.
    objectives : tuple of float
        ψ after each round; with exact weights, no damping and a given tie threshold it never falls.
    report : Report
    """

    mode: Mode
    gamma: FloatArray
    delta: float
    evidence: float
    objectives: tuple[float, ...]
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
    """Iterate from weights.

    Parameters
    ----------
    basis : Basis
    answers : TradeOffAnswers
    gamma : array of float, shape (n_users, n_c)
        Weights to begin with. Uniform ones stay: all characteristics would be one.
    settings : Settings
    delta : float, optional
        Tie threshold; learned by default, 0 without ties.
    start : array of float, shape (rank, n_c), optional
        Coordinates to begin with.
    executor : ThreadPoolExecutor, optional
        For the weights of people.
    progress : callable, optional
        Is told the share of the rounds that is done.
    random_state : int
        Of a log determinant that is estimated.
    with_evidence : bool
        Whether there is an evidence, whose determinant can take as long as twenty rounds; NaN otherwise.

    Notes
    -----
    gaspk.md 3, steps 3 to 5. With exact weights this climbs the joint posterior of characteristics and weights; with
    the heuristic it is no ascent, and may go round in circles, which damping ends. Of many people some are slow to
    settle: going further than the new weights took 70 rounds for 20 000 people of 10 answers each, and 100 were not
    enough without. A round costs a few products with
    the basis and passes over the answers; the number of answers matters for the latter alone.
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
        if last and change < settings.tolerance:  # by the mode that is kept, and not by a coarse one alone
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
    # As a model that is read from a file makes it of w: the same bits.
    mode = replace(mode, state=state_at(basis, answers, gamma, likelihood, mode.w))
    evidence = mode.psi - 0.5 * log_det_at(mode.state, random_state) if with_evidence else np.nan
    report = Report(
        method=f"GaSPK ({settings.estimator} weights)", iterations=rounds, residual=change,
        tolerance=settings.tolerance, converged=change < settings.tolerance and mode.report.converged, jitter=0.0,
        seconds=time.perf_counter() - began, unit="of the largest difference between a weight and its next",
        advice="raise max_iterations, or take fewer characteristics.",
    )  # fmt: skip
    return EM(mode, gamma, threshold, evidence, tuple(objectives), report)


def _furthest(gamma: FloatArray, step: FloatArray) -> FloatArray:
    """How often a person's step fits into the simplex, shape (n_users,); at least once."""
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
