"""Fitting the population: what is maximised, with which gradient, when it stops, and the special cases it must meet."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from predilect.inference.gaussian.design import Sites
from predilect.inference.latent.pooled import fit_pooled
from predilect.inference.people.empirical_bayes import consensus_step, covariance_step
from predilect.inference.people.expectation import converge
from predilect.inference.people.law import Law
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population import maximisation as search
from predilect.models.population.fit import PopulationPrior, fit_population
from referees.dense_population import crowd_ep, gaussian_integral, person_ep
from simulate import answers, comparisons, crowd, laid_out, random_covariance, random_pairs
from tolerances import CONVERGED, EXACT, ITERATIVE, STATISTICAL

TIGHT = {"tolerance": 1e-9, "max_iter": 1500}


def alike(n_items: int, feature_weight: float = 0.5) -> np.ndarray:
    """A K₀ as item features make it: neighbours on a line are alike."""
    x = np.arange(n_items) / 2.0
    K = feature_weight * np.exp(-0.5 * (x[:, None] - x) ** 2)
    np.fill_diagonal(K, 1.0)
    return K


def log_prior(prior: PopulationPrior, Sigma, m) -> float:
    """The terms of J that hold no answer, as population.md section 4 prints them."""
    spread = np.linalg.slogdet(Sigma)[1] + prior.variance * np.trace(prior.K @ np.linalg.inv(Sigma))
    return -0.5 * prior.strength * spread - 0.5 * m @ np.linalg.solve(prior.consensus_variance * prior.K, m)


STRICT = crowd(1, 25, 6, 10)
TIES = crowd(2, 30, 5, 12, delta=0.5)
FEW = crowd(3, 4, 7, 15, consensus_sd=2.0)
CROWDS = {"strict": STRICT, "ties": TIES, "few people": FEW}
PRIOR = {name: PopulationPrior(alike(rows.n_items), 8.0, 2.0, 4.0) for name, rows in CROWDS.items()}


@pytest.fixture(scope="module", params=CROWDS)
def problem(request):
    rows, prior = CROWDS[request.param], PRIOR[request.param]
    people = laid_out(rows)
    return rows, people, prior, fit_population(people, prior, **TIGHT)


@pytest.fixture
def ascents(monkeypatch):
    """The number of coordinates of each search by L-BFGS."""
    found, ascent = [], search.ascent

    def counted(objective, known, reach, n_pairs):
        found.append(len(reach))
        return ascent(objective, known, reach, n_pairs)

    monkeypatch.setattr(search, "ascent", counted)
    return found


def test_the_objective_is_j(problem):
    rows, _, prior, state = problem
    people = crowd_ep(state.Sigma, state.m, rows, state.delta)
    evidence = sum(person.evidence_by_integral for person in people)
    assert abs(state.evidence - evidence) < ITERATIVE
    assert abs(state.objective - evidence - log_prior(prior, state.Sigma, state.m)) < ITERATIVE


def test_a_search_that_ends_at_its_tolerance_has_converged(monkeypatch):
    people, prior = laid_out(STRICT), PRIOR["strict"]
    n = people.n_answers
    tolerance = next(t for t in np.linspace(1e-5, 2e-5, 1000).tolist() if t * n / n > t)
    end = search.Search.fixed_point
    monkeypatch.setattr(
        search.Search,
        "fixed_point",
        lambda self, point, enough, most: (end(self, point, enough, most)[0], enough, False),
    )
    assert fit_population(people, prior, tolerance=tolerance, kept=False).report.converged


@pytest.mark.parametrize("n_points", [0, 1])
def test_a_search_whose_first_steps_lead_nowhere_starts_again(n_points, monkeypatch):
    people, prior = laid_out(STRICT), PRIOR["strict"]
    expected = fit_population(people, prior, kept=False)
    ascent, n_calls = search.ascent, 0

    def cut_short(*given):
        nonlocal n_calls
        n_calls += 1
        return itertools.islice(ascent(*given), n_points if n_calls == 1 else None)

    monkeypatch.setattr(search, "ascent", cut_short)
    found = fit_population(people, prior, kept=False)
    assert n_calls > 1
    assert found.report.converged
    assert found.objective == pytest.approx(expected.objective, abs=1e-4 * people.n_answers)


def test_where_the_prior_outweighs_the_people_closed_form_steps_find_what_lbfgs_finds(ascents, monkeypatch):
    n_items = 12
    people = laid_out(crowd(9, 5, n_items, 30, delta=0.4))
    prior = PopulationPrior(alike(n_items), 15.0, 0.5, 2.0)
    by_lbfgs = fit_population(people, prior, **TIGHT)
    assert ascents
    ascents.clear()
    monkeypatch.setattr(search, "_FUNCTIONS_FOR_FIXED_POINT", n_items)
    by_steps = fit_population(people, prior, **TIGHT)
    assert not ascents
    assert by_steps.report.converged
    assert abs(by_steps.objective - by_lbfgs.objective) < ITERATIVE
    for name in ("m", "Sigma", "C_m", "delta"):
        np.testing.assert_allclose(getattr(by_steps, name), getattr(by_lbfgs, name), atol=1e-4, err_msg=name)
    # More people than the prior is worth: L-BFGS again.
    fit_population(laid_out(crowd(9, 16, n_items, 30, delta=0.4)), prior)
    assert ascents


def test_where_the_prior_outweighs_the_people_a_search_that_holds_the_covariance_finds_the_same(ascents, monkeypatch):
    # Own consistencies and thresholds make plain steps slow: L-BFGS takes over, with and without Σ among what it moves.
    n_items = 12
    people = laid_out(crowd(9, 5, n_items, 30, delta=0.4))
    prior = PopulationPrior(alike(n_items), 15.0, 0.5, 2.0, consistency_spread=0.5, tie_spread=0.5)
    moved = fit_population(people, prior, **TIGHT)
    n_moved = ascents[0]
    ascents.clear()
    monkeypatch.setattr(search, "_FUNCTIONS_FOR_FIXED_POINT", n_items)
    held = fit_population(people, prior, **TIGHT)
    assert ascents
    assert n_moved - max(ascents) == n_items * (n_items + 1) // 2
    assert held.report.converged
    assert abs(held.objective - moved.objective) < ITERATIVE
    for name in ("m", "Sigma", "C_m", "delta", "log_consistency", "log_tie_factor"):
        np.testing.assert_allclose(getattr(held, name), getattr(moved, name), atol=1e-4, err_msg=name)


def test_the_consensus_step_is_the_newton_step_of_j(problem):
    # With sites fixed J is quadratic in m; its dense form gives maximum and curvature without r and H.
    rows, people, prior, state = problem
    rng = np.random.default_rng(3)
    m0 = state.m + rng.standard_normal(rows.n_items)
    sites = Sites.flat(people.n_rows)
    current = converge(people, sites, Law(state.Sigma, m0), state.delta)
    precision = np.linalg.inv(prior.consensus_variance * prior.K)
    designs = [person.X for person in crowd_ep(state.Sigma, m0, rows, state.delta)]

    def quadratic(m):
        value = -0.5 * m @ precision @ m
        for u, X in enumerate(designs):
            own = slice(people.answer_ptr[u], people.answer_ptr[u + 1])
            value += gaussian_integral(state.Sigma, m, X, sites.precision[own], sites.linear[own])
        return value

    n = rows.n_items
    E = 2.0 * np.eye(n)
    centre = quadratic(m0)
    up, down = (np.array([quadratic(m0 + sign * e) for e in E]) for sign in (1, -1))
    gradient = (up - down) / 4.0
    hessian = np.array([[quadratic(m0 + a + b) for b in E] for a in E]) - up[:, None] - up + centre
    hessian /= 4.0
    m, C_m = consensus_step(m0, precision, current)
    np.testing.assert_allclose(m, m0 - np.linalg.solve(hessian, gradient), atol=ITERATIVE)
    np.testing.assert_allclose(C_m, -np.linalg.inv(hessian), atol=ITERATIVE)


@pytest.mark.parametrize("delta", [0.0, 0.5])
def test_without_differences_between_people_it_is_the_pooled_model(delta):
    # Σ -> 0 by a prior that allows nothing else. What is left of Σ (1e-8) moves m by about as much.
    rows = crowd(5, 40, 5, 9, delta=delta)
    prior = PopulationPrior(alike(5), 1e8, 1e-8, 3.0)
    state = fit_population(laid_out(rows), prior, delta=delta, **TIGHT)
    pooled = fit_pooled(comparisons(rows), prior.K, 3.0, delta=delta)
    np.testing.assert_allclose(state.m, pooled.m, atol=ITERATIVE)
    np.testing.assert_allclose(state.C_m, pooled.C_m, atol=ITERATIVE)


def test_known_population_is_one_gaussian_process_a_person():
    # m = 0 with certainty and Σ fixed; nobody learns from anybody.
    rows = crowd(6, 5, 6, [3, 9, 1, 14, 6], delta=0.4)
    people = laid_out(rows)
    Sigma = random_covariance(np.random.default_rng(1), 6, 3.0)
    sites = Sites.flat(people.n_rows)
    converge(people, sites, Law(Sigma, np.zeros(6)), 0.4)
    posterior = PopulationPosterior(np.zeros(6), np.zeros((6, 6)), Sigma, people, sites)
    rng = np.random.default_rng(2)
    left, right = random_pairs(rng, 40, 6)
    users = rng.integers(5, size=40)
    mean, var = posterior.margins(users, left, right)
    for u in range(5):
        own, asked = rows.user == u, users == u
        person = person_ep(Sigma, np.zeros(6), rows.left[own], rows.right[own], rows.outcome[own], delta=0.4)
        f, S = person.utilities(np.zeros(6), np.zeros((6, 6)))
        a, b = left[asked], right[asked]
        np.testing.assert_allclose(mean[asked], f[a] - f[b], atol=CONVERGED)
        np.testing.assert_allclose(var[asked], S[a, a] + S[b, b] - 2 * S[a, b], atol=CONVERGED)


def test_the_tie_threshold_is_recovered():
    # Within four standard errors, these from the curvature of the profile of J over δ.
    truth = 0.6
    people = laid_out(crowd(7, 400, 5, 20, delta=truth, person_sd=0.8))
    prior = PopulationPrior(np.eye(5), 5.0, 1.0, 1.0)
    best = fit_population(people, prior, tolerance=1e-8)
    h = 0.03
    sides = [fit_population(people, prior, delta=best.delta + k * h, start=best, tolerance=1e-8) for k in (-1, 1)]
    # the learned threshold is a maximum of the profile ...
    assert max(side.objective for side in sides) < best.objective
    curvature = (sides[0].objective - 2 * best.objective + sides[1].objective) / h**2
    standard_error = 1.0 / math.sqrt(-curvature)
    assert 0.003 < standard_error < 0.05
    assert abs(best.delta - truth) < STATISTICAL * standard_error


def test_a_start_elsewhere_and_a_given_threshold_are_respected():
    people, prior = laid_out(TIES), PRIOR["ties"]
    fixed = fit_population(people, prior, delta=0.8)
    assert fixed.delta == 0.8
    # A strict data set has no threshold to learn.
    assert fit_population(laid_out(STRICT), PRIOR["strict"]).delta == 0.0
    free = fit_population(people, prior, **TIGHT)
    assert free.objective >= fixed.objective


ODD = {
    "one person": answers([0] * 6, [0, 0, 1, 2, 3, 3], [1, 2, 2, 3, 0, 1], [1, 1, 1, -1, -1, 1], n_items=4),
    "one answer": answers([0], [0], [1], [1], n_items=2),
    "one tie": answers([0], [0], [1], [0], n_items=2),
    "only ties": answers([0, 0, 1], [0, 1, 0], [1, 2, 2], [0, 0, 0], n_items=3),
    "everybody the same": answers(
        np.repeat(np.arange(30), 3), [0, 1, 0] * 30, [1, 2, 2] * 30, [1, 1, 1] * 30, n_items=3
    ),
    "fewer people than items": crowd(9, 3, 12, 8),
    "one answer each": crowd(10, 50, 4, 1),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_crowds_give_a_sound_fit(name):
    rows = ODD[name]
    people = laid_out(rows)
    n = rows.n_items
    prior = PopulationPrior(np.eye(n), 5.0, 2.0, 2.0)
    state = fit_population(people, prior)
    assert state.report.converged
    assert np.isfinite(state.objective)
    assert np.linalg.eigvalsh(state.Sigma).min() > 0
    assert np.linalg.eigvalsh(state.C_m).min() > 0
    # No answer says anything about the mean of the utilities, so the prior holds it at zero.
    assert abs(state.m.mean()) < ITERATIVE * 10
    # and what is not a maximum of J has a better point nearby
    current = converge(people, state.sites.copy(), Law(state.Sigma, state.m), state.delta)
    m, _ = consensus_step(state.m, np.eye(n) / 2.0, current)
    Sigma = covariance_step(state.Sigma, current, people.n_users, 2.0 * np.eye(n), 5.0)
    better = converge(people, state.sites.copy(), Law(Sigma, m), state.delta).evidence + log_prior(prior, Sigma, m)
    assert (better - state.objective) / people.n_answers < 1e-4


def test_those_who_all_agree_are_believed_to_differ_less():
    same = ODD["everybody the same"]
    half = answers(same.user, same.left, same.right, np.where(same.user < 15, 1, -1), n_items=3)
    prior = PopulationPrior(np.eye(3), 2.0, 1.0, 1.0)
    one, other = fit_population(laid_out(same), prior), fit_population(laid_out(half), prior)
    contrast = np.array([1.0, 0.0, -1.0])
    assert one.m[0] > one.m[1] > one.m[2]
    assert abs(contrast @ other.m) < ITERATIVE * 1000  # a crowd split in half has no consensus
    assert contrast @ other.Sigma @ contrast > 3 * contrast @ one.Sigma @ contrast


def test_someone_without_answers_changes_nothing():
    rows = crowd(12, 20, 4, 6)
    more = answers(rows.user + 2, rows.left, rows.right, rows.outcome, n_items=4, n_users=25)
    prior = PopulationPrior(np.eye(4), 5.0, 1.0, 1.0)
    one, other = fit_population(laid_out(rows), prior), fit_population(laid_out(more), prior)
    np.testing.assert_allclose(one.m, other.m, atol=EXACT)
    np.testing.assert_allclose(one.Sigma, other.Sigma, atol=EXACT)


@pytest.mark.parametrize(
    ("seed", "n_users", "n_items", "per_person"),
    [(4, 5, 10, 40), (3, 5, 20, 100), pytest.param(4, 5, 50, 300, marks=pytest.mark.slow)],
)
def test_the_search_survives_answers_that_contradict_each_other_ten_thousand_times(seed, n_users, n_items, per_person):
    # Every seventh answer is repeated 10⁴ times, whatever it said: J is steep, and a line search that leaps along it
    # must come back when it lands where J cannot be computed.
    rows = crowd(seed, n_users, n_items, per_person, delta=0.1)
    rows.weight[::7] = 1e4
    people = laid_out(rows)
    state = fit_population(people, PopulationPrior(np.eye(n_items), 10.0, 16.0, 16.0), max_iter=1000)
    assert np.isfinite(state.objective)
    assert np.linalg.eigvalsh(state.Sigma).min() > 0
    assert state.report.converged


def test_sigma_is_the_priors_where_that_outweighs_the_people_a_hundred_times():
    """With many functions: what an M step would move is less than 1 %, and utilities do not see it."""
    rows = crowd(7, 3, 120, 40)
    people, K = laid_out(rows), np.eye(120)
    below, above = (fit_population(people, PopulationPrior(K, times * 3.0, 1.0, 1.0)) for times in (99.9, 100.0))
    np.testing.assert_array_equal(above.Sigma, K)
    assert 0.0 < np.abs(below.Sigma - K).max() < 0.01
    np.testing.assert_allclose(above.m, below.m, atol=0.01 * np.abs(below.m).max())
