"""Pooled model: one utility function for all people, by Newton's method, with Laplace's approximation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag
from scipy.sparse import coo_array, csr_array, diags_array

from predilect._base.progress import Report
from predilect._base.types import FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.comparisons import joint_rows
from predilect.data.orders import rows_by_answer
from predilect.inference.gaussian.dense import Factor, factorise, is_diagonal, symmetrise
from predilect.inference.gaussian.design import pair_variance
from predilect.inference.gaussian.solve import Elimination, conjugate_gradients, jacobi
from predilect.inference.likelihoods.grades import GradeRows, Intervals, Thresholds
from predilect.inference.likelihoods.orders import Orders, cells_of, shared_noise
from predilect.inference.likelihoods.probit import starting_threshold
from predilect.inference.likelihoods.views import PairLikelihood, Probit

_MAX_NEWTON = 100
_ROWS_AT_ONCE = 50_000
# Of the largest change of an answer's margin, in units of its noise. Not of a utility: under a flat prior rounding
# alone moves all utilities together, which nothing depends on.
_NEWTON_TOLERANCE = 1e-10
_MAX_HALVINGS = 40
_THRESHOLD_TOLERANCE = 1e-4  # in log δ
# Standard deviation of a weak prior of log δ about the tie share's own δ: it matters only for a handful of answers, of
# which the evidence may prefer a threshold that makes every answer a tie.
_THRESHOLD_SD = 1.5
_MOST_ROUNDS, _STILL = 8, 1e-3  # of the cuts of grades, and the largest change of a logarithm at which they rest
_MOST_WITH_VARIANCE = 3000  # utilities whose covariance is computed for the cuts
# From so many items on, without a kernel, the answers make a sparse matrix; with fewer a dense one is as quick.
_MANY_ITEMS = 1000
_SOLVED = 1e-10  # of a Newton step by conjugate gradients
_MOST_SOLVING = 300

Precision = FloatArray | csr_array  # of the rows' sites: of each, (n_rows,), or with blocks, (n_rows, n_rows)


@dataclass(frozen=True, slots=True)
class PooledAnswers:
    """Answers with people not distinguished; arrays of shape (n_rows,), as in :class:`~predilect.Comparisons`."""

    left: IntArray
    right: IntArray
    outcome: npt.NDArray[Any]  # or, with ``thresholds``, the ends of intervals, (n_rows, 2)
    weight: FloatArray
    n_items: int
    likelihood: type[PairLikelihood] = Probit
    covariates: FloatArray | None = None  # (n_rows, n_covariates)
    thresholds: Thresholds | None = None
    orders: PooledOrders | None = None

    @property
    def n_answers(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    @classmethod
    def of(
        cls, rows: Comparisons, likelihood: type[PairLikelihood] = Probit, thresholds: Thresholds | None = None
    ) -> PooledAnswers:
        """Pooled answers of pooled comparisons; grades count where there are ``thresholds``."""
        found = cls(
            rows.left, rows.right, rows.outcome, rows.weight, rows.n_items, likelihood, rows.covariates,
            orders=PooledOrders.of(joint_rows(rows), *rows.alternatives(), rows.outcome),
        )  # fmt: skip
        return found if thresholds is None else found.at(thresholds, rows.code)

    def at(self, thresholds: Thresholds, code: npt.NDArray[np.int8]) -> PooledAnswers:
        """The same answers, ``code`` (n_rows,), at these thresholds."""
        ends = thresholds.ends(code, self.left, self.right)
        return replace(self, outcome=ends, likelihood=Intervals, thresholds=thresholds)

    def part(self, rows: IntArray) -> PooledAnswers:
        """Some of the rows, without what orders say together."""
        return replace(
            self, left=self.left[rows], right=self.right[rows], outcome=self.outcome[rows], weight=self.weight[rows],
            covariates=None if self.covariates is None else self.covariates[rows], orders=None,
        )  # fmt: skip

    def views(self, delta: float, margin: FloatArray) -> tuple[float, FloatArray, Precision]:
        """Log-likelihood, its slopes in the margins (n_rows,), and minus the second derivatives, at threshold δ."""
        value, slope, curvature = self.likelihood(delta).at(self.outcome, margin)
        if self.orders is None:
            return float(self.weight @ value), self.weight * slope, self.weight * curvature
        alone = self.weight_alone
        total, of_rows, blocks = self.orders.views(margin)
        flow = alone * slope
        flow[self.orders.rows] = of_rows
        return float(alone @ value) + total, flow, csr_array(diags_array(alone * curvature) + blocks)

    @property
    def weight_alone(self) -> FloatArray:
        """Weights of the answers of one row; 0 for the others."""
        if self.orders is None:
            return self.weight
        alone = self.weight.copy()
        alone[self.orders.rows] = 0.0
        return alone


class PooledOrders(NamedTuple):
    """Answers about several alternatives, of several rows each (population.md section 7)."""

    rows: IntArray  # of the pooled answers
    sign: FloatArray  # of their outcomes
    row_ptr: IntArray  # where each answer's begin, (n_orders + 1,)
    noise: FloatArray  # cell by cell
    cells: tuple[IntArray, IntArray]  # the two of ``rows`` of each cell, by place

    @classmethod
    def of(
        cls, task: npt.NDArray[np.int32], left: IntArray, right: IntArray, outcome: npt.NDArray[Any]
    ) -> PooledOrders | None:
        """Of rows of alternatives with the number of their ``task``, below 0 for an answer by itself; None where all
        are.
        """
        rows, ptr = rows_by_answer(task)
        rows = rows[len(rows) - ptr[-1] :]
        if not len(rows):
            return None
        up = outcome[rows] > 0
        winner, loser = np.where(up, left[rows], right[rows]), np.where(up, right[rows], left[rows])
        return cls(rows, np.where(up, 1.0, -1.0), ptr, shared_noise(ptr, winner, loser), cells_of(ptr)[1:])

    def views(self, margin: FloatArray) -> tuple[float, FloatArray, csr_array]:
        """Log-likelihood, its slopes in the margins of ``rows``, and minus the second derivatives of all, by blocks."""
        orders = Orders(self.row_ptr, self.sign * margin[self.rows], np.zeros_like(self.noise), self.noise)
        found = orders.evidence(derivatives=True)
        one, other = self.cells
        cells = self.sign[one] * self.sign[other] * found.Q
        blocks = coo_array((cells, (self.rows[one], self.rows[other])), shape=(len(margin),) * 2)
        return float(found.log_z.sum()), self.sign * found.alpha, csr_array(blocks)


class Climbed(NamedTuple):
    """The mode of a log posterior, the information of the rows' sites there, and its value without constants."""

    m: FloatArray
    information: Precision
    value: float
    iterations: int
    step: float  # the last one's largest change of a margin


