"""The search, on items and on a basis with own parts and traits: what it maximises, its gradient, where it ends."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from test_population_fit import CROWDS, PRIOR

from predilect.data.features import FeatureSpace, Traits
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.empirical_bayes import (
    consensus_step,
    covariance_step,
    effects_step,
    offset_step,
    own_scale_step,
)
from predilect.inference.people.expectation import converge
from predilect.inference.people.layout import People
from predilect.models.population import maximisation as search
from predilect.models.population.fit import PopulationPrior, PopulationState, fit_population
from predilect.models.population.maximisation import Search, _Coordinates
from predilect.models.population.prior import Functions, Hyperparameters, inducing_points
from referees.dense_basis import Truth
from simulate import crowd, laid_out
from simulate_basis import law_of
from slopes import at_rest, slope_along
from tolerances import ITERATIVE

TIGHT = {"tolerance": 1e-10, "max_iter": 3000}
N_ITEMS, N_USERS = 8, 50


def space() -> FeatureSpace:
    """Items on a plane, one of them without features."""
    matrix = np.random.default_rng(0).standard_normal((N_ITEMS, 2))
    known = np.ones(N_ITEMS, dtype=bool)
    matrix[0], known[0] = 0.0, False
    return FeatureSpace(matrix, known)


@dataclass
class Problem:
    rows: object
    people: People
    prior: PopulationPrior

    @property
    def has_ties(self) -> bool:
        return bool((self.rows.outcome == 0).any())


def problem_of(kind: str, n_traits: int, delta: float) -> Problem:
    """A crowd that knows nothing of the basis; traits are whitened and say a little of nobody's utilities."""
    rows = crowd(11, N_USERS, N_ITEMS, 10, delta=delta)
    where = space()
    functions = Functions.of(kind, where, inducing_points(where, 3, 0), 1.0)
    prior = PopulationPrior.of(Hyperparameters(8.0, 2.0, 4.0, 0.6, 1.0, trait_scale=0.3), where, functions)
    matrix, known = np.random.default_rng(1).standard_normal((N_USERS, n_traits)), np.ones(N_USERS, dtype=bool)
    traits = Traits.of(matrix, known).transform(matrix, known)
    people = laid_out(rows)
    people = People(**{name: getattr(people, name) for name in (
        "answer_ptr", "item_ptr", "item_idx", "left", "right", "outcome", "weight", "n_items", "shards"
    )}, traits=np.ascontiguousarray(traits))  # fmt: skip
    return Problem(rows, people, prior)


PROBLEMS = {
    "attributes": ("attributes", 0, 0.0),
    "inducing, ties": ("inducing", 0, 0.5),
    "both, traits and ties": ("attributes+inducing", 2, 0.5),
}
ON_ITEMS = {name: Problem(rows, laid_out(rows), PRIOR[name]) for name, rows in CROWDS.items()}


@pytest.fixture(scope="module", params=[*PROBLEMS, *ON_ITEMS])
def problem(request):
    return ON_ITEMS[request.param] if request.param in ON_ITEMS else problem_of(*PROBLEMS[request.param])


@pytest.fixture(scope="module")
def long_run(problem):
    return fit_population(problem.people, problem.prior, **TIGHT)


def law_at(problem: Problem, state: PopulationState):
    return state.posterior(problem.people, problem.prior).law


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS, indirect=True)
def test_the_objective_is_j(problem, long_run):
    # Every prior term as written in population.md section 6, and the evidence by the dense referee over items.
    prior, state = problem.prior, long_run
    truth = Truth(prior.Phi, state.Sigma, state.m, prior.own_share, state.own_scale, state.offset, state.B,
                  problem.people.traits, state.delta)  # fmt: skip
    evidence = sum(person.evidence for person in truth.people(problem.rows))
    assert abs(state.evidence - evidence) < ITERATIVE
    inverse = np.linalg.inv(prior.K)
    J = evidence - 0.5 * prior.strength * (
        np.linalg.slogdet(state.Sigma)[1] + prior.variance * np.trace(prior.K @ np.linalg.inv(state.Sigma))
    )
    J -= 0.5 * state.m @ inverse @ state.m / prior.consensus_variance
    J -= 0.5 * np.sum(state.offset**2 / (prior.consensus_variance * prior.own_share))
    J -= 0.5 * prior.strength * (np.log(state.own_scale) + prior.variance / state.own_scale) * bool(len(state.offset))
    J -= 0.5 * np.trace(state.B.T @ inverse @ state.B) / prior.trait_scale
    assert abs(state.objective - J) < ITERATIVE


