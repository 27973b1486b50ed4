"""Processes that replace a result again and again, and are killed while they do."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from forked import forking

KINDS, SIGNALS = ("folder", "model"), (signal.SIGKILL, signal.SIGTERM)


class Kills(NamedTuple):
    """What was found after kills: results that were absent or broken, and leftovers after the next run."""

    absent: int
    broken: int
    leftovers: int
    codes: set[int]


def replace_for_ever(kind: str, path: Path, written: Connection) -> None:
    """Replace the result, say so, and go on replacing it."""
    import typer

    from predilect.cli.session import session

    try:
        with session():
            replace(kind, path, "first" * 300)
            written.send("written")
            while True:
                replace(kind, path, f"{time.monotonic_ns()}" * 300)
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


def replace(kind: str, path: Path, stamp: str) -> None:
    """Replace a result by one that says the same in two files."""
    from predilect.models.saving import write_model
    from predilect.show.report.output import OutputFolder

    if kind == "model":
        write_model(path, {"stamp": stamp}, {"stamp": list(stamp)}, overwrite=True)
        return
    with OutputFolder(path, force=True).writing() as place:
        (place / "leaderboard.csv").write_text(stamp)
        (place / "leaderboard.json").write_text(stamp)


def is_whole(kind: str, path: Path) -> bool:
    """Whether both files are there and say the same."""
    import numpy as np

    try:
        if kind == "folder":
            first = (path / "leaderboard.csv").read_text()
            return len(first) >= 300 and first == (path / "leaderboard.json").read_text()
        with np.load(path / "arrays.npz") as arrays:
            return "".join(arrays["stamp"]) == json.loads((path / "model.json").read_text())["stamp"]
    except (OSError, ValueError):
        return False


def kill_again_and_again(kind: str, number: signal.Signals, n: int, path: Path, seed: int = 0) -> Kills:
    """Start a process, kill it at some moment, look, and start the next one; ``n`` times."""
    moments = random.Random(seed)
    absent = broken = leftovers = 0
    codes = set()
    context = forking()  # imports take a hundred times as long as what is killed
    for _ in range(n):
        written, end = context.Pipe(duplex=False)
        process = context.Process(target=replace_for_ever, args=(kind, path, end))
        process.start()
        end.close()
        assert written.recv() == "written"  # EOFError if the process has ended
        # This run has written once: whatever is hidden now, but for the one folder it works in, was left before it.
        leftovers += max(0, len(hidden(path)) - 1)
        time.sleep(moments.uniform(0.0, 0.05))
        assert process.pid is not None
        os.kill(process.pid, number)
        process.join(timeout=60)
        codes.add(process.exitcode)
        absent += not path.exists()
        broken += path.exists() and not is_whole(kind, path)
    replace(kind, path, "last" * 300)
    return Kills(absent, broken, leftovers + len(hidden(path)), codes)


def hidden(path: Path) -> list[str]:
    """Names beside the result."""
    return sorted(entry.name for entry in path.parent.iterdir() if entry != path)