class PooledPrior(NamedTuple):
    """Prior of the utilities, or of the weights of functions Φ of the items, N(0, s_t K), and of the effects of
    covariates, N(0, s_t I): the parameters, in this order, are M in all.
    """

    precision: FloatArray  # (M, M), or its diagonal (M,) where many items have independent priors
    log_det: float
    jitter: float
    Phi: FloatArray | None = None
    n_effects: int = 0

    @classmethod
    def of(
        cls, K: FloatArray, consensus_variance: float, Phi: FloatArray | None = None, n_effects: int = 0
    ) -> PooledPrior:
        """Prior with covariance s_t K of the utilities (without Φ) or the weights of functions."""
        if Phi is None and len(K) >= _MANY_ITEMS and is_diagonal(K) and not n_effects:
            variances = consensus_variance * np.diagonal(K)
            return cls(1.0 / variances, float(np.log(variances).sum()), 0.0)
        factor = factorise(consensus_variance * K)
        precision, log_det = factor.inverse(), factor.log_det()
        if n_effects:
            precision = block_diag(precision, np.eye(n_effects) / consensus_variance)
            log_det += n_effects * math.log(consensus_variance)
        return cls(precision, log_det, factor.jitter, Phi, n_effects)

    def times(self, m: FloatArray) -> FloatArray:
        """Product of the precision and m."""
        return np.asarray(self.precision @ m if self.precision.ndim == 2 else self.precision * m)

    def factor(self, rows: PooledAnswers, weight: Precision) -> Factor | Elimination:
        """Factor of the posterior precision: prior plus :meth:`information`."""
        if self.precision.ndim == 2:
            return factorise(self.precision + self.information(rows, weight))
        return Elimination.of(self._sparse(rows, weight))

    def solve(self, rows: PooledAnswers, weight: Precision, right: FloatArray) -> FloatArray:
        """Solution of the posterior precision; by conjugate gradients where it is sparse."""
        if self.precision.ndim == 2:
            return self.factor(rows, weight).solve(right)
        A = self._sparse(rows, weight)
        found = conjugate_gradients(
            A.dot, right, precondition=jacobi(A.diagonal()), tolerance=_SOLVED, max_iter=_MOST_SOLVING
        )
        return found.x if found.converged else Elimination.of(A).solve(right)

    def mode(
        self, rows: PooledAnswers, views: Callable[[FloatArray], tuple[float, FloatArray, Precision]],
        start: FloatArray, tolerance: float = _NEWTON_TOLERANCE,
    ) -> Climbed:  # fmt: skip
        """Newton's method with step halving on the log posterior, which is concave.

        ``views`` of margins: the log-likelihood, its slopes in them, (n_rows,), and their information.
        """

        def log_posterior(m: FloatArray) -> tuple[float, FloatArray, Precision]:
            value, slope, information = views(self.margins(rows, m))
            return value - 0.5 * float(m @ self.times(m)), slope, information

        m = start
        value, slope, information = log_posterior(m)
        size = math.inf
        iterations = 0
        while size > tolerance and iterations < _MAX_NEWTON:
            iterations += 1
            step = self.solve(rows, information, self.gather(rows, slope) - self.times(m))
            size = float(np.abs(self.margins(rows, step)).max(initial=0.0))
            for _ in range(_MAX_HALVINGS):
                new = log_posterior(m + step)
                # Rounding alone may lower the value by a few ulps at the mode.
                if new[0] >= value - 1e-12 * abs(value):
                    break
                step = 0.5 * step
            m, (value, slope, information) = m + step, new
        return Climbed(m, information, value, iterations, size)

    def _sparse(self, rows: PooledAnswers, weight: Precision) -> csr_array:
        n = rows.n_items
        if not isinstance(weight, np.ndarray):
            X = _design(rows)
            return csr_array(X.T @ weight @ X + diags_array(self.precision))
        half = csr_array(coo_array((weight, (rows.left, rows.right)), shape=(n, n)))
        off = half + half.T
        return csr_array(diags_array(np.asarray(off.sum(axis=1)) + self.precision) - off)

    @property
    def n_functions(self) -> int:
        """Number of utilities, or of functions."""
        return len(self.precision) - self.n_effects

    def margins(self, rows: PooledAnswers, m: FloatArray) -> FloatArray:
        """Margins of the answers, with the effects of their covariates, (n_rows,)."""
        f = m[: self.n_functions] if self.Phi is None else self.Phi @ m[: self.n_functions]
        margin = f[rows.left] - f[rows.right]
        return margin if rows.covariates is None else margin + rows.covariates @ m[self.n_functions :]

    def gather(self, rows: PooledAnswers, flow: FloatArray) -> FloatArray:
        """Gradient Σ_p flow_p x_p in m from that in the margins of the answers, (M,)."""
        n = rows.n_items
        of_items = np.asarray(np.bincount(rows.left, flow, n) - np.bincount(rows.right, flow, n), dtype=float)
        found = of_items if self.Phi is None else np.asarray(self.Phi.T @ of_items)
        return found if rows.covariates is None else np.concatenate([found, rows.covariates.T @ flow])

    def information(self, rows: PooledAnswers, weight: Precision) -> FloatArray:
        """Information Σ_pq weight_pq x_p x_qᵀ of the answers, shape (M, M)."""
        if rows.covariates is not None:
            of_items = self.information(replace(rows, covariates=None), weight)
            flows = weight[:, None] * rows.covariates if isinstance(weight, np.ndarray) else weight @ rows.covariates
            columns = np.array([self.gather(rows, flow) for flow in flows.T]).T
            M = self.n_functions
            return np.block([[of_items, columns[:M]], [columns.T]])
        if not isinstance(weight, np.ndarray):
            if self.Phi is None:
                X = _design(rows)
                return symmetrise((X.T @ weight @ X).toarray())
            x = self.Phi[rows.left] - self.Phi[rows.right]
            return symmetrise(x.T @ (weight @ x))
        if self.Phi is None:
            return laplacian(rows.n_items, rows.left, rows.right, weight)
        total = np.zeros((self.Phi.shape[1],) * 2)
        for start in range(0, len(weight), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            x = self.Phi[rows.left[some]] - self.Phi[rows.right[some]]
            total += x.T @ (weight[some, None] * x)
        return total


@dataclass(frozen=True, slots=True)
class PooledState:
    """Laplace approximation of the pooled model."""

    mode: FloatArray  # of the utilities, or the weights of functions, and the effects of covariates, (M,)
    delta: float
    evidence: float  # Laplace's log evidence, in nats
    report: Report
    information: Precision  # of the rows' sites at the mode
    rows: PooledAnswers
    prior: PooledPrior

    @property
    def tie_threshold(self) -> float:
        """Threshold of ties; ``delta`` is the first positive cut where there are grades."""
        return self.delta if self.rows.thresholds is None else self.rows.thresholds.tie_threshold

    @property
    def m(self) -> FloatArray:
        """Utilities, or the weights of functions."""
        return self.mode[: self.prior.n_functions]

    def covariance(self) -> FloatArray:
        """Posterior covariance at the mode, shape (M, M); computed anew at each call."""
        return self.prior.factor(self.rows, self.information).inverse()

    @property
    def C_m(self) -> FloatArray:
        """That of :attr:`m`."""
        return self.covariance()[: self.prior.n_functions, : self.prior.n_functions]


@dataclass(frozen=True, slots=True)
class _Mode:
    m: FloatArray
    information: Precision
    jitter: float
    evidence: float
    iterations: int
    step: float


def _design(rows: PooledAnswers) -> csr_array:
    """+1 at the left item of a row and -1 at the right one, (n_rows, n_items)."""
    n = len(rows.left)
    places = (np.tile(np.arange(n), 2), np.r_[rows.left, rows.right])
    return csr_array((np.repeat([1.0, -1.0], n), places), shape=(n, rows.n_items))


def laplacian(n_items: int, left: npt.ArrayLike, right: npt.ArrayLike, weight: FloatArray) -> FloatArray:
    """Weighted graph Laplacian Σ_p weight_p (e_left - e_right)(e_left - e_right)ᵀ, dense (n_items, n_items)."""
    left, right = np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)
    off = np.bincount(left * n_items + right, weight, n_items * n_items).reshape(n_items, n_items)
    off = off + off.T
    return np.asarray(np.diag(off.sum(axis=1)) - off)


