"""What to do about one choice of one person: act for them, ask, or leave it to them."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from predilect._base.json import plain
from predilect._base.text import did_you_mean, either, first_few, quoted, shown
from predilect._base.types import FloatArray, IntArray, is_number
from predilect.decisions.candidates import Fitted
from predilect.decisions.questions import code_of
from predilect.errors import DataError

Action = Literal["act", "ask", "defer"]
ACTIONS: tuple[Action, ...] = ("act", "ask", "defer")
Loss = float | Mapping[Any, Any]  # of a wrong act: of all, by the option taken, or by it and the one wanted
_AT_ONCE = 5_000_000  # numbers of losses
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
    cost_wrong: Loss = 1.0,
    cost_question: float = 0.1,
    cost_defer: float | None = None,
    default: Any = None,
    items: Any = None,
) -> Decision:
    """See :meth:`Asking.decide <predilect.models.asking.Asking.decide>`."""
    model = copy.copy(model)  # as it is now, whatever other threads do
    asked = _Asked.of(model, options, cost_wrong, cost_question, cost_defer, default, items)
    known = code_of(model, user, "the choice is that of") >= 0 and model.personal_
    order, p, found = asked.weighed(asked.chances(model, [user] if known else None, items))
    k, n, ids = len(asked.names), int(found.n_asked[0]), [asked.names[int(place)] for place in order[0]]
    action = ACTIONS[int(found.action[0])]
    option = {"act": ids[int(found.taken[0])], "ask": None, "defer": None if asked.stands < 0 else default}[action]
    costs, losses = (dict(zip(ACTIONS, part[0].tolist(), strict=True)) for part in (found.costs, found.losses))
    probability = {"act": float(p[0, found.taken[0]]), "ask": 1.0 - float(p[0, n:].sum()), "defer": 1.0}[action]
    if asked.stands >= 0:
        default = asked.names[asked.stands]
        option = default if action == "defer" else option
    weighed = Weighed(action, n, float(found.value[0]), costs, losses)
    said = _reason(weighed, ids, p[0], default, cost_wrong, int(found.taken[0]))
    return Decision(
        action, option, tuple(ids[:n]) if action == "ask" else (), probability, losses[action], weighed.value, costs,
        tuple(ids), tuple(p[0, :k].tolist()), said,
    )  # fmt: skip


def decide_many(
    model: Fitted,
    options: Any,
    users: Any = None,
    *,
    cost_wrong: Loss = 1.0,
    cost_question: float = 0.1,
    cost_defer: float | None = None,
    default: Any = None,
    items: Any = None,
) -> dict[str, Any]:
    """See :meth:`Asking.decide_many <predilect.models.asking.Asking.decide_many>`."""
    model = copy.copy(model)
    if model.users_ is None or not model.personal_:
        raise DataError(
            "the answers did not say who gave them, or people are not told apart: there is one decision for all, "
            f"{either('predilect decide DIR anybody OPTION...', 'decide(None, options)')}"
        )
    added = sorted(model._added_users, key=model._added_users.__getitem__)
    people = [*model.users_.ids, *added] if users is None else list(users)
    if not people:
        raise DataError("users is an empty list. Name people, or leave it out for all of the model")
    if users is not None:
        for one in people:
            if (code := model._added_users.get(model.users_.own(one), -1)) < 0:
                code = model.users_.code(one)
            if code < 0:
                raise DataError(f"the model does not know {quoted(one)}.{did_you_mean(one, model.users_)}")
    asked = _Asked.of(model, options, cost_wrong, cost_question, cost_defer, default, items)
    parts: list[dict[str, Any]] = []
    step = max(1, _AT_ONCE // len(asked.names) ** 2)
    for start in range(0, len(people), step):
        some = people[start : start + step]
        order, p, found = asked.weighed(asked.chances(model, some, items))
        n = np.arange(len(some))
        taken = np.where(found.action == 0, order[n, found.taken], np.where(found.action == 2, asked.stands, -1))
        at = found.taken
        within = np.where(np.arange(p.shape[1]) < found.n_asked[:, None], p, 0.0).sum(axis=1)
        parts.append({
            "user": some, "action": [ACTIONS[k] for k in found.action.tolist()],
            "option": [None if k < 0 else asked.names[k] for k in taken.tolist()],
            "question": [
                " | ".join(str(asked.names[k]) for k in order[row, : found.n_asked[row]]) if code == 1 else None
                for row, code in enumerate(found.action.tolist())
            ],
            "probability": np.select([found.action == 0, found.action == 1], [p[n, at], within], 1.0).tolist(),
            "expected_loss": found.losses[n, found.action].tolist(), "cost": found.costs[n, found.action].tolist(),
            "value": found.value.tolist(),
        })  # fmt: skip
    return {name: [value for part in parts for value in part[name]] for name in parts[0]}


class Weighed(NamedTuple):
    """The least expected cost of each action, what each leaves to be lost, and the question."""

    action: Action
    n_asked: int  # options of the best question, the likeliest ones
    value: float  # of its answer
    costs: dict[str, float]
    losses: dict[str, float]


class _Weighed(NamedTuple):
    """The same of N choices; actions by their places in ``ACTIONS``."""

    action: IntArray  # (N,)
    taken: IntArray  # the place of the option that acting takes, (N,)
    n_asked: IntArray
    value: FloatArray
    costs: FloatArray  # (N, 3)
    losses: FloatArray


@dataclass(frozen=True, slots=True)
class _Asked:
    """Options and costs, checked."""

    names: list[Any]
    codes: IntArray
    loss: FloatArray  # of taking option a where w is wanted, (k, k)
    cost_question: float
    cost_defer: float | None
    stands: int  # the place of the default, -1 for none

    @classmethod
    def of(
        cls, model: Fitted, options: Any, cost_wrong: Loss, cost_question: float, cost_defer: float | None,
        default: Any, items: Any,
    ) -> _Asked:  # fmt: skip
        """DataError for options, a default or costs that cannot be used."""
        for name, cost in (("cost_question", cost_question), ("cost_defer", cost_defer)):
            _check_cost(name, cost)
        codes = model.items_.codes(options, unknown="raise" if items is None else "minus_one").astype(np.int64)
        given = list(options)
        order = np.argsort(np.where(codes < 0, len(model.items_), codes), kind="stable")
        names = [given[k] if codes[k] < 0 else model.items_.ids[int(codes[k])] for k in order.tolist()]
        texts = [str(one) for one in names]
        twice = [one for k, one in enumerate(texts) if one in texts[:k]]
        if twice:
            raise DataError(f"the options hold {shown(twice[0])} twice")
        if len(names) < 2:
            raise DataError(f"a choice needs two options or more; got {len(names)}")
        stands = -1
        if default is not None:
            code = int(model.items_.codes([default], unknown="raise" if items is None else "minus_one")[0])
            same = codes[order] == code if code >= 0 else np.array([one == default for one in names])
            if not same.any():
                raise DataError(f"the default {shown(default)} is none of the options")
            stands = int(np.argmax(same))
        loss = _loss(cost_wrong, names)
        return cls(names, codes[order], loss, float(cost_question), cost_defer, stands)

    def chances(self, model: Any, people: list[Any] | None, items: Any) -> FloatArray:
        """Probabilities (n_people, k) of the options to be what each would choose; one row for anybody."""
        n, k = 1 if people is None else len(people), len(self.names)
        names = pl.Series(self.names)
        sets = {
            "task": pl.Series(np.repeat(np.arange(n), k)),
            "item": names.gather(pl.Series(np.tile(np.arange(k), n))),
        }
        if people is not None:
            sets["user"] = pl.Series(people).gather(pl.Series(np.repeat(np.arange(n), k)))
        more = {} if items is None else {"items": items}
        return np.asarray(model.predict_choice(sets, **more)).reshape(n, k)

    def weighed(self, p: FloatArray) -> tuple[IntArray, FloatArray, _Weighed]:
        """Options of each choice, the likeliest first, their probabilities (N, k), and what to do."""
        n, k = p.shape
        place = np.broadcast_to(np.arange(k), p.shape)
        order = np.lexsort((place, place != self.stands, -np.round(p, 12)), axis=-1)  # rounding orders nothing
        of_default = p[:, self.stands] if self.stands >= 0 else np.zeros(n)
        p = np.take_along_axis(p, order, axis=1)
        loss = self.loss[order[:, :, None], order[:, None, :]]
        return order, p, _weigh(p, loss, self.cost_question, self.cost_defer, of_default)


def weigh(
    p: FloatArray, cost_wrong: float, cost_question: float, cost_defer: float | None = None, of_default: float = 0.0
) -> Weighed:
    """Weigh the actions for options with these probabilities, falling, (k,); ``of_default`` is the default's."""
    k = len(p)
    loss = np.full((1, k, k), cost_wrong) * (1.0 - np.eye(k))
    one = _weigh(p[None], loss, cost_question, cost_defer, np.array([of_default]))
    costs, losses = (dict(zip(ACTIONS, part[0].tolist(), strict=True)) for part in (one.costs, one.losses))
    return Weighed(ACTIONS[int(one.action[0])], int(one.n_asked[0]), float(one.value[0]), costs, losses)


