"""The blocks of the factor model against dense algebra, finite differences and what has to stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import cholesky
from scipy.optimize import minimize

from predilect.inference.factors.answers import (
    FactorAnswers,
    FunctionState,
    GammaPrior,
    ItemDesign,
    scale_bound,
    scale_step,
)
from predilect.inference.factors.posterior import FactorPosterior, FactorPriors, moments, random_start
from predilect.inference.factors.sweep import WeightRegression, blocks, refreshed
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.expectation import expected
from predilect.inference.likelihoods.probit import outcome_probabilities
from predilect.papers.crowd.fit import fit_factor
from simulate import random_pairs
from simulate_factor import simulate_factor as simulate
from tolerances import CONVERGED, EXACT, ITERATIVE, STATISTICAL

PRIORS = FactorPriors(GammaPrior(2.0, 3.0), GammaPrior(2.0, 3.0))


@pytest.fixture(scope="module")
def crowd():
    return simulate()


def build(data, C=2, consensus=True, seed=3):
    answers = data.answers
    design = ItemDesign.of(data.projection, answers.left, answers.right)
    rng = np.random.default_rng(seed)
    state = random_start(answers, design, C, consensus, np.zeros((data.n_users, C)), None, rng)
    return answers, design, state, refreshed(state, answers, None, 1.0)[0]


def swept(data, n=4, **options):
    answers, design, state, sites = build(data, **options)
    for k in range(n):
        blocks(state, sites, answers, design, PRIORS, scales=k > 1)
        sites = refreshed(state, answers, sites, 0.7)[0]
    return answers, design, state, sites


def bound(state, answers, design, priors=PRIORS):
    mean, var = moments(state, answers)
    value = expected(answers.outcome, mean, var, state.threshold)[0]
    return float(answers.weight @ value) - state.divergence(priors, design)


def dense_moments(state, design, answers):
    """Mean and variance of each row's margin from items x items covariances."""
    t = state.consensus
    M = design.n_points
    R = design.projection.residual()
    mean, var = [], []
    for u, q in zip(answers.user, answers.pair, strict=True):
        d = np.zeros(len(design.G))
        d[design.left[q]], d[design.right[q]] = 1.0, -1.0
        m, v = 0.0, 0.0
        for f, s, w, w2 in [
            *([] if t is None else [(t, state.s_0, 1.0, 1.0)]),
            *(
                (state.components[c], state.s[c], state.mu[u, c], state.mu[u, c] ** 2 + state.Sigma[u, c, c])
                for c in range(state.n_components)
            ),
        ]:
            S = np.linalg.inv(f.lower @ f.lower.T) if M else np.zeros((0, 0))
            m += w * (d @ design.G @ f.mean)
            v += w2 * (d @ (design.G @ S @ design.G.T + R / s) @ d)
        delta = np.array([d @ design.G @ f.mean for f in state.components])
        mean.append(m)
        var.append(v + delta @ state.Sigma[u] @ delta)
    return np.array(mean), np.array(var)


@pytest.mark.parametrize("n_points", [None, 4])
def test_moments_are_those_of_dense_algebra(n_points):
    data = simulate(n_points=n_points)
    answers, design, state, _ = swept(data)
    for ours, theirs in zip(moments(state, answers), dense_moments(state, design, answers), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=EXACT, atol=EXACT)


def quadratic_bound(state, answers, design, sites):
    """The bound with the sites in place of the likelihood: what every block maximises."""
    mean, var = moments(state, answers)
    data = sites.linear * mean - 0.5 * sites.precision * (mean**2 + var)
    return float(answers.weight @ data) - state.divergence(PRIORS, design)


