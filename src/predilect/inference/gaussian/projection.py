"""Inducing points, and the projection of a Gaussian process from them to all items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from predilect._base.stored import numbers
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.errors import DataError
from predilect.inference.gaussian.dense import Factor, factorise, symmetrise
from predilect.inference.gaussian.design import squared_differences
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.means import k_means

_ITEMS_FOR_CLUSTERS = 20_000


class InducingPoints(NamedTuple):
    """Inducing points (n_points, d), or None where they are the items, and how many fewer than asked for."""

    points: FloatArray | None
    n_dropped: int


def centres(rows: FloatArray, n_points: int, random_state: int) -> FloatArray:
    """Distinct k-means centres of rows of features, shape (<= n_points, d).

    Of at most 20 000 distinct rows. With no more distinct rows than points, the rows. One thread: several would add up
    products in any order, and the last bits would differ from run to run.
    """
    distinct = np.unique(rows, axis=0)
    if len(distinct) <= n_points:
        return distinct
    rng = np.random.default_rng(random_state)
    if len(distinct) > _ITEMS_FOR_CLUSTERS:
        distinct = distinct[np.sort(rng.choice(len(distinct), _ITEMS_FOR_CLUSTERS, replace=False))]
    with threadpool_limits(limits=1):
        return np.unique(k_means(distinct, n_points, rng), axis=0)


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


_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Projection:
    """f(items) = A f_m + r with values f_m ~ N(0, K_mm/s) at M points and r ~ N(0, R/s). crowdgppl.md 2.2.

    An item without features is uncorrelated with all others: it is a point of its own, after the others, so that its
    answers count. n_items M (d + M) + M³/3 operations, n_items M memory; R is never formed as a whole.
    """

    kernel: Kernel
    features: FloatArray  # (n_items, d)
    known: BoolArray  # whether an item has features
    points: FloatArray  # inducing points, (M, d)
    known_points: BoolArray  # False for points that stand for an item without features
    factor: Factor  # of K_mm
    # K_nm K_mm⁻¹, (n_items, M); None (the identity) where the points are the items, in their order
    A: FloatArray | None
    own: FloatArray  # diagonal of R = K_nn - A K_mn; zeros where A is the identity

    @classmethod
    def of(cls, kernel: Kernel, features: FloatArray, known: BoolArray, points: FloatArray | None) -> Projection:
        """Projection through inducing points for the items with features; None: the items.

        NotPositiveDefiniteError if K_mm is singular even with the largest jitter.
        """
        if points is None:
            factor = factorise(item_covariance(kernel, features, known))
            return cls(kernel, features, known, features, known, factor, None, np.zeros(len(features)))
        alone = np.flatnonzero(~known)
        points = np.vstack([points, features[alone]])
        known_points = np.arange(len(points)) < len(points) - len(alone)
        factor = factorise(item_covariance(kernel, points, known_points))
        A = _rows(kernel, factor, features, known, points, known_points)
        A[alone, np.flatnonzero(~known_points)] = 1.0
        return cls(kernel, features, known, points, known_points, factor, A, _own(kernel, factor, features, known, A))

    @property
    def inducing(self) -> Annotated[FloatArray | None, numbers("* *")]:
        """The inducing points that were given; None: the items."""
        return None if self.A is None else self.points[self.known_points]

    @classmethod
    def restored(
        cls, inducing: FloatArray | None, kernel: Kernel, features: FloatArray, known: BoolArray
    ) -> Projection:
        """Projection of a saved model, of which the points are stored; ValueError if they have other features."""
        if inducing is not None and inducing.shape[1] != features.shape[1]:
            raise ValueError(f"inducing points of {inducing.shape[1]} features, and items of {features.shape[1]}")
        return cls.of(kernel, features, known, inducing)

    def with_kernel(self, kernel: Kernel) -> Projection:
        """From the same points with another kernel."""
        return Projection.of(kernel, self.features, self.known, self.inducing)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.features)

    @property
    def n_points(self) -> int:
        """Number of inducing points M, items without features included."""
        return len(self.factor.lower)

    def expand(self, values: FloatArray) -> FloatArray:
        """A values, for values (M,) or (M, k) at the inducing points."""
        return values if self.A is None else np.asarray(self.A @ values)

    def roots(self) -> FloatArray:
        """B = A L with K_mm = L Lᵀ, (n_items, M): f = B u + r with u ~ N(0, I/s), without an inverse of K_mm."""
        lower = self.factor.lower
        return np.ascontiguousarray(lower if self.A is None else self.A @ lower)

    def at_points(self, mean: FloatArray, lower: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (M,) and covariance (M, M) of f_m = L u for u ~ N(mean, (lower lowerᵀ)⁻¹)."""
        half = Factor(lower, 0.0).solve_lower(self.factor.lower.T)
        return self.factor.lower @ mean, symmetrise(half.T @ half)

    def residual_pairs(self, left: IntArray, right: IntArray, roots: FloatArray | None = None) -> FloatArray:
        """Variance of r(left) - r(right) at s = 1, (n,): k(a, a) + k(b, b) - 2 k(a, b) - |B_a - B_b|², at least 0."""
        if self.A is None:
            return np.zeros(len(left))
        a, b, own, known = left, right, self.own, self.known
        if roots is None:
            items, place = np.unique(np.concatenate([left, right]), return_inverse=True)
            a, b, own = place[: len(left)], place[len(left) :], own[items]
            roots = self.A[items] @ self.factor.lower
        alike = np.zeros(len(left))
        both = np.flatnonzero(known[left] & known[right])
        for start in range(0, len(both), _ROWS_AT_ONCE):
            some = both[start : start + _ROWS_AT_ONCE]
            alike[some] = self.kernel.pairs(self.features[left[some]], self.features[right[some]])
        variance = own + np.einsum("im,im->i", roots, roots)  # k(x, x)
        out = variance[a] + variance[b] - 2.0 * alike - squared_differences(roots, a, b)
        out[left == right] = 0.0  # kernel.pairs takes its rows for different points
        return np.asarray(np.maximum(out, 0.0))

    def residual(self) -> FloatArray:
        """R at s = 1, (n_items, n_items); for few items."""
        if self.A is None:
            return np.zeros((self.n_items, self.n_items))
        root = self.A @ self.factor.lower
        R = item_covariance(self.kernel, self.features, self.known) - root @ root.T
        R[np.diag_indices(len(R))] = self.own
        return R

    def with_items(self, features: FloatArray, known: BoolArray) -> Projection:
        """With more items, predicted from the points; those without features get the prior, uncorrelated with others.

        crowdgppl.md 2.2, eq. 20. Where the points were the items, A becomes the identity above K_*n K_nn⁻¹.
        """
        new = self.at(features, known)
        assert new.A is not None
        return Projection(
            self.kernel, np.vstack([self.features, features]), np.concatenate([self.known, known]), self.points,
            self.known_points, self.factor, np.vstack([np.eye(self.n_items) if self.A is None else self.A, new.A]),
            np.concatenate([self.own, new.own]),
        )  # fmt: skip

    def at(self, features: FloatArray, known: BoolArray) -> Projection:
        """Projection to other items from the same points."""
        A = _rows(self.kernel, self.factor, features, known, self.points, self.known_points)
        own = _own(self.kernel, self.factor, features, known, A)
        return Projection(self.kernel, features, known, self.points, self.known_points, self.factor, A, own)


