"""``predilect decide``."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest

from cli.running import run
from predilect import Population, load
from tolerances import EXACT

ALL = ["apple", "banana", "cherry"]


@pytest.fixture(scope="module")
def personal(tmp_path_factory, votes_frame):
    folder = tmp_path_factory.mktemp("decide") / "model"
    fixed = {"strength": 10.0, "variance": 1.0, "consensus_variance": 2.0, "calibration": None, "consistency": 0.0}
    Population(**fixed, tie_threshold=0.4, n_jobs=1).fit(votes_frame).save(folder)
    return folder


def decided(*arguments):
    ran = run("decide", *arguments)
    assert ran.exit_code == 0, ran.output
    return pl.read_csv(io.StringIO(ran.stdout)), " ".join(ran.stderr.split())


def test_the_decision_is_that_of_the_library(personal):
    model = load(personal)
    for costs in ({}, {"cost_question": 0.001}, {"cost_question": 5.0}, {"cost_defer": 0.0}, {"default": "cherry"}):
        arguments = [part for name, value in costs.items() for part in (f"--{name.replace('_', '-')}", value)]
        table, said = decided(personal, "p03", *ALL, *arguments)
        expected = model.decide("p03", ALL, **costs)
        assert table.columns == ["option", "probability", "decision"]
        assert tuple(table["option"]) == expected.options
        assert np.abs(table["probability"].to_numpy() - expected.probabilities).max() < EXACT
        marked = table.filter(pl.col("decision").is_not_null())
        assert set(marked["decision"]) == {expected.action}
        if expected.action == "act":
            assert marked["option"].to_list() == [expected.option]
        assert said == " ".join(expected.reason.split())
        document = json.loads(run("decide", personal, "p03", *ALL, *arguments, "--format", "json").stdout)
        assert (document["schema"], document["action"], document["user"]) == (
            "predilect/decision", expected.action, "p03",
        )  # fmt: skip
        assert document["costs"] == pytest.approx(expected.costs)


def test_somebody_new_and_names_with_commas(personal, tmp_path):
    table, said = decided(personal, "stranger", "apple", "banana")
    assert "does not know 'stranger': the choice is that of somebody without answers" in said
    assert table["probability"].to_list() == list(load(personal).decide(None, ["apple", "banana"]).probabilities)
    answers = {"left": ["tea, green", "milk"], "right": ["milk", "tea, green"], "winner": ["milk", "milk"]}
    Population(personal=False, consensus_variance=1.0).fit(answers).save(tmp_path / "out")
    table, _ = decided(tmp_path / "out", "ann", "milk", "tea, green", "--quiet")
    assert set(table["option"]) == {"milk", "tea, green"}


def test_a_file_without_a_column_of_items_is_named_by_its_option(personal, tmp_path):
    (tmp_path / "loss.csv").write_text("option,cost\napple,3\nbanana,2\n")
    ran = run("decide", personal, "p03", "apple", "banana", "--cost-wrong", tmp_path / "loss.csv")
    assert ran.exit_code == 2
    assert "no column item in the file of --cost-wrong; the columns are option, cost" in " ".join(ran.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["apple"], "two options or more; got 1"),
        (["apple", "quince"], "item ids are not known"),
        (["apple", "banana", "apple"], "hold apple twice"),
        (["apple", "banana", "--default", "cherry"], "the default cherry is none of the options"),
        (["apple", "banana", "--cost-wrong", "-1"], "--cost-wrong must be a number from 0 up, or a file, not -1"),
        (["apple", "banana", "--cost-question", "nan"], "--cost-question must be a number from 0 up"),
        (["apple", "banana", "--cost-defer", "inf"], "--cost-defer must be a number from 0 up, not inf"),
        (["apple", "banana", "--cost-wrong", "much"], "--cost-wrong"),
        ([], "a choice needs two options or more"),
    ],
)
def test_what_cannot_be_decided(personal, arguments, said):
    ran = run("decide", personal, "p03", *arguments)
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.replace("│", " ").split())
    assert not ran.stdout


def test_decisions_for_everyone(personal, tmp_path):
    table, said = decided(personal, "--everyone", *ALL, "--cost-question", "0.01")
    model = load(personal)
    expected = model.decide_many(ALL, cost_question=0.01)
    assert table["user"].to_list() == list(model.users_.ids)
    assert table["action"].to_list() == expected["action"].to_list()
    assert "expected cost" in said
    loss = tmp_path / "loss.csv"
    loss.write_text("item,cost\napple,1\nbanana,20\ncherry,5\n")
    table, _ = decided(personal, "p03", *ALL, "--cost-wrong", loss)
    assert (
        tuple(table["option"]) == model.decide("p03", ALL, cost_wrong={"apple": 1, "banana": 20, "cherry": 5}).options
    )
    loss.write_text("item,apple,banana\napple,0,1\nbanana,2,0\n")
    table, _ = decided(personal, "p03", "apple", "banana", "--cost-wrong", loss)
    loss.write_text("item,apple\napple,0\nbanana,2\n")
    for arguments, message in (
        (("p03", "apple", "banana", "--cost-wrong", loss), "needs columns item and cost"),
        (("p03", "apple", "banana", "--cost-wrong", "much"), "takes a number or a file"),
        ((), "say whose choice it is"),
    ):
        ran = run("decide", personal, *arguments)
        assert ran.exit_code == 2
        assert message in " ".join(ran.output.split())


def test_options_that_were_not_in_the_answers(tmp_path):
    rng = np.random.default_rng(0)
    price = rng.integers(1, 9, (60, 2))
    pairs = pl.DataFrame({
        "user": np.arange(60) % 6, "left": [f"t{a}" for a in price[:, 0]], "right": [f"t{b + 10}" for b in price[:, 1]],
        "winner": np.where(price[:, 0] < price[:, 1] + rng.normal(size=60), "left", "right"),
    })  # fmt: skip
    items = pl.DataFrame({"item": [f"t{k}" for k in (*range(1, 9), *range(11, 19))], "price": [*range(1, 9)] * 2})
    Population().fit(pairs, items=items).save(tmp_path / "model")
    (tmp_path / "new.csv").write_text("item,price\nsmart,2.5\nplain,6.5\n")
    table, _ = decided(tmp_path / "model", "--everyone", "--items", tmp_path / "new.csv", "--cost-question", "9")
    assert len(table) == 6
    assert set(table["option"]) == {"smart"}
    table, _ = decided(tmp_path / "model", "3", "t1", "plain", "--items", tmp_path / "new.csv")
    assert table["option"][0] == "t1"
