"""Σ of few directions: what many items with fewer answers than entries of Σ get in place of a free one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import test_population_search as searches
from scipy.linalg import eigvalsh
from test_population_fit import CROWDS, PRIOR

from predilect import Population
from predilect.models.population.fit import fit_population
from predilect.models.population.maximisation import _OWN_SHARE, Search
from simulate import laid_out
from tolerances import ITERATIVE

NAME = next(iter(CROWDS))


def problem_of(directions: int) -> searches.Problem:
    rows = CROWDS[NAME]
    return searches.Problem(rows, laid_out(rows), replace(PRIOR[NAME], directions=directions))


def test_the_gradient_is_that_of_j():
    searches.test_the_gradient_that_the_search_follows_is_that_of_j(problem_of(2))


@pytest.mark.parametrize("directions", [0, 2])
def test_the_covariance_has_so_many_directions_and_the_objective_is_j(directions):
    problem = problem_of(directions)
    prior = problem.prior
    state = fit_population(problem.people, prior, **searches.TIGHT)
    assert state.report.converged
    own = _OWN_SHARE if directions else 1.0
    values = eigvalsh(state.Sigma - own * prior.variance * prior.K, prior.K)[::-1]
    assert np.all(values[:directions] > 1e-3)
    assert np.abs(values[directions:]).max() < ITERATIVE
    J = state.evidence - 0.5 * state.m @ np.linalg.solve(prior.K, state.m) / prior.consensus_variance
    if directions:
        J -= 0.5 * directions * values[:directions].sum() / ((1.0 - own) * prior.variance)
    assert abs(state.objective - J) < ITERATIVE * (1.0 + abs(J))


def test_no_start_matters():
    problem = problem_of(2)
    plain = fit_population(problem.people, problem.prior, **searches.TIGHT)
    other = fit_population(problem.people, replace(problem.prior, directions=None), **searches.TIGHT)
    warm = fit_population(problem.people, problem.prior, start=other, **searches.TIGHT)
    assert abs(warm.objective - plain.objective) < ITERATIVE
    assert Search(problem.people, problem.prior, None, None, 5, False).directions == 2


def answers(n_items: int, n_users: int, per: int, n_directions: int, names: np.ndarray, seed: int = 0):
    """Answers to learn from and answers held out, of people who differ in a few directions."""
    rng = np.random.default_rng(seed)
    own = rng.standard_normal((n_users, n_directions)) @ rng.standard_normal((n_directions, n_items))
    f = rng.standard_normal(n_items) + 1.5 * own / np.sqrt(max(n_directions, 1))
    user = np.repeat(np.arange(n_users), per)
    left = rng.integers(n_items, size=len(user))
    right = (left + rng.integers(1, n_items, size=len(user))) % n_items
    wins = f[user, left] - f[user, right] + rng.standard_normal(len(user)) > 0.0
    table = pl.DataFrame({
        "user": user, "left": names[left], "right": names[right], "winner": names[np.where(wins, left, right)],
    })  # fmt: skip
    held_out = np.arange(len(user)) % per < per // 5
    return table.filter(~held_out), table.filter(held_out)


def loss_of(model: Population, test: pl.DataFrame) -> float:
    chances = model.predict_proba(test.select("user", "left", "right"))
    return -float(np.log(chances[np.arange(len(test)), np.where(test["winner"] == test["left"], 0, 2)]).mean())


@pytest.mark.slow
def test_held_out_answers_find_the_directions_of_many_items():
    n_items = 310
    names = np.array([f"item {k:03d}" for k in range(n_items)])
    train, test = answers(n_items, 500, 40, 3, names)
    model = Population(n_jobs=1).fit(train)
    assert model.hyperparameters_.directions == 3
    assert "in 3 directions" in " ".join(model.describe())
    assert loss_of(model, test) < loss_of(Population(n_jobs=1, personal=False).fit(train), test) - 0.05
    renamed = {name: f"{k:03d} renamed" for k, name in enumerate(np.random.default_rng(1).permutation(names).tolist())}
    again, held_out = (
        table.with_columns(pl.col("left", "right", "winner").replace(renamed)) for table in (train, test)
    )
    assert abs(loss_of(Population(n_jobs=1).fit(again), held_out) - loss_of(model, test)) < 1e-3


@pytest.mark.slow
def test_few_people_have_directions_too():
    names = np.array([f"item {k:03d}" for k in range(310)])
    train, test = answers(310, 50, 100, 2, names)
    model, without = Population(n_jobs=1).fit(train), Population(n_jobs=1, strength=3e3).fit(train)
    assert model.hyperparameters_.directions > 0
    assert loss_of(model, test) < loss_of(without, test) - 0.02


@pytest.mark.slow
def test_one_direction_is_found_where_three_would_be_learned_by_heart():
    names = np.array([f"item {k:03d}" for k in range(350)])
    train, test = answers(350, 300, 25, 1, names)
    model = Population(n_jobs=1).fit(train)
    assert model.hyperparameters_.directions in (1, 2)
    assert loss_of(model, test) < loss_of(Population(n_jobs=1, personal=False).fit(train), test) - 0.05


@pytest.mark.slow
def test_people_who_differ_in_every_item_get_none(tmp_path):
    names = np.array([f"item {k:03d}" for k in range(310)])
    train, test = answers(310, 400, 40, 310, names)
    model = Population(n_jobs=1).fit(train)
    assert model.hyperparameters_.directions == 0
    model.save(tmp_path / "model")
    assert "in no direction beyond the prior" in " ".join(model.describe())
    loaded = Population.load(tmp_path / "model")
    assert loaded.hyperparameters_.directions == 0
    assert loss_of(loaded, test) == loss_of(model, test)