def item_covariance(kernel: Kernel, features: FloatArray, known: BoolArray) -> FloatArray:
    """K of items, those without features uncorrelated with all others; (n_items, n_items)."""
    K = np.zeros((len(known), len(known)))
    K[np.ix_(known, known)] = kernel(features[known])
    alone = np.flatnonzero(~known)
    K[alone, alone] = _variance_without_features(kernel, features)
    return K


def item_covariance_gradient(kernel: Kernel, features: FloatArray, known: BoolArray, weights: FloatArray) -> FloatArray:
    """Σ_ij weights_ij ∂K_ij/∂theta of :func:`item_covariance`, (n_parameters,)."""
    total = variance_gradient(kernel, features.shape[1], float(np.diagonal(weights)[~known].sum()))
    if known.any():
        total = total + kernel.gradient(features[known], None, weights[np.ix_(known, known)])
    return total


def variance_gradient(kernel: Kernel, n_features: int, weight: float) -> FloatArray:
    """Weight times the slope of the prior variance of an item without features, (n_parameters,)."""
    return kernel.diagonal_gradient(np.zeros((1, n_features)), np.array([weight]))


def _variance_without_features(kernel: Kernel, features: FloatArray) -> float:
    """Prior variance of an item without features: that of one with the mean features."""
    return float(kernel.diagonal(np.zeros((1, features.shape[1])))[0])


def _rows(
    kernel: Kernel, factor: Factor, features: FloatArray, known: BoolArray, points: FloatArray, known_points: BoolArray
) -> FloatArray:
    """K_nm K_mm⁻¹ for items with features, zeros for the others."""
    A = np.zeros((len(features), len(points)))
    places = np.flatnonzero(known)
    for start in range(0, len(places), _ROWS_AT_ONCE):
        some = places[start : start + _ROWS_AT_ONCE]
        cross = np.zeros((len(points), len(some)))
        cross[known_points] = kernel(points[known_points], features[some])
        A[some] = factor.solve(cross).T
    return A


def _own(kernel: Kernel, factor: Factor, features: FloatArray, known: BoolArray, A: FloatArray) -> FloatArray:
    own = np.where(known, kernel.diagonal(features), _variance_without_features(kernel, features))
    for start in range(0, len(A), _ROWS_AT_ONCE):
        root = A[start : start + _ROWS_AT_ONCE] @ factor.lower
        own[start : start + _ROWS_AT_ONCE] -= np.einsum("im,im->i", root, root)
    return np.maximum(own, 0.0)
