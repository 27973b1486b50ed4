"""Rows of a task as one answer: what follows from others, copies, contradictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect import Comparisons
from predilect.data.comparisons import joint_rows
from predilect.data.orders import as_orders, weights_of_rows
from predilect.data.splits import masks_of_folds
from predilect.errors import DataError, DataWarning


def read(rows, weight=None, joint=None):
    """From (user, task, winner, loser); ``joint``: whether tasks are one answer, found by default."""
    user, task, winner, loser = map(list, zip(*rows, strict=True))
    frame = {"user": user, "task": task, "left": winner, "right": loser, "winner": winner}
    if weight is not None:
        frame["weight"] = weight
    if joint is None:
        return Comparisons.from_frame(frame, columns={"task": "task"}, reading={"side": False})
    return replace(
        Comparisons.from_frame(frame, columns={"task": "task"}, reading={"side": False, "kind": "pairs"}), joint=joint
    )


CHOICES = [
    ("ann", 1, "a", "b"), ("ann", 1, "a", "c"), ("ann", 2, "b", "d"), ("ann", 2, "b", "a"),
    ("bob", 1, "d", "c"),
]  # fmt: skip


def test_choices_are_recognised_and_pairs_that_were_asked_together_are_not():
    found = read(CHOICES)
    assert found.joint
    assert found.intake.joint_answers == 2
    assert any("2 answers about several alternatives" in line for line in found.intake.describe())
    assert not read(CHOICES, joint=False).joint
    assert not read([*CHOICES, ("bob", 2, "a", "b"), ("bob", 2, "c", "d")]).joint
    assert not read(CHOICES[-1:]).joint
    task = joint_rows(found)
    assert (task >= 0).sum() == 4
    np.testing.assert_allclose(weights_of_rows(found).sum(), 3.0)


def test_an_alternative_that_stands_twice_in_few_tasks_counts_once_and_is_said():
    many = [("ann", task, "abc"[task % 3], "abc"[(task + k) % 3]) for task in range(40) for k in (1, 2)]
    with pytest.warns(DataWarning, match="1 of 40 tasks hold an alternative twice: it counts once"):
        found = read([*many, many[-1]])
    assert found.joint
    assert (found.weight == 1.0).all()
    assert found == read(many)
    assert not read([*many, *many[::2]]).joint  # in each of them: these are no alternatives


def test_what_follows_is_left_out_and_copies_are_answers_of_their_own():
    order = [("ann", 1, a, b) for a, b in ("ab", "ac", "ad", "bc", "bd", "cd")]
    found = as_orders(read(order, joint=True))
    assert found.n_rows == 3
    assert found == as_orders(read([order[0], order[3], order[5]], joint=True))
    three = as_orders(read(order, weight=[3.0] * 6, joint=True))
    assert three.n_rows == 9
    assert len(np.unique(three.task)) == 3
    assert three == as_orders(
        read([(user, 3 * copy, a, b) for copy in range(3) for user, _, a, b in order], joint=True)
    )
    plain = read(CHOICES)
    assert as_orders(plain) is plain


@pytest.mark.parametrize(("rows", "weight", "what"), [
    ([("ann", 1, "a", "b"), ("ann", 1, "b", "c"), ("ann", 1, "c", "a")], None, "contradicts itself"),
    ([("ann", 1, "x", "y"), ("ann", 1, "y", "x")], None, "contradicts itself"),
    (CHOICES, [1.5, 1.5, 1.0, 1.0, 1.0], "whole number"),
    (CHOICES, [1.0, 2.0, 1.0, 1.0, 1.0], "whole number"),
])  # fmt: skip
def test_rows_that_are_no_order_are_refused(rows, weight, what):
    with pytest.raises(DataError, match=what):
        as_orders(read(rows, weight, joint=True))
    assert as_orders(read(rows, weight, joint=False)).n_rows == len(rows)


def test_a_tie_in_a_task_is_refused():
    rows = read(CHOICES)
    with pytest.raises(DataError, match="a tie in a task of several rows"):
        as_orders(replace(rows, outcome=np.where(np.arange(rows.n_rows) == 0, 0, rows.outcome)))


def test_answers_of_both_kinds_cannot_be_joined():
    one = read(CHOICES)
    assert one.append(read(CHOICES)).joint
    assert one.append(replace(one, task=None, joint=False)).joint
    with pytest.raises(DataError, match="same kind"):
        one.append(read(CHOICES, joint=False))


def test_folds_are_held_out_until_there_are_enough_answers_not_rows():
    n = 300  # choices of one item out of four, three rows each
    shown = {f"alt{k + 1}": [f"i{(t + k) % 9}" for t in range(n)] for k in range(4)}
    table = {"user": [f"u{t % 30}" for t in range(n)], **shown, "choice": [f"i{t % 9}" for t in range(n)]}
    answers = Comparisons.from_frame(table)
    assert answers.n_rows == 3 * n
    assert len(masks_of_folds(answers, 0, 60.0)) == 1
    assert len(masks_of_folds(answers, 0, 150.0)) == 3
    alone = replace(answers, joint=False)  # each row an answer
    assert len(masks_of_folds(alone, 0, 150.0)) == 1


def test_weights_that_are_no_counts_are_refused_with_the_option_that_leaves_them_out():
    columns = {"user": ["u"] * 3, "task": [1] * 3, "item": list("xyz"), "chosen": [1, 0, 0], "weight": [1.4] * 3}
    with pytest.raises(
        DataError, match=r'\(first: 1.4, .x. and .y. of user .u.\).*columns={"weights": ""}, or use MixedLogit'
    ):
        as_orders(Comparisons.from_frame(columns))
    assert len(as_orders(Comparisons.from_frame(columns, columns={"weights": None}))) == 2