def test_the_gradient_that_the_search_follows_is_that_of_j(problem):
    # In its own coordinates, so that every chain rule is covered; blocks one by one, since the offsets of items that
    # nearly belong to the basis are a millionth of the others.
    people = problem.people
    walk = Search(people, problem.prior, None, None, 5, problem.has_ties)
    walk.sites = Sites.flat(people.n_rows)
    point, current = walk.closed_form(walk.first_point(0.4 * problem.has_ties), 2)
    coordinates = _Coordinates(walk, point, current)
    walk.site_tolerance = 1e-14

    rng = np.random.default_rng(0)
    x = 0.3 * rng.standard_normal(len(coordinates.reach))
    _, gradient = at_rest(coordinates.objective, x)
    for block in ("m", "factor", "offset", "own", "B", "delta"):
        places = getattr(coordinates, block)
        here = gradient[places]
        moves = {"delta": problem.has_ties, "B": people.traits.shape[1] > 0}
        assert bool(np.any(here != 0.0)) == moves.get(block, block in ("m", "factor") or len(point.offset) > 0), block
        if not len(here):
            continue
        direction = np.zeros_like(x)
        direction[places] = rng.standard_normal(len(here))
        slope = slope_along(lambda z: at_rest(coordinates.objective, z)[0], x, direction)
        assert abs(slope - gradient @ direction) < ITERATIVE * max(1.0, np.abs(here).max()), block


def test_j_never_falls_over_accepted_steps(problem, monkeypatch):
    accepted = []
    ascent = search.ascent

    def watched(*given):
        for place in ascent(*given):
            accepted.append(place[1])
            yield place

    monkeypatch.setattr(search, "ascent", watched)
    state = fit_population(problem.people, problem.prior)
    rises = np.diff(accepted)
    assert len(rises) >= 3
    # Sites lag behind within a step, so J is known to about the tolerance that asks for a second sweep.
    assert np.all(rises > -ITERATIVE * problem.rows.n_rows)
    assert state.objective > accepted[0] - ITERATIVE * (problem.prior.Phi is not None)


def test_the_stop_rule_ends_within_a_hair_of_a_long_run(problem, long_run):
    usual = fit_population(problem.people, problem.prior)
    assert usual.report.converged
    gap = (long_run.objective - usual.objective) / problem.people.n_answers
    assert -ITERATIVE < gap < 1e-4
    # and from somewhere else altogether: a long run started at a fit to half of the answers, without own parts
    other = laid_out(crowd(12, N_USERS, problem.people.n_items, 5, delta=0.3))
    elsewhere = fit_population(other, PopulationPrior(problem.prior.K, 50.0, 9.0, 9.0, Phi=problem.prior.Phi))
    third = fit_population(problem.people, problem.prior, population=elsewhere, **TIGHT)
    assert abs(third.objective - long_run.objective) / problem.people.n_answers < 1e-5


