"""``predilect report`` and ``predilect compare``."""

from __future__ import annotations

import io
import json
import shutil

import numpy as np
import polars as pl
import pytest

from cli.running import ITEMS, QUICK, files_beside, run
from drawings import Page
from predilect import load
from predilect.decisions.scales import scale_of
from predilect.show.report.changes import changes_between


def told(ran):
    return " ".join((ran.stdout + ran.stderr).split())


@pytest.mark.slow
def test_the_report_shows_the_board_of_the_folder_and_how_it_was_made(few_votes, tmp_path):
    ran = run("rank", few_votes, "--seed", 3, "-c", "who=judge", "-o", tmp_path / "out", "--explain")
    assert ran.exit_code == 0, ran.output
    path = tmp_path / "board.html"
    made = run("report", tmp_path / "out", "-o", path, "--scale", "elo:1000", "--title", "Which fruit?")
    assert made.exit_code == 0, made.output
    assert f"Written to {path}: a page to send on." in told(made)
    read = Page(path.read_text(encoding="utf-8"))
    board = run("show", tmp_path / "out", "--scale", "elo:1000").stdout
    first = next(line for line in board.splitlines() if line.startswith("    1  ")).split()
    assert " ".join(first) in " ".join(read.text.split())
    assert all(item in read.text for item in ITEMS)
    assert "Which fruit?" in read.text
    assert "predilect rank votes.csv --column who=judge --explain --seed 3" in read.text
    assert str(tmp_path) not in read.text
    assert "File of votes: votes.csv, SHA-256 " in read.text
    for line in ran.stdout.splitlines():
        if line.startswith(("Verdict: ", "Returned: ", "Read ")):
            assert line.removeprefix("Verdict: ") in read.text
    assert files_beside(tmp_path) == ["board.html", "out", "votes.csv"]


def test_the_report_is_markdown_whatever_the_case_of_its_suffix(results, tmp_path):
    path = tmp_path / "BOARD.MD"
    assert run("report", results, "-o", path).exit_code == 0
    assert path.read_text(encoding="utf-8").startswith("# ")


def test_a_report_is_replaced_only_with_force(results, tmp_path):
    path = tmp_path / "board.html"
    path.write_text("mine")
    ran = run("report", results, "-o", path)
    assert ran.exit_code == 2
    assert "exists already. Give another name with -o, or replace it with --force" in told(ran)
    assert path.read_text() == "mine"
    assert run("report", results, "-o", path, "--force").exit_code == 0
    assert "Held-out answers" in Page(path.read_text(encoding="utf-8")).text


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (".", "is a folder, and the report needs a file"), ("votes.csv/board.html", "is a file and not a folder"),
        ("nowhere/board.html", "does not exist. Make it, or change -o"),
        ("board.pdf", "a report is a page (.html) or Markdown (.md), not .pdf"),
    ],
)  # fmt: skip
def test_a_place_where_no_page_can_be_is_refused(few_votes, results, tmp_path, place, said):
    ran = run("report", results, "-o", tmp_path / place)
    assert ran.exit_code == 2
    assert said in told(ran)
    assert files_beside(tmp_path) == ["votes.csv"]


def test_a_model_alone_has_a_page_too_and_a_damaged_record_is_named(results, tmp_path):
    ran = run("report", results / "model", "-o", tmp_path / "board.html")
    assert ran.exit_code == 0, ran.output
    shutil.copytree(results, tmp_path / "copy")
    (tmp_path / "copy" / "leaderboard.json").write_text("{")
    ran = run("report", tmp_path / "copy", "-o", tmp_path / "other.html")
    assert ran.exit_code == 2
    assert "leaderboard.json is damaged" in told(ran)


@pytest.mark.slow
def test_an_older_ranking_is_compared_with(few_votes, results, tmp_path):
    assert run("rank", few_votes, *QUICK, "-o", tmp_path / "new").exit_code == 0
    ran = run("compare", results, tmp_path / "new", "--scale", "elo", "-o", tmp_path / "changes.csv")
    assert ran.exit_code == 0, ran.output
    assert f"Against {results}: of 5 items in both, the scores of" in told(ran)
    old, new = load(results), load(tmp_path / "new")
    expected = changes_between(new, old, scale_of("elo", "probit"), str(results))
    as_csv = run("compare", results, tmp_path / "new", "--scale", "elo", "--format", "csv")
    assert pl.read_csv(io.StringIO(as_csv.stdout)).equals(expected.table)
    assert pl.read_csv(tmp_path / "changes.csv").equals(expected.table)
    document = json.loads(run("compare", results, tmp_path / "new", "--scale", "elo", "--format", "json").stdout)
    assert document["schema"] == "predilect/changes"
    assert document["items"] == expected.table.to_dicts()
    assert [*document["kinds"], document["came"], document["went"]] == ["population", "population", [], []]
    ran = run("report", tmp_path / "new", "--compare", results, "-o", tmp_path / "board.html")
    assert ran.exit_code == 0, ran.output
    read = Page((tmp_path / "board.html").read_text(encoding="utf-8"))
    assert "The test takes the two fits for independent." in read.text
    assert "changes" in {one.get("id") for one in read.all("section")}


def test_what_cannot_be_compared(results, tmp_path):
    (tmp_path / "other.csv").write_text("user,left,right,winner\nann,tea,milk,tea\n", encoding="utf-8")
    assert run("rank", tmp_path / "other.csv", *QUICK, "-o", tmp_path / "other").exit_code == 0
    ran = run("compare", results, tmp_path / "other")
    assert ran.exit_code == 2
    assert "has 0 items in common with this ranking" in told(ran)
    ran = run("compare", results, tmp_path / "nothing")
    assert ran.exit_code == 2
    assert "nothing" in told(ran)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["population", "joint"])
def test_no_page_names_anybody_unless_asked_to_while_the_terminal_does(model, tmp_path):
    rng, rows = np.random.default_rng(3), ["user,left,right,winner"]
    ids = [f"qzkv{k:02d}" for k in range(8)]
    for k, who in enumerate(ids[:7]):
        for _ in range(1 if k == 0 else 60 if k == 1 else 4):
            a, b = rng.choice(4, 2, replace=False)
            rows.append(f"{who},i{a},i{b},i{min(a, b)}")
    (tmp_path / "votes.csv").write_text("\n".join([*rows, f"{ids[7]},i0,,i0"]))
    (tmp_path / "people.csv").write_text("\n".join(["user,age", *(f"{one},{20 + k}" for k, one in enumerate(ids[:5]))]))
    given = ["rank", tmp_path / "votes.csv", *QUICK, "--read", "drop=missing", "--model", model, "--explain"]
    ran = run(*given, "--people", tmp_path / "people.csv", "-o", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    page = ["report", tmp_path / "out", "-o", tmp_path / "board.html", "--force"]
    assert run(*page).exit_code == 0
    said = " ".join(ran.output.split())
    assert f"gave one answer: little can be said about each ({ids[0]})." in said
    assert f"can dominate a pooled ranking ({ids[1]})." in said
    assert f"met only in rows left out: {ids[7]}." in said
    text = (tmp_path / "board.html").read_text(encoding="utf-8")
    assert "gave one answer: little can be said about each." in text
    assert "qzkv" not in text
    if model == "joint":
        assert "2 of 7 people have no features" in text
    assert run(*page, "--name-people").exit_code == 0
    text = (tmp_path / "board.html").read_text(encoding="utf-8")
    assert all(text.count(one) for one in (ids[0], ids[1], ids[7]))
