"""Two sets of answers as one, over the ids of both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._text import is_whole, shown
from predilect.data.canonical import ALONE, Answers, canonical_answers, joined_tasks
from predilect.data.derived import grade_in
from predilect.data.read.options import option
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

if TYPE_CHECKING:
    from predilect.data.comparisons import Comparisons


def joined(first: Comparisons, second: Comparisons) -> Comparisons:
    """Answers of both, no task of one a task of the other; raises DataError as ``Comparisons.append``."""
    if first.has_users != second.has_users:
        raise DataError(
            "one set of answers tells people apart and the other does not; "
            "read both with the same user column, or pool both with pooled()."
        )
    if first.covariate_names != second.covariate_names and first.n_rows and second.n_rows:
        told = [", ".join(f'"{name}"' for name in one.covariate_names) or "none" for one in (first, second)]
        raise DataError(
            f"two sets of answers have different covariates, {told[0]} and {told[1]}; read both with the same "
            "covariates=[...], or leave them out with without_covariates()."
        )
    users, items = first.users.extend(second.users), first.items.extend(second.items)
    codes = []
    for name, ids in (("user", users), ("left", items), ("right", items)):
        parts = [ids.codes(side.users if name == "user" else side.items)[getattr(side, name)]
                 for side in (first, second)]  # fmt: skip
        codes.append(np.concatenate(parts))
    outcome, weight = (np.concatenate([getattr(first, n), getattr(second, n)]) for n in ("outcome", "weight"))
    task = joined_tasks(first.task, second.task, first.n_rows, second.n_rows)
    names = (first if first.n_rows else second).covariate_names
    sides, covariates = None, None
    if first.sides is not None or second.sides is not None:
        sides = np.concatenate([one.sides if one.sides is not None else np.zeros((one.n_rows, 2))
                                for one in (first, second)])  # fmt: skip
    if names:
        with_names = (one.covariates for one in (first, second) if one.covariate_names == names)
        covariates = np.concatenate([part for part in with_names if part is not None])
    contexts, context = first.contexts or second.contexts, None
    if contexts is not None:
        contexts = contexts if first.contexts is None or second.contexts is None else contexts.extend(second.contexts)
        context = np.concatenate([_context_in(one, contexts) for one in (first, second)])
    joint = {one.joint for one in (first, second) if one.task is not None}
    if len(joint) > 1:
        raise DataError(
            "rows of a task are one answer in one of the two sets of answers, and pairs that were only asked together "
            f"in the other; read both with the same kind, such as {option('kind', 'pairs')}."
        )
    grades, grade = _joined_grades(first.grades, second.grades), None
    if grades:
        grade = np.concatenate([grade_in(one, grades) for one in (first, second)])
    answers = canonical_answers(
        Answers(codes[0], codes[1], codes[2], outcome, weight, task, sides, covariates, context, grade)
    )
    merged = first.intake.merge(second.intake)
    merged = replace(
        merged,
        duplicates=merged.duplicates + len(outcome) - len(answers.user),
        unused_items=tuple(value for value in merged.unused_items if value not in items),
        unused_users=tuple(value for value in merged.unused_users if value not in users),
    )
    return replace(
        first, joint=joint == {True}, users=users, items=items, intake=merged, covariate_names=names, contexts=contexts,
        grades=grades, item_table=_joined_tables(first.item_table, second.item_table), **answers._asdict(),
    )  # fmt: skip


def _context_in(one: Comparisons, contexts: Vocabulary) -> NDArray[np.int32]:
    """Codes of the contexts of answers in another vocabulary."""
    if one.context is None or one.contexts is None:
        return np.full(one.n_rows, ALONE, dtype=np.int32)
    return np.append(contexts.codes(one.contexts.series()), np.int32(ALONE))[one.context]


def _joined_tables(first: pl.DataFrame | None, second: pl.DataFrame | None) -> pl.DataFrame | None:
    """What describes the items of both; DataError where the two say different things of one item."""
    if first is None or second is None:
        return second if first is None else first
    both = pl.concat([first, second], how="diagonal_relaxed").unique(maintain_order=True)
    twice = both.filter(both["item"].is_duplicated())
    if len(twice):
        raise DataError(
            f"the two sets of answers describe {twice['item'].n_unique()} items differently (first: "
            f'"{shown(twice["item"][0])}"). Read both with the same profile=[...], or give the items other ids.'
        )
    return both.sort("item")


def _joined_grades(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the grades of two sets of answers; DataError where their order is not known."""
    if not first or not second or first == second:
        return first or second
    if all(name in first for name in second) and [name for name in first if name in second] == list(second):
        return first
    if all(name in second for name in first) and [name for name in second if name in first] == list(first):
        return second
    if all(map(is_whole, first + second)):
        return tuple(sorted({*first, *second}, key=int))
    raise DataError(
        f"two sets of answers have different grades, {', '.join(first)} and {', '.join(second)}; read both with the "
        "same grades=[...], from slight to strong, or leave them out with without_grades()."
    )
