"""Wide tables, one row a task: what the numbers of a choice mean, what describes alternatives, and what is asked."""

from __future__ import annotations

import numpy as np
import pytest

from answers import read, refused, tasks_of

PRICES = {"id": list("abc"), "price_1": [1, 4, 7], "price_2": [2, 5, 8], "price_3": [3, 6, 9]}
FROM_0 = [0, 1, 2]
FIRST = [("a", "price=1 > price=2", "price=1 > price=3"), ("b", "price=5 > price=4", "price=5 > price=6"),
         ("c", "price=9 > price=7", "price=9 > price=8")]  # fmt: skip


def renamed(words):
    return {name: PRICES[old] for name, old in zip(words, PRICES, strict=True)}


def test_choices_from_0_beside_columns_from_1_are_asked_about():
    told = refused(
        PRICES, {"choice": FROM_0},
        'Row 1: a chooses price=1 over price=2, price=3', 'columns={"alternatives": ["1", "2", "3"]}',
        'Row 1: a chooses 0 over price=1, price=2, price=3', 'reading={"none": "0"}',
    )  # fmt: skip
    assert "drop" not in told
    assert tasks_of(read(PRICES, {"choice": FROM_0}, columns={"alternatives": ["1", "2", "3"]})) == FIRST
    none = read(PRICES, {"choice": FROM_0}, reading={"none": "0"})
    assert tasks_of(none)[0] == ("a", "0 > price=1", "0 > price=2", "0 > price=3")
    # The columns count from 0 too.
    from_0 = renamed(["id", "price_0", "price_1", "price_2"])
    assert tasks_of(read(from_0, {"choice": FROM_0})) == FIRST


def test_numbers_of_named_alternatives_follow_the_columns_or_are_asked_about():
    ordered = renamed(["id", "price_car", "price_bus", "price_rail"])
    found = read(ordered, {"choice": FROM_0})
    assert found.intake.notes == ("The choice was read by the order of the columns: 0 car, 1 bus, 2 rail.",)
    assert tasks_of(found)[0] == ("a", "car, price=1 > bus, price=2", "car, price=1 > rail, price=3")
    by_name = renamed(["id", "price_bus", "price_car", "price_rail"])
    refused(by_name, {"choice": FROM_0}, 'columns={"alternatives": ["bus", "car", "rail"]')
    refused(by_name, {"choice": [1, 2, 3]}, 'columns={"alternatives": ["bus", "car", "rail"]')
    named = {"columns": {"alternatives": ["bus", "car", "rail"]}}
    assert tasks_of(read(by_name, {"choice": FROM_0}, **named)) == tasks_of(
        read(by_name, {"choice": [1, 2, 3]}, **named)
    )


def test_one_odd_word_may_be_the_choice_of_none():
    many = {name: values * 4 for name, values in PRICES.items()}
    choice = [1, 2, 9] * 4
    told = refused(
        many, {"choice": choice}, 'it holds "9". If that is the choice of none of them, say reading={"none": "9"}'
    )
    assert "drop" not in told
    assert "9" in read(many, {"choice": choice}, reading={"none": "9"}).items.ids


def test_attributes_with_numbers_in_their_names_are_all_read():
    more = {f"{name}_{alt}": [alt + place, 1, 2] for place, name in enumerate(["x1", "x2"]) for alt in (1, 2, 3)}
    assert read(PRICES, {**more, "choice": [1, 2, 3]}).intake.attributes == ("price", "x1", "x2")
    both = read(PRICES, {**more, "choice": [1, 2, 3]}, columns={"profile": ["price", "x2"]})
    assert both.intake.attributes == ("price", "x2")


def test_what_is_named_as_profile_is_used_or_refused():
    refused(PRICES, {"choice": [1, 2, 3]}, 'no columns hold "prize" (given as profile)', 'Did you mean "price"?',
            columns={"profile": ["price", "prize"]})  # fmt: skip


def test_equal_alternatives_and_constants():
    same = {**PRICES, "price_2": [1, 5, 8], "choice": [1, 2, 3]}
    assert tasks_of(read(same))[0] == ("a", "price=1 > price=1", "price=1 > price=3")
    assert "In 1 task alternatives have the same attributes" in read(same).intake.notes[0]
    named = {**renamed(["id", "price_car", "price_bus", "price_rail"]), "choice": ["car", "bus", "rail"]}
    assert read(named).intake.attributes == ("alternative", "price")
    assert tasks_of(read(named, reading={"constants": False})) == FIRST
    assert read({**PRICES, "choice": [1, 2, 3]}, reading={"constants": True}).intake.attributes == (
        "alternative",
        "price",
    )


def test_constants_of_numbered_alternatives_are_asked_about_where_attributes_go_by_the_number():
    dice = np.random.default_rng(1)
    modes = {f"time_{alt}": (20 * alt + dice.normal(size=40)).round(2) for alt in (1, 2, 3)}
    choice = dice.integers(1, 4, 40)
    refused(modes, {"choice": choice}, 'reading={"constants": True}', 'reading={"constants": False}')  # fmt: skip
    assert read(modes, {"choice": choice}, reading={"constants": True}).intake.attributes == ("alternative", "time")
    # What is the same everywhere tells nothing, whatever is lost where it is summed up.
    same = {**{f"time_{alt}": dice.normal(size=40) for alt in (1, 2, 3)}, **{f"fee_{alt}": [0.1] * 40 for alt in "123"}}
    assert read(same, {"choice": choice}).intake.attributes == ("fee", "time")
    only = {**{f"cost_{alt}": dice.normal(size=40) for alt in (1, 2, 3)}, "wait_1": dice.normal(size=40),
            "wait_2": dice.normal(size=40)}  # fmt: skip
    refused(only, {"choice": choice}, 'reading={"constants": True}', 'columns={"profile": ["wait", "cost"]}')
    refused(only, {"choice": choice}, 'columns hold "wait" for the alternatives "1", "2"', reading={"constants": False})
    assert read(only, {"choice": choice}, reading={"constants": True}).intake.attributes == (
        "alternative",
        "cost",
        "wait",
    )


