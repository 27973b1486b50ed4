from __future__ import annotations

import pickle

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predilect.data import Comparisons, Vocabulary, build_frame
from predilect.data.frames import FEW
from predilect.errors import DataError

ROWS = {
    "user": ["v", "u", "u", "u"],
    "left": ["b", "a", "c", "b"],
    "right": ["a", "c", "a", "c"],
    "winner": ["b", "a", "c", "tie"],
}


def rows_of(comparisons):
    frame = comparisons.to_frame("polars")
    return frame.select("user", "left", "right", "outcome", "weight").rows()


def test_rows_are_canonical_and_contradictions_stay():
    comparisons = Comparisons.from_frame(ROWS)
    assert rows_of(comparisons) == [
        ("u", "a", "c", -1, 1.0),
        ("u", "a", "c", 1, 1.0),
        ("u", "b", "c", 0, 1.0),
        ("v", "a", "b", -1, 1.0),
    ]
    assert (comparisons.n_users, comparisons.n_items, comparisons.n_answers) == (2, 3, 4.0)
    assert comparisons.user_offsets.tolist() == [0, 3, 4]
    assert comparisons.has_ties
    # The item shown on the left won thrice, whatever the canonical orientation.
    assert (comparisons.intake.left_wins, comparisons.intake.right_wins, comparisons.intake.ties) == (3, 0, 1)


def test_arrays_are_read_only():
    comparisons = Comparisons.from_frame(ROWS)
    with pytest.raises(ValueError, match="read-only"):
        comparisons.weight[0] = 3
    with pytest.raises(AttributeError):
        comparisons.weight = np.ones(4)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_go_in_and_out_in_the_callers_kind(kind):
    comparisons = Comparisons.from_frame(build_frame(ROWS, kind))
    assert comparisons.backend == kind
    out = comparisons.to_frame()
    assert nw.from_native(out).implementation.value == kind
    assert Comparisons.from_frame(out) == comparisons == Comparisons.from_frame(ROWS)


def test_lazy_object_categorical_and_nullable_columns():
    expected = Comparisons.from_frame(ROWS)
    assert Comparisons.from_frame(pl.LazyFrame(ROWS)) == expected
    assert Comparisons.from_frame(pd.DataFrame(ROWS).astype(object)) == expected
    assert Comparisons.from_frame(pd.DataFrame(ROWS).astype("category")) == expected
    assert Comparisons.from_frame(pa.table(ROWS)) == expected
    numbers = pd.DataFrame({"left": [3, 10, None], "right": [10, 2, 2], "winner": [3, 2, 2]})
    for frame in (numbers, numbers.astype("Int64")):
        comparisons = Comparisons.from_frame(frame, reading={"drop": "missing"})
        assert comparisons.items.ids == [2, 3, 10]
        assert comparisons.intake.left_out == {"missing id": 1}


def test_without_users_there_is_everyone():
    comparisons = Comparisons.from_frame(ROWS, columns={"who": None})
    assert not comparisons.has_users
    assert comparisons.users.ids == ["everyone"]
    assert comparisons == Comparisons.from_frame(ROWS).pooled()
    assert "user" not in comparisons.to_frame().columns


def test_weights_add_up_over_equal_rows():
    frame = {"left": ["p", "q", "p"], "right": ["q", "p", "q"], "winner": ["p", "p", "q"], "weight": [0.5, 2, 1]}
    comparisons = Comparisons.from_frame(frame)
    assert comparisons.weight.tolist() == [1.0, 2.5]
    assert comparisons.intake.duplicates == 1
    assert comparisons.intake.columns["weight"] == "weight"
    assert Comparisons.from_frame(frame, columns={"weights": None}).weight.tolist() == [1.0, 2.0]


def test_a_hundred_thousand_times_the_same_answer():
    n = 10**5
    comparisons = Comparisons.from_frame({"left": ["a"] * n, "right": ["b"] * n, "winner": ["a"] * n})
    assert comparisons.n_rows == 1
    assert comparisons.n_answers == n
    assert comparisons.intake.duplicates == n - 1


def test_one_comparison_and_all_ties():
    one = Comparisons.from_frame({"user": ["u"], "left": ["q"], "right": ["p"], "winner": ["q"]})
    assert rows_of(one) == [("u", "p", "q", -1, 1.0)]
    ties = Comparisons.from_frame({"left": ["a", "b"], "right": ["b", "c"], "winner": ["tie", "both_bad"]})
    assert ties.outcome.tolist() == [0, 0]
    assert ties.intake.ties_by_word == {"both_bad": 1.0, "tie": 1.0}


def test_append_adds_vocabularies_counts_and_weights():
    first = Comparisons.from_frame(ROWS)
    second = Comparisons.from_frame({"user": ["a", "u"], "left": ["0", "a"], "right": ["c", "c"], "winner": ["c", "a"]})
    both = first.append(second)
    together = Comparisons.from_frame({k: ROWS[k] + v for k, v in {
        "user": ["a", "u"], "left": ["0", "a"], "right": ["c", "c"], "winner": ["c", "a"]}.items()})  # fmt: skip
    assert both == together
    assert both.intake == together.intake
    with pytest.raises(DataError, match="tells people apart"):
        first.append(second.pooled())
    with pytest.raises(DataError, match="all text or all integers"):
        Comparisons.from_frame({"left": [1], "right": [2], "winner": [1]}, reading={"answer_is": "item"}).append(
            first.pooled()
        )


