"""Attributes that only some alternatives have: against columns made by hand, dummy times attribute."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

from predilect import MixedLogit, Population, load, read
from predilect.data import ItemFeatures
from predilect.errors import DataError, DataWarning
from referees import latent_class as referee
from tolerances import EXACT, ITERATIVE

MODES = ("bus", "car", "train")
KIND = {"bus": "public", "car": "private", "train": "public"}


def study(seed: int = 0, n_people: int = 60, n_tasks: int = 5) -> pl.DataFrame:
    """Trips: all have a cost, cars a parking fee, the others changes, and trains a class; a row an alternative."""
    rng, rows = np.random.default_rng(seed), []
    for person in range(n_people):
        for task in range(n_tasks):
            cost, fee, changes = rng.integers(1, 7, 3), int(rng.integers(0, 4)), rng.integers(0, 3, 3)
            first = str(rng.choice(["first", "second"]))
            extra = [-0.5 * changes[0], -0.4 * fee, -0.5 * changes[2] + 0.5 * (first == "first")]
            V = np.array([0.0, 0.8, 0.3]) - 0.4 * cost + extra + rng.gumbel(size=3)
            rows += [
                (person, task, mode, KIND[mode], int(cost[k]), fee if mode == "car" else None,
                 None if mode == "car" else int(changes[k]), first if mode == "train" else None, int(k == V.argmax()))
                for k, mode in enumerate(MODES)
            ]  # fmt: skip
    names = ["person", "task", "mode", "kind", "cost", "parking", "changes", "class", "chosen"]
    return pl.DataFrame(rows, names, orient="row", infer_schema_length=None)


TABLE = study()
# By hand: 0 for those that lack it, and a class as -1 and 1.
BY_HAND = TABLE.with_columns(
    pl.col("parking", "changes").fill_null(0),
    pl.col("class").replace_strict({"first": 1, "second": -1}, return_dtype=pl.Int64).fill_null(0),
)
TERMS = {"parking": "parking[car]", "changes": "changes[bus,train]", "class": "class[train]"}
SETTINGS = {
    "logit": {"distributions": "fixed"},
    "nested": {"distributions": "fixed", "nests": "kind"},
    "simulated": {"method": "simulated", "n_draws": 40, "covariance": "diagonal"},
    "log-normal": {"method": "simulated", "n_draws": 40, "distributions": {"parking": "negative log-normal"}},
    "bayes": {"n_draws": 300, "tol": 10.0},
    "classes": {"distributions": "fixed", "n_classes": 2},
    "space of pay": {"method": "simulated", "n_draws": 40, "price": "parking", "distributions": {"cost": "fixed"}},
}


def fitted(table: pl.DataFrame = TABLE, **settings) -> MixedLogit:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DataWarning)
        return MixedLogit(n_jobs=1, **settings).fit(table)


def fitted_to(answers) -> MixedLogit:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DataWarning)
        return MixedLogit(distributions="fixed").fit(answers)


@pytest.fixture(scope="module")
def model():
    return fitted(distributions="fixed")


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_the_likelihood_is_that_of_columns_made_by_hand(name):
    given = SETTINGS[name]
    found, hand = (fitted(one, **given) for one in (TABLE, BY_HAND))
    assert set(found.attributes_) - set(hand.attributes_) == set(TERMS.values())
    if name == "bayes":  # whose people stand in another order, and so have other draws
        assert found.log_evidence_ == pytest.approx(hand.log_evidence_, abs=1.0)
        return
    assert found.log_evidence_ == pytest.approx(hand.log_evidence_, abs=1e-8)
    mine, theirs = (pl.DataFrame(one.summary().table) for one in (found, hand))
    for plain, term in TERMS.items():
        if plain == "class":  # a category, whose levels are twice as far apart as the number from 0
            continue
        value, other = (
            one.filter(attribute=what)["estimate"].to_numpy() for one, what in ((mine, term), (theirs, plain))
        )
        np.testing.assert_allclose(value, other, rtol=ITERATIVE, atol=ITERATIVE)


def test_estimates_and_errors_are_those_of_the_referee(model):
    rows = TABLE.to_numpy().reshape(-1, 3, 9)
    best = rows[:, :, 8].astype(int).argmax(axis=1)
    cost, parking, changes = (np.nan_to_num(rows[:, :, k].astype(float)) for k in (4, 5, 6))
    first = np.where(rows[:, :, 7] == "first", 1.0, np.where(rows[:, :, 7] == "second", -1.0, 0.0))
    dummies = [np.broadcast_to(np.eye(3)[k], cost.shape) for k in (1, 2)]
    X = np.stack([cost, parking, changes, first, *dummies], axis=2)
    X = np.take_along_axis(X, np.argsort(np.arange(3) != best[:, None], axis=1, kind="stable")[:, :, None], axis=1)
    b = referee.logit(X)
    sd = np.sqrt(np.diagonal(np.linalg.inv(referee.information(X, b))))
    assert model.log_evidence_ == pytest.approx(referee.log_chances(X, b).sum(), abs=1e-8)
    table = pl.DataFrame(model.summary().table)
    for k, (name, level) in enumerate(
        [("cost", ""), ("parking[car]", ""), ("changes[bus,train]", ""), ("class[train]", "first")]
    ):
        row = table.filter(attribute=name, level=level).row(0, named=True)
        assert (row["estimate"], row["hessian"]) == pytest.approx((b[k], sd[k]), rel=ITERATIVE)


def test_a_wide_table_says_the_same(model):
    wide = TABLE.pivot("mode", index=["person", "task"], values=["cost", "parking", "changes", "class", "chosen"])
    chosen = [next(mode for mode in MODES if row[f"chosen_{mode}"]) for row in wide.to_dicts()]
    lost = [f"chosen_{mode}" for mode in MODES]
    lost += [name for name in wide.columns if wide[name].null_count() == len(wide)]
    found = fitted(wide.drop(lost).with_columns(choice=pl.Series(chosen)), distributions="fixed")
    assert found.log_evidence_ == pytest.approx(model.log_evidence_, abs=1e-8)
    assert set(TERMS.values()) <= set(found.attributes_)


def test_every_word_says_for_which_alternatives(model, tmp_path):
    said = " ".join(ItemFeatures.from_frame(read(TABLE).item_table).report)
    assert '"parking": only where "alternative" is car. A logit has a coefficient of these alone; for other' in said
    assert any('"changes" is of items where "alternative" is bus, train alone' in one for one in model.describe())
    for table in (model.worth.parts(), model.worth.coefficients(), model.worth.importances()):
        assert set(TERMS.values()) <= set(table["attribute"])
    pay = model.worth.willingness_to_pay("cost")
    assert "parking[car]" in pay["attribute"].to_list()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.describe() == model.describe()
    assert again.worth.importances().equals(model.worth.importances())
    model.report(tmp_path / "page.html")
    assert "parking[car]" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_plain_name_is_understood(model):
    by_term, by_name = (model.worth.willingness_to_pay(name) for name in ("parking[car]", "parking"))
    assert by_term.equals(by_name)
    assert model.worth.contrasts("class").columns[0] == "level"
    named = fitted(distributions="fixed", attributes=["alternative", "kind", "cost", "parking", "changes", "class"])
    assert named.log_evidence_ == pytest.approx(model.log_evidence_, abs=1e-8)
    also = fitted(distributions="fixed", attributes=["alternative", "cost", "parking[car]", "changes[train,bus]"])
    assert also.attributes_[-2:] == ["parking[car]", "changes[train,bus]"]
    with pytest.raises(DataError, match='"cost:parking" is a product, and items have "parking" only where'):
        fitted(distributions="fixed", attributes=["cost", "parking", "cost:parking"])
    with pytest.raises(DataError, match="several levels at once"):
        Population(attributes=["alternative", "changes", "changes[bus,train]"]).fit(TABLE)


def test_covariates_of_people_move_its_coefficient():
    people = pl.DataFrame({"person": range(60), "income": [k % 7 for k in range(60)]})
    given = {"distributions": "fixed", "attributes": ["alternative", "cost", "parking", "parking:income"]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DataWarning)
        found, hand = (MixedLogit(**given).fit(one, people=people) for one in (TABLE, BY_HAND))
    assert found.log_evidence_ == pytest.approx(hand.log_evidence_, abs=1e-8)


def test_importance_is_of_the_items_that_have_it(model):
    """The range is over cars: a fee that is never 0 does not reach down to the buses' nothing."""
    dear = TABLE.with_columns(pl.col("parking") + 10)
    found = fitted(dear, distributions="fixed")
    for one in (found, model):
        b = dict(pl.DataFrame(one.worth.coefficients())["attribute", "mean"].iter_rows())["parking[car]"]
        share = dict(pl.DataFrame(one.worth.importances())["attribute", "importance"].iter_rows())
        cost = dict(pl.DataFrame(one.worth.coefficients())["attribute", "mean"].iter_rows())["cost"]
        assert share["parking[car]"] / share["cost"] == pytest.approx(3.0 * b / (5.0 * cost), rel=0.05)


