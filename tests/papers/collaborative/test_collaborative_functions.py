"""Functions and weights given messages about their values: items, pairs and pseudo-pairs are one and the same model."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.factors.answers import ItemDesign
from predilect.inference.gaussian.design import Sites, preference
from predilect.inference.gaussian.kernels import Stationary, Sum, White
from predilect.inference.gaussian.projection import Projection
from predilect.papers.collaborative.functions import (
    ExactFunctions,
    ExactWeights,
    PseudoFunctions,
    PseudoWeights,
    spanning_pairs,
)
from tolerances import CONVERGED, EXACT

RNG = np.random.default_rng(5)
N = 8
X = RNG.normal(size=(N, 2))
KERNEL = Stationary(np.array([1.0]), "squared-exponential")
KNOWN = np.ones(N, bool)
LEFT, RIGHT = np.triu_indices(N, 1)
SITES = Sites(np.where(np.arange(28) % 5 == 0, 0.0, RNG.uniform(0.1, 2.0, size=28)), RNG.normal(size=28))


def dense(K, sites=SITES):
    """Marginals and log ∫ by the covariance of the pairs, which is singular."""
    n = len(K)
    T = np.diag(sites.precision)
    S = np.linalg.solve(np.eye(n) + K @ T, K)
    mean = S @ sites.linear
    return mean, np.diagonal(S), 0.5 * float(sites.linear @ mean - np.linalg.slogdet(np.eye(n) + K @ T)[1])


def exact(known=KNOWN):
    return ExactFunctions(ItemDesign.of(Projection.of(KERNEL, X, known, None), LEFT, RIGHT))


def test_items_and_pairs_are_the_same_model():
    functions = exact()
    K = preference(KERNEL(X), LEFT, RIGHT)
    np.testing.assert_allclose(functions.prior_var, np.diagonal(K), atol=EXACT)
    for ours, theirs in zip(functions.condition(SITES), dense(K), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=EXACT)
    mean, covariance = functions.at_points(SITES)
    np.testing.assert_allclose(mean[LEFT] - mean[RIGHT], dense(K)[0], atol=EXACT)
    np.testing.assert_allclose(np.diagonal(preference(covariance, LEFT, RIGHT)), dense(K)[1], atol=EXACT)


@pytest.mark.parametrize("known", [KNOWN, np.arange(N) % 3 > 0])
def test_pseudo_pairs_that_span_the_items_are_exact_on_all_pairs(known):
    """The preference kernel has rank n_items - 1."""
    pseudo = spanning_pairs(LEFT, RIGHT, 100, np.random.default_rng(0))
    assert len(pseudo) == N - 1
    sparse, full = PseudoFunctions.of(KERNEL, X, known, LEFT, RIGHT, pseudo), exact(known)
    np.testing.assert_allclose(sparse.prior_var, full.prior_var, atol=CONVERGED)
    for ours, theirs in zip(sparse.condition(SITES), full.condition(SITES), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=CONVERGED)
    ours, theirs = sparse.at_points(SITES), full.at_points(SITES)
    order = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
    np.testing.assert_allclose(ours[0] - ours[0][0], theirs[0][order] - theirs[0][order[0]], atol=1e-7)
    a, b = np.arange(1, N), np.zeros(N - 1, dtype=int)
    np.testing.assert_allclose(
        preference(ours[1], a, b), preference(theirs[1], order[a], order[b]), atol=1e-7
    )  # fmt: skip


def test_few_pseudo_pairs_are_fitc_by_the_preference_kernel():
    pseudo = spanning_pairs(LEFT, RIGHT, 3, np.random.default_rng(1))
    assert len(pseudo) == 3
    sparse = PseudoFunctions.of(KERNEL, X, KNOWN, LEFT, RIGHT, pseudo)
    K = preference(KERNEL(X), LEFT, RIGHT)
    Q = K[:, pseudo] @ np.linalg.solve(K[np.ix_(pseudo, pseudo)], K[pseudo])
    prior = Q + np.diag(np.diagonal(K - Q))
    for ours, theirs in zip(sparse.condition(SITES), dense(prior), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=CONVERGED)
    # At new pairs: given the pseudo-pairs alone, collaborative.md 4, "Predict at *".
    new = X + 0.3
    projection = sparse.projection.with_items(new, KNOWN)
    mean, covariance = sparse.at_points(SITES)
    rows = projection.A[N:]
    both = KERNEL(np.vstack([X, new]))
    cross = preference(both, LEFT + N, RIGHT + N, LEFT[pseudo], RIGHT[pseudo])
    found, K_m = sparse.fitc.condition(SITES), K[np.ix_(pseudo, pseudo)]
    gain = np.linalg.solve(K_m, cross.T).T
    f = rows @ mean
    np.testing.assert_allclose(f[LEFT] - f[RIGHT], gain @ found.point_mean, atol=1e-7)
    want = np.diagonal(preference(both[N:, N:], LEFT, RIGHT) - gain @ (K_m - found.point_covariance) @ gain.T)
    D = rows[LEFT] - rows[RIGHT]
    own = projection.residual_pairs(LEFT + N, RIGHT + N)
    np.testing.assert_allclose(np.einsum("pm,mk,pk->p", D, covariance, D) + own, want, atol=1e-6)


def test_pairs_that_close_a_circle_are_left_out():
    left, right = np.array([0, 1, 0, 3, 4, 3]), np.array([1, 2, 2, 4, 5, 5])
    for seed in range(5):
        chosen = spanning_pairs(left, right, 10, np.random.default_rng(seed))
        assert len(chosen) == 4  # two for each of two islands of three items
        D = np.eye(6)[left[chosen]] - np.eye(6)[right[chosen]]
        assert np.linalg.matrix_rank(D) == 4
    assert len(spanning_pairs(left, right, 2, np.random.default_rng(0))) == 2


@pytest.mark.parametrize("n_points", [3, 9])
def test_weights_of_people_by_all_and_by_some(n_points):
    rows = RNG.normal(size=(10, 2))
    kernel = Sum((KERNEL, White(0.1)))
    known = np.ones(10, bool)
    sites = Sites(RNG.uniform(0.0, 2.0, size=10), RNG.normal(size=10))
    full = ExactWeights.of(Projection.of(kernel, rows, known, None))
    np.testing.assert_allclose(full.prior_var, 1.1, atol=EXACT)
    for ours, theirs in zip(full.condition(sites), dense(kernel(rows), sites), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=EXACT)
    some = PseudoWeights.of(Projection.of(kernel, rows, known, rows[:n_points] + 0.01))
    np.testing.assert_allclose(some.prior_var, 1.1, atol=EXACT)
    points = rows[:n_points] + 0.01
    cross, K_m = kernel(rows, points), kernel(points)
    Q = cross @ np.linalg.solve(K_m, cross.T)
    prior = Q + np.diag(1.1 - np.diagonal(Q))
    for ours, theirs in zip(some.condition(sites), dense(prior, sites), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=CONVERGED)
