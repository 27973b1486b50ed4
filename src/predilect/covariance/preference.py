"""Preference kernel: the covariance of margins of pairs of items."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["preference"]

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