def offers(**more):
    table = {"item": ["b", "c", "t"], "alternative": list(MODES), "kind": [KIND[one] for one in MODES],
             "cost": [3, 4, 5], "parking": [None, 2, None], "changes": [1, None, 0],
             "class": [None, None, "first"]}  # fmt: skip
    return pl.DataFrame(table | more)


def test_new_alternatives_have_what_theirs_have(model):
    table = model.worth.simulate(["b", "c", "t"], items=offers())
    b = {(row["attribute"], row["level"]): row["mean"] for row in model.worth.coefficients().to_dicts()}
    V = np.array([b["alternative", mode] - 0.0 for mode in MODES]) + b["cost", ""] * np.array([3.0, 4.0, 5.0])
    V += [b[TERMS["changes"], ""], 2.0 * b[TERMS["parking"], ""], b[TERMS["class"], "first"]]
    share = np.exp(V) / np.exp(V).sum()
    np.testing.assert_allclose(table["share"], share, atol=0.01)  # averages over draws
    np.testing.assert_allclose(
        model.predict_choice({"task": [1] * 3, "item": ["b", "c", "t"]}, items=offers()), table["share"], rtol=0.02
    )
    # A fee of 0 for the others says what an empty cell says.
    zeros = offers(parking=[0, 2, 0])
    np.testing.assert_allclose(model.worth.simulate(["b", "c", "t"], items=zeros)["share"], table["share"], atol=EXACT)
    with pytest.warns(DataWarning, match=r"\"parking\" of 1 new item \(first: 'b'\) counts for nothing"):
        beside = model.worth.simulate(["b", "c", "t"], items=offers(parking=[3, 2, None]))
    np.testing.assert_allclose(beside["share"], table["share"], atol=EXACT)
    with pytest.raises(DataError, match='no item of the fit where "alternative" is car lacks it'):
        model.worth.simulate(["b", "c", "t"], items=offers(parking=[None, None, None]))
    with pytest.raises(DataError, match='no item of the fit where "alternative" is car lacks it'):
        model.predict_proba({"left": ["b"], "right": ["c"]}, items=offers(parking=[None, None, None]))
    curve = model.worth.price_curve(["b", "c", "t"], "c", "parking", [0, 3], items=offers())
    assert curve.filter(item="c")["share"].is_sorted(descending=True)
    with pytest.raises(DataError, match='has no "parking" that could change'):
        model.worth.price_curve(["b", "c", "t"], "b", "parking", [0, 3], items=offers())


