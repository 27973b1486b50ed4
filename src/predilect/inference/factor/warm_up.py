"""Compile, or load from the cache, the loops of the factor model before they are needed, and say if it takes long."""

from __future__ import annotations

import functools

import numpy as np

from predilect._compile import announced
from predilect.covariance.kernels import matern
from predilect.inference.factor.fit import fit_factor
from predilect.posteriors.projection import Projection

__all__ = ["warm_up_factor"]


@functools.cache
def warm_up_factor() -> None:
    """Fit two answers, one of them a tie, and predict one; later calls return at once."""
    with announced():
        items = Projection.of(matern(1.0), np.zeros((2, 0)), np.zeros(2, dtype=bool), None)
        one = np.zeros(2, dtype=np.int32)
        found = fit_factor(
            one, one, one + 1, np.array([1, 0], dtype=np.int8), np.ones(2), 1, items, n_components=1, delta=0.5,
            n_restarts=1, max_iterations=1,
        )  # fmt: skip
        found.posterior.margins(one[:1], one[:1], one[:1] + 1)
