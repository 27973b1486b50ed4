"""People's own effects of covariates: the same EP, and the same Gaussian, with the effects as further utilities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.covariates import own_effects
from predilect.inference.people.empirical_bayes import effect_spreads_of
from predilect.inference.people.expectation import converge
from predilect.inference.people.law import Basis
from predilect.inference.people.layout import with_own
from predilect.inference.people.person import Overlay, part_of, person_of
from predilect.inference.people.posterior import PopulationPosterior
from referees.dense_population import person_ep
from simulate_people import plain_law, with_covariates
from tolerances import CONVERGED, ITERATIVE

N_USERS, N_ITEMS, DELTA = 7, 5, 0.3
GAMMA, SPREAD = np.array([0.4, -0.7]), (0.8, 0.3)
RANK = 3
CASES = pytest.mark.parametrize(
    ("basis", "largest_state"),
    [
        pytest.param(False, 600, id="items"), pytest.param(False, 0, id="items, heavy"),
        # Loops that nothing else in the unit tests needs, which take 10 s to compile.
        pytest.param(True, 600, id="basis", marks=pytest.mark.slow),
        pytest.param(True, 0, id="basis, heavy", marks=pytest.mark.slow),
    ],
)  # fmt: skip


def people(largest_state=600, spread=SPREAD, sign=1.0):
    at = with_covariates(N_USERS, N_ITEMS, largest_state, sign)
    return with_own(at, np.zeros(0), np.zeros(0), sign * GAMMA, spread=spread)


def law(basis):
    return plain_law(N_ITEMS, basis)


def at_rest(at, where):
    sites = Sites.flat(at.n_rows)
    return sites, converge(at, sites, where, DELTA, tolerance=1e-12)


def augmented(where):
    """Prior covariance of utilities and effects, the latter in units of the spread."""
    S = np.eye(N_ITEMS + 2)
    S[:N_ITEMS, :N_ITEMS] = where.covariance(np.arange(N_ITEMS))
    return S


def referees(at, where):
    """Everybody by dense EP, with the effects as further utilities of mean γ."""
    found = []
    for user in range(N_USERS):
        rows = slice(at.answer_ptr[user], at.answer_ptr[user + 1])
        items, a = at.item_idx[at.item_ptr[user] : at.item_ptr[user + 1]], at.consistency[user]
        mean = a * np.append(where.mean, GAMMA / SPREAD)
        left, right = items[at.left[rows]], items[at.right[rows]]
        found.append(
            person_ep(
                a * a * augmented(where), mean, left, right, at.outcome[rows], weight=at.weight[rows],
                slope_columns=at.patterns[at.variant[rows]] * SPREAD, delta=DELTA,
            )
        )  # fmt: skip
    return found


@CASES
def test_the_sums_are_those_of_dense_ep_of_utilities_and_effects(basis, largest_state):
    at, where = people(largest_state), law(basis)
    _, found = at_rest(at, where)
    persons, a = referees(at, where), at.consistency
    Phi = where.Phi if basis else np.eye(N_ITEMS)
    rows = slice(N_ITEMS)
    r = sum(a * one.r for a, one in zip(a, persons, strict=True))
    H = sum(a * a * one.H for a, one in zip(a, persons, strict=True))
    N = sum(a * a * one.N for a, one in zip(a, persons, strict=True))
    assert found.evidence == pytest.approx(sum(one.evidence for one in persons), rel=CONVERGED)
    np.testing.assert_allclose(found.r, Phi.T @ r[rows], rtol=ITERATIVE, atol=ITERATIVE)
    np.testing.assert_allclose(found.H, Phi.T @ H[rows, rows] @ Phi, rtol=ITERATIVE, atol=ITERATIVE)
    np.testing.assert_allclose(found.D, Phi.T @ (N - H)[rows, rows] @ Phi, rtol=ITERATIVE, atol=ITERATIVE)
    np.testing.assert_allclose(found.r_covariates * SPREAD, r[N_ITEMS:], rtol=ITERATIVE, atol=ITERATIVE)
    for user, one in enumerate(persons):
        mean, told = found.own_slopes[user, 4::2], found.own_slopes[user, 5::2]
        np.testing.assert_allclose(mean, a[user] * one.r[N_ITEMS:], rtol=ITERATIVE, atol=ITERATIVE)
        np.testing.assert_allclose(told, a[user] ** 2 * np.diagonal(one.H)[N_ITEMS:], rtol=ITERATIVE, atol=ITERATIVE)


@CASES
def test_the_gradient_in_a_spread_is_that_of_finite_differences(basis, largest_state):
    where, h = law(basis), 1e-5
    own = at_rest(people(largest_state), where)[1].own_slopes[:, 4:]
    for place in range(2):
        low, high = (
            at_rest(people(largest_state, tuple(SPREAD * np.exp(side * h * np.eye(2)[place]))), where)[1].evidence
            for side in (-1, 1)
        )
        slope = np.sum(own[:, 2 * place] ** 2 - own[:, 2 * place + 1])
        assert slope == pytest.approx((high - low) / (2 * h), rel=ITERATIVE)


def posterior_of(basis, largest_state):
    """A posterior with people's own effects, and the covariance of its consensus among the items."""
    at, where = people(largest_state), law(basis)
    sites, _ = at_rest(at, where)
    M = RANK if basis else N_ITEMS
    C_m = 0.2 * np.cov(np.random.default_rng(1).normal(size=(M, 3 * M)))
    effects = CovariateEffects(GAMMA, 0.01 * np.eye(2), patterns=at.patterns, spread=np.array(SPREAD))
    if not basis:
        return PopulationPosterior(where.mean, C_m, where.Sigma, at, sites, covariates=effects), C_m
    m = np.linalg.lstsq(where.Phi, where.mean, rcond=None)[0]
    own = Basis(where.Phi, where.rho, np.zeros(N_ITEMS), 0.1 * np.ones(N_ITEMS), 1.0)
    C = where.Phi @ C_m @ where.Phi.T + 0.1 * np.eye(N_ITEMS)
    return PopulationPosterior(m, C_m, where.Sigma, at, sites, own, covariates=effects), C


