"""Joint process of users and items given messages of the answers: exact algebra, for some thousand answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from predilect._base import stored as _stored
from predilect._base.stored import PART, PLAIN, SMALL, Sizes, numbers
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.inference.gaussian.condition import LatentPrior
from predilect.inference.gaussian.dense import factorise, pack_triangle, solve_lower, symmetrise, unpack_triangle
from predilect.inference.gaussian.design import MarginMatrix, Sites
from predilect.inference.gaussian.kernels import Scaled
from predilect.inference.gaussian.posterior import Posterior, Utilities
from predilect.inference.latent.sparse.fit import SparseFit
from predilect.models.reading import PairQueries, rows_of_features
from predilect.papers.joint.covariance import JointKernel

_ROWS_AT_ONCE = 4000
_PEOPLE_FOR_AVERAGE = 2000
_ENTRIES_AT_ONCE = 5_000_000


@dataclass(frozen=True, slots=True)
class CellRows:
    """Cells, as rows (user, item) of codes, and those that each answer compares."""

    codes: Annotated[FloatArray, numbers("N 2")]
    left: Annotated[IntArray, _stored.codes("R", "N", "int64")]  # rows, (n_answers,)
    right: Annotated[IntArray, _stored.codes("R", "N", "int64")]

    @classmethod
    def of(cls, user: IntArray, left: IntArray, right: IntArray, n_items: int) -> CellRows:
        """From answers by their codes: one row for each cell."""
        cells = np.concatenate([user, user]).astype(np.int64) * n_items + np.concatenate([left, right])
        unique, place = np.unique(cells, return_inverse=True)
        codes = np.column_stack(np.divmod(unique, n_items)).astype(float)
        return cls(codes, place[: len(user)], place[len(user) :])

    def prior(self, kernel: JointKernel) -> LatentPrior:
        """Prior of the rows, in the space where the matrices are smaller."""
        return LatentPrior(kernel(self.codes), MarginMatrix(self.left, self.right, len(self.codes)))


@dataclass(frozen=True, slots=True)
class JointProcess(Posterior):
    """f ~ GP(0, K_users ⊗ K_items), given messages of the answers.

    At other points, with covariance C with the rows, the posterior has mean C α and covariance K - C R Cᵀ.
    """

    kernel: JointKernel
    rows: CellRows
    alpha: FloatArray  # α, (n,)
    reduction: FloatArray  # R, (n, n)
    n_users: int  # of the fit; the tables of the kernel may have grown since

    @classmethod
    def of(cls, kernel: JointKernel, rows: CellRows, sites: Sites) -> JointProcess:
        """From the messages of all copies of each answer."""
        state = rows.prior(kernel).condition(sites)
        return cls(kernel, rows, state.alpha, state.reduction(), len(kernel.users))

    @property
    def n_items(self) -> int:
        return len(self.kernel.items)

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), (n,); -1: a user with the mean features."""
        users = np.asarray(users, dtype=np.int64)
        process = self._with_nobody() if (users < 0).any() else self
        who = np.where(users < 0, len(process.kernel.users) - 1, users)
        asked, place = np.unique(who, return_inverse=True)
        of_users, of_items = process._factors(asked)
        people, items = process.kernel.users.variances(), process.kernel.items
        of_item = items.variances()
        mean, var = np.empty(len(users)), np.empty(len(users))
        for start in range(0, len(users), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            a, b = left[some], right[some]
            cross = of_users[place[some]] * (of_items[a] - of_items[b])
            own = people[who[some]] * (of_item[a] + of_item[b] - 2.0 * items.pairs(a, b))
            mean[some] = cross @ self.alpha
            var[some] = np.maximum(own - np.einsum("ij,ij->i", cross @ self.reduction, cross), 0.0)
        return mean, var

    def predict(self, model: Any, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        """Margins of a fitted model's queries, (n,); ``items`` and ``people``, features of those without answers."""
        process, new = self, model._new_items(queries, items)
        if new is not None:
            process = process.with_items(new.matrix, new.known)
        who = queries.users if model.personal_ else np.zeros_like(queries.users)  # one user, named or not
        if people is not None and queries.new_users and model.user_features_ is not None:
            rows, _ = rows_of_features(queries.new_users, model.user_features_, people)
            who = np.where(queries.unknown_users >= 0, process.n_users + queries.unknown_users, who)
            process = process.with_users(rows)
        return process.margins(who, queries.left, queries.right)

    def person(self, user: int = -1) -> Utilities:
        process = self._with_nobody() if user < 0 else self
        return process._average(np.array([user % len(process.kernel.users)]))

    def persons(self, users: IntArray) -> Iterator[Utilities]:
        """Utilities of users by code, one after the other, equal to :meth:`person`.

        Covariance K_uu K_x - K_x B_u K_x with B_u[a, b] = Σ k_u R k_u over the rows of items a and b: matrix products
        for all users together, 2 n_users n_rows² operations; one user at a time takes n_items times as many.
        """
        codes = self.rows.codes.astype(np.int64)
        users = np.asarray(users, dtype=np.int64)
        order = np.lexsort((codes[:, 0], codes[:, 1]))
        who, what = codes[order].T
        items, starts = np.unique(what, return_index=True)
        stops = np.append(starts[1:], len(what))
        process = self._with_nobody() if (users < 0).any() else self
        users = np.where(users < 0, len(process.kernel.users) - 1, users)
        people, K_x = process.kernel.users, self.kernel.items.covariance()
        own, rows_x = people.variances(), K_x[:, items]
        step = max(1, _ENTRIES_AT_ONCE // max(len(who), len(items) ** 2, 1))
        for start in range(0, len(users), step):
            some = users[start : start + step]
            W = people.between(some, who)
            mean = np.add.reduceat(W * self.alpha[order], starts, axis=1) @ rows_x.T if len(who) else None
            B = np.empty((len(some), len(items), len(items)))
            for position, (first, stop) in enumerate(zip(starts, stops, strict=True)):
                half = W[:, first:stop] @ self.reduction[np.ix_(order[first:stop], order)]
                half *= W
                B[:, position] = np.add.reduceat(half, starts, axis=1)
            for position, user in enumerate(some.tolist()):
                mu = np.zeros(len(K_x)) if mean is None else mean[position]
                yield Utilities.of(mu, symmetrise(own[user] * K_x - rows_x @ B[position] @ rows_x.T))

    def crowd(self) -> Utilities:
        return self._average(np.arange(self.n_users))

    def prior(self) -> None:
        """Every user has a prior of their own, by their features."""
        return

    def prior_of(self, user: int) -> Utilities:
        own = self.kernel.users.variances()[user]
        return Utilities.of(np.zeros(self.n_items), own * self.kernel.items.covariance())

    def restricted(self, users: IntArray, items: IntArray) -> Posterior:
        return kept_process(self, users, items)

    def with_items(self, features: FloatArray, known: BoolArray) -> JointProcess:
        """With items appended that have no answers."""
        items = self.kernel.items.with_rows(features, known)
        return replace(self, kernel=replace(self.kernel, items=items))

    def with_users(self, features: FloatArray) -> JointProcess:
        """With users appended who have no answers; zeros are the mean features."""
        return replace(self, kernel=replace(self.kernel, users=self.kernel.users.with_rows(features)))

    def _with_nobody(self) -> JointProcess:
        return self.with_users(np.zeros((1, self.kernel.users.features.shape[1])))

    def _factors(self, users: IntArray) -> tuple[FloatArray, FloatArray]:
        """Covariances of some users, and of every item, with the rows; (n_asked, n) and (n_items, n)."""
        u, i = self.rows.codes.T.astype(np.int64)
        return self.kernel.users.between(users, u), self.kernel.items.between(np.arange(self.n_items), i)

    def _average(self, users: IntArray) -> Utilities:
        """Utilities of the average of users; beyond 2 000 a regular subsample enters its prior variance."""
        of_users, of_items = self._factors(users)
        cross = of_users.mean(axis=0) * of_items
        some = users[:: 1 + len(users) // _PEOPLE_FOR_AVERAGE]
        own = float(self.kernel.users.between(some).mean()) * self.kernel.items.covariance()
        return Utilities.of(cross @ self.alpha, symmetrise(own - cross @ self.reduction @ cross.T))


@dataclass(frozen=True, slots=True)
class CellProcess(JointProcess):
    """Joint process given the utilities of some cells, (user, item), which are its rows; vvm.md 3, crowdgppl.md 2.2."""

    kernel: Annotated[JointKernel, PART]
    alpha: Annotated[FloatArray, numbers("K")]
    n_users: Annotated[int, PLAIN]

    @classmethod
    def of_fit(cls, found: SparseFit, n_users: int) -> Self:
        """Of a variational fit with cells for inducing points, f_m = L u with u ~ N(0, I/s): α = s L⁻ᵀ E u, and
        R = s L⁻ᵀ (I - s Λ⁻¹) L⁻¹ for u of precision Λ in the posterior. M³ operations for M cells.
        """
        kernel, L, s = found.projection.kernel, found.projection.factor, found.scale.value
        assert isinstance(kernel, JointKernel)
        known = np.eye(len(L.lower)) - s * found.q.factor.inverse()
        half = solve_lower(L.lower, known, transposed=True)
        reduction = s * solve_lower(L.lower, half.T, transposed=True)
        items = replace(kernel.items, kernel=Scaled(kernel.items.kernel, 1.0 / s))
        alpha = s * solve_lower(L.lower, found.q.mean, transposed=True)
        rows = rows_of(found.projection.points)
        return cls(replace(kernel, items=items), rows, alpha, symmetrise(reduction), n_users)

    @property
    def user(self) -> Annotated[IntArray, _stored.codes("K", "U", f"int64|{SMALL}")]:
        """People of the cells."""
        return self.rows.codes[:, 0].astype(np.int64)

    @property
    def item(self) -> Annotated[IntArray, _stored.codes("K", "I", f"int64|{SMALL}")]:
        """Items of the cells."""
        return self.rows.codes[:, 1].astype(np.int64)

    @property
    def triangle(self) -> Annotated[FloatArray, numbers("*")]:
        """The lower triangle of R."""
        return pack_triangle(self.reduction)

    @classmethod
    def restored(
        cls, user: IntArray, item: IntArray, alpha: FloatArray, triangle: FloatArray, kernel: JointKernel,
        n_users: int, sizes: Sizes,
    ) -> Self:  # fmt: skip
        """Process of a saved model; ValueError if it is of other people, items or features than these ``sizes``."""
        of_users, of_items = kernel.users.features.shape, kernel.items.features.shape
        people, things = (sizes["U"], sizes["G"]), (sizes["I"], sizes["F"])
        if of_users not in (people, (people[0], 0)) or of_items != things or n_users != people[0]:
            raise ValueError(f"features of people {of_users}, not {people}, or of items {of_items}, not {things}")
        if len(triangle) != len(alpha) * (len(alpha) + 1) // 2:
            raise ValueError(f"{len(alpha)} cells, but a covariance of {len(triangle)} entries")
        cells = np.column_stack([user, item]).astype(np.float64)
        return cls(kernel, rows_of(cells), alpha, unpack_triangle(triangle), n_users)


@dataclass(frozen=True, slots=True)
class KeptProcess(CellProcess):
    """Joint process of which some cells are kept; vvm.md 3, not ``local``."""

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


def kept_process(process: JointProcess, users: IntArray, items: IntArray) -> KeptProcess:
    """Joint process given only the utilities f_S kept of (``users``, ``items``), S; vvm.md 3.

    Mean K_*S K_SS⁻¹ μ_S and covariance K_** - K_*S (K_SS⁻¹ - K_SS⁻¹ Σ_SS K_SS⁻¹) K_S*: unseen users and items follow
    from their features, as before. The full process where S is every row of the answers. With W = K_SS⁻¹ K_S,rows the
    two are W α and W R Wᵀ: no difference of near-equal matrices. n_kept³ / 3 + n_kept n_rows (n_kept + n_rows)
    operations.
    """
    cells = np.column_stack([users, items]).astype(np.float64)
    W = factorise(process.kernel(cells)).solve(process.kernel(cells, process.rows.codes))
    reduction = symmetrise(W @ process.reduction @ W.T)
    return KeptProcess(process.kernel, rows_of(cells), W @ process.alpha, reduction, process.n_users)


def rows_of(cells: FloatArray) -> CellRows:
    """Utilities of cells as rows that no answer compares."""
    nothing = np.zeros(0, dtype=np.int64)
    return CellRows(cells, nothing, nothing)
