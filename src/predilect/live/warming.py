"""Compiles what the pages and fits of a poll need before somebody waits for it: in a process of its own.

Loops are compiled once per installation, which takes some 15 seconds of a processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from predilect._base.compile import is_missing

_WORK = "from predilect.live.warming import compile_all; compile_all()"
_POLLS, _ITEMS, _PEOPLE = 3, tuple("123456"), ("ann", "bob", "carl", "dora")


def begin() -> subprocess.Popen[bytes] | None:
    """Start the process that compiles; None if that was done here before, or if nothing can be kept of it."""
    from predilect.inference.likelihoods.probit import tilted_arrays
    from predilect.inference.people.ep import em_pass

    if is_missing(em_pass) or is_missing(tilted_arrays):  # the largest, and the last
        return subprocess.Popen([sys.executable, "-c", _WORK], stdin=subprocess.DEVNULL)
    return None


def compile_all() -> None:
    """Have all compiled that small polls need, by playing some: what is drawn leads not everywhere each time."""
    if hasattr(os, "nice"):
        os.nice(10)  # whoever waits for a page comes first
    for _ in range(_POLLS):
        with TemporaryDirectory(prefix="predilect-") as place:
            _play(Path(place) / "poll.db")


def _play(file: Path) -> None:
    from predilect.live.poll import Poll

    with Poll.create(file, question="?", items=_ITEMS, background=False) as poll:
        for who in _PEOPLE:
            for said in ("left", "tie", "right", "left", "tie"):
                (question,) = poll.ask(who)
                poll.tell(who, question.shown, said)
            poll.mine(who)
            poll.board()
            poll.outlook()
            poll.refit()  # is due once two of them have answered
        # Whether somebody's own information is asked for depends on how fast all this was.
        poll.belief(0).catch_up().posterior_.about_crowd(0, np.array([0]), np.array([1]))
