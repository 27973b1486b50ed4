"""From a function at some points to the function at all items: the sparse Gaussian process of variational methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import Factor, factorise, symmetrise
from predilect.covariance.kernels import Kernel
from predilect.posteriors.pairs import squared_differences

__all__ = ["Projection", "item_covariance", "item_covariance_gradient", "variance_gradient"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.integer]

_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Projection:
    """f(items) = A f_m + r, where f_m are the values at M points, f_m ~ N(0, K_mm/s), and r ~ N(0, R/s).

    An item without features is alike to no other item: it is a point of its own, after the others, so that what is
    answered on it is not lost.

    Attributes
    ----------
    kernel : Kernel
    features : array of float, shape (n_items, d)
    known : array of bool, shape (n_items,)
        Whether an item has features.
    points : array of float, shape (M, d)
        Inducing points.
    known_points : array of bool, shape (M,)
        False for points that stand for an item without features.
    factor : Factor
        Cholesky factor of K_mm.
    A : array of float, shape (n_items, M), or None
        K_nm K_mm⁻¹; None where the points are the items, in their order, and A is the identity.
    own : array of float, shape (n_items,)
        Diagonal of R = K_nn - A K_mn; zeros where A is the identity.

    Notes
    -----
    crowdgppl.md 2.2. n_items M (d + M) + M³/3 operations, n_items M memory; R is never formed but for the pairs asked.
    """

    kernel: Kernel
    features: FloatArray
    known: BoolArray
    points: FloatArray
    known_points: BoolArray
    factor: Factor
    A: FloatArray | None
    own: FloatArray

    @classmethod
    def of(cls, kernel: Kernel, features: FloatArray, known: BoolArray, points: FloatArray | None) -> Projection:
        """The projection of a kernel.

        Parameters
        ----------
        kernel, features, known
            As the attributes.
        points : array of float, shape (n_points, d), or None
            Inducing points for the items with features; None: the items.

        Raises
        ------
        NotPositiveDefiniteError
            If K_mm is singular even with the largest jitter.
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

    def with_kernel(self, kernel: Kernel) -> Projection:
        """From the same points with another kernel."""
        points = None if self.A is None else self.points[self.known_points]
        return Projection.of(kernel, self.features, self.known, points)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.features)

    @property
    def n_points(self) -> int:
        """M: inducing points, items without features among them."""
        return len(self.factor.lower)

    def expand(self, values: FloatArray) -> FloatArray:
        """A values, for values at the inducing points, shape (M,) or (M, k)."""
        return values if self.A is None else np.asarray(self.A @ values)

    def roots(self) -> FloatArray:
        """B = A L with K_mm = L Lᵀ, shape (n_items, M): f = B u + r with u ~ N(0, I/s).

        Whoever works with u needs no inverse of K_mm, which for close points has none.
        """
        lower = self.factor.lower
        return np.ascontiguousarray(lower if self.A is None else self.A @ lower)

    def at_points(self, mean: FloatArray, lower: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (M,) and covariance (M, M) of f_m = L u for u ~ N(mean, (lower lowerᵀ)⁻¹)."""
        half = Factor(lower, 0.0).solve_lower(self.factor.lower.T)
        return self.factor.lower @ mean, symmetrise(half.T @ half)

    def residual_pairs(self, left: IntArray, right: IntArray, roots: FloatArray | None = None) -> FloatArray:
        """Variance of r(left) - r(right) at s = 1, shape (n,); never below 0.

        Parameters
        ----------
        left, right : arrays of int, shape (n,)
        roots : array of float, shape (n_items, M), optional
            From :meth:`roots`; by default made for the items that occur, each once, with M² operations.

        Notes
        -----
        k(a, a) + k(b, b) - 2 k(a, b) less |B_a - B_b|²; n (d + M) operations.
        """
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
        """R at s = 1, shape (n_items, n_items); for few items."""
        if self.A is None:
            return np.zeros((self.n_items, self.n_items))
        root = self.A @ self.factor.lower
        R = item_covariance(self.kernel, self.features, self.known) - root @ root.T
        R[np.diag_indices(len(R))] = self.own
        return R

    def with_items(self, features: FloatArray, known: BoolArray) -> Projection:
        """With more items, whose values follow from the points; those without features get the prior, apart.

        Parameters
        ----------
        features : array of float, shape (n_new, d)
        known : array of bool, shape (n_new,)

        Notes
        -----
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
        """The projection to other items from the same points; parameters as :meth:`with_items`."""
        A = _rows(self.kernel, self.factor, features, known, self.points, self.known_points)
        own = _own(self.kernel, self.factor, features, known, A)
        return Projection(self.kernel, features, known, self.points, self.known_points, self.factor, A, own)


def item_covariance(kernel: Kernel, features: FloatArray, known: BoolArray) -> FloatArray:
    """K of items, of which some have no features and are alike to no other; shape (n_items, n_items)."""
    K = np.zeros((len(known), len(known)))
    K[np.ix_(known, known)] = kernel(features[known])
    alone = np.flatnonzero(~known)
    K[alone, alone] = _variance_without_features(kernel, features)
    return K


def item_covariance_gradient(kernel: Kernel, features: FloatArray, known: BoolArray, weights: FloatArray) -> FloatArray:
    """Σ_ij weights_ij ∂K_ij/∂theta of :func:`item_covariance`, shape (n_parameters,)."""
    total = variance_gradient(kernel, features.shape[1], float(np.diagonal(weights)[~known].sum()))
    if known.any():
        total = total + kernel.gradient(features[known], None, weights[np.ix_(known, known)])
    return total


def variance_gradient(kernel: Kernel, n_features: int, weight: float) -> FloatArray:
    """Weight times the slope of the prior variance of an item without features, shape (n_parameters,)."""
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
