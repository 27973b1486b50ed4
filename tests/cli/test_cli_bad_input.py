"""Every bad input of the issue, through the command: a clear message and exit code 2, or a right result."""

from __future__ import annotations

import pytest

from cli.running import QUICK, files_beside, rank_json, run

HEADER = "user,left,right,winner\n"
CYCLE = "u,x,y,x\nv,y,z,y\nw,z,x,z\n"
REFUSED = {
    "empty file": ("", "is empty"),
    "header only": (HEADER, "no rows"),
    "missing column": ("user,left,right\nu,a,b\n", "found no column for the winner"),
    "item only in self-pairs": (HEADER + CYCLE + "u,w,w,w\n", "--read drop=self"),
    "empty id": (HEADER + CYCLE + "u,,y,y\n", "--read drop=missing"),
    "blank user": (HEADER + CYCLE + " ,x,y,y\n", "--read drop=missing"),
    "unknown winner": (HEADER + CYCLE + "u,x,y,skipped\n", "--read tie=skipped"),
    "one item": (HEADER + "u,x,x,x\n", "compared with itself"),
    "everyone ties": (HEADER + "u,x,y,tie\nv,y,x,tie\n", "are ties"),
    "not UTF-8": ("left,right,winner\na,b,a\né,b,b\n".encode("latin-1"), "not UTF-8"),
    "ragged line": (HEADER + CYCLE + "u,x,y,z,w,x\n", "fields"),
}
RANKED = {
    "one person": HEADER + "u,x,y,x\nu,y,z,y\nu,x,z,x\n",
    "one comparison": HEADER + "u,x,y,x\n",
    "an item that always wins": HEADER + "u,x,y,x\nv,x,z,x\nv,x,y,x\nu,z,y,y\n",
    "a cycle": HEADER + CYCLE,
    "100 000 duplicates": HEADER + CYCLE + "u,x,y,x\n" * 100_000,
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_message_and_nothing_written(tmp_path, case):
    text, said = REFUSED[case]
    votes = tmp_path / "votes.csv"
    votes.write_bytes(text if isinstance(text, bytes) else text.encode())
    for command in (["rank", votes, "--out", tmp_path / "out"], ["check", votes]):
        if case == "everyone ties" and command[0] == "check":
            continue  # which can be read, though not ranked
        ran = run(*command)
        assert ran.exit_code == 2, ran.output
        assert "Error: " in ran.stderr
        assert said in ran.stderr
        assert "Traceback" not in ran.output
    assert files_beside(tmp_path) == ["votes.csv"]


@pytest.mark.parametrize("case", RANKED)
def test_ranked_with_finite_numbers(tmp_path, case):
    (tmp_path / "votes.csv").write_text(RANKED[case])
    document = rank_json(tmp_path / "votes.csv")
    board = {row["item"]: row for row in document["board"]}
    assert all(isinstance(row[name], float) for row in board.values() for name in ("mean", "sd", "lower", "upper"))
    if case == "a cycle":
        assert max(abs(row["mean"]) for row in board.values()) < 1e-3
    else:
        assert document["board"][0]["item"] == "x"
    if case in ("one person", "one comparison"):
        assert document["model"]["name"] == "pooled"


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ("item,sweet\nx,1\nx,2\n", "rows that differ"),
        ("item,sweet\nx,inf\ny,1\nz,2\n", "infinite"),
        ("name_of_it,sweet\nx,1\n", "item ids"),
        ("item,sweet\n", "no rows"),
    ],
)
def test_features_that_cannot_be_used_are_refused(tmp_path, features, said):
    (tmp_path / "votes.csv").write_text(HEADER + CYCLE)
    (tmp_path / "items.csv").write_text(features)
    ran = run("rank", tmp_path / "votes.csv", "--items", tmp_path / "items.csv", "--out", tmp_path / "out")
    assert ran.exit_code == 2
    assert said in ran.stderr
    assert files_beside(tmp_path) == ["items.csv", "votes.csv"]


def test_features_for_some_items_and_constant_ones_are_reported(few_votes, tmp_path):
    (tmp_path / "items.csv").write_text("item,x,one\napple,1,1\nbanana,2,1\ncherry,,1\n")
    lines = rank_json(few_votes, *QUICK, "--items", tmp_path / "items.csv")["model"]["features"]
    assert any("2 of 5 items have no features" in line for line in lines)
    assert any("one" in line for line in lines)


