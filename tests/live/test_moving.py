"""A poll in another database is the same poll."""

from __future__ import annotations

import secrets
import sqlite3
import sys

import pytest
import sqlalchemy as sa

from cli.running import run
from live.polls import answered, made
from predilect.errors import DataError, OutputError
from predilect.live import Poll, moving
from predilect.live.tables import events


@pytest.fixture(params=["sqlite", "postgres"])
def target(request, tmp_path):
    """A place that a poll may be moved to."""
    if request.param == "sqlite":
        return str(tmp_path / "other.db")
    return request.getfixturevalue("postgres")


def kept(poll):
    """All rows of its log, as the database has them."""
    columns = [column for column in events.columns if column.name != "poll"]
    with poll.database.reading() as connection:
        chosen = sa.select(*columns).where(events.c.poll == poll.log.poll).order_by(events.c.sequence)
        return [tuple(row) for row in connection.execute(chosen)]


def test_the_log_is_equal_and_so_is_all_that_it_says(tmp_path, target):
    name = f"moved-{secrets.token_hex(4)}"
    with made(tmp_path, name=name, kind="best", size=3, proposals=True) as poll:
        poll.join("somebody", secret="a-secret", pid="panel-1")
        _, token = poll.invite("Zoë", "moderator")
        poll.propose_item("somebody", "שלום")
        answered(poll, [f"p{k}" for k in range(6)], 3)
        poll.erase("p3")
        assert poll.refit() is not None
        own, rows, board = poll.token, kept(poll), poll.board()
        tables = {kind: poll.export(kind) for kind in ("answers", "items", "participants", "trail", "events")}
    told = run("poll", "move", tmp_path / "poll.db", target)
    assert told.exit_code == 0, told.output
    assert f"of {len(rows)} events" in told.output
    with Poll.open(target, name, background=False) as there:
        assert kept(there) == rows
        assert there.board().equals(board)
        assert all(there.export(kind).equals(table) for kind, table in tables.items())
        assert there.organiser(own).number == 0
        assert there.organiser(token).name == "Zoë"
        assert there.who(secret="a-secret") == there.who(name="somebody")
        answered(there, ["p0", "new"], 1)
    with pytest.raises(DataError, match="0 polls"):
        Poll.open(tmp_path / "poll.db")
    assert "a-secret" not in (tmp_path / "poll.db").read_bytes().decode("latin-1")
    back = run("poll", "move", target, tmp_path / "back.db", "--name", name)
    assert back.exit_code == 0, back.output
    with Poll.open(tmp_path / "back.db", background=False) as again:
        assert kept(again)[: len(rows)] == rows


def fails(*_):
    raise OutputError("it differs")


def test_a_target_that_has_the_poll_is_refused_and_nothing_is_lost(tmp_path, monkeypatch):
    with made(tmp_path, name="one") as poll, made(tmp_path / "other.db", name="one") as other:
        answered(poll, ["ann"], 2)
        rows, others = kept(poll), kept(other)
        for target in ("other.db", "poll.db"):
            told = run("poll", "move", tmp_path / "poll.db", tmp_path / target)
            assert (told.exit_code, "already" in told.stderr) == (2, True), told.stderr
        monkeypatch.setattr(moving, "_compare", fails)
        with pytest.raises(OutputError, match="differs"):
            moving.move(poll.database, "one", tmp_path / "third.db")
        monkeypatch.undo()
        assert (kept(poll), kept(other)) == (rows, others)
        with pytest.raises(DataError, match="0 polls"):
            Poll.open(tmp_path / "third.db")


def test_what_was_written_otherwise_is_found_and_nothing_goes(tmp_path):
    with made(tmp_path, name="one") as poll:
        rows = kept(poll)
        moving.Database(tmp_path / "third.db", create=True).close()
        with sqlite3.connect(tmp_path / "third.db") as third:
            third.execute("CREATE TRIGGER spoil AFTER INSERT ON events BEGIN UPDATE events SET kind = 'x'; END")
        third.close()
        with pytest.raises(OutputError, match="not read again as it was"):
            moving.move(poll.database, "one", tmp_path / "third.db")
        assert kept(poll) == rows


def test_whoever_serves_a_poll_that_was_moved_away_is_told_so(tmp_path):
    with made(tmp_path, name="one") as poll, Poll.open(tmp_path / "poll.db", background=False) as served:
        question = served.ask("ann")[0]
        moving.move(poll.database, "one", tmp_path / "third.db")
        with pytest.raises(OutputError, match="was moved away"):
            served.tell(served.log.state.people[3].number, question.shown, "skip")


def test_nobody_writes_into_another_poll_that_was_made_where_theirs_was_before(tmp_path):
    with made(tmp_path, name="one") as poll, Poll.open(tmp_path / "poll.db", background=False) as served:
        answered(served, ["ann"], 3)
        question = served.ask("ann")[0]
        moving.move(poll.database, "one", tmp_path / "third.db")
        with made(tmp_path, name="two") as other:
            assert other.log.poll == served.log.poll  # SQLite gives the number of the one that went
            rows = kept(other)
            for act in (
                lambda: served.tell("ann", question.shown, "skip"), lambda: served.join("bob"),
                lambda: served.invite("Eve", "organiser"), served.look, lambda: served.export("events"),
            ):  # fmt: skip
                with pytest.raises(OutputError, match="was moved away"):
                    act()
            with pytest.raises(DataError, match='no poll "one"; it holds two'):
                served.refit()
            assert not served.readable()
            assert kept(other) == rows
            assert other.organisers() == []
            answered(other, ["carl"], 4)
        with pytest.raises(OutputError, match="was moved away"):
            served.look()
        assert len(served.log.state.people) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
def test_no_answer_is_acknowledged_in_a_file_that_was_removed_or_replaced(tmp_path):
    with made(tmp_path, name="one") as poll:
        answered(poll, ["ann"], 2)
        question = poll.ask("ann")[0]
        away = tmp_path / "away"
        away.mkdir()

        def move_files(source, target):
            for file in source.glob("poll.db*"):
                file.rename(target / file.name)

        move_files(tmp_path, away)
        for _ in range(2):  # there is no file, and then another one
            with pytest.raises(OutputError, match="removed or replaced"):
                poll.tell("ann", question.shown, "left")
            assert not poll.readable()
            if not (tmp_path / "poll.db").exists():
                made(tmp_path, name="one").disconnect()
        for file in tmp_path.glob("poll.db*"):
            file.unlink()
        move_files(away, tmp_path)
        assert poll.readable()
        poll.tell("ann", question.shown, "left")
    with Poll.open(tmp_path / "poll.db", background=False) as again:
        assert len(again.log.state.changes) == 3
