"""Shards of users, and an ordered map over them in threads: the same bits for any number of threads."""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from predilect._base.arguments import check_count
from predilect._base.types import FloatArray

Shard = tuple[int, int]
Result = TypeVar("Result")


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Number of threads: ``None`` and -1 mean every core that this process may use."""
    if n_jobs is None or n_jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    check_count("n_jobs", n_jobs, 1, None, -1)
    return int(n_jobs)


def cut(costs: FloatArray, cost_per_shard: float, most: int) -> list[Shard]:
    """Consecutive ranges (start, stop) of users of about equal cost, ``cost_per_shard`` or more, at most ``most``.

    A cut depends on the data, never on the number of threads: sums over shards, taken in order, have the same bits.
    """
    n_people = len(costs)
    total = float(costs.sum())
    n_shards = int(np.clip(total // cost_per_shard, 1, max(1, min(most, n_people))))
    bounds = np.searchsorted(np.cumsum(costs), total * np.arange(1, n_shards) / n_shards, side="left") + 1
    edges = np.unique(np.concatenate([[0], np.minimum(bounds, n_people), [n_people]]))
    return list(pairwise(edges.tolist()))


def map_shards(
    function: Callable[[Shard], Result], shards: Sequence[Shard], executor: ThreadPoolExecutor | None, n_ahead: int = 2
) -> Iterator[Result]:
    """``function(shard)`` in the order of the shards, at most ``n_ahead`` ahead, which bounds the memory of results."""
    if executor is None or len(shards) == 1:
        for shard in shards:
            yield function(shard)
        return
    waiting: deque[Future[Result]] = deque()
    for shard in shards:
        waiting.append(executor.submit(function, shard))
        if len(waiting) >= n_ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@functools.cache
def _blas() -> ThreadpoolController:
    """BLAS libraries of this process; finding them takes ten milliseconds, many times a prediction."""
    import scipy.linalg  # noqa: F401  (loads a BLAS of its own)

    return ThreadpoolController().select(user_api="blas")


class _OneThread:
    """BLAS at one thread while anyone in the process asks for that; restored when the last one has finished."""

    def __init__(self) -> None:
        self._lock, self._n_inside = threading.Lock(), 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_inside:
                self._limits = _blas().limit(limits=1)
                _let_go()
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                self._limits.restore_original_limits()
                _let_go()


def _let_go() -> None:
    """End the control that threadpoolctl, from 3.7 on, keeps for the thread that set a limit: another may lift it."""
    with _blas().limit(limits=None):
        pass


_one_thread = _OneThread()


@contextmanager
def workers(n_jobs: int | None) -> Iterator[ThreadPoolExecutor | None]:
    """Pool of threads (None for one), with BLAS at one thread: its own would slow these, and change bits of sums."""
    n_threads = resolve_n_jobs(n_jobs)
    with _one_thread:
        if n_threads == 1:
            yield None
            return
        executor = ThreadPoolExecutor(n_threads, thread_name_prefix="predilect")
        try:
            yield executor
        finally:
            # After an error or Ctrl-C the queue is dropped.
            executor.shutdown(wait=True, cancel_futures=True)
