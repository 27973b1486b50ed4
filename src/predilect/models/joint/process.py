"""Joint process of users and items given messages of the answers: exact algebra, for some thousand answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from predilect import _stored
from predilect._stored import PART, PLAIN, SMALL, Sizes, numbers
from predilect._types import BoolArray, FloatArray, IntArray
from predilect.gaussian.condition import LatentPrior
from predilect.gaussian.dense import factorise, pack_triangle, symmetrise, unpack_triangle
from predilect.gaussian.design import Design, Sites, preference
from predilect.gaussian.posterior import Posterior, Utilities
from predilect.models.joint.covariance import JointKernel

_ROWS_AT_ONCE = 4000
_ENTRIES_AT_ONCE = 5_000_000


@dataclass(frozen=True, slots=True)
class Rows:
    """Latent values, as rows of codes, and the rows that each answer compares."""

    # (user, item), or (user, left, right) where each answer has a margin of its own
    codes: Annotated[FloatArray, numbers("N 2|N 3")]
    left: Annotated[IntArray, _stored.codes("R", "N", "int64")]  # rows, (n_answers,)
    right: Annotated[IntArray | None, _stored.codes("R", "N", "int64")]  # None where a row is a margin

    def checked(self) -> None:
        """ValueError unless answers look at two values each, or at one margin."""
        if (self.codes.shape[1] == 3) != (self.right is None):
            raise ValueError("answers look at two values each, or at one margin, and not both")

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
        return len(self.kernel.items)

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
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
        weight = np.zeros(len(self.kernel.users))
        weight[: self.n_users] = 1.0 / self.n_users
        return self._average(weight)

    def prior(self) -> None:
        """Every user has a prior of their own, by their features."""
        return

    def prior_of(self, user: int) -> Utilities:
        own = self.kernel.users.covariance()[user, user]
        return Utilities.of(np.zeros(self.n_items), own * self.kernel.items.covariance())

    def restricted(self, users: IntArray, items: IntArray) -> Posterior:
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

    def with_items(self, features: FloatArray, known: BoolArray) -> JointProcess:
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


@dataclass(frozen=True, slots=True)
class KeptProcess(JointProcess):
    """Joint process given the utilities of some cells, (user, item), which are its rows; vvm.md 3, not ``local``."""

    kernel: Annotated[JointKernel, PART]
    alpha: Annotated[FloatArray, numbers("K")]
    n_users: Annotated[int, PLAIN]

    @property
    def n_kept(self) -> int:
        """Number of utilities that are kept."""
        return len(self.rows.codes)

    def kept(self, user: int) -> IntArray:
        cells = self.rows.codes.astype(np.int64)
        return cells[cells[:, 0] == user, 1]

    def holds(self, users: IntArray, items: IntArray) -> BoolArray:
        """Whether users keep items, (n,); False for an unseen user (-1)."""
        n = self.n_items
        cells = self.rows.codes.astype(np.int64) @ np.array([n, 1])
        inside = (np.asarray(users) >= 0) & (items >= 0) & (items < n)
        return np.asarray(np.isin(np.asarray(users, dtype=np.int64) * n + items, cells) & inside)

    def answer_counts(self, start: int, stop: int) -> FloatArray:
        """Answers of users on the items they keep, (stop - start, n_items): none are counted."""
        return np.zeros((stop - start, self.n_items))

    @property
    def user(self) -> Annotated[IntArray, _stored.codes("K", "U", f"int64|{SMALL}")]:
        """People of the kept utilities."""
        return self.rows.codes[:, 0].astype(np.int64)

    @property
    def item(self) -> Annotated[IntArray, _stored.codes("K", "I", f"int64|{SMALL}")]:
        """Items of the kept utilities."""
        return self.rows.codes[:, 1].astype(np.int64)

    @property
    def triangle(self) -> Annotated[FloatArray, numbers("*")]:
        """The lower triangle of R."""
        return pack_triangle(self.reduction)

    @classmethod
    def restored(
        cls, user: IntArray, item: IntArray, alpha: FloatArray, triangle: FloatArray, kernel: JointKernel,
        n_users: int, sizes: Sizes,
    ) -> KeptProcess:  # fmt: skip
        """Process of a saved model; ValueError if it is of other people, items or features than these ``sizes``."""
        of_users, of_items = kernel.users.features.shape, kernel.items.features.shape
        people, things = (sizes["U"], sizes["G"]), (sizes["I"], sizes["F"])
        if of_users not in (people, (people[0], 0)) or of_items != things or n_users != people[0]:
            raise ValueError(f"features of people {of_users}, not {people}, or of items {of_items}, not {things}")
        if len(triangle) != len(alpha) * (len(alpha) + 1) // 2:
            raise ValueError(f"{len(alpha)} kept utilities, but a covariance of {len(triangle)} entries")
        cells = np.column_stack([user, item]).astype(np.float64)
        return cls(kernel, rows_of(cells), alpha, unpack_triangle(triangle), n_users)


def kept_process(process: JointProcess, users: IntArray, items: IntArray) -> KeptProcess:
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
    reduction = symmetrise(W @ process.reduction @ W.T)
    return KeptProcess(process.kernel, rows_of(cells), W @ process.alpha, reduction, process.n_users)


def rows_of(cells: FloatArray) -> Rows:
    """Utilities of cells as rows that no answer compares."""
    nothing = np.zeros(0, dtype=np.int64)
    return Rows(cells, nothing, nothing)


def _cross(prior: JointKernel, users: IntArray, items: IntArray, codes: FloatArray) -> FloatArray:
    """Prior covariance of utilities with rows, which are utilities or margins; (n_kept, n_rows)."""
    u, a, *b = codes.T.astype(np.int64)
    K_x = prior.items.covariance()
    of_items = K_x[:, a] - K_x[:, b[0]] if b else K_x[:, a]
    return np.asarray(prior.users.covariance()[np.ix_(users, u)] * of_items[items])
