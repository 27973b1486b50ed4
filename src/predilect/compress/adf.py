"""Informative vector machine: greedy assumed-density filtering, each time with the most informative answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from predilect.likelihoods.views import Likelihood

FloatArray = npt.NDArray[np.float64]


def filter_answers(
    column: Callable[[int], FloatArray],
    diagonal: FloatArray,
    outcome: npt.NDArray[np.int8],
    likelihood: Likelihood,
) -> Iterator[tuple[int, float, float, float, FloatArray, FloatArray]]:
    """Informative answers, one by one until none is left (vvm.md 3; Lawrence, Seeger and Herbrich 2003).

    ``column(k)`` is the prior covariance of all margins with that of answer k, ``diagonal`` their variances. Yields the
    answer, how much it lowers the entropy of the margins (nats), precision and linear term of its site, and means and
    variances (n_answers,) of the margins so far. Ties go to the first answer. O(n_answers a) at step a.
    """
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
