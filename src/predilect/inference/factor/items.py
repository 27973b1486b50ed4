"""A function of the items in whitened coordinates, and what answers on pairs say of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln

from predilect.covariance.dense import Factor, factorise
from predilect.posteriors.projection import Projection

__all__ = ["FunctionState", "GammaPrior", "ItemDesign", "scale_bound", "scale_step"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_DENSE_ITEMS = 600  # up to so many items, items x items arrays are the quicker way


class GammaPrior(NamedTuple):
    """s ~ Gamma(shape, rate); (0, 0): s maximises the bound (ML-II)."""

    shape: float
    rate: float


@dataclass(frozen=True, slots=True)
class FunctionState:
    """q(x) = N(mean, (L Lᵀ)⁻¹) of a function f = G x + r with prior x ~ N(0, I/s), r ~ N(0, R/s).

    Attributes
    ----------
    mean : array of float, shape (M,)
    lower : array of float, shape (M, M)
        L.
    square : float
        E xᵀx.
    log_det : float
        Log-determinant of the covariance.
    delta, D : arrays of float, shape (n_pairs,)
        Mean, and variance without that of r, of f(left) - f(right).
    """

    mean: FloatArray
    lower: FloatArray
    square: float
    log_det: float
    delta: FloatArray
    D: FloatArray

    def divergence(self, s: float) -> float:
        """KL(q(x) || N(0, I/s))."""
        M = len(self.mean)
        return 0.5 * (s * self.square - M - M * math.log(s) - self.log_det)


@dataclass(frozen=True, slots=True)
class ItemDesign:
    """Rows G = A L_K of the items, where K_mm = L_K L_Kᵀ, so that no kernel matrix is ever inverted.

    Attributes
    ----------
    projection : Projection
    G : array of float, shape (n_items, M)
    left, right : arrays of int, shape (n_pairs,)
    residual : array of float, shape (n_pairs,)
        Variance of r(left) - r(right) at s = 1.
    rows : array of float, shape (n_pairs, M), or None
        Differences of rows of G, kept where there are fewer pairs than items: all sums then go over pairs.
    """

    projection: Projection
    G: FloatArray
    left: IntArray
    right: IntArray
    residual: FloatArray
    rows: FloatArray | None = None

    @classmethod
    def of(cls, projection: Projection, left: IntArray, right: IntArray) -> ItemDesign:
        """For the pairs given."""
        G = np.ascontiguousarray(projection.expand(projection.factor.lower))
        rows = G[left] - G[right] if len(left) <= len(G) else None
        return cls(projection, G, left, right, projection.residual_pairs(left, right), rows)

    @property
    def n_points(self) -> int:
        """M."""
        return int(self.G.shape[1])

    def differences(self, x: FloatArray) -> FloatArray:
        """f(left) - f(right) of f = G x; shape (n_pairs,) or (n_pairs, k)."""
        if self.rows is not None:
            return np.asarray(self.rows @ x)
        f = self.G @ x
        return np.asarray(f[self.left] - f[self.right])

    def spread(self, H: FloatArray) -> FloatArray:
        """Dᵀ H, shape (n_items,), with D the differences of the pairs."""
        n = len(self.G)
        return np.asarray(np.bincount(self.left, H, n) - np.bincount(self.right, H, n))

    def laplacian(self, W: FloatArray, rows: FloatArray) -> FloatArray:
        """L(W) rows = Dᵀ diag(W) D rows, for rows of shape (n_items, k)."""
        n = len(self.G)
        degree = np.bincount(self.left, W, n) + np.bincount(self.right, W, n)
        if n <= _DENSE_ITEMS:
            off = np.bincount(self.left * n + self.right, W, n * n).reshape(n, n)
            laplacian = -(off + off.T)
            laplacian[np.diag_indices(n)] += degree
            return np.asarray(laplacian @ rows)
        sparse = csr_array((W, (self.left, self.right)), shape=(n, n))
        return np.asarray(degree[:, None] * rows - (sparse @ rows + sparse.T @ rows))

    def information(self, W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gᵀ L(W) G, shape (M, M), and Gᵀ Dᵀ H, shape (M,)."""
        if self.rows is not None:
            return self.rows.T @ (W[:, None] * self.rows), self.rows.T @ H
        return self.G.T @ self.laplacian(W, self.G), self.G.T @ self.spread(H)

    def state(self, precision: FloatArray, linear: FloatArray) -> FunctionState:
        """q(x) with natural parameters ``precision`` (M, M), prior included, and ``linear`` (M,)."""
        factor = factorise(precision)
        inverse = factor.solve_lower(np.eye(len(linear)))
        mean = inverse.T @ (inverse @ linear)
        square = float(mean @ mean + np.einsum("ij,ij->", inverse, inverse))
        variances = self._pair_variances(inverse)
        return FunctionState(mean, factor.lower, square, -factor.log_det(), self.differences(mean), variances)

    def prior_variances(self) -> FloatArray:
        """Variance of f(left) - f(right) at s = 1, without that of r; shape (n_pairs,)."""
        return self._pair_variances(np.eye(self.n_points))

    def covariance(self, state: FunctionState) -> FloatArray:
        """Of the values at the points, L_K S L_Kᵀ, shape (M, M)."""
        root = Factor(state.lower, 0.0).solve_lower(self.projection.factor.lower.T)
        return root.T @ root

    def values(self, state: FunctionState) -> FloatArray:
        """Mean at the points, shape (M,)."""
        return np.asarray(self.projection.factor.lower @ state.mean)

    def _pair_variances(self, inverse: FloatArray) -> FloatArray:
        """Variance of f(left) - f(right) for x with covariance inverseᵀ inverse, shape (n_pairs,)."""
        if self.rows is not None:
            spread = self.rows @ inverse.T
            return np.asarray(np.einsum("ij,ij->i", spread, spread))
        n, root = len(self.G), inverse @ self.G.T
        if n <= _DENSE_ITEMS and n * n <= 4 * len(self.left):
            square = root.T @ root
            d = np.diagonal(square)
            return np.asarray(np.maximum(d[self.left] + d[self.right] - 2.0 * square[self.left, self.right], 0.0))
        rows, out = np.ascontiguousarray(root.T), np.empty(len(self.left))
        for start in range(0, len(out), 20_000):
            some = slice(start, start + 20_000)
            step = rows[self.left[some]] - rows[self.right[some]]
            out[some] = np.einsum("ij,ij->i", step, step)
        return out


