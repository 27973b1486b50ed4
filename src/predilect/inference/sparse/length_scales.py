"""Type-II maximum likelihood of length-scales on the bound."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from predilect.inference.kernel_search import KernelSearch, search_kernel
from predilect.inference.pooled import PooledAnswers
from predilect.inference.sparse.fit import ScalePrior, SparseFit, solve
from predilect.inference.sparse.gradient import bound_gradient
from predilect.inference.sparse.problem import Problem
from predilect.inference.sparse.stochastic import Schedule
from predilect.posteriors.projection import Projection

__all__ = ["optimise_length_scales"]

FloatArray = npt.NDArray[np.float64]


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
) -> tuple[SparseFit, KernelSearch]:
    """Kernel hyper-parameters of the largest bound, by L-BFGS-B in their logarithms; inducing points stay in place.

    Every evaluation passes over all answers: for very many, give some. PredilectError if bound or gradient is not
    finite. crowdgppl.md 2.5, modern.md 6: exact expectations, whose optimum the gradient belongs to, each fit starting
    from the last one's whitened values.
    """
    prior = prior or ScalePrior()
    last: SparseFit | None = None
    best: SparseFit | None = None

    def fit(there: Projection) -> tuple[float, FloatArray]:
        nonlocal last, best
        problem = Problem.of(there, answers, delta)
        last = solve(
            there, problem, prior, schedule=Schedule(), max_iterations=max_iterations, tolerance=tolerance, start=last
        )
        if best is None or last.bound > best.bound:
            best = last
        return last.bound, bound_gradient(there, problem, last.q, last.scale)

    found = search_kernel(
        projection, fit, reach=math.log(reach), max_evaluations=max_evaluations, unit=answers.n_answers
    )
    assert best is not None
    return best, found
