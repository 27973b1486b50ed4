"""Posterior of people's utilities, the one protocol that every model's follows, and utilities of one user."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from predilect._base.stored import SINGLE, amounts, codes, numbers, optional
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.inference.gaussian.dense import (
    covariances,
    factorise,
    moments,
    opposite_draws,
    pack_triangle,
    symmetrise,
    unpack_triangle,
)
from predilect.inference.gaussian.design import pair_variance
from predilect.inference.gaussian.projection import Projection
from predilect.inference.likelihoods.calibration import UNCALIBRATED, Calibration
from predilect.inference.likelihoods.grades import Thresholds
from predilect.inference.likelihoods.probit import margins_in_noise
from predilect.inference.likelihoods.special import TAILS_95, Z_95
from predilect.inference.likelihoods.views import PairLikelihood, Probit

_MOST_PAIRS = 5000
_AT_ONCE = 5_000_000  # draws of utilities
_DENSE_ITEMS = 2000  # items up to which the residual's covariance is formed


class Differences(NamedTuple):
    """Differences of utilities: moments, a 95 % interval, and the probability that they are positive; (n,) each."""

    mean: FloatArray
    variance: FloatArray
    lower: FloatArray
    upper: FloatArray
    p_better: FloatArray


@dataclass(frozen=True, slots=True)
class Utilities:
    """f = mean + [Φ, E_o] s + e with s ~ N(0, covariance) and independent e_i of variance ``own``."""

    mean: Annotated[FloatArray, numbers("I")]
    covariance: FloatArray  # (M + k, M + k), of the basis functions and of k items' residuals
    Phi: Annotated[FloatArray | None, numbers("I *")]  # (n_items, M); None where the items are the basis
    items: Annotated[IntArray, optional(codes("*", "I", "int64"))]  # the k items
    # residual variance of the other items, (n_items,); empty without residuals
    own: Annotated[FloatArray, optional(amounts("I"))]
    # how unsure the unit is in which all are told: sd of a factor of f less its mean over the items; no order changes
    unit_sd: float = field(default=0.0, kw_only=True)

    @property
    def triangle(self) -> Annotated[FloatArray, numbers("*", SINGLE)]:
        """The lower triangle of the covariance, which may be stored in single precision."""
        return pack_triangle(self.covariance)

    @classmethod
    def restored(
        cls, mean: FloatArray, triangle: FloatArray, Phi: FloatArray | None, items: IntArray | None = None,
        own: FloatArray | None = None,
    ) -> Self:  # fmt: skip
        """Utilities of a saved model; ValueError if the covariance is of other values."""
        items, own = np.zeros(0, dtype=np.int64) if items is None else items, np.zeros(0) if own is None else own
        size = len(mean) if Phi is None else Phi.shape[1] + len(items)
        if len(triangle) != size * (size + 1) // 2 or (Phi is None and len(items) + len(own)):
            raise ValueError(f"a covariance of {len(triangle)} entries, of {size} values")
        return cls(mean, unpack_triangle(triangle), Phi, items, own)

    @classmethod
    def of(cls, mean: FloatArray, covariance: FloatArray) -> Self:
        """From mean (n_items,) and covariance (n_items, n_items) of the items themselves."""
        return cls(mean, covariance, None, np.zeros(0, dtype=np.int64), np.zeros(0))

    @classmethod
    def through(cls, projection: Projection, mean: FloatArray, covariance: FloatArray, residual: float) -> Self:
        """Utilities f = A f_m + r with f_m ~ N(mean, covariance) and r ~ N(0, ``residual`` R).

        Exact up to 2 000 items; beyond, with the diagonal of R: variances of single utilities are right, those of
        differences between close neighbours too large.
        """
        A, f = projection.A, projection.expand(mean)
        if A is None:
            return cls.of(f, covariance)
        if projection.n_items > _DENSE_ITEMS:
            return cls(f, covariance, A, np.zeros(0, dtype=np.int64), residual * projection.own)
        return cls.of(f, symmetrise(A @ covariance @ A.T + residual * projection.residual()))

    def times(self, factor: float) -> Self:
        """The utilities multiplied."""
        if factor == 1.0:
            return self
        square = factor * factor
        return replace(self, mean=factor * self.mean, covariance=square * self.covariance, own=square * self.own)

    def in_sure_unit(self) -> Self:
        """The same, of which a multiple says as much."""
        return replace(self, unit_sd=0.0) if self.unit_sd else self

    def widened(self, factor: float) -> Self:
        """The same means, with variances multiplied."""
        if factor == 1.0:
            return self
        return replace(self, covariance=factor * self.covariance, own=factor * self.own)

    def rows(self) -> FloatArray:
        """[Φ, E_o], (n_items, M + k)."""
        assert self.Phi is not None
        if not len(self.items):
            return self.Phi
        rows = np.zeros((len(self.mean), len(self.covariance)))
        rows[:, : self.Phi.shape[1]] = self.Phi
        rows[self.items, self.Phi.shape[1] + np.arange(len(self.items))] = 1.0
        return rows

    def among(self, items: IntArray) -> Self:
        """Utilities of some different items, by code, in this order."""
        if self.Phi is None:
            return replace(self, mean=self.mean[items], covariance=self.covariance[np.ix_(items, items)])
        place = np.full(len(self.mean), -1)
        place[items] = np.arange(len(items))
        M, kept = self.Phi.shape[1], np.flatnonzero(place[self.items] >= 0)
        state = np.append(np.arange(M), M + kept)
        own = self.own[items] if len(self.own) else self.own
        return replace(
            self, mean=self.mean[items], covariance=self.covariance[np.ix_(state, state)], Phi=self.Phi[items],
            items=place[self.items[kept]], own=own,
        )  # fmt: skip

    def combined(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (q,) and covariance (q, q) of A f, for ``A`` (q, n_items); linear in the items with functions."""
        used = np.flatnonzero(A.any(axis=0))
        at = used if 2 * len(used) < A.shape[1] else slice(None)  # a few of very many items
        B = A[:, at]
        rows = A if self.Phi is None else np.hstack([B @ self.Phi[at], A[:, self.items]])
        covariance = rows @ self.covariance @ rows.T
        return B @ self.mean[at], symmetrise(covariance + (B * self.own[at]) @ B.T if len(self.own) else covariance)

    def dense(self) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items)."""
        if self.Phi is None:
            return self.mean, self.covariance
        rows = self.rows()
        covariance = rows @ self.covariance @ rows.T
        if len(self.own):
            covariance[np.diag_indices(len(covariance))] += self.own
        return self.mean, symmetrise(covariance)

    def margins(self, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f(left) - f(right), (n,)."""
        mean = self.mean[left] - self.mean[right]
        var = pair_variance(self.covariance, left, right, None if self.Phi is None else self.rows())
        return mean, var + self.own[left] + self.own[right] if len(self.own) else var

    def centred_marginals(self, weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each utility less the mean over the items, (n_items,).

        ``weights``: of that mean, (n_items,), with sum 1; by default all the same.
        """
        if weights is None:
            mean, var = self.mean - self.mean.mean(), self._variance_about_all()
        else:
            mean, var = self.mean - weights @ self.mean, self._variance_about(weights)
        return mean, var + (self.unit_sd * mean) ** 2

    def _variance_about_all(self) -> FloatArray:
        """Variances of utilities less their mean, (n_items,), in a unit that is sure."""
        n = len(self.mean)
        if self.Phi is None:
            row = self.covariance.mean(axis=0)
            return np.asarray(np.diagonal(self.covariance) - 2.0 * row + row.mean())
        rows = self.rows()
        rows = rows - rows.mean(axis=0)
        var: FloatArray = np.einsum("ij,ij->i", rows @ self.covariance, rows)
        if len(self.own):
            var = var + self.own * (1.0 - 2.0 / n) + self.own.mean() / n
        return var

    def _variance_about(self, weights: FloatArray) -> FloatArray:
        """Variances of utilities less their weighted mean, (n_items,), in a unit that is sure."""
        if self.Phi is None:
            row = self.covariance @ weights
            return np.diagonal(self.covariance) - 2.0 * row + weights @ row
        rows = self.rows()
        rows = rows - weights @ rows
        var: FloatArray = np.einsum("ij,ij->i", rows @ self.covariance, rows)
        if len(self.own):
            var = var + self.own * (1.0 - 2.0 * weights) + weights**2 @ self.own
        return var

    def centred_reach(self, weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """How far 95 % intervals of :meth:`centred_marginals` go below and above the mean, (n_items,) each."""
        reach = Z_95 * np.sqrt(np.maximum(self.centred_marginals(weights)[1], 0.0))
        return reach, reach

    def differences(self, left: IntArray, right: IntArray) -> Differences:
        """What is known of f(left) - f(right), (n,)."""
        mean, variance = self.margins(left, right)
        p_better = _p_positive(mean, np.sqrt(np.maximum(variance, 0.0)))
        variance = variance + (self.unit_sd * mean) ** 2
        reach = Z_95 * np.sqrt(np.maximum(variance, 0.0))
        return Differences(mean, variance, mean - reach, mean + reach, p_better)

    def p_better(self, left: IntArray, right: IntArray) -> FloatArray:
        """Probability of f(left) > f(right), (n,); half where both are the same."""
        mean, variance = self.margins(left, right)
        return _p_positive(mean, np.sqrt(np.maximum(variance, 0.0)))

    def opposite_draws(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Joint draws whose mean is exact, (n_draws, n_items)."""
        return opposite_draws(*self.dense(), n_draws, rng)

    def root(self) -> FloatArray:
        """A factor of the covariance, from which :meth:`draws` are made."""
        return factorise(self.covariance).lower

    def draws(self, n_draws: int, rng: np.random.Generator, root: FloatArray) -> FloatArray:
        """Joint draws, (n_draws, n_items), with ``root`` a factor of the covariance."""
        normal = rng.standard_normal((n_draws, root.shape[1])) @ root.T
        if self.Phi is None:
            return self.mean + normal
        M = self.Phi.shape[1]
        out = normal[:, :M] @ self.Phi.T
        out[:, self.items] += normal[:, M:]
        if len(self.own):
            out += np.sqrt(self.own) * rng.standard_normal(out.shape)
        return np.asarray(out + self.mean)


@dataclass(frozen=True, slots=True)
class DrawnUtilities(Utilities):
    """Utilities Φ s with s known by draws, which need not be normal: intervals and chances are theirs.

    ``mean`` and ``covariance`` are moments of the draws.
    """

    sample: FloatArray  # (R, M)

    @classmethod
    def drawn(cls, Phi: FloatArray, sample: FloatArray) -> Self:
        """From columns of the items (n_items, M) and draws of their coefficients (R, M)."""
        mean, covariance = moments(sample)
        return cls(Phi @ mean, covariance, Phi, np.zeros(0, dtype=np.int64), np.zeros(0), sample)

    def centred_reach(self, weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Down to the 2.5 % and up to the 97.5 % quantile of the draws."""
        assert self.Phi is not None
        columns = self.Phi - (self.Phi.mean(axis=0) if weights is None else weights @ self.Phi)
        reach = np.empty((2, len(columns)))
        step = max(1, _AT_ONCE // len(self.sample))
        for start in range(0, len(columns), step):
            f = columns[start : start + step] @ self.sample.T
            low, high = np.quantile(f, TAILS_95, axis=1)
            reach[:, start : start + step] = f.mean(axis=1) - low, high - f.mean(axis=1)
        return reach[0], reach[1]

    def differences(self, left: IntArray, right: IntArray) -> Differences:
        """Quantiles and shares of the draws."""
        z = self._drawn_differences(left, right)
        lower, upper = np.quantile(z, TAILS_95, axis=1)
        return Differences(*self.margins(left, right), lower, upper, _share_positive(z))

    def p_better(self, left: IntArray, right: IntArray) -> FloatArray:
        """Shares of the draws."""
        return _share_positive(self._drawn_differences(left, right))

    def _drawn_differences(self, left: IntArray, right: IntArray) -> FloatArray:
        """Draws of f(left) - f(right), (n, R)."""
        assert self.Phi is not None
        return np.asarray((self.Phi[left] - self.Phi[right]) @ self.sample.T)

    def opposite_draws(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """The draws themselves."""
        return self.draws(n_draws, rng, self.root())

    def root(self) -> FloatArray:
        """None: few draws may all be the same, whose covariance has no factor."""
        return np.zeros((0, 0))

    def draws(self, n_draws: int, rng: np.random.Generator, root: FloatArray) -> FloatArray:
        """Each draw as often as any other, but for one; ``root`` makes no difference."""
        assert self.Phi is not None
        return np.asarray(self.sample[np.resize(rng.permutation(len(self.sample)), n_draws)] @ self.Phi.T)


def _p_positive(mean: FloatArray, sd: FloatArray) -> FloatArray:
    """Probability that normal numbers are positive, (n,); half where one is 0 for sure."""
    z = np.divide(mean, sd, out=np.where(mean == 0.0, 0.0, np.copysign(np.inf, mean)), where=sd > 0.0)
    return np.asarray(ndtr(z))


def _share_positive(draws: FloatArray) -> FloatArray:
    """Share of draws (n, R) that are positive, those that are 0 counting half; (n,)."""
    return np.asarray(0.5 * ((draws > 0.0).mean(axis=1) + (draws >= 0.0).mean(axis=1)))


class Posterior(Protocol):
    """Posterior of people's utilities, by codes of people (-1: an unseen user) and of items.

    A model's posterior inherits from it, gives the first four, and replaces what it knows better.
    """

    __slots__ = ()

    by_utilities: ClassVar[bool] = True  # answers are about the utilities of two items, and nothing else
    is_pooled: ClassVar[bool] = False  # one function for all users
    is_compressed: ClassVar[bool] = False  # some items of each person were dropped already

    @property
    def thresholds(self) -> Thresholds | None:
        """Cuts of grades, and factors of items that tie more or less than others; None without."""
        return None

    @property
    def shifts_newcomers(self) -> bool:
        """Whether newcomers have another mean than the people whom the population was learned from."""
        return False

    @property
    def has_moved(self) -> bool:
        """Whether the crowd, and people without answers, moved with answers that came after the fit, and others not."""
        return False

    def newcomers_mean(self) -> FloatArray | None:
        """Mean of newcomers who have answered, (n_items,); None where it is that of everybody."""
        return None

    @property
    def n_items(self) -> int:
        """Number of items."""
        ...

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), (n,)."""
        ...

    def person(self, user: int = -1) -> Utilities:
        """Utilities of one user."""
        ...

    def crowd(self) -> Utilities:
        """Utilities of the crowd."""
        ...

    def about_crowd(self, user: int, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean of one user's margins, the variance within the user, and what the crowd's makes of it, (n,) each.

        The last two sum to the variance of :meth:`margins`. Where a model does not tell them apart, all of the crowd's
        variance counts, as for somebody without answers.
        """
        mean, var = self.margins(np.full(len(left), user), left, right)
        shared = np.minimum(self.crowd().margins(left, right)[1], var)
        return mean, var - shared, shared

    def information_of_answers(self, n_people: int | None = None) -> tuple[FloatArray, FloatArray | None]:
        """Information that an answer adds about the crowd's utilities, in their state, (M, M), on average.

        And all that may still be added where there are ``n_people`` in all, None where their number is open. Here of an
        answer about any two items, of somebody without answers; what is learned of people is not known to end.
        """
        crowd = self.crowd()
        n, rows = len(crowd.mean), np.eye(len(crowd.mean)) if crowd.Phi is None else crowd.rows()
        left, right = np.triu_indices(n, 1)
        if len(left) > _MOST_PAIRS:
            some = np.linspace(0, len(left) - 1, _MOST_PAIRS).astype(np.int64)
            left, right = left[some], right[some]
        mean, within, _ = self.about_crowd(-1, left, right)
        unit = np.sqrt(1.0 + np.maximum(within, 0.0))
        x = mean / unit
        information = np.exp(-x * x - log_ndtr(x) - log_ndtr(-x)) / (2.0 * np.pi * unit**2)
        X = rows[left] - rows[right]
        return (X.T * information) @ X / len(left), None

    def calibrated(self, user: int = -1) -> Utilities:
        """Utilities of one user as boards and questions take them: with the variances that :meth:`widenings` says."""
        return self.person(user).widened(float(self.widenings(np.array([user]))[0]))

    def widenings(self, users: IntArray) -> FloatArray:
        """Factors of the variances of users' utilities, (n,)."""
        return np.ones(len(users))

    def prior(self) -> Utilities | None:
        """Utilities of anybody before their own answers; of one function for all, before any answer.

        None if there is no such: users have priors of their own, by their features, or it is not known.
        """
        return None if self.is_pooled else self.person(-1)

    def prior_of(self, user: int) -> Utilities | None:
        """Utilities of one user before their own answers, which may be the user's own by features; None if unknown."""
        return self.prior()

    def persons(self, users: IntArray) -> Iterator[Utilities]:
        """Utilities of users, one after the other, equal to :meth:`person`."""
        return (self.person(user) for user in np.asarray(users).tolist())

    def utilities(self, user: int = -1) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items) of one user's utilities."""
        return self.person(user).dense()

    def centred_utilities(
        self, users: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of users' utilities, centred over the items; (n_users, n_items)."""
        found = [utilities.centred_marginals() for utilities in self.persons(users)]
        shape = (len(users), self.n_items)
        return np.array([m for m, _ in found]).reshape(shape), np.array([v for _, v in found]).reshape(shape)

    # Answers

    def answered_rows(self, user: int) -> tuple[IntArray, IntArray, IntArray] | None:
        """Items of the answers of one user, left and right, and the task that rows share, -1 for none.

        None if the posterior does not hold answers.
        """
        return None

    def pair_kinds(self, users: IntArray, left: IntArray, right: IntArray) -> npt.NDArray[np.int8]:
        """Kinds of pairs by their users' answers, as :class:`Calibration` distinguishes them, (n,)."""
        return np.zeros(len(users), dtype=np.int8)

    def without_answers(self, users: IntArray) -> BoolArray:
        """Whether users have no answers, (n,), where that matters for their tie thresholds."""
        return np.zeros(len(users), dtype=bool)

    def tie_factors(self, users: IntArray) -> FloatArray:
        """Factors of users' tie thresholds, (n,)."""
        return np.ones(len(users))

    def tie_factors_of_pairs(self, left: IntArray, right: IntArray) -> FloatArray | float:
        """Factors of the tie thresholds of pairs, (n,), or 1."""
        return 1.0 if self.thresholds is None else self.thresholds.of_pairs(left, right)

    def consistencies(self, users: IntArray) -> tuple[FloatArray, FloatArray]:
        """Consistency of users and the standard deviation of its logarithm, (n,): noise is 1 over it."""
        return np.ones(len(users)), np.zeros(len(users))

    def consistency_of(self, user: int) -> float:
        """That of one user: utilities times it are in units of the noise of the user's own answers."""
        return float(self.consistencies(np.array([user]))[0][0])

    @property
    def calibration(self) -> Calibration:
        """Calibration of predictions."""
        return UNCALIBRATED

    def outcome_proba(
        self, mean: FloatArray, var: FloatArray, users: IntArray, left: IntArray, right: IntArray, delta: float,
        likelihood: type[PairLikelihood] = Probit,
    ) -> FloatArray:  # fmt: skip
        """Probabilities of left, tie and right, (n, 3), at margins with this mean and variance; δ is ``delta``."""
        mean, var = self.in_units_of_noise(mean, var, users)
        return self.calibration.outcome_proba(mean, var, delta, *self._standing(users, left, right), likelihood)

    def outcome_log_proba(
        self, mean: FloatArray, var: FloatArray, users: IntArray, left: IntArray, right: IntArray, delta: float,
        likelihood: type[PairLikelihood] = Probit,
    ) -> FloatArray:  # fmt: skip
        """Logarithms of :meth:`outcome_proba`."""
        mean, var = self.in_units_of_noise(mean, var, users)
        return self.calibration.outcome_log_proba(mean, var, delta, *self._standing(users, left, right), likelihood)

    def in_units_of_noise(self, mean: FloatArray, var: FloatArray, users: IntArray) -> tuple[FloatArray, FloatArray]:
        """Margins in units of the noise of users' own answers."""
        return margins_in_noise(mean, var, *self.consistencies(users))

    def _standing(
        self, users: IntArray, left: IntArray, right: IntArray
    ) -> tuple[FloatArray | float, BoolArray | None, npt.ArrayLike]:
        """Factors of tie thresholds, which of them are unknown, and kinds of pairs, where they matter."""
        kind = self.pair_kinds(users, left, right) if self.calibration.depends_on_pair else 0
        of_pairs = self.tie_factors_of_pairs(left, right)
        if not self.calibration.tie_spread:
            return of_pairs, None, kind
        return of_pairs * self.tie_factors(users), self.without_answers(users), kind

    # Compression

    def kept(self, user: int) -> IntArray:
        """Items of one user that were kept, ascending: all, unless the posterior is compressed."""
        return np.arange(self.n_items)

    def restricted(self, users: IntArray, items: IntArray) -> Posterior | None:
        """Posterior given only the utilities of (``users``, ``items``), all together; vvm.md 3, not ``local``.

        None if users are independent given the crowd, so that there is nothing between them to keep.
        """
        return None


def centre(mean: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (n,) and covariance (n, n) of utilities centred over the items: only differences are identified."""
    row = covariance.mean(axis=0)
    return mean - mean.mean(), covariance - row[None, :] - row[:, None] + row.mean()


@dataclass(frozen=True, slots=True)
class GaussianPosterior(Posterior):
    """Pooled utilities f ~ N(mean, covariance), or f = Φ m with m ~ N(mean, covariance), the same for every user."""

    is_pooled: ClassVar[bool] = True

    mean: Annotated[FloatArray, numbers("M")]  # of the items by default
    covariance: Annotated[FloatArray, covariances("M M")]
    Phi: Annotated[FloatArray | None, numbers("I M")] = None  # basis functions of the items

    @property
    def n_items(self) -> int:
        return len(self.mean if self.Phi is None else self.Phi)

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f(left) - f(right), (n,); ``users`` makes no difference."""
        return self.person().margins(left, right)

    def person(self, user: int = -1) -> Utilities:
        if self.Phi is None:
            return Utilities.of(self.mean, self.covariance)
        return Utilities(self.Phi @ self.mean, self.covariance, self.Phi, np.zeros(0, dtype=np.int64), np.zeros(0))

    def crowd(self) -> Utilities:
        return self.person()

    def extended(self, A: FloatArray, R: FloatArray, *, consensus_variance: float) -> GaussianPosterior:
        """With new items: mean A f, covariance s_t R + A C Aᵀ (population.md section 6).

        A = K_*o K_oo⁻¹ (n_new, n_items), R = K_** - A K_o* (n_new, n_new); ``consensus_variance`` is s_t.
        """
        cross = A @ self.covariance
        block = np.block([[self.covariance, cross.T], [cross, consensus_variance * R + cross @ A.T]])
        return GaussianPosterior(np.concatenate([self.mean, A @ self.mean]), symmetrise(block))
