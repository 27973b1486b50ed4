"""Answers of many people on pairs of items, in one canonical order and without repetitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect._types import FloatArray, IntArray
from predilect.errors import DataError


@dataclass(frozen=True, slots=True)
class FactorAnswers:
    """Rows sorted by person, pair and outcome; the item with the smaller code is on the left."""

    user_ptr: IntArray  # (n_users + 1,): rows of each person
    user: IntArray  # (n_rows,), as the next three
    pair: IntArray
    outcome: npt.NDArray[np.int8]
    weight: FloatArray
    left: IntArray  # (n_pairs,): the distinct pairs
    right: IntArray

    @classmethod
    def of(
        cls, user: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike, outcome: npt.ArrayLike,
        weight: npt.ArrayLike | None, n_users: int,
    ) -> FactorAnswers:  # fmt: skip
        """Answers from columns in any order and orientation; equal answers of one person are added up.

        DataError if there is no answer, an item is compared with itself, a code is out of range, an outcome is none of
        the three or a weight is not positive and finite.
        """
        u, a, b = (np.asarray(x, dtype=np.int64).ravel() for x in (user, left, right))
        y = np.asarray(outcome).ravel()
        w = np.ones(len(u)) if weight is None else np.asarray(weight, dtype=np.float64).ravel()
        _check(u, a, b, y, w, n_users)
        swap = a > b
        low, high = np.minimum(a, b), np.maximum(a, b)
        y = np.where(swap, -y, y).astype(np.int8)
        width = int(high.max()) + 1
        codes, pair = np.unique(low * width + high, return_inverse=True)
        key = (u * len(codes) + pair) * 3 + (1 - y)
        # Sums of weights must not depend on the order of the rows.
        order = np.lexsort((w, key))
        rows, first = np.unique(key[order], return_index=True)
        total = np.add.reduceat(w[order], first)
        row_user = rows // (3 * len(codes))
        return cls(
            np.searchsorted(row_user, np.arange(n_users + 1)).astype(np.int64), row_user, (rows // 3) % len(codes),
            (1 - rows % 3).astype(np.int8), total, codes // width, codes % width,
        )  # fmt: skip

    @property
    def n_users(self) -> int:
        """Number of people, those without answers too."""
        return len(self.user_ptr) - 1

    @property
    def n_answers(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    @property
    def has_ties(self) -> bool:
        """Whether an outcome is 0."""
        return bool((self.outcome == 0).any())

    def take(self, people: IntArray) -> FactorAnswers:
        """Answers of some people, in the order given, with the same pairs."""
        counts = np.diff(self.user_ptr)[people]
        ptr = np.concatenate([[0], np.cumsum(counts)])
        rows = np.repeat(self.user_ptr[people] - ptr[:-1], counts) + np.arange(ptr[-1])
        return FactorAnswers(
            ptr, np.repeat(np.arange(len(people)), counts), self.pair[rows], self.outcome[rows], self.weight[rows],
            self.left, self.right,
        )  # fmt: skip


def _check(u: IntArray, a: IntArray, b: IntArray, y: npt.NDArray[np.generic], w: FloatArray, n_users: int) -> None:
    if not len(u):
        raise DataError("there are no answers to fit.")
    if not len(u) == len(a) == len(b) == len(y) == len(w):
        raise DataError(f"columns differ in length: {len(u)}, {len(a)}, {len(b)}, {len(y)}, {len(w)}.")
    if u.min() < 0 or u.max() >= n_users or min(int(a.min()), int(b.min())) < 0:
        raise DataError(f"codes of people must be 0 to {n_users - 1}, those of items not negative.")
    if (a == b).any():
        raise DataError(f"{np.count_nonzero(a == b)} answers compare an item with itself; leave them out.")
    if not np.isin(y, (-1, 0, 1)).all():
        raise DataError("outcomes must be +1 (left), 0 (tie) or -1 (right).")
    if not (np.isfinite(w).all() and (w > 0.0).all()):
        raise DataError("weights must be positive finite numbers.")
