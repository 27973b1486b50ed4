"""Terms of utility as features of items: columns of products, by hand, and what cannot be had."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from predilect.data import ItemFeatures
from predilect.data.attributes import Coding
from predilect.data.terms import Terms
from predilect.errors import DataError
from tolerances import EXACT

RNG = np.random.default_rng(4)
N = 30
TABLE = pl.DataFrame({
    "item": [f"i{k:02d}" for k in range(N)], "price": RNG.uniform(90.0, 200.0, N).round(1),
    "size": RNG.uniform(1.0, 5.0, N).round(2), "mode": [("bus", "car", "train")[k % 3] for k in range(N)],
    "green": [("no", "yes")[k % 2] for k in range(N)],
})  # fmt: skip
TERMS = ["price", "size", "mode", "green", "price:size", "price[car]", "size:mode", "mode:green", "price:price"]


def specified(terms=TERMS, table=TABLE, **settings):
    features = ItemFeatures.from_frame(table, **settings)
    return Terms.of(terms, features, None).features_of(features)


def test_coefficients_are_those_of_products_in_their_units():
    features = specified()
    coding = Coding.of(features)
    price, size = TABLE["price"].to_numpy(), TABLE["size"].to_numpy()
    of_mode = {one: (TABLE["mode"] == one).to_numpy() for one in ("bus", "car", "train")}
    green = {one: (TABLE["green"] == one).to_numpy() for one in ("no", "yes")}
    by_hand = {("price:size", ""): price * size, ("price[car]", ""): price * of_mode["car"]}
    by_hand |= {("price:price", ""): price**2}
    by_hand |= {("size:mode", one): size * there for one, there in of_mode.items()}
    by_hand |= {("mode:green", f"{one}:{two}"): of_mode[one] * green[two] for one in of_mode for two in green}
    c = np.random.default_rng(0).normal(size=len(coding.source))
    reported = dict(zip(coding.levels, coding.report @ c, strict=True))
    assert set(by_hand) <= set(reported)
    # The products' part of the utilities, but for a constant, is the sum of reported coefficients times raw products.
    mine = [k for k, name in enumerate(coding.source) if ":" in name or "[" in name]
    utility = features.matrix @ coding.map[:, mine] @ c[mine]
    expected = sum(reported[name] * values for name, values in by_hand.items())
    np.testing.assert_allclose(utility - utility.mean(), expected - expected.mean(), atol=1e-9)
    for name in ("size:mode", "mode:green"):
        levels = {level: reported[name, level] for one, level in reported if one == name}
        assert abs(sum(levels.values())) < EXACT
    assert (
        abs(sum(value for (name, level), value in reported.items() if (name, level[:3]) == ("mode:green", "bus")))
        < 1e-9
    )


def test_asked_for_again_they_stay_the_same_and_new_items_are_encoded_alike():
    features = specified()
    again = Terms.of(TERMS, features, None).features_of(features)
    assert again.outputs == features.outputs
    np.testing.assert_array_equal(again.matrix, features.matrix)
    np.testing.assert_array_equal(features.transform(TABLE), features.matrix)
    assert features.sources == ["price", "size", "mode", "green"]
    restored = ItemFeatures.from_dict(features.to_dict())
    assert restored.outputs == features.outputs
    few = Terms.of(["price", "size", "price:size"], features, None).features_of(features)
    assert few.columns == ["price", "size", "price:size"]
    np.testing.assert_array_equal(few.matrix[:, 2], features.matrix[:, features.columns.index("price:size")])


def test_a_price_that_changes_moves_all_its_products():
    features = specified()
    for row in range(3):
        moved = TABLE[row].with_columns(price=pl.lit(123.4))
        change = features.shifted(features.matrix[row], "price", 123.4)
        np.testing.assert_allclose(features.matrix[row] + change, features.transform(moved)[0], atol=EXACT)


def test_pieces_and_products_that_are_constant():
    features = specified(["price", "mode", "price:mode"], piecewise={"price": [120.0]})
    assert [name for name in features.columns if ":" in name][:2] == [
        "price:mode=up to 120:bus", "price:mode=up to 120:car"
    ]  # fmt: skip
    assert ("price:mode", "from 120:train") in Coding.of(features).levels
    alike = TABLE.with_columns(mode=pl.when(pl.col("green") == "yes").then(pl.lit("bus")).otherwise("mode"))
    never = specified(
        ["mode", "green", "mode:green"], alike.filter(~((pl.col("mode") == "car") & (pl.col("green") == "no")))
    )
    assert np.isfinite(never.matrix).all()


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (["price", "price:size"], r'name "size" among the attributes too'),
        (["mode", "price[car]"], r'name "price" among the attributes too'),
        ("price", r'a list of names, got "price"'), (["price", "price:sise"], 'there is no "sise"'),
    ],
)  # fmt: skip
def test_terms_that_cannot_be_had(terms, said):
    with pytest.raises(DataError, match=said):
        specified(terms)


def test_products_without_what_they_are_of_are_not_kept():
    features = specified(["price", "size", "price:size"])
    few = Terms.of(["price", "price:size"], features, None)
    with pytest.raises(DataError, match='"price:size" is learned beside'):
        few.features_of(features)


@pytest.mark.parametrize("factors", [[0, 9], [2, 2], [-1, 0], None])
def test_damaged_products_are_refused(factors):
    plain = specified(["price", "size", "price:size"]).to_dict()
    plain["outputs"][2]["factors"] = factors
    with pytest.raises(ValueError, match="product"):
        ItemFeatures.from_dict(plain)
