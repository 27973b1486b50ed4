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
from predilect.decisions.scales import Scale, scale_of
from predilect.errors import DataError
from predilect.evaluation.verdict import drift_in_short
from predilect.inference.gaussian.posterior import GaussianPosterior, Utilities
from predilect.inference.likelihoods.special import Z_95
from predilect.models.population.drift import Drift, name_times

if TYPE_CHECKING:
    from predilect.show.charts.chart import Chart

_LEADERS = 8  # items of a picture that nobody asked for


class OverTime:
    """Base of the population model: its boards at other times than the last."""

    drift_: Annotated[Drift | None, PART] = None
    _of_drift: dict[str, Any] | None = None
    report_: dict[str, Any]

    def rank(
        self, user: Any = None, *, at: Any = None, scale: str | Scale = "probit", base: float | None = None,
        anchor: Any = None,
    ) -> Any:  # fmt: skip
        """The board of the crowd, or of one person, best first.

        Parameters
        ----------
        user : id, optional
            A person; by default the consensus, in which every person has an equal voice (pooled: every answer). Where
            people are found hardly to differ (:meth:`describe` says so) a person's board is nearly the crowd's, with
            intervals that do not allow for people who differ more.
        at : date, timestamp, number or text, optional
            The time of the board, of ratings over time; by default that of the last answers. Between answers it is
            interpolated; beyond them ratings return to each item's mean.
        scale : {"probit", "logit", "elo", "0-100", "share"}, default "probit"
            Of the scores: noise of one answer, log-odds, Elo points, from the last item to the first, Bradley-Terry
            shares in per cent; defined in docs/reference/outputs.md. "elo:1000" and "elo:1000:ITEM" say base and anchor
            too.
        base : float, optional
            Score of the mean of the items, or of the anchor; by default 0.
        anchor : item, optional
            The item that has the score ``base``; intervals are of the distance to it then.

        Returns
        -------
        board : data frame of the caller's kind
            Columns item, mean, sd, lower, upper (score with its 95 % interval; by default the utility centred over the
            items, in units of the noise of one answer), rank, rank_low, rank_high (95 % interval of the rank), p_best,
            tier, tied_with_leader (the first item is not better with more than 95 % probability), n (answers, of all
            times).

        Raises
        ------
        DataError
            If the user or the anchor is not known, the scale is none or has neither base nor anchor, or ``at`` is no
            time, or one of ratings that do not move.
        """
        if at is None:
            return super().rank(user, scale=scale, base=base, anchor=anchor)  # type: ignore[misc]
        now: Any = self._now()  # type: ignore[attr-defined]
        unit = scale_of(scale, now._likelihood.name, base, anchor)
        found = _utilities(now, _times(now, at))[0]
        return now._frame(unit.of_board(now._board(found), found, now.items_), now._n_answers_by_item(user))

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
        found = model.report_.get("drift")
        why = "the fit was given no times of the answers" if found is None else drift_in_short(found)
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
