"""Sparse Cholesky-like factorisation by elimination of independent sets, dense at the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, diags_array

from predilect.gaussian.dense import Factor, FloatArray, factorise

IntArray = npt.NDArray[np.intp]

_FEWEST = 0.03  # share of rows: eliminating fewer, or a fuller matrix, costs more than it saves
_FULL = 0.2


@dataclass(frozen=True, slots=True)
class Elimination:
    """Factorisation of A = [[D, B], [Bᵀ, R]] with a diagonal D, by the Schur complement R - Bᵀ D⁻¹ B.

    The rows of D are an independent set of the graph of A; the complement is eliminated in turn while that pays.
    """

    out: IntArray  # rows of D
    kept: IntArray  # rows of R
    pivots: FloatArray  # diagonal of D
    ratio: csr_array  # D⁻¹ B
    rest: Elimination | Factor  # of the Schur complement

    @classmethod
    def of(cls, matrix: csr_array) -> Elimination | Factor:
        """Factorise a symmetric positive definite matrix of which both triangles are stored; exact up to rounding.

        Random graphs with eight neighbours per row leave about half of the rows, an eighth of the operations. Raises as
        :func:`~predilect.gaussian.dense.factorise`.
        """
        n = matrix.shape[0]
        chosen = _independent(matrix)
        if len(chosen) <= _FEWEST * n or matrix.nnz > _FULL * n * n:
            return factorise(matrix.toarray())
        kept = np.setdiff1d(np.arange(n), chosen)
        pivots = matrix.diagonal()[chosen]
        B = csr_array(matrix[chosen][:, kept])
        ratio = csr_array(diags_array(1.0 / pivots) @ B)
        rest = csr_array(matrix[kept][:, kept] - B.T @ ratio)
        return cls(chosen, kept, pivots, ratio, cls.of(rest))

    @property
    def jitter(self) -> float:
        """Jitter of the dense part."""
        return self.rest.jitter

    def solve(self, right: FloatArray) -> FloatArray:
        """A⁻¹ right, for a vector."""
        x = np.empty_like(right)
        x[self.kept] = self.rest.solve(right[self.kept] - self.ratio.T @ right[self.out])
        x[self.out] = right[self.out] / self.pivots - self.ratio @ x[self.kept]
        return x

    def log_det(self) -> float:
        """Log |A|."""
        return float(np.log(self.pivots).sum()) + self.rest.log_det()

    def inverse(self) -> FloatArray:
        """A⁻¹, dense and exactly symmetric; memory of twice the result."""
        inverse = np.empty((len(self.out) + len(self.kept),) * 2)
        rest = self.rest.inverse()
        across = self.ratio @ rest
        inverse[np.ix_(self.kept, self.kept)] = rest
        del rest
        inverse[np.ix_(self.out, self.kept)] = -across
        inverse[np.ix_(self.kept, self.out)] = -across.T
        within = np.asarray(self.ratio @ across.T)
        within.ravel()[:: len(within) + 1] += 1.0 / self.pivots
        inverse[np.ix_(self.out, self.out)] = 0.5 * (within + within.T)
        return inverse


def _independent(matrix: csr_array) -> IntArray:
    """Rows of which none is connected to another: those with the fewest neighbours first."""
    start, column = matrix.indptr.tolist(), matrix.indices
    free = np.ones(matrix.shape[0], dtype=bool)
    chosen = []
    for row in np.argsort(np.diff(matrix.indptr), kind="stable").tolist():
        if free[row]:
            chosen.append(row)
            free[column[start[row] : start[row + 1]]] = False
    return np.sort(np.array(chosen, dtype=np.intp))
