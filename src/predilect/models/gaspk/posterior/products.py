"""Posterior precision of the coordinates by products with the basis: solutions, determinant, variances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from predilect._types import FloatArray
from predilect.models.gaspk.posterior.scores import Basis
from predilect.models.gaspk.posterior.solver import (
    LogDeterminant,
    Preconditioner,
    largest_coordinates,
    log_determinant,
    precision_product,
    solve,
)

_TOGETHER = 1_000  # rows of the preconditioner's dense block, for many right-hand sides
_COLUMNS = 256
_NUMBERS_AT_ONCE = 4_000_000
_VARIANCE = 1e-5  # its square is the accuracy of a variance


@dataclass(frozen=True, eq=False)
class ByProducts:
    """H = I + Φᵀ B Φ, never formed, for blocks ``B`` (n_points, n_c, n_c): gaspk.md 3, steps 3.3 and 7.

    A variance needs a solution of its own: some 5 products with Φ and Φᵀ. Where points are many and variances need not
    be exact, take ``LowRank``.
    """

    basis: Basis
    B: FloatArray
    tolerance: float = 1e-8  # of |x - H y| / |x| in solve

    @cached_property
    def single(self) -> Preconditioner:
        """For one right-hand side."""
        return Preconditioner.of(self.basis, self.B)

    @cached_property
    def several(self) -> Preconditioner:
        """For many right-hand sides: dearer to make."""
        return Preconditioner.of(self.basis, self.B, largest_coordinates(self.basis, _TOGETHER // self.n_c))

    @property
    def n_c(self) -> int:
        """Characteristics."""
        return int(self.B.shape[1])

    def solve(self, x: FloatArray) -> FloatArray:
        """H⁻¹ x for x of shape (rank, n_c)."""
        return solve(self.basis, self.B, x, preconditioner=self.single, tolerance=self.tolerance).x

    def log_det(self) -> float:
        """Log |H|."""
        return self.log_determinant.value

    @cached_property
    def log_determinant(self) -> LogDeterminant:
        """Log |H| with its standard error, of the same probes for any B."""
        return log_determinant(self.basis, self.B)

    def blocks(self, rows: FloatArray) -> FloatArray:
        """Covariances of the characteristics, exact to 1e-10 of their prior variances; n_c solutions a row."""
        out = np.empty((len(rows), self.n_c, self.n_c))
        step = max(1, self._at_once // self.n_c)
        unit = np.eye(self.n_c)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            # Column (q, d) is row q of the basis for characteristic d and 0 for the others.
            S = np.einsum("qj,cd->jcqd", part, unit).reshape(-1, len(part) * self.n_c)
            X, HX = self._solved(S)
            half = X.reshape(self.basis.rank, self.n_c, len(part), self.n_c)
            first = np.einsum("qj,jcqd->qcd", part, half, optimize=True)
            shape = (len(X), len(part), self.n_c)
            second = np.einsum("nqc,nqd->qcd", X.reshape(shape), HX.reshape(shape), optimize=True)
            out[start : start + step] = first + first.transpose(0, 2, 1) - 0.5 * (second + second.transpose(0, 2, 1))
        return out

    def variances(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Variances of mixtures: one solution each."""
        out = np.empty(len(rows))
        for start in range(0, len(rows), self._at_once):
            some = slice(start, start + self._at_once)
            S = np.einsum("qj,qc->jcq", rows[some], gamma[some]).reshape(self.basis.rank * self.n_c, -1)
            X, HX = self._solved(S)
            out[some] = np.einsum("nq,nq->q", 2.0 * S - HX, X)
        return np.maximum(out, 0.0)

    def covariance(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Covariance of one person's evaluations: one solution a row."""
        whole = np.empty((len(rows), len(rows)))
        for start in range(0, len(rows), self._at_once):
            some = slice(start, start + self._at_once)
            S = np.einsum("qj,c->jcq", rows[some], gamma)
            X = solve(self.basis, self.B, S, preconditioner=self.several, tolerance=self.tolerance).x
            whole[:, some] = rows @ np.einsum("jcq,c->jq", X, gamma)
        return 0.5 * (whole + whole.T)

    def mixed(self, gamma: FloatArray) -> FloatArray:
        """Covariance of Σ_c γ_c w_c: rank solutions, for bases of few coordinates."""
        return self.covariance(np.eye(self.basis.rank), gamma)

    @property
    def _at_once(self) -> int:
        return max(1, min(_COLUMNS, _NUMBERS_AT_ONCE // max(self.basis.rank * self.n_c, 1)))

    def _solved(self, S: FloatArray) -> tuple[FloatArray, FloatArray]:
        """X near H⁻¹ S and H X: SᵀX + XᵀS - XᵀHX is off by EᵀHE, E = H⁻¹S - X, at most |S - HX|² since H ≥ I."""
        shape = (self.basis.rank, self.n_c, S.shape[1])
        X = solve(self.basis, self.B, S.reshape(shape), preconditioner=self.several, tolerance=_VARIANCE).x
        X = X.reshape(S.shape)
        return X, precision_product(self.basis, self.B, X)
