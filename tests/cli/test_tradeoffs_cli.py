"""``predilect trade-offs``."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import polars as pl
import pytest

from cli.running import run
from predilect import GaSPK, load_model


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """A model of people who mind the price and like gas."""
    rng = np.random.default_rng(0)
    items = pl.DataFrame({
        "item": [f"i{k}" for k in range(12)], "price": rng.uniform(1.0, 9.0, 12).round(1),
        "time": rng.uniform(10.0, 60.0, 12).round(), "fuel": ["gas", "oil", "sun"] * 4,
    })  # fmt: skip
    utility = -items["price"].to_numpy() - 0.05 * items["time"].to_numpy() + (items["fuel"] == "gas").to_numpy()
    left, right = rng.integers(0, 12, 300), rng.integers(0, 11, 300)
    right += right >= left
    wins = utility[left] - utility[right] + rng.normal(size=300) > 0.0
    answers = pl.DataFrame({
        "user": [f"p{k % 10}" for k in range(300)], "left": [f"i{k}" for k in left], "right": [f"i{k}" for k in right],
        "winner": [f"i{a if won else b}" for a, b, won in zip(left, right, wins, strict=True)],
    })  # fmt: skip
    folder = tmp_path_factory.mktemp("trade-offs") / "model"
    fixed = {"n_components": 2, "variance": 10.0, "concentration": 3.0, "spread": 1.0, "n_jobs": 1}
    GaSPK(**fixed).fit(answers, items=items).save(folder)
    return folder


def table(*arguments):
    ran = run("trade-offs", *arguments)
    assert ran.exit_code == 0, ran.output
    return pl.read_csv(io.StringIO(ran.stdout))


def refused(*arguments):
    ran = run("trade-offs", *arguments)
    assert ran.exit_code == 2, ran.output
    assert not ran.stdout
    return " ".join(ran.stderr.split())


def same(found, expected):
    assert found.columns == expected.columns
    assert found.write_csv() == pl.read_csv(io.StringIO(expected.write_csv())).write_csv()


def test_acceptance_is_that_of_the_library(plans):
    model = load_model(plans)
    given = pl.DataFrame({"price": [2.0, -1.0], "fuel=gas": [1.0, 0.0], "fuel=oil": [-1.0, 0.0]})
    arguments = (plans, "--accept", "price=2,fuel=gas=1, fuel=oil=-1", "--accept", "price=-1")
    same(table(*arguments), model.accept(given))
    same(table(plans, "--accept", "price=2,fuel=gas,fuel=oil=-1", "--accept", "price=-1"), model.accept(given))
    for users, who in ((["p3"], "p3"), (["p3", "p1"], ["p3", "p1"]), (["all"], "all")):
        same(table(*arguments, *(part for user in users for part in ("--user", user))), model.accept(given, who))


def test_indifference_willingness_and_segments_are_those_of_the_library(plans):
    model = load_model(plans)
    same(table(plans, "--indifference", "time,price"), model.indifference("time", "price"))
    same(
        table(plans, "--indifference", "time,price", "--at=-5,0,5", "--other", "fuel=gas=1", "--user", "p2"),
        model.indifference("time", "price", [-5.0, 0.0, 5.0], "p2", other={"fuel=gas": 1.0}),
    )
    same(table(plans, "--pay-with", "price"), model.willingness("price"))
    same(
        table(plans, "--pay-with", "price", "--for", "time", "--change", -10, "--user", "p2"),
        model.willingness("price", "time", -10.0, "p2"),
    )
    same(table(plans, "--segments"), model.segments())


def test_formats_and_files(plans, tmp_path):
    arguments = ("trade-offs", plans, "--pay-with", "price")
    expected = load_model(plans).willingness("price")
    document = json.loads(run(*arguments, "--json").stdout)
    assert (document["schema"], document["question"]) == ("predilect/trade-offs", "pay-with")
    assert [row["attribute"] for row in document["rows"]] == expected["attribute"].to_list()
    # An infinite bound is a word, with its sign.
    for row, upper in zip(document["rows"], expected["upper"], strict=True):
        assert row["upper"] == (str(upper) if math.isinf(upper) else upper)
    assert run(*arguments, "--format", "md").stdout.startswith("|")
    ran = run(*arguments, "--out", tmp_path / "worth.csv")
    assert ran.exit_code == 0
    assert not ran.stdout
    same(pl.read_csv(tmp_path / "worth.csv"), expected)
    assert run(*arguments, "--out", tmp_path / "worth.csv").exit_code == 2
    assert run(*arguments, "--out", tmp_path / "worth.csv", "--force").exit_code == 0


def test_what_cannot_be_asked(plans, tmp_path, votes_frame):
    assert "give one of --accept, --indifference, --pay-with, --segments; got none" in refused(plans)
    assert "got --accept and --segments" in refused(plans, "--accept", "price=1", "--segments")
    assert "--at is for --indifference, not for --pay-with" in refused(plans, "--pay-with", "price", "--at", "1")
    assert "--user is for" in refused(plans, "--segments", "--user", "p1")
    assert 'as price=5; got "price"' in refused(plans, "--accept", "price")
    assert '--accept takes numbers; got "much"' in refused(plans, "--accept", "price=much")
    assert 'got "gass". Did you mean "fuel=gas"?' in refused(plans, "--accept", "fuel=gass")
    assert '--accept takes numbers; got "inf"' in refused(plans, "--accept", "price=inf")
    assert 'names "price" twice' in refused(plans, "--accept", "price=1,price=2")
    assert "takes two attributes" in refused(plans, "--indifference", "time")
    assert '--at takes numbers; got "x"' in refused(plans, "--indifference", "time,price", "--at", "1,x")
    assert '"prize" is no attribute' in refused(plans, "--accept", "prize=1")
    assert 'no attribute "prize"' in refused(plans, "--pay-with", "prize")
    assert "nobody" in refused(plans, "--pay-with", "price", "--user", "nobody")
    from predilect import Population

    Population(personal=False, consensus_variance=1.0).fit(votes_frame).save(tmp_path / "other")
    assert "--model gaspk" in refused(tmp_path / "other", "--segments")
