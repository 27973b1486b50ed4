"""The preference kernel: how the margins of two pairs of items covary, given how the items' utilities do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["preference"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


def preference(
    K: FloatArray, left: IntArray, right: IntArray, left2: IntArray | None = None, right2: IntArray | None = None
) -> FloatArray:
    """k((i, j), (k, l)) = k(i, k) + k(j, l) - k(i, l) - k(j, k) for pairs given by the codes of their items.

    Parameters
    ----------
    K : array of float, shape (n_items, n_items)
        Covariance of the utilities, symmetric.
    left, right : arrays of int, shape (n,)
        The pairs (i, j).
    left2, right2 : arrays of int, shape (m,), optional
        The pairs (k, l); by default the first ones again, and the result is exactly symmetric.

    Returns
    -------
    covariance : array of float, shape (n, m)
        D K D'ᵀ with the rows e_i - e_j of D and e_k - e_l of D'.

    Notes
    -----
    collaborative.md 1 (Houlsby et al. 2012). n n_items + n m operations and memory. It changes sign where one pair is
    swapped, vanishes where i = j, and has rank n_items - 1 at most.
    """
    rows = K[left] - K[right]
    if left2 is None or right2 is None:
        covariance = rows[:, left] - rows[:, right]
        return np.asarray(0.5 * (covariance + covariance.T))
    return np.asarray(rows[:, left2] - rows[:, right2])
