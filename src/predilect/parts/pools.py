"""Who works on the parts: threads, processes, any executor, or a cluster of Ray; sums have the same bits for any."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol

from predilect._base.shards import resolve_n_jobs
from predilect._base.text import either, written
from predilect.errors import DataError
from predilect.parts.cells import Spec, over_group

Groups = Sequence[Sequence[int]]
_ATTEMPTS = 2
_RESUME = "What was done so far is kept: start the fit again with the same work folder, and it goes on from there"


class Pool(Protocol):
    """Workers that do the same with every group of parts."""

    def each(self, work: Callable[..., Any], spec: Spec, groups: Groups, *args: Any) -> Iterator[Any]:
        """Sums over the parts of each group, in the order of the groups; raises DataError."""
        ...


class OfExecutor:
    """The workers of an executor of ``concurrent.futures``, whoever made it."""

    def __init__(self, executor: Executor, remake: Callable[[], Executor] | None = None) -> None:
        self.executor, self.remake = executor, remake

    def each(self, work: Callable[..., Any], spec: Spec, groups: Groups, *args: Any) -> Iterator[Any]:
        """See :class:`Pool`. An executor that died is made again once, where that is known how."""
        waiting = self._submitted(work, spec, groups, args)
        try:
            for place, group in enumerate(groups):
                for attempt in range(1, _ATTEMPTS + 1):
                    try:
                        yield waiting[place].result()
                        break
                    except BrokenExecutor as error:
                        if self.remake is None or attempt == _ATTEMPTS:
                            raise DataError(
                                f"the pool lost a worker at part {group[0]} of {spec.parts} ({error}). {_RESUME}"
                            ) from error
                        self.executor = self.remake()
                        waiting[place:] = self._submitted(work, spec, groups[place:], args)
        finally:
            for one in waiting:
                one.cancel()

    def _submitted(
        self, work: Callable[..., Any], spec: Spec, groups: Groups, args: tuple[Any, ...]
    ) -> list[Future[Any]]:
        try:
            return [self.executor.submit(over_group, work, spec, list(group), *args) for group in groups]
        except BrokenExecutor:
            if self.remake is None:
                raise DataError(f"the pool has died, and takes no work. {_RESUME}") from None
            self.executor = self.remake()
            return [self.executor.submit(over_group, work, spec, list(group), *args) for group in groups]
        except RuntimeError as error:
            raise DataError(f"the pool takes no work ({error}). {_RESUME}") from error


# Ray ends the process that leads when its own ones on the same machine have died, and no line of Python runs then.
_SAYS = "import sys; words = sys.stdin.readline(); sys.stdin.read() == 'ended' or sys.stderr.write(words)"


class LastWords:
    """A process that says what is to be done if this one ends before :meth:`close`."""

    def __init__(self, words: str) -> None:
        self._says = subprocess.Popen(
            [sys.executable, "-c", _SAYS], stdin=subprocess.PIPE, encoding="utf-8", start_new_session=True
        )
        assert self._says.stdin is not None
        self._stdin = self._says.stdin
        self._stdin.write(f"{words}\n")
        self._stdin.flush()

    def close(self) -> None:
        """Nothing needs to be said."""
        with self._stdin:
            self._stdin.write("ended")
        self._says.wait()


class OfRay:
    """Actors of Ray, one a processor, each with the same groups in every pass, started anew where one is lost."""

    def __init__(self, address: str | None) -> None:
        try:
            ray: Any = import_module("ray")  # whose types are no part of this
        except ImportError as error:
            raise DataError("a pool of Ray needs Ray: pip install 'predilect[ray]', on every machine") from error
        self.ray, self.is_ours = ray, not ray.is_initialized()
        if self.is_ours:
            try:
                ray.init(address=address, logging_level="error", log_to_driver=False)
            except Exception as error:  # of many kinds, bare ones among them
                where = "on this machine" if address is None else f"at {address}"
                raise DataError(
                    f"Ray cannot be reached {where} ({str(error) or type(error).__name__}). Start it: ray start --head "
                    "on one machine, then ray start --address=HOST:6379 on the others"
                ) from error
        self.last_words = LastWords(
            f"Error: Ray's own processes on this machine have died, and the fit with them. {_RESUME}."
        )
        n_actors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        actor = ray.remote(max_restarts=-1, max_task_retries=_ATTEMPTS, num_cpus=1)(_Actor)
        self.actors = [actor.remote() for _ in range(n_actors)]

    def each(self, work: Callable[..., Any], spec: Spec, groups: Groups, *args: Any) -> Iterator[Any]:
        """See :class:`Pool`."""
        call = self.ray.put((work, spec, args))  # one copy a machine
        results = [
            self.actors[place % len(self.actors)].run.remote(call, list(group)) for place, group in enumerate(groups)
        ]
        for place, result in enumerate(results):
            try:
                yield self.ray.get(result)
            except self.ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, DataError | OSError) else error from error
            except self.ray.exceptions.RayError as error:
                raise DataError(
                    f"Ray lost part {groups[place][0]} of {spec.parts} ({type(error).__name__}: {error}). {_RESUME}"
                ) from error

    def close(self) -> None:
        """Give the processors back."""
        self.last_words.close()
        for actor in self.actors:
            self.ray.kill(actor)
        if self.is_ours:
            self.ray.shutdown()


class _Actor:
    """A worker of Ray; what it keeps is on the disk of its machine."""

    def run(self, call: tuple[Callable[..., Any], Spec, tuple[Any, ...]], group: Sequence[int]) -> Any:
        """Sums over a group of parts."""
        work, spec, args = call
        return over_group(work, spec, group, *args)


@contextmanager
def opened(pool: Any, n_jobs: int | None) -> Iterator[Pool]:
    """The pool that was asked for: None (threads), "processes", an executor, "ray", or an address of Ray.

    DataError if it is none of these, or Ray is not there.
    """
    if pool is None:
        with ThreadPoolExecutor(resolve_n_jobs(n_jobs), thread_name_prefix="predilect") as threads:
            yield OfExecutor(threads)
    elif isinstance(pool, Executor):
        yield OfExecutor(pool)
    elif pool == "processes":
        made: list[Executor] = []

        def make() -> Executor:
            # Not forked: threads of polars and Numba would not come along.
            made.append(ProcessPoolExecutor(resolve_n_jobs(n_jobs), multiprocessing.get_context("spawn")))
            return made[-1]

        try:
            yield OfExecutor(make(), make)
        finally:
            for one in made:
                one.shutdown(cancel_futures=True)
    elif isinstance(pool, str) and (pool in ("ray", "auto") or ":" in pool):
        ray = OfRay(None if pool == "ray" else pool)
        try:
            yield ray
        finally:
            ray.close()
    else:
        executor = either("", "an executor of concurrent.futures, ")
        raise DataError(
            f"a pool is {written(None)} (threads), {written('processes')}, {executor}{written('ray')} or the address "
            f"of a cluster of Ray; got {pool!r:.100}"
        )
