"""Kronecker covariance K_users ⊗ K_items of the rows that answers compare."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from scipy.sparse import csr_array

from predilect._base.stored import PART, flags, numbers
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.kernels.stored import KERNEL


@dataclass(frozen=True, slots=True)
class KernelTable:
    """Users or items: a kernel, and the rows of features that it compares."""

    kernel: Annotated[Kernel, KERNEL]  # white noise in it belongs to a row: to a user, or to an item
    features: Annotated[FloatArray, numbers("* *")]  # (n, d)
    known: Annotated[BoolArray, flags("*")]  # whether a row has features; one without is uncorrelated with all others

    def __post_init__(self) -> None:
        self.kernel.diagonal(self._middle())  # ValueError if it is made for rows of another length
        if len(self.known) != len(self.features):
            raise ValueError(f"{len(self.features)} rows of features, of which {len(self.known)} are known or not")

    @classmethod
    def of(cls, kernel: Kernel, features: FloatArray, known: BoolArray | None = None) -> Self:
        """From rows that all have features, unless ``known`` says otherwise."""
        return cls(kernel, features, np.ones(len(features), dtype=bool) if known is None else known)

    def __len__(self) -> int:
        return len(self.features)

    def covariance(self) -> FloatArray:
        """K, (n, n)."""
        known = self.known
        if known.all():
            return self.kernel(self.features)
        K = np.zeros((len(self), len(self)))
        K[np.ix_(known, known)] = self.kernel(self.features[known])
        K[~known, ~known] = self.kernel.diagonal(self._middle())[0]
        return K

    def variances(self) -> FloatArray:
        """Diagonal of K, (n,)."""
        return np.where(self.known, self.kernel.diagonal(self.features), self.kernel.diagonal(self._middle())[0])

    def between(self, a: IntArray, b: IntArray | None = None) -> FloatArray:
        """K of some rows, by their codes, with others or among themselves, (n, m)."""
        first, i = np.unique(a, return_inverse=True)
        if b is None:
            return replace(self, features=self.features[first], known=self.known[first]).covariance()[np.ix_(i, i)]
        second, j = np.unique(b, return_inverse=True)
        K = self.kernel(self.features[first], self.features[second])
        K[~self.known[first]] = 0.0
        K[:, ~self.known[second]] = 0.0
        at, same = np.nonzero(np.equal.outer(first, second))
        K[at, same] = self.variances()[first[at]]
        return K[np.ix_(i, j)]

    def pairs(self, a: IntArray, b: IntArray) -> FloatArray:
        """K of rows by their codes, one by one, (n,)."""
        apart = np.where(self.known[a] & self.known[b], self.kernel.pairs(self.features[a], self.features[b]), 0.0)
        return np.where(a == b, self.variances()[a], apart)

    def gradient(self, weights: FloatArray) -> FloatArray:
        """Σ_ij weights_ij ∂K_ij/∂theta, (n_parameters,)."""
        known = self.known
        alone = np.array([float(np.diagonal(weights)[~known].sum())])
        total = self.kernel.diagonal_gradient(self._middle(), alone)
        return total + self.kernel.gradient(self.features[known], None, weights[np.ix_(known, known)])

    def variance_gradient(self, weights: FloatArray) -> FloatArray:
        """Σ_i weights_i ∂K_ii/∂theta, (n_parameters,)."""
        alone = np.array([float(weights[~self.known].sum())])
        total = self.kernel.diagonal_gradient(self._middle(), alone)
        return total + self.kernel.diagonal_gradient(self.features[self.known], weights[self.known])

    def with_rows(self, features: FloatArray, known: BoolArray | None = None) -> KernelTable:
        """With more rows after these."""
        more = np.ones(len(features), dtype=bool) if known is None else known
        return replace(self, features=np.vstack([self.features, features]), known=np.concatenate([self.known, more]))

    def _middle(self) -> FloatArray:
        """Mean row of features, whose variance a row without features has."""
        return np.zeros((1, self.features.shape[1]))


@dataclass(frozen=True, slots=True, eq=False)
class JointKernel:
    """cov(f_u(i), f_v(j)) = K_users[u, v] K_items[i, j], a kernel of rows (user, item) of codes.

    vvm.md 1, baselines.md B4 (Bonilla, Guo and Sanner 2010; Houlsby et al. 2012). n² + n_users² + n_items² operations
    for n rows. A nugget of a user or of an item is white noise in the kernel of its table.
    """

    users: Annotated[KernelTable, PART]
    items: Annotated[KernelTable, PART]

    @property
    def names(self) -> tuple[str, ...]:
        """users.name and items.name of the hyper-parameters."""
        of_users = [f"users.{name}" for name in self.users.kernel.names]
        return (*of_users, *(f"items.{name}" for name in self.items.kernel.names))

    @property
    def theta(self) -> FloatArray:
        return np.concatenate([self.users.kernel.theta, self.items.kernel.theta])

    def with_theta(self, theta: FloatArray) -> Self:
        n = len(self.users.kernel.theta)
        theta = np.asarray(theta, dtype=np.float64)
        users = replace(self.users, kernel=self.users.kernel.with_theta(theta[:n]))
        return replace(self, users=users, items=replace(self.items, kernel=self.items.kernel.with_theta(theta[n:])))

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """Covariance of rows of codes, (n, m); without ``y`` the second rows are the first."""
        of_users, of_items = self._factors(x, y)
        return of_users * of_items

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Σ_kl weights_kl ∂k(x_k, y_l)/∂theta, (n_parameters,); weights are first summed by user and by item."""
        of_users, of_items = self._factors(x, y)
        (u, i), (v, j) = _codes(x), _codes(x if y is None else y)
        by_user = _summed(weights * of_items, u, v, len(self.users))
        by_item = _summed(weights * of_users, i, j, len(self.items))
        return np.concatenate([self.users.gradient(by_user), self.items.gradient(by_item)])

    def diagonal(self, x: FloatArray) -> FloatArray:
        """Variances of the rows, (n,)."""
        u, i = _codes(x)
        return np.asarray(self.users.variances()[u] * self.items.variances()[i])

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Covariances of rows one by one, (n,)."""
        (u, i), (v, j) = _codes(x), _codes(y)
        return self.users.pairs(u, v) * self.items.pairs(i, j)

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Σ_k weights_k ∂k(x_k, x_k)/∂theta, (n_parameters,)."""
        u, i = _codes(x)
        by_user: FloatArray = np.bincount(u, weights * self.items.variances()[i], len(self.users)).astype(np.float64)
        by_item: FloatArray = np.bincount(i, weights * self.users.variances()[u], len(self.items)).astype(np.float64)
        return np.concatenate([self.users.variance_gradient(by_user), self.items.variance_gradient(by_item)])

    def _factors(self, x: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        u, i = _codes(x)
        v, j = (None, None) if y is None else _codes(y)
        return self.users.between(u, v), self.items.between(i, j)


def _codes(x: FloatArray) -> list[IntArray]:
    """Columns of rows of codes: users and items."""
    if x.ndim != 2 or x.shape[1] != 2:
        raise ValueError(f"rows must be (person, item), not of shape {x.shape}")
    return list(x.T.astype(np.int64))


def _summed(weights: FloatArray, rows: IntArray, columns: IntArray, n: int) -> FloatArray:
    """Weights (n_rows, n_columns) added up by the codes of their rows and columns, (n, n)."""
    P, Q = (csr_array((np.ones(len(a)), (np.arange(len(a)), a)), shape=(len(a), n)) for a in (rows, columns))
    return np.asarray(Q.T @ np.asarray(P.T @ weights).T).T
