"""Any estimator of predilect as the runner wants it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.task import Task
from predilect._base.json import plain
from predilect.data import Comparisons
from predilect.models.registry import estimator

__all__ = ["PredilectModel"]

FloatArray = npt.NDArray[np.float64]

# Parts of an estimator's report that say how its numbers came about; the rest is about reading, or holds seconds.
_REPORTED = ("fit", "prior", "features", "inducing")
MOST_LENGTH_SCALES = 40


class PredilectModel:
    """An estimator of predilect, fitted with one thread.

    Parameters
    ----------
    task : Task
    name : str, default "population"
        Of the estimator, as commands have it.
    **options
        Its parameters.
    """

    def __init__(self, task: Task, name: str = "population", **options: Any) -> None:
        model = estimator(name)()
        one_thread = {"n_jobs": 1} if "n_jobs" in model.get_params() else {}
        self.model = model.set_params(**one_thread, **options).fit(task.train, items=task.items, people=task.users)

    def log_proba(self, test: Comparisons) -> FloatArray:
        """See :class:`benchmarks.models.Fitted`."""
        # A frame without a user column asks for the consensus.
        asked = test if test.has_users else test.to_frame().select("left", "right")
        return self.model.predict_log_proba(asked)

    def scores(self, entries: pl.DataFrame) -> FloatArray:
        """Margins over one item, the same for everybody; of the consensus if there is no column ``user``."""
        reference = self.model.items_.ids[0]
        other = (entries["item"] != reference).to_numpy()
        who = ["user"] if "user" in entries.columns else []
        pairs = entries.filter(pl.Series(other)).select(*who, left="item", right=pl.lit(reference))
        scores = np.zeros(len(entries))
        if other.any():
            scores[other] = self.model.predict_margin(pairs)[0]
        return scores

    def report(self) -> dict[str, Any]:
        """Hyper-parameters, how they were searched, and convergence; without seconds."""
        model, found = self.model, {}
        if hasattr(model, "hyperparameters_"):
            settings = model.hyperparameters_
            found["hyperparameters"] = _brief(settings if isinstance(settings, dict) else settings.to_dict())
        for name in ("tie_threshold", "log_evidence"):
            if hasattr(model, f"{name}_"):
                found[name] = getattr(model, f"{name}_")
        if hasattr(model, "component_importances_"):
            found["component_importances"] = [float(f"{x:.6g}") for x in model.component_importances_]
        found |= {name: _timeless(model.report_[name]) for name in _REPORTED if name in model.report_}
        result: dict[str, Any] = plain(found)
        return result


def _brief(settings: dict[str, Any]) -> dict[str, Any]:
    """The same with the range of the length-scales where there are more than anybody reads."""
    scales = [value for name, value in settings.items() if "length_scale" in name]
    if len(scales) <= MOST_LENGTH_SCALES:
        return settings
    kept = {name: value for name, value in settings.items() if "length_scale" not in name}
    low, middle, high = np.quantile(scales, (0.0, 0.5, 1.0)).tolist()
    return kept | {"length_scales": {"columns": len(scales), "smallest": low, "median": middle, "largest": high}}


def _timeless(value: Any) -> Any:
    """The same without entries that hold seconds."""
    if not isinstance(value, dict):
        return value
    return {key: _timeless(part) for key, part in value.items() if "seconds" not in str(key)}
