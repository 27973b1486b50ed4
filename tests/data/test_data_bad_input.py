from __future__ import annotations

import datetime as dt
import decimal
import re
import shlex
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cli.running import run
from predilect import Population
from predilect._base.text import spoken_to
from predilect.data import Comparisons, ItemFeatures, PersonFeatures, Vocabulary, check, read_item_map
from predilect.data.frames import as_text, clean_ids
from predilect.errors import DataError, DataWarning

PAIR = {"left": ["a", "b", "c"], "right": ["b", "c", "a"]}


def read(winner, **options):
    return Comparisons.from_frame({**PAIR, "winner": winner}, **options)


def test_unknown_winner_says_where_and_what_to_do():
    message = (
        'column "winner" holds 2 values that are neither the left nor the right item nor a tie '
        '(first: row 2, "skipped"; row 3, empty). If "skipped" means a tie, say reading={"tie": "skipped"}. '
        "Leave such rows out "
        'with reading={"drop": "unknown"}.'
    )
    long = {name: PAIR[name] * 7 for name in PAIR}
    with pytest.raises(DataError, match=re.escape(message)):
        Comparisons.from_frame({**long, "winner": ["a", "skipped", " ", *["a", "b", "c"] * 6]})
    with pytest.raises(
        DataError, match=r'If "skipped" means a tie, say reading={"tie": "skipped"}\.$'
    ):  # one row in three
        read(["a", "skipped", "c"])
    dropped = read(["a", "skipped", None], reading={"drop": "unknown"})
    assert dropped.intake.left_out == {"unknown winner": 2}
    assert dropped.intake.unused_items == ("c",)
    assert read(["a", "Skipped ", "tie"], reading={"tie": "skipped"}).intake.ties_by_word == {
        "Skipped ": 1.0,
        "tie": 1.0,
    }
    assert read(["a", "skipped", "tie"], reading={"tie": "skipped"}).n_rows == 3


def test_a_few_ids_are_cleaned_as_many_are():
    texts = ["a", "", " ", "\t\n", "\u2003", "\x1c", " a", "\x85", "a ", "\ufeff", None]
    many = clean_ids(pl.Series(texts * 200), "left").to_list()
    assert clean_ids(pl.Series(texts), "left").to_list() == many[: len(texts)]
    assert [clean_ids(pl.Series([text], dtype=pl.String), "left")[0] for text in texts] == many[: len(texts)]
    assert many[:4] == ["a", None, None, None]
    assert many[6] == " a"


@pytest.mark.parametrize("blank", [None, "", "  ", np.nan])
def test_missing_ids(blank):
    frame = pd.DataFrame({"left": ["a", blank, "c"], "right": ["b", "c", "a"], "winner": ["a", "c", "c"]})
    with pytest.raises(DataError, match=r'an id is missing in 1 row \(first: row 2\); .*"left" 1'):
        Comparisons.from_frame(frame)
    comparisons = Comparisons.from_frame(frame, reading={"drop": "missing"})
    assert comparisons.intake.left_out == {"missing id": 1}
    assert comparisons.n_rows == 2


def test_missing_user():
    frame = {**PAIR, "user": ["u", None, "v"], "winner": ["a", "b", "c"]}
    with pytest.raises(DataError, match='"user" 1'):
        Comparisons.from_frame(frame)
    assert Comparisons.from_frame(frame, reading={"drop": "missing"}).n_rows == 2


def test_self_pairs_and_an_item_only_seen_in_them():
    frame = {"left": ["a", "z"], "right": ["b", "z"], "winner": ["a", "z"]}
    with pytest.raises(DataError, match=r'an item is compared with itself in 1 row \(first: row 2\), such as "z"\.'):
        Comparisons.from_frame(frame)
    comparisons = Comparisons.from_frame(frame, reading={"drop": "self"})
    assert comparisons.items.ids == ["a", "b"]
    assert comparisons.intake.unused_items == ("z",)
    assert any("self-pair" in line for line in comparisons.intake.describe())


