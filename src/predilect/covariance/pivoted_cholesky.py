"""A low-rank root of a covariance, of the rows that say most."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import FloatArray

__all__ = ["pivoted_cholesky"]

IntArray = npt.NDArray[np.intp]


def pivoted_cholesky(
    diagonal: FloatArray, rows: Callable[[IntArray], FloatArray], rank: int, tolerance: float = 1e-12
) -> tuple[FloatArray, IntArray]:
    """R with R Rᵀ ≈ A for a positive semidefinite A, from its diagonal and a few of its rows.

    Parameters
    ----------
    diagonal : array of float, shape (n,)
        Of A.
    rows : callable
        Takes indices of shape (k,), gives rows of A, shape (k, n).
    rank : int
        Columns of R at most.
    tolerance : float
        Stops once what is left of the diagonal is nowhere above this share of the largest entry of A's.

    Returns
    -------
    root : array of float, shape (n, r)
        r <= rank. A - R Rᵀ is positive semidefinite, and zero in the rows of the pivots.
    pivots : array of int, shape (r,)
        The rows it is made from: each time the one of which most is left, the first of equals.

    Raises
    ------
    ValueError
        If the diagonal is negative or not finite.

    Notes
    -----
    modern.md A.5. n r² operations, n r memory, r rows of A.
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
