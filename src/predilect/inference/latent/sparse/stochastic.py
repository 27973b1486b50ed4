"""Natural-gradient ascent of the bound, on all answers or in batches: Algorithm 1 of crowdGPPL as corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.design import Sites
from predilect.inference.latent.sparse.problem import (
    InverseScale,
    MiniBatch,
    SparseGaussian,
    SparseProblem,
    divergence,
    expected_sites,
    linearised_sites,
    natural_parameters,
)
from predilect.inference.likelihoods.views import Likelihood

_SLACK = 1e-13  # of the bound: rounding alone may lower it by as much
_LEAST_STEP = 2.0**-20


@dataclass(frozen=True, slots=True)
class View:
    """Margins as the inducing points explain them, and the lower bound."""

    mean: FloatArray  # (n,), as the next four
    variance: FloatArray
    value: FloatArray  # E log P of one copy of each answer
    slope: FloatArray  # g, in the mean
    curvature: FloatArray  # λ = -2 times the slope in the variance
    bound: float  # in nats


@dataclass(frozen=True, slots=True)
class Ascent:
    """Result of the ascent; ``view`` belongs to ``q`` and ``scale``, ``change`` is of the bound in the last pass."""

    q: SparseGaussian
    scale: InverseScale
    view: View
    iterations: int
    change: float
    converged: bool


def view(batch: MiniBatch, q: SparseGaussian, scale: InverseScale, likelihood: Likelihood) -> View:
    """Bound and its slopes at q, with all variances computed anew."""
    return _at(batch, q, scale, likelihood, batch.margins.mean(q.mean), batch.margins.variance(q.factor.lower))


def _at(
    batch: MiniBatch,
    q: SparseGaussian,
    scale: InverseScale,
    likelihood: Likelihood,
    mean: FloatArray,
    variance: FloatArray,
) -> View:
    value, slope, curvature = likelihood.expected(batch.outcome, mean, variance + batch.residual / scale.value)
    bound = float(batch.weight @ value) - divergence(q, scale)
    return View(mean, variance, value, slope, curvature, bound)


def natural_target(batch: MiniBatch, sites: Sites, scale: float, factor: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Target of a natural-gradient step: s I + π Σ w τ x xᵀ, π Σ w ν x; ``factor`` is π, the answers a row stands for.

    crowdgppl.md 2.2, eqs. 17, 18. The natural gradient of the bound is this less the natural parameters of q.
    """
    together = sites.times(factor * batch.weight)
    return natural_parameters(batch.margins, together.precision, together.linear, scale)


def ascend(
    problem: SparseProblem,
    q: SparseGaussian,
    scale: InverseScale,
    *,
    max_iter: int,
    tolerance: float,
    hold_scale: bool = False,
) -> Ascent:
    """Natural-gradient ascent: steps of 1, halved where the bound would fall, each followed by a step of the scale.

    ``hold_scale`` holds q(s) although it is to be learned. modern.md 3.5, 4, 10. One pass costs what
    :class:`~predilect.inference.latent.sparse.problem.ItemMargins` says, and one more evaluation of E log P where the
    scale is learned and M < n_items. **Differs from modern.md section 4**: there a pass is reverted if the bound falls
    by more than 1e-3 an answer; with one latent function a step that is short enough never lets it fall, so it may not.
    """
    batch, likelihood = problem.all(), problem.likelihood
    now = view(batch, q, scale, likelihood)
    step, change, converged, iterations = 1.0, math.inf, False, 0
    while iterations < max_iter and not converged:
        iterations += 1
        before = now.bound
        least = before - _SLACK * abs(before)
        target = natural_target(batch, Sites(now.curvature, now.slope + now.curvature * now.mean), scale.value)
        step = min(2.0 * step, 1.0)
        while True:
            tried_q = q.towards(*target, step)
            tried = view(batch, tried_q, scale, likelihood)
            if tried.bound >= least:
                q, now = tried_q, tried
                break
            step *= 0.5
            if step < _LEAST_STEP:  # no ascent beyond rounding
                break
        if scale.learned and not hold_scale:
            scale, now = _scaled(batch, q, scale, likelihood, now)
        change = now.bound - before
        converged = change <= tolerance * problem.n_answers and (step >= 0.25 or step < _LEAST_STEP)
        step = max(step, _LEAST_STEP)
    return Ascent(q, scale, now, iterations, change, converged)


