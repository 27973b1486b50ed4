"""Small problems with one latent function, shared by the tests of Laplace, EP and variational inference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from predilect.inference.gaussian.kernels import squared_exponential
from predilect.inference.latent.ep import ep
from predilect.inference.latent.laplace import laplace
from predilect.inference.latent.single import Problem
from predilect.inference.latent.variational import variational
from predilect.inference.likelihoods.views import Probit

METHODS = [laplace, ep, variational]


class Small(NamedTuple):
    K: np.ndarray
    left: np.ndarray
    right: np.ndarray | None
    outcome: np.ndarray
    weight: np.ndarray
    likelihood: Probit
    mean: np.ndarray

    @property
    def A(self) -> np.ndarray:
        rows = np.eye(len(self.K))
        return rows[self.left] if self.right is None else rows[self.left] - rows[self.right]

    def fit(self, method, **changes):
        mean, space = changes.pop("mean", self.mean), changes.pop("space", None)
        keywords = {name: changes.pop(name) for name in list(changes) if name not in self._fields}
        s = self._replace(**changes)
        problem = Problem.of(s.K, s.left, s.right, s.outcome, s.weight, s.likelihood, mean=mean, space=space)
        return method(problem, **keywords)


def small(seed=0, n_items=6, n_answers=7, delta=0.0, scale=1.0, pairs=True, repeated=False, mean=True) -> Small:
    """Answers drawn from the model itself."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_items, 2))
    K = scale * squared_exponential(x, x, 1.0)
    m = 0.3 * rng.standard_normal(n_items) if mean else np.zeros(n_items)
    f = m + np.linalg.cholesky(K + 1e-10 * np.eye(n_items)) @ rng.standard_normal(n_items)
    left = rng.integers(0, n_items, n_answers)
    right = (left + rng.integers(1, n_items, n_answers)) % n_items if pairs else None
    t = (f[left] - f[right] if pairs else f[left]) + rng.standard_normal(n_answers)
    outcome = np.where(t > delta, 1, np.where(t < -delta, -1, 0)).astype(np.int8)
    weight = rng.integers(1, 4, n_answers).astype(float) if repeated else np.ones(n_answers)
    return Small(K, left, right, outcome, weight, Probit(delta), m)