def test_nothing_usable_is_always_an_error():
    with pytest.raises(DataError, match=r"no usable answer: all 3 rows were left out \(3 × unknown winner\)"):
        read(["x", "y", "z"], reading={"drop": "unknown"})
    with pytest.raises(DataError, match=r"no usable answer.*self-pair"):
        Comparisons.from_frame({"left": ["a"], "right": ["a"], "winner": ["a"]}, reading={"drop": "self"})
    with pytest.raises(DataError, match="no rows"):
        Comparisons.from_frame({"left": [], "right": [], "winner": []})
    with pytest.raises(DataError, match=r"no usable answer.*weight zero"):
        Comparisons.from_frame({**PAIR, "winner": ["a", "b", "c"], "weight": [0, 0, 0]})


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_bad_weights(value):
    frame = {**PAIR, "winner": ["a", "b", "c"], "weight": [1.0, value, 1.0]}
    with pytest.raises(DataError, match=r"missing, infinite or negative weights in 1 row \(first: row 2"):
        Comparisons.from_frame(frame)


def test_a_weight_that_counts_no_answers_of_anybody():
    frame = {**PAIR, "winner": ["a", "b", "c"]}
    with pytest.raises(DataError, match=r"too large weights in 1 row \(first: row 2, 1e\+15\).*from 0 to 1e\+12"):
        Comparisons.from_frame(frame | {"weight": [1.0, 1e15, 1.0]})
    heavy = Population(personal=False).fit(Comparisons.from_frame(frame | {"weight": [1e12, 1.0, 1e12]})).rank()
    assert heavy["mean"].is_finite().all()


def test_zero_and_textual_weights():
    frame = {**PAIR, "winner": ["a", "b", "c"], "count": ["1", "0", "2.5"]}
    comparisons = Comparisons.from_frame(frame, columns={"weights": "count"})
    assert comparisons.n_answers == 3.5
    assert comparisons.intake.left_out == {"weight zero": 1}
    frame["count"][0] = "many"
    with pytest.raises(DataError, match=r'columns={"weights": ""}'):
        Comparisons.from_frame(frame, columns={"weights": "count"})


def test_mixed_ids():
    with pytest.raises(DataError, match=r"first int: row 1, 1; first str: row 2, 'b'.*all text or all integers"):
        Comparisons.from_frame(pd.DataFrame({"left": [1, "b"], "right": ["b", "c"], "winner": ["b", "b"]}))
    with pytest.raises(DataError, match=r'"left" holds integers.*"right" holds text'):
        Comparisons.from_frame({"left": [1, 2], "right": ["b", "c"], "winner": ["b", "c"]})


def test_ids_of_other_types():
    for left, told in (([1.5, 2.0], "fractions"), ([True, False], "true/false"), ([2**63, 1], "64 signed bits")):
        column = pl.Series(left, dtype=pl.UInt64) if told.startswith("64") else left
        with pytest.raises(DataError, match=told):
            Comparisons.from_frame({"left": column, "right": [3, 4], "winner": [3, 4]})


def test_columns_are_guessed_or_asked_for():
    frame = {"Model A": ["x"], "model_b": ["y"], "Winner": ["model_a"], "Judge": ["j"], "lang": ["en"]}
    intake = Comparisons.from_frame(frame).intake
    assert dict(intake.columns) == {"user": "Judge", "left": "Model A", "right": "model_b", "winner": "Winner"}
    assert intake.ignored_columns == ("lang",)
    with pytest.raises(
        DataError, match=r'no column for the left item; the columns are "x", "winner".*columns={"left": "NAME"}'
    ):
        Comparisons.from_frame({"x": ["a"], "winner": ["a"]})
    with pytest.raises(DataError, match=r'no column for the winner.*columns={"answer": "NAME"}'):
        Comparisons.from_frame(PAIR)
    with pytest.raises(DataError, match='no column "who"'):
        read(["a", "b", "c"], columns={"who": "who"})
    with pytest.raises(DataError, match='column "right" must name both items in every row'):
        read(["a", "b", "c"], columns={"left": "right", "right": "right"})
    with pytest.raises(DataError, match="cannot be both"):
        read(["a", "b", "c"], columns={"who": "right"})
    both = Comparisons.from_frame({**PAIR, "winner": ["a", "b", "c"], "label": ["b", "c", "a"], "user_id": [1, 1, 1]})
    assert both.intake.columns["winner"] == "winner"
    assert both.users.ids == [1]


def test_rows_that_lack_one_covariate_of_several_are_counted():
    table = {
        "left": ["a", "b", "c", "a"], "right": ["b", "c", "a", "c"], "winner": ["a", "b", "c", "a"],
        "words_left": [1.0, None, 3.0, 4.0], "words_right": [1.0, 2.0, 3.0, 5.0],
        "tokens_left": [1.0, 2.0, None, 3.0], "tokens_right": [1.0, 1.0, 1.0, 1.0],
    }  # fmt: skip
    with pytest.raises(DataError, match=r'missing in 2 rows \(.*"words" 1, "tokens" 1; first: row 2, 3\)'):
        Comparisons.from_frame(table, columns={"covariates": ["words", "tokens"]})


