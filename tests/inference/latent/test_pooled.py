"""The pooled model against independent maximum likelihood, finite differences and exact evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr
from scipy.stats import multivariate_normal

from predilect.inference.latent import pooled
from predilect.inference.latent.pooled import fit_pooled, laplacian, margins_without_each
from referees.dense_population import design
from simulate import answers, comparisons, crowd, random_covariance, random_pairs
from tolerances import CONVERGED, EXACT, ITERATIVE

FLAT = 1e10  # prior variance that stands for none


def log_likelihood(rows, m, delta: float) -> float:
    z = m[rows.left] - m[rows.right]
    strict = log_ndtr(rows.outcome * z - delta)
    tie = np.log(ndtr(delta - np.abs(z)) - ndtr(-delta - np.abs(z))) if delta else np.zeros(len(z))
    return float(rows.weight @ np.where(rows.outcome == 0, tie, strict))


def differences(m):
    return m[:, None] - m


def test_a_flat_prior_gives_probit_maximum_likelihood():
    from statsmodels.api import Probit  # not above, since it takes long to import

    # Newton's method on dummies for all items but one.
    rows = crowd(1, 30, 6, 20, consensus_sd=0.7, person_sd=0.3)
    X = design(rows.left, rows.right, 6)
    fitted = Probit((rows.outcome == 1).astype(float), X[:, 1:]).fit(disp=0, tol=1e-12)
    ours = fit_pooled(comparisons(rows), np.eye(6), FLAT)
    assert ours.report.converged
    np.testing.assert_allclose(differences(ours.m), differences(np.r_[0.0, fitted.params]), atol=ITERATIVE)
    # The Laplace covariance of the differences is the inverse observed information of maximum likelihood.
    contrast = np.c_[-np.ones(5), np.eye(5)]
    np.testing.assert_allclose(contrast @ ours.C_m @ contrast.T, fitted.cov_params(), atol=ITERATIVE)


def test_weights_and_people_make_no_difference_to_the_pool():
    rows = crowd(2, 30, 4, 20, consensus_sd=0.7, delta=0.3)
    one = fit_pooled(comparisons(rows), np.eye(4), 3.0, delta=0.3)
    nobody = answers(np.zeros(rows.n_rows), rows.left, rows.right, rows.outcome, n_items=4)
    other = fit_pooled(comparisons(nobody), np.eye(4), 3.0, delta=0.3)
    np.testing.assert_allclose(one.m, other.m, atol=EXACT)
    assert abs(one.evidence - other.evidence) < EXACT * abs(one.evidence)


@pytest.mark.parametrize("delta", [0.2, 0.9])
def test_with_ties_it_is_the_mode_of_the_log_posterior(delta):
    # δ held, since by default it maximises Laplace's evidence and not the joint density.
    rows = crowd(3, 30, 5, 12, consensus_sd=1.0, delta=0.5)
    K = random_covariance(np.random.default_rng(0), 5)
    precision = np.linalg.inv(4.0 * K)
    ours = fit_pooled(comparisons(rows), K, 4.0, delta=delta)
    found = minimize(
        lambda m: 0.5 * m @ precision @ m - log_likelihood(rows, m, delta),
        np.zeros(5), method="BFGS", options={"gtol": 1e-5},
    )  # fmt: skip
    np.testing.assert_allclose(ours.m, found.x, atol=ITERATIVE * 10)
    # Second differences give the same curvature, so the same covariance.
    step, E = 1e-3, np.eye(5)

    def density(m):
        return log_likelihood(rows, m, delta) - 0.5 * m @ precision @ m

    hessian = np.array(
        [
            [
                sum(a * b * density(ours.m + step * (a * p + b * q)) for a in (1, -1) for b in (1, -1)) / (4 * step**2)
                for q in E
            ]
            for p in E
        ]
    )
    np.testing.assert_allclose(-np.linalg.inv(hessian), ours.C_m, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("delta", "scale"), [(0.0, 1.0), (0.4, 30.0), (0.4, FLAT)])
def test_the_gradient_vanishes_at_the_mode(delta, scale):
    rows = crowd(4, 20, 6, 10, delta=delta)
    ours = fit_pooled(comparisons(rows), np.eye(6), scale, delta=delta)
    step = 1e-5
    density = [
        [log_likelihood(rows, ours.m + s * step * e, delta) - 0.5 * np.sum((ours.m + s * step * e) ** 2) / scale
         for s in (1, -1)]
        for e in np.eye(6)
    ]  # fmt: skip
    gradient = np.array([(up - down) / (2 * step) for up, down in density])
    assert np.abs(gradient).max() < ITERATIVE * 10


def test_the_learned_threshold_maximises_the_evidence():
    rows = comparisons(crowd(5, 60, 5, 12, delta=0.5))
    learned = fit_pooled(rows, np.eye(5), 4.0)
    for factor in (0.97, 1.03):
        assert fit_pooled(rows, np.eye(5), 4.0, delta=factor * learned.delta).evidence < learned.evidence
    again = fit_pooled(rows, np.eye(5), 4.0, delta=learned.delta)
    assert abs(again.evidence - learned.evidence) < CONVERGED * abs(learned.evidence)
    np.testing.assert_allclose(again.m, learned.m, atol=CONVERGED)


@pytest.mark.parametrize("basis", [False, True])
def test_margins_without_an_answer_are_those_of_the_other_answers(basis):
    """Against the precision without one copy of it; effects of covariates are as unsure as utilities."""
    rows = comparisons(crowd(7, 8, 5, 6, delta=0.4))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows.n_rows, 2))
    rows = replace(rows, weight=rng.integers(1, 4, rows.n_rows).astype(float), covariates=x, covariate_names=("x", "y"))
    Phi = rng.normal(size=(5, 3)) if basis else None
    state = fit_pooled(rows, np.eye(3 if basis else 5), 2.0, delta=0.4, Phi=Phi)
    found = margins_without_each(state.rows, state.prior, state.mode, state.delta, rows.pooled().code)
    pooled_rows = state.rows
    of_items = np.eye(5) if Phi is None else Phi
    A = np.column_stack([of_items[pooled_rows.left] - of_items[pooled_rows.right], pooled_rows.covariates])
    _, slope, curvature = pooled_rows.likelihood(0.4).at(pooled_rows.outcome, A @ state.mode)
    H = (A * (pooled_rows.weight * curvature)[:, None]).T @ A + np.eye(A.shape[1]) / 2.0
    for k, a in enumerate(A):
        C = np.linalg.inv(H - curvature[k] * np.outer(a, a))
        np.testing.assert_allclose(found.var[k], a @ C @ a, rtol=CONVERGED)
        # One Newton step from the mode of all answers.
        np.testing.assert_allclose(found.mean[k], a @ (state.mode - slope[k] * C @ a), atol=CONVERGED)


@pytest.mark.parametrize("scale", [1.0, 16.0, FLAT])
def test_an_item_that_never_wins_stays_finite(scale):
    # Maximum likelihood would send item 2 to minus infinity.
    rows = answers([0] * 5, [0, 0, 1, 0, 1], [1, 2, 2, 1, 2], [1, 1, 1, -1, 1], n_items=3)
    ours = fit_pooled(comparisons(rows), np.eye(3), scale)
    assert ours.report.converged
    assert np.all(np.isfinite(ours.m))
    assert np.all(np.isfinite(ours.C_m))
    assert ours.m[2] < min(ours.m[0], ours.m[1])
    assert abs(ours.m[0] - ours.m[1]) < 10


@pytest.mark.parametrize("delta", [0.0, 0.5])
@pytest.mark.parametrize("scale", [0.25, 16.0])
def test_many_items_that_are_alike_to_no_other_are_fitted_the_same(delta, scale, monkeypatch):
    # By conjugate gradients and elimination what dense algebra finds; and where the gradients may not finish.
    rows = comparisons(crowd(6, 3, 60, 90, delta=delta))
    K = np.diag(np.linspace(0.5, 2.0, rows.n_items))
    dense = fit_pooled(rows, K, scale, delta=delta)
    monkeypatch.setattr(pooled, "_MANY_ITEMS", 1)
    for most in (300, 1):
        monkeypatch.setattr(pooled, "_MOST_SOLVING", most)
        sparse = fit_pooled(rows, K, scale, delta=delta)
        assert sparse.report.converged
        assert sparse.prior.precision.ndim == 1
        np.testing.assert_allclose(sparse.m, dense.m, atol=CONVERGED)
        np.testing.assert_allclose(sparse.C_m, dense.C_m, atol=CONVERGED)
        assert abs(sparse.evidence - dense.evidence) < CONVERGED * abs(dense.evidence)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_evidence_is_close_to_the_exact_one(seed):
    # Laplace within .2 of the orthant; with ties of the box.
    rng = np.random.default_rng(seed)
    n, n_items, delta = 7, 4, 0.5 * (seed % 2)
    left, right = random_pairs(rng, n, n_items)
    left[:4], right[:4] = [0, 1, 2, 3], [1, 2, 3, 0]  # every item occurs
    outcome = rng.choice([1, 0, -1] if delta else [1, -1], size=n)
    rows = answers(np.zeros(n), left, right, outcome, n_items=n_items)
    K = random_covariance(rng, n_items)
    X = design(left, right, n_items)
    low = np.select([outcome == 1, outcome == 0], [delta, -delta], -np.inf)
    high = np.select([outcome == -1, outcome == 0], [-delta, delta], np.inf)
    box = multivariate_normal.cdf(
        high, cov=X @ K @ X.T + np.eye(n), lower_limit=low, abseps=1e-7, maxpts=2_000_000, rng=1
    )
    ours = fit_pooled(comparisons(rows), K, 1.0, delta=delta)
    assert abs(ours.evidence - np.log(box)) < 0.2
    # and by the textbook formula of Laplace's method
    precision = np.linalg.inv(K)
    laplace = log_likelihood(rows, ours.m, delta) - 0.5 * ours.m @ precision @ ours.m
    laplace += 0.5 * (np.linalg.slogdet(ours.C_m)[1] - np.linalg.slogdet(K)[1])
    assert abs(ours.evidence - laplace) < CONVERGED


def test_laplacian_is_the_weighted_sum_of_outer_products():
    rng = np.random.default_rng(0)
    left, right = random_pairs(rng, 40, 5)
    weight = rng.random(40)
    X = design(left, right, 5)
    np.testing.assert_allclose(laplacian(5, left, right, weight), X.T @ np.diag(weight) @ X, atol=EXACT)


def test_a_hundred_thousand_votes_count_as_so_many():
    # With one pair and a flat prior the mode is the probit of the share.
    rows = answers([0, 0], [0, 0], [1, 1], [1, -1], [7e4, 3e4], n_items=2)
    ours = fit_pooled(comparisons(rows), np.eye(2), FLAT)
    assert abs(ndtr(ours.m[0] - ours.m[1]) - 0.7) < CONVERGED
