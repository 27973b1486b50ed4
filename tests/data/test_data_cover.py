"""Answers about sets of alternatives as rows: the cover relations of each kind, and nothing that follows from them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from predilect.data.read.sets import best_worst_levels, chosen_levels, cover, ranked_levels, rated_levels

NAN = float("nan")


def covered(levels, task=None):
    task = np.zeros(len(levels), dtype=int) if task is None else np.asarray(task)
    over, under = cover(task, np.asarray(levels))
    return sorted(zip(over.tolist(), under.tolist(), strict=True))


def flags(*places, n):
    return np.isin(np.arange(n), places)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (chosen_levels(flags(1, n=3)), [(1, 0), (1, 2)]),
        (best_worst_levels(flags(0, n=4), flags(2, n=4)), [(0, 1), (0, 3), (1, 2), (3, 2)]),
        (best_worst_levels(flags(1, n=2), flags(0, n=2)), [(1, 0)]),
        (ranked_levels(np.array([2.0, 1.0, 3.0])), [(0, 2), (1, 0)]),
        (ranked_levels(np.array([NAN, 1.0, NAN, 2.0])), [(1, 3), (3, 0), (3, 2)]),
        (rated_levels(np.array([5.0, 3.0, 5.0, 1.0])), [(0, 1), (1, 3), (2, 1)]),
        (chosen_levels(flags(0, 1, n=4)), [(0, 2), (0, 3), (1, 2), (1, 3)]),
    ],
    ids=["best", "best and worst", "best and worst of two", "order", "first two of four", "ratings", "approval"],
)
def test_a_kind_gives_the_rows_of_its_cover_relations(levels, expected):
    assert covered(levels) == expected


def test_levels_with_gaps_are_next_to_each_other_and_equal_ones_say_nothing():
    assert covered([0, 7, 7]) == [(0, 1), (0, 2)]
    assert covered([4, 4, 4]) == []
    assert covered([]) == []


def test_rows_are_the_transitive_reduction_of_the_order_that_levels_mean():
    rng = np.random.default_rng(0)
    task = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 7, 40)))
    level = rng.integers(0, 4, len(task))
    expected = []
    for i, j in itertools.permutations(range(len(task)), 2):
        between = (task == task[i]) & (level > level[i]) & (level < level[j])
        if task[i] == task[j] and level[i] < level[j] and not between.any():
            expected.append((i, j))
    assert covered(level, task) == sorted(expected)
