"""Posterior precision of the coordinates, H = I + Φᵀ B Φ: dense by the fewer of coordinates and answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import Factor, eigenpairs, factorise, symmetrise

_NUMBERS_AT_ONCE = 4_000_000
_ROUNDING = 1e-12  # of the size of a covariance


class Noise(NamedTuple):
    """Independent standard normal numbers that n draws are made of."""

    coordinates: FloatArray  # (rank, n_c, n)
    answers: FloatArray  # (..., n), of the shape that a curvature asks for


class Curvature(Protocol):
    """H, on coordinates w of shape (rank, n_c)."""

    @property
    def is_factorised(self) -> bool:
        """Whether a variance costs no solution of equations."""
        ...

    @property
    def noise_shape(self) -> tuple[int, ...]:
        """Shape of the numbers, besides those of the coordinates, that a draw takes."""
        ...

    def log_det(self) -> float:
        """Log |H|."""
        ...

    def covariance_matrix(self) -> FloatArray:
        """H⁻¹, rank n_c square; row j n_c + c for coordinate (j, c)."""
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

    def drawn(self, noise: Noise) -> FloatArray:
        """Coordinates with covariance H⁻¹ from standard normal numbers, shape (rank, n_c, n).

        U z where H⁻¹ = U Uᵀ is at hand, and otherwise H⁻¹ e, e = z + Aᵀ T^½ z', since H = I + Aᵀ T A.
        """
        ...


@dataclass(frozen=True, eq=False)
class ByCoordinates:
    """H⁻¹ itself, rank n_c square: of answers, or of a posterior that became the prior of later answers."""

    inverse: FloatArray  # (rank, n_c, rank, n_c)
    follows: bool = True  # from the answers and weights of a model, or else has to be stored with it

    is_factorised = True
    noise_shape: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, Phi: FloatArray, B: FloatArray) -> ByCoordinates:
        """Assemble and invert; ``Phi`` (n_points, rank) and ``B`` (n_points, n_c, n_c)."""
        n_c = B.shape[1]
        return cls(factorise(precision_of(Phi, B)).inverse().reshape(Phi.shape[1], n_c, -1, n_c))

    def covariance_matrix(self) -> FloatArray:
        size = self.inverse.shape[0] * self.inverse.shape[1]
        return self.inverse.reshape(size, size)

    def log_det(self) -> float:
        return -factorise(self.covariance_matrix()).log_det()

    def blocks(self, rows: FloatArray) -> FloatArray:
        """Covariances of the characteristics; q rank² n_c²/2 operations."""
        n_c = self.inverse.shape[1]
        out = np.empty((len(rows), n_c, n_c))
        for part in in_parts(len(rows), len(self.inverse)):
            out[part] = quadratic_forms(rows[part], self.inverse)
        return out

    def variances(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Variances of mixtures; q (rank n_c)² operations."""
        matrix, out = self.covariance_matrix(), np.empty(len(rows))
        for part in in_parts(len(rows), 2 * len(matrix)):
            directions = directions_of(rows[part], gamma[part])
            out[part] = np.einsum("ij,ij->i", directions @ matrix, directions)
        return np.maximum(out, 0.0)

    def covariance(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        return np.asarray(rows @ self.mixed(gamma) @ rows.T)

    def mixed(self, gamma: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("jckd,c,d->jk", self.inverse, gamma, gamma, optimize=True))

    def drawn(self, noise: Noise) -> FloatArray:
        z = noise.coordinates
        # U of H⁻¹ = U Uᵀ, upper triangular, is L⁻ᵀ of H = L Lᵀ: a Cholesky from the last row up.
        U = factorise(self.covariance_matrix()[::-1, ::-1]).lower[::-1, ::-1]
        return np.asarray((U @ z.reshape(-1, z.shape[2])).reshape(z.shape))


@dataclass(frozen=True, eq=False)
class ByAnswers:
    """A Cholesky of I + T^½ A Aᵀ T^½ with a row γ ⊗ Φ_t of A for each person and trade-off, n square.

    docs/math/gaspk.md section 1.1: classification of the n answers under the covariance (γ_i · γ_j) k(t_i, t_j).
    """

    factor: Factor
    Phi: FloatArray  # (n, rank), a row for each answer
    gamma: FloatArray  # (n, n_c)
    root: FloatArray  # (n,), T^½

    is_factorised = True

    @property
    def noise_shape(self) -> tuple[int, ...]:
        return (len(self.Phi),)

    @classmethod
    def of(cls, Phi: FloatArray, gamma: FloatArray, precision: FloatArray) -> ByAnswers:
        """Assemble and factorise from rows of answers and their curvatures, shape (n,)."""
        root = np.sqrt(precision)
        M = (gamma @ gamma.T) * (Phi @ Phi.T)
        M *= root[:, None] * root
        M[np.diag_indices(len(M))] += 1.0
        return cls(factorise(M), Phi, gamma, root)

    def log_det(self) -> float:
        """Log |H| = log |M|."""
        return self.factor.log_det()

    def covariance_matrix(self) -> FloatArray:
        A = self.root[:, None] * directions_of(self.Phi, self.gamma)
        half = self.factor.solve_lower(A)
        return np.asarray(np.eye(A.shape[1]) - half.T @ half)

    def blocks(self, rows: FloatArray) -> FloatArray:
        """Covariances of the characteristics; q n_c n² operations."""
        n_c = self.gamma.shape[1]
        out = np.empty((len(rows), n_c, n_c))
        for part in in_parts(len(rows), len(self.Phi) * n_c):
            cross = (self.root[:, None] * (self.Phi @ rows[part].T))[:, :, None] * self.gamma[:, None, :]
            half = self.factor.solve_lower(cross.reshape(len(self.Phi), -1)).reshape(cross.shape)
            own = np.einsum("ij,ij->i", rows[part], rows[part])
            out[part] = own[:, None, None] * np.eye(n_c) - np.einsum("nqc,nqd->qcd", half, half, optimize=True)
        return out

    def variances(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Variances of mixtures; q n² operations."""
        out = np.empty(len(rows))
        for part in in_parts(len(rows), 2 * len(self.Phi)):
            cross = self.root[:, None] * (self.Phi @ rows[part].T) * (self.gamma @ gamma[part].T)
            half = self.factor.solve_lower(cross)
            own = np.einsum("ij,ij->i", rows[part], rows[part]) * np.einsum("ij,ij->i", gamma[part], gamma[part])
            out[part] = own - np.einsum("nq,nq->q", half, half)
        return np.maximum(out, 0.0)

    def covariance(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        return np.asarray(rows @ self.mixed(gamma) @ rows.T)

    def mixed(self, gamma: FloatArray) -> FloatArray:
        cross = self.factor.solve_lower((self.root * (self.gamma @ gamma))[:, None] * self.Phi)
        return np.asarray(gamma @ gamma * np.eye(self.Phi.shape[1]) - cross.T @ cross)

    def drawn(self, noise: Noise) -> FloatArray:
        # M = I + T^½ A Aᵀ T^½, and H⁻¹ x = x - Aᵀ T^½ M⁻¹ T^½ A x.
        scaled = self.root[:, None] * self.gamma
        e = noise.coordinates + np.einsum("ij,ic,in->jcn", self.Phi, scaled, noise.answers, optimize=True)
        inner = self.factor.solve(np.einsum("ij,ic,jcn->in", self.Phi, scaled, e, optimize=True))
        return np.asarray(e - np.einsum("ij,ic,in->jcn", self.Phi, scaled, inner, optimize=True))


def directions_of(rows: FloatArray, gamma: FloatArray) -> FloatArray:
    """Rows Φ_t ⊗ γ_u (q, rank n_c), of which the product with the coordinates is γ_uᵀ F_t."""
    return np.asarray((rows[:, :, None] * gamma[:, None, :]).reshape(len(rows), -1))


def quadratic_forms(rows: FloatArray, M: FloatArray) -> FloatArray:
    """Σ_ef rows_qe M_ecfd rows_qf, shape (q, n_c, n_c), for rows (q, n_e) and M symmetric as a matrix."""
    n_c = M.shape[1]
    out = np.empty((len(rows), n_c, n_c))
    for c in range(n_c):
        for d in range(c + 1):
            part = np.ascontiguousarray(M[:, c, :, d])
            out[:, c, d] = out[:, d, c] = np.einsum("qe,qe->q", rows @ part, rows)
    return out


def precision_of(Phi: FloatArray, B: FloatArray) -> FloatArray:
    """H of Φ (n_points, rank) and B (n_points, n_c, n_c), rank · n_c square, row j n_c + c for coordinate (j, c).

    n_points rank² n_c²/2 operations in n_c (n_c + 1)/2 matrix products.
    """
    rank, n_c = Phi.shape[1], B.shape[1]
    H = np.empty((rank, n_c, rank, n_c))
    for c in range(n_c):
        for d in range(c + 1):
            H[:, c, :, d] = H[:, d, :, c] = Phi.T @ (B[:, c, d, None] * Phi)
    whole = H.reshape(rank * n_c, rank * n_c)
    whole[np.diag_indices(rank * n_c)] += 1.0
    return whole


def factorised(
    Phi: FloatArray, B: FloatArray, user: IntArray, point: IntArray, precision: FloatArray, gamma: FloatArray
) -> ByCoordinates | ByAnswers:
    """The smaller of the two forms; ``Phi`` (n_points, rank), ``precision`` (n,) curvatures times weights."""
    if Phi.shape[1] * gamma.shape[1] <= len(user):
        return ByCoordinates.of(Phi, B)
    return ByAnswers.of(Phi[point], gamma[user], precision)


def in_parts(n: int, numbers_each: int, at_once: int = _NUMBERS_AT_ONCE) -> list[slice]:
    """Slices of n rows such that memory stays bounded."""
    step = max(1, at_once // max(numbers_each, 1))
    return [slice(start, start + step) for start in range(0, n, step)]


def symmetric_root(matrix: FloatArray, size: float) -> FloatArray:
    """Symmetric root of a difference of covariances of ``size``, without eigenvalues that are rounding."""
    values, vectors = eigenpairs(symmetrise(matrix))
    root = np.sqrt(np.where(values > _ROUNDING * size, values, 0.0))
    return np.asarray((vectors * root) @ vectors.T)
