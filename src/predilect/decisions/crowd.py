"""Questions for the crowd's board: who is asked which pair or set of items, and by what chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from predilect._base.arguments import check_arguments
from predilect._base.text import quoted
from predilect._base.types import FloatArray, IntArray
from predilect.decisions.candidates import answered_rows
from predilect.decisions.sets import LARGEST_SET, sets_of_rows
from predilect.decisions.weights import BLOCK, EQUAL, PairPool, Weights, information_about
from predilect.errors import DataError

_MOST_SUMMED = 10  # items of a set whose chance is summed over all ways to draw them
_FEW_LEFT = 0.5  # of the pairs: with fewer left they are listed, not drawn until one is free


class Pair(NamedTuple):
    """A pair to show to somebody, sides as they are, and the chance with which it was drawn, whichever side is left."""

    left: Any
    right: Any
    probability: float


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """A pair to show to somebody, sides as they are.

    ``probability``: the chance with which this pair, whichever side is left, was drawn; ``score``: bits that the answer
    is expected to tell of the crowd's board; ``p_left``, ``p_tie``, ``p_right``: chances of the answers.
    """

    user: Any
    left: Any
    right: Any
    probability: float
    score: float
    p_left: float
    p_tie: float
    p_right: float


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """Items to show to somebody together, in this order.

    ``probability``: the chance with which these items, in whatever order, are drawn; None of more than ten, which may
    be drawn in too many ways.
    """

    user: Any
    items: tuple[Any, ...]
    probability: float | None


class Questions:
    """Asks people about the crowd's board, by weights that are those of one state of the model.

    What a person has answered, and what is known of them, is looked up in the model as it is when they are asked.
    Immutable, and safe for threads. After a refit, or new items, make another one.
    """

    def __init__(self, model: Any, weights: Weights) -> None:
        self._model, self._weights = model, weights

    @property
    def target(self) -> str:
        """What the questions are about."""
        return self._weights.target

    def ask(
        self, user: Any = None, n: int = 1, *, exclude: Iterable[tuple[Any, Any]] = (), repeat: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> list[PairQuestion]:  # fmt: skip
        """Draw pairs for one person, with what is expected of the answers; as :meth:`draw` otherwise."""
        draws, rng = QuestionDraws(self._model, self._weights), np.random.default_rng(random_state)
        found = draws.of_person(user, n, draws.pairs(exclude), repeat, rng)
        return draws.described(user, found, rng)

    def draw(
        self, user: Any = None, n: int = 1, *, exclude: Iterable[tuple[Any, Any]] = (), repeat: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> list[Pair]:  # fmt: skip
        """Draw pairs for one person, each given those before; fewer than n if there are not so many left.

        Parameters
        ----------
        user : id, optional
            Who is asked; by default, and for an id that the model does not know, somebody without answers.
        n : int, default 1
        exclude : iterable of (item, item)
            Further pairs not to ask, such as those on the person's screen. Items that are not known count for nothing.
        repeat : bool, default False
            Whether pairs that the person answered may be asked again.
        random_state : int, Generator or None
            None draws anew each time.
        """
        draws, rng = QuestionDraws(self._model, self._weights), np.random.default_rng(random_state)
        found = draws.of_person(user, n, draws.pairs(exclude), repeat, rng)
        return [Pair(*draws.sides(pair, rng), probability) for pair, probability in found]

    def ask_each(
        self, users: Iterable[Any], *, exclude: Iterable[tuple[Any, Any]] = (), repeat: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> list[PairQuestion]:  # fmt: skip
        """Draw a pair for each of several people, none twice while others are left for the person.

        Probabilities are given the pairs before. Whoever has no pair left gets none. Parameters as of :meth:`draw`.
        """
        draws, rng = QuestionDraws(self._model, self._weights), np.random.default_rng(random_state)
        closed = draws.pairs(exclude)
        asked: list[PairQuestion] = []
        taken = closed
        for user in users:
            found = draws.of_person(user, 1, taken, repeat, rng)
            found = found or draws.of_person(user, 1, closed, repeat, rng)
            taken = np.append(taken, [pair for pair, _ in found]).astype(np.int64)
            asked += draws.described(user, found, rng)
        return asked

    def ask_set(
        self, user: Any = None, size: int = 4, *, exclude: Iterable[Iterable[Any]] = (), repeat: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> SetQuestion | None:  # fmt: skip
        """Draw items to show together to one person: a pair, and then items that tell most beside those before.

        Parameters
        ----------
        user, repeat, random_state
            As of :meth:`draw`.
        size : int, default 4
            How many items, from 2 to 20.
        exclude : iterable of sets of items
            Further sets not to ask.

        Returns
        -------
        SetQuestion or None
            None if no set is left.
        """
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 2 <= size <= LARGEST_SET:
            raise DataError(f"size must be a whole number of items from 2 to {LARGEST_SET}; got {quoted(size)}")
        if size > len(self._weights.items):
            raise DataError(f"a set of {size} was asked for, but there are {len(self._weights.items)} items to show")
        draws, rng = QuestionDraws(self._model, self._weights), np.random.default_rng(random_state)
        return draws.set_of_person(user, int(size), exclude, repeat, rng)


class _Open(NamedTuple):
    """What may be drawn: pairs of a pool, by index, without those that are shut, and how they are weighed."""

    pool: PairPool
    free: IntArray
    shut: set[int]
    n_left: int
    weight: FloatArray
    total: FloatArray  # cumulative, over ``free``
    rest: float  # sum of the weights of pairs that are left
    eps: float

    def chance(self, pair: int) -> float:
        """With which a pair is drawn, for somebody of whom nothing is known."""
        if not self.pool.holds[pair] or pair in self.shut:
            return 0.0
        return self.mixed(self.weight[pair] / self.rest if self.rest > 0.0 else 1.0 / self.n_left)

    def mixed(self, main: float) -> float:
        """A chance by the weights, with that of any pair; of the only one left it may round to above 1."""
        return min(float((1.0 - self.eps) * main + self.eps / self.n_left), 1.0)


class QuestionDraws:
    """Draws from some weights for people of a model as it is now."""

    def __init__(self, model: Any, weights: Weights) -> None:
        # As it is now, whatever other threads do; copy() takes longer than a draw.
        self.model, self.weights = object.__new__(type(model)), weights
        vars(self.model).update(vars(model))

    def pairs(self, ids: Iterable[tuple[Any, Any]]) -> IntArray:
        """Indices of pairs of items that are here."""
        code, found = self.model.items_.code, []
        for first, second in ids:
            a, b = code(first), code(second)
            if a >= 0 and b >= 0 and a != b:
                found.append((a, b))
        if not found:
            return np.zeros(0, dtype=np.int64)
        first, second = np.array(found).T
        return self._here(self.weights.index(first, second))

    @staticmethod
    def _here(index: IntArray) -> IntArray:
        return index[index >= 0]

    def code(self, user: Any) -> int:
        """Code of a person, -1 for somebody without answers."""
        model = self.model
        if user is None or model.users_ is None or not model.personal_:
            return -1
        added = model._added_users.get(model.users_.own(user), -1)
        return int(added if added >= 0 else model.users_.code(user))

    def answered(self, user: Any, code: int) -> tuple[IntArray, IntArray, IntArray]:
        """Items of the rows that a person answered, and their tasks."""
        model = self.model
        place = code if code >= 0 or model.users_ is None else model.users_.code(user)
        found = answered_rows(model, user, place)
        nothing = np.zeros(0, dtype=np.int64)
        return (nothing, nothing, nothing) if found is None else found

    def of_person(
        self, user: Any, n: int, closed: IntArray, repeat: bool, rng: np.random.Generator
    ) -> list[tuple[int, float]]:  # fmt: skip
        """Pairs for a person, by index, without those that are ``closed``, and their probabilities."""
        check_arguments(n=n)
        code = self.code(user)
        if not repeat:
            left, right, _ = self.answered(user, code)
            closed = np.concatenate((closed.astype(np.int64), self._here(self.weights.index(left, right))))
        closed = np.unique(closed)
        found: list[tuple[int, float]] = []
        while len(found) < n and (drawn := self.draw(code, closed, rng)) is not None:
            found.append(drawn)
            closed = np.append(closed, drawn[0])
        return found

    def open_pairs(self, closed: IntArray) -> _Open | None:
        """What is left to be drawn; None if nothing is."""
        weights = self.weights
        for pool in weights.pools:
            barred = closed[pool.holds[closed]]
            n_left = len(pool.pairs) - len(barred)
            if n_left:
                break
        else:
            return None
        weight, total = weights.weight, pool.total
        rest = float(total[-1] - weight[barred].sum())
        if not rest > EQUAL * float(total[-1]):  # the person answered all that they are about
            weight, total = weights.spare, pool.total_spare
            rest = float(total[-1] - weight[barred].sum())
        if n_left < _FEW_LEFT * len(pool.pairs):
            free = np.setdiff1d(pool.pairs, barred, assume_unique=True)
            total = np.cumsum(weight[free])
            rest = float(total[-1])
        else:
            free = pool.pairs
        return _Open(pool, free, set(barred.tolist()), n_left, weight, total, rest, weights.eps)

    def draw(self, code: int, closed: IntArray, rng: np.random.Generator) -> tuple[int, float] | None:
        """A pair for a person, and its probability; None where none is left."""
        left, weights = self.open_pairs(closed), self.weights
        if left is None:
            return None
        free, total = left.free, left.total
        uniform = rng.random() < weights.eps or not left.rest > 0.0
        while True:
            place = rng.integers(len(free)) if uniform else np.searchsorted(total, rng.random() * total[-1], "right")
            pair = int(free[min(place, len(free) - 1)])
            if pair not in left.shut:
                break
        own = weights.target == "board" and code >= 0 and weights.tau > 0.0 and left.weight is weights.weight
        if not own:
            return pair, left.chance(pair)
        pair, main = self._by_own(code, pair, left.pool, left.shut, left.rest, uniform, rng)
        return pair, left.mixed(main)

    def _by_own(
        self, code: int, pair: int, pool: PairPool, shut: set[int], rest: float, keep: bool, rng: np.random.Generator
    ) -> tuple[int, float]:  # fmt: skip
        """A pair out of the block of one that was drawn, by the person's own information; ``keep``: this pair itself.

        With the probability of it: that of the block, by the weights of all, times that within it.
        """
        weights = self.weights
        start = int(weights.block[pair]) * BLOCK
        some = weights.order[start : start + BLOCK]
        some = some[pool.holds[some]]
        if shut:
            some = np.array([one for one in some.tolist() if one not in shut])
        told = self.information(code, some)
        chance = np.exp((told - told.max()) / weights.tau)
        chance /= chance.sum()
        if not keep:
            place = min(int(np.searchsorted(np.cumsum(chance), rng.random(), "right")), len(some) - 1)
            pair = int(some[place])
        within = float(chance[some == pair][0])
        return pair, float(weights.weight[some].sum()) / rest * within

    def information(self, code: int, pairs: IntArray) -> FloatArray:
        """Bits about the consensus that a person's answers to pairs, by index, tell."""
        weights, posterior = self.weights, self.model.posterior_
        left, right = weights.left[pairs], weights.right[pairs]
        mean, within, shared = posterior.about_crowd(code, left, right)
        a = posterior.consistency_of(code)
        delta = self.model.tie_threshold_ * posterior.tie_factors(np.array([code]))
        delta = np.broadcast_to(delta * posterior.tie_factors_of_pairs(left, right), mean.shape)
        return information_about(a * mean, a * a * within, a * a * shared, delta)

    def sides(self, pair: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Ids of the items of a pair, sides drawn."""
        ids, weights = self.model.items_.ids, self.weights
        both = ids[weights.left[pair]], ids[weights.right[pair]]
        return both[::-1] if rng.random() < 0.5 else both

    def described(self, user: Any, found: list[tuple[int, float]], rng: np.random.Generator) -> list[PairQuestion]:
        """Pairs, by index, with their sides drawn and what is expected of the answers."""
        if not found:
            return []
        model, posterior, code = self.model, self.model.posterior_, self.code(user)
        pairs = np.array([pair for pair, _ in found])
        told = self.information(code, pairs) if code >= 0 else self.weights.information[pairs]
        sides = [self.sides(pair, rng) for pair, _ in found]
        left, right = (model.items_.codes(list(one)).astype(np.int64) for one in zip(*sides, strict=True))
        who = np.full(len(found), code)
        mean, var = posterior.margins(who, left, right)
        chance = posterior.outcome_proba(mean, var, who, left, right, model.tie_threshold_, model._likelihood)
        rows = zip(sides, found, told.tolist(), chance.tolist(), strict=True)
        return [PairQuestion(user, *both, probability, score, *p) for both, (_, probability), score, p in rows]

    def set_of_person(
        self, user: Any, size: int, exclude: Iterable[Iterable[Any]], repeat: bool, rng: np.random.Generator
    ) -> SetQuestion | None:  # fmt: skip
        """Items for a person: the first pair by the weights, then one after the other."""
        weights, code = self.weights, self.code(user)
        sets = [frozenset(self.model.items_.code(one) for one in several) for several in exclude]
        if not repeat:
            sets += sets_of_rows(*self.answered(user, code))
        places = [{int(weights.place[one]) for one in several} for several in set(sets) if -1 not in several]
        closed = [one for one in places if len(one) == size and -1 not in one]
        n = len(weights.items)
        filled = np.array(_filled([], 2, closed, n, size), dtype=np.int64).reshape(-1, 2)
        barred = weights.index(*weights.items[filled].T)
        drawn = self.draw(-1, barred, rng)
        if drawn is None:
            return None
        chosen = [int(weights.place[side[drawn[0]]]) for side in (weights.left, weights.right)]
        while len(chosen) < size:
            rest, chance = self._next(chosen, closed, size)
            place = min(int(np.searchsorted(np.cumsum(chance), rng.random(), "right")), len(rest) - 1)
            chosen.append(int(rest[place]))
        ids = [self.model.items_.ids[one] for one in weights.items[chosen]]
        probability = self._chance_of_set(sorted(chosen), closed, barred) if size <= _MOST_SUMMED else None
        return SetQuestion(user, tuple(ids[one] for one in rng.permutation(size)), probability)

    def _chance_of_set(self, items: list[int], closed: list[set[int]], barred: IntArray) -> float:
        """Chance with which a set is drawn, summed over all orders: of each part, the chance that the draw is there."""
        weights, left = self.weights, self.open_pairs(barred)
        assert left is not None
        reached = dict.fromkeys((part for m in range(2, len(items) + 1) for part in combinations(items, m)), 0.0)
        for pair in combinations(items, 2):
            reached[pair] = left.chance(int(weights.index(*weights.items[np.array(pair)[:, None]])[0]))
        for part, there in reached.items():  # the smaller ones first
            if not there or len(part) == len(items):
                continue
            rest, chance = self._next(list(part), closed, len(items))
            for one in set(items).difference(part):
                place = int(np.searchsorted(rest, one))
                if place < len(rest) and rest[place] == one:
                    reached[tuple(sorted((*part, one)))] += there * float(chance[place])
        return min(reached[tuple(items)], 1.0)  # of the only set left the sum may round to the next number above 1

    def _next(self, chosen: list[int], closed: list[set[int]], size: int) -> tuple[IntArray, FloatArray]:
        """Items that may come next in a set, and their chances."""
        weights, n = self.weights, len(self.weights.items)
        barred = np.array([*chosen, *(one for (one,) in _filled(chosen, 1, closed, n, size))])
        rest = np.setdiff1d(np.arange(n), barred)
        one = np.repeat(rest, len(chosen))
        index = weights.index(weights.items[one], weights.items[np.tile(chosen, len(rest))])
        shape = (len(rest), len(chosen))
        if weights.target == "board" and weights.tau > 0.0:
            told = weights.information[index].reshape(shape).mean(axis=1)
            weight = np.exp((told - told.max()) / weights.tau)
        else:
            weight = weights.weight[index].reshape(shape).sum(axis=1)
        total = float(weight.sum())
        main = weight / total if total > 0.0 else np.full(len(rest), 1.0 / len(rest))
        return rest, (1.0 - weights.eps) * main + weights.eps / len(rest)


def _filled(begun: list[int], n_more: int, closed: list[set[int]], n: int, size: int) -> list[tuple[int, ...]]:
    """Items with which a set that begins so cannot be completed to one that is not closed."""
    most = math.comb(n - len(begun) - n_more, size - len(begun) - n_more)
    with_it = (one.difference(begun) for one in closed if one.issuperset(begun))
    count = Counter(more for rest in with_it for more in combinations(sorted(rest), n_more))
    return [more for more, times in count.items() if times >= most]
