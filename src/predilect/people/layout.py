"""Population distribution: the prior of a user's utilities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons
from predilect.errors import DataError
from predilect.gaussian.dense import factorise
from predilect.gaussian.design import Sites
from predilect.likelihoods.views import PairLikelihood, Probit
from predilect.people.dense import CountedPerson, DensePerson
from predilect.people.state import person_sums
from predilect.shards import Shard, cut


@dataclass(frozen=True, slots=True)
class Law:
    """Population distribution f_u ~ N(mean + shift x_u, S) with S = Σ, or S = Φ Σ Φᵀ + diag(ρ) with a basis."""

    Sigma: FloatArray  # Σ, (M, M): the population covariance, on the basis
    mean: FloatArray  # consensus of the items, (n_items,)
    # Φ, (n_items, M); no columns where the items are the basis (M = n_items)
    Phi: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    # variance of the item-specific residual, (n_items,); empty without
    rho: FloatArray = field(default_factory=lambda: np.zeros(0))
    shift: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # effects of traits, (n_items, n_traits)
    cov: FloatArray = field(init=False)  # Σ or Φ Σ, (n_items, M), as the compiled loops take it

    def __post_init__(self) -> None:
        if not self.shift.shape[1]:
            object.__setattr__(self, "shift", np.zeros((len(self.mean), 0)))
        # A solver returns columns, a product rows: the compiled loops would be compiled again for each layout.
        object.__setattr__(self, "shift", np.ascontiguousarray(self.shift))
        object.__setattr__(self, "cov", self.Phi @ self.Sigma if self.has_basis else self.Sigma)

    @property
    def functions(self) -> FloatArray | None:
        """Φ as the compiled loops take it: None without a basis, and what only a basis needs is not compiled."""
        return self.Phi if self.has_basis else None

    @property
    def has_basis(self) -> bool:
        """Whether there is a basis other than the items."""
        return bool(self.Phi.shape[1])

    def covariance(self, items: IntArray) -> FloatArray:
        """S of some items, (k, k)."""
        if not self.has_basis:
            return np.asarray(self.Sigma[np.ix_(items, items)])
        block = self.cov[items] @ self.Phi[items].T
        if len(self.rho):
            block[np.diag_indices(len(items))] += self.rho[items]
        return np.asarray(block)

    def root(self, items: IntArray) -> FloatArray:
        """L with S = L Lᵀ of some items, (k, k), or (k, M) without item-specific residuals."""
        if self.has_basis and not len(self.rho):
            # S has rank M at most: a factor of S itself would need jitter, which shows once answers are many.
            return np.asarray(self.Phi[items] @ factorise(self.Sigma).lower)
        return factorise(self.covariance(items)).lower

    def person_mean(self, items: IntArray, traits: FloatArray) -> FloatArray:
        """Prior mean of some items for a user with the given traits, (k,)."""
        return np.asarray(self.mean[items] + self.shift[items] @ traits)


@dataclass(frozen=True, slots=True)
class Basis:
    """f_u = Φ β_u + e_u: basis functions of the items, and item-specific residuals (population.md section 6)."""

    Phi: FloatArray  # Φ, (n_items, M)
    rho: FloatArray  # variance over people of e_ui, (n_items,); empty without residuals
    offset: FloatArray  # posterior of the mean over people of e_ui, item by item; empty like ``rho``
    offset_variance: FloatArray
    own_scale: float  # ``rho`` per unit of an item's share of the prior variance, for new items

    @property
    def has_own(self) -> bool:
        """Whether items have residuals of their own."""
        return len(self.rho) > 0

    def mean(self, m: FloatArray) -> FloatArray:
        """Consensus of the items, (n_items,), from that of the functions."""
        return self.Phi @ m + self.offset if self.has_own else np.asarray(self.Phi @ m)

    def extended(self, Phi: FloatArray, share: FloatArray, consensus_variance: float) -> Basis:
        """With new items without answers: rows ``Phi``, residual ``share`` (n_new,); ``consensus_variance`` is s_t."""
        rows = np.vstack([self.Phi, Phi])
        if not self.has_own and not len(share):
            return Basis(rows, self.rho, self.offset, self.offset_variance, self.own_scale)
        nothing, zero = np.zeros(len(self.Phi)), np.zeros(len(Phi))
        share = share if len(share) else zero

        def join(old: FloatArray, new: FloatArray) -> FloatArray:
            return np.concatenate([old if self.has_own else nothing, new])

        return Basis(
            rows, join(self.rho, self.own_scale * share), join(self.offset, zero),
            join(self.offset_variance, consensus_variance * share), self.own_scale,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Effects:
    """Effects B x_u of user traits on the prior mean of user u's utilities."""

    B: FloatArray  # (M, n_traits), on the basis of the population covariance
    # Posterior of one trait's effect, (M, M), where traits are uncorrelated and alike; or (n, M, M): the last n - 1
    # traits have one each, and those before them share the first.
    covariance: FloatArray

    @property
    def stack(self) -> FloatArray:
        """Distinct covariances, (n, M, M)."""
        return self.covariance if self.covariance.ndim == 3 else self.covariance[None]

    def sizes(self, traits: FloatArray) -> FloatArray:
        """By how much each of the stacked covariances counts for people with ``traits`` (n_people, n_traits)."""
        squares = traits**2
        n_shared = traits.shape[1] - len(self.stack) + 1
        return np.hstack([squares[:, :n_shared].sum(axis=1, keepdims=True), squares[:, n_shared:]])

    def spread(self, traits: FloatArray) -> FloatArray:
        """Covariance of the effects on somebody with ``traits`` (n_traits,), (M, M)."""
        size = self.sizes(traits[None])[0]
        used = np.flatnonzero(size)
        return np.asarray(np.tensordot(size[used], self.stack[used], 1))


