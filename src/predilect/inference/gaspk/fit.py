"""Model selection of GaSPK by held-out answers, and random restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels import Kernel
from predilect.inference.gaspk.answers import TradeOffAnswers
from predilect.inference.gaspk.em import EM, Settings, run
from predilect.inference.gaspk.held_out import held_out_margins, log_loss, spread_factor
from predilect.inference.gaspk.weights import random_weights
from predilect.inference.report import Report
from predilect.posteriors.gaspk.basis import Basis

__all__ = ["Candidate", "Fitted", "Trial", "best_start", "try_candidates"]

FloatArray = npt.NDArray[np.float64]

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
