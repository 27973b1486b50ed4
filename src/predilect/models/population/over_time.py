"""What users ask a model of items that move: boards of a date, and histories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from predilect._base.stored import PART
from predilect._base.text import either, quoted
from predilect._base.types import FloatArray
from predilect.data import build_frame
from predilect.data.frames import is_list
from predilect.data.read.times import shown_times, times_of
from predilect.errors import DataError
from predilect.inference.gaussian.posterior import GaussianPosterior, Utilities
from predilect.inference.likelihoods.special import Z_95
from predilect.models.population.drift import Drift, name_times

if TYPE_CHECKING:
    from predilect.show.charts.chart import Chart


class OverTime:
    """Base of the population model: its boards at other times than the last."""

    drift_: Annotated[Drift | None, PART] = None
    _of_drift: dict[str, Any] | None = None
    report_: dict[str, Any]

    def _at(self, at: Any) -> Utilities:
        """See :meth:`~predilect.models.boards.RankingEstimator._at`."""
        return _utilities(self, _times(self, at))[0]

    def history(self, items: Sequence[Any] | None = None, *, at: Any = None) -> Any:
        """The crowd's utilities at several times, where ratings move.

        Parameters
        ----------
        items : list of ids, optional
            By default all items.
        at : sequence of dates, timestamps, numbers or text, optional
            By default the times of the answers, or 60 evenly over their span where these are more.

        Returns
        -------
        history : data frame of the caller's kind
            A row for each item and time: item, time, mean, sd, lower, upper (the utility centred over all items at that
            time, in units of the noise of one answer, with its 95 % interval, which takes answers of all times into
            account, later ones too).

        Raises
        ------
        DataError
            If ratings do not move, an item is not known, or ``at`` holds what is no time.

        Notes
        -----
        O(T n_items³) for T times of answers and of ``at``.
        """
        now: Any = self._now()  # type: ignore[attr-defined]
        drift = _drift_of(now)
        if not (items is None or is_list(items)):
            raise DataError(f"items is a list of ids, not {quoted(items)}")
        codes = np.arange(len(now.items_)) if items is None else now.items_.codes(items).astype(np.int64)
        times = drift.usual_times() if at is None else _times(now, at)
        found = [one.centred_marginals() for one in _utilities(now, times)]
        mean, sd = (np.array([one[k] for one in found])[:, codes].T.ravel() for k in (0, 1))
        sd = np.sqrt(np.maximum(sd, 0.0))
        columns = {
            "item": now.items_.labels(np.repeat(codes, len(times))),
            "time": shown_times(np.tile(times, len(codes)), drift.clock),
            "mean": mean, "sd": sd, "lower": mean - Z_95 * sd, "upper": mean + Z_95 * sd,
        }  # fmt: skip
        return build_frame(columns, now._backend)

    def _describe_drift(self) -> list[str]:
        report = self.report_.get("drift")
        if report is None:
            return []
        from predilect.evaluation.verdict import drift_in_short

        sentence = drift_in_short(report)
        lines = [sentence[0].upper() + sentence[1:]]
        return lines if self.drift_ is None else lines + self.drift_.describe(report)

    def _further_tables(self) -> dict[str, Callable[[], Any]]:
        tables: dict[str, Callable[[], Any]] = super()._further_tables()  # type: ignore[misc]
        return tables if self.drift_ is None else tables | {"history": self.history}

    def _further_charts(self) -> dict[str, Callable[[], Chart]]:
        from predilect.show.charts.pictures import history_chart

        charts: dict[str, Callable[[], Chart]] = super()._further_charts()  # type: ignore[misc]
        return charts if self.drift_ is None else charts | {"history": lambda: history_chart(self)}


def _drift_of(model: Any) -> Drift:
    """What is known of items that move; DataError where they do not."""
    drift: Drift | None = model.drift_
    if drift is None:
        from predilect.evaluation.verdict import drift_in_short

        found = model.report_.get("drift")
        why = "the fit was given no times of the answers" if found is None else drift_in_short(found).rstrip(".")
        raise DataError(
            f"these ratings are the same at all times: {why}. Ratings over time need the column of times "
            f"({name_times()}), one ranking for all "
            f"({either('--personal no', 'personal=False')}), and items that are found to move"
        )
    return drift


def _times(model: Any, at: Any) -> FloatArray:
    """Times that were asked for; DataError for those of another clock, or that are none."""
    drift = _drift_of(model)
    values = pl.Series("at", [at] if isinstance(at, str) or np.ndim(at) == 0 else list(at), strict=False)
    times, clock = times_of(values, "at", np.ones(len(values), dtype=bool))
    if clock != drift.clock:
        raise DataError(f"at holds {clock}, but the times of the answers are {drift.clock}. Give it in these")
    drift.warn_beyond(times)
    return times


def _utilities(model: Any, times: FloatArray) -> list[Utilities]:
    """The crowd's utilities at some times, in any order."""
    drift = _drift_of(model)
    ascending, place = np.unique(times, return_inverse=True)
    laws = [GaussianPosterior(*law).person() for law in drift.laws(ascending)][::-1]
    return [laws[k] for k in place]
