"""Population distribution of the weights where they have a mean other than zero."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import svds

from predilect._types import FloatArray, IntArray
from predilect.factors.answers import FactorAnswers
from predilect.factors.posterior import FactorPosterior
from predilect.gaussian.design import Sites
from predilect.progress import Report


@dataclass(frozen=True, slots=True)
class CrowdWeights:
    """Weights w = b + B x + ε with independent ε_c; x = 0 where no features are known. modern.md 5, with an intercept.

    **Differs from the paper**, with weights of mean zero: nothing is known of an unseen user, even if the crowd agrees.
    """

    effects: FloatArray  # E [b, B], (C, 1 + n_traits)
    covariance: FloatArray  # of each row of [b, B], (C, 1 + n_traits, 1 + n_traits)
    spread: FloatArray  # variance of ε, (C,)

    @classmethod
    def average(cls, mean: FloatArray, variance: FloatArray) -> CrowdWeights:
        """Distribution of a user drawn from those with weights of these means and variances, (n_users, C)."""
        centre = mean.mean(axis=0)
        spread = (variance + (mean - centre) ** 2).mean(axis=0)
        return cls(centre[:, None], np.zeros((len(centre), 1, 1)), spread)

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """See :class:`~predilect.factors.weights.WeightPrior`."""
        n, k = 1 if traits is None else len(traits), self.effects.shape[1]
        rows = np.zeros((n, k))
        rows[:, 0] = 1.0
        if traits is not None and k > 1:
            rows[:, 1:] = traits
        return rows @ self.effects.T, self.spread + np.einsum("nk,ckl,nl->nc", rows, self.covariance, rows)


USED = 0.01  # of the largest importance
_LARGEST_MOVE = 0.5  # of log δ


@dataclass(frozen=True, slots=True)
class CollaborativeFit:
    """Fitted collaborative Gaussian process."""

    posterior: FactorPosterior
    delta: float
    evidence: float  # by expectation propagation, in nats; no bound
    importances: FloatArray  # (D,), from importances()
    # For "paper", how often a message was kept, as the new one had no positive precision; for "modern", answers without
    # a proper cavity at the end.
    n_rejected: int
    sites: Sites  # of one copy of each row
    report: Report


def importances(user: IntArray, pair: IntArray, weight: FloatArray, mu: FloatArray, delta: FloatArray) -> FloatArray:
    """Mean square of each function's part of the mean margin of an answer, (D,); near 0 for one pruned."""
    parts = mu[user] * delta[pair]
    return np.asarray(weight @ (parts * parts) / weight.sum())


def moved_threshold(threshold: float, slope: float, curvature: float) -> float:
    """Newton step of δ in its logarithm, given slope and curvature of the evidence in δ; at most e^0.5 a step."""
    gradient = threshold * slope
    # In log δ: second derivative δ² h + δ g, negative near the maximum of a log-concave likelihood.
    bend = min(threshold * threshold * curvature + gradient, -1e-12 - 0.5 * abs(gradient))
    return threshold * math.exp(float(np.clip(-gradient / bend, -_LARGEST_MOVE, _LARGEST_MOVE)))


_DENSE = 600  # people or pairs, whichever are fewer
_TOO_SMALL = 1e-3  # of the largest singular value


def singular_start(
    answers: FactorAnswers, sites: Sites, n_components: int, prior_var: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Means of weights (n_users, D) and of values (n_pairs, D): truncated singular value decomposition.

    Of the means of the messages f̂1 as a matrix of people and pairs, zeros where nobody answered. Functions beyond the
    rank start at random, with ``prior_var`` (n_pairs,), as all at zero would stay there. collaborative.md 3: what the
    authors' code does. Dense up to 600 people or pairs, by Lanczos beyond.
    """
    shape = (answers.n_users, len(answers.left))
    all_copies = sites.times(answers.weight)
    total = coo_array((all_copies.precision, (answers.user, answers.pair)), shape=shape).tocsr()
    asked = coo_array((all_copies.linear, (answers.user, answers.pair)), shape=shape).tocsr()
    asked.sum_duplicates()
    total.sum_duplicates()
    asked.data /= total.data  # both have the same nonzero entries, in the same order
    k = min(n_components, *shape)
    if min(shape) <= _DENSE:
        left, values, right = np.linalg.svd(asked.toarray(), full_matrices=False)
        left, values, right = left[:, :k], values[:k], right[:k]
    else:
        left, values, right = svds(asked.astype(np.float64), k=min(k, min(shape) - 1), random_state=rng)
        order = np.argsort(-values)
        left, values, right = left[:, order], values[order], right[order]
    keep = values > _TOO_SMALL * values.max(initial=0.0)
    root = np.sqrt(values[keep])
    n_random = n_components - len(root)
    w = np.hstack([left[:, keep] * root, rng.standard_normal((shape[0], n_random))])
    rest = np.sqrt(prior_var)[:, None] * rng.standard_normal((shape[1], n_random))
    return w, np.hstack([(root[:, None] * right[keep]).T, rest])
