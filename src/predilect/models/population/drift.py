"""Ratings over time: whether items move, how far and how fast, and the boards of a model in which they do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from predilect._base.stored import PLAIN, codes, numbers, optional, within
from predilect._base.text import either
from predilect._base.types import FloatArray, IntArray, is_number
from predilect.data import Comparisons
from predilect.data.read.times import DATES, time_in_words
from predilect.errors import DataError, DataWarning
from predilect.inference.latent.pooled import (
    PooledPrior,
    laplacian,
)
from predilect.models.population.pooled import Believed

if TYPE_CHECKING:
    from predilect.inference.latent.drift import Drifting, Moving

MOST_ITEMS = 999  # every time has a dense matrix of them
_FAR = 0.25  # of the memory, beyond which a board is extrapolated
_MOST_SHOWN = 60  # times of a history that nobody asked for
_WHOLE_DAYS = 1.0  # apart, from which on they are whole days


@dataclass(frozen=True)
class Drift:
    """Items that move: the process, and the states at the times of the answers."""

    variance: Annotated[float, within(0.0)]  # s_d
    length: Annotated[float, within(0.0)]  # ℓ, in days where times are dates
    clock: Annotated[str, PLAIN]
    now: Annotated[float, PLAIN]  # the time of the last answer
    times: Annotated[FloatArray, numbers("D")]
    moved: Annotated[FloatArray, numbers("D I")]  # g at the mode
    level: Annotated[FloatArray, numbers("I")]  # m at the mode
    # Information of the answers at each time: a weight for each pair of items that met then
    at: Annotated[IntArray, codes("Q", "D", "int64")]
    left: Annotated[IntArray, codes("Q", "I", "int64")]
    right: Annotated[IntArray, codes("Q", "I", "int64")]
    weight: Annotated[FloatArray, numbers("Q")]
    crossing: Annotated[FloatArray | None, optional(numbers("D I A"))]  # with effects of covariates
    inner: Annotated[FloatArray | None, optional(numbers("A A"))]  # of these
    believed: Believed

    @classmethod
    def of(
        cls, found: Drifting, moving: Moving, times: FloatArray, now: float, clock: str, believed: Believed
    ) -> Drift:
        """What is kept of a fit."""
        n = found.state.g.shape[1]
        upper = np.triu_indices(n, 1)
        flat = np.array([one[:n, :n][upper] for one in found.about])
        at, pair = np.nonzero(flat)
        crossing = inner = None
        if len(found.state.rest) > n:
            crossing = np.array([one[:n, n:] for one in found.about])
            inner = np.sum([one[n:, n:] for one in found.about], axis=0)
        return cls(
            moving.variance, moving.length, clock, now, times, found.state.g, found.state.rest[:n], at,
            upper[0][pair].astype(np.int64), upper[1][pair].astype(np.int64), -flat[at, pair], crossing, inner,
            believed,
        )  # fmt: skip

    def checked(self) -> None:
        """ValueError unless times ascend and the process is one."""
        ascending = len(self.times) and (np.diff(self.times) > 0.0).all() and self.times[-1] <= self.now < math.inf
        if self.clock not in (DATES, "numbers") or not ascending:
            raise ValueError("times of a clock that is not known, or that do not ascend")
        if not (self.variance > 0.0 and self.length > 0.0):
            raise ValueError("items that move without a variance, or a memory")
        if (np.diff(self.at) < 0).any() or (self.left >= self.right).any():
            raise ValueError("information that is not in order")

    @property
    def share(self) -> float:
        """Share of the variance between items that moves."""
        return self.variance / (self.variance + self.believed.hyperparameters.consensus_variance)

    def _about(self) -> list[FloatArray]:
        n, q = len(self.level), 0 if self.inner is None else len(self.inner)
        found = []
        for j, (start, stop) in enumerate(zip(*self._ends(), strict=True)):
            one = np.zeros((n + q, n + q))
            some = slice(start, stop)
            one[:n, :n] = laplacian(n, self.left[some], self.right[some], self.weight[some])
            if self.crossing is not None and self.inner is not None:
                one[:n, n:], one[n:, :n] = self.crossing[j], self.crossing[j].T
                if j == 0:
                    one[n:, n:] = self.inner
            found.append(one)
        return found

    def _ends(self) -> tuple[IntArray, IntArray]:
        ends = np.searchsorted(self.at, np.arange(len(self.times) + 1))
        return ends[:-1], ends[1:]

    def laws(self, at: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Mean (n_items,) and covariance of the utilities at ascending times, from the last to the first.

        O((T + n_at) n_items³) for T times of answers.
        """
        from predilect.inference.latent.drift import Chain, Moving

        at = self._told_apart(at)
        times = np.union1d(self.times, at)
        own = np.searchsorted(times, self.times)
        about: list[FloatArray | None] = [None] * len(times)
        for place, one in zip(own, self._about(), strict=True):
            about[place] = one
        moving = Moving(self.variance, self.length)
        q = 0 if self.inner is None else len(self.inner)
        h, space = self.believed.hyperparameters, self.believed.space
        K = space.covariance(h.consensus_weight, h.length_scale)
        chain = Chain.of(times, moving, PooledPrior.of(K, h.consensus_variance, None, q), about)
        n = len(self.level)
        wanted = np.bincount(np.searchsorted(times, at), minlength=len(times))
        for place, C in zip(reversed(range(len(times))), chain.utilities(), strict=True):
            for _ in range(wanted[place]):
                yield self.level + self._moved_at(times[place]), C[:n, :n]

    def _told_apart(self, at: FloatArray) -> FloatArray:
        """The times, those that are next to each other, or to one of the answers, as one."""
        from predilect.inference.latent.drift import SAME_TIME

        first, apart = self.times[0], SAME_TIME * max(self.now - self.times[0], self.length)
        at = first + apart * np.round((at - first) / apart)
        near = self.times[np.abs(self.times[:, None] - at).argmin(axis=0)]
        return np.where(np.abs(near - at) <= apart, near, at)

    def _moved_at(self, time: float) -> FloatArray:
        """The mode of what moved at any time: between two times what the process makes of both, (n_items,)."""
        right = int(np.searchsorted(self.times, time))
        if right < len(self.times) and self.times[right] == time:
            return self.moved[right]
        near = slice(max(right - 1, 0), right + 1)
        known, inside = self.times[near], self.times[near] - time
        k = np.exp(-np.abs(inside) / self.length)
        K = np.exp(-np.abs(known[:, None] - known) / self.length)
        return np.asarray(np.linalg.solve(K, k) @ self.moved[near])

    def warn_beyond(self, at: FloatArray) -> None:
        """DataWarning for times further from the answers than a quarter of the memory."""
        beyond = np.maximum(self.times[0] - at, at - self.now)
        if (beyond > _FAR * self.length).any():
            worst = float(at[int(np.argmax(beyond))])
            warnings.warn(
                f"{time_in_words(worst, self.clock)} is further from all answers than a quarter of the memory: ratings "
                "there are extrapolated, towards each item's mean, with wider intervals", DataWarning, stacklevel=4,
            )  # fmt: skip

    def usual_times(self) -> FloatArray:
        """Times of a history where none are asked for: those of the answers, or 60 evenly over the span."""
        if len(self.times) <= _MOST_SHOWN:
            return np.union1d(self.times, [self.now])
        found = np.linspace(self.times[0], self.now, _MOST_SHOWN)
        if self.clock == DATES and found[1] - found[0] > _WHOLE_DAYS:
            found[1:-1] = np.round(found[1:-1])
        return found

    def describe(self, report: dict[str, Any]) -> list[str]:
        """What was learned of how items move."""
        unit = " days" if self.clock == DATES else ""
        lines = [
            f"Ratings move: half of what an item has to itself at a time is gone after {self.length * math.log(2):.3g}"
            f"{unit} (memory {self.length:.3g}{unit}), and {100 * self.share:.0f} % of the variance between items "
            f"moves. The board is that of {time_in_words(self.now, self.clock)}, the last answer."
        ]
        if report["n_times"] > len(self.times):
            lines.append(
                f"Answers at {report['n_times']} times were taken together in {len(self.times)} intervals of time."
            )
        if report["n_items_of_search"] < len(self.level):
            lines.append(f"How items move was learned from the {report['n_items_of_search']} with the most answers.")
        return lines


