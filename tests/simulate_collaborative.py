"""People who weigh shared functions of the items differently, and what they answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from predilect.inference.factors.answers import FactorAnswers, ItemDesign
from predilect.inference.gaussian.kernels import Stationary, Sum, White
from predilect.inference.gaussian.projection import Projection
from predilect.papers.collaborative.functions import ExactFunctions
from simulate import probit_answers


class Shared(NamedTuple):
    user: np.ndarray
    left: np.ndarray
    right: np.ndarray
    outcome: np.ndarray
    answers: FactorAnswers
    projection: Projection
    X: np.ndarray
    margin: np.ndarray  # the true ones

    @property
    def functions(self) -> ExactFunctions:
        return ExactFunctions(ItemDesign.of(self.projection, self.answers.left, self.answers.right))

    @property
    def K(self) -> np.ndarray:
        return self.projection.factor.lower @ self.projection.factor.lower.T


def simulate_shared(
    seed=0, n_users=8, n_items=6, n_components=2, n_answers=90, length_scale=1.0, delta=0.0, weight=None, strength=1.0
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 2))
    kernel = Sum((Stationary(np.array([length_scale]), "squared-exponential"), White(1e-4)))
    projection = Projection.of(kernel, X, np.ones(n_items, bool), None)
    H = strength * projection.factor.lower @ rng.normal(size=(n_items, n_components))
    F = rng.normal(size=(n_users, n_components)) @ H.T
    user = rng.integers(n_users, size=n_answers)
    left, right, outcome = probit_answers(rng, F, user, delta)
    outcome = outcome.astype(np.int8)
    margin = F[user, left] - F[user, right]
    answers = FactorAnswers.of(user, left, right, outcome, weight, n_users)
    return Shared(user, left, right, outcome, answers, projection, X, margin)
