"""A small crowd simulated from the factor model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from predilect.inference.factors.answers import FactorAnswers
from predilect.inference.gaussian.kernels import matern
from predilect.inference.gaussian.projection import Projection
from simulate import probit_answers


class FactorCrowd(NamedTuple):
    user: np.ndarray
    left: np.ndarray
    right: np.ndarray
    outcome: np.ndarray
    n_users: int
    X: np.ndarray
    projection: Projection
    margin: np.ndarray  # the true ones

    @property
    def answers(self):
        return FactorAnswers.of(*self.columns)

    @property
    def columns(self):
        return self.user, self.left, self.right, self.outcome, None, self.n_users


def simulate_factor(seed=0, n_users=12, n_items=9, n_components=2, n_answers=160, n_points=None, delta=0.0, s=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 2))
    kernel = matern([1.5, 1.5])
    root = np.linalg.cholesky(kernel(X) + 1e-8 * np.eye(n_items))
    t, V = root @ rng.normal(size=n_items), root @ rng.normal(size=(n_items, n_components)) / np.sqrt(s)
    F = t + rng.normal(size=(n_users, n_components)) @ V.T
    user = rng.integers(n_users, size=n_answers)
    left, right, outcome = probit_answers(rng, F, user, delta)
    margin = F[user, left] - F[user, right]
    points = None if n_points is None else X[:n_points] + 0.1
    projection = Projection.of(kernel, X, np.ones(n_items, bool), points)
    return FactorCrowd(user, left, right, outcome.astype(np.int8), n_users, X, projection, margin)
