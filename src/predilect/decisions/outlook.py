"""When to stop asking a crowd: how sure a claim about the board is, and how many more answers may settle it."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtr, ndtri

from predilect._base.arguments import check_choice, check_count
from predilect._base.text import grouped, quoted
from predilect._base.types import FloatArray, IntArray, is_number
from predilect.decisions.candidates import items_left
from predilect.decisions.ranking import board_draws, default_draws, in_order, rank_utilities
from predilect.errors import DataError
from predilect.inference.gaussian.dense import factorise, symmetrise

CLAIMS = ("best", "top", "tiers")
_RIVALS = 10  # the strongest, on either side of a claim
_MOVES, _JUDGES = 200, 1000  # draws of where the board may move to, and of what is not known there
_FIRST, _GROWTH = 2.0, 1.2  # of the numbers of answers that are tried, and how they grow
_MOST_TIMES = 10.0  # the answers there are, or those of a poll that has hardly begun: more do not come of this crowd
_LEAST_ANSWERS = 200.0
_FEWEST_ANSWERS = 30.0  # of which the settings tell little, and what is to come less
_LATE = 0.5826  # -ζ(1/2) / √(2π)
_MEDIAN, _LIKELY = 0.5, 0.8  # of the draws of the board's move


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
        So many more answers will settle it as likely as not, whatever it then names, to two digits; 0 if it is settled.
        None if it may never be, or it is too early to say.
    likely_answers : int or None
        So many will four times in five; None if that may never be, or it is too early to say.
    may_never : bool
        Whether ten times the answers, or all that the people of a closed list can tell, leave it open as likely as not.
    too_early : bool
        Whether there are fewer than 30 answers, or fewer than items: nothing is said of those to come.
    """

    claim: str
    level: float
    items: tuple[Any, ...]
    probability: float
    enough: bool
    more_answers: int | None
    likely_answers: int | None
    may_never: bool
    too_early: bool = False

    def __str__(self) -> str:
        names = f"{len(self.items)} tiers" if self.claim == "tiers" else ", ".join(map(str, self.items))
        now, likely = f"{names}, with probability {self.probability:.2f}", self.likely_answers
        place = {"best": "first place", "top": f"the first {len(self.items)}", "tiers": "the order of the tiers"}
        what = place[self.claim]
        if self.enough:
            return f"Clear: {what}, {now}."
        if self.too_early:
            return f"Not clear yet: {what}, now {now}. There are too few answers to say how many more it takes."
        if self.more_answers is None:
            return f"Not clear, and perhaps never with this crowd: {what}, now {now}."
        rest = f"{grouped(likely)} make it likely" if likely is not None else "perhaps it never is with this crowd"
        return f"With about {grouped(self.more_answers)} more answers {what} may be clear; {rest}. Now {now}."


def _rounded(n: float) -> int:
    """Two digits of a number, rounded up."""
    unit = int(10 ** max(len(str(int(np.ceil(n)))) - 2, 0))
    return int(np.ceil(n / unit)) * unit


