"""A covariance over a grid, or over all pairs of a person and an item."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import starmap

import numpy as np

from predilect.covariance.dense import FloatArray, NotPositiveDefiniteError, eigenpairs
from predilect.covariance.operators.base import IntArray, Operator, by_columns
from predilect.covariance.operators.block import solvable
from predilect.covariance.operators.dense import Dense
from predilect.covariance.operators.diagonal import Diagonal

__all__ = ["Kronecker"]

_ROUNDING = 1e-10  # of the largest eigenvalue of a factor: negative ones up to this are zeros


@dataclass(frozen=True, eq=False)
class Kronecker:
    """A ⊗ B ⊗ C ..., of any number of factors.

    Attributes
    ----------
    factors : tuple of Operator
        Arrays are taken too, as ``Dense``; ``Diagonal(np.ones(k))`` is an identity that costs nothing.

    Notes
    -----
    Vectors are row-major: entry (i, j, ...) of the grid is ``np.ravel_multi_index((i, j, ...), sizes)``, and
    (A ⊗ B) vec(X) = vec(A X Bᵀ) (gaspk.md 2, Kronecker facts). With n = Π n_d a product takes n Σ n_d operations, not
    n², and n memory. ``solve`` and ``log_det`` take a Cholesky of each factor, Σ n_d³/3 once; where a factor is
    singular, its own jitter stands in each (modern.md A.3).
    """

    factors: tuple[Operator, ...]

    def __post_init__(self) -> None:
        factors = tuple(factor if isinstance(factor, Operator) else Dense(factor) for factor in self.factors)
        if not factors or not all(factor.shape[0] for factor in factors):
            raise ValueError("a Kronecker product needs at least one factor, and none of them empty")
        object.__setattr__(self, "factors", factors)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each factor: the shape of the grid."""
        return tuple(factor.shape[0] for factor in self.factors)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        n = math.prod(self.sizes)
        return n, n

    def matvec(self, x: FloatArray) -> FloatArray:
        """The product with a vector or with each column of a matrix."""
        return self._each(x, [factor.matvec for factor in self.factors])

    def diagonal(self) -> FloatArray:
        """Shape (n,)."""
        return reduce(_kron, [factor.diagonal() for factor in self.factors])

    def rows(self, indices: IntArray) -> FloatArray:
        """Some rows, shape (len(indices), n)."""
        indices = np.arange(self.shape[0])[np.asarray(indices)]  # counted from the front, and in range
        out = np.ones((len(indices), 1))
        for factor, places in zip(self.factors, np.unravel_index(indices, self.sizes), strict=True):
            part = factor.rows(places)
            out = (out[:, :, None] * part[:, None, :]).reshape(len(indices), out.shape[1] * part.shape[1])
        return out

    def dense(self) -> FloatArray:
        """The whole matrix, shape (n, n)."""
        return reduce(_kron, [factor.dense() for factor in self.factors])

    def solve(self, right: FloatArray) -> FloatArray:
        """A⁻¹ right: the product of the factors' inverses.

        Raises
        ------
        TypeError
            If a factor has no inverse of its own.
        """
        return self._each(right, [factor.solve for factor in solvable(self.factors)])

    def log_det(self) -> float:
        """Log |A| = Σ_d (n / n_d) log |factor d|.

        Raises
        ------
        TypeError
            If a factor has no determinant of its own.
        """
        n = self.shape[0]
        return sum(n / factor.shape[0] * factor.log_det() for factor in solvable(self.factors))

    @cached_property
    def eigen(self) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """Eigenvalues (n_d,), descending, and eigenvectors (n_d, n_d) of each factor, made when first asked for.

        The eigenvalues of the product are all products of one of each, its eigenvectors their Kronecker products.
        """
        return tuple(_eigen(factor) for factor in self.factors)

    def largest(self, n_pairs: int) -> tuple[FloatArray, FloatArray]:
        """The largest eigenvalues of a positive semidefinite product, and their eigenvectors.

        Parameters
        ----------
        n_pairs : int
            How many, at most n.

        Returns
        -------
        values : array of float, shape (n_pairs,)
            Descending.
        vectors : array of float, shape (n, n_pairs)
            Orthonormal columns.

        Raises
        ------
        NotPositiveDefiniteError
            If a factor has a negative eigenvalue beyond rounding.

        Notes
        -----
        gaspk.md 2: best-first over index tuples of the sorted spectra, n_pairs log(n_pairs) times the number of
        factors; then n n_pairs for the vectors. Σ n_d³ once. Among equal eigenvalues the first index tuple goes first.
        """
        if not 0 <= n_pairs <= self.shape[0]:
            raise ValueError(f"a product of {self.shape[0]} rows has no {n_pairs} eigenpairs")
        for values, _ in self.eigen:
            if values[-1] < -_ROUNDING * max(float(values[0]), 0.0):
                raise NotPositiveDefiniteError(f"a Kronecker factor has the eigenvalue {values[-1]:.3g}, below 0")
        values, places = _best_products([np.maximum(values, 0.0) for values, _ in self.eigen], n_pairs)
        vectors = np.ones((1, n_pairs))
        for (_, basis), place in zip(self.eigen, places.T, strict=True):
            vectors = (vectors[:, None, :] * basis[None, :, place]).reshape(len(vectors) * len(basis), n_pairs)
        return values, vectors

    def _each(self, x: FloatArray, apply: Sequence[Callable[[FloatArray], FloatArray]]) -> FloatArray:
        """Factor d's function along axis d of the grid, for every d."""

        def whole(columns: FloatArray) -> FloatArray:
            n, k = columns.shape
            for function, size in zip(apply, self.sizes, strict=True):
                # The first axis of the grid is worked on and goes last; after all factors the order is as it was.
                grid = function(columns.reshape(size, n // size * k)).reshape(size, n // size, k)
                columns = np.ascontiguousarray(grid.swapaxes(0, 1)).reshape(n, k)
            return columns

        return by_columns(whole, x, self.shape[0])


def _kron(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.kron(a, b))


def _eigen(factor: Operator) -> tuple[FloatArray, FloatArray]:
    if isinstance(factor, Dense):
        return factor.eigen
    if isinstance(factor, Diagonal):
        order = np.argsort(-factor.values, kind="stable")
        return factor.values[order], np.eye(len(order))[:, order]
    return eigenpairs(factor.dense())


def _best_products(spectra: Sequence[FloatArray], n_pairs: int) -> tuple[FloatArray, IntArray]:
    """The largest products of one value of each spectrum, shape (n_pairs,), and their places (n_pairs, n_spectra).

    A tuple of places is reached only from the one with its last non-zero place less by one, whose product is not
    smaller: so each comes once, and never before a larger one.
    """

    def product(places: tuple[int, ...]) -> float:
        return math.prod(starmap(lambda values, place: float(values[place]), zip(spectra, places, strict=True)))

    found: list[tuple[float, tuple[int, ...]]] = []
    first = (0,) * len(spectra)
    heap = [(-product(first), first)] if n_pairs else []
    while len(found) < n_pairs:
        value, places = heapq.heappop(heap)
        found.append((-value, places))
        last = max((d for d, place in enumerate(places) if place), default=0)
        for d in range(last, len(spectra)):
            if places[d] + 1 < len(spectra[d]):
                onward = (*places[:d], places[d] + 1, *places[d + 1 :])
                heapq.heappush(heap, (-product(onward), onward))
    values = np.array([value for value, _ in found])
    return values, np.array([places for _, places in found], dtype=np.intp).reshape(n_pairs, len(spectra))