# Work below which a thread costs more than it saves (units: see ``_costs``; about a millisecond).
_COST_PER_SHARD = 1.5e6
_COST_PER_ENTRY = 60.0  # of the items x items sums of each shard
_MOST_SHARDS = 16
LARGEST_STATE = 600
OF_PEOPLE = {"tie_factor": 1.0, "consistency": 1.0, "consistency_sd": 0.0}  # a number for each user, and its default


@dataclass(frozen=True, slots=True)
class People:
    """Answers sorted by user, with each user's own list of items.

    ``largest_state``: users with min(answers, items) above half of it, or above an eighth of it and with more than
    twice as many answers as items, are *heavy*: dense factorisations are quicker than rank-one updates. So are those
    with a row of more copies than a sixth of it (and than 100), whose digits the updates would lose. 0 makes all users
    heavy.
    """

    answer_ptr: IntArray  # start of each user's answers and items, (n_users + 1,)
    item_ptr: IntArray
    item_idx: npt.NDArray[np.int32]  # each user's own items, ascending global codes
    left: npt.NDArray[np.int32]  # positions in the user's own items, (n_rows,)
    right: npt.NDArray[np.int32]
    outcome: npt.NDArray[np.int8]  # +1, 0 or -1, (n_rows,)
    weight: FloatArray  # number of identical answers in a row, (n_rows,)
    n_items: int
    shards: list[Shard]  # ranges of users, cut by work
    largest_state: int = LARGEST_STATE
    traits: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (n_users, n_traits)
    # multiplies the tie threshold, (n_users,)
    tie_factor: FloatArray = field(default_factory=lambda: np.zeros(0))
    # a_u, (n_users,): the noise of the user's answers has standard deviation 1 / a_u
    consistency: FloatArray = field(default_factory=lambda: np.zeros(0))
    # posterior standard deviation of log a_u, (n_users,)
    consistency_sd: FloatArray = field(default_factory=lambda: np.zeros(0))
    # Covariates of answers: distinct ones, (V, n_covariates), which of them each row has, and x γ, (n_rows,)
    patterns: FloatArray = field(default_factory=lambda: np.zeros((1, 0)))
    variant: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    offset: FloatArray = field(default_factory=lambda: np.zeros(0))
    likelihood: type[PairLikelihood] = Probit  # of one answer
    is_heavy: BoolArray = field(init=False)
    heavy: IntArray = field(init=False)  # codes of heavy users

    def __post_init__(self) -> None:
        if not self.traits.shape[1]:
            object.__setattr__(self, "traits", np.zeros((self.n_users, 0)))
        for name, default in OF_PEOPLE.items():
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(self.n_users, default))
        if not len(self.variant):
            object.__setattr__(self, "variant", np.zeros(self.n_rows, dtype=np.int64))
        if not len(self.offset):
            object.__setattr__(self, "offset", np.zeros(self.n_rows))
        is_heavy = _are_heavy(self.answer_ptr, self.item_ptr, self.weight, self.largest_state)
        object.__setattr__(self, "is_heavy", is_heavy)
        object.__setattr__(self, "heavy", np.flatnonzero(is_heavy))

    @property
    def n_rows(self) -> int:
        """Number of rows (identical answers of a user count once)."""
        return len(self.outcome)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.answer_ptr) - 1

    @property
    def n_active(self) -> int:
        """Number of users with at least one answer."""
        return int(np.count_nonzero(np.diff(self.answer_ptr)))

    @property
    def n_answers(self) -> float:
        """Number of answers: the sum of the weights."""
        return float(self.weight.sum())

    def of_covariates(self, of_rows: FloatArray) -> FloatArray:
        """Xᵀ times numbers of the rows, (n_covariates,)."""
        return np.asarray(self.patterns.T @ np.bincount(self.variant, of_rows, len(self.patterns)))

    def dense(self, user: int, law: Law) -> tuple[npt.NDArray[np.int32], DensePerson | CountedPerson]:
        """A user's own items, and the user in dense form, with utilities times the consistency."""
        items = self.item_idx[self.item_ptr[user] : self.item_ptr[user + 1]]
        rows = slice(self.answer_ptr[user], self.answer_ptr[user + 1])
        a = float(self.consistency[user])
        mean = a * law.person_mean(items, self.traits[user])
        if has_many_copies(self.weight[rows], self.largest_state):
            return items, CountedPerson(self.left[rows], self.right[rows], a * a * law.covariance(items), mean)
        in_pair_space = rows.stop - rows.start <= len(items)
        left, right = self.left[rows], self.right[rows]
        if in_pair_space and not law.has_basis:
            return items, DensePerson(left, right, law.Sigma, mean, items, a)
        prior = a * a * law.covariance(items) if in_pair_space else a * law.root(items)
        return items, DensePerson(left, right, prior, mean)

    def sums(self, user: int, sites: Sites, law: Law) -> tuple[npt.NDArray[np.int32], FloatArray, FloatArray]:
        """A user's own items (k), and x = Xᵀ α (k) and Q = Xᵀ Q_u X (k, k) on them at the stored sites."""
        if self.is_heavy[user]:
            rows = slice(self.answer_ptr[user], self.answer_ptr[user + 1])
            w = self.weight[rows]
            items, person = self.dense(user, law)
            x, Q = person.sums(person.condition(w * sites.precision[rows], w * sites.linear[rows]))
            return items, self.consistency[user] * x, self.consistency[user] ** 2 * Q
        items = self.item_idx[self.item_ptr[user] : self.item_ptr[user + 1]]
        x, Q = person_sums(
            user, self.answer_ptr, self.item_ptr, self.item_idx, self.left, self.right, self.weight, self.traits,
            self.consistency, sites.precision, sites.linear, law.cov, law.functions, law.rho, law.mean, law.shift,
        )  # fmt: skip
        return items, x, Q

    def answers_by_item(self, start: int, stop: int) -> FloatArray:
        """Number of answers on each item of users ``start`` to ``stop``; (stop - start, n_items)."""
        rows = slice(self.answer_ptr[start], self.answer_ptr[stop])
        who = np.repeat(np.arange(start, stop), np.diff(self.answer_ptr[start : stop + 1]))
        counts = np.zeros((stop - start) * self.n_items)
        for side in (self.left, self.right):
            cell = (who - start) * self.n_items + self.item_idx[self.item_ptr[who] + side[rows]]
            counts += np.bincount(cell, self.weight[rows], minlength=len(counts))
        return counts.reshape(stop - start, self.n_items)


