"""Every layout is found by itself, wherever its columns stand and whatever stands between them."""

from __future__ import annotations

import polars as pl
import pytest

from answers import tasks_of
from orders import TURNS, orders_of
from predilect.data import Comparisons, read

# Columns that no layout needs: about people, free text, numbers of rows.
EXTRA = {"comment": ["so", "so", "x", "x", "x"], "line": [7, 8, 9, 10, 11]}
A, B = "ann", "bob"
BEST = [(A, "milk > tea"), (B, "tea > juice", "tea > milk")]
LONG = {"user": [A, A, B, B, B], "task": [1, 1, 1, 1, 1], "item": ["tea", "milk", "milk", "tea", "juice"]}
WIDE_PROFILES = [(A, "price=2, size=1 > price=3, size=1"), (B, "price=1, size=2 > price=2, size=2")]
ORDERS = [(A, "milk > juice", "tea > milk"), (B, "juice > tea", "tea > milk")]

LAYOUTS = {
    "long, chosen": ({**LONG, "chosen": [0, 1, 0, 1, 0]}, BEST),
    "long, the chosen named": ({**LONG, "choice": ["milk", "milk", "tea", "tea", "tea"]}, BEST),
    "long, yes and no": ({**LONG, "selected": ["no", "yes", "no", "yes", "no"]}, BEST),
    "long, ranks": ({**LONG, "rank": [2, 1, 3, 2, 1]}, [(A, "milk > tea"), (B, "juice > tea", "tea > milk")]),
    "long, ratings": ({**LONG, "rating": [2, 4, 1, 5, 5]}, [(A, "milk > tea"), (B, "juice > milk", "tea > milk")]),
    "long, ratings without tasks": (
        {"user": [A, A, B, B, B], "movie": LONG["item"], "rating": [2, 4, 1, 5, 5]},
        [(A, "milk > tea"), (B, "juice > milk", "tea > milk")],
    ),
    "long, best and worst": (
        {**LONG, "best": [0, 1, 1, 0, 0], "worst": [1, 0, 0, 0, 1]},
        [(A, "milk > tea"), (B, "milk > tea", "tea > juice")],
    ),
    "long, best and worst, with features": (
        {**LONG, "best": [0, 1, 1, 0, 0], "worst": [1, 0, 0, 0, 1], "x1": [0, 1, 0, 1, 0], "x2": [1, 0, 1, 1, 0]},
        [(A, "milk, x1=1, x2=0 > tea, x1=0, x2=1"),
         (B, "milk, x1=0, x2=1 > tea, x1=1, x2=1", "tea, x1=1, x2=1 > juice, x1=0, x2=0")],
    ),
    "long, best and worst in one column": (
        {**LONG, "response": [-1, 1, 1, 0, -1]}, [(A, "milk > tea"), (B, "milk > tea", "tea > juice")],
    ),
    "long, approved": (
        {**LONG, "approved": [0, 1, 0, 1, 1]}, [(A, "milk > tea"), (B, "juice > milk", "tea > milk")],
    ),
    "long, attributes": (
        {"user": [A, A, B, B], "task": [1, 1, 1, 1], "alt": [1, 2, 1, 2], "price": [3, 2, 1, 2],
         "size": [1, 1, 2, 2], "choice": [0, 1, 1, 0]},
        [(A, "price=2 > price=3"), (B, "price=1 > price=2")],
    ),
    "long, attributes called a and b": (
        {"user": [A, A, B, B], "task": [1, 1, 1, 1], "alt": [1, 2, 1, 2], "a": [3, 2, 1, 2], "b": [1, 2, 2, 1],
         "chosen": [0, 1, 1, 0]},
        [(A, "a=2, b=2 > a=3, b=1"), (B, "a=1, b=2 > a=2, b=1")],
    ),
    "long, attributes x1 and x2": (
        {"id": [A, A, B, B, B], "task": [1] * 5, "alt": [1, 2, 1, 2, 3], "x1": [1, 2, 1, 2, 2], "x2": [1, 2, 3, 2, 1],
         "choice": [0, 1, 1, 0, 0]},
        [(A, "x1=2, x2=2 > x1=1, x2=1"), (B, "x1=1, x2=3 > x1=2, x2=1", "x1=1, x2=3 > x1=2, x2=2")],
    ),
    "long, dummies, the number in all rows": (
        {"id": [A, A, B, B, B], "task": [1] * 5, "alt": [1, 2, 1, 2, 3], "brand_a": [1, 0, 0, 0, 1],
         "brand_b": [0, 1, 0, 1, 0], "choice": [2, 2, 3, 3, 3]},
        [(A, "brand_a=0, brand_b=1 > brand_a=1, brand_b=0"),
         (B, "brand_a=1, brand_b=0 > brand_a=0, brand_b=0", "brand_a=1, brand_b=0 > brand_a=0, brand_b=1")],
    ),
    "long, the number in the first row": (
        {"id": [A, A, B, B, B], "task": [1] * 5, "alt": [1, 2, 1, 2, 3], "price": [1, 2, 1, 2, 3],
         "choice": [2, 0, 3, 0, 0]},
        [(A, "price=2 > price=1"), (B, "price=3 > price=1", "price=3 > price=2")],
    ),
    "long, items with attributes": (
        {"user": [A, A, B, B], "task": [1, 1, 1, 1], "item": ["tea", "milk"] * 2, "price": [3, 2, 1, 2],
         "chosen": [0, 1, 1, 0]},
        [(A, "milk, price=2 > tea, price=3"), (B, "tea, price=1 > milk, price=2")],
    ),
    "wide, number after the attribute": (
        {"user": [A, B], "price1": [3, 1], "price2": [2, 2], "size1": [1, 2], "size2": [1, 2], "choice": [2, 1]},
        WIDE_PROFILES,
    ),
    "wide, underscore": (
        {"user": [A, B], "price_1": [3, 1], "price_2": [2, 2], "size_1": [1, 2], "size_2": [1, 2], "choice": [2, 1]},
        WIDE_PROFILES,
    ),
    "wide, point": (
        {"user": [A, B], "price.1": [3, 1], "price.2": [2, 2], "size.1": [1, 2], "size.2": [1, 2], "choice": [2, 1]},
        WIDE_PROFILES,
    ),
    "wide, alt first": (
        {"user": [A, B], "alt1_price": [3, 1], "alt2_price": [2, 2], "alt1_size": [1, 2], "alt2_size": [1, 2],
         "choice": [2, 1]},
        WIDE_PROFILES,
    ),
    "wide, letters": (
        {"user": [A, B], "A_price": [3, 1], "B_price": [2, 2], "A_size": [1, 2], "B_size": [1, 2],
         "choice": ["B", "A"]},
        WIDE_PROFILES,
    ),
    "wide, letters by number": (
        {"user": [A, B], "price_A": [3, 1], "price_B": [2, 2], "size_A": [1, 2], "size_B": [1, 2], "choice": [2, 1]},
        WIDE_PROFILES,
    ),
    "wide, unequal numbers": (
        {"user": [A, B], "price1": [3, 1], "price2": [2, 2], "price3": [None, 4], "size1": [1, 2], "size2": [1, 2],
         "size3": [None, 2], "choice": [2, 1]},
        [WIDE_PROFILES[0], (B, "price=1, size=2 > price=2, size=2", "price=1, size=2 > price=4, size=2")],
    ),
    "wide, availability": (
        {"user": [A, B], "av1": [1, 1], "av2": [1, 1], "av3": [0, 1], "price1": [3, 1], "price2": [2, 2],
         "price3": [9, 4], "choice": [2, 1]},
        [(A, "price=2 > price=3"), (B, "price=1 > price=2", "price=1 > price=4")],
    ),
    "wide, availability after the alternative": (
        {"user": [A, B], "alt1_av": [1, 1], "alt2_av": [1, 1], "alt3_av": [0, 1], "alt1_price": [3, 1],
         "alt2_price": [2, 2], "alt3_price": [9, 4], "choice": [2, 1]},
        [(A, "price=2 > price=3"), (B, "price=1 > price=2", "price=1 > price=4")],
    ),
    "wide, named alternatives": (
        {"user": [A, B], "price.bus": [3, 1], "price.car": [2, 2], "time.bus": [1, 2], "time.car": [1, 2],
         "mode": ["car", "bus"]},
        [(A, "car, price=2, time=1 > bus, price=3, time=1"), (B, "bus, price=1, time=2 > car, price=2, time=2")],
    ),
    "best and worst of columns": (
        {"user": [A, B], "item1": ["tea", "tea"], "item2": ["milk", "milk"], "item3": ["juice", "water"],
         "best": ["milk", "tea"], "worst": ["tea", "water"]},
        [(A, "juice > tea", "milk > juice"), (B, "milk > water", "tea > milk")],
    ),
    "best and worst of columns of any name": (
        {"user": [A, B], "task": [1, 1], "a1": ["tea", "tea"], "a2": ["milk", "milk"], "a3": ["juice", "water"],
         "best": ["milk", "tea"], "worst": ["tea", "water"]},
        [(A, "juice > tea", "milk > juice"), (B, "milk > water", "tea > milk")],
    ),
    "best and worst of a list": (
        {"user": [A, B], "alternatives": ["tea|milk|juice", "tea|milk|water"], "best": ["milk", "tea"],
         "worst": ["tea", "water"]},
        [(A, "juice > tea", "milk > juice"), (B, "milk > water", "tea > milk")],
    ),
    "best of columns": (
        {"user": [A, B], "item1": ["tea", "tea"], "item2": ["milk", "milk"], "item3": ["juice", "water"],
         "winner": ["milk", "water"]},
        [(A, "milk > juice", "milk > tea"), (B, "water > milk", "water > tea")],
    ),
    "order in columns": (
        {"user": [A, B], "rank1": ["tea", "juice"], "rank2": ["milk", "tea"], "rank3": ["juice", "milk"]}, ORDERS,
    ),
    "order in words": (
        {"user": [A, B], "first": ["tea", "juice"], "second": ["milk", "tea"], "third": ["juice", "milk"]}, ORDERS,
    ),
    "ranks by item": ({"user": [A, B], "rank_tea": [1, 2], "rank_milk": [2, 3], "rank_juice": [3, 1]}, ORDERS),
    "order as text": (
        {"user": [A, B], "ballot": ["tea > milk = juice", "juice>tea"]},
        [(A, "tea > juice", "tea > milk"), (B, "juice > tea")],
    ),
    "order as list, with what was shown": (
        {"user": [A, B], "ranking": [["tea"], ["juice", "tea"]], "alternatives": [["tea", "milk", "juice"]] * 2},
        [(A, "tea > juice", "tea > milk"), (B, "juice > tea", "tea > milk")],
    ),
    "one-hot winners": (
        {"judge": [A, A, B], "model_a": ["tea", "tea", "milk"], "model_b": ["milk", "juice", "juice"],
         "winner_model_a": [1, 0, 0], "winner_model_b": [0, 1, 0], "winner_tie": [0, 0, 1]},
        [(A, "juice > tea"), (A, "tea > milk"), (B, "juice = milk")],
    ),
    "chosen and rejected": (
        {"annotator": [A, B], "chosen": ["tea", "milk"], "rejected": ["milk", "juice"]},
        [(A, "tea > milk"), (B, "milk > juice")],
    ),
    "chosen and rejected models, beside their texts": (
        {"annotator": [A, B], "chosen": ["Tea is", "Milk is"], "rejected": ["Milk is", "Juice is"],
         "chosen-model": ["tea", "milk"], "rejected-model": ["milk", "juice"]},
        [(A, "tea > milk"), (B, "milk > juice")],
    ),
    "outputs of two models, 1 to 2": (
        {"annotator": [A, A, B], "output_1": ["T", "T", "M"], "generator_1": ["tea", "tea", "milk"],
         "output_2": ["M", "J", "J"], "generator_2": ["milk", "juice", "juice"], "preference": [1.0, 2.0, 1.5]},
        [(A, "juice > tea"), (A, "tea > milk"), (B, "juice = milk")],
    ),
    "a column an annotator": (
        {"model_a": ["tea", "milk"], "model_b": ["milk", "juice"], "annotator1": ["a", "b"],
         "annotator2": ["tie", None]},
        [("annotator1", "juice > milk"), ("annotator1", "tea > milk"), ("annotator2", "milk = tea")],
    ),
    "a column an annotator, and one for both items": (
        {"cmp_key": ["tea-1_milk", "milk_juice"], "response1": ["T", "M"], "rater_1": ["1", "2"],
         "rater_2": ["1", "1"]},
        [("rater_1", "juice > milk"), ("rater_1", "tea-1 > milk"), ("rater_2", "milk > juice"),
         ("rater_2", "tea-1 > milk")],
    ),
    "winner and loser": (
        {"user": [A, B], "winner": ["tea", "milk"], "loser": ["milk", "juice"]},
        [(A, "tea > milk"), (B, "milk > juice")],
    ),
}  # fmt: skip


