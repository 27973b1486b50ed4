"""Distances between scaled rows of features, and the derivatives of what depends on them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

__all__ = ["squared_distances", "weighted_squares"]

FloatArray = npt.NDArray[np.float64]

_WIDE = 64  # columns from which a matrix product is quicker than differences, at the price of its rounding


def squared_distances(x: FloatArray, y: FloatArray | None, scales: FloatArray) -> FloatArray:
    """Σ_d ((x_id - y_jd) / ℓ_d)², shape (n, m).

    Parameters
    ----------
    x, y : arrays of float, shapes (n, d) and (m, d)
        Without ``y`` the rows of ``x``; then symmetric with a diagonal of zeros.
    scales : array of float, shape (d,) or (1,)
        ℓ > 0.

    Notes
    -----
    n m d operations. From 64 columns on by |x|² + |y|² - 2 x·y, right to 1e-15 of the largest |x|².
    """
    a = x / scales
    b = a if y is None else y / scales
    if x.shape[1] < _WIDE:
        return np.asarray(cdist(a, b, "sqeuclidean"))
    centre = b.mean(axis=0) if len(b) else 0.0
    a = a - centre
    b = a if y is None else b - centre
    square: FloatArray = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)[None, :] - 2.0 * (a @ b.T)
    np.maximum(square, 0.0, out=square)
    if y is None:
        square = 0.5 * (square + square.T)
        np.fill_diagonal(square, 0.0)
    return square


def weighted_squares(x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
    """Σ_ij weights_ij (x_id - y_jd)² for every column d, shape (d,).

    Notes
    -----
    One matrix product: n m d operations, and no array of n x m x d.
    """
    y = x if y is None else y
    cross = np.einsum("id,id->d", x, weights @ y)
    return np.asarray(weights.sum(axis=1) @ (x * x) + weights.sum(axis=0) @ (y * y) - 2.0 * cross)
