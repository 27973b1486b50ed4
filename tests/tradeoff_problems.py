"""Small problems of trade-offs for the tests of GaSPK."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from predilect.inference.gaussian.kernels import Antisymmetric, Kernel, Scaled, Stationary
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.posterior.basis import DenseBasis


class Problem(NamedTuple):
    """Answers of a few people about a few points."""

    kernel: Kernel
    points: np.ndarray
    answers: TradeOffAnswers
    gamma: np.ndarray
    basis: DenseBasis


def problem(n_users=5, n_points=9, n_c=3, n=40, d=2, *, antisymmetric=True, ties=False, seed=0, variance=3.0):
    """Random answers of random people, some of them twice."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_points, d))
    kernel = Scaled(Stationary(np.full(d, 1.3), "squared-exponential"), variance)
    if antisymmetric:
        kernel = Antisymmetric(kernel)
    outcome = rng.choice([-1, 0, 1] if ties else [-1, 1], size=n)
    answers = TradeOffAnswers.of(
        rng.integers(0, n_users, n), rng.integers(0, n_points, n), outcome, n_users=n_users, n_points=n_points
    )
    gamma = rng.dirichlet(np.ones(n_c), n_users)
    return Problem(kernel, points, answers, gamma, DenseBasis.of(kernel, points))
