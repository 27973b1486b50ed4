"""``predilect predict`` and ``predilect check``."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest

from cli.running import files_beside, run
from predilect import Population
from tolerances import EXACT

PAIRS = "note,left,right,user\nx,banana,apple,p03\ny,apple,cherry,p00\nz,apple,cherry,stranger\n"


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return path


@pytest.mark.slow
def test_predictions_keep_rows_and_columns_and_are_those_of_the_library(votes, tmp_path, pairs):
    # Whatever the verdict on these votes: the note on strangers is that of a personal model.
    results = tmp_path / "out"
    assert run("rank", votes, "--personal", "yes", "--out", results).exit_code == 0
    for model in (results, results / "model"):
        ran = run("predict", model, pairs)
        assert ran.exit_code == 0, ran.output
        table = pl.read_csv(io.StringIO(ran.stdout))
        assert table.columns == ["note", "left", "right", "user", "p_left", "p_tie", "p_right", "margin", "sd"]
        assert table["note"].to_list() == ["x", "y", "z"]
        assert "1 of 3 pairs name someone without answers" in ran.stderr
    with pytest.warns(UserWarning, match="without answers"):
        expected = Population.load(results / "model").predict_proba(pl.read_csv(pairs))
    assert abs(table.select("p_left", "p_tie", "p_right").to_numpy() - expected).max() < EXACT


def test_predictions_as_json_and_in_files(results, pairs, tmp_path):
    document = json.loads(run("predict", results, pairs, "--format", "json").stdout)
    assert document["schema"] == "predilect/predictions"
    assert [row["note"] for row in document["predictions"]] == ["x", "y", "z"]
    for name, read in (("p.csv", pl.read_csv), ("p.parquet", pl.read_parquet), ("p.jsonl", pl.read_ndjson)):
        assert run("predict", results, pairs, "--out", tmp_path / name).exit_code == 0
        assert read(tmp_path / name)["p_left"].to_list() == [row["p_left"] for row in document["predictions"]]
    ran = run("predict", results, pairs, "--out", tmp_path / "p.csv")
    assert ran.exit_code == 2
    assert "--force" in ran.stderr
    assert run("predict", results, pairs, "--out", tmp_path / "p.csv", "--force").exit_code == 0
    assert files_beside(tmp_path) == ["p.csv", "p.jsonl", "p.parquet", "pairs.csv"]


def test_a_device_is_written_into_and_never_replaced(results, pairs):
    ran = run("predict", results, pairs, "--out", "/dev/null")
    assert ran.exit_code == 0
    ran = run("predict", results, pairs, "--out", "/dev/full")
    assert ran.exit_code == 1
    assert "No space left on device" in ran.stderr


def test_columns_can_be_named(results, tmp_path):
    (tmp_path / "pairs.csv").write_text("one,two\napple,banana\n")
    assert run("predict", results, tmp_path / "pairs.csv").exit_code == 2
    ran = run("predict", results, tmp_path / "pairs.csv", "-c", "left=one", "-c", "right=two")
    assert ran.exit_code == 0
    assert ran.stdout.startswith("one,two,p_left,")


def test_an_unknown_item_gets_the_prior_with_a_note(results, tmp_path):
    (tmp_path / "pairs.csv").write_text("left,right\napple,quince\n")
    ran = run("predict", results, tmp_path / "pairs.csv")
    assert ran.exit_code == 0
    assert "Warning: 1 of the items asked about are not known to the model" in ran.stderr
    assert "quince" in ran.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("left,right\napple,apple\n", "with itself"),
        ("left,right\napple,\n", "missing ids"),
        ("left,winner\napple,apple\n", "right item"),
        ("left,right,p_tie\napple,banana,1\n", "p_tie already"),
    ],
)
def test_pairs_that_cannot_be_predicted(results, tmp_path, text, said):
    (tmp_path / "pairs.csv").write_text(text)
    ran = run("predict", results, tmp_path / "pairs.csv", "--out", tmp_path / "p.csv")
    assert ran.exit_code == 2
    assert said in ran.stderr
    assert files_beside(tmp_path) == ["pairs.csv"]


def test_check_tells_what_was_read_and_found(votes):
    ran = run("check", votes)
    assert ran.exit_code == 0
    assert "Read 240 rows" in ran.stdout
    assert "answers are ties" in ran.stdout
    document = json.loads(run("check", votes, "--format", "json").stdout)
    assert (document["schema"], document["n_users"]) == ("predilect/check", 12)
    assert {finding["code"] for finding in document["findings"]} >= {"ties", "left-right-bias"}


def test_check_tells_tasks(tmp_path):
    rows = [(u, t, b) for u in range(6) for t in range(4) for b in "xyz"]
    text = "".join(f"u{u},i{(u + t) % 4},{b}{t},i{(u + t) % 4},{u}-{t},{t}\n" for u, t, b in rows)
    (tmp_path / "v.csv").write_text("user,left,right,winner,set,task\n" + text)

    def look(*options):
        ran = run("check", tmp_path / "v.csv", "--format", "json", *options)
        assert ran.exit_code == 0, ran.output
        document = json.loads(ran.stdout)
        codes = {finding["code"] for finding in document["findings"]}
        return document["intake"]["columns"].get("task"), "choices-without-tasks" in codes

    assert look() == ("task", False)
    assert look("-c", "task=set") == ("set", False)
    assert look("--read", "task=none") == (None, True)
    assert "task=set" in run("check", tmp_path / "v.csv", "-c", "task=set").stdout
    ran = run("check", tmp_path / "v.csv", "-c", "task=sets")
    assert ran.exit_code == 2
    assert "given as task" in ran.stderr
    ran = run("check", tmp_path / "v.csv", "-c", "task=set", "--read", "task=none")
    assert ran.exit_code == 2
    assert "contradict" in ran.stderr


def test_check_tells_covariates_and_sides(tmp_path):
    pairs = [("a", "b"), ("c", "a"), ("b", "c"), ("b", "a")] * 6
    text = "".join(
        f"u{k % 5},{one},{two},{one if k % 3 else two},{k},{7},{k % 3 or ''}\n" for k, (one, two) in enumerate(pairs)
    )
    (tmp_path / "v.csv").write_text("user,left,right,winner,length_a,length_b,gap\n" + text)

    def look(*options):
        return run("check", tmp_path / "v.csv", *options)

    ran = look("-c", "covariates=length, gap", "--read", "drop=missing", "--format", "json")
    assert ran.exit_code == 0, ran.output
    intake = json.loads(ran.stdout)["intake"]
    assert intake["left_out"] == {"missing covariate": 8}
    assert intake["columns"]["covariate length (left)"] == "length_a"
    assert intake["ignored_columns"] == []
    assert intake["no_sides"] == ""
    for options, said in (
        (["-c", "covariates=size"], "given with -c covariates=size"),
        (["-c", "covariates=gap"], "--read drop=missing"),
        (["-c", "covariates=length,"], "is empty"),
        (["-c", "covariates=winner"], 'cannot be called "winner"'),
    ):
        ran = look(*options)
        assert ran.exit_code == 2
        assert said in " ".join(ran.stderr.split())
    assert json.loads(look("--read", "side=no", "--format", "json").stdout)["intake"]["no_sides"] == "not wanted"
    assert look("--read", "side=yes").exit_code == 0
    (tmp_path / "v.csv").write_text("left,right,winner\n" + "a,b,a\nb,c,b\nc,a,c\n" * 9)
    assert "Sides are not used: 100 % of decided answers have the winner on the left" in " ".join(look().stdout.split())
    assert "Sides are not used" not in look("--read", "side=yes").stdout  # who says so knows


def test_check_succeeds_with_warnings(tmp_path):
    (tmp_path / "v.csv").write_text("left,right,winner\na,b,a\nc,d,d\n")
    ran = run("check", tmp_path / "v.csv")
    assert ran.exit_code == 0
    assert "Warning: The items fall into 2 groups" in ran.stderr


@pytest.mark.slow
def test_the_command_takes_covariates_off_the_board_and_predicts_with_them(tmp_path):
    rng = np.random.default_rng(0)
    left = rng.integers(4, size=600)
    right = (left + rng.integers(1, 4, size=600)) % 4
    length = rng.normal(size=(600, 2)).round(2)
    margin = 0.4 * (left - right) + 0.4 + 0.8 * (length[:, 0] - length[:, 1]) + rng.normal(size=600)
    pl.DataFrame({
        "judge": rng.integers(20, size=600), "model_a": left, "model_b": right,
        "winner": np.where(margin > 0, "model_a", "model_b"), "length_a": length[:, 0], "length_b": length[:, 1],
    }).write_csv(tmp_path / "votes.csv")  # fmt: skip
    out = tmp_path / "out"
    for again in ([], ["--force"]):
        ran = run(
            "rank", "--explain", tmp_path / "votes.csv", "-c", "covariates=length", "--personal", "no",
            "--out", out, *again,
        )  # fmt: skip
        assert ran.exit_code == 0, ran.stderr
    assert 'Covariate "length": +0.' in ran.stdout
    assert "Between equals the item on the left is chosen" in ran.stdout
    table = pl.read_csv(out / "covariates.csv")
    assert table["covariate"].to_list() == ["length", "side"]
    assert table["lower"].min() > 0.0
    (tmp_path / "pairs.csv").write_text("model_a,model_b,length_left,length_right\n0,1,1,0\n0,1,0,1\n1,0,1,1\n")
    ran = run("predict", out, tmp_path / "pairs.csv")
    margins = pl.read_csv(io.StringIO(ran.stdout))["margin"]
    assert margins[0] - margins[1] == pytest.approx(2 * table["effect"][0])
    assert margins[2] + (margins[0] + margins[1]) / 2 == pytest.approx(2 * table["effect"][1])
    (tmp_path / "none.csv").write_text("model_a,model_b,winner\n0,1,0\n1,0,0\n")
    (tmp_path / "zero.csv").write_text("model_a,model_b,winner,length\n0,1,0,0\n1,0,0,0\n")
    none, zero = (run("predict", out, tmp_path / name, "--format", "json") for name in ("none.csv", "zero.csv"))
    assert none.exit_code == 0, none.stderr
    assert json.loads(none.stdout)["warnings"] == []
    assert json.loads(none.stdout)["score"] == json.loads(zero.stdout)["score"]
    for cells, message in (
        ("length_left\n0,1,1", 'the covariate "length" has a column "length_left" and no column "length_right"'),
        ("length\n0,1,1\n0,1,", 'missing in 1 row (missing values by covariate: "length" 1; first: row 2). Fill them'),
        ("length\n0,1,1\n0,1,long", 'holds text in 1 row (first: row 2, "long"). Leave it out'),
    ):
        (tmp_path / "pairs.csv").write_text("model_a,model_b," + cells)
        ran = run("predict", out, tmp_path / "pairs.csv")
        assert ran.exit_code == 2
        assert message in " ".join(ran.stderr.split())
        assert "--" not in ran.stderr


def test_features_that_the_model_has_no_use_for_are_told(results, tmp_path):
    (tmp_path / "pairs.csv").write_text("user,left,right\nnew,apple,fig\n")
    (tmp_path / "items.csv").write_text("item,price\nfig,1\n")
    (tmp_path / "people.csv").write_text("user,age\nnew,40\n")
    tables = ("--items", tmp_path / "items.csv", "--people", tmp_path / "people.csv")
    told = run("predict", results, tmp_path / "pairs.csv", *tables)
    assert told.exit_code == 0, told.output
    assert "Features would tell more, but the model was fitted without any (--items FILE)" in told.stderr
    assert "population's prediction is given, as the model was fitted without features of people" in told.stderr


@pytest.mark.parametrize(("columns", "said", "why"), [
    ({"prompt": ["q"] * 4}, "context=prompt", "have the same one"),
    ({"length": [0.0] * 4}, "covariates=length", "says nothing: left and right are equal"),
    ({"prompt": ["q", "q", "r", "r"]}, "context=prompt", ""),
])  # fmt: skip
def test_check_advises_rank_only_where_rank_takes_the_answers(tmp_path, columns, said, why):
    """A column that tells nothing is taken in by check, and refused by a fit."""
    told = {"user": list("aabb"), "left": list("xyxy"), "right": list("yzyz"), "winner": list("xyyz")}
    pl.DataFrame(told | columns).write_csv(tmp_path / "votes.csv")
    looked, ranked = (run(command, tmp_path / "votes.csv", "-c", said) for command in ("check", "rank"))
    assert looked.exit_code == 0
    assert ranked.exit_code == (2 if why else 0), ranked.output
    words = " ".join(looked.stdout.split())
    assert ("Next: predilect rank" in words) == (not why)
    assert why in words
    dealt = run("partition", tmp_path / "votes.csv", "-o", tmp_path / "parts", "-c", said)
    assert dealt.exit_code == 0, dealt.output
    if "prompt" in columns:  # which parts may not have
        for ran in (dealt, run("check", tmp_path / "parts")):
            assert "predilect rank" not in ran.stdout
            assert "without -c context=..." in " ".join(ran.stdout.split())
