"""Terms of utility: products of attributes, coefficients of one alternative, covariates of people; by a referee."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from predilect import MixedLogit, load, read
from predilect.errors import DataError, DataWarning
from referees import latent_class as referee
from tolerances import ITERATIVE

MODES = ["bus", "car", "train"]


def trips(U=80, T=4, seed=0):
    """Choices of one of three modes, by cost, time and income, and the frame of them."""
    rng = np.random.default_rng(seed)
    cost, time = rng.uniform(1.0, 5.0, (U * T, 3)).round(2), rng.uniform(1.0, 3.0, (U * T, 3)).round(2)
    income, home = rng.uniform(1.0, 4.0, U).round(2), rng.choice(["city", "country"], U)
    person = np.repeat(np.arange(U), T)
    V = np.array([0.0, 0.6, -0.3]) - 0.9 * cost - 0.5 * time + 0.2 * cost * income[person][:, None] - 0.1 * cost * time
    V[:, 1] += 0.3 * cost[:, 1] + 0.4 * (home[person] == "city")
    best = (V + rng.gumbel(size=V.shape)).argmax(axis=1)
    frame = pl.DataFrame({
        "person": np.repeat(person, 3), "task": np.repeat(np.arange(U * T), 3), "mode": MODES * (U * T),
        "cost": cost.ravel(), "time": time.ravel(), "chosen": (np.arange(3) == best[:, None]).astype(int).ravel(),
    })  # fmt: skip
    people = pl.DataFrame({"person": np.arange(U), "income": income, "home": home})
    return frame, people, cost, time, income[person], home[person], best


FRAME, PEOPLE, COST, TIME, INCOME, HOME, BEST = trips()
ITEMS = read(FRAME).item_table
TERMS = ["alternative", "cost", "time", "cost:time", "cost[car]", "cost:income", "alternative:home"]


def first_chosen(*columns):
    X = np.stack([np.broadcast_to(one, COST.shape) for one in columns], axis=2)
    return np.take_along_axis(X, np.argsort(np.arange(3) != BEST[:, None], axis=1, kind="stable")[:, :, None], axis=1)


def fitted(attributes, people=PEOPLE, **settings):
    given = {"distributions": "fixed", "n_jobs": 1} | settings
    return MixedLogit(attributes=attributes, **given).fit(FRAME, people=people)


@pytest.fixture(scope="module")
def model():
    return fitted(TERMS)


def test_all_terms_are_those_of_the_referee(model):
    car, train, city = np.eye(3)[1], np.eye(3)[2], (HOME == "city")[:, None]
    X = first_chosen(
        COST, TIME, COST * TIME, COST * car, COST * INCOME[:, None], car, train, car * city, train * city,
    )  # fmt: skip
    b = referee.logit(X)
    sd = np.sqrt(np.diagonal(np.linalg.inv(referee.information(X, b))))
    table = pl.DataFrame(model.summary().table)
    for k, name in enumerate(("cost", "time", "cost:time", "cost[car]", "cost:income")):
        row = table.filter(attribute=name).row(0, named=True)
        assert (row["estimate"], row["hessian"]) == pytest.approx((b[k], sd[k]), rel=ITERATIVE)
    assert model.log_evidence_ == pytest.approx(referee.log_chances(X, b).sum(), abs=1e-8)
    # Levels sum to 0 over both: city against country, car against bus, is twice twice its effect.
    effect = {row["level"]: row["estimate"] for row in table.filter(attribute="alternative:home").iter_rows(named=True)}
    assert 2.0 * (effect["car:city"] - effect["bus:city"]) == pytest.approx(b[7], rel=1e-5)


def test_shares_follow_prices_through_every_product(model, tmp_path):
    inner = ITEMS.filter(pl.col("cost").is_between(2.0, 4.0))
    sets = [inner.filter(alternative=mode)["item"][0] for mode in MODES]
    costs = {row["item"]: row["cost"] for row in ITEMS.iter_rows(named=True)}
    table = pl.DataFrame(model.worth.elasticities(sets, "cost"))
    share = dict(pl.DataFrame(model.worth.simulate(sets))["item", "share"].iter_rows())
    for changed in sets:
        p, h = costs[changed], 1e-4
        curve = pl.DataFrame(model.worth.price_curve(sets, changed, "cost", [p - h, p + h]))
        low, high = curve["share"].to_numpy().reshape(2, 3)
        by_differences = (high - low) / (2 * h) * p / np.array([share[one] for one in sets])
        np.testing.assert_allclose(table.filter(changes=changed)["elasticity"], by_differences, rtol=1e-5)
    # A new item that is a known one, and a saved model.
    known = ITEMS.filter(item=sets[1])
    new = known.with_columns(item=pl.lit("new"))
    same = pl.DataFrame(model.worth.simulate([sets[0], "new", sets[2]], items=new))["share"]
    np.testing.assert_allclose(same, [share[one] for one in sets], rtol=1e-6)
    model.save(tmp_path / "m")
    again = pl.DataFrame(load(tmp_path / "m").worth.simulate([sets[0], "new", sets[2]], items=new))["share"]
    np.testing.assert_array_equal(again, same)


def test_people_have_the_coefficients_of_their_covariates(model):
    table = pl.DataFrame(model.worth.parts()).filter(attribute="cost")
    slope = pl.DataFrame(model.summary().table).filter(attribute="cost:income")["estimate"][0]
    base = pl.DataFrame(model.summary().table).filter(attribute="cost")["estimate"][0]
    np.testing.assert_allclose(table["mean"], base + slope * PEOPLE["income"].to_numpy(), atol=1e-4)
    # Somebody new has those of theirs.
    order = ITEMS.sort("cost")["item"]
    left, right = order[0], order[-1]
    pairs = pl.DataFrame({"user": ["x", "y"], "left": [left] * 2, "right": [right] * 2})
    new = pl.DataFrame({"person": ["x", "y"], "income": [1.0, 4.0], "home": ["city", "city"]})
    with pytest.warns(DataWarning, match="what their features tell"):
        mean, _ = model.predict_margin(pairs, people=new)
    assert abs(mean[0] - mean[1]) > 1e-3


def test_the_description_names_the_terms_by_people(model):
    assert "by cost:income, alternative:home:" in model.describe()[1]
    assert "people of equal covariates" in model._relation()
    assert "the same coefficients for all people" in fitted(["cost", "time"])._relation().lower()


def test_constants_are_left_out_where_they_are_not_named():
    X = first_chosen(COST, TIME)
    b = referee.logit(X)
    table = pl.DataFrame(fitted(["cost", "time"], None).summary().table)
    assert table["attribute"].to_list() == ["cost", "time"]
    np.testing.assert_allclose(table["estimate"], b, rtol=ITERATIVE)


@pytest.mark.parametrize(
    "settings", [{"method": "simulated", "covariance": "diagonal", "n_draws": 20}, {"method": "bayes", "n_draws": 100}]
)
def test_other_methods_take_them_too(settings):
    given = {"distributions": {"time": "fixed"}, "tol": 10.0, **settings}
    model = fitted(["alternative", "cost", "time", "cost:time", "cost:income"], **given)
    table = pl.DataFrame(model.summary().table)
    assert abs(table.filter(attribute="cost:income")["estimate"][0] - 0.2) < 0.5
    assert np.ptp(pl.DataFrame(model.worth.parts()).filter(attribute="cost")["mean"].to_numpy()) > 0.1


@pytest.mark.parametrize(
    ("attributes", "settings", "said"),
    [
        (["cost", "colour"], {}, 'no attribute "colour"'), (["cost", "cost"], {}, 'names "cost" twice'),
        ([], {}, "empty"),
        (["cost", "cost:wealth"], {}, r'"cost:wealth" is an interaction, and there is no "wealth".*income, home'),
        (["income:home"], {}, "neither is an attribute of items"), (["cost[plane]"], {}, "no category has this level"),
        (["time", "cost:income"], {}, r'name "cost" among the attributes too'),
        (["cost", "cost:income"], {"n_classes": 2}, "covariates of people say which class"),
        (["cost", "cost:income"], {"distributions": {"cost": "negative log-normal"}}, "must be normal or fixed"),
        (["cost", "cost:income"], {"people": PEOPLE.head(3)}, "77 of 80 people have no row"),
    ],
)  # fmt: skip
def test_terms_that_cannot_be_had(attributes, settings, said):
    with pytest.raises(DataError, match=said):
        fitted(attributes, **{"distributions": "fixed"} | settings)


def test_a_covariate_that_varies_within_a_person():
    twice = pl.concat([PEOPLE, PEOPLE.head(1).with_columns(income=9.0)])
    with pytest.raises(DataError, match="rows that differ in column"):
        fitted(["cost", "cost:income"], people=twice)
