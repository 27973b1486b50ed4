"""Population whose people differ in the effects of covariates, where held-out answers gain by that."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest

from predilect import Comparisons, Population
from predilect.models.population.search import moves, selection
from simulate import random_pairs
from tolerances import CONVERGED, STATISTICAL

NAMES = ["length", "headers"]
# Where a test is of the effects alone: of all else that is searched for by default, the crowd's scale is left.
GIVEN = {"consistency": 0.0, "calibration": None, "strength": 30.0, "variance": 0.4}


def crowd(seed, spread=0.5, n_users=60, n_items=12, n=40, n_test=20):
    """Frames of answers and of further ones; everybody's own effects of a unit of length, whose mean is .3."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n_items) + 0.6 * rng.normal(size=(n_users, n_items))
    effect = 0.3 + spread * rng.normal(size=n_users)
    user = np.repeat(np.arange(n_users), n + n_test)
    left, right = random_pairs(rng, len(user), n_items)
    length, headers = np.round(rng.normal(size=(2, len(user))), 2)
    margin = f[user, left] - f[user, right] + effect[user] * length + rng.normal(size=len(user))
    columns = {
        "user": user, "left": left, "right": right, "winner": np.where(margin > 0.0, left, right),
        "length": 100.0 * length, "headers": headers,
    }  # fmt: skip
    test = np.arange(len(user)) % (n + n_test) >= n
    parts = ({name: column[rows].tolist() for name, column in columns.items()} for rows in (~test, test))
    return *parts, effect


def fitted(frame, names=NAMES, **settings):
    return Population(n_jobs=1, **settings).fit(
        Comparisons.from_frame(frame, columns={"covariates": names}, reading={"side": False})
    )


def without_own_effects(monkeypatch, frame, names=NAMES):
    with monkeypatch.context() as patch:
        others = tuple(move for move in moves.MOVES if move.proposals is not moves.own_effects)
        patch.setattr(selection, "MOVES", others)
        return fitted(frame, names)


@pytest.fixture(scope="module")
def differing():
    frame, test, effect = crowd(1)
    # Whose effects are in the units given: those of who may click at random are mixed with the average in a prediction.
    return fitted(frame, clickers=0.0), frame, test, effect


@pytest.mark.slow
def test_held_out_answers_gain_and_the_spread_is_found(differing, monkeypatch):
    model, frame, test, effect = differing
    alike = without_own_effects(monkeypatch, frame)
    gain = model._answer_log_proba(Comparisons.from_frame(test, columns={"covariates": NAMES}, reading={"side": False}))
    gain = gain - alike._answer_log_proba(
        Comparisons.from_frame(test, columns={"covariates": NAMES}, reading={"side": False})
    )
    assert gain.mean() > 0.01
    table = {row["covariate"]: row for row in model.covariates().to_dicts()}
    assert table["length"]["spread"] == pytest.approx(0.005, rel=0.25)
    assert table["headers"]["spread"] < 0.2
    assert abs(table["length"]["effect"] - effect.mean() / 100) < STATISTICAL * table["length"]["sd"]
    assert alike.covariates()["spread"].to_list() == [None, None]
    assert "effect_of_length" not in alike.people().columns
    assert any("People differ in it, with a standard deviation of 0.00" in line for line in model.describe())


@pytest.mark.slow
def test_people_have_their_own_effects_in_the_units_given(differing):
    model, _, _, effect = differing
    people = model.people()
    own, sd = (people[name].to_numpy() for name in ("effect_of_length", "effect_of_length_sd"))
    assert np.corrcoef(own, effect)[0, 1] > 0.7
    assert np.mean(np.abs(own - effect / 100) < 1.96 * sd) > 0.85
    # What a unit more adds to a prediction for this person; for somebody unknown what it adds on average.
    pair = {"user": [7, 7], "left": [1, 1], "right": [2, 2], "length": [0.0, 100.0]}
    mean, _ = model.predict_margin(pair)
    assert mean[1] - mean[0] == pytest.approx(100.0 * own[7], rel=CONVERGED)
    with pytest.warns(UserWarning, match="without answers"):
        mean, var = model.predict_margin(pair | {"user": [-1, -1]})
    row = model.covariates().to_dicts()[0]
    assert mean[1] - mean[0] == pytest.approx(100.0 * row["effect"], rel=CONVERGED)
    assert var[1] - var[0] == pytest.approx(1e4 * (row["sd"] ** 2 + row["spread"] ** 2), rel=CONVERGED)


