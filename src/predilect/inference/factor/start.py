"""Random start of the factor model."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from predilect.inference.factor.answers import FactorAnswers
from predilect.inference.factor.items import FunctionState, ItemDesign
from predilect.inference.factor.state import FactorState
from predilect.inference.threshold import starting_threshold

__all__ = ["random_start"]

FloatArray = npt.NDArray[np.float64]


def random_start(
    answers: FactorAnswers, design: ItemDesign, n_components: int, consensus: bool, prior: FloatArray,
    threshold: float | None, rng: np.random.Generator, *, s_0: float = 0.1, s: float = 0.5,
) -> FactorState:  # fmt: skip
    """Random functions and weights: modern.md 4.2. Zero means are a saddle (crowdgppl.md 2.3).

    ``prior`` (n_users, C): prior mean of the weights; s_0, s: initial inverse scales of consensus and components.
    """
    n_users, M, C = answers.n_users, design.n_points, n_components
    if threshold is None:
        threshold = starting_threshold(answers.outcome, answers.weight)
    n_pairs = len(answers.left)
    spread = design.prior_variances()
    state = FactorState(
        None, [], s_0, np.full(C, s), np.zeros(n_pairs), np.zeros(n_pairs), np.zeros((n_pairs, C)),
        np.zeros((n_pairs, C)), prior.copy(), np.zeros((n_users, C)), np.zeros((n_users, C, C)),
        np.full(n_users, C * math.log(0.5)), threshold,
    )  # fmt: skip
    if consensus:
        state.set_consensus(_about(design, np.zeros(M), s_0, spread), design)
    for c in range(C):
        x = 0.5 * rng.standard_normal(M) / math.sqrt(s)
        state.components.append(_about(design, x, s, spread))
        state.set_component(c, state.components[c], design)
    state.mu[:] = rng.standard_normal((n_users, C))
    state.Sigma[:] = 0.5 * np.eye(C)
    return state


def _about(design: ItemDesign, mean: FloatArray, s: float, spread: FloatArray) -> FunctionState:
    """Prior covariance about a mean."""
    M = len(mean)
    return FunctionState(
        mean, math.sqrt(s) * np.eye(M), float(mean @ mean) + M / s, -M * math.log(s), design.margins.mean(mean),
        spread / s,
    )  # fmt: skip
