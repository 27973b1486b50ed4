"""Answers in the codes of a model, as sorted rows, with addition and removal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.types import BoolArray, FloatArray, IntArray

# A key orders answers by left item, right item, variant and outcome with its grade: 19 bits for an item, 21 for a
# variant, 4 for the code of the outcome, which is 0 for a tie, ±1 for a side and ±(1 + g) for one by grade g.
_ITEM_BITS, _VARIANT_BITS, _OUTCOME_BITS = 19, 21, 4
_CODES, _LARGEST_CODE = (1 << _OUTCOME_BITS) - 1, 7
_ITEM, _VARIANT = (1 << _ITEM_BITS) - 1, (1 << _VARIANT_BITS) - 1
MOST_ITEMS, MOST_VARIANTS = 1 << _ITEM_BITS, 1 << _VARIANT_BITS
DUST = 1e-9  # relative: weights are counts, and removal leaves rounding errors


def keys_of(left: IntArray, right: IntArray, outcome: npt.NDArray[np.int8], variant: IntArray | int = 0) -> IntArray:
    """Keys of answers; shape (n,). The left item has the smaller code; the variant says under which covariates."""
    pair = (left.astype(np.int64) << _ITEM_BITS) + right
    key: IntArray = ((pair << _VARIANT_BITS) + variant << _OUTCOME_BITS) + outcome + _LARGEST_CODE
    return key


def sides_of(key: IntArray) -> tuple[IntArray, IntArray, npt.NDArray[np.int8], IntArray]:
    """Left item, right item, outcome and variant of keys; shapes (n,)."""
    rest = key >> _OUTCOME_BITS
    pair = rest >> _VARIANT_BITS
    return pair >> _ITEM_BITS, pair & _ITEM, ((key & _CODES) - _LARGEST_CODE).astype(np.int8), rest & _VARIANT


def results_of(
    left: npt.NDArray[Any], right: npt.NDArray[Any], outcome: npt.NDArray[Any], weight: FloatArray, n_items: int
) -> FloatArray:  # fmt: skip
    """Wins, ties and losses of each item, (n_items, 3), in rows whose outcome is positive where the left one won."""
    place = 1 - np.sign(outcome).astype(np.int64)  # of the left item; of the right one 2 less it
    counts = np.bincount(left * np.int64(3) + place, weight, 3 * n_items)
    counts = counts + np.bincount(right * np.int64(3) + 2 - place, weight, 3 * n_items)
    return np.asarray(counts, dtype=np.float64).reshape(n_items, 3)  # NumPy counts nothing in whole numbers


_COPY_BITS = 16


def copies_in_one(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> IntArray:
    """Which copies of their items the alternatives of rows are, from 0, in one number a row; shape (n,)."""
    found: IntArray = (left.astype(np.int64) << _COPY_BITS) + right
    return found


def copies_of_sides(copies: IntArray) -> tuple[IntArray, IntArray]:
    """The inverse of :func:`copies_in_one`."""
    return copies >> _COPY_BITS, copies & (1 << _COPY_BITS) - 1


class Rows(NamedTuple):
    """Answers in codes, with their sites; arrays (n,).

    An answer by itself is one row, and its weight says how many are the same. One about several alternatives is all
    rows of its task, each of weight 1. In order, by user, key, copies and task, answers by themselves are there once.
    """

    user: IntArray
    key: IntArray
    copies: IntArray  # as of :func:`copies_in_one`; 0 but in tasks
    task: IntArray  # rows of a user with one number are one answer; -1: an answer by itself
    weight: FloatArray
    precision: FloatArray  # site of one copy; 0 for a new row
    linear: FloatArray

    @classmethod
    def new(
        cls, user: IntArray, key: IntArray, weight: FloatArray, copies: IntArray | None = None,
        task: IntArray | None = None,
    ) -> Rows:  # fmt: skip
        """Without sites, as they stand; by default answers by themselves."""
        flat = np.zeros(len(key))
        copies = np.zeros(len(key), dtype=np.int64) if copies is None else copies
        task = np.full(len(key), -1, dtype=np.int64) if task is None else task
        return cls(user, key, copies, task, weight, flat, flat)

    @classmethod
    def stacked(cls, parts: Sequence[Rows]) -> Rows:
        """One after the other."""
        return cls._make(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def at(self, index: Any) -> Rows:
        """Some of the rows."""
        return Rows._make([column[index] for column in self])

    def of_user(self, user: int) -> Rows:
        """The rows with another, or one, user."""
        return self._replace(user=np.full(len(self.key), user, dtype=np.int64))

    def results(self, n_items: int) -> FloatArray:
        """Wins, ties and losses of each item, (n_items, 3)."""
        left, right, outcome, _ = sides_of(self.key)
        return results_of(left, right, outcome, self.weight, n_items)

    def task_numbers(self) -> IntArray:
        """A number for each task of each user, (n,); -1 for answers by themselves."""
        number = np.unique(np.stack([self.user, self.task]), axis=1, return_inverse=True)[1].reshape(-1)
        return np.where(self.task < 0, -1, number)

    def merged(self) -> Rows:
        """In order; weights of equal answers by themselves are added, and of their sites the mean is taken.

        Weights are added in the order of their size: the sum has the same bits for any order of the rows.
        """
        rows = self.at(np.lexsort((self.weight, self.task, self.copies, self.key, self.user)))
        starts = np.flatnonzero(~(rows._repeats() & (rows.task < 0)))
        if len(starts) == len(rows.key):
            return rows
        total, rest = np.add.reduceat(rows.weight, starts), rows.at(starts)
        share = rows.weight / np.repeat(np.where(total, total, 1.0), np.diff(np.append(starts, len(rows.key))))
        sites = (np.add.reduceat(column * share, starts) for column in rows[-2:])
        return Rows(*rest[:4], total, *sites)

    def _repeats(self) -> BoolArray:
        """Whether a row has the user and the key of the one before."""
        same = np.zeros(len(self.key), dtype=bool)
        np.logical_and(self.key[1:] == self.key[:-1], self.user[1:] == self.user[:-1], out=same[1:])
        return same

    def tasks(self) -> dict[tuple[int, bytes], list[IntArray]]:
        """Rows of each answer about several alternatives, by who gave it and what it says, in whatever order."""
        rows = np.flatnonzero(self.task >= 0)
        rows = rows[np.lexsort((self.copies[rows], self.key[rows], self.task[rows], self.user[rows]))]
        user, task = self.user[rows], self.task[rows]
        cuts = np.flatnonzero((user[1:] != user[:-1]) | (task[1:] != task[:-1])) + 1
        found: dict[tuple[int, bytes], list[IntArray]] = {}
        for part in np.split(rows, cuts) if len(rows) else ():
            what = int(self.user[part[0]]), np.stack([self.key[part], self.copies[part]]).tobytes()
            found.setdefault(what, []).append(part)
        return found

    def places(self, more: Rows, *, with_tasks: bool = True) -> IntArray:
        """Where answers are among these, row by row; -1 where there is none. Those by themselves are there once."""
        n, alone, other = len(self.key), np.flatnonzero(self.task < 0), np.flatnonzero(more.task < 0)
        found = np.full(len(more.key), -1, dtype=np.int64)
        user = np.concatenate((self.user[alone], more.user[other]))
        key = np.concatenate((self.key[alone], more.key[other]))
        row = np.concatenate((alone, n + other))
        order = np.lexsort((row, key, user))
        user, key, row = user[order], key[order], row[order]
        (last,) = ((user[1:] == user[:-1]) & (key[1:] == key[:-1])).nonzero()  # one that is held is before the other
        found[row[last + 1] - n] = row[last]
        if with_tasks and len(other) < len(more.key):
            held = self.tasks()
            for what, parts in more.tasks().items():
                for part, place in zip(parts, held.get(what, ()), strict=False):
                    found[part] = place
        return found

    def plus(self, more: Rows) -> Rows:
        """With more answers, in order; the sites of those that are held stay."""
        place = self.places(more, with_tasks=False)
        weight, known = self.weight.copy(), place >= 0
        weight[place[known]] += more.weight[known]
        held = self._replace(weight=weight)
        if known.all():
            return held
        new = more.at(~known)
        if (new.task >= 0).any():
            above = int(self.task.max(initial=-1)) + 1
            new = new._replace(task=np.where(new.task < 0, -1, new.task + above))
        both = Rows.stacked((held, new))
        return both.at(np.lexsort((both.task, both.copies, both.key, both.user)))

    def less(self, place: IntArray, weight: FloatArray) -> Rows:
        """With so much less weight in some rows, each once; rows of which nothing is left go."""
        rest = self.weight.copy()
        rest[place] -= weight
        keep = np.ones(len(rest), dtype=bool)
        keep[place] = rest[place] > DUST * weight
        return self._replace(weight=rest).at(keep)
