"""Names that are too long, markup or written in any direction; folders for files, and places to write nothing to."""

from __future__ import annotations

import csv
import json
from html import escape
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest

from cli.running import QUICK, files_beside, run
from drawings import Page
from predilect import Population, load
from predilect import read as read_file
from predilect._base.text import printable
from predilect.errors import DataError, OutputError

NAMES = [
    "x" * 300, "x" * 299 + "y", "<script>alert(1)</script>", "<svg onload=alert(1)>", "<b>bold</b>&amp;\"'",
    "]]>--><!--",    "שלום עולם", "مرحبا", "a\u202eb", "tab\tand\nline", "\x01\x1b[31m", "=1+1", "[red]日本語😀[/red]",
]  # fmt: skip
PERSON = "ann<i>\u202e"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Answers on the names, features of the items, and what a ranking wrote of them."""
    place = tmp_path_factory.mktemp("names")
    rows = [[PERSON, a, b, a, "a<b>"] for a, b in combinations(NAMES, 2)] + [
        ["bob", NAMES[-1], NAMES[0], NAMES[0], "c"]
    ]
    for name, header, table in (
        ("votes", ["user", "left", "right", "winner", "part <i>"], rows),
        ("pairs", ["user", "left", "right"], [row[:3] for row in rows[:3]]),
        ("items", ["item", "size <b>\u202e"], [[one, number] for number, one in enumerate(NAMES)]),
    ):
        with (place / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *table])
    out, page = place / "out", place / "board.html"
    ran = run(
        "rank", place / "votes.csv", "--items", place / "items.csv", "--segment", "part <i>", "-o", out, *QUICK,
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    assert run("report", out, "-o", page).exit_code == 0
    (place / "said").write_text(ran.stdout + ran.stderr, encoding="utf-8")
    return place


def is_harmless(text):
    return all(printable(line) == line for line in text.split("\n"))


def test_files_keep_the_names_and_the_terminal_obeys_none(place):
    assert is_harmless((place / "said").read_text(encoding="utf-8"))
    board = json.loads((place / "out" / "leaderboard.json").read_text(encoding="utf-8"))["board"]
    assert {row["item"] for row in board} == set(NAMES)
    with (place / "out" / "leaderboard.csv").open(newline="", encoding="utf-8") as file:
        assert {row["item"].removeprefix("'") for row in csv.DictReader(file)} == set(NAMES)
    assert set(load(place / "out").items_.ids) == set(NAMES)
    assert set(pl.read_parquet(place / "out" / "users.parquet")["user"]) == {PERSON, "bob"}


def test_the_page_shows_names_as_text(place):
    text = (place / "board.html").read_text(encoding="utf-8")
    for name in ("<script>alert(1)</script>", "<svg onload=alert(1)>", "<b>bold</b>"):
        assert name not in text
        assert escape(name) in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    read = Page(text)
    assert "שלום עולם" in read.text
    assert "[red]日本語😀[/red]" in read.text
    assert not [tag for tag in read.all("svg") if "onload" in str(tag)]


@pytest.mark.parametrize("command", [
    ["check", "votes.csv", "--items", "items.csv"], ["predict", "out", "pairs.csv", "--out", "p.csv"],
    ["ask", "out", PERSON, "--format", "json"], ["decide", "out", PERSON, "שלום עולם", "=1+1", "--format", "json"],
    ["show", "out"], ["show", "out", "שלום עולם", "=1+1"], ["show", "out", "--user", PERSON, "--format", "table"],
    ["worth", "out"], ["compare", "out", "out"], ["rank", "votes.csv", "--by", "part <i>", *QUICK],
])  # fmt: skip
def test_commands(place, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name in ("votes.csv", "pairs.csv", "items.csv", "out"):
        Path(name).symlink_to(place / name)
    ran = run(*command)
    assert ran.exit_code == 0, ran.output
    assert is_harmless(ran.stdout)
    assert is_harmless(ran.stderr)


FOLDER = [
    ["check", "{}.csv"], ["rank", "votes.csv", "--items", "{}.csv"], ["rank", "votes.csv", "--people", "{}.csv"],
    ["rank", "votes.csv", "--map", "{}.csv"], ["report", "out", "-o", "{}"], ["show", "{}"], ["worth", "{}"],
    ["compare", "{}", "out"], ["report", "out", "--compare", "{}", "-o", "b.html"], ["predict", "{}", "pairs.csv"],
    ["predict", "out", "{}.csv"], ["predict", "out", "pairs.csv", "--out", "{}.csv", "--force"], ["ask", "{}"],
    ["ask", "out", "--candidates", "{}.csv"], ["decide", "{}", "u", "a", "b"], ["simulate", "out", "{}.csv"],
    ["simulate", "{}", "pairs.csv"], ["report", "{}", "-o", "b.html"],
    ["rank", "votes.csv", "--out", "votes.csv", *QUICK], ["predict", "votes.csv", "pairs.csv"],
]  # fmt: skip


@pytest.mark.parametrize("command", FOLDER, ids=lambda command: " ".join(command[:4]))
def test_a_folder_for_a_file_and_a_file_for_a_folder(place, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name in ("votes.csv", "pairs.csv", "out"):
        Path(name).symlink_to(place / name)
    for name in ("folder", "folder.csv"):
        Path(name).mkdir()
    before = files_beside(tmp_path)
    ran = run(*[word.format("folder") for word in command])
    assert ran.exit_code == 2, ran.output
    assert ran.stderr.count("Error: ") == 1
    told = ("is a directory", "is a folder", "is a file", "holds no model", "is what is read")
    assert any(word in ran.stderr for word in told)
    assert files_beside(tmp_path) == before


# Nobody may write there, not even root.
NOWHERE = [
    ["rank", "{votes}", "--out", "/proc/out", *QUICK], ["report", "{out}", "--out", "/proc/board.html"],
    ["predict", "{out}", "{pairs}", "--out", "/proc/p.csv"], ["worth", "{out}", "--out", "/proc/w"],
]  # fmt: skip


@pytest.mark.parametrize("command", NOWHERE, ids=lambda command: " ".join(command[:4]))
def test_a_place_where_nothing_can_be_written(place, command):
    names = {"votes": place / "votes.csv", "pairs": place / "pairs.csv", "out": place / "out"}
    ran = run(*[word.format(**names) for word in command])
    assert ran.exit_code == 1, ran.output
    assert ran.stderr.count("Error: ") == 1
    assert f"{command[command.index('--out') + 1]} could not be" in ran.stderr


def test_places_in_python(place, tmp_path):
    model = load(place / "out")
    (tmp_path / "file").touch()
    for path, why in (("/proc/m", "No such file"), (tmp_path / "file" / "m", "file is no folder")):
        with pytest.raises(OutputError, match=f"m could not be written: .*{why}.*Nothing half-written"):
            model.save(path)
    with pytest.raises(FileExistsError, match="exists already"):
        model.save(tmp_path / "file")
    with pytest.raises(DataError, match="is a folder, and the report needs a file"):
        model.report(tmp_path, overwrite=True)
    with pytest.raises(DataError, match="is a directory; name one file"):
        read_file(tmp_path)
    with pytest.raises(DataError, match="is a file, and no model"):
        Population.load(tmp_path / "file")
    (tmp_path / "round.csv").symlink_to("round.csv")
    with pytest.raises(DataError, match=r"cannot be opened|no file"):
        read_file(tmp_path / "round.csv")
    for name in ("x" * 10_000, "\x1b[31m", PERSON + "?"):
        with pytest.raises(DataError, match="user ids are not known") as caught:
            model.rank(name)
        assert is_harmless(str(caught.value))
        assert len(str(caught.value)) < 1000
