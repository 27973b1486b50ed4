"""Pairs against the answers of a user: which items are known, and what follows by transitivity."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._compile import inner_kernel, kernel
from predilect.people.layout import People


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


IntArray = npt.NDArray[np.integer]

IMPLIED = 3  # after 0, 1 and 2, the number of items without an answer


def kinds_in(people: People, users: IntArray, left: IntArray, right: IntArray) -> npt.NDArray[np.int8]:
    """Kind of each queried pair, int8 (n,): 0 to 2 items without an answer by that user, or :data:`IMPLIED`.

    Implied: a chain of strict answers leads from one item to the other and none leads back. Ties are no part of a
    chain, an answer to the very pair is one. A user of -1 has no answers, an item from ``n_items`` on is new. Sorting,
    and O(n_u + k_u) once per first item.
    """
    users = np.asarray(users, dtype=np.int64)
    sides = [
        places_of_items(users, np.asarray(side, dtype=np.int64), people.item_ptr, people.item_idx)
        for side in (left, right)
    ]
    kind: npt.NDArray[np.int8] = (sides[0] < 0).astype(np.int8) + (sides[1] < 0).astype(np.int8)
    known = np.flatnonzero(kind == 0)
    if not len(known):
        return kind
    known = known[np.lexsort((sides[0][known], users[known]))]
    marks = np.zeros(len(known), dtype=bool)
    mark_implied(
        users[known], sides[0][known], sides[1][known], people.answer_ptr, people.item_ptr, people.left, people.right,
        people.outcome, marks,
    )  # fmt: skip
    kind[known[marks]] = IMPLIED
    return kind
