"""Long tables, a row for each alternative: what names them, what describes them, what was chosen, and what is asked."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from answers import read, refused, tasks_of
from predilect._base.text import spoken_to
from predilect.data import Comparisons
from predilect.data import read as read_file
from predilect.data.read.options import from_command
from predilect.errors import DataError

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
    named = {"columns": {"task": "firm", "alternatives": "region"}}
    assert list(tasks_of(read(firms, {"chosen": CHOSEN}, **named))[1][1:]) == expected
    pl.DataFrame({**firms, "chosen": CHOSEN}).write_csv(tmp_path / "firms.csv")
    assert list(tasks_of(read_file(tmp_path / "firms.csv", **named))[1][1:]) == expected
    wide = {**firms, "price_1": [1] * 6, "price_2": [2] * 6, "chosen": CHOSEN}
    assert read(wide, **named).intake.tasks_read == {"choices of the best of 3": 2}
    refused(firms, {}, "nothing tells that it must be", 'columns={"answer": "wage"}', **named)
    refused(firms, {"chosen": CHOSEN}, 'Did you mean "region"?', columns={"task": "firm", "alternatives": "regions"})
    items = {**TASKS, "item": ["x", "y", "z", "z", "x", "y"], "chosen": CHOSEN}
    assert tasks_of(read(items, columns={"alternatives": "item"})) == tasks_of(read(items))


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


def test_a_column_of_tasks_is_found_behind_many_that_never_recur():
    rng = np.random.default_rng(0)
    table = {f"x{k}": rng.permutation(24) for k in range(20)}
    table |= {"z": np.repeat(list("pqrstuvw"), 3), "item": ["a", "b", "c"] * 8, "chosen": [0, 1, 0] * 8}
    found = read(table, columns={"profile": ""})
    assert found.intake.columns["task"] == "z"
    assert tasks_of(found) == [(None, "b > a", "b > c")] * 8


def test_what_is_named_as_profile_is_used_or_refused():
    columns = {**NUMBERED, "price": [1, 2, 3, 4, 5, 9], "size": [1, 2, 3, 3, 1, 2], "chosen": CHOSEN}
    assert read(columns, columns={"profile": ["price"]}).intake.attributes == ("price",)
    assert read(columns, columns={"profile": ["alt", "price"]}).intake.attributes == ("alternative", "price")
    refused(
        columns, {}, 'no column "prize" (given as profile)', 'Did you mean "price"?', columns={"profile": ["prize"]}
    )
    refused(
        columns, {}, 'column "task" cannot be both task and part of the profile', columns={"profile": ["task", "price"]}
    )
    refused(
        pl.DataFrame({**columns, "many": [[1]] * 6}).to_dict(),
        {},
        "holds lists",
        columns={"profile": ["many", "price"]},
    )


def test_a_column_that_counts_in_tasks_is_asked_about():
    columns = {**TASKS, "brand": [1, 2, 3, 3, 1, 2], "price": [1, 2, 3, 4, 5, 9], "chosen": CHOSEN}
    refused(
        columns, {},
        'Row 1: a chooses 1, price=1 over 2, price=2; 3, price=3',
        'columns={"alternatives": "brand"}, reading={"constants": True}',
        'Row 1: a chooses brand=1, price=1 over', 'columns={"profile": ["brand", "price"]}',
    )  # fmt: skip
    assert read(columns, columns={"profile": ["brand", "price"]}).intake.attributes == ("brand", "price")
    refused(
        columns, {}, 'reading={"constants": True}', 'reading={"constants": False}', columns={"alternatives": "brand"}
    )
    labelled = read(columns, columns={"alternatives": "brand"}, reading={"constants": True})
    assert labelled.intake.attributes == ("alternative", "price")
    assert read(columns, columns={"alternatives": "brand"}, reading={"constants": False}).intake.attributes == (
        "price",
    )


def test_constants_of_numbered_alternatives_are_asked_about_where_attributes_go_by_the_number():
    by_number = made(cost=lambda dice, alt: dice.normal(10.0 * alt, 1.0).round(2))
    refused(by_number, {}, 'reading={"constants": True}', 'reading={"constants": False}')
    assert read(by_number, reading={"constants": True}).intake.attributes == ("alternative", "cost")
    assert read(by_number, reading={"constants": False}).intake.attributes == ("cost",)
    only_some = made(
        cost=lambda dice, alt: dice.integers(1, 4, len(alt)),
        wait=lambda dice, alt: [None if number == 2 else dice.random() for number in alt],
    )
    refused(only_some, {}, 'reading={"constants": True}')
    # Places of a design; a label that goes with the number; numbers of modes.
    design = made(cost=lambda dice, alt: dice.integers(1, 4, len(alt)), size=lambda dice, alt: dice.random(len(alt)))
    assert read(design).intake.attributes == ("cost", "size")
    brand = np.array(["tea", "milk", "juice"])[by_number["alt"] - 1]
    assert read(by_number, {"brand": brand}).intake.attributes == ("brand", "cost")
    modes = {("mode" if name == "alt" else name): values for name, values in by_number.items()}
    assert read(modes).intake.attributes == ("alternative", "cost")


@pytest.mark.parametrize(("apart", "asked"), [(4.9, False), (5.1, True)])
def test_attributes_go_by_the_number_if_they_differ_by_five_times_what_chance_would_have(apart, asked):
    """F is 25 where the means are as far apart as five times their errors, of 60 alternatives each, two of three."""
    noise = np.random.default_rng(2).normal(size=(60, 3))
    noise = (noise - noise.mean(axis=0)) / np.sqrt(((noise - noise.mean(axis=0)) ** 2).sum() / 177.0)
    cost = noise + apart * np.sqrt(2.0 / 60.0) * np.array([-1.0, 0.0, 1.0]) / np.sqrt(2.0)
    shown = made(cost=lambda dice, alt: cost.ravel(), toll=lambda dice, alt: np.full(len(alt), 0.1))
    if asked:
        refused(shown, {}, 'reading={"constants": True}', 'reading={"constants": False}')
    else:
        assert read(shown).intake.attributes == ("cost",)


def test_constants_of_named_alternatives_can_be_left_out():
    shop = {**TASKS, "alt": ["car", "bus", "train"] * 2, "price": [1, 2, 3, 4, 5, 9], "chosen": CHOSEN}
    assert read(shop).intake.attributes == ("alternative", "price")
    assert read(shop, reading={"constants": False}).intake.attributes == ("price",)


def test_equal_profiles_of_a_task_stand_there_as_often_as_they_were_shown():
    columns = {**NUMBERED, "price": [2, 2, 4, 3, 3, 3], "chosen": CHOSEN}
    found = read(columns)
    of_three = ("b", "price=3 > price=3", "price=3 > price=3")
    assert tasks_of(found) == [("a", "price=2 > price=2", "price=2 > price=4"), of_three]
    assert found.intake.notes == (
        "In 2 tasks alternatives have the same attributes: each counts, as often as it was shown.",
    )
    assert (found.copies.tolist(), found.joint) == ([[0, 1], [0, 0], [0, 1], [0, 2]], True)
    assert read(columns, {"chosen": [0, 1, 0, 0, 0, 1]}) == found  # which of two alike makes no difference
    assert tasks_of(read(columns, {"chosen": [0, 0, 1, 0, 0, 1]})) == [
        ("a", "price=4 > price=2", "price=4 > price=2"), of_three,
    ]  # fmt: skip
    worst = {**columns, "price": [2, 2, 4, 3, 4, 5], "response": [1, 0, -1, 0, 1, -1]}
    del worst["chosen"]
    assert tasks_of(read(worst)) == [
        ("a", "price=2 > price=2", "price=2 > price=4"), ("b", "price=3 > price=5", "price=4 > price=3"),
    ]  # fmt: skip
    assert tasks_of(read({**worst, "response": [1, -1, 0, 0, 1, -1]}))[0] == (
        "a", "price=2 > price=4", "price=4 > price=2",
    )  # fmt: skip
    rated = {name: values for name, values in worst.items() if name != "response"}
    assert tasks_of(read(rated, {"rating": [1, 5, 3, 1, 2, 3]}))[0] == ("a", "price=2 > price=4", "price=4 > price=2")


def test_answers_with_equal_profiles_keep_them():
    columns = {**NUMBERED, "price": [2, 2, 4, 3, 3, 5], "chosen": [0, 0, 1, 1, 0, 0]}
    found = read(columns)
    rows = [tuple(row[name] for name in ("left", "right", "copy_left", "copy_right"))
            for row in found.to_frame("polars").iter_rows(named=True)]  # fmt: skip
    assert ("price=2", "price=4", 1, 0) in rows
    assert ("price=3", "price=3", 0, 1) in rows
    assert Comparisons.from_rows(found.to_frame("polars"), joint=True) == found
    plain = read({**NUMBERED, "price": [2, 3, 4, 6, 3, 5], "chosen": CHOSEN})
    both = found.append(plain)
    assert both.copies.sum() == found.copies.sum() == 2
    assert plain.append(found) == both
    assert both.take(np.isin(both.task, np.unique(both.task[both.copies.any(axis=1)]))).n_rows == found.n_rows
    apart = found.by_pairs()
    assert (apart.n_rows, apart.joint, apart.copies) == (2, False, None)
    turned = read(columns, {"price": [4, 4, 2, 6, 6, 1]}).copies.tolist()
    assert turned == [[0, 0], [0, 1], [0, 0], [0, 1]]


def test_an_option_without_a_row_of_its_own_says_what_to_do():
    shown = {**NUMBERED, "price": [1, 2, 3, 3, 2, 1], "chosen": [1, 0, 0, 0, 0, 0]}
    refused(shown, {}, "no alternative was chosen in 1 task", 'say reading={"none": "None"}')
    assert tasks_of(read(shown, reading={"none": "None"}))[1][1:] == (
        "None > price=1", "None > price=2", "None > price=3",
    )  # fmt: skip


@pytest.mark.parametrize("answer", [[1, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]])
def test_none_of_these_can_be_said_where_it_has_no_row(answer):
    shown = {**NUMBERED, "price": [1, 2, 3, 3, 2, 1], "chosen": answer}
    found = read(shown, reading={"none": "0"})
    assert tasks_of(found) == [
        ("a", "price=1 > 0", "price=1 > price=2", "price=1 > price=3"),
        ("b", "0 > price=1", "0 > price=2", "0 > price=3"),
    ]
    assert "0 was one more alternative of each task, chosen where no other one was." in found.intake.notes
    items = {**TASKS, "item": ["x", "y", "z", "z", "x", "y"], "chosen": [1, 0, 0, 0, 0, 0]}
    assert tasks_of(read(items, reading={"none": "nix"}))[1][1:] == ("nix > x", "nix > y", "nix > z")


@pytest.mark.parametrize("name", ["chose", "pick", "selected", "picked", "selection", "Chose"])
def test_words_for_what_was_chosen(name):
    found = read(NUMBERED, {"price": [1, 2, 3, 4, 5, 9], name: CHOSEN})
    assert found.intake.columns["winner"] == name
    assert found.intake.tasks_read == {"choices of the best of 3": 2}


def test_the_number_of_those_shown_is_told_from_the_least_to_the_most():
    shown = {
        "user": list("aaabb"),
        "task": [1, 1, 1, 2, 2],
        "item": ["x1", "y1", "z1", "x1", "y1"],
        "chosen": [1, 0, 0, 0, 1],
    }
    assert read(shown).intake.tasks_read == {"choices of the best of 2 to 3": 2}


def test_places_of_players_in_games():
    game = {"game": [1, 1, 1, 2, 2], "player": ["ann", "bob", "cyd", "bob", "ann"], "place": [1, 2, 3, 1, 2]}
    assert tasks_of(read(game)) == [(None, "ann > bob", "bob > cyd"), (None, "bob > ann")]


def test_choices_that_say_nothing_of_what_was_shown_are_told_about_alternatives():
    told = refused(
        {"voter": ["a"] * 4, "screen": [1, 1, 2, 2], "response": [1, 1, 3, 3]}, {}, 'columns={"task": "NAME"}'
    )
    assert "left item" not in told


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
    refused(shown, {}, "nothing tells that it must be", 'columns={"answer": "position"}, reading={"kind": "rank"')
    assert tasks_of(read(shown, reading={"kind": "rank"})) == [("a", "x > y"), ("b", "y > x")]
    refused(
        shown, {"clicked": [0, 1, 1, 0]},
        'columns={"answer": "position"}, reading={"kind": "rank"', 'columns={"answer": "clicked"}',
    )  # fmt: skip
    refused(
        shown,
        {"rating": [1, 5, 4, 2]},
        'columns={"answer": "position"}',
        'columns={"answer": "rating"}, reading={"kind": "rating"',
    )
    assert tasks_of(read(shown, {"clicked": [0, 1, 1, 0]}, columns={"answer": "clicked"})) == [
        ("a", "y > x"),
        ("b", "y > x"),
    ]


@pytest.mark.parametrize("name", ["rating", "stars", "score", "points"])
def test_high_ratings_are_good_and_that_is_said(name):
    found = read({"user": list("aa"), "item": ["x", "y"], name: [1, 5]})
    assert tasks_of(found) == [("a", "y > x")]
    assert found.intake.notes == (f'In "{name}" high numbers are good.',)


@pytest.mark.parametrize("name", ["grade", "mark", "penalty"])
def test_marks_are_asked_about(name):
    marks = {"user": list("aa"), "item": ["x", "y"], name: [1, 5]}
    refused(
        marks, {}, f'a puts x over y (a row an alternative, rated by "{name}", low is good, about "item"): '
        'reading={"best": "low"}', 'reading={"best": "high"}',
    )  # fmt: skip
    low = read(marks, reading={"best": "low"})
    assert tasks_of(low) == [("a", "x > y")]
    assert low.intake.notes == (f'In "{name}" low numbers are good.',)
    assert tasks_of(read(marks, reading={"best": "high"})) == [("a", "y > x")]


def test_votes_of_statements_up_and_down():
    votes = {"voter-id": list("aaab"), "comment-id": [1, 2, 3, 1], "vote": [1, 1, -1, 0]}
    refused(votes, {}, "a puts 1, 2 over 3", 'reading={"best": "high"}', 'reading={"best": "low"}')
    assert tasks_of(read(votes, reading={"best": "high"})) == [("a", "1 > 3", "2 > 3")]
    assert tasks_of(read(votes, reading={"best": "low"})) == [("a", "3 > 1", "3 > 2")]


def test_a_place_may_be_left_out_after_equal_ones_in_any_task():
    ranks = {"user": list("aaaabbbb"), "item": ["x1", "y1", "z1", "v1"] * 2, "rank": [1, 2, 2, 4, 4, 1, 2, 2]}
    assert tasks_of(read(ranks))[1] == ("b", "v1 > x1", "y1 > v1", "y1 > z1", "z1 > x1")


def test_ranks_the_other_way_round_and_in_words():
    ranks = {"user": list("aaa"), "item": ["x", "y", "z"], "rank": ["2nd", "first", "Third place"]}
    assert tasks_of(read(ranks)) == [("a", "x > z", "y > x")]
    assert tasks_of(read(ranks, reading={"best": "high"})) == [("a", "x > y", "z > x")]


@pytest.mark.slow
def test_three_hundred_attributes():
    many = {f"x{k}": [k, 7, 8, 7, 8, k] for k in range(300)}
    assert len(read(NUMBERED, {**many, "chosen": CHOSEN}).intake.attributes) == 300


def test_a_pair_file_with_tasks_stays_one():
    pairs = {"user": ["u"] * 4, "task": [1, 1, 2, 2], "a": ["x", "y", "x", "z"], "b": ["y", "z", "z", "y"],
             "winner": ["a", "b", "a", "a"], "option": [1, 2, 1, 2]}  # fmt: skip
    assert len(read(pairs)) == 4
    assert re.search("side words", read(pairs).intake.winner_reading)


SOME = {"user": ["a"] * 3 + ["b"] * 3 + ["c"] * 3, "task": [1] * 3 + [2] * 3 + [3] * 3}
THREE_OF_FOUR = ["tea", "milk", "rum", "rum", "cola", "tea", "milk", "cola", "tea"]
ONE_EACH = [1, 0, 0, 0, 1, 0, 0, 0, 1]
OF_THEM = ["tea > milk", "tea > rum", "cola > rum", "cola > tea", "tea > cola", "tea > milk"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("duration_ms", [4279, 2031, 8217, 3539, 1637, 8093, 134, 7397, 4462]),
        ("timestamp", [f"2024-03-0{day} 10:07" for day in (1, 2, 1, 4, 3, 2, 7, 5, 6)]),
        ("comment", ["good", None, "good", None, None, "good", "NA", None, "NA"]),
        ("seen", [0, 1, 0, 1, 1, 0, 0, 1, 1]),
        ("why", [f"I like it {row}" for row in range(9)]),
        ("when", [f"2024-03-0{day}" for day in (1, 2, 1, 4, 3, 2, 7, 5, 6)]),
    ],
)
@pytest.mark.parametrize("own", ["alternative", "product", "getränk"])
def test_what_is_noted_of_a_row_describes_nothing(own, name, values):
    found = read({**SOME, own: THREE_OF_FOUR, name: values}, {"chosen": ONE_EACH})
    lead = "getränk=" if own == "getränk" else ""
    assert sorted(answer for task in tasks_of(found) for answer in task[1:]) == sorted(
        " > ".join(lead + item for item in one.split(" > ")) for one in OF_THEM
    )
    assert f'Not used, as it describes nothing that was shown: "{name}".' in found.intake.notes


@pytest.mark.parametrize("own", ["alternative", "product", "getränk"])
def test_what_changes_with_an_item_describes_it_or_is_noted(own):
    table = {**SOME, own: THREE_OF_FOUR, "zworg": [0, 1, 0, 2, 1, 0, 2, 1, 1]}
    more = {"alternatives": own} if own == "getränk" else {}
    refused(table, {"chosen": ONE_EACH}, "zworg=0 over", '"profile": []')
    items = read(table, {"chosen": ONE_EACH}, columns={"profile": [], **more})
    assert sorted(answer for task in tasks_of(items) for answer in task[1:]) == sorted(OF_THEM)
    assert len(read(table, {"chosen": ONE_EACH}, columns={"profile": [own, "zworg"]}).items.ids) == 7
    assert from_command(["profile="], []) == {"profile": []}
    # Prices change with what is offered, as in any study of choices.
    prices = {"price": [1, 2, 1, 2, 1, 1, 2, 2, 1]}
    assert all("price=" in one and "zworg=" in one for one in read({**table, **prices}, {"chosen": ONE_EACH}).items.ids)


def test_codes_of_a_list_are_no_places():
    ids = [{"tea": "item0", "milk": "item1", "rum": "item2", "cola": "item3"}[one] for one in THREE_OF_FOUR]
    table = {**SOME, "alternative": ids, "price": [1, 2, 1, 2, 1, 1, 2, 2, 1]}
    refused(table, {"chosen": ONE_EACH}, 'reading={"constants": True}', 'reading={"constants": False}')


def test_times_alone_are_no_alternatives():
    table = {**SOME, "duration": [3, 5, 8, 1, 9, 2, 4, 7, 66]}
    refused(table, {"ranking": [1, 2, 3, 2, 1, 3, 3, 2, 1]}, "found no column that says which alternative")
    assert len(read(table, {"chosen": ONE_EACH}, columns={"profile": ["duration"]}).items.ids) == 9


def test_codes_that_begin_with_zero_stay_as_they_are():
    codes = ["001", "002", "010", "010", "100", "001", "002", "100", "001"]
    found = read({**SOME, "wozzle": codes}, {"chosen": ONE_EACH})
    assert list(found.items.ids) == ["wozzle=001", "wozzle=002", "wozzle=010", "wozzle=100"]


@pytest.mark.parametrize(("taken", "words"), [(ONE_EACH, 'answer": "taken'), (["tea"] * 3 + ["cola"] * 6, "taken")])
def test_ratings_beside_a_mark_of_one_in_each_task_are_asked_about(taken, words):
    table = {**SOME, "alternative": THREE_OF_FOUR, "taken": taken}
    refused(table, {"rating": [3, 1, 2, 2, 2, 3, 1, 1, 2]}, 'columns={"answer": "rating"', words)


@pytest.mark.parametrize("answer", [{"rank": [1, 2, 3, 2, 1, 3]}, {"approved": [1, 0, 0, 0, 1, 1]}])
def test_a_task_of_several_people_is_asked_about(answer):
    table = {"set": [1] * 6, "wozzle": ["x", "y", "z"] * 2, "tester": ["p"] * 3 + ["q"] * 3}
    refused(table, answer, '"who": "tester"', '"profile": ["')
    assert read(table, answer, columns={"who": "tester"}).has_users
    assert "tester=p, wozzle=x" in read(table, answer, columns={"profile": ["tester", "wozzle"]}).items.ids


def test_a_number_that_two_columns_have_is_asked_about():
    table = {**SOME, "item": [2, 3, 1, 3, 1, 2, 1, 2, 3], "alternative": [1, 2, 3] * 3}
    answer = {"choice": [2] * 3 + [1] * 3 + [3] * 3}
    refused(table, answer, '"alternatives": "item"', '"alternatives": "alternative"')
    assert tasks_of(read(table, answer, columns={"alternatives": "item"}))[0][1:] != ()


def test_rows_of_one_task_are_no_choices_among_their_columns():
    table = {"user": ["a"] * 6, "screen": [7, 7, 8, 8, 9, 9], "x1": [1, 2, 2, 1, 1, 2], "x2": [2, 1, 1, 1, 2, 2]}
    answer = {"response": [1, 2, 2, 1, 1, 2]}
    refused(table, answer, "nothing tells that it must be", 'columns={"alternatives": ["1", "2"]')
    assert read(table, answer, columns={"alternatives": ["1", "2"]}).n_answers == 6


def test_a_note_with_a_sign_in_it_is_no_order():
    table = {"panellist": ["u"] * 4, "model": ["a", "b", "c", "d"], "approval": [1, 0, 1, 0], "note": ["x > y"] * 4}
    refused(table, {}, "found no column")


POINTS = {"resp": [1] * 6, "task": [1, 1, 1, 2, 2, 2], "concept": [1, 2, 3] * 2, "price": [1, 2, 3, 3, 1, 2]}


@pytest.mark.parametrize("two", [("10", "70"), ("20", "40"), ("0", "100"), ("1", "4"), ("0.5", "2.5")])
def test_two_numbers_say_the_same_as_marks_and_as_points(two):
    low, high = two
    rows = {**POINTS, "response": [low, high, low, low, low, high]}
    assert Comparisons.from_frame(rows) == Comparisons.from_frame({**POINTS, "response": [0, 1, 0, 0, 0, 1]})
    assert sum(Comparisons.from_frame(rows, reading={"kind": "rating"}).intake.tasks_read.values()) == 2


def test_two_numbers_of_which_the_lower_one_marks_may_be_points():
    rows = {**POINTS, "response": ["70", "10", "70", "70", "70", "10"]}
    with spoken_to("command"), pytest.raises(DataError) as error:
        Comparisons.from_frame(rows)
    assert "--read kind=rating" in str(error.value)
    assert "--read kind=best" in str(error.value)
    said = Comparisons.from_frame(rows, reading={"kind": "best"})
    assert said == Comparisons.from_frame({**POINTS, "response": [0, 1, 0, 0, 0, 1]})


@pytest.mark.parametrize("two", [("1", "2"), ("2", "1"), ("no", "chosen"), ("0", "1")])
def test_two_marks_in_common_use_are_a_choice(two):
    low, high = two
    found = Comparisons.from_frame({**POINTS, "response": [low, high, low, low, low, high]})
    assert found == Comparisons.from_frame({**POINTS, "response": [0, 1, 0, 0, 0, 1]})


def test_numbers_of_alternatives_are_no_points():
    rows = {**POINTS, "response": ["2", "2", "2", "3", "3", "3"]}
    assert Comparisons.from_frame(rows) == Comparisons.from_frame({**POINTS, "response": [0, 1, 0, 0, 0, 1]})


def test_attributes_called_left_and_right_may_be_those_of_alternatives(tmp_path):
    rows = {**NUMBERED, "left": [2, 1, 3, 1, 2, 3], "right": [1, 3, 2, 2, 1, 1], "chosen": CHOSEN}
    path = tmp_path / "a.csv"
    pl.DataFrame(rows).write_csv(path)
    for table in (lambda **said: read_file(path, **said), lambda **said: Comparisons.from_frame(rows, **said)):
        with spoken_to("command"), pytest.raises(DataError) as error:
            table()
        assert "numbers above 0.5 for the left): --read positive=left" in str(error.value)
        assert table(reading={"kind": "best"}).intake.tasks_read == {"choices of the best of 3": 2}


def test_pairs_that_are_read_in_two_ways_are_no_alternatives():
    rows = {"user": ["a"] * 3, "left": [1, 2, 3], "right": [2, 1, 1], "winner": [1, 1, 1]}
    with pytest.raises(DataError, match="in 2 ways") as error:
        Comparisons.from_frame(rows)
    assert "kind" not in str(error.value)
