"""People with very many answers: dense factorisations say exactly what rank-one updates say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from predilect.inference.gaussian.design import Sites
from predilect.inference.people import dense as dense_person
from predilect.inference.people.dense import DensePerson
from predilect.inference.people.empirical_bayes import consensus_step
from predilect.inference.people.expectation import converge, expectation
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People, lay_out
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.fit import PopulationPrior, fit_population
from referees.dense_population import design
from simulate import comparisons, crowd, laid_out, random_covariance, random_pairs
from tolerances import CONVERGED, EXACT, ITERATIVE

DELTA = 0.4
N_ITEMS = 9
# In pair space (3, 1), at its edge (9), in item space (30, 60), and nobody's answers (index 4).
CROWD = comparisons(crowd(1, 7, N_ITEMS, [3, 30, 9, 60, 1, 14, 5], delta=DELTA))
CROWD = CROWD.take(CROWD.user != 4)
SETTLED = {"n_sweeps": 3000, "tolerance": 1e-12}


def weighted(heaviest: float):
    """The same answers, some of them given very often."""
    weight = np.random.default_rng(3).choice([1.0, 2.0, 7.5, heaviest], size=CROWD.n_rows)
    return replace(CROWD, weight=weight)


def population(seed: int, n_items: int = N_ITEMS):
    rng = np.random.default_rng(seed)
    return random_covariance(rng, n_items, 2.0), rng.standard_normal(n_items)


def settled(people: People, Sigma, m, delta=DELTA, **options):
    sites = Sites.flat(people.n_rows)
    return expectation(people, sites, Law(Sigma, m), delta, **(SETTLED | options)), sites


def assert_alike(one, other, rounding: float = 0.0):
    for name in ("evidence", "H", "D", "r", "slope_delta", "curvature_delta"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, atol=CONVERGED + rounding, rtol=CONVERGED, err_msg=name)


@pytest.mark.parametrize("heaviest", [1.0, 3.0, 1e5])
@pytest.mark.parametrize("delta", [0.4, 2.0])
def test_expectations_are_the_same_on_both_paths(heaviest, delta):
    answers = weighted(heaviest)
    Sigma, m = population(0)
    light, heavy = lay_out(answers, largest_state=10**9), lay_out(answers, largest_state=0)
    assert not light.is_heavy.any()
    assert heavy.is_heavy.sum() == 6
    one, sites = settled(light, Sigma, m, delta)
    other, dense_sites = settled(heavy, Sigma, m, delta)
    # Q = Λ - Λ C Λ, as rank-one updates leave it, loses eps Λ² to cancellation; the dense form does not.
    largest = float((answers.weight * sites.precision).max())
    assert_alike(one, other, rounding=10 * np.finfo(float).eps * largest**2)
    np.testing.assert_allclose(sites.precision, dense_sites.precision, atol=CONVERGED)
    np.testing.assert_allclose(sites.linear, dense_sites.linear, atol=CONVERGED)


@pytest.mark.parametrize("n_items", [40, 320])  # more answers than items, and the other way round
def test_a_person_with_hundreds_of_answers_rests_where_updates_of_rank_one_lead(n_items):
    people = laid_out(crowd(3, 1, n_items, 300, delta=DELTA))
    Sigma, m = 2.0 * np.eye(n_items) + 0.5, np.zeros(n_items)
    one, sites = settled(replace(people, largest_state=10**9), Sigma, m)
    other, dense_sites = settled(replace(people, largest_state=0), Sigma, m)
    assert_alike(one, other)
    np.testing.assert_allclose(sites.precision, dense_sites.precision, atol=CONVERGED)
    np.testing.assert_allclose(sites.linear, dense_sites.linear, atol=CONVERGED)


def test_the_inverse_of_the_prior_makes_no_difference(monkeypatch):
    people = lay_out(weighted(3.0), largest_state=0)
    Sigma, m = population(0)
    _, person = people.dense(3, Law(Sigma, m))
    assert len(person.prior_precision)
    by_inverse, _ = settled(people, Sigma, m)
    monkeypatch.setattr(dense_person, "_LARGEST_CONDITION", 0.0)
    by_root, _ = settled(people, Sigma, m)
    assert_alike(by_inverse, by_root)


def test_one_sweep_from_the_fixed_point_stays_there():
    people = lay_out(CROWD, largest_state=0)
    Sigma, m = population(0)
    _, sites = settled(lay_out(CROWD, largest_state=10**9), Sigma, m)
    before = sites.copy()
    again = expectation(people, sites, Law(Sigma, m), DELTA, n_sweeps=1)
    assert again.largest_change < CONVERGED
    np.testing.assert_allclose(sites.precision, before.precision, atol=CONVERGED)


def test_heavy_and_light_people_side_by_side():
    # 14 is heavy for those with 30 and 60 answers only (min(answers, items) is 9, an eighth of 64 is 8).
    mixed, light = lay_out(CROWD, largest_state=64), lay_out(CROWD, largest_state=10**9)
    np.testing.assert_array_equal(mixed.heavy, [1, 3])
    Sigma, m = population(1)
    one, sites = settled(mixed, Sigma, m)
    other, other_sites = settled(light, Sigma, m)
    assert_alike(one, other)
    np.testing.assert_allclose(sites.linear, other_sites.linear, atol=CONVERGED)
    for n_threads in (1, 2, 4):
        with ThreadPoolExecutor(n_threads) as executor:
            again, again_sites = settled(mixed, Sigma, m, executor=executor)
        np.testing.assert_array_equal(again.H, one.H)
        np.testing.assert_array_equal(again_sites.precision, sites.precision)
        assert again.evidence == one.evidence


@pytest.fixture(scope="module")
def posteriors():
    """The same people as rank-one updates, dense, and mixed."""
    Sigma, m = population(2)
    light = lay_out(CROWD, largest_state=10**9)
    sites = Sites.flat(light.n_rows)
    current = converge(light, sites, Law(Sigma, m), DELTA, tolerance=1e-12)
    _, C_m = consensus_step(m, np.linalg.inv(random_covariance(np.random.default_rng(5), N_ITEMS, 4.0)), current)
    return [PopulationPosterior(m, C_m, Sigma, lay_out(CROWD, largest_state=n), sites) for n in (10**9, 0, 64)]


def test_margins_are_the_same_on_all_paths(posteriors):
    rng = np.random.default_rng(6)
    left, right = random_pairs(rng, 300, N_ITEMS)
    users = rng.integers(-1, 7, size=300)
    expected = posteriors[0].margins(users, left, right)
    for posterior in posteriors[1:]:
        for one, other in zip(posterior.margins(users, left, right), expected, strict=True):
            np.testing.assert_allclose(one, other, atol=EXACT)


def test_utilities_are_the_same_on_all_paths(posteriors):
    users = np.array([5, 0, 4, 3, 1, 6, 2])
    expected = posteriors[0].centred_utilities(users)
    for posterior in posteriors[1:]:
        for one, other in zip(posterior.centred_utilities(users), expected, strict=True):
            np.testing.assert_allclose(one, other, atol=EXACT)
        for user in range(-1, 7):
            for one, other in zip(posterior.utilities(user), posteriors[0].utilities(user), strict=True):
                np.testing.assert_allclose(one, other, atol=EXACT)


@pytest.mark.parametrize("n_answers", [4, 40])
def test_a_state_is_gaussian_conditioning(n_answers):
    # Against explicit inverses, for sites that no answer would leave: any precision from 0 up.
    rng = np.random.default_rng(n_answers)
    items = np.array([0, 2, 3, 7, 8], dtype=np.int32)
    left, right = (side.astype(np.int32) for side in random_pairs(rng, n_answers, 5))
    Sigma, m = population(4)
    precision, linear = rng.gamma(0.5, size=n_answers), rng.standard_normal(n_answers)
    precision[:2] = 0.0, 1e5
    law = Law(Sigma, m)
    prior = law.covariance(items) if n_answers <= 5 else law.root(items)
    person = DensePerson(left, right, prior, m[items])
    assert person.in_pair_space == (n_answers <= 5)
    state = person.condition(precision, linear)
    X = design(items[left], items[right], N_ITEMS)
    G, z_bar = X @ Sigma @ X.T, X @ m
    B = np.eye(n_answers) + G * precision
    C = np.linalg.solve(B, G)
    mean = np.linalg.solve(B, z_bar + G @ linear)
    e = linear - precision * z_bar
    np.testing.assert_allclose(state.mean, mean, atol=CONVERGED)
    np.testing.assert_allclose(state.var, np.diagonal(C), atol=CONVERGED)
    np.testing.assert_allclose(state.log_det, np.linalg.slogdet(B)[1], atol=CONVERGED)
    np.testing.assert_allclose(state.quadratic, e @ C @ e, atol=CONVERGED, rtol=CONVERGED)
    x, Q = person.sums(state)
    Lambda = np.diag(precision)
    np.testing.assert_allclose(x, (X.T @ (linear - precision * mean))[items], atol=ITERATIVE)
    expected = X.T @ (Lambda - Lambda @ C @ Lambda) @ X
    np.testing.assert_allclose(Q, expected[np.ix_(items, items)], atol=ITERATIVE)  # 1e5² of rounding


@pytest.mark.parametrize("lowest", [-20, -9, -2])
@pytest.mark.parametrize("variance", [1e-4, 1.0, 100.0])
def test_a_variance_keeps_its_digits_however_little_an_answer_says(variance, lowest):
    rng = np.random.default_rng(7)
    n, n_items = 12, 15
    left, right = (side.astype(np.int32) for side in random_pairs(rng, n, n_items))
    person = DensePerson(left, right, variance * random_covariance(rng, n_items), np.zeros(n_items))
    precision = 10.0 ** rng.uniform(lowest, 2, size=n)
    precision[0] = 0.0
    # (G⁻¹ + Λ)⁻¹ = (I + G Λ)⁻¹ G by elimination in long numbers, in turns of the rows; pivots are 1 and more.
    rows = np.hstack([np.eye(n) + person.prior * precision, person.prior]).astype(np.longdouble)
    for i in range(n):
        rows[i] /= rows[i, i]
        others = np.arange(n) != i
        rows[others] -= rows[others, i, None] * rows[i]
    expected = np.diagonal(rows[:, n:]).astype(float)
    np.testing.assert_allclose(person.condition(precision, np.zeros(n)).var, expected, rtol=EXACT)


def test_a_fit_is_the_same_on_both_paths():
    answers = comparisons(crowd(8, 6, 4, 15, delta=DELTA))
    prior = PopulationPrior(np.eye(4), 10.0, 2.0, 4.0)
    found = [fit_population(lay_out(answers, largest_state=n), prior, tolerance=1e-10) for n in (10**9, 0)]
    for name in ("m", "Sigma", "C_m", "delta", "evidence", "objective"):
        one, other = (getattr(state, name) for state in found)
        np.testing.assert_allclose(one, other, atol=1e-4, err_msg=name)  # √tolerance: J is flat where the search stops
    assert abs(found[0].objective - found[1].objective) < ITERATIVE
