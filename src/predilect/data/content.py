"""Numbers of answers and people that follow from what was answered and from no name, for random draws to follow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predilect.data.comparisons import Comparisons
from predilect.data.features import FeatureSpace

Keys = NDArray[np.uint64]

_MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # of SplitMix64
_ROUNDS = 3
_DIGITS = 6  # of features, which are standardised by sums over items in the order of their names


def hashed(keys: Keys) -> Keys:
    """Keys (n,) of which equal ones stay equal and others become unlike."""
    for shift, factor in _MIXING:
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    return keys ^ (keys >> np.uint64(31))


def summed(keys: Keys, group: NDArray[Any], n_groups: int) -> Keys:
    """Sum of the keys of each group modulo 2⁶⁴, (n_groups,): the same in any order."""
    out = np.zeros(n_groups, dtype=np.uint64)
    np.add.at(out, group, keys)
    return out


def keys_of_answers(answers: Comparisons, space: FeatureSpace | None = None) -> Keys:
    """A key of each row, (n_rows,), from who else answered what about the items, and from the items' features.

    Rows with equal keys are alike to three steps from person to item to person (colour refinement after Weisfeiler and
    Leman); the names of people, items and features and the order of anything play no part. O(n_rows).
    """
    item = np.zeros(answers.n_items, dtype=np.uint64) if space is None else _keys_of_items(space)
    said = answers.code.astype(np.int64)
    return refined(answers.user, answers.left, answers.right, said, answers.weight, answers.n_users, item).rows


class Refined(NamedTuple):
    """Keys of rows, people and items."""

    rows: Keys
    people: Keys
    items: Keys


def refined(
    user: NDArray[Any], left: NDArray[Any], right: NDArray[Any], said: NDArray[np.int64], weight: NDArray[Any],
    n_users: int, item: Keys,
) -> Refined:  # fmt: skip
    """:func:`keys_of_answers` from columns (n_rows,), ``said`` -1 with the sides exchanged being 1, with keys of people
    and of items, which begin at ``item`` (n_items,).
    """
    person = np.zeros(n_users, dtype=np.uint64)
    to_left, to_right = hashed((said + 200).astype(np.uint64)), hashed((200 - said).astype(np.uint64))
    counts = hashed(np.ascontiguousarray(weight).view(np.uint64))
    for _ in range(_ROUNDS):
        one, other = hashed(item[left] + to_left), hashed(item[right] + to_right)
        row = hashed((one + other) ^ person[user] ^ counts)
        person = hashed(summed(row, user, n_users))
        about = summed(hashed(row + to_left), left, len(item))
        about += summed(hashed(row + to_right), right, len(item))
        item = hashed(item ^ about)
    return Refined(row, person, item)


def _keys_of_items(space: FeatureSpace) -> Keys:
    """A key of each item, (n_items,), from its features in whatever order these are."""
    value = rounded(space.matrix)
    column = hashed(value.sum(axis=0, dtype=np.uint64))
    key: Keys = hashed(value + column).sum(axis=1, dtype=np.uint64)
    return np.where(space.known, key, np.uint64(0))


def rounded(values: NDArray[np.float64]) -> Keys:
    """Keys of numbers (n,), equal where they differ by rounding alone (but for the few that lie at an edge)."""
    return hashed((np.round(values, _DIGITS) + 0.0).view(np.uint64))  # -0 is 0


def dealt(values: NDArray[Any], *keys: NDArray[Any]) -> NDArray[Any]:
    """``values`` (n,) in another order: the first to who has the least of the last key, then of those before it."""
    out = np.empty_like(values)
    out[np.lexsort(keys)] = values
    return out
