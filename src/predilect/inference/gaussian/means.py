"""k-means: Lloyd's iteration from the starts of k-means++ (Arthur and Vassilvitskii 2007)."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array

from predilect._base.types import FloatArray, IntArray

_ROWS_AT_ONCE = 2000


def k_means(rows: FloatArray, n_centres: int, rng: np.random.Generator, max_iter: int = 20) -> FloatArray:
    """Centres (n_centres, d) of rows (n, d), n >= n_centres; max_iter n n_centres d operations."""
    middle = rows.mean(axis=0)  # distances are differences of squares, which are exact near 0
    rows = rows - middle
    centres = rows[_starts(rows, n_centres, rng)]
    before: IntArray | None = None
    for _ in range(max_iter):
        nearest, squares = _nearest(rows, centres)
        if before is not None and np.array_equal(nearest, before):
            break
        before = nearest
        members = csr_array((np.ones(len(rows)), nearest, np.arange(len(rows) + 1)), shape=(len(rows), n_centres))
        count = np.bincount(nearest, minlength=n_centres)
        centres = np.asarray(members.T @ rows) / np.maximum(count, 1)[:, None]
        empty = np.flatnonzero(count == 0)  # each goes to a row that is far from its centre
        centres[empty] = rows[np.argsort(-squares, kind="stable")[: len(empty)]]
    return np.asarray(centres + middle)


def _starts(rows: FloatArray, n_centres: int, rng: np.random.Generator) -> IntArray:
    """Places of rows drawn one after the other by their squared distance from those drawn, the best of a few each."""
    n_tries = 2 + int(math.log(n_centres))
    norms = np.einsum("ij,ij->i", rows, rows)
    chosen = np.empty(n_centres, dtype=np.int64)
    chosen[0] = rng.integers(len(rows))
    closest = _squares(rows, norms, rows[chosen[:1]])[0]
    for k in range(1, n_centres):
        total = np.cumsum(closest)
        tried = np.minimum(np.searchsorted(total, total[-1] * rng.random(n_tries)), len(rows) - 1)
        squares = np.minimum(closest, _squares(rows, norms, rows[tried]))
        best = int(squares.sum(axis=1).argmin())
        chosen[k], closest = tried[best], squares[best]
    return chosen


def _nearest(rows: FloatArray, centres: FloatArray) -> tuple[IntArray, FloatArray]:
    """The nearest centre of each row, and the squared distance from it, (n,)."""
    norms = np.einsum("ij,ij->i", rows, rows)
    nearest, least = np.empty(len(rows), dtype=np.int64), np.empty(len(rows))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = slice(start, start + _ROWS_AT_ONCE)
        squares = _squares(rows[some], norms[some], centres)
        nearest[some], least[some] = squares.argmin(axis=0), squares.min(axis=0)
    return nearest, least


def _squares(rows: FloatArray, norms: FloatArray, points: FloatArray) -> FloatArray:
    """Squared distances of points (k, d) from rows (n, d) with these squared ``norms``, (k, n)."""
    return np.asarray(np.maximum(norms - 2.0 * (points @ rows.T) + np.einsum("ij,ij->i", points, points)[:, None], 0.0))
