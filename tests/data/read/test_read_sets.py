"""Answers about sets of alternatives: what is refused, left out and said, and that no task is ever cut."""

from __future__ import annotations

import re

import numpy as np
import pytest

from answers import tasks_of
from predilect.data import Comparisons, k_folds_answers
from predilect.errors import DataError

LONG = {"user": ["a", "a", "a", "b", "b"], "task": [1, 1, 1, 1, 1], "item": ["x", "y", "z", "x", "y"]}
WIDE = {"user": ["a", "b"], "price_1": [1, 2], "price_2": [3, 4], "price_3": [5, 6]}


def read(table, more=(), **options):
    return Comparisons.from_frame({**table, **dict(more)}, **options)


def refused(table, more, message, **options):
    with pytest.raises(DataError, match=re.escape(message)):
        read(table, more, **options)


def test_a_task_without_a_winner_is_an_error_or_left_out():
    more = {"chosen": [0, 0, 0, 0, 1]}
    refused(
        LONG, more,
        'no alternative was chosen in 1 task (first: row 1): column "chosen" must say one of those that were shown.',
    )  # fmt: skip
    kept = read(LONG, more, reading={"drop": "unknown"})
    assert tasks_of(kept) == [("b", "y > x")]
    assert kept.intake.left_out == {"no clear winner": 3}
    assert kept.intake.unused_items == ("z",)
    assert kept.intake.unused_users == ("a",)


def test_two_winners_are_an_error_unless_any_number_could_be_chosen():
    more = {"chosen": [1, 1, 0, 0, 1]}
    refused(
        LONG, more,
        'more than one alternative was chosen in 1 task (first: row 1) (column "chosen"). If any number could be '
        'chosen, say reading={"kind": "approval"}.',
    )  # fmt: skip
    assert tasks_of(read(LONG, more, reading={"kind": "approval"})) == [("a", "x > z", "y > z"), ("b", "y > x")]


def test_equal_choices_of_two_are_merged_and_counted():
    task = np.repeat([1, 2, 3, 4, 5], [3, 3, 2, 2, 2])
    found = read({"user": ["u"] * 12, "task": task, "item": list("xyzxyzxyxyxy"), "chosen": [1, 0, 0] * 2 + [1, 0] * 3})
    assert tasks_of(found) == [("u", "x > y")] * 3 + [("u", "x > y", "x > z")] * 2
    assert found.intake.duplicates == 2
    assert "Merged 2 rows into identical ones, adding the weights." in found.intake.describe()


def test_leaving_tasks_out_is_advised_for_few_of_them_and_only_if_the_rest_can_be_read():
    people = {"user": np.repeat(np.arange(40), 2), "item": ["x", "y"] * 40, "chosen": [1, 0] * 40}
    advice = 'Leave such tasks out with reading={"drop": "unknown"}.'
    for n_bad in (1, 2, 3):
        chosen = np.array(people["chosen"])
        chosen[: 2 * n_bad] = 0
        with pytest.raises(DataError) as caught:
            read(people, {"chosen": chosen})
        assert (advice in str(caught.value)) == (n_bad <= 2)
        assert read(people, {"chosen": chosen}, reading={"drop": "unknown"}).n_answers == 40 - n_bad
    # Of what nothing is left without them, too.
    rated = {"user": ["u", "u", None, None], "item": ["x", "y"] * 2, "rating": [1, 1, 1, 2]}
    with pytest.raises(DataError) as caught:
        read(rated)
    assert "Leave" not in str(caught.value)


def test_an_unavailable_winner_is_an_error():
    more = {"chosen": [1, 0, 0, 0, 1], "available": [0, 1, 1, 1, 1]}
    refused(
        LONG, more, 'an alternative was chosen that was not available (column "available") in 1 task (first: row 1).'
    )
    assert read(LONG, more, reading={"drop": "unknown"}).intake.left_out == {"no clear winner": 3}
    refused(
        WIDE, {"choice": [1, 2], "av_1": [0, 1], "av_2": [1, 1], "av_3": [1, 1]},
        'column "choice" chooses an alternative that was not available, or blank, in 1 task (first: row 1).',
    )  # fmt: skip


