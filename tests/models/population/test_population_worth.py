"""The conjoint kit of a population model: part-worths as the closest linear function of the attributes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr
from sklearn.base import clone

from predilect import Comparisons, MixedLogit, Population
from predilect.errors import DataError, DataWarning
from predilect.show.report.sections import contents_of
from simulate import random_pairs
from tolerances import EXACT

RNG = np.random.default_rng(5)
N_ITEMS = 24
ITEMS = {
    "item": [f"i{i}" for i in range(N_ITEMS)],
    "price": [float(2 + i % 4) for i in range(N_ITEMS)],
    "size": [10.0 * (i % 5) for i in range(N_ITEMS)],
    "color": [("red", "blue", "green")[i % 3] for i in range(N_ITEMS)],
}
COLORS = {"red": 0.8, "blue": -0.2, "green": -0.6}
UTILITY = np.array([-0.5 * p + 0.03 * s + COLORS[c] for p, s, c in zip(*list(ITEMS.values())[1:], strict=True)])


def answers(n_users=25, n_tasks=8):
    columns = {name: [] for name in ("user", "task", "left", "right", "winner")}
    for user in range(n_users):
        tilt = RNG.normal(0.0, 0.2) * np.array(ITEMS["price"])
        for task in range(n_tasks):
            shown = RNG.choice(N_ITEMS, 3, replace=False)
            best = shown[np.argmax((UTILITY + tilt)[shown] + RNG.normal(0.0, 0.5**0.5, 3))]
            for other in shown[shown != best]:
                for name, value in zip(columns, (f"u{user}", task, f"i{best}", f"i{other}", f"i{best}"), strict=True):
                    columns[name].append(value)
    return Comparisons.from_frame(columns, columns={"task": "task"})


DATA = answers()
LEFT = {"positive": "left"}
GIVEN = {"variance": 0.5, "strength": 20.0, "consistency": 0.0, "calibration": None, "n_jobs": 1}


@pytest.fixture(scope="module", params=["attributes", "items"])
def model(request):
    # With attributes alone, of which a search may leave something to each item.
    alone = {"feature_weight": 1.0} if request.param == "attributes" else {}
    return Population(basis=request.param, variance=0.5, strength=20.0, n_jobs=1, **alone).fit(DATA, items=ITEMS)


def pairs_of(rng, user: int, utility, rows: dict[str, list]) -> None:
    """Twelve answers of a person on random pairs, added to the rows."""
    left, right = random_pairs(rng, 12, N_ITEMS)
    z = utility[left] - utility[right] + rng.standard_normal(12)
    for name, values in zip(rows, ([user] * 12, left, right, np.where(z > 0, 1, -1)), strict=True):
        rows[name] += [f"i{value}" for value in values] if name in ("left", "right") else list(values)


def worths(table, user):
    mine = table.filter(pl.col("user") == user)
    return dict(zip(zip(mine["attribute"], mine["level"], strict=True), mine["mean"], strict=True))


def test_part_worths_are_the_closest_linear_function_of_the_attributes(model):
    found = worths(model.worth.parts(), "u3")
    assert [*found] == [("price", ""), ("size", ""), *(("color", name) for name in ("blue", "green", "red"))]
    assert abs(sum(found["color", name] for name in COLORS)) < 1e-9
    linear = np.array([
        found["price", ""] * p + found["size", ""] * s + found["color", c]
        for p, s, c in zip(*list(ITEMS.values())[1:], strict=True)
    ])  # fmt: skip
    code = model.users_.codes(["u3"])
    order = model.items_.codes(ITEMS["item"])
    consistency = model.posterior_.consistencies(code)[0][0]
    f = consistency * model.posterior_.person(int(code[0])).mean[order]
    design = np.column_stack([np.ones(N_ITEMS), ITEMS["price"], ITEMS["size"],
                              *(np.equal(ITEMS["color"], name) for name in ("red", "blue"))])  # fmt: skip
    best = design @ np.linalg.lstsq(design, f, rcond=None)[0]
    np.testing.assert_allclose(linear - linear.mean(), best - best.mean(), atol=1e-9)


def test_the_constant_of_none_is_against_an_item_of_average_attributes():
    """Levels of a category sum to 0, so that all of them together are no part of what None has to itself."""
    items = {name: [*column, None] for name, column in ITEMS.items()} | {"item": [*ITEMS["item"], "None"]}
    rows = DATA.to_frame().select("user", "left", "right", "winner")
    none = pl.DataFrame({"user": ["u1", "u2", "u3"], "left": "None", "right": ["i1", "i2", "i3"], "winner": "left"})
    model = Population(**GIVEN, basis="attributes").fit(pl.concat([rows, none]), items=items, reading={"task": "none"})
    found = worths(model.worth.parts(), "u3")
    order, code = model.items_.codes(items["item"]), int(model.users_.codes(["u3"])[0])
    f = model.posterior_.person(code).mean[order]
    price, size = (np.array([*ITEMS[name], np.mean(ITEMS[name])]) for name in ("price", "size"))
    colors = [*ITEMS["color"], ""]
    red, blue = (np.equal(colors, name) - 1.0 * np.equal(colors, "green") for name in ("red", "blue"))
    design = np.column_stack([np.ones(N_ITEMS + 1), price, size, red, blue, np.arange(N_ITEMS + 1) == N_ITEMS])
    best = np.linalg.lstsq(design, f, rcond=None)[0]
    keys = [("price", ""), ("size", ""), ("color", "red"), ("color", "blue"), ("None", "")]
    np.testing.assert_allclose([found[key] for key in keys], best[1:], atol=1e-9)


def test_intervals_of_part_worths_hold_what_was_simulated(model):
    table = model.worth.willingness_to_pay("price")
    assert table["attribute"].to_list() == ["size", "color", "color", "color"]
    size = table.row(0, named=True)
    assert size["lower"] < 0.03 / 0.5 < size["upper"]
    importance = dict(model.worth.importances().select("attribute", "importance").iter_rows())
    assert abs(sum(importance.values()) - 1.0) < EXACT
    assert importance["color"] > 0.2


def test_new_items_are_known_by_their_attributes(model):
    """With the attributes of a known one they differ from it by what it has to itself, without any by nothing."""
    new = {"item": ["new"], **{name: [column[3]] for name, column in ITEMS.items() if name != "item"}}
    share = dict(model.worth.simulate(["i1", "new"], items=new).select("item", "share").iter_rows())
    known = dict(model.worth.simulate(["i1", "i3"]).select("item", "share").iter_rows())
    assert abs(share["new"] - known["i3"]) < (0.005 if model.basis == "attributes" else 0.25)  # of draws
    with pytest.raises(DataError, match=r"first: 'new'\)\. Give their attributes"):
        model.worth.simulate(["i1", "new"])


@pytest.mark.parametrize(("name", "empty"), [("price", float("nan")), ("color", ""), ("size", None)])
def test_new_items_come_with_all_attributes(model, name, empty):
    whole = {"item": ["i1", "new"], "price": [2.0, 3.0], "size": [0.0, 10.0], "color": ["red", "red"]}
    lacking = whole | {name: [empty, empty]}
    with pytest.raises(DataError, match=rf'"{name}" is empty for 1 new item \(first: \'new\', row 2 of items\)'):
        model.worth.simulate(["i1", "new"], items=lacking)
    with pytest.raises(DataError, match=f'"{name}" is empty for 1 new item'):
        model.worth.price_curve(["i1", "new"], "i1", "price", [1.0], items=lacking)
    assert model.worth.simulate(["i1", "i2"], items=lacking).equals(model.worth.simulate(["i1", "i2"]))


def test_new_items_may_lack_what_items_of_the_fit_lack():
    """Then its worth was learned; of none of these, which lacks all, nothing follows for one that lacks a part."""
    gaps = {"item": [*ITEMS["item"][:-1], "i23"], "price": [None, None, *ITEMS["price"][2:-1], None],
            "size": [*ITEMS["size"][:-1], None], "color": [None, None, *ITEMS["color"][2:-1], None]}  # fmt: skip
    model = Population(**GIVEN, basis="attributes", feature_weight=1.0).fit(DATA, items=gaps)
    new = {"item": ["new"], "price": [None], "size": ITEMS["size"][:1], "color": [None]}
    share = dict(model.worth.simulate(["new", "i0", "i3"], items=new).select("item", "share").iter_rows())
    assert abs(share["new"] - share["i0"]) < 0.03
    with pytest.raises(DataError, match='"size" is empty for 1 new item'):
        model.worth.simulate(["new", "i0"], items=new | {"size": [None]})


def test_shares_beyond_what_was_seen_are_told(model):
    new = {"item": ["new", "far"], "price": [5.0, 6.0], "size": [0.0, 50.0], "color": ["red", "red"]}
    with pytest.warns(
        DataWarning, match=r"1 of 2 offers lie outside .*\(price from 2 to 5; size from 0 to 40\): there"
    ):
        model.worth.simulate(["new", "far"], items=new)
    inside = {name: column[:1] for name, column in new.items()}
    assert len(model.worth.simulate(["new", "i1"], items=inside)) == 2  # no warning, which would be an error
    with pytest.warns(DataWarning, match=r"2 of 3 offers lie outside .*\(price from 2 to 5\)"):
        table = model.worth.price_curve(["i1", "i2"], "i1", "price", [-200.0, 3.0, 200.0])
    assert (table["lower"] <= table["share"]).all()
    assert (table["share"] <= table["upper"]).all()
    with pytest.warns(DataWarning, match=r"1 of 2 offers lie outside"):  # and not that the price was 6
        model.worth.price_curve(["far", "i2"], "far", "price", [3.0, 6.0], items=new | {"size": [0.0, 0.0]})


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits_and_order_of_items_does_not_matter(model):
    table = model.worth.parts()
    assert table.equals(model.worth.parts())
    places = RNG.permutation(N_ITEMS)
    shuffled = {name: [column[i] for i in places] for name, column in ITEMS.items()}
    other = clone(model).fit(DATA, items=shuffled)
    np.testing.assert_allclose(other.worth.parts()["mean"], table["mean"], atol=1e-6)


def test_averages_are_of_the_population_unless_the_people_of_the_fit_are_asked_for(model):
    calls = (
        model.worth.importances, lambda **of: model.worth.simulate(["i1", "i2"], **of),
        lambda **of: model.worth.price_curve(["i1", "i2"], "i1", "price", [2.0, 4.0], **of),
    )  # fmt: skip
    for call in calls:
        everybody, alone = call(), call(of="respondents")
        assert everybody.equals(call(of="population"))
        assert set(everybody["of"]) == {"population"}
        assert set(alone["of"]) == {"respondents"}
        narrow, wide = ((one["upper"] - one["lower"]).mean() for one in (alone, everybody))
        assert narrow < wide
        with pytest.raises(ValueError, match="of must be one of"):
            call(of="all")


@pytest.mark.slow
def test_averages_have_the_same_bits_in_any_order_of_people():
    frame = DATA.to_frame()
    tables = []
    for rows in (frame, frame.sample(fraction=1.0, shuffle=True, seed=3)):
        model = Population(**GIVEN, basis="attributes").fit(
            Comparisons.from_frame(rows, columns={"task": "task"}), items=ITEMS
        )
        tables.append((model.worth.importances(), model.worth.simulate(["i1", "i2"])))
    assert all(one.equals(other) for one, other in zip(*tables, strict=True))


@pytest.mark.parametrize("settings", [{"basis": "attributes"}, {"basis": "items"}, {"personal": False}])
def test_what_other_attributes_tell_is_left_out_and_said(settings, tmp_path):
    grade = {"red": 3.0, "blue": 40.0, "green": 4.0}
    more = {"item": ITEMS["item"], "grade": [grade[c] for c in ITEMS["color"]], **ITEMS}
    more["cents"] = [100.0 * p for p in ITEMS["price"]]
    given = {} if "personal" in settings else GIVEN
    found = Population(**given, **settings).fit(DATA, items=more)
    found.save(tmp_path / "model")
    for model in (found, Population.load(tmp_path / "model")):
        assert sorted(model.attributes_) == ["color", "price", "size"]
        assert (
            set(model.worth.parts()["attribute"])
            == set(model.worth.importances()["attribute"])
            == set(model.attributes_)
        )
        assert any("Within answers nothing of grade, cents varies" in line for line in model.describe())
        with pytest.raises(DataError, match=r'what "cents" is worth is not known.*these are: price, size, color'):
            model.worth.willingness_to_pay("cents")
        with pytest.raises(DataError, match='what "grade" is worth is not known'):
            model.worth.price_curve(["i1", "i2"], "i1", "grade", [1.0])
    assert found.worth.coefficients().filter(pl.col("attribute") == "price")["mean"][0] < -0.25  # and no share of it


def test_where_answers_tell_no_attribute_nothing_is_said_of_them():
    items = {"item": ITEMS["item"], "pair": [float(k // 2) for k in range(N_ITEMS)]}
    left = np.repeat(np.arange(0, N_ITEMS, 2), 4)
    rows = {
        "user": np.tile(np.arange(4), N_ITEMS // 2),
        "left": left,
        "right": left + 1,
        "outcome": np.tile([1, -1, 1, 1], 12),
    }
    rows |= {name: [f"i{k}" for k in rows[name]] for name in ("left", "right")}
    model = Population(**GIVEN).fit(rows, items=items, reading=LEFT)
    assert model.attributes_ == []
    with pytest.raises(DataError, match=r"nothing is learned of what attributes are worth\. Within .* nothing of pair"):
        model.worth.importances()
    assert "attributes" not in {one.key for one in contents_of(model).sections}


def test_a_pooled_model_has_part_worths_of_everyone():
    model = Population(personal=False, n_jobs=1).fit(DATA, items=ITEMS)
    table = model.worth.parts()
    assert set(table["user"]) == {"everyone"}
    assert table.filter(pl.col("attribute") == "price")["mean"][0] < 0.0
    assert abs(model.worth.simulate(["i1", "i2"])["share"].sum() - 1.0) < 1e-9


@pytest.mark.slow
def test_without_attributes_it_says_what_to_give():
    model = Population(**GIVEN).fit(DATA)
    with pytest.raises(DataError, match=r"fitted without: fit\(\.\.\., items=table\)"):
        model.worth.parts()
    same = {"item": ITEMS["item"], "price": [3.0] * N_ITEMS}
    with pytest.raises(DataError, match="no attribute differs between the items: Dropped constant"):
        Population(**GIVEN).fit(DATA, items=same).worth.importances()
    with pytest.raises(DataError, match="no attribute that is a number; these are: "):
        Population(**GIVEN, basis="attributes").fit(DATA, items=ITEMS).worth.willingness_to_pay("color")


@pytest.mark.data
@pytest.mark.slow
def test_part_worths_of_electricity_are_those_of_hierarchical_bayes():
    """With one consistency for all and nothing of its own for each item, as the mixed logit has."""
    folder = Path(os.environ["PREDILECT_DATA"]) / "electricity"
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing")
    items = pl.read_csv(folder / "items.csv")
    choices = Comparisons.from_frame(pl.read_csv(folder / "comparisons.csv.gz"))
    model = Population(basis="attributes", consistency=0.0, feature_weight=1.0, n_jobs=1).fit(choices, items=items)
    bayes = MixedLogit(n_jobs=1).fit(choices, items=items)
    both = model.worth.parts().join(bayes.worth.parts(), on=["user", "attribute", "level"])
    assert len(both) == 361 * 6
    means = both.group_by("attribute").agg(pl.col("mean", "mean_right").mean())
    amounts = dict(means.select("attribute", "mean").iter_rows())
    for name, value in {"loc": 2.43, "wk": 1.83, "tod": -9.45, "seas": -9.58}.items():
        assert abs(-amounts[name] / amounts["pf"] / value - 1.0) < 0.02
    for _, one in both.group_by("attribute"):
        assert np.corrcoef(one["mean"], one["mean_right"])[0, 1] >= 0.99


@pytest.mark.slow
def test_part_worths_are_as_unsure_as_the_consistency_that_they_are_in_units_of():
    # One taste, and noise that differs: a coefficient is the taste's times the consistency.
    inside = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        taste, columns = -0.6, {name: [] for name in ("user", "left", "right", "outcome")}
        care = np.exp(0.5 * rng.standard_normal(60))
        for user, a in enumerate(care):
            pairs_of(rng, user, a * taste * np.array(ITEMS["price"]), columns)
        found = Population(consistency=0.5, n_jobs=1).fit(columns, items=ITEMS, reading=LEFT).worth.parts()
        price = found.filter(pl.col("attribute") == "price").sort("user")
        true = taste * care
        inside.append(np.mean((price["lower"].to_numpy() < true) & (true < price["upper"].to_numpy())))
    assert 0.88 <= np.mean(inside) <= 0.99, inside


@pytest.mark.slow
def test_averages_over_people_are_as_unsure_as_the_consensus_that_they_share():
    """Importances and shares of two items, of 30 people whose weights of price and size differ."""
    columns = np.column_stack([ITEMS["price"], ITEMS["size"]])
    inside, of_shares = [], []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        weights = np.array([-0.6, 0.05]) * (1.0 + 0.5 * rng.standard_normal((30, 2)))
        rows = {name: [] for name in ("user", "left", "right", "outcome")}
        for user, one in enumerate(weights):
            pairs_of(rng, user, columns @ one, rows)
        items = {name: ITEMS[name] for name in ("item", "price", "size")}
        model = Population(basis="attributes", consistency=0.0, n_jobs=1).fit(rows, items=items, reading=LEFT)
        ranges = np.abs(weights) * np.ptp(columns, axis=0)
        price = model.worth.importances("respondents").row(0)
        inside.append(price[3] <= np.mean(ranges[:, 0] / ranges.sum(axis=1)) <= price[4])
        share = model.worth.simulate(["i0", "i6"], of="respondents").row(0)
        of_shares.append(share[3] <= np.mean(ndtr(weights @ (columns[0] - columns[6]))) <= share[4])
    assert sum(inside) >= 20
    assert sum(of_shares) >= 20  # 13 where all people are drawn apart


def test_former_names_warn_and_give_the_same(model):
    now = {"part_worths": model.worth.parts, "coefficients": model.worth.coefficients}
    for name, call in now.items():
        with pytest.warns(FutureWarning, match=rf"model\.{name}\(\.\.\.\) is model\.worth\.{call.__name__}\("):
            assert getattr(model, name)().equals(call())
