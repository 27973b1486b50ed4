"""Answers as sorted keys, with addition and removal."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.types import FloatArray, IntArray

# A key orders answers by left item, right item, variant and outcome with its grade: 19 bits for an item, 21 for a
# variant, 4 for the code of the outcome, which is 0 for a tie, ±1 for a side and ±(1 + g) for one by grade g.
_ITEM_BITS, _VARIANT_BITS, _OUTCOME_BITS = 19, 21, 4
_CODES, _LARGEST_CODE = (1 << _OUTCOME_BITS) - 1, 7
_ITEM, _VARIANT = (1 << _ITEM_BITS) - 1, (1 << _VARIANT_BITS) - 1
MOST_ITEMS, MOST_VARIANTS = 1 << _ITEM_BITS, 1 << _VARIANT_BITS
_NO_KEY, _NOTHING = np.array([-1]), np.zeros(1)
_DUST = 1e-9  # relative: weights are counts, and removal leaves rounding errors


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


_COPY_BITS = 16


def copies_in_one(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> IntArray:
    """Which copies of their items the alternatives of rows are, from 0, in one number a row; shape (n,)."""
    found: IntArray = (left.astype(np.int64) << _COPY_BITS) + right
    return found


def copies_of_sides(copies: IntArray) -> tuple[IntArray, IntArray]:
    """The inverse of :func:`copies_in_one`."""
    return copies >> _COPY_BITS, copies & (1 << _COPY_BITS) - 1


def contents(key: IntArray, copies: IntArray) -> bytes:
    """What rows of a task say, in whatever order they stand."""
    order = np.lexsort((copies, key))
    return np.stack([key[order], copies[order]]).tobytes()


class Rows(NamedTuple):
    """Answers with distinct, ascending keys."""

    key: IntArray
    weight: FloatArray  # number of identical answers in a row
    carried: tuple[FloatArray, ...] = ()  # site columns or the like, 0 for a new row

    @classmethod
    def of(cls, key: IntArray, weight: FloatArray, carried: tuple[FloatArray, ...] = ()) -> Rows:
        """From rows in any order; weights of equal keys are added, what they carry is averaged."""
        if (key[1:] > key[:-1]).all():
            return cls(key, weight, carried)
        order = np.argsort(key, kind="stable")
        key, weight = key[order], weight[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        total = np.add.reduceat(weight, starts)
        means = (np.add.reduceat(column[order] * weight, starts) / total for column in carried)
        return cls(key[starts], total, tuple(means))

    def held(self, key: IntArray) -> FloatArray:
        """Weights of the rows with some keys, 0 where there is none; (n,)."""
        place = self.key.searchsorted(key)
        known = np.concatenate((self.key, _NO_KEY))[place] == key
        return np.where(known, np.concatenate((self.weight, _NOTHING))[place], 0.0)

    def plus(self, key: IntArray, change: FloatArray) -> Rows:
        """With other weights of some answers, of distinct keys in any order; rows of which nothing is left go."""
        keys = np.concatenate((self.key, key))
        order = keys.argsort(kind="stable")
        keys, weight = keys[order], np.concatenate((self.weight, change))[order]
        flat = np.zeros(len(key))
        carried = tuple(np.concatenate((column, flat))[order] for column in self.carried)
        (held,) = (keys[1:] == keys[:-1]).nonzero()
        if not len(held):
            return Rows(keys, weight, carried)
        change = weight[held + 1]  # a row that was held has its change behind it
        rest = weight[held] + change
        rest[rest <= -_DUST * change] = 0.0
        weight[held], weight[held + 1] = rest, 0.0
        keep = weight > 0.0
        return Rows(keys[keep], weight[keep], tuple(column[keep] for column in carried))
