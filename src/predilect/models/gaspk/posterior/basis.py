"""Basis of the characteristics at the points: linear in independent coordinates of variance 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from predilect.gaussian.dense import eigenpairs
from predilect.gaussian.kernels import Kernel
from predilect.gaussian.pivoted_cholesky import pivoted_cholesky

FloatArray = npt.NDArray[np.float64]

MOST_RANK = 1500
_EXACT_POINTS = 1500
_ROUNDING = 1e-12  # of the largest variance: what is left is rounding
_SMALL = 1e-3


class Basis(Protocol):
    """f at the points is Φ w, w ~ N(0, I)."""

    @property
    def n_points(self) -> int:
        """Rows of Φ."""
        ...

    @property
    def rank(self) -> int:
        """Columns of Φ."""
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

    def rows(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows of Φ at any trade-offs (q, d), shape (q, rank), and the residual prior variance, (q,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DenseBasis:
    """Φ of K ≈ Φ Φᵀ over any points: no grid, any dimension.

    gaspk.md 1.1. A pivoted Cholesky and a rotation to orthogonal columns, in which precisions are nearly diagonal.
    n_points rank² operations once, n_points rank memory and operations for each product.
    """

    kernel: Kernel
    pivots: FloatArray  # (rank, d), points that Φ is made from
    root: FloatArray  # (n_points, rank), Φ; orthogonal columns
    back: FloatArray  # (rank, rank): trade-off x has the row k(x, pivots) back
    left_out: float  # largest residual prior variance, as a share of the largest

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
        back = np.asarray(solve_triangular(lower[pivots], rotation, trans="T", lower=True, check_finite=False))
        left = diagonal - np.einsum("ij,ij->i", root, root)
        return cls(
            kernel, points[pivots], root, back,
            float(max(left.max(initial=0.0), 0.0) / max(float(diagonal.max(initial=0.0)), 1e-300)),
        )  # fmt: skip

    def times(self, factor: float, kernel: Kernel) -> DenseBasis:
        """The basis of ``kernel``, which is ``factor`` times this one's."""
        scale = math.sqrt(factor)
        return DenseBasis(kernel, self.pivots, self.root * scale, self.back / scale, self.left_out)

    @property
    def n_points(self) -> int:
        """Rows of Φ."""
        return len(self.root)

    @property
    def rank(self) -> int:
        """Columns of Φ."""
        return int(self.root.shape[1])

    def forward(self, w: FloatArray) -> FloatArray:
        """Φ w."""
        return np.asarray(self.root @ w)

    def backward(self, v: FloatArray) -> FloatArray:
        """Φᵀ v."""
        return np.asarray(self.root.T @ v)

    def gram_diagonal(self, weights: FloatArray) -> FloatArray:
        """Σ_t Φ_tj² weights_tk."""
        return np.asarray(np.square(self.root).T @ weights)

    def dense(self) -> FloatArray:
        """Φ."""
        return self.root

    def rows(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows of Φ at any trade-offs, and the residual prior variance."""
        phi = self.kernel(x, self.pivots) @ self.back
        return phi, np.maximum(self.kernel.diagonal(x) - np.einsum("ij,ij->i", phi, phi), 0.0)
