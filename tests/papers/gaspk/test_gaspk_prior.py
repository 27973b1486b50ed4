"""The prior of people's weights: its mode, what it leaves open, what that costs, and starts without a seed."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from gaspk_weights import objective_of
from predilect import GaSPK
from predilect.inference.gaussian.kernels import Antisymmetric, Scaled, Stationary
from predilect.inference.likelihoods.probit import tilted
from predilect.inference.likelihoods.views import Probit
from predilect.models.saving import _checksum
from predilect.papers.gaspk.calibration import HeldOutMargins, calibrated
from predilect.papers.gaspk.choosing import search, variances_by_weights, widest
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.dirichlet import (
    concentration_of,
    open_weights,
    simplex_directions,
    squared_length,
    weights_of_data,
)
from predilect.papers.gaspk.em.fit import best_start, run
from predilect.papers.gaspk.em.mode import Newton, find_mode, state_at
from predilect.papers.gaspk.em.weights import heuristic_weights, likeliest_weights, random_weights
from predilect.papers.gaspk.settings import FitSettings
from simulate import random_pairs
from tolerances import CONVERGED, EXACT, ITERATIVE, STATISTICAL
from tradeoff_problems import problem

ALPHA = 0.7


def posterior_of_one(answers, F, gamma, user):
    """Log-likelihood of one person's answers plus α Σ log γ."""
    mine = answers.user == user
    values = tilted(answers.outcome[mine], F[answers.point[mine]] @ gamma, 0.0, 0.0)[0]
    return float(answers.weight[mine] @ values + ALPHA * np.log(gamma).sum())


@pytest.fixture(scope="module")
def fitted():
    at = problem(n_users=6, n=80)
    F = run(at.basis, at.answers, random_weights(6, 3, np.random.default_rng(0)), FitSettings("exact")).mode.F
    gamma = likeliest_weights(at.answers, F, start=np.full((6, 3), 1 / 3), concentration=ALPHA, tolerance=1e-12).weights
    return at, F, gamma


