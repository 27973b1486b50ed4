"""Margins of pairs as linear maps of utilities: the preference kernel, sites of margins, and their matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.sparse import csr_array

from predilect._base.stored import amounts, numbers
from predilect._base.types import FloatArray, IntArray


def preference(
    K: FloatArray, left: IntArray, right: IntArray, left2: IntArray | None = None, right2: IntArray | None = None
) -> FloatArray:
    """k((i, j), (k, l)) = k(i, k) + k(j, l) - k(i, l) - k(j, k) for pairs of item codes, (n, m).

    collaborative.md 1 (Houlsby et al. 2012): D K D'ᵀ with rows e_i - e_j of D, of rank n_items - 1 at most; exactly
    symmetric without second pairs. n n_items + n m operations and memory.
    """
    rows = K[left] - K[right]
    if left2 is None or right2 is None:
        covariance = rows[:, left] - rows[:, right]
        return np.asarray(0.5 * (covariance + covariance.T))
    return np.asarray(rows[:, left2] - rows[:, right2])


_DENSE_ITEMS = 2000  # items up to which their covariance may be formed
_PAIRS_AT_ONCE = 20_000
_IN_CACHE = 2**16  # elements of a block of differences of rows


def pair_variance(
    covariance: FloatArray, left: IntArray, right: IntArray, rows: FloatArray | None = None
) -> FloatArray:
    """Variance of f(left) - f(right) for each pair, (n,), for f = rows x with x of the given covariance (M, M).

    Never below 0: identical items would otherwise have variances of minus a few ulps. Whichever is least of n M²,
    n_items M² + n M and n_items M (M + n_items) + n operations.
    """
    if rows is None:
        own = np.diagonal(covariance)
        return np.asarray(np.maximum(own[left] + own[right] - 2.0 * covariance[left, right], 0.0))
    n_items, M = rows.shape
    if n_items <= _DENSE_ITEMS and n_items * (M + n_items) < len(left) * M:
        return pair_variance(rows @ covariance @ rows.T, left, right)
    half = rows @ covariance if len(left) > n_items else None
    out = np.empty(len(left))
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        a, b = left[start : start + _PAIRS_AT_ONCE], right[start : start + _PAIRS_AT_ONCE]
        x = rows[a] - rows[b]
        y = x @ covariance if half is None else half[a] - half[b]
        out[start : start + _PAIRS_AT_ONCE] = np.einsum("ij,ij->i", x, y)
    return np.maximum(out, 0.0)


def squared_differences(rows: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """|rows[left] - rows[right]|², (n,), in pieces that stay in the cache; n M operations for rows (n_items, M)."""
    out = np.empty(len(left))
    step = max(_IN_CACHE // max(rows.shape[1], 1), 16)
    for start in range(0, len(left), step):
        some = slice(start, start + step)
        d = rows[left[some]]
        d -= rows[right[some]]
        out[some] = np.einsum("ij,ij->i", d, d)
    return out


@dataclass(slots=True)
class Sites:
    """Gaussian message of one copy of each answer: precision and precision times mean, two numbers per row."""

    precision: Annotated[FloatArray, amounts("R")]
    linear: Annotated[FloatArray, numbers("R")]

    @classmethod
    def flat(cls, n_rows: int) -> Sites:
        """Sites of precision 0."""
        return cls(np.zeros(n_rows), np.zeros(n_rows))

    def copy(self) -> Sites:
        """An independent copy."""
        return Sites(self.precision.copy(), self.linear.copy())

    def times(self, weight: FloatArray) -> Sites:
        """Messages of all copies of each row together."""
        return Sites(weight * self.precision, weight * self.linear)

    def towards(self, other: Sites, step: float) -> Sites:
        """Convex combination in natural parameters: ``step`` of the way to other sites."""
        return Sites(
            (1.0 - step) * self.precision + step * other.precision, (1.0 - step) * self.linear + step * other.linear
        )


_SLOWER = 30  # cost of an operation on gathered rows, relative to one in a matrix product
_ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class MarginMatrix:
    """A, with margins z = A f: z_p is f(left_p) - f(right_p), or f(left_p) alone."""

    left: IntArray  # codes of points of the latent function (items), (n_answers,)
    right: IntArray | None  # codes that are subtracted; None where an answer is about one point (classification)
    n_items: int

    @property
    def n_answers(self) -> int:
        """Number of rows of A."""
        return len(self.left)

    def margins(self, f: FloatArray) -> FloatArray:
        """A f, (n_answers,)."""
        return np.asarray(f[self.left] if self.right is None else f[self.left] - f[self.right])

    def gather(self, v: FloatArray) -> FloatArray:
        """Aᵀ v, (n_items,)."""
        total = np.bincount(self.left, v, self.n_items)
        if self.right is not None:
            total = total - np.bincount(self.right, v, self.n_items)
        return np.asarray(total, dtype=float)

    def variances(self, S: FloatArray) -> FloatArray:
        """Diagonal of A S Aᵀ, (n_answers,); never below 0."""
        if self.right is None:
            return np.asarray(np.maximum(np.diagonal(S)[self.left], 0.0))
        return pair_variance(S, self.left, self.right)

    def variances_of_root(self, root: FloatArray) -> FloatArray:
        """Diagonal of A S Aᵀ for S = root rootᵀ, (n_answers,); n_answers r operations where answers are few."""
        if self.right is None or self.n_answers * _SLOWER > self.n_items**2:
            return self.variances(root @ root.T)
        out = np.empty(self.n_answers)
        for start in range(0, self.n_answers, _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            rows = root[self.left[some]] - root[self.right[some]]
            out[some] = np.einsum("ij,ij->i", rows, rows)
        return out

    def gram(self, K: FloatArray) -> FloatArray:
        """A K Aᵀ, (n_answers, n_answers): the prior covariance of the margins."""
        if self.right is None:
            return np.asarray(K[np.ix_(self.left, self.left)])
        return preference(K, self.left, self.right)

    def rows(self, X: FloatArray) -> FloatArray:
        """A X for X of shape (n_items, m): (n_answers, m), so only where answers are few."""
        return np.asarray(X[self.left] if self.right is None else X[self.left] - X[self.right])

    def sparse(self) -> csr_array:
        """A as a sparse matrix."""
        place = np.arange(self.n_answers)
        if self.right is None:
            return csr_array((np.ones(len(place)), (place, self.left)), shape=(len(place), self.n_items))
        return csr_array(
            (
                np.repeat([1.0, -1.0], len(place)),
                (np.concatenate([place, place]), np.concatenate([self.left, self.right])),
            ),
            shape=(len(place), self.n_items),
        )

    def information(self, A: csr_array, precision: FloatArray) -> csr_array:
        """Aᵀ diag(precision) A, sparse, for pairs a weighted graph Laplacian; ``A`` is :meth:`sparse`, made once."""
        if self.right is None:
            place = np.arange(self.n_items)
            return csr_array((self.gather(precision), (place, place)), shape=(self.n_items, self.n_items))
        return csr_array(A.T @ (A * precision[:, None]))
