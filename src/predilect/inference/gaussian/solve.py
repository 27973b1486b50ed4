"""Linear equations with a covariance that is known only by its products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array

from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import Factor, NotPositiveDefiniteError, factorise

Product = Callable[[FloatArray], FloatArray]

# A direction and its image have a cosine of at least 2 / √condition, and a condition of 1e16 is as good as infinite.
_FLAT = 1e-9
_NEGATIVE = -1e-8  # beyond what rounding can do
_TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Result of conjugate gradients."""

    x: FloatArray  # shape of the right-hand side
    iterations: int  # products with the matrix, those that check the residual left out
    # largest |b - A x| / |b| over the columns, computed from x and not from the recurrence unless asked otherwise
    residual: float
    tolerance: float  # what it was compared with
    converged: bool


def conjugate_gradients(
    matvec: Product,
    right: FloatArray,
    *,
    precondition: Product | None = None,
    tolerance: float = 1e-8,
    max_iter: int | None = None,
    check: bool = True,
) -> Solution:
    """Solve A x = b for a symmetric positive definite A, the columns of b = ``right`` (n,) or (n, k) side by side.

    ``matvec`` is A times (n, k), ``precondition`` P⁻¹ times (n, k) with P near A, such as ``jacobi``; ``max_iter`` is
    10 n + 10 by default. ``tolerance`` is of |b - A x| / |b| in each column; with ``check`` it is computed from x once
    it is small, a product more; else that of the recurrence is taken at its word, which over a few iterations to a
    loose tolerance is equal up to rounding. Not converged where the iterations ran out, or rounding lets the residual
    fall no further. NotPositiveDefiniteError if A or P is not positive definite, or a product not finite.

    gaspk.md 3, step 3.3; modern.md A.5. One product with A and one with P⁻¹ an iteration. Some √condition iterations,
    fewer where eigenvalues cluster. Columns that have converged rest. When the recurrence reports convergence the
    residual is computed anew, and the search starts again from there if it was wrong, as long as that helps.
    """
    b = np.asarray(right, dtype=np.float64)
    if b.ndim not in (1, 2):
        raise ValueError(f"the right-hand side must be a vector or a matrix, not of shape {b.shape}")
    one = b.ndim == 1
    b = b[:, None] if one else b
    x = np.zeros_like(b)
    limit = 10 * len(b) + 10 if max_iter is None else max_iter
    norms = np.linalg.norm(b, axis=0)
    size = np.where(norms > 0.0, norms, 1.0)

    r = b.copy()
    residual, iterations, helps = _largest(r, size), 0, True
    while residual > tolerance and iterations < limit and helps:
        new = x.copy()
        steps, singular = _descend(matvec, precondition, new, r, tolerance * size, limit - iterations)
        iterations += steps
        r = b - _finite(matvec(new)) if check else r
        found = _largest(r, size)
        helps = found <= 0.5 * residual
        if found < residual or not singular:  # the error falls all the way, the residual on the whole
            x, residual = new, found
    return Solution(x[:, 0] if one else x, iterations, residual, tolerance, residual <= tolerance)


def jacobi(diagonal: FloatArray) -> Product:
    """Preconditioner: the diagonal of A alone, shape (n,); NotPositiveDefiniteError if it is not positive."""
    values = np.asarray(diagonal, dtype=np.float64)
    if not (np.isfinite(values) & (values > 0.0)).all():
        raise NotPositiveDefiniteError("the diagonal of a matrix must hold positive finite values to precondition it")
    return lambda columns: columns / values[:, None]


def _descend(
    matvec: Product, precondition: Product | None, x: FloatArray, r: FloatArray, stop: FloatArray, limit: int
) -> tuple[int, bool]:
    """Conjugate gradients on x and its residual r, both in place; iterations, and whether A proved singular."""
    going = np.linalg.norm(r, axis=0) > stop
    # While all columns go on they are looked at where they are.
    active: slice | IntArray = slice(None) if going.all() else np.flatnonzero(going)
    z = precondition(r[:, active]) if precondition else r[:, active]
    p = z.copy()
    rz = _finite(_dots(r[:, active], z))  # not finite if any of z is not: 0 times infinity is no number
    for iteration in range(limit):
        Ap = matvec(p)
        curve = _finite(_dots(p, Ap))
        flat = curve / np.maximum(np.sqrt(_dots(p, p)) * np.sqrt(_dots(Ap, Ap)), _TINY)
        if (flat < _NEGATIVE).any() or (rz <= 0.0).any():
            raise NotPositiveDefiniteError(
                "conjugate gradients met a direction along which the matrix or its preconditioner is negative; likely "
                "causes: a matvec that is not symmetric, or a covariance whose curvature or weights are negative"
            )
        if (flat <= _FLAT).any():  # zero up to rounding: nothing to be gained along this direction
            return iteration + 1, True
        step = rz / curve
        x[:, active] += step * p
        r[:, active] -= step * Ap
        left = r[:, active]
        going = np.sqrt(_dots(left, left)) > stop[active]
        if not going.any():
            return iteration + 1, False
        if not going.all():
            active, p, rz = np.arange(r.shape[1])[active][going], p[:, going], rz[going]
            left = r[:, active]
        z = precondition(left) if precondition else left
        new = _finite(_dots(left, z))
        p = z + (new / rz) * p
        rz = new
    return limit, False


def _largest(r: FloatArray, size: FloatArray) -> float:
    return float((np.linalg.norm(r, axis=0) / size).max(initial=0.0))


def _dots(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nk,nk->k", a, b))


def _finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise NotPositiveDefiniteError("a product with the matrix or its preconditioner is not finite")
    return values


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
        :func:`~predilect.inference.gaussian.dense.factorise`.
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
