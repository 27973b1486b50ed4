"""Names and values that are made to mislead or to break: a clear message, or a result that does no harm."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from cli.running import QUICK, files_beside, run
from predilect._text import printable

HOSTILE = "\x1b]0;pwned\x07\x9b31m"
TEXT = "user,left,right,winner\nu,x,y,x\nv,y,z,y\nw,z,x,z\n"
NOT_UTF8 = os.fsdecode(b"v\xff")


def harmless(text):
    return all(printable(line) == line for line in text.split("\n"))


def started(*arguments, closed="", **options):
    """The command in a process of its own; descriptors named in ``closed`` are closed before."""
    words = " ".join('"$%d"' % (place + 1) for place in range(len(arguments)))  # noqa: UP031
    shell = f'exec "$0" -m predilect {words} {closed}'
    command = ["bash", "-c", shell, sys.executable, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, **options)


@pytest.fixture
def hostile(tmp_path):
    """Votes on items, and in columns, whose names are commands to a terminal."""
    names = [HOSTILE, f"{HOSTILE}\nforged line", "plain"]
    path = tmp_path / "votes.csv"
    rows = [
        {"user": f"u{HOSTILE}", "left": a, "right": b, "winner": a, HOSTILE: "one"}
        for a in names
        for b in names
        if a < b
    ]
    pl.DataFrame(rows).write_csv(path)
    return path


def test_commands_of_a_file_reach_no_terminal(hostile, tmp_path):
    out = tmp_path / "out"
    pairs = tmp_path / "pairs.csv"
    pl.DataFrame({"left": [HOSTILE], "right": ["plain"], "user": [f"new{HOSTILE}"]}).write_csv(pairs)
    for command in (
        ["check", hostile], ["check", hostile, "--json"], ["rank", hostile, "--out", out, *QUICK],
        ["rank", hostile, "--by", HOSTILE, "--pooled", "--json"],
        ["predict", out, pairs, "--json"], ["predict", out, pairs, "--quiet", "--out", tmp_path / "p.csv"],
        ["ask", out, "--json"], ["decide", out, "--options", f"{HOSTILE},plain", "--json"],
    ):  # fmt: skip
        ran = run(*command)
        assert ran.exit_code == 0, ran.output
        assert harmless(ran.stdout)
        assert harmless(ran.stderr)
    assert json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))["board"][0]["item"].startswith(HOSTILE)
    for command in (
        ["check", hostile, "--left", HOSTILE + "?"], ["check", hostile, "--winner", HOSTILE],
        ["check", tmp_path / f"{HOSTILE}.csv"], ["rank", hostile, "--by", f"no {HOSTILE}"],
        ["rank", hostile, "--segment", HOSTILE], ["rank", hostile, "--segment", f"no {HOSTILE}"],
        ["predict", tmp_path / HOSTILE, pairs],
    ):  # fmt: skip
        ran = run(*command)
        assert ran.exit_code == 2, ran.output
        assert "\\x1b]0;pwned\\x07" in ran.stderr
        assert harmless(ran.stdout)
        assert harmless(ran.stderr)


@pytest.mark.slow
def test_predictions_are_exact_for_a_program_and_harmless_on_a_terminal(hostile, tmp_path):
    out, pairs = tmp_path / "out", tmp_path / "pairs.csv"
    assert run("rank", hostile, "--out", out, *QUICK).exit_code == 0
    pl.DataFrame({"left": [HOSTILE], "right": ["plain"]}).write_csv(pairs)
    piped = run("predict", out, pairs).stdout
    assert pl.read_csv(io.StringIO(piped))["left"].to_list() == [HOSTILE]
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "predilect", "predict", str(out), str(pairs)]
    ran = subprocess.run(command, check=False, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode().replace("\r\n", "\n")
    os.close(ours)
    assert ran.returncode == 0, ran.stderr
    assert harmless(shown)
    assert "\\x1b]0;pwned\\x07" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "closed"),
    [("check", ">&-"), ("check", "2>&-"), ("check", ">&- 2>&-"), ("rank", ">&-"), ("predict", ">&-"), ("ask", ">&-")],
)
def test_nobody_listens(results, tmp_path, command, closed):
    votes = tmp_path / "votes.csv"
    votes.write_text(TEXT)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("left,right\napple,banana\n")
    arguments = {
        "check": [votes], "rank": [votes, "--pooled", "--out", tmp_path / "out"], "predict": [results, pairs],
        "ask": [results],
    }[command]  # fmt: skip
    ran = started(command, *arguments, closed=closed)
    assert ran.returncode == 0
    assert b"Traceback" not in ran.stderr
    assert votes.read_text() == TEXT
    assert (tmp_path / "out" / "leaderboard.csv").exists() == (command == "rank")


@pytest.mark.parametrize("option", [["--out"], ["--tie"], ["--by"], ["--segment"], ["--user"], ["--items"], []])
def test_names_that_are_no_utf8_are_refused_before_any_work(tmp_path, option):
    votes = tmp_path / ("votes.csv" if option else NOT_UTF8 + ".csv")
    votes.write_text(TEXT)
    ran = run("rank", votes, *option, *([tmp_path / NOT_UTF8] if option else []))
    assert ran.exit_code == 2, ran.output
    assert "is not UTF-8" in ran.stderr
    assert "v\\udcff" in ran.stderr
    assert harmless(ran.stderr)
    assert files_beside(tmp_path) == [votes.name]


def test_results_in_a_folder_that_is_no_utf8_are_refused_before_any_work(tmp_path, monkeypatch):
    (tmp_path / NOT_UTF8).mkdir()
    monkeypatch.chdir(tmp_path / NOT_UTF8)
    Path("votes.csv").write_text(TEXT)
    assert run("check", "votes.csv").exit_code == 0
    ran = run("rank", "votes.csv", "--out", "out")
    assert ran.exit_code == 2, ran.output
    assert "is not UTF-8" in ran.stderr
    assert files_beside(Path()) == ["votes.csv"]


@pytest.mark.parametrize("command", [
    ["check", "{long}"], ["check", "{votes}", "--items", "{long}"], ["check", "{votes}", "--item-map", "{long}"],
    ["rank", "{votes}", "--people", "{long}"], ["predict", "{long}", "{votes}"], ["ask", "{long}"],
    ["compress", "{long}", "--out", "out"],
])  # fmt: skip
def test_an_input_whose_name_is_too_long_is_an_input(tmp_path, command):
    votes = tmp_path / "votes.csv"
    votes.write_text(TEXT)
    ran = run(*(word.format(long="a" * 300 + ".csv", votes=votes) for word in command))
    assert ran.exit_code == 2, ran.output
    # Later versions of Python take such a folder for one that is not there.
    assert "File name too long" in ran.stderr or "there is no folder" in ran.stderr
    assert "written" not in ran.stderr


def test_columns_that_a_csv_cannot_hold_are_named(results, tmp_path):
    row = {"left": "apple", "right": "banana", "tags": [1], "x": None}
    (tmp_path / "p.jsonl").write_text(json.dumps(row) + "\n")
    for out in ([], ["--out", tmp_path / "p.csv"]):
        ran = run("predict", results, tmp_path / "p.jsonl", *out)
        assert ran.exit_code == 2, ran.output
        assert 'column "tags" holds values of type List(Int64), which a CSV cannot hold' in ran.stderr
    assert json.loads(run("predict", results, tmp_path / "p.jsonl", "--json").stdout)["predictions"][0]["tags"] == [1]
    for name in ("p.out.jsonl", "p.parquet"):
        assert run("predict", results, tmp_path / "p.jsonl", "--out", tmp_path / name).exit_code == 0


def test_every_kind_of_value_beside_the_pairs_comes_out_as_json(results, tmp_path):
    from datetime import date, timedelta

    pl.DataFrame({
        "left": ["apple"], "right": ["banana"], "day": [date(2024, 1, 2)], "span": [timedelta(1)], "bytes": [b"\xff"],
        "endless": [float("inf")], "no number": [float("nan")],
    }).write_parquet(tmp_path / "p.parquet")  # fmt: skip
    ran = run("predict", results, tmp_path / "p.parquet", "--json")
    assert ran.exit_code == 0, ran.output
    row = json.loads(ran.stdout)["predictions"][0]
    assert row["day"] == "2024-01-02"
    assert row["endless"] is None
    assert row["no number"] is None


FORMULAS = [
    '=HYPERLINK("http://example.org")',
    "@SUM(A1)",
    "+1+1",
    "-2+3",
    "\t=1",
    "\r=1",
    "-1e3",
    "+1",
    "-",
    "plain",
    "'=x",
]
AS_CELLS = [
    '\'=HYPERLINK("http://example.org")',
    "'@SUM(A1)",
    "'+1+1",
    "'-2+3",
    "'\t=1",
    "'\r=1",
    "-1e3",
    "+1",
    "'-",
    "plain",
    "'=x",
]


def test_no_id_becomes_a_formula_in_a_spreadsheet_and_other_files_keep_it(tmp_path):
    votes = tmp_path / "votes.jsonl"
    pl.DataFrame({
        "left": FORMULAS, "right": FORMULAS[1:] + FORMULAS[:1], "winner": FORMULAS, "user": FORMULAS,
        "part": ["=1+1"] * len(FORMULAS),
    }).write_ndjson(votes)  # fmt: skip
    out = tmp_path / "out"
    ran = run("rank", votes, "--winner-is", "item", "--by", "part", "--out", out, *QUICK)
    assert ran.exit_code == 0, ran.output
    with (out / "leaderboard.csv").open(newline="", encoding="utf-8") as file:
        assert {row["item"] for row in csv.DictReader(file)} == set(AS_CELLS)
    with (out / "segments.csv").open(newline="", encoding="utf-8") as file:
        assert {row["segment"] for row in csv.DictReader(file)} == {"'=1+1"}
    board = json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))["board"]
    assert {row["item"] for row in board} == set(FORMULAS)
    users = pl.read_parquet(out / "users.parquet")
    assert set(users["item"]) == set(users["user"]) == set(FORMULAS)


def test_a_model_whose_description_is_nested_deeply_is_damaged(results, tmp_path):
    (tmp_path / "model.json").write_text('{"schema": ' + "[" * 200_000)
    ran = run("predict", tmp_path, results / "leaderboard.csv")
    assert ran.exit_code == 2, ran.output
    assert "not readable JSON" in ran.stderr


def test_twenty_megabytes_of_winner_are_not_printed(tmp_path):
    (tmp_path / "v.csv").write_text("left,right,winner\na,b," + "x" * 20_000_000 + "\n")
    ran = run("check", tmp_path / "v.csv")
    assert ran.exit_code == 2
    assert len(ran.stderr) < 700
    assert "--drop-unknown" in ran.stderr


@pytest.mark.parametrize("command", ["check", "rank"])
def test_a_map_to_its_own_ids_is_refused(tmp_path, command):
    (tmp_path / "v.csv").write_text("left,right,winner\na,b,a\nb,a,a\n")
    (tmp_path / "map.csv").write_text("item,model\na,x\nb,y\n")
    ran = run(command, tmp_path / "v.csv", "--item-map", tmp_path / "map.csv", "--item-map-column", "item")
    assert ran.exit_code == 2
    assert "--item-map-column" in ran.stderr
