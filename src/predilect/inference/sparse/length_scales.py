"""Length-scales that maximise the bound."""

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

    Returns
    -------
    fit : SparseFit
        At the best hyper-parameters found; ``fit.projection.kernel`` has them.
    search : KernelSearch

    Raises
    ------
    PredilectError
        If bound or gradient is not finite.

    Notes
    -----
    crowdgppl.md 2.5, modern.md 6: exact expectations, whose optimum the gradient belongs to, each fit starting from the
    last one's whitened values.
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
