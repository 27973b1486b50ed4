"""Numbered cases in processes of their own, and what became of each, of those too in which the process dies."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from forked import forking

__all__ = ["MORE", "run_cases"]

# How many times the cases, changes and kills of the tests are run: PREDILECT_CASES=30 for a night.
MORE = int(os.environ.get("PREDILECT_CASES", "1"))


def run_cases(
    work: Callable[..., Iterator[str]], arguments: tuple[Any, ...], numbers: Iterable[int], *,
    seconds: float, processor: float = 0.0, most: int = 10**9,
) -> dict[int, str]:  # fmt: skip
    """The verdict on each case: what ``work`` yields for it, "hang", or "died of" a signal or an exit code.

    Parameters
    ----------
    work : function
        Called in the child as ``work(*arguments, numbers)``; gives the verdict on one number after the other.
    arguments : tuple
    numbers : iterable of int
    seconds, processor : float
        What a case may take by the clock, and of the processor, in which no handler runs; 0 for any.
    most : int
        Cases of one child.
    """
    verdicts: dict[int, str] = {}
    todo, context = list(numbers), forking()
    while todo:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_within, args=(work, arguments, todo[:most], processor, sender))
        process.start()
        sender.close()
        hangs, number = False, todo[0]
        with suppress(EOFError):
            while not (hangs := not receiver.poll(seconds)):
                number, verdict = receiver.recv()
                if verdict:
                    verdicts[number] = verdict
        if hangs:
            process.kill()
        process.join()
        receiver.close()
        code = process.exitcode or 0
        if number not in verdicts:
            name = signal.Signals(-code).name if code < 0 else f"exit {code}"
            verdicts[number] = "hang" if hangs or code == -signal.SIGPROF else f"died of {name}"
        todo = [number for number in todo if number not in verdicts]
    return verdicts


def _within(
    work: Callable[..., Iterator[str]], arguments: tuple[Any, ...], numbers: list[int], processor: float,
    sender: Connection,
) -> None:  # fmt: skip
    """Within the child: say each number before its case, and the verdict after it."""
    with tempfile.TemporaryFile() as printed:  # nothing of it is shown
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    verdicts = work(*arguments, numbers)
    for number in numbers:
        sender.send((number, ""))
        signal.setitimer(signal.ITIMER_PROF, processor)
        verdict = next(verdicts)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sender.send((number, verdict))
