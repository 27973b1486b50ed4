"""Compiled sums over answers, of people's weights at trade-offs, and their transposes."""

from __future__ import annotations

import numpy as np

from predilect._base.compile import kernel
from predilect._base.types import FloatArray, IntArray

_SQUARES = 10_000_000  # numbers in γ γᵀ of all people that are held at once


def gather(user: IntArray, point: IntArray, gamma: FloatArray, F: FloatArray) -> FloatArray:
    """γ_uᵀ F_t of each answer, (n,): docs/math/gaspk.md section 1.1, g = Aᵀ f."""
    out = np.empty(len(user))
    _gather(user, point, np.ascontiguousarray(gamma), np.ascontiguousarray(F), out)
    return out


def scatter(user: IntArray, point: IntArray, weights: FloatArray, gamma: FloatArray, n_points: int) -> FloatArray:
    """Σ_{i at t} weights_i γ_i, (n_points, n_c), from weighted slopes (n,): A (y ∘ ρ), docs/math/gaspk.md eq. 10."""
    out = np.zeros((n_points, gamma.shape[1]))
    _scatter(user, point, weights, np.ascontiguousarray(gamma), out)
    return out


def packed_blocks(user: IntArray, point: IntArray, weights: FloatArray, gamma: FloatArray, n_points: int) -> FloatArray:
    """Σ_{i at t} weights_i γ_i γ_iᵀ as lower triangles, row by row: shape (n_points, n_c (n_c + 1)/2).

    Half of the memory, which is what a product with them costs. γ γᵀ is made once for each person where there is room.
    """
    n_c = gamma.shape[1]
    out = np.zeros((n_points, n_c * (n_c + 1) // 2))
    if len(gamma) <= len(user) and len(gamma) * out.shape[1] <= _SQUARES:
        squares = np.empty((len(gamma), out.shape[1]))
        _squares(np.ascontiguousarray(gamma), squares)
        _scatter(user, point, weights, squares, out)
    else:
        _packed_blocks(user, point, weights, np.ascontiguousarray(gamma), out)
    return out


def unpacked(packed: FloatArray) -> FloatArray:
    """Triangles of :func:`packed_blocks` as blocks, shape (n_points, n_c, n_c)."""
    n_c = int((2.0 * packed.shape[1]) ** 0.5)
    out = np.empty((len(packed), n_c, n_c))
    _unpacked(packed, out)
    return out


def packed_product(packed: FloatArray, F: FloatArray) -> FloatArray:
    """B_t F_t at each trade-off, shape (n_points, n_c), for triangles of :func:`packed_blocks`."""
    out = np.zeros(F.shape)
    _packed_product(packed, np.ascontiguousarray(F), out)
    return out


def row_sums(index: IntArray, values: FloatArray, n_rows: int) -> FloatArray:
    """Σ over t with index_t = r of values_t, for each row r: shape (n_rows, k), for values of shape (n, k)."""
    out = np.zeros((n_rows, values.shape[1]))
    _add_rows(index, np.ascontiguousarray(values), out)
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
        s = weights[i]
        sums, mine = out[point[i]], gamma[user[i]]  # as rows: loops over entries of a table are not vectorised
        for c in range(mine.shape[0]):
            sums[c] += s * mine[c]


@kernel
def _add_rows(index: IntArray, values: FloatArray, out: FloatArray) -> None:
    for t in range(index.shape[0]):
        sums, mine = out[index[t]], values[t]
        for c in range(mine.shape[0]):
            sums[c] += mine[c]


@kernel
def _squares(gamma: FloatArray, out: FloatArray) -> None:
    for u in range(gamma.shape[0]):
        first = 0
        for c in range(gamma.shape[1]):
            for d in range(c + 1):
                out[u, first + d] = gamma[u, c] * gamma[u, d]
            first += c + 1


@kernel
def _packed_blocks(user: IntArray, point: IntArray, weights: FloatArray, gamma: FloatArray, out: FloatArray) -> None:
    n_c = gamma.shape[1]
    for i in range(user.shape[0]):
        u, t = user[i], point[i]
        first = 0
        for c in range(n_c):
            s = weights[i] * gamma[u, c]
            if s != 0.0:  # many weights are 0
                for d in range(c + 1):
                    out[t, first + d] += s * gamma[u, d]
            first += c + 1


@kernel
def _unpacked(packed: FloatArray, out: FloatArray) -> None:
    for t in range(out.shape[0]):
        first = 0
        for c in range(out.shape[1]):
            for d in range(c + 1):
                out[t, c, d] = packed[t, first + d]
                out[t, d, c] = packed[t, first + d]
            first += c + 1


@kernel
def _packed_product(packed: FloatArray, F: FloatArray, out: FloatArray) -> None:
    for t in range(F.shape[0]):
        triangle, mine, sums = packed[t], F[t], out[t]
        first = 0
        for c in range(mine.shape[0]):
            row, own = triangle[first : first + c], mine[c]
            s = triangle[first + c] * own
            for d in range(c):
                s += row[d] * mine[d]
            for d in range(c):
                sums[d] += row[d] * own
            sums[c] += s
            first += c + 1


def mixed(
    user: IntArray, point: IntArray, gamma: FloatArray, mean: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """γ_uᵀ m_t and γ_uᵀ V_t γ_u of each question (user, point), shapes (n,); 0 where the code of a person is negative.

    ``mean`` (n_points, n_c) and symmetric ``covariance`` (n_points, n_c, n_c) are of the characteristics. n n_c²/2
    operations, fewer where weights are 0, and no memory but the results.
    """
    out = np.zeros((2, len(user)))
    _mixed(
        np.asarray(user, dtype=np.int64), np.asarray(point, dtype=np.int64), np.ascontiguousarray(gamma),
        np.ascontiguousarray(mean), np.ascontiguousarray(covariance), out,
    )  # fmt: skip
    return out[0], out[1]


@kernel
def _mixed(
    user: IntArray, point: IntArray, gamma: FloatArray, mean: FloatArray, V: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    for i in range(user.shape[0]):
        u, t = user[i], point[i]
        if u < 0:
            continue
        m = v = 0.0
        for c in range(gamma.shape[1]):
            own = gamma[u, c]
            if own == 0.0:
                continue
            m += own * mean[t, c]
            half = 0.5 * V[t, c, c] * own
            for d in range(c):
                half += V[t, c, d] * gamma[u, d]
            v += 2.0 * own * half
        out[0, i], out[1, i] = m, v