def between(columns):
    """The columns with others that mean nothing, in turns."""
    n_rows = len(next(iter(columns.values())))
    with_extra = columns | {name: values[:n_rows] for name, values in EXTRA.items()}
    return [{name: with_extra[name] for name in order} for order in orders_of(with_extra, TURNS)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_found(layout):
    columns, expected = LAYOUTS[layout]
    found = Comparisons.from_frame(columns)
    assert tasks_of(found) == sorted(expected, key=str)
    if layout == "long, attributes":  # what is the same for all that one chose from tells nothing
        assert "size" not in found.intake.attributes


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_found_in_every_order_of_columns(layout):
    columns, expected = LAYOUTS[layout]
    whole = Comparisons.from_frame(columns)
    for turned in between(columns):
        found = Comparisons.from_frame(turned)
        assert tasks_of(found) == sorted(expected, key=str), list(turned)
        assert found == whole, list(turned)
        assert set(EXTRA) <= set(found.intake.ignored_columns), list(turned)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if "as list" not in name])
def test_a_layout_is_read_from_text_as_from_a_frame(layout, tmp_path):
    columns, _ = LAYOUTS[layout]
    frame = pl.DataFrame(columns)
    frame.write_csv(tmp_path / "answers.csv")
    assert tasks_of(read(tmp_path / "answers.csv")) == tasks_of(Comparisons.from_frame(frame))
    assert tasks_of(Comparisons.from_frame({name: list(values) for name, values in columns.items()})) == tasks_of(
        Comparisons.from_frame(frame)
    )
