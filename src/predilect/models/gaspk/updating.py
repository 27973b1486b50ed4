"""Update of a fitted ``GaSPK`` with more choices, without a new start."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array

from predilect._json import plain
from predilect.data import Comparisons, ItemFeatures
from predilect.data.space import FeatureSpace
from predilect.errors import DataError
from predilect.models.counts import AnswerCounts
from predilect.models.gaspk.bases import basis_of, posterior_of
from predilect.models.gaspk.em.answers import TradeOffAnswers
from predilect.models.gaspk.em.em import EM, Settings, run
from predilect.models.gaspk.parameters import Choices, resolve
from predilect.models.gaspk.tradeoffs.folding import distinct_points
from predilect.models.reading import answers_by_item, rows_of_features
from predilect.shards import workers

IntArray = npt.NDArray[np.int64]


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
        code, _ = choices.grid.snap(found.points)
        turned = np.ones(len(code), dtype=np.int8)
        if antisymmetric:
            code, turned = choices.grid.fold(code)
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
    """How many answers each person gave on each item."""
    before = model.counts_
    user = np.concatenate([old_user[np.repeat(np.arange(len(before.ptr) - 1), np.diff(before.ptr))], who, who])
    about = np.concatenate([old_item[before.item], item[more.left], item[more.right]])
    count = np.concatenate([before.count, more.weight, more.weight])
    table = coo_array((count, (user, about)), shape=(n_users, n_items)).tocsr()
    return AnswerCounts(table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data, n_items)