def test_not_a_table():
    with pytest.raises(DataError, match="expected a data frame"):
        Comparisons.from_frame(np.array([1, 2, 3]))
    with pytest.raises(DataError, match="equally long"):
        Comparisons.from_frame({"left": ["a"], "right": ["b", "c"], "winner": ["a"]})


@pytest.mark.parametrize(
    ("words", "reading"),
    [
        (["left", "Right ", "tie"], "side words"),
        (["model_a", "model_b", "both_bad"], "side words"),
        ([1, 2, None], "side words"),
        (["1", "-1", "0"], "signs"),
        ([1.0, -1.0, 0.0], "signs"),
        (["a", "c", "tie (bothbad)"], "item ids"),
    ],
)
def test_readings_of_the_winner(words, reading):
    frame = {"left": ["a", "b", "c"], "right": ["x", "c", "a"], "winner": words}
    comparisons = Comparisons.from_frame(frame, reading={"positive": "left", "drop": "unknown"})
    assert comparisons.intake.winner_reading == reading
    assert comparisons.intake.left_wins == comparisons.intake.right_wins == 1


def test_two_readings_that_disagree():
    frame = {"left": ["b", "a"], "right": ["a", "b"], "winner": ["a", "b"]}
    with pytest.raises(
        DataError, match=r'in 2 ways.*reading={"answer_is": "item"}; or .*reading={"answer_is": "side"}\.$'
    ):
        Comparisons.from_frame(frame)
    assert Comparisons.from_frame(frame, reading={"answer_is": "item"}).outcome.tolist() == [-1, 1]
    assert Comparisons.from_frame(frame, reading={"answer_is": "side"}).outcome.tolist() == [-1]
    agreeing = {"left": ["a", "a"], "right": ["b", "b"], "winner": ["a", "b"]}
    assert Comparisons.from_frame(agreeing).outcome.tolist() == [-1, 1]
    numbers = {"left": [1, 2, 3], "right": [2, 1, 1], "winner": [1, 1, 1]}
    with pytest.raises(DataError, match="in 2 ways"):
        Comparisons.from_frame(numbers)
    # A third item among the winners can only be an id, which settles the reading of the whole column.
    assert Comparisons.from_frame({**numbers, "winner": [1, 1, 3]}).intake.winner_reading == "item ids"
    with pytest.raises(DataError, match='"answer_is" is one of item, side, sign'):
        Comparisons.from_frame(frame, reading={"answer_is": "id"})


def test_ones_and_zeros_are_ambiguous():
    for winner in ([1, 0, 1], [True, False, True], ["1", "0", "1"], [1.0, 0.0, 1.0]):
        with pytest.raises(DataError, match=r'above 0\.5 for the left.*above 0\.5 for the right.*reading={"tie": "0"}'):
            read(winner)
    assert read([1, 0, 1], reading={"answer_is": "side"}).intake.right_wins == 1
    assert read([1, 0, 1], reading={"answer_is": "sign", "positive": "left"}).intake.ties == 1
    assert read([1, 0, 1], reading={"tie": "0"}).intake.ties == 1
    ids = {"left": [0, 1], "right": [1, 2], "winner": [0, 1]}
    assert Comparisons.from_frame(ids).intake.winner_reading == "item ids"


def test_an_item_called_like_a_tie():
    frame = {"left": ["draw", "x", "x"], "right": ["y", "y", "draw"], "winner": ["draw", "x", "x"]}
    assert Comparisons.from_frame(frame).intake.ties == 0
    frame["winner"][1] = "draw"
    with pytest.raises(DataError, match='"draw" in column "winner" is both'):
        Comparisons.from_frame(frame)
    assert Comparisons.from_frame(frame, reading={"answer_is": "item"}).intake.ties == 1


def test_integer_items_with_a_tie_word_as_pandas_reads_them():
    frame = pd.DataFrame({"left": [24, 15], "right": [15, 31], "winner": ["15", "tie"]})
    assert Comparisons.from_frame(frame).outcome.tolist() == [1, 0]
    mixed = pd.DataFrame({"left": [24, 15], "right": [15, 31], "winner": [15, "tie"]})
    assert Comparisons.from_frame(mixed) == Comparisons.from_frame(frame)
    holes = pd.DataFrame({"left": [24, 15], "right": [15, 31], "winner": [15.0, np.nan]})
    assert Comparisons.from_frame(holes, reading={"drop": "unknown"}).outcome.tolist() == [1]