def test_a_choice_from_one_alternative_is_an_error():
    more = {"chosen": [1, 0, 0, 0, 1], "available": [1, 0, 0, 1, 1]}
    refused(LONG, more, "only one alternative was there to choose from in 1 task (first: row 1); a choice needs two.")
    assert read(LONG, more, reading={"drop": "unknown"}).intake.left_out == {"one alternative": 3}


def test_the_same_alternative_twice_is_an_error():
    twice = {**LONG, "item": ["x", "x", "z", "x", "y"], "chosen": [1, 0, 0, 0, 1]}
    refused(
        twice, {}, 'the same alternative stands twice in 1 task (first: row 1), such as "x"; it must stand there once.'
    )
    assert read(twice, reading={"drop": "self"}).intake.left_out == {"an alternative twice": 3}
    without = {name: [*values, *values] for name, values in LONG.items() if name != "task"}
    refused(
        without, {"chosen": [1, 0, 0, 0, 1] * 2}, 'name the column that tells them apart: columns={"task": "NAME"}.'
    )


def test_an_attribute_that_is_missing_is_an_error():
    gap = {**WIDE, "size_1": [1, 1], "size_2": [1, None], "size_3": [2, 2], "choice": [1, 2]}
    refused(gap, {}, 'an attribute ("size") is missing in 1 task (first: row 2). Fill it in. Leave such tasks out with '
            'reading={"drop": "missing"}.')  # fmt: skip
    assert read(gap, reading={"drop": "missing"}).intake.left_out == {"missing attribute": 1}
    long = {"user": ["a"] * 4, "task": [1, 1, 2, 2], "alt": [1, 2, 1, 2], "price": [1, 2, None, 3],
            "choice": [1, 0, 0, 1],
            "size": [1, 2, 3, 5]}  # fmt: skip
    refused(long, {}, 'an attribute ("price") is missing in 1 task (first: row 3)')


def test_numbered_alternatives_have_the_same_columns():
    refused(
        WIDE, {"size_1": [1, 1], "size_2": [2, 2], "choice": [1, 2]},
        'columns={"profile": "price"}',
    )  # fmt: skip
    said = read(WIDE, {"size_1": [1, 1], "size_2": [2, 2], "choice": [1, 2]}, columns={"profile": ["price"]})
    assert said.intake.attributes == ("price",)


def test_a_choice_that_is_no_alternative_is_an_error():
    refused(
        WIDE, {"choice": ["1", "7"]}, 'column "choice" chooses none of 1, 2, 3 in 1 task (first: row 2): it holds "7".'
    )
    refused(WIDE, {"choice": ["1", ""]}, "in 1 task (first: row 2): it is empty.")
    listed = {"user": ["a"], "alternatives": ["x|y|z"], "choice": ["w"]}
    refused(
        listed, {}, 'names an item that was not shown in 1 task (first: row 1), such as "w": it must be one of those in'
    )


def test_orders_say_what_is_wrong_with_them():
    refused({"user": ["a", "b"], "rank1": ["x", "x"], "rank2": ["y", None], "rank3": ["z", "z"]}, {},
            'an order leaves a gap before a later place (columns "rank1", "rank2", "rank3") in 1 task (first: '
            "row 2).")  # fmt: skip
    refused(
        {"user": ["a"], "first": ["x"], "second": ["x"], "third": ["y"]},
        {},
        'stands twice in 1 task (first: row 1), such as "x"',
    )
    refused({"user": ["a"], "order": [["x", "w"]], "alternatives": [["x", "y", "z"]]}, {}, 'such as "w"')
    refused({"user": ["a"], "order": [["x", "x"]], "alternatives": [["x", "y", "z"]]}, {},
            "an order names the same item twice in 1 task (first: row 1).")  # fmt: skip
    refused(
        LONG, {"rank": [1, 2, 4, 1, 2]}, 'ranks leave a gap in 1 task (first: row 1) (column "rank"): expected 1, 2, 3'
    )
    refused(
        LONG, {"rank": [1, 2, 2.5, 1, 2]}, '(first: row 3, 2.5). If more is better, say reading={"kind": "rating"}.'
    )
    refused(
        LONG, {"rank": ["1", "2", "last", "1", "2"]},
        'column "rank" is read as the rank, which must be a number, but holds text in 1 row (first: row 3, "last"). '
        "Put a number there, or leave such rows out of the table.",
    )  # fmt: skip
    refused(
        {"user": ["a", "b"], "rank1": [1, 2], "rank2": [2, 1]},
        {},
        'reading={"kind": "rank"}; or Row 1: a puts 1 over 2 (an order, "rank1", "rank2"): reading={"kind": "order"}',
    )


