"""What a fitted model knows about people as those who answer: how consistently, and how near to the crowd."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from predilect._text import one_line, shortened
from predilect._types import FloatArray
from predilect.data.comparisons import SIDE
from predilect.likelihoods.special import Z_95

_NOISY = 0.5  # consistency of somebody with twice the usual noise
_MOST_NAMED, _LONGEST_NAME = 3, 30


def people_columns(model: Any) -> dict[str, Any]:
    """Columns of :meth:`Population.people <predilect.Population.people>`, sorted by person."""
    posterior = model.posterior_
    people, m = posterior.people, posterior.law.mean
    who = np.repeat(np.arange(people.n_users), np.diff(people.answer_ptr))
    own = people.item_ptr[who]
    gap = m[people.item_idx[own + people.left]] - m[people.item_idx[own + people.right]]
    decided = (people.outcome != 0) & (gap != 0.0)

    def sums(weight: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(who, weight, people.n_users), dtype=float)

    n_answers, n_decided = sums(people.weight), sums(people.weight * decided)
    agreeing = sums(people.weight * (decided & (np.sign(gap) == people.outcome)))
    ties = sums(people.weight * (people.outcome == 0))
    lower, upper = np.full(people.n_users, np.nan), np.full(people.n_users, np.nan)
    if model.hyperparameters_.consistency_spread:
        reach = np.exp(Z_95 * people.consistency_sd)
        lower, upper = people.consistency / reach, people.consistency * reach
    with np.errstate(invalid="ignore"):
        shares = {"agreement": agreeing / n_decided, "ties": ties / n_answers}
        if (side := _side_of_answers(posterior)) is not None:
            seen = people.weight * ((people.outcome != 0) & (side != 0.0))
            shares["chose_left"] = sums(seen * (side * people.outcome > 0.0)) / sums(seen)
    numbers = {"n": n_answers, "consistency": people.consistency, "lower": lower, "upper": upper, **shares}
    # Missing, and not NaN, where there is nothing to say.
    return {"user": model.users_.series()} | {name: pl.Series(x, nan_to_null=True) for name, x in numbers.items()}


def _side_of_answers(posterior: Any) -> FloatArray | None:
    """1 where the left item of a row was shown on the left, -1 on the right, 0 unknown, (n_rows,); None if not used."""
    effects = posterior.covariates
    if effects is None or SIDE not in effects.names:
        return None
    return np.asarray(effects.patterns[posterior.people.variant, effects.names.index(SIDE)])


def describe_consistency(model: Any) -> list[str]:
    """Sentences on how people differ in the noise of their answers; none where they do not."""
    if not model.hyperparameters_.consistency_spread:
        return []
    people = model.posterior_.people
    answered = np.flatnonzero(np.diff(people.answer_ptr))
    low, high = np.quantile(1.0 / people.consistency[answered], [0.25, 0.75])
    lines = [
        "People differ in how consistently they answer: the noise of the middle half of them is "
        f"{low:.2f} to {high:.2f} times what is usual, and whoever is less consistent counts for less."
    ]
    noisy = answered[people.consistency[answered] < _NOISY]
    if len(noisy):
        first = noisy[np.argsort(people.consistency[noisy], kind="stable")][:_MOST_NAMED]
        names = ", ".join(shortened(one_line(model.users_.ids[code]), _LONGEST_NAME) for code in first.tolist())
        who = f"{len(noisy)} people have" if len(noisy) > 1 else "1 person has"
        most = "the most: " if len(noisy) > len(first) else ""
        lines.append(f"{who} more than twice the usual noise ({most}{names}).")
    return lines
