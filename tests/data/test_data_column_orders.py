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


def write_csv(frame, path):
    frame.write_csv(path)


def write_tabs(frame, path):
    frame.write_csv(path, separator="\t")


def write_semicolons(frame, path):
    frame.write_csv(path, separator=";")


def write_quoted(frame, path):
    frame.write_csv(path, quote_style="always")


def write_gzip(frame, path):
    path.write_bytes(gzip.compress(frame.write_csv().encode(), mtime=0))


def write_gzip_lines(frame, path):
    path.write_bytes(gzip.compress(frame.write_ndjson().encode(), mtime=0))


def write_lines(frame, path):
    frame.write_ndjson(path)


def write_parquet(frame, path):
    frame.write_parquet(path)


KINDS = {
    "a.csv": write_csv,
    "b.csv": write_semicolons,
    "c.csv": write_quoted,
    "d.tsv": write_tabs,
    "e.txt": write_tabs,
    "f.csv.gz": write_gzip,
    "g.jsonl": write_lines,
    "h.ndjson.gz": write_gzip_lines,
    "i.parquet": write_parquet,
}


def in_orders(names, *cases):
    """One kind of file in every order; the others, which are all alike once they are loaded, in turns."""
    others = [case for case in cases if case[0] != "a.csv"]
    return pytest.mark.parametrize(
        f"which,{names}",
        [
            *((EVERY, *case) for case in cases if case not in others),
            *((TURNS, *case) for case in others),
            *(pytest.param(EVERY, *case, marks=pytest.mark.slow) for case in others),
        ],
    )


every_kind = in_orders("kind", *((kind,) for kind in KINDS))
# How winners are read does not hang on the kind of file, so one kind does for the other readings.
every_kind_and_reading = in_orders(
    "kind,reading", *((kind, "side") for kind in KINDS), ("a.csv", "sign"), ("a.csv", "item")
)


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


@every_kind_and_reading
def test_answers_are_the_same_in_every_order_of_the_columns(tmp_path, kind, which, reading):
    frame = frame_of(reading).select(ROLES)
    signs = {"reading": {"positive": "left"}} if reading == "sign" else {}
    expected = Comparisons.from_frame(frame, **signs)
    assert (expected.intake.left_wins, expected.intake.right_wins, expected.intake.ties) == (2, 2, 1)
    for order in orders_of(ROLES, which):
        found = read(written(kind, frame.select(order), tmp_path), **signs)
        assert found == expected, order
        assert found.intake.winner_reading == expected.intake.winner_reading, order
        assert found.intake.left_wins == 2, order


@every_kind_and_reading
def test_weights_tasks_and_columns_between_change_nothing_in_any_order(tmp_path, kind, which, reading):
    frame = frame_of(reading)
    signs = {"reading": {"positive": "left"}} if reading == "sign" else {}
    expected = Comparisons.from_frame(frame, **signs)
    assert expected.task is not None
    assert expected.n_answers == 8
    others = list(MORE)
    for place, order in enumerate(orders_of(ROLES, which)):
        turned = [*others[place % 4 :], *others[: place % 4]]
        columns = [name for pair in zip(turned, order, strict=True) for name in pair]
        found = read(written(kind, frame.select(columns), tmp_path), **signs)
        assert found == expected, columns
        assert found.intake.ignored_columns == tuple(name for name in columns if name in ("left note", "9"))


@every_kind
def test_columns_named_by_the_caller_are_found_in_every_order(tmp_path, kind, which):
    names = {"user": "one", "left": "two", "right": "three", "winner": "four"}
    frame = frame_of("side").select(ROLES).rename(names)
    roles = {"who": "one", "left": "two", "right": "three", "answer": "four"}
    expected = Comparisons.from_frame(frame, columns=roles)
    for order in orders_of(names.values(), which):
        assert read(written(kind, frame.select(order), tmp_path), columns=roles) == expected, order


@every_kind
def test_item_maps_features_and_tables_are_read_by_name(tmp_path, kind, which):
    frame = pl.DataFrame({"item": ["01", "1", "x"], "model": ["a", "b", "b"], "size": ["3", "4", "5"]})
    for order in orders_of(frame.columns, which):
        path = written(kind, frame.select(order), tmp_path)
        assert read_item_map(path, value="model") == {"01": "a", "1": "b", "x": "b"}, order
        assert read_frame(path).select("item", "model").equals(frame.select("item", "model")), order
        assert [int(value) for value in read_frame(path)["size"]] == [3, 4, 5], order
        names, table = read_table(path, lambda _: ["size", "item"])
        assert names == list(order)
        assert table.equals(frame.select("size", "item")), order


@every_kind
def test_features_of_items_and_people_are_read_by_name(tmp_path, kind, which):
    for made, key in ((ItemFeatures, "item"), (PersonFeatures, "user")):
        frame = pl.DataFrame({key: ["a", "b", "c"], "size": [3, 4, 5], "kind": ["x", "y", "x"], "new": [1, 0, 0]})
        expected = made.from_frame(frame)
        for order in orders_of(frame.columns, which):
            found = made.from_frame(read_frame(written(kind, frame.select(order), tmp_path)))
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
