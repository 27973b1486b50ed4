"""People's weights on the simplex, against SciPy's optimiser and sums in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from gaspk_weights import objective_of, standing
from predilect._base.shards import workers
from predilect.errors import DataError, PredilectError
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.dirichlet import open_weights
from predilect.papers.gaspk.em.weights import heuristic_weights, likeliest_weights, random_weights
from tolerances import CONVERGED, EXACT, ITERATIVE, STATISTICAL

N_USERS, N_POINTS, N_C = 12, 60, 4
TIES = 0.4


def columns(user, point, outcome, weight, n_users) -> TradeOffAnswers:
    """Rows as given: equal ones stay apart."""
    return TradeOffAnswers(user, point, outcome, weight, n_users, int(point.max(initial=-1)) + 1)


@dataclass(frozen=True)
class Problem:
    answers: TradeOffAnswers
    F: np.ndarray
    delta: float


def problem(seed=0, *, delta=0.0, n_users=N_USERS, n_c=N_C, most=50, scale=1.5) -> Problem:
    """Answers of people with weights of their own; the last has none."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n_users - 1), rng.integers(1, most, n_users - 1))
    point = rng.integers(N_POINTS, size=len(user))
    F = scale * rng.standard_normal((N_POINTS, n_c))
    rng.standard_normal((N_POINTS, n_c, n_c))
    z = np.sum(rng.dirichlet(np.full(n_c, 0.5), n_users)[user] * F[point], axis=1) + rng.standard_normal(len(user))
    outcome = np.where(np.abs(z) < delta, 0, np.sign(z)).astype(np.int8)
    answers = columns(user, point, outcome, rng.uniform(0.5, 3.0, len(user)), n_users)
    return Problem(answers, F, delta)


def start_of(p: Problem, seed=9):
    return random_weights(p.answers.n_users, p.F.shape[1], np.random.default_rng(seed))


def estimate(p: Problem, start=None, **options):
    start = start_of(p) if start is None else start
    return likeliest_weights(p.answers, p.F, start=start, delta=p.delta, **options)


def referee(p: Problem, user: int, gamma):
    """One person's function and its gradient, in NumPy."""
    rows = p.answers.user == user
    t, y, w = p.answers.point[rows], p.answers.outcome[rows], p.answers.weight[rows]
    F, m = p.F[t], p.F[t] @ gamma
    value, slope, _ = Probit(p.delta).at(y, m)
    return w @ value, F.T @ (w * slope)


def slsqp(p: Problem, user: int, start):
    found = minimize(
        lambda gamma: [-part for part in referee(p, user, gamma)], start, jac=True, method="SLSQP",
        bounds=[(0.0, 1.0)] * len(start), options={"ftol": 1e-15, "maxiter": 500},
        constraints={"type": "eq", "fun": lambda g: g.sum() - 1.0, "jac": lambda g: np.ones(len(g))},
    )  # fmt: skip
    return found.x, -found.fun


WITH_TIES = pytest.mark.parametrize("delta", [0.0, TIES], ids=["strict", "ties"])


@WITH_TIES
def test_weights_are_those_of_slsqp(delta):
    p = problem(delta=delta)
    found = estimate(p, tolerance=1e-12)
    assert found.n_steps <= 8  # six at most, with the right Hessian; twelve and more without one of its terms
    assert np.any(found.weights == 0.0)  # some are on the border
    for user in range(N_USERS - 1):
        x, best = slsqp(p, user, np.full(N_C, 1.0 / N_C))
        assert abs(found.value[user] - best) < ITERATIVE
        assert found.value[user] > best - CONVERGED * (1.0 + abs(best))
        if np.count_nonzero(p.answers.user == user) > 3 * N_C:  # so many determine them
            np.testing.assert_allclose(found.weights[user], x, atol=10 * ITERATIVE)


@WITH_TIES
def test_value_and_gap_are_those_of_numpy(delta):
    p = problem(1, delta=delta)
    gamma = start_of(p)
    gap = standing(p.answers, p.F, gamma, delta=delta).gap
    total = 0.0
    for user in range(N_USERS):
        value, g = referee(p, user, gamma[user])
        total += value
        n = p.answers.weight[p.answers.user == user].sum()
        assert abs(gap[user] * n - (g.max() - g @ gamma[user]) * (n > 0)) < EXACT * (1.0 + n)
    assert abs(objective_of(p.answers, p.F, gamma, delta=delta) - total) < EXACT * len(p.answers.user)
    assert gap[-1] == 0.0


@WITH_TIES
def test_weights_are_on_the_simplex_with_a_certificate(delta):
    p = problem(2, delta=delta, n_users=200, n_c=10, most=20)
    found = estimate(p)
    assert found.weights.min() >= 0.0
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, atol=EXACT)
    assert found.gap.max() <= 1e-6
    np.testing.assert_array_equal(standing(p.answers, p.F, found.weights, delta=delta).gap, found.gap)
    assert objective_of(p.answers, p.F, found.weights, delta=delta) == found.value.sum()
    # The certificate is what it says: nothing on the simplex is better by more.
    n_answers = np.bincount(p.answers.user, p.answers.weight, 200)
    for seed in range(20):
        other = estimate(p, start_of(p, seed), max_steps=0)
        assert np.all(other.value <= found.value + found.gap * n_answers + EXACT)


