"""Which values of a latent function each answer looks at: a sparse matrix with one or two entries a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from predilect.covariance.preference import preference
from predilect.posteriors.pairs import pair_variance

__all__ = ["Design"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]

_SLOWER = 30  # operations on rows that are gathered take so much longer than those of a product of matrices
_ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Design:
    """A, with z = A f: the margin z_p is f(left_p) - f(right_p), or f(left_p) alone.

    Attributes
    ----------
    left : array of int, shape (n_answers,)
        Codes of points of the latent function (items).
    right : array of int, shape (n_answers,), or None
        Codes of the items that are subtracted; None where an answer is about one point, as in classification.
    n_items : int
        Number of points.
    """

    left: IntArray
    right: IntArray | None
    n_items: int

    @property
    def n_answers(self) -> int:
        """Number of rows of A."""
        return len(self.left)

    def margins(self, f: FloatArray) -> FloatArray:
        """A f, shape (n_answers,)."""
        return np.asarray(f[self.left] if self.right is None else f[self.left] - f[self.right])

    def gather(self, v: FloatArray) -> FloatArray:
        """Aᵀ v, shape (n_items,)."""
        total = np.bincount(self.left, v, self.n_items)
        if self.right is not None:
            total = total - np.bincount(self.right, v, self.n_items)
        return np.asarray(total, dtype=float)

    def variances(self, S: FloatArray) -> FloatArray:
        """The diagonal of A S Aᵀ, shape (n_answers,); never below 0."""
        if self.right is None:
            return np.asarray(np.maximum(np.diagonal(S)[self.left], 0.0))
        return pair_variance(S, self.left, self.right)

    def variances_of_root(self, root: FloatArray) -> FloatArray:
        """The diagonal of A S Aᵀ for S = root rootᵀ, shape (n_answers,), by S or by each answer's row of A root.

        Notes
        -----
        n_answers r operations, not n_items² r, where answers are few beside pairs of items.
        """
        if self.right is None or self.n_answers * _SLOWER > self.n_items**2:
            return self.variances(root @ root.T)
        out = np.empty(self.n_answers)
        for start in range(0, self.n_answers, _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            rows = root[self.left[some]] - root[self.right[some]]
            out[some] = np.einsum("ij,ij->i", rows, rows)
        return out

    def gram(self, K: FloatArray) -> FloatArray:
        """A K Aᵀ, shape (n_answers, n_answers): the prior covariance of the margins."""
        if self.right is None:
            return np.asarray(K[np.ix_(self.left, self.left)])
        return preference(K, self.left, self.right)

    def rows(self, X: FloatArray) -> FloatArray:
        """A X for X of shape (n_items, m): shape (n_answers, m), so only where answers are few."""
        return np.asarray(X[self.left] if self.right is None else X[self.left] - X[self.right])

    def sparse(self) -> csr_array:
        """A itself."""
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
        """Aᵀ diag(precision) A, sparse, shape (n_items, n_items); for pairs a weighted graph Laplacian.

        ``A`` is :meth:`sparse`, made once.
        """
        if self.right is None:
            place = np.arange(self.n_items)
            return csr_array((self.gather(precision), (place, place)), shape=(self.n_items, self.n_items))
        return csr_array(A.T @ (A * precision[:, None]))
