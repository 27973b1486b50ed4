"""Answers about sets of alternatives: partial orders, and their rows of one alternative over another.

An answer of any kind puts the alternatives that were shown on levels, 0 the best: a choice has the chosen one above all
others, best-worst one above and one below the rest, an order a level each, the first m of k all others on one more
level, ratings a level for each value. Rows are the cover relations, from each level to the next lower one; what follows
from them is no row of its own.
"""

from __future__ import annotations

import numpy as np

from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data.canonical import repeats


def cover(task: IntArray, level: IntArray) -> tuple[IntArray, IntArray]:
    """Places of the better and of the worse alternative of each row: a level over the next lower one of its task.

    ``task`` and ``level`` are those of the alternatives, (n,) each; levels may have gaps. O(n log n).
    """
    order = np.lexsort((level, task))
    task, level = task[order], level[order]
    start = np.flatnonzero(~repeats(task, level))
    size = np.diff(start, append=len(task))
    group = np.repeat(np.arange(len(start)), size)
    below = np.zeros(len(start), dtype=np.int64)
    below[:-1] = np.where(task[start[1:]] == task[start[:-1]], size[1:], 0)
    n_rows = below[group]
    over = np.repeat(np.arange(len(task)), n_rows)
    nth = np.arange(len(over)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    return order[over], order[start[np.minimum(group[over] + 1, len(start) - 1)] + nth]


def chosen_levels(chosen: BoolArray) -> IntArray:
    """Levels of a choice of one, or of any number of alternatives: the chosen above all others; (n,)."""
    return np.where(chosen, 0, 1).astype(np.int64)


def best_worst_levels(best: BoolArray, worst: BoolArray) -> IntArray:
    """Levels of a choice of the best and the worst: one above the rest, one below; (n,)."""
    return 1 - best.astype(np.int64) + worst.astype(np.int64)


def ranked_levels(rank: FloatArray) -> IntArray:
    """Levels of ranks, the lowest number the best; NaN is below all that were ranked, as in the first m of k; (n,)."""
    filled = np.where(np.isnan(rank), np.inf, rank)
    levels: IntArray = np.unique(filled, return_inverse=True)[1]
    return levels


def rated_levels(rating: FloatArray) -> IntArray:
    """Levels of ratings, the highest number the best; (n,)."""
    return ranked_levels(-rating)
