"""Maximisation of a bound over the hyper-parameters of a kernel, for any model."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from predilect.covariance.kernels import Kernel
from predilect.errors import PredilectError
from predilect.posteriors.projection import Projection

__all__ = ["KernelSearch", "search_kernel"]

FloatArray = npt.NDArray[np.float64]

_AT_BOUND = 1e-6
_TOLERANCE_BOUND, _TOLERANCE_GRADIENT = 1e-9, 1e-6


@dataclass(frozen=True, slots=True)
class KernelSearch:
    """Best hyper-parameters seen, the bound there in nats, and L-BFGS-B's message."""

    kernel: Kernel
    bound: float
    at_bounds: tuple[str, ...]  # names; a feature without effect, or all features at once with too much
    evaluations: int
    converged: bool
    message: str


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
    best, best_theta, evaluations = -np.inf, start, 0

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best, best_theta, evaluations
        evaluations += 1
        bound, gradient = fit(projection.with_kernel(kernel.with_theta(theta)))
        if not (np.isfinite(bound) and np.isfinite(gradient).all()):
            values = ", ".join(f"{n} = {v:.3g}" for n, v in zip(kernel.names, np.exp(theta), strict=True))
            raise PredilectError(
                f"the bound or its gradient is not finite at {values}. Likely causes: features that are not finite or "
                "of very unlike sizes (standardise them), or too wide a reach"
            )
        if bound > best:
            best, best_theta = bound, theta.copy()
        return -bound / unit, -gradient / unit

    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)),
        options={"maxfun": max_evaluations, "ftol": _TOLERANCE_BOUND, "gtol": _TOLERANCE_GRADIENT},
    )  # fmt: skip
    far = (reaches > 0.0) & ((best_theta <= low + _AT_BOUND) | (best_theta >= high - _AT_BOUND))
    names = tuple(name for name, at in zip(kernel.names, far, strict=True) if at)
    best_kernel = kernel.with_theta(best_theta)
    return KernelSearch(best_kernel, float(best), names, evaluations, bool(found.success), str(found.message))
