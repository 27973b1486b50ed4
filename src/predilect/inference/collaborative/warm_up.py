"""Compile, or load from the cache, the loops of the collaborative Gaussian process, and say if it takes long."""

from __future__ import annotations

import functools

import numpy as np

from predilect._compile import announced
from predilect.covariance.kernels import matern
from predilect.inference.collaborative.functions import ExactFunctions
from predilect.inference.collaborative.modern import fit_modern
from predilect.inference.collaborative.paper import fit_paper
from predilect.inference.factor.answers import FactorAnswers
from predilect.inference.factor.items import ItemDesign
from predilect.posteriors.projection import Projection

__all__ = ["warm_up_collaborative"]


@functools.cache
def warm_up_collaborative() -> None:
    """Fit two answers, one of them a tie, in both presets and predict one; later calls return at once."""
    with announced():
        items = Projection.of(matern(1.0), np.zeros((2, 0)), np.zeros(2, dtype=bool), None)
        zeros = np.zeros(2, dtype=np.int64)
        answers = FactorAnswers.of(zeros, zeros, zeros + 1, np.array([1, 0]), None, 1)
        found = fit_modern(answers, items, n_functions=2, max_iterations=1)
        found.posterior.margins(zeros[:1], zeros[:1], zeros[:1] + 1)
        fit_paper(answers, ExactFunctions(ItemDesign.of(items, answers.left, answers.right)), max_iterations=1)
