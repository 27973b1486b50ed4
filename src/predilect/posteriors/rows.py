"""Answers as sorted keys, to which others can be added and from which some can be taken back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Rows", "keys_of", "sides_of"]

FloatArray = npt.NDArray[np.float64]
KeyArray = npt.NDArray[np.int64]

# A key orders answers by left item, right item and outcome: 31 bits for an item, 2 for the outcome.
_ITEM_BITS, _OUTCOME_BITS = 31, 2
_DUST = 1e-9  # of what was taken back: weights are counts, and sums of them leave rounding behind


def keys_of(left: npt.NDArray[np.integer], right: npt.NDArray[np.integer], outcome: npt.NDArray[np.int8]) -> KeyArray:
    """Keys of answers; shape (n,). The left item has the smaller code."""
    key = left.astype(np.int64)
    key <<= _ITEM_BITS
    key += right
    key <<= _OUTCOME_BITS
    key += outcome
    key += 1
    return key


def sides_of(key: KeyArray) -> tuple[KeyArray, KeyArray, npt.NDArray[np.int8]]:
    """Left item, right item and outcome of keys; shapes (n,)."""
    outcome = (key & 3).astype(np.int8)
    outcome -= 1
    pair = key >> _OUTCOME_BITS
    return pair >> _ITEM_BITS, pair & ((1 << _ITEM_BITS) - 1), outcome


@dataclass(frozen=True, slots=True)
class Rows:
    """Answers, each key once.

    Attributes
    ----------
    key : int64[n]
        Ascending.
    weight : float64[n]
        How many identical answers a row stands for.
    carried : float64[n, c]
        What goes with a row, such as its site; 0 for a new row.
    """

    key: KeyArray
    weight: FloatArray
    carried: FloatArray

    @classmethod
    def of(cls, key: KeyArray, weight: FloatArray, carried: FloatArray) -> Rows:
        """From rows in any order; of equal keys the weights add up, and what they carry is averaged."""
        if (key[1:] > key[:-1]).all():
            return cls(key, weight, carried)
        order = np.argsort(key, kind="stable")
        key, weight, carried = key[order], weight[order], carried[order]
        starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
        total = np.add.reduceat(weight, starts)
        carried = np.add.reduceat(carried * weight[:, None], starts, axis=0) / total[:, None]
        return cls(key[starts], total, carried)

    def held(self, key: KeyArray) -> FloatArray:
        """Weights of the rows with some keys, 0 where there is none; shape (n,)."""
        place, known = self._find(key)
        weight = np.zeros(len(key))
        weight[known] = self.weight[place[known]]
        return weight

    def plus(self, key: KeyArray, weight: FloatArray) -> Rows:
        """With more answers; their keys are distinct, in any order."""
        place, known = self._find(key)
        total = self.weight.copy()
        if known.any():
            total[place[known]] += weight[known]
            key, weight = key[~known], weight[~known]
            if not len(key):
                return Rows(self.key, total, self.carried)
        key = np.concatenate((self.key, key))
        order = np.argsort(key, kind="stable")
        carried = np.zeros((len(key), self.carried.shape[1]))
        carried[: len(self.key)] = self.carried
        return Rows(key[order], np.concatenate((total, weight))[order], carried[order])

    def minus(self, key: KeyArray, weight: FloatArray) -> Rows:
        """Without some answers, all of which are held with at least that weight; their keys are distinct."""
        place, _ = self._find(key)
        total = self.weight.copy()
        rest = total[place] - weight
        rest[rest <= _DUST * weight] = 0.0
        total[place] = rest
        if rest.all():
            return Rows(self.key, total, self.carried)
        keep = total > 0.0
        return Rows(self.key[keep], total[keep], self.carried[keep])

    def _find(self, key: KeyArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        place = self.key.searchsorted(key)
        if not len(self.key):
            return place, np.zeros(len(key), dtype=bool)
        np.minimum(place, len(self.key) - 1, out=place)
        return place, self.key[place] == key
