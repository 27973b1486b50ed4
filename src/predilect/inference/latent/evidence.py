"""Gradient of the evidence in the covariance of one latent function, and type-II maximum likelihood."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, minimize

from predilect._base.progress import Report
from predilect._base.text import either
from predilect._base.types import FloatArray
from predilect.errors import DataError, PredilectError
from predilect.inference.gaussian.dense import symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.kernels.base import CovarianceFunction
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.ep import ep
from predilect.inference.latent.laplace import laplace
from predilect.inference.latent.single import Method, Problem, SingleLatent
from predilect.inference.latent.variational import variational
from predilect.inference.likelihoods.views import Likelihood

K = TypeVar("K", bound=CovarianceFunction)
METHODS = {"laplace": laplace, "ep": ep, "variational": variational}
_REACH = 1e3  # hyper-parameters are searched from a thousandth to a thousand times their start
_TOLERANCE_GRADIENT = 1e-5  # nats per unit of a logarithm: negligible
_TOLERANCE_EVIDENCE = 1e-9  # relative, of the last step


def evidence_gradient(fit: SingleLatent) -> FloatArray:
    """Gradient G of the evidence (or bound) of a converged fit: d evidence = Σ_ij G_ij dK_ij; symmetric.

    EP and variational inference are stationary in their sites, so only the explicit part counts (envelope theorem;
    vvm.md 2.3, modern.md 6):  G = ½ (α αᵀ - R),  R = Aᵀ T^½ B⁻¹ T^½ A.

    Laplace's ψ is stationary in the mode, but log |B| is not. With s = -½ Aᵀ(w V ∂c/∂z), c the curvature and V the
    posterior variances of the margins, and df̂ = (I + K P)⁻¹ dK α, its path adds u αᵀ, u = (I + P K)⁻¹ s = s - P S s
    and S the posterior covariance. O(n_items³) at most.
    """
    state, problem = fit.state, fit.problem
    alpha = state.alpha
    gradient = 0.5 * (np.outer(alpha, alpha) - state.reduction())
    if fit.method == "laplace":
        design = problem.prior.design
        bend = problem.likelihood.curvature_slope(problem.outcome, state.margin_mean)
        s = -0.5 * design.gather(problem.weight * bend * state.margin_var)
        spread = design.margins(state.covariance() @ s)
        u = s - design.gather(state.precision * spread)
        gradient += np.outer(u, alpha)
    return symmetrise(gradient)


class Highest(NamedTuple):
    """The highest value that a search saw, in nats, and where."""

    theta: FloatArray
    value: float
    gradient: FloatArray
    n_evaluations: int
    converged: bool


def maximise(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    names: Sequence[str],
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
    *,
    unit: float = 1.0,
    options: Any,
) -> Highest:
    """Maximum of ``objective(theta)``, a value in nats and its gradient, between bounds by L-BFGS-B.

    ``theta`` (n,) holds logarithms of what ``names`` name; where the bounds meet, it is held. ``unit`` is how many nats
    the search takes for one; ``options``, a dictionary, are those of scipy's L-BFGS-B. PredilectError if value or
    gradient is not finite.
    """
    best: tuple[float, FloatArray, FloatArray] | None = None
    n_evaluations, free = 0, low < high

    def negative(part: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best, n_evaluations
        n_evaluations += 1
        theta = start.copy()
        theta[free] = part
        value, gradient = objective(theta)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise PredilectError(_not_finite(names, theta, value, gradient))
        if best is None or value > best[0]:
            best = value, theta, gradient
        return -value / unit, -gradient[free] / unit

    converged = True
    if free.any():
        found = minimize(
            negative, start[free], jac=True, method="L-BFGS-B", bounds=Bounds(low[free], high[free]), options=options
        )
        converged = bool(found.success)
    else:
        negative(start[free])
    assert best is not None
    return Highest(best[1], best[0], best[2], n_evaluations, converged)


@dataclass(frozen=True, slots=True)
class EvidenceSearch(Generic[K]):
    """Hyper-parameters of the highest evidence found; ``gradient`` is in ``kernel.theta``."""

    kernel: K
    fit: SingleLatent
    gradient: FloatArray
    at_bound: tuple[str, ...]  # in words: "length_scale at its upper bound 30"
    report: Report


def maximise_evidence(
    kernel: K,
    x: FloatArray,
    left: npt.ArrayLike,
    right: npt.ArrayLike | None,
    outcome: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    likelihood: Likelihood | None = None,
    *,
    method: Method = "ep",
    bounds: Mapping[str, tuple[float, float]] | None = None,
    tolerance: float = 1e-8,
    max_evaluations: int = 100,
    stop: tuple[float, float] = (_TOLERANCE_GRADIENT, _TOLERANCE_EVIDENCE),
) -> EvidenceSearch[K]:
    """Type-II maximum likelihood: kernel hyper-parameters by L-BFGS-B on the evidence, in their logarithms.

    Data as in :meth:`Problem.of <predilect.inference.latent.single.Problem.of>`, x (n_items, d); ``bounds`` by the
    names in ``kernel.names``, equal ends hold one. DataError if they name no hyper-parameter or exclude its start,
    PredilectError if evidence or gradient is not finite. ``stop``: largest gradient, and rise of the evidence relative
    to it, at which the search ends. modern.md 10, vvm.md 4: each evaluation starts from the sites
    of the last one. The evidence may have several local maxima; the start decides between them.
    """
    began = time.perf_counter()
    if method not in METHODS:
        raise DataError(f"method must be one of {', '.join(METHODS)}, not {method!r}.")
    box = _box(kernel, bounds or {})
    sites: Sites | None = None

    def fit_at(at: FloatArray) -> tuple[SingleLatent, FloatArray]:
        nonlocal sites
        there = kernel.with_theta(at)
        problem = Problem.of(there(x), left, right, outcome, weight, likelihood)
        fit = METHODS[method](problem, tolerance=tolerance, start=sites)
        sites = fit.sites
        return fit, np.asarray(there.gradient(x, None, evidence_gradient(fit)))

    def objective(at: FloatArray) -> tuple[float, FloatArray]:
        fit, gradient = fit_at(at)
        return fit.evidence, gradient

    start = np.asarray(kernel.theta, dtype=np.float64)
    found = maximise(
        objective, kernel.names, start, *box.T, options={"maxfun": max_evaluations, "gtol": stop[0], "ftol": stop[1]}
    )
    theta = found.theta
    fit, gradient = fit_at(theta)
    # At a bound only the gradient that points inside counts.
    inside = np.clip(theta + gradient, box[:, 0], box[:, 1]) - theta
    residual = float(np.abs(inside).max(initial=0.0))
    report = Report(
        method=f"L-BFGS-B on the evidence ({fit.report.method})",
        iterations=found.n_evaluations + 1,
        residual=residual,
        tolerance=stop[0],
        converged=(found.converged or residual <= stop[0]) and fit.report.converged,
        jitter=fit.report.jitter,
        seconds=time.perf_counter() - began,
        unit="nats per unit of a logarithm",
        advice=either(
            "the answers may say nothing about some hyper-parameters.",
            "raise max_evaluations, or fix hyper-parameters that the answers say nothing about.",
        ),
    )
    return EvidenceSearch(kernel.with_theta(theta), fit, gradient, _at_bound(kernel, theta, box), report)


def _box(kernel: CovarianceFunction, bounds: Mapping[str, tuple[float, float]]) -> FloatArray:
    """Bounds of theta, shape (n_parameters, 2)."""
    unknown = [name for name in bounds if name not in kernel.names]
    if unknown:
        raise DataError(
            f"bounds name hyper-parameters that the kernel does not have: {', '.join(unknown)}; "
            f"it has {', '.join(kernel.names) or 'none'}."
        )
    theta = np.asarray(kernel.theta, dtype=np.float64)
    box = theta[:, None] + np.log(_REACH) * np.array([-1.0, 1.0])
    for place, name in enumerate(kernel.names):
        if name not in bounds:
            continue
        low, high = bounds[name]
        start = float(np.exp(theta[place]))
        if not 0.0 < low <= start * (1.0 + 1e-12) or not start * (1.0 - 1e-12) <= high < np.inf:
            raise DataError(f"{name} starts at {start:g}, outside its bounds ({low:g}, {high:g}).")
        box[place] = np.log(low), np.log(high)
    # A start on a bound, and one held fixed, may differ from it by a rounding of the logarithm.
    box[:, 0] = np.minimum(box[:, 0], theta)
    box[:, 1] = np.where(np.isclose(box[:, 0], box[:, 1], atol=1e-11, rtol=0.0), theta, np.maximum(box[:, 1], theta))
    box[:, 0] = np.where(np.isclose(box[:, 0], box[:, 1], atol=1e-11, rtol=0.0), theta, box[:, 0])
    return np.asarray(box)


def _at_bound(kernel: CovarianceFunction, theta: FloatArray, box: FloatArray) -> tuple[str, ...]:
    at_bounds = []
    for name, value, (low, high) in zip(kernel.names, theta, box, strict=True):
        if low == high:
            continue
        for bound, side in ((low, "lower"), (high, "upper")):
            if abs(value - bound) <= 1e-6:
                at_bounds.append(f"{name} at its {side} bound {np.exp(bound):.4g}")
    return tuple(at_bounds)


def _not_finite(names: Sequence[str], theta: FloatArray, value: float, gradient: FloatArray) -> str:
    values = ", ".join(f"{name} = {np.exp(at):.4g}" for name, at in zip(names, theta, strict=True))
    bad = [name for name, slope in zip(names, gradient, strict=True) if not np.isfinite(slope)]
    what = f"the gradient of the evidence in {', '.join(bad)}" if np.isfinite(value) else "the evidence"
    return (
        f"{what} is not finite at {values}. Likely causes: features with missing or huge values, or a hyper-parameter "
        "so extreme that the kernel over- or underflows. Standardise the features, or narrow the bounds"
    )


_AT_BOUND = 1e-6
_TOLERANCE_BOUND, _TOLERANCE_BOUND_GRADIENT = 1e-9, 1e-6


@dataclass(frozen=True, slots=True)
class KernelSearch:
    """Best hyper-parameters seen and the bound there, in nats."""

    kernel: Kernel
    bound: float
    at_bounds: tuple[str, ...]  # names; a feature without effect, or all features at once with too much
    evaluations: int
    converged: bool


def search_kernel(
    projection: Projection,
    fit: Callable[[Projection], tuple[float, FloatArray]],
    *,
    reach: float,
    held: Collection[str] = (),
    max_evaluations: int = 20,
    unit: float = 1.0,
) -> KernelSearch:
    """Maximum of a bound by L-BFGS-B in the logarithms of a kernel's hyper-parameters; inducing points stay in place.

    ``fit(projection)`` gives the bound in nats and its gradient in theta (n_parameters,). theta stays within ±
    ``reach`` of its start; ``unit`` is how many nats the search takes for one. PredilectError if bound or gradient is
    not finite. crowdgppl.md 2.5, modern.md 6.
    """
    kernel, start = projection.kernel, projection.kernel.theta
    reaches = np.array([0.0 if name in held else reach for name in kernel.names])
    low, high = start - reaches, start + reaches
    found = maximise(
        lambda theta: fit(projection.with_kernel(kernel.with_theta(theta))), kernel.names, start, low, high, unit=unit,
        options={"maxfun": max_evaluations, "ftol": _TOLERANCE_BOUND, "gtol": _TOLERANCE_BOUND_GRADIENT},
    )  # fmt: skip
    far = (reaches > 0.0) & ((found.theta <= low + _AT_BOUND) | (found.theta >= high - _AT_BOUND))
    names = tuple(name for name, at in zip(kernel.names, far, strict=True) if at)
    return KernelSearch(kernel.with_theta(found.theta), found.value, names, found.n_evaluations, found.converged)