def _scaled(
    batch: MiniBatch, q: SparseGaussian, scale: InverseScale, likelihood: Likelihood, now: View
) -> tuple[InverseScale, View]:
    """Ascent step of s (modern.md section 6: with a residual it is no conjugate update)."""
    residual = float((batch.weight * now.curvature) @ batch.residual)
    way = math.log(scale.best(q.square, residual) / scale.value)
    least = now.bound - _SLACK * abs(now.bound)
    part = 1.0
    while part >= _LEAST_STEP:
        tried = scale.at(scale.value * math.exp(part * way))
        # The bound at the tried scale; the part of the margins that the points explain stays.
        seen = _at(batch, q, tried, likelihood, now.mean, now.variance)
        if seen.bound >= least:
            return tried, seen
        part *= 0.5
    return scale, now


_CHECK_EVERY = 2
_CHECKS = 10


@dataclass(frozen=True, slots=True)
class Schedule:
    """Batches and step lengths of Algorithm 1, with its stop rule."""

    batch_size: int | None = None  # |P_i|; None: all answers, with steps of length 1
    forgetting_rate: float = 0.9  # r of the step ρ_i = (i + ε)^-r
    delay: float = 1.0  # ε
    inner_iterations: int = 10  # site updates within a batch; the step always starts from the batch's first q
    inner_tolerance: float = 1e-5  # change of a site's precision that ends them
    max_iter: int = 200  # batches
    whole_epoch: bool = True  # never stop within the first epoch; needless where a pass over all answers follows
    tolerance: float = 1e-4  # relative change of the bound; ten checks in a row below it, one every two batches, stop

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(f"a batch needs at least 1 answer, not {self.batch_size}")
        if not (0.0 <= self.forgetting_rate <= 1.0 and self.delay >= 0.0):
            raise ValueError(
                "the forgetting rate must lie between 0 and 1 and the delay not below 0, "
                f"not {self.forgetting_rate} and {self.delay}"
            )
        if self.max_iter < 1 or self.inner_iterations < 1:
            raise ValueError("there must be at least 1 iteration, and 1 inner iteration")

    def n_batches(self, n_rows: int) -> int:
        """Batches of an epoch, of sizes that differ by 1 at most."""
        return 1 if self.batch_size is None else math.ceil(n_rows / self.batch_size)

    def step(self, iteration: int, n_batches: int) -> float:
        """ρ_i for i = 1, 2, ...; 1 with all answers in one batch."""
        return 1.0 if n_batches == 1 else (iteration + self.delay) ** -self.forgetting_rate


@dataclass(frozen=True, slots=True)
class Stochastic:
    """Result of the batches; ``change``: relative change of the averaged bound between the last two checks."""

    q: SparseGaussian
    scale: InverseScale
    iterations: int
    change: float
    converged: bool


