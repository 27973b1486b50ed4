"""Answers about trade-offs, sorted by person and by trade-off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from predilect._base.types import FloatArray, IntArray
from predilect.data.content import hashed, summed

_PEOPLE_AT_ONCE = 8192


@dataclass(frozen=True, slots=True, eq=False)
class ByPoint:
    """Rows of answers (n,) sorted by trade-off, then person: sums over the answers about a trade-off are contiguous.

    Of more than 8 192 people in blocks of so many, whose weights stay in the cache.
    """

    order: IntArray  # row of the answers
    user: IntArray
    point: IntArray
    outcome: npt.NDArray[np.int8]
    weight: FloatArray

    def rows(self, values: FloatArray) -> FloatArray:
        """Values (n,) put back into the order of the rows."""
        out = np.empty_like(values)
        out[self.order] = values
        return out


@dataclass(frozen=True, eq=False)
class TradeOffAnswers:
    """Acceptance of trade-offs; columns (n,) sorted by person, trade-off and answer, equal rows merged."""

    user: IntArray
    point: IntArray
    outcome: npt.NDArray[np.int8]  # +1 accepted, 0 neither, -1 refused
    weight: FloatArray  # identical answers that a row stands for
    n_users: int
    n_points: int

    @classmethod
    def of(
        cls,
        user: npt.ArrayLike,
        point: npt.ArrayLike,
        outcome: npt.ArrayLike,
        weight: npt.ArrayLike | None = None,
        *,
        n_users: int,
        n_points: int,
    ) -> TradeOffAnswers:
        """Sort and merge columns (n,) of any order, codes from 0 up and weights > 0."""
        u, p = np.asarray(user, dtype=np.int64), np.asarray(point, dtype=np.int64)
        y = np.asarray(outcome, dtype=np.int8)
        w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        key = (u * max(n_points, 1) + p) * 3 + (y + 1)
        # Equal rows are added in the order of their weights, so that the sum has the same bits for any order of rows.
        order = np.lexsort((w, key))
        key = key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        total = np.add.reduceat(w[order], first) if len(first) else w
        rows = order[first]
        return cls(u[rows], p[rows], y[rows], total, n_users, n_points)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.user)

    @cached_property
    def per_person(self) -> FloatArray:
        """How many answers each of the people gave, (n_users,)."""
        return np.asarray(np.bincount(self.user, self.weight, self.n_users), dtype=np.float64)

    @cached_property
    def by_point(self) -> ByPoint:
        """The rows in the order of trade-offs."""
        key = self.user // _PEOPLE_AT_ONCE * max(self.n_points, 1) + self.point
        order = np.argsort(key, kind="stable")
        return ByPoint(order, self.user[order], self.point[order], self.outcome[order], self.weight[order])

    @cached_property
    def kinds(self) -> tuple[IntArray, IntArray]:
        """People with equal answers are of one kind: one person of each, (n_kinds,), and each person's, (n_users,).

        Their order is that of their answers, whatever people are called.
        """
        weight = np.ascontiguousarray(self.weight).view(np.uint64)
        row = (self.point.astype(np.uint64) * np.uint64(3) + (self.outcome + 1).astype(np.uint64)) ^ weight
        _, first, kind = np.unique(
            summed(hashed(row), self.user, self.n_users), return_index=True, return_inverse=True
        )  # fmt: skip
        return first, kind

    def alike(self, gamma: FloatArray) -> IntArray:
        """For each person the one of their kind, (n_users,), if all of a kind have equal weights ``gamma``
        (n_users, n_c); else the person.
        """
        first, kind = self.kinds
        one = first[kind]
        if len(first) == self.n_users or np.array_equal(gamma, gamma[one]):
            return one
        return np.arange(self.n_users)