def test_an_opt_out_that_has_nothing_but_a_label_is_no_alternative_without_attributes():
    none = TABLE.filter(pl.col("mode") == "car").select(
        "person", "task", mode=pl.lit("none"), kind=None, cost=None, parking=None, changes=None, chosen=0,
        **{"class": None},
    )  # fmt: skip
    with_none = pl.concat([TABLE, none.select(TABLE.columns)], how="vertical_relaxed")
    found = fitted(with_none.drop("kind", "class"), distributions="fixed")
    assert set(found.attributes_) >= {"cost", "parking[car]", "changes[bus,train]"}


def test_gaps_that_no_category_tells_are_as_they_were():
    """Where one car has no fee the reader asks; in a table of items gaps are set to the mean, and marked."""
    cars = TABLE["mode"] == "car"
    first = np.flatnonzero(cars.to_numpy())[0]
    fee = TABLE["parking"].to_list()
    fee[first] = None
    with pytest.raises(DataError, match=r'an attribute \("parking"\) is missing in 1 task'):
        read(TABLE.with_columns(parking=pl.Series(fee)))
    without = TABLE.drop("mode", "kind", "changes", "class")
    with pytest.raises(DataError, match="If only some alternatives have it, say which column names them"):
        read(without)
    colours = read(without.with_columns(colour=TABLE["mode"]), columns={"alternatives": "colour"})
    assert fitted_to(colours).attributes_ == ["alternative", "cost", "parking[car]"]
    table = read(TABLE).item_table
    gap = [None, *table.filter(alternative="car")["parking"].to_list()[1:]]
    table = pl.concat([table.filter(alternative="car").with_columns(parking=pl.Series(gap)),
                       table.filter(pl.col("alternative") != "car")])  # fmt: skip
    features = ItemFeatures.from_frame(table)
    assert "parking" not in features.only
    assert "changes" in features.only
    assert any('"parking":' in one and "missing values set to the mean, and marked" in one for one in features.report)


def test_a_category_with_a_level_for_each_item_tells_nothing():
    items = pl.DataFrame({"item": ["a", "b", "c", "d"], "maker": ["k", "l", "m", "n"], "size": [1.0, None, 3.0, 2.0]})
    items = items.with_columns(price=pl.Series([3.0, 4.0, 5.0, 6.0]))
    assert not ItemFeatures.from_frame(items).only
    twice = pl.concat([items, items.with_columns(item=pl.col("item") + "2", size=pl.col("size") * 2)])
    assert ItemFeatures.from_frame(twice).only["size"].levels == ("k", "m", "n")
