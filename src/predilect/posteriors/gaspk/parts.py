"""Eigenvectors of a Kronecker product by the parities of their factors, and products along the axes of a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from predilect.posteriors.gaspk.axes import Group

__all__ = ["Part", "along", "parts_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


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
