"""Processes that keep answers and are killed while they do; run as a program, it counts 200 moments.

cd tests; python -m live.killed 200 [postgresql://...]
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from live.polls import made, reply
from predilect.live import Poll

_THREADS = 4


class Kills(NamedTuple):
    """What was found after kills: answers acknowledged, lost, and doubled."""

    acknowledged: int
    lost: int
    doubled: int


def answer_for_ever(url: str) -> None:
    """Have some people answer, and print every answer once it is acknowledged."""
    with Poll.open(url, background=False) as poll:
        print("ready", flush=True)

        def take_part(name: str) -> None:
            source = random.Random()
            while True:
                for question in poll.ask(name):
                    told = poll.tell(name, question.shown, reply(question, source), key=f"{name} {question.shown}")
                    os.write(1, f"{told.answer} {question.shown}\n".encode())
                name = f"{name}+"

        threads = [
            threading.Thread(target=take_part, args=(f"{os.getpid()} {k}",), daemon=True) for k in range(_THREADS)
        ]
        for thread in threads:
            thread.start()
        threads[0].join()


def kill_again_and_again(url: str, n: int, seed: int = 0) -> Kills:
    """Start a process, kill it at a random moment, open the poll and look; ``n`` times."""
    moments = random.Random(seed)
    acknowledged: dict[int, int] = {}
    doubled = 0
    for _ in range(n):
        process = subprocess.Popen(
            [sys.executable, __file__, "--answer", url], stdout=subprocess.PIPE, text=True, env=_environment()
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(moments.uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        lines = process.stdout.read().splitlines(keepends=True)
        process.stdout.close()
        process.wait()
        whole = [line.split() for line in lines if line[-1] == "\n"]
        acknowledged |= {int(answer): int(shown) for answer, shown in whole}
        with Poll.open(url, background=False) as poll:
            kept = poll.log.state.changes
            doubled += len(kept) - len({change.answer.shown for change in kept})
            there = {change.sequence: change.answer.shown for change in kept}
            assert sorted(there) == [change.sequence for change in kept]
    lost = sum(there.get(answer) != shown for answer, shown in acknowledged.items())
    return Kills(len(acknowledged), lost, doubled)


def _environment() -> dict[str, str]:
    paths = [str(Path(__file__).parents[1]), *sys.path]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}


if __name__ == "__main__":
    if sys.argv[1] == "--answer":
        answer_for_ever(sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as place:
            url = sys.argv[2] if sys.argv[2:] else str(Path(place) / "poll.db")
            made(url, items=[f"item {k}" for k in range(40)]).disconnect()
            print(kill_again_and_again(url, int(sys.argv[1])), flush=True)
