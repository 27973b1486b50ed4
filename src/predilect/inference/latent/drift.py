"""Utilities that move with time: an Ornstein-Uhlenbeck process for each item about the pooled model's utilities.

    f_i(t) = m_i + g_i(t),   m ~ N(0, s_t K),   Cov(g_i(t), g_i(t')) = s_d exp(-|t - t'| / ℓ)

In state space (Särkkä and Solin 2019, ch. 12): g is Markov, so the precision of all (item, time) states is block
tridiagonal with multiples of I beside its diagonal, and bordered by m and the effects of covariates. Laplace's
approximation by Newton's method, and expectation propagation from there; elimination in order of time is the Kalman
filter of all items together, and the way back the Rauch-Tung-Striebel smoother. docs/math/population.md section 8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from predilect._base.compile import kernel
from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import factorise, symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.small import copy, fill
from predilect.inference.gaussian.solve import conjugate_gradients
from predilect.inference.latent.ep import refreshed
from predilect.inference.latent.pooled import PooledAnswers, PooledPrior, Precision, margin_variances
from predilect.inference.latent.single import change_of_margin

NEWTON_TOLERANCE = 1e-9  # of the largest change of a margin in a step of Newton's method, in units of the noise
_MAX_NEWTON, _MAX_HALVINGS = 60, 30
EP_TOLERANCE, _MOST_SWEEPS = 1e-4, 50  # of a margin that a sweep would change, in units of the noise
SAME_TIME = 1e-7  # of the span: times that are nearer to each other are one, as rounding would drown what lies between
_SOLVED, _MOST_SOLVING = 1e-4, 300  # of a step by conjugate gradients
# Products, and those for each item, after which a new factor is made: it costs about as much as they do.
_STALE, _STALE_PER_ITEM = 6, 0.2


@dataclass(frozen=True, slots=True)
class Moving:
    """Prior of what moves: its variance s_d, and the memory ℓ in the unit of time."""

    variance: float
    length: float

    def chain(self, times: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Precision of one item's states at ascending times: its diagonal (T,), what is beside it (T - 1,); log |K|."""
        gap = np.diff(times) / self.length
        kept, lost = np.exp(-gap), -np.expm1(-2.0 * gap)  # φ and 1 - φ²
        diagonal = np.ones(len(times))
        diagonal[1:] = 1.0 / lost
        diagonal[:-1] += kept**2 / lost
        log_det = len(times) * math.log(self.variance) + float(np.log(lost).sum())
        return diagonal / self.variance, -kept / lost / self.variance, log_det


@dataclass(frozen=True)
class TimedAnswers:
    """Answers of a pooled model, each at one of some ascending times."""

    rows: PooledAnswers
    at: IntArray  # (n_rows,), places in ``times``
    times: FloatArray  # (T,)

    @cached_property
    def _of_times(self) -> list[tuple[IntArray, PooledAnswers]]:
        """Places of the rows of each time, and what they compare."""
        order = np.argsort(self.at, kind="stable")
        parts = np.split(order, np.searchsorted(self.at[order], np.arange(1, len(self.times))))
        return [(part, self.rows.part(part)) for part in parts]

    def before(self, place: int) -> TimedAnswers:
        """The answers before the time of that place, of those of one row each."""
        kept = np.flatnonzero(self.at < place)
        return TimedAnswers(self.rows.part(kept), self.at[kept], self.times[:place])

    def margins(self, prior: PooledPrior, state: States) -> FloatArray:
        """Margins of the answers, (n_rows,)."""
        of_time = state.g[self.at, self.rows.left] - state.g[self.at, self.rows.right]
        return prior.margins(self.rows, state.rest) + of_time

    def gather(self, prior: PooledPrior, flow: FloatArray) -> States:
        """Gradient in the states of that in the margins, (n_rows,)."""
        n, T = self.rows.n_items, len(self.times)
        left, right = self.at * n + self.rows.left, self.at * n + self.rows.right
        g = np.subtract(np.bincount(left, flow, T * n), np.bincount(right, flow, T * n), dtype=float)
        return States(g.reshape(T, n), prior.gather(self.rows, flow))

    def variances(self, prior: PooledPrior, chain: Chain) -> FloatArray:
        """Variances of the margins of the answers, (n_rows,)."""
        var = np.empty(len(self.at))
        for (part, rows), C in zip(reversed(self._of_times), chain.utilities(), strict=True):
            var[part] = margin_variances(prior, C, rows.left, rows.right, rows.covariates)
        return var

    def information(self, prior: PooledPrior, weight: Precision) -> list[FloatArray]:
        """Information of the answers at each time about utilities and effects, (M, M) each."""
        return [
            prior.information(rows, weight[part] if isinstance(weight, np.ndarray) else weight[part][:, part])
            for part, rows in self._of_times
        ]


