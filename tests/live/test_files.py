"""The file of a poll: whose it is, what is said of one that is damaged, and who holds its refits."""

from __future__ import annotations

import doctest
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest
import sqlalchemy as sa

from cases import MORE
from cli.running import run
from live.polls import answered, made
from predilect._base.text import as_typed
from predilect.errors import DataError, OutputError
from predilect.live import Poll
from predilect.live.refits import _WORK, Refitter, missing
from predilect.live.tables import Database, leases, models


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


def test_a_secret_is_worth_nothing_once_there_is_another(tmp_path):
    with made(tmp_path, pids="signed") as poll, Poll.open(tmp_path / "poll.db", background=False) as other:
        number = poll.readmit("pid 7", "first", "7")
        assert poll.readmit("pid 7", "first", "7") == number
        assert other.readmit("pid 7", "second", "7") == number
        poll.log.refresh()
        assert (poll.who(secret="first"), poll.who(secret="second")) == (None, number)
        poll.erase(number)
        assert poll.who(secret="second") is None


def test_whether_it_can_be_read_is_found_out_by_reading(tmp_path):
    with made(tmp_path) as poll:
        assert poll.readable()
        (tmp_path / "poll.db").rename(tmp_path / "away.db")
        assert not poll.readable()
        (tmp_path / "away.db").rename(tmp_path / "poll.db")
        assert poll.readable()
        with closing(sqlite3.connect(tmp_path / "poll.db")) as connection:
            connection.execute("ALTER TABLE events RENAME TO things")
        assert not poll.readable()


def test_a_long_reference_of_a_panel_is_taken(tmp_path):
    with made(tmp_path, pids="signed") as poll:
        assert poll.readmit(f"pid {'x' * 200}", "secret", "x" * 200) == poll.who(secret="secret")
        with pytest.raises(DataError, match="1 to 200"):
            poll.join(pid="x" * 201)


def test_the_example_of_the_docstring_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.DocTestFinder(recurse=False).find(Poll, "Poll", globs={"Poll": Poll})
    assert [doctest.DocTestRunner().run(one) for one in found] == [(0, 6)]


EDITS = {
    "no JSON": "UPDATE events SET payload = '{' WHERE sequence = 5",
    "no object": "UPDATE events SET payload = '[]' WHERE sequence = 5",
    "a blob": "UPDATE events SET payload = x'ff' WHERE sequence = 5",
    "a row is gone": "DELETE FROM events WHERE sequence = 6",
    "an unknown kind": "UPDATE events SET kind = 'zap' WHERE sequence = 5",
    "a kind of another": "UPDATE events SET kind = 'undone' WHERE sequence = 5",
    "nobody's": "UPDATE events SET participant = NULL WHERE kind = 'answered'",
    "somebody else's": "UPDATE events SET participant = 99 WHERE kind = 'shown'",
    "an item that is not": """UPDATE events SET payload = '{"items":[99,1],"p":1}' WHERE kind = 'shown'""",
    "item 0": """UPDATE events SET payload = '{"items":[0,1],"p":1}' WHERE kind = 'shown'""",
    "an item twice": """UPDATE events SET payload = '{"items":[1,1],"p":1}' WHERE kind = 'shown'""",
    "a chance of 2": """UPDATE events SET payload = '{"items":[1,2],"p":2}' WHERE kind = 'shown'""",
    "a place that is not": """UPDATE events SET payload = replace(payload, '"value":[', '"value":[7')""",
    "an answer to nothing": """UPDATE events SET payload = '{"shown":1,"value":[0]}' WHERE kind = 'answered'""",
    "a time that is none": "UPDATE events SET time = 'abc' WHERE sequence = 5",
    "a time too late": "UPDATE events SET time = 1e300 WHERE sequence = 5",
    "settings unknown": """UPDATE events SET payload = replace(payload, '"kind"', '"zind"') WHERE sequence = 1""",
    "a status that is none": """UPDATE events SET payload = replace(payload, '"open"', '"ajar"') WHERE sequence = 1""",
    "version x": "UPDATE facts SET value = 'x' WHERE name = 'version'",
    "version 0": "UPDATE facts SET value = '0' WHERE name = 'version'",
    "no version": "DELETE FROM facts WHERE name = 'version'",
}  # fmt: skip


