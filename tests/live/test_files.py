"""The file of a poll: whose it is, what is said of one that is damaged, and who holds its refits."""

from __future__ import annotations

import doctest
import os
import sqlite3
import time

import pytest
import sqlalchemy as sa

from live.polls import answered, made
from predilect.errors import DataError
from predilect.live import Poll
from predilect.live.refits import Refitter, missing
from predilect.live.tables import leases


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_a_poll_is_its_owners_alone(tmp_path):
    before = os.umask(0)
    try:
        with made(tmp_path) as poll:
            answered(poll, ["ann"], 1)
            poll.database.backup(tmp_path / "copy.db")
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
            assert len(modes) == 4
            assert set(modes.values()) == {0o600}
    finally:
        os.umask(before)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///poll.db?mode=ro"])
def test_what_names_no_file_is_refused_in_words(url):
    with pytest.raises(DataError, match="names no file"):
        made(url)


def test_a_lease_of_a_clock_that_went_back_blocks_nobody(tmp_path):
    with made(tmp_path) as poll:
        answered(poll, [f"person {k}" for k in range(4)], 3)
        killed = Refitter(poll.database, poll.name)
        assert killed._take_lease()
        assert Refitter(poll.database, poll.name).refit() is None
        with poll.database.writing() as connection:
            connection.execute(sa.update(leases).values(until=time.time() + 86_400.0))
        assert Refitter(poll.database, poll.name)._take_lease()
        assert missing(poll.log) is not None


def test_a_long_reference_of_a_panel_is_taken(tmp_path):
    with made(tmp_path, pids="signed") as poll:
        assert poll.readmit(f"pid {'x' * 200}", "secret", "x" * 200) == poll.who(secret="secret")
        with pytest.raises(DataError, match="1 to 200"):
            poll.join(pid="x" * 201)


def test_the_example_of_the_docstring_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.DocTestFinder(recurse=False).find(Poll, "Poll", globs={"Poll": Poll})
    assert [doctest.DocTestRunner().run(one) for one in found] == [(0, 6)]


def test_whoever_is_erased_beside_a_long_reader_is_gone_once_it_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("predilect.live.tables._LONGEST_SCRUB", 10)
    file = tmp_path / "poll.db"
    name = "Zoë Quint-Unique"

    def n_traces():
        return sum(one.read_bytes().count(name.encode()) for one in tmp_path.iterdir())

    with made(tmp_path) as poll:
        answered(poll, [name, "bob"], 2)
        number = poll.who(name=name)
        reader = sqlite3.connect(file, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        assert not poll.erase(name)
        assert poll.who(name=name) is None
        answered(poll, ["bob"], 1)  # whoever writes is not kept waiting
        assert n_traces()
        assert not poll.erase(number)
        reader.close()
        poll.look()
        assert not n_traces()
        assert poll.erase(number)
        rows = poll.export("events")
        rows = rows.filter(rows["user"].is_null() & rows["payload"].is_null())
        assert set(rows["kind"]) == {"joined", "shown", "answered"}
        assert rows["time"].null_count() == len(rows) == 5
        with Poll.open(file, background=False) as other:
            assert other.people() == poll.people()
