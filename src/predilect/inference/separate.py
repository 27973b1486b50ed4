"""One Gaussian process a person by expectation propagation, with shared prior variance and tie threshold."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, minimize

from predilect.covariance.kernels import Kernel
from predilect.errors import PredilectError
from predilect.inference.expectation import Expectation
from predilect.inference.population import settle
from predilect.inference.report import Report
from predilect.likelihoods.probit import threshold_for_tie_share
from predilect.posteriors.law import Law
from predilect.posteriors.people import People, Sites
from predilect.posteriors.population import PopulationPosterior
from predilect.posteriors.projection import item_covariance, item_covariance_gradient
from predilect.posteriors.separate import SeparatePosterior

__all__ = ["SeparateFit", "fit_separate"]

FloatArray = npt.NDArray[np.float64]

# Bounds of log prior variance and log δ, and how far the kernel may go from where it starts.
_VARIANCE, _DELTA, _REACH = (math.log(1e-4), math.log(1e6)), (math.log(1e-4), math.log(1e3)), math.log(1e3)
_LOOSE = 1e-6  # of sites, while hyper-parameters move


@dataclass(frozen=True, slots=True)
class SeparateFit:
    """Fitted separate processes; s is the inverse prior variance of a utility, ``evidence`` Σ_u log Z_u in nats."""

    posterior: SeparatePosterior
    kernel: Kernel
    scale: float
    delta: float
    evidence: float
    report: Report


def fit_separate(
    people: People,
    kernel: Kernel,
    features: FloatArray,
    known: npt.NDArray[np.bool_],
    *,
    shape: float,
    rate: float,
    scale: float | None = None,
    delta: float | None = None,
    learn_kernel: bool = False,
    tolerance: float = 1e-5,
    max_iterations: int = 100,
    executor: ThreadPoolExecutor | None = None,
    progress: Callable[[int], None] | None = None,
) -> SeparateFit:
    """Posterior of each person under f_u ~ N(0, K/s), K by :func:`~predilect.posteriors.projection.item_covariance`.

    s is given or the mode, in log s, of its posterior under Gamma(shape, rate); δ is given or learned where there are
    ties; ``learn_kernel`` learns the kernel within a factor of 1000 of its start. ``tolerance`` is of the evidence, in
    nats an answer. PredilectError if the evidence or its gradient is not finite.

    crowdgppl.md 1, "GPPL per user". **Differs from the paper**: expectation propagation instead of the linearised
    variational approximation, and one s for all people instead of one each, which a few answers do not determine. With
    G = ½ Σ_u (α αᵀ - Q), the gradient of the evidence in K/s, that in log s is -tr(G K/s). Each evaluation sweeps the
    sites of all people, Σ_u n_u min(n_u, k_u)².
    """
    began = time.perf_counter()
    tied = float(people.weight[people.outcome == 0].sum())
    n_kernel = len(kernel.theta) if learn_kernel else 0
    free = [scale is None, delta is None and tied > 0.0, *[True] * n_kernel]
    begin = np.array([
        math.log(rate / shape) if scale is None else -math.log(scale),
        math.log(delta or threshold_for_tie_share(tied / people.n_answers)), *kernel.theta[:n_kernel],
    ])  # fmt: skip
    bounds = np.array([_VARIANCE, _DELTA, *[(theta - _REACH, theta + _REACH) for theta in begin[2:]]])
    sites, n_evaluations = Sites.flat(people.n_rows), 0
    zero = np.zeros(people.n_items)
    has_ties = delta != 0.0 and (delta is not None or tied > 0.0)

    def settled(at: FloatArray, to: float) -> tuple[Expectation, Kernel, FloatArray, float]:
        nonlocal n_evaluations
        n_evaluations += 1
        there = kernel.with_theta(at[2:]) if learn_kernel else kernel
        Sigma = item_covariance(there, features, known) / math.exp(-at[0])  # K/s, to the bit
        threshold = math.exp(at[1]) if has_ties else 0.0
        return (
            settle(people, sites, Law(Sigma, zero), threshold, tolerance=to, executor=executor),
            there,
            Sigma,
            threshold,
        )

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        at = begin.copy()
        at[free] = x
        found, there, Sigma, threshold = settled(at, _LOOSE)
        if progress:
            progress(n_evaluations)
        G = 0.5 * found.D
        slope = np.zeros(len(at))
        slope[0] = float(np.sum(G * Sigma)) - shape + rate * math.exp(-at[0])
        slope[1] = threshold * found.slope_delta
        if learn_kernel:
            slope[2:] = math.exp(at[0]) * item_covariance_gradient(there, features, known, G)
        value = found.evidence - shape * at[0] - rate * math.exp(-at[0])
        if not (math.isfinite(value) and np.isfinite(slope).all()):
            raise PredilectError(
                f"the evidence or its gradient is not finite at prior variance {math.exp(at[0]):.3g}. Likely causes: "
                "features of very different sizes, or a kernel that overflows. Standardise the features"
            )
        return -value / people.n_answers, -slope[free] / people.n_answers

    residual, converged = 0.0, True
    if any(free):
        result = minimize(
            objective, begin[free], jac=True, method="L-BFGS-B", bounds=Bounds(bounds[free, 0], bounds[free, 1]),
            options={"ftol": tolerance, "gtol": tolerance, "maxiter": max_iterations},
        )  # fmt: skip
        begin[free] = result.x
        residual, converged = float(np.max(np.abs(result.jac), initial=0.0)), bool(result.success)
    final, there, Sigma, threshold = settled(begin, 1e-9)
    converged = converged and final.is_sound
    posterior = PopulationPosterior(zero, np.zeros_like(Sigma), Sigma, people, sites)
    report = Report(
        method="EP person by person", iterations=n_evaluations, residual=residual, tolerance=tolerance,
        converged=converged, jitter=0.0, seconds=time.perf_counter() - began,
        unit="nats an answer for a step in a logarithm",
        advice="allow more iterations (max_iterations=...), or fix the scale",
    )  # fmt: skip
    everybody = SeparatePosterior.of(posterior, final.H, final.D, final.r)
    return SeparateFit(everybody, there, math.exp(-begin[0]), threshold, final.evidence, report)