def test_what_one_alternative_lacks_is_0_if_it_is_named():
    routes = {"tt1": [10, 12], "tt2": [8, 9], "toll2": [3, 4], "choice": [1, 2]}
    refused(
        routes, {}, 'columns={"profile": ["toll", "tt"]}', 'reading={"constants": True}', 'columns={"profile": "tt"}'
    )
    found = read(routes, columns={"profile": ["tt", "toll"]})
    assert tasks_of(found) == [(None, "toll=0, tt=10 > toll=3, tt=8"), (None, "toll=4, tt=9 > toll=0, tt=12")]
    assert read(routes, columns={"profile": ["tt"]}).intake.attributes == ("tt",)


A, B = ["tea", "milk", "rum", "tea"], ["milk", "rum", "tea", "milk"]
OF_A = {"a 1": ["001", "010", "002"], "a 2": ["010", "002", "001"], "a 3": ["002", "001", "010"]}
COST = {"cost_bus": [1, 2, 3], "cost_car": [2, 3, 1], "time_bus": [4, 5, 6], "time_car": [5, 4, 6]}
BY_NUMBER = {f"{alt}_x{k}": [k, 2, 1 + k % 2] for alt in ("TRAIN", "SM", "CAR") for k in (1, 2, 3)}


def test_columns_of_a_number_are_items_or_an_attribute_as_is_said():
    ends = {"Most": [1, 3, 2], "Least": [2, 1, 3]}
    items = {"columns": {"alternatives": list(OF_A)}}
    refused(OF_A, ends, 'columns={"alternatives": ["a 1", "a 2", "a 3"]}', 'columns={"profile": "a"}')
    assert read(OF_A, ends, **items).items.ids == ["001", "002", "010"]
    assert read(OF_A, ends, columns={"profile": ["a"]}).intake.attributes == ("a",)
    refused(OF_A, {"answer": [1, 3, 2]}, '"alternatives": ["a 1", "a 2", "a 3"]}')
    assert read(OF_A, {"answer": [1, 3, 2]}, **items).items.ids == ["001", "002", "010"]


@pytest.mark.parametrize(
    ("table", "more", "messages"),
    [
        (PRICES, {"choice": [1, 2, 3], "response": [1, 3, 2]},
         ['columns={"answer": "choice"}', 'columns={"answer": "response"}']),
        (PRICES, {"choice": [1, 2, 3], "user": ["write", "mend", "write"], "Rater ID": ["x", "x", "y"]},
         ['columns={"who": "user"}', 'columns={"who": "Rater ID"}']),
        (OF_A, {"best": OF_A["a 1"], "worst": OF_A["a 2"], "user": list("xyx"), "judge": list("xxy")},
         ['columns={"who": "user"}', 'columns={"who": "judge"}']),
        ({"cost_a": [1, 2, 3], "cost_b": [4, 5, 6]}, {"arm": ["A", "B", "A"]}, ['columns={"answer": "arm"}']),
        ({"bus_score": [1, 2, 3], "car_score": [2, 1, 3]}, {"choice": ["bus", "car", "bus"]},
         ['reading={"kind": "rating"}', 'columns={"answer": "choice"}']),
        (BY_NUMBER, {"choice": [1, 3, 2]},
         ['"alternatives": ["TRAIN", "SM", "CAR"]', '"alternatives": ["1", "2", "3"]']),
        (COST, {"choice": ["bus", "car", "bus"], "time_taken": [7, 8, 9]},
         ['columns={"alternatives": ["bus", "car"]}', 'columns={"alternatives": ["bus", "car", "taken"]}']),
        ({"artigo 1": [1, 2, 3, 1], "artigo 2": [2, 3, 1, 2]},
         {"user": ["do", "go", "do", "go"], "label": [1, 2, 2, 1], "preferred": ["first", "second", "first", "first"]},
         ['columns={"left": "artigo 1", "right": "artigo 2", "answer": "label"}', '"profile": "artigo"']),
        ({"kelm": A, "vorn": B}, {"score_a": [1, 2, 1, 2], "score_b": [2, 1, 1, 1], "choice": list("abab")},
         ['columns={"left": "kelm", "right": "vorn", "answer": "choice"}', '"profile": "score"']),
    ],
)  # fmt: skip
def test_what_else_could_be_the_answer_the_person_or_the_items_is_asked_about(table, more, messages):
    refused(table, more, *messages)


def test_a_column_of_another_thing_is_no_alternative_beside_numbers():
    numbers = {"time_1": [1, 2, 3], "time_2": [3, 1, 2], "cost_1": [1, 2, 2], "cost_2": [2, 2, 1]}
    found = read(numbers, {"choice": [1, 2, 1], "time_taken": [7, 8, 9]})
    assert found.intake.ignored_columns == ("time_taken",)


def test_a_task_of_one_row_is_no_alternative():
    """The rows of each task but one hold each answer once, as alternatives with one mark a task would."""
    table = {
        "task": [1, 2, 3, 4, 1, 2, 3], "size_A": [2, 1, 1, 1, 2, 2, 1], "price_A": [1, 2, 2, 4, 3, 1, 2],
        "size_B": [2, 1, 1, 1, 1, 1, 1], "price_B": [3, 2, 4, 2, 1, 3, 2], "choice": list("BABAABA"),
    }  # fmt: skip
    assert read(table, {}).intake.tasks_read == {"choices of the best of 2": 7}
