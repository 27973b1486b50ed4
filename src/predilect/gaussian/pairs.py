"""Preference kernel: the covariance of margins of pairs of items."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


def preference(
    K: FloatArray, left: IntArray, right: IntArray, left2: IntArray | None = None, right2: IntArray | None = None
) -> FloatArray:
    """k((i, j), (k, l)) = k(i, k) + k(j, l) - k(i, l) - k(j, k) for pairs of item codes, (n, m).

    collaborative.md 1 (Houlsby et al. 2012): D K D'ᵀ with rows e_i - e_j of D, of rank n_items - 1 at most; exactly
    symmetric without second pairs. n n_items + n m operations and memory.
    """
    rows = K[left] - K[right]
    if left2 is None or right2 is None:
        covariance = rows[:, left] - rows[:, right]
        return np.asarray(0.5 * (covariance + covariance.T))
    return np.asarray(rows[:, left2] - rows[:, right2])


_DENSE_ITEMS = 2000  # items up to which their covariance may be formed
_ROWS_AT_ONCE = 20_000
_IN_CACHE = 2**16  # elements of a block of differences of rows


def pair_variance(
    covariance: FloatArray, left: IntArray, right: IntArray, rows: FloatArray | None = None
) -> FloatArray:
    """Variance of f(left) - f(right) for each pair, (n,), for f = rows x with x of the given covariance (M, M).

    Never below 0: identical items would otherwise have variances of minus a few ulps. Whichever is least of n M²,
    n_items M² + n M and n_items M (M + n_items) + n operations.
    """
    if rows is None:
        own = np.diagonal(covariance)
        return np.asarray(np.maximum(own[left] + own[right] - 2.0 * covariance[left, right], 0.0))
    n_items, M = rows.shape
    if n_items <= _DENSE_ITEMS and n_items * (M + n_items) < len(left) * M:
        return pair_variance(rows @ covariance @ rows.T, left, right)
    half = rows @ covariance if len(left) > n_items else None
    out = np.empty(len(left))
    for start in range(0, len(left), _ROWS_AT_ONCE):
        a, b = left[start : start + _ROWS_AT_ONCE], right[start : start + _ROWS_AT_ONCE]
        x = rows[a] - rows[b]
        y = x @ covariance if half is None else half[a] - half[b]
        out[start : start + _ROWS_AT_ONCE] = np.einsum("ij,ij->i", x, y)
    return np.maximum(out, 0.0)


def squared_differences(rows: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """|rows[left] - rows[right]|², (n,), in pieces that stay in the cache; n M operations for rows (n_items, M)."""
    out = np.empty(len(left))
    step = max(_IN_CACHE // max(rows.shape[1], 1), 16)
    for start in range(0, len(left), step):
        some = slice(start, start + step)
        d = rows[left[some]]
        d -= rows[right[some]]
        out[some] = np.einsum("ij,ij->i", d, d)
    return out
