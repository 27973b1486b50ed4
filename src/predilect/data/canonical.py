"""Canonical order of the answers, independent of the order and the orientation in which they came."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["canonical_rows", "exact_sum", "row_offsets"]

Rows = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int8], NDArray[np.float64]]


def canonical_rows(
    user: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    outcome: NDArray[np.int8],
    weight: NDArray[np.float64],
) -> Rows:
    """Answers sorted by user, pair and outcome, smaller item code on the left; equal ones merged, shape (n_distinct,).

    Outcomes are flipped where the items change sides, weights added over equal rows, in the order of the weights, so
    that the sum has the same bits for any order of the rows. O(n log n).
    """
    swap = left > right
    low, high = np.where(swap, right, left), np.where(swap, left, right)
    sign = np.where(swap, -outcome, outcome).astype(np.int8)
    n_items = int(high.max()) + 1 if len(high) else 1
    n_users = int(user.max()) + 1 if len(user) else 1
    uniform = bool(len(weight) == 0 or (weight == weight[0]).all())
    if n_users * n_items * n_items * 3 < 2**62:
        key = user.astype(np.int64)
        for part, size in ((low, n_items), (high, n_items), (sign + 1, 3)):
            key *= size
            key += part
        order = np.argsort(key) if uniform else np.lexsort((weight, key))
        key = key[order]
        fresh = np.ones(len(key), dtype=bool)
        fresh[1:] = key[1:] != key[:-1]
    else:
        order = np.lexsort((weight, sign, high, low, user))
        fresh = np.ones(len(order), dtype=bool)
        same = np.ones(max(len(order) - 1, 0), dtype=bool)
        for part in (user, low, high, sign):
            moved = part[order]
            same &= moved[1:] == moved[:-1]
        fresh[1:] = ~same
    starts = np.flatnonzero(fresh)
    first = order[starts]
    total = np.add.reduceat(weight[order], starts) if len(starts) else weight[:0].copy()
    return user[first].astype(np.int32), low[first], high[first], sign[first], total


def row_offsets(user: NDArray[np.int32], n_users: int) -> NDArray[np.int64]:
    """First row of every user, and the end; int64, shape (n_users + 1,)."""
    return np.searchsorted(user, np.arange(n_users + 1)).astype(np.int64)


def exact_sum(weight: NDArray[np.float64]) -> float:
    """Sum with the same bits in any order."""
    return float(np.sort(weight).sum())
