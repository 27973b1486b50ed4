"""Canonical order of the answers, independent of the order and the orientation in which they came."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect.data.frames import clean_ids
from predilect.errors import DataError

Codes = NDArray[np.int32]
Rows = tuple[Codes, Codes, Codes, NDArray[np.int8], NDArray[np.float64]]


class AnswerColumns(NamedTuple):
    """Columns of answers, (n_rows,) each; optional ones are None where no answer has one.

    ``task``: equal for a person's answers of one task, below 0 for none. ``sides``: weight shown with the left item on
    the left, and on the right, (n_rows, 2). ``covariates``: left minus right, (n_rows, n_covariates). ``context``:
    equal for answers of whomever on one prompt or the like, -1 for none. ``grade``: by how much the better one is, from
    1, 0 where only the side is known. ``copies``: which of the alternatives of its task that are the same item the left
    one is, and the right one, from 0, (n_rows, 2). ``time``: when the answer was given.
    """

    user: Codes
    left: Codes
    right: Codes
    outcome: NDArray[np.int8]
    weight: NDArray[np.float64]
    task: Codes | None = None
    sides: NDArray[np.float64] | None = None
    covariates: NDArray[np.float64] | None = None
    context: Codes | None = None
    grade: NDArray[np.int8] | None = None
    copies: NDArray[np.int16] | None = None
    time: NDArray[np.float64] | None = None

    def at(self, rows: NDArray[np.intp]) -> AnswerColumns:
        """Some of the rows, by index."""
        return AnswerColumns._make(None if column is None else column.take(rows, axis=0) for column in self)


class _Merged(NamedTuple):
    """Canonical rows, and how they came about: ``order`` of the answers, in which each row's begin at ``starts``."""

    rows: Rows
    order: NDArray[np.intp]
    starts: NDArray[np.intp]


def canonical_rows(
    user: Codes, left: Codes, right: Codes, outcome: NDArray[np.int8], weight: NDArray[np.float64]
) -> Rows:
    """Answers sorted by user, pair and outcome, smaller item code on the left; equal ones merged, shape (n_distinct,).

    Outcomes are flipped where the items change sides, weights added over equal rows, in the order of the weights, so
    that the sum has the same bits for any order of the rows. O(n log n).
    """
    return _merged(user, left, right, outcome, weight, None).rows


def _merged(
    user: Codes,
    left: Codes,
    right: Codes,
    outcome: NDArray[np.int8],
    weight: NDArray[np.float64],
    value: NDArray[np.int64] | None,
) -> _Merged:
    """As ``canonical_rows``, but only answers of one ``value`` are equal; it sorts after the outcome."""
    swap = left > right
    low, high = np.where(swap, right, left), np.where(swap, left, right)
    sign = np.where(swap, -outcome, outcome).astype(np.int8)
    key = packed(user, low, high, sign + 1, *(() if value is None else (value,)))
    uniform = bool(len(weight) == 0 or (weight == weight[0]).all())
    order = np.argsort(key) if uniform else np.lexsort((weight, key))
    fresh = ~repeats(key[order])
    starts = np.flatnonzero(fresh)
    first = order[starts]
    total = np.add.reduceat(weight[order], starts) if len(starts) else weight[:0].copy()
    return _Merged((user[first].astype(np.int32), low[first], high[first], sign[first], total), order, starts)


