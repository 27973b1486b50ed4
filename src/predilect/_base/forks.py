"""Processes that were forked: the threads of polars stay behind, and whatever needs them would wait for ever."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from predilect.errors import PredilectError

_THREADS = Path("/proc/self/task")
_before: list[bool] = []  # of a fork that is under way: whether there are such threads
_lost: list[bool] = []  # of each fork that led to this process: whether there were


def refuse_without_threads() -> None:
    """PredilectError in a process that was forked off one in which polars had begun its threads."""
    if any(_lost):
        raise PredilectError(
            "this process was forked off one that had read data, and the threads that do so stay behind: it would wait "
            "for ever. Start processes by multiprocessing.get_context('forkserver') or 'spawn', or by joblib's loky, "
            "let a web server not preload, or fork before anything is read, fitted or loaded"
        )


def _threads_run() -> bool:
    """Whether polars has begun its threads, as it does with the first work that it shares out; True if unknown."""
    if not _THREADS.is_dir():
        return True
    name = re.compile(re.escape(os.environ.get("POLARS_THREAD_NAME", "polars")) + r"-\d+")
    for thread in _THREADS.iterdir():
        with suppress(OSError):  # it has ended meanwhile
            if name.fullmatch((thread / "comm").read_text().strip()):
                return True
    return False


def _in_child() -> None:
    _lost.append(any(_before))
    _before.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _before.append(_threads_run()), after_in_parent=_before.clear, after_in_child=_in_child
    )
