"""Eigenvectors of a Kronecker product by the parities of their factors, and products along the axes of a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from predilect._types import FloatArray, IntArray
from predilect.gaussian.dense import eigenpairs
from predilect.gaussian.kernels import Kernel


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The eigenvectors whose factors have one combination of parities."""

    parity: tuple[int, ...]  # of each group
    used: tuple[int, ...]  # how many leading eigenvectors of each group any coordinate uses
    cells: IntArray  # (rank_p,), the products that are coordinates: row-major codes in used, ascending
    values: FloatArray  # (rank_p,), eigenvalues of ⊗ K_d
    factors: tuple[FloatArray, ...]  # (h_g, used_g), eigenvectors at the levels left after folding
    transposed: tuple[FloatArray, ...]
    squares: tuple[FloatArray, ...]

    @property
    def places(self) -> tuple[IntArray, ...]:
        """Which eigenvector of each group a coordinate has, shapes (rank_p,)."""
        return np.unravel_index(self.cells, self.used)

    @property
    def operations(self) -> int:
        """Multiplications of one product with one column."""
        total, done, left = 0, 1, math.prod(self.used)
        for Q in self.factors:
            total += done * left * len(Q)
            done, left = done * len(Q), left // max(Q.shape[1], 1)
        return total

    def spread(self, w: FloatArray) -> FloatArray:
        """Coordinates (rank_p, k) among all products, shape (Π used, k)."""
        n = math.prod(self.used)
        if len(self.cells) == n:
            return w
        out = np.zeros((n, w.shape[1]))
        out[self.cells] = w
        return out

    def collect(self, x: FloatArray) -> FloatArray:
        """The coordinates among all products."""
        return x if len(self.cells) == len(x) else x[self.cells]


