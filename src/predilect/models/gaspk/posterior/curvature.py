"""Posterior precision of the coordinates, H = I + Φᵀ B Φ, factorised: solutions, determinant, covariances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from predilect._types import FloatArray, IntArray
from predilect.gaussian.dense import Factor, factorise
from predilect.models.gaspk.posterior.blocks import MANY, pair_table, quadratic_forms, quadratic_forms_by_pairs

_NUMBERS_AT_ONCE = 4_000_000


class Curvature(Protocol):
    """H, on coordinates w of shape (rank, n_c)."""

    def solve(self, x: FloatArray) -> FloatArray:
        """H⁻¹ x for x of shape (rank, n_c)."""
        ...

    def log_det(self) -> float:
        """Log |H|."""
        ...

    def blocks(self, rows: FloatArray) -> FloatArray:
        """Covariances of the characteristics Φ_q w, shape (q, n_c, n_c), for rows Φ_q of shape (q, rank)."""
        ...

    def variances(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Variances of γ_qᵀ Φ_q w, shape (q,), for rows (q, rank) and weights (q, n_c)."""
        ...

    def covariance(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Covariance of γᵀ Φ_q w over rows (q, rank), shape (q, q), for one person's weights (n_c,)."""
        ...

    def mixed(self, gamma: FloatArray) -> FloatArray:
        """Covariance of Σ_c γ_c w_c, shape (rank, rank), for one person's weights (n_c,)."""
        ...


@dataclass(frozen=True, eq=False)
class ByCoordinates:
    """A Cholesky of H itself, rank n_c square; entry (j, c) of the coordinates is row j n_c + c."""

    factor: Factor
    rank: int
    n_c: int

    @classmethod
    def of(cls, Phi: FloatArray, B: FloatArray) -> ByCoordinates:
        """Assemble and factorise; ``Phi`` (n_points, rank) and ``B`` (n_points, n_c, n_c)."""
        rank, n_c = Phi.shape[1], B.shape[1]
        H = np.empty((rank, n_c, rank, n_c))
        for c in range(n_c):
            for d in range(c + 1):
                part = Phi.T @ (B[:, c, d, None] * Phi)
                H[:, c, :, d] = part
                H[:, d, :, c] = part
        whole = H.reshape(rank * n_c, rank * n_c)
        whole[np.diag_indices(len(whole))] += 1.0
        return cls(factorise(whole), rank, n_c)

    def solve(self, x: FloatArray) -> FloatArray:
        """H⁻¹ x."""
        return self.factor.solve(x.reshape(-1)).reshape(x.shape)

    def log_det(self) -> float:
        """Log |H|."""
        return self.factor.log_det()

    @cached_property
    def inverse(self) -> FloatArray:
        """H⁻¹, shape (rank, n_c, rank, n_c)."""
        return self.factor.inverse().reshape(self.rank, self.n_c, self.rank, self.n_c)

    def blocks(self, rows: FloatArray) -> FloatArray:
        """Covariances of the characteristics; q rank² n_c²/2 operations, half of that from 8 characteristics on."""
        if self.n_c >= MANY:
            return quadratic_forms_by_pairs(rows, self._pairs, self.n_c)
        out = np.empty((len(rows), self.n_c, self.n_c))
        for part in _parts(len(rows), self.rank):
            out[part] = quadratic_forms(rows[part], self.inverse)
        return out

    @cached_property
    def _pairs(self) -> FloatArray:
        return pair_table(self.inverse)

    def variances(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Variances of mixtures; q (rank n_c)² operations."""
        out = np.empty(len(rows))
        for part in _parts(len(rows), 2 * self.rank * self.n_c):
            directions = (rows[part][:, :, None] * gamma[part][:, None, :]).reshape(-1, self.rank * self.n_c)
            out[part] = np.einsum("ij,ij->j", *(2 * (self.factor.solve_lower(directions.T),)))
        return out

    def covariance(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Covariance of one person's evaluations."""
        return np.asarray(rows @ self.mixed(gamma) @ rows.T)

    def mixed(self, gamma: FloatArray) -> FloatArray:
        """Covariance of one person's coordinates."""
        return np.asarray(np.einsum("jckd,c,d->jk", self.inverse, gamma, gamma, optimize=True))


@dataclass(frozen=True, eq=False)
class ByAnswers:
    """A Cholesky of I + T^½ A Aᵀ T^½ with a row γ ⊗ Φ_t of A for each person and trade-off, n square.

    gaspk.md 1.1: classification of the n answers under the covariance (γ_i · γ_j) k(t_i, t_j).
    """

    factor: Factor
    Phi: FloatArray  # (n, rank), a row for each answer
    gamma: FloatArray  # (n, n_c)
    root: FloatArray  # (n,), T^½

    @classmethod
    def of(cls, Phi: FloatArray, gamma: FloatArray, precision: FloatArray) -> ByAnswers:
        """Assemble and factorise from rows of answers and their curvatures, shape (n,)."""
        root = np.sqrt(precision)
        M = (gamma @ gamma.T) * (Phi @ Phi.T)
        M *= root[:, None] * root
        M[np.diag_indices(len(M))] += 1.0
        return cls(factorise(M), Phi, gamma, root)

    def solve(self, x: FloatArray) -> FloatArray:
        """H⁻¹ x = x - Aᵀ T^½ M⁻¹ T^½ A x."""
        inner = self.factor.solve(self.root * np.einsum("ij,jc,ic->i", self.Phi, x, self.gamma, optimize=True))
        return np.asarray(x - self.Phi.T @ ((self.root * inner)[:, None] * self.gamma))

    def log_det(self) -> float:
        """Log |H| = log |M|."""
        return self.factor.log_det()

    def blocks(self, rows: FloatArray) -> FloatArray:
        """Covariances of the characteristics; q n_c n² operations."""
        n_c = self.gamma.shape[1]
        out = np.empty((len(rows), n_c, n_c))
        for part in _parts(len(rows), len(self.Phi) * n_c):
            cross = (self.root[:, None] * (self.Phi @ rows[part].T))[:, :, None] * self.gamma[:, None, :]
            half = self.factor.solve_lower(cross.reshape(len(self.Phi), -1)).reshape(cross.shape)
            own = np.einsum("ij,ij->i", rows[part], rows[part])
            out[part] = own[:, None, None] * np.eye(n_c) - np.einsum("nqc,nqd->qcd", half, half, optimize=True)
        return out

    def variances(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Variances of mixtures; q n² operations."""
        out = np.empty(len(rows))
        for part in _parts(len(rows), 2 * len(self.Phi)):
            cross = self.root[:, None] * (self.Phi @ rows[part].T) * (self.gamma @ gamma[part].T)
            half = self.factor.solve_lower(cross)
            own = np.einsum("ij,ij->i", rows[part], rows[part]) * np.einsum("ij,ij->i", gamma[part], gamma[part])
            out[part] = own - np.einsum("nq,nq->q", half, half)
        return np.maximum(out, 0.0)

    def covariance(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Covariance of one person's evaluations."""
        return np.asarray(rows @ self.mixed(gamma) @ rows.T)

    def mixed(self, gamma: FloatArray) -> FloatArray:
        """Covariance of one person's coordinates."""
        cross = self.factor.solve_lower((self.root * (self.gamma @ gamma))[:, None] * self.Phi)
        return np.asarray(gamma @ gamma * np.eye(self.Phi.shape[1]) - cross.T @ cross)


def factorised(
    Phi: FloatArray, B: FloatArray, user: IntArray, point: IntArray, precision: FloatArray, gamma: FloatArray
) -> ByCoordinates | ByAnswers:
    """The smaller of the two forms; ``Phi`` (n_points, rank), ``precision`` (n,) curvatures times weights."""
    if Phi.shape[1] * gamma.shape[1] <= len(user):
        return ByCoordinates.of(Phi, B)
    return ByAnswers.of(Phi[point], gamma[user], precision)


def _parts(n: int, numbers_each: int) -> list[slice]:
    """Slices of rows such that memory stays bounded."""
    step = max(1, _NUMBERS_AT_ONCE // max(numbers_each, 1))
    return [slice(start, start + step) for start in range(0, n, step)]
