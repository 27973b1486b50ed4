"""Posterior of a few kept items a person: their moments, all else by the population distribution."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from predilect._base.stored import (
    PART,
    SINGLE,
    SMALL,
    amounts,
    codes,
    flags,
    numbers,
    optional,
    pointer,
    positive,
    unless,
)
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.inference.gaussian.dense import factorise, symmetrise, unpack_triangle
from predilect.inference.gaussian.posterior import Posterior, Utilities
from predilect.inference.likelihoods.calibration import CALIBRATION, UNCALIBRATED, Calibration
from predilect.inference.likelihoods.grades import Thresholds
from predilect.inference.people.queries import IMPLIED, NEWCOMER


@dataclass(frozen=True, slots=True)
class ItemSelection:
    """Items that people keep."""

    ptr: IntArray  # (n_users + 1,): person u keeps items[ptr[u]:ptr[u + 1]], ascending
    items: IntArray  # (n_kept,)

    @classmethod
    def of(cls, kept: list[IntArray]) -> ItemSelection:
        """From the items of each person, ascending."""
        return cls(np.concatenate([[0], np.cumsum([len(items) for items in kept])]), np.concatenate(kept))

    @property
    def users(self) -> IntArray:
        """Person of each kept item, shape (n_kept,)."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))


@dataclass(frozen=True, slots=True, eq=False)
class SubsetPosterior(Posterior):
    """q(f_uS) = N(mean, covariance) of the items S_u that each person keeps; the rest by the population distribution.

    A dropped item i has f_i | f_S of that distribution: with A = C_iS C_SS⁻¹ mean m_i + A (μ_S - m_S) and covariance
    C_ii - A C_SS Aᵀ + A Σ_SS Aᵀ. ``implied`` packs eight cells of ``triangles`` a byte: pairs of kept items ordered by
    transitivity of the answers; empty where that makes no difference. The person's answers on dropped items are lost,
    and so are covariances with other people's kept items. Of a ``pooled`` model, whose crowd is its one person, all
    is the crowd's. vvm.md 3, ``local``; the paper does not say how anything is predicted from what is kept.
    n_kept (r + 5) / 2 numbers and n_items² for population and crowd; a pair of kept items costs two searches, one with
    a dropped item r² (and r³ once a person).
    """

    is_compressed: ClassVar[bool] = True

    # (n_users + 1,): person u keeps items[ptr[u]:ptr[u + 1]], ascending
    ptr: Annotated[IntArray, pointer("U+1", "K", f"int64|{SMALL}")]
    items: Annotated[IntArray, codes("K", "I", f"int64|{SMALL}")]  # (n_kept,)
    mean: Annotated[FloatArray, numbers("K", SINGLE)]  # (n_kept,), μ_S
    # (Σ r_u (r_u + 1) / 2,), lower triangles of Σ_SS, row by row
    triangles: Annotated[FloatArray, numbers("*", SINGLE)]
    law: Annotated[Utilities, PART]  # N(m, C), the population distribution; of a pooled model the prior
    whole: Annotated[Utilities, PART]  # the crowd
    # (n_kept,), answers of the person on each kept item
    n_answers: Annotated[FloatArray, amounts("K", f"float64|{SMALL}")]
    # (n_users,), factor of the tie threshold
    tie_factor: Annotated[FloatArray, unless(1.0, positive("U"))] = field(default_factory=lambda: np.zeros(0))
    unseen: Annotated[Utilities | None, PART] = None  # an unseen user, where that is not law
    implied: Annotated[npt.NDArray[np.uint8], optional(numbers("*", "uint8"))] = field(
        default_factory=lambda: np.zeros(0, dtype=np.uint8)
    )
    calibration: Annotated[Calibration, CALIBRATION] = UNCALIBRATED
    # (n_users,), who came after the fit, where they are predicted differently
    newcomers: Annotated[BoolArray | None, flags("U")] = None
    # (n_items,), mean of those; None where it is that of everybody
    later_mean: Annotated[FloatArray | None, numbers("I")] = None
    # (n_users, 2): consistency and standard deviation of its logarithm; None where all are alike
    consistency: Annotated[FloatArray | None, amounts("U 2")] = None
    # (n_items,), ψ of the items' ties; or none
    item_ties: Annotated[FloatArray, optional(numbers("I"))] = field(default_factory=lambda: np.zeros(0))
    pooled: bool = False  # one function for all, which is person 0
    _start: IntArray = field(init=False, repr=False)
    _keys: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        r = np.diff(self.ptr)
        if not len(self.tie_factor):
            object.__setattr__(self, "tie_factor", np.ones(len(r)))
        object.__setattr__(self, "_start", np.concatenate([[0], np.cumsum(r * (r + 1) // 2)]))
        who = np.repeat(np.arange(len(r)), r)
        object.__setattr__(self, "_keys", who * self.n_items + self.items)
        if self._start[-1] != len(self.triangles) or len(self.mean) != len(self.items) or self.ptr[-1] != len(who):
            raise ValueError(f"{len(self.items)} kept items, but {len(self.mean)} means, {len(self.triangles)} moments")
        if (np.diff(self._keys) <= 0).any():
            raise ValueError("the kept items of a person must ascend")
        if len(self.implied) not in (0, -(-len(self.triangles) // 8)):
            raise ValueError(f"{len(self.implied)} bytes say which of {len(self.triangles)} pairs are implied")

    @property
    def n_items(self) -> int:
        return len(self.law.mean)

    @property
    def n_users(self) -> int:
        """Number of people; 1 for a pooled model."""
        return len(self.ptr) - 1

    @property
    def n_kept(self) -> int:
        """Number of utilities that are kept."""
        return len(self.items)

    def kept(self, user: int) -> IntArray:
        return self.items[self.ptr[user] : self.ptr[user + 1]]

    def holds(self, users: IntArray, items: IntArray) -> BoolArray:
        """Whether people keep items, (n,)."""
        return np.asarray(self.places(users, items) >= 0)

    def answer_counts(self, start: int, stop: int) -> FloatArray:
        """Answers of people on the items they keep, (stop - start, n_items)."""
        counts = np.zeros((stop - start, self.n_items))
        some = slice(self.ptr[start], self.ptr[stop])
        who = np.repeat(np.arange(stop - start), np.diff(self.ptr[start : stop + 1]))
        counts[who, self.items[some]] = self.n_answers[some]
        return counts

    def moments(self, user: int) -> tuple[FloatArray, FloatArray]:
        """Mean (r,) and covariance (r, r) of a person's kept items."""
        covariance = unpack_triangle(self.triangles[self._start[user] : self._start[user + 1]])
        return self.mean[self.ptr[user] : self.ptr[user + 1]], covariance

    def places(self, users: IntArray, items: IntArray) -> IntArray:
        """Positions (n,) of items among those kept by people; -1 for a dropped or new item or an unknown person."""
        users, items = self._people(users), np.asarray(items, dtype=np.int64)
        if not len(self._keys):
            return np.full(len(users), -1)
        key = users * self.n_items + items
        place = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        known = (users >= 0) & (items < self.n_items)  # or a new item has the key of another person's item
        return np.asarray(np.where(known & (self._keys[place] == key), place, -1))

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        users, left, right = self._people(users), np.asarray(left), np.asarray(right)
        if self.pooled:
            return self.whole.margins(left, right)
        mean, var = np.empty(len(users)), np.empty(len(users))
        a, b = self.places(users, left), self.places(users, right)
        both = np.flatnonzero((a >= 0) & (b >= 0))
        u, a, b = users[both], a[both], b[both]
        mean[both] = self.mean[a] - self.mean[b]
        moments = [self.triangles[self._cells(u, i, j)] for i, j in ((a, a), (b, b), (a, b))]
        var[both] = moments[0] + moments[1] - 2.0 * moments[2]
        open_ = np.ones(len(users), dtype=bool)
        open_[both] = False
        unknown = np.flatnonzero(open_ & (users < 0))
        if len(unknown):
            somebody = self.law if self.unseen is None else self.unseen
            mean[unknown], var[unknown] = somebody.margins(left[unknown], right[unknown])
        rest = np.flatnonzero(open_ & (users >= 0))
        if len(rest):
            of_law = self.law.margins(left[rest], right[rest])
            order = rest[np.argsort(users[rest], kind="stable")]
            mean[rest], var[rest] = of_law
            if self.later_mean is not None and self.newcomers is not None:
                later = rest[self.newcomers[users[rest]]]
                mean[later] = self.later_mean[left[later]] - self.later_mean[right[later]]
            for rows in np.split(order, np.flatnonzero(np.diff(users[order])) + 1):
                S, alpha, D = self._pull(int(users[rows[0]]))
                items, place = np.unique(np.concatenate([left[rows], right[rows]]), return_inverse=True)
                cross = covariance_between(self.law, items, S)
                x = cross[place[: len(rows)]] - cross[place[len(rows) :]]
                mean[rows] += x @ alpha
                var[rows] -= np.einsum("ij,ij->i", x @ D, x)
        return mean, np.maximum(var, 0.0)

    def person(self, user: int = -1) -> Utilities:
        user = int(self._people(np.array([user]))[0])
        if self.pooled:
            return self.whole
        if user < 0:
            return self.law if self.unseen is None else self.unseen
        law, (S, alpha, D) = self._law(user), self._pull(user)
        mu, Sigma = self.moments(user)
        if law.Phi is None:
            cross = law.covariance[:, S]
            mean, covariance = law.mean + cross @ alpha, symmetrise(law.covariance - cross @ D @ cross.T)
            mean[S], covariance[np.ix_(S, S)] = mu, Sigma  # the same but for rounding
            return Utilities.of(mean, covariance)
        own = law.own if len(law.own) else np.zeros(self.n_items)
        rows, k = law.rows(), len(law.covariance)
        P = np.zeros((k + len(S), k + len(S)))
        P[:k, :k], P[k + np.arange(len(S)), k + np.arange(len(S))] = law.covariance, own[S]
        cross = P @ np.hstack([rows[S], np.eye(len(S))]).T
        move = cross @ alpha
        mean = law.mean + rows @ move[:k]
        mean[S] = mu
        rest = own.copy()
        rest[S] = 0.0
        return Utilities(mean, symmetrise(P - cross @ D @ cross.T), rows, S.astype(np.int64), rest)

    def crowd(self) -> Utilities:
        return replace(self.whole, unit_sd=self.calibration.unit_sd)

    def with_items(self, n_new: int) -> SubsetPosterior:
        """With unseen items appended, each distributed like one of the population's items."""
        of_law, unseen = _variance_of_an_item(self.law), self.unseen
        if unseen is not None:
            unseen = _with_independent(unseen, n_new, _variance_of_an_item(unseen))
        law, whole = (_with_independent(one, n_new, of_law) for one in (self.law, self.whole))
        later = self.later_mean
        if later is not None:
            later = np.append(later, np.full(n_new, later.mean()))
        return replace(self, law=law, whole=whole, unseen=unseen, later_mean=later)

    def pair_kinds(self, users: IntArray, left: IntArray, right: IntArray) -> npt.NDArray[np.int8]:
        """As of a population's posterior; a dropped item counts as one without an answer."""
        if self.pooled:
            return np.zeros(len(users), dtype=np.int8)
        users = self._people(users)
        seen = np.append(self.n_answers > 0.0, False)
        places = [self.places(users, side) for side in (left, right)]
        kind = np.asarray(2 - sum(seen[place].astype(np.int8) for place in places), dtype=np.int8)
        known = np.flatnonzero((places[0] >= 0) & (places[1] >= 0))
        if len(self.implied) and len(known):
            cell = self._cells(users[known], places[0][known], places[1][known])
            marks = (self.implied[cell // 8] >> (7 - cell % 8).astype(np.uint8)) & 1  # as np.packbits has them
            kind[known[marks > 0]] = IMPLIED
        later = np.zeros(self.n_users, dtype=bool) if self.newcomers is None else self.newcomers
        kind[np.append(later, True)[users]] += NEWCOMER
        return kind

    def without_answers(self, users: IntArray) -> BoolArray:
        """Whether people have no answers on the items they keep and no known tie threshold of their own."""
        users = self._people(users)
        sums = np.concatenate([[0.0], np.cumsum(self.n_answers)])
        total = np.append(sums[self.ptr[1:]] - sums[self.ptr[:-1]], 0.0)
        own = np.append(self.tie_factor != 1.0, False)
        return np.asarray((total[users] == 0.0) & ~own[users])

    def tie_factors(self, users: IntArray) -> FloatArray:
        """Factors of the tie threshold for people, by code; 1 for an unknown person."""
        return np.append(self.tie_factor, 1.0)[self._people(users)]

    @property
    def thresholds(self) -> Thresholds | None:
        return Thresholds(np.ones(1), self.item_ties) if len(self.item_ties) else None

    def consistencies(self, users: IntArray) -> tuple[FloatArray, FloatArray]:
        known = np.tile([1.0, 0.0], (self.n_users, 1)) if self.consistency is None else self.consistency
        found = np.vstack([known, [1.0 / self.calibration.unit, self.calibration.consistency_spread]])[
            self._people(users)
        ]
        return found[:, 0], found[:, 1]

    def _cells(self, users: IntArray, first: IntArray, second: IntArray) -> IntArray:
        """Positions in ``triangles`` of pairs of kept items."""
        i, j = np.maximum(first, second) - self.ptr[users], np.minimum(first, second) - self.ptr[users]
        return np.asarray(self._start[users] + i * (i + 1) // 2 + j)

    def _people(self, users: IntArray) -> IntArray:
        codes: IntArray = np.zeros(len(users), dtype=np.int64) if self.pooled else np.asarray(users, dtype=np.int64)
        return codes

    def _law(self, user: int) -> Utilities:
        """The population distribution that a person is a draw of."""
        later = self.newcomers is not None and self.newcomers[user]
        return replace(self.law, mean=self.later_mean) if later and self.later_mean is not None else self.law

    def _pull(self, user: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """S, C_SS⁻¹ (μ - m_S) and C_SS⁻¹ - C_SS⁻¹ Σ C_SS⁻¹: regression of the other items on a person's kept ones."""
        S = self.kept(user)
        mu, Sigma = self.moments(user)
        factor = factorise(covariance_between(self.law, S, S))
        inverse = factor.inverse()
        alpha = factor.solve(mu - self._law(user).mean[S])
        return S, alpha, symmetrise(inverse - inverse @ Sigma @ inverse)


def covariance_between(utilities: Utilities, first: IntArray, second: IntArray) -> FloatArray:
    """Covariance of utilities of some items with those of others, shape (n, m)."""
    if utilities.Phi is None:
        return np.asarray(utilities.covariance[np.ix_(first, second)])
    rows = utilities.Phi
    if len(utilities.items):
        rows = utilities.rows()
    block = rows[first] @ utilities.covariance @ rows[second].T
    if len(utilities.own):
        block += (np.asarray(first)[:, None] == np.asarray(second)) * utilities.own[first][:, None]
    return np.asarray(block)


def marginal_variances(utilities: Utilities) -> FloatArray:
    """Variance of each utility, its constant included; shape (n_items,)."""
    if utilities.Phi is None:
        return np.array(np.diagonal(utilities.covariance))
    rows = utilities.rows()
    var = np.einsum("ij,ij->i", rows @ utilities.covariance, rows)
    return np.asarray(var + utilities.own if len(utilities.own) else var)


def _variance_of_an_item(utilities: Utilities) -> float:
    return float(marginal_variances(utilities).mean() + utilities.mean.var())


def _with_independent(utilities: Utilities, n_new: int, variance: float) -> Utilities:
    n = len(utilities.mean)
    mean = np.append(utilities.mean, np.full(n_new, utilities.mean.mean()))
    new = np.full(n_new, variance)
    if utilities.Phi is None:
        C = np.zeros((n + n_new, n + n_new))
        C[:n, :n] = utilities.covariance
        C[np.arange(n, n + n_new), np.arange(n, n + n_new)] = new
        return Utilities.of(mean, C)
    own = np.append(utilities.own if len(utilities.own) else np.zeros(n), new)
    Phi = np.vstack([utilities.Phi, np.zeros((n_new, utilities.Phi.shape[1]))])
    return Utilities(mean, utilities.covariance, Phi, utilities.items, own)
