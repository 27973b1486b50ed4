"""What to do about one choice of one person: act for them, ask, or leave it to them."""

from __future__ import annotations

import copy
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from predilect._json import plain
from predilect._text import either, first_few, quoted, shown
from predilect._types import FloatArray, is_number
from predilect.decisions.candidates import Fitted
from predilect.decisions.queries import code_of
from predilect.errors import DataError

Action = Literal["act", "ask", "defer"]
_ROUNDING = 1e-12  # of the costs: what differs by less is equal


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about a choice, and why; all amounts are in the units of the costs that were given.

    Attributes
    ----------
    action : {"act", "ask", "defer"}
        Take ``option`` for the person; ask which of ``question`` they would choose, and take that; or leave the choice
        to them.
    option : id or None
        "act": what to take. "defer": the default, if there is one, which stands unless the person objects.
    question : tuple of ids
        "ask": the options to ask about, likeliest first; empty otherwise.
    probability : float
        Of this to end in what the person would choose: for "act" that ``option`` is it, for "ask" that it is in
        ``question``, for "defer" 1.
    expected_loss : float
        What stays to be lost: the cost of a wrong act times 1 - ``probability``.
    value : float
        What the answer to the best question takes off the expected loss of acting at once, its own cost not counted.
    costs : dict
        "act", "ask" and "defer": the expected cost of the best way of each, loss included. ``action`` has the least.
    options, probabilities : tuples
        All options, likeliest first, and how likely each is what the person would choose.
    reason : str
        All this in words.
    """

    action: Action
    option: Any
    question: tuple[Any, ...]
    probability: float
    expected_loss: float
    value: float
    costs: dict[str, float]
    options: tuple[Any, ...]
    probabilities: tuple[float, ...]
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        found: dict[str, Any] = plain(asdict(self))
        return found


def decide(
    model: Fitted,
    user: Any,
    options: Any,
    *,
    cost_wrong: float = 1.0,
    cost_question: float = 0.1,
    cost_defer: float | None = None,
    default: Any = None,
) -> Decision:
    """See :meth:`Asking.decide <predilect.models.asking.Asking.decide>`."""
    for name, cost in (("cost_wrong", cost_wrong), ("cost_question", cost_question), ("cost_defer", cost_defer)):
        _check_cost(name, cost)
    model = copy.copy(model)  # as it is now, whatever other threads do
    codes = np.sort(model.items_.codes(options).astype(np.int64))
    twice = codes[1:][np.diff(codes) == 0]
    if len(twice):
        raise DataError(f"the options hold {shown(model.items_.ids[twice[0]])} twice")
    if len(codes) < 2:
        raise DataError(f"a choice needs two options or more; got {len(codes)}")
    stands = -1 if default is None else int(model.items_.codes([default])[0])
    if stands >= 0 and stands not in codes:
        raise DataError(f"the default {shown(default)} is none of the options")
    names = model.items_.series().gather(pl.Series(codes))
    sets = {"task": pl.Series([0] * len(codes)), "item": names}
    if code_of(model, user, "the choice is that of") >= 0 and model.personal_:
        sets["user"] = pl.Series([user] * len(codes))
    p = model.predict_choice(sets)
    order = np.lexsort((codes, codes != stands, -np.round(p, 12)))  # rounding orders nothing
    p, ids = p[order], tuple(names[int(place)] for place in order)
    of_default = 0.0 if stands < 0 else float(p[codes[order] == stands][0])
    found = weigh(p, float(cost_wrong), float(cost_question), cost_defer, of_default)
    n = found.n_asked
    option = {"act": ids[0], "ask": None, "defer": None if stands < 0 else model.items_.ids[stands]}
    question = ids[:n] if found.action == "ask" else ()
    probability = {"act": float(p[0]), "ask": 1.0 - float(p[n:].sum()), "defer": 1.0}[found.action]
    return Decision(
        found.action, option[found.action], question, probability, found.losses[found.action], found.value,
        found.costs, ids, tuple(p.tolist()), _reason(found, ids, p, option["defer"], cost_wrong),
    )  # fmt: skip


class Weighed(NamedTuple):
    """The least expected cost of each action, what each leaves to be lost, and the question."""

    action: Action
    n_asked: int  # options of the best question, the likeliest ones
    value: float  # of its answer
    costs: dict[str, float]
    losses: dict[str, float]


def weigh(
    p: FloatArray, cost_wrong: float, cost_question: float, cost_defer: float | None = None, of_default: float = 0.0
) -> Weighed:
    """Weigh the actions for options with these probabilities, falling, (k,); ``of_default`` is the default's."""
    k = len(p)
    rest = np.append(np.cumsum(p[:0:-1])[::-1], 0.0)  # of the choice to be none of the first so many and one
    loss = cost_wrong * rest
    sizes = np.arange(2, max(k, 3))
    asking = cost_question * np.log2(sizes) + loss[sizes - 1]
    slack = _ROUNDING * (cost_wrong + cost_question * k)
    n_asked = int(sizes[np.argmax(asking <= asking.min() + slack)])  # the shortest of equally good ones
    leaving = (cost_question * math.log2(k) if cost_defer is None else float(cost_defer)) * (1.0 - of_default)
    costs = {"act": float(loss[0]), "ask": float(asking[n_asked - 2]), "defer": leaving}
    losses = {"act": float(loss[0]), "ask": float(loss[n_asked - 1]), "defer": 0.0}
    least = min(costs.values()) + slack
    action: Action = "act" if costs["act"] <= least else "ask" if costs["ask"] <= least else "defer"
    return Weighed(action, n_asked, losses["act"] - losses["ask"], costs, losses)


def _check_cost(name: str, cost: Any) -> None:
    if not is_number(cost, 0.0) and not (cost is None and name == "cost_defer"):
        said = either(f"--{name.replace('_', '-')}", name)
        raise DataError(f"{said} must be a number from 0 up, not {quoted(cost)}")


def _reason(found: Weighed, ids: tuple[Any, ...], p: FloatArray, default: Any, cost_wrong: float) -> str:
    """The decision in words; what is done comes first."""
    costs, n = found.costs, found.n_asked
    best, asked = shown(ids[0]), first_few(ids[:n], n)
    acting = (
        f"Acting on {best} is right with probability {p[0]:.3g} and has the expected loss {costs['act']:.3g} (a wrong "
        f"act costs {cost_wrong:.3g})"
    )
    asking = (
        f"asking which of {asked} takes {found.value:.3g} off it and costs "
        f"{costs['ask'] - found.losses['ask']:.3g}, in all {costs['ask']:.3g}"
    )
    stands = "" if default is None else f", with {shown(default)} unless they object,"
    leaving = f"leaving the choice to the person{stands} costs {costs['defer']:.3g}"
    head = {
        "act": f"Act: take {best}",
        "ask": f"Ask which of {asked}, and take the answer",
        "defer": "Defer: leave the choice to the person" if default is None else
        f"Defer: {shown(default)} stands unless the person objects",
    }[found.action]  # fmt: skip
    return f"{head}. {acting}; {asking}; {leaving}."