def test_equal_ranks_and_ranks_from_0_are_read_and_said():
    found = read(LONG, {"rank": [0, 1, 1, 0, 1]})
    assert tasks_of(found) == [("a", "x > y", "x > z"), ("b", "x > y")]
    assert found.intake.notes == (
        'In "rank" low numbers are good.', 'Ranks in "rank" start at 0, the best.',
        "Equal ranks in 1 task say nothing about each other.",
    )  # fmt: skip
    skipped = {"user": ["a"] * 4, "item": list("wxyz"), "rank": [1, 2, 2, 4]}  # after two seconds comes the fourth
    assert tasks_of(read(skipped)) == [("a", "w > x", "w > y", "x > z", "y > z")]


def test_what_is_not_ranked_is_below_all_that_is():
    assert tasks_of(read(LONG, {"rank": [None, 1, None, 1, 2]})) == [("a", "y > x", "y > z"), ("b", "x > y")]


def test_answers_that_tell_nothing_are_left_out_and_counted():
    found = read(LONG, {"rating": [3, 3, 3, 1, 2]})
    assert tasks_of(found) == [("b", "y > x")]
    assert found.intake.left_out == {"all alike": 3}
    assert "Left out 3 rows: all alike." in str(found.reading)
    assert read(LONG, {"rating": [3, None, None, 1, 2]}).intake.left_out == {"one alternative": 3}
    refused(LONG, {"rating": [3, 3, 3, 1, 1]}, "no usable answer: all 5 rows were left out (5 × all alike)")


def test_none_of_these_is_an_alternative_among_the_items():
    found = read(WIDE, {"choice": ["1", "none"]})
    assert tasks_of(found) == [("a", "price=1 > None", "price=1 > price=3", "price=1 > price=5"),
                               ("b", "None > price=2", "None > price=4", "None > price=6")]  # fmt: skip
    named = read({**WIDE, "choice": [1, 4]}, columns={"alternatives": ["1", "2", "3", "None"]})
    assert tasks_of(named) == tasks_of(found)
    assert "nothing" in read(WIDE, {"choice": ["1", "none"]}, reading={"none": "nothing"}).items.ids


def test_options_of_pairs_are_refused_for_sets():
    refused(LONG, {"chosen": [1, 0, 0, 0, 1]}, 'reading={"side": True} is about pairs', reading={"side": True})
    refused(LONG, {"chosen": [1, 0, 0, 0, 1]}, '"kind" is one of pairs, best', reading={"kind": "worst"})
    refused(
        {"left": ["x"], "right": ["y"]},
        {"winner": ["x"]},
        "found no columns that hold answers of kind order",
        reading={"kind": "order"},
    )


def test_weights_count_whole_tasks():
    found = read(LONG, {"chosen": [0, 1, 0, 0, 1], "count": [2, 2, 2, 1, 1]})
    assert tasks_of(found) == [("a", "y > x", "y > z"), ("a", "y > x", "y > z"), ("b", "y > x")]
    assert found.weight.tolist() == [2, 2, 1]
    refused(
        LONG,
        {"chosen": [0, 1, 0, 0, 1], "count": [2, 2, 1, 1, 1]},
        "differs between rows of one task",
        columns={"weights": "count"},
    )
    laptops = {**LONG, "alt": LONG["item"], "weight": [1, 2, 3, 1, 2]}
    assert "weight" not in read(laptops, {"chosen": [0, 1, 0, 0, 1]}).intake.columns