def fit_pooled(
    comparisons: Comparisons,
    K: FloatArray,
    consensus_variance: float,
    *,
    delta: float | Thresholds | None = None,
    Phi: FloatArray | None = None,
    likelihood: type[PairLikelihood] = Probit,
    item_tie_spread: float = 0.0,
) -> PooledState:
    """Mode and Laplace approximation of m ~ N(0, s_t K), K at unit scale, given the answers of all people.

    Effects of covariates, if the answers have some, are N(0, s_t) and join m.

    ``delta=None`` maximises Laplace's evidence with a weak prior, if there are ties; where there are grades, their cuts
    are learned unless ``delta`` holds them; with an ``item_tie_spread`` σ_ψ also the factors of items. population.md
    section 4 at Σ = 0, where the consensus step is Newton's step. O(n_answers + n_items³) a step; with functions Φ
    (n_items, M) O(n_answers M² + M³). Where many items have independent priors, steps take conjugate gradients on a
    sparse matrix, and the evidence one factorisation by elimination.
    """
    from scipy.optimize import minimize_scalar

    began = time.perf_counter()
    pooled = comparisons.pooled()
    thresholds = delta if isinstance(delta, Thresholds) else first_thresholds(pooled, delta, item_tie_spread)
    rows = PooledAnswers.of(pooled, likelihood, thresholds)
    n_effects = 0 if rows.covariates is None else rows.covariates.shape[1]
    prior = PooledPrior.of(K, consensus_variance, Phi, n_effects)
    total_steps = 0
    m = np.zeros(len(prior.precision))

    def mode(delta: float) -> _Mode:
        nonlocal m, total_steps
        found = _newton(rows, prior, delta, m)
        m = found.m  # the next threshold starts from here
        total_steps += found.iterations
        return found

    def likeliest(start: float) -> float:
        guess = math.log(start)
        search = minimize_scalar(
            lambda theta: 0.5 * ((theta - guess) / _THRESHOLD_SD) ** 2 - mode(math.exp(theta)).evidence,
            bracket=(guess, guess + 0.3),
            options={"xtol": _THRESHOLD_TOLERANCE},
        )
        return math.exp(float(search.x))

    if thresholds is None:
        assert not isinstance(delta, Thresholds)
        if delta is None:
            delta = likeliest(starting_threshold(pooled.outcome, pooled.weight)) if pooled.has_ties else 0.0
    else:
        learn_scale, first = not isinstance(delta, Thresholds) and not (delta and thresholds.tie_threshold), thresholds
        for _ in range(0 if isinstance(delta, Thresholds) else _MOST_ROUNDS):
            before = thresholds
            found = margins_without_each(rows, prior, mode(thresholds.scale).m, thresholds.scale, pooled.code)
            thresholds = thresholds.learned(found, item_tie_spread, learn_scale=learn_scale)
            rows = rows.at(thresholds, pooled.code)
            if thresholds.change_from(before) < _STILL:
                break
        if learn_scale:
            thresholds = thresholds.scaled(likeliest(first.scale))
            rows = rows.at(thresholds, pooled.code)
        delta = thresholds.scale
    best = mode(delta)
    best = replace(best, iterations=total_steps, jitter=max(prior.jitter, best.jitter))
    return _state(best, rows, prior, delta, began)


