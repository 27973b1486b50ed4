from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predilect.data import Comparisons, ItemFeatures
from predilect.errors import DataError
from predilect.papers.gaspk.tradeoffs import fit as module
from predilect.papers.gaspk.tradeoffs import map as map_module
from predilect.papers.gaspk.tradeoffs.fit import fit_trade_offs
from predilect.papers.gaspk.tradeoffs.map import TradeOffMap, tidy
from tolerances import EXACT

CARS = {
    "item": ["a", "b", "c", "d", "e"],
    "price": [10.0, 20.0, 20.0, 0.0, 30.0],
    "power": [0.1, 0.3, 0.3, 0.6, 0.4],
    "fuel": ["petrol", "diesel", "diesel", "petrol", "petrol"],
    "shape": ["van", "coupe", "suv", "van", "coupe"],
    "doors": [3, 5, 5, 5, 3],
}
SIDES = {"left": ["a", "c", "a", "d", "a", "e"], "right": ["b", "a", "d", "e", "c", "b"]}


def compared(left, right, weight=None):
    winner = {"winner": ["left"] * len(left)}
    weights = {} if weight is None else {"weight": weight}
    return Comparisons.from_frame({"left": left, "right": right} | winner | weights)


def cars(**options):
    features, answers = ItemFeatures.from_frame(CARS), compared(**SIDES)
    trade_offs = fit_trade_offs(features, answers, **options)
    return features, answers, trade_offs


def original(name):
    """Differences of a column of CARS for the rows of the answers, which have the smaller id on the left."""
    _, answers, _ = cars()
    values = np.array(CARS[name], dtype=float)
    return values[answers.left] - values[answers.right]


