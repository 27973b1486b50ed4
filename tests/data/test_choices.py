"""Pairs "winner over loser" of one task become choices of one item out of several."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from predilect import Comparisons
from predilect.data.choices import choices_of
from predilect.errors import DataError


def read(rows: list[tuple], **columns) -> Comparisons:
    """Answers from (user, task, winner, loser)."""
    user, task, winner, loser = (list(column) for column in zip(*rows, strict=True))
    frame = {"user": user, "task": task, "left": winner, "right": loser, "winner": winner} | columns
    return replace(
        Comparisons.from_frame(frame, columns={"task": "task"}, reading={"answer_is": "item", "kind": "pairs"}),
        joint=True,
    )


def spoken(answers: Comparisons) -> list[tuple]:
    """Choices as (user, chosen, others, sign, weight), sorted."""
    found = choices_of(answers)
    names = answers.items.labels(found.item)
    sets = [list(names[a:b]) for a, b in zip(found.ptr[:-1], found.ptr[1:], strict=True)]
    users = answers.users.labels(found.user)
    columns = zip(users, sets, found.sign.tolist(), found.weight.tolist(), strict=True)
    return sorted((user, one[0], "".join(sorted(one[1:])), sign, weight) for user, one, sign, weight in columns)


OTHER = ("z", 9, "a", "b")  # a second person, so that tasks are tasks


def test_one_winner_over_all_others_is_a_choice_of_the_best():
    answers = read([("u", 1, "a", "b"), ("u", 1, "a", "c"), ("u", 1, "a", "d"), ("u", 2, "c", "a"), OTHER])
    assert spoken(answers) == [("u", "a", "bcd", 1, 1.0), ("u", "c", "a", 1, 1.0), ("z", "a", "b", 1, 1.0)]
    assert choices_of(answers).n_answers == 3.0


@pytest.mark.parametrize("given", ["chain", "all pairs"])
def test_an_order_is_the_best_and_then_the_best_of_the_rest(given):
    order = "cabd"
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    pairs = pairs if given == "all pairs" else list(pairwise(order))
    answers = read([("u", 1, a, b) for a, b in pairs] + [OTHER])
    assert spoken(answers)[:3] == [("u", "a", "bd", 1, 1.0), ("u", "b", "d", 1, 1.0), ("u", "c", "abd", 1, 1.0)]


def test_the_first_ones_of_an_order_say_nothing_of_the_rest():
    answers = read([("u", 1, a, b) for a, b in ("ab", "ac", "ad", "bc", "bd")] + [OTHER])
    assert spoken(answers)[:2] == [("u", "a", "bcd", 1, 1.0), ("u", "b", "cd", 1, 1.0)]


@pytest.mark.parametrize("best_over_worst", [True, False])
def test_best_worst_is_the_best_and_then_the_worst_of_the_rest(best_over_worst):
    pairs = ["ab", "ac", "bd", "cd"] + (["ad"] if best_over_worst else [])
    assert spoken(read([("u", 1, *pair) for pair in pairs] + [OTHER]))[:2] == [
        ("u", "a", "bcd", 1, 1.0), ("u", "d", "bc", -1, 1.0)
    ]  # fmt: skip


def test_a_row_without_a_task_is_a_choice_of_two_and_a_tie_is_half_of_each():
    frame = {"user": ["u", "u"], "left": ["a", "b"], "right": ["b", "c"], "winner": ["a", "tie"], "weight": [3.0, 1.0]}
    found = spoken(Comparisons.from_frame(frame))
    assert found == [("u", "a", "b", 1, 3.0), ("u", "b", "c", 1, 0.5), ("u", "c", "b", 1, 0.5)]


def test_a_weight_counts_identical_answers():
    rows = [("u", 1, "a", "b"), ("u", 1, "a", "c"), OTHER]
    assert spoken(read(rows, weight=[2.0, 2.0, 1.0]))[0] == ("u", "a", "bc", 1, 2.0)
    with pytest.raises(DataError, match="different weights"):
        choices_of(read(rows, weight=[2.0, 1.0, 1.0]))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["ab", "bc", "ca"], "contradict"),
        (["ab", "cd"], "neither which of 4 items"),
        (["ab", "ab", "ac"], "same pair twice"),
    ],
)
def test_what_is_neither_a_choice_nor_an_order_is_refused(pairs, message):
    with pytest.raises(DataError, match=rf"{message}.*without a task"):
        choices_of(read([("u", 1, *pair) for pair in pairs] + [OTHER]))


def test_a_tie_within_a_task_is_refused():
    answers = read([("u", 1, "a", "b"), ("u", 1, "a", "c"), OTHER], winner=["a", "tie", "a"])
    with pytest.raises(DataError, match="ties"):
        choices_of(answers)


def test_choices_of_all_kinds_at_once_stand_by_user():
    rows = [("b", 1, "a", "b"), ("a", 1, "a", "b"), ("a", 1, "a", "c"), ("b", 2, "a", "c"), ("b", 2, "c", "b")]
    found = choices_of(read(rows))
    assert found.user.tolist() == [0, 1, 1, 1]
    assert np.diff(found.ptr).tolist() == [3, 2, 3, 2]
    assert found.n_answers == 3.0
