"""Posterior of a mixed logit: draws of people's coefficients and of the population, of which everything is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit, logsumexp, ndtri

from predilect._base.stored import PART, numbers
from predilect._base.types import FloatArray, IntArray
from predilect.choice.mixed_logit.attributes import NORMAL, ItemColumns
from predilect.choice.mixed_logit.nested import Nests
from predilect.choice.mixed_logit.problem import Mixture
from predilect.inference.gaussian.dense import moments
from predilect.inference.gaussian.posterior import DrawnUtilities, Posterior, Utilities

_AT_ONCE = 2_000_000  # draws of margins


@dataclass(frozen=True, slots=True)
class MixedLogitPosterior(Posterior):
    """Utilities X c_u, with draws of the coefficients of all people."""

    X: FloatArray  # columns of the items, (n_items, d)
    people: Annotated[npt.NDArray[np.float32], numbers("U R D", "float32")]  # R draws of people's coefficients
    law: Annotated[Mixture, PART]
    central: FloatArray  # draws of the coefficients of a central person, the crowd's, (S, d)
    unseen: FloatArray  # draws of somebody without answers, (S, d)
    nests: Annotated[Nests | None, PART]  # of a nested logit
    is_normal: bool  # coefficients are the same for all, and normal: those of a logit

    @classmethod
    def of(
        cls, columns: ItemColumns, people: npt.NDArray[np.float32], law: Mixture, seed: int, nests: Nests | None = None
    ) -> MixedLogitPosterior:  # fmt: skip
        """From the draws of people and of the population."""
        # As a saved model has them: with rows and columns the other way round in memory a product rounds otherwise.
        people, law = np.ascontiguousarray(people), replace(law, Omega=np.ascontiguousarray(law.Omega))
        central = law.central(np.eye(law.B.shape[2])[0], columns.kind, columns.price)
        alike = not law.Omega.shape[-1] and law.share.shape[1] == 1
        is_normal = alike and columns.price < 0 and bool((columns.kind == NORMAL).all())
        return cls(columns.X, people, law, central, unseen_draws(law, columns, None, seed), nests, is_normal)

    @classmethod
    def restored(
        cls, people: npt.NDArray[np.float32], law: Mixture, columns: ItemColumns, seed: int, nests: Nests | None = None
    ) -> MixedLogitPosterior:  # fmt: skip
        """Posterior of a saved model."""
        if not min(people.shape[1], *law.share.shape):
            raise ValueError("a model without draws")
        if nests is not None and (len(nests.of_people), len(nests.of_crowd)) != (people.shape[1], len(law.B)):
            raise ValueError("dissimilarities of other draws than the coefficients")
        return cls.of(columns, people, law, seed, nests)

    @property
    def n_items(self) -> int:
        return len(self.X)

    def draws_of(self, user: int) -> FloatArray:
        """Draws of one person's coefficients, (R, d); -1: unseen."""
        return self.unseen if user < 0 else self.people[user].astype(np.float64)

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), (n,)."""
        within = None
        if self.nests is not None:
            one, other = self.nests.of_items[left], self.nests.of_items[right]
            within = np.where(one == other, one, -1)
        return self.predicted(users, self.X[left] - self.X[right], within=within)[:2]

    def predicted(
        self, users: IntArray, difference: FloatArray, unknown: FloatArray | None = None,
        more: FloatArray | None = None, delta: float = 0.0, within: IntArray | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
        """Mean (n,) and variance (n,) of margins, and log probabilities of left, tie and right (n, 3), of the draws.

        ``unknown``: variance of a normal part of each margin that the draws do not hold, (n,); ``within``: the nest of
        both items, -1 where they are of two.
        """
        n = len(difference)
        unknown = np.zeros(n) if unknown is None else unknown
        mean, var, log_p = np.empty(n), np.empty(n), np.empty((n, 3))
        for rows, z in self.drawn_margins(users, difference, more, within):
            mean[rows], var[rows] = z.mean(axis=1), z.var(axis=1, ddof=min(1, z.shape[1] - 1)) + unknown[rows]
            log_p[rows] = _blurred(z, unknown[rows], delta) if unknown[rows].any() else log_chances(z, delta)
        return mean, var, log_p

    def drawn_margins(
        self, users: IntArray, difference: FloatArray, more: FloatArray | None = None, within: IntArray | None = None
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Rows of one person, and draws of their margins with differences of columns (n, d), (n_rows, R).

        Codes of people from U on are of ``more``, draws of the coefficients of others (k, S, d).
        """
        who, n = np.asarray(users), len(self.people)
        order = np.argsort(who, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(who[order])) + 1):
            if not len(rows):
                continue
            user = int(who[rows[0]])
            draws = self.draws_of(user) if more is None or user < n else more[user - n]
            step = max(1, _AT_ONCE // len(draws))
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                z = difference[some] @ draws.T
                if self.nests is not None and within is not None:
                    alike = within[some] >= 0
                    z[alike] /= self.nests.draws(user)[:, within[some][alike]].T
                yield some, z

    def person(self, user: int = -1) -> Utilities:
        return self.crowd() if self.is_normal else DrawnUtilities.drawn(self.X, self.draws_of(user))

    def crowd(self) -> Utilities:
        if not self.is_normal:
            return DrawnUtilities.drawn(self.X, self.central)
        mean, covariance = moments(self.central)
        return Utilities(self.X @ mean, covariance, self.X, np.zeros(0, dtype=np.int64), np.zeros(0))


def unseen_draws(law: Mixture, columns: ItemColumns, traits: FloatArray | None, seed: int) -> FloatArray:
    """Draws of the coefficients of somebody without answers, (S, d), with ``traits`` (T,), by default the mean."""
    own = np.zeros(law.B.shape[2] - 1) if traits is None else traits
    return law.people(np.concatenate([[1.0], own]), columns.kind, columns.price, seed)


def log_chances(z: FloatArray, delta: float) -> FloatArray:
    """Log probabilities of left, tie and right, averaged over draws of margins (n, R); (n, 3)."""
    found = np.full((len(z), 3), -np.inf)
    found[:, 0], found[:, 2] = (logsumexp(log_expit(side * z - delta), axis=1) for side in (1, -1))
    if delta > 0.0:
        found[:, 1] = logsumexp(log_expit(delta + z) + log_expit(delta - z), axis=1) + np.log(-np.expm1(-2.0 * delta))
    return found - np.log(z.shape[1])


def _blurred(z: FloatArray, variance: FloatArray, delta: float) -> FloatArray:
    """:func:`log_chances` of margins with independent normal parts of some ``variance`` (n,) added.

    The parts are quantiles in an order of their own, once with each sign, and the two halves are added up apart: the
    sides can be exchanged, to the last bit.
    """
    n = z.shape[1]
    part = np.random.default_rng(0).permutation(ndtri((np.arange(n) + 0.5) / n)) * np.sqrt(variance)[:, None]
    return np.asarray(np.logaddexp(log_chances(z + part, delta), log_chances(z - part, delta)) - np.log(2.0))
