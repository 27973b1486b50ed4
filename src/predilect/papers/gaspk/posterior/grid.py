"""Kronecker grids: the eigenvectors of a ⊗ K_d as a basis, and low-rank covariances from the largest of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import Factor, factorise
from predilect.inference.gaussian.kernels import Kernel
from predilect.papers.gaspk.posterior.axes import Axis, along, grouped
from predilect.papers.gaspk.posterior.curvature import quadratic_forms
from predilect.papers.gaspk.posterior.solver import assembled, largest_coordinates

_CUTOFF = 1e-14  # of the largest eigenvalue: below it lies what eigh cannot tell from 0
_PASS = 64.0  # what a pass over a grid costs, in multiplications for each number; measured
_NUMBERS_AT_ONCE = 1_500_000  # more columns at once fall out of the cache
_FEWEST_COLUMNS = 8  # fewer are too little work for a matrix product
_ROWS_NUMBERS = 20_000_000  # of rows that are held at once


@dataclass(frozen=True, eq=False)
class GridBasis:
    """f = Q Λ^½ w at observed points of a grid, for the prior covariance a ⊗_d K_d = Q Λ Qᵀ: Φ = Q Λ^½ there.

    docs/math/gaspk.md section 2, "Kronecker facts", and 2.2, F13. Levels being symmetric about 0 and K_d stationary,
    K_d commutes with J_d and has eigenvectors that are even or odd; a product of them is one of ⊗ K_d J_d too, with the
    same eigenvalue or its negative. So K_a has the eigenvalue of ⊗ K_d where the number of odd factors is odd, and 0
    elsewhere: those products are the coordinates. A column takes n_T Σ_g n_g operations for neighbouring dimensions
    merged into groups of n_g levels, and 2 n_T numbers.
    """

    axes: tuple[Axis, ...]
    index: IntArray  # (d, rank), which eigenvector of each axis a coordinate has, in row-major order
    eigenvalues: FloatArray  # (rank,), Λ of the coordinates
    amplitude: float  # a; where antisymmetric, f(t) has the prior variance a (1 - k(t, -t)) / 2
    antisymmetric: bool  # the covariance is a (⊗ K_d - ⊗ K_d J_d) / 2, J_d the reversal of levels: f(-t) = -f(t)
    places: IntArray  # (n_points,), row-major codes of the points

    left_out = 0.0
    grows = False

    @classmethod
    def of(
        cls, levels: Sequence[npt.ArrayLike], kernels: Sequence[Kernel], places: npt.ArrayLike, *,
        amplitude: float = 1.0, antisymmetric: bool = False, cutoff: float = _CUTOFF,
    ) -> GridBasis:  # fmt: skip
        """The eigen-coordinates of a grid of ascending levels (n_d,), with a kernel of one feature for each dimension.

        ``places`` are distinct row-major codes; eigenvalues up to ``cutoff`` of the largest are left out. Raises
        ValueError for levels that are not symmetric about 0 where ``antisymmetric``.
        """
        axes = tuple(Axis.of(x, kernel, antisymmetric) for x, kernel in zip(levels, kernels, strict=True))
        products = reduce(np.multiply.outer, [axis.values for axis in axes])
        if antisymmetric:
            products = np.where(reduce(np.logical_xor.outer, [axis.odd for axis in axes]), products, 0.0)
        kept = np.nonzero(products > cutoff * products.max())
        codes = np.array(places, dtype=np.int64)
        return cls(axes, np.array(kept), amplitude * products[kept], float(amplitude), antisymmetric, codes)

    def times(self, factor: float, kernel: Kernel) -> GridBasis:
        """The basis of ``kernel``, which is ``factor`` times this one's."""
        return replace(self, eigenvalues=self.eigenvalues * factor, amplitude=self.amplitude * factor)

    def only(self, coordinates: IntArray) -> GridBasis:
        """The basis without the other coordinates."""
        return replace(self, index=self.index[:, coordinates], eigenvalues=self.eigenvalues[coordinates])

    def widened(self, n_new: int) -> None:
        """None: a grid has no levels of further dimensions."""

    def low_rank(self, B: FloatArray, n_e: int) -> LowRank:
        """The posterior for blocks ``B`` from n_e eigenvectors."""
        return LowRank.of(self, B, n_e)

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

    @property
    def operations(self) -> int:
        """Multiplications of a product with one column along the axes."""
        total, done, left = 0, 1, math.prod(self._used)
        for Q in self._factors:
            total += done * left * len(Q)
            done, left = done * len(Q), left // Q.shape[1]
        return total

    @property
    def sizes(self) -> FloatArray:
        """What the points vary along each coordinate, shape (rank,): its eigenvalue."""
        return self.eigenvalues

    def forward(self, w: FloatArray) -> FloatArray:
        return self._by_columns(w, self.n_points, self._forward)

    def backward(self, v: FloatArray) -> FloatArray:
        return self._by_columns(v, self.rank, self._backward)

    def gram_diagonal(self, weights: FloatArray) -> FloatArray:
        squares = [np.square(Q.T) for Q in self._factors]
        found = along(squares, self._on_grid(weights))[self._cells]
        return np.asarray(found * self.eigenvalues[:, None])

    def at_trade_offs(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """``rows(x)[0] @ w``, shape (q, k): of many points of the grid in one product along the axes, without rows."""
        codes = self.codes(x)
        on = codes >= 0
        if np.count_nonzero(on) * self.rank <= self.operations:
            on[:] = False
        out = np.empty((len(x), w.shape[1]))
        if on.any():
            out[on] = replace(self, places=codes[on]).forward(w)
        off = np.flatnonzero(~on)
        step = max(1, _ROWS_NUMBERS // max(self.rank, 1))
        for start in range(0, len(off), step):
            some = off[start : start + step]
            out[some] = self.rows(x[some])[0] @ w
        return out

    def dense(self) -> FloatArray:
        return self.at(self.places)

    def point_rows(self, points: IntArray) -> FloatArray:
        return self.at(self.places[points])

    def columns(self, coordinates: IntArray) -> FloatArray:
        return self.at(self.places, coordinates)

    def at(self, codes: IntArray, coordinates: IntArray | None = None) -> FloatArray:
        """Rows of Q Λ^½ at any points of the grid, shape (q, rank), or some of their entries."""
        places = np.unravel_index(np.asarray(codes), self.shape)
        return self._assembled([axis.vectors[k] for axis, k in zip(self.axes, places, strict=True)], coordinates)

    def rows(self, x: FloatArray, coordinates: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Rows of Φ at trade-offs (q, d) on the grid or off it, (q, rank), and the residual prior variance, (q,).

        With ``coordinates`` only those columns; the residual then holds the others too.
        """
        phi = self._assembled([axis.project(x[:, d]) for d, axis in enumerate(self.axes)], coordinates)
        return phi, np.maximum(self.prior_variance(x) - np.einsum("qj,qj->q", phi, phi), 0.0)

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
            place = axis.places(x[:, d])
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

    @property
    def mirrored(self) -> bool:
        """Whether a point and its mirror are both observed."""
        mirror = self._point[::-1][self.places]
        return bool(((mirror >= 0) & (mirror != np.arange(self.n_points))).any())

    @cached_property
    def _point(self) -> IntArray:
        """Point of each code, shape (n_T,); -1: none."""
        out = np.full(math.prod(self.shape), -1, dtype=np.int64)
        out[self.places] = np.arange(self.n_points)
        return out

    @cached_property
    def _root(self) -> FloatArray:
        return np.sqrt(self.eigenvalues)

    @cached_property
    def _used(self) -> tuple[int, ...]:
        """How many leading eigenvectors of each axis any coordinate has."""
        return tuple((self.index.max(axis=1) + 1).tolist()) if self.rank else (1,) * len(self.axes)

    @cached_property
    def _cells(self) -> IntArray:
        """The coordinates among all products of the eigenvectors used, shape (rank,)."""
        return np.ravel_multi_index(tuple(self.index), self._used)

    @cached_property
    def _factors(self) -> tuple[FloatArray, ...]:
        """Eigenvectors of each group of neighbouring dimensions, (n_g, used_g)."""
        used = [np.ascontiguousarray(axis.vectors[:, :n]) for axis, n in zip(self.axes, self._used, strict=True)]
        return tuple(reduce(_kron, used[group]) for group in grouped(self.shape, _PASS))

    def _assembled(self, features: Sequence[FloatArray], coordinates: IntArray | None) -> FloatArray:
        """Products of one feature of each axis, for some or all coordinates."""
        wanted = slice(None) if coordinates is None else coordinates
        out = np.broadcast_to(self._root[wanted], (len(features[0]), len(self._root[wanted])))
        for rows, place in zip(features, self.index, strict=True):
            out = out * rows[:, place[wanted]]
        return np.asarray(out)

    def _forward(self, w: FloatArray) -> FloatArray:
        spread = np.zeros((math.prod(self._used), w.shape[1]))
        spread[self._cells] = self._root[:, None] * w
        return along(self._factors, spread)[self.places]

    def _backward(self, v: FloatArray) -> FloatArray:
        found = along([Q.T for Q in self._factors], self._on_grid(v))[self._cells]
        return np.asarray(found * self._root[:, None])

    def _on_grid(self, v: FloatArray) -> FloatArray:
        """Values at the points (n_points, k) on the whole grid, with 0 elsewhere."""
        out = np.zeros((math.prod(self.shape), v.shape[1]))
        out[self.places] = v
        return out

    def _by_columns(self, x: FloatArray, n: int, apply: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """A product of many columns, in chunks so that memory stays bounded."""
        step = max(_FEWEST_COLUMNS, _NUMBERS_AT_ONCE // (2 * math.prod(self.shape)))
        if x.shape[1] <= step:
            return apply(x)
        out = np.empty((n, x.shape[1]))
        for start in range(0, x.shape[1], step):
            out[:, start : start + step] = apply(x[:, start : start + step])
        return out


def _kron(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.kron(a, b))


@dataclass(frozen=True, eq=False)
class LowRank:
    """The posterior under K̃ = Q S Qᵀ + Λ for K_T, Λ diagonal such that K̃ has the diagonal of K_T (eqs. 8 and 9).

    docs/math/gaspk.md section 2, low-rank variances.

    Where functions are antisymmetric, so is what Λ adds: a trade-off and its mirror have it with opposite signs.
    **Differs from the paper**: K̃ stands in all three places of eq. 9, so that variances are never negative; as
    printed, with the exact K outside, they can be, since K̃ - K is indefinite. Signs are those of eq. 9 and P has its
    Π, which one rendering of algorithm 3 lacks. Blocks of n_c x n_c for each trade-off, where eq. 9 has the diagonal,
    the variances of single characteristics, which are not enough for a mixture's.
    """

    basis: GridBasis
    B: FloatArray  # (n_points, n_c, n_c), W at the observed points
    chosen: IntArray  # (n_e,), coordinates of the eigenvectors in Q
    factor: Factor  # of S^½ P S^½ = I + Φ_eᵀ Π Φ_e, n_e n_c square, Π = B (I + Λ B)⁻¹ at the observed points

    @classmethod
    def of(cls, basis: GridBasis, B: FloatArray, n_e: int) -> LowRank:
        """Factorise for n_e >= 1 eigenvectors; more than ``basis.rank`` are all.

        n_points n_e² n_c²/2 + (n_e n_c)³/3 operations. Raises ValueError if a trade-off and its mirror are both points
        of an antisymmetric basis.
        """
        if n_e < 1:
            raise ValueError(f"at least one eigenvector is needed, not {n_e}")
        if basis.antisymmetric and basis.mirrored:
            raise ValueError("a trade-off and its mirror are both points; fold them, and turn the answers about one")
        chosen = largest_coordinates(basis, n_e)
        slack = basis.rows(basis.trade_offs(basis.places), chosen)[1]
        # B (I + Λ B)⁻¹ is symmetric; I + Λ B has eigenvalues of at least 1.
        Pi = np.linalg.solve(np.eye(B.shape[1]) + slack[:, None, None] * B, B)
        return cls(basis, B, chosen, factorise(assembled(basis, 0.5 * (Pi + Pi.transpose(0, 2, 1)), chosen)))

    @property
    def n_c(self) -> int:
        """Characteristics."""
        return int(self.B.shape[1])

    def blocks(self, x: FloatArray) -> FloatArray:
        """Posterior covariances of the characteristics at trade-offs (q, d), shape (q, n_c, n_c).

        On the grid or off it; q n_e² n_c²/2 operations.
        """
        rows, slack = self.basis.rows(x, self.chosen)
        V = quadratic_forms(rows, self._inverse)
        # f = Q-part + e, e ~ N(0, Λ) independent of all others. Given the Q-part g, answers there say of e what they
        # say of f - g: f has the precision Λ⁻¹ + B around J g, J = (I + Λ B)⁻¹.
        observed = self.basis.observed(x)
        seen = observed >= 0
        eye = np.eye(self.n_c)
        V[~seen] += slack[~seen, None, None] * eye
        J = np.linalg.inv(eye + slack[seen, None, None] * self.B[observed[seen]])
        inner = J @ V[seen] @ J.transpose(0, 2, 1) + slack[seen, None, None] * J
        V[seen] = 0.5 * (inner + inner.transpose(0, 2, 1))
        return V

    def point_blocks(self, points: IntArray) -> FloatArray:
        return self.blocks(self.basis.trade_offs(self.basis.places[points]))

    @cached_property
    def _inverse(self) -> FloatArray:
        """Posterior covariance of the chosen coordinates, shape (n_e, n_c, n_e, n_c)."""
        return self.factor.inverse().reshape(len(self.chosen), self.n_c, len(self.chosen), self.n_c)
