"""Quadratic forms in rows of Φ for all pairs of characteristics, each pair of coordinates once.

The n_c (n_c + 1)/2 matrices of a row share the products of its entries, in a matrix product of half the operations. For
few characteristics making those products costs more than it saves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

__all__ = ["MANY", "pair_table", "quadratic_forms", "quadratic_forms_by_pairs", "weighted_grams"]

FloatArray = npt.NDArray[np.float64]

MANY = 8  # characteristics from which on pairs pay
_PRODUCTS_AT_ONCE, _POINTS_AT_ONCE = 125_000, 512  # more fall out of the cache; measured


def pair_table(M: FloatArray) -> FloatArray:
    """M_ecfd + M_fced, halved for e = f, shape (n_c (n_c + 1)/2, n_e (n_e + 1)/2), of M (n_e, n_c, n_e, n_c)."""
    (e, f), pairs = np.tril_indices(M.shape[0]), np.tril_indices(M.shape[1])
    table = np.empty((len(pairs[0]), len(e)))
    for k, (c, d) in enumerate(zip(*pairs, strict=True)):
        table[k] = (M[:, c, :, d] + M[:, c, :, d].T)[e, f]
    table[:, e == f] *= 0.5
    return table


def quadratic_forms(rows: FloatArray, M: FloatArray) -> FloatArray:
    """Σ_ef rows_qe M_ecfd rows_qf, shape (q, n_c, n_c), for rows (q, n_e) and M symmetric as a matrix."""
    n_c = M.shape[1]
    out = np.empty((len(rows), n_c, n_c))
    for c in range(n_c):
        for d in range(c + 1):
            part = np.ascontiguousarray(M[:, c, :, d])
            out[:, c, d] = out[:, d, c] = np.einsum("qe,qe->q", rows @ part, rows)
    return out


def quadratic_forms_by_pairs(rows: FloatArray, table: FloatArray, n_c: int) -> FloatArray:
    """:func:`quadratic_forms` from the :func:`pair_table` of M."""
    c, d = np.tril_indices(n_c)
    out = np.empty((len(rows), n_c, n_c))
    for points, across in _points(rows):
        packed = np.zeros((len(c), across.shape[1]))
        for pairs, products in _products(across):
            packed += table[:, pairs] @ products
        out[points, c, d] = out[points, d, c] = packed.T
    return out


def weighted_grams(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ_q rows_qe rows_qf weights_qk, shape (k, n_e (n_e + 1)/2), for pairs e >= f row by row; weights (q, k)."""
    n_e = rows.shape[1]
    out = np.zeros((weights.shape[1], n_e * (n_e + 1) // 2))
    for points, across in _points(rows):
        mine = np.ascontiguousarray(weights[points].T)
        for pairs, products in _products(across):
            out[:, pairs] += mine @ products.T
    return out


def _points(rows: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Rows in chunks, transposed."""
    for start in range(0, len(rows), _POINTS_AT_ONCE):
        points = slice(start, start + _POINTS_AT_ONCE)
        yield points, np.ascontiguousarray(rows[points].T)


def _products(across: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Products of pairs of rows of ``across`` (n_e, q), in chunks of shapes (n_pairs, q)."""
    n_e, n = across.shape
    ends = np.arange(n_e + 1) * np.arange(1, n_e + 2) // 2  # where the pairs of each begin
    most, first = max(1, _PRODUCTS_AT_ONCE // n), 0
    while first < n_e:
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + most, side="right")) - 1)
        products = np.empty((ends[last] - ends[first], n))
        for i in range(first, last):
            begin = ends[i] - ends[first]
            np.multiply(across[: i + 1], across[i], out=products[begin : begin + i + 1])
        yield slice(int(ends[first]), int(ends[last])), products
        first = last