def test_a_long_run_ends_where_the_closed_form_steps_stand_still(problem, long_run):
    # Two unrelated algorithms, one point.
    state, prior, people = long_run, problem.prior, problem.people
    current = converge(people, state.sites.copy(), law_at(problem, state), state.delta)
    inverse, still = np.linalg.inv(prior.K), ITERATIVE * (10 if prior.Phi is None else 20)
    m, C_m = consensus_step(state.m, inverse / prior.consensus_variance, current)
    np.testing.assert_allclose(m, state.m, atol=still)
    np.testing.assert_allclose(C_m, state.C_m, atol=ITERATIVE)
    Sigma = covariance_step(state.Sigma, current, people.n_users, prior.variance * prior.K, prior.strength)
    np.testing.assert_allclose(Sigma, state.Sigma, atol=still * np.abs(state.Sigma).max())
    if state.delta:
        assert abs(current.slope_delta) < 1e-3 * people.n_answers
    if prior.Phi is None:
        return
    precision = 1.0 / (prior.consensus_variance * prior.own_share)
    np.testing.assert_allclose(offset_step(state.offset, precision, current), state.offset, atol=still)
    np.testing.assert_allclose(state.offset_variance, 1.0 / (precision + current.own_H), atol=ITERATIVE)
    n_own = len(people.item_idx)
    own = own_scale_step(state.own_scale, prior.own_share, current, n_own, prior.variance, prior.strength)
    assert abs(own - state.own_scale) < still * state.own_scale
    if state.B.size:
        B, C_B = effects_step(state.B, inverse / prior.trait_scale, current)
        np.testing.assert_allclose(B, state.B, atol=still)
        np.testing.assert_allclose(C_B, state.C_B, atol=ITERATIVE)


def test_own_scale_step_is_the_mean_square_of_own_parts():
    # EM in one dimension: E (e_ui - c_i)² / share_i over the pairs (person, item), from dense conditioning of each
    # person's own parts, together with the prior's ν₀ pairs of s₀.
    problem = problem_of("inducing", 0, 0.5)
    prior, people = problem.prior, problem.people
    rng = np.random.default_rng(4)
    M = prior.n_functions
    truth = Truth(prior.Phi, np.eye(M), rng.standard_normal(M), prior.own_share, 0.8, rng.standard_normal(N_ITEMS),
                  np.zeros((M, 0)), np.zeros((N_USERS, 0)), 0.5)  # fmt: skip
    scatter, n_own = 0.0, 0
    for person in truth.people(problem.rows):
        own = np.flatnonzero(np.abs(person.X).sum(axis=0))
        mean = truth.rho[own] * person.r[own]
        var = truth.rho[own] - truth.rho[own] ** 2 * np.diagonal(person.H)[own]
        scatter += np.sum((mean**2 + var) / prior.own_share[own])
        n_own += len(own)
    current = converge(people, Sites.flat(people.n_rows), law_of(truth), 0.5, tolerance=1e-13)
    found = own_scale_step(0.8, prior.own_share, current, n_own, 2.0, 8.0)
    assert n_own == len(people.item_idx)
    assert abs(found - (scatter + 8.0 * 2.0) / (n_own + 8.0)) < ITERATIVE


@pytest.mark.slow
def test_a_search_that_rests_at_a_saddle_goes_on():
    """From next to no residuals of the items, which grow too slowly for the tolerance to see."""
    people = laid_out(crowd(4, 200, 30, 40, person_sd=1.5))
    where = FeatureSpace(np.random.default_rng(0).standard_normal((30, 2)), np.ones(30, dtype=bool))
    functions = Functions.of("attributes", where, np.zeros((0, 2)), 1.0, own=True)
    prior = PopulationPrior.of(Hyperparameters(90.0, 0.01, 4.0, 0.5, 1.0), where, functions)
    best = fit_population(people, prior)
    flat, loose = replace(best, own_scale=0.01, Sigma=0.01 * np.eye(2)), 3e-4
    resting, found = (
        fit_population(people, prior, population=flat, tolerance=loose, kept=kept) for kept in (False, True)
    )
    assert resting.report.converged
    assert resting.objective < best.objective - 100.0
    assert abs(found.objective - best.objective) < loose * people.n_answers
    for most in range(8, 24):  # wherever it is cut off, a fit on its way is not said to have converged
        cut = fit_population(people, prior, population=flat, tolerance=loose, max_iter=most)
        assert not (cut.report.converged and cut.objective < best.objective - 100.0), most
