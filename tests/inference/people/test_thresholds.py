"""Tie thresholds of people's own: gradients, where they come to rest, their spread, and when they are used."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

from objective_slopes import assert_slopes
from predilect import Calibration, Population
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.empirical_bayes import tie_spread_of, ties_step
from predilect.inference.people.ep import FIRST_REST, next_threshold
from predilect.inference.people.expectation import converge
from predilect.inference.people.person import part_of
from predilect.models.population.fit import PopulationPrior, fit_population
from simulate import comparisons, laid_out
from simulate_people import DELTA, N_ITEMS, SPREAD, differing, laws
from tolerances import CONVERGED, ITERATIVE

ROWS = differing("ties", 0, 8, [1, 4, 9, 25, 90, 3, 0, 12], SPREAD)
LAWS = laws()
LAW = LAWS[0]


def evidence(people, theta):
    sites = Sites.flat(people.n_rows)
    return converge(replace(people, tie_factor=np.exp(theta)), sites, LAW, DELTA, tolerance=1e-13)


@pytest.mark.parametrize("largest_state", [600, 0])
def test_curvature_of_the_evidence_of_one_answer(largest_state):
    # Its cavity is the prior, whatever the threshold: with the cavity held, the curvature is the whole one.
    people = replace(laid_out(ROWS), largest_state=largest_state)
    theta, step = np.linspace(-0.6, 0.5, people.n_users), 1e-5
    up, down = (evidence(people, theta + sign * step).ties[0, 0] for sign in (1, -1))
    assert abs((up - down) / (2.0 * step) - evidence(people, theta).ties[0, 1]) < ITERATIVE


@pytest.mark.slow
@pytest.mark.parametrize("largest_state", [600, 0])
def test_each_threshold_rests_where_a_search_finds_it(largest_state):
    people = replace(laid_out(ROWS), largest_state=largest_state)
    sites = Sites.flat(people.n_rows)
    found = converge(people, sites, LAW, DELTA, spread=SPREAD, tolerance=1e-10)
    theta = np.log(found.tie_factor)
    assert found.largest_change <= 5e-10
    np.testing.assert_allclose(found.ties[:, 0], theta / SPREAD**2, atol=CONVERGED)
    assert theta[6] == 0.0  # who has no answers
    for user in (0, 3, 4):

        def loss(x, user=user):
            at = theta.copy()
            at[user] = x
            return -evidence(people, at).evidence + 0.5 * x * x / SPREAD**2

        best = minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded", options={"xatol": 1e-7})
        assert abs(best.x - theta[user]) < 1e-5
    # From another start, too; where nobody answers, there is none.
    again = replace(people, tie_factor=np.full(people.n_users, 2.0))
    other = converge(again, Sites.flat(people.n_rows), LAW, DELTA, spread=SPREAD, tolerance=1e-10)
    np.testing.assert_allclose(np.log(other.tie_factor), theta, atol=CONVERGED)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("spread", [0.0, SPREAD])
def test_a_person_alone_rests_where_the_person_does_among_all(law, spread):
    people = laid_out(ROWS)
    people = replace(people, traits=np.linspace(-1.0, 1.0, people.n_users)[:, None] * np.ones(law.shift.shape[1]))
    sites = Sites.flat(people.n_rows)
    first = converge(people, sites, law, DELTA, spread=spread, tolerance=1e-10)
    assert first.largest_change <= 5e-10
    for largest_state in (600, 40, 0):  # by updates of rank one; some by dense factorisations; all
        layout = replace(people, largest_state=largest_state, shards=[(0, 5), (5, people.n_users)])
        again = Sites.flat(people.n_rows)
        found = converge(layout, again, law, DELTA, spread=spread, tolerance=1e-10)
        assert found.largest_change < 1e-9
        np.testing.assert_allclose(found.tie_factor, first.tie_factor, atol=CONVERGED)
        np.testing.assert_allclose(again.precision, sites.precision, atol=CONVERGED)
        np.testing.assert_allclose(again.linear, sites.linear, atol=CONVERGED)
        for user in range(people.n_users):
            person, expected = part_of(layout, sites, np.array([user]))
            own = Sites.flat(person.n_rows)
            found = converge(person, own, law, DELTA, spread=spread, tolerance=1e-10, sums=False)
            assert found.largest_change < 1e-9
            assert abs(found.tie_factor[0] - first.tie_factor[user]) < CONVERGED
            np.testing.assert_allclose(own.precision, expected.precision, atol=CONVERGED)
            np.testing.assert_allclose(own.linear, expected.linear, atol=CONVERGED)


def rest_of(evaluate, spread: float, tolerance: float):
    """θ by chords, of gradients and curvatures at the tolerance that each asks for; the last step, and all that."""
    theta, asked, done, memory = 0.0, [], False, (0.0, 0.0, 0.0, 1.0, FIRST_REST)
    while not done and len(asked) < 40:
        asked.append(memory[-1])
        theta, *memory, done = next_threshold(theta, *evaluate(theta, memory[-1]), spread, tolerance, *memory)
    assert done
    return theta, memory[-2], asked


def test_a_step_stops_where_it_stands_still():
    theta, last, asked = rest_of(lambda theta, _: (-4.0 * (theta - 1.0), -4.0), 1.0, 1e-12)
    assert abs(theta - 0.8) < 1e-12  # 4 (1 - θ) = θ
    assert last <= 5e-12
    assert len(asked) <= 4


def test_a_threshold_rests_with_sites_as_still_as_it_needs():
    # 6 tanh(1 - θ) - 3 (θ + .3)³ less the prior's pull; sites that may still move blur the gradient by as much.
    sign = iter([(-1) ** k for k in range(100)])

    def exact(theta):
        return 6.0 * np.tanh(1.0 - theta) - 3.0 * (theta + 0.3) ** 3

    theta, last, asked = rest_of(lambda x, tolerance: (exact(x) + next(sign) * tolerance, -4.0), 0.8, 1e-10)
    wanted = brentq(lambda x: exact(x) - x / 0.8**2, -1.0, 1.0, xtol=1e-13)
    assert abs(theta - wanted) < 1e-9
    assert last <= 5e-10
    assert asked[0] > 1e-4
    assert asked[-1] == 1e-10
    assert sorted(asked, reverse=True) == asked


def test_the_spread_is_that_of_largest_evidence():
    rng = np.random.default_rng(2)
    information = rng.uniform(0.5, 30.0, 60)
    seen = 0.6 * rng.standard_normal(60) + rng.standard_normal(60) / np.sqrt(information)

    def modes(sigma):
        return information * seen / (information + sigma**-2)

    def loss(log_sigma):
        return -norm.logpdf(seen, scale=np.sqrt(math.exp(2 * log_sigma) + 1.0 / information)).sum()

    best = math.exp(minimize_scalar(loss, bounds=(-4.0, 2.0), method="bounded", options={"xatol": 1e-9}).x)
    for start in (0.3, 1.5):
        assert abs(tie_spread_of(modes(start), information, start) / best - 1.0) < 0.01


def test_the_spread_is_no_larger_than_a_calibration_may_have():
    # Copies by the million that contradict each other ask for 88: e to that power is no threshold.
    log_factor, information = np.array([90.0, -90.0, 85.0]), np.array([0.5, 0.5, 1e-6])
    assert tie_spread_of(log_factor, information, 50.0) == 10.0
    Calibration(tie_spread=10.0)


def test_the_objective_has_the_gradient_it_says():
    prior = PopulationPrior(np.eye(N_ITEMS), 8.0, 1.0, 4.0, tie_spread=SPREAD)

    def places(coordinates):  # four thresholds of people, and everybody's
        first = coordinates.ties.start
        return [*range(first, first + 4), coordinates.delta.start]

    assert_slopes(laid_out(differing("ties", 3, 12, 9, SPREAD)), prior, DELTA, places)


def test_the_fit_is_a_maximum_and_thresholds_average_out():
    rows = differing("ties", 5, 60, 30, SPREAD)
    people = laid_out(rows)
    prior = PopulationPrior(np.eye(N_ITEMS), 8.0, 1.0, 4.0, tie_spread=SPREAD)
    state = fit_population(people, prior, tolerance=1e-9, max_iter=1000)
    law = state.posterior(people, prior).law
    current = converge(state.people_with_own(people), state.sites.copy(), law, state.delta)
    theta, information = ties_step(state.log_tie_factor, SPREAD, current)
    np.testing.assert_allclose(theta, state.log_tie_factor, atol=ITERATIVE)
    assert abs(state.log_tie_factor.mean()) < 1e-3
    assert np.corrcoef(state.log_tie_factor, rows.theta)[0, 1] > 0.8
    assert abs(tie_spread_of(state.log_tie_factor, information, SPREAD) - SPREAD) < 0.2
    shared = fit_population(people, replace(prior, tie_spread=0.0), tolerance=1e-9, max_iter=1000)
    assert state.evidence > shared.evidence + 20.0
    assert not len(shared.log_tie_factor)


@pytest.mark.slow
def test_held_out_answers_decide():
    apart = Population(n_jobs=1).fit(comparisons(differing("ties", 6, 60, 25, 1.0)))
    assert 0.5 < apart.hyperparameters_.tie_spread < 1.6
    assert np.ptp(apart.posterior_.people.tie_factor) > 0.5
    shared = Population(n_jobs=1, tie_threshold=("auto", 0.0)).fit(comparisons(differing("ties", 6, 60, 25, 1.0)))
    assert np.all(shared.posterior_.people.tie_factor == 1.0)
    alike = Population(n_jobs=1).fit(comparisons(differing("ties", 7, 60, 25, 0.0)))
    assert alike.hyperparameters_.tie_spread < 0.2
    # A threshold that is given is everybody's.
    given = Population(n_jobs=1, tie_threshold=0.5).fit(comparisons(differing("ties", 6, 60, 25, 1.0)))
    assert given.hyperparameters_.tie_spread == 0.0
