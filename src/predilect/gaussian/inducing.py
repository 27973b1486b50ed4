"""Inducing points: k-means centres of the items in feature space."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from predilect._types import BoolArray, FloatArray
from predilect.errors import DataError

_ITEMS_FOR_CLUSTERS = 20_000


class InducingPoints(NamedTuple):
    """Inducing points (n_points, d), or None where they are the items, and how many fewer than asked for."""

    points: FloatArray | None
    n_dropped: int


def centres(rows: FloatArray, n_points: int, random_state: int) -> FloatArray:
    """Distinct k-means centres of rows of features, shape (<= n_points, d).

    From k-means++ on at most 20 000 distinct rows. With no more distinct rows than points, the rows. One thread:
    several would add up centres in any order, and the last bits would differ from run to run.
    """
    distinct = np.unique(rows, axis=0)
    if len(distinct) <= n_points:
        return distinct
    rng = np.random.default_rng(random_state)
    if len(distinct) > _ITEMS_FOR_CLUSTERS:
        distinct = distinct[np.sort(rng.choice(len(distinct), _ITEMS_FOR_CLUSTERS, replace=False))]
    means = KMeans(n_points, n_init=1, max_iter=20, random_state=int(rng.integers(2**31)))
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # Items that differ by rounding alone are one item to k-means, which then finds fewer centres: no harm.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = means.fit(distinct)
    return np.unique(np.asarray(found.cluster_centers_), axis=0)


def inducing_points(
    features: FloatArray, known: BoolArray, scales: FloatArray, n_points: int, random_state: int
) -> InducingPoints:
    """Inducing points of a sparse Gaussian process over items; DataError if ``n_points`` is below 1.

    Items without features become points of their own, beyond ``n_points``; ``scales`` (d,) or (1,) are the units of
    distance. crowdgppl.md 3, step 1. Points are distinct: where fewer items differ in their features than points were
    asked for, ``n_dropped`` are missing. With at least as many points as items, all different, the items are the
    points.
    """
    if n_points < 1:
        raise DataError(f"a sparse model needs at least 1 inducing point, not {n_points}")
    n_known = int(known.sum())
    if n_known == 0 or n_points >= len(features):
        return InducingPoints(None, 0)
    # Sorted as they came and only then scaled, so that the choice depends on the scales by distances alone.
    points = centres(features[known] / scales, n_points, random_state) * scales
    if len(points) == n_known:
        return InducingPoints(None, 0)
    return InducingPoints(points, n_points - len(points))
