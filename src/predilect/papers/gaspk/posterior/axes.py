"""Dimensions of a grid: eigenvectors of their covariances, and products along them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.inference.gaussian.dense import eigenpairs
from predilect.inference.gaussian.kernels import Kernel

_COMMUTES = 1e-12  # of the largest entry: how far levels, or a covariance, may be from their own reversal


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One dimension of a grid: K = vectors diag(values) vectorsᵀ."""

    levels: FloatArray  # (n_d,), ascending
    kernel: Kernel  # of one feature
    values: FloatArray  # (n_d,), descending
    vectors: FloatArray  # (n_d, n_d), orthonormal columns
    odd: BoolArray  # (n_d,), whether an eigenvector is odd; all False where they are not separated

    @classmethod
    def of(cls, levels: npt.ArrayLike, kernel: Kernel, fold: bool) -> Axis:
        """Eigenvectors of a kernel at levels, even and odd ones separated where ``fold``.

        Raises ValueError with ``fold`` if levels are not symmetric about 0, or k(-s, -t) != k(s, t).

        docs/math/gaspk.md section 2.2, F13: such a K commutes with the reversal J, and so has no entries between the
        even vectors (e_i + e_{-i})/√2 and the odd ones (e_i - e_{-i})/√2. 9 n_d³ operations.
        """
        x = np.array(levels, dtype=np.float64)
        K = kernel(x[:, None])
        if not fold:
            values, vectors = eigenpairs(K)
            return cls(x, kernel, np.maximum(values, 0.0), vectors, np.zeros(len(x), dtype=bool))
        if np.abs(x + x[::-1]).max() > _COMMUTES * np.abs(x).max():
            raise ValueError(
                f"an antisymmetric grid needs levels that are symmetric about 0, not {levels!r}. Make them from the "
                "sizes of the trade-offs, and mirror them"
            )
        if np.abs(K - K[::-1, ::-1]).max() > _COMMUTES * np.abs(K).max():
            raise ValueError(f"an antisymmetric grid needs a kernel with k(-s, -t) = k(s, t), which {kernel} is not")
        (even_values, even), (odd_values, odd) = (_within(K, basis) for basis in _bases(len(x)))
        values = np.append(even_values, odd_values)
        order = np.argsort(-values, kind="stable")
        return cls(x, kernel, values[order], np.hstack([even, odd])[:, order], order >= len(even_values))

    def project(self, x: FloatArray) -> FloatArray:
        """k(x, levels) vectors / values, shape (q, n_d): rows of ``vectors`` where x is a level, to the bit.

        Eigenvectors of eigenvalue 0 give 0: a product with them is no coordinate.
        """
        place = self.places(x)
        cross = self.kernel(np.ascontiguousarray(x)[:, None], self.levels[:, None])
        inverse = np.divide(1.0, self.values, out=np.zeros_like(self.values), where=self.values > 0.0)
        on = self.levels[place] == x
        return np.where(on[:, None], self.vectors[place], (cross @ self.vectors) * inverse)

    def places(self, x: FloatArray) -> IntArray:
        """The level that x is, or another one."""
        return np.minimum(np.searchsorted(self.levels, x), len(self.levels) - 1)


def along(factors: Sequence[FloatArray], x: FloatArray) -> FloatArray:
    """A factor (h_g, n_g) along each axis of x, shape (Π n_g, k): to (Π h_g, k)."""
    k = x.shape[1]
    done, left = 1, len(x)
    for Q in factors:
        left //= Q.shape[1]
        x = np.matmul(Q, x.reshape(done, Q.shape[1], left * k))
        done *= len(Q)
    return x.reshape(-1, k)


def grouped(sizes: Sequence[int], overhead: float) -> list[slice]:
    """Neighbouring dimensions merged so that the cost Σ_g (n_g + overhead) of a product is least.

    ``overhead`` is the cost of a pass over the grid for each number, besides its n_g operations.
    """
    best: list[tuple[float, list[slice]]] = [(0.0, [])]  # of the dimensions before this one
    for stop in range(1, len(sizes) + 1):
        costs = [best[start][0] + math.prod(sizes[start:stop]) + overhead for start in range(stop)]
        start = int(np.argmin(costs))
        best.append((costs[start], [*best[start][1], slice(start, stop)]))
    return best[-1][1]


def _bases(n: int) -> tuple[FloatArray, FloatArray]:
    """Orthonormal bases of the even and the odd vectors of n entries, shapes (n, n - n//2) and (n, n//2)."""
    half = np.arange(n // 2)
    even, odd = np.zeros((n, n - n // 2)), np.zeros((n, n // 2))
    even[half, half] = even[n - 1 - half, half] = odd[n - 1 - half, half] = np.sqrt(0.5)
    odd[half, half] = -np.sqrt(0.5)
    if n % 2:
        even[n // 2, n // 2] = 1.0
    return even, odd


def _within(K: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenpairs of K in an invariant subspace."""
    if not basis.shape[1]:
        return np.empty(0), basis
    values, vectors = eigenpairs(basis.T @ K @ basis)
    return np.maximum(values, 0.0), basis @ vectors
