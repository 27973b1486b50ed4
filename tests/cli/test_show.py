"""``predilect show``: boards, items against each other, and the trade-offs of GaSPK."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest

from cli.running import run
from predilect import GaSPK, Population, load
from predilect.decisions.scales import scale_of


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
    ran = run("show", *arguments, "--format", "csv")
    assert ran.exit_code == 0, ran.output
    return pl.read_csv(io.StringIO(ran.stdout))


def refused(*arguments):
    ran = run("show", *arguments)
    assert ran.exit_code == 2, ran.output
    assert not ran.stdout
    return " ".join(ran.stderr.split())


def same(found, expected):
    assert found.columns == expected.columns
    assert found.write_csv() == pl.read_csv(io.StringIO(pl.DataFrame(expected).write_csv())).write_csv()


@pytest.mark.parametrize("scale", ["probit", "logit", "elo", "0-100", "share"])
def test_boards_on_every_scale_are_those_of_the_library(results, scale):
    model = load(results)
    same(table(results, "--scale", scale), model.rank(scale=scale))
    same(table(results / "model", "--scale", scale, "--user", "p03"), model.rank("p03", scale=scale))
    assert scale_of(scale, "probit").unit in " ".join(run("show", results, "--scale", scale).stdout.split())


def test_a_base_and_an_anchor(results):
    model = load(results)
    same(table(results, "--scale", "elo:1000"), model.rank(scale="elo", base=1000.0))
    same(table(results, "--scale", "elo:1000:banana"), model.rank(scale="elo", base=1000.0, anchor="banana"))
    same(table(results, "--scale", "elo::banana"), model.rank(scale="elo", anchor="banana"))


def test_the_printed_board_and_its_record(results):
    shown = run("show", results, "--top", 2).stdout
    assert "apple" in shown
    assert f"3 more items; predilect show {results} --top 0 shows all" in shown
    assert "elderberry" in run("show", results, "--top", 0).stdout
    assert "The board of p03" in run("show", results, "--user", "p03").stdout
    document = json.loads(run("show", results, "--user", "p03", "--format", "json").stdout)
    assert (document["schema"], document["user"], document["scale"]["name"]) == ("predilect/board", "p03", "probit")
    assert document["board"] == load(results).rank("p03").to_dicts()
    markdown = run("show", results, "--format", "md", "--top", 2)
    lines = markdown.stdout.splitlines()
    assert lines[0].startswith("| Rank | 95 % | Item | Score |")
    assert sum(line.startswith("| ") for line in lines) == 3
    first = load(results).rank().row(0, named=True)
    assert f"| {first['mean']:.2f} | {first['lower']:.2f} … {first['upper']:.2f} |" in lines[2]
    assert "Model: population" in markdown.stderr
    assert "Model: population" in run("show", results, "--explain").stdout


def test_people_who_hardly_differ_are_said_to_have_the_crowds_ranking(results, tmp_path):
    answers = {"user": ["p1", "p2"] * 6, "left": ["tea"] * 12, "right": ["milk"] * 12, "winner": ["tea", "milk"] * 6}
    fixed = {"strength": 1e4, "variance": 1e-6, "consistency": 0.0, "clickers": 0.0, "calibration": None}
    Population(n_jobs=1, **fixed).fit(answers).save(tmp_path / "alike")
    for given in ((), ("tea", "milk")):
        assert "People hardly differ" in run("show", tmp_path / "alike", *given, "--user", "p1").stdout
        assert "hardly" not in run("show", tmp_path / "alike", *given).stdout
    assert "hardly" not in run("show", results, "--user", "p03").stdout


def test_items_against_each_other(results):
    model = load(results)
    pairs = [("apple", "cherry"), ("apple", "banana"), ("cherry", "banana")]
    same(table(results, "apple", "cherry", "banana"), model.versus(pairs))
    same(table(results, "apple", "cherry", "--user", "p03", "--scale", "elo"),
         model.versus(pairs[:1], user="p03", scale="elo"))  # fmt: skip
    assert "apple is better than cherry with probability " in run("show", results, "apple", "cherry").stdout
    document = json.loads(run("show", results, "apple", "cherry", "--format", "json").stdout)
    assert document["versus"] == model.versus(pairs[:1]).to_dicts()


def test_what_cannot_be_shown(results):
    assert "two or more different items" in refused(results, "apple")
    assert "two or more different items" in refused(results, "apple", "apple")
    assert "Did you mean" in refused(results, "apple", "chery")
    assert "knows no segments" in refused(results, "--segment", "language=de")
    assert "different boards" in refused(results, "--user", "p03", "--segment", "language=de")
    assert "different questions" in refused(results, "apple", "cherry", "--pay-with", "price")
    assert "scale" in refused(results, "--scale", "points")
    assert '"much" is no number' in refused(results, "--scale", "elo:much")
    assert "names no item" in refused(results, "--scale", "elo:1000:")
    assert "fig" in refused(results, "--scale", "elo:1000:fig")
    assert "base means nothing there" in refused(results, "--scale", "share:1000")
    assert "nobody" in refused(results, "--user", "nobody")
    assert "--model gaspk" in refused(results, "--pay-with", "price")


def test_trade_offs_are_those_of_the_library(plans):
    model = load(plans)
    given = pl.DataFrame({"price": [2.0, -1.0], "fuel=gas": [1.0, 0.0], "fuel=oil": [-1.0, 0.0]})
    arguments = (plans, "--accept", "price=2,fuel=gas=1, fuel=oil=-1", "--accept", "price=-1")
    same(table(*arguments), model.accept(given))
    same(table(plans, "--accept", "price=2,fuel=gas,fuel=oil=-1", "--accept", "price=-1"), model.accept(given))
    same(table(*arguments, "--user", "p3"), model.accept(given, "p3"))
    same(table(plans, "--indifference", "time,price"), model.indifference("time", "price"))
    same(table(plans, "--pay-with", "price", "--user", "p2"), model.willingness("price", user="p2"))
    document = json.loads(run("show", plans, "--pay-with", "price", "--format", "json").stdout)
    assert (document["schema"], document["question"]) == ("predilect/trade-offs", "pay-with")
    assert "price" in run("show", plans, "--pay-with", "price").stdout


def test_trade_offs_that_cannot_be_asked(plans):
    assert 'as price=5; got "price"' in refused(plans, "--accept", "price")
    assert '--accept takes numbers with commas between them; got "much"' in refused(plans, "--accept", "price=much")
    assert 'Did you mean "fuel=gas"?' in refused(plans, "--accept", "fuel=gass")
    assert 'got "inf"' in refused(plans, "--accept", "price=inf")
    assert 'names "price" twice' in refused(plans, "--accept", "price=1,price=2")
    assert "takes two attributes" in refused(plans, "--indifference", "time")
    assert '"prize" is no attribute' in refused(plans, "--accept", "prize=1")
    assert 'no attribute "prize"' in refused(plans, "--pay-with", "prize")
    assert "nobody" in refused(plans, "--pay-with", "price", "--user", "nobody")
