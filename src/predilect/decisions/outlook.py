"""When to stop asking a crowd: how sure a claim about the board is, and how many more answers may settle it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from predilect._text import quoted
from predilect._types import FloatArray, IntArray
from predilect.decisions.ranking import N_DRAWS, rank_utilities
from predilect.errors import DataError
from predilect.gaussian.dense import factorise, semidefinite_root, symmetrise

CLAIMS = ("best", "top", "tiers")
_RIVALS = 10  # the strongest, on either side of a claim
_MOVES, _JUDGES = 200, 1000  # draws of where the board may move to, and of what is not known there
_GROWTH = 1.25  # of the numbers of answers that are tried
_MOST_TIMES = 100.0  # the answers there are, or those of a poll that has hardly begun
_LEAST_ANSWERS = 200.0
_SURELY = 0.8  # of the draws of the board's move


@dataclass(frozen=True, slots=True)
class Outlook:
    """How sure a claim about the crowd's board is, and about how many more answers settle it.

    Attributes
    ----------
    claim : {"best", "top", "tiers"}
    level : float
        The probability from which a claim is settled.
    items : tuple
        What the claim names now: the first item; the first k, best first; or the tiers, a tuple of items each.
    probability : float
        That the claim is true, given all answers.
    enough : bool
        Whether it is settled: the probability is at least the level.
    more_answers : int or None
        About how many more answers will settle it, whatever it then names; 0 if it is settled. None if it may never be.
    may_never : bool
        Whether a hundred times the answers, or all that the people of a closed list can tell, may not settle it.
    """

    claim: str
    level: float
    items: tuple[Any, ...]
    probability: float
    enough: bool
    more_answers: int | None
    may_never: bool

    def __str__(self) -> str:
        what = {"best": "first place", "top": f"who the first {len(self.items)} are", "tiers": "the order of the tiers"}
        place = what[self.claim]
        if self.enough:
            return f"Settled with probability {self.probability:.2f}: {place}, {_named(self)}."
        if self.more_answers is None:
            return f"It may never be settled: {place} (now {_named(self)}, with probability {self.probability:.2f})."
        return (
            f"About {_rounded(self.more_answers)} more answers settle {place} (now {_named(self)}, with probability "
            f"{self.probability:.2f})."
        )


def _named(outlook: Outlook) -> str:
    if outlook.claim == "tiers":
        return f"{len(outlook.items)} tiers"
    return ", ".join(map(str, outlook.items))


def _rounded(n: int) -> int:
    """Two digits of a number."""
    unit = int(10 ** max(len(str(n)) - 2, 0))
    return round(n / unit) * unit


def outlook(
    model: Any, claim: str = "best", level: float = 0.95, *, k: int = 1, n_people: int | None = None,
    random_state: int = 0,
) -> Outlook:  # fmt: skip
    """See :meth:`Asking.outlook <predilect.models.asking.Asking.outlook>`."""
    model = copy.copy(model)  # as it is now, whatever other threads do
    n_items = len(model.items_)
    if claim not in CLAIMS:
        raise DataError(f"there is no claim {quoted(claim)}; there are {', '.join(CLAIMS)}")
    if not 0.5 < level < 1.0:
        raise DataError(f"level must be a probability above 0.5 and below 1; got {quoted(level)}")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k < n_items:
        raise DataError(f"k must be a whole number from 1 to {n_items - 1}, below that of the items; got {quoted(k)}")
    crowd = model.posterior_.crowd()
    rng = np.random.default_rng(random_state)
    mean, covariance = crowd.dense()
    draws = mean + rng.standard_normal((N_DRAWS, n_items)) @ _root(covariance).T
    asked, items = _claimed(model, crowd, claim, int(k) if claim == "top" else 1, mean, draws)
    probability = float(asked.holds(draws[:, asked.rivals], mean[asked.rivals]).mean())
    ids = model.items_.ids
    named = tuple(tuple(ids[i] for i in one) if isinstance(one, list) else ids[one] for one in items)
    if probability >= level:
        return Outlook(claim, level, named, probability, True, 0, False)
    n = _answers_needed(model, asked, mean, level, n_people, rng)
    return Outlook(claim, level, named, probability, False, n, n is None)


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claim about some items, the first ``k`` of them, or about the order of all (k = 0)."""

    rivals: IntArray  # codes of the items that it depends on
    k: int

    def holds(self, draws: FloatArray, mean: FloatArray) -> FloatArray:
        """Whether what ``mean`` (n,) says is so in draws (R, n)."""
        if not self.k:
            order = np.argsort(-mean, kind="stable")
            return np.asarray((np.diff(draws[:, order], axis=1) < 0.0).all(axis=1))
        first = np.zeros(len(mean), dtype=bool)
        first[np.argsort(-mean, kind="stable")[: self.k]] = True
        return np.asarray(draws[:, first].min(axis=1) > draws[:, ~first].max(axis=1))


