"""How much each pair of items is worth asking a crowd about, in one state of a model."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from predilect._base.arguments import check_arguments, check_choice, check_count
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.decisions.candidates import all_pairs, items_left
from predilect.decisions.information import bald
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
    told = information_about(mean, within, shared, np.broadcast_to(delta, mean.shape))
    may = np.ones(len(left), dtype=bool)
    if difficulty is not None:
        mean, var = posterior.margins(nobody, left, right)
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
        target, items, place, left, right, told, weight, spare, tau, tuple(pools), order, block, eps
    )  # fmt: skip


def _check(target: str, k: int, difficulty: float | None, eps: float, n_items: int) -> None:
    check_choice("target", target, ("person", *TARGETS))
    check_count("k", k, 1, most=n_items - 1)
    check_arguments(difficulty=difficulty, eps=eps)


def _softened(told: FloatArray) -> tuple[FloatArray, float]:
    """Weights exp(I / τ), the largest 1, and τ: 0, and all alike, where I hardly differs."""
    most = float(told.max())
    tau = (most - float(np.median(told))) / SHARPNESS
    if tau < EQUAL:
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