def test_weights_under_the_prior_are_the_maximum_that_another_optimiser_finds(fitted):
    at, F, gamma = fitted
    for user in range(6):
        found = minimize(
            lambda g, u=user: -posterior_of_one(at.answers, F, g, u), np.full(3, 1 / 3), method="SLSQP",
            bounds=[(1e-9, 1.0)] * 3, constraints={"type": "eq", "fun": lambda g: g.sum() - 1.0},
            options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        np.testing.assert_allclose(gamma[user], found.x, atol=1e-5)
        assert posterior_of_one(at.answers, F, gamma[user], user) >= -found.fun - 1e-9


def test_what_is_left_open_of_weights_is_the_inverse_of_the_curvature_within_the_simplex(fitted):
    at, F, gamma = fitted
    z = np.einsum("ic,ic->i", gamma[at.answers.user], F[at.answers.point])
    precision = at.answers.weight * Probit().at(at.answers.outcome, z)[2]
    found = open_weights(at.answers, F, gamma, precision, ALPHA)
    along, step = simplex_directions(3), 1e-4
    for user in range(6):
        curvature = np.empty((2, 2))
        for i in range(2):
            for j in range(2):
                total = 0.0
                for a in (1, -1):
                    for b in (1, -1):
                        moved = gamma[user] + step * (a * along[:, i] + b * along[:, j])
                        total += a * b * posterior_of_one(at.answers, F, moved, user)
                curvature[i, j] = -total / (4.0 * step * step)
        np.testing.assert_allclose(found[user], along @ np.linalg.inv(curvature) @ along.T, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(found[user].sum(axis=1), 0.0, atol=EXACT)


def test_people_without_answers_keep_the_prior():
    at = problem(n_users=4, n=30)
    more = TradeOffAnswers(
        at.answers.user, at.answers.point, at.answers.outcome, at.answers.weight, 5, at.answers.n_points
    )
    found = run(at.basis, more, random_weights(5, 3, np.random.default_rng(0)), FitSettings("exact", concentration=2.0))
    np.testing.assert_allclose(found.gamma[4], 1 / 3, atol=1e-2)
    expected = (np.eye(3) - 1 / 3) / (2.0 * 9.0)
    np.testing.assert_allclose(found.left_open[4], expected, rtol=0.2, atol=1e-3)


def test_heuristic_weights_with_a_prior_are_an_average_with_equal_ones():
    at = problem(n_users=5, n=40)
    F = np.random.default_rng(1).normal(size=(at.answers.n_points, 3))
    plain = heuristic_weights(at.answers, F)
    n = np.bincount(at.answers.user, at.answers.weight, 5)[:, None]
    np.testing.assert_allclose(
        heuristic_weights(at.answers, F, concentration=2.0), (n * plain + 6.0 * np.full((5, 3), 1 / 3)) / (n + 6.0),
        atol=EXACT,
    )  # fmt: skip


def test_a_large_concentration_makes_people_alike_and_a_small_one_is_maximum_likelihood(fitted):
    at, F, _ = fitted
    start = np.full((6, 3), 1 / 3)
    alike = likeliest_weights(at.answers, F, start=start, concentration=1e6).weights
    np.testing.assert_allclose(alike, 1 / 3, atol=1e-4)
    free = likeliest_weights(at.answers, F, start=start, tolerance=1e-10).weights
    nearly = likeliest_weights(at.answers, F, start=start, concentration=1e-7).weights
    assert objective_of(at.answers, F, nearly) > objective_of(at.answers, F, free) - 1e-4


def test_a_penalised_mode_has_no_slope():
    at = problem(n_users=6, n=80)
    rng = np.random.default_rng(3)
    gamma = rng.dirichlet(np.ones(3), 6)
    roots = rng.normal(size=(at.answers.n_points, 3, 3))
    Q = roots @ roots.transpose(0, 2, 1)
    low = np.tril_indices(3)
    found = find_mode(at.basis, at.answers, gamma, Probit(), Newton(), penalty=Q[:, *low], tolerance=1e-12)

    def objective(w):
        F = at.basis.forward(w)
        z = np.einsum("ic,ic->i", gamma[at.answers.user], F[at.answers.point])
        value = at.answers.weight @ Probit().at(at.answers.outcome, z)[0]
        return value - 0.5 * np.sum(w * w) - 0.5 * np.einsum("tc,tcd,td->", F, Q, F)

    np.testing.assert_allclose(objective(found.w), found.psi, rtol=1e-10)
    for _ in range(10):
        step = 1e-5 * rng.normal(size=found.w.shape)
        assert abs(objective(found.w + step) - objective(found.w - step)) < 1e-9
        assert objective(found.w + 100 * step) < found.psi


@pytest.mark.parametrize("estimator", ["heuristic", "exact"])
def test_where_the_iteration_stops_with_a_prior_it_stays(estimator):
    at = problem(n_users=8, n=120)
    settings = FitSettings(estimator, tolerance=1e-7, max_rounds=3000, concentration=1.0)
    found = best_start(at.basis, at.answers, 3, settings).em
    assert found.report.converged
    again = run(at.basis, at.answers, found.gamma, settings, start=found.mode.w)
    np.testing.assert_allclose(again.gamma, found.gamma, atol=ITERATIVE)
    np.testing.assert_allclose(again.mode.F, found.mode.F, atol=1e-4)
    assert (found.gamma > 0.0).all()
    state = state_at(at.basis, at.answers, found.gamma, Probit(), found.mode.w)
    if estimator != "heuristic":
        open_ = open_weights(at.answers, found.mode.F, found.gamma, state.precision, 1.0)
        np.testing.assert_allclose(found.left_open, open_, atol=CONVERGED)


def test_characteristics_of_people_with_few_answers_do_not_follow_noise():
    """Nobody agrees with anybody on anything: predictions of margins stay small."""
    rng = np.random.default_rng(0)
    at = problem(n_users=60, n=240)
    y = TradeOffAnswers.of(
        rng.integers(0, 60, 240), rng.integers(0, at.answers.n_points, 240), rng.choice([-1, 1], 240),
        n_users=60, n_points=at.answers.n_points,
    )  # fmt: skip
    sizes = {}
    for alpha in (0.0, 1.0):
        settings = FitSettings("exact", concentration=alpha)
        sizes[alpha] = best_start(at.basis, y, 3, settings).em.mode.margin.std()
    assert sizes[1.0] < 0.5 * sizes[0.0]


# Starts


def test_the_start_of_the_answers_follows_people_wherever_they_stand():
    at = problem(n_users=12, n=150)
    y, place = at.answers, np.random.default_rng(2).permutation(12)
    turned = TradeOffAnswers.of(place[y.user], y.point, y.outcome, y.weight, n_users=12, n_points=y.n_points)
    one, other = (weights_of_data(at.basis, rows, 4, 1.0, 0.0) for rows in (y, turned))
    np.testing.assert_allclose(other[place], one, atol=CONVERGED)
    np.testing.assert_allclose(one.sum(axis=1), 1.0, atol=EXACT)
    assert one.min() >= 0.1 / 4 - EXACT
    assert np.linalg.matrix_rank(one - one.mean(axis=0), tol=1e-3) == 3


def test_prior_sizes_are_those_of_a_dirichlet():
    draws = np.random.default_rng(0).dirichlet(np.full(5, 2.0), 200_000)
    np.testing.assert_allclose(squared_length(5, 2.0), np.square(draws).sum(axis=1).mean(), rtol=5e-3)
    alpha = concentration_of(3, 2.0, 5)

    def common(n, a):
        return 1.0 / (n * squared_length(n, a))

    np.testing.assert_allclose(common(3, alpha), common(5, 2.0), rtol=1e-12)


# Held-out answers


def test_the_search_ends_in_the_dip_of_a_table_and_judges_no_place_twice():
    judged = set()

    def loss(i, j):
        judged.add((i, j))
        return (i - 4) ** 2 + (j - 0) ** 2 + 0.5 * (i - 4) * j

    assert search(loss, (5, 4), (1, 2)) == (4, 0)
    assert len(judged) < 20
    assert search(lambda i, j: 0.0, (1, 1), (0, 0)) == (0, 0)


def test_of_places_that_do_as_well_the_widest_prior_is_taken():
    table = np.array([[1.0, 0.9, 0.8], [0.4, 0.2, 0.1], [0.3, 0.25, 0.15], [0.4, 0.6, 0.9]])
    assert widest(lambda i, j: table[i, j], table.shape, (1, 2), 0.2) == (2, 0)
    assert widest(lambda i, j: table[i, j], table.shape, (1, 2), 0.04) == (1, 2)
    assert widest(lambda i, j: 0.0, (1, 1), (0, 0), 0.1) == (0, 0)


@pytest.mark.slow
def test_intervals_of_margins_hold_the_truth_with_few_answers_and_with_many():
    for each in (6, 15, 60):
        held = []
        for seed in range(20):
            rng = np.random.default_rng([each, seed])
            x = rng.standard_normal((12, 3))
            kernel = Antisymmetric(Scaled(Stationary(np.full(3, 2.5), "squared-exponential", "product"), 6.0))
            pairs = np.array(list(itertools.combinations(range(12), 2)))
            t = x[pairs[:, 0]] - x[pairs[:, 1]]
            F = np.linalg.cholesky(kernel(t, t) + 1e-8 * np.eye(len(t))) @ rng.standard_normal((len(t), 3))
            gamma = rng.dirichlet(np.ones(3), 40)
            user = np.repeat(np.arange(40), each)
            pair = rng.integers(len(pairs), size=len(user))
            z = np.einsum("ic,ic->i", gamma[user], F[pair])
            won = np.where(z + rng.standard_normal(len(user)) > 0.0, "left", "right")
            answers = {"user": user, "left": pairs[pair, 0], "right": pairs[pair, 1], "winner": won}
            model = GaSPK(n_jobs=1).fit(
                answers, items={"item": np.arange(12), "x": x[:, 0], "y": x[:, 1], "z": x[:, 2]}
            )
            who, about = np.repeat(np.arange(40), 10), rng.integers(len(pairs), size=400)
            mean, var = model.predict_margin({"user": who, "left": pairs[about, 0], "right": pairs[about, 1]})
            truth = np.einsum("ic,ic->i", gamma[who], F[about])
            held.append((np.abs(truth - mean) < 1.96 * np.sqrt(var)).mean())
        # Crowds differ: the standard deviation between them is some .06.
        error = STATISTICAL * np.std(held, ddof=1) / math.sqrt(len(held))
        assert 0.92 - error < np.mean(held) < 0.97 + error


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_the_share_of_the_weights_that_was_planted_is_found(share):
    rng = np.random.default_rng(0)
    mean, var, by_weights = rng.normal(size=40_000), np.full(40_000, 0.2), rng.exponential(4.0, 40_000)
    z = mean + np.sqrt(1.0 + var + share * by_weights) * rng.normal(size=40_000)
    outcome = np.where(z > 0.0, 1, -1).astype(np.int8)
    held = HeldOutMargins(outcome, mean, var, by_weights, np.ones(40_000), np.full(40_000, 5.0), 0.0)
    found, loss = calibrated(held)
    assert found.open_share == share
    assert found.spread < 1.1
    assert loss < calibrated(replace(held, by_weights=None))[1]


def test_held_out_margins_vary_by_what_is_left_open_of_weights():
    at = problem(n_users=6, n=80)
    found = best_start(at.basis, at.answers, 3, FitSettings("exact", concentration=1.0)).em
    mean = found.mode.F[at.answers.point]
    expected = np.einsum("ic,icd,id->i", mean, found.left_open[at.answers.user], mean)
    np.testing.assert_allclose(variances_by_weights(found, at.answers), expected, atol=EXACT)


# The estimator

CARS = {
    "item": [f"c{k}" for k in range(9)],
    "price": np.repeat([1.0, 2.0, 3.0], 3),
    "doors": np.tile([3.0, 4.0, 5.0], 3),
}
QUICK = {"n_components": 3, "n_jobs": 1}


def votes(n_users=20, each=8, seed=0, mostly_left=False):
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n_users), each)
    left, right = random_pairs(rng, len(user), 9)
    utility = np.column_stack([-CARS["price"], CARS["doors"]])
    margin = ((utility[left] - utility[right]) * rng.dirichlet([1.0, 1.0], n_users)[user]).sum(axis=1)
    won = margin + 0.5 * rng.normal(size=len(user)) > 0.0 if not mostly_left else rng.random(len(user)) < 0.75
    names = np.array(CARS["item"])
    return {
        "user": [f"p{u:02d}" for u in user], "left": names[left], "right": names[right],
        "winner": np.where(won, names[left], names[right]),
    }  # fmt: skip


