"""``predilect poll`` in the terminal."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import get_args

import pytest

pytest.importorskip("sqlalchemy", reason="needs predilect[live]")
pytest.importorskip("fastapi", reason="needs predilect[live]")

from cli.running import run
from live.polls import answered, made
from predilect.cli.poll import ExportName, KindName, RoleName, StrategyName, _without_password
from predilect.live import Poll
from predilect.live.exports import Export
from predilect.live.settings import Kind, Strategy
from predilect.live.state import Role
from predilect.live.web.serving import Serving


@pytest.fixture
def poll(tmp_path):
    """A file with a poll, and its token."""
    (tmp_path / "ideas.txt").write_text("tea\n\n milk \njuice\n", encoding="utf-8")
    settings = ("--question", "Which?", "--strategy", "random", "--set", "limit=9", "--set", "public=yes")
    made = run("poll", "new", tmp_path / "poll.db", tmp_path / "ideas.txt", *settings, "--format", "json")
    assert made.exit_code == 0, made.output
    return tmp_path / "poll.db", json.loads(made.stdout)["token"]


@pytest.mark.parametrize(
    ("names", "there"), [(KindName, Kind), (StrategyName, Strategy), (ExportName, Export), (RoleName, Role)]
)
def test_the_command_offers_what_there_is(names, there):
    assert tuple(names) == get_args(there)


def test_a_poll_is_made_answered_and_exported(poll, tmp_path):
    file, token = poll
    with Poll.open(file, background=False) as opened:
        assert opened.is_organiser(token)
        assert (opened.settings.limit, opened.settings.public) == (9, True)
        assert [item.name for item in opened.items] == ["tea", "milk", "juice"]
        answered(opened, ["ann", "bob"], 3)
    out = tmp_path / "answers.csv"
    assert run("poll", "export", file, "answers", "-o", out).exit_code == 0
    ranked = run("check", out)
    assert ranked.exit_code == 0, ranked.output
    assert "6 answers" in ranked.output or "6 rows" in ranked.output
    told = run("poll", "export", file, "items", "--format", "json")
    assert [row["times_shown"] for row in json.loads(told.stdout)["items"]] == [4, 4, 4]
    assert run("poll", "export", file, "answers", "-o", tmp_path / "answers.txt").exit_code == 2
    assert run("poll", "export", file, "answers", "-o", out).exit_code == 2  # is there already


def test_items_come_from_a_table_with_attributes(tmp_path):
    (tmp_path / "ideas.csv").write_text("item,image,cost\ntea,https://x.example/t.png,1\nmilk,,2\n", encoding="utf-8")
    made = run("poll", "new", tmp_path / "p.db", tmp_path / "ideas.csv", "--question", "Which?")
    assert made.exit_code == 0
    assert "Images of x.example are not shown without --set images=x.example" in made.output
    with Poll.open(tmp_path / "p.db", background=False) as opened:
        first, second = opened.items
        assert (first.image, first.attributes, second.image) == ("https://x.example/t.png", {"cost": "1"}, "")


def test_status_says_how_it_stands(poll):
    file, _ = poll
    with Poll.open(file, background=False) as opened:
        answered(opened, ["ann", "bob"], 3)
    told = run("poll", "status", file)
    assert told.exit_code == 0, told.output
    assert "2 of 2 people gave 6 answers." in told.output
    whole = json.loads(run("poll", "status", file, "--format", "json").stdout)
    assert [row["n"] for row in whole["boards"][0]["board"]] == [4, 4, 4]


def test_a_poll_is_set_paused_closed_and_opened(poll):
    file, _ = poll
    assert run("poll", "set", file, "limit=12", "own_ranking=5", "proposals=yes", "images=").exit_code == 0
    for verb, status in (("pause", "paused"), ("close", "closed"), ("open", "open")):
        assert run("poll", verb, file).exit_code == 0
        with Poll.open(file, background=False) as opened:
            assert opened.status == status
            assert (opened.settings.limit, opened.settings.own_ranking, opened.settings.proposals) == (12, 5, True)
    for wrong, said in (("nothing", "KEY=VALUE"), ("kinds=pair", 'Did you mean "kind"')):
        told = run("poll", "set", file, wrong)
        assert told.exit_code == 2
        assert said in told.output
    told = run("poll", "set", file, "limit=3", "own_ranking=5")
    assert told.exit_code == 2
    assert "own_ranking=5 does nothing here" in told.output


def test_items_are_added_and_retired(poll, tmp_path):
    file, _ = poll
    (tmp_path / "more.csv").write_text("item,image\ncocoa,https://x.example/c.png\nmate,\n", encoding="utf-8")
    told = run("poll", "add", file, tmp_path / "more.csv")
    assert told.exit_code == 0, told.output
    assert "Added 2 items" in told.output
    assert f"predilect poll set {file} images=x.example" in " ".join(told.stderr.split())
    for wrong in (["add", file, tmp_path / "more.csv"], ["retire", file, "mate", "mata"], ["retire", file]):
        assert run("poll", *wrong).exit_code == 2
    assert 'Did you mean "mate"' in run("poll", "retire", file, "mata").output
    told = run("poll", "retire", file, "mate", "tea")
    assert told.exit_code == 0, told.output
    with Poll.open(file, background=False) as opened:
        states = {item.name: item.state for item in opened.items}
    assert states == {"tea": "retired", "milk": "active", "juice": "active", "cocoa": "active", "mate": "retired"}
    few = run("poll", "retire", file, "milk", "juice")
    assert few.exit_code == 2
    assert "asks no more about milk" in few.output  # what was done is said


def test_the_polls_of_a_folder_are_listed(poll, tmp_path):
    file, _ = poll
    with made(tmp_path / "other.db", name="other", question="Which drink?") as other:
        answered(other, ["ann"], 2)
        other.pause()
    rows = json.loads(run("poll", "list", tmp_path, "--format", "json").stdout)["polls"]
    (one,) = json.loads(run("poll", "list", file, "--format", "json").stdout)["polls"]
    assert one in rows
    assert next(row for row in rows if row["poll"] == "other") == {
        "poll": "other", "status": "paused", "question": "Which drink?", "items": 5, "people": 1, "answers": 2,
        "place": str(tmp_path / "other.db"),
    }  # fmt: skip
    assert "Which drink?" in run("poll", "list", tmp_path).stdout
    (tmp_path / "empty").mkdir()
    empty = run("poll", "list", tmp_path / "empty")
    assert (empty.exit_code, "There are no polls" in empty.output) == (0, True)
    assert json.loads(run("poll", "list", tmp_path / "empty", "--format", "json").stdout)["polls"] == []
    assert run("poll", "list", tmp_path / "nothing.db").exit_code == 2


def test_no_password_is_printed():
    assert _without_password("postgresql://me:se@cret@db/x") == "postgresql://me:***@db/x"
    assert _without_password("postgresql+psycopg://db/x") == "postgresql+psycopg://db/x"


def test_where_a_poll_is_and_how_it_is_served_may_stand_in_the_environment(poll, monkeypatch):
    file, _ = poll
    monkeypatch.setenv("PREDILECT_POLL", str(file))
    for words in (["status"], ["pause"], ["close"], ["open"], ["list"], ["export"], ["erase", "--expired"], ["token"]):
        told = run("poll", *words)
        assert told.exit_code == 0, (words, told.output)
    assert run("poll", "status", "elsewhere.db").exit_code == 2  # what is typed counts
    served = []
    monkeypatch.setattr("predilect.live.web.serving.run", lambda told, _: served.append(told))
    told = {"HOST": "0.0.0.0", "PORT": "8001", "ROOT_PATH": "/polls", "HTTPS": "yes", "PROXIES": "10.0.0.1 10.0.0.2",
            "PROCESSES": "2", "JOINS": "50", "ACCESS_LOG": "1", "CODE": "a-secret"}  # fmt: skip
    for name, value in told.items():
        monkeypatch.setenv(f"PREDILECT_SERVE_{name}", value)
    assert run("poll", "serve").exit_code == 0
    assert run("poll", "serve", "--port", "0", "--code", "another").exit_code == 0
    assert served[0] == Serving(
        str(file), "0.0.0.0", 8001, "/polls", True, ("10.0.0.1", "10.0.0.2"), 2, 50, True, None, "a-secret"
    )
    assert (served[1].port, served[1].code, served[1].joins) == (0, "another", 50)
    text = run("poll", "serve", "--help").stdout
    page = (Path(__file__).parents[2] / "docs/howto/live-polls.md").read_text(encoding="utf-8")
    for name in ("PREDILECT_POLL", *(f"PREDILECT_SERVE_{one}" for one in told)):
        assert name in "".join(text.replace("│", "").split()), name
        assert name in page or name.removeprefix("PREDILECT_SERVE") in page, name
    monkeypatch.setenv("PREDILECT_SERVE_PORT", "many")
    assert run("poll", "serve").exit_code == 2


def test_people_are_erased_tokens_renewed_and_files_copied(poll, tmp_path):
    file, token = poll
    with Poll.open(file, background=False) as opened:
        answered(opened, ["ann", "bob", "cas"], 1)
        number = opened.who(name="bob")
    assert run("poll", "erase", file, "ann", f"p{number}").exit_code == 0
    assert run("poll", "erase", file, "ann").exit_code == 2
    assert run("poll", "erase", file).exit_code == 2
    new = run("poll", "token", file).stdout.strip()
    signature = run("poll", "token", file, "--pid", "7").stdout.strip()
    assert run("poll", "backup", file, tmp_path / "copy.db").exit_code == 0
    assert run("poll", "backup", file, tmp_path / "copy.db").exit_code == 2
    with Poll.open(tmp_path / "copy.db", background=False) as opened:
        assert opened.is_organiser(new)
        assert not opened.is_organiser(token)
        assert opened.sign("7") == signature
        assert len(opened.export("answers")) == 1
        opened.change(retention_days=1)
        opened.close()
        assert opened.expired(time.time()) == []
        assert len(opened.expired(time.time() + 90_000)) == 1
    assert run("poll", "erase", tmp_path / "copy.db", "--expired").exit_code == 0


def test_an_id_of_an_export_names_that_person(tmp_path):
    file = tmp_path / "poll.db"
    with made(tmp_path) as opened:
        numbers = {name: opened.join(name) for name in [f"p{k}" for k in range(1, 10)]}
    for name in ("p1", "p2"):
        assert run("poll", "erase", file, name).exit_code == 0
    for name in [f"p{number}" for number in numbers.values() if f"p{number}" in numbers]:
        told = run("poll", "erase", file, name)  # be it an id of somebody who was erased
        assert told.exit_code == 2
        assert f"name of another, p{numbers[name]}. Say which: --ids {name}, or --ids p{numbers[name]}" in told.output
    number = numbers["p9"]
    with Poll.open(file, background=False) as opened:
        assert run("poll", "erase", file, "--ids", "p9").exit_code == 0
        opened.log.refresh()
        assert not opened.has(9)
        assert opened.has(number)
        assert run("poll", "erase", file, "--ids", f"p{number}", "p999").exit_code == 2
        assert run("poll", "erase", file, "--ids", "ann").exit_code == 2
        opened.log.refresh()
        assert opened.has(number)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "nowhere.db"], "there is no poll"),
        (["new", "x.db", "nothing.txt", "--question", "Which?"], "nothing.txt"),
        (["serve", "nowhere.db"], "there is no poll"),
        (["new", ".", "ideas.txt", "--question", "Which?"], "is a folder. Name a file in it"),
        (["status", "two.db"], "2 polls (one, two). Say which one: --name NAME"),
    ],
)
def test_mistakes_are_named(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ideas.txt").write_text("tea\nmilk\n", encoding="utf-8")
    for name in ("one", "two"):
        made("two.db", name=name).disconnect()
    told = run("poll", *words)
    assert told.exit_code == 2
    assert said in told.output


def test_a_port_that_is_in_use_is_named(poll):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        told = run("poll", "serve", poll[0], "--port", str(port))
    assert told.exit_code == 1
    assert f"nothing can listen on 127.0.0.1, port {port}" in told.output
    assert "participants" not in told.output


def test_settings_that_are_none(tmp_path):
    (tmp_path / "ideas.txt").write_text("tea\nmilk\n", encoding="utf-8")
    start = ["poll", "new", tmp_path / "poll.db", tmp_path / "ideas.txt", "--question", "Which?"]
    for one, said in (
        ("limits=3", 'Did you mean "limit"'),
        ("public=maybe", "yes or no"),
        ("limit", "KEY=VALUE"),
        ("limit=x", "number"),
    ):
        told = run(*start, "--set", one)
        assert told.exit_code == 2
        assert said in told.output


@pytest.mark.slow
def test_it_serves_until_it_is_told_to_stop(poll):
    file, _ = poll
    command = [sys.executable, "-m", "predilect", "poll", "serve", file, "--port", "0", "--stop-after", "100"]
    told = os.environ | {"PREDILECT_SERVE_CODE": "the-secret"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=told) as process:
        try:
            line, then = process.stdout.readline(), process.stdout.readline()  # communicate() loses what was buffered
            assert "participants http://127.0.0.1:" in line
            assert "with the code that was set" in then
            port = int(line.split("127.0.0.1:")[1].split("/")[0])
            for _ in range(200):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                        assert answer.read() == b"ok\n"
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                pytest.fail("it does not answer")
            os.kill(process.pid, signal.SIGTERM)
            out, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, error
    assert "every answer that was acknowledged is kept" in out
    assert "the-secret" not in line + then + out + error