def test_half_a_pair_of_columns_names_the_missing_half():
    with pytest.raises(DataError, match="found no column for the right item"):
        Comparisons.from_frame({"left": ["p"], "winner": ["p"]})


@pytest.mark.parametrize(
    ("winner", "said"),
    [
        ("TEA", 'Did you mean "tea" by "TEA"?'),
        (" tea", 'Did you mean "tea" by " tea"?'),
        ("green  Tea", 'Did you mean "green tea" by "green  Tea"?'),
        ("coffee", '"coffee" is an item, but not one of the two in its row'),
    ],
)
@pytest.mark.parametrize("interface", ["command", "function", "answers"])
def test_an_items_name_is_never_proposed_as_a_tie_nor_to_be_left_out(winner, said, interface):
    frame = {
        "left": ["tea", "tea", "green tea"], "right": ["milk", "coffee", "milk"], "winner": [winner, "tea", "milk"],
    }  # fmt: skip
    with spoken_to(interface), pytest.raises(DataError, match=re.escape(said)) as caught:
        Comparisons.from_frame(frame)
    assert not re.search("tie with|ties=|--tie|drop", str(caught.value))


def test_a_slip_is_told_beside_a_word_and_a_zero_among_sides_may_be_a_tie():
    frame = {"left": ["tea"] * 3, "right": ["milk"] * 3, "winner": ["tea", "skip", "Milk"]}
    with pytest.raises(DataError, match=r'Did you mean "milk" by "Milk"'):
        Comparisons.from_frame(frame)
    with pytest.raises(
        DataError, match=r'in 4 ways.*reading={"tie": "0"}; or .*reading={"tie": "2", "positive": "right"}'
    ):
        Comparisons.from_frame(
            {**{side: items * 2 for side, items in frame.items()}, "winner": ["1", "0", "2", "1", "1", "0"]}
        )
    with pytest.raises(DataError, match=r'\(first: row 2, "z3"\)\. If "z3" means a tie'):  # one row in three
        Comparisons.from_frame({**frame, "winner": ["1", "z3", "2"]})
    many = {"left": ["tea"] * 20, "right": ["milk"] * 20, "winner": ["1", "left?", *["2", "1"] * 9]}
    with pytest.raises(DataError, match=r'Leave such rows out with reading={"drop": "unknown"}\.$'):
        Comparisons.from_frame(many)


ASKING = {
    "ties": ({"left": ["a", "b"], "right": ["b", "c"], "winner": ["a", "skipped"]}, "--read tie=skipped",
             'reading={"tie": "skipped"}'),
    "drop": ({"left": ["a", "b"], "right": ["b", "c"], "winner": ["a", None]}, "--read drop=unknown.",
             'reading={"drop": "unknown"}.'),
    "missing": ({"left": ["a", None], "right": ["b", "c"], "winner": ["a", "c"]}, "--read drop=missing.",
                'reading={"drop": "missing"}.'),
    "self": ({"left": ["a", "b"], "right": ["b", "b"], "winner": ["a", "b"]}, "--read drop=self.",
             'reading={"drop": "self"}.'),
    "column": ({"left": ["p", "q"], "right": ["q", "r"], "winer": ["p", "q"]}, "-c answer=winer.",
             'columns={"answer": "winer"}.'),
    "weight": ({"left": ["p", "q"], "right": ["q", "r"], "winner": ["p", "q"], "weight": ["x", "y"]},
               "none: -c weights=.", 'none: columns={"weights": ""}.'),
    "kind of weight": ({"left": ["p", "q"], "right": ["q", "r"], "winner": ["p", "q"], "weight": [[1], [2]]},
                       "", 'none: columns={"weights": ""}.'),
    "reading": ({"left": ["b", "a"], "right": ["a", "b"], "winner": ["a", "b"]}, "--read answer-is=side.",
                'reading={"answer_is": "side"}.'),
}  # fmt: skip


