"""The posterior of a population on the items: what answers tell of a person, and new items against Monte Carlo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import invwishart

from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.posterior import GaussianPosterior
from predilect.inference.people.empirical_bayes import consensus_step
from predilect.inference.people.expectation import converge
from predilect.inference.people.law import Law
from predilect.inference.people.layout import with_own
from predilect.inference.people.posterior import PopulationPosterior
from referees.dense_population import crowd_ep
from simulate import answers, crowd, laid_out, random_covariance
from tolerances import CONVERGED, EXACT, STATISTICAL

N_ITEMS = 7
# Answers a person: pair space, item space (more answers than items met) and nobody's (person 3).
ROWS = crowd(1, 6, N_ITEMS, [4, 20, 1, 0, 9, 12], delta=0.4)


def fitted(rows, n_items=N_ITEMS, seed=0):
    rng = np.random.default_rng(seed)
    Sigma, K = random_covariance(rng, n_items, 2.0), random_covariance(rng, n_items)
    people, m = laid_out(rows), rng.standard_normal(n_items)
    sites = Sites.flat(people.n_rows)
    current = converge(people, sites, Law(Sigma, m), 0.4, tolerance=1e-14)
    _, C_m = consensus_step(m, np.linalg.inv(4.0 * K), current)
    return PopulationPosterior(m, C_m, Sigma, people, sites)


def with_items(posterior, A, R, consensus_variance, **prior):
    """New items under one kernel for people and consensus."""
    consensus = GaussianPosterior(*posterior.crowd().dense()).extended(A, R, consensus_variance=consensus_variance)
    return posterior.extended(A, R, consensus=consensus, **prior)


@pytest.fixture(scope="module")
def posterior():
    return fitted(ROWS)


def test_a_stranger_is_a_draw_from_the_population(posterior):
    mean, covariance = posterior.utilities(-1)
    np.testing.assert_array_equal(mean, posterior.m)
    np.testing.assert_allclose(covariance, posterior.Sigma + posterior.C_m, atol=EXACT)
    # Someone known who has not answered anything yet is no different.
    for one, other in zip(posterior.utilities(3), posterior.utilities(-1), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(posterior.margins([3], [0], [5]), posterior.margins([-1], [0], [5]), strict=True):
        np.testing.assert_allclose(one, other, atol=EXACT)


def test_utilities_at_another_consistency_keep_the_sites(posterior):
    people = with_own(posterior.people, np.zeros(0), np.full(6, 0.3), np.zeros(0), np.full(6, 0.4))
    careful = replace(posterior, people=people)
    for user, away in ((0, 0.0), (0, 1.5), (1, -1.0), (3, 1.5)):
        a = np.exp(0.3 + 0.4 * away)
        own, (left, right, _) = careful.answers_of(user).rows, careful.answered_rows(user)
        X = np.eye(N_ITEMS)[left] - np.eye(N_ITEMS)[right]
        S_inv = np.linalg.inv(a * a * posterior.Sigma)
        C = np.linalg.inv(S_inv + X.T @ ((own.weight * own.precision)[:, None] * X))
        mean, covariance = careful.with_consistencies(away).person(user).times(a).dense()
        np.testing.assert_allclose(mean, C @ (S_inv @ (a * posterior.m) + X.T @ (own.weight * own.linear)), atol=1e-8)
        of_consensus = a * C @ S_inv
        np.testing.assert_allclose(covariance, C + of_consensus @ posterior.C_m @ of_consensus.T, atol=1e-8)


def test_answers_make_a_person_better_known(posterior):
    users, left, right = np.repeat(np.arange(6), 21), *np.tile(np.triu_indices(7, 1), 6)
    _, var = posterior.margins(users, left, right)
    _, stranger = posterior.margins(np.full(126, -1), left, right)
    # With the consensus known, conditioning can only reduce a variance.
    certain = PopulationPosterior(posterior.m, np.zeros((7, 7)), posterior.Sigma, posterior.people, posterior.sites)
    _, var_certain = certain.margins(users, left, right)
    _, stranger_certain = certain.margins(np.full(126, -1), left, right)
    assert np.all(var_certain <= stranger_certain + EXACT)
    assert np.all(var >= var_certain)
    assert var[users == 1].mean() < 0.6 * stranger[users == 1].mean()


def kernel_parts(seed: int, n_old: int, n_new: int, w: float = 0.6):
    """K over old and new items: w of it from features, the rest white; its parts A and R."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_old + n_new, 2))
    K = w * np.exp(-0.5 * ((x[:, None] - x) ** 2).sum(axis=-1)) + (1 - w) * np.eye(n_old + n_new)
    A = K[n_old:, :n_old] @ np.linalg.inv(K[:n_old, :n_old])
    return K, A, K[n_old:, n_old:] - A @ K[:n_old, n_old:]


