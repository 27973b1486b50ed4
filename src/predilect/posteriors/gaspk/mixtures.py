"""Uncertainty of people's weights: predictions ignore it, intervals of a person's evaluations must not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Mixtures", "average", "mixtures"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True, eq=False)
class Mixtures:
    """Weights of p people, and their uncertainty."""

    gamma: FloatArray  # (p, n_c)
    root: FloatArray  # (p, n_c, n_c), root rootᵀ is the covariance of the weights, which sum to 1
    left_open: FloatArray  # (p,), further variance of an evaluation, far from the trade-off 0

    def of(self, people: slice) -> Mixtures:
        """Some of the people."""
        return Mixtures(self.gamma[people], self.root[people], self.left_open[people])


def mixtures(
    gamma: FloatArray, F: FloatArray, user: IntArray, point: IntArray, precision: FloatArray, people: IntArray,
    spread: float,
) -> Mixtures:  # fmt: skip
    """Gaussian approximation of the weights of ``people`` (p,), given the mean characteristics ``F`` (n_points, n_c).

    ``precision`` (n,) is each row's curvature times its weight, rows sorted by person; ``spread`` is T². Dirichlet(1,
    ..., 1) has the covariance of a Gaussian with precision n_c (n_c + 1) in each of the n_c - 1 directions that keep
    the sum; answers add Σ precision F Fᵀ. That Gaussian is centred at the weights found, on the edge of the simplex
    too: so it also covers people who are no mixture of the characteristics. The variance it gives to a person's own
    trade-offs, on average, is subtracted from T² - 1, and the rest is ``left_open``. **Differs from the paper**, which
    has no such thing. Measured on people with tastes of their own, 10 and 40 answers each: intervals of willingness at
    95 % held .85 to .97 of the truths with exact or expected weights, and .67 to .89 with heuristic ones; with T² - 1
    and nothing else .42 to .96 and .29 to .90. n n_c² + p n_c³ operations.
    """
    n_c = gamma.shape[1]
    # Orthonormal directions that keep the sum: the columns after the first, which is constant.
    keep = np.linalg.qr(np.column_stack([np.ones(n_c), np.eye(n_c)[:, 1:]]))[0][:, 1:]
    prior = n_c * (n_c + 1.0) * np.eye(n_c - 1)
    root, left_open = np.zeros((len(people), n_c, n_c)), np.empty(len(people))
    along = F @ keep
    ends = np.searchsorted(user, np.stack([people, people + 1]))
    for row, (start, stop) in enumerate(ends.T.tolist()):
        mine, weight = along[point[start:stop]], precision[start:stop]
        values, vectors = np.linalg.eigh(prior + (mine.T * weight) @ mine)
        half = vectors / np.sqrt(values)
        root[row, :, : n_c - 1] = keep @ half
        typical = float(np.square(mine @ half).sum(axis=1).mean()) if stop > start else 0.0
        left_open[row] = max(spread - 1.0 - typical, 0.0)
    return Mixtures(gamma[people], root, left_open)


def average(everybody: Mixtures) -> Mixtures:
    """The average of the people, as one person: their weights err independently of each other."""
    n = len(everybody.gamma)
    covariance = np.einsum("uca,uda->cd", everybody.root, everybody.root, optimize=True) / n**2
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    gamma, left_open = everybody.gamma.mean(axis=0), everybody.left_open.mean() / n
    return Mixtures(gamma[None, :], root[None, :, :], np.array([left_open]))
