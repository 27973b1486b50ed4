"""People who click at random, in fitted models: who they are, what the unit is, predictions, updates, saving."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from predilect import Population, load
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.engaged import with_clicks
from predilect.inference.people.expectation import converge
from simulate import random_pairs
from tolerances import CONVERGED

N, N_ITEMS, PER_PERSON, N_CLICKERS = 30, 8, 20, 9


def crowd_of(seed: int, n_clickers: int):
    """Noise of 1 and tastes of .5 about one order; the first people answer at random."""
    rng = np.random.default_rng([seed, n_clickers])
    m = rng.standard_normal(N_ITEMS)
    f = m + 0.5 * rng.standard_normal((N, N_ITEMS))
    user = np.repeat(np.arange(N), PER_PERSON)
    left, right = random_pairs(rng, len(user), N_ITEMS)
    z = (user >= n_clickers) * (f[user, left] - f[user, right]) + rng.standard_normal(len(user))
    return {"user": user, "left": left, "right": right}, np.where(z > 0, 1, -1), m


GIVEN = {"strength": 30.0, "variance": 0.25, "consensus_variance": 1.0, "calibration": None, "n_jobs": 1}
FRAME, OUTCOME, TRUE = crowd_of(1, N_CLICKERS)


@pytest.fixture(scope="module")
def model():
    """Not to be changed."""
    return Population(clickers=0.3, consistency=0.25, **GIVEN).fit(FRAME, OUTCOME)


def slope(model) -> float:
    mean, true = model.utility_distribution()[0], TRUE - TRUE.mean()
    return float((mean - mean.mean()) @ true / (true @ true))


def test_people_say_who_clicks(model):
    chance = model.people()["clicks_at_random"].to_numpy()
    assert chance[:N_CLICKERS].mean() > chance[N_CLICKERS:].mean() + 0.4
    said = "\n".join(model.describe())
    assert "seem to click at random" in said
    assert "More than half" not in said
    without = Population(clickers=0.0, consistency=0.25, **GIVEN).fit(FRAME, OUTCOME)
    assert without.people()["clicks_at_random"].null_count() == N
    assert slope(without) < 0.8 * slope(model)


def test_most_of_a_crowd_may_click():
    frame, outcome, _ = crowd_of(2, 24)
    model = Population(clickers=0.8, consistency=0.0, **GIVEN).fit(frame, outcome)
    assert "More than half" in "\n".join(model.describe())


def test_a_unit_moves_no_prediction(model):
    asked = {"user": [0, 12, 12, 20, 99], "left": [0, 1, 2, 3, 4], "right": [5, 6, 7, 4, 0]}
    again = copy.copy(model)
    again.posterior_ = model.posterior_.in_unit(2.5)
    with pytest.warns(UserWarning, match="without answers"):
        expected, found = model.predict_proba(asked), again.predict_proba(asked)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    mean, C = model.utility_distribution()
    moved, D = again.utility_distribution()
    np.testing.assert_allclose(moved, 2.5 * mean, rtol=1e-12)
    np.testing.assert_allclose(D, 6.25 * C, atol=1e-12)


def test_what_people_differ_widens_boards_and_no_prediction(model):
    narrow = copy.deepcopy(model)
    narrow.posterior_ = replace(model.posterior_, C_m=model.posterior_.C_answers, C_answers=None)
    assert (narrow.utilities()["sd"] < model.utilities()["sd"]).any()
    asked = {"user": [0, 12, 20, 99], "left": [0, 1, 2, 4], "right": [5, 6, 7, 0]}
    for _ in range(2):
        with pytest.warns(UserWarning, match="without answers"):
            np.testing.assert_allclose(model.predict_proba(asked), narrow.predict_proba(asked), rtol=1e-12)
        model, narrow = copy.deepcopy(model), copy.deepcopy(narrow)
        for one in (model, narrow):
            one.update(user=12, left=1, right=3, outcome=1)


def test_who_clicks_is_predicted_as_chance(model):
    best, worst = int(TRUE.argmax()), int(TRUE.argmin())
    chance = model.people()["clicks_at_random"].to_numpy()
    asked = {"user": [int(chance.argmax()), int(chance.argmin())], "left": [best] * 2, "right": [worst] * 2}
    clicks, careful = model.predict_proba(asked)[:, 0]
    assert abs(clicks - 0.5) < 0.15
    assert careful > 0.8


def test_updates_tell_of_clicking_in_any_order_and_come_back(model):
    again, other = copy.deepcopy(model), copy.deepcopy(model)
    order = np.argsort(-TRUE).tolist()
    pairs = [(order[0], order[-1]), (order[1], order[-2]), (order[0], order[-2]), (order[2], order[-1])]
    for left, right in pairs:
        again.update(user=77, left=left, right=right, outcome=-1)
    for left, right in reversed(pairs):
        other.update(user=77, left=left, right=right, outcome=-1)
    one, two = (m.people().filter(m.people()["user"] == 77)["clicks_at_random"][0] for m in (again, other))
    assert one > 0.5
    assert one == pytest.approx(two, abs=CONVERGED)


def test_thresholds_of_people_after_updates_are_those_of_all_their_answers():
    """The more somebody seems to click at random, the less their answers move their threshold."""
    tied = np.where(np.arange(len(OUTCOME)) % 4 == 0, 0, OUTCOME)
    model = Population(clickers=0.3, consistency=0.0, tie_threshold=("auto", 0.5), **GIVEN).fit(FRAME, tied)
    more = {"user": np.repeat([0, 3, 20, 99], 5), "left": np.tile(np.arange(5), 4), "right": np.full(20, 6)}
    posterior = model.update(more, np.tile([1, 0, -1, 0, 0], 4))._consolidate().posterior_
    h = model.hyperparameters_
    people = replace(posterior.people, tie_factor=np.ones(posterior.n_users))
    people = with_clicks(people, h.click_rate, np.array(h.click_shares))
    sites, delta = Sites.flat(people.n_rows), model.tie_threshold_
    found = converge(people, sites, posterior.law, delta, spread=h.tie_spread, tolerance=1e-11)
    touched = model.users_.codes([0, 3, 20, 99])
    assert 0.05 < found.engaged[touched].min() < 0.95
    np.testing.assert_allclose(posterior.people.tie_factor[touched], found.tie_factor[touched], atol=CONVERGED)
    np.testing.assert_allclose(posterior.people.engaged[touched], found.engaged[touched], atol=CONVERGED)


def test_a_saved_model_is_the_same(model, tmp_path):
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.people().equals(model.people())
    np.testing.assert_array_equal(again.rank()["mean"], model.rank()["mean"])


@pytest.mark.slow
def test_a_crowd_of_thirty_moves_the_share_of_clickers():
    """Of a world with three in ten the mean over studies; the prior drew it to .13, and the unit with it."""
    found = [Population(n_jobs=1).fit(*crowd_of(seed, N_CLICKERS)[:2]).hyperparameters_.click_rate for seed in range(8)]
    assert np.mean(found) > 0.2


@pytest.mark.slow
def test_clickers_are_found_where_there_are_some_and_nowhere_else():
    found = [Population(n_jobs=1).fit(*crowd_of(seed, n)[:2]).hyperparameters_.click_rate
             for n in (0, N_CLICKERS) for seed in range(6)]  # fmt: skip
    assert sum(rate > 0.0 for rate in found[:6]) <= 1
    assert sum(rate > 0.0 for rate in found[6:]) >= 4
