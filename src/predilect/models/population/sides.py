"""Whether the side on which an item was shown moves answers: a score test, before any fit with sides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, stdtrit

from predilect._types import FloatArray
from predilect.data import Comparisons
from predilect.data.comparisons import SIDE
from predilect.data.keyed_rows import MOST_ITEMS, MOST_VARIANTS
from predilect.errors import DataError
from predilect.latent.pooled import PooledAnswers, PooledPrior, refit_pooled
from predilect.likelihoods.probit import starting_threshold
from predilect.likelihoods.views import PairLikelihood

_VARIANCE = 4.0  # prior variance of the utilities
_ERRORS = 3.0  # standard errors from 0, in the normal case: of 1 000 crowds without an effect 3 are found to have one
_MOST_ITEMS, _DENSE_ITEMS = 10_000, 1000
_FEWEST_PEOPLE = 5
_ALIKE = 0.98  # correlation of two effects


class SideTest(NamedTuple):
    """Effect of the left side by one Newton step from none, its standard error, and whether it is there."""

    effect: float
    error: float
    found: bool


def test_of_side(rows: Comparisons, likelihood: type[PairLikelihood], delta: float | None) -> SideTest | None:
    """Score test of the side in the pooled model, with people independent of each other, and not their answers.

    None where no answer has a side, answers say nothing of one, or there are more than 10 000 items. population.md
    section 4. One pooled fit.
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
    answers = PooledAnswers.of(rows, likelihood)
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


def check_answers(answers: Comparisons) -> None:
    """DataError for more items, or values of covariates, than keys can tell apart, or for a constant covariate."""
    if answers.n_items > MOST_ITEMS:
        raise DataError(f"there are {answers.n_items} items, and at most {MOST_ITEMS} can be told apart")
    if answers.covariates is None:
        return
    for name, column in zip(answers.covariate_names, answers.covariates.T, strict=True):
        if not column.any():
            raise DataError(
                f'the covariate "{name}" says nothing: left and right are equal in all {answers.n_rows} rows. Leave '
                "it out"
            )
    if answers.n_rows > MOST_VARIANTS:
        raise DataError(
            f"{answers.n_rows} rows have covariates, and at most {MOST_VARIANTS} can be told apart. Round the "
            "covariates, so that more answers are alike, or fit a part of them"
        )


def describe_covariates(model: Any) -> list[str]:
    """Sentences on the effects of covariates of answers."""
    effects = model.posterior_.covariates
    if effects is None:
        return []
    columns, lines = effects.columns(), []
    for place, name in enumerate(effects.names):
        effect, lower, upper = (float(columns[key][place]) for key in ("effect", "lower", "upper"))
        if name == SIDE:
            low, middle, high = (f"{100.0 * ndtr(value):.0f}" for value in (lower, effect, upper))
            lines.append(
                f"Between equals the item on the left is chosen {middle} % of the time (95 % interval {low} to "
                f"{high}); boards are for no side."
            )
        else:
            lines.append(
                f'Covariate "{name}": {effect:+.3g} a unit ({lower:+.3g} to {upper:+.3g}), in noise units; '
                f"{columns['effect_of_rms'][place]:+.2f} for a usual difference of {effects.rms[place]:.3g}. Boards "
                "are for equal ones."
            )
    sd = np.sqrt(np.diagonal(effects.covariance))
    correlation = np.triu(effects.covariance / np.outer(sd, sd), 1)
    for one, other in np.argwhere(np.abs(correlation) > _ALIKE).tolist():
        lines.append(
            f'The effects of "{effects.names[one]}" and "{effects.names[other]}" cannot be told apart: they say the '
            "same of these answers. Leave one of them out."
        )
    return lines


def _by_person(rows: Comparisons, score: FloatArray) -> FloatArray:
    """Scores of people, or of rows where fewer than five are named."""
    if not rows.has_users or len(np.unique(rows.user)) < _FEWEST_PEOPLE:
        return score
    of_people = np.bincount(rows.user, score, rows.n_users)
    return np.asarray(of_people[np.bincount(rows.user, minlength=rows.n_users) > 0], dtype=float)
