"""The polls that a process serves: those of a file, of a folder of files, or of a PostgreSQL."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from predilect.errors import DataError, OutputError
from predilect.live.given import Refused
from predilect.live.poll import Poll
from predilect.live.tables import Database


class Host:
    """Polls by name, each opened when it is first asked for.

    ``code`` is what somebody needs who makes a poll on the pages, ``own_network`` whether polls may tell webhooks in
    the networks of this machine.

    Raises
    ------
    DataError
        If there is no such place, or two of its files hold polls of one name.
    """

    def __init__(self, place: str, code: str | None = None, *, own_network: bool = False) -> None:
        self.place, self.code, self.own_network = place, code or secrets.token_urlsafe(12), own_network
        self.folder = Path(place) if "://" not in place and Path(place).is_dir() else None
        self._polls: dict[str, Poll] = {}
        self._lock = threading.Lock()
        self._files: dict[str, str | Path] = {}
        self._look()

    def _look(self) -> None:
        """Find the polls that there are."""
        self._files = polls_at(self.place)

    def names(self) -> list[str]:
        """Names of the polls."""
        return list(self._files)

    def opened(self, name: str) -> Poll | None:
        """The poll of a name, if it is open already."""
        return self._polls.get(name)

    def poll(self, name: str) -> Poll:
        """The poll of a name; Refused if there is none."""
        found = self._polls.get(name)
        if found is not None:
            return found
        with self._lock:
            if name not in self._files:
                self._look()  # another process may have made it
            if name not in self._files:
                raise Refused("there is no such poll", 404)
            if name not in self._polls:
                self._polls[name] = self._allowed(Poll.open(self._files[name], name))
            return self._polls[name]

    def create(self, **said: Any) -> Poll:
        """Make a poll, in a file of its own where a folder is served."""
        name = secrets.token_hex(4)
        place = self.place if self.folder is None else self.folder / f"{name}.db"
        made = self._allowed(Poll.create(place, name=name, **said))
        with self._lock:
            self._files[name], self._polls[name] = place, made
        return made

    def _allowed(self, poll: Poll) -> Poll:
        poll.hooks.to_own_network = self.own_network
        return poll

    def lost(self) -> list[str]:
        """Names of the polls that were here and cannot be read now."""
        there = {name: place for place in set(self._files.values()) for name in _there(place)}
        opened = dict(self._polls)
        return [
            name for name, place in self._files.items()
            if there.get(name) != place or (name in opened and not opened[name].readable())
        ]  # fmt: skip

    def each(self, what: Callable[[Poll], Any]) -> list[Any]:
        """What a function makes of every poll that is open."""
        return [what(poll) for poll in list(self._polls.values())]

    def every(self) -> list[Poll]:
        """Every poll, opened if it is not yet; without those that cannot be read, which ``lost`` names."""
        lost = self.lost()
        return [self.poll(name) for name in self.names() if name not in lost]

    def close(self) -> None:
        """Finish what is being written, and let go of everything."""
        self.each(Poll.disconnect)


def polls_at(place: str) -> dict[str, str | Path]:
    """Names of the polls at a place, and the file, or the address of the database, that holds each.

    Raises DataError if there is no such place, or two of its files hold polls of one name.
    """
    is_folder = "://" not in place and Path(place).is_dir()
    files: list[str | Path] = [*sorted(Path(place).glob("*.db"))] if is_folder else [place]
    found: dict[str, str | Path] = {}
    for file in files:
        for name in _names_in(file):
            if name in found:
                raise DataError(f'{found[name]} and {file} both hold a poll "{name}". Move one of them away')
            found[name] = file
    return found


def _names_in(place: str | Path) -> list[str]:
    database = Database(place)
    try:
        return database.names()
    finally:
        database.close()


def _there(place: str | Path) -> list[str]:
    try:
        return _names_in(place)
    except (DataError, OutputError):
        return []


def form_token(secret: str, poll: str) -> str:
    """What a form carries that only a page made for whoever holds the secret can know."""
    return hmac.new(secret.encode("utf-8", "surrogatepass"), f"form {poll}".encode(), hashlib.sha256).hexdigest()
