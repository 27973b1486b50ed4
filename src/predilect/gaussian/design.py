"""Design matrix of answers about latent values: sparse, one or two entries a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from predilect.gaussian.pairs import pair_variance, preference

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]

_SLOWER = 30  # cost of an operation on gathered rows, relative to one in a matrix product
_ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Design:
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
