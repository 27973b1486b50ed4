"""Tables that name items in a row: what is an order, what only looks like one, and what is asked."""

from __future__ import annotations

import pytest

from answers import read, refused, tasks_of
from predilect.errors import DataError

DRUGS = {
    "ID": [1, 1, 2], "best": [1, 2, 3], "second_pref": [2, 4, 1], "third_pref": [3, 3, 2], "worst": [4, 1, 4],
    "brand_1": list("aab"), "brand_2": list("bca"), "brand_3": list("cbc"), "brand_4": list("ddd"),
    "price_1": [3, 3, 3], "price_2": [2, 3, 2], "price_3": [1, 1, 2], "price_4": [4, 4, 4],
}  # fmt: skip


def test_columns_of_choices_are_an_order_if_items_stand_in_two_of_them():
    order = {"user": list("ab"), "choice_1": ["tea", "milk"], "choice_2": ["milk", "juice"]}
    assert tasks_of(read(order)) == [("a", "tea > milk"), ("b", "milk > juice")]
    questions = {"user": list("ab"), "choice_1": ["tea", "milk"], "choice_2": ["red", "blue"], "choice_3": ["x", "y"]}
    refused(
        questions, {},
        "nothing tells that it must be",
        'Row 1: a puts tea over red over x (an order, "choice_1", "choice_2", "choice_3"): reading={"kind": "order"}',
    )  # fmt: skip
    assert tasks_of(read(questions, reading={"kind": "order"}))[0] == ("a", "red > x", "tea > red")
    # Where what was shown is said, one reading fits.
    shown = {**questions, "alternatives": ["tea|red|x|w", "milk|blue|y|w"]}
    assert tasks_of(read(shown))[0] == ("a", "red > x", "tea > red", "x > w")
    refused({"user": list("ab"), "choice_a": [1, 2], "choice_b": [2, 2]}, {}, "found no column for the winner")


@pytest.mark.parametrize(
    "text", [["<b>x</b> y", "<i>z</i>"], [">375k: 5%", "<10k: 5%"], ["a -> b", "c"], ["more > less", "less > none"]]
)
def test_text_with_a_sign_is_no_order_unless_its_items_recur(text):
    with pytest.raises(DataError):
        read({"id": ["1", "2"], "html": text})


def test_text_that_may_be_an_order_is_asked_about():
    orders = {"id": list("abc"), "said": ["x > y > z", "y > z", "z > x"]}
    assert tasks_of(read(orders))[0] == ("a", "x > y", "y > z")
    refused(
        {"id": list("ab"), "said": ["x > y", "y > z"]}, {},
        'Row 1: a puts x over y (an order, "said")',
        'columns={"answer": "said"}, reading={"kind": "order"}',
    )  # fmt: skip
    assert (
        len(read({"id": list("ab"), "said": ["x > y", "y > z"]}, columns={"answer": "said"}, reading={"kind": "order"}))
        == 2
    )
    # A column that is called so is one.
    assert len(read({"id": list("ab"), "ballot": ["x > y", "y > z"]})) == 2


def test_ratings_of_numbers_and_letters_are_asked_about():
    refused(
        {"id": [1, 2], "rating_a1": [1, 2], "rating_a2": [4, 1], "rating_b1": [5, 2]}, {},
        'the rating of each of "a1", "a2", "b1", high is good): reading={"kind": "rating"}',
    )  # fmt: skip
    assert read({"id": [1, 2], "rating_a": [1, 2], "rating_b": [4, 1]}, reading={"kind": "rating"}).items.ids == [
        "a",
        "b",
    ]
    assert read({"id": [1, 2], "rating_tea": [1, 2], "rating_milk": [4, 1]}).items.ids == ["milk", "tea"]


def test_the_best_the_second_the_third_and_the_worst():
    found = read(DRUGS)
    assert found.intake.tasks_read == {"orders of 4": 3}
    assert found.intake.attributes == ("brand", "price")
    assert tasks_of(found)[0] == (
        1, "brand=a, price=3 > brand=b, price=2", "brand=b, price=2 > brand=c, price=1",
        "brand=c, price=1 > brand=d, price=4",
    )  # fmt: skip
    # Between the third and the worst stands what nobody named.
    more = {**DRUGS, "worst": [5, 5, 5], "brand_5": ["e"] * 3, "price_5": [9] * 3}
    assert tasks_of(read(more))[0][3:] == ("brand=c, price=1 > brand=d, price=4", "brand=d, price=4 > brand=e, price=9")
    twice = {**DRUGS, "worst": [4, 1, 3]}
    refused(twice, {}, "name the same alternative twice in 1 task (first: row 3)")
    ends = {name: values for name, values in DRUGS.items() if "pref" not in name}
    assert read(ends).intake.tasks_read == {"choices of the best and the worst of 4": 3}
    names = {"user": ["u"], "best": ["p"], "second": ["q"], "worst": ["z"]}
    assert tasks_of(read(names)) == [("u", "p > q", "q > z")]
    shown = {**names, "alternatives": ["p|w|q|z|v"]}
    assert tasks_of(read(shown)) == [("u", "p > q", "q > v", "q > w", "v > z", "w > z")]


def test_answers_by_place_or_by_item_are_asked_about_where_both_fit():
    shown = {"user": [1, 2], "item1": [2, 1], "item2": [1, 3], "item3": [3, 2], "choice": [2, 3]}
    refused(shown, {}, "1 chooses 2 over 1, 3", 'reading={"answer_is": "item"}', 'reading={"answer_is": "side"}')
    assert tasks_of(read(shown, reading={"answer_is": "item"}))[0] == (1, "2 > 1", "2 > 3")
    assert tasks_of(read(shown, reading={"answer_is": "side"}))[0] == (1, "1 > 2", "1 > 3")
    other = {**shown, "item1": [7, 1]}
    refused({**other, "choice": [1, 3]}, {}, 'reading={"answer_is": "item"}')
    assert tasks_of(read({**other, "choice": [3, 1]}))[0] == (1, "3 > 1", "3 > 7")  # which both mean
    assert tasks_of(read({**other, "choice": [2, 3]}))[0] == (1, "1 > 3", "1 > 7")
