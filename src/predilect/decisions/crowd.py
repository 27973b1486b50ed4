"""Questions for the crowd's board: what an answer tells of the consensus, who is asked which pair, by what chance."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from predilect._text import quoted
from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data import build_frame
from predilect.decisions.candidates import all_pairs, answered_rows, draws_for, read_pairs, rows_of
from predilect.decisions.information import bald
from predilect.decisions.queries import code_of
from predilect.decisions.ranking import N_DRAWS
from predilect.decisions.sets import LARGEST_SET, is_open, read_sets, sets_of_rows
from predilect.errors import DataError
from predilect.gaussian.dense import semidefinite_root

TARGETS = ("board", "best", "top", "random")
_SHARPNESS = 3.0  # w = exp(I / τ), τ = (largest I - median I) / this
_EQUAL = 1e-9  # bits: below such a difference of I all pairs are alike
_BLOCK = 64  # pairs of which a person's own information is computed
_MOST_ITEMS = 1000  # of which all pairs are weighed; of more a random subset in each state
_MOST_SETS = 400  # distinct sets of the first k that are told apart
_HALF = 0.5  # of the mean number of times shown: the quota of an item
_FEW_LEFT = 0.5  # of the pairs: with fewer left they are listed, not drawn until one is free
_EXACT_UP_TO = 4096  # margins whose information is computed by quadrature where there are ties


@dataclass(frozen=True, slots=True)
class Question:
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

    ``probability``: the chance of the draw, the product of those of its steps: of the first pair, and then of each item
    given those before; ``steps``: these items in the order in which they were drawn.
    """

    user: Any
    items: tuple[Any, ...]
    probability: float
    steps: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Pool:
    """Pairs that may be asked, as indices into all of them, and their weights summed up; (n,) each."""

    pairs: IntArray
    total: FloatArray  # cumulative weights
    total_spare: FloatArray  # of the weights that count once nobody's are left
    holds: BoolArray  # over all pairs

    @classmethod
    def of(cls, mask: BoolArray, weight: FloatArray, spare: FloatArray) -> Pool:
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
    pools: tuple[Pool, ...]  # the first that has a pair left is asked: those about items that were shown too little
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
    closed = np.zeros(n_items, dtype=bool)
    closed[model.items_.codes(list(retired)).astype(np.int64)] = True
    items = np.flatnonzero(~closed)
    if len(items) < 2:
        raise DataError(f"{len(items)} of the {n_items} items are not retired: a comparison needs two")
    if len(items) > _MOST_ITEMS:
        items = np.sort(rng.choice(items, _MOST_ITEMS, replace=False))
    place = np.full(n_items, -1)
    place[items] = np.arange(len(items))
    left, right = all_pairs(items)
    nobody = np.full(len(left), -1)
    mean, var = posterior.margins(nobody, left, right)
    shared = posterior.crowd().margins(left, right)[1]
    delta = model.tie_threshold_ * posterior.tie_factors(nobody[:1]) * posterior.tie_factors_of_pairs(left, right)
    told = information_about(mean, var - shared, shared, np.broadcast_to(delta, mean.shape))
    may = np.ones(len(left), dtype=bool)
    if difficulty is not None:
        chance = posterior.outcome_proba(mean, var, nobody, left, right, model.tie_threshold_, model._likelihood)
        may = np.maximum(chance[:, 0], chance[:, 2]) >= difficulty
    by_information, tau = _softened(told)
    if target == "board":
        weight = by_information
    elif target == "random":
        weight = np.ones(len(left))
    else:
        weight = _about_first(model, items, 1 if target == "best" else k, rng)
    weight = np.where(may, weight, 0.0)
    spare = np.where(may, by_information, 0.0)
    pools = [Pool.of(may, weight, spare)]
    if quota or (quota is None and target != "random"):
        counts = _times_shown(model, shown)[items]
        starved = counts < _HALF * counts.mean()
        some = may & (starved[place[left]] | starved[place[right]])
        if some.any():
            pools.insert(0, Pool.of(some, weight, spare))
    order = rng.permutation(len(left))
    block = np.empty(len(left), dtype=np.int64)
    block[order] = np.arange(len(left)) // _BLOCK
    return Weights(
        target, items, place, left, right, told, weight, spare, tau, tuple(pools), order, block, eps
    )  # fmt: skip


def _check(target: str, k: int, difficulty: float | None, eps: float, n_items: int) -> None:
    if target not in TARGETS:
        raise DataError(f"there is no target {quoted(target)}; there are person, {', '.join(TARGETS)}")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k < n_items:
        raise DataError(f"k must be a whole number from 1 to {n_items - 1}, below that of the items; got {quoted(k)}")
    if difficulty is not None and not 0.0 <= difficulty <= 1.0:
        raise DataError(f"difficulty must be a probability from 0 to 1; got {quoted(difficulty)}")
    if not 0.0 < eps <= 1.0:
        raise DataError(f"eps must be above 0 and at most 1; got {quoted(eps)}")