def test_contexts_and_item_maps_belong_to_whole_tasks():
    found = read(LONG, {"chosen": [0, 1, 0, 0, 1], "prompt": ["p", "p", "p", "q", "q"]}, columns={"context": "prompt"},
                 item_map={"x": "X", "y": "Y", "z": "Z"})  # fmt: skip
    assert found.contexts.labels(found.context).tolist() == ["p", "p", "q"]
    assert found.items.ids == ["X", "Y", "Z"]


def many(n_people=30, n_tasks=6, size=4, seed=0):
    rng = np.random.default_rng(seed)
    shown = np.argsort(rng.random((n_people * n_tasks, 9)), axis=1)[:, :size]
    chosen = np.zeros(shown.shape, dtype=int)
    chosen[:, 0] = 1
    person = np.repeat(np.arange(n_people), n_tasks * size)
    task = np.tile(np.repeat(np.arange(n_tasks), size), n_people)
    return Comparisons.from_frame({"user": person, "task": task, "item": shown.ravel(), "chosen": chosen.ravel()})


def test_folds_and_parts_never_cut_a_task():
    answers = many()
    assert (np.bincount(answers.task) == 3).all()
    fold = k_folds_answers(answers, 3, random_state=1)
    for code in np.unique(answers.task):
        assert len(np.unique(fold[answers.task == code])) == 1
    part = answers.take(fold != 0)
    assert set(np.bincount(part.task)) <= {0, 3}
    assert part.item_table is answers.item_table


def test_append_keeps_tasks_apart_and_whole():
    one, two = many(seed=0), many(seed=1)
    both = one.append(two)
    assert tasks_of(both) == sorted(tasks_of(one) + tasks_of(two), key=str)
    assert both.intake.tasks_read == {"choices of the best of 4": 360}


def test_equal_tasks_of_a_person_stay_two_tasks():
    again = {name: [*values, *values] for name, values in LONG.items()}
    again["task"] = [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]
    found = read(again, {"chosen": [0, 1, 0, 0, 1] * 2})
    assert tasks_of(found) == [("a", "y > x", "y > z"), ("a", "y > x", "y > z"), ("b", "y > x"), ("b", "y > x")]
    of_a = found.user == 0
    assert sorted(np.bincount(found.task[of_a]).tolist()) == [2, 2]
    assert (found.weight[of_a] == 1).all()
    # A task of two is a pair as any other, and equal pairs add up.
    assert found.task[~of_a].tolist() == [-1]
    assert found.weight[~of_a].tolist() == [2]


def test_a_table_of_profiles_grows_with_the_answers():
    one = read(WIDE, {"choice": [1, 2]})
    two = read({**WIDE, "price_1": [1, 9]}, {"choice": [2, 1]})
    both = one.append(two)
    assert set(both.item_table["item"]) == set(both.items.ids)
    other = read(WIDE, {"choice": [1, 2]})
    assert one.append(other).item_table.rows() == one.item_table.rows()
    items = {"user": ["a", "a"], "item": ["x", "y"], "chosen": [1, 0]}
    first, second = read({**items, "price": [10, 20]}), read({**items, "price": [10, 30]})
    with pytest.raises(DataError, match=r'describe 1 items differently \(first: "y"\)'):
        first.append(second)


def test_items_with_ids_keep_them_and_what_always_describes_them():
    found = read(LONG, {"chosen": [0, 1, 0, 0, 1], "sugar": [1, 2, 3, 1, 2], "seconds": [4, 5, 6, 7, 8]})
    assert found.items.ids == ["x", "y", "z"]
    assert found.item_table.rows() == [("x", 1), ("y", 2), ("z", 3)]
    assert "seconds" in found.intake.ignored_columns


def test_a_profile_has_the_same_id_in_any_order_of_columns():
    turned = {name: WIDE[name] for name in ("price_3", "user", "price_1", "price_2")}
    size = {f"size_{k}": [k, k] for k in (2, 3, 1)}
    assert read({**size, **turned}, {"choice": [1, 2]}).items == read({**WIDE, **size}, {"choice": [1, 2]}).items


