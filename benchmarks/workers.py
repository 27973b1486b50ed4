"""Runs in processes of their own, so that memory, caches and crashes of one do not reach the next."""

from __future__ import annotations

import math
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.measure import measure, warm_up

__all__ = ["THREAD_VARIABLES", "alone", "runs"]

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def runs(
    task: str, model: str, seeds: Sequence[int], *, isolate: bool = True, limit: float = 600.0
) -> Iterator[dict[str, Any]]:
    """Records of a model on several seeds of a task, in turn.

    Parameters
    ----------
    isolate : bool, default True
        In one process of their own, after a warm-up; ``peak_mb`` of a seed is then that of the process so far.
    limit : float
        Seconds a run may take, for isolated ones; after that the process is killed and the record says so.
    """
    if not isolate:
        warm_up(model)
        yield from (measure(task, model, seed) for seed in seeds)
        return
    os.environ |= dict.fromkeys(THREAD_VARIABLES, "1")
    remaining = list(seeds)
    while remaining:
        receiver, sender = multiprocessing.get_context("spawn").Pipe(duplex=False)
        process = multiprocessing.get_context("spawn").Process(
            target=_work, args=(sender, task, model, remaining, sys.argv), daemon=True
        )
        process.start()
        sender.close()
        while remaining:
            reason = f"no result after {limit:g} s"
            try:
                record = receiver.recv() if receiver.poll(limit) else None
            except EOFError:
                process.join()
                record, reason = None, f"the process ended with exit code {process.exitcode}"
            seed = remaining.pop(0)
            if record is None:
                process.kill()
                yield {"task": task, "model": model, "seed": seed, "error": reason}
                break
            yield record
        process.join()


def alone(function: Callable[..., dict[str, Any]], *arguments: Any, limit: float) -> dict[str, Any]:
    """What a function gives in a process of its own, or ``error``: why it gave nothing.

    Parameters
    ----------
    function : callable
        At the top of a module.
    *arguments
        What can be pickled.
    limit : float
        Seconds of CPU time after which the process is ended, so that a busy machine is not held against it.
    """
    os.environ |= dict.fromkeys(THREAD_VARIABLES, "1")
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, function, arguments, limit, sys.argv), daemon=True)
    process.start()
    sender.close()
    try:
        found: dict[str, Any] = receiver.recv()
    except EOFError:
        process.join()
        ended = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        reason = f"no result after {limit:g} CPU s, or out of memory" if ended else f"exit code {process.exitcode}"
        found = {"error": reason}
    process.join()
    return found


def _send(
    sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...], limit: float, command: list[str]
) -> None:
    sys.argv = command
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 1))
    try:
        sender.send(function(*arguments))
    except Exception as error:  # noqa: BLE001  that something fails is a result
        sender.send({"error": f"{type(error).__name__}: {error}"})


def _work(sender: Connection, task: str, model: str, seeds: list[int], arguments: list[str]) -> None:
    sys.argv = arguments
    warm_up(model)
    for seed in seeds:
        sender.send(measure(task, model, seed))
