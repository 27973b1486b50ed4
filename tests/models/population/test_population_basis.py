"""Population on each basis: unmoved by what makes no difference, sound on odd features, clear where it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from predilect import Comparisons, Population
from predilect.errors import DataError, DataWarning
from predilect.models.population.prior import BASES
from simulate_traits import attributed_crowd
from tolerances import EXACT, ITERATIVE

CROWD = attributed_crowd(0)
COLUMNS, OUTCOME = CROWD.answers(12, delta=0.3)
ASKED = {
    "user": np.repeat(np.arange(20), 10), "left": np.tile(np.arange(10), 20), "right": np.tile(np.arange(10) + 2, 20)
}  # fmt: skip
GIVEN = {
    "strength": 20.0,
    "variance": 1.0,
    "consensus_variance": 2.0,
    "tie_threshold": ("auto", 0.3),
    "consistency": 0.0,
}
FIXED = GIVEN | {"feature_weight": 0.5, "length_scale": 1.5, "clickers": 0.0}
KINDS = ("auto", *BASES)


def fitted(basis="auto", columns=COLUMNS, outcome=OUTCOME, items=CROWD.items, users=None, **changes):
    settings = {"basis": basis, "n_inducing": 5, "n_jobs": 1} | changes
    return Population(**settings).fit(columns, outcome, items=items, people=users)


def assert_same_bits(one: Population, other: Population) -> None:
    for a, b in zip(one.predict_margin(ASKED), other.predict_margin(ASKED), strict=True):
        np.testing.assert_array_equal(a, b)
    for user in (None, 3):
        assert one.rank(user).equals(other.rank(user))
    assert one.hyperparameters_.to_dict() == other.hyperparameters_.to_dict()
    assert one._choices == other._choices
    assert one.log_evidence_ == other.log_evidence_


# What must make no difference


@pytest.mark.slow  # two whole searches
@pytest.mark.parametrize(
    ("basis", "given"),
    [("auto", {}), ("attributes+inducing", {"strength": 20.0, "variance": 1.0})],
    ids=["auto", "given"],
)
def test_search_and_fit_give_the_same_bits(basis, given, tmp_path):
    # Threads, seed, order of rows, sides, saving: through the whole search, traits of people included. The walk on two
    # of the numbers is the same for every basis.
    settings = {"users": CROWD.users, **given}
    model = fitted(basis, **settings)
    assert len(model.report_["prior"]["trials"]) > 2
    assert_same_bits(fitted(basis, **settings, n_jobs=2), model)
    order = np.random.default_rng(1).permutation(len(OUTCOME))
    flip = np.arange(len(OUTCOME)) % 3 == 0
    columns = {name: column[order] for name, column in COLUMNS.items()}
    left = np.where(flip, columns["right"], columns["left"])
    right = np.where(flip, columns["left"], columns["right"])
    other = {"user": columns["user"], "left": left, "right": right}
    assert_same_bits(fitted(basis, other, np.where(flip, -1, 1) * OUTCOME[order], **settings), model)
    model.save(tmp_path / "model")
    again = Population.load(tmp_path / "model")
    assert_same_bits(again, model)
    new = {"items": {"item": ["new"], "a": [0.3], "b": [1.0]}, "people": {"user": ["me"], "age": [9], "group": ["in"]}}
    with pytest.warns(DataWarning, match="without answers"):
        here, there = (m.predict_margin({"user": ["me"], "left": ["new"], "right": [3]}, **new) for m in (model, again))
    np.testing.assert_array_equal(here, there)


@pytest.mark.slow
@pytest.mark.parametrize("basis", KINDS)
def test_every_basis_fits_predicts_ranks_and_saves(basis, tmp_path):
    model = fitted(basis, users=CROWD.users, user_features=True, **FIXED)
    assert model.report_["fit"]["converged"]
    assert model._choices["user_features"] is True
    if basis != "auto":
        assert model._choices["basis"] == basis
        assert model.report_["prior"]["basis"]["kind"] == basis
    points = 5 if model._choices["basis"].endswith("inducing") else "auto"
    assert model._choices["n_inducing"] == points
    proba = model.predict_proba(ASKED)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=EXACT)
    assert sorted(model.rank()["item"]) == list(range(12))
    assert sorted(model.rank(7)["item"]) == list(range(12))
    model.save(tmp_path / "model")
    assert_same_bits(Population.load(tmp_path / "model"), model)
    # the answers are better explained than by chance, and by about as much on every basis
    assert model.score(COLUMNS, OUTCOME) > -0.75


@pytest.mark.parametrize(
    "basis",
    ["items", "attributes+inducing", *(pytest.param(b, marks=pytest.mark.slow) for b in ("attributes", "inducing"))],
)
def test_names_make_no_difference(basis):
    settings = FIXED | {"tol": 1e-13, "max_iter": 2000, "user_features": True}
    model = fitted(basis, users=CROWD.users, **settings)
    item, user = (np.random.default_rng(2).permutation(n) for n in (12, 60))

    def renamed(frame):
        names = {"user": user, "left": item, "right": item, "item": item}
        return {name: names[name][values] if name in names else values for name, values in frame.items()}

    other = fitted(basis, renamed(COLUMNS), items=renamed(CROWD.items), users=renamed(CROWD.users), **settings)
    for a, b in zip(model.predict_margin(ASKED), other.predict_margin(renamed(ASKED)), strict=True):
        np.testing.assert_allclose(a, b, atol=ITERATIVE)


# Refusals

BAD = [
    ("basis", "kernel", "one of 'auto', 'items', 'attributes', 'inducing'"), ("basis", None, "one of 'auto'"),
    ("basis", 3, "one of 'auto'"), ("n_inducing", 0, "whole number from 1"), ("n_inducing", 2.5, "whole number"),
    ("n_inducing", "many", "whole number"), ("n_inducing", True, "whole number"), ("n_inducing", None, "whole number"),
    ("user_features", "yes", "'auto', True, False"), ("user_features", 1, "'auto', True, False"),
    ("user_features", None, "'auto', True, False"),
]  # fmt: skip


@pytest.mark.parametrize("personal", [True, False])
@pytest.mark.parametrize(("name", "value", "says"), BAD)
def test_what_cannot_be_chosen(name, value, says, personal):
    model = Population(personal, **{name: value})  # scikit-learn: the constructor checks nothing
    with pytest.raises(ValueError, match=f"{name} must be .*{says}"):
        model.fit(COLUMNS, OUTCOME)


@pytest.mark.parametrize("basis", BASES[1:])
@pytest.mark.parametrize("items", [None, {"item": range(12), "x": [1.0] * 12}], ids=["no features", "constant"])
def test_a_basis_of_features_needs_features(basis, items):
    with pytest.raises(DataError, match=re.escape(f'basis="{basis}" needs features of the items')):
        fitted(basis, items=items)


# Odd features of items

ODD = {
    "collinear": {"a": CROWD.items["a"], "b": 3.0 - 2.0 * CROWD.items["a"]},
    "a constant": {"a": CROWD.items["a"], "b": np.ones(12)},
    "perfectly separating": {"a": CROWD.utilities.mean(axis=0) > 0},
    "as many as items": {"a": [f"kind {i}" for i in range(12)]},
    "missing": {"a": [None, 1.0, None, *range(9)]},
    "a weight of 0 for features": {"a": CROWD.items["a"]},
}


@pytest.mark.slow  # many fits
@pytest.mark.parametrize("basis", BASES[1:])
@pytest.mark.parametrize("what", ODD)
def test_odd_features(basis, what):
    given = GIVEN | ({"feature_weight": (0.0, "auto")} if "weight" in what else {})
    outcome = OUTCOME
    if what == "perfectly separating":  # every answer agrees with the feature, where it says anything
        good = np.asarray(ODD[what]["a"], dtype=int)
        sign = good[COLUMNS["left"]] - good[COLUMNS["right"]]
        outcome = np.where(sign != 0, sign, OUTCOME)
    model = fitted(basis, outcome=outcome, items={"item": range(12), **ODD[what]}, **given)
    mean, var = model.predict_margin(ASKED)
    assert np.isfinite(mean).all()
    assert np.all((var >= 0) & (var < 100.0))
    assert model.report_["fit"]["converged"]
    if what == "perfectly separating":
        board = model.rank()
        n_good = int(good.sum())
        assert set(board["item"][:n_good]) == set(np.flatnonzero(good))
        assert 0.5 < board["mean"][0] - board["mean"][-1] < 30.0


@pytest.mark.slow
def test_the_automatic_choice_survives_a_weight_of_zero():
    assert np.isfinite(fitted("auto", feature_weight=(0.0, "auto"), **GIVEN).log_evidence_)


# New items


# Items beside those asked about: with so many, an item has less than ten answers on average.
UNSEEN = 150
FEW_EACH = {
    "item": np.arange(12 + UNSEEN),
    **{name: np.r_[CROWD.items[name], np.random.default_rng(8).standard_normal(UNSEEN)] for name in "ab"},
}


@pytest.mark.slow
@pytest.mark.parametrize("many", [True, False], ids=["many answers an item", "few"])
@pytest.mark.parametrize("basis", BASES[1:])
def test_new_items(basis, many):
    items = CROWD.items if many else FEW_EACH
    items = items | {"kind": np.array(["x", "y", "z"])[np.arange(len(items["item"])) % 3]}
    model = fitted(basis, items=items, **FIXED)
    assert model._functions.own == many
    new = {"item": ["twin", "hole", "odd"], "a": [items["a"][4], None, 0.5], "b": [items["b"][4], 0.2, 0.5],
           "kind": [items["kind"][4], "x", "never seen"]}  # fmt: skip
    pairs = {"user": [3, 3, 3], "left": ["twin", "hole", "odd"], "right": [0, 0, 0]}
    told = pytest.warns(DataWarning, match='"a": 1 missing value set to the mean')
    with told, pytest.warns(DataWarning, match="never seen"):
        mean, var = model.predict_margin(pairs, items=new)
    assert np.isfinite(mean).all()
    assert np.all(var > 0)
    known_mean, known_var = model.predict_margin({"user": [3], "left": [4], "right": [0]})
    if basis == "attributes" and not many:  # they say everything
        assert abs(mean[0] - known_mean[0]) < EXACT
        assert abs(var[0] - known_var[0]) < EXACT
    else:
        assert var[0] > known_var[0]
    # Without features an item is the prior: mean 0 and, against another, twice (own variance + s_t).
    with pytest.warns(DataWarning, match="come without features"):
        mean, var = model.predict_margin({"user": [3], "left": ["p"], "right": ["q"]})
    assert mean[0] == 0.0
    # where no item has anything to itself, nothing was learned of its variance, and it is s₀
    own = model.posterior_.basis.own_scale
    assert (own == 1.0) == (basis == "attributes" and not many)
    assert abs(var[0] - 2.0 * (own + 2.0)) < EXACT


@pytest.mark.slow
def test_an_unknown_item_has_the_prior_variance_after_a_search():
    # The search fits under other scales first, whose own variance must not stay behind where items have none.
    model = fitted("attributes", items=FEW_EACH)
    assert not model._functions.own
    assert len({trial["variance"] for trial in model.report_["prior"]["trials"]}) > 1
    assert model.posterior_.basis.own_scale == model.hyperparameters_.variance


@pytest.mark.slow  # many fits
def test_the_verdict_on_features_where_they_are_the_basis():
    # The model without features cannot hang on attributes: it hangs on the items.
    model = Population(basis="attributes", n_jobs=1, **GIVEN).fit(
        Comparisons.from_frame(COLUMNS, outcome=OUTCOME), items=CROWD.items
    )
    verdict = model.verdict(n_bootstrap=200)
    assert verdict.features.outcome != "unknown"
    assert verdict.features.baseline_log_loss > 0
