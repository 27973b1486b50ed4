"""Basis of the characteristics at the points: linear in independent coordinates of variance 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from predilect._compile import kernel
from predilect._types import FloatArray, IntArray
from predilect.gaussian.dense import eigenpairs, pivoted_cholesky, solve_lower, symmetrise
from predilect.gaussian.kernels import Kernel
from predilect.models.gaspk.posterior.curvature import Curvature

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

    def rows(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows of Φ at any trade-offs, and the residual prior variance."""
        phi = self.kernel(x, self.pivots) @ self.back
        return phi, np.maximum(self.kernel.diagonal(x) - np.einsum("ij,ij->i", phi, phi), 0.0)


def mixed(
    user: IntArray, point: IntArray, gamma: FloatArray, mean: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """γ_uᵀ m_t and γ_uᵀ V_t γ_u of each question (user, point), shapes (n,); 0 where the code of a person is negative.

    ``mean`` (n_points, n_c) and symmetric ``covariance`` (n_points, n_c, n_c) are of the characteristics. n n_c²/2
    operations, fewer where weights are 0, and no memory but the results.
    """
    out = np.zeros((2, len(user)))
    _mixed(
        np.asarray(user, dtype=np.int64), np.asarray(point, dtype=np.int64), np.ascontiguousarray(gamma),
        np.ascontiguousarray(mean), np.ascontiguousarray(covariance), out,
    )  # fmt: skip
    return out[0], out[1]


@kernel
def _mixed(
    user: IntArray, point: IntArray, gamma: FloatArray, mean: FloatArray, V: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    for i in range(user.shape[0]):
        u, t = user[i], point[i]
        if u < 0:
            continue
        m = v = 0.0
        for c in range(gamma.shape[1]):
            own = gamma[u, c]
            if own == 0.0:
                continue
            m += own * mean[t, c]
            half = 0.5 * V[t, c, c] * own
            for d in range(c):
                half += V[t, c, d] * gamma[u, d]
            v += 2.0 * own * half
        out[0, i], out[1, i] = m, v


_MOST_DENSE = 4000  # trade-offs whose covariance is held at once
_ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True, eq=False)
class ItemScores:
    """Score of item i: the mean over the references j of f(trade-off of i against j), as rows of the basis."""

    rows: FloatArray  # (n_items, rank)
    own: FloatArray  # residual covariance of one characteristic, (n_items, n_items); over 4 000 items its diagonal

    @classmethod
    def of(cls, basis: Basis, kernel: Kernel, trade_offs: FloatArray, signs: FloatArray) -> ItemScores:
        """Scores from the trade-offs of every item against every reference, shape (n_items, n_references, d).

        ``signs`` (n_items, n_references) is -1 where the evaluation favours the reference, and 0 where it does not
        count. n_items² n_references² evaluations of the kernel, of up to 4 000 items; then n_items n_references.
        """
        n_items, n_references, d = trade_offs.shape
        rows = np.empty((n_items, basis.rank))
        step = max(1, _ROWS_AT_ONCE // n_references)
        for start in range(0, n_items, step):
            some = trade_offs[start : start + step]
            phi, _ = basis.rows(some.reshape(-1, d))
            signed = phi.reshape(len(some), n_references, -1) * signs[start : start + step, :, None]
            rows[start : start + step] = signed.mean(axis=1)
        if n_items > _MOST_DENSE:
            flat = trade_offs.mean(axis=1) if n_references > 1 else trade_offs[:, 0]
            own = np.maximum(kernel.diagonal(flat) - np.einsum("ij,ij->i", rows, rows), 0.0)
            return cls(rows, own)
        own = np.empty((n_items, n_items))
        everything = trade_offs.reshape(-1, d)
        for start in range(0, n_items, step):
            part = kernel(trade_offs[start : start + step].reshape(-1, d), everything)
            part *= signs[start : start + step].reshape(-1, 1) * signs.reshape(-1)
            part = part.reshape(-1, n_references, n_items, n_references).mean(axis=(1, 3))
            own[start : start + step] = part - rows[start : start + step] @ rows.T
        return cls(rows, symmetrise(own))


def centred_blocks(curvature: Curvature, scores: ItemScores) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Centred rows (n_items, rank) of the scores, covariances (n_items, n_c, n_c), residual variance (n_items,)."""
    rows = scores.rows - scores.rows.mean(axis=0)
    own, n = scores.own, len(scores.rows)
    if own.ndim == 1:
        own = own * (1.0 - 2.0 / n) + own.mean() / n
    else:
        own = np.diagonal(own) - 2.0 * own.mean(axis=0) + own.mean()
    return rows, curvature.blocks(rows), np.maximum(own, 0.0)


def centred_scores(
    parts: tuple[FloatArray, FloatArray, FloatArray], w: FloatArray, gamma: FloatArray, factors: FloatArray,
    spread: float, left_open: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Mean and variance (n_users, n_items) of people's scores, centred over the items, from :func:`centred_blocks`.

    Equals ``GaSPKPosterior.person`` of each; ``factors`` (n_users,) are those of the characteristics' covariance,
    ``spread`` is T², ``left_open`` covariances of weights. Operations: n_users n_items n_c².
    """
    rows, blocks, own = parts
    n = len(rows)
    at_items = rows @ w
    mean = gamma @ at_items.T
    pairs = np.einsum("uc,ud->ucd", gamma, gamma).reshape(len(gamma), -1)
    var = pairs @ blocks.reshape(n, -1).T + np.einsum("uc,uc->u", gamma, gamma)[:, None] * own
    var *= factors[:, None]
    if left_open is not None:
        squares = np.einsum("ic,id->icd", at_items, at_items).reshape(n, -1)
        var += left_open.reshape(len(gamma), -1) @ squares.T
    return mean, spread * np.maximum(var, 0.0) + 0.5 * (spread - 1.0) * (1.0 - 1.0 / n)
