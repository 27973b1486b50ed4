"""Distinct trade-offs: up to rounding, and up to which item stood on the left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predilect._base.types import FloatArray, IntArray
from predilect.errors import DataError

CLOSE = 1e-12  # values of a column that differ by less than this share of its largest are one value


class Points(NamedTuple):
    """Distinct trade-offs; row i is about ``sign[i] * points[code[i]]``."""

    points: FloatArray  # (m, d), in lexicographic order
    code: IntArray  # (n,)
    sign: NDArray[np.int8]  # (n,), all 1 where nothing was folded


def distinct_points(t: ArrayLike, antisymmetric: bool = True) -> Points:
    """The distinct trade-offs among rows (n, d).

    With ``antisymmetric`` t and -t are one: the one whose first coordinate that is not 0 is positive.
    Independent of the order of the rows and, if folded, of which item stood on the left. O(d n log n) time. DataError
    for numbers that are not finite.
    """
    rows = as_rows(t)
    n, d = rows.shape
    values, place = _ladders(rows)
    sign = _orientation(place, len(rows)) if antisymmetric else np.ones(n, dtype=np.int8)
    key, n_keys = np.zeros(n, dtype=np.int64), 1
    for column in place:
        turned = column * sign
        low, high = (int(turned.min()), int(turned.max())) if n else (0, 0)
        n_values = high - low + 1
        if n_keys * n_values >= 2**62:
            key, n_keys = _dense(key, n_keys)
        key = key * n_values + (turned - low)
        n_keys *= n_values
    code, m = _dense(key, n_keys)
    # A point is its first row: all its rows hold the same values.
    first = np.empty(m, dtype=np.int64)
    first[code[::-1]] = np.arange(n)[::-1]
    points = _rows(values, [column[first] for column in place], sign[first]).reshape(m, d)
    return Points(points, code, sign)


def merge_close(t: ArrayLike) -> FloatArray:
    """Values of a column that differ by rounding only made one value, mirrored alike; shape (n, d).

    In each column the sizes |t| are sorted; neighbours that differ by at most 10⁻¹² of the largest become the smallest
    of them, and 0 if that near to 0. Idempotent. Rounding to 12 digits instead would separate values on two sides of a
    rounding boundary: a difference of standardised columns falls anywhere, and a few of thousands of values do fall
    there.
    """
    rows = as_rows(t)
    values, place = _ladders(rows)
    return _rows(values, place, np.ones(len(rows), dtype=np.int8))


def as_rows(t: ArrayLike) -> FloatArray:
    """Trade-offs as finite float64 array of shape (n, d), or a DataError."""
    rows = np.asarray(t, dtype=np.float64)
    if rows.ndim != 2:
        raise DataError(f"expected trade-offs as an array of shape (n, d), got one of shape {rows.shape}.")
    bad = ~np.isfinite(rows)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            f"{int(bad.any(axis=1).sum())} of {len(rows)} trade-offs are not finite (first: row {row}, dimension "
            f"{column}, {rows[row, column]})."
        )
    return rows


def _ladders(rows: FloatArray) -> tuple[list[FloatArray], list[IntArray]]:
    """For each column its distinct sizes, 0 first, and the signed place of every value among them."""
    values, places = [], []
    for column in rows.T:
        size = np.abs(column)
        order = np.argsort(size)
        ascending = size[order]
        fresh = np.diff(ascending, prepend=0.0) > CLOSE * (ascending[-1] if len(ascending) else 0.0)
        values.append(np.append(0.0, ascending[fresh]))
        place = np.empty(len(size), dtype=np.int64)
        place[order] = np.cumsum(fresh)
        places.append(np.where(column < 0, -place, place))
    return values, places


def _orientation(places: list[IntArray], n: int) -> NDArray[np.int8]:
    """Sign of the first coordinate of each row that is not 0; 1 if all are."""
    sign = np.zeros(n, dtype=np.int8)
    for place in places:
        sign = np.where(sign == 0, np.sign(place), sign).astype(np.int8)
    return np.where(sign == 0, 1, sign).astype(np.int8)


def _rows(values: list[FloatArray], places: list[IntArray], sign: NDArray[np.int8]) -> FloatArray:
    rows = np.zeros((len(sign), len(values)))
    for d, (sizes, place) in enumerate(zip(values, places, strict=True)):
        rows[:, d] = sizes[np.abs(place)] * (np.sign(place) * sign) + 0.0
    return rows


def _dense(key: NDArray[np.int64], n_keys: int) -> tuple[NDArray[np.int64], int]:
    """Ranks of the keys among the different ones, and how many these are."""
    if n_keys <= 4 * len(key) + 1024:
        present = np.zeros(n_keys, dtype=bool)
        present[key] = True
        rank = np.cumsum(present) - 1
        return rank[key], int(present.sum())
    different, code = np.unique(key, return_inverse=True)
    return code.astype(np.int64), len(different)
