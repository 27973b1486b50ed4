"""Names and values that are made to mislead or to break: a clear message, or a result that does no harm."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import predilect
from cli.running import QUICK, files_beside, run
from predilect._base.text import printable
from predilect.data.formulas import as_before, no_formula
from predilect.data.read.readers import read_table
from tolerances import ITERATIVE

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


@pytest.mark.slow
def test_commands_of_a_file_reach_no_terminal(hostile, tmp_path):
    out = tmp_path / "out"
    pairs = tmp_path / "pairs.csv"
    pl.DataFrame({"left": [HOSTILE], "right": ["plain"], "user": [f"new{HOSTILE}"]}).write_csv(pairs)
    for command in (
        ["check", hostile], ["check", hostile, "--format", "json"], ["rank", hostile, "--out", out, *QUICK],
        ["rank", hostile, "--by", HOSTILE, "--personal", "no", "--format", "json"],
        ["predict", out, pairs, "--format", "json"], ["predict", out, pairs, "--quiet", "--out", tmp_path / "p.csv"],
        ["ask", out, "--format", "json"], ["decide", out, "u", HOSTILE, "plain", "--format", "json"],
        ["show", out], ["show", out, HOSTILE, "plain", "--format", "table"], ["ask", out, "--format", "table"],
    ):  # fmt: skip
        ran = run(*command)
        assert ran.exit_code == 0, ran.output
        assert harmless(ran.stdout)
        assert harmless(ran.stderr)
    assert json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))["board"][0]["item"].startswith(HOSTILE)
    for command in (
        ["check", hostile, "-c", f"left={HOSTILE}?"], ["check", hostile, "-c", f"answer={HOSTILE}"],
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
        "check": [votes], "rank": [votes, "--personal", "no", "--out", tmp_path / "out"], "predict": [results, pairs],
        "ask": [results],
    }[command]  # fmt: skip
    ran = started(command, *arguments, closed=closed)
    assert ran.returncode == 0
    assert b"Traceback" not in ran.stderr
    assert votes.read_text() == TEXT
    assert (tmp_path / "out" / "leaderboard.csv").exists() == (command == "rank")


@pytest.mark.parametrize("option", [["--out"], ["-c"], ["--by"], ["--segment"], ["--map"], ["--items"], []])
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
    ["check", "{long}"], ["check", "{votes}", "--items", "{long}"], ["check", "{votes}", "--map", "{long}"],
    ["rank", "{votes}", "--people", "{long}"], ["predict", "{long}", "{votes}"], ["ask", "{long}"],
    ["show", "{long}"], ["compare", "{long}", "{long}"],
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
    assert json.loads(run("predict", results, tmp_path / "p.jsonl", "--format", "json").stdout)["predictions"][0][
        "tags"
    ] == [1]
    for name in ("p.out.jsonl", "p.parquet"):
        assert run("predict", results, tmp_path / "p.jsonl", "--out", tmp_path / name).exit_code == 0


def test_every_kind_of_value_beside_the_pairs_comes_out_as_json(results, tmp_path):
    from datetime import date, timedelta

    pl.DataFrame({
        "left": ["apple"], "right": ["banana"], "day": [date(2024, 1, 2)], "span": [timedelta(1)], "bytes": [b"\xff"],
        "endless": [float("inf")], "no number": [float("nan")],
    }).write_parquet(tmp_path / "p.parquet")  # fmt: skip
    ran = run("predict", results, tmp_path / "p.parquet", "--format", "json")
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
    "''=x",
]


def test_no_id_becomes_a_formula_in_a_spreadsheet_and_other_files_keep_it(tmp_path):
    votes = tmp_path / "votes.jsonl"
    pl.DataFrame({
        "left": FORMULAS, "right": FORMULAS[1:] + FORMULAS[:1], "winner": FORMULAS, "user": FORMULAS,
        "part": ["=1+1"] * len(FORMULAS),
    }).write_ndjson(votes)  # fmt: skip
    out = tmp_path / "out"
    ran = run("rank", votes, "--read", "answer-is=item", "--by", "part", "--out", out, *QUICK)
    assert ran.exit_code == 0, ran.output
    with (out / "leaderboard.csv").open(newline="", encoding="utf-8") as file:
        assert {row["item"] for row in csv.DictReader(file)} == set(AS_CELLS)
    with (out / "segments.csv").open(newline="", encoding="utf-8") as file:
        assert {row["segment"] for row in csv.DictReader(file)} == {"'=1+1"}
    board = json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))["board"]
    assert {row["item"] for row in board} == set(FORMULAS)
    users = pl.read_parquet(out / "users.parquet")
    assert set(users["item"]) == set(users["user"]) == set(FORMULAS)


def obeyed(text):
    """Cells that a spreadsheet would obey."""
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    return [
        cell for cell in cells if re.match(r"[=+\-@\t\r]", cell) and not re.fullmatch(r"[+-][\d.]+(e[+-]?\d+)?", cell)
    ]


@pytest.mark.slow
def test_no_csv_that_a_command_writes_or_prints_holds_a_formula(tmp_path):
    ids = FORMULAS[:6]
    votes, pairs, items = tmp_path / "votes.csv", tmp_path / "pairs.jsonl", tmp_path / "items.csv"
    rows = [
        [user, a, b, a, "=b" if user in ids[:3] else "@c"] for user in ids for a, b in itertools.combinations(ids, 2)
    ]
    pl.DataFrame(rows, ["user", "left", "right", "winner", "part"], orient="row").write_csv(votes)
    pl.DataFrame(rows[:3], ["user", "left", "right", "=note", "part"], orient="row").write_ndjson(pairs)
    table = pl.DataFrame(
        {"item": ids, "=size": ["=1", "@2", "=1", "@2", "=1", "@2"], "price": [1.0, 2.0, 3.0, 4.0, 5.0, 6.5]}
    )
    table.write_csv(items)
    scenarios = tmp_path / "scenarios.csv"
    pl.DataFrame({"scenario": ["=1"] * 3, "item": ids[:3]}).write_csv(scenarios)
    out, again = tmp_path / "out", tmp_path / "again"
    for place, more in ((out, ("--segment", "part")), (again, ("--by", "part"))):
        ran = run("rank", votes, "--items", items, *more, "-o", place, *QUICK)
        assert ran.exit_code == 0, ran.output
    for command in (
        ("predict", out, pairs), ("compare", out, again), ("worth", out), ("show", out), ("simulate", out, scenarios),
        ("decide", out, "--everyone", "--items", items), ("ask", out, "--target", "board"),
        ("check", votes), ("rank", votes, *QUICK),
    ):  # fmt: skip
        name, *given = command
        if name not in ("show", "decide", "ask", "check", "rank"):
            ran = run(name, *given, "-o", tmp_path / (f"{name}" if name == "worth" else f"{name}.csv"))
            assert ran.exit_code == 0, ran.output
        ran = run(name, *given, "--format", "csv")
        assert ran.exit_code == 0, (name, ran.output)
        assert not obeyed(ran.stdout), name
    written = [file for file in tmp_path.rglob("*.csv") if file not in (votes, items, scenarios)]
    assert {"leaderboard.csv", "segments.csv", "predict.csv", "compare.csv"} <= {file.name for file in written}
    for file in written:
        assert not obeyed(file.read_text(encoding="utf-8")), file
    read_again = read_table(tmp_path / "predict.csv")[1]
    assert read_again["left"].to_list() == [row[1] for row in rows[:3]]


def test_one_function_writes_csv_for_people():
    source = Path(predilect.__file__).parent
    writing = {
        file.relative_to(source).as_posix() for file in source.rglob("*.py") if ".write_csv(" in file.read_text("utf-8")
    }
    assert writing == {"examples/__init__.py", "show/report/tables.py"}


@given(st.lists(st.text(alphabet="'=+-@1.e \tx", max_size=5) | st.none()))
def test_the_marks_of_formulas_are_taken_away_again(texts):
    column = pl.Series("a", texts, dtype=pl.String)
    assert as_before(no_formula(column)).to_list() == texts


@pytest.mark.slow
def test_two_megabytes_of_winner_are_not_printed(tmp_path):
    (tmp_path / "v.csv").write_text("left,right,winner\na,b," + "x" * 2_000_000 + "\n")
    ran = run("check", tmp_path / "v.csv")
    assert ran.exit_code == 2
    assert len(ran.stderr) < 700
    assert "left-word" not in ran.stderr  # which would have to be written out


@pytest.mark.parametrize("command", ["check", "rank"])
def test_a_map_to_its_own_ids_is_refused(tmp_path, command):
    (tmp_path / "v.csv").write_text("left,right,winner\na,b,a\nb,a,a\n")
    (tmp_path / "map.csv").write_text("item,model\na,x\nb,y\n")
    ran = run(command, tmp_path / "v.csv", "--map", f"{tmp_path / 'map.csv'}:item")
    assert ran.exit_code == 2
    assert "--map FILE:COLUMN" in ran.stderr


DIGITS = "9" * 5000
PAIRS = "user,left,right,winner\nu,tea,milk,tea\nv,milk,rum,milk\n"
TABLES = {
    "wide": "id,price_1,price_2,choice\nu,1,2,{0}\n",
    "wide, an attribute": "id,price_1,price_2,choice\nu,1,{0},1\nv,2,1,2\n",
    "wide, its columns": "id,price_1,price_{0},choice\nu,1,2,1\n",
    "long": "user,task,alternative,price,choice\nu,1,a,1,{0}\nu,1,b,2,0\n",
    "ranks": "user,task,item,rank\nu,1,a,1\nu,1,b,{0}\n",
    "ratings": "user,item,rating\nu,a,1\nu,b,{0}\nv,a,2\nv,b,1\n",
    "ranks by column": "user,rank_tea,rank_milk\nu,1,{0}\nv,1,2\n",
    "the place of the best": "user,item_1,item_2,choice\nu,a,b,{0}\nv,a,b,1\n",
    "a column a place": "user,rank_1,rank_{0}\nu,a,b\n",
    "annotators": "pair,judge_1,judge_{0}\na vs b,left,right\n",
    "winners": "user,left,right,winner\nu,a,b,{0}\nv,a,b,-1\n",
    "grades": "user,left,right,winner\nu,a,b,2\nv,a,b,-{0}\nv,a,b,-2\n",
    "weights": "left,right,winner,weight\na,b,a,{0}\na,c,a,1\n",
    "orders": "# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n{0}: 1,2\n",
}


@pytest.mark.parametrize("number", ["9" * 400, DIGITS, "1e400", "-1e400", "1e308", "5e-324"])
@pytest.mark.parametrize("table", TABLES)
def test_numbers_of_any_length_are_read_or_refused_in_words(tmp_path, table, number):
    path = tmp_path / f"v{'.soc' if table == 'orders' else '.csv'}"
    path.write_text(TABLES[table].format(number))
    ran = run("check", path)
    assert ran.exit_code in (0, 2), ran.exception
    assert ran.exit_code == 0 or ran.stderr.startswith("Error: ")


@pytest.mark.parametrize(
    "cell",
    ['["\\ud800", "b"]', f"[{'9' * 400}, 1]", f"[{DIGITS}, 1]", "[" * 10**5, "[" * 10**4 + "]" * 10**4],
)
@pytest.mark.parametrize("header", ["user,ranking", "user,alternatives,best,worst"])
def test_a_list_of_any_text_in_a_cell_is_refused_in_words(tmp_path, header, cell):
    rest = ["a", "b"] if "best" in header else []
    text = io.StringIO()
    csv.writer(text).writerows([header.split(","), ["u", cell, *rest], ["v", cell, *rest]])
    (tmp_path / "v.csv").write_text(text.getvalue())
    ran = run("check", tmp_path / "v.csv")
    assert (ran.exit_code, ran.stdout) == (2, ""), ran.exception
    assert "list" in ran.stderr


def test_a_number_of_any_length_in_an_option_is_refused_in_words(tmp_path):
    (tmp_path / "v.csv").write_text("user,left,right,winner\nu,tea,milk,-2\nv,milk,rum,2\n")
    for options, said in (
        (["--model", f"gaspk,n_components={DIGITS}"], "n_components"),
        (["--read", f"grades=1,2,{DIGITS}"], "winner"), (["--seed", DIGITS], "--seed"),
    ):  # fmt: skip
        ran = run("rank", tmp_path / "v.csv", *options)
        assert (ran.exit_code, ran.stdout) == (2, ""), ran.exception
        assert said in ran.stderr


@pytest.mark.parametrize("size", [1e155, 1e160, 1e300, -1.7e308, 1e-300, 5e-324])
def test_features_of_any_size_are_those_of_the_same_shape(tmp_path, size):
    (tmp_path / "v.csv").write_text(PAIRS)
    means = []
    for tea in (size, 1e9 * round(np.sign(size)) if abs(size) > 1.0 else 0.0):
        (tmp_path / "i.csv").write_text(f"item,x\ntea,{tea}\nmilk,1\nrum,0\n")
        (tmp_path / "p.csv").write_text(f"user,age\nu,{tea}\nv,1\n")
        files = ["--items", tmp_path / "i.csv", "--people", tmp_path / "p.csv"]
        ran = run("rank", tmp_path / "v.csv", *files, *QUICK, "--format", "json")
        assert ran.exit_code == 0, ran.output
        means.append([row["mean"] for row in json.loads(ran.stdout)["board"]])
    np.testing.assert_allclose(means[0], means[1], rtol=0, atol=ITERATIVE)


@pytest.mark.slow
def test_any_number_of_rows_may_be_asked_for(tmp_path):
    (tmp_path / "v.csv").write_text(PAIRS)
    assert run("rank", tmp_path / "v.csv", "-q", *QUICK, "-o", tmp_path / "out").exit_code == 0
    printed = [run("show", tmp_path / "out", "-q", "--top", top).stdout for top in ("0", "9" * 400)]
    assert printed[0] == printed[1] != ""


def test_covariates_of_any_size_are_ranked_with_or_refused(tmp_path):
    for size in ("1e99", "1e-99", "1e-160", "1e160", "1e308"):
        (tmp_path / "v.csv").write_text(f"user,left,right,winner,x\nu,tea,milk,tea,{size}\nv,milk,rum,milk,-{size}\n")
        ran = run("rank", tmp_path / "v.csv", "-c", "covariates=x", *QUICK, "--format", "json")
        assert ran.exit_code == (0 if "99" in size else 2), ran.exception
