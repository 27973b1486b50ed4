"""One order of the answers, whatever the order in which they came, however many people and items there are."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from predilect.data.canonical import canonical_rows

# Codes at which user x item² x 3 does not fit into 64 bits, and codes at which it does.
MANY, FEW = (2_000_000_000, 100_000), (5, 7)


@pytest.mark.parametrize("sizes", [FEW, MANY])
def test_equal_answers_add_up_to_the_same_bits_in_any_order(sizes):
    user, item = (np.int32(size - 1) for size in sizes)
    weights = (0.1, 0.2, 0.3, 1e8)
    assert len({sum(order) for order in permutations(weights)}) > 1  # of which the order would make different sums
    totals = set()
    for order in permutations(weights):
        flip = np.arange(4) % 2 == 0
        left, right = np.where(flip, item, 0).astype(np.int32), np.where(flip, 0, item).astype(np.int32)
        outcome = np.where(flip, -1, 1).astype(np.int8)
        rows = canonical_rows(np.full(4, user), left, right, outcome, np.array(order))
        assert [column.tolist() for column in rows[:4]] == [[user], [0], [item], [1]]
        totals.add(rows[4].item())
    assert len(totals) == 1


@pytest.mark.parametrize("sizes", [FEW, MANY])
def test_answers_are_sorted_by_user_pair_and_outcome(sizes):
    rng = np.random.default_rng(0)
    n_users, n_items = sizes
    # A few codes among the largest and the smallest, so that answers meet.
    user = rng.choice([0, 1, n_users // 2, n_users - 2, n_users - 1], 400).astype(np.int32)
    low = rng.choice([0, 1, n_items - 3], 400).astype(np.int32)
    high = rng.choice([n_items - 2, n_items - 1], 400).astype(np.int32)
    outcome = rng.integers(-1, 2, 400).astype(np.int8)
    weight = rng.integers(1, 4, 400).astype(float)
    expected: dict[tuple[int, ...], float] = {}
    for *key, amount in zip(user.tolist(), low.tolist(), high.tolist(), outcome.tolist(), weight, strict=True):
        expected[tuple(key)] = expected.get(tuple(key), 0.0) + amount
    found = canonical_rows(user, low, high, outcome, weight)
    rows = list(zip(*(column.tolist() for column in found), strict=True))
    assert rows == [(*key, amount) for key, amount in sorted(expected.items())]
