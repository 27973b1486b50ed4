"""The paper's EP with variational Bayes: fixed point by dense algebra, special cases, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from predilect.inference.factors.answers import FactorAnswers
from predilect.inference.gaussian.kernels import Scaled, Stationary, Sum, White
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.ep import ep
from predilect.inference.latent.single import Problem
from predilect.inference.likelihoods.probit import tilted
from predilect.inference.likelihoods.views import Probit
from predilect.papers.collaborative.functions import ExactWeights, PseudoFunctions, spanning_pairs
from predilect.papers.collaborative.paper import fit_paper
from predilect.papers.collaborative.training import fit_modern
from simulate_collaborative import simulate_shared
from tolerances import EXACT, ITERATIVE

TIGHT = {"tolerance": 1e-10, "max_iter": 3000}


def rows_of(data):
    a = data.answers
    return a.user, a.left[a.pair], a.right[a.pair]


@pytest.fixture(scope="module")
def data():
    return simulate_shared(seed=2, strength=0.5)


@pytest.fixture(scope="module")
def fit(data):
    return fit_paper(data.answers, data.functions, n_components=2, **TIGHT)


@pytest.mark.parametrize("delta", [0.0, 0.5])
@pytest.mark.parametrize("preset", ["paper", "modern"])
def test_one_function_that_everybody_weighs_alike_is_gp_classification(preset, delta):
    """The evidence included."""
    data = simulate_shared(seed=1, n_users=1, n_answers=40, delta=delta, weight=np.arange(40) % 3 + 1.0)
    if preset == "paper":
        found = fit_paper(data.answers, data.functions, n_components=1, fixed_weights=True, delta=delta, **TIGHT)
    else:
        found = fit_modern(
            data.answers, data.projection, n_components=1, fixed_weights=True, delta=delta, tolerance=1e-10,
            max_iter=500,
        )  # fmt: skip
    a = data.answers
    referee = ep(
        Problem.of(data.K, a.left[a.pair], a.right[a.pair], a.outcome, a.weight, Probit(delta)), tolerance=1e-12
    )
    assert found.report.converged
    np.testing.assert_allclose(found.evidence, referee.evidence, atol=ITERATIVE)
    np.testing.assert_allclose(found.sites.precision, referee.sites.precision, atol=ITERATIVE)
    mean, var = found.posterior.margins(*rows_of(data))
    np.testing.assert_allclose(mean, referee.state.margin_mean, atol=ITERATIVE)
    np.testing.assert_allclose(var, referee.state.margin_var, atol=ITERATIVE)


def at_pairs(data, fit):
    """Mean and variance of every function's margin of every pair, shapes (n_pairs, D), and D itself, dense."""
    a, p = data.answers, fit.posterior
    D = np.eye(len(data.K))[a.left] - np.eye(len(data.K))[a.right]
    return D, D @ p.v_mean, np.stack([np.diagonal(D @ C @ D.T) for C in p.v_covariance], axis=1)


def test_it_ends_where_every_factor_is_what_the_others_ask_for(data, fit):
    """Stationarity of all blocks by dense algebra: what the messages of collaborative.md 3 come to."""
    assert fit.report.converged
    a, p = data.answers, fit.posterior
    D, h, s = at_pairs(data, fit)
    lam, r = a.weight * fit.sites.precision, fit.sites.linear / fit.sites.precision
    w, v = p.w_mean, p.w_covariance
    margin = (w[a.user] * h[a.pair]).sum(axis=1)
    for d in range(2):
        e = r - margin + w[a.user, d] * h[a.pair, d]
        for u in range(a.n_users):
            rows = a.user == u
            precision = 1.0 + lam[rows] @ (h[a.pair[rows], d] ** 2 + s[a.pair[rows], d])
            np.testing.assert_allclose(v[u, d], 1.0 / precision, atol=ITERATIVE)
            np.testing.assert_allclose(w[u, d], lam[rows] * h[a.pair[rows], d] @ e[rows] / precision, atol=ITERATIVE)
        A = D[a.pair]
        information = A.T @ ((lam * (w[a.user, d] ** 2 + v[a.user, d]))[:, None] * A)
        S = np.linalg.inv(np.linalg.inv(data.K) + information)
        np.testing.assert_allclose(p.v_covariance[d], S, atol=ITERATIVE)
        np.testing.assert_allclose(p.v_mean[:, d], S @ A.T @ (lam * w[a.user, d] * e), atol=ITERATIVE)
    mean, var = p.margins(*rows_of(data))
    proper = 1.0 - a.weight * fit.sites.precision * var > 0.0
    share = 1.0 - fit.sites.precision * var
    m, c = (mean - var * fit.sites.linear) / share, var / share
    _, slope, curvature, _, _ = tilted(a.outcome, m, np.where(proper, c, 1.0))
    assert proper.sum() > 0.8 * len(proper)
    np.testing.assert_allclose((curvature / (1.0 - curvature * c))[proper], fit.sites.precision[proper], atol=1e-5)
    np.testing.assert_allclose(
        ((slope + curvature * m) / (1.0 - curvature * c))[proper], fit.sites.linear[proper], atol=1e-5
    )  # fmt: skip


