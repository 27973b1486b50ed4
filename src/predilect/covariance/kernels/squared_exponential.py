"""Covariance functions of features."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

__all__ = ["squared_exponential"]

FloatArray = npt.NDArray[np.float64]


def squared_exponential(x: FloatArray, y: FloatArray, length_scale: float) -> FloatArray:
    """k(x, y) = exp(-|x - y|² / (2 ℓ²)).

    Parameters
    ----------
    x, y : arrays of float, shapes (n, d) and (m, d)
        Features, in the units of ``length_scale``.
    length_scale : float
        ℓ > 0.

    Returns
    -------
    covariance : array of float, shape (n, m)

    Notes
    -----
    population.md section 1. n m d operations.
    """
    return np.asarray(np.exp(cdist(x, y, "sqeuclidean") * (-0.5 / length_scale**2)))
