"""Log probabilities of partial orders, against exact orthants and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal

from predilect.inference.likelihoods.orders import Orders, PairsOfOrders, shared_noise
from tolerances import EXACT, ITERATIVE

CHOICE = ([0, 0], [1, 2])
CHAIN = ([0, 1], [1, 2])
CHOICE_OF_FOUR = ([0, 0, 0], [1, 2, 3])
CHAIN_OF_FOUR = ([0, 1, 2], [1, 2, 3])
BEST_WORST = ([0, 0, 1, 2], [1, 2, 3, 3])
LEVELS = ([0, 0, 1, 1], [2, 3, 2, 3])


def drawn(winner, loser, seed):
    """Mean, covariance of the utilities' differences and noise of one order."""
    rng = np.random.default_rng(seed)
    n = len(winner)
    B = np.zeros((n, 4))
    B[np.arange(n), winner], B[np.arange(n), loser] = 1.0, -1.0
    root = 0.4 * rng.standard_normal((4, 4))
    mean = B @ rng.standard_normal(4)
    return mean, B @ root @ root.T @ B.T, 0.5 * B @ B.T


def orders(*cases):
    """Orders one after the other, and what they are made of."""
    parts = [drawn(*kind, seed) for kind, seed in cases]
    ptr = np.cumsum([0, *(len(mean) for mean, _, _ in parts)])
    columns = (np.concatenate([np.ravel(part[place]) for part in parts]) for place in range(3))
    return Orders(ptr, *columns), parts


@pytest.mark.parametrize(("kind", "error"), [
    (CHOICE, 0.02), (CHAIN, 0.005), (CHOICE_OF_FOUR, 0.02), (CHAIN_OF_FOUR, 0.01),
    pytest.param(BEST_WORST, 0.1, marks=pytest.mark.slow), pytest.param(LEVELS, 0.15, marks=pytest.mark.slow),
])  # fmt: skip
def test_log_probabilities_are_those_of_exact_orthants(kind, error):
    told, parts = orders(*((kind, seed) for seed in range(8)))
    found = told.evidence().log_z
    for place, (mean, C, N) in enumerate(parts):
        cdf = multivariate_normal(np.zeros(len(mean)), C + N, allow_singular=True, maxpts=10**6, seed=0).cdf(mean)
        assert found[place] == pytest.approx(np.log(cdf), abs=error)
    np.testing.assert_allclose(shared_noise(told.row_ptr, np.tile(kind[0], 8), np.tile(kind[1], 8)), told.N, atol=EXACT)


def test_one_row_is_the_probit_at_any_distance():
    mean, v = np.array([-30.0, -2.0, 0.0, 1.0, 30.0]), np.array([0.0, 0.5, 1.0, 2.0, 9.0])
    found = Orders(np.arange(6), mean, v, np.ones(5)).evidence()
    np.testing.assert_allclose(found.log_z, log_ndtr(mean / np.sqrt(1.0 + v)), rtol=1e-9, atol=EXACT)
    # Noise of another size is a variance like the margin's own.
    wide = Orders(np.arange(6), mean, v, np.ones(5)).evidence(2.0, 25.0)
    np.testing.assert_allclose(wide.log_z, log_ndtr(mean / np.sqrt(25.0 + 2.0 * v)), rtol=1e-9, atol=EXACT)


def test_derivatives_are_those_of_finite_differences():
    told, _ = orders((CHOICE_OF_FOUR, 1), (CHAIN, 2), (BEST_WORST, 3))
    h = 1e-5
    found = told.evidence(0.8, derivatives=True)
    slope = (told.evidence(0.8 + h).log_z - told.evidence(0.8 - h).log_z) / (2 * h)
    np.testing.assert_allclose(found.slope, slope, rtol=ITERATIVE)
    for row in range(len(told.mean)):
        step = h * (np.arange(len(told.mean)) == row)
        high, low = (Orders(told.row_ptr, told.mean + side * step, told.C, told.N) for side in (1, -1))
        slope = (high.evidence(0.8).log_z.sum() - low.evidence(0.8).log_z.sum()) / (2 * h)
        assert found.alpha[row] == pytest.approx(slope, rel=ITERATIVE, abs=1e-9)


def test_values_without_derivatives_take_fewer_sweeps_and_are_the_same():
    told, _ = orders(*((kind, seed) for kind in (CHOICE_OF_FOUR, CHAIN_OF_FOUR, BEST_WORST) for seed in range(8)))
    quick, exact = told.evidence(), told.evidence(derivatives=True)
    np.testing.assert_allclose(quick.log_z, exact.log_z, atol=EXACT)
    np.testing.assert_allclose(quick.slope, exact.slope, atol=ITERATIVE)


def test_covariances_of_rows_come_from_variances_of_pairs():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 4))
    S = root @ root.T
    ptr, winner, loser = np.array([0, 4, 7]), np.array([0, 0, 1, 2, 3, 1, 1]), np.array([1, 2, 3, 3, 0, 0, 2])
    pairs = PairsOfOrders.of(ptr, winner, loser)
    a, b = pairs.left, pairs.right
    found = pairs.covariances(S[a, a] + S[b, b] - 2.0 * S[a, b])
    B = np.zeros((7, 4))
    B[np.arange(7), winner], B[np.arange(7), loser] = 1.0, -1.0
    C = B @ S @ B.T
    np.testing.assert_allclose(found, np.concatenate([C[:4, :4].ravel(), C[4:, 4:].ravel()]), atol=EXACT)


def test_orders_one_after_the_other_are_the_same_together():
    one, _ = orders((CHAIN, 0), (LEVELS, 1))
    other, _ = orders((CHOICE, 2))
    together = Orders.together([one, other])
    expected = np.concatenate([one.evidence().log_z, other.evidence().log_z])
    np.testing.assert_array_equal(together.evidence().log_z, expected)
    np.testing.assert_allclose(together.variances(), np.concatenate([one.variances(), other.variances()]), atol=EXACT)
