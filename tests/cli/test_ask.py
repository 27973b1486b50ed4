"""``predilect ask``."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest

from cli.running import ITEMS, files_beside, run
from predilect import Population, load
from predilect.cli.ask import StrategyName, TargetName
from predilect.decisions.crowd import TARGETS
from predilect.decisions.questions import STRATEGIES
from tolerances import EXACT

COLUMNS = ["left", "right", "score", "p_left", "p_tie", "p_right"]


@pytest.fixture(scope="module")
def personal(tmp_path_factory, votes_frame):
    """Of few answers, so that everybody has pairs left."""
    folder = tmp_path_factory.mktemp("ask")
    votes_frame[:60].write_csv(folder / "votes.csv")
    ran = run("rank", folder / "votes.csv", "--personal", "yes", "--out", folder / "out")
    assert ran.exit_code == 0, ran.output
    return folder / "out"


def asked(*arguments):
    ran = run("ask", *arguments)
    assert ran.exit_code == 0, ran.output
    return pl.read_csv(io.StringIO(ran.stdout)), ran.stderr


@pytest.mark.slow
def test_a_set_is_that_of_the_library_and_goes_with_nothing_about_pairs(personal):
    table, _ = asked(personal, "p03", "--size", 3, "--seed", 1)
    expected = load(personal / "model").suggest_set("p03", 3, random_state=1)
    assert table["item"].to_list() == expected["item"].to_list()
    np.testing.assert_allclose(table["score"], expected["score"], atol=EXACT)
    found = json.loads(run("ask", personal, "p03", "--size", 3, "--seed", 1, "--format", "json").stdout)
    assert [row["item"] for row in found["set"]] == table["item"].to_list()
    # What was printed is not asked again, nor what a file of answers holds.
    table.write_csv(personal.parent / "set.csv")
    other, _ = asked(personal, "p03", "--size", 3, "--seed", 1, "--exclude", personal.parent / "set.csv")
    assert set(other["item"]) != set(table["item"])
    best, *others = table["item"].to_list()
    rows = "".join(f"p03,1,{best},{one},{best}\n" for one in others)
    (personal.parent / "answers.csv").write_text(f"user,task,left,right,winner\n{rows}")
    again, _ = asked(personal, "p03", "--size", 3, "--seed", 1, "--exclude", personal.parent / "answers.csv")
    assert again["item"].to_list() == other["item"].to_list()
    for more in (["-n", 2], ["--strategy", "eubo"]):
        ran = run("ask", personal, "--size", 3, *more)
        assert ran.exit_code == 2
        assert "--size asks for one set" in ran.stderr


def test_it_offers_what_the_library_has():
    assert tuple(StrategyName) == STRATEGIES
    assert tuple(TargetName) == ("person", *TARGETS)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_questions_are_those_of_the_library(personal, strategy):
    expected = load(personal / "model").suggest("p03", n=3, strategy=strategy, random_state=1)
    for model in (personal, personal / "model"):
        table, said = asked(model, "p03", "-n", 3, "--strategy", strategy, "--seed", 1)
        assert table.columns == COLUMNS
        assert table.select("left", "right").equals(expected.select("left", "right"))
        assert np.abs(table.select(COLUMNS[2:]).to_numpy() - expected.select(COLUMNS[2:]).to_numpy()).max() < EXACT
        assert not said


def test_answered_pairs_are_left_out_unless_asked_for(personal, votes_frame):
    of = votes_frame[:60].filter(judge="p03")
    answered = {frozenset(pair) for pair in zip(of["model_a"], of["model_b"], strict=True)}
    table, said = asked(personal, "p03", "-n", 99)
    assert {frozenset(row) for row in table.select("left", "right").rows()}.isdisjoint(answered)
    assert len(table) == 10 - len(answered)
    assert f"Asked for 99, but {len(table)} pairs are left" in said
    assert len(asked(personal, "p03", "-n", 99, "--repeat")[0]) == 10


def test_candidates_and_what_is_excluded_come_from_files(personal, tmp_path):
    (tmp_path / "pairs.csv").write_text("left,right,name\nbanana,apple,x\ncherry,elderberry,y\n")
    (tmp_path / "items.csv").write_text("item,price\nbanana,3\ncherry,4\n")
    (tmp_path / "since.csv").write_text(
        "user,left,right,winner\np03,apple,banana,apple\np04,cherry,elderberry,cherry\n"
    )
    ask = ("p03", "--repeat", "-n", 9)
    pairs = asked(personal, *ask, "--candidates", tmp_path / "pairs.csv")[0].select("left", "right").rows()
    assert sorted(pairs) == [("banana", "apple"), ("cherry", "elderberry")]
    items = asked(personal, *ask, "--candidates", tmp_path / "items.csv")[0].select("left", "right").rows()
    assert items == [("banana", "cherry")]
    rest, _ = asked(personal, *ask, "--candidates", tmp_path / "pairs.csv", "--exclude", tmp_path / "since.csv")
    assert rest.select("left", "right").rows() == [("cherry", "elderberry")]
    nothing, said = asked(personal, *ask, "--candidates", tmp_path / "pairs.csv", "--exclude", tmp_path / "pairs.csv")
    assert nothing.columns == COLUMNS
    assert nothing.is_empty()
    assert "no pair is left" in said


def test_as_json(personal):
    ran = run("ask", personal, "p03", "-n", 2, "--format", "json")
    document = json.loads(ran.stdout)
    assert (document["schema"], document["user"], document["strategy"]) == ("predilect/questions", "p03", "bald")
    assert [list(question) for question in document["questions"]] == [COLUMNS, COLUMNS]


def test_somebody_new_is_asked_too(personal):
    table, said = asked(personal, "stranger")
    assert "does not know 'stranger'" in said
    assert table.equals(asked(personal)[0])
    assert asked(personal)[1] == ""


def test_a_model_of_another_kind_of_frame_and_one_that_holds_no_answers(votes_frame, tmp_path):
    frame = votes_frame.to_pandas()[["judge", "model_a", "model_b", "winner"]]
    Population(personal=False, consensus_variance=1.0).fit(frame).save(tmp_path / "m")
    table, said = asked(tmp_path / "m", "p03", "-n", 2)
    assert len(table) == 2
    assert "may be asked again. Name them with --exclude ANSWERS" in said
    assert set(table["left"]) <= set(ITEMS)
    votes_frame.write_csv(tmp_path / "votes.csv")
    of = votes_frame.filter(judge="p03")
    answered = {frozenset(pair) for pair in zip(of["model_a"], of["model_b"], strict=True)}
    table, said = asked(tmp_path / "m", "p03", "-n", 99, "--exclude", tmp_path / "votes.csv")
    assert {frozenset(row) for row in table.select("left", "right").rows()}.isdisjoint(answered)
    assert len(table) == 10 - len(answered)
    assert "may be asked again" not in said  # the advice was taken


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("left,right\napple,apple\n", "with itself"),
        ("left,right\napple,\n", "missing ids"),
        ("left,right\napple,quince\n", "not known"),
        ("item\nquince\n", "not known"),
        ("left,winner\napple,apple\n", "right item"),
        ("fruit\napple\n", "neither columns left and right, of pairs, nor a column item in --candidates FILE"),
    ],
)
def test_candidates_that_cannot_be_asked(personal, tmp_path, text, said):
    (tmp_path / "pairs.csv").write_text(text)
    ran = run("ask", personal, "--candidates", tmp_path / "pairs.csv")
    assert ran.exit_code == 2
    assert said in ran.stderr
    assert not ran.stdout


def test_other_bad_input(personal, tmp_path):
    for arguments in (
        (tmp_path,),
        (personal, "-n", 0),
        (personal, "--strategy", "best"),
        (personal, "--exclude", "no.csv"),
    ):
        assert run("ask", *arguments).exit_code == 2
    assert files_beside(tmp_path) == []


@pytest.mark.parametrize("target", ["board", "best", "top", "random"])
def test_questions_about_the_crowd_are_those_of_the_library(personal, target):
    more, settings = (["--first", 2], {"k": 2}) if target == "top" else ([], {})
    table, _ = asked(personal, "p03", "-n", 3, "--target", target, *more, "--seed", 1)
    expected = load(personal / "model").suggest("p03", 3, target=target, random_state=1, **settings)
    assert table.columns == [*COLUMNS, "probability"]
    for side in ("left", "right"):
        assert table[side].cast(pl.String).to_list() == expected[side].cast(pl.String).to_list()
    np.testing.assert_allclose(table["probability"], expected["probability"], atol=EXACT)
    found, _ = asked(personal, "p03", "--size", 3, "--target", target, *more, "--seed", 1)
    assert found.columns == ["item", "probability"]


def test_what_goes_with_questions_about_the_crowd_alone(personal):
    for more in (["--difficulty", 0.6], ["--first", 2]):
        ran = run("ask", personal, "p03", *more)
        assert ran.exit_code == 2
        assert "questions about the crowd" in ran.stderr
    ran = run("ask", personal, "p03", "--size", 3, "--target", "board", "--difficulty", 0.6)
    assert ran.exit_code == 2
    assert "goes without -n, --strategy and --difficulty" in ran.stderr
    table, _ = asked(personal, "-n", 3, "--target", "board", "--difficulty", 0.51)
    assert (np.maximum(table["p_left"], table["p_right"]) >= 0.51).all()


@pytest.mark.parametrize("options", [("--personal", "no"), ("--model", "gppl"), ("--personal", "yes")])
def test_the_answers_beside_a_model_say_what_was_asked(tmp_path, votes_frame, options):
    few = votes_frame[:40]
    few.write_csv(tmp_path / "votes.csv")
    ran = run("rank", tmp_path / "votes.csv", *options, "--out", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    user = few["judge"][0]
    mine = {frozenset(row) for row in few.filter(pl.col("judge") == user).select("model_a", "model_b").rows()}
    table, warned = asked(tmp_path / "out", user, "-n", 100)
    assert "does not hold who answered what" not in warned
    assert not mine & {frozenset(row) for row in table.select("left", "right").rows()}
    again, _ = asked(tmp_path / "out", user, "-n", 100, "--repeat")
    assert mine <= {frozenset(row) for row in again.select("left", "right").rows()}
