"""Contexts of answers: what several people were asked about."""

from __future__ import annotations

import pytest

from predilect import Comparisons
from predilect.errors import DataError

ROWS = {
    "user": ["ann", "bob", "ann", "cas", "bob"],
    "left": ["x", "y", "x", "x", "z"],
    "right": ["y", "x", "y", "y", "x"],
    "winner": ["x", "x", "x", "y", "z"],
    "prompt": ["p2", "p1", "p1", None, "p2"],
}


def read(rows=ROWS, columns=None, **options):
    return Comparisons.from_frame(rows, columns={"context": "prompt"} | (columns or {}), **options)


def contexts(answers):
    labels = [*answers.contexts.ids, None]
    return {
        (user, left, right, int(outcome), context)
        for user, left, right, outcome, context in zip(
            answers.users.labels(answers.user), answers.items.labels(answers.left),
            answers.items.labels(answers.right), answers.outcome, [labels[code] for code in answers.context],
            strict=True,
        )
    }  # fmt: skip


def test_answers_on_different_contexts_stay_apart_and_keep_theirs():
    found = read()
    assert contexts(found) == {
        ("ann", "x", "y", 1, "p1"), ("ann", "x", "y", 1, "p2"), ("bob", "x", "y", 1, "p1"), ("cas", "x", "y", -1, None),
        ("bob", "x", "z", -1, "p2"),
    }  # fmt: skip
    assert found.intake.columns["context"] == "prompt"
    assert Comparisons.from_frame(ROWS).contexts is None
    assert Comparisons.from_frame(ROWS).n_rows == 4


def test_sets_share_contexts_by_their_ids():
    first = {name: column[:2] for name, column in ROWS.items()}
    second = {name: column[2:] for name, column in ROWS.items()}
    both = read(first).append(read(second))
    assert both == read()
    assert list(both.contexts.ids) == ["p1", "p2"]
    without = read(first).append(Comparisons.from_frame(second))
    assert contexts(without) == {
        ("ann", "x", "y", 1, "p2"), ("bob", "x", "y", 1, "p1"), ("ann", "x", "y", 1, None), ("cas", "x", "y", -1, None),
        ("bob", "x", "z", -1, None),
    }  # fmt: skip
    assert contexts(Comparisons.from_frame(first).append(read(second))) >= {("bob", "x", "z", -1, "p2")}


def test_columns_that_cannot_be_contexts_are_refused():
    with pytest.raises(DataError, match=r'no column "scene" \(given as context\)'):
        Comparisons.from_frame(ROWS, columns={"context": "scene"})
    with pytest.raises(DataError, match="cannot be both context and user"):
        Comparisons.from_frame(ROWS, columns={"who": "prompt", "context": "prompt"}, reading={"drop": "missing"})
    nothing = Comparisons.from_frame({**ROWS, "prompt": [None] * 5}, columns={"context": "prompt"})
    assert nothing.contexts is None
