"""A wrong value for any argument of any verb is refused in our words, or means something."""

from __future__ import annotations

import copy
import math
import warnings
from contextlib import suppress

import numpy as np
import pytest

import predilect
from predilect import Population
from predilect._base.arguments import (
    check_amounts,
    check_choice,
    check_count,
    check_flag,
    check_function,
    check_id,
    check_list,
    check_number,
    check_positives,
    check_table,
    numbers_in,
)
from predilect._base.text import setting, spoken_to, written
from predilect.decisions import design
from predilect.errors import DataError, PredilectError
from predilect.evaluation import accuracy
from predilect.parts import partition
from walks.checks import attribute_of, verbs
from walks.crowds import GIVEN, NONSENSE

ITEMS = ["tea", "milk", "juice"]
WRONG = (*NONSENSE, lambda: None, {"left": ["tea"]}, 10**400, [None], (1, 2))
CHECKS = [
    (lambda v: check_choice("x", v, ("a", True)), ("a", True), ("b", 1, [], {}), "x must be one of 'a', True, not "),
    (lambda v: check_count("x", v, 1, None), (1, None, np.int32(3)), (0, 1.0, True, "1", 10**400),
     "x must be None or a whole number from 1 up, not "),
    (lambda v: check_number("x", v, low=0.0, high=1.0), (0, 1, 0.5, np.float32(1)), (2, math.nan, True, "0", [0]),
     "x must be a number from 0 to 1, not "),
    (lambda v: check_positives("x", v, "auto"), (1, [1, 2.5], np.ones(2), "auto"), ([], [0.0], "a", np.ones((2, 2))),
     "x must be 'auto' or a positive number, or a list of such, not "),
    (lambda v: check_flag("x", v), (True, np.bool_(False)), ("no", 1, None), "x must be True or False, not "),
    (lambda v: check_list("x", v, of="items"), ((), ["a"], {"a"}, np.arange(2), iter("ab")),
     ("ab", b"ab", {"a": 1}, 3, list, np.ones((2, 2)), None), "x must be a list of items, not "),
    (lambda v: check_amounts("x", v), ({}, {"a": 0}), ([], "a", 3), "x must be a mapping of ids to numbers, not "),
    (lambda v: check_function("x", v, 2, ("a",)), ("a", max, lambda a, b: 0), (lambda a: 0, int, "b", []),
     "x must be one of 'a', or a function of 2 arguments, not "),
    (lambda v: check_id("x", v), (None, "a", 3, 3.0, np.int64(3)), (2.5, math.nan, True, [], object),
     "x must be an id, text or a whole number, not "),
    (lambda v: check_table("x", v), (None, {}, {"a": [1]}), ("a.csv", 3, object, []), "x must be a data frame or a "),
    (lambda v: numbers_in("x", v), ([1, 2.5], np.arange(2), ()), ("a", 3, [[1]], [[1], [1, 2]], [None], {}),
     "x must be a list of numbers, not "),
]  # fmt: skip


@pytest.mark.parametrize(("check", "right", "wrong", "said"), CHECKS)
def test_a_check_takes_what_is_right_and_says_what_is_wrong(check, right, wrong, said):
    for value in right:
        check(value)
    for value in wrong:
        with pytest.raises(DataError) as error:
            check(value)
        assert str(error.value).startswith(said), value


def test_values_are_written_as_the_reader_would():
    values = (None, True, False, "auto", [0.5, 0.2], 3)
    assert [written(one) for one in values] == ["None", "True", "False", "'auto'", "[0.5, 0.2]", "3"]
    assert setting("ties", True) == "ties=True"
    with spoken_to("command"):
        assert [written(one) for one in values] == ["null", "true", "false", "auto", "[0.5, 0.2]", "3"]
        assert setting("ties", True) == "ties=true"
        with pytest.raises(DataError, match="x must be true or false, not 'no'"):
            check_flag("x", "no")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    pairs = np.array([rng.permutation(3)[:2] for _ in range(30)])
    answers = {
        "user": [f"p{k % 5}" for k in range(30)], "left": [ITEMS[a] for a, _ in pairs],
        "right": [ITEMS[b] for _, b in pairs], "winner": [ITEMS[max(a, b)] for a, b in pairs],
    }  # fmt: skip
    items = {"item": ITEMS, "price": [1.0, 2.0, 4.0], "kind": ["hot", "cold", "cold"]}
    return Population(**GIVEN | {"clickers": 0.0}).fit(answers, items=items)


def refuses(call, usual):
    """Each argument in turn; whatever raises anything but our own errors fails."""
    for name in usual:
        for value in WRONG:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with suppress(PredilectError):
                    call(**usual | {name: value})


@pytest.mark.parametrize("verb", [one for one in verbs() if one != "verdict"])
def test_a_wrong_argument_of_a_verb(model, verb):
    usual = verbs(ITEMS, "p0")[verb]
    for more in ({}, {"target": "board"}) if "target" in usual else ({},):
        refuses(attribute_of(copy.copy(model), verb), usual | more)


@pytest.mark.parametrize(("verb", "usual"), [
    ("best_line", {"ours": ["tea"], "against": ["milk"], "size": 1}),
    ("best_price", {"scenario": ITEMS, "item": "tea", "price": "price", "values": [1.0], "cost": 0.0}),
    ("price_curve", {"scenario": ITEMS, "item": "tea", "price": "price", "values": [1.0]}),
    ("elasticities", {"scenario": ITEMS, "price": "price"}),
])  # fmt: skip
def test_a_wrong_argument_about_a_market(model, verb, usual):
    refuses(attribute_of(model, verb), usual)


@pytest.mark.parametrize(("function", "usual"), [
    (design, {"attributes": {"price": [1, 2]}, "n_tasks": 4, "n_alternatives": 2, "priors": None, "prohibited": (),
              "outside": False, "balanced": False, "n_blocks": 1, "random_state": 0}),
    (accuracy, {"outcome": [1], "log_proba": [[-1.0, -1.0, -1.0]], "weight": None}),
    (predilect.read, {"source": {"left": ["a"], "right": ["b"], "winner": ["a"]}, "columns": None, "reading": None,
                      "item_map": None}),
    (predilect.check, {"answers": {"left": ["a"], "right": ["b"], "winner": ["a"]}, "item_ids_with_no_answers": None}),
    (predilect.load, {"path": "nowhere"}),
    (partition, {"files": "nowhere.csv", "out": "nothing", "n_parts": 2}),
])  # fmt: skip
def test_a_wrong_argument_of_a_function(tmp_path, monkeypatch, function, usual):
    monkeypatch.chdir(tmp_path)
    refuses(function, usual)


SETTINGS = {*GIVEN, "tie_threshold", "basis", "attributes", "n_inducing", "user_features", "tol"} - {"n_jobs"}


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_wrong_argument_of_a_model(name):
    answers = {"left": ["a", "b"], "right": ["b", "c"], "winner": ["a", "b"]}
    refuses(lambda **given: Population(**GIVEN | {"personal": False} | given).fit(answers), {name: "auto"})


def test_people_are_asked_again_where_that_is_wanted(model):
    asked = model.suggest_each(["p0", "p1"], repeat=True, random_state=0)
    assert asked["user"].to_list() == ["p0", "p1"]