def _claimed(
    model: Any, crowd: Any, claim: str, k: int, mean: FloatArray, draws: FloatArray
) -> tuple[_Claim, list[Any]]:  # fmt: skip
    """The claim on the items on which it depends, and what it names, by code."""
    order = np.argsort(-mean, kind="stable")
    if claim == "tiers":
        board = rank_utilities(crowd, random_state=model.seed_)
        tiers = [board.item[board.tier == tier].tolist() for tier in np.unique(board.tier)]
        if len(tiers) == 1:
            raise DataError("all items are in one tier: there is no order of tiers to settle. Ask about the best item")
        return _Claim(np.array([tier[0] for tier in tiers]), 0), tiers
    # The strongest rivals of each side are those that cross the line most often.
    first = np.argsort(-draws, axis=1)[:, :k]
    among = np.bincount(first.ravel(), minlength=len(mean)) / len(draws)
    inside, outside = order[:k], order[k:]
    weakest = inside[np.lexsort((mean[inside], among[inside]))][:_RIVALS]
    strongest = outside[np.lexsort((-mean[outside], -among[outside]))][:_RIVALS]
    return _Claim(np.concatenate((weakest, strongest)), len(weakest)), inside.tolist()


def _answers_needed(
    model: Any, asked: _Claim, mean: FloatArray, level: float, n_people: int | None, rng: np.random.Generator
) -> int | None:  # fmt: skip
    """The least number of answers, by factors of 1.25, that are likely to settle the claim; None if none is."""
    future = _Future.of(model, asked.rivals, n_people)
    moves, judges = rng.standard_normal((_MOVES, future.size)), rng.standard_normal((_JUDGES, future.size))
    m = mean[asked.rivals]

    def settles(n: float) -> bool:
        move, rest = future.roots(n)
        away, error = m + moves @ move.T, judges @ rest.T
        settled = [float(asked.holds(one + error, one).mean()) >= level for one in away]
        return float(np.mean(settled)) >= _SURELY

    most = _MOST_TIMES * max(float(model.n_answers_), _LEAST_ANSWERS)
    high = int(np.ceil(np.log(most) / np.log(_GROWTH)))
    if not settles(_GROWTH**high):
        return None
    low = -1  # more answers settle more: the least by halving
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settles(_GROWTH**middle) else (middle, high)
    return int(np.ceil(_GROWTH**high))


@dataclass(frozen=True, slots=True)
class _Future:
    """The covariance V of the board, and what answers add to its information, in one basis: V = B Bᵀ, G(n) added."""

    B: FloatArray  # (n_rivals, M)
    own: FloatArray  # variances of item-specific residuals, which stay
    J: FloatArray  # of one answer, whitened by V, (M, M)
    limit: FloatArray | None  # of all answers that a closed list of people can give; None if the list is open

    @classmethod
    def of(cls, model: Any, rivals: IntArray, n_people: int | None) -> _Future:
        """Of a fitted model; DataError for fewer people than have answered."""
        posterior = model.posterior_
        crowd = posterior.crowd()
        lower = factorise(crowd.covariance).lower
        J, limit = posterior.information_of_answers(n_people)
        rows = np.eye(len(crowd.mean)) if crowd.Phi is None else crowd.rows()
        own = crowd.own[rivals] if len(crowd.own) else np.zeros(len(rivals))
        whitened = [None if one is None else symmetrise(lower.T @ one @ lower) for one in (J, limit)]
        assert whitened[0] is not None
        return cls(rows[rivals] @ lower, own, whitened[0], whitened[1])

    @property
    def size(self) -> int:
        """Numbers that a draw takes."""
        return int(self.B.shape[1] + len(self.own))

    def roots(self, n: float) -> tuple[FloatArray, FloatArray]:
        """Roots of V - V_n and of V_n, (n_rivals, size) each, after n more answers."""
        G = n * self.J
        if self.limit is not None:  # answers of people saturate: the parallel sum of both
            G = symmetrise(np.linalg.lstsq(G + self.limit, G, rcond=None)[0].T @ self.limit)
        values, vectors = eigh(symmetrise(G))
        values = np.maximum(values, 0.0)
        half = self.B @ vectors
        nothing = np.zeros((len(self.own), len(self.own)))
        move = np.hstack([half * np.sqrt(values / (1.0 + values)), nothing])
        return move, np.hstack([half / np.sqrt(1.0 + values), np.diag(np.sqrt(self.own))])


def _root(covariance: FloatArray) -> FloatArray:
    root = semidefinite_root(covariance)
    return np.hstack([root, np.zeros((len(root), len(covariance) - root.shape[1]))])
