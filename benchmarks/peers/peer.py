"""A peer on a task: tuned, fitted to all training answers, and asked in the way the runner asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.peers.tuning import Method, tune
from benchmarks.task import Task
from predilect.data import Comparisons, Vocabulary

__all__ = ["Peer"]

FloatArray = npt.NDArray[np.float64]


class Peer:
    """See :class:`benchmarks.models.Fitted`.

    Parameters
    ----------
    task : Task
        Only its training answers and features are looked at.
    method : function
        Gives the :class:`~benchmarks.peers.tuning.Method` of a task.
    **fixed : float
        Settings that are not to be tuned, as in ``ridge@C=1``.
    """

    def __init__(self, task: Task, method: Callable[[Task], Any], **fixed: float) -> None:
        how: Method = method(task)
        unknown = sorted(set(fixed) - set(how.axes))
        if unknown:
            raise ValueError(f"no setting is called {', '.join(unknown)}; there are {', '.join(how.axes) or 'none'}")
        if fixed:
            how = replace(
                how,
                axes=dict(how.axes) | {name: (value,) for name, value in fixed.items()},
                start=dict(how.start) | fixed,
            )
        self.users, self.items = task.train.users, task.train.items
        self.tuned = tune(how, task.train, task.seed)
        self.fitted = how.fit(task.train, self.tuned.setting, task.seed)

    def log_proba(self, test: Comparisons) -> FloatArray:
        """Log-probabilities of left, tie and right."""
        user = self._codes(self.users, test.users.series())[test.user]
        item = self._codes(self.items, test.items.series())
        return self.tuned.link.log_proba(self.fitted.margin(user, item[test.left], item[test.right]))

    def scores(self, entries: pl.DataFrame) -> FloatArray:
        """Utilities."""
        return self.fitted.utility(self._codes(self.users, entries["user"]), self._codes(self.items, entries["item"]))

    def report(self) -> dict[str, Any]:
        """Settings, how they were chosen, the link, and convergence."""
        link = {"scale": self.tuned.link.scale, "threshold": self.tuned.link.threshold}
        return {"setting": dict(self.tuned.setting), "link": link, "tuning": self.tuned.report} | self.fitted.report()

    @staticmethod
    def _codes(vocabulary: Vocabulary, ids: pl.Series) -> npt.NDArray[np.int32]:
        return vocabulary.codes(ids, unknown="minus_one")