@pytest.mark.parametrize("what", ASKING)
def test_messages_speak_of_what_their_reader_can_set_and_that_works(what, tmp_path):
    frame, command, function = ASKING[what]
    advice = re.search(r"(columns|reading)=\{.*?\}", function)[0]
    model = Population(personal=False)
    for read in (Comparisons.from_frame, model.fit):
        with pytest.raises(DataError) as caught:
            read(frame)
        assert function in str(caught.value)
        assert "--" not in str(caught.value)
        assert read(frame, **eval(f"dict({advice})"))  # as told
    with pytest.raises(DataError) as caught:
        model.score(frame)
    assert function in str(caught.value)
    assert model.score(frame, **eval(f"dict({advice})")) < 0.0
    if command:
        votes = tmp_path / "votes.csv"
        pl.DataFrame(frame).write_csv(votes)
        ran = run("check", votes)
        assert command in " ".join(ran.stderr.split())
        assert function not in ran.stderr
        assert run("check", votes, *shlex.split(re.search(r"(-c|--read) \S+", command)[0].rstrip("."))).exit_code == 0


def test_pairs_are_named_by_their_header():
    model = Population(personal=False).fit({"left": ["p", "q"], "right": ["q", "r"], "winner": ["p", "q"]})
    with pytest.raises(DataError, match='Name it with the header "left"'):
        model.predict_proba({"one": ["a"], "right": ["b"]})
    with pytest.raises(DataError, match='"left" is the index of the frame'):
        model.predict_proba(pd.DataFrame({"left": ["a"], "right": ["b"]}).set_index("left"))


def test_an_index_that_names_nothing_needed_is_left_alone():
    frame = pd.DataFrame({**PAIR, "winner": ["a", "b", "c"], "user": [1, 1, 2]})
    expected = Comparisons.from_frame(frame)
    for name in ("id", "date", "user", "question", None):
        named = frame.rename_axis(index=name)
        assert Comparisons.from_frame(named) == expected
    with pytest.raises(DataError, match=r'"Judge" is the index.*read as the user.*reset_index\(drop=True\)'):
        Comparisons.from_frame(frame.rename(columns={"user": "Judge"}).set_index("Judge"))
    items = pd.DataFrame({"item": ["a", "b", "c"], "name": ["x", "y", "z"], "size": [1, 2, 3]})
    with pytest.raises(DataError, match='"item" is the index of the frame'):
        ItemFeatures.from_frame(items.set_index("item"))
    assert ItemFeatures.from_frame(items.rename_axis(index="row")).ids.ids == ["a", "b", "c"]


NOT_PLAIN = {
    "a list": pl.Series([["a"], ["b"], ["c"]]),
    "an array": pl.Series([["a"], ["b"], ["c"]], dtype=pl.Array(pl.String, 1)),
    "a struct": pl.Series([{"a": 1}, {"a": 2}, {"a": 3}]),
    "a span of time": pl.Series([dt.timedelta(1), dt.timedelta(2), None]),
    "bytes that are no text": pl.Series([b"\xff", b"a", None]),
    "nothing": pl.Series([None, None, None]),
}


@pytest.mark.parametrize("role", ["user", "left", "right", "winner", "weight", "task"])
@pytest.mark.parametrize("kind", NOT_PLAIN)
def test_a_column_of_other_values_than_ids_is_named_or_does_no_harm(kind, role):
    columns = {"user": ["u", "v", "w"], **PAIR, "winner": ["a", "b", "c"], "task": [1, 2, 3], "weight": [1, 1, 1]}
    frame = pl.DataFrame({**columns, role: NOT_PLAIN[kind]})
    if kind == "nothing" and role == "task":
        assert Comparisons.from_frame(frame, columns={"task": "task"}).task is None
        return
    with pytest.raises(DataError, match=role):
        Comparisons.from_frame(frame, columns={"task": "task"})


@pytest.mark.parametrize("kind", NOT_PLAIN)
@pytest.mark.parametrize("column", ["item", "model"])
def test_a_map_file_of_other_values_than_ids_is_refused(tmp_path, kind, column):
    columns = {"item": ["a", "b", "c"], "model": ["x", "y", "z"], column: NOT_PLAIN[kind]}
    pl.DataFrame(columns).write_parquet(tmp_path / "map.parquet")
    with pytest.raises(DataError, match=column if kind != "nothing" else "missing ids"):
        Comparisons.from_frame({**PAIR, "winner": ["a", "b", "c"]}, item_map=read_item_map(tmp_path / "map.parquet"))


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["a", "b", "c", "x", "y", "z"])])
def test_categories_are_text_in_a_map_and_within_lists(tmp_path, dtype):
    pl.DataFrame(
        {"item": ["a", "b", "c"], "model": ["x", "y", "x"]}, schema={"item": dtype, "model": dtype}
    ).write_parquet(tmp_path / "map.parquet")
    assert read_item_map(tmp_path / "map.parquet") == {"a": "x", "b": "y", "c": "x"}
    shown = pl.Series([["a", "b", "c"], ["b", "c", "a"]], dtype=pl.List(dtype))
    best = Comparisons.from_frame(pl.DataFrame({"user": ["u", "v"], "alternatives": shown, "choice": ["a", "c"]}))
    assert best.items.ids == ["a", "b", "c"]


