"""Pairs whose winner stands in several columns, or in codes from 0."""

from __future__ import annotations

import re

import pytest

from answers import tasks_of
from predilect.data import Comparisons
from predilect.errors import DataError

PAIRS = {"model_a": ["x", "z", "x"], "model_b": ["y", "y", "z"]}


def hot(a, b, tie=None):
    columns = {**PAIRS, "winner_model_a": a, "winner_model_b": b}
    return Comparisons.from_frame(columns if tie is None else {**columns, "winner_tie": tie})


def test_one_hot_winners_with_and_without_ties():
    found = hot([1, 0, 0], [0, 1, 0], [0, 0, 1])
    assert tasks_of(found) == [(None, "x = z"), (None, "x > y"), (None, "y > z")]
    assert found.sides is not None  # left and right are where they were shown, as in any file of pairs
    assert found.intake.columns["tie 1"] == "winner_tie"
    assert found.intake.ties_by_word == {}  # flags are no words
    assert hot([True, False, True], [False, True, False]).n_rows == 3


def test_one_hot_rows_need_exactly_one_winner():
    with pytest.raises(DataError, match=re.escape("(first: row 2); exactly one must be 1.")):
        hot([1, 1, 0], [0, 1, 0], [0, 0, 1])
    with pytest.raises(DataError, match=r'tie 1 from "winner_tie"\) is missing in 1 of 3 rows \(first: row 3\)\.'):
        hot([1, 0, 0], [0, 1, 0], [0, 0, 0])
    with pytest.raises(DataError, match=r'column "winner_model_a" says whether it won, and must be 1 or 0'):
        hot([1, 0, 5], [0, 1, 0])


def test_codes_from_0_to_2_are_read_as_told_and_never_guessed():
    def read(**options):
        found = Comparisons.from_frame({**PAIRS, "winner": [0, 1, 2]}, **options)
        assert found.intake.ties_by_word == {options["reading"]["tie"]: 1.0}
        return tasks_of(found)

    assert read(reading={"tie": "0"}) == [(None, "x = y"), (None, "z > x"), (None, "z > y")]
    assert read(reading={"tie": "2"}) == [(None, "x = z"), (None, "x > y"), (None, "y > z")]
    with pytest.raises(DataError, match=r'reading={"tie": "0"}; or .*reading={"tie": "2", "positive": "right"}'):
        read()
    numbers = {"left": [0, 1, 2], "right": [1, 2, 0], "winner": [0, 1, 2]}
    assert tasks_of(Comparisons.from_frame(numbers)) == [(None, "0 > 1"), (None, "1 > 2"), (None, "2 > 0")]


def test_columns_of_winners_and_losers_hold_no_sides():
    found = Comparisons.from_frame({"annotator": ["a"], "chosen": ["x"], "rejected": ["y"]})
    assert found.intake.no_sides == "chosen and rejected columns"


def test_a_column_an_annotator_makes_a_row_of_each_answer():
    columns = {"cmp_key": ["x_y", "z_x"], "annotator2": [0, None], "annotator1": [1, 2]}
    found = Comparisons.from_frame(columns, reading={"tie": "0"})
    assert tasks_of(found) == [("annotator1", "x > y"), ("annotator1", "x > z"), ("annotator2", "x = y")]
    assert found.intake.columns == {
        "left": "cmp_key", "right": "cmp_key", "user and winner 1": "annotator1", "user and winner 2": "annotator2",
    }  # fmt: skip
    assert found.intake.rows_read == 3  # an empty cell is no answer
    assert found.intake.ignored_columns == ()
    with pytest.raises(DataError, match='who won by "annotator1 to annotator2", 1 the left one, 0 a tie'):
        Comparisons.from_frame(columns)
    with pytest.raises(DataError, match=r'such as "tea_milk" or "tea vs milk"; got "x_y"\. Make two columns of it'):
        Comparisons.from_frame({**columns, "cmp_key": ["x_y", "z_x_2"]}, reading={"tie": "0"})
    whole = {"left": ["x", "z"], "right": ["y", "x"], "winner": ["x", "x"], "judge1": ["b", "c"], "judge2": ["c", "b"]}
    assert Comparisons.from_frame(whole).n_answers == 2  # who answered, and not what


def test_preferences_between_1_and_2_are_grades_of_thirds_where_they_are_many():
    values = [1.0, 1.1, 1.2, 1.3, 1.34, 1.4, 1.49, 1.5, 1.6, 1.7, 1.9]
    frame = {"generator_1": ["x"] * 11, "generator_2": ["y"] * 11, "preference": values}
    found = Comparisons.from_frame(frame)
    assert found.grades == ("slightly better", "better", "much better")
    of = dict(zip(zip(found.outcome, found.grade, strict=True), found.weight, strict=True))
    assert of == {(1, 3): 2.0, (1, 2): 2.0, (1, 1): 3.0, (0, 0): 1.0, (-1, 1): 1.0, (-1, 2): 1.0, (-1, 3): 1.0}


TWO_COLUMNS = {
    "one": ["P", "R", "Q", "P"], "level_1": [1, 7, 2, 3], "other": ["P", "P", "R", "P"], "level_2": [4, 1, 2, 1],
    "observer": list("abcd"), "selected": [1, 1, 2, 2],
}  # fmt: skip


@pytest.mark.parametrize("names", [("codec1", "level1", "codec2", "level2"), ("type_a", "level_a", "type_b", "level_b"),
                                   ("dist_type1", "dist_level1", "dist_type2", "dist_level2")])  # fmt: skip
def test_items_that_two_columns_a_side_describe_are_profiles(names):
    columns = dict(zip((*names, "observer", "selected"), TWO_COLUMNS.values(), strict=True))
    found = Comparisons.from_frame(columns)
    one, other = names[0].rstrip("1_a"), names[1].rstrip("1_a")
    words = [", ".join(sorted((f"{one}=P", f"{other}={level}"))) for level in (1, 4)]
    assert tasks_of(found)[0] == ("a", " > ".join(words))
    assert len(found.items) == 6


def test_an_item_that_meets_itself_once_of_many_rows_is_a_slip():
    """Beside further columns of both, 5 % of the rows would be what two columns describe together."""
    models = {"model_a": ["x", "y", "z", "x"] * 10, "model_b": ["y", "z", "x", "z"] * 10}
    models |= {f"temp_{side}": [1, 2] * 20 for side in "ab"} | {"winner": list("abba") * 10}
    assert len(Comparisons.from_frame(models).items) == 3
    models["model_b"] = ["x", *models["model_b"][1:]]
    with pytest.raises(DataError, match="an item is compared with itself in 1 row"):
        Comparisons.from_frame(models)


def test_teams_are_refused_in_plain_words():
    columns = {"p1": ["a", "b"], "p2": ["b", "c"], "p3": ["c", "d"], "p4": ["d", "a"], "winner": ["team1", "team2"]}
    with pytest.raises(DataError, match=r"names teams.*in columns team1 and team2, the members of each joined"):
        Comparisons.from_frame(columns)
    joined = {"team1": ["a+b", "b+c"], "team2": ["c+d", "d+a"], "winner": columns["winner"]}
    assert tasks_of(Comparisons.from_frame(joined)) == [(None, "a+b > c+d"), (None, "d+a > b+c")]
