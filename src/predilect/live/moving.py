"""Moving a poll into another database, SQLite or PostgreSQL: all of its rows, looked at before they go."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from predilect.errors import DataError, OutputError
from predilect.live.tables import Database, address, events, groups, models, organisers, participants, polls

_TABLES = (events, participants, organisers, groups, models)
_AT_ONCE = 1000  # rows


def move(source: Database, name: str, target: str | Path) -> int:
    """Move a poll into another database, which is made if there is none; how many events it has.

    The rows are written to the target, read again and compared, and only then taken from the source, which keeps
    the poll whatever goes wrong before. Nobody may serve the poll meanwhile: a server that does refuses all from then
    on. Tokens, links and secrets stay as they are.

    Raises
    ------
    DataError
        If the target holds a poll of this name, or is the source.
    OutputError
        If something could not be read or written, or was not read as it was written.
    """
    if address(target) == source.url:
        raise DataError(f'{source.place} holds the poll "{name}" already: it is where it is')
    there = Database(target, create=True)
    try:
        with source.writing() as reading:
            poll = reading.execute(sa.select(polls).where(polls.c.name == name).with_for_update()).mappings().one()
            with there.writing() as writing:
                _refuse(writing, name, there.place)
                key: Any = writing.execute(
                    sa.insert(polls).values({one: value for one, value in poll.items() if one != "poll"})
                ).inserted_primary_key
                number = int(key[0])
                for table in _TABLES:
                    for rows in _rows(reading, table, poll["poll"]).partitions(_AT_ONCE):
                        writing.execute(sa.insert(table), [dict(row._mapping) | {"poll": number} for row in rows])
                _compare(reading, writing, poll["poll"], number)
            for table in (*_TABLES, polls):
                reading.execute(sa.delete(table).where(table.c.poll == poll["poll"]))
        source.scrub()
        return int(poll["sequence"])
    finally:
        there.close()


def _refuse(connection: sa.Connection, name: str, place: str) -> None:
    if connection.scalar(sa.select(polls.c.poll).where(polls.c.name == name)) is not None:
        raise DataError(f'{place} holds a poll "{name}" already. Nothing was moved')


def _rows(connection: sa.Connection, table: sa.Table, poll: int) -> Any:
    """Rows of a poll, in the order of their keys, a part after the other."""
    chosen = sa.select(table).where(table.c.poll == poll).order_by(*table.primary_key.columns)
    return connection.execute(chosen.execution_options(yield_per=_AT_ONCE))


def _compare(reading: sa.Connection, writing: sa.Connection, old: int, new: int) -> None:
    """OutputError unless the same rows are in both."""
    for table in _TABLES:
        columns = [column.name for column in table.columns if column.name != "poll"]
        here, there = (
            (tuple(row._mapping[one] for one in columns) for row in _rows(connection, table, poll))
            for connection, poll in ((reading, old), (writing, new))
        )
        if any(one != other for one, other in zip_longest(here, there)):
            raise OutputError(f"what was written of {table.name} is not read again as it was. Nothing was moved")
