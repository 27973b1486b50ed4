"""Where inducing points lie."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.errors import DataError
from predilect.inference.gaussian.projection import centres, inducing_points

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
KNOWN = np.ones(60, dtype=bool)


def test_points_are_distinct_centres_and_the_same_for_a_seed():
    found = inducing_points(X, KNOWN, np.ones(1), 8, 3)
    assert found.points.shape == (8, 2)
    assert found.n_dropped == 0
    assert len(np.unique(found.points, axis=0)) == 8
    np.testing.assert_array_equal(found.points, inducing_points(X, KNOWN, np.ones(1), 8, 3).points)
    assert not np.array_equal(found.points, inducing_points(X, KNOWN, np.ones(1), 8, 4).points)
    order = RNG.permutation(60)  # neither ids nor order of items matter
    np.testing.assert_array_equal(found.points, inducing_points(X[order], KNOWN, np.ones(1), 8, 3).points)


def test_distances_are_in_units_of_the_length_scales():
    # A feature whose length-scale is huge does not tell points apart: each centre averages over all of it.
    found = inducing_points(X, KNOWN, np.array([0.1, 1e4]), 5, 0).points
    assert np.ptp(found[:, 0]) > 1.5
    assert np.ptp(found[:, 1]) < np.ptp(found[:, 0])
    np.testing.assert_allclose(found, centres(X / [0.1, 1e4], 5, 0) * [0.1, 1e4], rtol=1e-12)


@pytest.mark.parametrize("n_points", [60, 61, 1000])
def test_as_many_points_as_items_are_the_items(n_points):
    assert inducing_points(X, KNOWN, np.ones(2), n_points, 0) == (None, 0)


def test_items_alike_make_one_point_and_that_is_reported():
    twice = np.repeat(X[:6], 10, axis=0)
    found = inducing_points(twice, KNOWN, np.ones(1), 20, 0)
    np.testing.assert_array_equal(found.points, np.unique(X[:6], axis=0))
    assert found.n_dropped == 14
    constant = inducing_points(np.ones((60, 2)), KNOWN, np.ones(1), 20, 0)
    assert (len(constant.points), constant.n_dropped) == (1, 19)


def test_items_without_features_are_no_centres():
    known = KNOWN.copy()
    known[:50] = False
    rows = np.where(known[:, None], X, 0.0)
    assert inducing_points(rows, known, np.ones(1), 10, 0) == (None, 0)  # every item is a point
    assert len(inducing_points(rows, known, np.ones(1), 4, 0).points) == 4
    assert inducing_points(rows, ~KNOWN, np.ones(1), 4, 0) == (None, 0)


def test_no_points_at_all_are_refused():
    with pytest.raises(DataError, match="at least 1 inducing point"):
        inducing_points(X, KNOWN, np.ones(1), 0, 0)
