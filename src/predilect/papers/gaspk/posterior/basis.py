"""Basis of the characteristics at the points: linear in independent coordinates of variance 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import eigenpairs, pivoted_cholesky, solve_lower, symmetrise
from predilect.inference.gaussian.kernels import Antisymmetric, Kernel, Scaled, Stationary

MOST_RANK = 1500
_EXACT_POINTS = 1500
_ROUNDING = 1e-12  # of the largest variance: what is left is rounding
_SMALL = 1e-3


class CovarianceApproximation(Protocol):
    """Covariances of the characteristics without a solution for each."""

    def blocks(self, x: FloatArray) -> FloatArray:
        """Covariances at trade-offs (q, d), shape (q, n_c, n_c)."""
        ...

    def point_blocks(self, points: IntArray) -> FloatArray:
        """Covariances at some of the points."""
        ...


class PointBasis(Protocol):
    """f at the points is Φ w, w ~ N(0, I)."""

    @property
    def n_points(self) -> int:
        """Rows of Φ."""
        ...

    @property
    def rank(self) -> int:
        """Columns of Φ."""
        ...

    @property
    def sizes(self) -> FloatArray:
        """How much the points vary along each coordinate, shape (rank,)."""
        ...

    @property
    def left_out(self) -> float:
        """Largest residual prior variance, as a share of the largest."""
        ...

    @property
    def grows(self) -> bool:
        """Whether :meth:`DenseBasis.extended` adds further points."""
        ...

    def times(self, factor: float, kernel: Kernel) -> PointBasis:
        """The basis of ``kernel``, which is ``factor`` times this one's."""
        ...

    def only(self, coordinates: IntArray) -> PointBasis:
        """The basis without the other coordinates."""
        ...

    def widened(self, n_new: int) -> PointBasis | None:
        """The basis with further dimensions of trade-offs, 0 at all points; None where it cannot have them."""
        ...

    def low_rank(self, B: FloatArray, n_e: int) -> CovarianceApproximation | None:
        """The posterior for blocks ``B`` from n_e eigenvectors; None where that is no saving."""
        ...

    def forward(self, w: FloatArray) -> FloatArray:
        """Φ w, from shape (rank, k) to (n_points, k)."""
        ...

    def backward(self, v: FloatArray) -> FloatArray:
        """Φᵀ v, from shape (n_points, k) to (rank, k)."""
        ...

    def gram_diagonal(self, weights: FloatArray) -> FloatArray:
        """Σ_t Φ_tj² weights_tk, from shape (n_points, k) to (rank, k)."""
        ...

    def dense(self) -> FloatArray:
        """Φ, shape (n_points, rank)."""
        ...

    def columns(self, coordinates: IntArray) -> FloatArray:
        """Some columns of Φ, shape (n_points, len(coordinates))."""
        ...

    def point_rows(self, points: IntArray) -> FloatArray:
        """Some rows of Φ, shape (len(points), rank), without ever forming all of it on a large grid."""
        ...

    def at_trade_offs(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """Φ w at any trade-offs (q, d), shape (q, k)."""
        ...

    def rows(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows of Φ at any trade-offs (q, d), shape (q, rank), and the residual prior variance, (q,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DenseBasis:
    """Φ of K ≈ Φ Φᵀ over any points: no grid, any dimension.

    docs/math/gaspk.md section 1.1. A pivoted Cholesky and a rotation to orthogonal columns, in which precisions are
    nearly diagonal. n_points rank² operations once, n_points rank memory and operations for each product.
    """

    kernel: Kernel
    pivots: FloatArray  # (p, d), points that Φ is made from
    root: FloatArray  # (n_points, rank), Φ; orthogonal columns
    back: FloatArray  # (p, rank): trade-off x has the row k(x, pivots) back
    left_out: float  # largest residual prior variance, as a share of the largest

    @property
    def grows(self) -> bool:
        return True

    @classmethod
    def of(cls, kernel: Kernel, points: FloatArray, most_rank: int = MOST_RANK) -> DenseBasis:
        """The basis of a kernel at points.

        Up to 1 500 points exact up to rounding. Of more what leaves out at most 1e-3 of a prior variance at any point
        (three hundredths of a standard deviation), but of rank ``most_rank`` at most.
        """
        n = len(points)
        few = n <= _EXACT_POINTS
        diagonal = np.maximum(kernel.diagonal(points), 0.0)
        if few:
            K = kernel(points)
            lower, pivots = pivoted_cholesky(diagonal, lambda i: K[i], n, _ROUNDING)
        else:
            lower, pivots = pivoted_cholesky(diagonal, lambda i: kernel(points[i], points), most_rank, _SMALL)
        _, rotation = eigenpairs(lower.T @ lower)
        root = lower @ rotation
        back = solve_lower(lower[pivots], rotation, transposed=True)
        left = diagonal - np.einsum("ij,ij->i", root, root)
        return cls(
            kernel, points[pivots], root, back,
            float(max(left.max(initial=0.0), 0.0) / max(float(diagonal.max(initial=0.0)), 1e-300)),
        )  # fmt: skip

    def times(self, factor: float, kernel: Kernel) -> DenseBasis:
        """The basis of ``kernel``, which is ``factor`` times this one's."""
        scale = math.sqrt(factor)
        return DenseBasis(kernel, self.pivots, self.root * scale, self.back / scale, self.left_out)

    def only(self, coordinates: IntArray) -> DenseBasis:
        """The basis without the other coordinates."""
        return replace(self, root=self.root[:, coordinates], back=self.back[:, coordinates])

    def widened(self, n_new: int) -> DenseBasis:
        """The basis with further dimensions of trade-offs, 0 at all points, of the mean length-scale."""
        amplitude, inner, antisymmetric = kernel_parts(self.kernel)
        lengths = np.broadcast_to(inner.length_scales, self.pivots.shape[1])
        scaled = Scaled(replace(inner, length_scales=np.append(lengths, np.full(n_new, lengths.mean()))), amplitude)
        kernel: Kernel = Antisymmetric(scaled) if antisymmetric else scaled
        return replace(self, kernel=kernel, pivots=np.hstack([self.pivots, np.zeros((len(self.pivots), n_new))]))

    def low_rank(self, B: FloatArray, n_e: int) -> None:
        """None: rows of Φ are no approximation."""

    def extended(self, points: FloatArray, moved: IntArray) -> DenseBasis:
        """The basis at more points, exact at the new ones: further coordinates are independent of those there are.

        ``points`` (n, d) are all of them, and ``moved`` says where those of this basis are among them.
        """
        fresh = np.setdiff1d(np.arange(len(points)), moved)
        rows, left = self.rows(points[fresh])
        K = symmetrise(self.kernel(points[fresh]) - rows @ rows.T)
        lower, pivots = pivoted_cholesky(left, lambda i: K[i], len(fresh), _SMALL)
        added, more = points[fresh][pivots], lower.shape[1]
        # The residual of the pivots is lower lowerᵀ; that of any trade-off with them, times this, are the new columns.
        turn = solve_lower(lower[pivots], np.eye(more), transposed=True)
        root = np.zeros((len(points), self.rank + more))
        root[moved, : self.rank], root[fresh, : self.rank], root[fresh, self.rank :] = self.root, rows, lower
        if self.left_out > 0.0:
            cross = self.kernel(points[moved], added) - self.root @ rows[pivots].T
            root[moved, self.rank :] = cross @ turn
        back = np.zeros((self.rank + more, self.rank + more))
        back[: self.rank, : self.rank] = self.back
        back[: self.rank, self.rank :] = -self.back @ rows[pivots].T @ turn
        back[self.rank :, self.rank :] = turn
        return DenseBasis(self.kernel, np.vstack([self.pivots, added]), root, back, self.left_out)

    @property
    def n_points(self) -> int:
        return len(self.root)

    @property
    def rank(self) -> int:
        return int(self.root.shape[1])

    def forward(self, w: FloatArray) -> FloatArray:
        return np.asarray(self.root @ w)

    def backward(self, v: FloatArray) -> FloatArray:
        return np.asarray(self.root.T @ v)

    def gram_diagonal(self, weights: FloatArray) -> FloatArray:
        return np.asarray(np.square(self.root).T @ weights)

    def dense(self) -> FloatArray:
        return self.root

    def columns(self, coordinates: IntArray) -> FloatArray:
        return self.root[:, coordinates]

    def point_rows(self, points: IntArray) -> FloatArray:
        return self.root[points]

    def at_trade_offs(self, x: FloatArray, w: FloatArray) -> FloatArray:
        return np.asarray(self.rows(x)[0] @ w)

    @property
    def sizes(self) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->j", self.root, self.root))

    def rows(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows of Φ at any trade-offs, and the residual prior variance."""
        phi = self.kernel(x, self.pivots) @ self.back
        return phi, np.maximum(self.kernel.diagonal(x) - np.einsum("ij,ij->i", phi, phi), 0.0)


def kernel_parts(kernel: Kernel) -> tuple[float, Stationary, bool]:
    """Amplitude, kernel of amplitude 1 before it was made antisymmetric, and whether it was."""
    antisymmetric = isinstance(kernel, Antisymmetric)
    scaled = kernel.kernel if isinstance(kernel, Antisymmetric) else kernel
    assert isinstance(scaled, Scaled)
    assert isinstance(scaled.kernel, Stationary)
    return scaled.variance, scaled.kernel, antisymmetric
