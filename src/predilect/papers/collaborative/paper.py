"""Expectation propagation with variational Bayes for products, as in the paper and corrected: collaborative.md 3."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from predilect._base.progress import Report
from predilect._base.types import FloatArray
from predilect.inference.factors.answers import CrowdWeights, FactorAnswers, ProcessWeights, WeightPrior
from predilect.inference.factors.posterior import FactorPosterior
from predilect.inference.gaussian.design import Sites
from predilect.inference.latent.single import change_of_margin
from predilect.inference.likelihoods.probit import moved_threshold, starting_threshold
from predilect.papers.collaborative.functions import (
    CollaborativeFit,
    Process,
    Values,
    importances,
    singular_start,
)
from predilect.papers.collaborative.sites import (
    Factors,
    answer_evidence,
    gaussian_divergence,
    process_divergence,
    product_moments,
    product_passes,
    refreshed_sites,
)

_INNER_TOLERANCE = 1e-6  # of the bound, relative
_MOST_PASSES = 500


@dataclass(slots=True)
class _Factor:
    """One factor of the margins, weights of people or values of functions; arrays (n, D) but prior_var (n,)."""

    process: Process | None  # None: independent entries, which need no message but the prior
    prior_var: FloatArray
    cavity_mean: FloatArray  # of f̂3 or f̂4
    cavity_var: FloatArray
    mean: FloatArray  # of Q
    var: FloatArray

    @classmethod
    def of(cls, process: Process | None, prior_var: FloatArray, n_components: int) -> _Factor:
        """Factor without messages."""
        var = np.repeat(prior_var[:, None], n_components, axis=1)
        zero = np.zeros_like(var)
        return cls(process, prior_var, zero, var, zero.copy(), var.copy())

    def messages(self, d: int) -> Sites:
        """f̂2 of one function: Q over f̂3 or f̂4; never of negative precision, as Q only adds to it."""
        cavity_var, var = self.cavity_var[:, d], self.var[:, d]
        free = cavity_var > 0.0
        one, other = np.where(free, var, 1.0), np.where(free, cavity_var, 1.0)
        precision = np.where(free, np.maximum(1.0 / one - 1.0 / other, 0.0), 0.0)
        return Sites(precision, np.where(free, self.mean[:, d] / one - self.cavity_mean[:, d] / other, 0.0))

    def conditioned(self) -> list[Values]:
        """Marginals of every function given its messages."""
        assert self.process is not None
        return [self.process.condition(self.messages(d)) for d in range(self.mean.shape[1])]

    def move(self, found: Sequence[Values], step: float) -> int:
        """Damped step of f̂3 or f̂4 to the marginals over the messages; the number of those that stay."""
        rejected = 0
        for d, values in enumerate(found):
            sites, mean, var = self.messages(d), self.cavity_mean[:, d], self.cavity_var[:, d]
            share = 1.0 - sites.precision * values.var
            good = (share > 0.0) & (values.var > 0.0) & (var > 0.0)
            rejected += int(np.sum(~good & (self.prior_var > 0.0)))
            tau, nu = (1.0 / var[good], mean[good] / var[good])
            target_var = values.var[good] / share[good]
            target_mean = (values.mean[good] - values.var[good] * sites.linear[good]) / share[good]
            tau = (1.0 - step) * tau + step / target_var
            nu = (1.0 - step) * nu + step * target_mean / target_var
            self.cavity_var[good, d], self.cavity_mean[good, d] = 1.0 / tau, nu / tau
        return rejected

    def divergence(self, found: Sequence[Values]) -> float:
        """KL of all functions from their prior."""
        if self.process is None:
            prior = np.repeat(self.prior_var[:, None], self.mean.shape[1], axis=1)
            return gaussian_divergence(self.mean, self.var, prior)
        return sum(
            process_divergence(values.log_z, self.messages(d), self.mean[:, d], self.var[:, d])
            for d, values in enumerate(found)
        )


def fit_paper(
    answers: FactorAnswers, functions: Process, *, n_components: int = 20, people: Process | None = None,
    fixed_weights: bool = False, delta: float | None = None, damping: float = 0.5, tolerance: float = 1e-2,
    max_iter: int = 400, random_state: int = 0, watch: Callable[[int, float], None] | None = None,
) -> CollaborativeFit:  # fmt: skip
    """Posterior of f_u = Σ_d w_ud h_d with messages for every entry of W, H and G: preset ``paper``.

    ``functions`` is the process of every h_d, ``people`` that of w_d, N(0, I) by default. ``damping``: share of the new
    in f̂1, f̂3 and f̂4. ``fixed_weights``, ``delta`` and ``tolerance`` as in
    :func:`~predilect.papers.collaborative.training.fit_modern`, with its ValueError.

    collaborative.md 3. f̂2 is not kept but made from Q when it is needed, so that nothing in it can be out of date, and
    it is not damped, only its inputs are. An iteration takes some 20 passes of 16 n_rows D operations, and D
    conditionings of the process.

    **Differs from the paper**: the step stays as it is, where the paper's shrinks by 5 % an iteration, so that on most
    data it dies away far from the fixed point; residuals are those of undamped updates. Where f̂1 has no proper cavity
    it stays, and ``n_rejected`` counts it. Ties.
    """
    began = time.perf_counter()
    if fixed_weights and n_components != 1:
        raise ValueError("weights that are fixed at 1 need one function")
    rng = np.random.default_rng(random_state)
    y, n = answers.outcome, answers.weight
    w_prior = np.ones(answers.n_users) if people is None else people.prior_var
    W = _Factor.of(people, np.zeros(answers.n_users) if fixed_weights else w_prior, n_components)
    H = _Factor.of(functions, functions.prior_var, n_components)
    if fixed_weights:
        W.mean[:], W.cavity_mean[:] = 1.0, 1.0
    threshold = starting_threshold(y, n, delta)
    sites = Sites.flat(len(y))
    mean, var = np.empty(len(y)), np.empty(len(y))
    _moments(answers, W, H, mean, var)
    residual, rejected, iterations, values, gaps = math.inf, 0, 0, [], 0.0
    found_W: list[Values] = []
    found_H: list[Values] = []
    while True:
        new = refreshed_sites(y, n, sites, mean, var, threshold, keep=True)
        rejected += int(new.improper.sum())
        residual = max(gaps, change_of_margin(n, sites, new.sites, mean, var))
        if watch is not None and iterations:
            watch(iterations, residual)
        if (iterations and residual <= tolerance) or iterations == max_iter:
            break
        sites = sites.towards(new.sites, damping) if iterations else new.sites
        before = mean.copy()
        if not iterations and not fixed_weights:
            W.mean, H.mean = singular_start(answers, sites, n_components, H.prior_var, rng)
            before = np.full(len(y), np.inf)
        _ascend(answers, sites, W, H, mean)
        _moments(answers, W, H, mean, var)
        gaps = float(np.max(np.abs(mean - before)))
        found_H = H.conditioned()
        gaps = max(gaps, _gap(answers, W.mean, W.var, *_stack(found_H), mean, var))
        rejected += H.move(found_H, damping)
        if people is not None:
            found_W = W.conditioned()
            gaps = max(gaps, _gap(answers, *_stack(found_W), H.mean, H.var, mean, var))
            rejected += W.move(found_W, damping)
        found = answer_evidence(y, n, sites, mean, var, threshold)
        values.append(found.value - H.divergence(found_H) - W.divergence(found_W))
        if delta is None and threshold > 0.0:
            threshold = moved_threshold(threshold, found.slope, found.curvature)
        iterations += 1
    report = Report(
        "EP with variational Bayes for products", iterations, residual, tolerance, residual <= tolerance, 0.0,
        time.perf_counter() - began, "noise units of the largest change of a margin without damping",
        "allow more iterations, or try preset='modern'.",
    )  # fmt: skip
    parts = importances(answers.user, answers.pair, n, W.mean, H.mean)
    posterior = _posterior(answers, functions, people, W, H)
    return CollaborativeFit(posterior, threshold, values[-1], parts, rejected, sites, report)


def _posterior(
    answers: FactorAnswers, functions: Process, people: Process | None, W: _Factor, H: _Factor
) -> FactorPosterior:
    """Functions given the messages about them, and Q(W): collaborative.md 3, "Prediction"."""
    D = W.mean.shape[1]
    points = [functions.at_points(H.messages(d)) for d in range(D)]
    law: WeightPrior
    if people is not None:
        at = [people.at_points(W.messages(d)) for d in range(D)]
        law = ProcessWeights(
            people.projection, np.ones(D, dtype=bool), np.column_stack([mean for mean, _ in at]),
            np.stack([covariance for _, covariance in at]), np.ones(D),
        )  # fmt: skip
    else:
        active = np.diff(answers.user_ptr) > 0
        law = CrowdWeights.average(W.mean[active], W.var[active])
        W.mean[~active], W.var[~active] = law.law(D, None)
    return FactorPosterior(
        functions.projection, None, None, 1.0, np.column_stack([mean for mean, _ in points]),
        np.stack([covariance for _, covariance in points]), np.ones(D), W.mean, W.var, law,
    )  # fmt: skip


def _stack(found: Sequence[Values]) -> tuple[FloatArray, FloatArray]:
    return np.column_stack([values.mean for values in found]), np.column_stack([values.var for values in found])


def _moments(answers: FactorAnswers, W: _Factor, H: _Factor, mean: FloatArray, var: FloatArray) -> None:
    product_moments(answers.user, answers.pair, W.mean, W.var, H.mean, H.var, mean, var)


def _gap(
    answers: FactorAnswers, w_mean: FloatArray, w_var: FloatArray, h_mean: FloatArray, h_var: FloatArray,
    mean: FloatArray, var: FloatArray,
) -> float:  # fmt: skip
    """Largest move of a margin, in mean and in standard deviation, if these were the factors."""
    other_mean, other_var = np.empty_like(mean), np.empty_like(var)
    product_moments(answers.user, answers.pair, w_mean, w_var, h_mean, h_var, other_mean, other_var)
    return float(max(np.max(np.abs(other_mean - mean)), np.max(np.abs(np.sqrt(other_var) - np.sqrt(var)))))


def _ascend(answers: FactorAnswers, sites: Sites, W: _Factor, H: _Factor, margin: FloatArray) -> FloatArray:
    """Variational step: Q(W) and Q(H) at f̂1, f̂3 and f̂4; the bound after every pass."""
    messages = sites.times(answers.weight)
    bounds = np.empty(_MOST_PASSES)
    scale = answers.n_answers
    done = product_passes(
        answers.user, answers.pair, messages.precision, messages.linear,
        Factors(W.cavity_mean, W.cavity_var, H.cavity_mean, H.cavity_var), Factors(W.mean, W.var, H.mean, H.var),
        margin, _INNER_TOLERANCE * scale, _MOST_PASSES, bounds,
    )  # fmt: skip
    return bounds[:done]
