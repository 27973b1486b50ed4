"""Sparse fit with the tie threshold learned."""

from __future__ import annotations

import math
from collections.abc import Callable

from predilect.inference.pooled import PooledAnswers
from predilect.inference.sparse.fit import SparseFit
from predilect.inference.threshold import best_threshold, starting_threshold

__all__ = ["fit_with_threshold"]

_ROUNDS, _TOLERANCE = 8, 1e-3  # of log δ


def fit_with_threshold(
    answers: PooledAnswers,
    fit: Callable[[float, SparseFit | None], SparseFit],
    progress: Callable[[int], None] | None = None,
) -> SparseFit:
    """Alternation of fit and tie threshold to convergence; ``delta`` of the result is 0 without ties.

    ``fit(delta, earlier)`` starts from an earlier fit if there is one. Coordinate ascent on the bound; 8 rounds at
    most, each a fit that starts near its optimum.
    """
    threshold = starting_threshold(answers.outcome, answers.weight)
    found = fit(threshold, None)
    for round_ in range(_ROUNDS if threshold > 0.0 else 0):
        if progress is not None:
            progress(round_ + 1)
        m, v = found.posterior().margins(answers.left, answers.left, answers.right)
        again = best_threshold(answers.outcome, answers.weight, m, v, threshold)
        moved, threshold = abs(math.log(again / threshold)), again
        found = fit(threshold, found)
        if moved < _TOLERANCE:
            break
    return found
