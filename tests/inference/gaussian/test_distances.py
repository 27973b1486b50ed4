"""Distances of many features by a matrix product: as right as differences, also where rows nearly coincide."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from predilect.inference.gaussian.kernels import matern
from predilect.inference.gaussian.kernels.stationary import squared_distances, weighted_squares
from tolerances import EXACT, ITERATIVE


def wide(n_columns=80, offset=0.0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, n_columns)) + offset
    x[5] = x[2]
    for k, step in enumerate((1e-10, 1e-7, 1e-4, 1e-2)):
        x[6 + k] = x[1] + step * rng.normal(size=n_columns)
    return x, np.vstack([x[:4], rng.normal(size=(3, n_columns)) + offset])


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_a_product_is_as_right_as_differences(offset):
    x, y = wide(offset=offset)
    scales = np.random.default_rng(1).uniform(0.5, 2.0, size=80)
    own = squared_distances(x, None, scales)
    expected = cdist(x / scales, x / scales, "sqeuclidean")
    np.testing.assert_allclose(own, expected, rtol=EXACT)
    np.testing.assert_array_equal(own, own.T)
    np.testing.assert_array_equal(np.diagonal(own), 0.0)
    assert own[2, 5] == 0.0
    cross = squared_distances(x, y, scales)
    np.testing.assert_allclose(cross, cdist(x / scales, y / scales, "sqeuclidean"), rtol=EXACT)
    assert cross[0, 0] == cross[2, 2] == cross[5, 2] == 0.0


def test_a_product_keeps_the_digits_of_near_rows():
    x, _ = wide()
    square = squared_distances(x, None, np.ones(80))
    for k in range(4):  # |x|² is 80, and the squares down to 1e-18
        expected = np.sum((x[6 + k] - x[1]) ** 2)
        assert abs(square[6 + k, 1] / expected - 1.0) < ITERATIVE
    assert abs(matern(1.0, 0.5)(x)[5, 2] - 1.0) == 0.0  # a root of rounding would be 1e-7


def test_rows_that_are_all_alike():
    x, _ = wide(offset=1e3)
    x = x[1] + 1e-3 * (x - x[1])
    for other in (None, x[3:]):
        expected = np.sum((x[:, None] - (x if other is None else other)[None]) ** 2, axis=2)
        np.testing.assert_allclose(squared_distances(x, other, np.ones(1)), expected, rtol=EXACT)
    outlier = np.vstack([x, np.full(80, -1e6)])  # moves the centre away from all the others
    found = squared_distances(outlier, None, np.ones(1))
    np.testing.assert_allclose(found, cdist(outlier, outlier, "sqeuclidean"), rtol=EXACT)


@pytest.mark.parametrize("n_columns", [3, 80])
def test_wide_and_pairs_agree(n_columns):
    x, _ = wide(n_columns)
    for order in (0.5, 1.5, 2.5):
        kernel = matern(4.0, order)
        np.testing.assert_allclose(kernel.pairs(x[6:10], x[[1, 1, 1, 1]]), kernel(x)[6:10, 1], atol=EXACT)


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("n_columns", [3, 80])
def test_weighted_squares_against_the_sum(n_columns, offset):
    x, y = wide(n_columns, offset)
    for second in (None, y):
        other = x if second is None else y
        weights = np.random.default_rng(2).normal(size=(len(x), len(other)))
        square = squared_distances(x, second, np.ones(1))
        found = weighted_squares(x, second, weights, square)
        expected = np.einsum("ij,ijd->d", weights, (x[:, None] - other[None]) ** 2)
        np.testing.assert_allclose(found, expected, atol=EXACT)


def test_the_gradient_of_matern_12_where_rows_nearly_coincide():
    # The slope there is 1/r: with the product alone the error would be rounding / r, here 1e-4 and more.
    x = np.array([[1.0, 2.0], [1.0 + 1e-13, 2.0], [1.0, 2.0 + 3e-12]])
    weights = np.ones((3, 3))
    found = matern([1.0, 1.0], 0.5).gradient(x, None, weights)
    r = np.sqrt(np.sum((x[:, None] - x[None]) ** 2, axis=2))
    ratio = np.divide(np.exp(-r), r, out=np.zeros_like(r), where=r > 0)
    expected = np.einsum("ij,ijd->d", ratio, (x[:, None] - x[None]) ** 2)
    np.testing.assert_allclose(found, expected, rtol=ITERATIVE)


def test_thirty_thousand_columns_in_bounded_memory():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 30_000))
    x[30:] = x[:30]  # all near to one another: the slow way is taken for 30 x 2 pairs
    kernel = matern(np.full(30_000, 200.0))
    weights = rng.normal(size=(60, 60))
    tracemalloc.start()
    K = kernel(x)
    gradient = kernel.gradient(x, None, weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * x.nbytes  # 60 x 60 x 30 000 would be 60 times as much
    np.testing.assert_array_equal(K[:30, 30:].diagonal(), 1.0)
    assert K[0, 1] == pytest.approx(kernel.pairs(x[:1], x[1:2])[0], abs=EXACT)
    d = 7
    step = np.zeros(30_000)
    step[d] = 1e-2
    change = [np.sum(weights * kernel.with_theta(kernel.theta + sign * step)(x)) for sign in (1, -1)]
    assert abs(gradient[d] - (change[0] - change[1]) / 2e-2) < ITERATIVE
