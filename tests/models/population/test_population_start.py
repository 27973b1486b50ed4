"""Where the search for the population starts: large enough to shrink, and no larger than people and prior can hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect.models.population import maximisation as search
from predilect.models.population.fit import fit_population
from predilect.models.population.prior import PopulationPrior, first_scale
from simulate import answers, laid_out, random_covariance, random_pairs
from tolerances import CONVERGED

N_ITEMS, N_USERS, PER_PERSON = 500, 15, 100


def test_few_directions_many_people_or_a_large_prior_start_where_they_did():
    few = PopulationPrior(np.eye(12), 2.0, 0.01, 4.0)
    many = PopulationPrior(np.eye(400), 30.0, 0.01, 4.0)
    assert first_scale(few, 3) == 0.5
    assert first_scale(many, 1000) == 0.5
    assert first_scale(replace(many, variance=4.0), 3) == 4.0
    # Alike items are few directions.
    assert first_scale(replace(many, K=np.ones((400, 400))), 1) == 0.5


@pytest.mark.parametrize(
    "K", [np.eye(300), random_covariance(np.random.default_rng(0), 300, 1.0)], ids=["plain", "full"]
)
def test_two_directions_for_each_of_prior_and_people(K):
    found = first_scale(PopulationPrior(K, 20.0, 1e-4, 4.0), 10)
    directions = np.trace(np.linalg.solve(np.eye(300) + found * K, found * K))  # Σ λ / (1 + λ)
    assert abs(directions - 2.0 * (20.0 + 10.0)) < CONVERGED
    # A prior that has more of them already is the start itself.
    assert first_scale(PopulationPrior(K, 2.0, 0.4, 4.0), 1) == 0.4


@pytest.mark.slow
def test_a_few_people_on_many_items_do_not_learn_their_answers_by_heart(monkeypatch):
    # Answers by coin: there is nothing that people share.
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(N_USERS), PER_PERSON)
    left, right = random_pairs(rng, len(user), N_ITEMS)
    rows = answers(user, left, right, rng.choice([1, -1], len(user)), n_items=N_ITEMS, n_users=N_USERS)
    people, prior = laid_out(rows), PopulationPrior(np.eye(N_ITEMS), 25.0, 0.03, 0.5)
    state = fit_population(people, prior, max_iter=40)
    assert state.report.converged
    assert np.linalg.eigvalsh(state.Sigma)[-1] < 0.1
    assert state.evidence < -0.5 * people.n_answers  # by chance it is -.69 an answer
    # From the prior itself it is the same maximum.
    monkeypatch.setattr(search, "first_scale", lambda prior, n_people: prior.variance)
    other = fit_population(people, prior, max_iter=40)
    assert abs(other.objective - state.objective) < 1e-5 * people.n_answers
