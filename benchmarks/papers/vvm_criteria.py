"""Criteria of the tables of the valuable vector machine (Abbasnejad, Bonilla and Sanner 2013), its own and controls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from predilect.compression.criteria import Score, log_improvement
from predilect.compression.posterior import marginal_variances
from predilect.gaussian.posterior import Utilities

__all__ = ["ALPHA", "OF_MARGINALS", "score"]

FloatArray = npt.NDArray[np.float64]
ALPHA = 3.0  # noise of an answer: β = 1 counts utilities in units of 1, ours are in units of the noise
# "taylor" is the paper's second order of a Taylor series of "ucb", a bound of nothing: E f² = σ² + μ² puts an item of
# mean -3 above one of mean .2. vvm.md 3.
OF_MARGINALS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "voi": lambda mean, var: log_improvement(mean, var, mean.max()),
    "ucb": lambda mean, var: mean + 0.5 * ALPHA * var,
    "taylor": lambda mean, var: mean + 0.5 * ALPHA * (var + mean**2),
    "gp-ucb": lambda mean, var: mean + np.sqrt(var),
    "ivm": lambda mean, var: -var,
    "mean": lambda mean, var: mean,
}


def score(name: str, *, marginals: str = "centred", seed: int = 0) -> Score:
    """Scores of a person's items by one of :data:`OF_MARGINALS`, or "random" ones.

    Parameters
    ----------
    name : str
    marginals : {"centred", "raw"}
        Utilities less their mean over the items, or, as in the paper, with the constant that only the prior knows.
    seed : int
        Of random scores.
    """
    rng = np.random.default_rng(seed)

    def of_person(user: int, utilities: Utilities) -> FloatArray:
        if name == "random":
            return rng.random(len(utilities.mean))
        raw = utilities.mean, marginal_variances(utilities)
        mean, var = raw if marginals == "raw" else utilities.centred_marginals()
        return OF_MARGINALS[name](mean, np.maximum(var, 0.0))

    return of_person
