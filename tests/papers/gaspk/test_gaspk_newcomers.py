"""People with few answers: who is held out for them, how much wider their margins are, and where that counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_gaspk_prior import CARS, QUICK, votes

from predilect import GaSPK
from predilect.data import Comparisons
from predilect.data.content import keys_of_answers
from predilect.data.splits import masks_of_newcomers
from predilect.papers.gaspk.calibration import HeldOutMargins, MarginCalibration, with_newcomers
from simulate import random_pairs
from tolerances import EXACT

FACTOR, USUAL = 2.0, 16.0


def held_out(n_known, factor, seed, n=30_000):
    """Answers to whose margins characteristics add ``factor`` ** (1 - n/USUAL) times what they are said to."""
    rng = np.random.default_rng(seed)
    n_known = np.resize(np.asarray(n_known, dtype=float), n)
    mean, var, by_weights = 2.0 * rng.normal(size=n), rng.exponential(2.0, n), rng.exponential(2.0, n)
    wider = factor ** np.maximum(1.0 - n_known / USUAL, 0.0)
    z = mean + np.sqrt(1.0 + wider * var + 0.5 * by_weights) * rng.normal(size=n)
    return HeldOutMargins(np.where(z > 0.0, 1, -1).astype(np.int8), mean, var, by_weights, np.ones(n), n_known, 0.0)


@pytest.mark.parametrize(("planted", "error"), [(FACTOR, 0.15), (1.0, 0.05)])
def test_a_factor_of_newcomers_that_was_planted_is_found(planted, error):
    given = MarginCalibration(1.0, 0.5)
    found = with_newcomers(given, held_out([12, 20], planted, 0), held_out([0, 2, 8], planted, 1))
    assert found.usual == USUAL
    assert abs(found.newcomer_factor - planted) < error
    assert (found.spread, found.open_share) == (given.spread, given.open_share)


def test_newcomers_are_never_made_surer_than_others():
    assert (
        with_newcomers(MarginCalibration(1.0, 0.5), held_out([16], 1.0, 0), held_out([0], 0.5, 1)).newcomer_factor
        == 1.0
    )


def test_factors_fall_to_one_at_the_usual_number_of_answers():
    found = MarginCalibration(1.0, 1.0, 4.0, 10.0).factors(np.array([0.0, 5.0, 10.0, 50.0]))
    np.testing.assert_allclose(found, [4.0, 2.0, 1.0, 1.0], atol=EXACT)
    np.testing.assert_array_equal(MarginCalibration(1.3).factors(np.array([0.0, 5.0])), 1.0)


def some_answers(n_people=48, each=16, names=None):
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(n_people), each)
    left, right = random_pairs(rng, len(user), 30)
    names = [f"p{k:02d}" for k in range(n_people)] if names is None else names
    frame = {
        "user": [names[u] for u in user], "task": np.arange(len(user)), "left": [f"i{k:02d}" for k in left],
        "right": [f"i{k:02d}" for k in right], "winner": np.where(rng.random(len(user)) < 0.5, "left", "right"),
    }  # fmt: skip
    return Comparisons.from_frame(frame)


def masks(answers, enough, among=None):
    among = np.ones(answers.n_rows, dtype=bool) if among is None else among
    return masks_of_newcomers(answers, 0, enough, among=among, keys=keys_of_answers(answers))


def test_everybody_is_a_newcomer_once_and_keeps_up_to_half_of_the_answers():
    answers = some_answers()
    found = masks(answers, 1e9)
    out = np.array([np.bincount(answers.user[mask], minlength=48) for mask in found])
    assert ((out > 0).sum(axis=0) == 1).all()  # quarters of the people
    assert ((out > 0).sum(axis=1) == 12).all()
    kept, counts = np.unique(16 - out.max(axis=0), return_counts=True)
    np.testing.assert_array_equal(kept, [0, 2, 4, 8])
    np.testing.assert_array_equal(counts, 12)


def test_newcomers_are_held_out_until_there_are_enough_answers_and_people():
    assert len(masks(some_answers(), 100.0)) == 4  # fewer than a hundred people: all
    assert len(masks(some_answers(408, 8), 100.0)) == 1
    assert masks(some_answers(3, 40), 100.0) == []


def test_newcomers_are_of_the_people_that_there_are():
    answers = some_answers()
    among = answers.user < 20
    for mask in masks(answers, 1e9, among):
        assert not (mask & ~among).any()
        assert len(np.unique(answers.user[mask])) == 5


def test_names_do_not_say_who_is_a_newcomer():
    order = np.random.default_rng(1).permutation(48)
    first, second = some_answers(), some_answers(names=[f"p{k:02d}" for k in order])
    for one, other in zip(masks(first, 1e9), masks(second, 1e9), strict=True):
        np.testing.assert_array_equal(np.unique(order[first.user[one]]), np.unique(second.user[other]))


# The estimator


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model, and the same with another calibration: read from a file, as it follows from what is stored there."""
    answers = votes(each=16)
    few = [k for k in range(len(answers["user"])) if k // 16 >= 6 or k % 16 < 2 * (k // 16)]  # 0, 2, 4 ... 16
    model = GaSPK(**QUICK, variance=20.0, concentration=1.0, spread=1.2)
    model.fit({name: np.asarray(column)[few] for name, column in answers.items()}, items=CARS)
    wide = GaSPK(**QUICK, variance=20.0, concentration=1.0, spread=1.2)
    vars(wide).update(vars(model))
    wide.hyperparameters_ = replace(model.hyperparameters_, newcomer_factor=FACTOR, usual=8.0)
    path = tmp_path_factory.mktemp("newcomers") / "model"
    wide.save(path)
    return model, GaSPK.load(path), path


def test_margins_of_people_with_few_answers_are_wider(models):
    model, wide, _ = models
    assert model.posterior_.factors is None
    users = [f"p{k:02d}" for k in (1, 2, 3, 4, 8)]
    asked = {"user": users, "left": ["c0"] * 5, "right": ["c7"] * 5}
    (mean, var), (same, wider) = model.predict_margin(asked), wide.predict_margin(asked)
    np.testing.assert_array_equal(mean, same)
    factor = FACTOR ** np.array([0.75, 0.5, 0.25, 0.0, 0.0])
    posterior, matrix = model.posterior_, model._space.matrix
    left, right = (model.items_.codes([name]) for name in ("c0", "c7"))
    V = posterior.at(model.trade_offs_.points(matrix, left, right, antisymmetric=True).points).covariance[0]
    gamma = posterior.gamma[[model.users_.ids.index(name) for name in users]]
    by_characteristics = np.einsum("uc,cd,ud->u", gamma, V, gamma)
    np.testing.assert_allclose(wider, var + 1.2 * (factor - 1.0) * by_characteristics, rtol=EXACT)
    nobody = {"left": ["c0"], "right": ["c7"]}  # one of the people at random: with what that leaves open
    for one, other in zip(model.predict_margin(nobody), wide.predict_margin(nobody), strict=True):
        np.testing.assert_array_equal(one, other)


def test_boards_of_people_with_few_answers_are_wider(models):
    model, wide, _ = models
    users = np.arange(len(wide.posterior_.gamma))
    mean, var = wide.posterior_.centred_utilities(users)
    for user in users.tolist():
        one, other = wide.posterior_.person(user).centred_marginals()
        np.testing.assert_allclose(mean[user], one, atol=EXACT)
        np.testing.assert_allclose(var[user], other, atol=EXACT)
    before = model.posterior_.centred_utilities(users)[1]
    of_characteristics = replace(model.posterior_, left_open=None, spread=1.0).centred_utilities(users)[1]
    more = (wide.posterior_.factors[users] - 1.0)[:, None]
    assert more[0] > 0.5
    np.testing.assert_allclose(var, before + 1.2 * more * of_characteristics, rtol=EXACT)
    np.testing.assert_array_equal(var[-1], before[-1])


def test_intervals_of_trade_offs_of_people_with_few_answers_are_wider(models):
    model, wide, _ = models
    asked = {"price": [1.0], "doors": [0.0]}
    (_, before), (_, after) = (m.evaluation_distribution(asked, "p01") for m in (model, wide))
    assert after[0, 0] > before[0, 0]
    (_, before), (_, after) = (m.evaluation_distribution(asked, "p08") for m in (model, wide))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("online", [False, True])
def test_answers_that_come_later_make_a_newcomer_one_of_the_others(models, online):
    _, wide, path = models
    model = GaSPK.load(path)
    more = {"user": ["p01"] * 6 + ["new"], "left": ["c0"] * 7, "right": [f"c{k}" for k in range(1, 8)]}
    model.update(more | {"winner": more["right"]}, online=online)
    codes = [model.users_.ids.index(name) for name in ("p01", "new")]
    np.testing.assert_allclose(model.posterior_.factors[codes], [1.0, FACTOR**0.875], rtol=EXACT)
    assert wide.posterior_.factors[wide.users_.ids.index("p01")] == pytest.approx(FACTOR**0.75)