def test_with_items_keeps_the_order_of_rows():
    comparisons = Comparisons.from_frame(ROWS)
    more = comparisons.with_items(["0", "bb", "a"])
    assert more.items.ids == ["0", "a", "b", "bb", "c"]
    assert rows_of(more) == rows_of(comparisons)
    assert comparisons.with_items(["a"]) is comparisons


def test_take_keeps_vocabularies_and_order():
    comparisons = Comparisons.from_frame(ROWS)
    assert rows_of(comparisons.take([3, 0])) == [rows_of(comparisons)[0], rows_of(comparisons)[3]]
    assert comparisons.take(comparisons.outcome == 0).n_items == 3
    assert comparisons.take([]).n_rows == 0
    for bad in ([4], [-1], [True], [0.5]):
        with pytest.raises(DataError):
            comparisons.take(bad)


def test_given_outcome():
    frame = {"left": ["a", "b", "c"], "right": ["b", "c", "a"]}
    comparisons = Comparisons.from_frame(frame, outcome=[1, 0, -1])
    assert comparisons.outcome.tolist() == [1, 1, 0]
    assert comparisons.intake.winner_reading == "given outcome"
    assert comparisons.intake.ties_by_word == {"0": 1.0}
    with pytest.raises(DataError, match=r"came in 1 row \(first: row 2, 2\)"):
        Comparisons.from_frame(frame, outcome=[1, 2, -1])
    with pytest.raises(DataError, match="2 outcomes for 3 rows"):
        Comparisons.from_frame(frame, outcome=[1, -1])
    with pytest.raises(DataError, match="missing in 1 of 3 rows"):
        Comparisons.from_frame(frame, outcome=[1, np.nan, -1])
    assert Comparisons.from_frame(frame, outcome=[1, np.nan, -1], reading={"drop": "unknown"}).n_rows == 2


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series])
def test_given_booleans_say_whether_the_left_item_won(kind):
    frame = {"left": ["a", "b", "c"], "right": ["b", "c", "a"]}
    expected = Comparisons.from_frame(frame, outcome=[1, -1, -1])
    assert Comparisons.from_frame(frame, outcome=kind([True, False, False])) == expected
    assert expected.intake.ties == 0
    with_holes = Comparisons.from_frame(frame, outcome=[True, None, False], reading={"drop": "unknown"})
    assert (with_holes.intake.left_wins, with_holes.intake.right_wins, with_holes.n_rows) == (1, 1, 2)


@pytest.mark.parametrize("outcome", [[1, 0, 1], [1.0, 0.0, 0.0], ["1", "0", "1"], np.array([0, 0, 1], dtype=np.uint8)])
def test_given_ones_and_zeros_could_mean_two_things(outcome):
    frame = {"left": ["a", "b", "c"], "right": ["b", "c", "a"]}
    with pytest.raises(DataError, match=r'give -1 in place of 0, or booleans.*say reading={"tie": "0"}'):
        Comparisons.from_frame(frame, outcome=outcome)
    assert Comparisons.from_frame(frame, outcome=outcome, reading={"tie": "0"}).has_ties
    assert Comparisons.from_frame(frame, outcome=outcome, reading={"tie": [0]}).has_ties
    assert Comparisons.from_frame(frame, outcome=[0, 0, -1]).has_ties


def test_item_map_merges_items_and_self_pairs_are_counted():
    frame = {"left": ["a1", "a2", "b1"], "right": ["b1", "a1", "a2"], "winner": ["a1", "a2", "b1"]}
    mapping = {"a1": "a", "a2": "a", "b1": "b"}
    with pytest.raises(DataError, match="after the items were mapped"):
        Comparisons.from_frame(frame, item_map=mapping)
    comparisons = Comparisons.from_frame(frame, item_map=mapping, reading={"drop": "self"})
    assert comparisons.items.ids == ["a", "b"]
    assert sorted(comparisons.outcome.tolist()) == [-1, 1]
    two_columns = {"item": ["b1", "a2", "a1"], "model": ["b", "a", "a"]}
    assert Comparisons.from_frame(frame, item_map=two_columns, reading={"drop": "self"}) == comparisons
    with pytest.raises(DataError, match=r"says nothing about 1 of 3 items \(first: b1\)"):
        Comparisons.from_frame(frame, item_map={"a1": "a", "a2": "a"}, reading={"drop": "self"})


