"""The side on which an item was shown and the covariates of an answer: read, kept with the rows, split and merged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from predilect._base.text import spoken_to
from predilect.data import Comparisons, Intake, check
from predilect.data import read as read_file
from predilect.data.features import FeatureSpace
from predilect.data.splits import only_people_of, with_items_of, with_moderate_counts
from predilect.errors import DataError
from simulate import random_pairs

ROWS = {
    "user": ["u", "u", "u", "v", "v"],
    "left": ["a", "b", "a", "c", "b"],
    "right": ["b", "a", "b", "a", "c"],
    "winner": ["a", "a", "a", "tie", "c"],
    "weight": [1, 2, 4, 1, 1],
    "length": [0.5, -0.5, 2.0, 1.0, -3.0],
}


def read(frame, reading=None, **options):
    return Comparisons.from_frame(frame, reading={"answer_is": "item"} | (reading or {}), **options)


def same(one, two, *without):
    names = {"user", "left", "right", "outcome", "weight", "task", "sides", "covariates"} - set(without)
    return one == two and all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names
                              if getattr(one, name) is not None or getattr(two, name) is not None)  # fmt: skip


def pairs_shown_anyhow(n=200, seed=0):
    rng = np.random.default_rng(seed)
    left, right = random_pairs(rng, n, 8)
    return {"user": rng.integers(0, 20, n), "left": left, "right": right}, rng.choice([1, 0, -1], n)


def test_sides_add_up_and_covariates_keep_rows_apart():
    read_plainly = read(ROWS)
    assert read_plainly.weight.tolist() == [7.0, 1.0, 1.0]
    assert read_plainly.sides.tolist() == [[5.0, 2.0], [0.0, 1.0], [1.0, 0.0]]
    assert read_plainly.intake.no_sides == ""
    found = read(ROWS, columns={"covariates": ["length"]})
    assert found.covariate_names == ("length",)
    # a over b with .5 twice, as -.5 was said of b over a; and once with 2.
    assert found.covariates[:, 0].tolist() == [0.5, 2.0, -1.0, -3.0]
    assert found.weight.tolist() == [3.0, 4.0, 1.0, 1.0]
    assert found.sides.tolist() == [[1.0, 2.0], [4.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    assert found.intake.columns["covariate length"] == "length"
    assert found.intake.ignored_columns == ()
    assert found != read_plainly
    assert found != read({**ROWS, "length": [0.5, -0.5, 2.0, 1.0, 3.0]}, columns={"covariates": ["length"]})
    assert found != replace(found, covariate_names=("width",))
    for array in (found.sides, found.covariates):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3
    assert found.to_frame().columns[-2:] == ["length", "shown_left"]
    assert found.to_frame()["shown_left"].to_list() == [1.0, 4.0, 0.0, 1.0]


def test_rows_and_weights_are_those_of_a_reading_without_sides():
    frame, outcome = pairs_shown_anyhow(3000)
    weight = np.random.default_rng(1).random(3000)
    with_sides, without = (Comparisons.from_frame({**frame, "weight": weight}, outcome=outcome, reading={"side": side})
                           for side in (None, False))  # fmt: skip
    assert same(with_sides, without, "sides")
    assert without.sides is None
    assert without.intake.no_sides == "not wanted"
    assert np.allclose(with_sides.sides.sum(axis=1), with_sides.weight, rtol=1e-12, atol=0)
    assert len(with_sides.with_side()) > len(with_sides)  # and no crumb of a sum is a row
    assert set(with_sides.with_side().covariates[:, 0].tolist()) == {1.0, -1.0}


def test_appending_ids_whose_order_turns_turns_sides_and_covariates_too():
    numbers = Comparisons.from_frame(
        {"left": [5, 10], "right": [7, 5], "winner": [5, 5], "x": [1, 2]}, columns={"covariates": "x"}
    )
    text = Comparisons.from_frame(  # as text "10" comes before "7"
        {"left": ["10", "10"], "right": ["7", "7"], "winner": ["7", "tie"], "x": [3, 4]}, columns={"covariates": ["x"]}
    )
    assert text.covariates.tolist() == [[3.0], [4.0]]
    assert text.sides.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    both = numbers.append(text)
    rows = both.to_frame().filter(pl.col("left") == 7)
    assert rows.select("right", "outcome", "x", "shown_left").rows() == [(10, 0, -4.0, 0.0), (10, 1, -3.0, 0.0)]
    assert both.take(both.outcome == 0).sides.tolist() == [[0.0, 1.0]]


def test_sides_are_unknown_where_only_the_other_answers_have_them():
    known = read(ROWS)
    unknown = read(ROWS, reading={"side": False})
    both = known.append(unknown)
    assert both.weight.tolist() == [14.0, 2.0, 2.0]
    assert both.sides.tolist() == known.sides.tolist()
    assert both.intake.no_sides == ""
    assert sorted(both.with_side().covariates[:, 0].tolist()) == [-1, -1, 0, 0, 0, 1, 1]
    assert same(both.with_side().without_covariates(), both, "sides")
    assert unknown.append(unknown).intake.no_sides == "not wanted"
    assert unknown.with_side().covariates.tolist() == [[0.0], [0.0], [0.0]]


def test_only_answers_with_the_same_covariates_can_be_joined():
    found, plain = read(ROWS, columns={"covariates": ["length"]}), read(ROWS)
    with pytest.raises(DataError, match=r'different covariates, "length" and none; read both .* without_covariates'):
        found.append(plain)
    assert found.append(plain.take([])) == found
    assert plain.take([]).append(found) == found
    assert found.without_covariates().append(plain).n_answers == 18
    with pytest.raises(DataError, match='called "side" already'):
        read({**ROWS, "side": ROWS["length"]}, columns={"covariates": ["side"]}).with_side()
    with pytest.raises(DataError, match="covariates has shape"):
        replace(plain, covariates=np.zeros((3, 2)), covariate_names=("x",))
    with pytest.raises(DataError, match="go together"):
        replace(plain, covariate_names=("x",))


def test_parts_and_lighter_answers_keep_sides_in_proportion():
    frame, outcome = pairs_shown_anyhow()
    frame["weight"] = np.where(np.arange(200) % 9 == 7, 40.0, 1.0)
    whole = Comparisons.from_frame({**frame, "x": np.arange(200.0)}, outcome=outcome, columns={"covariates": ["x"]})
    light = with_moderate_counts(whole)
    assert light.weight.max() == 5.0
    assert np.allclose(light.sides.sum(axis=1), light.weight)
    some, _ = only_people_of(whole, whole.user < 5)
    assert np.array_equal(some.sides, whole.sides[whole.user < 5])
    few, _ = with_items_of(whole.with_items([100]), FeatureSpace.empty(9))
    assert same(few, whole)


def test_a_covariate_is_a_difference_or_two_columns():
    expected = read(ROWS, columns={"covariates": ["length"]})
    base = {name: column for name, column in ROWS.items() if name != "length"}
    for one, two in (("length_left", "length_right"), ("length_a", "length_b")):
        halves = {one: [7.5, 6.5, 9.0, 8.0, 4.0], two: [7] * 5}
        found = read(pd.DataFrame({**base, **halves}), columns={"covariates": ["length"]})
        assert same(found, expected)
        assert found.intake.columns["covariate length (left)"] == one
    assert same(Comparisons.from_frame(found.to_frame(), columns={"covariates": ["length"]}), found, "sides")
    yes = read({**base, "cited_a": [True, False, True, True, True], "cited_b": [True, True, False, True, True]},
               columns={"covariates": ["cited"]})  # fmt: skip
    assert yes.covariates[:, 0].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert yes.weight.tolist() == [1.0, 6.0, 1.0, 1.0]


def test_files_give_the_same_covariates_as_frames(tmp_path):
    frame = pl.DataFrame({**ROWS, "cited": [True, False, True, False, False], "other": "x"})
    expected = read(frame, columns={"covariates": ["length", "cited"]})
    for name, write in (("v.csv", frame.write_csv), ("v.parquet", frame.write_parquet)):
        write(tmp_path / name)
        found = read_file(tmp_path / name, columns={"covariates": ["length", "cited"]}, reading={"answer_is": "item"})
        assert same(found, expected)
        assert found.intake.ignored_columns == ("other",)


def test_a_covariate_is_not_taken_for_another_column():
    counted = {**ROWS, "count": ROWS["weight"]}
    del counted["weight"]
    found = read(counted, columns={"covariates": ["count"]})
    assert "weight" not in found.intake.columns
    assert found.covariates is not None
    with pytest.raises(DataError, match='column "count" cannot be both weight and covariate'):
        read(counted, columns={"covariates": ["count"], "weights": "count"})


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([1, None, 2, None, 3], r'missing in 2 rows \(missing values by covariate: "x" 2; first: row 2, 4\)'),
        (["1", "", "2", "3", "4"], r'missing in 1 row .*reading={"drop": "missing"}'),
        ([1.0, 2.0, float("inf"), 3.0, 4.0], r"infinite values in 1 row \(first: row 3\)"),
        (["1", "long", "2", "?", "4"], r'holds text in 2 rows \(first: row 2, "long"\)'),
        ([[1]] * 5, "holds values of type List"),
        ([1.0, 1e101, 0.0, 0.0, 0.0], r"the covariate of x is beyond ±1e\+100 in 1 row \(first: row 2"),
    ],
)
def test_a_covariate_that_is_no_number_is_refused(column, said):
    with pytest.raises(DataError, match=said):
        Comparisons.from_frame({**ROWS, "x": pl.Series(column)}, columns={"covariates": ["x"]})


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["size"], r'no column "size", nor "size_left" and "size_right", nor "size_a" and "size_b" '
                   r'\(given with columns={"covariates": "size"}\); the columns are "user", "left"'),
        (["length", "length"], "named twice"),
        (["weight"], 'cannot be called "weight"'),
        (["context"], 'cannot be called "context"'),
        (["y"], 'can be read from "y"; and "y_left" and "y_right"'),
        (["z"], r"the covariate of z_a and z_b is beyond ±1e\+100 in 1 row \(first: row 1"),
    ],
)  # fmt: skip
def test_a_covariate_that_is_not_there_or_there_twice_is_refused(names, said):
    more = {"y": [1] * 5, "y_left": [1] * 5, "y_right": [1] * 5}
    huge = {"z_a": [1e308, 0, 0, 0, 0], "z_b": [-1e308, 0, 0, 0, 0]}
    with pytest.raises(DataError, match=said):
        read({**ROWS, **more, **huge}, columns={"covariates": names})


def test_rows_without_a_covariate_are_left_out_and_counted_if_asked():
    holes = {**ROWS, "length": [0.5, None, 2.0, 1.0, float("nan")]}
    found = read(holes, columns={"covariates": ["length"]}, reading={"drop": "missing"})
    assert found.intake.left_out == {"missing covariate": 2}
    keep = {name: [column[k] for k in (0, 2, 3)] for name, column in ROWS.items()}
    assert same(found, read(keep, columns={"covariates": ["length"]}))
    with pytest.raises(DataError, match="5 × missing covariate"):
        read({**ROWS, "length": [None] * 5}, columns={"covariates": ["length"]}, reading={"drop": "missing"})
    # A row that is left out for another reason need have no covariate.
    lost = read(
        {**holes, "winner": ["a", "?", "a", "tie", "?"]},
        columns={"covariates": ["length"]},
        reading={"drop": "unknown"},
    )
    assert lost.intake.left_out == {"unknown winner": 2}


def test_the_command_is_told_its_own_options():
    with spoken_to("command"), pytest.raises(DataError, match=r"given with -c covariates=size"):
        read(ROWS, columns={"covariates": ["size"]})
    frame = {"chosen": ["a", "b"], "rejected": ["b", "c"], "winner": ["a", "b"]}
    with spoken_to("command"), pytest.raises(DataError, match="--read side=yes asks for the sides"):
        read(frame, columns={"left": "chosen", "right": "rejected"}, reading={"side": True})


def chosen_first(n=30, wrong=5):
    frame, _ = pairs_shown_anyhow(n)
    return {**frame, "winner": np.where(np.arange(n) < wrong, frame["right"], frame["left"])}


@pytest.mark.parametrize(("wrong", "said"), [(5, "winner first"), (6, ""), (24, ""), (25, "winner last")])
def test_more_than_four_of_five_winners_on_one_side_are_no_sides(wrong, said):
    found = read(chosen_first(30, wrong))
    assert found.intake.no_sides == said
    assert (found.sides is None) == bool(said)
    told = [line for line in found.intake.describe() if "ides are not used" in line]
    side, place = ("left", "first") if wrong < 15 else ("right", "last")
    line = f"83 % of decided answers have the winner on the {side}, so the file lists the winner {place}."
    assert told == ([f"Sides are not used: {line}"] if said else [])
    assert read(chosen_first(30, wrong), reading={"side": True}).covariate_names == ("side",)  # who says so knows


def test_a_given_outcome_has_sides_as_a_winner_has():
    frame, outcome = pairs_shown_anyhow()
    assert Comparisons.from_frame(frame, outcome=outcome).sides is not None
    assert Comparisons.from_frame(frame, outcome=np.ones(200)).intake.no_sides == "winner first"
    few = {name: column[:19] for name, column in frame.items()}
    assert Comparisons.from_frame(few, outcome=np.ones(19)).sides is not None  # too few to tell
    assert Comparisons.from_frame({**few, "weight": [2] * 19}, outcome=np.ones(19)).sides is None
    tied = Comparisons.from_frame(frame, outcome=np.zeros(200))
    assert tied.sides is not None


@pytest.mark.parametrize("names", [("winner", "loser"), ("chosen", "rejected"), ("Rejected", "Chosen")])
def test_columns_of_winners_and_losers_have_no_sides(names):
    frame = {names[0]: ["a", "b", "c"], names[1]: ["b", "c", "b"]}
    found = Comparisons.from_frame(frame, columns={"left": names[0], "right": names[1]}, outcome=[1, 1, 1])
    assert found.sides is None
    assert found.intake.no_sides == f"{names[0].lower()} and {names[1].lower()} columns"


@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize("kind", ["text", "numbers", "numbers as text"])
def test_sorted_pairs_have_no_sides(turn, kind):
    rng = np.random.default_rng(0)
    one, two = np.sort(rng.choice(15, (40, 2)), axis=1).T + np.array([[0], [1]])
    ids = {"text": lambda x: [f"{k:02}" for k in x], "numbers": list, "numbers as text": lambda x: [str(k) for k in x]}
    one, two = ids[kind](one), ids[kind](two)
    frame = {"left": two, "right": one} if turn else {"left": one, "right": two}
    outcome = np.resize([1, -1], 40)
    found = Comparisons.from_frame(frame, outcome=outcome)
    assert found.intake.no_sides == "sorted pairs"
    assert not any("ides" in line for line in found.intake.describe())
    frame["left"][3], frame["right"][3] = frame["right"][3], frame["left"][3]
    assert Comparisons.from_frame(frame, outcome=outcome).sides is not None


def test_one_pair_over_and_over_is_not_sorted():
    frame = {"left": ["a"] * 6, "right": ["b"] * 6, "winner": ["a", "b"] * 3}
    assert read(frame).sides.tolist() == [[3.0, 0.0], [3.0, 0.0]]


def test_choices_taken_apart_have_no_sides_and_pairs_of_one_page_have():
    rng = np.random.default_rng(3)
    shown = [rng.permutation(9)[:4] for _ in range(60)]
    frame = {
        "user": np.repeat(np.arange(20), 9),
        "left": [],
        "right": [],
        "winner": [],
        "task": np.repeat(range(60), 3),
    }
    for items in shown:
        for other in items[1:]:
            pair = [items[0], other] if rng.random() < 0.5 else [other, items[0]]
            frame["left"].append(pair[0])
            frame["right"].append(pair[1])
            frame["winner"].append(items[0])
    assert read(frame, columns={"task": "task"}).intake.no_sides == "choices taken apart"
    found_by_runs = read({name: frame[name] for name in ("user", "left", "right", "winner")}, reading={"task": "runs"})
    assert found_by_runs.intake.choices_found
    assert found_by_runs.intake.no_sides == "choices taken apart"
    assert read(frame, reading={"task": "none"}).sides is not None
    pages, outcome = pairs_shown_anyhow()
    pages["left"], pages["right"] = np.arange(200) % 2, np.arange(200) % 6 + 2
    turn = np.arange(200) % 3 == 0
    pages["left"], pages["right"] = (
        np.where(turn, pages["right"], pages["left"]),
        np.where(turn, pages["left"], pages["right"]),
    )
    page = np.arange(200) // 2
    found = Comparisons.from_frame(
        {**pages, "user": page // 10, "page": page}, outcome=outcome, columns={"task": "page"}
    )
    assert found.task is not None
    assert found.sides is not None


def test_accounts_of_sides_join():
    first, last, none, kept = (Intake(rows_read=9, no_sides=why) for why in
                               ("winner first", "winner last", "not wanted", ""))  # fmt: skip
    assert first.merge(first).no_sides == "winner first"
    assert first.merge(none).no_sides == "winner first and not wanted"
    assert first.merge(kept).no_sides == kept.merge(last).no_sides == ""
    assert Intake().merge(last).no_sides == last.merge(Intake()).no_sides == "winner last"


def test_a_check_of_the_answers_takes_sides_and_covariates():
    frame, outcome = pairs_shown_anyhow()
    x = np.random.default_rng(5).normal(size=200)
    found = Comparisons.from_frame({**frame, "x": x}, outcome=outcome, columns={"covariates": ["x"]})
    assert {finding.code for finding in check(found)} == {
        finding.code for finding in check(Comparisons.from_frame(frame, outcome=outcome))
    }
