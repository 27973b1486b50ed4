"""A grid folded at 0: from coordinates to values at positive levels and combinations of signs, and back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from predilect.posteriors.gaspk.axes import ByParity, Group
from predilect.posteriors.gaspk.parts import Part, along

__all__ = ["Folding"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Folding:
    """Q Λ^½ w at the entries of a folded grid: a row for each combination of signs and of positive levels.

    Without antisymmetry nothing is folded, and an entry is a point of the grid.
    """

    groups: tuple[Group, ...]  # dimensions merged
    parts: tuple[Part, ...]  # eigenvectors that are coordinates, by parities
    antisymmetric: bool
    eigenvalues: FloatArray  # (rank,), Λ, part by part

    @property
    def rank(self) -> int:
        """Coordinates."""
        return len(self.eigenvalues)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each group that are left after folding."""
        return tuple(len(Q) for Q in self.parts[0].factors)

    @property
    def n_entries(self) -> int:
        """Sign patterns times products of positive levels."""
        return len(self.parts) * math.prod(self.sizes)

    def index(self, codes: IntArray) -> tuple[IntArray, FloatArray | None]:
        """Entries of points, and their signs, shape (q, 1); None: all +1."""
        if not self.antisymmetric:
            return codes, None
        places = np.unravel_index(codes, [group.size for group in self.groups])
        folded, negative = [], []
        for group, place in zip(self.groups, places, strict=True):
            low = place < group.size // 2
            folded.append(np.where(low, group.size - 1 - place, place) - group.size // 2)
            negative.append(low)
        pattern = np.zeros(len(codes), dtype=np.int64)
        for low in negative[1:]:
            pattern = 2 * pattern + (low ^ negative[0])  # where the first is negative, all signs are changed
        index = pattern * math.prod(self.sizes) + np.ravel_multi_index(folded, self.sizes)
        return index, np.where(negative[0], -1.0, 1.0)[:, None] if negative[0].any() else None

    def unfolded(self, w: FloatArray) -> FloatArray:
        """Values at all entries, shape (n_patterns · Π h_g, k), of coordinates (rank, k)."""
        k = w.shape[1]
        scaled = self._root[:, None] * w
        folded = np.empty((len(self.parts), math.prod(self.sizes) * k))
        for p, part in enumerate(self.parts):
            if not len(part.cells):
                folded[p] = 0.0
                continue
            folded[p] = along(part.factors, part.used, part.spread(scaled[self._slices[p]])).reshape(-1)
        return (self._signs @ folded if len(folded) > 1 else folded).reshape(-1, k)

    def refolded(self, folded: FloatArray, k: int) -> FloatArray:
        """The transpose of ``unfolded``, from shape (n_patterns, Π h_g · k)."""
        if len(folded) > 1:
            folded = self._signs.T @ folded
        out = np.empty((self.rank, k))
        for part, rows, values in zip(self.parts, self._slices, folded, strict=True):
            out[rows] = part.collect(along(part.transposed, self.sizes, values.reshape(-1, k)))
        out *= self._root[:, None]
        return out

    def squared(self, folded: FloatArray) -> FloatArray:
        """Σ_i Q_ij² Λ_j folded_ik over products of positive levels i, from shape (Π h_g, k) to (rank, k).

        The square of a product of eigenvectors is the product of their squares, the same for all signs.
        """
        out = np.empty((self.rank, folded.shape[1]))
        for part, rows in zip(self.parts, self._slices, strict=True):
            out[rows] = part.collect(along(part.squares, self.sizes, folded))
        out *= self.eigenvalues[:, None]
        return out

    def assembled(self, features: Sequence[ByParity], coordinates: npt.NDArray[np.integer] | None) -> FloatArray:
        """Products of one feature of each group, for some or all coordinates."""
        wanted = np.arange(self.rank) if coordinates is None else np.asarray(coordinates)
        out = np.empty((len(features[0][0]), len(wanted)))
        for part, rows in zip(self.parts, self._slices, strict=True):
            mine = np.flatnonzero((wanted >= rows.start) & (wanted < rows.stop))
            if not len(mine):
                continue
            local = wanted[mine] - rows.start
            product = self._root[wanted[mine]]
            for rows_of, p, place in zip(features, part.parity, part.places, strict=True):
                product = product * rows_of[p][:, place[local]]
            out[:, mine] = product
        return out

    @cached_property
    def _root(self) -> FloatArray:
        return np.sqrt(self.eigenvalues)

    @cached_property
    def _slices(self) -> tuple[slice, ...]:
        ends = np.cumsum([0, *(len(part.cells) for part in self.parts)]).tolist()
        return tuple(itertools.starmap(slice, itertools.pairwise(ends)))

    @cached_property
    def _signs(self) -> FloatArray:
        """±1 of each part (columns) at each combination of signs of the groups after the first (rows)."""
        if not self.antisymmetric:
            return np.ones((1, 1))
        patterns = np.array(list(itertools.product((0, 1), repeat=len(self.groups) - 1)), dtype=np.int64)
        parities = np.array([part.parity[1:] for part in self.parts], dtype=np.int64)
        return np.asarray(1.0 - 2.0 * (patterns @ parities.T % 2))