class States(NamedTuple):
    """Moving parts at each time, (T, n_items), and m with the effects of covariates, (M,)."""

    g: FloatArray
    rest: FloatArray

    def plus(self, other: States, factor: float = 1.0) -> States:
        """The sum, with so many times the other."""
        return States(self.g + factor * other.g, self.rest + factor * other.rest)

    @property
    def flat(self) -> FloatArray:
        """All numbers, (T n_items + M,)."""
        return np.concatenate([self.g.ravel(), self.rest])

    def like(self, flat: FloatArray) -> States:
        """A state of this shape."""
        return States(flat[: self.g.size].reshape(self.g.shape), flat[self.g.size :])


@kernel
def _solve_chain(
    beside: FloatArray, inverse: FloatArray, border: FloatArray, covariance: FloatArray, w: FloatArray, rest: FloatArray
) -> None:  # fmt: skip
    """:meth:`Chain.solve` in place, in 4 T n (n + M) operations; rows of symmetric matrices serve as their columns."""
    (T, n), M = w.shape, len(rest)
    found, known = np.empty(n), np.empty(M)
    for j in range(T):
        if j > 0:
            fill(found, 0.0)
            for i in range(n):
                for k in range(n):
                    found[k] += inverse[j - 1, i, k] * w[j - 1, i]
            for i in range(n):
                w[j, i] -= beside[j - 1] * found[i]
        for i in range(n):
            for k in range(M):
                rest[k] -= border[j, i, k] * w[j, i]
    copy(known, rest)
    fill(rest, 0.0)
    for i in range(M):
        for k in range(M):
            rest[k] += covariance[i, k] * known[i]
    for j in range(T - 1, -1, -1):
        if j < T - 1:
            for i in range(n):
                w[j, i] -= beside[j] * w[j + 1, i]
        for i in range(n):
            found[i] = 0.0
            for k in range(M):
                found[i] -= border[j, i, k] * rest[k]
        for i in range(n):
            for k in range(n):
                found[k] += inverse[j, i, k] * w[j, i]
        copy(w[j], found)