# What is left would mean something else, such as another item.
NOTHING_WITHOUT = ("a row is gone", "an unknown kind", "settings unknown", "a status that is none", "version x",
                   "version 0", "no version")  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A file with a poll that was answered."""
    folder = tmp_path_factory.mktemp("sound")
    with made(folder) as poll:
        answered(poll, ["ann", "bob"], 3)
    return folder / "poll.db"


def edited(sound, folder, *edits):
    """A copy of a file, with other rows."""
    file = shutil.copy(sound, folder / "poll.db")
    with closing(sqlite3.connect(file)) as connection:
        for edit in edits:
            connection.execute(edit)
        connection.commit()
    return file


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("is_old", [False, True])
def test_of_a_damaged_log_it_is_said_which_row(sound, tmp_path, edit, is_old):
    file = edited(sound, tmp_path, EDITS[edit], *["UPDATE events SET crc = NULL"] * is_old)
    if edit in NOTHING_WITHOUT:
        what = "version" if "version" in edit else r"row \d+ of the poll's log is damaged: .*back-up"
        with pytest.raises(DataError, match=what):
            Poll.open(file, background=False)
        return
    with Poll.open(file, background=False) as poll:
        assert poll.left_out()
        answered(poll, ["ann", "bob", "cas"], 2)
        assert len(poll.export("answers")) >= 2
        poll.board(), poll.people(), poll.export("participants"), poll.export("shown"), poll.export("events")
        poll.erase("cas")
    told = run("poll", "status", file)
    assert told.exit_code == 0
    assert re.search(r"goes on without what its log says in row \d+, \w+:", " ".join(told.stderr.split()))


def test_damage_that_comes_while_a_poll_is_open_ends_nothing(sound, tmp_path):
    file = shutil.copy(sound, tmp_path / "poll.db")
    with Poll.open(file, background=False) as poll, Poll.open(file, background=False) as other:
        answered(other, ["cas"], 2)
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(f"UPDATE events SET time = 'abc' WHERE sequence = {poll.log.state.sequence + 3}")
            connection.commit()
        answered(poll, ["dan"], 2)
        (row,) = poll.left_out()
        assert (row.kind, other.left_out()) == ("answered", [])
        assert len(poll.export("answers")) == len(other.export("answers")) - 1


def test_an_answer_that_was_changed_on_the_disk_counts_for_nobody(sound, tmp_path):
    """One bit makes of the first of two items the second, or of the second the first."""
    with Poll.open(shutil.copy(sound, tmp_path / "sound.db"), background=False) as poll:
        before = poll.export("answers")
    an_answer = "kind = 'answered' AND payload LIKE '%\"value\":[_]%'"
    swapped = "replace(replace(replace(payload, '[0]', '[x]'), '[1]', '[0]'), '[x]', '[1]')"
    change = (
        f"UPDATE events SET payload = {swapped} WHERE sequence = (SELECT min(sequence) FROM events WHERE {an_answer})"
    )
    with Poll.open(edited(sound, tmp_path, change), background=False) as poll:
        after = poll.export("answers")
        assert len(poll.left_out()) == 1
        assert len(after) == len(before) - 1
        assert set(after.rows()) < set(before.rows())


def test_a_row_of_no_text_is_one_row(sound, tmp_path):
    """A bit may leave bytes that are no UTF-8."""
    change = "UPDATE events SET payload = CAST(x'7bff7d' AS TEXT) WHERE sequence = (SELECT max(sequence) FROM events)"
    with Poll.open(edited(sound, tmp_path, change), background=False) as poll:
        assert len(poll.left_out()) == 1


@pytest.mark.slow
def test_flipped_bits_end_in_words(sound, tmp_path):
    content, source = sound.read_bytes(), random.Random(1)
    for k in range(60 * MORE):
        bits = bytearray(content)
        bits[source.randrange(len(bits))] ^= 1 << source.randrange(8)
        file = tmp_path / f"{k}.db"
        file.write_bytes(bits)
        with suppress(DataError, OutputError), Poll.open(file, background=False) as poll:
            poll.people(), poll.export("answers"), poll.export("participants"), poll.ask("ann")


@pytest.mark.slow
def test_a_worker_whose_server_was_killed_ends_without_a_word(sound):
    environment = os.environ | {"PREDILECT_POLL": str(sound)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", _WORK], env=environment, **pipes) as worker:
        worker.stdout.close()
        worker.stdin.write(f"{Database(sound).names()[0]}\n".encode())
        worker.stdin.close()
        assert (worker.stderr.read(), worker.wait()) == (b"", 0)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [b"garbage", None], ids=["garbage", "half"])
def test_a_stored_refit_that_cannot_be_read_is_made_again(tmp_path, damage):
    with made(tmp_path) as poll:
        answered(poll, [f"person {k}" for k in range(4)], 3)
        due = poll.refit()
        with poll.database.writing() as connection:
            folder = connection.scalar(sa.select(models.c.folder))
            connection.execute(sa.update(models).values(folder=damage or folder[: len(folder) // 2]))
        with Poll.open(tmp_path / "poll.db", background=False) as other:
            assert len(other.board()) == 5
            assert other.belief().made_at == 0
            assert other.refit() == due
            assert other.belief().made_at == due


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
        with pytest.raises(OutputError, match=r"is erased, and another program reads .*poll\.db"):
            poll.erase(name)
        assert poll.who(name=name) is None
        answered(poll, ["bob"], 1)  # whoever writes is not kept waiting
        assert n_traces()
        with pytest.raises(OutputError, match="Erase the same number again"):
            poll.erase(number)
        told = run("poll", "erase", file, f"p{number}")
        assert told.exit_code == 0
        assert f"Then say: predilect poll erase {as_typed(file)} --ids p{number}" in " ".join(told.stderr.split())
        reader.close()
        poll.look()
        assert not n_traces()
        poll.erase(number)
        assert run("poll", "erase", file, "--ids", f"p{number}").exit_code == 0
        rows = poll.export("events")
        rows = rows.filter(rows["user"].is_null() & rows["payload"].is_null())
        assert set(rows["kind"]) == {"joined", "shown", "answered"}
        assert rows["time"].null_count() == len(rows) == 5
        with Poll.open(file, background=False) as other:
            assert other.people() == poll.people()
