"""Posterior of one utility function of user and item features, through inducing points."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import symmetrise
from predilect.covariance.kernels import Kernel
from predilect.posteriors.gaussian import centre
from predilect.posteriors.sparse import SparsePosterior
from predilect.posteriors.utilities import Utilities

__all__ = ["JointPosterior"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]

_ROWS_AT_ONCE = 20_000
_PEOPLE_FOR_AVERAGE = 2000


@dataclass(frozen=True, slots=True)
class JointPosterior:
    """f(x_u, x_i) ~ GP with covariance k_users(x_u, x_u') k_items(x_i, x_i') / s, given the answers. crowdgppl.md 1.

    Guo, Bonilla and others. A user without features, such as an unseen one, has the mean features, zeros.
    """

    process: SparsePosterior  # over (user, item) pairs: rows of user features, then item features
    user_kernel: Kernel
    item_kernel: Kernel
    user_features: FloatArray  # (n_users, d_users)
    item_features: FloatArray  # (n_items, d_items)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.item_features)

    def margins(
        self,
        users: IntArray,
        left: IntArray,
        right: IntArray,
        *,
        traits: FloatArray | None = None,
        executor: ThreadPoolExecutor | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), (n,); ``traits`` (n, d_users) are read where ``users`` is -1."""
        people = self._people(users, traits)
        mean, var = np.empty(len(users)), np.empty(len(users))
        for start in range(0, len(users), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            who, n = people[some], len(people[some])
            rows = np.vstack([np.hstack([who, self.item_features[side[some]]]) for side in (left, right)])
            here = self._at(rows)
            index = np.arange(n)
            mean[some], var[some] = here.margins(index, index, index + n)
        return mean, var

    def person(self, user: int = -1) -> Utilities:
        """Utilities of one user; -1: a user with the mean features."""
        who = np.repeat(self._people(np.array([user]), None), self.n_items, axis=0)
        return self._at(np.hstack([who, self.item_features])).person()

    def utilities(self, user: int = -1) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items) of one user's utilities."""
        return self.person(user).dense()

    def crowd(self) -> Utilities:
        """Average utilities of the users: a product kernel again, so that rows of all users need not be made.

        Beyond 2 000 users a regular subsample enters the prior variance of the average.
        """
        projection, S, s = self.process.projection, self.process.covariance, self.process.scale
        n = self.user_features.shape[1]
        points, some = projection.points, self.user_features[:: 1 + len(self.user_features) // _PEOPLE_FOR_AVERAGE]
        alike = self.user_kernel(points[:, :n], self.user_features).mean(axis=1)
        A = projection.factor.solve(self.item_kernel(points[:, n:], self.item_features) * alike[:, None]).T
        root = A @ projection.factor.lower
        prior = float(self.user_kernel(some, some).mean()) * self.item_kernel(self.item_features)
        covariance = symmetrise(A @ S @ A.T + (prior - root @ root.T) / s)
        return Utilities.of(A @ self.process.mean, covariance)

    def consensus(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of :meth:`crowd`."""
        crowd = self.crowd()
        return crowd.mean, crowd.covariance

    def centred_utilities(
        self, users: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of users' utilities, centred over the items; (n_users, n_items)."""
        mean, var = np.empty((len(users), self.n_items)), np.empty((len(users), self.n_items))
        for row, user in enumerate(users.tolist()):
            m, C = centre(*self.utilities(user))
            mean[row], var[row] = m, np.diagonal(C)
        return mean, var

    def with_items(self, features: FloatArray) -> JointPosterior:
        """With more items, by their features (n_new, d_items)."""
        items = np.vstack([self.item_features, features])
        return JointPosterior(self.process, self.user_kernel, self.item_kernel, self.user_features, items)

    def _people(self, users: IntArray, traits: FloatArray | None) -> FloatArray:
        unknown = np.zeros((len(users), self.user_features.shape[1])) if traits is None else traits
        return np.where((users >= 0)[:, None], self.user_features[users], unknown)

    def _at(self, rows: FloatArray) -> SparsePosterior:
        p = self.process
        return SparsePosterior(p.projection.at(rows, np.ones(len(rows), dtype=bool)), p.mean, p.covariance, p.scale)
