"""Wide tables, one row a task: what the numbers of a choice mean, what describes alternatives, and what is asked."""

from __future__ import annotations

import numpy as np

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
        'column "choice" holds 0 to 2, and the alternatives of the columns are 1, 2, 3.',
        'If 0 is the choice of 1, the first, say alternatives=["1", "2", "3"]',
        '3 was never chosen, say none="0"',
    )  # fmt: skip
    assert "drop" not in told
    assert tasks_of(read(PRICES, {"choice": FROM_0}, alternatives=["1", "2", "3"])) == FIRST
    none = read(PRICES, {"choice": FROM_0}, none="0")
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
    refused(by_name, {"choice": FROM_0}, "counted from 0", 'alternatives=["bus", "car", "rail"]')
    refused(by_name, {"choice": [1, 2, 3]}, "counted from 1", 'alternatives=["bus", "car", "rail"]')
    named = {"alternatives": ["bus", "car", "rail"]}
    assert tasks_of(read(by_name, {"choice": FROM_0}, **named)) == tasks_of(
        read(by_name, {"choice": [1, 2, 3]}, **named)
    )


def test_one_odd_word_may_be_the_choice_of_none():
    many = {name: values * 4 for name, values in PRICES.items()}
    choice = [1, 2, 9] * 4
    told = refused(many, {"choice": choice}, 'it holds "9". If that is the choice of none of them, say none="9"')
    assert "drop" not in told
    assert "9" in read(many, {"choice": choice}, none="9").items.ids


def test_attributes_with_numbers_in_their_names_are_all_read():
    more = {f"{name}_{alt}": [alt + place, 1, 2] for place, name in enumerate(["x1", "x2"]) for alt in (1, 2, 3)}
    assert read(PRICES, {**more, "choice": [1, 2, 3]}).intake.attributes == ("price", "x1", "x2")
    both = read(PRICES, {**more, "choice": [1, 2, 3]}, profile=["price", "x2"])
    assert both.intake.attributes == ("price", "x2")


def test_what_is_named_as_profile_is_used_or_refused():
    refused(PRICES, {"choice": [1, 2, 3]}, 'no columns hold "prize" (given as profile)', 'Did you mean "price"?',
            profile=["price", "prize"])  # fmt: skip


def test_equal_alternatives_and_constants():
    same = {**PRICES, "price_2": [1, 5, 8], "choice": [1, 2, 3]}
    assert tasks_of(read(same))[0] == ("a", "price=1 > price=3")
    assert "In 1 task alternatives have the same attributes" in read(same).intake.notes[0]
    named = {**renamed(["id", "price_car", "price_bus", "price_rail"]), "choice": ["car", "bus", "rail"]}
    assert read(named).intake.attributes == ("alternative", "price")
    assert tasks_of(read(named, constants=False)) == FIRST
    assert read({**PRICES, "choice": [1, 2, 3]}, constants=True).intake.attributes == ("alternative", "price")


def test_constants_of_numbered_alternatives_are_asked_about_where_attributes_go_by_the_number():
    dice = np.random.default_rng(1)
    modes = {f"time_{alt}": (20 * alt + dice.normal(size=40)).round(2) for alt in (1, 2, 3)}
    choice = dice.integers(1, 4, 40)
    refused(modes, {"choice": choice}, 'columns number the alternatives (1, 2, 3 ...), and "time" goes by it',
            "constants=True", "constants=False")  # fmt: skip
    assert read(modes, {"choice": choice}, constants=True).intake.attributes == ("alternative", "time")
    only = {**{f"cost_{alt}": dice.normal(size=40) for alt in (1, 2, 3)}, "wait_1": dice.normal(size=40),
            "wait_2": dice.normal(size=40)}  # fmt: skip
    refused(only, {"choice": choice}, '"wait" goes by it')
    refused(only, {"choice": choice}, 'columns hold "wait" for the alternatives "1", "2"', constants=False)
    assert read(only, {"choice": choice}, constants=True).intake.attributes == ("alternative", "cost", "wait")
