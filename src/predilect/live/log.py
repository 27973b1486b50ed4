"""The log of one poll: events are read into a state, and written by one thread that commits groups."""

from __future__ import annotations

import gc
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa

from predilect._base.text import either
from predilect.errors import DataError, OutputError
from predilect.live.state import Event, PollState, checksum, decoded, said_of
from predilect.live.tables import Database, events, polls

_log = logging.getLogger("predilect.live")
_MOST_IN_A_GROUP = 200  # jobs of one commit
_MOST_SECONDS_TO_CLOSE = 30.0
THEMSELVES = -1  # of whoever joins: the number is that of their first event

# Made once: to make such a statement takes longer than to run it.
_POLL = sa.select(polls.c.signing, polls.c.sequence).where(polls.c.poll == sa.bindparam("poll"))
_AFTER = (
    sa.select(events)
    .where(events.c.poll == sa.bindparam("poll"), events.c.sequence > sa.bindparam("last"))
    .order_by(events.c.sequence)
)  # fmt: skip
_INSERTED = sa.insert(events)
_GROWN = sa.update(polls).where(polls.c.poll == sa.bindparam("this")).values(sequence=sa.bindparam("last"))


class New(NamedTuple):
    """An event to be written."""

    kind: str
    payload: dict[str, Any]
    participant: int | None = None
    key: str | None = None


@dataclass
class Writing:
    """What a job writes, and what it gives once that is durable."""

    result: Callable[[list[int]], Any]  # of the sequences of the events
    events: list[New] = field(default_factory=list)
    besides: Callable[[Any, list[int]], None] | None = None  # further rows, in the same transaction


@dataclass
class _Job:
    lane: Any  # no two jobs of a lane are decided in one group; None: alone
    decide: Callable[[PollState, Any], Writing]
    done: Future[Any] = field(default_factory=Future)


