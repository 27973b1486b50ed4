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
    assert hot([True, False, True], [False, True, False]).n_rows == 3


def test_one_hot_rows_need_exactly_one_winner():
    with pytest.raises(DataError, match=re.escape("(first: row 2); exactly one must be 1.")):
        hot([1, 1, 0], [0, 1, 0], [0, 0, 1])
    with pytest.raises(DataError, match=re.escape("the given outcome is missing in 1 of 3 rows (first: row 3).")):
        hot([1, 0, 0], [0, 1, 0], [0, 0, 0])
    with pytest.raises(DataError, match=r'column "winner_model_a" says whether it won, and must be 1 or 0'):
        hot([1, 0, 5], [0, 1, 0])


def test_codes_from_0_to_2_are_read_as_told_and_never_guessed():
    def read(**options):
        return tasks_of(Comparisons.from_frame({**PAIRS, "winner": [0, 1, 2]}, **options))

    assert read(ties=["0"]) == [(None, "x = y"), (None, "z > x"), (None, "z > y")]
    assert read(ties=["2"]) == [(None, "x = z"), (None, "x > y"), (None, "y > z")]
    with pytest.raises(
        DataError, match=r'ties=\["0"\] if they mean a tie, the first and the second, or with ties=\["2"\]'
    ):
        read()
    numbers = {"left": [0, 1, 2], "right": [1, 2, 0], "winner": [0, 1, 2]}
    assert tasks_of(Comparisons.from_frame(numbers)) == [(None, "0 > 1"), (None, "1 > 2"), (None, "2 > 0")]


def test_columns_of_winners_and_losers_hold_no_sides():
    found = Comparisons.from_frame({"annotator": ["a"], "chosen": ["x"], "rejected": ["y"]})
    assert found.intake.no_sides == "chosen and rejected columns"
