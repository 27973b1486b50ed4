"""People who click at random: a component of the population beside those whose answers follow their utilities.

population.md section 4, "People who click at random".
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from predilect._base.types import FloatArray

if TYPE_CHECKING:
    from predilect.inference.people.layout import People


def counts_of_answers(people: People, n_grades: int = 0) -> FloatArray:
    """How many answers are ties, decided without a grade, and of each grade, (2 + n_grades,), tasks left aside."""
    alone = people.task < 0
    size = np.abs(people.outcome[alone].astype(np.int64))
    return np.asarray(np.bincount(size, people.weight[alone], 2 + n_grades), dtype=float)


def shares_of_answers(people: People) -> FloatArray:
    """The crowd's own shares of ties, of decided answers, and of each grade, (2 + n_grades,), tasks left aside."""
    return shares_of(counts_of_answers(people))


def shares_of(counts: FloatArray) -> FloatArray:
    """Shares from counts; of none every answer is decided."""
    return np.asarray(counts / counts.sum()) if counts.any() else np.array([0.0, 1.0])


def log_chances_of_clicks(people: People, shares: FloatArray) -> FloatArray:
    """Log probability of each person's answers if they are clicked at random, (n_users,).

    A pair has the ``shares`` of :func:`shares_of_answers`, the smallest where it has none, with both sides as likely.
    An answer about k alternatives orders layers of n_1, n_2, ... of them, at random in Π n_l! / k! of the cases.
    """
    size = np.abs(people.outcome.astype(np.int64))
    chances = np.zeros(max(int(size.max(initial=0)) + 1, len(shares)))
    chances[: len(shares)] = shares
    chances[chances == 0.0] = shares[shares > 0.0].min()
    chances[1:] *= 0.5
    of_rows = people.weight * np.log(chances)[size]
    in_task = people.task >= 0
    of_rows[in_task] = 0.0
    owner = np.repeat(np.arange(people.n_users), np.diff(people.answer_ptr))
    found = np.asarray(np.bincount(owner, of_rows, people.n_users), dtype=float)
    rows = np.flatnonzero(in_task)
    if not len(rows):
        return found
    span, k = int(people.task.max()) + 1, int(np.diff(people.item_ptr).max())
    tasks, task = np.unique(owner[rows] * span + people.task[rows], return_inverse=True)
    up, left, right = people.outcome[rows] > 0, task * k + people.left[rows], task * k + people.right[rows]
    members, place = np.unique(
        np.concatenate((np.where(up, left, right), np.where(up, right, left))), return_inverse=True
    )
    above, below = np.split(place, 2)
    depth = np.zeros(len(members), dtype=np.int64)  # the layer of each item of a task
    for _ in range(k):
        deeper = depth.copy()
        np.maximum.at(deeper, below, depth[above] + 1)
        if (deeper == depth).all():
            break
        depth = deeper
    layers, sizes = np.unique(members // k * k + depth, return_counts=True)
    of_tasks = np.bincount(layers // k, gammaln(sizes + 1.0)) - gammaln(np.bincount(members // k) + 1.0)
    return found + np.bincount(tasks // span, of_tasks, people.n_users)


def with_clicks(people: People, rate: float, shares: FloatArray | None = None) -> People:
    """People of whom a share ``rate`` clicks at random before their answers are known; 0: nobody."""
    if not rate:
        return people
    chances = log_chances_of_clicks(people, shares_of_answers(people) if shares is None else shares)
    before = np.full(people.n_users, 1.0 - rate)  # of who has no answers
    return replace(people, clicks=math.log(rate / (1.0 - rate)) + chances, engaged=before)


PRIOR_OF_RATE = 8.0  # of Beta(1, 9): its mode is Σ (1 - w) / (U + 8)


def rate_of_clickers(engaged: FloatArray) -> float:
    """Share of clickers of largest posterior density, Beta(1, 9) before, by those of people who answered, (n,)."""
    return float((1.0 - engaged).sum() / (len(engaged) + PRIOR_OF_RATE))


def consistency_of_others(people: People, spread: float) -> tuple[float, float]:
    """What people tell of the consistency of those who do not click at random, sums for :func:`unit_of_noise`.

    Of log a_u ~ N(μ, ``spread``²) with the likelihoods N(., 1 / I_u) that the modes and their standard deviations tell,
    each counted with the probability that the person does not click.
    """
    if not spread:
        return 0.0, 0.0
    answered = np.diff(people.answer_ptr) > 0
    mode, w, prior = np.log(people.consistency[answered]), people.engaged[answered], spread**-2
    information = np.maximum(people.consistency_sd[answered] ** -2 - prior, 0.0)
    share = w * information / (1.0 + information / prior)  # over the prior's, the law's weight of a person
    return float((w * mode).sum()) * prior, float(share.sum())


def unit_of_noise(score: float, weight: float) -> float:
    """Median of the law of consistency, exp μ, from sums over people; 1 where all have the same."""
    return math.exp(score / weight) if weight else 1.0
