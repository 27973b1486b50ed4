"""k-means against scikit-learn's, and of rows that are hard to part."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from predilect.inference.gaussian.means import k_means
from predilect.inference.gaussian.projection import centres


def spread(rows, found):
    """Mean squared distance from the nearest centre."""
    return ((rows[:, None] - found) ** 2).sum(axis=2).min(axis=1).mean()


@pytest.mark.parametrize(("n", "d", "k"), [(600, 2, 8), (900, 5, 30), (400, 20, 50)])
def test_centres_are_as_near_as_those_of_scikit_learn(n, d, k):
    rng = np.random.default_rng(0)
    rows = 100.0 + rng.normal(size=(n, d)) + 4.0 * rng.normal(size=(6, d))[np.arange(n) % 6]
    own = [spread(rows, k_means(rows, k, np.random.default_rng(seed))) for seed in range(8)]
    theirs = [
        spread(rows, KMeans(k, n_init=1, max_iter=20, random_state=seed).fit(rows).cluster_centers_)
        for seed in range(8)
    ]
    assert np.mean(own) < 1.02 * np.mean(theirs)


def test_groups_far_apart_are_found():
    rng = np.random.default_rng(1)
    rows = np.repeat([[0.0, 0.0], [50.0, 0.0], [90.0, 50.0]], 40, axis=0) + 0.1 * rng.normal(size=(120, 2))
    for seed in range(10):
        found = np.unique(k_means(rows, 3, np.random.default_rng(seed)), axis=0)
        np.testing.assert_allclose(found, rows.reshape(3, 40, 2).mean(axis=1), atol=1e-9)


def test_the_seed_decides():
    rows = np.random.default_rng(2).normal(size=(500, 3))
    one, same, other = (centres(rows, 20, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert one.shape == (20, 3)
    assert not np.array_equal(one, other)
    np.testing.assert_array_equal(centres(rows[np.random.default_rng(3).permutation(500)], 20, 0), one)


def test_rows_that_differ_by_rounding_alone_make_fewer_centres_and_no_fuss():
    rows = np.repeat([[0.1, 0.2], [7.0, 3.0]], 30, axis=0) * (1.0 + 1e-16 * np.arange(60)[:, None])
    assert np.isfinite(centres(rows, 5, 0)).all()
    assert np.isfinite(k_means(np.ones((9, 2)), 4, np.random.default_rng(0))).all()