def outlook(
    model: Any, claim: str = "best", level: float = 0.95, *, k: int = 1, n_people: int | None = None,
    retired: Iterable[Any] = (), random_state: int = 0,
) -> Outlook:  # fmt: skip
    """See :meth:`Asking.outlook <predilect.models.asking.Asking.outlook>`."""
    model = copy.copy(model)  # as it is now, whatever other threads do
    kept = items_left(model, retired)
    check_choice("claim", claim, CLAIMS)
    if not is_number(level) or not 0.5 < level < 1.0:
        raise DataError(f"level must be a probability above 0.5 and below 1; got {quoted(level)}")
    check_count("k", k, 1, most=len(kept) - 1)
    crowd = model.posterior_.crowd().among(kept)
    mean = crowd.mean if crowd.Phi is None else crowd.dense()[0]
    draws = np.concatenate([*board_draws(crowd, model.seed_, default_draws(len(kept)))])  # as the board has them
    asked, items, probability = _claimed(model, crowd, claim, int(k) if claim == "top" else 1, mean, draws)
    ids = [model.items_.ids[code] for code in kept]
    named = tuple(tuple(ids[i] for i in one) if isinstance(one, list) else ids[one] for one in items)
    if probability >= level:
        return Outlook(claim, level, named, probability, True, 0, 0, False)
    if model.n_answers_ < max(_FEWEST_ANSWERS, len(kept)):
        return Outlook(claim, level, named, probability, False, None, None, False, too_early=True)
    rng = np.random.default_rng(random_state)
    future = _Future.of(model, kept[asked.rivals], n_people)
    most = _MOST_TIMES * max(float(model.n_answers_), _LEAST_ANSWERS)
    needed, likely = _answers_needed(future, asked, mean[asked.rivals], level, most, rng)
    return Outlook(claim, level, named, probability, False, needed, likely, needed is None)


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
) -> tuple[_Claim, list[Any], float]:  # fmt: skip
    """The claim on the items on which it mostly depends, what it names, by code, and its probability."""
    order = in_order(crowd)
    if claim == "tiers":
        board = rank_utilities(crowd, random_state=model.seed_)
        tiers = [board.item[board.tier == tier].tolist() for tier in np.unique(board.tier)]
        if len(tiers) == 1:
            raise DataError("all items are in one tier: there is no order of tiers to settle. Ask about the best item")
        of_tiers = _Claim(np.array([tier[0] for tier in tiers]), 0)
        return of_tiers, tiers, float(of_tiers.holds(draws[:, of_tiers.rivals], mean[of_tiers.rivals]).mean())
    # The strongest rivals of each side are those that cross the line most often.
    first = np.argsort(-draws, axis=1)[:, :k]
    among = np.bincount(first.ravel(), minlength=len(mean)) / len(draws)
    inside, outside = order[:k], order[k:]
    weakest = inside[np.lexsort((mean[inside], among[inside]))][:_RIVALS]
    strongest = outside[np.lexsort((-mean[outside], -among[outside]))][:_RIVALS]
    probability = (draws[:, inside].min(axis=1) > draws[:, outside].max(axis=1)).mean()
    return _Claim(np.concatenate((weakest, strongest)), len(weakest)), inside.tolist(), float(probability)


def _answers_needed(
    future: _Future, asked: _Claim, m: FloatArray, level: float, most: float, rng: np.random.Generator
) -> list[int | None]:
    """Numbers of answers after which a claim is settled as likely as not, and likely; None: not by ``most`` answers.

    A claim is settled when its probability first reaches the level. The board moves there by independent steps, from
    one of the numbers 2 · 1.2^k to the next; the covariance of a step is what its answers take off that of the board.
    A walk that is looked at after each step alone passes a bar as if it were higher by .58 standard deviations of a
    step (Broadie, Glasserman and Kou 1997, A continuity correction for discrete barrier options): so it is lower here.
    """
    judges, away = rng.standard_normal((_JUDGES, len(m))), np.tile(m, (_MOVES, 1))
    found: list[int | None] = []
    before, n = future.left(0.0), _FIRST
    while n < most * _GROWTH and len(found) < 2:
        after = future.left(n)
        away = away + rng.standard_normal(away.shape) @ _root(before - after).T
        error = judges @ _root(after).T
        bar = ndtr(ndtri(level) - _LATE * np.sqrt(_spread(before - after) / _spread(after)))
        away = away[[asked.holds(one + error, one).mean() < bar for one in away]]
        while len(found) < 2 and len(away) <= (1.0 - (_MEDIAN, _LIKELY)[len(found)]) * _MOVES:
            found.append(_rounded(n))
        before, n = after, n * _GROWTH
    return [*found, None, None][:2]


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
        if whitened[1] is None:  # a basis in which J is diagonal
            values, vectors = eigh(whitened[0])
            return cls(rows[rivals] @ lower @ vectors, own, np.diag(np.maximum(values, 0.0)), None)
        return cls(rows[rivals] @ lower, own, whitened[0], whitened[1])

    def left(self, n: float) -> FloatArray:
        """V_n, the covariance of the rivals after n more answers, (n_rivals, n_rivals)."""
        if self.limit is None:
            half = self.B / np.sqrt(1.0 + n * np.diagonal(self.J))
        else:  # answers of people saturate: the parallel sum of both
            G = n * self.J
            G = symmetrise(np.linalg.lstsq(G + self.limit, G, rcond=None)[0].T @ self.limit)
            values, vectors = eigh(G)
            half = self.B @ vectors / np.sqrt(1.0 + np.maximum(values, 0.0))
        return symmetrise(half @ half.T + np.diag(self.own))


def _spread(covariance: FloatArray) -> float:
    """Mean variance of items about their mean."""
    return float(np.diagonal(covariance).mean() - covariance.mean())


def _root(covariance: FloatArray) -> FloatArray:
    """A root of a small covariance, or of a difference of two, which rounding may leave a little below 0."""
    values, vectors = eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