def test_a_map_to_its_own_column_of_ids_is_refused(tmp_path):
    (tmp_path / "map.csv").write_text("item,model\na,x\nb,y\n")
    with pytest.raises(DataError, match='"item" cannot be both'):
        read_item_map(tmp_path / "map.csv", value="item")


@pytest.mark.parametrize("table", [ItemFeatures, PersonFeatures])
@pytest.mark.parametrize("kind", NOT_PLAIN)
def test_features_of_other_values_are_ignored_and_told_or_refused(kind, table):
    ids = ["a", "b", "c"]
    told = table.from_frame(pl.DataFrame({table.id_names[0]: ids, "odd": NOT_PLAIN[kind], "x": [1, 2, 3]})).report
    assert kind == "nothing" or any('"odd"' in line for line in told)
    with pytest.raises(DataError, match="missing" if kind == "nothing" else table.id_names[0]):
        table.from_frame(pl.DataFrame({table.id_names[0]: NOT_PLAIN[kind], "x": [1, 2, 3]}))
    twice = pl.DataFrame({table.id_names[0]: ids * 2, "odd": pl.concat([NOT_PLAIN[kind]] * 2)})
    assert len(table.from_frame(twice)) == 3


def test_messages_about_long_and_hostile_values_are_short_and_harmless():
    hostile = "\x1b]0;pwned\x07" + "x" * 1_000_000
    for frame in (
        {**PAIR, "winner": [hostile, "b", "c"]},
        {**PAIR, "left": [hostile, "b", "c"], "winner": ["a", "b", "c"], "right": [hostile, "c", "a"]},
        {hostile: [1], "right": ["b"], "winner": ["b"]},
    ):
        with pytest.raises(DataError) as caught:
            Comparisons.from_frame(frame)
        assert len(str(caught.value)) < 600
        assert "\\x1b]0;pwned\\x07xxx" in str(caught.value)
    answers = Comparisons.from_frame(
        {"left": [hostile, "d"], "right": ["d", "c"], "winner": ["d", "d"], hostile: [1, 1]}
    )
    told = [*answers.intake.describe(), *(finding.message for finding in check(answers))]
    assert max(map(len, told)) < 600
    assert not any("\x1b" in line for line in told)
    assert hostile in {example for finding in check(answers) for example in finding.examples}


def test_whole_numbers_with_a_point_are_those_without():
    """As programs write a column with an empty cell."""
    frame = {"left": ["7", "8", "9"], "right": ["8.0", "9.0", None], "winner": ["7.0", "9.0", None]}
    found = Comparisons.from_frame(frame, reading={"drop": "missing"})
    assert (found.items.ids, found.outcome.tolist()) == (["7", "8", "9"], [1, -1])
    assert found.intake.notes == tuple(
        f'Column "{name}" writes whole numbers with .0, which is left out.' for name in ("right", "winner")
    )
    # Versions of models are names.
    versions = Comparisons.from_frame({"left": ["1.0", "2.0"], "right": ["2.0", "3.0"], "winner": ["1.0", "3.0"]})
    assert versions.items.ids == ["1.0", "2.0", "3.0"]
    # Nothing tells which is meant.
    mixed = Comparisons.from_frame({"left": ["7", "8.0"], "right": ["8", "7.0"], "winner": ["left", "left"]})
    assert any(one.code == "look-alike-items" and "case or .0" in one.message for one in check(mixed))


def test_winners_that_are_items_where_something_else_was_said():
    frame = {"left": ["x", "y"], "right": ["y", "z"], "winner": ["x", "z"]}
    for reading in ("sign", "side"):
        with pytest.raises(DataError, match=r'"x" is an item of its row: say reading={"answer_is": "item"}\.$'):
            Comparisons.from_frame(frame, reading={"answer_is": reading})


def test_what_is_said_of_alternatives_means_nothing_to_pairs():
    frame = {"left": ["x", "y"], "right": ["y", "z"], "winner": ["x", "z"]}
    with pytest.raises(
        DataError,
        match=r"alternatives",
    ):
        Comparisons.from_frame(frame, columns={"alternatives": ["x", "y"]})