def parts_of(groups: Sequence[Group], antisymmetric: bool, cutoff: float) -> tuple[Part, ...]:
    """The products of eigenvectors that are coordinates."""
    parities = [(0,) * len(groups)]
    if antisymmetric:
        parities = [parity for parity in itertools.product((0, 1), repeat=len(groups)) if sum(parity) % 2]
    spectra = [[group.values[p] for group, p in zip(groups, parity, strict=True)] for parity in parities]
    largest = max(math.prod(float(values.max(initial=0.0)) for values in spectrum) for spectrum in spectra)
    parts = []
    for parity, spectrum in zip(parities, spectra, strict=True):
        products = reduce(np.multiply.outer, spectrum)
        kept = np.nonzero(products > cutoff * largest)
        used = tuple(int(place.max(initial=-1)) + 1 for place in kept)
        folded = [
            np.ascontiguousarray(group.vectors[p][group.size // 2 if antisymmetric else 0 :, :n])
            for group, p, n in zip(groups, parity, used, strict=True)
        ]
        transposed = tuple(np.ascontiguousarray(Q.T) for Q in folded)
        parts.append(
            Part(
                parity, used, np.ravel_multi_index(kept, used) if min(used) else np.empty(0, dtype=np.int64),
                products[kept], tuple(folded), transposed, tuple(np.square(Q) for Q in transposed),
            )
        )  # fmt: skip
    return tuple(parts)


def along(factors: Sequence[FloatArray], sizes: Sequence[int], x: FloatArray) -> FloatArray:
    """A factor (h_g, n_g) along each axis of x, shape (Π n_g, k): to (Π h_g, k)."""
    k = x.shape[1]
    done, left = 1, math.prod(sizes)
    for Q, n in zip(factors, sizes, strict=True):
        left //= n
        x = np.matmul(Q, x.reshape(done, n, left * k))
        done *= len(Q)
    return x.reshape(-1, k)


ByParity = tuple[FloatArray, ...]

_COMMUTES = 1e-12  # of the largest entry: how far levels, or a covariance, may be from their own reversal


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One dimension of a grid: K = Σ_p vectors_p diag(values_p) vectors_pᵀ.

    p = 0 for even and 1 for odd eigenvectors, or p = 0 for all where they are not separated.
    """

    levels: FloatArray  # (n_d,), ascending
    kernel: Kernel  # of one feature
    values: ByParity  # (r_p,), descending
    vectors: ByParity  # (n_d, r_p), orthonormal columns

    @classmethod
    def of(cls, levels: npt.ArrayLike, kernel: Kernel, fold: bool) -> Axis:
        """Eigenvectors of a kernel at levels, even and odd ones separated where ``fold``.

        Raises ValueError if levels do not ascend; with ``fold``, if they are not symmetric about 0 or k(-s, -t) != k(s,
        t).

        gaspk.md 2.2, F13: such a K commutes with the reversal J, and so has no entries between the even vectors (e_i +
        e_{-i})/√2 and the odd ones (e_i - e_{-i})/√2. 9 n_d³ operations.
        """
        x = np.array(levels, dtype=np.float64)
        if x.ndim != 1 or not len(x) or not np.isfinite(x).all() or (np.diff(x) <= 0.0).any():
            raise ValueError(f"the levels of a dimension must be finite and ascend, not {levels!r}")
        K = kernel(x[:, None])
        if not fold:
            values, vectors = eigenpairs(K)
            return cls(x, kernel, (np.maximum(values, 0.0),), (vectors,))
        if np.abs(x + x[::-1]).max() > _COMMUTES * np.abs(x).max():
            raise ValueError(
                f"an antisymmetric grid needs levels that are symmetric about 0, not {levels!r}. Make them from the "
                "sizes of the trade-offs, and mirror them"
            )
        if np.abs(K - K[::-1, ::-1]).max() > _COMMUTES * np.abs(K).max():
            raise ValueError(f"an antisymmetric grid needs a kernel with k(-s, -t) = k(s, t), which {kernel} is not")
        spectra = [_within(K, basis) for basis in _bases(len(x))]
        return cls(x, kernel, tuple(values for values, _ in spectra), tuple(vectors for _, vectors in spectra))

    def project(self, x: FloatArray) -> ByParity:
        """k(x, levels) vectors_p / values_p, shapes (q, r_p): rows of ``vectors`` where x is a level, to the bit.

        Eigenvectors of eigenvalue 0 give 0: a product with them is no coordinate.
        """
        place = np.minimum(np.searchsorted(self.levels, x), len(self.levels) - 1)
        on = self.levels[place] == x
        cross = self.kernel(np.ascontiguousarray(x)[:, None], self.levels[:, None])
        out = []
        for values, vectors in zip(self.values, self.vectors, strict=True):
            inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0.0)
            out.append(np.where(on[:, None], vectors[place], (cross @ vectors) * inverse))
        return tuple(out)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Neighbouring dimensions merged: the Kronecker product of their covariances."""

    axes: range  # the dimensions
    size: int  # n_g, the product of their numbers of levels
    values: ByParity  # (r_p,), by the parity of the product; descending
    vectors: ByParity  # (n_g, r_p)
    order: tuple[IntArray, ...]  # (r_p,), where each stands in by_parity of the dimensions

    def features(self, rows: Sequence[ByParity]) -> ByParity:
        """Products of rows (q, r_p) of every dimension of the grid, in the order of ``values``."""
        raw = by_parity([rows[d] for d in self.axes])
        return tuple(part[:, order] for part, order in zip(raw, self.order, strict=True))


def by_parity(rows: Sequence[ByParity]) -> ByParity:
    """Row by row all products of one entry of each dimension, those with an even number of odd ones first."""
    return reduce(_two, rows)


def grouped(axes: Sequence[Axis], overhead: float) -> tuple[Group, ...]:
    """Neighbouring dimensions merged so that the cost Σ_g (n_g + overhead) of a product is least.

    ``overhead`` is the cost of a pass over the grid for each number, besides its n_g operations.
    """
    sizes = [len(axis.levels) for axis in axes]
    best: list[tuple[float, int]] = [(0.0, 0)]  # cost of the dimensions before this one, and where the last group began
    for stop in range(1, len(sizes) + 1):
        costs = [best[start][0] + math.prod(sizes[start:stop]) + overhead for start in range(stop)]
        start = int(np.argmin(costs))
        best.append((costs[start], start))
    groups: list[Group] = []
    stop = len(sizes)
    while stop:
        start = best[stop][1]
        groups.insert(0, _group(axes, range(start, stop), math.prod(sizes[start:stop])))
        stop = start
    return tuple(groups)


def _group(axes: Sequence[Axis], which: range, size: int) -> Group:
    raw = by_parity([tuple(values[None, :] for values in axes[d].values) for d in which])
    order = tuple(np.argsort(-part[0], kind="stable") for part in raw)
    places = np.unravel_index(np.arange(size), [len(axes[d].levels) for d in which])
    rows = by_parity(
        [tuple(vectors[place] for vectors in axes[d].vectors) for d, place in zip(which, places, strict=True)]
    )
    return Group(
        which, size,
        tuple(part[0, first] for part, first in zip(raw, order, strict=True)),
        tuple(np.ascontiguousarray(part[:, first]) for part, first in zip(rows, order, strict=True)),
        order,
    )  # fmt: skip


def _two(a: ByParity, b: ByParity) -> ByParity:
    def products(left: FloatArray, right: FloatArray) -> FloatArray:
        return (left[:, :, None] * right[:, None, :]).reshape(len(left), left.shape[1] * right.shape[1])

    if len(a) == 1:
        return (products(a[0], b[0]),)
    return (
        np.hstack([products(a[0], b[0]), products(a[1], b[1])]),
        np.hstack([products(a[0], b[1]), products(a[1], b[0])]),
    )


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