@pytest.mark.parametrize("of", [int, "id {:05d}".format])
def test_a_vocabulary_of_many_ids_is_sorted_and_found_however_it_was_given(of):
    ids = [of(3 * k) for k in range(FEW + 500)]
    shuffled = list(np.random.default_rng(0).permutation(np.array(ids, dtype=object)))
    known = Vocabulary(ids)
    for some in (shuffled, ids + ids[:7], sorted(ids + ids[-1:]), known):
        assert Vocabulary(some).ids == ids
    assert known.codes(ids).tolist() == list(range(len(ids)))
    assert known.codes(ids[1:]).tolist() == list(range(1, len(ids)))
    assert known.codes(shuffled).tolist() == [ids.index(one) for one in shuffled]
    assert known.codes([*ids[:-1], of(1)], unknown="minus_one")[-2:].tolist() == [len(ids) - 2, -1]
    assert known.extend(ids) == known.extend(shuffled) == known
    assert known.extend([*ids[:-1], of(1)]).ids == sorted([*ids, of(1)])


def test_pickle_and_vocabulary_lookups():
    comparisons = pickle.loads(pickle.dumps(Comparisons.from_frame(ROWS)))
    assert comparisons == Comparisons.from_frame(ROWS)
    text, number = Vocabulary(["10", "7", "x"]), Vocabulary([10, 7])
    assert text.ids == ["10", "7", "x"]
    assert number.ids == [7, 10]
    assert text.codes([7, 10]).tolist() == [1, 0]
    assert number.codes(["7", "07", "x", None], unknown="minus_one").tolist() == [0, -1, -1, -1]
    assert number.codes(np.arange(20), unknown="minus_one").tolist() == [-1] * 7 + [0, -1, -1, 1] + [-1] * 9
    assert text.codes(np.arange(20), unknown="minus_one").tolist() == [-1] * 7 + [1, -1, -1, 0] + [-1] * 9
    assert 7 in text
    assert "07" not in number
    assert text.labels([2, 0]).tolist() == ["x", "10"]
    assert number.extend(["3"]).ids == [3, 7, 10]
    assert hash(Vocabulary(["a"])) == hash(Vocabulary(["a", "a"]))
    assert Vocabulary(["7"]) != Vocabulary([7])
    with pytest.raises(DataError, match=r'1 of 2 item ids are not known \(first: "y"\)'):
        text.codes(["x", "y"])
    with pytest.raises(IndexError):
        text.labels([-1])
    assert Vocabulary([]).codes(["a"] * 9, unknown="minus_one").tolist() == [-1] * 9


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=20))
def test_any_text_is_an_id(ids):
    ids = [value for value in ids if value.isprintable()] or ["x"]
    vocabulary = Vocabulary(ids)
    assert vocabulary.ids == sorted(set(ids))
    assert vocabulary.labels(vocabulary.codes(ids)).tolist() == ids


@pytest.mark.parametrize(
    ("ids", "value", "own"),
    [
        (["a", "b", "7"], "b", "b"),
        (["a", "b", "7"], 7, "7"),
        (["a", "b", "7"], 7.0, "7"),
        (["a", "b", "7"], "c", "c"),
        (["a", "b", "7"], " ", None),
        (["a", "b", "7"], None, None),
        (["a", "b", "7"], True, None),
        (["a", "b", "7"], float("nan"), None),
        ([3, 7, -2], "7", 7),
        ([3, 7, -2], "07", None),
        ([3, 7, -2], "x", None),
        ([3, 7, -2], np.int32(-2), -2),
        ([3, 7, -2], 7.5, None),
        ([3, 7, -2], np.float32(3.0), 3),
    ],
)
def test_one_id_is_looked_up_like_many(ids, value, own):
    vocabulary = Vocabulary(ids)
    assert vocabulary.own(value) == own
    assert type(vocabulary.own(value)) is type(own)
    if own is not None:
        assert vocabulary.code(value) == vocabulary.codes([value], unknown="minus_one")[0]
    else:
        assert vocabulary.code(value) == -1


PAIRS = [("tea", "milk"), ("tea", "juice"), ("milk", "juice")]


def test_a_list_of_pairs_is_of_winners_and_losers_or_of_sides_with_outcomes():
    won = {"winner": ["tea", "tea", "milk"], "loser": ["milk", "juice", "juice"]}
    assert Comparisons.from_frame(PAIRS) == Comparisons.from_frame(won)
    assert "left=winner, right=loser" in str(Comparisons.from_frame(PAIRS).reading)
    shown = {"left": won["winner"], "right": won["loser"]}
    outcome = [True, False, True]
    assert Comparisons.from_frame(PAIRS, outcome=outcome) == Comparisons.from_frame(shown, outcome=outcome)


@pytest.mark.parametrize("row", [("ann", "tea", "milk"), "ab", {"left": "tea"}, 3])
def test_a_list_of_anything_else_is_refused(row):
    with pytest.raises(DataError, match=r"holds pairs \(winner, loser\); got .* at place 3.*columns with names"):
        Comparisons.from_frame([*PAIRS[:2], row])


def test_head_and_notebook_show_the_first_rows():
    comparisons = Comparisons.from_frame(pd.DataFrame(ROWS))
    pd.testing.assert_frame_equal(comparisons.head(2), comparisons.to_frame().head(2))
    assert len(comparisons.head()) == len(comparisons)
    html = Comparisons.from_frame(ROWS | {"user": ["<b>"] * 4})._repr_html_()
    assert "4 answers" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