def queries(n=60):
    rng = np.random.default_rng(2)
    left = rng.integers(N_ITEMS, size=n)
    right = (left + 1 + rng.integers(N_ITEMS - 1, size=n)) % N_ITEMS
    return rng.integers(-1, N_USERS, size=n), left, right, rng.normal(size=(n, 2))


@CASES
def test_margins_are_those_of_the_dense_gaussian(basis, largest_state):
    posterior, C = posterior_of(basis, largest_state)
    where, persons = posterior.law, referees(posterior.people, posterior.law)
    S, a = augmented(where), posterior.people.consistency
    users, left, right, x = queries()
    mean, var = posterior.margins(users, left, right, covariates=x)
    plain = posterior.margins(users, left, right)
    for place, user in enumerate(users.tolist()):
        for known, (found, spread) in ((x[place] * SPREAD, (mean, var)), (np.zeros(2), plain)):
            d = np.append(np.eye(N_ITEMS)[left[place]] - np.eye(N_ITEMS)[right[place]], known)
            expected, b, prior = d[:N_ITEMS] @ where.mean, d[:N_ITEMS], d @ S @ d
            if user >= 0:
                r, H = a[user] * persons[user].r, a[user] ** 2 * persons[user].H
                expected += d @ S @ r
                b = b - (H @ S @ d)[:N_ITEMS]
                prior -= d @ S @ H @ S @ d
            assert found[place] == pytest.approx(expected, rel=ITERATIVE, abs=ITERATIVE)
            assert spread[place] == pytest.approx(prior + b @ C @ b, rel=ITERATIVE)
    # Of boards, at equal covariates.
    for place in (0, 5, 9):
        one = posterior.person(int(users[place])).margins(left[place : place + 1], right[place : place + 1])
        np.testing.assert_allclose(np.ravel(one), [plain[0][place], plain[1][place]], rtol=CONVERGED)


@CASES
def test_people_beside_the_layout_and_parts_of_it_keep_their_effects(basis, largest_state):
    posterior, _ = posterior_of(basis, largest_state)
    users, left, right, x = queries()
    expected = posterior.margins(users, left, right, covariates=x)
    persons = {user: person_of(posterior.people, posterior.sites, user) for user in (0, 2, 5)}
    beside = replace(posterior, overlay=Overlay().plus(persons, 0))
    for other in (beside, beside.consolidated()):
        np.testing.assert_allclose(other.margins(users, left, right, covariates=x), expected, rtol=CONVERGED)
    some, _ = part_of(posterior.people, posterior.sites, np.array([4, 2]))
    np.testing.assert_array_equal(
        some.slope_columns[some.answer_ptr[1] :], beside.side_by_side([persons[2]])[0].slope_columns
    )


def test_covariates_of_the_other_sign_have_effects_of_the_other_sign():
    one, other = (at_rest(people(sign=sign), law(False))[1] for sign in (1.0, -1.0))
    assert one.evidence == pytest.approx(other.evidence, rel=CONVERGED)
    np.testing.assert_allclose(one.H, other.H, rtol=CONVERGED, atol=CONVERGED)
    np.testing.assert_allclose(one.own_slopes[:, 4::2], -other.own_slopes[:, 4::2], rtol=CONVERGED, atol=CONVERGED)
    np.testing.assert_allclose(one.own_slopes[:, 5::2], other.own_slopes[:, 5::2], rtol=CONVERGED)


def test_spreads_by_em_raise_the_evidence_to_where_its_gradient_is_nought():
    where, spread, evidence = law(False), (0.5, 0.5), -np.inf
    for _ in range(30):
        _, found = at_rest(people(spread=spread), where)
        assert found.evidence > evidence - CONVERGED
        evidence, before = found.evidence, spread
        spread = effect_spreads_of(found.own_slopes[:, 4:], spread)
    np.testing.assert_allclose(spread, before, rtol=1e-3)
    own = found.own_slopes[:, 4:]
    slope = np.sum(own[:, ::2] ** 2 - own[:, 1::2], axis=0)
    # One covariate says nothing of people: its spread goes to 0, and with it its slope.
    np.testing.assert_allclose(slope, 0.0, atol=1e-3)


def test_effects_of_people_are_those_of_the_crowd_and_their_own():
    posterior, _ = posterior_of(False, 600)
    persons, a = referees(posterior.people, posterior.law), posterior.people.consistency
    mean, sd = own_effects(posterior.people, posterior.sites, posterior.law, posterior.covariates)
    for user, one in enumerate(persons):
        moved, told = a[user] * one.r[N_ITEMS:], a[user] ** 2 * np.diagonal(one.H)[N_ITEMS:]
        np.testing.assert_allclose(mean[user], GAMMA + SPREAD * moved, rtol=ITERATIVE)
        np.testing.assert_allclose(sd[user], np.sqrt(0.01 + np.square(SPREAD) * (1.0 - told)), rtol=ITERATIVE)