def with_own(
    people: People,
    log_tie_factor: FloatArray,
    log_consistency: FloatArray,
    gamma: FloatArray,
    consistency_sd: FloatArray | None = None,
) -> People:
    """People with their own tie thresholds and consistency, by their logarithms, (n_users,), and the effects γ of
    covariates, (n_covariates,); empty leaves them.
    """
    own: dict[str, Any] = {}
    if len(gamma):
        own["offset"] = (people.patterns @ gamma)[people.variant]
    if len(log_tie_factor):
        own["tie_factor"] = np.exp(log_tie_factor)
    if len(log_consistency):
        own["consistency"] = np.exp(log_consistency)
        if consistency_sd is not None:
            own["consistency_sd"] = consistency_sd
    return replace(people, **own) if own else people


def lay_out(comparisons: Comparisons, *, traits: FloatArray | None = None, **options: Any) -> People:
    """Layout of answers by user, O(n log n) time; ``options`` as of :func:`lay_out_columns`.

    DataError if a weight is below 1.
    """
    if n_small := int(np.count_nonzero(comparisons.weight < 1.0)):
        raise DataError(
            f"{n_small} rows have a weight below 1. A weight counts identical answers of one person; personal rankings "
            "need weights of at least 1. Multiply them all, leave such rows out, or rank the crowd alone (--pooled, "
            "personal=False)."
        )
    return lay_out_columns(
        comparisons.user,
        comparisons.left,
        comparisons.right,
        comparisons.outcome,
        comparisons.weight,
        n_items=comparisons.n_items,
        traits=np.zeros((comparisons.n_users, 0)) if traits is None else traits,
        **patterns_of(comparisons),
        **options,
    )


