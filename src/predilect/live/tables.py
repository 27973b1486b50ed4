"""The tables of polls, in SQLite or PostgreSQL: opening, schema version, upgrade in place."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from predilect._base.text import one_line
from predilect.errors import DataError, OutputError

VERSION = 4
_LONGEST_WAIT = 30.0  # seconds that a writer waits for another process
_LONGEST_SCRUB = 1000  # milliseconds
_LOCK = 0x70726564  # "pred"

_meta = sa.MetaData()
facts = sa.Table(
    "facts",
    _meta,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
polls = sa.Table(
    "polls",
    _meta,
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("sequence", sa.BigInteger, nullable=False),  # of its last event
    sa.Column("token", sa.Text, nullable=False),  # SHA-256 of the organiser's
    sa.Column("signing", sa.Text, nullable=False),  # key by which outer references are signed
)
events = sa.Table(
    "events",
    _meta,
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("time", sa.Float(53), nullable=False),  # seconds since 1970
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("participant", sa.BigInteger),  # number; none of the organiser and of the erased
    sa.Column("payload", sa.Text),  # JSON; none of the erased
    sa.Column("key", sa.Text),
    sa.Column("crc", sa.BigInteger),  # of the other columns; none of the erased, and of rows of version 1
    sa.UniqueConstraint("poll", "participant", "key"),
)
participants = sa.Table(
    "participants",
    _meta,
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text),  # what the caller of Python, or a signed reference, calls them
    sa.Column("secret", sa.Text),  # SHA-256
    sa.Column("pid", sa.Text),  # an outer reference, never a key
    sa.UniqueConstraint("poll", "name"),
    sa.UniqueConstraint("poll", "secret"),
)


organisers = sa.Table(
    "organisers",
    _meta,
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("token", sa.Text, nullable=False),  # SHA-256; the log has name and role
    sa.UniqueConstraint("poll", "token"),
)


def _of_a_state() -> list[sa.Column[int]]:
    """Key of what was made of one criterion of a poll at a sequence."""
    kinds = {"poll": sa.Integer, "criterion": sa.Integer, "sequence": sa.BigInteger}
    return [sa.Column(name, kind, primary_key=True, autoincrement=False) for name, kind in kinds.items()]


models = sa.Table(
    "models",
    _meta,
    *_of_a_state(),
    sa.Column("folder", sa.LargeBinary),  # zip of a saved model; none where the answers up to there make none
)
groups = sa.Table(
    "groups",
    _meta,
    *_of_a_state(),
    sa.Column("content", sa.Text),  # JSON of the groups that were published; none once somebody was erased
)
leases = sa.Table(
    "leases",
    _meta,
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("until", sa.Float(53), nullable=False),
)

# From a version to the next: what a connection has to run. Applied in one transaction.
UPGRADES: dict[int, Callable[[sa.Connection], Any]] = {
    1: lambda connection: connection.exec_driver_sql("ALTER TABLE events ADD COLUMN crc BIGINT"),
    2: groups.create,
    3: organisers.create,
}


def address(url: str | Path) -> sa.URL:
    """Address of a database: a file of SQLite, or a URL; PostgreSQL through psycopg.

    Raises DataError for another kind of database.
    """
    text = str(url)
    if "://" not in text:
        return sa.URL.create("sqlite", database=str(Path(text).resolve()))
    try:
        found = sa.make_url(text)
    except sa.exc.ArgumentError as error:
        raise DataError(f'"{text}" is no address of a database. Give poll.db, or postgresql://HOST/NAME') from error
    kind = found.get_backend_name()
    if kind == "postgresql":
        return found.set(drivername="postgresql+psycopg")
    if kind != "sqlite":
        raise DataError(
            f"polls are kept in SQLite or PostgreSQL, not in {kind}. Give poll.db, or postgresql://HOST/NAME"
        )
    if not found.database or found.database == ":memory:" or found.query:
        raise DataError(f'"{text}" names no file, and a poll is kept in one. Give its name alone, such as poll.db')
    return found


class Database:
    """Connections to the tables of one database, which are made or upgraded when it is opened.

    Raises DataError if there is no such file and ``create`` is False, if it is no database of polls, or a newer
    Predilect made it; OutputError if it cannot be written.
    """

    def __init__(self, url: str | Path, *, create: bool = False) -> None:
        self.url = address(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.file = Path(self.url.database or "") if self.is_sqlite else None
        if self.file is not None:
            if self.file.is_dir():
                raise DataError(f"{self.file} is a folder. Name a file in it, such as {self.file / 'poll.db'}")
            if not create and not self.file.is_file():
                raise DataError(f"there is no poll in {self.file}. Make one with Poll.create, or predilect poll new")
            if not self.file.parent.is_dir():
                raise DataError(f"there is no folder {self.file.parent}. Make it first, or give another place")
            if create and not self.file.exists():
                _make_private(self.file)
        options: dict[str, Any] = {"connect_args": {"timeout": _LONGEST_WAIT}} if self.is_sqlite else {}
        self.engine = sa.create_engine(self.url, pool_pre_ping=not self.is_sqlite, pool_size=8, **options)
        if self.is_sqlite:
            sa.event.listen(self.engine, "connect", _set_up_sqlite)
        self._opened = self._identity()
        with self.refusals():
            self._prepare(create)

    def _identity(self) -> tuple[int, int] | None:
        """Which file it is; None of PostgreSQL, and where there is none any more."""
        try:
            found = None if self.file is None else self.file.stat()
        except FileNotFoundError:
            return None
        return None if found is None else (found.st_dev, found.st_ino)

    def _check_file(self) -> None:
        """OutputError if the file is gone, or is another one: SQLite would go on with what nobody finds again."""
        if self._identity() != self._opened:
            raise OutputError(
                f"{self.place} was removed or replaced while it was open. Put it back, or start what serves it again"
            )

    @property
    def place(self) -> str:
        """The file, or the address without its password."""
        return str(self.file) if self.file is not None else self.url.render_as_string(hide_password=True)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Connection to read with, which sees one state of the database."""
        self._check_file()
        with self.refusals(), self.engine.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN")
            yield connection

    def first(self, statement: Any, values: dict[str, Any]) -> Any:
        """First row of one statement, or None; it sees one state of the database without a transaction."""
        self._check_file()
        with self.refusals(), self.engine.connect() as connection:
            return connection.execute(statement, values).first()

    @contextmanager
    def writing(self, poll: int | None = None) -> Iterator[sa.Connection]:
        """Transaction that alone may write to the poll; committed at the end, rolled back after an error."""
        self._check_file()
        with self.refusals(), self.engine.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            if poll is not None and not self.is_sqlite:
                connection.execute(sa.select(polls.c.poll).where(polls.c.poll == poll).with_for_update())
            yield connection
            connection.commit()

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Errors of the database in our words: OutputError."""
        try:
            yield
        except sa.exc.DatabaseError as error:
            said = str(error.orig).strip().splitlines()[0] if error.orig is not None else str(error)
            told = f"{self.place} could not be used: {said}"
            if "file is not a database" in said:
                raise DataError(f"{self.place} is no database of polls") from error
            if "full" in said or "No space" in said:
                told += ". Make room on the disk; what was acknowledged is kept"
            raise OutputError(told) from error

    def _prepare(self, create: bool) -> None:
        with self.writing() as connection:
            if not self.is_sqlite:  # one process at a time makes the tables
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            there = sa.inspect(connection).has_table("facts")
            if not there and not create:
                raise DataError(f"{self.place} holds no polls. Make one with Poll.create, or predilect poll new")
            if not there:
                _meta.create_all(connection)
                connection.execute(sa.insert(facts).values(name="version", value=str(VERSION)))
                connection.execute(sa.insert(facts).values(name="secret", value=secrets.token_urlsafe(32)))
            version = _version(connection)
            if version > VERSION:
                raise DataError(
                    f"{self.place} has schema version {version}, and this Predilect knows up to {VERSION}. Install a "
                    "newer one"
                )
            if version < VERSION and self.file is not None:
                kept = self.file.with_name(f"{self.file.name}.version{version}")
                if not kept.exists():
                    _copy(self.file, kept)
            for number in range(version, VERSION):
                UPGRADES[number](connection)
            if version < VERSION:
                connection.execute(sa.update(facts).where(facts.c.name == "version").values(value=str(VERSION)))

    def secret(self) -> str:
        """Key of this database, for what is signed within it."""
        with self.reading() as connection:
            return str(connection.scalar(sa.select(facts.c.value).where(facts.c.name == "secret")))

    def names(self) -> list[str]:
        """Names of its polls, the oldest first."""
        with self.reading() as connection:
            return list(connection.scalars(sa.select(polls.c.name).order_by(polls.c.poll)))

    def backup(self, target: Path) -> None:
        """Copy an SQLite database while it is in use; DataError for PostgreSQL, which has pg_dump, or if it exists."""
        if self.file is None:
            raise DataError("PostgreSQL has a back-up of its own: pg_dump")
        if target.exists():
            raise DataError(f"{target} exists already. Choose another name")
        _copy(self.file, target)

    def scrub(self) -> bool:
        """Let nothing of deleted rows stay in the files: SQLite cuts its log, PostgreSQL writes its tables anew.

        Whether that was possible: not while another program reads an SQLite file; it is waited for a second.
        """
        with self.refusals(), self.engine.connect() as connection:
            alone = connection.execution_options(isolation_level="AUTOCOMMIT")
            if self.is_sqlite:
                # Whoever wants to write waits meanwhile.
                alone.exec_driver_sql(f"PRAGMA busy_timeout={_LONGEST_SCRUB}")
                busy = alone.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
                alone.exec_driver_sql(f"PRAGMA busy_timeout={round(1000.0 * _LONGEST_WAIT)}")
                return not busy
            for table in (events, participants, models, groups):
                alone.exec_driver_sql(f"VACUUM (FULL) {table.name}")  # without it old bytes stay in free space
        return True


def _set_up_sqlite(connection: Any, _: Any) -> None:
    """Durable commits beside readers; deleted rows are overwritten; SQLAlchemy and not sqlite3 begins transactions."""
    connection.isolation_level = None
    connection.text_factory = lambda content: content.decode(errors="replace")  # a damaged row is found by its checksum
    cursor = connection.cursor()
    try:
        for setting in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
            cursor.execute(f"PRAGMA {setting}")
    except UnicodeDecodeError as error:  # what SQLite says of a damaged file names damaged parts of it
        raise sqlite3.DatabaseError(str(error)) from error
    finally:
        cursor.close()


def _make_private(file: Path) -> None:
    """An empty file for its owner alone, as those that SQLite makes beside it are then."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:  # another process was faster
        return
    except OSError as error:
        raise OutputError(f"{file} could not be made: {error.strerror}. Choose another place") from error


def _version(connection: sa.Connection) -> int:
    found = str(connection.scalar(sa.select(facts.c.value).where(facts.c.name == "version")))
    if not found.isdecimal() or len(found) > 9 or int(found) < 1:
        raise DataError(f'the database says that its schema has version "{one_line(found)}", which is none: it is '
                        "damaged. Put a back-up in its place")  # fmt: skip
    return int(found)


def _copy(source: Path, target: Path) -> None:
    """Copy a database that may be in use, whole or not at all; OutputError if it cannot be written."""
    _make_private(target)
    try:
        with closing(sqlite3.connect(source)) as there, closing(sqlite3.connect(target)) as copy:
            there.backup(copy)
    except (OSError, sqlite3.Error) as error:
        target.unlink(missing_ok=True)
        raise OutputError(f"{target} could not be written: {error}. Choose another place, or make room") from error