def test_new_items_of_the_consensus_are_gaussian_conditioning():
    # m ~ N(0, s K) over all items, and data that only see the old ones, with information H and r.
    rng = np.random.default_rng(2)
    s, n_old = 3.0, 4
    K, A, R = kernel_parts(3, n_old, 3)
    H, linear = random_covariance(rng, n_old, 2.0), rng.standard_normal(n_old)
    C = np.linalg.inv(np.linalg.inv(s * K[:n_old, :n_old]) + H)
    extended = GaussianPosterior(C @ linear, C).extended(A, R, consensus_variance=s)
    information = np.linalg.inv(s * K)
    information[:n_old, :n_old] += H
    covariance = np.linalg.inv(information)
    np.testing.assert_allclose(extended.covariance, covariance, atol=EXACT)
    np.testing.assert_allclose(extended.mean, covariance[:, :n_old] @ linear, atol=EXACT)


@pytest.mark.slow
def test_new_items_of_the_population_are_the_mean_of_the_inverse_wishart():
    # Σ ~ IW over all items with mean s K and ν + n + 1 degrees of freedom. If the formulas are E[Σ_** | Σ_oo] and
    # E[Σ_*o | Σ_oo], then what is left has mean zero and is uncorrelated with every function of Σ_oo; four are tried.
    s, nu, n_old, n_new, n_draws = 2.0, 6.0, 3, 2, 15_000
    K, A, R = kernel_parts(5, n_old, n_new)
    n = n_old + n_new
    draws = invwishart(df=nu + n + 1, scale=nu * s * K).rvs(n_draws, random_state=7)
    people = laid_out(answers([0], [0], [1], [1], n_items=n_old))
    K_oo = s * K[:n_old, :n_old]
    tests = {
        "one": lambda S: 1.0,
        "trace": lambda S: np.trace(np.linalg.solve(K_oo, S)) / n_old,
        "variance": lambda S: S[0, 0],
        "log": lambda S: np.linalg.slogdet(S)[1],
    }
    residuals = np.empty((n_draws, n_new, n))
    weights = np.empty((n_draws, len(tests)))
    flat = Sites.flat(1)
    for i, Sigma in enumerate(draws):
        S = Sigma[:n_old, :n_old]
        base = PopulationPosterior(np.zeros(n_old), np.eye(n_old), S, people, flat)
        trace = float(np.trace(np.linalg.solve(K_oo, S)))
        found = with_items(base, A, R, 1.0, scale=s, strength=nu, trace=trace).Sigma
        np.testing.assert_array_equal(found[:n_old, :n_old], S)
        residuals[i] = (Sigma - found)[n_old:]
        weights[i] = [test(S) for test in tests.values()]
    for k, name in enumerate(tests):
        product = residuals * weights[:, k, None, None]
        error = product.std(axis=0) / np.sqrt(n_draws)
        assert np.all(np.abs(product.mean(axis=0)) < STATISTICAL * error), name
    # The check can see an error of a tenth in the spread.
    spread = (draws[:, n_old:, n_old:] - A @ draws[:, :n_old, :n_old] @ A.T).mean(axis=0)
    error = np.diagonal(residuals.std(axis=0)[:, n_old:]) / np.sqrt(n_draws)
    assert np.all(0.1 * np.diagonal(spread) > STATISTICAL * error)


