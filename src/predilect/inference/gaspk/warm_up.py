"""Compile, or load from the cache, the loops of GaSPK before they are needed, and say so if that takes long."""

from __future__ import annotations

import functools

import numpy as np

from predilect._compile import announced
from predilect.covariance.kernels import matern
from predilect.inference.gaspk.answers import TradeOffAnswers
from predilect.inference.gaspk.em import Estimator, Settings, run
from predilect.posteriors.gaspk.basis import DenseBasis
from predilect.posteriors.gaspk.blocks import packed_product
from predilect.posteriors.gaspk.mixed import mixed

__all__ = ["warm_up_gaspk"]


@functools.cache
def warm_up_gaspk(estimator: Estimator) -> None:
    """Run one round on three answers, one of them a tie; later calls return at once.

    The loop that climbs on the simplex, which heuristic weights do without, takes most of the time to compile.
    """
    with announced():
        answers = TradeOffAnswers.of([0, 0, 1], [0, 1, 1], [1, 0, -1], n_users=2, n_points=2)
        basis = DenseBasis.of(matern(1.0), np.array([[1.0], [2.0]]))
        gamma = np.array([[0.25, 0.75], [0.5, 0.5]])
        found = run(basis, answers, gamma, Settings(estimator, max_rounds=1), delta=0.5)
        mixed(answers.user, answers.point, gamma, found.mode.F, np.zeros((2, 2, 2)))
        packed_product(found.mode.state.packed, found.mode.F)  # which equations of larger problems are solved with