@pytest.mark.parametrize(
    ("seed", "n_users"),
    [(20, 30), *(pytest.param(*more, marks=pytest.mark.slow) for more in [(2, 60), (3, 60), (23, 30)])],
)
def test_people_who_do_not_differ_have_one_effect_to_the_bit(seed, n_users, monkeypatch):
    frame, test, _ = crowd(seed, spread=0.0, n_users=n_users)
    model, plain = fitted(frame, ["length"]), without_own_effects(monkeypatch, frame, ["length"])
    assert model.hyperparameters_.covariate_spread == ()
    np.testing.assert_array_equal(model.predict_proba(test), plain.predict_proba(test))


def test_a_spread_that_was_not_tried_is_missing(tmp_path):
    frame, _, _ = crowd(5, spread=0.0, n_users=20, n_items=5, n=10)
    pooled = fitted(pd.DataFrame(frame), ["length"], personal=False)
    assert np.isnan(pooled.covariates()["spread"]).all()
    assert pl.DataFrame(pooled.covariates())["spread"].to_list() == [None]
    assert not any("differ in it" in line for line in pooled.describe())
    tried = fitted(frame, ["length"], **GIVEN)
    tried.save(tmp_path / "model")
    for model in (tried, Population.load(tmp_path / "model")):
        assert model.covariates()["spread"].to_list() == [0.0]


@pytest.mark.slow
def test_an_update_moves_the_effects_of_a_person_alone(differing):
    model, again = differing[0], copy.deepcopy(differing[0])
    answer = {"user": [7, 7, 99], "left": [1, 2, 3], "right": [2, 5, 4], "winner": [1, 2, 3]}
    answer |= {"length": [-400.0, -350.0, -100.0], "headers": [0.0, 0.1, 0.2]}
    again.update(answer)
    own = dict(zip(*again.people().select("user", "effect_of_length").to_dict(as_series=False).values(), strict=True))
    was = dict(zip(*model.people().select("user", "effect_of_length").to_dict(as_series=False).values(), strict=True))
    assert own[7] < was[7]
    assert own[99] < again.covariates()["effect"][0]


@pytest.mark.slow
def test_a_compressed_model_has_the_crowds_effects_and_how_people_differ(differing):
    model, _, _, _ = differing
    small = model.compress(keep=12)
    pair = {"user": [7, 7], "left": [1, 1], "right": [2, 2], "length": [0.0, 100.0]}
    mean, var = small.predict_margin(pair)
    row = model.covariates().to_dicts()[0]
    assert mean[1] - mean[0] == pytest.approx(100.0 * row["effect"], rel=CONVERGED)
    assert var[1] - var[0] == pytest.approx(1e4 * (row["sd"] ** 2 + row["spread"] ** 2), rel=CONVERGED)


@pytest.mark.slow
def test_effects_of_alternatives_in_sets_differ_over_people_too():
    """Of choices of one out of three: how people differ is found, and intervals of the mean effect know it."""
    rng = np.random.default_rng(4)
    user, task, best, worse, of_best, of_worse = [], [], [], [], [], []
    own = 0.5 + 0.8 * rng.standard_normal(60)
    for u in range(60):
        for t in range(8):
            offered, x = rng.choice(8, 3, replace=False), rng.standard_normal(3)
            first, *rest = np.argsort(-(0.3 * offered + own[u] * x + np.sqrt(0.5) * rng.standard_normal(3)))
            for other in rest:
                user.append(u), task.append(t), best.append(offered[first]), worse.append(offered[other])
                of_best.append(x[first]), of_worse.append(x[other])
    frame = {
        "user": user, "task": task, "left": best, "right": worse, "winner": ["left"] * len(user), "x_left": of_best,
        "x_right": of_worse,
    }  # fmt: skip
    model = Population(n_jobs=1).fit(Comparisons.from_frame(frame, columns={"covariates": ["x"]}))
    found = model.covariates().row(0, named=True)
    assert 0.4 < found["spread"] < 1.2
    assert found["lower"] < own.mean() < found["upper"]
    assert found["sd"] > found["spread"] / np.sqrt(60)