def _weigh(
    p: FloatArray, loss: FloatArray, cost_question: float, cost_defer: float | None, of_default: FloatArray
) -> _Weighed:
    """As :func:`weigh`, of N choices: p (N, k), falling; ``loss`` (N, k, k) of taking one where another is wanted.

    Of those who would choose none of the m options asked about, one names option s with probability p_s / Σ p: what is
    best of some follows from the chances of all as in Luce's choice axiom.
    """
    n, k = p.shape
    slack = _ROUNDING * (loss.max(axis=(1, 2)) + cost_question * k)
    acting = np.einsum("naw,nw->na", loss, p)
    taken = (acting <= acting.min(axis=1, keepdims=True) + slack[:, None]).argmax(axis=1)
    sizes = np.arange(2, max(k, 3))
    named = np.cumsum(p[:, :, None] * loss, axis=1)  # of the first m options, by what is wanted
    within = np.cumsum(p, axis=1)
    left = np.stack([(named[:, m - 1, m:] * p[:, m:]).sum(axis=1) / within[:, m - 1] for m in sizes], axis=1)
    asking = cost_question * np.log2(sizes) + left
    best = (asking <= asking.min(axis=1, keepdims=True) + slack[:, None]).argmax(axis=1)  # the shortest of equal ones
    row = np.arange(n)
    leaving = (cost_question * math.log2(k) if cost_defer is None else float(cost_defer)) * (1.0 - of_default)
    costs = np.stack([acting[row, taken], asking[row, best], leaving], axis=1)
    losses = np.stack([costs[:, 0], left[row, best], np.zeros(n)], axis=1)
    action = (costs <= costs.min(axis=1, keepdims=True) + slack[:, None]).argmax(axis=1)
    return _Weighed(action, taken, sizes[best], losses[:, 0] - losses[:, 1], costs, losses)


