"""``predilect.Population`` as the runner wants it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

import predilect
from benchmarks.task import Task
from predilect.data import Comparisons
from predilect.likelihoods.probit import tilted

__all__ = ["PredilectModel"]

FloatArray = npt.NDArray[np.float64]


class PredilectModel:
    """``predilect.Population``, personal or pooled."""

    def __init__(self, task: Task, **options: Any) -> None:
        self.model = predilect.Population(n_jobs=1, **options).fit(task.train, items=task.items)

    def log_proba(self, test: Comparisons) -> FloatArray:
        """See :class:`benchmarks.models.Fitted`."""
        mean, var = self.model.predict_margin(test)
        delta = self.model.tie_threshold_
        strict = [tilted(np.full(len(mean), y), mean, var, delta)[0] for y in (1, -1)]
        tie = tilted(np.zeros(len(mean)), mean, var, delta)[0] if delta > 0 else np.full(len(mean), -np.inf)
        return np.column_stack([strict[0], tie, strict[1]])

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
