"""Characteristics on a Cartesian grid of trade-offs, in the eigen-coordinates of a Kronecker product."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels import Kernel
from predilect.posteriors.gaspk.axes import Axis, ByParity, Group, grouped
from predilect.posteriors.gaspk.blocks import packed_product, sandwich

__all__ = ["GridBasis"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_CUTOFF = 1e-14  # of the largest eigenvalue: below it lies what eigh cannot tell from 0
_PASS = 64.0  # what a pass over a grid costs, in multiplications for each number; measured
_NUMBERS_AT_ONCE = 1_500_000  # more columns at once fall out of the cache
_FEWEST_COLUMNS = 8  # fewer are too little work for a matrix product
_DENSE_NUMBERS = 8_000_000
_DENSE_SPEED = 3.0  # one large product does so many times the operations a second of many small ones


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The eigenvectors whose factors have one combination of parities.

    Attributes
    ----------
    parity : tuple of int
        Of each group.
    used : tuple of int
        How many eigenvectors of each group, the largest first, any coordinate uses.
    cells : array of int, shape (rank_p,)
        Which of their products are coordinates: row-major codes in ``used``, ascending.
    values : array of float, shape (rank_p,)
        Eigenvalues of ⊗ K_d.
    factors, transposed, squares : tuples of arrays of float
        Eigenvectors at the levels that are left after folding, (h_g, used_g); the other way round; and those squared.
    """

    parity: tuple[int, ...]
    used: tuple[int, ...]
    cells: IntArray
    values: FloatArray
    factors: tuple[FloatArray, ...]
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


