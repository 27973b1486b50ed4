"""GaSPK as a user meets it: back ends, updates, presets, segments that it finds, and bad input."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from predilect import GaSPK
from predilect.errors import DataError, DataWarning
from simulate import random_pairs
from tolerances import CONVERGED, ITERATIVE

LEVELS = np.array([0.0, 1.0, 2.0, 3.0])
FIXED = {"variance": 3.0, "spread": 1.0, "n_jobs": 1, "n_restarts": 1}


def items(n=12, seed=0):
    rng = np.random.default_rng(seed)
    price, doors = rng.choice(LEVELS, n), rng.choice([3, 5], n)
    return pl.DataFrame({"item": [f"car {k:02d}" for k in range(n)], "price": price, "doors": doors})


def choices(cars, n_users=16, each=14, seed=1, noise=0.5, signs=(1.0, -1.0)):
    """Two groups of people of opposite tastes."""
    rng = np.random.default_rng(seed)
    n = len(cars)
    user = np.repeat(np.arange(n_users), each)
    left, right = random_pairs(rng, len(user), n)
    utility = 1.2 * (cars["doors"].to_numpy() - 4.0) - 0.8 * cars["price"].to_numpy()
    taste = np.array(signs)[user % len(signs)]
    margin = taste * (utility[left] - utility[right])
    won = rng.normal(size=len(user)) * noise < margin
    names = cars["item"].to_numpy()
    return {
        "user": [f"p{u:02d}" for u in user], "left": names[left], "right": names[right],
        "winner": np.where(won, names[left], names[right]),
    }  # fmt: skip


CARS = items()
ANSWERS = choices(CARS)
ASKED = {name: column for name, column in choices(CARS, seed=7).items() if name != "winner"}


def close(one, other, atol=CONVERGED):
    for a, b in zip(one.predict_margin(ASKED), other.predict_margin(ASKED), strict=True):
        np.testing.assert_allclose(a, b, atol=atol)


@pytest.mark.slow
@pytest.mark.parametrize("antisymmetric", [True, False])
def test_the_grid_and_function_space_are_the_same_model(antisymmetric):
    settings = FIXED | {"n_components": 3, "antisymmetric": antisymmetric, "levels": 25, "tol": 1e-8, "max_iter": 1000}
    grid = GaSPK(backend="grid", variances="exact", **settings).fit(ANSWERS, items=CARS)
    function = GaSPK(backend="function", **settings).fit(ANSWERS, items=CARS)
    assert grid.grid_ is not None
    assert "grid" in grid.report_["prior"]
    close(grid, function)
    np.testing.assert_allclose(grid.weights_, function.weights_, atol=CONVERGED)
    np.testing.assert_allclose(grid.log_evidence_, function.log_evidence_, atol=CONVERGED)


def test_levels_that_lose_nothing_change_nothing():
    plain = GaSPK(n_components=2, **FIXED).fit(ANSWERS, items=CARS)
    assert plain.grid_ is None
    close(GaSPK(n_components=2, levels=25, **FIXED).fit(ANSWERS, items=CARS), plain, ITERATIVE)


@pytest.mark.parametrize("gamma", ["heuristic", "exact"])
def test_two_groups_of_opposite_tastes_are_found(gamma):
    answers, test = choices(CARS, 30, 20), choices(CARS, 30, 20, seed=9)
    model = GaSPK(n_components=2, gamma=gamma, n_jobs=1, n_restarts=3).fit(answers, items=CARS)
    pooled = GaSPK(n_components=1, n_jobs=1).fit(answers, items=CARS)

    def accuracy(found):
        return np.mean(np.where(found.predict_proba(test)[:, 0] > 0.5, test["left"], test["right"]) == test["winner"])

    assert accuracy(model) > accuracy(pooled) + 0.2
    share = model.weights_[:, model.weights_[0].argmax()]
    assert share[::2].min() > 0.5 > share[1::2].max()


# Updates


def test_an_update_is_a_fit_to_all_answers():
    first = {name: column[:100] for name, column in ANSWERS.items()}
    rest = {name: column[100:] for name, column in ANSWERS.items()}
    model = GaSPK(n_components=1, **FIXED).fit(first, items=CARS)
    assert model.update(rest) is model
    whole = GaSPK(n_components=1, length_scale=model.hyperparameters_.kernel.kernel.kernel.length_scales, **FIXED)
    whole.fit(ANSWERS, items=CARS)
    close(model, whole)
    assert model.n_answers_ == whole.n_answers_
    np.testing.assert_allclose(model.log_evidence_, whole.log_evidence_, atol=CONVERGED)
    assert model.rank().equals(whole.rank()) or np.allclose(model.rank()["mean"], whole.rank()["mean"], atol=ITERATIVE)
    np.testing.assert_array_equal(model._results_by_item().sum(axis=1), whole._results_by_item().sum(axis=1))
    np.testing.assert_array_equal(model._results_by_item("p03").sum(axis=1), whole._results_by_item("p03").sum(axis=1))
    assert model.comparisons_ == whole.comparisons_


def test_an_update_stands_still_where_the_iteration_does():
    first = {name: column[:150] for name, column in ANSWERS.items()}
    rest = {name: column[150:] for name, column in ANSWERS.items()}
    settings = FIXED | {"tol": 1e-7, "max_iter": 2000, "n_components": 2}
    model = GaSPK(**settings).fit(first, items=CARS).update(rest)
    before = model.weights_.copy()
    # Nothing new: the same answers, and one more round from where it stands.
    again = {name: column[:1] for name, column in rest.items()}
    model.update(again | {"weight": [1e-9]})
    np.testing.assert_allclose(model.weights_, before, atol=ITERATIVE)


def test_new_people_and_new_items_join_at_an_update(tmp_path):
    model = GaSPK(n_components=2, **FIXED).fit(ANSWERS, items=CARS)
    more = {"user": ["new"], "left": ["car 00"], "right": ["van"], "winner": ["van"]}
    with pytest.raises(
        DataError, match=r"1 items are not known to the model and come without attributes \(first: 'van'"
    ):
        model.update(more)
    assert len(model.items_) == 12  # nothing has changed
    model.update(more, items={"item": ["van"], "price": [2.5], "doors": [5]})
    assert len(model.items_) == 13
    assert "new" in list(model.users_.ids)
    assert len(model.weights_) == 17
    assert model._results_by_item("new").sum(axis=1).sum() == 2.0
    model.save(tmp_path / "model")
    loaded = GaSPK.load(tmp_path / "model")
    for a, b in zip(model.predict_margin(ASKED), loaded.predict_margin(ASKED), strict=True):
        np.testing.assert_array_equal(a, b)
    loaded.update({name: column[:3] for name, column in ANSWERS.items()})
    assert loaded.n_answers_ == model.n_answers_ + 3


def test_updates_that_do_not_fit():
    model = GaSPK(n_components=2, **FIXED).fit(ANSWERS, items=CARS)
    with pytest.raises(DataError, match="tells people apart, and the new answers nobody"):
        model.update({"left": ["car 00"], "right": ["car 01"], "winner": ["car 00"]})
    with pytest.raises(DataError, match="some new answers are ties"):
        model.update({"user": ["p00"], "left": ["car 00"], "right": ["car 01"], "winner": ["tie"]})
    plain = GaSPK(n_components=2, **FIXED).fit(ANSWERS)
    with pytest.raises(DataError, match="items are their own attributes"):
        plain.update({"user": ["p00"], "left": ["car 00"], "right": ["van"], "winner": ["van"]})


# Presets and choices


def test_the_papers_preset():
    model = GaSPK(preset="paper", n_jobs=1, n_restarts=1, n_components=2).fit(ANSWERS, items=CARS)
    assert model.grid_ is not None
    assert model.hyperparameters_.spread == 1.0
    assert model.hyperparameters_.to_dict()["variance"] == pytest.approx(1.0)
    assert model.hyperparameters_.concentration == 0.0
    turned = ASKED | {"left": ASKED["right"], "right": ASKED["left"]}
    # Two questions: a trade-off and its reverse are unrelated.
    assert np.abs(model.predict_proba(turned)[:, ::-1] - model.predict_proba(ASKED)).max() > 0.01


@pytest.mark.slow
def test_held_out_answers_choose_how_many_characteristics():
    one = GaSPK(n_components="auto", n_jobs=1).fit(choices(CARS, 20, 14, signs=(1.0,)), items=CARS)
    two = GaSPK(n_components="auto", n_jobs=1).fit(choices(CARS, 30, 20), items=CARS)
    assert one.hyperparameters_.n_components < 3 <= 10 >= two.hyperparameters_.n_components > 1
    losses = [trial["log_loss"] for trial in two.report_["prior"]["trials"]]
    assert len(losses) > 5
    # The number that is found is fitted as if it had been given.
    number = two.hyperparameters_.n_components
    given = GaSPK(n_components=number, n_jobs=1).fit(choices(CARS, 30, 20), items=CARS)
    np.testing.assert_array_equal(given.weights_, two.weights_)
    assert given.log_evidence_ == two.log_evidence_


def test_the_evidence_learns_which_attribute_matters():
    rng = np.random.default_rng(3)
    cars = items(20, seed=4).with_columns(noise=pl.Series(rng.normal(size=20)))
    settings = FIXED | {"variance": "evidence", "length_scale": "evidence", "n_components": 1}
    model = GaSPK(**settings).fit(choices(cars, 12, 20, signs=(1.0,)), items=cars)
    scales = dict(zip(model.trade_offs_.names, model.hyperparameters_.kernel.kernel.kernel.length_scales, strict=True))
    assert scales["noise"] > 3.0 * scales["price"]


@pytest.mark.parametrize("settings", [{}, {"antisymmetric": False}, {"levels": 25, "backend": "grid"}])
def test_a_score_is_the_mean_evaluation_against_all_items(settings):
    model = GaSPK(n_components=2, **FIXED | settings).fit(ANSWERS, items=CARS)
    names = CARS["item"].to_list()
    pairs = [(a, b) for a in names for b in names if a != b]
    asked = {"user": ["p03"] * len(pairs), "left": [a for a, _ in pairs], "right": [b for _, b in pairs]}
    mean, _ = model.predict_margin(asked)
    turned, _ = model.predict_margin(asked | {"left": asked["right"], "right": asked["left"]})
    score = 0.5 * (mean - turned).reshape(12, 11).sum(axis=1) / 12.0  # the same twice if antisymmetric
    np.testing.assert_allclose(model.utilities("p03")["mean"], score - score.mean(), atol=CONVERGED)


def test_scores_covary_as_the_evaluations_they_are_made_of():
    model = GaSPK(n_components=2, **FIXED).fit(ANSWERS, items=CARS)
    left, right = np.repeat(np.arange(12), 12), np.tile(np.arange(12), 12)
    t = model.trade_offs_.pairs(model._space.matrix, left, right)
    posterior, kernel, gamma = model.posterior_, model.hyperparameters_.kernel, model.weights_[3]
    rows, _ = posterior.basis.rows(t)
    whole = posterior.curvature.covariance(rows, gamma) + gamma @ gamma * (kernel(t, t) - rows @ rows.T)
    at = rows @ posterior.w
    whole += at @ posterior.left_open[3] @ at.T  # what the answers leave open of the weights
    mean = whole.reshape(12, 12, 12, 12).mean(axis=(1, 3))
    np.testing.assert_allclose(posterior.utilities(3)[1], mean, atol=CONVERGED)


def test_low_rank_that_leaves_out_much_is_said(monkeypatch):
    monkeypatch.setattr("predilect.papers.gaspk.prior.MOST_RANK", 3)
    monkeypatch.setattr("predilect.papers.gaspk.posterior.basis._EXACT_POINTS", 5)
    with pytest.warns(DataWarning, match=r"3 coordinates for \d+ trade-offs leave out up to"):
        model = GaSPK(n_components=1, kernel="matern-1/2", **FIXED).fit(ANSWERS, items=CARS)
    assert any("leaves out up to" in line for line in model.describe())


def test_variances_of_few_answers_are_of_low_rank_where_that_is_asked_for():
    def variances(**how):
        model = GaSPK(n_components=2, preset="paper", n_restarts=1, n_jobs=1, **how).fit(ANSWERS, items=CARS)
        return model.predict_margin(ASKED)[1]

    exact = variances(variances="exact")
    np.testing.assert_allclose(variances(variances="low-rank", n_eigenpairs=1000), exact, atol=CONVERGED)
    np.testing.assert_array_equal(variances(), variances(variances="low-rank"))
    one = variances(n_eigenpairs=1)  # the rest of the grid is told by answers about a trade-off itself alone
    assert np.all(one > exact - CONVERGED)
    assert one.mean() > 1.5 * exact.mean()


# Bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variances": "low-rank", "backend": "function"}, "are those of a grid"),
        ({"gamma": "mean"}, "gamma must be one of"),
        ({"n_components": 0}, "n_components must be 'auto' or a whole number"),
        ({"variance": -1.0}, "variance must be"),
        ({"spread": 0.5}, "spread must be"),
        ({"tau": "ratio"}, "tau must be one of"),
        ({"levels": "many"}, "levels must be"),
        ({"length_scale": [-1.0]}, "length_scale must be"),
    ],
)
def test_arguments_out_of_range(change, message):
    with pytest.raises(ValueError, match=message):
        GaSPK(**change).fit(ANSWERS, items=CARS)


def test_attributes_that_never_differ():
    same = CARS.with_columns(price=pl.lit(1.0), doors=pl.lit(3))
    with pytest.raises(DataError):
        GaSPK(**FIXED).fit(ANSWERS, items=same)


def test_a_trade_off_off_the_grid_is_evaluated_where_it_is():
    settings = FIXED | {"n_components": 2, "levels": 5, "variances": "exact"}
    model = GaSPK(backend="grid", **settings).fit(ANSWERS, items=CARS)
    new = {"item": ["odd", "near"], "price": [1.37, 1.36], "doors": [3, 3]}
    asked = {"user": ["p00"] * 2, "left": ["odd", "near"], "right": ["car 00", "car 00"]}
    mean, var = model.predict_margin(asked, items=new)
    assert mean[0] != mean[1]
    assert (var > 0.0).all()
    function = GaSPK(backend="function", **settings).fit(ANSWERS, items=CARS)
    for a, b in zip((mean, var), function.predict_margin(asked, items=new), strict=True):
        np.testing.assert_allclose(a, b, atol=CONVERGED)


def test_somebody_without_choices_is_like_one_of_those_who_chose():
    model = GaSPK(n_components=2, **FIXED).fit(ANSWERS, items=CARS)
    asked = {"user": ["nobody"], "left": ["car 00"], "right": ["car 01"]}
    with pytest.warns(DataWarning, match="without answers"):
        mean, var = model.predict_margin(asked)
    everybody = {"user": list(model.users_.ids), "left": ["car 00"] * 16, "right": ["car 01"] * 16}
    m, v = model.predict_margin(everybody)
    np.testing.assert_allclose(mean[0], m.mean(), atol=CONVERGED)
    np.testing.assert_allclose(var[0], v.mean() + m.var(), atol=CONVERGED)


def test_more_characteristics_than_people():
    few = {name: column[:28] for name, column in ANSWERS.items()}
    model = GaSPK(n_components=10, **FIXED).fit(few, items=CARS)
    assert model.weights_.shape == (2, 10)
    np.testing.assert_allclose(model.weights_.sum(axis=1), 1.0)


def test_nobody_told_apart_is_one_characteristic():
    pooled = {name: column for name, column in ANSWERS.items() if name != "user"}
    model = GaSPK(**FIXED).fit(pooled, items=CARS)
    assert not model.personal_
    assert model.hyperparameters_.n_components == 1
