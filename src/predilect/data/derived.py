"""What is made of comparisons: a frame, rows split by side, other grades, all but a person, two sets as one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._text import is_whole, shown
from predilect.data.canonical import ALONE, Answers, canonical_answers, joined_tasks
from predilect.data.read.options import option
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

if TYPE_CHECKING:
    from predilect.data.comparisons import Comparisons

SIDE = "side"  # the covariate that Comparisons.with_side makes
_DUST = 1e-9  # relative: sums of weights carry rounding errors


def frame_columns(answers: Comparisons) -> dict[str, Any]:
    """Columns of ``Comparisons.to_frame``."""
    columns: dict[str, Any] = {"user": answers.users.labels(answers.user)} if answers.has_users else {}
    words = np.array(["right", "tie", "left"], dtype=object)
    columns |= {
        "left": answers.items.labels(answers.left),
        "right": answers.items.labels(answers.right),
        "winner": words[answers.outcome + 1],
        "outcome": answers.outcome.astype(np.int64),
        "weight": answers.weight,
    }
    if answers.task is not None:
        columns["task"] = pl.Series(answers.task, dtype=pl.Int64).set(pl.Series(answers.task == ALONE), None)
    if answers.covariates is not None:
        columns |= dict(zip(answers.covariate_names, answers.covariates.T, strict=True))
    if answers.sides is not None:
        columns["shown_left"] = answers.sides[:, 0]
    if answers.context is not None and answers.contexts is not None:
        place = pl.Series(answers.context, dtype=pl.Int64).set(pl.Series(answers.context == ALONE), None)
        columns["context"] = answers.contexts.series().gather(place)
    if answers.grade is not None:
        columns["grade"] = [answers.grades[number - 1] if number else None for number in answers.grade.tolist()]
        columns["outcome"] *= np.maximum(answers.grade, 1)
    return columns


def split_by_side(answers: Comparisons) -> Comparisons:
    """As ``Comparisons.with_side``."""
    if SIDE in answers.covariate_names:
        raise DataError(f'there is a covariate called "{SIDE}" already; rename it, or read with side=False.')
    shown = np.zeros((answers.n_rows, 2)) if answers.sides is None else answers.sides
    rest = answers.weight - shown.sum(axis=1)
    parts = np.column_stack([shown, np.where(rest > _DUST * answers.weight, rest, 0.0)])
    row, which = np.nonzero(parts)
    side = np.array([1.0, -1.0, 0.0])[which]
    before = np.zeros((answers.n_rows, 0)) if answers.covariates is None else answers.covariates
    rows = answers._answers()._replace(sides=None)
    split = rows.at(row)._replace(weight=parts[row, which], covariates=np.column_stack([before[row], side]))
    names = (*answers.covariate_names, SIDE)
    return replace(answers, covariate_names=names, **canonical_answers(split)._asdict())


def grade_in(answers: Comparisons, grades: tuple[str, ...]) -> NDArray[np.int8]:
    """Grades of the rows among other names, 0 where theirs is none of them; (n_rows,)."""
    if answers.grade is None:
        return np.zeros(answers.n_rows, dtype=np.int8)
    place = [0, *(1 + grades.index(name) if name in grades else 0 for name in answers.grades)]
    return np.array(place, dtype=np.int8)[answers.grade]


def without_person(answers: Comparisons, user: Any) -> Comparisons:
    """The answers without all that is of one person: rows, id, and contexts that nobody else answered in."""
    gone = answers.users.code(user)
    rows = answers.take(answers.user != gone)
    unused = tuple(one for one in rows.intake.unused_users if str(one) != str(user))
    changed: dict[str, Any] = {"intake": replace(rows.intake, unused_users=unused)}
    if gone >= 0:
        changed |= {
            "users": Vocabulary(rows.users.series().filter(np.arange(rows.n_users) != gone)),
            "user": rows.user - (rows.user > gone),
        }
    if rows.context is not None and rows.contexts is not None:
        used, context = np.unique(rows.context, return_inverse=True)
        alone = int((used == ALONE).any())
        changed |= {"contexts": Vocabulary(rows.contexts.labels(used[alone:])), "context": context - alone}
    return replace(rows, **changed)


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
    joint = {one.joint for one in (first, second) if one.task is not None}
    if len(joint) > 1:
        raise DataError(
            "rows of a task are one answer in one of the two sets of answers, and pairs that were only asked together "
            f"in the other; read both with the same kind, such as {option('kind', 'pairs')}."
        )
    users, items = first.users.extend(second.users), first.items.extend(second.items)
    names = (first if first.n_rows else second).covariate_names
    contexts = first.contexts or second.contexts
    if first.contexts is not None and second.contexts is not None:
        contexts = first.contexts.extend(second.contexts)
    grades = _joined_grades(first.grades, second.grades)
    parts = [
        one._answers()._replace(
            user=users.codes(one.users)[one.user],
            left=items.codes(one.items)[one.left],
            right=items.codes(one.items)[one.right],
            task=None,
            sides=np.zeros((one.n_rows, 2)) if one.sides is None else one.sides,
            covariates=one.covariates if one.covariate_names == names else None,
            context=None if contexts is None else _context_in(one, contexts),
            grade=grade_in(one, grades) if grades else None,
        )
        for one in (first, second)
    ]
    both = Answers._make(
        None if all(part is None for part in pair) else np.concatenate([part for part in pair if part is not None])
        for pair in zip(*parts, strict=True)
    )
    answers = canonical_answers(both._replace(task=joined_tasks(first.task, second.task, first.n_rows, second.n_rows)))
    merged = first.intake.merge(second.intake)
    merged = replace(
        merged,
        duplicates=merged.duplicates + len(both.user) - len(answers.user),
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
