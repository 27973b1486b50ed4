"""The commands find columns by their names, wherever they stand in a file."""

from __future__ import annotations

import io
import json

import polars as pl
import pytest

from cli.running import run
from orders import SLOW, TURNS, orders_of
from predilect.cli.reading import ReadingOptions, Source

COLUMNS = ("judge", "model_a", "model_b", "winner")
# tests/data/test_data_column_orders.py reads files in every order; here each order is a whole command.
in_orders = pytest.mark.parametrize("which", [TURNS, SLOW])


@in_orders
@pytest.mark.parametrize("name", ["pairs.csv", "pairs.tsv"])
def test_predictions_of_pairs_are_the_same_in_every_order_of_their_columns(results, tmp_path, name, which):
    pairs = pl.DataFrame(
        {
            "user": ["p03", "p00", "p00"],
            "left": ["banana", "apple", "cherry"],
            "right": ["apple", "cherry", "banana"],
            "note": ["x", "y", "z"],
        }
    )
    found = {}
    for order in orders_of(pairs.columns, which):
        pairs.select(order).write_csv(tmp_path / name, separator="\t" if name.endswith("tsv") else ",")
        ran = run("predict", results, tmp_path / name)
        assert ran.exit_code == 0, ran.output
        table = pl.read_csv(io.StringIO(ran.stdout))
        assert table.columns[:4] == list(order)
        found[order] = table.select(sorted(table.columns)).write_csv()
    assert len(set(found.values())) == 1


@in_orders
def test_candidates_and_answers_since_are_the_same_in_every_order_of_their_columns(results, tmp_path, which):
    pairs = pl.DataFrame({"left": ["banana", "apple"], "right": ["apple", "cherry"], "name": ["x", "y"]})
    items = pl.DataFrame({"item": ["banana", "cherry"], "price": [3, 4], "name": ["apple", "apple"]})
    since = pl.DataFrame({"user": ["p03"], "left": ["apple"], "right": ["cherry"], "winner": ["cherry"]})

    def asked(*arguments):
        ran = run("ask", results, "p03", "--repeat", "-n", 9, *arguments)
        assert ran.exit_code == 0, ran.output
        return sorted(pl.read_csv(io.StringIO(ran.stdout)).select("left", "right").rows())

    for order in orders_of(pairs.columns, which):
        pairs.select(order).write_csv(tmp_path / "pairs.csv")
        assert asked("--candidates", tmp_path / "pairs.csv") == [("apple", "cherry"), ("banana", "apple")]
    for order in orders_of(items.columns, which):
        items.select(order).write_csv(tmp_path / "items.csv")
        assert asked("--candidates", tmp_path / "items.csv") == [("banana", "cherry")]
    for order in orders_of(since.columns, which):
        since.select(order).write_csv(tmp_path / "since.csv")
        chosen = ("--candidates", tmp_path / "pairs.csv", "--exclude", tmp_path / "since.csv")
        assert asked(*chosen) == [("banana", "apple")]


@in_orders
def test_checks_are_the_same_in_every_order_of_the_columns(votes_frame, tmp_path, which):
    path, found = tmp_path / "votes.csv", []
    for order in orders_of(COLUMNS, which):
        votes_frame.select(*order[:2], "language", *order[2:]).write_csv(path)
        ran = run("check", path, "--format", "json")
        assert ran.exit_code == 0, ran.output
        document = json.loads(ran.stdout)
        assert (document["n_items"], document["n_users"], document["n_answers"]) == (5, 12, 240)
        found.append(json.dumps(document["findings"]))
    assert len(set(found)) == 1


@in_orders
def test_segments_hold_the_same_answers_in_every_order_of_the_columns(votes_frame, tmp_path, which):
    path, found = tmp_path / "votes.csv", []
    for order in orders_of(("language", *COLUMNS), which):
        votes_frame.select(order).write_csv(path)
        found.append(Source(path, ReadingOptions(), {}).read("language"))
        assert found[-1].comparisons == found[0].comparisons
        assert found[-1].segments == found[0].segments
    assert list(found[0].segments) == ["de", "en"]


def test_segments_have_the_covariates_of_all_and_sides_only_if_all_have_them(tmp_path):
    rows = [{"user": k % 4, "left": "abc"[k % 3], "right": "abc"[(k + 1 + k % 2) % 3], "topic": "xy"[k % 2],
             "winner": "left" if k % 5 else "right", "length": k / 7} for k in range(60)]  # fmt: skip
    pl.DataFrame(rows).write_csv(tmp_path / "v.csv")
    found = Source(tmp_path / "v.csv", ReadingOptions.of(["covariates=length"], []), {}).read("topic")
    assert found.comparisons.sides is not None
    assert "topic" not in found.comparisons.intake.ignored_columns
    for part in found.segments.values():
        assert part.covariate_names == ("length",)
        assert part.sides is not None
    first = pl.DataFrame(rows).with_columns(winner=pl.lit("left"))
    first.write_csv(tmp_path / "v.csv")
    found = Source(tmp_path / "v.csv", ReadingOptions(), {}).read("topic")
    assert found.comparisons.intake.no_sides == "winner first"
    assert all(part.intake.no_sides == "not wanted" for part in found.segments.values())