@pytest.mark.slow
def test_predictions_of_the_defaults_do_not_depend_on_the_seed():
    answers, asked = votes(), {k: v for k, v in votes(seed=5).items() if k != "winner"}
    one, other = (GaSPK(**QUICK, random_state=seed).fit(answers, items=CARS) for seed in (0, 1))
    np.testing.assert_array_equal(one.predict_proba(asked), other.predict_proba(asked))


def test_variances_count_what_is_left_open_of_weights():
    answers, asked = votes(), {k: v for k, v in votes(seed=5).items() if k != "winner"}
    model = GaSPK(**QUICK, variance=20.0, concentration=1.0, spread=1.0).fit(answers, items=CARS)
    posterior = model.posterior_
    without = replace(posterior, left_open=None)
    users = np.arange(20).repeat(3)
    t = model._choices.points[:3]
    codes = np.tile(np.arange(3), 20)
    mean, var = posterior.evaluations(users, t, codes)
    plain_mean, plain = without.evaluations(users, t, codes)
    at = posterior.at(t).mean[codes]
    np.testing.assert_allclose(mean, plain_mean, atol=EXACT)
    np.testing.assert_allclose(var - plain, np.einsum("qc,qcd,qd->q", at, posterior.left_open[users], at), atol=1e-8)
    assert model.predict_margin(asked)[1].min() > 0.0


