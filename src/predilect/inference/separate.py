"""One Gaussian process a person, by expectation propagation, with a prior variance and tie threshold for all."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from predilect.inference.expectation import Expectation
from predilect.inference.population import settle
from predilect.inference.report import Report
from predilect.likelihoods.probit import threshold_for_tie_share
from predilect.posteriors.law import Law
from predilect.posteriors.people import People, Sites
from predilect.posteriors.population import PopulationPosterior
from predilect.posteriors.separate import SeparatePosterior

__all__ = ["SeparateFit", "fit_separate"]

FloatArray = npt.NDArray[np.float64]

# Of log prior variance and log δ.
_BOUNDS = {"variance": (math.log(1e-4), math.log(1e6)), "delta": (math.log(1e-4), math.log(1e3))}
_LOOSE = 1e-6  # of sites, while hyper-parameters move


@dataclass(frozen=True, slots=True)
class SeparateFit:
    """A fit of one process a person.

    Attributes
    ----------
    posterior : SeparatePosterior
    scale : float
        s, the inverse of the prior variance of a utility.
    delta : float
        Tie threshold.
    evidence : float
        Σ_u log Z_u, in nats.
    report : Report
    """

    posterior: SeparatePosterior
    scale: float
    delta: float
    evidence: float
    report: Report


def fit_separate(
    people: People,
    K: FloatArray,
    *,
    shape: float,
    rate: float,
    scale: float | None = None,
    delta: float | None = None,
    tolerance: float = 1e-5,
    max_iterations: int = 100,
    executor: ThreadPoolExecutor | None = None,
) -> SeparateFit:
    """Everybody's posterior under f_u ~ N(0, K/s).

    Parameters
    ----------
    people : People
        The answers.
    K : array of float, shape (n_items, n_items)
    shape, rate : float
        s ~ Gamma(shape, rate); s is the mode of its posterior, in log s.
    scale : float, optional
        s, if it is given.
    delta : float, optional
        Tie threshold, if it is given; learned where there are ties, and 0 otherwise.
    tolerance : float, default 1e-5
        Stop when the evidence rises by less, in nats an answer.
    max_iterations : int, default 100
        Of L-BFGS over log s and log δ.
    executor : ThreadPoolExecutor, optional
        Threads for the shards of people.

    Notes
    -----
    crowdgppl.md 1, "GPPL per user". **Differs from the paper**: expectation propagation instead of the linearised
    variational approximation, and one s for all people instead of one each, which a few answers cannot tell. The
    gradient in log s is -½ tr((Σ α αᵀ - Q) K/s) + shape - s rate. Each evaluation sweeps everybody's sites, Σ_u n_u
    min(n_u, k_u)².
    """
    began = time.perf_counter()
    ties = people.weight[people.outcome == 0]
    learned = {"variance": scale is None, "delta": delta is None and len(ties) > 0}
    begin = {
        "variance": -math.log(scale) if scale is not None else math.log(rate / shape),
        "delta": math.log(delta) if delta else math.log(threshold_for_tie_share(ties.sum() / people.n_answers)),
    }
    names = [name for name, free in learned.items() if free]
    sites, n_evaluations = Sites.flat(people.n_rows), 0
    zero = np.zeros(len(K))

    def values_of(x: FloatArray) -> tuple[float, float]:
        at = {**begin, **dict(zip(names, x, strict=True))}
        return math.exp(at["variance"]), math.exp(at["delta"]) if delta is None and len(ties) else delta or 0.0

    def settled(variance: float, threshold: float, to: float) -> Expectation:
        return settle(people, sites, Law(variance * K, zero), threshold, tolerance=to, executor=executor)

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        nonlocal n_evaluations
        n_evaluations += 1
        variance, threshold = values_of(x)
        found = settled(variance, threshold, _LOOSE)
        value = found.evidence + shape * -math.log(variance) - rate / variance
        slopes = {
            "variance": 0.5 * variance * float(np.sum(found.D * K)) - shape + rate / variance,
            "delta": threshold * found.slope_delta,
        }
        return -value / people.n_answers, -np.array([slopes[name] for name in names]) / people.n_answers

    x, rise, converged = np.array([begin[name] for name in names]), 0.0, True
    if names:
        bounds = [_BOUNDS[name] for name in names]
        result = minimize(
            objective, x, jac=True, method="L-BFGS-B", bounds=bounds,
            options={"ftol": tolerance, "gtol": tolerance, "maxiter": max_iterations},
        )  # fmt: skip
        x, rise, converged = result.x, float(np.max(np.abs(result.jac), initial=0.0)), bool(result.success)
    variance, threshold = values_of(x)
    final = settled(variance, threshold, 1e-9)
    Sigma = variance * K
    posterior = PopulationPosterior(zero, np.zeros_like(Sigma), Sigma, people, sites)
    report = Report(
        method="EP person by person", iterations=n_evaluations + 1, residual=rise, tolerance=tolerance,
        converged=converged, jitter=0.0, seconds=time.perf_counter() - began,
        unit="nats an answer for a step in a logarithm",
        advice="allow more iterations (max_iterations=...), or fix the scale",
    )  # fmt: skip
    return SeparateFit(
        SeparatePosterior.of(posterior, final.H, final.r), 1.0 / variance, threshold, final.evidence, report
    )