def _softened(told: FloatArray) -> tuple[FloatArray, float]:
    """Weights exp(I / τ), the largest 1, and τ: 0, and all alike, where I hardly differs."""
    most = float(told.max())
    tau = (most - float(np.median(told))) / _SHARPNESS
    if tau < _EQUAL:
        return np.ones(len(told)), 0.0
    return np.exp((told - most) / tau), tau


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
    ) -> list[Question]:  # fmt: skip
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
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise DataError(f"n must be a whole number of questions, 1 or more; got {quoted(n)}")
        draws, rng = _Draws(self._model, self._weights), np.random.default_rng(random_state)
        return draws.of_person(user, int(n), draws.pairs(exclude), repeat, rng)

    def ask_each(
        self, users: Iterable[Any], *, exclude: Iterable[tuple[Any, Any]] = (), repeat: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> list[Question]:  # fmt: skip
        """Draw a pair for each of several people, none twice while others are left for the person.

        Probabilities are given the pairs before. Whoever has no pair left gets none. Parameters as of :meth:`ask`.
        """
        draws, rng = _Draws(self._model, self._weights), np.random.default_rng(random_state)
        closed = draws.pairs(exclude)
        asked: list[Question] = []
        taken: list[int] = []
        for user in users:
            found = draws.of_person(user, 1, np.append(closed, taken), repeat, rng, taken)
            asked += found or draws.of_person(user, 1, closed, repeat, rng, taken)
        return asked

    def ask_set(
        self, user: Any = None, size: int = 4, *, exclude: Iterable[Iterable[Any]] = (), repeat: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> SetQuestion | None:  # fmt: skip
        """Draw items to show together to one person: a pair, and then items that tell most beside those before.

        Parameters
        ----------
        user, repeat, random_state
            As of :meth:`ask`.
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
        draws, rng = _Draws(self._model, self._weights), np.random.default_rng(random_state)
        return draws.set_of_person(user, int(size), exclude, repeat, rng)


class _Draws:
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
        self, user: Any, n: int, closed: IntArray, repeat: bool, rng: np.random.Generator,
        taken: list[int] | None = None,
    ) -> list[Question]:  # fmt: skip
        """Questions for a person without the pairs that are ``closed``; what is drawn joins ``taken``."""
        code = self.code(user)
        if not repeat:
            left, right, _ = self.answered(user, code)
            closed = np.concatenate((closed.astype(np.int64), self._here(self.weights.index(left, right))))
        closed = np.unique(closed)
        asked = []
        for _ in range(n):
            drawn = self.draw(code, closed, rng)
            if drawn is None:
                break
            pair, probability = drawn
            closed = np.append(closed, pair)
            if taken is not None:
                taken.append(pair)
            asked.append(self.question(user, code, pair, probability, rng))
        return asked

    def draw(self, code: int, closed: IntArray, rng: np.random.Generator) -> tuple[int, float] | None:
        """A pair for a person, and its probability; None where none is left."""
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
        if not rest > _EQUAL * float(total[-1]):  # the person answered all that they are about
            weight, total = weights.spare, pool.total_spare
            rest = float(total[-1] - weight[barred].sum())
        if n_left < _FEW_LEFT * len(pool.pairs):
            free = np.setdiff1d(pool.pairs, barred, assume_unique=True)
            total = np.cumsum(weight[free])
            rest = float(total[-1])
        else:
            free = pool.pairs
        uniform = rng.random() < weights.eps or not rest > 0.0
        shut = set(barred.tolist())
        while True:
            place = rng.integers(len(free)) if uniform else np.searchsorted(total, rng.random() * total[-1], "right")
            pair = int(free[min(place, len(free) - 1)])
            if pair not in shut:
                break
        own = weights.target == "board" and code >= 0 and weights.tau > 0.0 and weight is weights.weight
        if own:
            pair, main = self._by_own(code, pair, pool, shut, rest, uniform, rng)
        else:
            main = weight[pair] / rest if rest > 0.0 else 1.0 / n_left
        return pair, float((1.0 - weights.eps) * main + weights.eps / n_left)

    def _by_own(
        self, code: int, pair: int, pool: Pool, shut: set[int], rest: float, keep: bool, rng: np.random.Generator
    ) -> tuple[int, float]:  # fmt: skip
        """A pair out of the block of one that was drawn, by the person's own information; ``keep``: this pair itself.

        With the probability of it: that of the block, by the weights of all, times that within it.
        """
        weights = self.weights
        start = int(weights.block[pair]) * _BLOCK
        some = weights.order[start : start + _BLOCK]
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

    def question(
        self, user: Any, code: int, pair: int, probability: float, rng: np.random.Generator
    ) -> Question:  # fmt: skip
        """A pair with its sides drawn."""
        weights, model = self.weights, self.model
        posterior, ids = model.posterior_, model.items_.ids
        left, right = weights.left[pair : pair + 1], weights.right[pair : pair + 1]
        told = self.information(code, np.array([pair])) if code >= 0 else weights.information[pair : pair + 1]
        if rng.random() < 0.5:
            left, right = right, left
        who = np.array([code])
        mean, var = posterior.margins(who, left, right)
        chance = posterior.outcome_proba(mean, var, who, left, right, model.tie_threshold_, model._likelihood)[0]
        return Question(user, ids[left[0]], ids[right[0]], probability, float(told[0]), *chance.tolist())

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
        begun = [one for one in range(len(weights.left)) if closed and not self._open(one, closed, n, size)]
        drawn = self.draw(-1, np.array(begun, dtype=np.int64), rng)
        if drawn is None:
            return None
        pair, probability = drawn
        chosen = [int(weights.place[weights.left[pair]]), int(weights.place[weights.right[pair]])]
        while len(chosen) < size:
            rest = np.array([
                one for one in range(n)
                if one not in chosen and is_open([*chosen, one], n, size, closed)
            ])  # fmt: skip
            chance = self._next(chosen, rest)
            place = min(int(np.searchsorted(np.cumsum(chance), rng.random(), "right")), len(rest) - 1)
            probability *= float(chance[place])
            chosen.append(int(rest[place]))
        ids = [self.model.items_.ids[one] for one in weights.items[chosen]]
        return SetQuestion(user, tuple(ids[one] for one in rng.permutation(size)), probability, tuple(ids))

    def _open(self, pair: int, closed: list[set[int]], n: int, size: int) -> bool:
        weights = self.weights
        both = [int(weights.place[side[pair]]) for side in (weights.left, weights.right)]
        return is_open(both, n, size, closed)

    def _next(self, chosen: list[int], rest: IntArray) -> FloatArray:
        """Chances of the next item of a set."""
        weights = self.weights
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
        return (1.0 - weights.eps) * main + weights.eps / len(rest)


# What ``suggest``, ``suggest_each`` and ``suggest_set`` ask about the crowd's board, as frames.


def suggest_about_crowd(
    model: Any, weights: Weights, user: Any, n: int, *, exclude: Any, repeat: bool, random_state: Any
) -> Any:  # fmt: skip
    """See :meth:`Asking.suggest <predilect.models.asking.Asking.suggest>`."""
    draws = _Draws(model, weights)
    if user is not None and draws.code(user) < 0 and model.personal_:
        code_of(model, user)  # warns
    rng = _generator(model, draws, user, random_state)
    found = Questions(model, weights).ask(user, n, exclude=_ids(model, exclude, user), repeat=repeat, random_state=rng)
    return _frame_of(model, found)


def suggest_to_each(
    model: Any, weights: Weights, users: Iterable[Any], *, exclude: Any, repeat: bool, random_state: Any
) -> Any:  # fmt: skip
    """See :meth:`Asking.suggest_each <predilect.models.asking.Asking.suggest_each>`."""
    draws = _Draws(model, weights)
    rng = _generator(model, draws, None, random_state)
    found = Questions(model, weights).ask_each(
        users, exclude=_ids(model, exclude, None), repeat=repeat, random_state=rng
    )  # fmt: skip
    return _frame_of(model, found, named=True)


def suggest_set_about_crowd(
    model: Any, weights: Weights, user: Any, size: int, *, exclude: Any, repeat: bool, random_state: Any
) -> Any:  # fmt: skip
    """See :meth:`Asking.suggest_set <predilect.models.asking.Asking.suggest_set>`."""
    draws = _Draws(model, weights)
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


def _generator(model: Any, draws: _Draws, user: Any, random_state: Any) -> np.random.Generator:
    """Draws for a person in a state: others for each person and after each answer, and repeatable with a seed."""
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if user is not None:
        return draws_for(model, user, draws.answered(user, draws.code(user)), random_state)
    return np.random.default_rng([int(random_state), int(model.n_answers_)])


def _ids(model: Any, exclude: Any, user: Any) -> list[tuple[Any, Any]]:
    """Pairs of ids in what was given: a table with left and right, or a list of pairs."""
    if exclude is None:
        return []
    if isinstance(exclude, list | tuple | set | frozenset):
        pairs = [tuple(pair) for pair in exclude]
        if any(len(pair) != 2 for pair in pairs):
            raise DataError("a list of pairs not to ask holds two items each: exclude=[(left, right), ...]")
        return pairs
    left, right, whose = read_pairs(exclude, model.items_)
    mine, ids = rows_of(user, whose, len(left)), model.items_.ids
    return [(ids[a], ids[b]) for a, b in zip(left[mine].tolist(), right[mine].tolist(), strict=True)]


def _frame_of(model: Any, questions: list[Question], named: bool = False) -> Any:
    """Questions in the caller's kind of frame."""
    series = model.items_.series()
    columns: dict[str, Any] = {"user": pl.Series([one.user for one in questions])} if named else {}
    for side in ("left", "right"):
        codes = model.items_.codes([getattr(one, side) for one in questions]).astype(np.int64)
        columns[side] = series.gather(codes).alias(side)
    for name in ("score", "p_left", "p_tie", "p_right", "probability"):
        columns[name] = np.array([getattr(one, name) for one in questions], dtype=np.float64)
    return build_frame(columns, model._backend)