@pytest.mark.parametrize(
    "settings",
    [{}, {"preset": "paper"}, {"antisymmetric": False, "concentration": 0.0, "variance": 3.0, "spread": 1.0}],
)
def test_names_of_items_and_people_say_nothing(settings):
    answers = votes()
    asked = {k: v for k, v in votes(seed=5).items() if k != "winner"}
    rng = np.random.default_rng(1)
    items = dict(zip(CARS["item"], rng.permutation([f"z{k}" for k in range(9)]).tolist(), strict=True))
    people = dict(
        zip(sorted(set(answers["user"])), rng.permutation([f"q{k:02d}" for k in range(20)]).tolist(), strict=True)
    )

    def renamed(columns):
        return {
            name: [people[str(x)] if name == "user" else items[str(x)] for x in column]
            for name, column in columns.items()
        }

    model = GaSPK(**QUICK, n_restarts=2, **settings).fit(answers, items=CARS)
    other = GaSPK(**QUICK, n_restarts=2, **settings).fit(renamed(answers), items=CARS | {"item": list(items.values())})
    np.testing.assert_allclose(other.predict_proba(renamed(asked)), model.predict_proba(asked), atol=ITERATIVE)


@pytest.mark.parametrize(
    "settings", [{"preset": "paper"}, {"antisymmetric": False, "variance": 3.0, "spread": 1.0, "concentration": 1.0}]
)
def test_what_was_shown_on_the_left_is_the_left_one(settings):
    answers = votes(each=20, mostly_left=True)
    model = GaSPK(**QUICK, **settings).fit(answers, items=CARS)
    asked = {k: v for k, v in answers.items() if k != "winner"}
    assert model.predict_proba(asked)[:, 0].mean() > 0.65
    assert model.predict_proba(asked | {"left": asked["right"], "right": asked["left"]})[:, 0].mean() > 0.65


def test_a_model_file_of_before_the_prior_still_loads(tmp_path):
    model = GaSPK(**QUICK, concentration=0.0, variance=3.0, spread=1.0, gamma="exact", n_restarts=1).fit(
        votes(), items=CARS
    )
    model.save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    document = json.loads(path.read_text())
    for name in ("concentration", "open_share"):
        del document["hyperparameters"][name]
    del document["parameters"]["concentration"]
    del document["checksum"]
    with np.load(path.parent / "arrays.npz") as arrays:
        document["checksum"] = _checksum(document, arrays)
    path.write_text(json.dumps(document))
    loaded = GaSPK.load(tmp_path / "model")
    asked = {k: v for k, v in votes(seed=5).items() if k != "winner"}
    np.testing.assert_array_equal(loaded.predict_proba(asked), model.predict_proba(asked))