class Log:
    """The events of one poll.

    ``state`` is what they say; whoever reads it holds ``lock``. :meth:`write` decides within the transaction, on all
    events of all processes, so what it finds true is true when its events are written.
    """

    def __init__(self, database: Database, name: str | None = None) -> None:
        self.database = database
        self.name, self.poll, self.signing = self._found(name)
        self.state = PollState()
        self.lock = threading.RLock()
        self.news = threading.Condition(self.lock)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False
        with _uncollected():
            self.refresh()
        if self.state.settings is None:
            raise DataError(f'the poll "{self.name}" of {database.place} was never set up. Make another one')

    def _found(self, name: str | None) -> tuple[str, int, str]:
        with self.database.reading() as connection:
            rows = connection.execute(sa.select(polls.c.name, polls.c.poll, polls.c.signing)).all()
        there = {row.name: row for row in rows}
        if name is None and len(rows) != 1:
            listed = ", ".join(sorted(there)) or "none"
            which = either("--name NAME", "name=NAME")
            raise DataError(f"{self.database.place} holds {len(rows)} polls ({listed}). Say which one: {which}")
        row = rows[0] if name is None else there.get(name)
        if row is None:
            raise DataError(f'{self.database.place} holds no poll "{name}"; it holds {", ".join(sorted(there))}')
        return row.name, row.poll, row.signing

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Connection to read the poll with, which sees one state of the database; OutputError if it is not there."""
        with self.database.reading() as connection:
            self._check(connection)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Transaction that alone may write to the poll; OutputError if it is not there."""
        with self.database.writing(self.poll) as connection:
            self._check(connection)
            yield connection

    def _check(self, connection: sa.Connection) -> int:
        """Sequence of the last event; OutputError if the poll is not here."""
        return int(self.checked(connection.execute(_POLL, {"poll": self.poll}).first()).sequence)

    def checked(self, row: Any) -> Any:
        """A row with the poll's key; OutputError if it was moved away: another one may have its number."""
        if row is None or row.signing != self.signing:
            raise OutputError(f'the poll "{self.name}" was moved away from {self.database.place}')
        return row

    def refresh(self) -> None:
        """Read what other processes wrote since; OutputError if the database cannot be read."""
        with self.lock:
            last = self.state.sequence
        with self.reading() as connection:
            found = self._after(connection, last)
        self._take_in(found)

    def _after(self, connection: Any, last: int) -> list[Event]:
        return [decoded(row) for row in connection.execute(_AFTER, {"poll": self.poll, "last": last})]

    def _take_in(self, found: list[Event]) -> None:
        with self.news:
            known = len(self.state.left_out)
            for event in found:
                if event.sequence > self.state.sequence:
                    self.state.apply(event)
            if new := self.state.left_out[known:]:
                _log.error("%s: %s", self.name, said_of(new))
            if found:
                self.news.notify_all()

    def write(self, lane: Any, decide: Callable[[PollState, Any], Writing]) -> Any:
        """Run ``decide(state, connection)`` in the writer's transaction; its result once the events are durable.

        Raises what ``decide`` raises, and OutputError if nothing could be written: then nothing was.
        """
        if self._closed:
            raise OutputError(f'the poll "{self.name}" is being closed. Nothing was written')
        with self._starting:
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_groups, name=f"log of {self.name}", daemon=True)
                self._writer.start()
        job = _Job(lane, decide)
        self._jobs.put(job)
        return job.done.result()

    def close(self) -> None:
        """Write what was handed in, and stop the writer."""
        self._closed = True
        if self._writer is not None:
            self._jobs.put(None)
            self._writer.join(_MOST_SECONDS_TO_CLOSE)

    def _write_groups(self) -> None:
        waiting: list[_Job] = []
        ending = False
        while True:
            if not waiting and not ending:
                first = self._jobs.get()
                ending = first is None
                waiting += [first] if first is not None else []
            while not self._jobs.empty():
                job = self._jobs.get()
                ending |= job is None
                waiting += [job] if job is not None else []
            if not waiting and ending:
                return
            group, waiting = _split(waiting)
            if group:
                self._commit(group)

    def _commit(self, group: list[_Job]) -> None:
        """Decide and write a group in one transaction; whoever waits hears of it after the commit."""
        written: list[Event] = []
        results: list[tuple[_Job, Any, Any]] = []
        try:
            with self.database.writing(self.poll) as connection:
                # Read before any event is decided, and taken in at once: other processes have committed it.
                if self._check(connection) > self.state.sequence:
                    self._take_in(self._after(connection, self.state.sequence))
                sequence, now = self.state.sequence, time.time()
                for job in group:
                    try:
                        plan = job.decide(self.state, connection)
                        made = _numbered(plan.events, sequence, now)
                        numbers = [event.sequence for event in made]
                        if plan.besides is not None:
                            plan.besides(connection, numbers)
                        results.append((job, plan.result(numbers), None))
                        written += made
                        sequence += len(made)
                    except sa.exc.DatabaseError:
                        raise  # the transaction is lost, and with it the group
                    except Exception as error:  # noqa: BLE001  whoever waits gets it
                        results.append((job, None, error))
                if written:
                    _insert(connection, self.poll, written)
            self._take_in(written)
        except BaseException as error:  # noqa: BLE001
            for job in group:
                job.done.set_exception(error)
            return
        for job, result, wrong in results:
            if wrong is None:
                job.done.set_result(result)
            else:
                job.done.set_exception(wrong)

    @staticmethod
    def extend(connection: Any, poll: int, new: list[New], last: int = 0) -> None:
        """Write events after number ``last``, in the transaction of the caller; whoever joins gets the next number."""
        events_of = [made for k, one in enumerate(new, last) for made in _numbered([one], k, time.time())]
        _insert(connection, poll, events_of)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Put off the collection of garbage: of a long log, none of which is any, a third of the time to read it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _insert(connection: Any, poll: int, written: list[Event]) -> None:
    rows = []
    for event in written:
        row = event._asdict() | {"payload": json.dumps(event.payload, ensure_ascii=False, separators=(",", ":"))}
        del row["damage"]
        rows.append(row | {"poll": poll, "crc": checksum(*row.values())})
    connection.execute(_INSERTED, rows)
    connection.execute(_GROWN, {"this": poll, "last": written[-1].sequence})


def _split(waiting: list[_Job]) -> tuple[list[_Job], list[_Job]]:
    """Jobs of the next group, at most one a lane, and the others; a job without a lane goes alone."""
    if waiting and waiting[0].lane is None:
        return waiting[:1], waiting[1:]
    group: list[_Job] = []
    rest: list[_Job] = []
    lanes = set()
    for place, job in enumerate(waiting):
        if job.lane is None:  # those behind it stay behind it
            rest += waiting[place:]
            break
        if job.lane in lanes or len(group) == _MOST_IN_A_GROUP:
            rest.append(job)
        else:
            group.append(job)
        lanes.add(job.lane)
    return group, rest


def _numbered(new: list[New], last: int, now: float) -> list[Event]:
    """Events with their numbers; whoever joins gets that of the first as theirs."""
    return [
        Event(
            number, now, one.kind, last + 1 if one.participant == THEMSELVES else one.participant, one.payload, one.key
        )
        for number, one in enumerate(new, last + 1)
    ]
