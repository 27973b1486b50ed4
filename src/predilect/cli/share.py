"""How much of what a command does is done, as a share that never goes back: on a terminal, or a line now and then."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from time import monotonic

END = 0.97  # what is shown at most before the end
_STEP = 0.06  # of what is left until the next mark: a step of a stage of which nobody knows how many there will be
_SECONDS = 60.0  # in which two thirds of what is left pass where nothing is told


class Share:
    """Callback of progress that holds the stage, and an estimate of the share that is done.

    Parts that are told of divide what is left when they begin. Before them, and within each, the share approaches the
    next mark with every step, and with time, and does not reach it: it never goes back.
    """

    def __init__(self, doing: str, first: float = END) -> None:
        """``first``: the share at which parts begin, if any come."""
        self.stage, self.began = doing, monotonic()
        self._doing, self._done, self._mark, self._at = doing, 0.0, first, self.began
        self._parts, self._base = 0, 0.0

    def __call__(self, stage: str, done: int) -> None:
        if stage:
            self.stage = f"{self._doing}: {stage}"
        self._move(self.now)
        self._done += _STEP * (self._mark - self._done)

    def parts(self, done: int, total: int) -> None:
        """Tell that ``done`` of ``total`` parts of about the same size are."""
        now = self.now
        if total != self._parts:
            self._parts, self._base = total, now
        left = END - self._base
        self._move(max(now, self._base + left * done / total))
        self._mark = max(self._done, self._base + left * min(done + 1, total) / total)

    @property
    def now(self) -> float:
        """The share that is done, from 0 to below 1."""
        return self._mark - (self._mark - self._done) * math.exp((self._at - monotonic()) / _SECONDS)

    @property
    def seconds(self) -> float:
        """Time since the beginning."""
        return monotonic() - self.began

    @property
    def line(self) -> str:
        """All of it in a line."""
        return f"{self.stage}: about {100.0 * self.now:.0f} %, {self.seconds:.0f} s"

    def _move(self, done: float) -> None:
        self._done, self._at = done, monotonic()


class Ticker:
    """Calls ``show`` every so many seconds, from a thread of its own, until the block ends."""

    def __init__(self, show: Callable[[], object], seconds: float) -> None:
        self._show, self._seconds, self._ended = show, seconds, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            self._show()
