"""``predilect.Population`` as the runner wants it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

import predilect
from benchmarks.task import Task
from predilect.data import Comparisons

__all__ = ["PredilectModel"]

FloatArray = npt.NDArray[np.float64]


class PredilectModel:
    """``predilect.Population``, personal or pooled."""

    def __init__(self, task: Task, **options: Any) -> None:
        self.model = predilect.Population(n_jobs=1, **options).fit(task.train, items=task.items, users=task.users)

    def log_proba(self, test: Comparisons) -> FloatArray:
        """See :class:`benchmarks.models.Fitted`."""
        return self.model.predict_log_proba(test)

    def scores(self, entries: pl.DataFrame) -> FloatArray:
        """Margins over one item, the same for everybody."""
        reference = self.model.items_.ids[0]
        other = (entries["item"] != reference).to_numpy()
        pairs = entries.filter(pl.Series(other)).select("user", left="item", right=pl.lit(reference))
        scores = np.zeros(len(entries))
        scores[other] = self.model.predict_margin(pairs)[0]
        return scores

    def report(self) -> dict[str, Any]:
        """Hyper-parameters, how they were searched, and convergence; without seconds."""
        fit = {key: value for key, value in self.model.report_["fit"].items() if key != "seconds"}
        return {
            "hyperparameters": self.model.hyperparameters_.to_dict(),
            "tie_threshold": self.model.tie_threshold_,
            "log_evidence": self.model.log_evidence_,
            "fit": fit,
            "prior": self.model.report_["prior"],
        }