def patterns_of(comparisons: Comparisons) -> dict[str, Any]:
    """Distinct covariates of answers, and which of them each row has, as of :class:`People`; O(n log n)."""
    if comparisons.covariates is None:
        return {}
    patterns, variant = np.unique(comparisons.covariates, axis=0, return_inverse=True)
    return {"patterns": patterns, "variant": variant.reshape(-1)}


def lay_out_columns(
    user: IntArray,
    left: IntArray,
    right: IntArray,
    outcome: npt.NDArray[np.int8],
    weight: FloatArray,
    *,
    n_items: int,
    traits: FloatArray,
    largest_state: int = LARGEST_STATE,
    n_basis: int | None = None,
    likelihood: type[PairLikelihood] = Probit,
    **more: Any,
) -> People:
    """:func:`lay_out` from columns of codes sorted by user; ``traits`` (n_users, n_traits) may have no columns.

    ``n_basis``: columns of the basis, by default the items; others, and ``more``, as in :class:`People`.
    """
    n_users, n = len(traits), len(user)
    user = user.astype(np.int64)
    keys = np.concatenate([user * n_items + left, user * n_items + right])
    unique, position = np.unique(keys, return_inverse=True)
    bounds = np.arange(n_users + 1)
    answer_ptr = np.searchsorted(user, bounds).astype(np.int64)
    item_ptr = np.searchsorted(unique // n_items, bounds).astype(np.int64)
    return People(
        answer_ptr=answer_ptr,
        item_ptr=item_ptr,
        item_idx=(unique % n_items).astype(np.int32),
        left=(position[:n] - item_ptr[user]).astype(np.int32),
        right=(position[n:] - item_ptr[user]).astype(np.int32),
        # Copies: the columns of comparisons are read-only, for which every loop would be compiled a second time.
        outcome=np.array(outcome),
        weight=np.array(weight),
        n_items=n_items,
        shards=shards_of(answer_ptr, item_ptr, weight, n_items, largest_state, n_basis),
        largest_state=largest_state,
        traits=np.ascontiguousarray(traits),
        likelihood=likelihood,
        **more,
    )


def shards_of(
    answer_ptr: IntArray,
    item_ptr: IntArray,
    weight: FloatArray,
    n_items: int,
    largest_state: int,
    n_basis: int | None,
) -> list[Shard]:
    """Ranges of users with about equal work."""
    heavy = _are_heavy(answer_ptr, item_ptr, weight, largest_state)
    return cut(
        _costs(np.diff(answer_ptr), np.diff(item_ptr), heavy, n_basis or 0),
        max(_COST_PER_SHARD, _COST_PER_ENTRY * n_items * (n_basis or n_items)),
        _MOST_SHARDS,
    )


def _costs(n: IntArray, k: IntArray, heavy: BoolArray, n_basis: int) -> FloatArray:
    """Multiply-adds of one EM pass over a user with n answers on k items (a replay, a sweep, the statistics)."""
    d = np.minimum(n, k).astype(float)
    d[heavy] = 0.0  # not worked on in shards
    return np.asarray(200.0 + 60.0 * n + 2.0 * n * d * d + 4.0 * k * k + 0.5 * n_basis * d * (d + 8.0))


def has_many_copies(weight: FloatArray, largest_state: int = LARGEST_STATE) -> bool:
    """Whether rank-one updates would lose too many digits to a row of one user."""
    return bool(weight.max(initial=0.0) > _many_copies(largest_state))


def _many_copies(largest_state: int) -> int:
    # Updates lose the prior variance times the square of (that variance times the copies) ulps: at 100 about 1e-8.
    return max(largest_state, LARGEST_STATE) // 6


def _are_heavy(
    answer_ptr: IntArray,
    item_ptr: IntArray,
    weight: FloatArray,
    largest_state: int,
) -> BoolArray:
    n, k = np.diff(answer_ptr), np.diff(item_ptr)
    size = np.minimum(n, k)
    heavy = (size > largest_state // 2) | ((size > largest_state // 8) & (n > 2 * k))
    if has_many_copies(weight, largest_state):
        many = np.concatenate(([0], np.cumsum(weight > _many_copies(largest_state))))
        heavy |= np.diff(many[answer_ptr]) > 0
    return heavy
