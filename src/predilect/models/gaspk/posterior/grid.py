"""A grid folded at 0: from coordinates to values at positive levels and combinations of signs, and back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from predilect._types import FloatArray, IntArray
from predilect.gaussian.kernels import Kernel
from predilect.models.gaspk.posterior.axes import Axis, ByParity, Group, Part, along, grouped, parts_of
from predilect.models.gaspk.posterior.curvature import packed_product, row_sums, sandwich


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

    def assembled(self, features: Sequence[ByParity], coordinates: IntArray | None) -> FloatArray:
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


_CUTOFF = 1e-14  # of the largest eigenvalue: below it lies what eigh cannot tell from 0
_PASS = 64.0  # what a pass over a grid costs, in multiplications for each number; measured
_NUMBERS_AT_ONCE = 1_500_000  # more columns at once fall out of the cache
_FEWEST_COLUMNS = 8  # fewer are too little work for a matrix product
_ROWS_NUMBERS = 20_000_000  # of rows that are held at once
_DENSE_NUMBERS = 8_000_000
_DENSE_SPEED = 3.0  # one large product does so many times the operations a second of many small ones


@dataclass(frozen=True, eq=False)
class GridBasis:
    """f = Q Λ^½ w at observed points of a grid, for the prior covariance a ⊗_d K_d = Q Λ Qᵀ: Φ = Q Λ^½ there.

    gaspk.md 2, "Kronecker facts", and 2.2, F13. Levels being symmetric about 0 and K_d stationary, K_d commutes with
    J_d and has eigenvectors that are even or odd; a product of them is one of ⊗ K_d J_d too, with the same eigenvalue
    or its negative. So K_a has the eigenvalue of ⊗ K_d where the number of odd factors is odd, and 0 elsewhere. An even
    or odd vector is known from half of its entries: products are taken over the positive levels of each group, once for
    each combination of parities, and put together by signs. With groups of n_g levels a column takes n_T Σ_g n_g / 2^(2
    - 1/g) operations or fewer where antisymmetric, n_T Σ_g n_g otherwise, and 2 n_T numbers.
    """

    axes: tuple[Axis, ...]
    folding: Folding
    amplitude: float  # a; where antisymmetric, f(t) has the prior variance a (1 - k(t, -t)) / 2
    places: IntArray  # (n_points,), row-major codes of the points
    Phi: FloatArray | None  # (n_points, rank); None where products along the axes are cheaper

    @classmethod
    def of(
        cls,
        levels: Sequence[npt.ArrayLike],
        kernels: Sequence[Kernel],
        places: npt.ArrayLike,
        *,
        amplitude: float = 1.0,
        antisymmetric: bool = False,
        cutoff: float = _CUTOFF,
        dense: bool | None = None,
    ) -> GridBasis:
        """The eigen-coordinates of a grid of ascending levels (n_d,), with a kernel of one feature for each dimension.

        ``places`` are distinct row-major codes; eigenvalues up to ``cutoff`` of the largest are left out. ``dense``
        None makes Φ where it has at most 8 000 000 numbers and at most three times as many as products along the axes
        have operations. Raises ValueError for bad levels (not symmetric about 0 where ``antisymmetric``) or codes.
        """
        if not len(levels) == len(kernels) > 0:
            raise ValueError(f"expected one kernel for each dimension, not {len(kernels)} for {len(levels)}")
        if not (math.isfinite(amplitude) and amplitude > 0.0):
            raise ValueError(f"the amplitude must be a positive finite number, not {amplitude!r}")
        axes = tuple(Axis.of(x, kernel, antisymmetric) for x, kernel in zip(levels, kernels, strict=True))
        n_grid = math.prod(len(axis.levels) for axis in axes)
        codes = np.array(places, dtype=np.int64)
        if codes.ndim != 1 or ((codes < 0) | (codes >= n_grid)).any():
            raise ValueError(f"points must be codes of the grid, 0 .. {n_grid - 1}, in one column")
        if len(np.unique(codes)) != len(codes):
            raise ValueError("a point is given twice; answers about one trade-off belong to one point")
        codes.flags.writeable = False
        groups = grouped(axes, _PASS)
        parts = parts_of(groups, antisymmetric, cutoff)
        eigenvalues = amplitude * np.concatenate([part.values for part in parts])
        folding = Folding(groups, parts, antisymmetric, eigenvalues)
        out = cls(axes, folding, float(amplitude), codes, None)
        small = len(codes) * out.rank <= min(_DENSE_NUMBERS, _DENSE_SPEED * sum(part.operations for part in parts))
        if small if dense is None else dense:
            object.__setattr__(out, "Phi", out.at(codes))
        return out

    @property
    def antisymmetric(self) -> bool:
        """The covariance is a (⊗ K_d - ⊗ K_d J_d) / 2, J_d the reversal of levels: f(-t) = -f(t)."""
        return self.folding.antisymmetric

    @property
    def eigenvalues(self) -> FloatArray:
        """Λ of the coordinates, shape (rank,), part by part: not sorted."""
        return self.folding.eigenvalues

    @property
    def n_points(self) -> int:
        return len(self.places)

    @property
    def rank(self) -> int:
        return len(self.eigenvalues)

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels of each dimension."""
        return tuple(len(axis.levels) for axis in self.axes)

    def forward(self, w: FloatArray) -> FloatArray:
        if self.Phi is not None:
            return np.asarray(self.Phi @ w)
        return self._by_columns(
            w, self.n_points, lambda part: self._picked(self.folding.unfolded(part), *self._observed)
        )

    def backward(self, v: FloatArray) -> FloatArray:
        if self.Phi is not None:
            return np.asarray(self.Phi.T @ v)
        return self._by_columns(v, self.rank, self._backward)

    def weighted_gram(self, packed: FloatArray, w: FloatArray) -> FloatArray:
        """Φᵀ B Φ w, shape (rank, n_c), from lower triangles of B (n_points, n_c (n_c + 1)/2)."""
        if self.Phi is not None or w.shape[1] > self._columns_at_once:
            return self.backward(packed_product(packed, self.forward(w)))
        # A point's sign enters twice.
        values = sandwich(self._observed[0], packed, self.folding.unfolded(w))
        return self.folding.refolded(values.reshape(len(self.folding.parts), -1), w.shape[1])

    def gram_diagonal(self, weights: FloatArray) -> FloatArray:
        if self.Phi is not None:
            return np.asarray(np.square(self.Phi).T @ weights)
        n = math.prod(self.folding.sizes)  # the same for all signs
        return self.folding.squared(row_sums(self._observed[0] % n, weights, n))

    def at_trade_offs(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """``rows(x)[0] @ w``, shape (q, k): of many points of the grid in one product along the axes, without rows."""
        codes = self.codes(x)
        on = codes >= 0
        if np.count_nonzero(on) * self.rank <= sum(part.operations for part in self.folding.parts):
            on[:] = False
        out = np.empty((len(x), w.shape[1]))
        if on.any():
            out[on] = replace(self, places=codes[on], Phi=None).forward(w)
        off = np.flatnonzero(~on)
        step = max(1, _ROWS_NUMBERS // max(self.rank, 1))
        for start in range(0, len(off), step):
            some = off[start : start + step]
            out[some] = self.rows(x[some])[0] @ w
        return out

    def dense(self) -> FloatArray:
        return self.at(self.places) if self.Phi is None else self.Phi

    def columns(self, coordinates: IntArray) -> FloatArray:
        """Some columns of Φ, shape (n_points, len(coordinates))."""
        return self.at(self.places, coordinates) if self.Phi is None else self.Phi[:, coordinates]

    def at(self, codes: IntArray, coordinates: IntArray | None = None) -> FloatArray:
        """Rows of Q Λ^½ at any points of the grid, shape (q, rank), or some of their entries."""
        places = np.unravel_index(np.asarray(codes), [group.size for group in self.folding.groups])
        features = [
            tuple(vectors[place] for vectors in group.vectors)
            for group, place in zip(self.folding.groups, places, strict=True)
        ]
        return self.folding.assembled(features, coordinates)

    def rows(self, x: FloatArray, coordinates: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Rows of Φ at trade-offs (q, d) on the grid or off it, (q, rank), and the residual prior variance, (q,).

        With ``coordinates`` only those columns; the residual then holds the others too.
        """
        projected = [axis.project(x[:, d]) for d, axis in enumerate(self.axes)]
        phi = self.folding.assembled([group.features(projected) for group in self.folding.groups], coordinates)
        return phi, np.maximum(self.prior_variance(x) - np.einsum("qj,qj->q", phi, phi), 0.0)

    def covariance(self, codes: IntArray, others: IntArray) -> FloatArray:
        """The prior covariance of a characteristic between points of the grid, shape (q, r)."""
        sizes = [group.size for group in self.folding.groups]
        left, right = np.unravel_index(codes, sizes), np.unravel_index(others, sizes)
        tables = [
            np.add.reduce([(Q * values) @ Q.T for values, Q in zip(group.values, group.vectors, strict=True)])
            for group in self.folding.groups
        ]

        def product(places: Sequence[IntArray]) -> FloatArray:
            return reduce(np.multiply, [K[np.ix_(a, b)] for K, a, b in zip(tables, left, places, strict=True)])

        out = product(right)
        if self.antisymmetric:
            out = 0.5 * (out - product([n - 1 - place for n, place in zip(sizes, right, strict=True)]))
        return np.asarray(self.amplitude * out)

    def observed(self, x: FloatArray) -> IntArray:
        """Point of each trade-off (q, d), or where antisymmetric of its mirror; -1: none."""
        codes = self.codes(x)
        point = self._point[codes]
        if self.antisymmetric:
            point = np.where(point < 0, self._point[::-1][codes], point)
        return np.where(codes < 0, -1, point)

    def codes(self, x: FloatArray) -> IntArray:
        """Row-major codes of trade-offs (q, d), shape (q,); -1 off the grid: nothing is snapped to a level."""
        code = np.zeros(len(x), dtype=np.int64)
        on = np.ones(len(x), dtype=bool)
        for d, axis in enumerate(self.axes):
            place = np.minimum(np.searchsorted(axis.levels, x[:, d]), len(axis.levels) - 1)
            on &= axis.levels[place] == x[:, d]
            code = code * len(axis.levels) + place
        return np.where(on, code, -1)

    def trade_offs(self, codes: IntArray) -> FloatArray:
        """Points of the grid, shape (q, d)."""
        places = np.unravel_index(codes, self.shape)
        return np.stack([axis.levels[place] for axis, place in zip(self.axes, places, strict=True)], axis=1)

    def prior_variance(self, x: FloatArray) -> FloatArray:
        """Prior variance of a characteristic at any trade-offs (q, d), shape (q,)."""
        features = [(axis.kernel, x[:, d, None]) for d, axis in enumerate(self.axes)]
        own = reduce(np.multiply, [kernel.diagonal(s) for kernel, s in features])
        if self.antisymmetric:
            own = 0.5 * (own - reduce(np.multiply, [kernel.pairs(s, -s) for kernel, s in features]))
        return np.asarray(self.amplitude * own)

    @cached_property
    def _observed(self) -> tuple[IntArray, FloatArray | None]:
        return self.folding.index(self.places)

    @cached_property
    def _point(self) -> IntArray:
        """Point of each code, shape (n_T,); -1: none."""
        out = np.full(math.prod(self.shape), -1, dtype=np.int64)
        out[self.places] = np.arange(self.n_points)
        return out

    @cached_property
    def mirrored(self) -> bool:
        """Whether a point and its mirror are both observed: they are one entry of the folded grid."""
        return len(np.unique(self._observed[0])) < self.n_points

    def _picked(self, values: FloatArray, index: IntArray, sign: FloatArray | None) -> FloatArray:
        return values[index] if sign is None else values[index] * sign

    def _backward(self, v: FloatArray) -> FloatArray:
        index, sign = self._observed
        folded = row_sums(index, v if sign is None else v * sign, self.folding.n_entries)
        return self.folding.refolded(folded.reshape(len(self.folding.parts), -1), v.shape[1])

    @property
    def _columns_at_once(self) -> int:
        return max(_FEWEST_COLUMNS, _NUMBERS_AT_ONCE // max(2 * math.prod(self.shape), 1))

    def _by_columns(self, x: FloatArray, n: int, apply: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """A product of many columns, in chunks so that memory stays bounded."""
        step = self._columns_at_once
        if x.shape[1] <= step:
            return apply(x)
        out = np.empty((n, x.shape[1]))
        for start in range(0, x.shape[1], step):
            out[:, start : start + step] = apply(x[:, start : start + step])
        return out
