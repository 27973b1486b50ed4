"""Covariates of answers: effects in the likelihood, their gradient, and their joint covariance with the consensus."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from predilect._base.stored import build, pack
from predilect.inference.gaussian.covariates import CovariateEffects, unit_of
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.covariates import covariate_information
from predilect.inference.people.expectation import converge
from predilect.inference.people.layout import with_own
from simulate_people import plain_law, with_covariates

N_USERS, N_ITEMS = 7, 5


# Loops that nothing else in the unit tests needs, and that take long to compile.
ON_A_BASIS = pytest.param(True, marks=pytest.mark.slow)


def settled_at(gamma, law, largest_state=600):
    at = with_own(with_covariates(N_USERS, N_ITEMS, largest_state), np.zeros(0), np.zeros(0), np.asarray(gamma))
    sites = Sites.flat(at.n_rows)
    return at, sites, converge(at, sites, law, 0.3, tolerance=1e-11)


@pytest.mark.parametrize("basis", [False, ON_A_BASIS])
@pytest.mark.parametrize("largest_state", [600, 0])
def test_the_gradient_in_the_effects_is_that_of_finite_differences(basis, largest_state):
    gamma, h, where = np.array([0.4, -0.7]), 1e-5, plain_law(N_ITEMS, basis)
    _, _, found = settled_at(gamma, where, largest_state)
    for place in range(2):
        step = h * np.eye(2)[place]
        high, low = (settled_at(gamma + side * step, where, largest_state)[2].evidence for side in (1, -1))
        assert found.r_covariates[place] == pytest.approx((high - low) / (2 * h), rel=1e-6)


def test_no_effect_changes_no_bit():
    at, sites, found = settled_at([0.0, 0.0], plain_law(N_ITEMS))
    plain = replace(at, patterns=np.zeros((1, 0)), variant=np.zeros(at.n_rows, dtype=np.int64))
    plain_sites = Sites.flat(at.n_rows)
    expected = converge(plain, plain_sites, plain_law(N_ITEMS), 0.3, tolerance=1e-11)
    np.testing.assert_array_equal(sites.linear, plain_sites.linear)
    np.testing.assert_array_equal(found.H, expected.H)
    assert found.evidence == expected.evidence


def with_tasks(at):
    """The first rows of people with five or more are two tasks; all answers are strict, and were given once."""
    task = np.full(at.n_rows, -1, dtype=np.int64)
    for start, stop in pairwise(at.answer_ptr.tolist()):
        if stop - start >= 5:
            task[start : start + 4] = [0, 0, 1, 1]
    strict = np.where(at.outcome == 0, 1, at.outcome).astype(np.int8)
    return replace(at, task=task, outcome=strict, weight=np.ones(at.n_rows))


@pytest.mark.parametrize("basis", [False, ON_A_BASIS])
@pytest.mark.parametrize("largest_state", [600, 0])
@pytest.mark.parametrize("tasks", [False, True])
def test_consensus_and_effects_have_the_joint_covariance_of_the_sites(basis, largest_state, tasks):
    """Against the dense Gaussian of consensus, effects and everybody's utilities."""
    rng = np.random.default_rng(5)
    at = replace(with_covariates(N_USERS, N_ITEMS, largest_state), traits=rng.normal(size=(N_USERS, 2)))
    at = with_own(with_tasks(at) if tasks else at, np.zeros(0), np.zeros(0), np.array([0.4, -0.7]))
    where, sites = replace(plain_law(N_ITEMS, basis), shift=rng.normal(size=(N_ITEMS, 2))), Sites.flat(at.n_rows)
    found = converge(at, sites, where, 0.3, tolerance=1e-11)
    prior_m, precision = 0.8, 2.0
    Phi = where.Phi if basis else np.eye(N_ITEMS)
    M = Phi.shape[1]
    C_m = np.linalg.inv(np.eye(M) / prior_m + found.H)
    before = sites.copy()
    joint_m, joint_gamma = covariate_information(at, sites, where).joint(C_m, precision)
    np.testing.assert_array_equal(sites.linear, before.linear)
    S = where.covariance(np.arange(N_ITEMS))
    total = np.zeros((M + 2, M + 2))
    total[:M, :M], total[M:, M:] = np.eye(M) / prior_m, precision * np.eye(2)
    for user in range(N_USERS):
        rows = slice(at.answer_ptr[user], at.answer_ptr[user + 1])
        items = at.item_idx[at.item_ptr[user] : at.item_ptr[user + 1]]
        a, n = at.consistency[user], rows.stop - rows.start
        A = np.zeros((n, N_ITEMS))
        A[np.arange(n), items[at.left[rows]]] += 1.0
        A[np.arange(n), items[at.right[rows]]] -= 1.0
        told = a * a * at.weight[rows] * sites.precision[rows]
        noise = at.noise(user) if tasks and n >= 5 else 0.0
        Q = np.linalg.inv(np.diag(1.0 / told) + A @ S @ A.T + noise)
        W = np.hstack([A @ Phi, at.patterns[at.variant[rows]]])
        total += W.T @ Q @ W
    expected = np.linalg.inv(total)
    np.testing.assert_allclose(joint_m, expected[:M, :M], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(joint_gamma, expected[M:, M:], rtol=1e-8)


def test_units_are_exact_and_tables_are_in_the_units_given():
    rms = np.array([300.0, 0.07, 1.0])
    unit = unit_of(rms)
    np.testing.assert_array_equal(unit, [256.0, 0.0625, 1.0])
    x = np.random.default_rng(0).normal(size=(50, 3)) * rms
    np.testing.assert_array_equal((x / unit) * unit, x)
    effects = CovariateEffects(np.array([0.5, -1.0, 0.2]), np.diag([0.04, 0.01, 0.09]), ("a", "b", "side"), rms)
    columns = effects.columns()
    np.testing.assert_allclose(columns["effect"], [0.5 / 256, -16.0, 0.2])
    np.testing.assert_allclose(columns["effect_of_rms"], [0.5 * 300 / 256, -1.12, 0.2])
    np.testing.assert_allclose((columns["upper"] - columns["lower"]) / columns["sd"], 2 * 1.959964, rtol=1e-6)


def test_patterns_grow_and_keep_their_codes():
    effects = CovariateEffects(np.ones(1), np.eye(1), ("side",), np.ones(1), np.array([[-1.0], [1.0]]))
    same, codes = effects.with_patterns(np.array([[1.0], [-1.0]]))
    assert same is effects
    np.testing.assert_array_equal(codes, [1, 0])
    more, codes = effects.with_patterns(np.array([[-0.0], [1.0], [0.0]]))
    np.testing.assert_array_equal(codes, [2, 1, 2])
    np.testing.assert_array_equal(more.patterns, [[-1.0], [1.0], [0.0]])


def test_packed_effects_come_back_and_each_needs_a_name_of_its_own():
    effects = CovariateEffects(np.array([0.5, -1.0]), np.diag([0.04, 0.01]), ("a", "b"), np.ones(2), np.eye(2))
    values, arrays = pack(effects)
    again = build(CovariateEffects, values, arrays, {})
    np.testing.assert_array_equal(again.offsets, [0.5, -1.0])
    assert again.names == ("a", "b")
    for names in (["a", "a"], ["a"]):
        with pytest.raises(ValueError, match="2 effects of the covariates"):
            build(CovariateEffects, values | {"names": names}, arrays, {})
