"""Whether the side on which an item was shown moves answers: a score test, before any fit with sides."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, stdtrit

from predilect._base.types import FloatArray
from predilect.data import Comparisons
from predilect.inference.latent.pooled import PooledAnswers, PooledPrior, refit_pooled
from predilect.inference.latent.sandwich import FEWEST_GROUPS
from predilect.inference.likelihoods.probit import starting_threshold
from predilect.inference.likelihoods.views import PairLikelihood

_VARIANCE = 4.0  # prior variance of the utilities
_ERRORS = 3.0  # standard errors from 0, in the normal case: of 1 000 crowds without an effect 3 are found to have one
_MOST_ITEMS, _DENSE_ITEMS = 10_000, 1000


class SideTest(NamedTuple):
    """Effect of the left side by one Newton step from none, its standard error, and whether it is there."""

    effect: float
    error: float
    found: bool


def test_of_side(rows: Comparisons, likelihood: type[PairLikelihood], delta: float | None) -> SideTest | None:
    """Score test of the side in the pooled model, with people independent of each other, and not their answers.

    None where no answer has a side, answers say nothing of one, or there are more than 10 000 items. people.md,
    "Covariates of answers". One pooled fit.
    """
    if rows.sides is None or rows.n_items > _MOST_ITEMS:
        return None
    if delta is None:
        delta = starting_threshold(rows.outcome, rows.weight) if rows.has_ties else 0.0
    n, n_effects = rows.n_items, 0 if rows.covariates is None else rows.covariates.shape[1]
    if n >= _DENSE_ITEMS and not n_effects:
        prior = PooledPrior(np.full(n, 1.0 / _VARIANCE), n * float(np.log(_VARIANCE)), 0.0)
    else:
        prior = PooledPrior.of(np.eye(n), _VARIANCE, None, n_effects)
    answers = PooledAnswers.of(replace(rows, joint=False), likelihood)
    state = refit_pooled(answers, prior, delta, np.zeros(n + n_effects))
    _, slope, curvature = likelihood(delta).at(rows.outcome, prior.margins(answers, state.mode))
    shown = rows.sides[:, 0] - rows.sides[:, 1]
    explained = prior.solve(answers, rows.weight * curvature, prior.gather(answers, curvature * shown))
    rest = shown - rows.weight * prior.margins(answers, explained)
    score = _by_person(rows, slope * rest)
    information = float(curvature @ (rows.sides.sum(axis=1) - shown * prior.margins(answers, explained)))
    spread = float(np.sqrt(score @ score))
    if not information > 0.0 or not spread > 0.0:
        return None
    limit = stdtrit(len(score) - 1, ndtr(_ERRORS))
    return SideTest(float(score.sum()) / information, spread / information, bool(abs(score.sum()) > limit * spread))


def _by_person(rows: Comparisons, score: FloatArray) -> FloatArray:
    """Scores of people, or of rows where fewer than five are named."""
    if not rows.has_users or len(np.unique(rows.user)) < FEWEST_GROUPS:
        return score
    of_people = np.bincount(rows.user, score, rows.n_users)
    return np.asarray(of_people[np.bincount(rows.user, minlength=rows.n_users) > 0], dtype=float)