@pytest.mark.slow
@pytest.mark.parametrize("n_points", [None, 4])
def test_blocks_maximise_the_bound_of_their_sites(n_points):
    data = simulate(n_points=n_points)
    answers, design, state, sites = swept(data)
    for _ in range(1000):
        before = quadratic_bound(state, answers, design, sites)
        blocks(state, sites, answers, design, PRIORS, scales=True)
        assert quadratic_bound(state, answers, design, sites) > before - CONVERGED
    rng = np.random.default_rng(0)
    h = 1e-4

    def slope(change):
        values = []
        for step in (h, -h):
            moved = state.copy()
            change(moved, step)
            values.append(quadratic_bound(moved, answers, design, sites))
        return (values[0] - values[1]) / (2.0 * h)

    def move_function(moved, c, dm, dL):
        f = moved.consensus if c < 0 else moved.components[c]
        lower = f.lower + dL
        S = np.linalg.inv(lower @ lower.T)
        mean = f.mean + dm
        rows = design.G[design.left] - design.G[design.right]
        new = FunctionState(
            mean, lower, float(mean @ mean + np.trace(S)), float(np.linalg.slogdet(S)[1]), rows @ mean,
            np.einsum("qm,mk,qk->q", rows, S, rows),
        )  # fmt: skip
        (moved.set_consensus(new, design) if c < 0 else moved.set_component(c, new, design))

    for c in (-1, 0, 1):
        M = design.n_points
        dm, dL = rng.normal(size=M), np.tril(rng.normal(size=(M, M)))
        assert abs(slope(lambda x, e, c=c, dm=dm: move_function(x, c, e * dm, 0.0))) < 1e-3
        assert abs(slope(lambda x, e, c=c, dL=dL: move_function(x, c, 0.0, e * dL))) < 1e-3
        assert abs(slope(lambda x, e, c=c: x.set_scale(c, (x.s_0 if c < 0 else x.s[c]) * np.exp(e), design))) < 1e-3

    def move_person(moved, e, direction, spread):
        moved.mu[2] += e * direction
        Sigma = moved.Sigma[2] + e * spread
        moved.Sigma[2], moved.log_det[2] = Sigma, np.linalg.slogdet(Sigma)[1]

    spread = 0.1 * np.diag(rng.normal(size=2))
    spread[0, 1] = spread[1, 0] = 0.02
    assert abs(slope(lambda x, e: move_person(x, e, rng.normal(size=2) * 0 + 1.0, 0.0))) < 1e-5
    assert abs(slope(lambda x, e: move_person(x, e, np.zeros(2), spread))) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 0.3])
def test_the_fixed_point_is_stationary_for_the_bound(delta):
    """With the sites refreshed to the end, the bound with the true likelihood has no slope in the weights."""
    data = simulate(delta=delta, n_users=6)
    answers, design, state, sites = swept(data)
    for _ in range(500):
        blocks(state, sites, answers, design, PRIORS, scales=True)
        sites = refreshed(state, answers, sites, 0.7)[0]
    h = 1e-5
    for c in range(2):
        values = []
        for step in (h, -h):
            moved = state.copy()
            moved.mu[:, c] += step
            values.append(bound(moved, answers, design))
        assert abs(values[0] - values[1]) / (2 * h) < 1e-3
        s = state.s[c]
        values = []
        for step in (h, -h):
            moved = state.copy()
            moved.set_scale(c, s * np.exp(step), design)
            values.append(bound(moved, answers, design))
        assert abs(values[0] - values[1]) / (2 * h) < 1e-3


@pytest.mark.slow
def test_damped_and_undamped_runs_end_alike():
    """The bound never falls by more than 1e-3 an answer, and 0.7 and 0.4 reach the same one."""
    data = simulate()
    ends = []
    for step in (0.7, 0.4):
        answers, design, state, sites = build(data)
        last = -np.inf
        for k in range(500):
            blocks(state, sites, answers, design, PRIORS, scales=k > 2)
            sites = refreshed(state, answers, sites, step)[0]
            now = bound(state, answers, design)
            if k > 5:
                assert now > last - 1e-3 * answers.n_answers
            last = now
        ends.append(last)
    assert abs(ends[0] - ends[1]) < 1e-4 * abs(ends[0])


def test_gamma_scale_terms_are_the_divergence():
    """E ln p(s) - E ln q(s) against draws, and the step against the conjugate one."""
    prior, M, s = GammaPrior(2.0, 3.0), 7, 1.3
    alpha = prior.shape + M / 2
    draws = np.random.default_rng(0).gamma(alpha, s / alpha, size=400_000)
    from scipy.stats import gamma

    terms = gamma.logpdf(draws, prior.shape, scale=1 / prior.rate) - gamma.logpdf(draws, alpha, scale=s / alpha)
    terms = terms + 0.5 * M * (np.log(draws) - np.log(s))
    error = terms.std() / np.sqrt(len(draws))
    assert abs(terms.mean() - scale_bound(prior, M, s)) < STATISTICAL * error
    assert scale_step(prior, M, 5.0, 0.0) == pytest.approx(alpha / (prior.rate + 2.5), rel=EXACT)
    best = minimize(
        lambda x: -(alpha * x[0] - (prior.rate + 2.5) * np.exp(x[0]) - 4.0 / (2 * np.exp(x[0]))), [0.0], tol=1e-12
    )
    assert np.log(scale_step(prior, M, 5.0, 4.0)) == pytest.approx(best.x[0], abs=ITERATIVE * 10)


