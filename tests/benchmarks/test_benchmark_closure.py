"""Implied answers against a search through each person's answers."""

from __future__ import annotations

import numpy as np
import polars as pl
from benchmarks.task import split_rows


def reaches(edges: set[tuple[int, int]], start: int, goal: int) -> bool:
    seen, stack = {start}, [start]
    while stack:
        here = stack.pop()
        for a, b in edges:
            if a == here and b not in seen:
                seen.add(b)
                stack.append(b)
    return goal in seen


def test_implied_by_hand() -> None:
    # ann: 1 > 2 > 3; bob has no training answers on 1 and 3 together; cas is not in training at all.
    frame = pl.DataFrame(
        {
            "user": ["ann", "ann", "bob", "ann", "ann", "bob", "cas"],
            "left": [1, 2, 1, 1, 1, 1, 1],
            "right": [2, 3, 2, 3, 4, 3, 3],
        }
    )
    task = split_rows("t", 0, frame, np.ones(7), np.arange(7) > 2)
    rows = list(zip(task.test.users.labels(task.test.user), task.test.right + 1, task.implied, strict=True))
    assert rows == [("ann", 3, True), ("ann", 4, False), ("bob", 3, False), ("cas", 3, False)]


def test_implied_against_search() -> None:
    rng = np.random.default_rng(0)
    n = 900
    left = rng.integers(12, size=n)
    frame = pl.DataFrame(
        {"user": rng.integers(60, size=n), "left": left, "right": (left + rng.integers(1, 12, size=n)) % 12}
    )
    task = split_rows("t", 0, frame, rng.choice([-1, 1], n), rng.random(n) < 0.3)
    assert task.implied is not None
    train = task.train
    for p, found in enumerate(task.implied):
        who = task.test.users.ids[task.test.user[p]]
        mine = train.user == train.users.ids.index(who) if who in train.users.ids else np.zeros(train.n_rows, bool)
        edges = {
            (a, b) if y > 0 else (b, a)
            for a, b, y in zip(train.left[mine], train.right[mine], train.outcome[mine], strict=True)
        }
        a, b = task.test.left[p], task.test.right[p]
        assert found == (reaches(edges, a, b) or reaches(edges, b, a))
    assert 0.1 < task.implied.mean() < 0.9


def test_no_marks_where_ties_occur() -> None:
    frame = pl.DataFrame({"user": [1, 1, 1], "left": [1, 2, 1], "right": [2, 3, 3]})
    assert split_rows("t", 0, frame, [1, 0, 1], np.arange(3) > 1).implied is None
