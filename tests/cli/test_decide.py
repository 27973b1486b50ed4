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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["apple"], "two options or more; got 1"),
        (["apple", "quince"], "item ids are not known"),
        (["apple", "banana", "apple"], "hold apple twice"),
        (["apple", "banana", "--default", "cherry"], "the default cherry is none of the options"),
        (["apple", "banana", "--cost-wrong", "-1"], "--cost-wrong must be a number from 0 up, not -1"),
        (["apple", "banana", "--cost-question", "nan"], "--cost-question must be a number from 0 up"),
        (["apple", "banana", "--cost-defer", "inf"], "--cost-defer must be a number from 0 up, not inf"),
        (["apple", "banana", "--cost-wrong", "much"], "--cost-wrong"),
        ([], "Missing argument 'OPTION...'"),
    ],
)
def test_what_cannot_be_decided(personal, arguments, said):
    ran = run("decide", personal, "p03", *arguments)
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.replace("│", " ").split())
    assert not ran.stdout
