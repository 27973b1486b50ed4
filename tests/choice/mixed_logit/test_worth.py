"""The conjoint kit of a mixed logit, and what it says of choices by a population model too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot
from simulate_choices import choices
from sklearn.base import clone

from predilect import Comparisons, MixedLogit, Population, plot
from predilect.data import ItemFeatures
from predilect.errors import DataError
from predilect.show.report.page import page
from predilect.show.report.sections import contents_of
from tolerances import EXACT

DATA = choices(6, n_users=20, n_tasks=5)
ITEMS = DATA.items | {"color": [("red", "blue", "green")[i % 3] for i in range(30)]}


USERS = [f"u{user:04d}" for user in range(20)]
GIVEN: dict[str, Any] = {"variance": 0.5, "strength": 20.0, "calibration": None, "n_jobs": 1}
# With attributes alone, of which a search may leave something to each item. Shares of a population are of draws.
MODELS = {
    "mixed logit": (MixedLogit(n_draws=200, tol=100.0, n_jobs=1), EXACT),
    "attributes": (Population(basis="attributes", feature_weight=1.0, **GIVEN), 0.005),
    "items": (Population(basis="items", **GIVEN), 0.005),
}


@pytest.fixture(scope="module", params=MODELS)
def kind(request):
    """A model, not to be changed, and what its shares are right to."""
    model, of_draws = MODELS[request.param]
    return model.fit(DATA.answers, items=ITEMS), of_draws


@pytest.fixture(scope="module")
def model():
    return MixedLogit(n_draws=200, tol=100.0, n_jobs=1).fit(DATA.answers, items=ITEMS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [lambda: MixedLogit(method="simulated", n_draws=200), Population])
def test_the_unit_of_an_attribute_makes_no_difference(kind):
    found = []
    for unit in (1.0, 2.0**530, 2.0**-565):
        data = DATA.items | {"price": (unit * np.array(DATA.items["price"])).tolist()}
        table = kind().fit(DATA.answers, items=data).worth.coefficients()
        numbers = np.array([table[name] for name in ("mean", "sd", "lower", "upper", "spread")])
        numbers[:, list(table["attribute"]).index("price")] *= unit
        found.append(numbers)
    for scaled in found[1:]:
        np.testing.assert_allclose(scaled, found[0], rtol=EXACT)


def test_part_worths_are_in_the_units_of_the_attributes_and_make_the_utilities(model):
    table = model.worth.parts()
    assert table.columns == ["user", "attribute", "level", "mean", "sd", "lower", "upper"]
    mine = table.filter(pl.col("user") == "u0003")
    assert mine["level"].to_list() == ["", "", "", "blue", "green", "red"]
    worth = dict(zip(zip(mine["attribute"], mine["level"], strict=True), mine["mean"], strict=True))
    assert abs(sum(value for (name, _), value in worth.items() if name == "color")) < 1e-6

    def utility(i):
        return worth["color", ITEMS["color"][i]] + sum(
            worth[name, ""] * ITEMS[name][i] for name in ("price", "speed", "size")
        )

    mean, _ = model.predict_margin({"user": ["u0003"], "left": ["i2"], "right": ["i7"]})
    assert abs(mean[0] - (utility(2) - utility(7))) < 1e-5


def test_importances_sum_to_one(model):
    table = model.worth.importances()
    assert table["attribute"].to_list() == ["price", "speed", "size", "color"]
    assert abs(table["importance"].sum() - 1.0) < EXACT
    assert (table["lower"] < table["importance"]).all()


def test_willingness_to_pay_is_the_ratio_of_coefficients(model):
    mine = model.worth.parts().filter(pl.col("user") == "u0003")
    table = model.worth.willingness_to_pay("price", "u0003")
    assert table.columns == ["attribute", "level", "median", "lower", "upper", "said"]
    draws = model.posterior_.draws_of(3) @ model.columns_.report.T
    np.testing.assert_allclose(table["median"], np.median(-draws[:, 1:] / draws[:, :1], axis=0), atol=EXACT)
    assert len(table) == len(mine) - 1
    with pytest.raises(DataError, match="no attribute that is a number"):
        model.worth.willingness_to_pay("color")
    assert len(model.worth.willingness_to_pay("price")) == 5


def test_in_the_space_of_willingness_amounts_are_bounded():
    model = MixedLogit(n_draws=200, tol=100.0, n_jobs=1, price="price").fit(DATA.answers, items=ITEMS)
    table = model.worth.willingness_to_pay("price")
    assert set(table["said"]) == {""}
    assert table["lower"].is_finite().all()


def chances(model, user: str, items: list[str]):
    return model.predict_choice({"user": [user] * len(items), "task": [0] * len(items), "item": items})


@pytest.mark.parametrize("rule", ["share", "first_choice", "randomised"])
def test_shares_of_a_scenario_sum_to_one(kind, rule):
    model, of_draws = kind
    table = model.worth.simulate({"two": ["i1", "i2"], "three": ["i1", "i2", "new"]}, rule, items={
        "item": ["new"], "price": [-1.5], "speed": [0.0], "size": [0.0], "color": ["red"]})  # fmt: skip
    assert table["item"].to_list() == ["i1", "i2", "i1", "i2", "new"]
    for _, one in table.group_by("scenario"):
        assert abs(one["share"].sum() - 1.0) < EXACT
        assert (one["lower"] <= one["share"]).all()
        assert (one["share"] <= one["upper"]).all()
    if rule == "share":
        means = np.mean([chances(model, user, ["i1", "i2"]) for user in USERS], axis=0)
        np.testing.assert_allclose(table["share"][:2], means, atol=max(of_draws, 1e-6))
    for offers, message in ((["i1"], "one item"), (["i1", "i1"], "is between two or more")):
        with pytest.raises(DataError, match=message):
            model.worth.simulate(offers, rule)


def test_a_price_curve_meets_the_item_at_its_own_price(kind):
    model, of_draws = kind
    prices = [-1.5, ITEMS["price"][1], 1.5]
    table = model.worth.price_curve(["i1", "i2"], "i1", "price", prices)
    assert table.columns == ["price", "item", "share", "lower", "upper", "of"]
    mine = table.filter(pl.col("item") == "i1")
    assert mine["price"].to_list() == prices
    np.testing.assert_allclose(table["share"][2:4], model.worth.simulate(["i1", "i2"])["share"], atol=of_draws)
    moved = {name: [column[1]] for name, column in ITEMS.items()} | {"item": ["cheap"], "price": [-1.5]}
    if model.__class__ is MixedLogit or model.basis == "attributes":  # else what i1 has to itself stays with it
        share = model.worth.simulate(["cheap", "i2"], items=moved)["share"]
        np.testing.assert_allclose(table["share"][:2], share, atol=of_draws)
    assert mine["share"].is_sorted(descending=True)
    new = model.worth.price_curve(["i2", "cheap"], "cheap", "price", prices, items=moved).filter(
        pl.col("item") == "cheap"
    )
    assert new["share"].is_sorted(descending=True)
    for item, price, message in (("i9", "price", "not on offer"), ("i2", "color", "these are: price, speed, size")):
        with pytest.raises(DataError, match=message):
            model.worth.price_curve(["i1", "i2"], item, price, [1.0])


def test_the_fit_of_people_is_the_geometric_mean_of_what_their_choices_had(kind):
    model, of_draws = kind
    table = model.worth.fit_of_people()
    assert table.columns == ["user", "choices", "rlh", "chance", "p_guessing", "guesses"]
    assert table["user"].to_list() == USERS
    assert set(table["choices"]) == {5.0}
    np.testing.assert_allclose(table["chance"], 1.0 / 3.0, atol=EXACT)
    logs = []
    for _, one in DATA.answers.to_frame().filter(pl.col("user") == USERS[3]).group_by("task"):
        best = one[one["winner"][0]][0]
        rest = {*one["left"], *one["right"]} - {best}
        logs.append(np.log(chances(model, USERS[3], [best, *rest])[0]))
    mine = table.row(3, named=True)
    assert abs(mine["rlh"] - np.exp(np.mean(logs))) < of_draws
    assert mine["rlh"] > mine["chance"]
    assert table.equals(model.worth.fit_of_people(DATA.answers))


def winners(rows):
    return rows.select(pl.when(pl.col("winner") == "left").then(pl.col("left")).otherwise(pl.col("right"))).to_series()


def with_guesses(n_guessing):
    """The same answers with random ones of some people."""
    rng, frame = np.random.default_rng(3), DATA.answers.to_frame()
    guessing = {f"u{user:04d}" for user in range(n_guessing)}
    rows = []
    for (user, task), one in frame.group_by(["user", "task"], maintain_order=True):
        best = winners(one)[0]
        shown = sorted({*one["left"], *one["right"]})
        best = rng.choice(shown) if user in guessing else best
        rows += [(user, task, best, other, best) for other in shown if other != best]
    return Comparisons.from_frame(
        pl.DataFrame(rows, schema=["user", "task", "left", "right", "winner"], orient="row"), columns={"task": "task"}
    )


@pytest.mark.parametrize("model", [MixedLogit(n_draws=400, tol=100.0, n_jobs=1), MODELS["attributes"][0]])
def test_people_who_guess_are_found(model):
    table = clone(model).fit(with_guesses(6), items=ITEMS).worth.fit_of_people()
    assert table["guesses"].to_list() == [p > 0.9 for p in table["p_guessing"]]
    assert table["p_guessing"][:6].mean() > table["p_guessing"][6:].mean() + 0.2


def test_the_fit_of_orders_counts_each_choice_in_them(model):
    rows = [("u0001", 1, a, b, a) for a, b in (("i1", "i2"), ("i2", "i3"))]
    rows += [("u0001", 2, a, b, a) for a, b in (("i1", "i2"), ("i1", "i3"), ("i2", "i4"), ("i3", "i4"))]
    columns = ["user", "task", "left", "right", "winner"]
    answers = replace(
        Comparisons.from_frame(pl.DataFrame(rows, schema=columns, orient="row"), columns={"task": "task"}), joint=True
    )
    table = model.worth.fit_of_people(answers)
    assert table["choices"].to_list() == [4.0]
    np.testing.assert_allclose(table["chance"][0], (1 / 3 / 2 / 4 / 3) ** 0.25, atol=EXACT)


def test_the_fit_of_people_needs_the_answers(model, tmp_path):
    model.save(tmp_path / "model")
    again = MixedLogit.load(tmp_path / "model")
    with pytest.raises(DataError, match=r"Give them: fit_of_people\(answers\)"):
        again.worth.fit_of_people()
    assert again.worth.fit_of_people(DATA.answers)["rlh"].to_list() == model.worth.fit_of_people()["rlh"].to_list()
    with pytest.raises(DataError, match="nowhere"):
        model.worth.fit_of_people({"user": ["u0001"], "left": ["nowhere"], "right": ["i1"], "winner": ["i1"]})


def test_a_piecewise_price_has_a_slope_a_piece_and_one_importance():
    items = ItemFeatures.from_frame(ITEMS, piecewise={"price": [0.0]})
    model = MixedLogit(n_draws=200, tol=100.0, n_jobs=1).fit(DATA.answers, items=items)
    mine = model.worth.parts().filter(pl.col("user") == "u0003")
    levels = list(zip(mine["attribute"], mine["level"], strict=True))
    assert levels[:2] == [("price", "up to 0"), ("price", "from 0")]
    assert model.worth.importances()["attribute"].to_list() == ["price", "speed", "size", "color"]
    assert len(model.worth.willingness_to_pay("price from 0")) == 6
    with pytest.raises(DataError, match="these are: price up to 0, price from 0, speed, size"):
        model.worth.willingness_to_pay("price")
    worth = dict(zip(levels, mine["mean"], strict=True))
    mean, _ = model.predict_margin({"user": ["u0003"], "left": ["i2"], "right": ["i7"]})

    def utility(i):
        price, slopes = ITEMS["price"][i], (worth["price", "up to 0"], worth["price", "from 0"])
        return slopes[0] * min(price, 0.0) + slopes[1] * max(price, 0.0) + worth["color", ITEMS["color"][i]] + sum(
            worth[name, ""] * ITEMS[name][i] for name in ("speed", "size"))  # fmt: skip

    assert abs(mean[0] - (utility(2) - utility(7))) < 1e-5
    with pytest.raises(DataError, match='"price" is piecewise linear'):
        MixedLogit(n_draws=20, tol=100.0, n_jobs=1, price="price").fit(DATA.answers, items=items)


@pytest.mark.slow
def test_none_of_these_has_a_constant_of_its_own():
    items = {name: [*column, None] for name, column in ITEMS.items()} | {"item": [*ITEMS["item"], "None"]}
    frame = DATA.answers.to_frame().with_columns(pl.col("task").cast(pl.String))
    rows = [{"user": f"u{u:04d}", "task": "n", "left": "None", "right": f"i{u}", "winner": "left"} for u in range(20)]
    rows += [{"user": f"u{u:04d}", "task": "m", "left": "None", "right": f"i{u}", "winner": "right"} for u in range(20)]
    more = pl.concat([frame.select("user", "task", "left", "right", "winner"), pl.DataFrame(rows)])
    for estimator in (MixedLogit(n_draws=200, tol=100.0, n_jobs=1), Population(basis="attributes", **GIVEN)):
        model = estimator.fit(Comparisons.from_frame(more, columns={"task": "task"}), items=items)
        assert model.worth.importances()["attribute"].to_list() == ["price", "None", "speed", "size", "color"]
        assert set(model.worth.simulate(["None", "i1"])["item"]) == {"None", "i1"}


def test_plots_and_pages_are_in_log_odds(model):
    axes = plot.board(model, top=3)
    assert axes.get_xlabel() == "score and 95 % interval (log-odds of one answer; 0 is the mean of the items)"
    pyplot.close(axes.figure)
    assert "Part-worths, in log-odds" in page(contents_of(model))