def test_a_table_of_nothing_and_answers_that_are_all_left_out():
    with pytest.raises(DataError, match="the table has no columns and no rows"):
        Comparisons.from_frame({})
    said = r'no usable answer: the only row was left out .* Check the columns: left from "left", right from "right"'
    with pytest.raises(DataError, match=said):
        Comparisons.from_frame({"left": ["x"], "right": ["x"], "winner": ["left"]}, reading={"drop": "self"})
    tasks = {"user": ["u", "u"], "task": [1, 1], "item": ["x", "y"], "chosen": ["0.0", "0.0"]}
    said = r'no usable answer: all 2 rows were left out .* Check the columns: user from "user", task from "task"'
    with pytest.raises(DataError, match=said):
        Comparisons.from_frame(tasks, reading={"drop": "unknown"})
    assert Comparisons.from_frame(tasks | {"chosen": ["1.0", "0.0"]}).n_rows == 1


def test_a_weight_that_is_none_is_shown():
    frame = {"left": ["x", "y"], "right": ["y", "z"], "winner": ["x", "y"]}
    with pytest.raises(
        DataError,
        match=r'a number, but holds text in 1 row \(first: row 2, "x"\)\. Name another with columns={"weights": ',
    ):
        Comparisons.from_frame(frame | {"weight": ["1", "x"]})
    with pytest.raises(DataError, match=r"weights in 1 row \(first: row 1, empty\).*mend them, or use none: columns="):
        Comparisons.from_frame(frame | {"weight": ["", "2"]})


ODD_VALUES = [
    10**20, 2**63, 10**400, 10**5000, 1e308, float("-inf"), 1j, decimal.Decimal("1.5"), decimal.Decimal("sNaN"),
    np.uint64(2**64 - 1), np.float16(1.5), np.timedelta64(1, "D"), np.datetime64("2020-01-01"), dt.timedelta(1),
    b"\xff", [1, [2]], {"a": 1}, object(), "\ud800", "\x00", "1e400", "nan", "", None, pd.NA, True, np.array([1, 2]),
]  # fmt: skip
VOTES = {"user": ["u", "v", "w"], **PAIR, "winner": ["a", "b", "c"]}
ITEMS = {"item": ["a", "b", "c"], "x": [1.0, 2.0, 3.0], "kind": ["p", "q", "r"]}
TEXTS, NUMBERS, FEATURES = Vocabulary(["a", "b"]), Vocabulary([1, 2]), ItemFeatures.from_frame(ITEMS)
USES = [
    *[lambda values, role=role: Comparisons.from_frame({**VOTES, role: values})
      for role in ("user", "left", "winner", "weight", "task")],
    lambda values: Comparisons.from_frame({**VOTES, "prompt": values}, columns={"context": "prompt"}),
    lambda values: Comparisons.from_frame({**VOTES, "length": values}, columns={"covariates": ["length"]}),
    lambda values: Comparisons.from_frame(VOTES, reading={"tie": values}),
    lambda values: Comparisons.from_frame({"left": ["a"] * 3, "right": ["b"] * 3}, outcome=values),
    lambda values: Comparisons.from_frame(VOTES, item_map=dict(zip("abc", values, strict=True))),
    lambda values: ItemFeatures.from_frame({**ITEMS, "x": values}),
    lambda values: ItemFeatures.from_frame({**ITEMS, "x": values}, categorical=["x"]),
    lambda values: ItemFeatures.from_frame({**ITEMS, "x": values}, piecewise={"x": [1.7]}),
    lambda values: ItemFeatures.from_frame({**ITEMS, "item": values}),
    lambda values: PersonFeatures.from_frame({"user": ["u", "v", "w"], "x": values}, segments="x"),
    lambda values: FEATURES.transform({**ITEMS, "x": values}),
    lambda values: FEATURES.transform({**ITEMS, "kind": values}),
    *[lambda values, ids=ids: ids.codes(values, "minus_one") for ids in (TEXTS, NUMBERS)],
    *[lambda values, ids=ids: ids.extend(values) for ids in (TEXTS, NUMBERS)],
    *[lambda values, ids=ids: (ids.code(values[-1]), values[-1] in ids) for ids in (TEXTS, NUMBERS)],
]  # fmt: skip


@pytest.mark.parametrize(
    "others", [None, [1, 2], *[pytest.param(one, marks=pytest.mark.slow) for one in (["a", "b"], [1.5, 2.5])]]
)
def test_no_value_of_any_kind_in_any_column_ends_in_an_error_of_python_or_polars(others):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of what is left out: errors alone are looked for
        for value in ODD_VALUES:
            for use in USES:
                with suppress(DataError):
                    use([*(others or [value] * 2), value])


