"""Joint process of users and items given messages of the answers: exact algebra, for some thousand answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predilect.gaussian.condition import LatentPrior
from predilect.gaussian.dense import symmetrise
from predilect.gaussian.design import Design
from predilect.gaussian.pairs import preference
from predilect.gaussian.posterior import Posterior
from predilect.gaussian.sites import Sites
from predilect.gaussian.utilities import Utilities
from predilect.models.joint.covariance import JointKernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]

_ROWS_AT_ONCE = 4000
_ENTRIES_AT_ONCE = 5_000_000


@dataclass(frozen=True, slots=True)
class Rows:
    """Latent values, as rows of codes, and the rows that each answer compares."""

    codes: FloatArray  # (n, 2): (user, item), or (n, 3): (user, left, right) where each answer has a margin of its own
    left: IntArray  # rows, (n_answers,)
    right: IntArray | None  # None where a row is a margin

    @classmethod
    def of(cls, user: IntArray, left: IntArray, right: IntArray, *, margins: bool, n_items: int) -> Rows:
        """From answers by their codes; with ``margins`` one row per answer, otherwise one for each (user, item)."""
        if margins:
            return cls(np.column_stack([user, left, right]).astype(float), np.arange(len(user)), None)
        cells = np.concatenate([user, user]).astype(np.int64) * n_items + np.concatenate([left, right])
        unique, place = np.unique(cells, return_inverse=True)
        codes = np.column_stack(np.divmod(unique, n_items)).astype(float)
        return cls(codes, place[: len(user)], place[len(user) :])

    def prior(self, kernel: JointKernel) -> LatentPrior:
        """Prior of the rows, in the space where the matrices are smaller."""
        return LatentPrior(kernel(self.codes), Design(self.left, self.right, len(self.codes)))


@dataclass(frozen=True, slots=True)
class JointProcess(Posterior):
    """f ~ GP(0, K_users ⊗ K_items), given messages of the answers.

    At other points, with covariance C with the rows, the posterior has mean C α and covariance K - C R Cᵀ.
    """

    kernel: JointKernel
    rows: Rows
    alpha: FloatArray  # α, (n,)
    reduction: FloatArray  # R, (n, n)
    n_users: int  # of the fit; the tables of the kernel may have grown since

    @classmethod
    def of(cls, kernel: JointKernel, rows: Rows, sites: Sites) -> JointProcess:
        """From the messages of all copies of each answer."""
        state = rows.prior(kernel).condition(sites)
        return cls(kernel, rows, state.alpha, state.reduction(), len(kernel.users))

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.kernel.items)

    def margins(
        self, users: IntArray, left: IntArray, right: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of one answer's margin, its nugget included, (n,); -1: a user with the mean features."""
        users = np.asarray(users, dtype=np.int64)
        process = self._with_nobody() if (users < 0).any() else self
        who = np.where(users < 0, len(process.kernel.users) - 1, users)
        of_users, of_items = process._factors()
        K_x = process.kernel.items.covariance()
        K_u = np.diagonal(process.kernel.users.covariance())
        more = self.kernel.nuggets or (0.0, 0.0)
        mean, var = np.empty(len(users)), np.empty(len(users))
        for start in range(0, len(users), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            a, b, u = left[some], right[some], who[some]
            cross = of_users[u] * (of_items[a] - of_items[b])
            own = (K_u[u] + more[0]) * (K_x[a, a] + K_x[b, b] - 2.0 * K_x[a, b] + more[1])
            mean[some] = cross @ self.alpha
            var[some] = np.maximum(own - np.einsum("ij,ij->i", cross @ self.reduction, cross), 0.0)
        return mean, var

    def person(self, user: int = -1) -> Utilities:
        """Utilities of one user; -1: a user with the mean features."""
        process = self._with_nobody() if user < 0 else self
        weight = np.zeros(len(process.kernel.users))
        weight[user] = 1.0
        return process._average(weight)

    def persons(self, users: IntArray) -> Iterator[Utilities]:
        """Utilities of users by code, one after the other, equal to :meth:`person`.

        Covariance K_uu K_x - K_x B_u K_x with B_u[a, b] = Σ k_u R k_u over the rows of items a and b: matrix products
        for all users together, 2 n_users n_rows² operations; one user at a time takes n_items times as many.
        """
        codes = self.rows.codes.astype(np.int64)
        users = np.asarray(users, dtype=np.int64)
        if codes.shape[1] != 2:  # rows are margins, each with two items
            for user in users.tolist():
                yield self.person(user)
            return
        order = np.lexsort((codes[:, 0], codes[:, 1]))
        who, what = codes[order].T
        items, starts = np.unique(what, return_index=True)
        stops = np.append(starts[1:], len(what))
        process = self._with_nobody() if (users < 0).any() else self
        users = np.where(users < 0, len(process.kernel.users) - 1, users)
        K_u, K_x = process.kernel.users.covariance(), self.kernel.items.covariance()
        rows_x = K_x[:, items]
        step = max(1, _ENTRIES_AT_ONCE // max(len(who), len(items) ** 2, 1))
        for start in range(0, len(users), step):
            some = users[start : start + step]
            W = K_u[np.ix_(some, who)]
            mean = np.add.reduceat(W * self.alpha[order], starts, axis=1) @ rows_x.T if len(who) else None
            B = np.empty((len(some), len(items), len(items)))
            for position, (first, stop) in enumerate(zip(starts, stops, strict=True)):
                half = W[:, first:stop] @ self.reduction[np.ix_(order[first:stop], order)]
                half *= W
                B[:, position] = np.add.reduceat(half, starts, axis=1)
            for position, user in enumerate(some.tolist()):
                mu = np.zeros(len(K_x)) if mean is None else mean[position]
                yield Utilities.of(mu, symmetrise(K_u[user, user] * K_x - rows_x @ B[position] @ rows_x.T))

    def crowd(self) -> Utilities:
        """Average utilities of the users of the fit."""
        weight = np.zeros(len(self.kernel.users))
        weight[: self.n_users] = 1.0 / self.n_users
        return self._average(weight)

    def prior(self) -> None:
        """Every user has a prior of their own, by their features."""
        return

    def restricted(self, users: IntArray, items: IntArray) -> Posterior:
        """See :func:`~predilect.models.joint.kept.kept_process`."""
        from predilect.models.joint.kept import kept_process  # which is one of these processes itself

        return kept_process(self, users, items)

    def answer_prior(
        self, users: IntArray, left: IntArray, right: IntArray
    ) -> tuple[FloatArray, Callable[[int], FloatArray]]:
        """Prior variances (n,) of the margins of answers, and columns of their prior covariance."""
        K_u, K_x = self.kernel.users.covariance(), self.kernel.items.covariance()
        pairs = preference(K_x, left, right)
        more = self.kernel.nuggets or (0.0, 0.0)

        def column(k: int) -> FloatArray:
            cross = K_u[users, users[k]] * pairs[:, k]
            cross[k] = (K_u[users[k], users[k]] + more[0]) * (pairs[k, k] + more[1])
            return np.asarray(cross)

        return (np.diagonal(K_u)[users] + more[0]) * (np.diagonal(pairs) + more[1]), column

    def with_items(self, features: FloatArray, known: npt.NDArray[np.bool_]) -> JointProcess:
        """With items appended that have no answers."""
        items = self.kernel.items.with_rows(features, known)
        return replace(self, kernel=replace(self.kernel, items=items))

    def with_users(self, features: FloatArray) -> JointProcess:
        """With users appended who have no answers; zeros are the mean features."""
        return replace(self, kernel=replace(self.kernel, users=self.kernel.users.with_rows(features)))

    def _with_nobody(self) -> JointProcess:
        return self.with_users(np.zeros((1, self.kernel.users.features.shape[1])))

    def _factors(self) -> tuple[FloatArray, FloatArray]:
        """Covariances of all users, and of every item, with the rows; (n_users, n) and (n_items, n)."""
        u, a, *b = self.rows.codes.T.astype(np.int64)
        K = self.kernel.items.covariance()
        return self.kernel.users.covariance()[:, u], K[:, a] - K[:, b[0]] if b else K[:, a]

    def _average(self, weight: FloatArray) -> Utilities:
        """Utilities of the average of users with these weights."""
        of_users, of_items = self._factors()
        cross = (weight @ of_users) * of_items
        K_u = self.kernel.users.covariance()
        own = float(weight @ K_u @ weight) * self.kernel.items.covariance()
        return Utilities.of(cross @ self.alpha, symmetrise(own - cross @ self.reduction @ cross.T))
