"""Posterior covariance of the coordinates itself, where it is the prior of further answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from predilect._types import FloatArray
from predilect.models.gaspk.posterior.curvature import (
    ByCoordinates,
    Curvature,
    directions_of,
    in_parts,
    quadratic_forms,
)


class Blocks(Protocol):
    """What knows B."""

    @property
    def B(self) -> FloatArray:
        """Blocks, (n_points, n_c, n_c)."""
        ...


@dataclass(frozen=True, eq=False)
class ByCovariance:
    """H⁻¹ itself, where the posterior of earlier answers is the prior of later ones."""

    matrix: FloatArray  # (rank n_c, rank n_c); row j n_c + c for coordinate (j, c)
    rank: int
    n_c: int

    @classmethod
    def of(cls, curvature: Curvature, Phi: FloatArray, blocks: Blocks) -> ByCovariance:
        """The covariance of a curvature, from its basis ``Phi`` (n_points, rank) and blocks if need be."""
        if isinstance(curvature, ByCovariance):
            return curvature
        found = curvature if isinstance(curvature, ByCoordinates) else ByCoordinates.of(Phi, blocks.B)
        return cls(found.factor.inverse(), found.rank, found.n_c)

    @property
    def inverse(self) -> FloatArray:
        """H⁻¹, shape (rank, n_c, rank, n_c)."""
        return self.matrix.reshape(self.rank, self.n_c, self.rank, self.n_c)

    def solve(self, x: FloatArray) -> FloatArray:
        return np.asarray((self.matrix @ x.reshape(len(self.matrix), -1)).reshape(x.shape))

    def log_det(self) -> float:
        """Log |H|."""
        return -float(np.linalg.slogdet(self.matrix)[1])

    def blocks(self, rows: FloatArray) -> FloatArray:
        """Covariances of the characteristics; q rank² n_c²/2 operations."""
        out = np.empty((len(rows), self.n_c, self.n_c))
        for part in in_parts(len(rows), self.rank):
            out[part] = quadratic_forms(rows[part], self.inverse)
        return out

    def variances(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Variances of mixtures; q (rank n_c)² operations."""
        out = np.empty(len(rows))
        for part in in_parts(len(rows), 2 * len(self.matrix)):
            directions = directions_of(rows[part], gamma[part])
            out[part] = np.einsum("ij,ij->i", directions @ self.matrix, directions)
        return np.maximum(out, 0.0)

    def covariance(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        return np.asarray(rows @ self.mixed(gamma) @ rows.T)

    def mixed(self, gamma: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("jckd,c,d->jk", self.inverse, gamma, gamma, optimize=True))
