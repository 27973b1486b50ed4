"""Answers are kept whatever ends the process, wherever they are kept; and nothing is kept of who is erased."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from cases import MORE
from live.killed import kill_again_and_again
from live.polls import DRINKS, answered, made, reply
from predilect.errors import OutputError
from predilect.live import Poll

NAME, PID, PROPOSAL = "Zoë Quint-Unique", "panel-Ünique-99", "a proposal that nobody else would make, naïve"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Where a poll is kept."""
    if request.param == "sqlite":
        return str(tmp_path / "poll.db")
    address = request.getfixturevalue("postgres")
    name = f"polls{random.getrandbits(40)}"
    engine = sa.create_engine(address.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return address.replace("/postgres?", f"/{name}?")


@pytest.mark.slow
def test_every_acknowledged_answer_is_kept_once_whenever_it_is_killed(url):
    made(url, items=[f"item {k}" for k in range(40)]).disconnect()
    found = kill_again_and_again(url, 5 * MORE)
    assert (found.lost, found.doubled) == (0, 0)
    assert found.acknowledged > 20


@pytest.mark.slow
def test_two_processes_decide_on_the_same_log(url):
    with made(url) as one, Poll.open(url, background=False) as other:
        (question,) = one.ask("ann")
        answers = []

        def tell(poll):
            answers.append(poll.tell("ann", question.shown, "left", key="k"))

        threads = [threading.Thread(target=tell, args=(poll,)) for poll in (one, other) * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({told.answer for told in answers}) == 1
        assert [told.repeated for told in answers].count(False) == 1
        numbers = {one.join("bob"), other.join("bob"), one.join("bob")}
        assert len(numbers) == 1
        one.pause()
        other.log.refresh()
        assert other.status == "paused"


def traces(url: str) -> bytes:
    """All bytes that a database keeps in its files."""
    if "://" not in url:
        return b"".join(file.read_bytes() for file in Path(url).parent.glob("poll.db*"))
    folder = Path(url.partition("host=")[2]) / "data"
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("CHECKPOINT")
        oid = connection.exec_driver_sql("SELECT oid FROM pg_database WHERE datname = current_database()").scalar()
    engine.dispose()
    return b"".join(file.read_bytes() for file in (folder / "base" / str(oid)).iterdir())


def decoded(url: str) -> str:
    """All values of all tables."""
    told = []
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:") if "://" in url else f"sqlite:///{url}")
    with engine.connect() as connection:
        for table in sa.inspect(connection).get_table_names():
            for row in connection.exec_driver_sql(f"SELECT * FROM {table}"):
                told += [value if isinstance(value, str) else json.dumps(value, default=str) for value in row]
    engine.dispose()
    return "\n".join(told)


def found_of(url: str, words: list[str]) -> set[str]:
    """Which words are in values or bytes, however they are written."""
    values, content = decoded(url), traces(url)
    written = [("utf-8", 0), ("utf-16-le", 0), ("utf-16-be", 0), ("utf-32-le", 0), ("utf-32-be", 0)]
    return {word for word in words if word in values or json.dumps(word)[1:-1] in values
            or any(word.encode(code) in content for code, _ in written)}  # fmt: skip


def test_nothing_is_left_of_somebody_who_is_erased(url):
    secret = "the secret of somebody, of 32 random bytes"
    with made(url, proposals=True, pids="open") as poll:
        answered(poll, ["bob"], 3)
        number = poll.join(NAME, secret=secret, pid=PID, language="de")
        answered(poll, [NAME], 3)
        poll.undo(NAME)
        poll.propose_item(NAME, PROPOSAL, key="a key of theirs")
        accepted = poll.propose_item(NAME, "lemonade")
        poll.moderate(accepted, accept=True)
        words = [NAME, PID, PROPOSAL, "a key of theirs"]
        assert found_of(url, words) == set(words)
        others = poll.export("answers").filter(poll.export("answers")["user"] != f"p{number}").rows()
        n_events = len(poll.export("events"))
        with Poll.open(url, background=False) as other:
            poll.erase(NAME)
            assert found_of(url, [*words, "lemonad0"]) == set()
            for one in (poll, other):
                one.log.refresh()
                assert one.who(name=NAME) is None
                assert not one.has(number)
                assert one.export("answers").rows() == others
                assert all(change.answer.participant != number for change in one.log.state.changes)
                assert {item.name for item in one.log.state.active()} == {*DRINKS, "lemonade"}
                assert PROPOSAL not in {item.name for item in one.items}
                assert one.log.state.times_shown == [
                    sum(item in row["items"] for row in one.export("shown").to_dicts()) for item in
                    [item.name for item in one.items]
                ]  # fmt: skip
        events = poll.export("events")
        assert events["sequence"].to_list() == list(range(1, n_events + 2))
        assert f"p{number}" not in events["user"].to_list()
        with Poll.open(url, background=False) as again:
            assert again.export("answers").rows() == others
            assert again.log.state.due == poll.log.state.due
            assert again.log.state.n_events == poll.log.state.n_events
            assert [item.name for item in again.items] == [item.name for item in poll.items]
            assert again.log.state.times_shown == poll.log.state.times_shown
            # They may come back, as somebody new.
            assert again.join(NAME) != number


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mount") is None or os.geteuid() != 0, reason="needs root, to mount a disk")
def test_a_disk_that_is_full(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", disk], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no disk can be mounted here: {error.stderr.decode().strip()}")
    try:
        told = []
        source = random.Random(1)
        with made(disk, items=[f"{k} {'long name ' * 20}" for k in range(40)]) as poll:

            def fill():
                for k in range(5000):
                    (question,) = poll.ask(f"p{k}")
                    told.append(poll.tell(f"p{k}", question.shown, reply(question, source)).answer)

            for _ in range(2):
                with pytest.raises(OutputError, match=r"could not be used"):
                    fill()
        with Poll.open(disk / "poll.db", background=False) as poll:
            assert [change.sequence for change in poll.log.state.changes] == told
            assert len(told) > 20
    finally:
        time.sleep(0.1)
        subprocess.run(["umount", disk], check=True)