@dataclass(frozen=True, eq=False)
class GridBasis:
    """f = Q Λ^½ w at observed points of a grid, for the prior covariance a ⊗_d K_d = Q Λ Qᵀ: Φ = Q Λ^½ there.

    Attributes
    ----------
    axes : tuple of Axis
        The dimensions of the grid with their kernels and eigenvectors.
    groups : tuple of Group
        Neighbouring dimensions that are worked on as one.
    parts : tuple of _Part
        The eigenvectors that are coordinates, by the parities of their factors.
    amplitude : float
        a, the prior variance of a characteristic; where antisymmetric, that of f(t) is a (1 - k(t, -t)) / 2.
    places : array of int, shape (n_points,)
        Row-major codes of the points: ``np.ravel_multi_index`` of their levels.
    antisymmetric : bool
        The covariance is a (⊗ K_d - ⊗ K_d J_d) / 2, J_d the reversal of levels: f(-t) = -f(t).
    eigenvalues : array of float, shape (rank,)
        Λ of the coordinates, part by part: not sorted.
    Phi : array of float, shape (n_points, rank), or None
        Made where that is the cheaper: few points or few coordinates.

    Notes
    -----
    gaspk.md 2, "Kronecker facts", and 2.2, F13. Levels being symmetric about 0 and K_d stationary, K_d commutes with
    J_d and has eigenvectors that are even or odd; a product of them is one of ⊗ K_d J_d too, with the same eigenvalue
    or its negative. So K_a has the eigenvalue of ⊗ K_d where the number of odd factors is odd, and 0 elsewhere.

    An even or odd vector is known from half of its entries: products are taken over the positive levels of each group,
    once for each combination of parities, and put together by signs. With groups of n_g levels a column
    takes n_T Σ_g n_g / 2^(2 - 1/g) operations or fewer where antisymmetric, n_T Σ_g n_g otherwise, and 2 n_T numbers.
    """

    axes: tuple[Axis, ...]
    groups: tuple[Group, ...]
    parts: tuple[_Part, ...]
    amplitude: float
    places: IntArray
    antisymmetric: bool
    eigenvalues: FloatArray
    Phi: FloatArray | None

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
        """The eigen-coordinates of a grid.

        Parameters
        ----------
        levels : sequence of array-like of float, shapes (n_d,)
            Ascending; symmetric about 0 where ``antisymmetric``.
        kernels : sequence of Kernel
            Of one feature, one for each dimension.
        places : array-like of int, shape (n_points,)
            Row-major codes of the observed points, all different.
        amplitude : float
            a > 0.
        antisymmetric : bool
        cutoff : float
            Eigenvalues up to this share of the largest are left out.
        dense : bool, optional
            Whether Φ is made and multiplied by. By default where it has at most 8 000 000 numbers and at most three
            times as many as products along the axes have operations.

        Raises
        ------
        ValueError
            If levels do not ascend, or are not symmetric where they must be, or a code is outside the grid or twice.

        Notes
        -----
        Σ n_d³ for the eigenvectors, n_T for the choice of coordinates.
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
        parts = _parts(groups, antisymmetric, cutoff)
        eigenvalues = amplitude * np.concatenate([part.values for part in parts])
        out = cls(axes, groups, parts, float(amplitude), codes, antisymmetric, eigenvalues, None)
        small = len(codes) * out.rank <= min(_DENSE_NUMBERS, _DENSE_SPEED * sum(part.operations for part in parts))
        if small if dense is None else dense:
            object.__setattr__(out, "Phi", out.at(codes))
        return out

    @property
    def n_points(self) -> int:
        """Rows of Φ."""
        return len(self.places)

    @property
    def rank(self) -> int:
        """Columns of Φ."""
        return len(self.eigenvalues)

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels of each dimension."""
        return tuple(len(axis.levels) for axis in self.axes)

    def forward(self, w: FloatArray) -> FloatArray:
        """Φ w, from shape (rank, k) to (n_points, k)."""
        if self.Phi is not None:
            return np.asarray(self.Phi @ w)
        return self._by_columns(w, self.n_points, lambda part: self._picked(self._unfolded(part), *self._observed))

    def backward(self, v: FloatArray) -> FloatArray:
        """Φᵀ v, from shape (n_points, k) to (rank, k)."""
        if self.Phi is not None:
            return np.asarray(self.Phi.T @ v)
        return self._by_columns(v, self.rank, self._backward)

    def weighted_gram(self, packed: FloatArray, w: FloatArray) -> FloatArray:
        """Φᵀ B Φ w, shape (rank, n_c), from lower triangles of B (n_points, n_c (n_c + 1)/2)."""
        if self.Phi is not None or w.shape[1] > self._columns_at_once:
            return self.backward(packed_product(packed, self.forward(w)))
        # A point's sign comes in twice.
        values = sandwich(self._observed[0], packed, self._unfolded(w))
        return self._refolded(values.reshape(len(self.parts), -1), w.shape[1])

    def gram_diagonal(self, weights: FloatArray) -> FloatArray:
        """Σ_t Φ_tj² weights_tk, from shape (n_points, k) to (rank, k).

        The square of a product of eigenvectors is the product of their squares.
        """
        if self.Phi is not None:
            return np.asarray(np.square(self.Phi).T @ weights)
        return self._by_columns(weights, self.rank, self._squared)

    def values(self, w: FloatArray) -> FloatArray:
        """F at the whole grid, shape (n_T, k), for w of shape (rank, k)."""
        n_grid = math.prod(self.shape)
        where = self._index(np.arange(n_grid))
        return self._by_columns(w, n_grid, lambda part: self._picked(self._unfolded(part), *where))

    def dense(self) -> FloatArray:
        """Φ, shape (n_points, rank)."""
        return self.at(self.places) if self.Phi is None else self.Phi

    def columns(self, coordinates: npt.NDArray[np.integer]) -> FloatArray:
        """Some columns of Φ, shape (n_points, len(coordinates))."""
        return self.at(self.places, coordinates) if self.Phi is None else self.Phi[:, coordinates]

    def at(self, codes: npt.NDArray[np.integer], coordinates: npt.NDArray[np.integer] | None = None) -> FloatArray:
        """Rows of Q Λ^½ at any points of the grid, shape (q, rank), or some of their entries.

        One multiplication an entry for each group of dimensions.
        """
        places = np.unravel_index(np.asarray(codes), [group.size for group in self.groups])
        features = [
            tuple(vectors[place] for vectors in group.vectors) for group, place in zip(self.groups, places, strict=True)
        ]
        return self._assembled(features, coordinates)

    def rows(self, x: FloatArray, coordinates: npt.NDArray[np.integer] | None = None) -> tuple[FloatArray, FloatArray]:
        """The rows of Φ at any trade-offs, and the variance that they do not hold.

        Parameters
        ----------
        x : array of float, shape (q, d)
            On the grid or off it.
        coordinates : array of int, shape (r,), optional
            Only these; the variance left is then that of the others too.

        Returns
        -------
        phi : array of float, shape (q, rank) or (q, r)
            Given f on the grid, f(x) has mean phi w.
        left : array of float, shape (q,)
            And this variance: 0 on the grid, up to ``cutoff``.
        """
        projected = [axis.project(x[:, d]) for d, axis in enumerate(self.axes)]
        phi = self._assembled([group.features(projected) for group in self.groups], coordinates)
        return phi, np.maximum(self.prior_variance(x) - np.einsum("qj,qj->q", phi, phi), 0.0)

    def covariance(self, codes: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> FloatArray:
        """The prior covariance of a characteristic between points of the grid, shape (q, r).

        q r operations for each group of dimensions.
        """
        sizes = [group.size for group in self.groups]
        left, right = np.unravel_index(codes, sizes), np.unravel_index(others, sizes)
        tables = [
            np.add.reduce([(Q * values) @ Q.T for values, Q in zip(group.values, group.vectors, strict=True)])
            for group in self.groups
        ]

        def product(places: Sequence[IntArray]) -> FloatArray:
            return reduce(np.multiply, [K[np.ix_(a, b)] for K, a, b in zip(tables, left, places, strict=True)])

        out = product(right)
        if self.antisymmetric:
            out = 0.5 * (out - product([n - 1 - place for n, place in zip(sizes, right, strict=True)]))
        return np.asarray(self.amplitude * out)

    def observed(self, x: FloatArray) -> IntArray:
        """Which point each trade-off of shape (q, d) is, or where antisymmetric the mirror of which; -1: of none."""
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

    def trade_offs(self, codes: npt.NDArray[np.integer]) -> FloatArray:
        """Points of the grid, shape (q, d)."""
        places = np.unravel_index(codes, self.shape)
        return np.stack([axis.levels[place] for axis, place in zip(self.axes, places, strict=True)], axis=1)

    def prior_variance(self, x: FloatArray) -> FloatArray:
        """Of a characteristic at any trade-offs (q, d), shape (q,)."""
        features = [(axis.kernel, x[:, d, None]) for d, axis in enumerate(self.axes)]
        own = reduce(np.multiply, [kernel.diagonal(s) for kernel, s in features])
        if self.antisymmetric:
            own = 0.5 * (own - reduce(np.multiply, [kernel.pairs(s, -s) for kernel, s in features]))
        return np.asarray(self.amplitude * own)

    @cached_property
    def _root(self) -> FloatArray:
        return np.sqrt(self.eigenvalues)

    @cached_property
    def _slices(self) -> tuple[slice, ...]:
        ends = np.cumsum([0, *(len(part.cells) for part in self.parts)]).tolist()
        return tuple(itertools.starmap(slice, itertools.pairwise(ends)))

    @cached_property
    def _folded(self) -> tuple[int, ...]:
        """Levels of each group that are left after folding."""
        return tuple(len(Q) for Q in self.parts[0].factors)

    @cached_property
    def _signs(self) -> FloatArray:
        """±1 of each part (columns) at each combination of signs of the groups after the first (rows)."""
        if not self.antisymmetric:
            return np.ones((1, 1))
        patterns = np.array(list(itertools.product((0, 1), repeat=len(self.groups) - 1)), dtype=np.int64)
        parities = np.array([part.parity[1:] for part in self.parts], dtype=np.int64)
        return np.asarray(1.0 - 2.0 * (patterns @ parities.T % 2))

    @cached_property
    def _observed(self) -> tuple[IntArray, FloatArray | None]:
        return self._index(self.places)

    @cached_property
    def _point(self) -> IntArray:
        """Which point each code is, shape (n_T,); -1: none."""
        out = np.full(math.prod(self.shape), -1, dtype=np.int64)
        out[self.places] = np.arange(self.n_points)
        return out

    @cached_property
    def mirrored(self) -> bool:
        """Whether a point and its mirror are both observed: they are one entry of the folded grid."""
        return len(np.unique(self._observed[0])) < self.n_points

    def _index(self, codes: IntArray) -> tuple[IntArray, FloatArray | None]:
        """Of points in the unfolded grid of signs and positive levels, and their signs, shape (q, 1); None: all +1."""
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
        index = pattern * math.prod(self._folded) + np.ravel_multi_index(folded, self._folded)
        return index, np.where(negative[0], -1.0, 1.0)[:, None] if negative[0].any() else None

    def _unfolded(self, w: FloatArray) -> FloatArray:
        """Values at all signs and positive levels, shape (n_patterns · Π h_g, k)."""
        k = w.shape[1]
        scaled = self._root[:, None] * w
        folded = np.empty((len(self.parts), math.prod(self._folded) * k))
        for p, part in enumerate(self.parts):
            if not len(part.cells):
                folded[p] = 0.0
                continue
            folded[p] = _along(part.factors, part.used, part.spread(scaled[self._slices[p]])).reshape(-1)
        return (self._signs @ folded if len(folded) > 1 else folded).reshape(-1, k)

    def _picked(self, values: FloatArray, index: IntArray, sign: FloatArray | None) -> FloatArray:
        return values[index] if sign is None else values[index] * sign

    def _placed(self, v: FloatArray, signed: bool) -> FloatArray:
        """The transpose of picking, shape (n_patterns, Π h_g · k)."""
        index, sign = self._observed
        out = np.zeros((len(self.parts) * math.prod(self._folded), v.shape[1]))
        signed_v = v if sign is None or not signed else v * sign
        if self.mirrored:
            np.add.at(out, index, signed_v)
        else:
            out[index] = signed_v
        return out.reshape(len(self.parts), -1)

    def _backward(self, v: FloatArray) -> FloatArray:
        return self._refolded(self._placed(v, signed=True), v.shape[1])

    def _refolded(self, folded: FloatArray, k: int) -> FloatArray:
        """The transpose of ``_unfolded``, from shape (n_patterns, Π h_g · k)."""
        if len(folded) > 1:
            folded = self._signs.T @ folded
        out = np.empty((self.rank, k))
        for part, rows, values in zip(self.parts, self._slices, folded, strict=True):
            out[rows] = part.collect(_along(part.transposed, self._folded, values.reshape(-1, k)))
        out *= self._root[:, None]
        return out

    def _squared(self, weights: FloatArray) -> FloatArray:
        folded = self._placed(weights, signed=False).sum(axis=0).reshape(-1, weights.shape[1])
        out = np.empty((self.rank, weights.shape[1]))
        for part, rows in zip(self.parts, self._slices, strict=True):
            out[rows] = part.collect(_along(part.squares, self._folded, folded))
        out *= self.eigenvalues[:, None]
        return out

    def _assembled(self, features: Sequence[ByParity], coordinates: npt.NDArray[np.integer] | None) -> FloatArray:
        """Products of one feature of each group, for the coordinates that are asked for."""
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

    @property
    def _columns_at_once(self) -> int:
        return max(_FEWEST_COLUMNS, _NUMBERS_AT_ONCE // max(2 * math.prod(self.shape), 1))

    def _by_columns(self, x: FloatArray, n: int, apply: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """A product of many columns, so many at a time that memory stays bounded."""
        step = self._columns_at_once
        if x.shape[1] <= step:
            return apply(x)
        out = np.empty((n, x.shape[1]))
        for start in range(0, x.shape[1], step):
            out[:, start : start + step] = apply(x[:, start : start + step])
        return out


def _parts(groups: Sequence[Group], antisymmetric: bool, cutoff: float) -> tuple[_Part, ...]:
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
            _Part(
                parity, used, np.ravel_multi_index(kept, used) if min(used) else np.empty(0, dtype=np.int64),
                products[kept], tuple(folded), transposed, tuple(np.square(Q) for Q in transposed),
            )
        )  # fmt: skip
    return tuple(parts)


def _along(factors: Sequence[FloatArray], sizes: Sequence[int], x: FloatArray) -> FloatArray:
    """A factor (h_g, n_g) along each axis of x, shape (Π n_g, k): to (Π h_g, k)."""
    k = x.shape[1]
    done, left = 1, math.prod(sizes)
    for Q, n in zip(factors, sizes, strict=True):
        left //= n
        x = np.matmul(Q, x.reshape(done, n, left * k))
        done *= len(Q)
    return x.reshape(-1, k)
