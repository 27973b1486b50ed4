"""Named pairs of items: how sure it is which is better, and how an answer will come out."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from predilect._base.text import quoted
from predilect._base.types import FloatArray
from predilect.data import build_frame
from predilect.decisions.candidates import Fitted
from predilect.decisions.questions import code_of
from predilect.decisions.ranking import refuse_unsound
from predilect.decisions.scales import Scale, scale_of
from predilect.errors import DataError

_MOST_OPPONENTS = 60  # of each item of a board, O(n) duels in all


def versus(model: Fitted, pairs: Any, other: Any = None, user: Any = None, *, scale: str | Scale = "probit") -> Any:
    """See :meth:`Asking.versus <predilect.models.asking.Asking.versus>`."""
    now: Any = copy.copy(model)  # as it is, whatever other threads do
    couples = _couples(pairs, other)
    left, right = (now.items_.codes([pair[side] for pair in couples]) for side in (0, 1))
    if (left == right).any():
        same = now.items_.labels(left[left == right][:1])[0]
        raise DataError(f"{quoted(same)} is paired with itself; expected two items")
    utilities = now.posterior_.crowd() if user is None else now.posterior_.calibrated(code_of(now, user))
    found = utilities.differences(left, right)
    refuse_unsound(found.mean, found.variance)
    unit = scale_of(scale, now._likelihood.name).per_probit
    names = {"left": now.items_.labels(left), "right": now.items_.labels(right)}
    chance = chances_of_no_side(now, names["left"], names["right"], user)
    return build_frame(
        {
            **names, "p_better": found.p_better, "difference": unit * found.mean,
            "lower": unit * found.lower, "upper": unit * found.upper,
            "p_left": chance[:, 0], "p_tie": chance[:, 1], "p_right": chance[:, 2],
        },
        now._backend,
    )  # fmt: skip


def chances_of_no_side(model: Any, left: Any, right: Any, user: Any = None) -> FloatArray:
    """Chances that left, neither or right is chosen, (n, 3), the mean of both orders on the screen.

    Of a person, or of somebody new; what favours a side, as answers of the fit may do, counts for neither.
    """
    asked = [{"left": one, "right": other} for one, other in ((left, right), (right, left))]
    there, back = (
        model._predict_margin_and_proba(one if user is None else one | {"user": [user] * len(left)})[2] for one in asked
    )
    return np.asarray(0.5 * (there + back[:, ::-1]))


def duels(model: Any, items: Any, lower: FloatArray, upper: FloatArray, user: Any = None) -> FloatArray:
    """Share of duels that items win against the others of a board, with its 95 % interval, (n_items, 3).

    The mean chance of an answer, of a person or of somebody new; neither counts half. ``items`` are ids, best first;
    ``lower`` and ``upper`` the intervals of their centred utilities. The ends of the interval are the shares with the
    utility there, and the others where the mean stays 0. Of many items some are opponents: one in so many places.
    """
    n = len(items)
    if n < 2:
        return np.tile([0.5, 0.0, 1.0], (n, 1))
    some = np.unique(np.linspace(0, n - 1, min(n, _MOST_OPPONENTS)).astype(np.int64))
    own, other = (side.ravel() for side in np.meshgrid(np.arange(n), some, indexing="ij"))
    own, other = own[own != other], other[own != other]
    ids = np.asarray(items, dtype=object)
    asked = {"left": ids[own], "right": ids[other]} | ({} if user is None else {"user": [user] * len(own)})
    _, variance, _ = model._predict_margin_and_proba(asked)
    chances = chances_of_no_side(model, ids[own], ids[other], user)
    probits = ndtri(chances[:, 0] + 0.5 * chances[:, 1])
    shares = np.empty((n, 3))
    middle = 0.5 * (lower + upper)
    for place, moved in enumerate((np.zeros(n), lower - middle, upper - middle)):
        # The others go down where one goes up: a margin moves by a share of both.
        step = moved[own] * (n / (n - 1.0)) / np.sqrt(1.0 + variance)
        shares[:, place] = np.bincount(own, ndtr(probits + step), n) / np.bincount(own, minlength=n)
    return shares


def _couples(pairs: Any, other: Any) -> list[Any]:
    """The pairs as a list; DataError for anything but two items, or pairs of two."""
    expected = 'give two items, versus("tea", "milk"), or a list of pairs of two items, such as [("tea", "milk")]'
    is_list = isinstance(pairs, list | tuple | np.ndarray)
    if other is not None:
        if is_list:
            raise DataError(f"{expected}; got a list and {quoted(other)}. A person is named: user={quoted(other)}")
        return [(pairs, other)]
    if not is_list:
        raise DataError(f"{expected}; got {quoted(pairs)} alone")
    for place, pair in enumerate(pairs):
        if isinstance(pair, list | tuple | np.ndarray) and len(pair) == 2:
            continue
        if place == 0 and len(pairs) == 2 and isinstance(pair, str | int | np.integer):
            raise DataError(f"{expected}; got {(got := quoted(pairs))}. If that is one pair, write [{got}]")
        raise DataError(f"{expected}; got {quoted(pair)} at place {place + 1}. Of several items name each pair")
    return list(pairs)