def partition(linear, precision):
    return 0.5 * np.log(2.0 * np.pi / precision) + linear**2 / (2.0 * precision)


def test_the_evidence_is_the_printed_one():
    """collaborative.md 3, "Evidence", term by term, on weak answers of which all cavities are proper."""
    data = simulate_shared(seed=4, n_users=6, n_answers=40, strength=0.2)
    data.projection.factor.lower[:] *= 0.6  # a weak prior
    fit = fit_paper(data.answers, data.functions, n_components=2, **TIGHT)
    a, p, K = data.answers, fit.posterior, data.K
    D, h, s = at_pairs(data, fit)
    w, v = p.w_mean, p.w_covariance
    mean, var = p.margins(*rows_of(data))
    lam, eta = fit.sites.precision, fit.sites.linear
    assert np.all(1.0 - lam * var > 0.0)
    n = a.weight
    cavity = 1.0 / var - lam, mean / var - eta
    log_z = tilted(a.outcome, cavity[1] / cavity[0], 1.0 / cavity[0])[0]
    q_g = partition(mean / var, 1.0 / var)
    s1 = n @ (log_z - q_g + partition(cavity[1], cavity[0]))
    r = eta / lam
    bound = n @ (-0.5 * np.log(2.0 * np.pi / lam) - 0.5 * lam * ((r - mean) ** 2 + var))
    bound -= 0.5 * np.sum(v + w**2 - 1.0 - np.log(v))
    # f̂2(h) from what is asked of each pair, f̂4 = Q / f̂2.
    pull, push = np.zeros_like(h), np.zeros_like(h)
    for d in range(2):
        e = r - mean + w[a.user, d] * h[a.pair, d]
        pull[:, d] = np.bincount(a.pair, n * lam * (w[a.user, d] ** 2 + v[a.user, d]), len(h))
        push[:, d] = np.bincount(a.pair, n * lam * w[a.user, d] * e, len(h))
    cavity_h = 1.0 / s - pull, h / s - push
    m4, v4 = cavity_h[1] / cavity_h[0], 1.0 / cavity_h[0]
    bound -= 0.5 * np.sum(np.log(v4 / s) + (s + (h - m4) ** 2) / v4 - 1.0)
    G_w, G_h = partition(w / v, 1.0 / v).sum(), partition(h / s, 1.0 / s).sum()
    prior_w = partition(np.zeros_like(w), np.ones_like(w)).sum()
    s2 = bound - n @ (q_g - partition(eta, lam)) - (G_w - prior_w) - (G_h - partition(*cavity_h[::-1]).sum())
    s3 = -prior_w
    s4 = -G_h
    for d in range(2):
        KT = D @ K @ D.T @ np.diag(pull[:, d])
        log_det = np.linalg.slogdet(np.eye(len(KT)) + KT)[1]
        s4 += 0.5 * push[:, d] @ h[:, d] - 0.5 * log_det
    total = s1 + s2 + s3 + s4 + n @ q_g + G_w + G_h
    np.testing.assert_allclose(fit.evidence, total, atol=1e-5)


