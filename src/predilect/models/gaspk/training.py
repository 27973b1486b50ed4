"""Training of ``GaSPK``: candidates, restarts, and the fitted posterior."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from predilect.data import Comparisons, k_folds_answers
from predilect.errors import DataError
from predilect.gaussian.kernels import Antisymmetric, Kernel, Scaled, Stationary
from predilect.models.gaspk.bases import Bases, choose_backend, posterior_of
from predilect.models.gaspk.em.answers import TradeOffAnswers
from predilect.models.gaspk.em.em import EM, Settings
from predilect.models.gaspk.em.fit import Candidate, Trial, best_start, try_candidates
from predilect.models.gaspk.em.hyperparameters import LENGTH_RULES, by_evidence, length_scales_by_rule
from predilect.models.gaspk.parameters import Choices, Resolved, Told, read_choices, resolve
from predilect.models.gaspk.posterior.posterior import GaSPKPosterior
from predilect.models.reading import Training
from predilect.progress import Report, Watcher

_AMPLITUDES = (1.0, 3.0, 10.0, 30.0)
_NUMBERS = (1, 2, 3, 5, 10)
_FOLDS, _ENOUGH_HELD_OUT = 5, 600.0
_MOST_PEOPLE_TRIED = 1000


class FittedGaSPK(NamedTuple):
    """Result of a fit."""

    posterior: GaSPKPosterior
    choices: Choices
    answers: TradeOffAnswers
    backend: str
    kernel: Kernel
    em: EM
    spread: float
    personal: bool
    report: Report
    search: dict[str, Any]


def fit_gaspk(
    model: Any, training: Training, delta: float | None, executor: ThreadPoolExecutor | None, watch: Watcher | None
) -> FittedGaSPK:
    """Fit ``model``, a GaSPK; raises DataError as :func:`~predilect.models.gaspk.parameters.read_choices`."""
    answers, how = training.comparisons, resolve(model)
    personal = answers.has_users and answers.n_users > 1
    choices, told = read_choices(model, training, how.antisymmetric)
    backend = choose_backend(how.backend, choices)
    settings = Settings(model.gamma, how.damping, float(model.tol), max_rounds=int(model.max_iter))
    start = _kernel(model, choices, how.antisymmetric)
    shared: dict[str, Any] = {"delta": delta, "random_state": int(model.random_state), "executor": executor}
    bases = Bases(choices, backend, max(_numbers(model, personal)), answers.n_rows)
    trials = _trials(model, how, personal, told, answers, start, bases, settings, shared, watch)
    best = min(trials, key=lambda trial: trial.log_loss) if trials else None
    numbers = _numbers(model, personal)
    chosen = best.candidate if best else Candidate(start(_amplitudes(how)[0]), numbers[0])
    kernel, whole = chosen.kernel, told.answers(answers)
    at_bound: tuple[str, ...] = ()
    progress = None if watch is None else (lambda share: watch("fitting characteristics, %", round(100 * share)))
    if (fixed := _to_learn(model, how, kernel)) is not None:
        first = best_start(bases.of(kernel), whole, chosen.n_c, settings, 1, **shared)
        found = by_evidence(
            kernel, choices.points, whole, first.em.gamma, first.em.delta, fixed=fixed,
            random_state=int(model.random_state),
        )  # fmt: skip
        kernel, at_bound = found.kernel, found.at_bound
    fitted = best_start(
        bases.of(kernel), whole, chosen.n_c, settings, int(model.n_restarts), **shared, progress=progress
    )
    em = fitted.em
    spread = how.spread if how.spread is not None else best.spread if best else 1.0
    posterior = posterior_of(
        model, choices.trade_offs, kernel, bases.of(kernel), em.mode.w, em.gamma, em.mode.state, spread, training.space
    )
    search = {
        **told.report, "backend": backend, "rank": bases.of(kernel).rank,
        "left_out": getattr(bases.of(kernel), "left_out", 0.0), "at_bound": list(at_bound),
        "evidence_of_starts": list(fitted.evidences),
        "trials": [
            {**_values(t.candidate.kernel), "n_components": t.candidate.n_c, "log_loss": t.log_loss,
             "spread": t.spread} for t in trials
        ],
    }  # fmt: skip
    return FittedGaSPK(posterior, choices, whole, backend, kernel, em, spread, personal, fitted.report, search)


def _kernel(model: Any, choices: Choices, antisymmetric: bool) -> Callable[[float], Kernel]:
    """The kernel of an amplitude."""
    d = choices.points.shape[1]
    scales = model.length_scale
    if isinstance(scales, str):
        rule = scales if scales in LENGTH_RULES else "per-dimension"
        lengths = length_scales_by_rule(choices.points, rule, antisymmetric, int(model.random_state))
    else:
        lengths = np.atleast_1d(np.asarray(scales, dtype=np.float64))
        if len(lengths) not in (1, d):
            raise DataError(
                f"length_scale holds {len(lengths)} numbers, but trade-offs have {d} dimensions: "
                f"{', '.join(choices.trade_offs.names)}. Give one number for all, or one for each."
            )
        lengths = np.broadcast_to(lengths, d).copy()

    def of(amplitude: float) -> Kernel:
        kernel = Scaled(Stationary(lengths, model.kernel, "product"), amplitude)
        return Antisymmetric(kernel) if antisymmetric else kernel

    return of


def _amplitudes(how: Resolved) -> tuple[float, ...]:
    if isinstance(how.amplitude, str):
        return _AMPLITUDES if how.amplitude == "auto" else (_AMPLITUDES[1],)
    return (float(how.amplitude),)


def _numbers(model: Any, personal: bool) -> tuple[int, ...]:
    if not personal:
        return (1,)
    return _NUMBERS if isinstance(model.n_components, str) else (int(model.n_components),)


def _to_learn(model: Any, how: Resolved, kernel: Kernel) -> tuple[str, ...] | None:
    """Names of hyper-parameters that the evidence keeps fixed; None if it learns nothing."""
    amplitude, lengths = (
        how.amplitude == "evidence",
        isinstance(model.length_scale, str) and model.length_scale == "evidence",
    )
    if not amplitude and not lengths:
        return None
    return tuple(n for n in kernel.names if (n == "variance" and not amplitude) or (n != "variance" and not lengths))


def _values(kernel: Kernel) -> dict[str, float]:
    return dict(zip(kernel.names, np.exp(kernel.theta).tolist(), strict=True))


def _trials(
    model: Any, how: Resolved, personal: bool, choices: Told, answers: Comparisons,
    kernel: Callable[[float], Kernel], bases: Bases, settings: Settings, shared: dict[str, Any],
    watch: Watcher | None,
) -> list[Trial]:  # fmt: skip
    """Held-out trials of amplitudes, numbers of characteristics and calibration."""
    numbers, amplitudes = _numbers(model, personal), _amplitudes(how)
    if how.spread is not None and len(numbers) == len(amplitudes) == 1:
        return []
    folds = []
    fold, held_out = k_folds_answers(answers, _FOLDS, random_state=int(model.random_state)), 0.0
    drawn = np.random.default_rng(int(model.random_state)).permutation(answers.n_users)[:_MOST_PEOPLE_TRIED]
    tried = np.isin(answers.user, drawn)
    for k in range(_FOLDS):
        out = tried & (fold == k)
        if not out.any() or held_out >= _ENOUGH_HELD_OUT:
            continue
        folds.append((choices.answers(answers, tried & ~out), choices.answers(answers, out)))
        held_out += float(answers.weight[out].sum())
    if not folds:
        return []
    candidates = [Candidate(kernel(amplitude), n) for amplitude in amplitudes for n in numbers]
    told = (
        None if watch is None else (lambda share: watch("trying amplitudes on held-out answers, %", round(100 * share)))
    )
    n_eigenpairs = None if how.variances == "exact" else int(model.n_eigenpairs)
    return try_candidates(candidates, bases.of, folds, settings, **shared, n_eigenpairs=n_eigenpairs, progress=told)
