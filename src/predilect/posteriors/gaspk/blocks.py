"""Sums over the answers about each trade-off: slopes to gradients, curvatures to blocks of n_c x n_c."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predilect._compile import kernel

__all__ = ["blocks", "gather", "scatter"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def gather(user: IntArray, point: IntArray, gamma: FloatArray, F: FloatArray) -> FloatArray:
    """γ_uᵀ F_t of each answer.

    Parameters
    ----------
    user, point : arrays of int, shape (n,)
        Codes of the person and of the trade-off.
    gamma : array of float, shape (n_users, n_c)
        Weights of people.
    F : array of float, shape (n_points, n_c)
        The characteristics at the trade-offs.

    Returns
    -------
    margin : array of float, shape (n,)

    Notes
    -----
    gaspk.md 1.1, g = Aᵀ f. n n_c operations, no memory but the result.
    """
    out = np.empty(len(user))
    _gather(user, point, np.ascontiguousarray(gamma), np.ascontiguousarray(F), out)
    return out


def scatter(user: IntArray, point: IntArray, weights: FloatArray, gamma: FloatArray, n_points: int) -> FloatArray:
    """Σ_{i at t} weights_i γ_i: the gradient at each trade-off, from weighted slopes.

    Parameters
    ----------
    user, point : arrays of int, shape (n,)
    weights : array of float, shape (n,)
        Slope of each answer times its weight.
    gamma : array of float, shape (n_users, n_c)
    n_points : int

    Returns
    -------
    gradient : array of float, shape (n_points, n_c)
        Zeros where nobody answered.

    Notes
    -----
    gaspk.md 2, eq. 10 with the sum over answers that share a trade-off: A (y ∘ ρ). Added in the order of the rows:
    the same rows, the same bits.
    """
    out = np.zeros((n_points, gamma.shape[1]))
    _scatter(user, point, weights, np.ascontiguousarray(gamma), out)
    return out


def blocks(user: IntArray, point: IntArray, weights: FloatArray, gamma: FloatArray, n_points: int) -> FloatArray:
    """B_t = Σ_{i at t} weights_i γ_i γ_iᵀ: minus the Hessian at each trade-off, from weighted curvatures.

    Parameters
    ----------
    user, point : arrays of int, shape (n,)
    weights : array of float, shape (n,)
        Curvature of each answer times its weight, ≥ 0.
    gamma : array of float, shape (n_users, n_c)
    n_points : int

    Returns
    -------
    B : array of float, shape (n_points, n_c, n_c)
        Exactly symmetric, positive semidefinite, of rank at most the number of people who answered at t.

    Notes
    -----
    gaspk.md 2, eq. 11 summed over answers. n n_c²/2 operations; memory n_points n_c²/2 beside the result. Added in the
    order of the rows.
    """
    n_c = gamma.shape[1]
    out = np.empty((n_points, n_c, n_c))
    _blocks(user, point, weights, np.ascontiguousarray(gamma), out)
    return out


@kernel
def _gather(user: IntArray, point: IntArray, gamma: FloatArray, F: FloatArray, out: FloatArray) -> None:
    for i in range(user.shape[0]):
        u, t = user[i], point[i]
        s = 0.0
        for c in range(gamma.shape[1]):
            s += gamma[u, c] * F[t, c]
        out[i] = s


@kernel
def _scatter(user: IntArray, point: IntArray, weights: FloatArray, gamma: FloatArray, out: FloatArray) -> None:
    for i in range(user.shape[0]):
        u, t, s = user[i], point[i], weights[i]
        for c in range(gamma.shape[1]):
            out[t, c] += s * gamma[u, c]


@kernel
def _blocks(user: IntArray, point: IntArray, weights: FloatArray, gamma: FloatArray, out: FloatArray) -> None:
    n_c = gamma.shape[1]
    # Triangles side by side: half of the memory that the rows of people, who answer anywhere, jump about in.
    packed = np.zeros((out.shape[0], n_c * (n_c + 1) // 2))
    for i in range(user.shape[0]):
        u, t = user[i], point[i]
        first = 0
        for c in range(n_c):
            s = weights[i] * gamma[u, c]
            for d in range(c + 1):
                packed[t, first + d] += s * gamma[u, d]
            first += c + 1
    for t in range(out.shape[0]):
        first = 0
        for c in range(n_c):
            for d in range(c + 1):
                out[t, c, d] = packed[t, first + d]
                out[t, d, c] = packed[t, first + d]
            first += c + 1
