"""Utilities that do not depend on the person, and answers as the fits want them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.data import Comparisons

__all__ = ["Pooled", "left_share", "win_counts"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Pooled:
    """One utility an item, shape (n_items,), for everybody."""

    values: FloatArray
    found: dict[str, Any] = field(default_factory=dict)

    def utility(self, user: IntArray, item: IntArray) -> FloatArray:
        """See :class:`~benchmarks.peers.tuning.Scorer`."""
        return self.values[item]

    def margin(self, user: IntArray, left: IntArray, right: IntArray) -> FloatArray:
        """Difference of utilities."""
        return self.values[left] - self.values[right]

    def report(self) -> dict[str, Any]:
        """What was found beside the utilities."""
        return self.found


def left_share(rows: Comparisons) -> FloatArray:
    """1 where left won, 0 where right did; a tie is half a win for each. Shape (n_rows,)."""
    return (1.0 + rows.outcome.astype(np.float64)) / 2.0


def win_counts(rows: Comparisons) -> FloatArray:
    """How often i beat j, ties as half wins, shape (n_items, n_items)."""
    wins = np.zeros((rows.n_items, rows.n_items))
    share = left_share(rows)
    np.add.at(wins, (rows.left, rows.right), rows.weight * share)
    np.add.at(wins, (rows.right, rows.left), rows.weight * (1.0 - share))
    return wins