@pytest.mark.parametrize("kind", [list, lambda values: pd.Series(values, dtype=object), lambda v: np.array(v, object)])
def test_whole_numbers_beyond_64_bits_are_numbers_and_no_ids(kind):
    for ids in ([10**20, 1, 2], [1, 2, 10**20], [1, 2, -(2**63) - 1], [1, None, 2**64], [1, 2, 10**400]):
        with pytest.raises(DataError, match=r"too large to be exact .*turn the column into text first"):
            Vocabulary(kind([one for one in ids if one is not None]))
    assert ItemFeatures.from_frame({"item": ["a", "b"], "x": kind([10**20, 0])}).matrix.tolist() == [[1.0], [-1.0]]
    with pytest.raises(DataError, match='"x" is infinite in 1 row'):
        ItemFeatures.from_frame({"item": ["a", "b"], "x": kind([-(10**400), 0])})
    assert Vocabulary(kind([2**63 - 1, -(2**63)])).ids == [-(2**63), 2**63 - 1]
    assert Vocabulary(["100000000000000000000"]).code(10**20) == 0
    assert 10**20 not in Vocabulary([1, 2])


def test_text_that_is_no_unicode_is_refused_with_its_column():
    for values in (["a", "\ud800"], [1, "\ud800"], np.array(["a", "\ud800"])):
        with pytest.raises(DataError, match=r'column "left" holds .* no text'):
            Comparisons.from_frame({"left": values, "right": ["b", "b"], "winner": ["b", "b"]})


def test_numbers_that_are_too_large_for_whole_ones_are_no_gaps():
    values = [1e300, None, 2.0, -1e19, float("inf"), 1.5]
    text = as_text(pl.Series(values)).to_list()
    assert [None if word is None else float(word) for word in text] == values
    assert text[2] == "2"
    ratings = {"user": ["u", "u", "v", "v"], "item": ["a", "b", "a", "b"], "rating": [1e300, 1.0, 2.0, 1.0]}
    assert Comparisons.from_frame(ratings).n_answers == 2


def test_words_for_ties_may_be_an_array():
    votes = {"left": ["a", "b"], "right": ["b", "a"], "winner": ["a", "even"]}
    for ties in (["even"], np.array(["even"]), pl.Series(["even"]), pd.Series(["even", "other"])):
        assert Comparisons.from_frame(votes, reading={"tie": ties}).intake.ties == 1


@pytest.mark.parametrize("unit", ["ns", "us", "s"])
def test_dates_of_pandas_are_no_whole_numbers_whatever_their_unit(unit):
    dates = pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02", None])).astype(f"datetime64[{unit}]")
    with pytest.raises(DataError, match="values of type Timestamp"):
        Comparisons.from_frame({**PAIR, "winner": ["a", "b", "c"], "user": dates})


def test_a_table_of_items_is_told_where_it_belongs():
    with pytest.raises(DataError, match=r'By its column "item" this may be a table of items.* with items=FRAME'):
        Comparisons.from_frame({"item": ["a", "b"], "price": [1, 2], "colour": ["red", "blue"]})


def test_a_table_of_items_is_no_table_of_winners_and_losers_by_its_numbers():
    # Two columns of small numbers could be items: "item won over seas".
    products = {"item": [0, 1, 2, 3], "pf": [0, 7, 9, 0], "seas": [1, 0, 0, 1]}
    for columns in ({}, {"price": [1.5, 2.5, 2.0, 2.0]}):
        with pytest.raises(DataError, match=r'By its column "item" this may be a table of items.* with items=FRAME'):
            Comparisons.from_frame({**products, **columns})
    asked = Comparisons.from_frame(products, columns={"won": "item", "lost": "seas"}, reading={"drop": "self"})
    assert asked.n_answers == 4
    answers = {"item": [0, 1, 2, 3], "other": [1, 0, 0, 1], "judge": [1, 1, 1, 2]}
    with pytest.raises(DataError, match="can be read in 2 ways"):
        Comparisons.from_frame(answers)


def test_a_table_of_people_is_told_where_it_belongs():
    with pytest.raises(DataError, match=r'By its column "user" this may be a table of people.* with people=FRAME'):
        Comparisons.from_frame({"user": ["a", "b"], "age": [31, 22], "city": ["Bonn", "Köln"]})
