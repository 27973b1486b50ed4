"""Posterior of people's evaluations of trade-offs."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import semidefinite_root, symmetrise
from predilect.inference.gaussian.posterior import Posterior, Utilities
from predilect.papers.gaspk.posterior.basis import CovarianceApproximation, PointBasis
from predilect.papers.gaspk.posterior.curvature import Curvature, in_parts
from predilect.papers.gaspk.posterior.scores import ItemScores, centred_blocks, centred_scores
from predilect.papers.gaspk.posterior.sums import mixed

_NUMBERS_AT_ONCE = 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Characteristics:
    """Mean (q, n_c) and covariance (q, n_c, n_c) of the characteristics at q trade-offs."""

    mean: FloatArray
    covariance: FloatArray


@dataclass(frozen=True, eq=False)
class GaSPKPosterior(Posterior):
    """f_u(t) = Σ_c γ_uc f^c(t) with characteristics f^c = Φ w, w Gaussian with mode ``w`` and precision H.

    docs/math/gaspk.md section 2, predictive: **differs from the paper**, whose algorithm 3 has the variances of the
    single characteristics; a mixture's needs their covariances too.
    """

    by_utilities: ClassVar[bool] = False

    basis: PointBasis
    w: FloatArray  # (rank, n_c)
    curvature: Curvature  # H
    gamma: FloatArray  # (n_users, n_c), rows on the simplex
    scores: ItemScores
    spread: float = 1.0  # T² ≥ 1: calibration of 1 + variance of a margin, as weights are taken as known
    prior_variance: float = 1.0  # of a characteristic far from the trade-off 0

    low_rank: CovarianceApproximation | None = None  # source of variances on a grid; None where H is factorised
    exact_up_to: float = math.inf  # so many variances at once are exact all the same
    left_open: FloatArray | None = None  # (n_users, n_c, n_c), covariance of people's weights, where they have a prior
    factors: FloatArray | None = None  # (n_users + 1,), of V for the people, and last 1; None where all are 1

    def factors_of(self, users: IntArray) -> FloatArray:
        """Factors of the characteristics' covariance for people (-1: unseen user), (n,)."""
        return np.ones(len(users)) if self.factors is None else self.factors[users]

    def at(self, trade_offs: FloatArray) -> Characteristics:
        """The characteristics at trade-offs of shape (q, d); q rank² n_c² operations, or as ``low_rank`` has it."""
        n_c = self.gamma.shape[1]
        if self.low_rank is not None and len(trade_offs) * n_c > self.exact_up_to:
            return Characteristics(self.basis.at_trade_offs(trade_offs, self.w), self.low_rank.blocks(trade_offs))
        mean, covariance = np.empty((len(trade_offs), n_c)), np.empty((len(trade_offs), n_c, n_c))
        for some in in_parts(len(trade_offs), self.basis.rank, _NUMBERS_AT_ONCE):
            rows, own = self.basis.rows(trade_offs[some])
            mean[some] = rows @ self.w
            covariance[some] = self.curvature.blocks(rows) + own[:, None, None] * np.eye(n_c)
        return Characteristics(mean, covariance)

    def evaluations(self, users: IntArray, trade_offs: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance (n,) of f_u(t) for people (-1: unseen user) and rows ``codes`` of trade-offs (q, d).

        The characteristics are worked out once for each trade-off where those repeat, else the mixture for each
        question; then n_c² operations a question.
        """
        known = users >= 0
        exactly = self.low_rank is None or len(users) <= self.exact_up_to  # with a solution for each variance
        n_c = self.gamma.shape[1]
        mean, var = np.empty(len(users)), np.empty(len(users))
        if len(trade_offs) * n_c <= len(users) or not known.all() or not exactly:
            found = self.at(trade_offs)
            value = found.mean
            mean, var = mixed(users, codes, self.gamma, found.mean, found.covariance)
            if not known.all():
                mean[~known], var[~known] = (part[codes[~known]] for part in self._unseen(found))
        else:
            value, own, g = np.empty((len(trade_offs), n_c)), np.empty(len(trade_offs)), self.gamma[users]
            order = np.argsort(codes, kind="stable")
            ends = np.searchsorted(codes[order], np.arange(len(trade_offs) + 1))
            for some in in_parts(len(trade_offs), self.basis.rank, _NUMBERS_AT_ONCE):
                rows, own[some] = self.basis.rows(trade_offs[some])
                value[some] = rows @ self.w
                asked = order[ends[some.start] : ends[min(some.stop, len(trade_offs))]]
                var[asked] = self.curvature.variances(rows[codes[asked] - some.start], g[asked])
            mean = np.einsum("qc,qc->q", g, value[codes])
            var += own[codes] * np.einsum("qc,qc->q", g, g)
        var *= self.factors_of(users)
        if self.left_open is not None:
            # Σ m_c C_cd m_d is a mixture of the people's covariances by the characteristics at the trade-offs.
            var[known] += mixed(codes[known], users[known], value, self.gamma, self.left_open)[1]
        return mean, self.spread * (1.0 + np.maximum(var, 0.0)) - 1.0

    def _unseen(self, found: Characteristics) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f(t) of an unseen user: one of the people, drawn at random."""
        var = np.einsum("qcd,cd->q", found.covariance, self.second_moment)
        var += np.einsum("qc,cd,qd->q", found.mean, self.between, found.mean, optimize=True)
        return found.mean @ self.gamma.mean(axis=0), var

    @property
    def second_moment(self) -> FloatArray:
        """Mean over people of γ γᵀ, shape (n_c, n_c)."""
        return np.asarray(self.gamma.T @ self.gamma / len(self.gamma))

    @property
    def between(self) -> FloatArray:
        """Covariance of the weights of a person drawn at random, shape (n_c, n_c)."""
        average = self.gamma.mean(axis=0)
        found = self.second_moment - np.outer(average, average)
        return found if self.left_open is None else found + self.left_open.mean(axis=0)

    # Boards

    @property
    def n_items(self) -> int:
        """Number of items that have scores."""
        return len(self.scores.rows)

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Differences of scores, mean and variance, (n,); an answer is about :meth:`evaluations` of a trade-off."""
        mean, var = np.empty(len(users)), np.empty(len(users))
        for user in np.unique(users).tolist():
            rows = users == user
            mean[rows], var[rows] = self.person(user).margins(left[rows], right[rows])
        return mean, var

    def person(self, user: int = -1) -> Utilities:
        if user >= 0:
            between = None if self.left_open is None else self.left_open[user]
            gamma, factor = self.gamma[user], self.factors_of(np.array([user]))
            return self._utilities(gamma, np.sqrt(factor)[:, None] * gamma, between, self.spread)
        root = semidefinite_root(self.second_moment)
        return self._utilities(self.gamma.mean(axis=0), root.T, self.between, self.spread)

    def crowd(self) -> Utilities:
        """Scores by the average of the people's evaluations; ``spread``, independent over people, averages out."""
        average, n = self.gamma.mean(axis=0), len(self.gamma)
        between = None if self.left_open is None else self.left_open.mean(axis=0) / n
        return self._utilities(average, average[None, :], between, 1.0 + (self.spread - 1.0) / n)

    def centred_utilities(
        self, users: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of people's scores, centred over the items; shapes (n_users, n_items)."""
        left_open = None if self.left_open is None else self.left_open[users]
        return centred_scores(self._centred, self.w, self.gamma[users], self.factors_of(users), self.spread, left_open)

    @cached_property
    def _centred(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return centred_blocks(self.curvature, self.scores)

    def _utilities(
        self, gamma: FloatArray, directions: FloatArray, between: FloatArray | None, spread: float
    ) -> Utilities:
        """Scores under weights of mean ``gamma``, second moment directionsᵀ directions, spread ``between`` people."""
        rows, own, n_items = self.scores.rows, self.scores.own, len(self.scores.rows)
        mean = rows @ (self.w @ gamma)
        length = float(np.sum(directions**2))
        # The variance that calibration adds is the same for every pair of items.
        constant = np.full(n_items, 0.5 * (spread - 1.0))
        none = np.zeros(0, dtype=np.intp)
        if own.ndim == 1:
            mixed = np.add.reduce([self.curvature.mixed(direction) for direction in directions])
            if between is not None:
                mixed += self.w @ between @ self.w.T
            return Utilities(mean, spread * mixed, rows, none, spread * length * own + constant)
        covariance = np.add.reduce([self.curvature.covariance(rows, direction) for direction in directions])
        if between is not None:
            at_items = rows @ self.w
            covariance += at_items @ between @ at_items.T
        covariance = spread * (covariance + length * own)
        covariance[np.diag_indices(n_items)] += constant
        return Utilities(mean, symmetrise(covariance), None, none, np.zeros(0))
