"""Utilities that move, against a dense Gaussian process over items and times, and the pooled model as a limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect.inference.latent.drift import Chain, Moving, States, TimedAnswers, fit_drift, grid_of, refined
from predilect.inference.latent.pooled import PooledAnswers, PooledPrior, refit_pooled
from referees import dense_drift
from tolerances import CONVERGED, EXACT, ITERATIVE

N, T = 6, 40
LEVEL, MOVING = 1.3, Moving(0.5, 2.0)


def answers(n=300, seed=0, ties=True, effects=False, n_items=N, n_times=T):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.random(n_times)) * 10.0
    left = rng.integers(n_items, size=n)
    right = (left + rng.integers(1, n_items, size=n)) % n_items
    outcome = rng.choice([1, 0, -1] if ties else [1, -1], n).astype(np.int8)
    x = rng.standard_normal((n, 1)) if effects else None
    at = rng.integers(n_times, size=n)
    at[:n_times] = np.arange(n_times)
    return TimedAnswers(PooledAnswers(left, right, outcome, np.ones(n), n_items, covariates=x), at, times)


def parts(timed):
    rows = timed.rows
    A = dense_drift.design(timed.at, rows.left, rows.right, rows.n_items, len(timed.times))
    return dense_drift.prior(timed.times, rows.n_items, LEVEL, MOVING.variance, MOVING.length), A


def prior(timed):
    x = timed.rows.covariates
    return PooledPrior.of(np.eye(timed.rows.n_items), LEVEL, None, 0 if x is None else x.shape[1])


def test_mode_covariances_and_evidence_are_those_of_the_dense_process():
    timed = answers()
    found = fit_drift(timed, prior(timed), MOVING, 0.3)
    dense = dense_drift.laplace(*parts(timed), timed.rows.outcome, 0.3)
    np.testing.assert_allclose(found.state.rest + found.state.g, dense.mean.reshape(T, N), atol=ITERATIVE)
    assert found.evidence == pytest.approx(dense.evidence, abs=ITERATIVE * 100)
    for j, C in zip(reversed(range(T)), found.chain.utilities(), strict=True):
        some = slice(j * N, (j + 1) * N)
        np.testing.assert_allclose(C, dense.covariance[some, some], atol=ITERATIVE)


def test_effects_of_covariates_are_learned_beside_what_moves():
    timed = answers(effects=True)
    K, A = parts(timed)
    K = np.block([[K, np.zeros((len(K), 1))], [np.zeros((1, len(K))), LEVEL * np.eye(1)]])
    dense = dense_drift.laplace(K, np.hstack([A, timed.rows.covariates]), timed.rows.outcome, 0.3)
    found = fit_drift(timed, prior(timed), MOVING, 0.3)
    np.testing.assert_allclose(found.state.rest[N:], dense.mean[-1:], atol=ITERATIVE)
    last = np.append((T - 1) * N + np.arange(N), N * T)
    np.testing.assert_allclose(next(found.chain.utilities()), dense.covariance[np.ix_(last, last)], atol=ITERATIVE)


@pytest.mark.slow
def test_expectation_propagation_is_that_of_the_dense_process():
    """Site by site there, and in parallel here."""
    rng = np.random.default_rng(5)
    timed = answers(n=300, seed=5, ties=False, n_items=8, n_times=30)
    K, A = parts(timed)
    f = np.linalg.cholesky(K) @ rng.standard_normal(len(K))
    outcome = np.where(A @ f + rng.standard_normal(len(A)) > 0, 1, -1).astype(np.int8)
    rows = PooledAnswers(timed.rows.left, timed.rows.right, outcome, np.ones(len(A)), 8)
    timed = TimedAnswers(rows, timed.at, timed.times)
    laplace = fit_drift(timed, prior(timed), MOVING, 0.0)
    found = refined(timed, prior(timed), MOVING, 0.0, laplace, CONVERGED)
    reference = dense_drift.ep(K, A, outcome)
    sd = np.concatenate([np.sqrt(np.diagonal(C)) for C in found.chain.utilities()][::-1])
    np.testing.assert_allclose((found.state.rest + found.state.g).ravel(), reference.mean, atol=ITERATIVE)
    np.testing.assert_allclose(sd, np.sqrt(np.diagonal(reference.covariance)), rtol=ITERATIVE)
    usual = refined(timed, prior(timed), MOVING, 0.0, laplace)  # leaves off earlier
    np.testing.assert_allclose(usual.state.flat, found.state.flat, atol=1e-3)
    shrunk = np.polyfit(reference.mean, (laplace.state.rest + laplace.state.g).ravel(), 1)[0]
    assert 0.8 < shrunk < 0.97  # modes lie nearer to 0 than means: why it is not the end


def test_a_weight_is_as_many_answers_to_expectation_propagation():
    timed = answers(n=80, ties=True)
    rows, twice = timed.rows, np.tile(np.arange(80), 2)
    double = TimedAnswers(replace(rows, weight=np.full(80, 2.0)), timed.at, timed.times)
    both = replace(rows, left=rows.left[twice], right=rows.right[twice], outcome=rows.outcome[twice],
                   weight=np.ones(160))  # fmt: skip
    each = TimedAnswers(both, timed.at[twice], timed.times)
    one, two = (
        refined(some, prior(some), MOVING, 0.3, fit_drift(some, prior(some), MOVING, 0.3), CONVERGED)
        for some in (double, each)
    )
    np.testing.assert_allclose(one.state.flat, two.state.flat, atol=ITERATIVE)


def test_without_anything_that_moves_it_is_the_pooled_model():
    timed = answers()
    still = refit_pooled(timed.rows, prior(timed), 0.3, np.zeros(N))
    for moving in (Moving(1e-10, 2.0), Moving(1e-6, 1e9)):
        found = fit_drift(timed, prior(timed), moving, 0.3)
        np.testing.assert_allclose(found.state.rest + found.state.g[0], still.mode, atol=1e-5)
        np.testing.assert_allclose(next(found.chain.utilities()), still.covariance(), atol=1e-5)
    tiny = fit_drift(timed, prior(timed), Moving(1e-10, 2.0), 0.3)
    np.testing.assert_allclose(tiny.state.rest, still.mode, atol=ITERATIVE)
    assert tiny.evidence == pytest.approx(still.evidence, abs=ITERATIVE)


def test_solving_is_the_inverse_of_the_precision():
    timed = answers()
    found = fit_drift(timed, prior(timed), MOVING, 0.3)
    rng = np.random.default_rng(3)
    right = States(rng.standard_normal((T, N)), rng.standard_normal(N))
    solved = found.chain.solve(right)
    cross = [H for _, H in found.chain.covariances()][::-1]
    m = found.chain.covariance @ right.rest + sum(H.T @ g for H, g in zip(cross, right.g, strict=True))
    np.testing.assert_allclose(solved.rest, m, atol=EXACT)


def test_times_without_answers_change_nothing_at_the_others():
    timed = answers()
    found = fit_drift(timed, prior(timed), MOVING, 0.3)
    more = np.union1d(timed.times, [0.05, 3.3, 11.0])
    about = [None] * len(more)
    for place, one in zip(np.searchsorted(more, timed.times), found.about, strict=True):
        about[place] = one
    chain = Chain.of(more, MOVING, prior(timed), about)
    kept = np.isin(more, timed.times)[::-1]
    again = [C for C, keep in zip(chain.utilities(), kept, strict=True) if keep]
    for one, two in zip(again, found.chain.utilities(), strict=True):
        np.testing.assert_allclose(one, two, atol=EXACT)


def test_a_start_does_not_change_the_mode():
    timed = answers()
    one = fit_drift(timed, prior(timed), MOVING, 0.3)
    other = fit_drift(timed, prior(timed), MOVING, 0.3, fit_drift(timed, prior(timed), Moving(2.0, 0.5), 0.3))
    np.testing.assert_allclose(one.state.flat, other.state.flat, atol=ITERATIVE)
    assert one.evidence == pytest.approx(other.evidence, abs=ITERATIVE)


def test_a_grid_takes_times_as_they_are_or_together():
    rng = np.random.default_rng(0)
    time, weight = rng.random(500) * 7.0, rng.integers(1, 4, 500).astype(float)
    times, at = grid_of(time, weight, 1000)
    np.testing.assert_array_equal(times[at], time)
    times, at = grid_of(time, weight, 40)
    assert 30 < len(times) <= 40
    assert (np.diff(times) > 0.0).all()
    for j, one in enumerate(times):
        assert one == pytest.approx(np.average(time[at == j], weights=weight[at == j]), abs=EXACT)
    assert max(np.ptp(time[at == j]) for j in range(len(times))) < 2.2 * 7.0 / 40
    moved, same = grid_of(3.0 * time - 1e4, weight, 40)
    np.testing.assert_array_equal(same, at)
    np.testing.assert_allclose(moved, 3.0 * times - 1e4, rtol=EXACT)