def predictions(fit, data, n=40):
    rng = np.random.default_rng(5)
    users = rng.integers(data.n_users, size=n)
    left = rng.integers(len(data.X), size=n)
    right = (left + 1) % len(data.X)
    return fit.posterior.margins(users, left, right)


OPTIONS = {"n_components": 2, "tolerance": 1e-9, "max_iter": 600, "random_state": 1, "n_restarts": 1}


@pytest.mark.slow
def test_orientation_order_and_weights_of_rows_make_no_difference(crowd):
    u, a, b, y, _, n = crowd.columns
    base = predictions(fit_factor(FactorAnswers.of(u, a, b, y, None, n), crowd.projection, **OPTIONS), crowd)
    order = np.random.default_rng(0).permutation(len(u))
    other = FactorAnswers.of(u[order], b[order], a[order], -y[order], None, n)
    flipped = fit_factor(other, crowd.projection, **OPTIONS)
    for one, two in zip(base, predictions(flipped, crowd), strict=True):
        np.testing.assert_array_equal(one, two)
    twice = [np.concatenate([x, x]) for x in (u, a, b, y)]
    doubled = fit_factor(FactorAnswers.of(*twice, None, n), crowd.projection, **OPTIONS)
    weighted = fit_factor(FactorAnswers.of(u, a, b, y, np.full(len(u), 2.0), n), crowd.projection, **OPTIONS)
    for one, two in zip(predictions(doubled, crowd), predictions(weighted, crowd), strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_bound_does_not_depend_on_the_order_of_people(crowd):
    """Draws of the start go to people in an order that follows from the answers."""
    u, a, b, y, _, n = crowd.columns
    place = np.random.default_rng(1).permutation(n)
    ends = []
    for codes in (u, place[u]):
        answers = FactorAnswers.of(codes, a, b, y, None, n)
        design = ItemDesign.of(crowd.projection, answers.left, answers.right)
        state = random_start(answers, design, 2, True, np.zeros((n, 2)), None, np.random.default_rng(3))
        sites = refreshed(state, answers, None, 1.0)[0]
        for k in range(10):
            blocks(state, sites, answers, design, PRIORS, scales=k > 2)
            sites = refreshed(state, answers, sites, 0.7)[0]
        ends.append(bound(state, answers, design))
    assert ends[0] == pytest.approx(ends[1], rel=EXACT)


def test_zero_is_a_saddle_and_the_start_is_not(crowd):
    answers, design, state, sites = build(crowd)
    state.mu[:] = 0.0
    for c in range(2):
        f = state.components[c]
        state.set_component(c, FunctionState(0.0 * f.mean, f.lower, f.square, f.log_det, 0.0 * f.delta, f.D), design)
    sites = refreshed(state, answers, None, 1.0)[0]
    for _ in range(5):
        blocks(state, sites, answers, design, PRIORS, scales=True)
        sites = refreshed(state, answers, sites, 0.7)[0]
    assert np.abs(state.mu).max() == 0.0
    assert np.abs(state.delta).max() == 0.0
    assert np.abs(swept(crowd)[2].mu).max() > 0.1


def test_one_function_is_gaussian_variational_inference():
    """C = 0 against an independent optimiser over mean and covariance."""
    data = simulate(n_users=1, n_items=5, n_answers=12, n_components=1)
    fixed = GammaPrior(1e9, 1e9)  # s_t = 1
    fit = fit_factor(
        data.answers, data.projection, n_components=0, priors=FactorPriors(fixed, fixed), tolerance=1e-12,
        max_iter=500,
    )  # fmt: skip
    answers = data.answers
    K = data.projection.factor.lower @ data.projection.factor.lower.T
    n, below = 5, np.tril_indices(5)
    D = (np.eye(n)[answers.left] - np.eye(n)[answers.right])[answers.pair]

    def loss(x):
        m, L = x[:n], np.zeros((n, n))
        L[below] = x[n:]
        S = L @ L.T
        data_term = answers.weight @ expected(answers.outcome, D @ m, np.einsum("pi,ij,pj->p", D, S, D))[0]
        solved = np.linalg.solve(K, np.column_stack([m, S]))
        log_dets = np.linalg.slogdet(K)[1] - 2 * np.log(np.abs(np.diag(L))).sum()
        return -data_term + 0.5 * (m @ solved[:, 0] + np.trace(solved[:, 1:]) - n + log_dets)

    found = minimize(loss, np.concatenate([np.zeros(n), 0.7 * cholesky(K, lower=True)[below]]), method="BFGS",
                     options={"gtol": 1e-6, "maxiter": 2000})  # fmt: skip
    mean, _ = fit.posterior.utilities(0)
    np.testing.assert_allclose(mean, found.x[:n], atol=2e-4)
    assert fit.bound == pytest.approx(-found.fun, abs=1e-3)


def test_variants_fit_and_predict():
    data = simulate(n_points=4, delta=0.4)
    for options in (
        {"consensus": False}, {"n_components": 0}, {"n_components": 20}, {"traits": data.margin[: data.n_users, None]},
    ):  # fmt: skip
        fit = fit_factor(data.answers, data.projection, **{"n_components": 2, "max_iter": 15} | options)
        mean, var = predictions(fit, data)
        assert np.isfinite(mean).all()
        assert (var > 0).all()
        assert 0.1 < fit.delta < 1.0


def test_the_tie_threshold_is_found():
    data = simulate(n_users=20, n_answers=3000, delta=0.5, n_items=6)
    fit = fit_factor(data.answers, data.projection, n_components=2, max_iter=60, tolerance=1e-5)
    assert abs(fit.delta - 0.5) < 0.06


def test_features_of_people_predict_people_without_answers():
    rng = np.random.default_rng(0)
    n_users, n = 120, 3000
    x = rng.normal(size=(n_users, 2))
    data = simulate(n_users=n_users)
    V = np.linalg.cholesky(data.projection.factor.lower @ data.projection.factor.lower.T) @ rng.normal(size=(9, 1))
    user = rng.integers(80, size=n)
    left, right = random_pairs(rng, n, 9)
    F = 1.5 * x[:, :1] @ V.T
    outcome = np.where(F[user, left] - F[user, right] + rng.normal(size=n) > 0, 1, -1)
    answers = FactorAnswers.of(user, left, right, outcome, None, n_users)
    fit = fit_factor(answers, data.projection, n_components=3, traits=x)
    left, right = np.triu_indices(9, 1)
    unseen = np.repeat(np.arange(80, 120), len(left))
    left, right = np.tile(left, 40), np.tile(right, 40)
    known, _ = fit.posterior.margins(unseen, left, right)
    new, _ = fit.posterior.margins(np.full(len(unseen), -1), left, right, traits=x[unseen])
    np.testing.assert_allclose(known, new, atol=CONVERGED)  # a person without answers is one with the same traits
    assert np.mean(np.sign(known) == np.sign(F[unseen, left] - F[unseen, right])) > 0.9


def test_effects_are_bayesian_linear_regression():
    rng = np.random.default_rng(0)
    x, mu = rng.normal(size=(30, 3)), rng.normal(size=(30, 2))
    effects = WeightRegression.start(x, 2, np.ones(30, bool)).updated(mu)
    precision = x.T @ x + 100.0 * np.eye(3)
    np.testing.assert_allclose(effects.mean, np.linalg.solve(precision, x.T @ mu).T, atol=EXACT)
    np.testing.assert_allclose(effects.covariance[0], np.linalg.inv(precision), atol=EXACT)


@pytest.mark.parametrize(
    "rows",
    [
        ([0], [0], [1], [1]),
        ([0, 0, 0], [0, 0, 2], [1, 2, 1], [1, 1, -1]),
        ([0] * 50 + [1] * 50, [0] * 100, [1] * 100, [1] * 100),
    ],
    ids=["one answer", "one person", "separable"],
)
def test_little_or_extreme_data(rows, crowd):
    fit = fit_factor(FactorAnswers.of(*rows, None, 5), crowd.projection, n_components=8, max_iter=40)
    mean, var = fit.posterior.margins(np.array([-1, 0, 4]), np.zeros(3, int), np.ones(3, int))
    assert np.isfinite(mean).all()
    assert np.isfinite(var).all()
    p = outcome_probabilities(mean, var)
    assert (p[:, 0] > 0.5).all()
    assert (p[:, 0] < 1.0).all()
    assert isinstance(fit.posterior, FactorPosterior)


def test_sites_of_the_bound_are_consistent(crowd):
    answers, _, state, _ = swept(crowd)
    sites, slope, _ = refreshed(state, answers, None, 1.0)
    mean, _ = moments(state, answers)
    assert isinstance(sites, Sites)
    np.testing.assert_allclose(sites.linear - sites.precision * mean, slope, atol=EXACT)
