"""Training of ``GaSPK``: candidates, restarts, and the fitted posterior."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._json import plain
from predilect._types import IntArray
from predilect.data import Comparisons, ItemFeatures
from predilect.data.features import FeatureSpace
from predilect.data.splits import masks_of_folds
from predilect.errors import DataError
from predilect.gaussian.kernels import Antisymmetric, Kernel, Scaled, Stationary
from predilect.models.checks import hyperparameters_by_name
from predilect.models.estimator import AnswerCounts
from predilect.models.gaspk.em.fit import (
    EM,
    LENGTH_RULES,
    Candidate,
    Settings,
    Trial,
    best_start,
    by_evidence,
    length_scales_by_rule,
    run,
    try_candidates,
)
from predilect.models.gaspk.em.mode import TradeOffAnswers
from predilect.models.gaspk.parameters import (
    Bases,
    Choices,
    CodedAnswers,
    Resolved,
    basis_of,
    choose_backend,
    posterior_of,
    read_choices,
    resolve,
)
from predilect.models.gaspk.posterior.posterior import GaSPKPosterior
from predilect.models.gaspk.tradeoffs.folding import distinct_points
from predilect.models.reading import Training, answers_by_item, rows_of_features
from predilect.progress import Report, Watcher
from predilect.shards import workers

_AMPLITUDES = (1.0, 3.0, 10.0, 30.0)
_NUMBERS = (1, 2, 3, 5, 10)
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
            {**hyperparameters_by_name(t.candidate.kernel), "n_components": t.candidate.n_c, "log_loss": t.log_loss,
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


def _trials(
    model: Any, how: Resolved, personal: bool, choices: CodedAnswers, answers: Comparisons,
    kernel: Callable[[float], Kernel], bases: Bases, settings: Settings, shared: dict[str, Any],
    watch: Watcher | None,
) -> list[Trial]:  # fmt: skip
    """Held-out trials of amplitudes, numbers of characteristics and calibration."""
    numbers, amplitudes = _numbers(model, personal), _amplitudes(how)
    if how.spread is not None and len(numbers) == len(amplitudes) == 1:
        return []
    drawn = np.random.default_rng(int(model.random_state)).permutation(answers.n_users)[:_MOST_PEOPLE_TRIED]
    tried = np.isin(answers.user, drawn)
    masks = masks_of_folds(answers, int(model.random_state), among=tried)
    if not masks:
        return []
    folds = [(choices.answers(answers, tried & ~out), choices.answers(answers, out)) for out in masks]
    candidates = [Candidate(kernel(amplitude), n) for amplitude in amplitudes for n in numbers]
    told = (
        None if watch is None else (lambda share: watch("trying amplitudes on held-out answers, %", round(100 * share)))
    )
    n_eigenpairs = None if how.variances == "exact" else int(model.n_eigenpairs)
    return try_candidates(candidates, bases.of, folds, settings, **shared, n_eigenpairs=n_eigenpairs, progress=told)


def take_in(model: Any, more: Comparisons, items: Any) -> EM:
    """Add answers, and continue from the model's weights and characteristics to a fixed point of the same iteration.

    The caller holds the lock; ``model`` changes in one step or, after an error, not at all. Hyper-parameters, levels
    and scales of attributes stay. Raises DataError for ids of another kind, users identified in one but not the other,
    a new item without attributes, or ties in a model without them.
    """
    _check(model, more)
    how = resolve(model)
    vocabulary = model.items_.extend(more.items.series())
    old_item, new_item = vocabulary.codes(model.items_.series()), vocabulary.codes(more.items.series())
    space = _space(model, vocabulary, old_item, items)
    users = None if model.users_ is None else model.users_.extend(more.users.series())
    n_users = 1 if users is None else len(users)
    old_user = np.zeros(1, dtype=np.int64) if users is None else users.codes(model.users_.series())
    who = np.zeros(more.n_rows, dtype=np.int64) if users is None else users.codes(more.users.series())[more.user]

    choices, answers = model.choices_, model.answers_
    left, right = new_item[more.left], new_item[more.right]
    swap = left > right  # the order of all ids may differ from that of the new ones
    left, right = np.where(swap, right, left), np.where(swap, left, right)
    said = np.where(swap, -more.outcome, more.outcome)
    choices, point, sign, moved = _points(choices, space, left, right, how.antisymmetric)
    known = len(model.choices_.points)
    told = TradeOffAnswers.of(
        np.append(old_user[answers.user], who), np.append(moved[answers.point], point),
        np.append(answers.outcome, said * sign), np.append(answers.weight, more.weight),
        n_users=n_users, n_points=len(choices.points),
    )  # fmt: skip
    n_c = model.hyperparameters_.n_components
    gamma = np.full((n_users, n_c), 1.0 / n_c)
    gamma[old_user] = model.posterior_.gamma
    kernel = model.hyperparameters_.kernel
    same = len(choices.points) == known
    backend = model.report_["prior"]["backend"]
    basis = model.posterior_.basis if same else basis_of(kernel, choices, backend, n_c, told.n_rows)
    settings = Settings(model.gamma, how.damping, float(model.tol), max_rounds=int(model.max_iter))
    with workers(model.n_jobs) as executor:
        found = run(
            basis, told, gamma, settings, delta=model.tie_threshold_, start=model.posterior_.w if same else None,
            executor=executor, random_state=int(model.random_state),
        )  # fmt: skip
    posterior = posterior_of(
        model, choices.trade_offs, kernel, basis, found.mode.w, found.gamma, found.mode.state,
        model.hyperparameters_.spread, space,
    )  # fmt: skip
    counts = _counts(model, more, old_user, old_item, who, new_item, n_users, len(vocabulary))
    together = None if model.comparisons_ is None else model.comparisons_.with_items(vocabulary.series()).append(more)
    added = np.zeros(len(vocabulary))
    added[new_item] = answers_by_item(more)
    added[old_item] += model.n_by_item_
    prior = {**model.report_["prior"], "n_trade_offs": len(choices.points), "rank": basis.rank}
    vars(model).update({
        "posterior_": posterior, "choices_": choices, "trade_offs_": choices.trade_offs, "answers_": told,
        "items_": vocabulary, "users_": users, "space_": space, "counts_": counts, "n_by_item_": added,
        "comparisons_": together, "n_answers_": model.n_answers_ + more.n_answers, "log_evidence_": found.evidence,
        "report_": plain({**model.report_, "fit": found.report.to_dict(), "prior": prior}),
    })  # fmt: skip
    return found


def _check(model: Any, more: Comparisons) -> None:
    if (model.users_ is not None) != more.has_users:
        told, new = ("people", "nobody") if model.users_ is not None else ("nobody", "people")
        raise DataError(f"the model tells {told} apart, and the new answers {new}. Give both in the same way.")
    if more.has_ties and model.tie_threshold_ == 0.0:
        raise DataError(
            "the model was fitted without ties and gives them probability 0, but some new answers are ties. Fit anew "
            "on all answers, or leave them out."
        )


def _space(model: Any, vocabulary: Any, old: IntArray, items: Any) -> FeatureSpace:
    """Attributes of the items of the model and of new ones."""
    n_new = len(vocabulary) - len(old)
    if not n_new:
        kept: FeatureSpace = model.space_
        return kept
    fresh = np.ones(len(vocabulary), dtype=bool)
    fresh[old] = False
    ids = [vocabulary.ids[code] for code in np.flatnonzero(fresh)]
    if model.trade_offs_.items_are_attributes or model.features_ is None:
        raise DataError(
            f"{n_new} of the items are not known to the model (first: {ids[0]!r}), in which items are their own "
            "attributes. Such items join at a refit: fit() on all answers."
        )
    if items is None:
        rows, known = np.zeros((n_new, model.space_.matrix.shape[1])), np.zeros(n_new, dtype=bool)
    elif isinstance(items, ItemFeatures):
        raise DataError("give the attributes of new items as a table (items=frame): the model encodes them its own way")
    else:
        rows, known = rows_of_features(ids, model.features_, items)
    if not known.all():
        lost = [item for item, there in zip(ids, known, strict=True) if not there]
        raise DataError(
            f"{len(lost)} items are not known to the model and come without attributes (first: {lost[0]!r}). Give "
            "their rows, update(..., items=frame)."
        )
    matrix, all_known = np.empty((len(vocabulary), rows.shape[1])), np.ones(len(vocabulary), dtype=bool)
    matrix[old], matrix[fresh] = model.space_.matrix, rows
    all_known[old] = model.space_.known
    return FeatureSpace(matrix, all_known)


def _points(
    choices: Choices, space: FeatureSpace, left: IntArray, right: IntArray, antisymmetric: bool
) -> tuple[Choices, IntArray, npt.NDArray[np.int8], IntArray]:
    """All trade-offs; for each new answer its trade-off and sign; and where the old trade-offs went."""
    matrix = None if choices.trade_offs.items_are_attributes else space.matrix
    found = choices.trade_offs.points(matrix, left, right, antisymmetric=antisymmetric)
    n_old = len(choices.points)
    if choices.grid is not None and choices.places is not None:
        code, turned = choices.grid.rounded(found.points)
        places, which = np.unique(np.append(choices.places, code), return_inverse=True)
        merged = Choices(choices.trade_offs, choices.grid, choices.grid.points(places), places)
        return merged, which[n_old:][found.code], found.sign * turned[found.code], which[:n_old]
    every = distinct_points(np.vstack([choices.points, found.points]), antisymmetric)
    merged = Choices(choices.trade_offs, None, every.points, None)
    sign = every.sign[n_old:][found.code] * found.sign
    return merged, every.code[n_old:][found.code], sign, every.code[:n_old]


def _counts(
    model: Any, more: Comparisons, old_user: IntArray, old_item: IntArray, who: IntArray, item: IntArray, n_users: int,
    n_items: int,
) -> AnswerCounts:  # fmt: skip
    """Number of answers of each person on each item."""
    before = model.counts_
    user = np.concatenate([old_user[np.repeat(np.arange(len(before.ptr) - 1), np.diff(before.ptr))], who, who])
    about = np.concatenate([old_item[before.item], item[more.left], item[more.right]])
    count = np.concatenate([before.count, more.weight, more.weight])
    return AnswerCounts.summed(user, about, count, n_users, n_items)
