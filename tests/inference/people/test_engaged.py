"""People who click at random: evidence, gradients, chances of answers, moments of a person, and units."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.special import ndtr

from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.probit import with_random_clicks
from predilect.inference.people.engaged import (
    chances_of_clicking,
    consistency_of_others,
    evidences,
    log_chances_of_clicks,
    log_evidence_beside,
    rate_of_clickers,
    shares_of_answers,
    unit_of_noise,
    with_clicks,
)
from predilect.inference.people.expectation import converge
from predilect.inference.people.layout import lay_out_columns
from predilect.inference.people.posterior import PopulationPosterior
from predilect.inference.people.sandwich import wider
from simulate import laid_out
from simulate_people import DELTA, N_ITEMS, SPREAD, differing, plain_law
from tolerances import CONVERGED, EXACT, ITERATIVE

RATE = 0.3


@pytest.fixture(scope="module")
def crowd():
    return with_clicks(laid_out(differing("care", 0, 8, [1, 4, 9, 25, 40, 3, 0, 12], SPREAD)), RATE)


def rest(people, law, delta=DELTA):
    sites = Sites.flat(people.n_rows)
    return converge(people, sites, law, delta, tolerance=1e-13), sites


# Loops that nothing else in the unit tests needs, and that take long to compile.
ON_A_BASIS = pytest.param(True, marks=pytest.mark.slow)


@pytest.mark.parametrize("largest_state", [600, 0])
def test_the_evidence_is_that_of_the_mixture(crowd, largest_state):
    people, law = replace(crowd, largest_state=largest_state), plain_law(N_ITEMS)
    found, _ = rest(people, law)
    of_model = rest(replace(people, clicks=np.zeros(0), engaged=np.zeros(0)), law)[0].evidences
    odds = RATE / (1.0 - RATE)
    chance = log_chances_of_clicks(people, shares_of_answers(people))
    answered = np.diff(people.answer_ptr) > 0
    expected = np.logaddexp(of_model, math.log(odds) + chance)
    assert found.evidence == pytest.approx(expected[answered].sum(), rel=EXACT)
    np.testing.assert_allclose(found.engaged[answered], np.exp(of_model - expected)[answered], rtol=CONVERGED)
    np.testing.assert_allclose(found.engaged[~answered], 1.0 - RATE)


@pytest.mark.parametrize("basis", [False, ON_A_BASIS])
@pytest.mark.parametrize("largest_state", [600, 0])
def test_gradients_are_those_of_finite_differences(crowd, basis, largest_state):
    people, law, h = replace(crowd, largest_state=largest_state), plain_law(N_ITEMS, basis), 1e-5
    found, _ = rest(people, law)

    def evidence(mean=0.0, along=0.0, delta=DELTA):
        step = np.zeros(len(law.Sigma))
        step[0] = 1.0
        Sigma = law.Sigma + along * np.outer(step, step)
        moved = law.mean + mean * (law.Phi[:, 0] if law.has_basis else step)
        return rest(people, replace(law, Sigma=Sigma, mean=moved), delta)[0].evidence

    slope = (evidence(mean=h) - evidence(mean=-h)) / (2.0 * h)
    assert found.r[0] == pytest.approx(slope, rel=ITERATIVE, abs=ITERATIVE)
    slope = (evidence(along=h) - evidence(along=-h)) / (2.0 * h)
    assert 0.5 * found.D[0, 0] == pytest.approx(slope, rel=ITERATIVE, abs=ITERATIVE)
    slope = (evidence(delta=DELTA + h) - evidence(delta=DELTA - h)) / (2.0 * h)
    assert found.slope_delta == pytest.approx(slope, rel=ITERATIVE, abs=ITERATIVE)


def test_at_random_all_orders_of_a_task_are_alike():
    rows = {
        "best of four": ([0, 0, 0], [1, 2, 3]),
        "best and worst of four": ([0, 0, 1, 2], [1, 2, 3, 3]),
        "order of four": ([0, 1, 2], [1, 2, 3]),
        "two best of four": ([0, 0, 1, 1], [2, 3, 2, 3]),
    }
    shares, together = np.array([0.0, 1.0]), 0.0
    of_all: list[tuple[int, int, int, int]] = []  # one person with all four
    for task, (left, right) in enumerate(rows.values()):
        agree = sum(all(p[a] < p[b] for a, b in zip(left, right, strict=True)) for p in permutations(range(4)))
        some = [(1, task, *pair) for pair in zip(left, right, strict=True)]
        of_all += [(2, *row[1:]) for row in some]
        together += math.log(agree / 24.0)
        assert log_chances_of_clicks(of_tasks(some), shares)[1] == pytest.approx(math.log(agree / 24.0), rel=EXACT)
    found = log_chances_of_clicks(of_tasks(some + of_all), shares)
    np.testing.assert_allclose(found, [0.0, math.log(1.0 / 6.0), together], rtol=EXACT)


def of_tasks(rows):
    """People by rows (user, task, better, worse)."""
    user, task, better, worse = np.array(rows).T
    return lay_out_columns(
        user, np.minimum(better, worse), np.maximum(better, worse), np.where(better < worse, 1, -1).astype(np.int8),
        np.ones(len(user)), n_items=4, traits=np.zeros((3, 0)), task=task,
    )  # fmt: skip


def test_a_pair_has_the_shares_of_the_crowd(crowd):
    shares = shares_of_answers(crowd)
    tied = crowd.weight[crowd.outcome == 0].sum() / crowd.weight.sum()
    np.testing.assert_allclose(shares, [tied, 1.0 - tied], rtol=EXACT)
    found = log_chances_of_clicks(crowd, shares)
    user = 4
    rows = slice(crowd.answer_ptr[user], crowd.answer_ptr[user + 1])
    each = np.where(crowd.outcome[rows] == 0, tied, 0.5 * (1.0 - tied))
    assert found[user] == pytest.approx(crowd.weight[rows] @ np.log(each), rel=EXACT)


def test_the_rate_is_the_mean_of_its_posterior():
    rng = np.random.default_rng(3)
    of_model, of_clicks = rng.normal(-9.0, 2.0, 12), rng.normal(-10.0, 1.0, 12)
    p = (np.arange(20_000) + 0.5)[:, None] / 20_000
    density = 2.0 * (1.0 - p[:, 0]) * np.prod(1.0 - p + p * np.exp(of_clicks - of_model), axis=1)
    gain, mean = rate_of_clickers(of_model, of_clicks)
    assert gain == pytest.approx(math.log(density.mean()), abs=1e-6)
    assert mean == pytest.approx(density @ p[:, 0] / density.sum(), abs=1e-6)


def test_nine_clickers_of_thirty_are_not_drawn_to_none():
    told = np.repeat([-8.0, 8.0], [9, 21])
    assert rate_of_clickers(told, np.zeros(30))[1] == pytest.approx(10.0 / 33.0, abs=0.01)


@pytest.mark.slow
def test_the_evidence_of_a_person_is_that_of_a_consensus_learned_from_the_others(crowd):
    """Against the mean of exact evidences over draws of that consensus."""
    law, C, w = plain_law(N_ITEMS), 0.04 * np.eye(N_ITEMS), 0.7
    people = replace(crowd, clicks=np.zeros(0), engaged=np.full(crowd.n_users, w))
    found, sites = rest(people, law)
    result, rng = log_evidence_beside(people, sites, law, C, 0.0, 1.0), np.random.default_rng(0)
    for user in (1, 2, 3, 7):
        items, x, Q = people.sums(user, sites, law)
        g, H = np.zeros(N_ITEMS), np.zeros((N_ITEMS, N_ITEMS))
        g[items], H[np.ix_(items, items)] = x, Q
        without = np.linalg.inv(np.linalg.inv(C) - w * H)
        steps = rng.multivariate_normal(-w * without @ g, without, 400)
        each = [rest(people, replace(law, mean=law.mean + step))[0].evidences[user] for step in steps]
        ratio = np.exp(np.array(each) - found.evidences[user])
        assert result[user] == pytest.approx(math.log(ratio.mean()), abs=4.0 * ratio.std() / 20.0 / ratio.mean() + 0.02)
    assert result[6] == 0.0  # who has no answers


def test_an_unusual_consistency_speaks_for_a_clicker(crowd):
    law, C = plain_law(N_ITEMS), np.zeros((N_ITEMS, N_ITEMS))
    _, sites = rest(crowd, law)
    usual = np.full(crowd.n_users, 0.5)
    people = replace(crowd, engaged=usual, consistency=usual + 0.5, consistency_sd=usual)
    away = replace(people, consistency=np.exp(-2.0 * usual))
    found = [chances_of_clicking(one, sites, law, C, 0.5, 1.0) for one in (people, away)]
    np.testing.assert_allclose(found[0], 0.5, atol=EXACT)  # what is known of it is its law
    answered = np.diff(crowd.answer_ptr) > 0
    odds = found[1][answered] / (1.0 - found[1][answered])
    np.testing.assert_allclose(odds, math.exp(0.5 * 2.0**2), rtol=CONVERGED)
    of_model, of_clicks = evidences(people, sites, law, C, 0.5, DELTA)
    assert len(of_model) == len(of_clicks) == answered.sum()


def test_a_person_who_may_click_has_the_moments_of_the_mixture(crowd):
    law, user, w = plain_law(N_ITEMS), 3, 0.35
    people = replace(crowd, clicks=np.zeros(0), engaged=np.full(crowd.n_users, w))
    _, sites = rest(people, law)
    C = 0.1 * np.eye(N_ITEMS)
    sure = replace(people, engaged=np.zeros(0))
    mixed, alone, nobody = (
        PopulationPosterior(law.mean, 0.0 * C, law.Sigma, who, sites).person(code)
        for who, code in ((people, user), (sure, user), (sure, -1))
    )
    gap = alone.mean - nobody.mean
    np.testing.assert_allclose(mixed.mean, nobody.mean + w * gap, atol=EXACT)
    expected = w * alone.covariance + (1.0 - w) * nobody.covariance + w * (1.0 - w) * np.outer(gap, gap)
    np.testing.assert_allclose(mixed.covariance, expected, atol=EXACT)


def test_chances_are_those_of_the_mixture():
    mean, var, w = np.array([0.7, -1.2, 0.0, 3.0]), np.array([0.5, 2.0, 1.0, 0.0]), np.array([0.3, 0.9, 0.5, 1.0])
    moved, same = with_random_clicks(mean, var, w)
    np.testing.assert_array_equal(same, var)
    found = ndtr(moved / np.sqrt(1.0 + var))
    np.testing.assert_allclose(found, w * ndtr(mean / np.sqrt(1.0 + var)) + 0.5 * (1.0 - w), atol=EXACT)


def test_the_median_of_a_law_is_found_from_shrunken_modes():
    rng, n, spread, location = np.random.default_rng(0), 20_000, 0.5, 0.3
    people = laid_out(differing("care", 0, n, [1] * n, SPREAD))
    sd = rng.uniform(0.2, 2.0, n)
    seen = location + spread * rng.standard_normal(n) + sd * rng.standard_normal(n)
    mode, own = seen * spread**2 / (spread**2 + sd**2), (sd**-2 + spread**-2) ** -0.5
    people = replace(people, consistency=np.exp(mode), consistency_sd=own)
    assert math.log(unit_of_noise(*consistency_of_others(people, spread))) == pytest.approx(location, abs=0.03)
    assert unit_of_noise(*consistency_of_others(people, 0.0)) == 1.0


def test_a_covariance_is_as_wide_as_both():
    rng = np.random.default_rng(1)
    A, B = (M @ M.T + 0.1 * np.eye(4) for M in rng.standard_normal((2, 4, 4)))
    found = wider(A, B)
    assert np.linalg.eigvalsh(found - A).min() > -EXACT
    assert np.linalg.eigvalsh(found - B).min() > -EXACT
    np.testing.assert_allclose(wider(A, 0.5 * A), A, rtol=CONVERGED)
    np.testing.assert_allclose(wider(A, 3.0 * A), 3.0 * A, rtol=CONVERGED)