def ascend_in_batches(
    problem: SparseProblem,
    q: SparseGaussian,
    scale: InverseScale,
    Q: FloatArray | None,
    schedule: Schedule,
    random_state: int,
) -> Stochastic:
    """Stochastic natural-gradient ascent: steps of decreasing length, each on one batch of answers.

    ``Q`` (n_rows,): surrogate variances for linearised sites and the conjugate update of the scale; None: sites of the
    exact expectation, and a scale update with the residual. Order is anew in every epoch, without replacement.

    crowdgppl.md 2.2, eqs. 17, 18, and section 3, steps 5 and 6. |P_i| M² + M³ operations an iteration, see
    :func:`~predilect.inference.latent.sparse.problem._margins_of`. The bound of the stop rule is an average of the
    batches' own estimates, with the steps ρ_i for weights, so that it costs nothing that grows with the answers.

    **Differs from the paper**: what is damped where the inner loop oscillates are the sites, not g; the fixed point is
    the same.
    """
    n_batches = schedule.n_batches(problem.n_rows)
    residual, bound = 0.0, -math.inf  # averaged over batches
    checked, change, calm = -math.inf, math.inf, 0
    iteration = 0
    for rows in _batches(problem.n_rows, n_batches, np.random.default_rng(random_state)):
        seen = iteration >= n_batches or not schedule.whole_epoch
        if seen and (iteration >= schedule.max_iter or calm >= _CHECKS):
            break
        iteration += 1
        step = schedule.step(iteration, n_batches)
        factor = problem.n_rows / len(rows)
        batch = problem.all() if n_batches == 1 else problem.batch(rows)
        q_before, scale_before = q, scale
        q, precision, value = _step(problem, batch, q, scale, None if Q is None else Q[rows], factor, step, schedule)
        estimate = factor * float(batch.weight @ value) - divergence(q_before, scale_before)
        if scale.learned:
            first = iteration == 1
            if Q is None:
                found = factor * float((batch.weight * precision) @ batch.residual)
                residual = found if first else (1.0 - step) * residual + step * found
            scale = scale.at(scale.best(q.square, residual))
        bound = estimate if math.isinf(bound) else (1.0 - step) * bound + step * estimate
        if iteration % _CHECK_EVERY == 0:
            change = abs(bound - checked) / max(abs(bound), 1.0) if math.isfinite(checked) else math.inf
            checked = bound
            calm = calm + 1 if change < schedule.tolerance else 0
    return Stochastic(q, scale, iteration, change, calm >= _CHECKS)


def _batches(n_rows: int, n_batches: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Rows of one batch after the other, without end."""
    while True:
        order = np.arange(n_rows) if n_batches == 1 else rng.permutation(n_rows)
        for rows in np.array_split(order, n_batches):
            # In their own order: neighbours in memory, and sums whose bits do not depend on the permutation alone.
            yield np.sort(rows)


def _step(
    problem: SparseProblem,
    batch: MiniBatch,
    q: SparseGaussian,
    scale: InverseScale,
    Q: FloatArray | None,
    factor: float,
    step: float,
    schedule: Schedule,
) -> tuple[SparseGaussian, FloatArray, FloatArray]:
    """One step, always from ``q``, with the sites of where it leads; their precisions, and E log P at ``q``."""
    sites, value = _sites(problem, batch, q, scale, Q)
    now = q.towards(*natural_target(batch, sites, scale.value, factor), step)
    rate, last = 1.0, math.inf
    for _ in range(schedule.inner_iterations - 1):
        fresh, _ = _sites(problem, batch, now, scale, Q)
        moved = float(np.abs(fresh.precision - sites.precision).max())
        if moved <= schedule.inner_tolerance:
            break
        if moved >= last:
            rate *= 0.9
        last = moved
        sites = sites.towards(fresh, rate)
        now = q.towards(*natural_target(batch, sites, scale.value, factor), step)
    return now, sites.precision, value


def _sites(
    problem: SparseProblem, batch: MiniBatch, q: SparseGaussian, scale: InverseScale, Q: FloatArray | None
) -> tuple[Sites, FloatArray]:
    """Sites at an approximation, and E log P there."""
    m = batch.margins.mean(q.mean)
    v = batch.margins.variance(q.factor.lower) + batch.residual / scale.value
    if Q is None:
        return expected_sites(batch.outcome, m, v, problem.likelihood)
    return linearised_sites(batch.outcome, m, Q), problem.likelihood.expected(batch.outcome, m, v)[0]
