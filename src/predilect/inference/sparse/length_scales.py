"""Length-scales that maximise the bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from predilect.errors import PredilectError
from predilect.inference.pooled import PooledAnswers
from predilect.inference.sparse.fit import ScalePrior, SparseFit, solve
from predilect.inference.sparse.gradient import bound_gradient
from predilect.inference.sparse.problem import Problem
from predilect.inference.sparse.stochastic import Schedule
from predilect.posteriors.projection import Projection

__all__ = ["LengthScales", "optimise_length_scales"]

FloatArray = npt.NDArray[np.float64]

_AT_BOUND = 1e-6


@dataclass(frozen=True, slots=True)
class LengthScales:
    """The result of :func:`optimise_length_scales`.

    Attributes
    ----------
    fit : SparseFit
        At the best hyper-parameters found; ``fit.projection.kernel`` has them.
    at_bounds : tuple of str
        Names of those that ended at a bound: a feature that says nothing, or all features at once too much.
    evaluations : int
        Fits.
    converged : bool
    message : str
        Of L-BFGS-B.
    """

    fit: SparseFit
    at_bounds: tuple[str, ...]
    evaluations: int
    converged: bool
    message: str


def optimise_length_scales(
    answers: PooledAnswers,
    projection: Projection,
    prior: ScalePrior | None = None,
    *,
    delta: float = 0.0,
    reach: float = 100.0,
    max_evaluations: int = 20,
    max_iterations: int = 200,
    tolerance: float = 1e-8,
) -> LengthScales:
    """Maximise the bound over a kernel's hyper-parameters by L-BFGS-B on their logarithms.

    Parameters
    ----------
    answers : PooledAnswers
        All of them are looked at in every evaluation: for very many, give some.
    projection : Projection
        With the kernel to start from; the inducing points stay where they are.
    prior : ScalePrior, optional
    delta : float
        Tie threshold.
    reach : float
        Hyper-parameters may become so many times larger or smaller.
    max_evaluations, max_iterations : int
        Fits, and passes over the answers of one fit.
    tolerance : float
        Of one fit, in nats an answer.

    Raises
    ------
    PredilectError
        If bound or gradient is not finite.

    Notes
    -----
    crowdgppl.md 2.5, modern.md 6: exact expectations, whose optimum the gradient belongs to, each fit starting from the
    last one's whitened values.
    """
    kernel, prior = projection.kernel, prior or ScalePrior()
    points = None if projection.A is None else projection.points[projection.known_points]
    theta = kernel.theta
    low, high = theta - np.log(reach), theta + np.log(reach)
    last: SparseFit | None = None
    best: SparseFit | None = None
    evaluations = 0

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal last, best, evaluations
        evaluations += 1
        there = Projection.of(kernel.with_theta(theta), projection.features, projection.known, points)
        problem = Problem.of(there, answers, delta)
        last = solve(
            there, problem, prior, schedule=Schedule(), max_iterations=max_iterations, tolerance=tolerance, start=last
        )
        gradient = bound_gradient(there, problem, last.q, last.scale)
        if not (np.isfinite(last.bound) and np.isfinite(gradient).all()):
            values = ", ".join(f"{n} = {v:.3g}" for n, v in zip(kernel.names, np.exp(theta), strict=True))
            raise PredilectError(
                f"the bound or its gradient is not finite at {values}. Likely causes: features that are not finite or "
                "of very unlike sizes (standardise them), or too wide a reach"
            )
        if best is None or last.bound > best.bound:
            best = last
        return -last.bound / problem.n_answers, -gradient / problem.n_answers

    found = minimize(
        objective,
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxfun": max_evaluations, "ftol": 1e-9, "gtol": 1e-6},
    )
    assert best is not None
    end = best.projection.kernel.theta
    at = (end <= low + _AT_BOUND) | (end >= high - _AT_BOUND)
    names = tuple(name for name, active in zip(kernel.names, at, strict=True) if active)
    return LengthScales(best, names, evaluations, bool(found.success), str(found.message))
