"""Questions for the crowd's board: what each pair is worth asking; who is asked which pair or set, by what chance."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from predilect._base.arguments import check_arguments, check_choice, check_count
from predilect._base.text import quoted
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import build_frame
from predilect.decisions.candidates import all_pairs, answered_rows, draws_for, items_left, read_pairs, rows_of
from predilect.decisions.information import bald
from predilect.decisions.questions import LARGEST_SET, code_of, read_sets, sets_of_rows
from predilect.decisions.ranking import N_DRAWS
from predilect.errors import DataError
from predilect.inference.gaussian.dense import semidefinite_root

TARGETS = ("board", "best", "top", "random")
SHARPNESS = 3.0  # w = exp(I / τ), τ = (largest I - median I) / this
EQUAL = 1e-9  # bits: below such a difference of I all pairs are alike
BLOCK = 64  # pairs of which a person's own information is computed
_MOST_ITEMS = 1000  # of which all pairs are weighed; of more a random subset in each state
_MOST_SETS = 400  # distinct sets of the first k; where there are more, so many draws stand for all
_HALF = 0.5  # of the mean number of times shown: the quota of an item
_EXACT_UP_TO = 4096  # margins whose information is computed by quadrature where there are ties
_MOST_SUMMED = 10  # items of a set whose chance is summed over all ways to draw them
_FEW_LEFT = 0.5  # of the pairs: with fewer left they are listed, not drawn until one is free


@dataclass(frozen=True, slots=True)
class PairPool:
    """Pairs that may be asked, as indices into all of them, and their weights summed up; (n,) each."""

    pairs: IntArray
    total: FloatArray  # cumulative weights
    total_spare: FloatArray  # of the weights that count once nobody's are left
    holds: BoolArray  # over all pairs

    @classmethod
    def of(cls, mask: BoolArray, weight: FloatArray, spare: FloatArray) -> PairPool:
        """The pairs of a mask over all pairs."""
        pairs = np.flatnonzero(mask)
        return cls(pairs, np.cumsum(weight[pairs]), np.cumsum(spare[pairs]), mask)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of all pairs of the items that may be asked about, in one state of a model."""

    target: str
    items: IntArray  # codes, (n,)
    place: IntArray  # of each item of the model among them, -1 for none
    left: IntArray  # codes of the items of all pairs, (n (n - 1) / 2,)
    right: IntArray
    information: FloatArray  # bits about the consensus, of somebody without answers
    weight: FloatArray  # 0 for pairs that may not be asked
    spare: FloatArray  # weights by information, for who answered all that ``weight`` is about
    tau: float  # bits; 0: all pairs are alike
    pools: tuple[PairPool, ...]  # the first that has a pair left is asked: those about items that were shown too little
    order: IntArray  # pairs in random order, of which every 64 are a block
    block: IntArray  # of each pair
    eps: float

    def index(self, first: IntArray, second: IntArray) -> IntArray:
        """Indices of pairs of items by code, -1 for those that are not here."""
        a, b = self.place[first], self.place[second]
        n, low, high = len(self.items), np.minimum(a, b), np.maximum(a, b)
        return np.where(low < 0, -1, low * (2 * n - low - 1) // 2 + high - low - 1)


def information_about(
    mean: FloatArray, within: FloatArray, shared: FloatArray, delta: FloatArray
) -> FloatArray:  # fmt: skip
    """Bits that answers tell of the consensus, I(y; m), (n,).

    Margins are N(``mean``, ``within`` + ``shared``) in units of the noise, of which the consensus makes the variance
    ``shared``; ``delta`` are tie thresholds. BALD in units of √(1 + within): the rest of the person is noise here.
    population.md section 4.
    """
    unit = np.sqrt(1.0 + np.maximum(within, 0.0))
    mean, shared, delta = mean / unit, np.maximum(shared, 0.0) / unit**2, delta / unit
    if delta.any() and len(mean) <= _EXACT_UP_TO:
        return np.asarray(bald(mean, shared, delta, exact=True))
    return np.asarray(bald(mean, shared, delta))


def weights_of(
    model: Any, target: str, *, k: int = 1, retired: Iterable[Any] = (), difficulty: float | None = None,
    quota: bool | None = None, shown: Any = None, eps: float = 0.1, random_state: int = 0,
) -> Weights:  # fmt: skip
    """Weights of the pairs of a model in its present state; DataError for settings that cannot be used."""
    model = copy.copy(model)
    posterior, n_items = model.posterior_, len(model.items_)
    _check(target, k, difficulty, eps, n_items)
    if not posterior.by_utilities:
        raise DataError(
            "the answers of this model are about more than the utilities of items, so that no question is known to be "
            'about the board. Ask about a person: target="person"'
        )
    rng = np.random.default_rng([random_state, int(model.n_answers_)])
    items = items_left(model, retired)
    if len(items) > _MOST_ITEMS:
        items = np.sort(rng.choice(items, _MOST_ITEMS, replace=False))
    place = np.full(n_items, -1)
    place[items] = np.arange(len(items))
    left, right = all_pairs(items)
    nobody = np.full(len(left), -1)
    mean, within, shared = posterior.about_crowd(-1, left, right)
    delta = model.tie_threshold_ * posterior.tie_factors(nobody[:1]) * posterior.tie_factors_of_pairs(left, right)
    information = information_about(mean, within, shared, np.broadcast_to(delta, mean.shape))
    may = np.ones(len(left), dtype=bool)
    if difficulty is not None:
        mean, var = posterior.margins(nobody, left, right)
        chance = posterior.outcome_proba(mean, var, nobody, left, right, model.tie_threshold_, model._likelihood)
        may = np.maximum(chance[:, 0], chance[:, 2]) >= difficulty
    by_information, tau = _softened(information)
    if target == "board":
        weight = by_information
    elif target == "random":
        weight = np.ones(len(left))
    else:
        weight = _about_first(model, items, 1 if target == "best" else k, rng)
    weight = np.where(may, weight, 0.0)
    spare = np.where(may, by_information, 0.0)
    pools = [PairPool.of(may, weight, spare)]
    if quota or (quota is None and target != "random"):
        counts = _times_shown(model, shown)[items]
        starved = counts < _HALF * counts.mean()
        some = may & (starved[place[left]] | starved[place[right]])
        if some.any():
            pools.insert(0, PairPool.of(some, weight, spare))
    order = rng.permutation(len(left))
    block = np.empty(len(left), dtype=np.int64)
    block[order] = np.arange(len(left)) // BLOCK
    return Weights(
        target, items, place, left, right, information, weight, spare, tau, tuple(pools), order, block, eps
    )  # fmt: skip


def _check(target: str, k: int, difficulty: float | None, eps: float, n_items: int) -> None:
    check_choice("target", target, ("person", *TARGETS))
    check_count("k", k, 1, most=n_items - 1)
    check_arguments(difficulty=difficulty, eps=eps)


def _softened(information: FloatArray) -> tuple[FloatArray, float]:
    """Weights exp(I / τ), the largest 1, and τ: 0, and all alike, where I hardly differs."""
    most = float(information.max())
    tau = (most - float(np.median(information))) / SHARPNESS
    if tau < EQUAL:
        return np.ones(len(information)), 0.0
    return np.exp((information - most) / tau), tau


def _times_shown(model: Any, shown: Any) -> FloatArray:
    """How often each item was shown, by the answers unless it is given as a mapping of ids."""
    if shown is None:
        return np.asarray(model.n_by_item_, dtype=np.float64)
    counts = np.zeros(len(model.items_))
    ids = list(shown)
    np.add.at(counts, model.items_.codes(ids).astype(np.int64), [float(shown[one]) for one in ids])
    return counts


def _about_first(model: Any, items: IntArray, k: int, rng: np.random.Generator) -> FloatArray:
    """Chances of pairs that settle which items are the first k, by top-two Thompson sampling (Russo 2016).

    Two draws of the consensus whose first k differ, as sets, are S and S'; one item is of S without S', the other of S'
    without S. Exact over the sets of the draws. Where all draws agree the rest of the items stand for S'.
    """
    mean, covariance = model.posterior_.crowd().dense()
    root = semidefinite_root(covariance[np.ix_(items, items)])
    f = mean[items] + rng.standard_normal((N_DRAWS, root.shape[1])) @ root.T
    n = len(items)
    W = np.zeros((n, n))
    if k == 1:
        p = np.bincount(np.argmax(f, axis=1), minlength=n) / N_DRAWS
        first = int(np.argmax(p))
        if p[first] > 1.0 - 1.0 / N_DRAWS:
            f[:, first] = -np.inf
            W[first] = np.bincount(np.argmax(f, axis=1), minlength=n) / N_DRAWS
        else:
            W = np.outer(p / (1.0 - p), p)
            np.fill_diagonal(W, 0.0)
    else:
        W = _between_sets(f, k)
    W = W + W.T
    return W[np.triu_indices(n, 1)]


def _between_sets(f: FloatArray, k: int) -> FloatArray:
    """Chances, by who is of S and who of S', (n, n), for the first k of draws f (R, n)."""
    R, n = f.shape
    first = np.sort(np.argpartition(-f, k - 1, axis=1)[:, :k], axis=1)
    sets, count = np.unique(first, axis=0, return_counts=True)
    if len(sets) > _MOST_SETS:
        sets, count = np.unique(first[:_MOST_SETS], axis=0, return_counts=True)
    W = np.zeros((n, n))
    if len(sets) == 1:  # all draws agree: the last of them against the first of the rest
        inside = sets[0]
        rest = np.setdiff1d(np.arange(n), inside)
        lowest = np.bincount(inside[np.argmin(f[:, inside], axis=1)], minlength=n) / R
        highest = np.bincount(rest[np.argmax(f[:, rest], axis=1)], minlength=n) / R
        return np.outer(lowest, highest)
    q = count / count.sum()
    member = np.zeros((len(sets), n))
    np.put_along_axis(member, sets, 1.0, axis=1)
    for row, inside in enumerate(sets):
        without = 1.0 - member[:, inside]  # (sets, k): who of S is not in S'
        size = without.sum(axis=1)
        share = np.divide(q, size * size, out=np.zeros_like(q), where=size > 0.0)
        others = member.copy()
        others[:, inside] = 0.0
        W[inside] += q[row] / (1.0 - q[row]) * ((without * share[:, None]).T @ others)
    return W


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
        information = self.information(code, some)
        chance = np.exp((information - information.max()) / weights.tau)
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
        information = self.information(code, pairs) if code >= 0 else self.weights.information[pairs]
        sides = [self.sides(pair, rng) for pair, _ in found]
        left, right = (model.items_.codes(list(one)).astype(np.int64) for one in zip(*sides, strict=True))
        who = np.full(len(found), code)
        mean, var = posterior.margins(who, left, right)
        chance = posterior.outcome_proba(mean, var, who, left, right, model.tie_threshold_, model._likelihood)
        rows = zip(sides, found, information.tolist(), chance.tolist(), strict=True)
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
            information = weights.information[index].reshape(shape).mean(axis=1)
            weight = np.exp((information - information.max()) / weights.tau)
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


# What ``suggest``, ``suggest_each`` and ``suggest_set`` ask about the crowd's board, as frames.


def suggest_about_crowd(
    model: Any, weights: Weights, user: Any, n: int, *, exclude: Any, repeat: bool, random_state: Any
) -> Any:  # fmt: skip
    """See :meth:`Asking.suggest <predilect.models.asking.Asking.suggest>`."""
    draws = QuestionDraws(model, weights)
    if user is not None and draws.code(user) < 0 and model.personal_:
        code_of(model, user, "the questions are for")  # warns
    rng = _generator(model, draws, user, random_state)
    found = Questions(model, weights).ask(user, n, exclude=_ids(model, exclude, user), repeat=repeat, random_state=rng)
    return _frame_of(model, found)


def suggest_to_each(
    model: Any, weights: Weights, users: Iterable[Any], *, exclude: Any, repeat: bool, random_state: Any
) -> Any:  # fmt: skip
    """See :meth:`Asking.suggest_each <predilect.models.asking.Asking.suggest_each>`."""
    draws = QuestionDraws(model, weights)
    rng = _generator(model, draws, None, random_state)
    found = Questions(model, weights).ask_each(
        users, exclude=_ids(model, exclude, None), repeat=repeat, random_state=rng
    )  # fmt: skip
    return _frame_of(model, found, named=True)


def suggest_set_about_crowd(
    model: Any, weights: Weights, user: Any, size: int, *, exclude: Any, repeat: bool, random_state: Any
) -> Any:  # fmt: skip
    """See :meth:`Asking.suggest_set <predilect.models.asking.Asking.suggest_set>`."""
    draws = QuestionDraws(model, weights)
    rng = _generator(model, draws, user, random_state)
    barred = [] if exclude is None else read_sets(exclude, model, user)
    ids = model.items_.ids
    sets = [[ids[one] for one in several] for several in barred]
    found = Questions(model, weights).ask_set(user, size, exclude=sets, repeat=repeat, random_state=rng)
    items = () if found is None else found.items
    chance = np.full(len(items), 0.0 if found is None else found.probability)
    series = model.items_.series()
    codes = model.items_.codes(list(items)).astype(np.int64)
    return build_frame({"item": series.gather(codes).alias("item"), "probability": chance}, model._backend)


def _generator(model: Any, draws: QuestionDraws, user: Any, random_state: Any) -> np.random.Generator:
    """Draws for a person in a state: others for each person and after each answer, and repeatable with a seed."""
    if user is not None or not isinstance(random_state, Integral):
        return draws_for(model, user, draws.answered(user, draws.code(user)), random_state)
    return np.random.default_rng([int(random_state), int(model.n_answers_)])


def _ids(model: Any, exclude: Any, user: Any) -> list[tuple[Any, Any]]:
    """Pairs of ids in what was given: a table with left and right, or a list of pairs."""
    if exclude is None:
        return []
    if isinstance(exclude, list | tuple | set | frozenset):
        pairs = [tuple(pair) if isinstance(pair, list | tuple) else () for pair in exclude]
        if any(len(pair) != 2 for pair in pairs):
            raise DataError("a list of pairs not to ask holds two items each: exclude=[(left, right), ...]")
        return pairs
    left, right, whose = read_pairs(exclude, model.items_)
    mine, ids = rows_of(user, whose, len(left)), model.items_.ids
    return [(ids[a], ids[b]) for a, b in zip(left[mine].tolist(), right[mine].tolist(), strict=True)]


def _frame_of(model: Any, questions: list[PairQuestion], named: bool = False) -> Any:
    """Questions in the caller's kind of frame."""
    series = model.items_.series()
    columns: dict[str, Any] = {"user": pl.Series([one.user for one in questions])} if named else {}
    for side in ("left", "right"):
        codes = model.items_.codes([getattr(one, side) for one in questions]).astype(np.int64)
        columns[side] = series.gather(codes).alias(side)
    for name in ("score", "p_left", "p_tie", "p_right", "probability"):
        columns[name] = np.array([getattr(one, name) for one in questions], dtype=np.float64)
    return build_frame(columns, model._backend)