def repeats(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether a row equals the one before in all columns, (n,)."""
    same = np.zeros(len(columns[0]), dtype=bool)
    same[1:] = True
    for column in columns:
        same[1:] &= column[1:] == column[:-1]
    return same


def row_offsets(user: NDArray[np.int32], n_users: int) -> NDArray[np.int64]:
    """First row of every user, and the end; int64, shape (n_users + 1,)."""
    return np.searchsorted(user, np.arange(n_users + 1)).astype(np.int64)


def exact_sum(weight: NDArray[np.float64]) -> float:
    """Sum with the same bits in any order."""
    return float(np.sort(weight).sum())


ALONE = -1

LEAST_CHOICES = 10  # a few rows in a row tell nothing
IN_RUNS = 0.95  # of the rows whose winner won of its person more than once
ALL_PAIRS = 0.8  # of those of the items that somebody met
FEWER = 0.1  # of the items that would win once of a person, were their answers about pairs


def task_codes(ids: pl.Series, column: str, named: bool) -> Codes | None:
    """Code of each row's task id, -1 where it is missing; shape (n_rows,).

    A column that cannot hold ids is an error (DataError) if the caller ``named`` it, else None.
    """
    try:
        ids = clean_ids(ids, column)
    except DataError:
        if named:
            raise
        return None
    codes: Codes = ids.rank("dense").cast(pl.Int32).fill_null(0).to_numpy() - np.int32(1)
    return codes


def tells_tasks_apart(user: Codes, task: Codes) -> bool:
    """Whether anybody has two tasks, or a task and an answer without one; else the column holds no tasks."""
    pairs = np.sort(packed(user, np.maximum(task, ALONE) + 1))
    return bool((np.diff(pairs) != 0).sum() >= len(np.unique(user)) and (task > ALONE).any())


def may_be_choices(
    user: Codes, left: Codes, right: Codes, outcome: NDArray[np.int8], task: Codes
) -> tuple[NDArray[np.int64] | None, bool]:
    """Rows of one task of several, if in every such task one item wins over different others, else None; and whether
    tasks are about anything but one choice each.

    Two answers on a topic may both be for one item. That all topics are so is no chance where there are many, unless
    one item is in all pairs, as a baseline is: then that item wins all of them.
    """
    n_items = int(max(left.max(initial=0), right.max(initial=0))) + 1
    winner, loser = np.where(outcome > 0, left, right), np.where(outcome > 0, right, left)
    rows = np.flatnonzero(task >= 0)
    label, size = np.unique(packed(user[rows], task[rows]), return_inverse=True, return_counts=True)[1:]
    several = size[label] > 1
    rows, label = rows[several], label[several]
    if not len(rows) or (outcome[rows] == 0).any():
        return None, False
    won = np.unique(label.astype(np.int64) * n_items + winner[rows])
    losers = len(np.unique(label.astype(np.int64) * n_items + loser[rows]))
    # The same answer twice is one row of weight 2.
    answers = np.unique(np.stack([label, winner[rows], loser[rows]]), axis=1).shape[1]
    if len(won) > len(np.unique(label)) or losers < answers or answers == len(won):
        return None, False
    of_one = int(np.bincount(won % n_items).max())
    return rows[label == label[0]], len(won) - of_one < LEAST_CHOICES


def may_be_taken_apart(user: Codes, left: Codes, right: Codes, outcome: NDArray[np.int8]) -> bool:
    """Whether rows may be choices of one item over others that were taken apart, in whatever order they stand.

    Then an item wins of a person over several others, as often as others were shown beside it, or several times as
    often: if as many were shown each time, all wins are multiples of one number; and none wins once. Of answers by
    themselves some items win once: the last but one of a ranking, and where pairs are drawn at random as many as a
    Poisson law of as many wins each has it. Where that is hardly any, items win over another each time only if rows are
    choices, or of one baseline, or if somebody compared all with each other. Ties tell nothing. O(n log n).
    """
    decided = outcome != 0
    n_items = int(max(left.max(initial=0), right.max(initial=0))) + 1
    winner, loser = np.where(outcome > 0, left, right)[decided], np.where(outcome > 0, right, left)[decided]
    by_whom = user[decided].astype(np.int64) * n_items + winner
    group, wins = np.unique(by_whom, return_counts=True)
    losers = np.bincount(np.searchsorted(group, np.unique(by_whom * n_items + loser) // n_items), minlength=len(wins))
    if len(wins) < LEAST_CHOICES or (losers > 1).mean() < IN_RUNS:
        return False
    usual = int(np.bincount(wins[wins > 1]).argmax())
    if (wins % usual == 0).mean() >= IN_RUNS and (losers[wins == usual] == usual).mean() >= IN_RUNS:
        return True
    person, other = user[decided].astype(np.int64), np.minimum(winner, loser) * n_items + np.maximum(winner, loser)
    met = np.unique(np.concatenate([by_whom, person * n_items + loser])) // n_items
    n_met = np.unique(met, return_counts=True)[1]
    n_pairs = len(np.unique(person * n_items**2 + other))
    if n_pairs == decided.sum() >= ALL_PAIRS * (n_met * (n_met - 1) / 2).sum():
        return False  # everybody compared each item with each other one, once
    low, high = 0.0, float(wins.mean())  # of the law without 0, whose mean is rate / (1 - exp(-rate))
    for _ in range(60):
        rate = 0.5 * (low + high)
        low, high = (rate, high) if rate < wins.mean() * -np.expm1(-rate) else (low, rate)
    once = len(wins) * rate / np.expm1(rate)
    if once >= LEAST_CHOICES / 2:
        return bool((wins == 1).sum() <= FEWER * once)
    return not bool((wins == 1).any()) and bool(2 * (losers == wins).sum() >= len(wins))


def choices_in_runs(
    user: Codes, left: Codes, right: Codes, outcome: NDArray[np.int8], weight: NDArray[np.float64]
) -> Codes | None:
    """Choices of one item over others, in rows that follow each other; int32, shape (n,), or None if rows are none.

    Equal codes for the rows of one choice, -1 for a row by itself. Arguments are in the order of the file, which was
    said to mean this: consecutive rows of one person (and one weight) in which one item wins over distinct others are
    one choice. O(n log n).
    """
    n_items = int(max(left.max(initial=0), right.max(initial=0))) + 1
    decided = outcome != 0
    if not decided.any():
        return None
    winner, loser = np.where(outcome > 0, left, right), np.where(outcome > 0, right, left).astype(np.int64)
    by_whom = user.astype(np.int64) * n_items + winner
    goes_on = decided[1:] & decided[:-1] & (np.diff(by_whom) == 0) & (np.diff(weight) == 0)
    stretch = np.cumsum(np.append(True, ~goes_on)) - 1
    stretch, run = _runs(stretch, loser)
    size = np.bincount(run)
    in_run = decided & (size[run] > 1)
    # Where a loser recurs it cannot be told where the next choice begins: better too much together than too little.
    task = np.full(len(user), ALONE, dtype=np.int32)
    held = (np.bincount(stretch, in_run) > 0)[stretch]
    task[held] = np.unique(stretch[held], return_inverse=True)[1]
    return task if held.any() else None


def _runs(stretch: NDArray[np.int64], loser: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Stretches of one winner, cut where choices of one size meet, and runs: stretches cut where a loser recurs."""
    length, start = np.bincount(stretch), _starts(stretch)
    long = length[length > 1]
    if len(long):
        # The same item chosen in two tasks one after the other.
        usual = int(np.bincount(long).argmax())
        if long[long % usual == 0].sum() >= IN_RUNS * long.sum():
            part = np.where((length % usual == 0)[stretch], (np.arange(len(stretch)) - start[stretch]) // usual, 0)
            stretch = np.cumsum(np.append(True, (np.diff(stretch) > 0) | (np.diff(part) > 0))) - 1
    key = stretch * (int(loser.max(initial=0)) + 1) + loser
    order = np.argsort(key, kind="stable")
    same = np.diff(key[order]) == 0
    fresh = np.zeros(len(stretch), dtype=bool)
    last = 0
    met = sorted(zip(order[1:][same].tolist(), order[:-1][same].tolist(), strict=True))
    for row, before in met:
        if before >= last:
            fresh[row], last = True, row
    return stretch, stretch + np.cumsum(fresh)


def canonical_answers(answers: AnswerColumns) -> AnswerColumns:
    """Canonical rows of answers with tasks, sides, covariates and contexts, in the order of ``canonical_rows``.

    Only equal answers of one task, context, grade and time, with the same covariates and copies, become one row; these
    sort after the outcome. Of two copies of one item the first is on the left.
    Sides add up; they, covariates and copies turn with the items. Tasks are 0, 1, ... in the order in which they first
    occur in the rows, distinct between people, -1 for none; None if no answer has a task.

    Only which answers belong together matters, not what a task was called: where tasks of a person begin with the same
    answer, they are put in the order of what follows, as words in a dictionary. Tasks that are equal throughout can
    change places without any difference. O(n log n), and once more for each doubling of the answers in which two tasks
    agree from the start.
    """
    user, left, right, outcome, weight, task, sides, covariates, context, grade, copies, time = answers
    swap = left > right
    apart: list[NDArray[Any]] = []
    if covariates is not None:
        covariates = np.where(swap[:, None], -covariates, covariates) + 0.0  # -0 is 0
        apart += [_dense(column) for column in covariates.T]
    if context is not None:
        apart.append(context.astype(np.int64) + 1)
    if grade is not None:
        apart.append(grade)
    if copies is not None:
        swap |= (left == right) & (copies[:, 0] > copies[:, 1])
        copies = np.where(swap[:, None], copies[:, ::-1], copies)
        apart += [copies[:, 0], copies[:, 1]]
        left, right = np.where(swap, right, left), np.where(swap, left, right)
        outcome = np.where(swap, -outcome, outcome).astype(np.int8)
    if time is not None:
        apart.append(_dense(time))
    value = _dense(*apart) if apart else None
    group, known, span = user, None, 1
    if task is not None and (task >= 0).any():
        # A group takes the place of the user: a task, or all answers of a person that stand alone.
        span = int(task.max()) + 2
        known, label = np.unique(user.astype(np.int64) * span + np.maximum(task, ALONE) + 1, return_inverse=True)
        group = label.astype(np.int32)
    rows, order, starts = _merged(group, left, right, outcome, weight, value)
    first = order[starts]
    sides = _sides_of_rows(sides, swap, order, starts)
    covariates = None if covariates is None else covariates[first]
    context = None if context is None else context[first]
    grade = None if grade is None else grade[first]
    copies = None if copies is None else copies[first]
    time = None if time is None else time[first]
    if known is None:
        return AnswerColumns(*rows, None, sides, covariates, context, grade, copies, time)
    alone = known % span == 0
    group, left, right, outcome, weight = rows
    user = (known // span).astype(np.int32)[group]
    kind = _dense(user, left, right, outcome + 1, *(() if value is None else (value[first],)))
    content = kind if (weight == weight[0]).all() else _dense(kind, _dense(weight))
    in_task = ~alone[group]
    place = _ranks_of_sequences(content[in_task], group[in_task])
    if sides is None:
        place = np.argsort(place, kind="stable")
    else:  # sides say only which of the tasks that are equal otherwise comes first
        shown = _dense(content, *(_dense(column) for column in sides.T))
        place = np.lexsort((_ranks_of_sequences(shown[in_task], group[in_task]), place))
    code = np.full(len(known), ALONE, dtype=np.int32)
    code[np.flatnonzero(~alone)[place]] = np.arange(len(place), dtype=np.int32)
    task = code[group]
    order = np.argsort(packed(kind, task + 1))
    return AnswerColumns(user, left, right, outcome, weight, task, sides, covariates, context, grade, copies, time).at(
        order
    )


def _sides_of_rows(
    sides: NDArray[np.float64] | None, swap: NDArray[np.bool_], order: NDArray[np.intp], starts: NDArray[np.intp]
) -> NDArray[np.float64] | None:
    """Sides of merged rows, (n_rows, 2), from those of the answers; ``swap``: whose items changed places."""
    if sides is None:
        return None
    turned = np.where(swap[:, None], sides[:, ::-1], sides).take(order, axis=0)  # indexing takes six times as long
    if len(starts) == len(order):
        return turned
    # One after the other, unlike reduceat, so that the zeros of answers shown the other way round change no bit.
    row = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    return np.stack([np.bincount(row, column, len(starts)) for column in turned.T], axis=1)


def joined_tasks(first: Codes | None, second: Codes | None, n_first: int, n_second: int) -> Codes | None:
    """Tasks of two sets of answers one after the other, none in common; shape (n_first + n_second,)."""
    if first is None and second is None:
        return None
    first = np.full(n_first, ALONE, dtype=np.int32) if first is None else first
    second = np.full(n_second, ALONE, dtype=np.int32) if second is None else second
    above = int(first.max(initial=ALONE)) + 1
    return np.concatenate([first, np.where(second < 0, ALONE, second + above)]).astype(np.int32)


def groups_by_task(
    pair: NDArray[np.int64], user: Codes, task: Codes, weight: NDArray[np.float64]
) -> tuple[NDArray[np.int64], Codes, NDArray[np.float64]]:
    """Groups held out together: a task, or a person's answers to one pair without one.

    ``pair`` is the number of the (user, pair) of each row, shape (n_rows,), in canonical order. Returns the group of
    each row, numbered in the order of their first rows and so by user, and per group its user and its sum of weights.
    """
    in_task = _dense(user, np.maximum(task, ALONE) + 1) + int(pair.max(initial=0)) + 1
    _, first, label = np.unique(np.where(task < 0, pair, in_task), return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    group = number[label]
    return group, user[first[order]], np.bincount(group, weight, minlength=len(order)).astype(np.float64)


def _ranks_of_sequences(content: NDArray[np.int64], group: Codes) -> NDArray[np.int64]:
    """Lexicographic rank of consecutive runs of rows, words with letters ``content``, by prefix doubling."""
    word = np.cumsum(np.append(0, group[1:] != group[:-1]))
    letter, length = content + 1, 1
    place = content[_starts(word)]
    while True:
        unsettled = (np.bincount(place)[place] > 1)[word]
        letter, word = letter[unsettled], word[unsettled]
        start = _starts(word)
        if np.diff(start, append=len(word)).max(initial=0) <= length:
            return place
        ahead = np.arange(len(word)) + length
        inside = ahead < np.repeat(np.append(start[1:], len(word)), np.diff(start, append=len(word)))
        follows = np.zeros_like(letter)  # a shorter word comes first
        follows[inside] = letter[ahead[inside]]
        letter, length = _dense(letter, follows) + 1, 2 * length
        finer = np.zeros_like(place)
        finer[word[start]] = letter[start]
        place = _dense(place, finer)


def _starts(word: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.flatnonzero(np.diff(word, prepend=-1))


def _dense(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """Dense rank of each row, by the first column, then the second ..."""
    ranked: NDArray[np.int64]
    ranked = np.unique(columns[0] if len(columns) == 1 else packed(*columns), return_inverse=True)[1]
    return ranked


def packed(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """One number a row that sorts as the columns do, all of whole numbers from 0."""
    key, span = columns[0].astype(np.int64), int(columns[0].max(initial=0)) + 1
    for column in columns[1:]:
        size = int(column.max(initial=0)) + 1
        if span * size >= 2**62:
            key = _dense(key)
            span = int(key.max(initial=0)) + 1
        key *= size
        key += column
        span *= size
    return key
