"""Deterministic splits of answers, people and items into training and test, the same for any order of the rows read."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predilect.data import Comparisons
from predilect.data.splits import Seed, groups_of_people, shuffled_place
from predilect.errors import DataError

Masks = tuple[NDArray[np.bool_], NDArray[np.bool_]]


def split_answers(
    comparisons: Comparisons,
    test_share: float = 0.2,
    *,
    n_test_per_person: int | None = None,
    random_state: Seed = 0,
) -> Masks:
    """Train and test masks, shape (n_rows,), with some tasks of every person held out.

    All answers of one person in one task, or to one pair where tasks are not known, go to the same side. Every person
    keeps at least one task for training; people with one task are never tested. Where tasks are known, two of them may
    hold the same pair.

    Parameters
    ----------
    comparisons : Comparisons
    test_share : float
        Expected share of each person's tasks, in (0, 1); a fraction of a task is rounded at random.
    n_test_per_person : int, optional
        That many tasks of each person instead, or all but one where there are fewer.
    random_state : int, SeedSequence or Generator

    Raises
    ------
    DataError
        If the share is not in (0, 1) or the number is negative.
    """
    if n_test_per_person is not None and n_test_per_person < 0:
        raise DataError(f"n_test_per_person must be at least 0, got {n_test_per_person}.")
    group, person, _ = groups_of_people(comparisons)
    rng = np.random.default_rng(random_state)
    place, n_pairs = shuffled_place(person, comparisons.n_users, rng)
    if n_test_per_person is None:
        n_test = _rounded(n_pairs * _share(test_share), rng)
    else:
        n_test = np.full(len(n_pairs), n_test_per_person, dtype=np.int64)
    n_test = np.minimum(n_test, np.maximum(n_pairs - 1, 0))
    test = (place < n_test[person])[group]
    return ~test, test


def split_groups(groups: ArrayLike, test_share: float = 0.2, *, random_state: Seed = 0) -> Masks:
    """Train and test masks, shape (n_rows,), with whole groups of rows held out, such as tasks.

    ``test_share`` is of the groups; at least one lands on each side. Raises DataError for fewer than two groups.
    """
    labels, code = np.unique(np.asarray(groups), return_inverse=True)
    test = _held_out(len(labels), test_share, random_state, "groups")[code]
    return ~test, test


def split_people(comparisons: Comparisons, test_share: float = 0.2, *, random_state: Seed = 0) -> Masks:
    """Train and test masks with all answers of some people held out; as :func:`split_groups`."""
    test = _held_out(comparisons.n_users, test_share, random_state, "people")[comparisons.user]
    return ~test, test


def split_items(comparisons: Comparisons, test_share: float = 0.2, *, random_state: Seed = 0) -> Masks:
    """Train and test masks with every row of some items held out; as :func:`split_groups`."""
    held_out = _held_out(comparisons.n_items, test_share, random_state, "items")
    test = held_out[comparisons.left] | held_out[comparisons.right]
    return ~test, test


def split_hash(split: ArrayLike, comparisons: Comparisons) -> str:
    """Fingerprint of a split that two programs can compare.

    ``split`` is a test mask, or folds (negative: never tested), of shape (n_rows,). First 16 hexadecimal digits of the
    SHA-256 of the ids, outcomes and folds of the test rows. Equal rows of two tasks in one fold count once, so that the
    tasks themselves make no difference.
    """
    split = np.asarray(split)
    if split.shape != (comparisons.n_rows,):
        raise DataError(f"the split has shape {split.shape}, expected ({comparisons.n_rows},).")
    rows = np.flatnonzero(split if split.dtype == bool else split >= 0)
    if comparisons.task is not None and len(rows):
        parts = [*(getattr(comparisons, name)[rows] for name in ("user", "left", "right", "outcome")), split[rows]]
        order = np.lexsort(parts[::-1])
        again = np.all([part[order][1:] == part[order][:-1] for part in parts], axis=0)
        rows = rows[order[np.append(True, ~again)]]
    columns: list[list[Any]] = [
        comparisons.users.labels(comparisons.user[rows]).tolist(),
        comparisons.items.labels(comparisons.left[rows]).tolist(),
        comparisons.items.labels(comparisons.right[rows]).tolist(),
        comparisons.outcome[rows].tolist(),
        split[rows].astype(int).tolist(),
    ]
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:16]


def _rounded(values: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """Random rounding up or down, so that the expected total is right even for people with few pairs."""
    return np.floor(values + rng.random(len(values))).astype(np.int64)


def _share(test_share: float) -> float:
    if not 0 < test_share < 1:
        raise DataError(f"test_share must lie strictly between 0 and 1, got {test_share}.")
    return test_share


def _held_out(n: int, test_share: float, random_state: Seed, noun: str) -> NDArray[np.bool_]:
    if n < 2:
        raise DataError(f"cannot split {n} {noun}: at least 2 are needed, one for each side.")
    n_test = min(max(round(n * _share(test_share)), 1), n - 1)
    held_out = np.zeros(n, dtype=bool)
    held_out[np.random.default_rng(random_state).permutation(n)[:n_test]] = True
    return held_out
