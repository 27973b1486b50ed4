"""Updates that are refused, and what cannot be taken back: nothing changes."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.votes import item_ids, user_ids
from predilect import Population
from predilect.errors import DataError
from simulate import crowd
from simulate_updates import AT_FIT, FIXED, LATER, columns, fitted, one, state

ANSWER = {"user": "person 0001", "left": "item 1", "right": "item 2"}
BAD = {
    "unknown item": (ANSWER | {"left": "juice", "outcome": 1}, "not one of the 6 items.*refit"),
    "no item": ({"user": "person 0001", "right": "item 2", "outcome": 1}, "left is missing"),
    "one item twice": (ANSWER | {"right": "item 1", "outcome": 1}, "same item"),
    "no outcome": (ANSWER, "neither outcome nor winner"),
    "no winner": (ANSWER | {"winner": None}, 'give outcome= .1, 0 or -1., or winner= .an item, or "tie".'),
    "strange outcome": (ANSWER | {"outcome": 2}, "outcome must be"),
    "true": (ANSWER | {"outcome": True}, "outcome must be"),
    "outcome and winner": (ANSWER | {"outcome": 1, "winner": "item 1"}, "not both"),
    "strange winner": (ANSWER | {"winner": "item 3"}, "neither the left"),
    "no user": (ANSWER | {"user": None, "outcome": 1}, "say who answered"),
    "blank user": (ANSWER | {"user": " ", "outcome": 1}, "cannot be an id"),
    "half a user": (ANSWER | {"user": 1.5, "outcome": 1}, "cannot be an id"),
    "half an answer": (ANSWER | {"outcome": 1, "weight": 0.5}, "weight below 1"),
    "no weight": (ANSWER | {"outcome": 1, "weight": 0}, "positive number"),
    "weight in words": (ANSWER | {"outcome": 1, "weight": "two"}, "positive number"),
    "endless weight": (ANSWER | {"outcome": 1, "weight": np.inf}, "positive number"),
    "frame and one": (ANSWER | {"more": columns([0]), "outcome": 1}, "not both"),
    "y alone": ({"y": [1]}, "no frame"),
    "nothing": ({}, "left is missing"),
    "a frame without people": (
        {"more": {"left": ["item 1"], "right": ["item 2"], "winner": ["left"]}}, "do not say who"
    ),
    "weights in a frame": (
        {"more": columns([0]) | {"weight": [0.25]}}, "weight below 1"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_and_changes_nothing(what):
    model = fitted("items").update(**one(LATER[0]))
    before = state(model)
    arguments, message = BAD[what]
    with pytest.raises(DataError, match=message):
        model.update(**arguments)
    assert state(model) == before


def test_ties_where_there_were_none():
    strict = crowd(2, 6, 4, 8)
    frame = {"user": user_ids(strict.user), "left": item_ids(strict.left), "right": item_ids(strict.right)}
    for personal in (True, False):
        settings = FIXED | {"tie_threshold": "auto", "personal": personal, "tol": 1e-2}
        model = Population(**settings).fit(frame, strict.outcome.astype(int))
        before = state(model)
        with pytest.raises(DataError, match=r"ties \(first: 'zoe': a tie of 'item 1' and 'item 2'\)"):
            model.update(user="zoe", left="item 1", right="item 2", winner="tie")
        assert state(model) == before


@pytest.mark.parametrize("kind", ["items", "pooled"])
def test_what_is_not_held_cannot_be_taken_back(kind):
    model = fitted(kind)
    index = int(AT_FIT[0])
    model.forget(**one(index))
    before = state(model)
    with pytest.raises(DataError, match="taken back already"):
        model.forget(**one(index), weight=50.0)
    with pytest.raises(DataError, match="taken back already"):  # all or nothing: one of these is held
        model.forget(columns([AT_FIT[1], AT_FIT[0], AT_FIT[0], AT_FIT[0], *[AT_FIT[0]] * 40]))
    with pytest.raises(DataError, match="not one of the 12 people"):
        model.forget(user="zoe", left="item 1", right="item 2", outcome=1)
    with pytest.raises(DataError, match="not one of the 12 people"):
        model.forget(columns(LATER))
    assert state(model) == before


def test_what_was_taken_back_already_or_is_of_another_outcome():
    model = fitted("items").update(user="zoe", left="item 1", right="item 2", outcome=1, weight=2.5)
    for arguments, message in (
        ({"outcome": -1}, r"'zoe': 'item 2' over 'item 1' \(weight 1\): the model holds no such answer"),
        ({"outcome": 1, "weight": 3}, "with weight 2.5 only"),
        ({"outcome": 1, "weight": 2}, "less than one answer"),
    ):
        with pytest.raises(DataError, match=message):
            model.forget(user="zoe", left="item 1", right="item 2", **arguments)
    model.forget(user="zoe", left="item 2", right="item 1", winner="item 1", weight=2.5)
    with pytest.raises(DataError, match="taken back already"):
        model.forget(user="zoe", left="item 1", right="item 2", outcome=1)
    model.update(user="zoe", left="item 1", right="item 2", winner="tie")


def test_an_unfitted_model_says_so():
    from sklearn.exceptions import NotFittedError

    for call in (Population().update, Population().forget):
        with pytest.raises(NotFittedError):
            call(**ANSWER, outcome=1)