@pytest.mark.slow
def test_the_objective_never_falls():
    p = problem(3, delta=TIES, scale=6.0, n_users=60, n_c=8)
    corners = np.eye(8)[np.arange(60) % 8]
    for start in (start_of(p), np.full((60, 8), 0.125), corners):
        steps = [estimate(p, start, max_steps=k) for k in range(16)]
        for before, after in pairwise(steps):
            assert np.all(after.value >= before.value - 1e-13 * np.abs(before.value))
        assert steps[0].value.sum() < steps[-1].value.sum() - 1.0
        np.testing.assert_array_equal(steps[0].weights, start)
        assert estimate(p, start, max_steps=1).gap.max() > 1e-6  # too few steps show
        # From anywhere to the same height, as far as the certificate says.
        n_answers = np.bincount(p.answers.user, p.answers.weight, 60)
        assert np.all(np.abs(steps[-1].value - estimate(p).value) <= ITERATIVE * n_answers)


ESTIMATORS = {
    "heuristic": lambda p: heuristic_weights(p.answers, p.F, delta=p.delta),
    "exact": lambda p: estimate(p, np.full((p.answers.n_users, p.F.shape[1]), 1.0 / p.F.shape[1])).weights,
}


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    return ESTIMATORS[request.param]


def test_without_answers_weights_are_uniform(estimator):
    p = problem(7)
    assert np.all(estimator(p)[-1] == 1.0 / N_C)
    nobody = columns(np.empty(0, int), np.empty(0, int), np.empty(0, np.int8), np.empty(0), 3)
    assert np.all(estimator(replace(p, answers=nobody)) == 1.0 / N_C)
    assert estimator(replace(p, answers=replace(nobody, n_users=0))).shape == (0, N_C)
    assert np.all(likeliest_weights(nobody, p.F, start=np.eye(N_C)[:3]).weights == 1.0 / N_C)


@pytest.mark.parametrize("alike", [True, False], ids=["one start", "starts that differ"])
def test_people_with_equal_answers_have_the_weights_they_would_have_alone(alike):
    p = problem(12, n_users=6, most=4)
    a, n = p.answers, len(p.answers.user)
    again = columns(np.append(a.user, a.user + 6), *(np.tile(c, 2) for c in (a.point, a.outcome, a.weight)), 12)
    start = start_of(p)
    starts = np.vstack([start, start if alike else start[::-1]])
    assert len(again.kinds[0]) == 6
    assert len(np.unique(again.alike(starts))) == (6 if alike else 12)
    together = estimate(replace(p, answers=again), starts)
    first, second = (estimate(p, one) for one in (starts[:6], starts[6:]))
    for part in ("weights", "value", "gap"):
        np.testing.assert_array_equal(
            getattr(together, part), np.concatenate([getattr(first, part), getattr(second, part)])
        )
    curvature = np.tile(np.linspace(0.1, 1.0, n), 2)
    open_ = open_weights(again, p.F, together.weights, curvature, 1.0)
    np.testing.assert_array_equal(open_[:6], open_weights(a, p.F, first.weights, curvature[:n], 1.0))
    np.testing.assert_array_equal(open_[6:], open_weights(a, p.F, second.weights, curvature[:n], 1.0))


def test_equal_characteristics_leave_uniform_weights(estimator):
    p = problem(11, delta=TIES)
    same = replace(p, F=np.repeat(p.F[:, :1], N_C, axis=1))
    np.testing.assert_allclose(estimator(same), 1.0 / N_C, atol=EXACT)


def test_one_characteristic_has_all_the_weight(estimator):
    assert np.all(estimator(problem(12, n_c=1)) == 1.0)


def test_who_is_good_enough_stays():
    p = problem(13)
    found = estimate(p)
    again = estimate(p, found.weights)
    assert again.n_steps == 0
    np.testing.assert_array_equal(again.weights, found.weights)


def test_margins_beyond_forty():
    for scale in (40.0, 1e4):
        p = problem(14, delta=TIES, scale=scale, n_users=60)
        for start in (start_of(p), np.eye(N_C)[np.arange(60) % N_C]):
            found = estimate(p, start)
            assert np.isfinite(found.value).all()
            assert found.gap.max() <= 1e-6


def test_the_heuristic_is_a_softmax_of_summed_logarithms():
    p = problem(15, delta=TIES)
    a = p.answers
    likelihood = Probit(TIES)
    for user in range(N_USERS - 1):
        rows = a.user == user
        score = [a.weight[rows] @ likelihood.at(a.outcome[rows], p.F[a.point[rows], c])[0] for c in range(N_C)]
        expected = np.exp(score - np.max(score))
        weights = heuristic_weights(a, p.F, delta=TIES)[user]
        np.testing.assert_allclose(weights, expected / expected.sum(), atol=EXACT)


