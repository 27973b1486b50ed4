"""Long tables, a row for each alternative: what names them, what describes them, what was chosen, and what is asked."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from answers import read, refused, tasks_of
from predilect.data import read_comparisons

TASKS = {"user": ["a"] * 3 + ["b"] * 3, "task": [1] * 3 + [7] * 3}
NUMBERED = {**TASKS, "alt": [1, 2, 3, 3, 1, 2]}
CHOSEN = [1, 0, 0, 0, 0, 1]


def made(n_tasks=60, seed=0, **columns):
    """Tasks of three alternatives, with columns by functions of dice and the number of the alternative."""
    dice = np.random.default_rng(seed)
    alt = np.tile(np.arange(1, 4), n_tasks)
    table = {"user": np.repeat(np.arange(n_tasks), 3), "task": np.ones(3 * n_tasks, dtype=int), "alt": alt}
    table |= {name: way(dice, alt) for name, way in columns.items()}
    chosen = np.zeros((n_tasks, 3), dtype=int)
    chosen[np.arange(n_tasks), dice.integers(3, size=n_tasks)] = 1
    return {**table, "chosen": chosen.ravel()}


def test_the_column_of_the_alternatives_can_be_named(tmp_path):
    firms = {"firm": ["f"] * 3 + ["g"] * 3, "region": ["n", "s", "e"] * 2, "wage": [10, 12, 9, 11, 10, 14]}
    firms["region"] = ["north", "south", "east"] * 2
    expected = ["north, wage=10 > east, wage=9", "north, wage=10 > south, wage=12"]
    named = {"task": "firm", "alternatives": "region"}
    assert list(tasks_of(read(firms, {"chosen": CHOSEN}, **named))[1][1:]) == expected
    pl.DataFrame({**firms, "chosen": CHOSEN}).write_csv(tmp_path / "firms.csv")
    assert list(tasks_of(read_comparisons(tmp_path / "firms.csv", **named))[1][1:]) == expected
    wide = {**firms, "price_1": [1] * 6, "price_2": [2] * 6, "chosen": CHOSEN}
    assert read(wide, **named).intake.tasks_read == {"choices of the best of 3": 2}
    refused(firms, {}, "found no column that says which was chosen", 'winner="NAME"', **named)
    refused(firms, {"chosen": CHOSEN}, 'Did you mean "region"?', task="firm", alternatives="regions")
    items = {**TASKS, "item": ["x", "y", "z", "z", "x", "y"], "chosen": CHOSEN}
    assert tasks_of(read(items, alternatives="item")) == tasks_of(read(items))


@pytest.mark.parametrize(
    "answer",
    [
        CHOSEN, [1, 1, 1, 2, 2, 2], [1, 0, 0, 2, 0, 0], [1, None, None, None, 2, None], [1, 2, 2, 2, 2, 1],
        ["yes", "no", "no", "no", "no", "yes"], [1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        ["taken", "left", "left", "left", "left", "taken"],
    ],
)  # fmt: skip
def test_what_was_chosen_in_all_its_spellings(answer):
    found = read(NUMBERED, {"price": [1, 2, 3, 4, 5, 9], "choice": answer})
    assert tasks_of(found) == [("a", "price=1 > price=2", "price=1 > price=3"),
                               ("b", "price=9 > price=4", "price=9 > price=5")]  # fmt: skip


def test_best_and_worst_may_be_written_with_a_point():
    found = read(NUMBERED, {"price": [1, 2, 3, 4, 5, 9], "response": ["1.0", "0.0", "-1.0", "0.0", "1.0", "-1.0"]})
    assert found.intake.tasks_read == {"choices of the best and the worst of 3": 2}


def test_items_that_attributes_vary_of_are_profiles_and_nothing_is_dropped():
    shop = {**TASKS, "product": ["tea", "milk", "juice"] * 2, "price": [1, 2, 3, 2, 2, 3], "chosen": CHOSEN}
    found = read(shop)
    assert found.intake.attributes == ("alternative", "price")
    assert found.intake.ignored_columns == ()
    assert tasks_of(found)[0] == ("a", "tea, price=1 > juice, price=3", "tea, price=1 > milk, price=2")
    on_screen = read(shop, {"position": [3, 2, 1, 1, 2, 3]})
    assert on_screen == found
    assert on_screen.intake.ignored_columns == ("position",)
    # What always describes an item makes none of it.
    assert read({**shop, "price": [1, 2, 3] * 2}).items.ids == ["juice", "milk", "tea"]
    # Ratings of items are of the items, whatever else their rows hold.
    rated = {"user": list("aabb"), "item": ["x", "y"] * 2, "rating": [1, 2, 2, 1], "seconds": [3, 5, 9, 8]}
    assert read(rated).items.ids == ["x", "y"]


def test_what_is_named_as_profile_is_used_or_refused():
    columns = {**NUMBERED, "price": [1, 2, 3, 4, 5, 9], "size": [1, 2, 3, 3, 1, 2], "chosen": CHOSEN}
    assert read(columns, profile=["price"]).intake.attributes == ("price",)
    assert read(columns, profile=["alt", "price"]).intake.attributes == ("alternative", "price")
    refused(columns, {}, 'no column "prize" (given as profile)', 'Did you mean "price"?', profile=["prize"])
    refused(columns, {}, 'column "task" cannot be both task and part of the profile', profile=["task", "price"])
    refused(pl.DataFrame({**columns, "many": [[1]] * 6}).to_dict(), {}, "holds lists", profile=["many", "price"])


def test_a_column_that_counts_in_tasks_is_asked_about():
    columns = {**TASKS, "brand": [1, 2, 3, 3, 1, 2], "price": [1, 2, 3, 4, 5, 9], "chosen": CHOSEN}
    refused(
        columns, {},
        'column "brand" holds 3 numbers, each once in every task of 3',
        'Row 1 is about alternative 1 if you say alternatives="brand"',
        'it has brand=1, an attribute, if you say profile=["brand", "price"]',
    )  # fmt: skip
    assert read(columns, profile=["brand", "price"]).intake.attributes == ("brand", "price")
    refused(columns, {}, 'column "brand" numbers the alternatives (1, 2, 3 ...)', alternatives="brand")
    labelled = read(columns, alternatives="brand", constants=True)
    assert labelled.intake.attributes == ("alternative", "price")
    assert read(columns, alternatives="brand", constants=False).intake.attributes == ("price",)


def test_constants_of_numbered_alternatives_are_asked_about_where_attributes_go_by_the_number():
    by_number = made(cost=lambda dice, alt: dice.normal(10.0 * alt, 1.0).round(2))
    refused(by_number, {}, 'and "cost" goes by it', "constants=True", "constants=False")
    assert read(by_number, constants=True).intake.attributes == ("alternative", "cost")
    assert read(by_number, constants=False).intake.attributes == ("cost",)
    only_some = made(
        cost=lambda dice, alt: dice.integers(1, 4, len(alt)),
        wait=lambda dice, alt: [None if number == 2 else dice.random() for number in alt],
    )
    refused(only_some, {}, 'and "wait" goes by it')
    # Places of a design; a label that goes with the number; numbers of modes.
    design = made(cost=lambda dice, alt: dice.integers(1, 4, len(alt)), size=lambda dice, alt: dice.random(len(alt)))
    assert read(design).intake.attributes == ("cost", "size")
    brand = np.array(["tea", "milk", "juice"])[by_number["alt"] - 1]
    assert read(by_number, {"brand": brand}).intake.attributes == ("brand", "cost")
    modes = {("mode" if name == "alt" else name): values for name, values in by_number.items()}
    assert read(modes).intake.attributes == ("alternative", "cost")


def test_constants_of_named_alternatives_can_be_left_out():
    shop = {**TASKS, "alt": ["car", "bus", "train"] * 2, "price": [1, 2, 3, 4, 5, 9], "chosen": CHOSEN}
    assert read(shop).intake.attributes == ("alternative", "price")
    assert read(shop, constants=False).intake.attributes == ("price",)


def test_equal_profiles_of_a_task_stand_there_once():
    columns = {**NUMBERED, "price": [2, 2, 4, 3, 3, 3], "chosen": CHOSEN}
    found = read(columns)
    assert tasks_of(found) == [("a", "price=2 > price=4")]
    assert found.intake.notes == ("In 2 tasks alternatives have the same attributes: each profile stands there once.",)
    assert found.intake.left_out == {"all alike": 3}
    other = read(columns, {"chosen": [0, 1, 0, 0, 0, 1]})
    assert tasks_of(other) == tasks_of(found)
    assert tasks_of(read(columns, {"chosen": [0, 0, 1, 0, 0, 1]})) == [("a", "price=4 > price=2")]
    worst = {**columns, "price": [2, 2, 4, 3, 4, 5], "response": [1, 0, -1, 0, 1, -1]}
    del worst["chosen"]
    assert tasks_of(read(worst)) == [("a", "price=2 > price=4"), ("b", "price=3 > price=5", "price=4 > price=3")]
    refused({**worst, "response": [1, -1, 0, 0, 1, -1]}, {}, 'stands twice in 1 task (first: row 1), such as "price=2"')
    rated = {name: values for name, values in worst.items() if name != "response"}
    refused(rated, {"rating": [1, 5, 3, 1, 2, 3]}, "stands twice")


def test_a_lone_attribute_with_an_outside_option():
    found = read(NUMBERED, {"price": [1, 2, None, None, 2, 1], "choice": CHOSEN})
    assert tasks_of(found) == [
        ("a", "price=1 > None", "price=1 > price=2"),
        ("b", "price=1 > None", "price=1 > price=2"),
    ]
    assert "stands for none of these (None)" in " ".join(found.intake.notes)
    marked = read(NUMBERED, {"price": [1, 2, None, None, 2, 1], "out": [0, 0, 1, 1, 0, 0], "choice": CHOSEN})
    assert tasks_of(marked) == tasks_of(found)
    refused(NUMBERED, {"price": [1, 2, None, 3, 2, 1], "choice": CHOSEN}, 'an attribute ("price") is missing in 1 task')


def test_a_position_is_no_rank_beside_another_answer():
    shown = {"user": list("aabb"), "item": ["x", "y", "y", "x"], "position": [1, 2, 1, 2]}
    refused(shown, {}, "or where each item stood on the screen", 'kind="rank"', 'winner="NAME"')
    assert tasks_of(read(shown, kind="rank")) == [("a", "x > y"), ("b", "y > x")]
    refused(
        shown, {"clicked": [0, 1, 1, 0]},
        'column "position" may be the place on the screen, and "clicked" may be the answer',
        'kind="rank"', 'winner="clicked"',
    )  # fmt: skip
    refused(shown, {"rating": [5, 1, 4, 2]}, '"rating" may be the answer', 'winner="rating" and kind="rating"')
    assert tasks_of(read(shown, {"clicked": [0, 1, 1, 0]}, winner="clicked")) == [("a", "y > x"), ("b", "y > x")]


@pytest.mark.parametrize("name", ["rating", "stars", "score", "points"])
def test_high_ratings_are_good_and_that_is_said(name):
    found = read({"user": list("aa"), "item": ["x", "y"], name: [1, 5]})
    assert tasks_of(found) == [("a", "y > x")]
    assert found.intake.notes == (f'In "{name}" high numbers are good.',)


@pytest.mark.parametrize("name", ["grade", "mark", "penalty"])
def test_marks_are_asked_about(name):
    marks = {"user": list("aa"), "item": ["x", "y"], name: [1, 5]}
    refused(
        marks, {}, f'column "{name}" holds numbers from 1 to 5, and no word says which end is good',
        '1 is better than 5 if you say best="low"', '5 better than 1 if you say best="high"',
    )  # fmt: skip
    low = read(marks, best="low")
    assert tasks_of(low) == [("a", "x > y")]
    assert low.intake.notes == (f'In "{name}" low numbers are good.',)
    assert tasks_of(read(marks, best="high")) == [("a", "y > x")]


def test_votes_of_statements_up_and_down():
    votes = {"voter-id": list("aaab"), "comment-id": [1, 2, 3, 1], "vote": [1, 1, -1, 0]}
    refused(votes, {}, 'column "vote" holds numbers from -1 to 1', 'best="high"')
    assert tasks_of(read(votes, best="high")) == [("a", "1 > 3", "2 > 3")]
    assert tasks_of(read(votes, best="low")) == [("a", "3 > 1", "3 > 2")]


def test_ranks_the_other_way_round_and_in_words():
    ranks = {"user": list("aaa"), "item": ["x", "y", "z"], "rank": ["2nd", "first", "Third place"]}
    assert tasks_of(read(ranks)) == [("a", "x > z", "y > x")]
    assert tasks_of(read(ranks, best="high")) == [("a", "x > y", "z > x")]


def test_three_hundred_attributes():
    many = {f"x{k}": [k, 7, 8, 7, 8, k] for k in range(300)}
    assert len(read(NUMBERED, {**many, "chosen": CHOSEN}).intake.attributes) == 300


def test_a_pair_file_with_tasks_stays_one():
    pairs = {"user": ["u"] * 4, "task": [1, 1, 2, 2], "a": ["x", "y", "x", "z"], "b": ["y", "z", "z", "y"],
             "winner": ["a", "b", "a", "a"], "option": [1, 2, 1, 2]}  # fmt: skip
    assert len(read(pairs)) == 4
    assert re.search("side words", read(pairs).intake.winner_reading)
