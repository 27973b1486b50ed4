"""Scores from 0 to 100, as studies of best-worst answers report them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from predilect._text import quoted
from predilect._types import FloatArray
from predilect.data import build_frame
from predilect.decisions.candidates import Fitted
from predilect.decisions.conjoint import logit_chances
from predilect.decisions.queries import code_of
from predilect.decisions.sets import chance_of_first
from predilect.errors import DataError
from predilect.gaussian.posterior import Posterior
from predilect.likelihoods.special import TAILS_95

_DRAWS = 200  # of each person


def scores(model: Fitted, size: int = 4, anchor: Any = None, user: Any = None, *, random_state: int = 0) -> Any:
    """Rescaled utilities: how probable it is that an item is chosen from a set of the usual size.

    Parameters
    ----------
    model : estimator
        Any fitted model of the package whose answers are about utilities of items.
    size : int, default 4
        How many items stood in a set, from 2 to 20.
    anchor : item, optional
        The item that has the score 100: the threshold of an anchored study, or "none of these".
    user : id, optional
        A person; by default the mean over all people, each rescaled by themselves.
    random_state : int, default 0
        Seed of the draws.

    Returns
    -------
    table : data frame of the caller's kind
        Columns item, score, lower, upper (95 % interval of the draws), best first.

    Raises
    ------
    DataError
        If the size is out of range, or the anchor is not known.

    Notes
    -----
    p_i is the probability that item i is chosen from ``size`` items of which the others have the person's mean utility,
    exp(u_i) / (exp(u_i) + size - 1) with logistic noise. The score is 100 p_i / Σ p_j: scores sum to 100, and one of 10
    is twice as likely to be taken as one of 5. With an anchor, the others have the anchor's utility, and the score is
    100 p_i size: 100 for the anchor itself, up to 100 times ``size``.

    Examples
    --------
    >>> import predilect
    >>> from predilect.decisions import scores
    >>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
    >>> model = predilect.Population().fit(answers, [1, 1, -1])
    >>> round(scores(model)["score"].sum(), 6)
    100.0
    """
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 2 <= size <= 20:
        raise DataError(f"size must be a whole number of items from 2 to 20; got {quoted(size)}")
    now: Any = copy.copy(model)  # as it is, whatever other threads do
    if not now.posterior_.by_utilities:
        raise DataError("the answers of this model are about more than the utilities of items: they have no scores")
    place = None if anchor is None else int(now.items_.codes([anchor])[0])
    if user is not None or not now.personal_ or now.users_ is None:
        codes = [code_of(now, user)]
    else:
        codes = list(range(len(now.users_)))
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
    return build_frame({"item": names, "score": score[order], "lower": lower, "upper": upper}, now.backend_)


def _drawn(posterior: Posterior, user: int, seed: int) -> FloatArray:
    """Draws of a person's utilities in units of their own noise, (_DRAWS, n_items)."""
    utilities = posterior.person(user).times(posterior.consistency_of(user))
    return utilities.opposite_draws(_DRAWS, np.random.default_rng([seed, user + 1]))
