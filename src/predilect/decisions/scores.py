"""Scores from 0 to 100, as studies of best-worst answers report them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from predilect._base.text import quoted
from predilect._base.types import FloatArray
from predilect.data import build_frame
from predilect.decisions.candidates import Fitted
from predilect.decisions.conjoint import logit_chances
from predilect.decisions.queries import code_of
from predilect.decisions.sets import chance_of_first
from predilect.errors import DataError
from predilect.inference.gaussian.posterior import Posterior
from predilect.inference.likelihoods.special import TAILS_95

_DRAWS = 200  # of each person


def scores(model: Fitted, size: int = 4, anchor: Any = None, user: Any = None, *, random_state: int = 0) -> Any:
    """See :meth:`Asking.scores <predilect.models.asking.Asking.scores>`."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 2 <= size <= 20:
        raise DataError(f"size must be a whole number of items from 2 to 20; got {quoted(size)}")
    now: Any = copy.copy(model)  # as it is, whatever other threads do
    if not now.posterior_.by_utilities:
        raise DataError("the answers of this model are about more than the utilities of items: they have no scores")
    place = None if anchor is None else int(now.items_.codes([anchor])[0])
    if user is not None or not now.personal_ or now.users_ is None:
        codes = [code_of(now, user)]
    else:
        codes = list(range(len(now.users_))) or [-1]
    total: FloatArray = np.zeros((_DRAWS, len(now.items_)))
    for code in codes:
        f = _drawn(now.posterior_, code, random_state)
        away = f - (f.mean(axis=1, keepdims=True) if place is None else f[:, [place]])
        others = np.zeros((away.size, size - 1))
        sets = np.column_stack([away.reshape(-1), others])
        chance = chance_of_first(sets) if now._likelihood.has_normal_noise else logit_chances(sets)[:, 0]
        p = chance.reshape(away.shape)
        total += 100.0 * (p * size if place is not None else p / p.sum(axis=1, keepdims=True))
    by_draw = total / len(codes)
    score = by_draw.mean(axis=0)
    order = np.argsort(-score, kind="stable")
    lower, upper = np.quantile(by_draw, TAILS_95, axis=0)[:, order]
    names = now.items_.series().gather(order).alias("item")
    return build_frame({"item": names, "score": score[order], "lower": lower, "upper": upper}, now._backend)


def _drawn(posterior: Posterior, user: int, seed: int) -> FloatArray:
    """Draws of a person's utilities in units of their own noise, (_DRAWS, n_items)."""
    utilities = posterior.person(user).times(posterior.consistency_of(user))
    return utilities.opposite_draws(_DRAWS, np.random.default_rng([seed, user + 1]))
