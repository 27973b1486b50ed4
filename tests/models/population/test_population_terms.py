"""Interactions and coefficients of one alternative in a population model, as attributes= names them."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest

from predilect import MixedLogit, Population, load
from predilect.errors import DataError
from tolerances import STATISTICAL

PRICES, SIZES, MODES = (1.0, 2.0, 3.0, 4.0), (0.0, 1.0, 2.0), ("bus", "car", "train")
GRID = list(product(PRICES, SIZES, MODES))
ITEMS = pl.DataFrame(
    {
        "item": [f"i{k:02d}" for k in range(len(GRID))],
        **dict(zip(("price", "size", "mode"), zip(*GRID, strict=True), strict=True)),
    }
)
TERMS = ["price", "size", "mode", "price:size", "price[car]"]
TRUTH = {"price:size": 0.3, "price[car]": 0.4}
RAW = ITEMS["price"].to_numpy(), ITEMS["size"].to_numpy(), (ITEMS["mode"] == "car").to_numpy()
UTILITY = -0.8 * RAW[0] + 0.2 * RAW[1] + TRUTH["price:size"] * RAW[0] * RAW[1] + TRUTH["price[car]"] * RAW[0] * RAW[2]


def choices(n_people=80, n_tasks=12, seed=0):
    rng = np.random.default_rng(seed)
    shown = np.stack([rng.permutation(len(GRID))[:3] for _ in range(n_people * n_tasks)])
    person = np.repeat(np.arange(n_people), n_tasks)
    own = -0.15 * rng.normal(size=n_people)[person][:, None] * RAW[0][shown]
    best = (UTILITY[shown] + own + rng.normal(size=shown.shape) / np.sqrt(2.0)).argmax(axis=1)
    return pl.DataFrame({
        "user": np.repeat([f"p{u:02d}" for u in person], 3), "task": np.repeat(np.arange(len(shown)), 3),
        "item": ITEMS["item"].gather(shown.ravel()), "chosen": (np.arange(3) == best[:, None]).astype(int).ravel(),
    })  # fmt: skip


ANSWERS = choices()


@pytest.fixture(scope="module", params=["attributes", pytest.param("items", marks=pytest.mark.slow)])
def model(request):
    weight = {"attributes": 1.0, "items": "auto"}[request.param]
    return Population(attributes=TERMS, basis=request.param, feature_weight=weight, consistency=0.0, clickers=0.0).fit(
        ANSWERS, items=ITEMS
    )


@pytest.mark.slow
def test_coefficients_of_products_are_those_of_the_truth(model):
    assert model.attributes_ == TERMS
    found = {row["attribute"]: row for row in pl.DataFrame(model.worth.coefficients()).iter_rows(named=True)}
    for name, true in TRUTH.items():
        assert abs(found[name]["mean"] - true) < STATISTICAL * found[name]["sd"]
        assert abs(found[name]["mean"]) > STATISTICAL * found[name]["sd"]
    assert "price:size, price[car]" in " ".join(model.describe())


def test_coefficients_are_least_squares_of_utilities_on_products(model):
    person = ANSWERS["user"][0]
    row = pl.DataFrame(model.worth.parts()).filter(user=person)
    mine = {(one["attribute"], one["level"]): one["mean"] for one in row.iter_rows(named=True)}
    mean = pl.DataFrame(model.rank(person)).sort("item")["mean"].to_numpy()
    price, size, car = RAW
    train = (ITEMS["mode"] == "train").to_numpy()
    X = np.column_stack([np.ones(len(GRID)), price, size, price * size, price * car, car, train]).astype(float)
    b = np.linalg.lstsq(X, mean, rcond=None)[0]
    for k, name in ((1, "price"), (2, "size"), (3, "price:size"), (4, "price[car]")):
        assert mine[name, ""] == pytest.approx(b[k], abs=1e-6)
    assert mine["mode", "car"] - mine["mode", "bus"] == pytest.approx(b[5], abs=1e-6)


@pytest.mark.slow
def test_new_items_that_are_known_ones_and_a_saved_model(model, tmp_path):
    ids = ["i04", "i13", "i20"]
    new = ITEMS.filter(item="i13").with_columns(item=pl.lit("new"))
    share = pl.DataFrame(model.worth.simulate(["i04", "new", "i20"], items=new))["share"]
    if model._functions is not None:  # the attributes are all that an item is
        np.testing.assert_allclose(share, pl.DataFrame(model.worth.simulate(ids))["share"], atol=1e-6)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(pl.DataFrame(again.worth.simulate(["i04", "new", "i20"], items=new))["share"], share)
    assert again.attributes_ == TERMS


def test_prices_move_shares_through_their_products(model):
    mine = pl.DataFrame(model.worth.parts()).filter(user=model.users_.ids[0])
    coefficient = {row["attribute"]: row["mean"] for row in mine.iter_rows(named=True)}
    ids = ["i04", "i13", "i20"]
    rows = model._rows(model.items_.codes(pl.Series(ids)).astype(np.int64), np.zeros((0, model._space.matrix.shape[1])))
    encoded = model._space.matrix[model.items_.codes(pl.Series(ids))]
    change = model.features_.shifted(encoded[1], "price", 3.0)
    V, W = (model._person_draws().utilities(0, one).mean(axis=0) for one in (rows, model._moved(rows, 1, change)))
    one = ITEMS.filter(item="i13").row(0, named=True)
    slope = (
        coefficient["price"]
        + coefficient["price:size"] * one["size"]
        + coefficient["price[car]"] * (one["mode"] == "car")
    )
    assert (W - V)[1] == pytest.approx(slope * (3.0 - one["price"]), abs=1e-6)
    assert (W - V)[[0, 2]] == pytest.approx([0.0, 0.0], abs=1e-9)


@pytest.mark.parametrize(
    ("attributes", "items", "said"),
    [
        (["price", "price:income"], ITEMS, "all that people prefer depends on the features of people"),
        (["price"], None, "items have none"), (["price", "price:size"], ITEMS, r'name "size" among'),
        (["price", "colour"], ITEMS, 'no attribute "colour"'), ("price", ITEMS, "a list of names"),
        (["price", "price:wealth"], ITEMS, 'no "wealth".*have terms in MixedLogit alone'),
    ],
)  # fmt: skip
def test_terms_that_cannot_be_had(attributes, items, said):
    people = pl.DataFrame({"user": ANSWERS["user"].unique().sort(), "income": np.arange(80) % 7})
    with pytest.raises(DataError, match=said):
        Population(attributes=attributes).fit(ANSWERS, items=items, people=people)


@pytest.mark.slow
def test_what_is_advised_for_covariates_of_people_works():
    people = pl.DataFrame({"user": ANSWERS["user"].unique().sort(), "income": np.arange(80) % 7})
    small = choices(80, 3)
    assert Population(attributes=["price", "size"], personal=True).fit(small, items=ITEMS, people=people).user_features_
    logit = MixedLogit(attributes=["price", "size", "price:income"], distributions="fixed")
    told = pl.DataFrame(logit.fit(small, items=ITEMS, people=people).summary().table)
    assert "price:income" in told["attribute"].to_list()


@pytest.mark.slow
def test_the_verdict_on_features_does_without_the_terms(model):
    assert model.verdict(n_folds=2, max_people=60, n_bootstrap=200).features.outcome == "better"
