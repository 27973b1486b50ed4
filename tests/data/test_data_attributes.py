"""Attributes as columns: their coding, and which of them answers tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from predilect import Comparisons
from predilect.data import ItemFeatures
from predilect.data.attributes import Coding, identified_columns, independent, left_out
from predilect.data.features import FeatureSpace
from tolerances import EXACT

RNG = np.random.default_rng(0)
MODE = ["car", "bus", "rail"] * 8
ITEMS = {
    "item": [f"i{k:02d}" for k in range(24)], "cost": RNG.normal(size=24), "mode": MODE,
    "seats": [{"car": 4.0, "bus": 40.0, "rail": 300.0}[one] for one in MODE],
}  # fmt: skip


def answers(seed=0, n=200):
    rng = np.random.default_rng(seed)
    left = rng.integers(24, size=n)
    right = (left + rng.integers(1, 24, size=n)) % 24
    names = np.array(ITEMS["item"])
    columns = {"left": names[left].tolist(), "right": names[right].tolist()}
    return Comparisons.from_frame(columns, outcome=rng.choice([-1, 1], n))


def attributes_of(items, rows=None):
    features = ItemFeatures.from_frame(items)
    rows = (answers() if rows is None else rows).with_items(features.ids)
    coding = Coding.of(features)
    keep = identified_columns(rows, FeatureSpace(*features.align(rows.items)), coding)
    return coding.only(keep).attributes, left_out(coding, keep)


def test_reported_coefficients_make_the_utilities_of_the_columns():
    features = ItemFeatures.from_frame(ITEMS)
    coding = Coding.of(features)
    assert coding.levels == (("cost", ""), ("mode", "bus"), ("mode", "car"), ("mode", "rail"), ("seats", ""))
    assert coding.source == ("cost", "mode", "mode", "seats")
    weights = RNG.normal(size=4)
    worth = coding.report @ weights
    assert abs(worth[1:4].sum()) < EXACT
    of_mode = dict(zip(["bus", "car", "rail"], worth[1:4], strict=True))
    by_hand = worth[0] * np.array(ITEMS["cost"]) + [of_mode[m] for m in MODE] + worth[4] * np.array(ITEMS["seats"])
    utility = features.matrix @ coding.map @ weights
    np.testing.assert_allclose(utility - utility.mean(), by_hand - by_hand.mean(), atol=1e-10)
    some = coding.only([3, 0])
    assert some.levels == (("cost", ""), ("seats", ""))
    np.testing.assert_array_equal(some.map, coding.map[:, [3, 0]])


@pytest.mark.parametrize("order", [["cost", "mode", "seats"], ["seats", "mode", "cost"]])
def test_what_follows_from_the_alternative_is_left_out_in_any_order_of_columns(order):
    found, said = attributes_of({"item": ITEMS["item"], **{name: ITEMS[name] for name in order}})
    assert sorted(found) == ["cost", "mode"]
    assert said[0].startswith("Within answers nothing of seats varies that other attributes do not tell")


def test_of_two_that_say_the_same_the_first_stays():
    more = ITEMS | {"cents": [100.0 * x for x in ITEMS["cost"]], "sum": np.add(ITEMS["cost"], ITEMS["seats"])}
    assert attributes_of(more)[0] == ["cost", "mode"]
    assert attributes_of({name: more[name] for name in ("item", "cents", "cost")})[0] == ["cents"]


@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e170, 1e300])
def test_the_unit_of_an_attribute_makes_no_difference(unit):
    cost = [unit * x for x in ITEMS["cost"]]
    assert attributes_of(ITEMS | {"cost": cost, "again": cost})[0] == ["cost", "mode"]


def test_what_is_the_same_for_both_of_each_answer_is_left_out():
    names = np.array(ITEMS["item"])
    left = np.repeat(np.arange(0, 24, 2), 3)
    rows = Comparisons.from_frame({"left": names[left], "right": names[left + 1]}, outcome=[1, -1, 1] * 12)
    season = [["summer", "winter"][(k // 2) % 2] for k in range(24)]
    assert attributes_of(ITEMS | {"season": season})[0] == ["cost", "mode", "season"]
    found, said = attributes_of(ITEMS | {"season": season}, rows)
    assert found == ["cost", "mode"]
    assert "seats, season" in said[0]
    assert attributes_of({"item": ITEMS["item"], "season": season}, rows)[0] == []


def test_answers_about_items_without_attributes_say_nothing_of_them():
    some = {name: ITEMS[name][:2] for name in ("item", "cost", "mode")}
    rows = Comparisons.from_frame({"left": ["i00", "i00"], "right": ["i05", "i01"], "outcome": [1, 1]})
    assert attributes_of(some, rows)[0] == ["mode"]  # one row tells of one, and two modes have two levels
    assert attributes_of(some, Comparisons.from_frame({"left": ["i00"], "right": ["i05"], "outcome": [1]}))[0] == []


@pytest.mark.parametrize("seed", range(5))
def test_as_many_columns_stay_as_the_rank(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 10)) * 10.0 ** rng.integers(-4, 5, 10)
    source = tuple(f"a{k // 2}" for k in range(10))
    coding = Coding(np.eye(10), np.eye(10), tuple((name, "") for name in source), source)
    keep = independent(X.T @ X, coding)
    assert len(keep) == np.linalg.matrix_rank(X / np.linalg.norm(X, axis=0)) == 6
    assert np.linalg.matrix_rank((X / np.linalg.norm(X, axis=0))[:, keep]) == 6
    assert independent(np.zeros((10, 10)), coding) == []
