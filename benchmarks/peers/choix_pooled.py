"""Bradley-Terry of everybody's answers together, by choix: I-LSR with a regularisation that is tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import choix

from benchmarks.peers.scorers import Pooled, win_counts
from benchmarks.peers.tuning import Setting
from benchmarks.task import Task
from predilect.data import Comparisons
from predilect.errors import DataError

__all__ = ["ChoixPooled", "method"]

# A dense matrix of items, factorised in every iteration.
MOST_ITEMS = 3000


@dataclass(frozen=True)
class ChoixPooled:
    """How choix is fitted: ``alpha`` is its regularisation, in transition rates; a tie is half a win each."""

    axes: Mapping[str, Sequence[float]] = field(
        default_factory=lambda: {"alpha": (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0)}
    )
    start: Setting = field(default_factory=lambda: {"alpha": 0.01})
    normal: bool = False
    most_rows: int = 10**9
    n_folds: int = 5

    def fit(self, rows: Comparisons, setting: Setting, seed: int) -> Pooled:
        """Iterate to the fixed point, or keep a single step of LSR where choix says that it was not reached."""
        wins = win_counts(rows)
        try:
            values = choix.ilsr_pairwise_dense(wins, alpha=setting["alpha"])
        except RuntimeError:
            return Pooled(choix.lsr_pairwise_dense(wins, alpha=setting["alpha"]), {"converged": False})
        return Pooled(values, {"converged": True})


def method(task: Task) -> ChoixPooled:
    """The same for every task.

    Raises
    ------
    DataError
        If there are too many items for a dense matrix.
    """
    if task.train.n_items > MOST_ITEMS:
        raise DataError(
            f"{task.name} has {task.train.n_items} items, and choix factorises an items x items matrix in each "
            f"iteration; the benchmark asks it for at most {MOST_ITEMS}"
        )
    return ChoixPooled()
