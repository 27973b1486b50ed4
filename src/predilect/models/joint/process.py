"""Joint process of users and items given messages of the answers: exact algebra, for some thousand answers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predilect.gaussian.condition import LatentPrior
from predilect.gaussian.dense import factorise, symmetrise
from predilect.gaussian.design import Design
from predilect.gaussian.sites import Sites
from predilect.gaussian.utilities import Utilities
from predilect.models.joint.covariance import JointKernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]

_ROWS_AT_ONCE = 4000


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
class JointProcess:
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

    def utilities(self, user: int = -1) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items) of one user's utilities."""
        return self.person(user).dense()

    def crowd(self) -> Utilities:
        """Average utilities of the users of the fit."""
        weight = np.zeros(len(self.kernel.users))
        weight[: self.n_users] = 1.0 / self.n_users
        return self._average(weight)

    def consensus(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of :meth:`crowd`."""
        return self.crowd().dense()

    def centred_utilities(
        self, users: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of users' utilities, centred over the items; (n_users, n_items)."""
        found = [self.person(int(user)).centred_marginals() for user in users]
        shape = (len(users), self.n_items)
        return np.array([m for m, _ in found]).reshape(shape), np.array([v for _, v in found]).reshape(shape)

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


_ENTRIES_AT_ONCE = 5_000_000


def people_of(process: JointProcess, users: IntArray) -> Iterator[Utilities]:
    """Utilities of users by code, one after the other, equal to ``process.person``.

    Covariance K_uu K_x - K_x B_u K_x with B_u[a, b] = Σ k_u R k_u over the rows of items a and b: matrix products for
    all users together, 2 n_users n_rows² operations; one user at a time takes n_items times as many.
    """
    codes = process.rows.codes.astype(np.int64)
    users = np.asarray(users, dtype=np.int64)
    if codes.shape[1] != 2:  # rows are margins, each with two items
        for user in users.tolist():
            yield process.person(user)
        return
    order = np.lexsort((codes[:, 0], codes[:, 1]))
    who, what = codes[order].T
    items, starts = np.unique(what, return_index=True)
    stops = np.append(starts[1:], len(what))
    K_u, K_x = process.kernel.users.covariance(), process.kernel.items.covariance()
    rows_x = K_x[:, items]
    step = max(1, _ENTRIES_AT_ONCE // max(len(who), len(items) ** 2, 1))
    for start in range(0, len(users), step):
        some = users[start : start + step]
        W = K_u[np.ix_(some, who)]
        mean = np.add.reduceat(W * process.alpha[order], starts, axis=1) @ rows_x.T if len(who) else None
        B = np.empty((len(some), len(items), len(items)))
        for position, (first, stop) in enumerate(zip(starts, stops, strict=True)):
            half = W[:, first:stop] @ process.reduction[np.ix_(order[first:stop], order)]
            half *= W
            B[:, position] = np.add.reduceat(half, starts, axis=1)
        for position, user in enumerate(some.tolist()):
            mu = np.zeros(len(K_x)) if mean is None else mean[position]
            yield Utilities.of(mu, symmetrise(K_u[user, user] * K_x - rows_x @ B[position] @ rows_x.T))


def kept_process(process: JointProcess, users: IntArray, items: IntArray) -> JointProcess:
    """Joint process given only the utilities f_S kept of (``users``, ``items``), S; vvm.md 3.

    Mean K_*S K_SS⁻¹ μ_S and covariance K_** - K_*S (K_SS⁻¹ - K_SS⁻¹ Σ_SS K_SS⁻¹) K_S*: unseen users and items follow
    from their features, as before. The full process where S is every row of the answers. With W = K_SS⁻¹ K_S,rows the
    two are W α and W R Wᵀ: no difference of near-equal matrices. n_kept³ / 3 + n_kept n_rows (n_kept + n_rows)
    operations.
    """
    # Nuggets are of single answers' margins, not of utilities.
    prior = replace(process.kernel, nuggets=None)
    cells = np.column_stack([users, items]).astype(np.float64)
    W = factorise(prior(cells)).solve(_cross(prior, users, items, process.rows.codes))
    rows = Rows(cells, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    reduction = symmetrise(W @ process.reduction @ W.T)
    return JointProcess(process.kernel, rows, W @ process.alpha, reduction, process.n_users)


def _cross(prior: JointKernel, users: IntArray, items: IntArray, codes: FloatArray) -> FloatArray:
    """Prior covariance of utilities with rows, which are utilities or margins; (n_kept, n_rows)."""
    u, a, *b = codes.T.astype(np.int64)
    K_x = prior.items.covariance()
    of_items = K_x[:, a] - K_x[:, b[0]] if b else K_x[:, a]
    return np.asarray(prior.users.covariance()[np.ix_(users, u)] * of_items[items])
