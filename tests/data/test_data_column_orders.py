"""Columns are found by their names, wherever they stand in a file of any kind."""

from __future__ import annotations

import gzip
from importlib.resources import files

import polars as pl
import pytest

from orders import EVERY, TURNS, orders_of
from predilect.data import Comparisons, ItemFeatures, PersonFeatures, read, read_frame, read_item_map
from predilect.data.read.readers import read_table

ROLES = ("user", "left", "right", "winner")
ANSWERS = {
    "user": ["u1", "u1", "u2", "u3", "u3"],
    "left": ["tea", "milk", "tea", "juice", "tea"],
    "right": ["milk", "juice", "juice", "tea", "milk"],
}
# The same answers, as each reading of a winner column writes them.
WINNERS = {
    "side": ["left", "right", "tie", "left", "right"],
    "sign": ["1", "-1", "0", "1", "-1"],
    "item": ["tea", "juice", "tie", "juice", "milk"],
}
MORE = {
    "weight": ["2", "1", "1", "3", "1"],
    "task": ["1", "2", "1", "1", "2"],
    "left note": ["x", "y", "z", "", "v"],
    "9": ["5", "4", "3", "2", "1"],
}


def frame_of(reading):
    columns = {**{name: ANSWERS[name] for name in ("user", "left", "right")}, "winner": WINNERS[reading]}
    return pl.DataFrame(columns | MORE)


KINDS = {
    "a.csv": lambda frame, path: frame.write_csv(path),
    "b.csv": lambda frame, path: frame.write_csv(path, separator=";"),
    "c.csv": lambda frame, path: frame.write_csv(path, quote_style="always"),
    "d.tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "e.txt": lambda frame, path: frame.write_csv(path, separator="\t"),
    "f.csv.gz": lambda frame, path: path.write_bytes(gzip.compress(frame.write_csv().encode(), mtime=0)),
    "g.jsonl": lambda frame, path: frame.write_ndjson(path),
    "h.ndjson.gz": lambda frame, path: path.write_bytes(gzip.compress(frame.write_ndjson().encode(), mtime=0)),
    "i.parquet": lambda frame, path: frame.write_parquet(path),
}


def orders(names, kind):
    """Every order in one kind of file; the others, which are all alike once they are loaded, in turns."""
    return orders_of(names, EVERY if kind == "a.csv" else TURNS)


def written(kind, frame, folder):
    KINDS[kind](frame, folder / kind)
    return folder / kind


def test_turns_put_every_column_in_every_place_and_on_both_sides_of_every_other():
    turns = orders_of(ROLES, TURNS)
    assert set(turns) < set(orders_of(ROLES, EVERY))
    assert len(orders_of(ROLES, EVERY)) == 24
    for one in ROLES:
        assert {order.index(one) for order in turns} == {0, 1, 2, 3}
        for other in set(ROLES) - {one}:
            assert any(order.index(one) < order.index(other) for order in turns)


# How winners are read does not hang on the kind of file, so one kind does for the other readings.
@pytest.mark.parametrize(
    ("kind", "reading"), [*((kind, "side") for kind in KINDS), ("a.csv", "sign"), ("a.csv", "item")]
)
def test_answers_are_the_same_in_every_order_of_the_columns_whatever_stands_between(tmp_path, kind, reading):
    frame = frame_of(reading)
    signs = {"reading": {"positive": "left"}} if reading == "sign" else {}
    expected = Comparisons.from_frame(frame, **signs)
    assert (expected.intake.left_wins, expected.intake.right_wins, expected.intake.ties) == (5, 2, 1)
    assert expected.task is not None
    others = list(MORE)
    for place, order in enumerate(orders(ROLES, kind)):
        turned = [*others[place % 4 :], *others[: place % 4]]
        columns = [name for pair in zip(turned, order, strict=True) for name in pair]
        found = read(written(kind, frame.select(columns), tmp_path), **signs)
        assert found == expected, columns
        assert found.intake.winner_reading == expected.intake.winner_reading, order
        assert found.intake.left_wins == 5, order
        assert found.intake.ignored_columns == tuple(name for name in columns if name in ("left note", "9"))


def test_columns_named_by_the_caller_are_found_in_every_order(tmp_path):
    names = {"user": "one", "left": "two", "right": "three", "winner": "four"}
    frame = frame_of("side").select(ROLES).rename(names)
    roles = {"who": "one", "left": "two", "right": "three", "answer": "four"}
    expected = Comparisons.from_frame(frame, columns=roles)
    for order in orders_of(names.values(), EVERY):
        assert read(written("a.csv", frame.select(order), tmp_path), columns=roles) == expected, order


@pytest.mark.parametrize("kind", KINDS)
def test_item_maps_features_and_tables_are_read_by_name(tmp_path, kind):
    frame = pl.DataFrame({"item": ["01", "1", "x"], "model": ["a", "b", "b"], "size": ["3", "4", "5"]})
    for order in orders(frame.columns, kind):
        path = written(kind, frame.select(order), tmp_path)
        assert read_item_map(path, value="model") == {"01": "a", "1": "b", "x": "b"}, order
        assert read_frame(path).select("item", "model").equals(frame.select("item", "model")), order
        assert [int(value) for value in read_frame(path)["size"]] == [3, 4, 5], order
        names, table = read_table(path, lambda _: ["size", "item"])
        assert names == list(order)
        assert table.equals(frame.select("size", "item")), order


@pytest.mark.parametrize(("made", "key"), [(ItemFeatures, "item"), (PersonFeatures, "user")])
def test_features_of_items_and_people_are_read_by_name(tmp_path, made, key):
    frame = pl.DataFrame({key: ["a", "b", "c"], "size": [3, 4, 5], "kind": ["x", "y", "x"], "new": [1, 0, 0]})
    expected = made.from_frame(frame)
    for order in orders_of(frame.columns, EVERY):
        found = made.from_frame(read_frame(written("a.csv", frame.select(order), tmp_path)))
        assert found.ids == expected.ids
        assert sorted(found.columns) == sorted(expected.columns)
        places = [found.columns.index(name) for name in expected.columns]
        assert (found.matrix[:, places] == expected.matrix).all(), order


@pytest.mark.parametrize(
    "order", [ROLES[::-1], ("left", "right", "user", "winner"), ("winner", "right", "left", "user")]
)
def test_the_bundled_votes_are_the_same_in_another_order(tmp_path, order):
    path = files("predilect") / "examples" / "llmfao" / "comparisons.csv.gz"
    frame = pl.read_csv(path.read_bytes(), infer_schema=False)
    expected = read(path)
    assert (expected.n_users, expected.n_answers) == (124, 8931)
    columns = [*order[:2], "pair_id", *order[2:]]
    assert read(written("f.csv.gz", frame.select(columns), tmp_path)) == expected


def test_columns_of_one_name_that_are_not_wanted_change_nothing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("note,winner,note,right,user,left,,\nx,tea,y,milk,u1,tea,,\nv,tea,w,tea,u2,milk,,\n")
    expected = Comparisons.from_frame(
        {"user": ["u1", "u2"], "left": ["tea", "milk"], "right": ["milk", "tea"], "winner": ["tea", "tea"]}
    )
    assert read(path) == expected
