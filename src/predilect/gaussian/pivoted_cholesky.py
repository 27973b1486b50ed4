"""Pivoted Cholesky: a low-rank root of a covariance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from predilect.gaussian.dense import FloatArray

IntArray = npt.NDArray[np.intp]


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
