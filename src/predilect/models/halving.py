"""Half-precision storage of covariances of kept items: 16-bit variances of differences.

Pairs of items are predicted by the variance of their difference, so that is rounded, to 11 bits, and not the
covariances whose small remainder it would be.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["halved", "unhalved"]

FloatArray = npt.NDArray[np.float64]

_LARGEST_EXPONENT = 15  # of a 16-bit number; the smallest with all its bits is 2^-14


def halved(triangles: FloatArray, ptr: npt.NDArray[np.integer]) -> dict[str, npt.NDArray[np.generic]]:
    """Arrays to save instead of lower ``triangles`` (Σ r_u (r_u + 1) / 2,) of covariances of r_u items a person.

    ``variance`` has 32 bits; ``difference``, 16 bits, of each pair, times 2^``exponent``: relative error at most 2^-11
    down to 2^-29 of the largest, and 2^-40 of the largest below. What :func:`unhalved` made gives the same bits again.
    """
    row, column, start = _entries(ptr)
    off = row != column
    v = triangles[~off]
    difference = np.maximum(v[start[off] + row[off]] + v[start[off] + column[off]] - 2.0 * triangles[off], 0.0)
    exponent = _LARGEST_EXPONENT - math.frexp(float(difference.max(initial=0.0)))[1]
    return {
        "variance": v.astype(np.float32), "difference": np.ldexp(difference, exponent).astype(np.float16),
        "exponent": np.array(exponent, dtype=np.int64),
    }  # fmt: skip


def unhalved(arrays: dict[str, npt.NDArray[np.generic]], ptr: npt.NDArray[np.integer]) -> FloatArray:
    """The lower triangles of covariances that :func:`halved` was given, but for rounding."""
    v, r = arrays["variance"].astype(np.float64), np.diff(ptr)
    if len(v) != ptr[-1] or arrays["difference"].shape != (int((r * (r - 1) // 2).sum()),):
        raise ValueError(f"{ptr[-1]} kept items, but {len(v)} variances and {len(arrays['difference'])} differences")
    row, column, start = _entries(ptr)
    off = row != column
    triangles = np.empty(len(row))
    triangles[~off] = v
    difference = np.ldexp(arrays["difference"].astype(np.float64), -int(arrays["exponent"]))
    triangles[off] = 0.5 * (v[start[off] + row[off]] + v[start[off] + column[off]] - difference)
    return triangles


def _entries(ptr: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.int64], ...]:
    """Row, column and first item's place of the person of each entry of all triangles."""
    r = np.diff(ptr)
    length = np.arange(1, int(r.max(initial=0)) + 1)  # of the rows of the largest triangle
    rows = np.concatenate([length[:n] for n in r.tolist()]) if len(r) else length
    row = np.repeat(rows - 1, rows)
    column = np.arange(len(row)) - np.repeat(np.cumsum(rows) - rows, rows)
    return row, column, np.repeat(ptr[:-1], r * (r + 1) // 2)
