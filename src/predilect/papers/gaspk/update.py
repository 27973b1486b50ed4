"""Further answers: a model goes on with all of them, or takes its posterior for the prior of the new ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from predilect._base.json import plain
from predilect._base.progress import Report
from predilect._base.shards import workers
from predilect._base.text import did_you_mean
from predilect._base.types import IntArray
from predilect.data import Comparisons, ItemFeatures
from predilect.data.features import FeatureSpace
from predilect.errors import DataError
from predilect.models.estimator import AnswerCounts
from predilect.models.reading import answers_by_item, rows_of_features
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.fit import run
from predilect.papers.gaspk.online import absorb, suffices
from predilect.papers.gaspk.prior import basis_of
from predilect.papers.gaspk.settings import FitSettings
from predilect.papers.gaspk.tradeoffs.choices import as_shown
from predilect.papers.gaspk.training import posterior_of


def take_in(model: Any, more: Comparisons, items: Any, online: bool) -> Report:
    """Add answers, and continue from the model's weights and characteristics to a fixed point of the same iteration.

    ``online`` takes the posterior for the prior of these answers instead, where that suffices.
    The caller holds the lock; ``model`` changes in one step or, after an error, not at all. Hyper-parameters, levels
    and scales of attributes stay. Raises DataError for ids of another kind, users identified in one but not the other,
    a new item without attributes, or ties in a model without them.
    """
    _check(model, more)
    vocabulary = model.items_.extend(more.items.series())
    old_item, new_item = vocabulary.codes(model.items_.series()), vocabulary.codes(more.items.series())
    space = _space(model, vocabulary, old_item, items)
    users = None if model.users_ is None else model.users_.extend(more.users.series())
    n_users = 1 if users is None else len(users)
    old_user = np.zeros(1, dtype=np.int64) if users is None else users.codes(model.users_.series())
    who = np.zeros(more.n_rows, dtype=np.int64) if users is None else users.codes(more.users.series())[more.user]

    settings: FitSettings = model._settings
    answers, shown = model.answers_, as_shown(more, settings.antisymmetric)
    matrix = None if model.trade_offs_.items_are_attributes else space.matrix
    choices, point, sign, moved = model._choices.extended(
        matrix, new_item[shown.first], new_item[shown.second], settings.antisymmetric
    )
    coded = TradeOffAnswers.of(
        np.append(old_user[answers.user], who[shown.row]), np.append(moved[answers.point], point),
        np.append(answers.outcome, shown.outcome * sign), np.append(answers.weight, shown.weight),
        n_users=n_users, n_points=len(choices.points),
    )  # fmt: skip
    n_answers = model.n_answers_ + more.n_answers
    prior = {**model.report_["prior"], "n_trade_offs": len(choices.points)}
    if online and suffices(model, n_answers):
        batch = TradeOffAnswers.of(
            who[shown.row], point, shown.outcome * sign, shown.weight, n_users=n_users, n_points=len(choices.points)
        )
        absorbed = absorb(model, choices, moved, coded, batch, old_user, space)
        posterior, report = absorbed.posterior, absorbed.report
        evidence = model.log_evidence_ + absorbed.evidence
    else:
        h, before = model.hyperparameters_, model.posterior_
        n_c = h.n_components
        gamma = np.full((n_users, n_c), 1.0 / n_c)
        gamma[old_user] = before.gamma
        same = len(choices.points) == len(model._choices.points)
        basis = before.basis if same else basis_of(h.kernel, choices, prior["backend"], n_c, coded.n_rows)
        with workers(model.n_jobs) as executor:
            found = run(basis, coded, gamma, settings, start=before.w if same else None, executor=executor)
        posterior = posterior_of(settings, h, choices.trade_offs, space, found.mode.state, found.mode.w)
        report, evidence = found.report, found.evidence
        prior["learned_from"] = n_answers
    counts = _counts(model, more, old_user, old_item, who, new_item, n_users, len(vocabulary))
    together = None if model.comparisons_ is None else model.comparisons_.with_items(vocabulary.series()).append(more)
    added = np.zeros(len(vocabulary))
    added[new_item] = answers_by_item(more)
    added[old_item] += model.n_by_item_
    prior["rank"] = posterior.basis.rank
    vars(model).update({
        "posterior_": posterior, "_choices": choices, "trade_offs_": choices.trade_offs, "answers_": coded,
        "items_": vocabulary, "users_": users, "_space": space, "counts_": counts, "n_by_item_": added,
        "comparisons_": together, "n_answers_": n_answers, "log_evidence_": evidence,
        "report_": plain({**model.report_, "fit": report.to_dict(), "prior": prior}),
    })  # fmt: skip
    return report


def _check(model: Any, more: Comparisons) -> None:
    if (model.users_ is not None) != more.has_users:
        coded, new = ("people", "nobody") if model.users_ is not None else ("nobody", "people")
        raise DataError(f"the model tells {coded} apart, and the new answers {new}. Give both in the same way.")
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