def first_thresholds(answers: Comparisons, delta: float | None, item_tie_spread: float = 0.0) -> Thresholds | None:
    """Where the search for cuts begins; ``delta``: the tie threshold, if it is given. None where δ is all there is."""
    if not answers.grades and not item_tie_spread:
        return None
    ties = starting_threshold(answers.outcome, answers.weight, delta or None)
    found = Thresholds.first(answers.code, answers.weight, len(answers.grades), ties, answers.grades)
    return replace(found, of_items=np.zeros(answers.n_items)) if item_tie_spread else found


def margins_without_each(
    rows: PooledAnswers, prior: PooledPrior, m: FloatArray, delta: float, code: npt.NDArray[np.int8]
) -> GradeRows:  # fmt: skip
    """Laws of the margins at a mode, each without one copy of its answer: what cuts are learned from.

    Of answers of one row, which alone have grades and ties.
    """
    margin = prior.margins(rows, m)
    alone = rows.weight_alone > 0.0
    _, slope, curvature = (one[alone] for one in rows.likelihood(delta).at(rows.outcome, margin))
    mean, left, right = margin[alone], rows.left[alone], rows.right[alone]
    var = np.zeros(len(mean))
    if len(m) <= _MOST_WITH_VARIANCE:
        x = None if rows.covariates is None else rows.covariates[alone]
        P = prior.precision if prior.precision.ndim == 2 else np.diag(prior.precision)
        C = prior.factor(rows, rows.views(delta, margin)[2]).inverse()
        var, before = (margin_variances(prior, one, left, right, x) for one in (C, factorise(P).inverse()))
        # Without the answer no variance is larger than before all; a flat prior's leaves little of other digits.
        share = np.maximum(1.0 - curvature * var, 1.0 / (1.0 + curvature * before))
        mean, var = mean - var * slope / share, var / share
    return GradeRows(code[alone], rows.weight[alone], mean, var, np.ones(len(mean)), left, right)


