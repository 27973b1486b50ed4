"""Pairs against the answers of a user: which items are known, and what follows by transitivity."""

from __future__ import annotations

from typing import Any

import numpy as np

from predilect._compile import inner_kernel, kernel

__all__ = ["mark_implied", "places_of_items"]


@kernel
def places_of_items(users: Any, items: Any, item_ptr: Any, item_idx: Any) -> Any:
    """Positions of items in their users' own lists, -1 for those that are not there; users of -1 have none."""
    places = np.full(len(users), -1, dtype=np.int64)
    for t in range(len(users)):
        if users[t] < 0:
            continue
        start, stop = item_ptr[users[t]], item_ptr[users[t] + 1]
        low, high = start, stop
        while low < high:
            middle = (low + high) // 2
            if item_idx[middle] < items[t]:
                low = middle + 1
            else:
                high = middle
        if low < stop and item_idx[low] == items[t]:
            places[t] = low - start
    return places


@inner_kernel
def _reached(start: int, ptr: Any, losers: Any, reach: Any, stack: Any) -> None:
    """Mark all items that a chain of answers leads to."""
    reach[:] = False
    stack[0], n = start, 1
    while n:
        n -= 1
        item = stack[n]
        for e in range(ptr[item], ptr[item + 1]):
            if not reach[losers[e]]:
                reach[losers[e]] = True
                stack[n] = losers[e]
                n += 1


@inner_kernel
def _by_item(n_items: int, of: Any, to: Any, outcome: Any) -> Any:
    """Strict answers grouped by one of their sides: pointers by item, and the other sides."""
    ptr = np.zeros(n_items + 1, dtype=np.int64)
    for p in range(len(outcome)):
        if outcome[p] != 0:
            ptr[of[p] + 1] += 1
    ptr = np.cumsum(ptr)
    place = ptr[:-1].copy()
    other = np.empty(ptr[-1], dtype=np.int64)
    for p in range(len(outcome)):
        if outcome[p] != 0:
            other[place[of[p]]] = to[p]
            place[of[p]] += 1
    return ptr, other


@kernel
def mark_implied(users: Any, first: Any, second: Any, answer_ptr: Any, item_ptr: Any, left: Any, right: Any,
                 outcome: Any, marks: Any) -> None:  # fmt: skip
    """Mark in ``marks`` (n,) the pairs that a chain of strict answers implies, with none leading back.

    Sorted by user, then by first item; items are positions in the user's own list.
    """
    t = 0
    while t < len(users):
        user = users[t]
        start, stop = answer_ptr[user], answer_ptr[user + 1]
        n_items = item_ptr[user + 1] - item_ptr[user]
        y = outcome[start:stop]
        winner, loser = left[start:stop].copy(), right[start:stop].copy()
        for p in range(stop - start):
            if y[p] < 0:
                winner[p], loser[p] = loser[p], winner[p]
        down_ptr, down = _by_item(n_items, winner, loser, y)
        up_ptr, up = _by_item(n_items, loser, winner, y)
        below, above = np.empty(n_items, dtype=np.bool_), np.empty(n_items, dtype=np.bool_)
        stack = np.empty(n_items + 1, dtype=np.int64)
        item = -1
        while t < len(users) and users[t] == user:
            if first[t] != item:
                item = first[t]
                _reached(item, down_ptr, down, below, stack)
                _reached(item, up_ptr, up, above, stack)
            marks[t] = below[second[t]] != above[second[t]]
            t += 1