def test_best_and_worst_of_what_no_column_shows():
    shown = {"user": ["u", "u"], "a1": ["x", "x"], "a2": ["y", "y"], "a3": ["z", "z"]}
    one, none = {"best": ["x", "w"], "worst": ["z", "z"]}, {"best": ["v", "w"], "worst": ["v", "w"]}
    refused(shown, one, "names an item that was not shown in 1 task (first: row 2)")
    refused(
        shown, none, 'found no columns of what was shown, of which "best", "worst" would say the best and the worst'
    )
    refused(shown, none, 'Name them: columns={"alternatives": ["A", "B", "C"]}', reading={"kind": "best_worst"})
    told = read(shown, one, reading={"drop": "unknown"}).intake
    assert told.tasks_read == {"choices of the best and the worst of 3": 1}


def test_answers_that_number_what_each_task_showed():
    found = read({"user": ["a", "b", "c"], "alternatives": ["x|y|z", "z|x|y", "y|x|z"], "choice": [2, 1, 3]})
    assert tasks_of(found) == [("a", "y > x", "y > z"), ("b", "z > x", "z > y"), ("c", "z > x", "z > y")]
    assert "The answers are the numbers of those shown, from 1." in found.intake.notes


def test_what_shares_no_attribute_with_others_is_no_alternative():
    costs = {"user": ["a", "b"], "cost_car": [1, 2], "cost_bus": [3, 4], "choice": ["car", "bus"]}
    found = read(costs, {"party_size": [1, 2]})
    assert tasks_of(found) == tasks_of(read(costs)) == [("a", "car, cost=1 > bus, cost=3"),
                                                        ("b", "bus, cost=4 > car, cost=2")]  # fmt: skip
    assert "party_size" in found.intake.ignored_columns


@pytest.mark.parametrize("number", ["4", "7", "9" * 400])
def test_a_number_of_no_alternative_is_not_taken_for_none_of_them(number):
    with pytest.raises(DataError) as error:
        read(WIDE, {"choice": ["1", number]})
    assert "chooses none of 1, 2, 3 in 1 task" in str(error.value)
    assert "Write the number of the alternative that was chosen." in str(error.value)
    assert "none" not in str(error.value).replace("chooses none of", "")
    assert len(str(error.value)) < 400


def test_a_word_for_none_of_them_is_not_repeated_at_any_length():
    refused(WIDE, {"choice": ["1", "nix"]}, 'say reading={"none": "nix"}.')
    refused(WIDE, {"choice": ["1", "0"]}, 'say reading={"none": "0"}.')
    with pytest.raises(DataError) as error:
        read(WIDE, {"choice": ["1", "no" * 200]})
    assert 'say reading={"none": "WORD"}.' in str(error.value)
    assert len(str(error.value)) < 400


def test_a_kind_is_advised_only_where_it_helps():
    pairs = {"user": [1, 1, 2, 2], "left": list("abca"), "right": list("bcab"), "winner": list("acab")}
    refused(pairs, {}, "nothing in the table could be read so. Leave it out.", columns={"profile": ["user"]})


def test_two_columns_may_say_who_answered():
    """Of a row a task and of a row an alternative alike; not where one is the other's name."""
    who = {"judge": list("abab"), "rater": list("ccdd")}
    wide = {"price_1": [1.5, 2, 1, 3], "price_2": [2.5, 1, 3, 1], "choice": [1, 1, 2, 1]}
    shown = {"options": ["x|y|z"] * 4, "choice": list("xyzx")}
    long = {"judge": list("aabbaa"), "rater": list("ccdddd"), "task": [1, 1, 2, 2, 3, 3], "item": list("xyxyxy")}
    for table in ({**who, **wide}, {**who, **shown}, {**long, "chosen": [1, 0, 0, 1, 1, 0]}):
        refused(table, {}, 'columns={"who": "rater"}')
        assert read(table, {}, columns={"who": "judge"}).users.ids == ["a", "b"]
        assert read({**table, "rater": table["judge"]}, {}).users.ids == ["a", "b"]