def name_times() -> str:
    """How to name the column of times."""
    return either("-c time=COLUMN", 'columns={"time": "COLUMN"}')


def check_drift(drift: Any) -> None:
    """DataError unless ``drift`` is "auto", True, False, or a variance and a length of memory."""
    if drift == "auto" or isinstance(drift, bool):
        return
    pair = drift if isinstance(drift, tuple | list) and len(drift) == 2 else ()
    if not pair or not all(is_number(one, 0.0, 1e15) and one > 0.0 for one in pair):
        raise DataError(
            'drift is "auto", true, false, or two positive numbers: the variance of what moves, and the memory in the '
            f"unit of time (days for dates); got {drift!r:.100}"
        )


def refuse_drift(answers: Comparisons, personal: bool, basis: str) -> None:
    """DataError where times cannot be used: for rankings of people, by functions of features, of very many items."""
    leave = either("leave -c time=... out", "say drift=False")
    if personal:
        raise DataError(
            "ratings over time are the crowd's alone: nobody answers often enough for a ranking of their own at each "
            f"date. Ask for one ranking for all ({either('--personal no', 'personal=False')}), or {leave}"
        )
    if basis not in ("auto", "items"):
        raise DataError(f'ratings over time are of the items themselves: basis="items", or {leave}')
    if answers.n_items > MOST_ITEMS:
        raise DataError(
            f"ratings over time are for at most {MOST_ITEMS} items, and there are {answers.n_items}: each date has a "
            f"matrix of them all. Keep the items that matter, or {leave}"
        )
