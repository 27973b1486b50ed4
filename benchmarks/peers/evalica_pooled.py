"""Bradley-Terry of everybody's answers together, by evalica; ties are half wins. It has no regularisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import evalica
import numpy as np
import pandas as pd

from benchmarks.peers.scorers import Pooled
from benchmarks.peers.tuning import Setting
from benchmarks.task import Task
from predilect.data import Comparisons
from predilect.errors import DataError

__all__ = ["EvalicaPooled", "method"]

# evalica holds dense matrices of items.
MOST_ITEMS = 9000
# Where an item never won, its strength is 0 and has no logarithm.
LEAST_SCORE = 1e-12


@dataclass(frozen=True)
class EvalicaPooled:
    """How evalica is fitted: nothing of it is tuned but the scale of the log-strengths, by the link."""

    axes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    start: Setting = field(default_factory=dict)
    normal: bool = False
    most_rows: int = 10**9
    n_folds: int = 5

    def fit(self, rows: Comparisons, setting: Setting, seed: int) -> Pooled:
        """Log-strengths; on sparse graphs evalica gives every item the same one without saying so."""
        rows = rows.pooled()
        winners = {1: evalica.Winner.X, 0: evalica.Winner.Draw, -1: evalica.Winner.Y}
        result = evalica.bradley_terry(
            rows.left.tolist(),
            rows.right.tolist(),
            [winners[y] for y in rows.outcome.tolist()],
            index=pd.Index(range(rows.n_items)),
            weights=rows.weight.tolist(),
        )
        # evalica sorts by score.
        score = np.nan_to_num(result.scores.reindex(range(rows.n_items)).to_numpy(dtype=float))
        found = {
            "iterations": int(result.iterations),
            "converged": bool(result.iterations < result.limit),
            "all_scores_equal": bool(np.ptp(score) <= 1e-9 * np.abs(score).max()),
        }
        return Pooled(np.log(np.maximum(score, LEAST_SCORE)), found)


def method(task: Task) -> EvalicaPooled:
    """The same for every task.

    Raises
    ------
    DataError
        If there are too many items for dense matrices.
    """
    if task.train.n_items > MOST_ITEMS:
        raise DataError(
            f"{task.name} has {task.train.n_items} items, and evalica holds items x items matrices; the benchmark asks "
            f"it for at most {MOST_ITEMS}"
        )
    return EvalicaPooled()