def test_features_of_people_are_nothing_to_one_ranking_for_all(few_votes, tmp_path):
    (tmp_path / "people.csv").write_text("user,age\np01,30\np02,40\n")
    ran = run("rank", few_votes, "--personal", "no", "--people", tmp_path / "people.csv")
    assert ran.exit_code == 0, ran.output
    assert "Warning: --people is not used, as one ranking for all tells nobody apart." in ran.stderr


def test_features_of_people_are_something_to_a_model_that_is_set_to_tell_them_apart(few_votes, tmp_path):
    (tmp_path / "people.csv").write_text("user,age\n" + "".join(f"p{k:02d},{20 + k}\n" for k in range(1, 9)))
    (tmp_path / "items.csv").write_text("item,x\napple,1\nbanana,2\ncherry,3\n")
    given = ("--people", tmp_path / "people.csv", "--items", tmp_path / "items.csv")
    ran = run("rank", few_votes, "--model", "gppl,users=joint", *given)
    assert ran.exit_code == 0, ran.output
    assert "--people is not used" not in ran.stderr


def test_features_of_other_people_are_told(few_votes, tmp_path):
    (tmp_path / "people.csv").write_text("user,age\nP01,30\nP02,40\n")
    ran = run("rank", few_votes, *QUICK, "--people", tmp_path / "people.csv")
    assert ran.exit_code == 0, ran.output
    assert "there are no features of 8 of the 8 people (first:" in ran.stderr
    assert "Add them to --people FILE, spelled as in the answers." in ran.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--by", "country"], 'no column "country" (given with --by, a column of FILE)'),
        (["-c", "who=nobody"], 'no column "nobody"'),
        (["-c", "who=judge", "-c", "who="], '"who" is said twice'),
        (["--read", "side=yes", "--read", "side=no"], '"side" is said twice'),
        (["-c", "weights=judge", "-c", "weights="], '"weights" is said twice'),
        (["--segment", "judge"], '"judge" says who somebody is, and is no segment besides. Name another column'),
        (["-c", "profile=price"], "-c profile=price is about choices from several alternatives"),
        (["--read", "grades=a,"], '--read takes names with commas between them; one of "a," is empty'),
        (["--map", "nowhere.csv:kind"], "no file nowhere.csv"),
        (["--items", "nowhere.csv"], "no file nowhere.csv"),
        (["--seed", "-1"], "--seed"),
        (["--jobs", "0"], "--jobs"),
        (["--model", "svm"], "--model is one of population, gppl"),
        (["--model", "gaspk,levels=many"], "levels must be"),
        (["--read", "piecewise=price"], "as piecewise=price:3,5"),
        (["--read", "piecewise=price:low"], "--read piecewise takes numbers"),
        (["--read", "unpack-limit=0"], "a number of GB above 0"),
        (["--read", "categorical=brand"], "give --items FILE"),
        (["--read", "answer-is=word"], '"answer-is" is one of item, side, sign'),
        (["--personal", "perhaps"], "--personal"),
    ],
)
def test_options_that_cannot_be_used(votes, options, said):
    ran = run("rank", votes, *options)
    assert ran.exit_code == 2
    assert said in ran.stderr


def test_by_refuses_a_column_with_too_many_values(tmp_path):
    rows = "".join(f"a,b,a,{k}\n" for k in range(300))
    (tmp_path / "v.csv").write_text("left,right,winner,row\n" + rows)
    ran = run("rank", tmp_path / "v.csv", "--by", "row")
    assert ran.exit_code == 2
    assert "300 different values" in ran.stderr


def test_dropped_rows_are_counted_by_reason(tmp_path):
    (tmp_path / "v.csv").write_text(HEADER + CYCLE + "u,,y,y\nu,x,x,x\nu,x,y,skipped\nu,x,y,left?\n")
    drop = ["--read", "drop=missing", "--read", "drop=self", "--read", "drop=unknown", "--read", "tie=skipped"]
    intake = rank_json(tmp_path / "v.csv", *drop)["intake"]
    assert intake["left_out"] == {"missing id": 1, "self-pair": 1, "unknown winner": 1}
    assert intake["ties_by_word"] == {"skipped": 1.0}
