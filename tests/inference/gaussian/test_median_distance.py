"""One length-scale from the median of distances between standardised rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from predilect.inference.gaussian.kernels import Stationary
from predilect.inference.gaussian.kernels.stationary import median_distance_scales
from tolerances import EXACT

X = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 10.0, 0.1]


@pytest.mark.parametrize("rule", ["distance", "half-distance"])
def test_the_kernel_is_that_of_one_scale_for_standardised_features(rule):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    one = np.median(pdist(Z)) if rule == "distance" else np.sqrt(0.5 * np.median(pdist(Z, "sqeuclidean")))
    ours = Stationary(median_distance_scales(X, rule), "squared-exponential")(X)
    np.testing.assert_allclose(ours, Stationary(np.array([one]), "squared-exponential")(Z), atol=EXACT)


def test_constant_features_and_rows_that_are_alike():
    np.testing.assert_array_equal(median_distance_scales(np.ones((5, 2)), "distance"), [1.0, 1.0])
    np.testing.assert_array_equal(median_distance_scales(np.zeros((1, 2)), "distance"), [1.0, 1.0])
    np.testing.assert_array_equal(median_distance_scales(np.zeros((0, 2)), "distance"), [1.0, 1.0])
    two = np.column_stack([X[:, 0], np.full(30, 7.0)])
    assert median_distance_scales(two, "distance")[1] == median_distance_scales(X[:, :1], "distance")[0] / X[:, 0].std()


@pytest.mark.slow
def test_many_rows_are_drawn_by_the_seed():
    rows = np.random.default_rng(1).normal(size=(2500, 2))
    one, same, other = (median_distance_scales(rows, "distance", seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    np.testing.assert_allclose(one, other, rtol=0.05)
    assert np.any(one != other)


def test_a_rule_that_there_is_not():
    with pytest.raises(ValueError, match="rule"):
        median_distance_scales(X, "median")