@dataclass(frozen=True, slots=True)
class Chain:
    """Elimination of the states in order of time: 6 T n³ operations, 16 T n² bytes."""

    beside: FloatArray  # e_j of the precision, (T - 1,)
    inverse: FloatArray  # D_j⁻¹ (T, n, n): of g_j, with later states held
    border: FloatArray  # D_j⁻¹ U_j (T, n, M): how g_j hangs on m and the effects
    covariance: FloatArray  # of m and the effects, (M, M)
    log_det: float  # of the precision of all

    @classmethod
    def of(cls, times: FloatArray, moving: Moving, prior: PooledPrior, about: Sequence[FloatArray | None]) -> Chain:
        """From the information about each time, None for one without answers."""
        n = len(prior.precision) - prior.n_effects
        diagonal, beside, _ = moving.chain(times)
        rest = prior.precision.copy() if prior.precision.ndim == 2 else np.diag(prior.precision)
        zero = np.zeros_like(rest)
        D, U = np.zeros((n, n)), np.zeros((n, len(rest)))
        inverses, borders, log_det = np.empty((len(times), *D.shape)), np.empty((len(times), *U.shape)), 0.0
        for j, found in enumerate(about):
            one = zero if found is None else found
            D, U = D + one[:n, :n], U + one[:n]
            D.ravel()[:: n + 1] += diagonal[j]
            factor = factorise(D)
            inverse = factor.inverse()
            Y = inverse @ U
            rest += one
            rest -= U.T @ Y
            log_det += factor.log_det()
            inverses[j], borders[j] = inverse, Y
            if j < len(beside):
                D, U = -(beside[j] ** 2) * inverse, -beside[j] * Y
        last = factorise(symmetrise(rest))
        return cls(beside, inverses, borders, last.inverse(), log_det + last.log_det())

    def solve(self, right: States) -> States:
        """Solution of the precision."""
        found = States(right.g.copy(), right.rest.copy())
        _solve_chain(self.beside, self.inverse, self.border, self.covariance, found.g, found.rest)
        return found

    def covariances(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Cov(g_j) (n, n) and Cov(g_j, rest) (n, M), from the last time to the first; 12 n³ operations a time."""
        S = self.covariance
        V, H = np.zeros_like(self.inverse[-1]), np.zeros_like(self.border[-1])
        for j in reversed(range(len(self.inverse))):
            E, Y = self.inverse[j], self.border[j]
            e = self.beside[j] if j < len(self.beside) else 0.0
            YS, EH = Y @ S, E @ H
            mixed = e * (EH @ Y.T)
            V = symmetrise(E + e * e * (E @ V @ E) + mixed + mixed.T + YS @ Y.T)
            H = -(e * EH + YS)
            yield V, H

    def utilities(self) -> Iterator[FloatArray]:
        """Covariance of the utilities at a time and the effects, (M, M), from the last time to the first."""
        for V, H in self.covariances():
            yield covariance_of_utilities(V, H, self.covariance)


def covariance_of_utilities(V: FloatArray, H: FloatArray, S: FloatArray) -> FloatArray:
    """Covariance of m + g and the effects, (M, M), of that of g (n, n), of both (n, M), and of m and the effects."""
    n = len(V)
    C = S.copy()
    C[:n] += H
    C[:, :n] += H.T
    C[:n, :n] += V
    return symmetrise(C)


@dataclass(frozen=True, slots=True)
class Drifting:
    """Gaussian approximation of utilities that move: ``state`` is its mode."""

    state: States
    chain: Chain
    about: list[FloatArray]  # information of the answers at each time
    evidence: float  # Laplace's, in nats
    iterations: int
    step: float  # the last one's largest change of a margin


@dataclass(frozen=True, slots=True)
class _LogPosterior:
    """The joint log posterior of all states."""

    answers: TimedAnswers
    prior: PooledPrior
    moving: Moving
    delta: float

    def of_prior(self, one: States) -> States:
        """Product of the prior precision and a state."""
        diagonal, beside, _ = self.moving.chain(self.answers.times)
        g = diagonal[:, None] * one.g
        g[:-1] += beside[:, None] * one.g[1:]
        g[1:] += beside[:, None] * one.g[:-1]
        return States(g, self.prior.times(one.rest))

    def view(self, one: States) -> tuple[float, FloatArray, Precision]:
        """Value, slopes of the likelihood in the margins, and their information."""
        value, slope, weight = self.answers.rows.views(self.delta, self.answers.margins(self.prior, one))
        return value - 0.5 * float(one.flat @ self.of_prior(one).flat), slope, weight

    def step(self, one: States, slope: FloatArray, weight: Precision, chain: Chain) -> tuple[States, int]:
        """Step of Newton's method, by conjugate gradients with a factor that may be older; products it took."""
        answers, prior = self.answers, self.prior

        def times(columns: FloatArray) -> FloatArray:
            along = one.like(columns[:, 0])
            flow = answers.margins(prior, along)
            flow = weight * flow if isinstance(weight, np.ndarray) else weight @ flow
            return answers.gather(prior, flow).plus(self.of_prior(along)).flat[:, None]

        def nearly(columns: FloatArray) -> FloatArray:
            return chain.solve(one.like(columns[:, 0])).flat[:, None]

        right = answers.gather(prior, slope).plus(self.of_prior(one), -1.0).flat
        found = conjugate_gradients(
            times, right, precondition=nearly, tolerance=_SOLVED, max_iter=_MOST_SOLVING, check=False
        )
        return one.like(found.x), found.iterations

    def factor(self, weight: Precision) -> tuple[list[FloatArray], Chain]:
        """Information of the answers at each time, and the factor of the posterior precision."""
        about = self.answers.information(self.prior, weight)
        return about, Chain.of(self.answers.times, self.moving, self.prior, about)


def fit_drift(
    answers: TimedAnswers, prior: PooledPrior, moving: Moving, delta: float, start: Drifting | None = None,
    tolerance: float = NEWTON_TOLERANCE,
) -> Drifting:  # fmt: skip
    """Mode and Laplace's approximation of the states at fixed hyper-parameters, by Newton's method.

    Steps are by conjugate gradients with the factor of an earlier step, which is made anew where they take many
    products. Concave: ``start``, another fit to these answers, does not change the mode.
    """
    joint = _LogPosterior(answers, prior, moving, delta)
    T, n = len(answers.times), answers.rows.n_items
    state = States(np.zeros((T, n)), np.zeros(len(prior.precision))) if start is None else start.state
    value, slope, weight = joint.view(state)
    chain = joint.factor(weight)[1] if start is None else start.chain
    size, iterations = math.inf, 0
    while size > tolerance and iterations < _MAX_NEWTON:
        iterations += 1
        step, products = joint.step(state, slope, weight, chain)
        if products > _STALE + _STALE_PER_ITEM * n:
            chain = joint.factor(weight)[1]
        size = float(np.abs(answers.margins(prior, step)).max(initial=0.0))
        for _ in range(_MAX_HALVINGS):
            new = joint.view(state.plus(step))
            if new[0] >= value - 1e-12 * abs(value):  # rounding alone may lower it by a few ulps at the mode
                break
            step = States(0.5 * step.g, 0.5 * step.rest)
        state, (value, slope, weight) = state.plus(step), new
    about, chain = joint.factor(weight)
    log_det = moving.chain(answers.times)[2]
    evidence = value - 0.5 * (n * log_det + prior.log_det + chain.log_det)
    return Drifting(state, chain, about, evidence, iterations, size)


def refined(
    answers: TimedAnswers, prior: PooledPrior, moving: Moving, delta: float, found: Drifting,
    tolerance: float = EP_TOLERANCE,
) -> Drifting:  # fmt: skip
    """Expectation propagation from Laplace's approximation, whose modes lie nearer to 0 than means do.

    Parallel, with step control, as :func:`~predilect.inference.latent.ep.ep`; 18 T n³ operations a sweep. The evidence
    stays Laplace's. Answers about several alternatives stay as they are, and with them all others.
    """
    rows = answers.rows
    if rows.orders is not None:
        return found
    likelihood, joint = rows.likelihood(delta), _LogPosterior(answers, prior, moving, delta)
    margin = answers.margins(prior, found.state)
    _, slope, curvature = likelihood.at(rows.outcome, margin)
    sites = Sites(curvature, slope + curvature * margin)
    step, last = 1.0, math.inf
    for sweep in range(_MOST_SWEEPS):
        about, chain = joint.factor(rows.weight * sites.precision)
        state = chain.solve(answers.gather(prior, rows.weight * sites.linear))
        mean, var = answers.margins(prior, state), answers.variances(prior, chain)
        target = refreshed(likelihood, rows.outcome, rows.weight, sites, mean, var)
        residual = change_of_margin(rows.weight, sites, target, mean, var)
        found = Drifting(state, chain, about, found.evidence, sweep, residual)
        if residual <= tolerance:
            break
        step = 0.5 * step if residual > last else min(1.2 * step, 1.0)
        sites, last = sites.towards(target, step), residual
    return found


def grid_of(time: FloatArray, weight: FloatArray, most: int) -> tuple[FloatArray, IntArray]:
    """Ascending times (T,), at most so many, and the place of each answer among them, (n_rows,).

    All of the answers' own times, if they are few enough and none is next to another; otherwise the means of
    intervals, which are the shorter the more answers there are: each spans as much of answers and of time together.
    """
    own, at = np.unique(time, return_inverse=True)
    apart = np.diff(own) > SAME_TIME * (own[-1] - own[0])
    if len(own) <= most and apart.all():
        return own, at
    amount = np.bincount(at, weight)
    cell = np.append(0, np.cumsum(apart))
    if cell[-1] >= most:
        share = (np.cumsum(amount) - 0.5 * amount) / amount.sum() + (own - own[0]) / (own[-1] - own[0])
        cell = np.unique(np.minimum((0.5 * most * share).astype(np.int64), most - 1), return_inverse=True)[1]
    # Of the times less the first, so that where the clock begins makes no difference.
    mean = np.bincount(cell, amount * (own - own[0])) / np.bincount(cell, amount)
    return own[0] + mean, cell[at]
