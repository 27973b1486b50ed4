"""Refits: in a process of their own, one at a time by the poll's lease, at sequences that follow from the log alone.

:func:`work` takes orders from the process that serves: the name of a poll on a line, until its input ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from predilect._base.text import one_line
from predilect.errors import OutputError, PredilectError
from predilect.live.belief import fitted, packed
from predilect.live.groups import publish
from predilect.live.log import Log
from predilect.live.state import PollState, decoded
from predilect.live.tables import Database, events, leases, models

_LEASE = 30.0  # seconds; a worker that dies gives its poll to others after that
_RENEWED = 5.0
_WORK = "from predilect.live.refits import work; work()"
_KEPT = 2  # newest models of a criterion


def missing(log: Log) -> int | None:
    """The newest sequence at which a refit is due and not stored, if there is one."""
    with log.lock:
        due = log.state.due[-1] if log.state.due else 0
        n_criteria = log.state.n_criteria
    if not due:
        return None
    with log.reading() as connection:
        n: Any = connection.scalar(
            sa.select(sa.func.count()).where(models.c.poll == log.poll, models.c.sequence == due)
        )
    return due if n < n_criteria else None


class Refitter:
    """Fits models of a poll in the calling process.

    It reads the log up to a sequence, and goes on from there the next time, unless somebody was erased.
    """

    def __init__(self, database: Database, name: str) -> None:
        self.log = Log(database, name)
        self.holder = uuid.uuid4().hex
        self._state = PollState()
        self._erasures = 0

    def refit(self) -> int | None:
        """Make the newest refit that is due, if this process gets the lease; its sequence, or None."""
        if not self._take_lease():
            return None
        ended = threading.Event()
        keeper = threading.Thread(target=self._keep_lease, args=(ended,), daemon=True)
        keeper.start()
        try:
            self.log.refresh()
            sequence = missing(self.log)
            if sequence is not None:
                self._fit(sequence)
            return sequence
        finally:
            ended.set()
            keeper.join()
            self._release()

    def _fit(self, sequence: int) -> None:
        with self.log.lock:
            seen = len(self.log.state.erasures)
        if seen > self._erasures or self._state.sequence > sequence:
            self._state, self._erasures = PollState(), seen
        with self.log.reading() as connection:
            chosen = sa.select(events).where(
                events.c.poll == self.log.poll, events.c.sequence > self._state.sequence, events.c.sequence <= sequence
            )
            for row in connection.execute(chosen.order_by(events.c.sequence)):
                self._state.apply(decoded(row))
        for criterion in range(self._state.n_criteria):
            model = fitted(self._state, criterion)
            self._store(criterion, sequence, None if model is None else packed(model), seen)
            if model is not None:
                publish(self.log, self._state, criterion, model, seen)

    def _store(self, criterion: int, sequence: int, content: bytes | None, seen: int) -> None:
        """Keep a model, unless somebody was erased since its answers were read."""
        this = (models.c.poll == self.log.poll) & (models.c.criterion == criterion)
        with self.log.writing() as connection:
            n_erased: Any = connection.scalar(
                sa.select(sa.func.count()).where(events.c.poll == self.log.poll, events.c.kind == "erased")
            )
            there = connection.scalar(sa.select(models.c.sequence).where(this, models.c.sequence == sequence))
            if n_erased > seen or there is not None:
                return
            row = {"poll": self.log.poll, "criterion": criterion, "sequence": sequence, "folder": content}
            connection.execute(sa.insert(models).values(row))
            kept = sa.select(models.c.sequence).where(this).order_by(models.c.sequence.desc()).limit(_KEPT)
            oldest = min(connection.scalars(kept))
            connection.execute(sa.delete(models).where(this, models.c.sequence < oldest))

    def _take_lease(self) -> bool:
        now = time.time()
        with self.log.writing() as connection:
            row = connection.execute(sa.select(leases).where(leases.c.poll == self.log.poll)).first()
            # Nobody takes it for longer: then the clock went back since.
            if row is not None and now < row.until <= now + _LEASE and row.holder != self.holder:
                return False
            connection.execute(sa.delete(leases).where(leases.c.poll == self.log.poll))
            mine = {"poll": self.log.poll, "holder": self.holder, "until": now + _LEASE}
            connection.execute(sa.insert(leases).values(mine))
        return True

    def _keep_lease(self, ended: threading.Event) -> None:
        while not ended.wait(_RENEWED):
            try:
                with self.log.writing() as connection:
                    connection.execute(self._mine(sa.update(leases)).values(until=time.time() + _LEASE))
            except OutputError:
                continue  # if it runs out, another process may fit the same once more, and one of them is kept

    def _release(self) -> None:
        with self.log.writing() as connection:
            connection.execute(self._mine(sa.delete(leases)))

    def _mine(self, statement: Any) -> Any:
        return statement.where(leases.c.poll == self.log.poll, leases.c.holder == self.holder)


class Worker:
    """The process that fits; it is started when it is first needed, and ends with this one."""

    def __init__(self, database: Database) -> None:
        self._url = database.url.render_as_string(hide_password=False)
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._asked: set[str] = set()
        self._again: dict[str, float] = {}  # when what failed is tried again
        self.failures = 0

    def ask(self, name: str) -> None:
        """Have a poll fitted, unless that was asked for already."""
        with self._lock:
            if name in self._asked or time.monotonic() < self._again.get(name, 0.0):
                return
            if self._process is None or self._process.poll() is not None:
                self._start()
            assert self._process is not None
            assert self._process.stdin is not None
            self._asked.add(name)
            try:
                self._process.stdin.write(f"{name}\n")
                self._process.stdin.flush()
            except OSError:  # it died: the next time another one is started
                self._asked.clear()

    def _start(self) -> None:
        self._asked.clear()
        environment = os.environ | {"PREDILECT_POLL": self._url, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            name, _, how = line.rstrip("\n").partition(" ")
            with self._lock:
                self._asked.discard(name)
                if how == "failed":
                    self.failures += 1
                    self._again[name] = time.monotonic() + _LEASE
        with self._lock:
            if process is self._process:
                self._asked.clear()
        _let_go(process)

    def close(self) -> None:
        """End the process; what it was fitting is fitted by the next one."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        process.wait()
        _let_go(process)


def _let_go(process: subprocess.Popen[str]) -> None:
    """Close what leads to a process that has ended."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # an order that it did not take
                stream.close()


def work() -> None:
    """Take orders from standard input, and answer each on standard output."""
    if hasattr(os, "nice"):
        os.nice(10)  # whoever waits for a page comes first
    database = Database(os.environ["PREDILECT_POLL"])
    polls: dict[str, Refitter] = {}
    for line in sys.stdin:
        name = line.rstrip("\n")
        how = "done"
        try:
            if name not in polls:
                polls[name] = Refitter(database, name)
            polls[name].refit()
        except (PredilectError, OutputError, ArithmeticError) as error:
            how = "failed"
            sys.stderr.write(f"The refit of {one_line(name)} failed: {error}\n")
        try:
            sys.stdout.write(f"{name} {how}\n")
            sys.stdout.flush()
        except BrokenPipeError:  # whoever serves was killed; the refit is stored
            os._exit(0)
