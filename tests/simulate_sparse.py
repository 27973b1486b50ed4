"""Small simulated problems for the tests of sparse inference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from predilect.inference.gaussian.kernels import matern
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.pooled import PooledAnswers
from predilect.inference.latent.sparse.problem import SparseProblem
from referees.dense_sparse_gp import DenseModel
from simulate import probit_answers


class Small(NamedTuple):
    kernel: object
    X: np.ndarray
    points: np.ndarray
    answers: PooledAnswers
    delta: float

    @property
    def known(self):
        return np.ones(len(self.X), dtype=bool)

    def projection(self, theta=None, sparse=True):
        kernel = self.kernel if theta is None else self.kernel.with_theta(theta)
        return Projection.of(kernel, self.X, self.known, self.points if sparse else None)

    def problem(self, sparse=True):
        return SparseProblem.of(self.projection(sparse=sparse), self.answers, self.delta)

    def dense(self, shape=1.0, rate=1.0, sparse=True):
        p = self.problem(sparse)  # canonical rows
        points = self.points if sparse else self.X
        return DenseModel(
            self.kernel(self.X), self.kernel(self.X, points) if sparse else self.kernel(self.X),
            self.kernel(points), p.left, p.right, p.outcome, p.weight, shape, rate, self.delta,
        )  # fmt: skip


def small(seed=0, n_items=20, n_rows=120, n_points=6, delta=0.0, strength=1.5, n_features=2, form="isotropic"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, n_features))
    kernel = matern(np.linspace(0.8, 1.4, n_features), form=form)
    f = strength * np.linalg.cholesky(kernel(X) + 1e-10 * np.eye(n_items)) @ rng.normal(size=n_items)
    left, right, outcome = probit_answers(rng, f[None], np.zeros(n_rows, dtype=int), delta)
    weight = rng.integers(1, 4, n_rows).astype(float)
    points = X[rng.permutation(n_items)[:n_points]] + 0.1 * rng.normal(size=(n_points, n_features))
    return Small(kernel, X, points, PooledAnswers(left, right, outcome.astype(np.int8), weight, n_items), delta)
