"""Posterior of one utility function through inducing points."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from predilect._base.progress import Report
from predilect._base.stored import LARGEST, PART, numbers, within
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.inference.gaussian.dense import covariances, symmetrise
from predilect.inference.gaussian.design import pair_variance
from predilect.inference.gaussian.posterior import Posterior, Utilities
from predilect.inference.gaussian.projection import Projection, item_covariance
from predilect.inference.latent.pooled import PooledAnswers
from predilect.inference.latent.scaled import best_threshold
from predilect.inference.latent.sparse.problem import (
    InverseScale,
    SparseGaussian,
    SparseProblem,
    linearised_sites,
    surrogate_variance,
)
from predilect.inference.latent.sparse.stochastic import Schedule, ascend, ascend_in_batches, natural_target, view
from predilect.inference.likelihoods.probit import starting_threshold
from predilect.inference.likelihoods.views import Probit


@dataclass(frozen=True, slots=True)
class SparsePosterior(Posterior):
    """f = A f_m + r with f_m ~ N(mean, covariance) and r ~ N(0, R/scale), the same for every user.

    crowdgppl.md 2.2, eqs. 14 and 20 corrected: A S Aᵀ + (K_nn - A K_mn)/E s.
    """

    is_pooled: ClassVar[bool] = True

    projection: Annotated[Projection, PART]  # A and R
    mean: Annotated[FloatArray, numbers("M")]  # of f at the M inducing points
    covariance: Annotated[FloatArray, covariances("M M")]
    scale: Annotated[float, within(1.0 / LARGEST)]  # E s, the inverse scale of the prior

    def checked(self) -> None:
        """ValueError unless there is a value at each point."""
        if len(self.mean) != self.projection.n_points:
            raise ValueError(f"{self.projection.n_points} inducing points, but values at {len(self.mean)}")

    @property
    def n_items(self) -> int:
        return self.projection.n_items

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f(left) - f(right), (n,), residual included; ``users`` makes no difference."""
        left, right = np.asarray(left), np.asarray(right)
        f = self.projection.expand(self.mean)
        var = pair_variance(self.covariance, left, right, self.projection.A)
        return f[left] - f[right], var + self.projection.residual_pairs(left, right) / self.scale

    def utilities(self, user: int = -1) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items) of the utilities; exact for any number of items."""
        S = self.covariance if self.projection.A is None else self.projection.A @ self.covariance @ self.projection.A.T
        return self.projection.expand(self.mean), symmetrise(S + self.projection.residual() / self.scale)

    def person(self, user: int = -1) -> Utilities:
        """Utilities in the form that boards are made from: for very many items coarser than :meth:`margins`."""
        return Utilities.through(self.projection, self.mean, self.covariance, 1.0 / self.scale)

    def crowd(self) -> Utilities:
        return self.person()

    def prior(self) -> Utilities:
        p = self.projection
        return Utilities.of(np.zeros(p.n_items), item_covariance(p.kernel, p.features, p.known) / self.scale)

    def with_items(self, features: FloatArray, known: BoolArray) -> SparsePosterior:
        """With items appended that have no answers; those without features get the prior, uncorrelated with others."""
        return replace(self, projection=self.projection.with_items(features, known))


RULES = ("expected", "linearised")
_ROWS_IN_ONE_BATCH = 20_000
_ROWS_A_POINT = 10
# 10^6 answers on 10^5 items, M = 500: after 50 batches the bound lies 2e-4 nat an answer below its end; one pass over
# all answers leaves 1e-8, and the next confirms it.
_EXPECTED_BATCHES = 50
_LAST_PASSES = 5


@dataclass(frozen=True, slots=True)
class ScalePrior:
    """Prior s ~ Gamma(shape, rate) of f ~ N(0, K/s); s is held at shape/rate unless ``learned``.

    ``noise_var``: noise of one item in one answer, in the units of ``rate``: 1/2 in the paper (P = Φ(f_a - f_b)), 1 in
    the authors' code (P = Φ((f_a - f_b)/√2)). Utilities are in units of the noise of an answer in both cases.
    """

    shape: float = 1.0
    rate: float = 1.0
    noise_var: float = 0.5
    learned: bool = True

    def start(self, n_points: int) -> InverseScale:
        """Initial q(s), before any answer.

        crowdgppl.md, (i) and (ii): f_(ii) = √2 f_(i), so noise_var = 1 with rate 2 β₀ is noise_var = 1/2 with β₀.
        """
        if not self.noise_var > 0.0:
            raise ValueError(f"noise_var must be positive, not {self.noise_var}")
        return InverseScale.prior(self.shape, self.rate / (2.0 * self.noise_var), n_points, self.learned)


@dataclass(frozen=True, slots=True)
class SparseFit:
    """Fitted sparse process."""

    projection: Projection
    q: SparseGaussian  # of the whitened values u; f_m = L u with K_mm = L Lᵀ
    scale: InverseScale
    delta: float
    bound: float  # lower bound with exact expectations, in nats, whatever the rule
    report: Report

    def posterior(self) -> SparsePosterior:
        """Posterior over items."""
        mean, covariance = self.projection.at_points(self.q.mean, self.q.factor.lower)
        return SparsePosterior(self.projection, mean, covariance, self.scale.value)


def schedule_for(n_rows: int, n_points: int, rule: str = "expected") -> Schedule:
    """Batch schedule for so many distinct answers.

    All at once up to 20 000 answers. Beyond, batches of 10 M answers, at least 1 000, so that M³ of a step is small
    beside |P_i| M² and an epoch costs little more than a pass. The inner loop is the paper's; the natural gradient of
    exact expectations needs none.
    """
    size = None if n_rows <= _ROWS_IN_ONE_BATCH else max(1000, _ROWS_A_POINT * n_points)
    if rule == "linearised":
        return Schedule(batch_size=size)
    return Schedule(batch_size=size, inner_iterations=1, max_iter=_EXPECTED_BATCHES, whole_epoch=False)


def fit_sparse(
    answers: PooledAnswers,
    projection: Projection,
    prior: ScalePrior | None = None,
    *,
    delta: float = 0.0,
    **options: Any,
) -> SparseFit:
    """Sparse variational fit to answers; ``options`` as of :func:`solve`. DataError for ties without a threshold."""
    return solve(projection, SparseProblem.of(projection, answers, delta), prior or ScalePrior(), **options)


def solve(
    projection: Projection,
    problem: SparseProblem,
    prior: ScalePrior,
    *,
    rule: str = "expected",
    surrogate: str = "corrected",
    schedule: Schedule | None = None,
    max_iter: int = 200,
    tolerance: float = 1e-6,
    random_state: int = 0,
    start: SparseFit | None = None,
) -> SparseFit:
    """Sparse variational fit of f = A f_m + r, f_m ~ N(0, K_mm/s), s ~ Gamma.

    ``rule``: "expected" for exact expectations, or "linearised" for the paper's surrogate, where a tie is half a win
    for each side; ``surrogate``: "corrected" or "2020", its variance. ``max_iter`` of passes over all answers
    ("expected"; at most 5 after batches), ``tolerance`` in nats an answer. ``start``: a fit with as many points, with
    any kernel or threshold; "expected" then needs no batches. ValueError for an unknown
    rule or surrogate.

    crowdgppl.md 2.2 and 3, modern.md 3.5. With "expected", batches end with passes over all answers at a held scale,
    until the bound converges (two as a rule); with "linearised", with one more step, all answers for a batch.
    """
    if rule not in RULES:
        raise ValueError(f"the rule must be one of {', '.join(RULES)}, not {rule!r}")
    if rule == "linearised" and not isinstance(problem.likelihood, Probit):
        raise ValueError(f"linearised sites are for the probit, not for a likelihood called {problem.likelihood.name}")
    began = time.perf_counter()
    M = problem.n_points
    scale = prior.start(M)
    if start is not None and prior.learned:
        scale = scale.at(start.scale.value)
    q = SparseGaussian.prior(M, scale.value) if start is None else start.q
    schedule = schedule or schedule_for(problem.n_rows, M, rule)
    n_batches = schedule.n_batches(problem.n_rows)
    jitter = projection.factor.jitter

    def finish(q: SparseGaussian, scale: InverseScale, bound: float, *figures: float, unit: str) -> SparseFit:
        iterations, residual, limit, converged = figures
        report = Report(
            method=f"sparse variational inference, {rule}", iterations=int(iterations), residual=residual,
            tolerance=limit, converged=bool(converged), jitter=max(jitter, q.factor.jitter),
            seconds=time.perf_counter() - began, unit=unit, advice="allow more iterations",
        )  # fmt: skip
        return SparseFit(projection, q, scale, problem.likelihood.delta, bound, report)

    if rule == "expected":
        seen, fresh = 0, n_batches > 1 and start is None  # a start is nearer than what batches find
        if fresh:
            batched = ascend_in_batches(problem, q, scale, None, schedule, random_state)
            q, scale, seen = batched.q, batched.scale, batched.iterations
        passes = max_iter if n_batches == 1 else min(_LAST_PASSES, max_iter)
        done = ascend(problem, q, scale, max_iter=passes, tolerance=tolerance, hold_scale=fresh)
        change = done.change / problem.n_answers
        return finish(
            done.q, done.scale, done.view.bound, seen + done.iterations, change, tolerance, done.converged,
            unit="nats an answer of the bound",
        )  # fmt: skip
    Q = surrogate_variance(problem.prior_variance(scale.value), surrogate)
    batched = ascend_in_batches(problem, q, scale, Q, schedule, random_state)
    q, scale, batch = batched.q, batched.scale, problem.all()
    sites = linearised_sites(problem.outcome, batch.margins.mean(q.mean), Q)
    q = q.towards(*natural_target(batch, sites, scale.value), schedule.step(batched.iterations + 1, n_batches))
    return finish(
        q, scale, view(batch, q, scale, problem.likelihood).bound, batched.iterations, batched.change,
        schedule.tolerance, batched.converged, unit="relative change of the averaged bound",
    )  # fmt: skip


_ROUNDS, _TOLERANCE = 8, 1e-3  # of log δ


def fit_with_threshold(
    answers: PooledAnswers,
    fit: Callable[[float, SparseFit | None], SparseFit],
    progress: Callable[[int], None] | None = None,
) -> SparseFit:
    """Alternation of fit and tie threshold to convergence; ``delta`` of the result is 0 without ties.

    ``fit(delta, earlier)`` starts from an earlier fit if there is one. Coordinate ascent on the bound; 8 rounds at
    most, each a fit that starts near its optimum.
    """
    threshold = starting_threshold(answers.outcome, answers.weight)
    found = fit(threshold, None)
    for round_ in range(_ROUNDS if threshold > 0.0 else 0):
        if progress is not None:
            progress(round_ + 1)
        m, v = found.posterior().margins(answers.left, answers.left, answers.right)
        again = best_threshold(answers.outcome, answers.weight, m, v, threshold, answers.likelihood)
        moved, threshold = abs(math.log(again / threshold)), again
        found = fit(threshold, found)
        if moved < _TOLERANCE:
            break
    return found
