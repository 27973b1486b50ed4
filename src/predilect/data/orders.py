"""Answers about several alternatives: rows of one task as a partial order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predilect._base.text import either
from predilect._base.types import BoolArray
from predilect.data.canonical import ALONE, canonical_answers
from predilect.data.comparisons import Comparisons, joint_rows
from predilect.data.read.options import option
from predilect.errors import DataError

_MOST_COPIES = 1000  # of one task: each is a row of its own


def rows_by_answer(task: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that are answers by themselves, and then those of each task (see :func:`joint_rows`); where each begins.

    The second, (n_tasks + 1,), counts from the first row of a task on.
    """
    rows, of_tasks = np.flatnonzero(task < 0), np.flatnonzero(task >= 0)
    of_tasks = of_tasks[np.argsort(task[of_tasks], kind="stable")]
    return np.concatenate((rows, of_tasks)), np.append(
        np.flatnonzero(np.diff(task[of_tasks], prepend=-1)), len(of_tasks)
    )


def weights_of_rows(answers: Comparisons) -> NDArray[np.float64]:
    """Weights by which each answer counts once, though it may have several rows; (n_rows,)."""
    task = joint_rows(answers)
    size = np.bincount(task + 1, minlength=1)
    size[0] = 1
    return np.asarray(answers.weight / size[task + 1])


def as_orders(answers: Comparisons) -> Comparisons:
    """Answers whose tasks have only the rows that nothing else implies, each of weight 1.

    Tasks of which all alternatives are one item, which say nothing, are left out.
    A task is "winner over loser", row by row, and says no more if "a over c" is left out where it has "a over b" and "b
    over c". One of weight 3 becomes three tasks. O(n log n), and the cube of a task's items if it is no choice of one.

    Raises
    ------
    DataError
        If rows of one task contradict each other, are ties, or have weights that are not one whole number.
    """
    task = joint_rows(answers)
    if answers.copies is not None:
        several = np.zeros(int(task.max(initial=ALONE)) + 2, dtype=bool)
        several[task[answers.left < answers.right] + 1] = True
        if not several[task + 1].all():
            answers = answers.take(several[task + 1])
            task = joint_rows(answers)
    rows, ptr = rows_by_answer(task)
    alone, rows = np.split(rows, [len(rows) - ptr[-1]])
    if not len(rows):
        return answers
    group = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    first = rows[ptr[:-1]]
    weight, of_task = answers.weight[rows], answers.weight[first]
    odd = (weight != of_task[group]) | (weight != np.round(weight)) | (weight > _MOST_COPIES)
    for wrong, what in (
        (answers.outcome[rows] == 0, "a tie in a task of several rows"),
        (np.zeros(len(rows), bool) if answers.grade is None else answers.grade[rows] > 0, "a grade in such a task"),
        (odd, f"a weight that is not the task's, or no whole number up to {_MOST_COPIES},"),
    ):
        if wrong.any():
            raise _refused(answers, rows[int(np.argmax(wrong))], what, of_weight=wrong is odd)
    left, right = answers.alternatives()
    implied, wrong = implied_rows(group, left[rows], right[rows], answers.outcome[rows])
    if wrong >= 0:
        raise _refused(answers, rows[wrong], "a task that contradicts itself, or says a thing twice,")
    keep = ~implied
    if keep.all() and (of_task == 1.0).all():
        return answers
    columns = answers._answers()
    kept = columns.at(rows[keep])
    copies = kept.weight.astype(np.int64)
    index = np.repeat(np.arange(len(copies)), copies)
    copy = np.arange(len(index)) - np.repeat(np.cumsum(copies) - copies, copies)
    n_tasks = int(answers.task.max()) + 1  # type: ignore[union-attr]
    copied = kept.at(index)
    sides = None if copied.sides is None else copied.sides / copied.weight[:, None]
    assert copied.task is not None
    copied = copied._replace(
        weight=np.ones(len(index)), sides=sides, task=(copied.task + n_tasks * copy).astype(np.int32)
    )  # fmt: skip
    together = type(columns)._make(
        None if one is None else np.concatenate([one, other])
        for one, other in zip(columns.at(alone), copied, strict=True)
    )
    return replace(answers, **canonical_answers(together)._asdict())


def implied_rows(
    group: NDArray[np.int64], left: NDArray[Any], right: NDArray[Any], outcome: NDArray[np.int8]
) -> tuple[NDArray[np.bool_], int]:
    """Which rows follow from others of their group, (n_rows,), and a row of a group that contradicts itself, or -1.

    Groups are 0, 1, ..., one after the other; outcomes are strict.
    """
    implied = np.zeros(len(group), dtype=bool)
    winner, loser = np.where(outcome > 0, left, right), np.where(outcome > 0, right, left)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    stops = np.append(starts[1:], len(group))
    # Most are choices of one item over different others.
    once = np.unique(np.stack([group, loser]), axis=1).shape[1] == len(group)
    chosen = np.bincount(group, winner != winner[starts][group], len(starts)) == 0
    for number in np.flatnonzero(~chosen if once else np.ones_like(chosen)).tolist():
        part = slice(starts[number], stops[number])
        found = _implied(winner[part], loser[part])
        if found is None:
            return implied, int(starts[number])
        implied[part] = found
    return implied, -1


def _implied(winner: NDArray[np.integer], loser: NDArray[np.integer]) -> NDArray[np.bool_] | None:
    """Which of "winner over loser" follow from the others; None if they contradict or repeat each other."""
    items, above = all_above(winner, loser)
    one, other = np.searchsorted(items, winner), np.searchsorted(items, loser)
    direct = np.zeros_like(above)
    direct[one, other] = True
    if above.diagonal().any() or direct.sum() < len(winner):
        return None
    return (direct.astype(int) @ above)[one, other] > 0


def all_above(winner: NDArray[np.integer], loser: NDArray[np.integer]) -> tuple[NDArray[np.integer], BoolArray]:
    """Items of some pairs, (k,), and which is over which, as pairs say or as follows from them, (k, k)."""
    items = np.unique(np.concatenate([winner, loser]))
    above = np.zeros((len(items), len(items)), dtype=bool)
    above[np.searchsorted(items, winner), np.searchsorted(items, loser)] = True
    for k in range(len(items)):
        above |= above[:, k : k + 1] & above[k : k + 1, :]
    return items, above


def _refused(answers: Comparisons, row: int, what: str, of_weight: bool = False) -> DataError:
    names = [repr(answers.items.ids[side[row]]) for side in (answers.left, answers.right)]
    who = f" of user {answers.users.ids[answers.user[row]]!r}" if answers.has_users else ""
    if of_weight:
        return DataError(
            f"{what} cannot count answers about several alternatives (first: {answers.weight[row]:g}, {names[0]} and "
            f"{names[1]}{who}): here a weight is a number of equal answers. Leave the weights out with "
            f"{option('weight', False)}, or use {either('--model mixed-logit', 'MixedLogit')}, which takes any."
        )
    return DataError(
        f"{what} cannot be one answer about several alternatives (first: {names[0]} and {names[1]}{who}). If pairs "
        f"were only asked together, each an answer by itself, say so: {option('kind', 'pairs')}"
    )
