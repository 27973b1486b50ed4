"""Fits of a latent function with its scale s and the tie threshold at their modes, by EP or Laplace."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from predilect._base.types import FloatArray
from predilect.inference.gaussian.design import Sites
from predilect.inference.latent.ep import ep
from predilect.inference.latent.laplace import laplace
from predilect.inference.latent.pooled import PooledAnswers
from predilect.inference.latent.single import Problem, SingleLatent
from predilect.inference.likelihoods.probit import starting_threshold
from predilect.inference.likelihoods.views import PairLikelihood, Probit

_MOST_ROWS = 20_000
_FURTHEST_THRESHOLD = 1.5  # of log δ in a step: the rest comes with the next margins


def best_threshold(
    outcome: npt.NDArray[np.int8], weight: FloatArray, m: FloatArray, v: FloatArray, delta: float,
    likelihood: type[PairLikelihood] = Probit,
) -> float:  # fmt: skip
    """Tie threshold of the largest Σ w E log P(outcome | z; δ), z ~ N(m, v); arrays (n,).

    Coordinate ascent on the bound, found within a factor of 4.5 of ``delta``. population.md section 2 has the
    likelihood. Some 15 evaluations on at most 20 000 rows, evenly spaced ones of more.
    """
    rows = slice(None, None, max(1, len(m) // _MOST_ROWS))
    y, w, mean, var = outcome[rows], weight[rows], m[rows], v[rows]
    at = math.log(delta)
    found = minimize_scalar(
        lambda log_delta: -float(w @ likelihood(math.exp(log_delta)).expected(y, mean, var)[0]),
        bounds=(at - _FURTHEST_THRESHOLD, at + _FURTHEST_THRESHOLD), method="bounded", options={"xatol": 1e-4},
    )  # fmt: skip
    return math.exp(float(found.x))


SCALED = {"ep": ep, "laplace": laplace}
_ROUNDS, _TOLERANCE = 8, 1e-3  # of log s and log δ, turn about
_FURTHEST = 4.0  # of log s in a round


@dataclass(frozen=True, slots=True)
class ScaledFit:
    """Posterior, s and δ of :func:`fit_scaled`."""

    latent: SingleLatent
    scale: float
    delta: float


class _ScaledFits:
    """Fits at successive s and δ, each from the sites of the last."""

    def __init__(self, method: str, K: FloatArray, answers: PooledAnswers, prior: tuple[float, float]) -> None:
        self.method, self.K, self.answers, self.prior = method, K, answers, prior
        self.sites: Sites | None = None
        self.iterations = 0

    def fit(self, variance: float, delta: float) -> SingleLatent:
        rows = self.answers
        problem = Problem.of(
            variance * self.K, rows.left, rows.right, rows.outcome, rows.weight, rows.likelihood(delta)
        )
        found = SCALED[self.method](problem, start=self.sites)
        self.sites = found.sites
        self.iterations += found.report.iterations
        return found

    def variance(self, before: float, delta: float) -> float:
        """Mode of the prior variance near ``before``."""
        shape, rate = self.prior

        def objective(x: float) -> float:
            return shape * x + rate * math.exp(-x) - self.fit(math.exp(x), delta).evidence

        at = math.log(before)
        found = minimize_scalar(
            objective, bounds=(at - _FURTHEST, at + _FURTHEST), method="bounded", options={"xatol": _TOLERANCE}
        )
        return math.exp(float(found.x))


def fit_scaled(
    method: str,
    K: FloatArray,
    answers: PooledAnswers,
    *,
    shape: float,
    rate: float,
    scale: float | None = None,
    delta: float | None = None,
) -> ScaledFit:
    """Fit of one latent function by "ep" or "laplace", with s at its posterior mode, in log s.

    s ~ Gamma(shape, rate) a priori. A given s or δ is held; δ is learned where there are ties, and 0 otherwise.

    modern.md 10. Some 15 fits a round, of which one is enough without ties; n_items³ operations an iteration of a fit.
    """
    began = time.perf_counter()
    search = _ScaledFits(method, K, answers, (shape, rate))
    threshold = starting_threshold(answers.outcome, answers.weight, delta)
    learn_delta = delta is None and threshold > 0.0
    variance = rate / shape if scale is None else 1.0 / scale
    for _ in range(_ROUNDS):
        before = math.log(variance), threshold
        if scale is None:
            variance = search.variance(variance, threshold)
        found = search.fit(variance, threshold)
        if learn_delta:
            at, rows = found.state, answers
            threshold = best_threshold(
                rows.outcome, rows.weight, at.margin_mean, at.margin_var, threshold, rows.likelihood
            )
        if abs(math.log(variance) - before[0]) < _TOLERANCE and abs(threshold - before[1]) <= _TOLERANCE * threshold:
            break
    latent = search.fit(variance, threshold)
    # The last fit starts at its fixed point: the report counts the iterations of the search.
    report = replace(latent.report, iterations=search.iterations, seconds=time.perf_counter() - began)
    return ScaledFit(replace(latent, report=report), 1.0 / variance, threshold)
