"""Sparse inference against its equations written densely, an independent optimiser, exact evidence and itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import multivariate_normal, norm

from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.pooled import PooledAnswers
from predilect.inference.latent.sparse.fit import ScalePrior, fit_sparse, schedule_for
from predilect.inference.latent.sparse.problem import (
    InverseScale,
    SparseGaussian,
    divergence,
    expected_sites,
    surrogate_variance,
)
from predilect.inference.latent.sparse.stochastic import Schedule, ascend, ascend_in_batches, natural_target, view
from predilect.inference.likelihoods.views import Probit
from simulate_sparse import small
from tolerances import EXACT, ITERATIVE, STATISTICAL

PRIOR = ScalePrior(2.0, 1.5)


def values(projection, q):
    lower = projection.factor.lower
    return lower @ q.mean, lower @ q.factor.inverse() @ lower.T


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("delta", [0.0, 0.4])
def test_one_batch_and_steps_of_1_are_full_variational_inference(sparse, delta):
    data = small(1, delta=delta)
    dense = data.dense(2.0, 1.5, sparse)
    projection, problem = data.projection(sparse=sparse), data.problem(sparse)
    passes = 6
    schedule = Schedule(inner_iterations=1, max_iter=passes, tolerance=0.0)
    scale = PRIOR.start(problem.n_points)
    done = ascend_in_batches(problem, SparseGaussian.prior(problem.n_points, scale.value), scale, None, schedule, 0)
    m, S = dense.start()
    for _ in range(passes):
        m, S, lam = dense.expected_step(m, S)
        b = dense.rate + 0.5 * dense.square(m, S)
        J = (dense.weight * lam) @ dense.residual  # the root of alpha - b s + J / (2 s)
        s = (dense.alpha + np.sqrt(dense.alpha**2 + 2 * b * J)) / (2 * b)
        dense.beta = dense.alpha / s
    mean, covariance = values(projection, done.q)
    np.testing.assert_allclose(mean, m, atol=EXACT)
    np.testing.assert_allclose(covariance, S, atol=EXACT)
    assert done.scale.value == pytest.approx(dense.s, rel=EXACT)
    assert view(problem.all(), done.q, done.scale, Probit(delta)).bound == pytest.approx(dense.bound(m, S), rel=EXACT)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("form", ["corrected", "2020"])
def test_the_paper_s_rule_is_its_equations(sparse, form):
    data = small(2)
    dense = data.dense(2.0, 1.5, sparse)
    problem, projection = data.problem(sparse), data.projection(sparse=sparse)
    passes = 5
    scale = PRIOR.start(problem.n_points)
    np.testing.assert_allclose(problem.prior_variance(scale.value), dense.prior * 0.75, atol=EXACT)
    Q = surrogate_variance(problem.prior_variance(scale.value), form)
    schedule = Schedule(inner_iterations=1, max_iter=passes, tolerance=0.0)
    done = ascend_in_batches(problem, SparseGaussian.prior(problem.n_points, scale.value), scale, Q, schedule, 0)
    m, S = dense.start()
    for _ in range(passes):
        m, S = dense.linearised_step(m, Q)
        dense.beta = dense.rate + 0.5 * dense.square(m, S)
    mean, covariance = values(projection, done.q)
    np.testing.assert_allclose(mean, m, atol=EXACT)
    np.testing.assert_allclose(covariance, S, atol=EXACT)
    assert done.scale.value == pytest.approx(dense.s, rel=EXACT)


def test_the_inner_loop_ends_where_the_sites_stand_still():
    data = small(3, strength=0.7)
    problem, projection = data.problem(), data.projection()
    dense = data.dense(2.0, 1.5)
    scale = dataclasses.replace(PRIOR, learned=False).start(problem.n_points)
    Q = surrogate_variance(problem.prior_variance(scale.value))
    schedule = Schedule(inner_iterations=500, inner_tolerance=1e-13, max_iter=1)
    done = ascend_in_batches(problem, SparseGaussian.prior(problem.n_points, scale.value), scale, Q, schedule, 0)
    dense.start()
    m, S = values(projection, done.q)
    again, S_again = dense.linearised_step(m, Q)
    np.testing.assert_allclose(again, m, atol=1e-8)
    np.testing.assert_allclose(S_again, S, atol=1e-8)


def test_batches_of_one_size_have_the_full_natural_gradient_for_their_mean():
    data = small(4, delta=0.3)
    problem, rng = data.problem(), np.random.default_rng(0)
    n = problem.n_rows - problem.n_rows % 5
    q = SparseGaussian.of(np.eye(6) * 2.0, rng.normal(size=6))

    def target(rows, factor):
        batch = problem.batch(rows)
        m, v = batch.margins.mean(q.mean), batch.margins.variance(q.factor.lower) + batch.residual
        return natural_target(batch, expected_sites(batch.outcome, m, v, Probit(0.3))[0], 0.8, factor)

    whole = target(np.arange(n), 1.0)
    parts = [target(rows, 5.0) for rows in np.array_split(rng.permutation(n), 5)]
    for place in (0, 1):
        np.testing.assert_allclose(np.mean([part[place] for part in parts], axis=0), whole[place], atol=EXACT)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("learned", [True, False])
def test_the_bound_never_falls(seed, learned):
    data = small(seed, n_points=4, strength=4.0, delta=0.3 * (seed % 2))
    problem = data.problem()
    scale = dataclasses.replace(PRIOR, learned=learned).start(problem.n_points)
    q = SparseGaussian.prior(problem.n_points, scale.value)
    bounds = [view(problem.all(), q, scale, problem.likelihood).bound]
    for _ in range(25):
        done = ascend(problem, q, scale, max_iter=1, tolerance=0.0)
        q, scale = done.q, done.scale
        bounds.append(done.view.bound)
    assert np.all(np.diff(bounds) >= -1e-12 * abs(bounds[0]))
    assert bounds[-1] - bounds[-2] < 1e-6
    assert scale.value == PRIOR.start(4).value or learned


def test_the_end_is_stationary_in_every_parameter():
    data = small(5, delta=0.3)
    projection, problem = data.projection(), data.problem()
    fit = fit_sparse(data.answers, projection, PRIOR, delta=0.3, max_iter=500, tolerance=1e-15)
    dense = data.dense(2.0, 1.5)
    dense.alpha, dense.beta = fit.scale.shape, fit.scale.rate
    m, S = values(projection, fit.q)
    assert fit.bound == pytest.approx(dense.bound(m, S), rel=EXACT)
    h = 1e-5
    for i in range(6):
        e = h * np.eye(6)[i]
        assert abs(dense.bound(m + e, S) - dense.bound(m - e, S)) / (2 * h) < 1e-5
        for j in range(i + 1):
            E = np.zeros((6, 6))
            E[i, j] = E[j, i] = h * np.sqrt(S[i, i] * S[j, j]) / 10
            assert abs(dense.bound(m, S + E) - dense.bound(m, S - E)) / (2 * h) < 1e-5
    for name in ("alpha", "beta"):
        at = getattr(dense, name)
        ends = []
        for sign in (1, -1):
            # alpha at a fixed mean, since the plug-in residual hangs on the mean alone
            dense.alpha, dense.beta = fit.scale.shape, fit.scale.rate
            setattr(dense, name, at * (1 + sign * 1e-4))
            ends.append(dense.bound(m, S))
        assert abs(ends[0] - ends[1]) / 2e-4 < 1e-3, name
    assert problem.n_rows <= 120


def test_an_independent_optimiser_finds_nothing_better():
    data = small(6, n_items=8, n_rows=30, n_points=3)
    dense = data.dense(2.0, 1.5)
    fit = fit_sparse(data.answers, data.projection(), PRIOR, max_iter=500, tolerance=1e-15)
    dense.start()
    places = np.tril_indices(3)

    def negative(x):
        R = np.zeros((3, 3))
        R[places] = x[3:9]
        dense.alpha, dense.beta = np.exp(x[9]), np.exp(x[10])
        return -dense.bound(x[:3], R @ R.T + 1e-12 * np.eye(3))

    start = np.r_[np.zeros(3), np.linalg.cholesky(dense.K_mm)[places], np.log(dense.alpha), np.log(dense.beta)]
    found = minimize(negative, start, method="BFGS", options={"gtol": 1e-7})
    assert fit.bound == pytest.approx(-found.fun, abs=ITERATIVE)
    m, _ = values(data.projection(), fit.q)
    np.testing.assert_allclose(found.x[:3], m, atol=1e-4)


def test_the_bound_lies_below_the_exact_evidence():
    # p(y) is an orthant probability; at a held scale z is exactly Gaussian.
    for seed in range(3):
        data = small(seed, n_items=8, n_rows=7, n_points=3)
        data = data._replace(answers=dataclasses.replace(data.answers, weight=np.ones(7)))
        problem = data.problem()
        rows = np.repeat(np.arange(problem.n_rows), problem.weight.astype(int))
        prior = ScalePrior(1.0, 1.0, learned=False)
        D = np.eye(8)[problem.left[rows]] - np.eye(8)[problem.right[rows]]
        signed = problem.outcome[rows, None] * D
        C = signed @ data.kernel(data.X) @ signed.T + np.eye(7)
        exact = np.log(multivariate_normal.cdf(np.zeros(7), np.zeros(7), C, maxpts=1_000_000, abseps=1e-6))
        full = fit_sparse(data.answers, data.projection(sparse=False), prior, tolerance=1e-12).bound
        sparse = fit_sparse(data.answers, data.projection(), prior, tolerance=1e-12).bound
        assert sparse < full < exact
        assert exact - full < 0.1


def test_the_divergence_against_its_definition():
    # KL of a Gaussian and a Gamma, by sampling.
    rng = np.random.default_rng(0)
    R = rng.normal(size=(3, 3))
    q = SparseGaussian.of(R @ R.T + np.eye(3), rng.normal(size=3))
    scale = InverseScale(4.5, 2.0, 1.7, 0.9)
    n = 200_000
    s = rng.gamma(scale.shape, 1.0 / scale.rate, n)
    u = q.mean + rng.multivariate_normal(np.zeros(3), q.factor.inverse(), n)

    log_q = stats.multivariate_normal(q.mean, q.factor.inverse()).logpdf(u)
    log_q += stats.gamma(scale.shape, scale=1.0 / scale.rate).logpdf(s)
    log_p = 1.5 * np.log(s / (2 * np.pi)) - 0.5 * s * np.sum(u * u, axis=1)
    log_p += stats.gamma(scale.prior_shape, scale=1.0 / scale.prior_rate).logpdf(s)
    sample = log_q - log_p
    assert abs(sample.mean() - divergence(q, scale)) < STATISTICAL * sample.std() / np.sqrt(n)
    assert abs(np.log(s).mean() - scale.log) < STATISTICAL * np.log(s).std() / np.sqrt(n)


@pytest.mark.slow
def test_batches_end_where_all_answers_at_once_do():
    data = small(7, n_items=60, n_rows=1500, n_points=10)
    projection = data.projection()
    full = fit_sparse(data.answers, projection, PRIOR, tolerance=1e-9)
    schedule = Schedule(batch_size=100, inner_iterations=1, whole_epoch=False)
    batched = fit_sparse(data.answers, projection, PRIOR, schedule=schedule)
    assert batched.report.converged
    assert 0.0 <= full.bound - batched.bound < 1e-4 * data.answers.n_answers
    np.testing.assert_allclose(batched.posterior().mean, full.posterior().mean, atol=0.1)
    again = fit_sparse(data.answers, projection, PRIOR, schedule=schedule, start=batched)
    assert again.report.iterations <= 5
    assert batched.bound - 1e-9 <= again.bound <= full.bound + 1e-6
    # The paper's loop over the same batches comes near its own end, too.
    rule = {"rule": "linearised"}
    one = fit_sparse(data.answers, projection, PRIOR, **rule)
    many = fit_sparse(data.answers, projection, PRIOR, schedule=Schedule(batch_size=200), **rule)
    assert np.corrcoef(one.posterior().mean, many.posterior().mean)[0, 1] > 0.99


def test_an_epoch_sees_every_answer_once():
    data = small(8, n_rows=90)
    problem = data.problem()
    schedule = Schedule(batch_size=16, max_iter=1, inner_iterations=1)
    scale = PRIOR.start(6)
    start = SparseGaussian.prior(6, scale.value)
    assert ascend_in_batches(problem, start, scale, None, schedule, 0).iterations == schedule.n_batches(problem.n_rows)
    cut = dataclasses.replace(schedule, whole_epoch=False)
    assert ascend_in_batches(problem, start, scale, None, cut, 0).iterations == 1


BATCHED = Schedule(batch_size=30, inner_iterations=2, max_iter=20)


@pytest.mark.parametrize("rule", ["expected", "linearised"])
@pytest.mark.parametrize("schedule", [None, BATCHED])
def test_orientation_order_copies_and_seeds(rule, schedule):
    data = small(9, delta=0.3)
    a, projection = data.answers, data.projection()

    def fitted(answers, **options):
        return fit_sparse(answers, projection, PRIOR, delta=0.3, rule=rule, schedule=schedule, **options).posterior()

    first = fitted(a)
    np.testing.assert_array_equal(first.mean, fitted(a).mean)
    flip = np.arange(120) % 2 == 0
    flipped = PooledAnswers(
        np.where(flip, a.right, a.left), np.where(flip, a.left, a.right),
        np.where(flip, -a.outcome, a.outcome).astype(np.int8), a.weight, a.n_items,
    )  # fmt: skip
    np.testing.assert_array_equal(first.covariance, fitted(flipped).covariance)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(120), a.weight.astype(int)))
    copies = PooledAnswers(a.left[rows], a.right[rows], a.outcome[rows], np.ones(len(rows)), a.n_items)
    np.testing.assert_array_equal(first.mean, fitted(copies).mean)
    if schedule:
        assert not np.array_equal(first.mean, fitted(a, random_state=1).mean)


@pytest.mark.parametrize("sparse", [True, False])
def test_items_in_another_order(sparse):
    data = small(10)
    order = np.random.default_rng(0).permutation(20)
    place = np.argsort(order)
    a = data.answers
    moved = PooledAnswers(place[a.left], place[a.right], a.outcome, a.weight, 20)
    projection = Projection.of(data.kernel, data.X[order], data.known, data.points if sparse else None)
    one = fit_sparse(a, data.projection(sparse=sparse), PRIOR, tolerance=1e-13).posterior()
    other = fit_sparse(moved, projection, PRIOR, tolerance=1e-13).posterior()
    np.testing.assert_allclose(other.utilities()[0], one.utilities()[0][order], atol=ITERATIVE)
    np.testing.assert_allclose(other.utilities()[1], one.utilities()[1][np.ix_(order, order)], atol=ITERATIVE)


def test_points_at_the_items_are_the_items():
    data = small(11)
    at_items = Projection.of(data.kernel, data.X, data.known, data.X)
    for rule in ("expected", "linearised"):
        one = fit_sparse(data.answers, data.projection(sparse=False), PRIOR, rule=rule).posterior()
        other = fit_sparse(data.answers, at_items, PRIOR, rule=rule).posterior()
        for ours, theirs in zip(one.utilities(), other.utilities(), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=ITERATIVE)


@pytest.mark.parametrize("rule", ["expected", "linearised"])
def test_noise_of_1_is_noise_of_a_half_with_half_the_rate(rule):
    # And the units of the answers stay: (ii) of the specification has f √2 times as large, P the same.
    data = small(12)
    projection = data.projection()
    one = fit_sparse(data.answers, projection, ScalePrior(2.0, 1.5, noise_var=0.5), rule=rule)
    two = fit_sparse(data.answers, projection, ScalePrior(2.0, 3.0, noise_var=1.0), rule=rule)
    np.testing.assert_allclose(one.posterior().mean, two.posterior().mean, atol=EXACT)
    with pytest.raises(ValueError, match="noise_var"):
        ScalePrior(noise_var=0.0).start(3)


def test_the_model_with_noise_of_1_itself():
    # (ii), Phi(z / √2) with jacobian phi(z / √2) / √2, against ours in units of the answer noise.

    data = small(13)
    problem, prior = data.problem(), ScalePrior(2.0, 3.0, noise_var=1.0, learned=False)
    dense = data.dense(2.0, 3.0)
    dense.start()
    Q = surrogate_variance(dense.prior / dense.s / 2.0)
    m = np.zeros(6)
    for _ in range(4):
        z = dense.X @ m
        g = norm.pdf(z / np.sqrt(2)) / np.sqrt(2)
        y = (dense.outcome + 1) / 2
        m, _ = dense.target(g**2 / Q, g / Q * (y - ndtr(z / np.sqrt(2)) + g * z))
    scale = prior.start(6)
    ours = ascend_in_batches(
        problem, SparseGaussian.prior(6, scale.value), scale, surrogate_variance(problem.prior_variance(scale.value)),
        Schedule(inner_iterations=1, max_iter=4, tolerance=0.0), 0,
    )  # fmt: skip
    np.testing.assert_allclose(np.sqrt(2) * values(data.projection(), ours.q)[0], m, atol=EXACT)


def test_a_fit_may_start_from_another():
    data = small(14)
    first = fit_sparse(data.answers, data.projection(), PRIOR, tolerance=1e-10)
    warm = fit_sparse(data.answers, data.projection(data.kernel.theta + 0.02), PRIOR, tolerance=1e-10, start=first)
    cold = fit_sparse(data.answers, data.projection(data.kernel.theta + 0.02), PRIOR, tolerance=1e-10)
    assert warm.report.iterations < cold.report.iterations
    assert warm.bound == pytest.approx(cold.bound, abs=1e-6)


def test_batches_for_many_answers_only():
    assert schedule_for(20_000, 500).batch_size is None
    assert schedule_for(10**6, 500).batch_size == 5000
    assert schedule_for(10**6, 25, "linearised").batch_size == 1000
    assert not schedule_for(10**6, 500).whole_epoch