@pytest.mark.parametrize("delta", [0.0, TIES])
def test_the_heuristic_looks_at_each_trade_off_once_and_finds_the_same(delta):
    p = problem(15, delta=delta)
    a = p.answers
    by_point = TradeOffAnswers.of(a.user, a.point, a.outcome, a.weight, n_users=a.n_users, n_points=len(p.F))
    found = heuristic_weights(by_point, p.F, delta=delta)
    np.testing.assert_allclose(found, heuristic_weights(a, p.F, delta=delta), atol=EXACT)


@pytest.mark.slow
def test_a_million_answers_of_one_person_are_finite():
    rng = np.random.default_rng(16)
    n = 1_000_000
    user, point = np.repeat([0, 1], [n, 1]), rng.integers(N_POINTS, size=n + 1)
    outcome = rng.choice(np.array([-1, 1], dtype=np.int8), n + 1)
    F = 3.0 * rng.standard_normal((N_POINTS, N_C))
    p = Problem(columns(user, point, outcome, np.ones(n + 1), 2), F, 0.0)
    heuristic = heuristic_weights(p.answers, F)
    assert np.isfinite(heuristic).all()
    np.testing.assert_allclose(heuristic.sum(axis=1), 1.0, atol=EXACT)
    found = estimate(p)
    assert found.gap.max() <= 1e-6
    assert np.isfinite(found.value).all()


@pytest.mark.parametrize(("n_answers", "largest"), [(3, 0.34), (10, 0.60), (30, 0.78), (100, 0.89)])
def test_heuristic_weights_saturate_on_noise(n_answers, largest):
    rng = np.random.default_rng(17)
    n_users = 1500
    n = n_users * n_answers
    outcome = rng.choice(np.array([-1, 1], dtype=np.int8), n)
    answers = columns(np.repeat(np.arange(n_users), n_answers), np.arange(n), outcome, np.ones(n), n_users)
    most = heuristic_weights(answers, rng.standard_normal((n, 10))).max(axis=1)
    # The published means have two digits.
    assert abs(most.mean() - largest) < STATISTICAL * most.std() / np.sqrt(n_users) + 0.005


def test_random_weights_depend_on_the_person_alone():
    few, many = (random_weights(n, N_C, np.random.default_rng(0)) for n in (5, 2000))
    np.testing.assert_array_equal(few, many[:5])
    assert not np.allclose(many, random_weights(2000, N_C, np.random.default_rng(1)))
    np.testing.assert_allclose(many.sum(axis=1), 1.0, atol=EXACT)
    assert many.min() > 0.0
    # Each of a Dirichlet(1, ..., 1): mean 1/k, variance (k - 1)/(k² (k + 1)).
    variance = (N_C - 1) / (N_C**2 * (N_C + 1))
    assert np.all(np.abs(many.mean(axis=0) - 1.0 / N_C) < STATISTICAL * np.sqrt(variance / 2000))
    assert np.all(np.abs(many.var(axis=0) / variance - 1.0) < 0.2)


def test_any_number_of_threads_gives_the_same_bits():
    p = problem(18, delta=TIES, n_users=4000)
    one = estimate(p, max_steps=2)
    with workers(3) as executor:
        several = estimate(p, max_steps=2, executor=executor)
        assert objective_of(p.answers, p.F, one.weights, delta=TIES, executor=executor) == objective_of(
            p.answers, p.F, one.weights, delta=TIES
        )
    np.testing.assert_array_equal(several.weights, one.weights)
    np.testing.assert_array_equal(several.value, one.value)
    # Nor does a person's result depend on the others.
    few = p.answers.user < 7
    a = p.answers
    alone = replace(p, answers=columns(a.user[few], a.point[few], a.outcome[few], a.weight[few], 7))
    np.testing.assert_array_equal(estimate(alone, start_of(p)[:7], max_steps=2).weights, one.weights[:7])


def test_what_does_not_fit_is_refused():
    p = problem(19)
    a, start = p.answers, start_of(p)
    for bad, message in [
        (replace(a, n_points=N_POINTS + 1), "at 61 points"),
        (replace(a, outcome=0 * a.outcome), "ties"),
    ]:
        with pytest.raises(DataError, match=message):
            likeliest_weights(bad, p.F, start=start)
        with pytest.raises(DataError, match=message):
            heuristic_weights(bad, p.F)
    for bad, message in [(start[1:], "shape"), (2.0 * start, "add up to 1"), (start * np.nan, "add up to 1")]:
        with pytest.raises(DataError, match=message):
            likeliest_weights(a, p.F, start=bad)
    F = p.F.copy()
    F[3, 1] = np.inf
    with pytest.raises(PredilectError, match="1 values of the characteristics are not finite"):
        heuristic_weights(a, F)


def test_columns_that_nobody_may_change():
    p = problem(20)
    for column in (p.F, p.answers.point, p.answers.outcome, p.answers.weight):
        column.setflags(write=False)
    start = start_of(p)
    start.setflags(write=False)
    np.testing.assert_array_equal(estimate(p, start).weights, estimate(problem(20), start_of(p)).weights)