def test_differences_have_the_units_of_their_attributes():
    features, answers, trade_offs = cars(units={"price": "EUR"})
    t = trade_offs.pairs(features.matrix, answers.left, answers.right)
    assert trade_offs.names == (
        "price (EUR)", "power", "fuel=diesel", "shape=coupe", "shape=suv", "shape=van", "doors",
    )  # fmt: skip
    shown = trade_offs.in_units(t)
    assert list(shown) == list(trade_offs.names)
    assert shown["price (EUR)"].tolist() == original("price").tolist()
    np.testing.assert_allclose(shown["power"], original("power"), atol=1e-15)
    assert set(shown["shape=van"].tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(t[:, 0], original("price") / np.std(CARS["price"]), atol=1e-14)
    np.testing.assert_allclose(trade_offs.from_units(shown), t, atol=EXACT)
    np.testing.assert_array_equal(trade_offs(features.matrix[answers.left], features.matrix[answers.right]), t)
    np.testing.assert_array_equal(trade_offs.pairs(features.matrix, answers.right, answers.left), -t)
    new = features.transform({"price": [25.0], "power": [0.2], "fuel": ["diesel"], "shape": ["van"], "doors": [4]})
    assert trade_offs.in_units(trade_offs(new, features.matrix[:1]))["price (EUR)"].tolist() == [15.0]


def test_the_second_of_two_categories_says_nothing_more_but_can_be_asked_for():
    _, _, trade_offs = cars()
    assert trade_offs.mirrors == {"fuel=petrol": "fuel=diesel"}
    assert any('"fuel=petrol"' in line for line in trade_offs.report)
    same = [trade_offs.from_units({"fuel=diesel": [-1]}), trade_offs.from_units({"fuel=petrol": [1, None]})[:1]]
    np.testing.assert_array_equal(*same)
    assert trade_offs.in_units(same[0])["fuel=diesel"].tolist() == [-1.0]
    # Of three categories none is minus another, though they add up to 0.
    assert trade_offs.find("shape") == (3, 4, 5)
    assert trade_offs.find("price") == (0,)


def test_what_never_differs_is_left_out():
    answers = compared(["b", "b"], ["c", "d"])
    trade_offs = fit_trade_offs(ItemFeatures.from_frame(CARS), answers)
    # b, c and d differ in neither: doors. Coupe, suv and van do.
    assert "doors" not in trade_offs.names
    assert any('no answer is about a difference in it: "doors"' in line for line in trade_offs.report)
    with pytest.raises(DataError, match=r"differ in doors: every trade-off is 0.*no features"):
        fit_trade_offs(ItemFeatures.from_frame(CARS), answers, attributes=["doors"])
    only = cars(attributes=["power", "price"])[2]
    assert only.names == ("price", "power")
    assert cars(attributes="power")[2].names == ("power",)


def test_relative_changes():
    features, answers, trade_offs = cars(tau="relative", units={"price": "EUR"})
    t = trade_offs.pairs(features.matrix, answers.left, answers.right)
    assert trade_offs.names[0] == "price (relative change)"
    price = np.array(CARS["price"])
    one, other = price[answers.left], price[answers.right]
    expected = 2 * (one - other) / (one + other)
    np.testing.assert_allclose(trade_offs.in_units(t)["price (relative change)"], expected, atol=1e-12)
    np.testing.assert_allclose(np.mean(t[:, 0] ** 2), 1.0)
    difference = cars()[2].pairs(features.matrix, answers.left, answers.right)
    np.testing.assert_array_equal(t[:, 2:6], difference[:, 2:6])
    np.testing.assert_array_equal(trade_offs.pairs(features.matrix, answers.right, answers.left), -t)
    # d costs nothing: the largest change there is, and none to itself.
    zero = trade_offs.in_units(trade_offs.pairs(features.matrix, np.arange(5), np.full(5, 3)))
    assert zero["price (relative change)"].tolist() == [2, 2, 2, 0, 2]


def test_weights_count_as_answers():
    features = ItemFeatures.from_frame(CARS)
    weight = [1, 2, 3, 1, 2, 4]
    once = fit_trade_offs(features, compared(**SIDES, weight=weight), tau="relative")
    sides = {side: np.repeat(items, weight).tolist() for side, items in SIDES.items()}
    again = fit_trade_offs(features, compared(**sides), tau="relative")
    np.testing.assert_allclose(again.scale, once.scale, atol=EXACT)
    other = fit_trade_offs(features, compared(**SIDES), tau="relative")
    assert np.abs(other.scale - once.scale).max() > 1e-3


def log_ratio(left, right):
    return np.log((left[:, 0] + 1) / (right[:, 0] + 1))


def test_a_function_of_the_original_values():
    features, answers, trade_offs = cars(tau=log_ratio, attributes=["price"])
    t = trade_offs.pairs(features.matrix, answers.left, answers.right)
    price = np.array(CARS["price"])
    expected = np.log((price[answers.left] + 1) / (price[answers.right] + 1))
    np.testing.assert_allclose(trade_offs.in_units(t)["tau 1"], expected, atol=1e-11)
    np.testing.assert_allclose(np.mean(t**2), 1.0)
    assert trade_offs.antisymmetric
    plain = json.loads(json.dumps(trade_offs.to_dict()))
    with pytest.raises(DataError, match='"log_ratio"'):
        TradeOffMap.from_dict(plain)

    seen = []

    def look(left, right):
        seen.append(left)
        return left - right

    cars(tau=look)
    # Own units, without the noise of standardising: exactly the table's numbers, categories as 0 and 1.
    names = features.columns
    assert set(seen[-1][:, names.index("price")].tolist()) <= set(CARS["price"])
    assert set(seen[-1][:, names.index("power")].tolist()) <= set(CARS["power"])
    assert set(seen[-1][:, names.index("fuel=petrol")].tolist()) == {0.0, 1.0}


def test_functions_are_given_the_numbers_of_the_table():
    seen = []

    def difference(left, right):
        seen.extend(np.vstack([left, right]).tolist())
        return left - right

    frame = {"item": list("abcde"), "tiny": [1e-7, 3e-7, 7e-7, 1.1e-6, 1.3e-6], "even": [0.1, 0.3, 0.7, 1.1, 1.3]}
    fit_trade_offs(ItemFeatures.from_frame(frame), compared(**SIDES), tau=difference)
    assert {tuple(row) for row in seen} <= set(zip(frame["tiny"], frame["even"], strict=True))


@pytest.mark.parametrize("size", [1e-9, 0.1, 1.0, 1e7])
def test_numbers_are_rounded_to_the_twelfth_digit_of_their_size(size):
    values = np.array([0.3, -1.0, 0.123456])
    noise = np.array([2e-15, -1e-14, 1e-15])
    np.testing.assert_allclose(tidy(size * (values + noise), size), size * values, rtol=4e-16)
    apart = tidy(size * (values + 1e-11), size) - size * values
    assert (apart > 5e-12 * size).all()
    assert np.isfinite(tidy(np.array([1e-305, 1e-300]), 1e-300)).all()


def test_functions_that_cannot_be_used():
    with pytest.raises(DataError, match=r"not -<lambda>\(right, left\).*Set antisymmetric=False"):
        cars(tau=lambda left, right: left - 0.5 * right)
    loose = cars(tau=lambda left, right: left - 0.5 * right, antisymmetric=False)[2]
    assert not loose.antisymmetric
    with pytest.raises(DataError, match="one row of numbers for each"):
        cars(tau=lambda left, right: np.zeros((1, 2, 3)))
    with pytest.raises(DataError, match=r"tau gave \[nan"):
        cars(tau=lambda left, right: (left - right) * np.nan)
    with pytest.raises(DataError, match="one row of numbers for each"):
        cars(tau=lambda left, right: (left - right)[:, :0])
    with pytest.raises(DataError, match="every trade-off is 0"):
        cars(tau=lambda left, right: np.zeros(len(left)))


def test_items_are_their_own_attributes_without_features():
    answers = compared(["a", "b", "c", "a"], ["b", "c", "d", "d"]).with_items(["unseen"])
    trade_offs = fit_trade_offs(None, answers)
    assert trade_offs.names == ("a", "b", "c", "d")
    t = trade_offs.pairs(None, answers.left, answers.right)
    np.testing.assert_allclose((t**2).sum(axis=1), 1.0)
    shown = trade_offs.in_units(t)
    assert shown["a"].tolist() == [1, 1, 0, 0]
    assert shown["d"].tolist() == [0, -1, 0, -1]
    np.testing.assert_allclose(trade_offs.from_units(shown), t)
    again = TradeOffMap.from_dict(json.loads(json.dumps(trade_offs.to_dict())))
    np.testing.assert_array_equal(again.pairs(None, answers.left, answers.right), t)
    assert cars()[2].items_are_attributes is False
    with pytest.raises(DataError, match="need features"):
        fit_trade_offs(None, answers, attributes=["price"])
    with pytest.raises(DataError, match="made of features"):
        cars()[2].pairs(None, answers.left, answers.right)
    with pytest.raises(DataError, match=r"items must lie in \[0, 5\)"):
        trade_offs.pairs(None, np.array([0]), np.array([5]))


def test_trade_offs_that_do_not_fit_into_memory_are_refused(monkeypatch):
    features, answers, trade_offs = cars()
    monkeypatch.setattr(map_module, "_MOST_NUMBERS", answers.n_rows * trade_offs.n_dimensions - 1)
    with pytest.raises(DataError, match="6 trade-offs of 7 dimensions take more than 2 GB"):
        trade_offs.pairs(features.matrix, answers.left, answers.right)
    assert len(trade_offs.pairs(features.matrix, answers.left[1:], answers.right[1:])) == 5


def test_too_many_items_without_features(monkeypatch):
    monkeypatch.setattr(module, "MOST_ITEMS", 3)
    with pytest.raises(DataError, match="4 are more than 3"):
        fit_trade_offs(None, compared(["a", "b", "c"], ["b", "c", "d"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tau": "ratio"}, "tau must be"),
        ({"attributes": ["colour"]}, "called colour; there are price, power, fuel, shape, doors"),
        ({"attributes": []}, "none given"),
        ({"units": {"fuel": "l"}}, "units are given for fuel; columns of numbers are doors, power, price"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(DataError, match=message):
        cars(**options)


def test_bad_input():
    features, answers, trade_offs = cars()
    with pytest.raises(DataError, match=r"1 item with answers have no features \(first: z\)"):
        fit_trade_offs(features, compared(["a"], ["z"]))
    with pytest.raises(DataError, match='"colour" is no attribute'):
        trade_offs.from_units({"colour": [1]})
    with pytest.raises(DataError, match="must hold numbers"):
        trade_offs.from_units({"price": ["cheap"]})
    with pytest.raises(DataError, match="not finite"):
        trade_offs.from_units({"price": [np.inf]})
    with pytest.raises(DataError, match="with 8 columns"):
        trade_offs(np.zeros((1, 3)), np.zeros((1, 3)))
    with pytest.raises(DataError, match='no attribute "colour"'):
        trade_offs.find("colour")
    with pytest.raises(DataError, match="no answers"):
        fit_trade_offs(features, answers.take(np.zeros(answers.n_rows, dtype=bool)))


def test_missing_numbers_and_pieces_of_pairs(monkeypatch):
    frame = CARS | {"power": [None, 0.3, 0.3, 0.6, 0.4]}
    features, answers = ItemFeatures.from_frame(frame), compared(**SIDES)
    found = fit_trade_offs(features, answers, tau="relative")
    assert "power missing" in [dimension.name for dimension in found.dimensions]
    monkeypatch.setattr(module, "_CHUNK", 2)
    again = fit_trade_offs(features, answers, tau="relative")
    np.testing.assert_allclose(again.scale, found.scale, atol=EXACT)


@given(st.data())
def test_sides_do_not_matter_for_points(data):
    features, _, trade_offs = cars(tau=data.draw(st.sampled_from(["difference", "relative"])))
    left = np.array(data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=12)))
    right = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(left), max_size=len(left))))
    points, code, sign = trade_offs.points(features.matrix, left, right)
    t = trade_offs.pairs(features.matrix, left, right)
    np.testing.assert_allclose(sign[:, None] * points[code], t, atol=1e-11)
    swapped = trade_offs.points(features.matrix, right, left)
    assert swapped.points.tobytes() == points.tobytes()
    np.testing.assert_array_equal(swapped.code, code)
    np.testing.assert_array_equal(swapped.sign, np.where(points[code].any(axis=1), -sign, 1))
    again = TradeOffMap.from_dict(json.loads(json.dumps(trade_offs.to_dict())))
    np.testing.assert_array_equal(again.pairs(features.matrix, left, right), t)
