"""CrowdBT with a Gaussian process: the comparison of crowdGPPL's experiment with arguments.

CrowdBT (Chen, Bennett, Collins-Thompson and Horvitz 2013): worker k says that a beats b with probability
η_k σ(s_a - s_b) + (1 - η_k) σ(s_b - s_a), s_i ~ N(0, 1), η_k ~ Beta(9, 1); answers are taken in one at a time, and
after each the moments of the four numbers are matched. The Gaussian process is regression of the scores s_i of the
items that were compared, with their variances as noise, on the items' features, with the kernel of
:class:`predilect.GPPL`; items of which nobody said anything follow from it. Everybody is predicted alike, by σ of the
difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.task import Task
from predilect.data import Comparisons, ItemFeatures
from predilect.inference.gaussian.dense import factorise
from predilect.inference.gaussian.kernels import Stationary, median_length_scales

__all__ = ["CrowdBTProcess", "online_scores"]

FloatArray = npt.NDArray[np.float64]

RELIABILITY = (9.0, 1.0)  # Beta prior of how often a worker follows the scores
LEAST_FACTOR = 1e-4  # of a score's variance in one answer


def online_scores(
    winner: npt.ArrayLike, loser: npt.ArrayLike, worker: npt.ArrayLike, n_items: int, n_workers: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and variance of the scores (n_items,), and the workers' Beta parameters (n_workers, 2), after one pass."""
    mean, var = np.zeros(n_items), np.ones(n_items)
    beta_law = np.tile(RELIABILITY, (n_workers, 1))
    for a, b, k in zip(*(np.asarray(x).tolist() for x in (winner, loser, worker)), strict=True):
        alpha, beta = beta_law[k]
        p = 1.0 / (1.0 + np.exp(mean[b] - mean[a]))
        q = alpha * p / (alpha * p + beta * (1.0 - p))
        right = p + 0.5 * (var[a] + var[b]) * p * (1.0 - p) * (1.0 - 2.0 * p)  # E σ to second order
        mean[a] += var[a] * (q - p)
        mean[b] -= var[b] * (q - p)
        curvature = q * (1.0 - q) - p * (1.0 - p)
        for i in (a, b):
            var[i] *= max(1.0 + var[i] * curvature, LEAST_FACTOR)
        n = alpha + beta
        total = (right * alpha + (1.0 - right) * beta) / n
        first = alpha * (right * (alpha + 1.0) + (1.0 - right) * beta) / (total * (n + 1.0) * n)
        second = (alpha + 1.0) * alpha * (right * (alpha + 2.0) + (1.0 - right) * beta)
        second /= total * (n + 2.0) * (n + 1.0) * n
        size = (first - second) / (second - first * first)
        beta_law[k] = size * first, size * (1.0 - first)
    return mean, var, beta_law


class CrowdBTProcess:
    """See :class:`benchmarks.models.Fitted`; answers are taken in a random order, the same for the same seed.

    Parameters
    ----------
    task : Task
        With workers and features of items, without ties.
    median : str, default "arguments"
        Rule of the length-scales, see :func:`predilect.inference.gaussian.kernels.median_length_scales`.
    """

    def __init__(self, task: Task, median: str = "arguments") -> None:
        train = task.train
        if task.items is None or train.has_ties or task.test.has_ties:
            raise ValueError("CrowdBT with a Gaussian process needs features of items, and has no ties")
        rows = np.repeat(np.arange(train.n_rows), np.rint(train.weight).astype(np.int64))
        rows = np.random.default_rng(task.seed).permutation(rows)
        left_won = train.outcome[rows] > 0
        left, right = train.left[rows], train.right[rows]
        mean, var, self.workers = online_scores(
            np.where(left_won, left, right), np.where(left_won, right, left), train.user[rows],
            train.n_items, train.n_users,
        )  # fmt: skip
        compared = np.zeros(train.n_items, dtype=bool)
        compared[left] = compared[right] = True
        matrix, _ = ItemFeatures.from_frame(task.items).align(train.items)
        kernel = Stationary(median_length_scales(matrix, median), "matern-3/2")
        root = factorise(kernel(matrix[compared]) + np.diag(var[compared]))
        self.items = train.items
        self.score = kernel(matrix, matrix[compared]) @ root.solve(mean[compared])

    def log_proba(self, test: Comparisons) -> FloatArray:
        """See :class:`benchmarks.models.Fitted`."""
        score = self.score[self.items.codes(test.items.series())]
        margin = score[test.left] - score[test.right]
        return np.column_stack([-np.logaddexp(0.0, -margin), np.full(len(margin), -np.inf), -np.logaddexp(0.0, margin)])

    def scores(self, entries: pl.DataFrame) -> FloatArray:
        """The same for everybody."""
        found: FloatArray = self.score[self.items.codes(entries["item"])]
        return found

    def report(self) -> dict[str, Any]:
        """How reliable workers are taken to be."""
        reliability = self.workers[:, 0] / self.workers.sum(axis=1)
        low, middle, high = np.quantile(reliability, (0.0, 0.5, 1.0)).tolist()
        return {"reliability": {"smallest": low, "median": middle, "largest": high}}
