"""People who click at random: a component of the population beside those whose answers follow their utilities.

people.md, "People who click at random".
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from predilect._base.types import FloatArray
from predilect.inference.people.expectation import expectation

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from predilect.inference.gaussian.design import Sites
    from predilect.inference.people.law import Law
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


def log_evidence_beside(
    people: People, sites: Sites, law: Law, C: FloatArray, spread: float, unit: float
) -> FloatArray:  # fmt: skip
    """Log evidence of each person's answers less that at the consensus, of covariance C, and the consistency found.

    Both are near what the person's own answers want. The consensus is as it is known without these, and the logarithm
    of the consistency in the unit of the fit is N(0, ``spread``²), by Laplace's method; (n_users,).
    """
    from predilect.inference.people.sandwich import log_evidence_without_own

    found = log_evidence_without_own(people, sites, law, C)
    if spread:
        away, width = np.log(unit * people.consistency) / spread, people.consistency_sd / spread
        found += np.where(np.diff(people.answer_ptr) > 0, np.log(width) - 0.5 * away**2, 0.0)
    return found


def evidences(
    people: People, sites: Sites, law: Law, C: FloatArray, spread: float, delta: float,
    executor: ThreadPoolExecutor | None = None,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Log evidence of each person who answered, and log probability of clicking so, (n_active,) each.

    At a fit, by :func:`log_evidence_beside`; one sweep of the ``sites``, in place.
    """
    some = np.flatnonzero(np.diff(people.answer_ptr))
    alone = replace(people, clicks=np.zeros(0), engaged=np.zeros(0))
    of_model = expectation(alone, sites, law, delta, executor=executor).evidences
    of_model = of_model + log_evidence_beside(people, sites, law, C, spread, 1.0)
    return of_model[some], log_chances_of_clicks(people, shares_of_answers(people))[some]


_FEW = 2.0  # of Beta(1, 2), the prior of the share of clickers: a third on average, most likely none
_NODES, _MASSES = np.polynomial.legendre.leggauss(64)
_NODES, _MASSES = 0.5 * (1.0 + _NODES), 0.5 * _MASSES


def rate_of_clickers(of_model: FloatArray, of_clicks: FloatArray) -> tuple[float, float]:
    """Log Bayes factor of clickers against none, and the mean of their share π given the answers, π ~ Beta(1, 2).

    From :func:`evidences`, (n,) each, by quadrature over π. The mean, and not the mode: few people leave π unsure, and
    its mode is mostly too small.
    """
    told = np.logaddexp(np.log1p(-_NODES)[:, None], np.log(_NODES)[:, None] + (of_clicks - of_model)).sum(axis=1)
    log_mass = told + np.log(_FEW * _MASSES) + (_FEW - 1.0) * np.log1p(-_NODES)
    gain = float(logsumexp(log_mass))
    return gain, float(np.exp(log_mass - gain) @ _NODES)


def chances_of_clicking(
    people: People, sites: Sites, law: Law, C: FloatArray, spread: float, unit: float
) -> FloatArray:  # fmt: skip
    """Probability that each person clicks at random, (n_users,), by :func:`log_evidence_beside`.

    ``engaged`` takes the consensus and the consistency as they were found.
    """
    with np.errstate(divide="ignore"):
        log_odds = np.log1p(-people.engaged) - np.log(people.engaged)
    return np.asarray(expit(log_odds - log_evidence_beside(people, sites, law, C, spread, unit)))


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