@pytest.mark.slow
def test_features_that_say_nothing_are_no_features(data, fit):
    """CPU with K_users = I is CP."""
    rows = np.arange(8.0)[:, None] * 1e3
    people = Projection.of(Stationary(np.ones(1), "squared-exponential"), rows, np.ones(8, bool), None)
    found = fit_paper(data.answers, data.functions, n_components=2, people=ExactWeights.of(people), **TIGHT)
    np.testing.assert_allclose(found.evidence, fit.evidence, atol=ITERATIVE)
    for ours, theirs in zip(
        found.posterior.margins(*rows_of(data)), fit.posterior.margins(*rows_of(data)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=ITERATIVE)


def test_people_who_are_alike_share_their_weights(data, fit):
    rows = np.repeat([[0.0], [50.0]], 4, axis=0)
    kernel = Sum((Stationary(np.ones(1), "squared-exponential"), White(1e-3)))
    people = ExactWeights.of(Projection.of(kernel, rows, np.ones(8, bool), None))
    w = fit_paper(data.answers, data.functions, n_components=2, people=people).posterior.w_mean
    apart = fit.posterior.w_mean
    for group in (slice(0, 4), slice(4, 8)):
        assert np.ptp(w[group], axis=0).max() < 0.2 * np.ptp(apart[group], axis=0).max()


@pytest.mark.slow
def test_pseudo_pairs_that_span_the_items_change_nothing(data, fit):
    a = data.answers
    # Apart from the nugget, which pseudo-pairs do not know of: so without.
    kernel, known = Stationary(np.ones(1), "squared-exponential"), np.ones(6, bool)
    smooth = data._replace(projection=Projection.of(kernel, data.X, known, None))
    pseudo = spanning_pairs(a.left, a.right, 5, np.random.default_rng(0))
    sparse = PseudoFunctions.of(kernel, data.X, known, a.left, a.right, pseudo)
    found = fit_paper(a, sparse, n_components=2, **TIGHT)
    full = fit_paper(a, smooth.functions, n_components=2, **TIGHT)
    np.testing.assert_allclose(found.evidence, full.evidence, atol=ITERATIVE)
    for ours, theirs in zip(
        found.posterior.margins(*rows_of(data)), full.posterior.margins(*rows_of(data)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=ITERATIVE)
    few = fit_paper(a, PseudoFunctions.of(kernel, data.X, known, a.left, a.right, pseudo[:2]), n_components=2)
    assert np.isfinite(few.evidence)


def test_a_constant_in_the_kernel_says_nothing(data, fit):
    constant = Scaled(Stationary(1e9, "squared-exponential"), 3.0)  # 3 to the last bit
    shifted = Sum((*data.projection.kernel.kernels, constant))
    other = data._replace(projection=Projection.of(shifted, data.X, np.ones(6, bool), None))
    found = fit_paper(other.answers, other.functions, n_components=2, **TIGHT)
    np.testing.assert_allclose(found.evidence, fit.evidence, atol=ITERATIVE)


def test_sides_and_copies(data, fit):
    """A duplicate is a weight of 2, exactly."""
    swapped = FactorAnswers.of(data.user, data.right, data.left, -data.outcome, None, 8)
    found = fit_paper(swapped, data.functions, n_components=2, **TIGHT)
    assert found.evidence == fit.evidence
    ones, pair = np.ones(90), np.tile(np.arange(90), 2)
    columns = (data.user, data.left, data.right, data.outcome)
    heavy = FactorAnswers.of(*columns, 2.0 * ones, 8)
    twice = FactorAnswers.of(*(column[pair] for column in columns), None, 8)
    one, other = (fit_paper(answers, data.functions, n_components=2, max_iter=5) for answers in (heavy, twice))
    assert one.evidence == other.evidence


def test_precisions_that_are_negative_are_counted_and_never_used():
    data = simulate_shared(seed=3, n_answers=200, strength=4.0)
    found = fit_paper(data.answers, data.functions, n_components=10)
    assert found.n_rejected > 0
    assert np.all(found.sites.precision >= 0.0)
    assert np.all(found.posterior.w_covariance > 0.0)
    assert np.isfinite(found.evidence)
    assert all(np.linalg.eigvalsh(C).min() > -EXACT for C in found.posterior.v_covariance)


def test_functions_that_are_not_needed_are_pruned():
    data = simulate_shared(seed=6, n_users=30, n_components=1, n_answers=600, strength=1.5)
    found = fit_paper(data.answers, data.functions, n_components=8)
    importances = np.sort(found.importances)
    assert importances[-1] > 1.0
    assert importances[3] < 0.01 * importances[-1]


@pytest.mark.slow  # 90 fits
def test_the_evidence_prefers_the_true_length_scale():
    """Sign test over 30 data sets, against ten times shorter and longer."""
    wins = np.zeros(2)
    for seed in range(30):
        data = simulate_shared(seed=seed, n_users=15, n_items=12, n_answers=250, length_scale=1.0, strength=1.5)
        evidence = []
        for scale in (1.0, 0.1, 10.0):
            kernel = Sum((Stationary(np.array([scale]), "squared-exponential"), White(1e-4)))
            at = data._replace(projection=Projection.of(kernel, data.X, np.ones(12, bool), None))
            evidence.append(fit_paper(at.answers, at.functions, n_components=3, max_iter=20).evidence)
        assert np.isfinite(evidence).all()
        wins += evidence[0] > np.array(evidence[1:])
    assert np.all(wins >= 22)  # 22 of 30 by chance: p = .008


def test_predictive_moments_are_those_of_products_of_draws(data, fit):
    rng = np.random.default_rng(0)
    p, n = fit.posterior, 200_000
    u, i, j = 3, 0, 4
    w = p.w_mean[u] + np.sqrt(p.w_covariance[u]) * rng.standard_normal((n, 2))
    h = np.stack(
        [rng.multivariate_normal(p.v_mean[[i, j], d], p.v_covariance[d][np.ix_([i, j], [i, j])], n) for d in range(2)],
        axis=1,
    )
    z = (w * (h[:, :, 0] - h[:, :, 1])).sum(axis=1)
    mean, var = (float(x[0]) for x in p.margins(np.array([u]), np.array([i]), np.array([j])))
    assert abs(z.mean() - mean) < 4.0 * z.std() / np.sqrt(n)
    assert abs(z.var() / var - 1.0) < 0.01 + 4.0 * np.sqrt(3.0 / n)
    assert abs(norm.cdf(z).mean() - norm.cdf(mean / np.sqrt(1.0 + var))) < 0.01


def test_fixed_weights_need_one_function(data):
    with pytest.raises(ValueError, match="one function"):
        fit_paper(data.answers, data.functions, n_components=2, fixed_weights=True)
    with pytest.raises(ValueError, match="one function"):
        fit_modern(data.answers, data.projection, n_components=2, fixed_weights=True)
