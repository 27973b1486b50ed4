"""Training of ``GaSPK``: candidates, restarts, and the fitted posterior."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._json import plain
from predilect._text import did_you_mean
from predilect._types import FloatArray, IntArray
from predilect.data import Comparisons, ItemFeatures
from predilect.data.content import dealt, keys_of_answers, summed
from predilect.data.features import FeatureSpace
from predilect.data.splits import masks_of_folds, masks_of_newcomers
from predilect.errors import DataError, DataWarning
from predilect.gaussian.kernels import Antisymmetric, Kernel, Scaled, Stationary
from predilect.models.checks import KernelHyperparameters, hyperparameters_by_name
from predilect.models.estimator import AnswerCounts
from predilect.models.gaspk.em.answers import TradeOffAnswers
from predilect.models.gaspk.em.fit import (
    EM,
    LENGTH_RULES,
    Settings,
    best_start,
    by_evidence,
    length_scales_by_rule,
    run,
)
from predilect.models.gaspk.em.held_out import (
    Calibration,
    Candidate,
    Trial,
    judged,
    predict_held_out,
    search,
    widest,
    with_newcomers,
)
from predilect.models.gaspk.em.prior import concentration_of, squared_length
from predilect.models.gaspk.online import absorb, suffices
from predilect.models.gaspk.parameters import (
    Bases,
    Choices,
    CodedAnswers,
    Resolved,
    as_shown,
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

_SIZES = (1.0, 3.0, 10.0, 30.0, 100.0)  # prior variances of a person's evaluation, twice that if antisymmetric
_CONCENTRATIONS = (0.3, 1.0, 3.0, 10.0, 30.0)
_FIRST = (2, 2)  # where the search begins: 10 and 3
_UNSEARCHED = 3.0  # amplitude before the evidence is asked, and where nothing can be held out
_NUMBERS = (1, 2, 3, 5, 10)
_MOST_LEFT_OUT = 0.01  # of the prior variance, before it is said
_FOLDS = 0  # seed of the folds: random_state changes no predictions
_MOST_PEOPLE_TRIED = 1000


@dataclass(frozen=True, slots=True)
class GaSPKHyperparameters(KernelHyperparameters):
    """Hyper-parameters of the prior; the kernel is of a characteristic, as a function of trade-offs."""

    n_components: int
    spread: float  # T² ≥ 1, the calibration: factor of 1 + variance of a margin
    concentration: float = 0.0  # α of the Dirichlet prior of weights; 0 is none
    open_share: float = 1.0  # of the covariance of weights, how much predictions count
    newcomer_factor: float = 1.0  # κ ≥ 1; to the power 1 - n/usual it multiplies V for people with n answers
    usual: float = 0.0  # answers of a person that T² was chosen for

    @property
    def calibration(self) -> Calibration:
        """How sure predictions may be."""
        return Calibration(self.spread, self.open_share, self.newcomer_factor, self.usual)


class FittedGaSPK(NamedTuple):
    """Result of a fit."""

    posterior: GaSPKPosterior
    choices: Choices
    answers: TradeOffAnswers
    backend: str
    kernel: Kernel
    em: EM
    hyperparameters: GaSPKHyperparameters
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
    settings = Settings(how.gamma, how.damping, float(model.tol), max_rounds=int(model.max_iter))
    start = _kernel(model, choices, how.antisymmetric)
    shared: dict[str, Any] = {"delta": delta, "random_state": model.seed_, "executor": executor}
    bases = Bases(choices, backend, max(_numbers(model, personal)), answers.n_rows)
    chosen, trials = _chosen(model, how, personal, told, answers, training.space, start, bases, settings, shared, watch)
    candidate, calibration = chosen.candidate, chosen.calibration
    if how.spread is not None:
        calibration = Calibration(how.spread)
    kernel, whole = candidate.kernel, told.answers(answers)
    settings = replace(settings, concentration=candidate.concentration)
    at_bound: tuple[str, ...] = ()
    progress = None if watch is None else (lambda share: watch("fitting characteristics, %", round(100 * share)))
    if (fixed := _to_learn(model, how, kernel)) is not None:
        first = best_start(bases.of(kernel), whole, candidate.n_c, settings, 1, **shared)
        found = by_evidence(
            kernel, choices.points, whole, first.em.gamma, first.em.delta, fixed=fixed,
            random_state=model.seed_,
        )  # fmt: skip
        kernel, at_bound = found.kernel, found.at_bound
    fitted = best_start(bases.of(kernel), whole, candidate.n_c, settings, how.n_restarts, **shared, progress=progress)
    em = fitted.em
    posterior = posterior_of(
        model, choices.trade_offs, kernel, em.mode.w, em.mode.state, settings.concentration, calibration,
        training.space,
    )  # fmt: skip
    left_out = getattr(bases.of(kernel), "left_out", 0.0)
    if left_out > _MOST_LEFT_OUT:
        warnings.warn(
            f"{bases.of(kernel).rank} coordinates for {len(choices.points)} trade-offs leave out up to "
            f"{100 * left_out:.2g} % of the prior variance of an evaluation: it is taken for smoother than the kernel "
            "says. Take longer length-scales, fewer characteristics (n_components) or dimensions (n_dimensions), or a "
            "grid (levels)", DataWarning, stacklevel=5,
        )  # fmt: skip
    search = {
        **told.report, "backend": backend, "rank": bases.of(kernel).rank, "learned_from": answers.n_answers,
        "left_out": left_out, "at_bound": list(at_bound),
        "evidence_of_starts": list(fitted.evidences),
        "trials": [
            {**hyperparameters_by_name(t.candidate.kernel), "n_components": t.candidate.n_c,
             "concentration": t.candidate.concentration, "log_loss": t.log_loss, "spread": t.calibration.spread,
             "open_share": t.calibration.open_share} for t in trials
        ],
    }  # fmt: skip
    hyperparameters = GaSPKHyperparameters(
        kernel, candidate.n_c, calibration.spread, settings.concentration, calibration.open_share,
        calibration.newcomer_factor, calibration.usual,
    )  # fmt: skip
    return FittedGaSPK(posterior, choices, whole, backend, kernel, em, hyperparameters, personal, fitted.report, search)


def _kernel(model: Any, choices: Choices, antisymmetric: bool) -> Callable[[float], Kernel]:
    """The kernel of an amplitude."""
    d = choices.points.shape[1]
    scales = model.length_scale
    if isinstance(scales, str):
        rule = scales if scales in LENGTH_RULES else "per-dimension"
        lengths = length_scales_by_rule(choices.points, rule, antisymmetric, _FOLDS)
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


def _chosen(
    model: Any, how: Resolved, personal: bool, told: CodedAnswers, answers: Comparisons, space: FeatureSpace,
    kernel: Callable[[float], Kernel], bases: Bases, settings: Settings, shared: dict[str, Any],
    watch: Watcher | None,
) -> tuple[Trial, list[Trial]]:  # fmt: skip
    """The candidate of lowest held-out log loss, and all trials: sizes and concentrations, then numbers.

    Sizes and concentrations are searched with the largest number of characteristics; other numbers are tried with the
    same prior variance of a person's evaluation, of which as much differs between people.
    """
    numbers = _numbers(model, personal)
    n_most = max(numbers)
    alphas = (0.0,) if n_most == 1 else _CONCENTRATIONS if how.concentration is None else (how.concentration,)
    searched = isinstance(how.amplitude, str) and how.amplitude == "auto"
    sizes = _SIZES if searched else (_UNSEARCHED if isinstance(how.amplitude, str) else float(how.amplitude),)

    def candidate(size: int, alpha: int, n_c: int) -> Candidate:
        a = alphas[alpha] if n_c == n_most or n_c == 1 else concentration_of(n_c, alphas[alpha], n_most)
        return Candidate(kernel(sizes[size] / squared_length(n_c, a) if searched else sizes[size]), n_c, a)

    first = min(_FIRST[0], len(sizes) - 1), min(_FIRST[1], len(alphas) - 1)
    unjudged = Trial(candidate(*first, n_most), math.nan, Calibration())
    if how.spread is not None and len(numbers) == len(sizes) == len(alphas) == 1:
        return unjudged, []
    keys = keys_of_answers(answers, space)  # or the names of people and items would say who is held out
    order = np.random.default_rng(_FOLDS).permutation(answers.n_users)
    drawn = dealt(order, summed(keys, answers.user, answers.n_users)) < _MOST_PEOPLE_TRIED
    tried = drawn[answers.user]
    masks = masks_of_folds(answers, _FOLDS, among=tried, keys=keys)
    if not masks:
        return unjudged, []
    folds = [(told.answers(answers, tried & ~out), told.answers(answers, out)) for out in masks]
    trials: dict[tuple[int, int, int], Trial] = {}
    begun: list[FloatArray] | None = None
    n_eigenpairs = None if how.variances == "exact" else int(model.n_eigenpairs)

    def judge(size: int, alpha: int, n_c: int = n_most) -> float:
        nonlocal begun
        if (size, alpha, n_c) in trials:
            return trials[size, alpha, n_c].log_loss
        one = candidate(size, alpha, n_c)
        out, weights = predict_held_out(
            one, bases.of(one.kernel), folds, settings, **shared, n_eigenpairs=n_eigenpairs,
            begin=begun if n_c == n_most else None,
        )  # fmt: skip
        trials[size, alpha, n_c] = trial = judged(one, out)
        if n_c == n_most and one.concentration > 0.0:
            begun = weights
        if watch is not None:
            watch("trying priors on held-out answers, number", len(trials))
        return trial.log_loss

    a_nat = 1.0 / sum(float(answers.weight[out].sum()) for out in masks)  # of all answers held out together
    place = widest(judge, (len(sizes), len(alphas)), search(judge, (len(sizes), len(alphas)), first), a_nat)
    for n_c in numbers:
        judge(*place, n_c)
    # More characteristics must be worth a nat.
    enough = min(trials[*place, n_c].log_loss for n_c in numbers) + a_nat
    n_c = min(n_c for n_c in numbers if trials[*place, n_c].log_loss <= enough)
    chosen = trials[*place, n_c]
    masks = masks_of_newcomers(answers, _FOLDS, among=tried, keys=keys) if how.spread is None and n_c > 1 else []
    if masks and chosen.held_out is not None:
        folds = [(told.answers(answers, tried & ~out), told.answers(answers, out)) for out in masks]
        newcomers, _ = predict_held_out(
            chosen.candidate, bases.of(chosen.candidate.kernel), folds, settings, **shared, n_eigenpairs=n_eigenpairs
        )
        chosen = replace(chosen, calibration=with_newcomers(chosen.calibration, chosen.held_out, newcomers))
    return chosen, list(trials.values())


def take_in(model: Any, more: Comparisons, items: Any, online: bool) -> Report:
    """Add answers, and continue from the model's weights and characteristics to a fixed point of the same iteration.

    ``online`` takes the posterior for the prior of these answers instead, where that suffices.
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

    choices, answers = model._choices, model.answers_
    shown = as_shown(more, how.antisymmetric)
    choices, point, sign, moved = _points(
        choices, space, new_item[shown.first], new_item[shown.second], how.antisymmetric
    )
    known = len(model._choices.points)
    told = TradeOffAnswers.of(
        np.append(old_user[answers.user], who[shown.row]), np.append(moved[answers.point], point),
        np.append(answers.outcome, shown.outcome * sign), np.append(answers.weight, shown.weight),
        n_users=n_users, n_points=len(choices.points),
    )  # fmt: skip
    h, kernel = model.hyperparameters_, model.hyperparameters_.kernel
    settings = Settings(how.gamma, how.damping, float(model.tol), int(model.max_iter), h.concentration)
    n_answers = model.n_answers_ + more.n_answers
    prior = {**model.report_["prior"], "n_trade_offs": len(choices.points)}
    if online and suffices(model, n_answers):
        batch = TradeOffAnswers.of(
            who[shown.row], point, shown.outcome * sign, shown.weight, n_users=n_users, n_points=len(choices.points)
        )
        absorbed = absorb(model, settings, choices, moved, told, batch, old_user, space)
        posterior, report = absorbed.posterior, absorbed.report
        evidence = model.log_evidence_ + absorbed.evidence
    else:
        n_c = h.n_components
        gamma = np.full((n_users, n_c), 1.0 / n_c)
        gamma[old_user] = model.posterior_.gamma
        same = len(choices.points) == known
        backend = model.report_["prior"]["backend"]
        basis = model.posterior_.basis if same else basis_of(kernel, choices, backend, n_c, told.n_rows)
        with workers(model.n_jobs) as executor:
            found = run(
                basis, told, gamma, settings, delta=model.tie_threshold_, start=model.posterior_.w if same else None,
                executor=executor, random_state=model.seed_,
            )  # fmt: skip
        posterior = posterior_of(
            model, choices.trade_offs, kernel, found.mode.w, found.mode.state, h.concentration,
            h.calibration, space,
        )  # fmt: skip
        report, evidence = found.report, found.evidence
        prior["learned_from"] = n_answers
    counts = _counts(model, more, old_user, old_item, who, new_item, n_users, len(vocabulary))
    together = None if model.comparisons_ is None else model.comparisons_.with_items(vocabulary.series()).append(more)
    added = np.zeros(len(vocabulary))
    added[new_item] = answers_by_item(more)
    added[old_item] += model.n_by_item_
    prior["rank"] = posterior.basis.rank
    vars(model).update({
        "posterior_": posterior, "_choices": choices, "trade_offs_": choices.trade_offs, "answers_": told,
        "items_": vocabulary, "users_": users, "_space": space, "counts_": counts, "n_by_item_": added,
        "comparisons_": together, "n_answers_": n_answers, "log_evidence_": evidence,
        "report_": plain({**model.report_, "fit": report.to_dict(), "prior": prior}),
    })  # fmt: skip
    return report


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
        kept: FeatureSpace = model._space
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
        rows, known = np.zeros((n_new, model._space.matrix.shape[1])), np.zeros(n_new, dtype=bool)
    elif isinstance(items, ItemFeatures):
        raise DataError("give the attributes of new items as a table (items=frame): the model encodes them its own way")
    else:
        rows, known = rows_of_features(ids, model.features_, items)
    if not known.all():
        lost = [item for item, there in zip(ids, known, strict=True) if not there]
        raise DataError(
            f"{len(lost)} items are not known to the model and come without attributes (first: {lost[0]!r}). Give "
            f"their rows, update(..., items=frame).{did_you_mean(lost[0], vocabulary)}"
        )
    matrix, all_known = np.empty((len(vocabulary), rows.shape[1])), np.ones(len(vocabulary), dtype=bool)
    matrix[old], matrix[fresh] = model._space.matrix, rows
    all_known[old] = model._space.known
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