def _loss(given: Loss, names: list[Any]) -> FloatArray:
    """Loss (k, k) of taking each option where another is wanted; DataError if it does not fit the options."""
    k = len(names)
    if not isinstance(given, Mapping):
        _check_cost("cost_wrong", given)
        return np.asarray(float(given) * (1.0 - np.eye(k)))
    known = {str(name): value for name, value in given.items()}
    lacking = [one for one in names if str(one) not in known]
    if lacking:
        raise DataError(f"the loss names no amount for {shown(lacking[0])}. Give one for each option that may be taken")
    found = np.zeros((k, k))
    for a, one in enumerate(names):
        row = known[str(one)]
        by = {str(name): value for name, value in row.items()} if isinstance(row, Mapping) else None
        for w, other in enumerate(names):
            if a == w:
                continue
            if by is not None and str(other) not in by:
                raise DataError(f"the loss of taking {shown(one)} names no amount for where {shown(other)} is wanted")
            amount = row if by is None else by[str(other)]
            if not is_number(amount, 0.0):
                raise DataError(f"the loss of taking {shown(one)} is {quoted(amount)}. It must be a number from 0 up")
            found[a, w] = float(amount)
    return found


def _check_cost(name: str, cost: Any) -> None:
    if not is_number(cost, 0.0) and not (cost is None and name == "cost_defer"):
        said = either(f"--{name.replace('_', '-')}", name)
        more = either(", or a file", ", or a mapping from options to such") if name == "cost_wrong" else ""
        raise DataError(f"{said} must be a number from 0 up{more}, not {quoted(cost)}")


def _reason(found: Weighed, ids: list[Any], p: FloatArray, default: Any, cost_wrong: Loss, taken: int) -> str:
    """The decision in words; what is done comes first."""
    costs, n = found.costs, found.n_asked
    best, asked = shown(ids[taken]), first_few(ids[:n], n)
    what = "" if isinstance(cost_wrong, Mapping) else f" (a wrong act costs {cost_wrong:.3g})"
    acting = (
        f"Acting on {best} is right with probability {p[taken]:.3g} and has the expected loss {costs['act']:.3g}{what}"
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
