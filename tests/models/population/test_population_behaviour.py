"""What the population model makes of odd, small, huge and contradicting data; every answer is finite or an error."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.stats import norm

from predilect import Population
from predilect._base.json import plain
from predilect.errors import DataError, DataWarning
from simulate import comparisons, crowd
from simulate_camps import agreeing
from tolerances import EXACT, ITERATIVE, STATISTICAL

CROWD = comparisons(crowd(1, 20, 6, 12, delta=0.4))
MANY = 100_000
GIVEN = {"strength": 10.0, "variance": 2.0, "consensus_variance": 4.0}
both = pytest.mark.parametrize("personal", [True, False])


def fitted(users, pairs: str, *, items=None, weight=None, **parameters) -> Population:
    """Pairs such as "pq" say that p was preferred to q, "p=q" that neither was."""
    words = pairs.split()
    frame = {
        "left": [word[0] for word in words],
        "right": [word[-1] for word in words],
        "winner": ["tie" if "=" in word else word[0] for word in words],
    }
    if users is not None:
        frame["user"] = list(users)
    if weight is not None:
        frame["weight"] = weight
    return Population(n_jobs=1, **parameters).fit(frame, items=items)


def scores(model: Population, user=None) -> dict:
    return dict(model.rank(user).select("item", "mean").iter_rows())


@pytest.fixture(scope="module")
def model():
    return Population(n_jobs=1, **GIVEN).fit(CROWD)


# Boards


@both
def test_the_numbers_of_a_fit_add_up(personal):
    model = Population(personal, n_jobs=1, **GIVEN).fit(CROWD)
    assert model.personal_ is personal
    assert model.n_answers_ == model._results_by_item().sum(axis=1).sum() / 2 == 240
    assert model.report_["model"] == ("population" if personal else "pooled")
    assert model.report_["fit"]["converged"]
    assert model.report_["prior"]["chosen"] == plain(model.hyperparameters_.to_dict())
    assert np.log(1 / 3) * 240 < model.log_evidence_ < 0
    assert 0.1 < model.tie_threshold_ < 1.0


def test_someone_without_answers_is_drawn_from_the_population():
    model = Population(n_jobs=1, **GIVEN).fit(CROWD.take(CROWD.user != 7))
    with pytest.warns(DataWarning, match="without answers"):
        unseen = model.utility_distribution(99)
    for one, other in zip(model.utility_distribution(7), unseen, strict=True):
        np.testing.assert_array_equal(one, other)
    assert model.rank(7)["n"].to_list() == [0] * 6
    np.testing.assert_allclose(model.utility_distribution(7)[0], model.utility_distribution()[0], atol=EXACT)
    assert np.all(np.diagonal(model.utility_distribution(7)[1]) > np.diagonal(model.utility_distribution()[1]))


@both
def test_an_equal_voice(personal):
    # Ten people prefer p a hundred times each, ninety prefer q once: people crown q, answers crown p.
    users = np.repeat([f"u{i:02d}" for i in range(100)], [100] * 10 + [1] * 90)
    model = fitted(users, "pq " * 1000 + "qp " * 90, personal=personal)
    board = model.rank()
    assert board["item"].to_list() == (["q", "p"] if personal else ["p", "q"])
    assert board["p_best"][0] > 0.99
    if personal:
        assert model.rank("u00")["item"].to_list() == ["p", "q"]


# Little data


@pytest.mark.parametrize("has_users", [True, False])
def test_one_comparison(has_users):
    model = fitted(["ann"] if has_users else None, "pq")
    assert not model.personal_
    assert (model.users_ is None) != has_users
    board = model.rank("ann" if has_users else None)
    assert board["item"].to_list() == ["p", "q"]
    assert 0.5 < board["p_best"][0] < 0.95
    assert board["tier"].to_list() == [1, 1]
    assert board["n"].to_list() == [1, 1]


def test_nobody_named_is_a_crowd_and_so_is_one_person():
    nobody, one, pooled = (
        fitted(None, "pq qr pr"),
        fitted(["u"] * 3, "pq qr pr"),
        fitted("uvw", "pq qr pr", personal=False),
    )
    for model in (nobody, one):
        assert not model.personal_
        assert model.report_["model"] == "pooled"
        assert model.rank().equals(pooled.rank())
        assert model.log_evidence_ == pooled.log_evidence_


def test_two_people():
    model = fitted("uvuv", "pq qr pr qr")
    assert model.personal_
    assert model.rank()["item"].to_list() == ["p", "q", "r"]
    own = [model.utility_distribution(user)[0] for user in "uv"]
    assert own[0][0] - own[0][1] > own[1][0] - own[1][1] > 0  # only u was asked about p and q


@both
def test_a_cycle_ends_in_a_draw(personal):
    found = scores(fitted("uuuvvv", "pq qr rp pq qr rp", personal=personal))
    np.testing.assert_allclose(list(found.values()), 0.0, atol=ITERATIVE)


@both
def test_contradicting_repeats_are_evidence_of_indifference(personal):
    model = fitted("uuuvvv", "pq qp pr pq qp pr", personal=personal, **GIVEN)
    assert model.n_answers_ == 6
    assert abs(scores(model)["p"] - scores(model)["q"]) < 0.5 * scores(model)["p"]
    silent = fitted("uv", "pr pr", items={"item": list("pqr")}, personal=personal, **GIVEN)
    pair = {"left": ["p"], "right": ["q"]}
    assert model.predict_margin(pair)[1] < silent.predict_margin(pair)[1]


@both
def test_an_item_that_always_wins_stays_finite(personal):
    board = fitted([f"u{i}" for i in range(40)], "pq pr " * 20, personal=personal).rank()
    assert board["item"][0] == "p"
    assert 1.0 < board["mean"][0] < 10.0
    assert 0.1 < board["sd"][0] < 3.0
    assert board["p_best"][0] > 0.8


# Much data


@both
@pytest.mark.parametrize("contradict", [0, 40])
def test_a_hundred_thousand_duplicates_of_one_answer(personal, contradict):
    began = time.process_time()
    won = ("qp " * contradict + "pq " * (100 - contradict)) * (MANY // 100)
    model = fitted("u" * MANY + "v", won + "qr", personal=personal)
    assert time.process_time() - began < 5.0  # a row an answer would take minutes
    assert model.n_answers_ == MANY + 1
    mean, covariance = model.utility_distribution()
    assert np.isfinite(mean).all()
    assert np.linalg.eigvalsh(covariance).max() < 20.0
    margin, var = model.predict_margin({"user": ["u"], "left": ["p"], "right": ["q"]})
    if contradict:
        assert abs(margin[0] - norm.ppf(0.6)) < STATISTICAL * np.sqrt(1 / (0.64 * MANY))
        assert var[0] < 1e-3
    else:
        assert 3.0 < margin[0] < 20.0


@both
def test_fifty_thousand_items_are_refused_at_once(personal):
    left = np.arange(50_000)
    frame = {"user": left % 7, "left": left, "right": (left + 1) % 50_000, "winner": left}
    began = time.process_time()
    with pytest.raises(DataError, match=r"there are 50000 items.*at most"):
        Population(personal, n_jobs=1).fit(frame)
    assert time.process_time() - began < 3.0


# Weights


def test_fractions_of_an_answer():
    model = fitted("uv", "pq qr", weight=[0.5, 2.5], personal=False)
    assert dict(model.rank().select("item", "n").iter_rows()) == {"p": 0.5, "q": 3.0, "r": 2.5}
    with pytest.raises(DataError, match=r"1 rows have a weight below 1.*personal=False"):
        fitted("uv", "pq qr", weight=[0.5, 2.5])
    assert np.isfinite(fitted("uv", "pq qr", weight=[1.5, 2.5]).log_evidence_)


@pytest.mark.parametrize("features", [None, {"item": list(range(6)), "x": [0.0, 1.0, 2.0, 4.0, 3.0, 1.0]}])
def test_people_who_hardly_differ_are_said_to_have_the_crowds_ranking(features):
    told = []
    for variance in (2e-4, 0.5):
        settings = {"strength": 1e4, "variance": variance, "consistency": 0.0, "clickers": 0.0}
        basis = "items" if features is None else "attributes"
        model = Population(basis=basis, calibration=None, n_jobs=1, **settings)
        told += [" ".join(model.fit(comparisons(agreeing(0)), items=features).describe())]
    assert "People hardly differ: in the difference of two items by 0.0" in told[0]
    assert "Everybody's ranking is nearly the crowd's" in told[0]
    assert "hardly differ" not in told[1]


@pytest.mark.slow
def test_people_who_cannot_be_told_apart_are_not_taken_for_one_crowd():
    """Tastes of .7, of which six answers of each say little: own intervals held .38 in crowds taken for one."""
    held = []
    for seed in range(8):
        rng = np.random.default_rng([seed, 5])
        f = 0.7 * rng.standard_normal(8) + 0.7 * rng.standard_normal((30, 8))
        user, left = np.repeat(np.arange(30), 6), rng.integers(8, size=180)
        right = (left + rng.integers(1, 8, size=180)) % 8
        z = f[user, left] - f[user, right] + rng.standard_normal(180)
        model = Population(n_jobs=1).fit({"user": user, "left": left, "right": right}, np.sign(z))
        i, j = np.triu_indices(8, 1)
        own = []
        for u in range(0, 30, 3):
            mean, C = model.utility_distribution(u)
            off = mean[i] - mean[j] - f[u, i] + f[u, j]
            own.append(np.mean(np.abs(off) < 1.96 * np.sqrt(C[i, i] + C[j, j] - 2.0 * C[i, j])))
        held.append(np.mean(own))
    assert min(held) > 0.5
    assert np.mean(held) > 0.8


def test_people_of_one_mind_are_fitted_where_features_leave_nothing_to_the_items():
    """24 items of 3 x 2 kinds: their prior covariance has rank 6, and J is finite only by jitter."""
    rows = crowd(3, 20, 24, 12)
    items = {"item": list(range(24)), "x": [float(i % 3) for i in range(24)], "z": [float(i % 2) for i in range(24)]}
    one_mind = {"strength": 1e4, "variance": 1e-4, "consensus_variance": 4.0, "feature_weight": 1.0}
    model = Population(basis="items", consistency=0.0, n_jobs=1, **one_mind).fit(comparisons(rows), items=items)
    assert model.report_["fit"]["iterations"] < 20
