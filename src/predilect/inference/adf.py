"""Informative vector machine: greedy assumed-density filtering, each time with the most informative answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.likelihoods.views import Likelihood

__all__ = ["Informative", "filter_answers", "informative_answers"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Informative:
    """Active answers in the order taken, the entropy reduction of each in nats, and their sites."""

    active: IntArray  # (n_active,), as the next three
    gain: FloatArray
    precision: FloatArray
    linear: FloatArray
    mean: FloatArray  # (n_answers,): margins of all answers given the active ones
    var: FloatArray


def informative_answers(
    column: Callable[[int], FloatArray],
    diagonal: FloatArray,
    outcome: npt.NDArray[np.int8],
    likelihood: Likelihood,
    n_active: int,
) -> Informative:
    """Greedy selection of the most informative answers.

    ``column(k)`` is the prior covariance of all margins with that of answer k, (n_answers,); ``diagonal`` their
    variances. vvm.md 3 (Lawrence, Seeger and Herbrich 2003); ties go to the first answer. O(n_answers a) at step a, and
    as much memory.
    """
    steps = []
    for step in filter_answers(column, diagonal, outcome, likelihood):
        steps.append(step[:4])
        if len(steps) >= n_active:
            break
    active, gain, precision, linear = zip(*steps, strict=True)
    return Informative(
        np.array(active, dtype=np.int64), np.array(gain), np.array(precision), np.array(linear), step[4], step[5]
    )


def filter_answers(
    column: Callable[[int], FloatArray],
    diagonal: FloatArray,
    outcome: npt.NDArray[np.int8],
    likelihood: Likelihood,
) -> Iterator[tuple[int, float, float, float, FloatArray, FloatArray]]:
    """The same answer by answer; yields the attributes of :class:`Informative` after each."""
    n = len(outcome)
    mean, var = np.zeros(n), diagonal.astype(np.float64).copy()
    free = np.ones(n, dtype=bool)
    M = np.zeros((min(n, 16), n))
    for done in range(n):
        _, slope, curvature = likelihood.tilted(outcome, mean, var)  # the marginal is the cavity
        left_over = 1.0 - curvature * var  # > 0 for a log-concave likelihood
        tau = curvature / left_over
        gain = np.where(free, 0.5 * np.log1p(tau * var), -np.inf)
        k = int(np.argmax(gain))
        nu = (slope[k] + mean[k] * curvature[k]) / left_over[k]
        s = column(k) - M[:done].T @ M[:done, k]
        shrink = 1.0 + tau[k] * var[k]
        mean = mean + s * ((nu - tau[k] * mean[k]) / shrink)
        if done == len(M):
            M = np.vstack([M, np.zeros((min(done, n - done), n))])
        M[done] = s * np.sqrt(tau[k] / shrink)
        var = np.maximum(var - M[done] ** 2, 0.0)
        free[k] = False
        yield k, float(gain[k]), float(tau[k]), float(nu), mean, var