def test_new_items_unlike_any_other_are_strangers_to_the_data(posterior):
    # A = 0: mean zero, no covariance with old items, prior variance times how much wider Σ is than its prior.
    A, R = np.zeros((2, N_ITEMS)), np.eye(2)
    extended = with_items(posterior, A, R, 4.0, scale=2.0, strength=10.0, trace=24.0)
    assert extended.n_items == extended.people.n_items == N_ITEMS + 2
    np.testing.assert_array_equal(extended.m, np.r_[posterior.m, 0.0, 0.0])
    np.testing.assert_allclose(extended.C_m[N_ITEMS:], np.c_[np.zeros((2, N_ITEMS)), 4.0 * np.eye(2)], atol=EXACT)
    expected = 2.0 * (10.0 + 24.0) / (10.0 + N_ITEMS) * np.eye(2)
    np.testing.assert_allclose(extended.Sigma[N_ITEMS:], np.c_[np.zeros((2, N_ITEMS)), expected], atol=EXACT)
    # For a person, too: nothing that was answered says anything about them.
    f, S = extended.utilities(1)
    np.testing.assert_allclose(f[N_ITEMS:], 0.0, atol=EXACT)
    np.testing.assert_allclose(S[N_ITEMS:, N_ITEMS:], expected + 4.0 * np.eye(2), atol=EXACT)
    np.testing.assert_allclose(S[N_ITEMS:, :N_ITEMS], 0.0, atol=EXACT)


def test_what_is_said_of_known_items_stays_the_same_when_items_are_added(posterior):
    _, A, R = kernel_parts(6, N_ITEMS, 3)
    extended = with_items(posterior, A, R, 4.0, scale=2.0, strength=10.0, trace=9.0)
    users, left, right = (x.ravel() for x in np.meshgrid(np.arange(-1, 6), np.arange(7), np.arange(7)))
    for one, other in zip(posterior.margins(users, left, right), extended.margins(users, left, right), strict=True):
        np.testing.assert_allclose(one, other, atol=EXACT)
    for user in range(-1, 6):
        assert np.linalg.eigvalsh(extended.utilities(user)[1]).min() > 0
    # A new item's utility of a known person: the law of total variance, densely, over the extended population.
    people = crowd_ep(extended.Sigma, extended.m, answers_on_more(ROWS), 0.4)
    for user in (0, 1, 4):
        mean, covariance = people[user].utilities(extended.m, extended.C_m)
        found_mean, found_covariance = extended.utilities(user)
        np.testing.assert_allclose(found_mean, mean, atol=CONVERGED)
        np.testing.assert_allclose(found_covariance, covariance, atol=CONVERGED)


def answers_on_more(rows):
    """The same answers in a world of three more items."""
    return answers(rows.user, rows.left, rows.right, rows.outcome, n_items=N_ITEMS + 3, n_users=rows.n_users)


def test_the_pooled_posterior_speaks_for_everybody():
    rng = np.random.default_rng(9)
    S = random_covariance(rng, 4)
    posterior = GaussianPosterior(rng.standard_normal(4), S)
    left, right = np.array([0, 1, 3]), np.array([2, 0, 1])
    mean, var = posterior.margins(np.array([-1, 0, 5]), left, right)
    X = np.eye(4)[left] - np.eye(4)[right]
    np.testing.assert_allclose(mean, X @ posterior.mean, atol=EXACT)
    np.testing.assert_allclose(var, np.diagonal(X @ S @ X.T), atol=EXACT)


def test_thresholds_of_strangers_are_the_crowds_whoever_else_has_one_of_their_own(posterior):
    factors = np.array([0.5, 0.7, 0.9, 1.1, 1.3, 1.7])
    own = replace(posterior, people=replace(posterior.people, tie_factor=factors))
    np.testing.assert_array_equal(own.tie_factors(np.array([-1, 5, 0, -1])), [1.0, 1.7, 0.5, 1.0])
    changed = own.with_people({5: own.answers_of(5)._replace(tie_factor=np.array([2.0]))}, 0)
    np.testing.assert_array_equal(changed.tie_factors(np.array([-1, 5, 0, -1])), [1.0, 2.0, 0.5, 1.0])
    np.testing.assert_array_equal(changed.tie_factors(np.array([-1])), 1.0)
