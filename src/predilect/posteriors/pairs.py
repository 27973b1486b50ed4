"""Variances of differences of utilities, pair by pair."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["pair_variance", "squared_differences"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]

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
