"""Answers as sorted keys, with addition and removal."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
KeyArray = npt.NDArray[np.int64]

# A key orders answers by left item, right item and outcome: 31 bits for an item, 2 for the outcome.
_ITEM_BITS, _OUTCOME_BITS = 31, 2
_ITEM = (1 << _ITEM_BITS) - 1
_ZERO = np.zeros(1)
_DUST = 1e-9  # relative: weights are counts, and removal leaves rounding errors


def key_of(left: int, right: int, outcome: int) -> int:
    """Key of one answer."""
    return ((left << _ITEM_BITS) + right << _OUTCOME_BITS) + outcome + 1


def keys_of(left: npt.NDArray[np.integer], right: npt.NDArray[np.integer], outcome: npt.NDArray[np.int8]) -> KeyArray:
    """Keys of answers; shape (n,). The left item has the smaller code."""
    key = left.astype(np.int64)
    key <<= _ITEM_BITS
    key += right
    key <<= _OUTCOME_BITS
    key += outcome
    key += 1
    return key


def sides_of_one(key: int) -> tuple[int, int]:
    """Left and right item of one key."""
    return key >> (_ITEM_BITS + _OUTCOME_BITS), (key >> _OUTCOME_BITS) & _ITEM


def sides_of(key: KeyArray) -> tuple[KeyArray, KeyArray, npt.NDArray[np.int8]]:
    """Left item, right item and outcome of keys; shapes (n,)."""
    outcome = (key & 3).astype(np.int8)
    outcome -= 1
    pair = key >> _OUTCOME_BITS
    return pair >> _ITEM_BITS, pair & _ITEM, outcome


class Rows(NamedTuple):
    """Answers with distinct, ascending keys."""

    key: KeyArray
    weight: FloatArray  # number of identical answers in a row
    carried: tuple[FloatArray, ...] = ()  # site columns or the like, 0 for a new row

    @classmethod
    def of(cls, key: KeyArray, weight: FloatArray, carried: tuple[FloatArray, ...] = ()) -> Rows:
        """From rows in any order; weights of equal keys are added, what they carry is averaged."""
        if (key[1:] > key[:-1]).all():
            return cls(key, weight, carried)
        order = np.argsort(key, kind="stable")
        key, weight = key[order], weight[order]
        starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
        total = np.add.reduceat(weight, starts)
        means = (np.add.reduceat(column[order] * weight, starts) / total for column in carried)
        return cls(key[starts], total, tuple(means))

    def held(self, key: KeyArray) -> FloatArray:
        """Weights of the rows with some keys, 0 where there is none; (n,)."""
        place, known = self._find(key)
        weight = np.zeros(len(key))
        weight[known] = self.weight[place[known]]
        return weight

    def plus(self, key: KeyArray, weight: FloatArray) -> Rows:
        """With more answers, of distinct keys in any order."""
        if len(key) == 1:
            return self._plus_one(key, weight)
        place, known = self._find(key)
        total = self.weight.copy()
        if known.any():
            total[place[known]] += weight[known]
            key, weight = key[~known], weight[~known]
            if not len(key):
                return Rows(self.key, total, self.carried)
        keys = np.concatenate((self.key, key))
        order = np.argsort(keys, kind="stable")
        nothing = np.zeros(len(key))
        carried = tuple(np.concatenate((column, nothing))[order] for column in self.carried)
        return Rows(keys[order], np.concatenate((total, weight))[order], carried)

    def _plus_one(self, key: KeyArray, weight: FloatArray) -> Rows:
        # The same without the sorting: an update is mostly of one answer, and counted in microseconds.
        place = int(self.key.searchsorted(key[0]))
        if place < len(self.key) and self.key[place] == key[0]:
            total = self.weight.copy()
            total[place] += weight[0]
            return Rows(self.key, total, self.carried)

        def put(column: npt.NDArray[Any], value: npt.NDArray[Any]) -> Any:
            return np.concatenate((column[:place], value, column[place:]))

        return Rows(put(self.key, key), put(self.weight, weight), tuple(put(column, _ZERO) for column in self.carried))

    def minus(self, key: KeyArray, weight: FloatArray) -> Rows:
        """Without some answers of distinct keys, all of them held with at least that weight."""
        place, _ = self._find(key)
        total = self.weight.copy()
        rest = total[place] - weight
        rest[rest <= _DUST * weight] = 0.0
        total[place] = rest
        if rest.all():
            return Rows(self.key, total, self.carried)
        keep = total > 0.0
        return Rows(self.key[keep], total[keep], tuple(column[keep] for column in self.carried))

    def _find(self, key: KeyArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        place = self.key.searchsorted(key)
        if not len(self.key):
            return place, np.zeros(len(key), dtype=bool)
        np.minimum(place, len(self.key) - 1, out=place)
        return place, self.key[place] == key
