"""Dense factorisations: the only place where Predilect calls a Cholesky."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, eigh
from scipy.linalg.blas import dtrmm, dtrsm
from scipy.linalg.lapack import dlauum, dpotrf, dpotri, dpotrs, dpstrf, dtrtri, dtrtrs

from predilect._base.stored import LARGEST, ArraySpec, is_within
from predilect._base.types import FloatArray, IntArray
from predilect.errors import PredilectError

# modern.md A.3, relative to the mean of the diagonal; nothing is added when the plain factorisation succeeds.
_NOT_FINITE = "a covariance matrix holds values that are not finite; check the scales given"
_HALVED = 160
_JITTER_LADDER = (0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)


class NotPositiveDefiniteError(PredilectError, ArithmeticError):
    """A matrix that should be positive definite is not, even after the largest jitter."""


@dataclass(frozen=True, slots=True)
class Factor:
    """Lower Cholesky factor L of a positive definite matrix A + jitter I."""

    lower: FloatArray  # L, with zeros above the diagonal
    jitter: float  # 0 unless A was numerically singular

    def solve(self, right: FloatArray) -> FloatArray:
        """A⁻¹ right, for a vector or a matrix."""
        if not right.size:
            return np.zeros(right.shape)  # LAPACK refuses it, and older versions of SciPy ask it
        return np.asarray(dpotrs(self.lower, right, lower=1)[0])

    def solve_lower(self, right: FloatArray) -> FloatArray:
        """L⁻¹ right; for a diagonal matrix a third of the operations."""
        if right.shape == self.lower.shape and len(right) and is_diagonal(right):
            return np.asarray(dtrtri(self.lower, lower=1)[0] * np.diagonal(right))
        return solve_lower(self.lower, right)

    def inverse(self) -> FloatArray:
        """A⁻¹, exactly symmetric; 2 n³/3 operations, a third of solving for each column of I."""
        if not len(self.lower):
            return np.zeros((0, 0))  # LAPACK refuses it
        if is_diagonal(self.lower):
            return np.diag(np.diagonal(self.lower) ** -2.0)
        below = dpotri(self.lower, lower=1)[0]  # with L's zeros above the diagonal
        inverse = np.add(below, below.T, order="C")
        inverse.ravel()[:: len(inverse) + 1] *= 0.5
        return np.asarray(inverse)

    def log_det(self) -> float:
        """Log |A|."""
        return 2.0 * float(np.log(np.diagonal(self.lower)).sum())


_ROWS_AT_ONCE = 256


def moments(draws: npt.NDArray[np.floating]) -> tuple[FloatArray, FloatArray]:
    """Mean (..., d) and covariance (..., d, d) of draws (..., R, d)."""
    mean = draws.mean(axis=-2, dtype=np.float64)
    deviation = draws - mean[..., None, :]
    covariance = np.swapaxes(deviation, -1, -2) @ deviation / max(draws.shape[-2] - 1, 1)
    return mean, 0.5 * (covariance + np.swapaxes(covariance, -1, -2))


def opposite_draws(mean: FloatArray, covariance: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Draws of N(mean, covariance) in opposite pairs, so that their mean is exact; (n_draws, n)."""
    root = semidefinite_root(covariance)
    away = rng.standard_normal((n_draws // 2, root.shape[1])) @ root.T
    return np.concatenate([mean + away, mean - away])


def solve_lower(lower: FloatArray, right: FloatArray, transposed: bool = False) -> FloatArray:
    """L⁻¹ right, or L⁻ᵀ right if ``transposed``, for a lower triangular L; LinAlgError if its diagonal holds a zero."""
    if not right.size:
        return np.zeros(right.shape)  # LAPACK refuses it
    if lower.flags.f_contiguous:
        solution, zero_at = dtrtrs(lower, right, lower=1, trans=int(transposed))
    else:  # the transposed system, whose matrix need not be copied
        solution, zero_at = dtrtrs(lower.T, right, lower=0, trans=int(not transposed))
    if zero_at:
        raise LinAlgError(f"row {zero_at} of a triangular matrix has a zero on the diagonal")
    return np.asarray(solution)


def mirror(lower: FloatArray) -> None:
    """Fill the upper triangle, zeros so far, from the lower one, in place; block by block, which caches hold."""
    n = len(lower)
    if n <= _ROWS_AT_ONCE:
        lower += lower.T
        np.einsum("ii->i", lower)[:] *= 0.5
        return
    for start in range(0, n, _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, n)
        block = lower[start:stop, start:stop]
        other = block.T.copy()
        np.fill_diagonal(other, 0.0)
        block += other
        lower[start:stop, stop:] = lower[stop:, start:stop].T


def sandwiched(A: FloatArray, B: FloatArray) -> FloatArray:
    """A B Aᵀ for a symmetric B, symmetric up to rounding: of the second product of large ones one triangle."""
    n = len(A)
    if n <= 2 * _ROWS_AT_ONCE:
        return np.asarray(A @ B @ A.T)
    BA, out = B @ A.T, np.zeros((n, n))
    for start in range(0, n, _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, n)
        np.matmul(A[start:stop], BA[:, :stop], out=out[start:stop, :stop])
        out[start:stop, start:stop] = np.tril(out[start:stop, start:stop])
    mirror(out)
    return out


def factorise(matrix: FloatArray) -> Factor:
    """Cholesky factor of a symmetric matrix, with escalating, reported jitter; only the lower triangle is read.

    NotPositiveDefiniteError if a jitter of 1e-4 of the mean diagonal does not suffice. O(n²) for a diagonal matrix.
    """
    if not len(matrix):
        return Factor(np.zeros((0, 0)), 0.0)  # LAPACK refuses it
    # Methods and LAPACK itself: the functions of NumPy and SciPy around them take longer than a small matrix.
    diagonal = matrix.diagonal()
    scale = float(diagonal.sum()) / len(matrix)
    if not math.isfinite(scale):
        raise NotPositiveDefiniteError(_NOT_FINITE)
    if is_diagonal(matrix) and diagonal.min() > 0.0:
        return Factor(np.diag(np.sqrt(diagonal)), 0.0)
    for relative in _JITTER_LADDER:
        jitter = relative * scale
        attempt = matrix + jitter * np.eye(len(matrix)) if jitter else matrix
        lower, failed_at = dpotrf(attempt, lower=1, clean=1)
        if failed_at:
            continue
        if not math.isfinite(lower.diagonal().sum()):  # LAPACK lets a NaN off the diagonal pass
            raise NotPositiveDefiniteError(_NOT_FINITE)
        return Factor(lower, jitter)
    raise NotPositiveDefiniteError(
        f"a {len(matrix)} x {len(matrix)} covariance is not positive definite even with {_JITTER_LADDER[-1]:g} of its "
        "mean diagonal added. Likely causes: identical rows of features with feature_weight=1, or an extreme scale"
    )


def inverse_root(matrix: FloatArray) -> tuple[FloatArray, float]:
    """Lower triangular W with A⁻¹ = Wᵀ W, and log |A|, of a symmetric positive definite A.

    Without jitter unless a block of A needs some. By halves: A = [[P, Rᵀ], [R, T]] has W = [[W₁, 0], [-W₂ S W₁, W₂]]
    with S = R W₁ᵀ and W₂ that of T - S Sᵀ: ⅔ n³ operations, nearly all of them in products, quicker for n of some
    hundreds.
    """
    W = np.zeros((len(matrix), len(matrix)))
    return W, _fill_inverse_root(matrix, W)


def _fill_inverse_root(matrix: FloatArray, W: FloatArray) -> float:
    n = len(matrix)
    if n < _HALVED:
        factor = factorise(matrix)
        if n:
            W[:] = dtrtri(factor.lower, lower=1)[0]
        return factor.log_det()
    first, last = slice(None, n // 2), slice(n // 2, None)
    log_det = _fill_inverse_root(matrix[first, first], W[first, first])
    first_root = np.asfortranarray(W[first, first])
    S = dtrmm(1.0, first_root, matrix[last, first], side=1, lower=1, trans_a=1)
    log_det += _fill_inverse_root(matrix[last, last] - S @ S.T, W[last, last])
    W[last, first] = -lower_times(np.asfortranarray(W[last, last]), times_lower(S, first_root))
    return log_det


def gram_of_lower(W: FloatArray) -> FloatArray:
    """Wᵀ W of a lower triangular W, exactly symmetric; ⅓ n³ operations."""
    if not len(W):
        return np.zeros((0, 0))  # LAPACK refuses it
    # Row by row W is, column by column, Wᵀ, an upper triangle U: Wᵀ W = U Uᵀ.
    below = np.asarray(dlauum(W.T, lower=0)[0]).T
    mirror(below)
    return below


def lower_times(L: FloatArray, right: FloatArray, transposed: bool = False) -> FloatArray:
    """L right, or Lᵀ right if ``transposed``, for a lower triangular L (n, n): half the operations of a product."""
    return np.asarray(dtrmm(1.0, L, right, lower=1, trans_a=int(transposed))) if right.size else np.zeros(right.shape)


def times_lower(left: FloatArray, L: FloatArray) -> FloatArray:
    """The product of any matrix and a lower triangular L (n, n): half the operations of another."""
    return np.asarray(dtrmm(1.0, L, left, side=1, lower=1)) if left.size else np.zeros(left.shape)


def over_lower(left: FloatArray, L: FloatArray, transposed: bool = False) -> FloatArray:
    """The product of any matrix and L⁻¹, or L⁻ᵀ if ``transposed``, for a lower triangular L (n, n).

    Two thirds of the time of :func:`solve_lower`; not finite where the diagonal of L holds a zero.
    """
    if not left.size:
        return np.zeros(left.shape)
    return np.asarray(dtrsm(1.0, L.T, left, side=1, lower=0, trans_a=int(not transposed)))


def inverse_and_log_det(matrix: FloatArray) -> tuple[FloatArray, float]:
    """A⁻¹ and log |A| of a symmetric positive definite matrix, as of :func:`inverse_root`; n³ operations."""
    W, log_det = inverse_root(matrix)
    return gram_of_lower(W), log_det


def eigenpairs(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, descending, and orthonormal eigenvectors (columns) of a symmetric matrix; about 9 n³ operations.

    Each vector's entry of largest size is positive, so that results do not depend on a sign. Raises if not finite.
    """
    if not np.isfinite(matrix).all():
        raise NotPositiveDefiniteError(_NOT_FINITE)
    if not len(matrix):
        return np.zeros(0), np.zeros((0, 0))  # LAPACK refuses it
    return leading_eigenpairs(matrix, len(matrix))


def leading_eigenpairs(matrix: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """The ``n`` largest of :func:`eigenpairs` of a finite matrix; of few about 2 n³ operations."""
    few = (len(matrix) - n, len(matrix) - 1) if n < len(matrix) else None
    values, vectors = eigh(matrix, check_finite=False, subset_by_index=few)
    vectors = vectors[:, ::-1]
    peaks = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))]
    return np.asarray(values[::-1]), np.asarray(vectors * np.where(peaks < 0.0, -1.0, 1.0))


def semidefinite_root(matrix: FloatArray) -> FloatArray:
    """Pivoted Cholesky root L (n, rank) of a positive semidefinite matrix: L Lᵀ = A to n ulps, without jitter.

    NotPositiveDefiniteError for values that are not finite, or a clearly negative direction. n rank² operations.
    """
    n = len(matrix)
    if not np.isfinite(matrix).all():
        raise NotPositiveDefiniteError(_NOT_FINITE)
    diagonal = np.diagonal(matrix)
    largest = float(diagonal.max(initial=0.0))
    if largest > 0.0:
        factor, pivot, rank, _ = dpstrf(matrix, lower=1)
        root = np.zeros((n, rank))
        root[pivot - 1] = np.tril(factor)[:, :rank]
    else:
        root = np.zeros((n, 0))
    left_out = diagonal - np.einsum("ij,ij->i", root, root)
    negative = largest <= 0.0 and bool(np.any(matrix))
    if negative or float(left_out.min(initial=0.0)) < -1e-8 * largest:
        raise NotPositiveDefiniteError(
            f"a {n} x {n} covariance is not positive semi-definite: in some direction the variance would be negative. "
            "Likely causes: a matrix that is not symmetric, or similarities that are no covariance"
        )
    return root


def root_of_difference(matrix: FloatArray) -> FloatArray:
    """Root (n, r) of a covariance that is a difference of much larger ones: what rounding left below 0 is taken for 0.

    NotPositiveDefiniteError for values that are not finite.
    """
    try:
        return semidefinite_root(matrix)
    except NotPositiveDefiniteError:
        values, vectors = eigenpairs(matrix)
        return vectors * np.sqrt(np.maximum(values, 0.0))


def is_diagonal(matrix: FloatArray) -> bool:
    """Whether all elements off the diagonal are zero."""
    # The last row of a full matrix, and of a triangle, decides at once.
    if np.count_nonzero(matrix[-1:]) > 1:
        return False
    return bool(np.count_nonzero(matrix) <= np.count_nonzero(matrix.diagonal()))


def is_semidefinite(matrices: FloatArray) -> bool:
    """Whether each matrix (..., n, n) is a covariance, by the standard of :func:`factorise`; n³/3 operations each.

    Symmetric, finite, and positive definite with the largest jitter added to the diagonal.
    """
    n = matrices.shape[-1]
    if not matrices.size:
        return True
    largest = np.diagonal(matrices, axis1=-2, axis2=-1).max(axis=-1)[..., None, None]
    with np.errstate(invalid="ignore"):
        skew = np.abs(matrices - np.swapaxes(matrices, -1, -2))
    if not ((skew <= 1e-6 * largest) & (np.abs(matrices) <= largest * (1.0 + 1e-6))).all():
        return False
    try:
        np.linalg.cholesky(matrices + (_JITTER_LADDER[-1] * largest + (largest == 0.0)) * np.eye(n))
    except LinAlgError:
        return False
    return True


def covariances(shape: str) -> ArraySpec:
    """Stored arrays that are symmetric and positive semi-definite, up to rounding; of several matrices each."""
    return ArraySpec(
        shape, "float64", f"symmetric and positive semi-definite within ±{LARGEST:g}",
        lambda a, _: is_within(a, -LARGEST) and is_semidefinite(a),
    )  # fmt: skip


def widened(C: FloatArray, change: FloatArray) -> FloatArray:
    """C + change, of a change that is halved until the sum is a covariance."""
    while change.any() and not is_semidefinite(C + change):
        change = 0.5 * change
    return C + change


def symmetrise(matrix: FloatArray) -> FloatArray:
    """The symmetric part of a matrix."""
    return 0.5 * (matrix + matrix.T)


def pack_triangle(matrix: FloatArray) -> FloatArray:
    """The lower triangle of a symmetric matrix, row by row; shape (n (n + 1) / 2,)."""
    return np.asarray(matrix[np.tril_indices(len(matrix))])


def unpack_triangle(triangle: FloatArray) -> FloatArray:
    """The symmetric matrix of a lower triangle."""
    n = int((np.sqrt(8.0 * len(triangle) + 1.0) - 1.0) / 2.0 + 0.5)
    out = np.empty((n, n))
    out[np.tril_indices(n)] = triangle
    out.T[np.tril_indices(n)] = triangle
    return out


def pivoted_cholesky(
    diagonal: FloatArray, rows: Callable[[IntArray], FloatArray], rank: int, tolerance: float = 1e-12
) -> tuple[FloatArray, IntArray]:
    """Root R (n, r <= rank) with R Rᵀ ≈ A for a positive semidefinite A, and its pivots (r,). modern.md A.5.

    ``rows`` maps indices (k,) to rows (k, n) of A. Pivots on the largest residual, the first of equals, until none
    exceeds ``tolerance`` times the largest of the diagonal. A - R Rᵀ is positive semidefinite, and zero in the rows of
    the pivots. ValueError if the diagonal is negative or not finite. n r² operations, n r memory.
    """
    left = np.array(diagonal, dtype=np.float64)
    if not np.isfinite(left).all() or (left < 0.0).any():
        raise ValueError("the diagonal of a covariance must be finite and not negative")
    rank = min(rank, len(left))
    root = np.zeros((len(left), rank))
    pivots: list[int] = []
    stop = tolerance * float(left.max(initial=0.0))
    for r in range(rank):
        pivot = int(left.argmax())
        if left[pivot] <= stop:
            break
        column = rows(np.array([pivot]))[0] - root[:, :r] @ root[pivot, :r]
        column[pivots] = 0.0  # explained already: only rounding is left
        column /= np.sqrt(left[pivot])
        column[pivot] = np.sqrt(left[pivot])
        root[:, r] = column
        left = np.maximum(left - column * column, 0.0)
        pivots.append(pivot)
        left[pivots] = 0.0
    return np.ascontiguousarray(root[:, : len(pivots)]), np.array(pivots, dtype=np.intp)