def scale_step(prior: GammaPrior, n_points: int, square: float, residual: float) -> float:
    """E s that maximises the bound with all else held.

    Parameters
    ----------
    prior : GammaPrior
    n_points : int
    square : float
        E xᵀx.
    residual : float
        Σ λ_p E w² Var(r_left - r_right) at s = 1 over the answers: what a larger s makes certain.

    Notes
    -----
    With q(s) = Gamma(α, α/s), α = shape + M/2, and 1/s in the variance of r, the bound as a function of s is
    α ln s - (rate + square/2) s - residual/(2 s), so s solves a quadratic. Without residuals it is the conjugate update
    of crowdgppl.md 2.2; modern.md 6 takes a gradient step where there are residuals.
    """
    alpha, beta = prior.shape + 0.5 * n_points, prior.rate + 0.5 * square
    return (alpha + math.sqrt(alpha * alpha + 2.0 * beta * residual)) / (2.0 * beta)


def scale_bound(prior: GammaPrior, n_points: int, s: float) -> float:
    """E ln p(s) - E ln q(s) + M (E ln s - ln s)/2 for q(s) = Gamma(α, α/s): what q(s) adds to the bound at E s = s."""
    alpha = prior.shape + 0.5 * n_points
    gap = float(digamma(alpha)) - math.log(alpha)  # E ln s - ln s
    log_s = math.log(s) + gap
    entropy = alpha - math.log(alpha / s) + float(gammaln(alpha)) + (1.0 - alpha) * float(digamma(alpha))
    if prior.shape <= 0.0 or prior.rate <= 0.0:  # p(s) ∝ 1/s, up to a constant
        return entropy - log_s + 0.5 * n_points * gap
    a, b = prior
    prior_term = a * math.log(b) - float(gammaln(a)) + (a - 1.0) * log_s - b * s
    return entropy + prior_term + 0.5 * n_points * gap
