"""Answers about several alternatives in the pooled model, against exact orthants and finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtri, stdtrit
from scipy.stats import multivariate_normal

from predilect import Comparisons
from predilect.inference.latent.pooled import PooledAnswers, fit_pooled
from predilect.inference.latent.sandwich import dependence
from tolerances import EXACT

N_ITEMS = 6


def told(seed, n_people=10, n_tasks=4, size=3, n_pairs=2):
    """Best of some items, and pairs, of people who share their utilities; with these."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(N_ITEMS)
    rows = []
    for user in range(n_people):
        for task in range(n_tasks):
            shown = rng.permutation(N_ITEMS)[:size]
            best = shown[np.argmax(f[shown] + np.sqrt(0.5) * rng.standard_normal(size))]
            rows += [(user, task, best, other) for other in shown if other != best]
        for pair in range(n_pairs):
            a, b = rng.permutation(N_ITEMS)[:2]
            up = f[a] - f[b] + rng.standard_normal() > 0.0
            rows.append((user, n_tasks + pair, a if up else b, b if up else a))
    user, task, winner, loser = (np.array(column) for column in zip(*rows, strict=True))
    frame = {"user": user, "task": task, "left": winner, "right": loser, "winner": winner}
    found = Comparisons.from_frame(frame, columns={"task": "task"}, reading={"side": False})
    assert found.joint
    return found, f


def exact(rows, f):
    """Log-likelihood from multivariate normal probabilities."""
    total = 0.0
    for task in np.unique(rows.task):
        own = np.flatnonzero(rows.task == task)
        B = np.zeros((len(own), rows.n_items))
        B[np.arange(len(own)), rows.left[own]] += rows.outcome[own]
        B[np.arange(len(own)), rows.right[own]] -= rows.outcome[own]
        total += multivariate_normal(np.zeros(len(own)), 0.5 * B @ B.T).logcdf(B @ f)
    return total


@pytest.mark.slow
def test_the_mode_is_that_of_exact_probabilities():
    rows, _ = told(0)
    state = fit_pooled(rows, np.eye(N_ITEMS), 1.0)

    def loss(f):
        return 0.5 * f @ f - exact(rows, f)

    found = minimize(loss, state.m, method="BFGS", options={"gtol": 1e-4})
    assert state.report.converged
    np.testing.assert_allclose(state.m, found.x, atol=0.01)
    precision = np.linalg.inv(state.C_m)
    for away in 0.1 * np.eye(N_ITEMS)[:3]:
        second = (loss(state.m + away) - 2.0 * loss(state.m) + loss(state.m - away)) / 0.01
        assert abs(second / (100.0 * away @ precision @ away) - 1.0) < 0.03


@pytest.mark.parametrize("size", [3, 5])
def test_slopes_are_finite_differences(size):
    rows, f = told(1, n_people=4, size=size)
    answers = PooledAnswers.of(rows)
    margin = 0.5 * (f[rows.left] - f[rows.right])
    _, slope, information = answers.views(0.0, margin)
    step = 1e-5
    for place in range(len(margin)):
        away = step * np.eye(len(margin))[place]
        up, down = (answers.views(0.0, margin + sign * away)[0] for sign in (1.0, -1.0))
        assert abs((up - down) / (2.0 * step) - slope[place]) < 1e-6
    assert np.linalg.eigvalsh(information.toarray()).min() > 0.0


@pytest.mark.slow
def test_utilities_have_the_scale_of_the_truth_and_those_of_rows_apart_are_too_far_apart():
    slopes = []
    for joint in (True, False):
        found = []
        for seed in range(4):
            rows, f = told(seed, n_people=200, n_tasks=10, size=4, n_pairs=0)
            m = fit_pooled(replace(rows, joint=joint), np.eye(N_ITEMS), 100.0).m
            centred = f - f.mean()
            found.append(centred @ (m - m.mean()) / (centred @ centred))
        slopes.append(np.mean(found))
    assert abs(slopes[0] - 1.0) < 0.12  # standard error .04
    assert slopes[1] > 1.15 * slopes[0]


def test_people_are_left_out_with_all_their_choices():
    """D = t Σ x_u x_uᵀ - H with C x_u = (C⁻¹ - H_u)⁻¹ g_u, by matrices of each person."""
    rows, _ = told(2, n_people=7)
    state = fit_pooled(rows, np.eye(N_ITEMS), 1.0)
    A = np.eye(N_ITEMS)[rows.left] - np.eye(N_ITEMS)[rows.right]
    _, slope, W = PooledAnswers.of(rows).views(0.0, A @ state.m)
    C, W = state.C_m, W.toarray()
    G = np.zeros_like(C)
    for user in range(7):
        own = rows.user == user
        H = A[own].T @ W[np.ix_(own, own)] @ A[own]
        x = np.linalg.solve(C, np.linalg.solve(np.linalg.inv(C) - H, A[own].T @ slope[own]))
        G += np.outer(x, x)
    student = (stdtrit(6, 0.975) / ndtri(0.975)) ** 2 * 6 / 7
    np.testing.assert_allclose(dependence(state, C, rows), student * G - A.T @ W @ A, atol=1e-8)


def test_functions_that_are_the_items_make_no_difference():
    rows, _ = told(3)
    one, other = (fit_pooled(rows, np.eye(N_ITEMS), 1.0, Phi=Phi) for Phi in (None, np.eye(N_ITEMS)))
    np.testing.assert_allclose(one.m, other.m, atol=EXACT)
    np.testing.assert_allclose(one.C_m, other.C_m, atol=EXACT)


def test_many_items_are_fitted_the_same(monkeypatch):
    rows, _ = told(4)
    dense = fit_pooled(rows, np.eye(N_ITEMS), 1.0)
    monkeypatch.setattr("predilect.inference.latent.pooled._MANY_ITEMS", 3)
    sparse = fit_pooled(rows, np.eye(N_ITEMS), 1.0)
    np.testing.assert_allclose(sparse.m, dense.m, atol=1e-8)
    assert abs(sparse.evidence - dense.evidence) < 1e-8 * abs(dense.evidence)