def margin_variances(
    prior: PooledPrior, C: FloatArray, left: IntArray, right: IntArray, x: FloatArray | None
) -> FloatArray:  # fmt: skip
    """Variances of margins, (n,), of effects of covariates ``x`` (n, n_covariates) too."""
    n = prior.n_functions
    if prior.Phi is None:
        var, A = pair_variance(C[:n, :n], left, right), None
    else:
        A = prior.Phi[left] - prior.Phi[right]
        var = np.einsum("ij,ij->i", A @ C[:n, :n], A)
    if x is None:
        return var
    shared = C[left, n:] - C[right, n:] if A is None else A @ C[:n, n:]
    return np.asarray(var + np.einsum("ij,ij->i", 2.0 * shared + x @ C[n:, n:], x))


def refit_pooled(rows: PooledAnswers, prior: PooledPrior, delta: float, start: FloatArray) -> PooledState:
    """Mode and Laplace approximation at a fixed prior and threshold; concave, so ``start`` does not change the mode."""
    began = time.perf_counter()
    return _state(_newton(rows, prior, delta, start), rows, prior, delta, began)


def _state(best: _Mode, rows: PooledAnswers, prior: PooledPrior, delta: float, began: float) -> PooledState:
    report = Report(
        method="pooled Newton",
        iterations=best.iterations,
        residual=best.step,
        tolerance=_NEWTON_TOLERANCE,
        converged=best.step <= _NEWTON_TOLERANCE,
        jitter=best.jitter,
        seconds=time.perf_counter() - began,
        unit="noise units of the largest change of a margin",
        advice="look for extreme weights or scores",
    )
    return PooledState(best.m, delta, best.evidence, report, best.information, rows, prior)


def _newton(rows: PooledAnswers, prior: PooledPrior, delta: float, start: FloatArray) -> _Mode:
    found = prior.mode(rows, lambda margin: rows.views(delta, margin), start)
    factor = prior.factor(rows, found.information)
    evidence = found.value - 0.5 * (prior.log_det + factor.log_det())
    return _Mode(found.m, found.information, factor.jitter, evidence, found.iterations, found.step)
