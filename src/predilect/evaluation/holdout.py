"""Held-out choices: hit rate, log loss and error of shares of several models, whole tasks being held out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from predilect._base.estimator import clone
from predilect._base.progress import Watcher
from predilect._base.types import BoolArray, FloatArray
from predilect.data import Comparisons, build_frame
from predilect.data.choices import Choices, choices_of
from predilect.data.content import keys_of_answers, summed
from predilect.data.read.options import option
from predilect.data.splits import groups_of_people, shuffled_place
from predilect.errors import DataError, DataWarning
from predilect.evaluation.metrics import paired_difference

OFTEN = 20  # times that an item is offered, for its share to be known at all


def held_out_tasks(answers: Comparisons, n_tasks: int, random_state: int = 0) -> BoolArray:
    """Rows of so many random tasks of each person, (n_rows,), of all but one where there are not so many.

    A pair without a task is one by itself; no task is cut. DataError if nothing can be held out.
    """
    if n_tasks < 1:
        raise DataError(f"expected at least 1 task a person to hold out, got {n_tasks}")
    group, person, _ = groups_of_people(answers)
    keys = summed(keys_of_answers(answers), group, len(person))
    place, n_groups = shuffled_place(person, answers.n_users, np.random.default_rng(random_state), keys)
    held_out: BoolArray = (place < np.minimum(n_tasks, n_groups[person] - 1))[group]
    if not held_out.any():
        raise DataError(
            "nobody has two tasks, so that one could be held out. Is there a column that says who answered "
            f"({option('user', 'NAME')}), and one that tells tasks apart ({option('task', 'NAME')})?"
        )
    return held_out


def holdout(
    models: Mapping[str, Any],
    answers: Comparisons,
    test: Comparisons | None = None,
    *,
    items: Any = None,
    people: Any = None,
    n_tasks: int = 2,
    random_state: int = 0,
    watch: Watcher | None = None,
) -> Any:
    """Held-out choices predicted by several models.

    Parameters
    ----------
    models : mapping of name to estimator
        They are cloned, not fitted.
    answers : Comparisons
        All answers, or with ``test`` those to learn from.
    test : Comparisons, optional
        What to predict, the last tasks of each person, say. By default ``n_tasks`` random tasks of each person are held
        out (all but one of those who have fewer); which came last, comparisons do not know.
    items, users
        Features, as ``fit`` takes them.
    n_tasks, random_state : int
    watch : callable, optional
        Called with progress: ``watch(stage, done)``.

    Returns
    -------
    table : data frame of the caller's kind
        A row a model, and a last one for guessing: model; people; choices; hit_rate, how often the likeliest
        alternative was chosen (equally likely ones share the credit); log_loss, nats a choice; share_error, the mean
        over the items that were offered in 20 choices or more, by how often they were, of the absolute difference of
        predicted and observed share of the choices in which it was offered (missing without such items); difference in
        log loss from the first model, with lower and upper, its 95 % interval by people (negative: better than the
        first); converged, whether its fit did (missing where it does not say).

    Raises
    ------
    DataError
        If nothing can be held out, or a task is neither a choice, best-worst nor an order. Of best-worst answers the
        best is predicted; an order is one choice after the other.
    """
    if test is None:
        mask = held_out_tasks(answers, n_tasks, random_state)
        answers, test = answers.take(~mask), answers.take(mask)
    choices = _best(choices_of(test))
    if not len(choices.user):
        raise DataError("the answers held out hold no choice of the best")
    rows = np.repeat(np.arange(len(choices.user)), np.diff(choices.ptr))
    asked = {"task": pl.Series(rows), "item": pl.Series(test.items.labels(choices.item))}
    if test.has_users:
        asked["user"] = pl.Series(test.users.labels(choices.user[rows]))
    found: dict[str, FloatArray] = {}
    converged: dict[str, bool | None] = {}
    for name, estimator in models.items():
        if watch is not None:
            watch(name, len(found))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # what the data are like was said before
            model = clone(estimator).fit(answers, items=items, people=people, watch=watch)
            found[name] = model.predict_choice(pl.DataFrame(asked))
        converged[name] = getattr(model, "report_", {}).get("fit", {}).get("converged")
    found["guessing"] = 1.0 / np.diff(choices.ptr)[rows]
    table = _table(found, choices)
    return build_frame(table | {"converged": [converged.get(name) for name in table["model"]]}, answers.backend)


def _best(choices: Choices) -> Choices:
    """Those in which the best was chosen."""
    keep = choices.sign > 0
    size = np.diff(choices.ptr)
    return Choices(
        np.concatenate([[0], np.cumsum(size[keep])]), choices.item[np.repeat(keep, size)], choices.user[keep],
        choices.weight[keep], choices.sign[keep], choices.answer[keep], choices.share[keep], choices.n_answers,
    )  # fmt: skip


def _table(found: Mapping[str, FloatArray], choices: Choices) -> dict[str, list[Any]]:
    head, w, n = choices.ptr[:-1], choices.weight, float(choices.weight.sum())
    losses = {name: -np.log(p[head]) for name, p in found.items()}
    first = next(iter(losses.values()))
    table: dict[str, list[Any]] = {}
    for name, p in found.items():
        top = p >= np.repeat(np.maximum.reduceat(p, head), np.diff(choices.ptr)) - 1e-12
        hit = np.where(top[head], 1.0 / np.add.reduceat(top.astype(float), head), 0.0)
        gap = paired_difference(losses[name], first, choices.user, weight=w)
        row = {
            "model": name, "people": len(np.unique(choices.user)), "choices": n, "hit_rate": float(hit @ w) / n,
            "log_loss": float(losses[name] @ w) / n, "share_error": _share_error(p, choices), "difference": gap.mean,
            "lower": gap.lower, "upper": gap.upper,
        }  # fmt: skip
        for column, value in row.items():
            table.setdefault(column, []).append(value)
    return table


def _share_error(p: FloatArray, choices: Choices) -> float | None:
    weight = np.repeat(choices.weight, np.diff(choices.ptr))
    offered = np.bincount(choices.item, weight)
    chosen = np.bincount(choices.item[choices.ptr[:-1]], choices.weight, len(offered))
    often = offered >= OFTEN
    if not often.any():
        return None
    apart = np.abs(np.bincount(choices.item, weight * p) - chosen)
    return float(apart[often].sum() / offered[often].sum())
