"""``rank --report``, ``--compare`` and ``--format md``."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from cli.running import ITEMS, QUICK, files_beside, run
from drawings import Page


def test_the_report_shows_the_board_that_is_printed_and_how_it_was_made(few_votes, tmp_path):
    path = tmp_path / "board.html"
    ran = run("rank", few_votes, "--report", path, "--scale", "elo", "--seed", 3)
    assert ran.exit_code == 0, ran.output
    assert f"Written to {path}: a page to be sent on." in ran.stdout.replace("\n", " ")
    read = Page(path.read_text(encoding="utf-8"))
    first = next(line for line in ran.stdout.splitlines() if line.startswith("    1  ")).split()
    assert " ".join(first) in " ".join(read.text.split())
    assert all(item in read.text for item in ITEMS)
    assert "predilect rank votes.csv --seed 3 --report board.html --scale elo" in read.text
    assert str(tmp_path) not in read.text
    assert "File of votes: votes.csv, SHA-256 " in read.text
    for line in ran.stdout.splitlines():
        if line.startswith(("Verdict: ", "Returned: ", "Note: ", "Warning: ", "Read ")):
            assert line.removeprefix("Verdict: ") in read.text
    assert files_beside(tmp_path) == ["board.html", "votes.csv"]


def test_a_report_is_replaced_only_with_force_and_stands_beside_a_folder(few_votes, tmp_path):
    path = tmp_path / "board.html"
    path.write_text("mine")
    ran = run("rank", few_votes, *QUICK, "--report", path)
    assert ran.exit_code == 2
    assert "exists already. Give another name with --report, or replace it with --force" in ran.stderr.replace(
        "\n", " "
    )
    assert path.read_text() == "mine"
    ran = run("rank", few_votes, *QUICK, "--report", path, "--out", tmp_path / "out", "--force")
    assert ran.exit_code == 0, ran.output
    assert "Held-out answers" in Page(path.read_text(encoding="utf-8")).text
    assert "leaderboard.csv" in files_beside(tmp_path / "out")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (".", "is a folder, and the report needs a file"), ("votes.csv/board.html", "is a file and not a folder"),
        ("nowhere/board.html", "does not exist. Make it, or change --report"),
    ],
)  # fmt: skip
def test_a_place_where_no_page_can_be_is_refused_before_anything_is_read(few_votes, tmp_path, place, said):
    ran = run("rank", few_votes, "--report", tmp_path / place)
    assert ran.exit_code == 2
    assert said in ran.stderr.replace("\n", " ")
    assert "Read 40" not in ran.stdout
    assert files_beside(tmp_path) == ["votes.csv"]


def test_a_read_only_place_for_the_page_is_found_out_before_the_fit(few_votes, tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    ran = run("rank", few_votes, "--report", tmp_path / "board.html")
    assert ran.exit_code == 1
    assert "could not be written: Permission denied" in ran.stderr.replace("\n", " ")
    assert "change" not in ran.stderr
    assert "another place with --report" in ran.stderr.replace("\n", " ")
    assert "Model:" not in ran.stdout
    assert files_beside(tmp_path) == ["votes.csv"]


def test_a_full_disk_leaves_no_page_behind_but_the_board_on_the_screen(few_votes, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("predilect.report.output.put_in_place", full)
    ran = run("rank", few_votes, *QUICK, "--report", tmp_path / "board.html")
    assert ran.exit_code == 1
    assert "apple" in ran.stdout
    assert "No space left on device" in ran.stderr.replace("\n", " ")
    assert files_beside(tmp_path) == ["votes.csv"]


def test_an_older_ranking_is_compared_with(few_votes, results, tmp_path):
    ran = run("rank", few_votes, *QUICK, "--compare", results, "--report", tmp_path / "board.html")
    assert ran.exit_code == 0, ran.output
    assert "of 5 items in both, the scores of" in ran.stdout.replace("\n", " ")
    read = Page((tmp_path / "board.html").read_text(encoding="utf-8"))
    assert "The test takes the two fits for independent." in read.text
    assert "changes" in {one.get("id") for one in read.all("section")}
    out = tmp_path / "out"
    for again in ([], ["--force"]):
        ran = run("rank", few_votes, *QUICK, "--compare", results, "--out", out, *again)
        assert ran.exit_code == 0, ran.output
    rows = pl.read_csv(out / "changes.csv").to_dicts()
    told = json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))["changes"]
    assert told["items"] == rows
    assert [*told["kinds"], told["came"], told["went"]] == ["population", "population", [], []]
    (tmp_path / "other.csv").write_text("user,left,right,winner\nann,tea,milk,tea\n", encoding="utf-8")
    ran = run("rank", tmp_path / "other.csv", *QUICK, "--compare", results)
    assert ran.exit_code == 2
    assert "has 0 items in common with this ranking" in ran.stderr.replace("\n", " ")
    assert "Read 1" not in ran.stdout
    ran = run("rank", few_votes, *QUICK, "--compare", tmp_path / "nothing")
    assert ran.exit_code == 2
    assert "nothing" in ran.stderr
    assert "Read 40" not in ran.stdout


def test_markdown_goes_to_standard_output_alone(few_votes):
    ran = run("rank", few_votes, *QUICK, "--format", "md", "--top", 2)
    assert ran.exit_code == 0, ran.output
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("| Rank | 95 % | Item | Score |")
    assert sum(line.startswith("| ") for line in lines) == 3
    assert "Model: population" in ran.stderr
    board = json.loads(run("rank", few_votes, *QUICK, "--json").stdout)["board"]
    first = pl.DataFrame(board).row(0, named=True)
    assert lines[2].startswith(f"| 1 | {first['rank_low']}–{first['rank_high']} | ")
    assert f"| {first['mean']:.2f} | {first['lower']:.2f} … {first['upper']:.2f} |" in lines[2]


def test_two_documents_cannot_both_have_standard_output(few_votes):
    ran = run("rank", few_votes, "--format", "md", "--json")
    assert ran.exit_code == 2
    assert "--json and --format md both want standard output. Give one of them" in ran.stderr


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
    given += ["--people", tmp_path / "people.csv", "--force", "--report", tmp_path / "board.html"]
    ran = run(*given)
    assert ran.exit_code == 0, ran.output
    said = " ".join(ran.output.split())
    assert f"gave one answer: little can be said about each ({ids[0]})." in said
    assert f"can dominate a pooled ranking ({ids[1]})." in said
    assert f"met only in rows left out: {ids[7]}." in said
    text = (tmp_path / "board.html").read_text(encoding="utf-8")
    assert "gave one answer: little can be said about each." in text
    assert "qzkv" not in text
    if model == "joint":
        assert "2 of 7 people have no features" in text
    assert run(*given, "--name-people").exit_code == 0
    text = (tmp_path / "board.html").read_text(encoding="utf-8")
    assert all(text.count(one) for one in (ids[0], ids[1], ids[7]))
