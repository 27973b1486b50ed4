"""Pairs against the answers of a user: which items are known, and what follows by transitivity."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.compile import inner_kernel, kernel
from predilect._base.shards import cut, map_shards
from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import symmetrise
from predilect.inference.gaussian.design import Sites, pair_variance
from predilect.inference.gaussian.posterior import Utilities
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People
from predilect.inference.people.prediction import Consensus, Queries, centred_utilities, predict_margins


@kernel
def places_of_items(users: Any, items: Any, item_ptr: Any, item_idx: Any) -> Any:
    """Positions of items in their users' own lists, -1 for those that are not there; users of -1 have none."""
    places = np.empty(len(users), dtype=np.int64)
    for t in range(len(users)):
        places[t] = -1
        if users[t] < 0:
            continue
        start, stop = item_ptr[users[t]], item_ptr[users[t] + 1]
        low, high = start, stop
        while low < high:
            middle = (low + high) // 2
            if item_idx[middle] < items[t]:
                low = middle + 1
            else:
                high = middle
        if low < stop and item_idx[low] == items[t]:
            places[t] = low - start
    return places


@inner_kernel
def _reached(start: int, ptr: Any, losers: Any, reach: Any, stack: Any) -> None:
    """Mark, by 1 instead of 0, all items that a chain of answers leads to."""
    for i in range(len(reach)):
        reach[i] = 0
    stack[0], n = start, 1
    while n:
        n -= 1
        item = stack[n]
        for e in range(ptr[item], ptr[item + 1]):
            if not reach[losers[e]]:
                reach[losers[e]] = 1
                stack[n] = losers[e]
                n += 1


@inner_kernel
def _by_item(n_items: int, n: int, of: Any, to: Any, ptr: Any, other: Any) -> None:
    """Steps grouped by the item that they start from: pointers by item, and where they lead."""
    for i in range(n_items + 2):
        ptr[i] = 0
    for p in range(n):
        ptr[of[p] + 2] += 1
    for i in range(n_items):
        ptr[i + 2] += ptr[i + 1]
    for p in range(n):
        other[ptr[of[p] + 1]] = to[p]
        ptr[of[p] + 1] += 1


@kernel
def mark_implied(users: Any, first: Any, second: Any, answer_ptr: Any, item_ptr: Any, left: Any, right: Any,
                 outcome: Any, marks: Any) -> None:  # fmt: skip
    """Mark in ``marks`` (n,) the pairs that a chain of answers implies, none of which contradicts another.

    Sorted by user, then by first item; items are positions in the user's own list.
    """
    t = 0
    while t < len(users):
        user = users[t]
        start, stop = answer_ptr[user], answer_ptr[user + 1]
        n_items = item_ptr[user + 1] - item_ptr[user]
        size = 2 * (stop - start)
        ends = np.empty((2, size), dtype=np.int64)  # winners, losers
        n = np.int64(0)  # not a literal 0, for which Numba would compile once more what it is given to
        for p in range(start, stop):  # a tie leads both ways
            for way in range(2):
                if outcome[p] == 0 or (outcome[p] < 0) == (way == 1):
                    ends[way, n], ends[1 - way, n] = left[p], right[p]
                    n += 1
        ptr, other = np.empty((2, n_items + 2), dtype=np.int64), np.empty((2, size), dtype=np.int64)
        reach, stack = np.empty((2, n_items), dtype=np.int64), np.empty((2, n_items + 1), dtype=np.int64)
        for way in range(2):  # down and up, by the same code, which then is compiled once
            _by_item(n_items, n, ends[way], ends[1 - way], ptr[way], other[way])
        item, level = -1, True
        while t < len(users) and users[t] == user:
            if first[t] != item:
                item = first[t]
                for way in range(2):
                    _reached(item, ptr[way], other[way], reach[way], stack[way])
                level = True  # unless some item is over another while chains lead there and back
                for p in range(start, stop):
                    a, b = left[p], right[p]
                    if outcome[p] != 0 and reach[0, a] and reach[1, a] and reach[0, b] and reach[1, b]:
                        level = False
            below, above = reach[0, second[t]], reach[1, second[t]]
            marks[t] = below != above or (below != 0 and level)
            t += 1


IMPLIED = 3  # after 0, 1 and 2, the number of items without an answer
NEWCOMER = 4  # is added to these for people whom the population was learned without


def kinds_in(people: People, users: IntArray, left: IntArray, right: IntArray) -> npt.NDArray[np.int8]:
    """Kind of each queried pair, int8 (n,): 0 to 2 items without an answer by that user, or :data:`IMPLIED`.

    Implied: a chain of answers, of which ties are level, leads from one item to the other and none leads back; or ties
    alone do, and no answer puts one of these items over another. An answer to the very pair is a chain. A user of -1
    has no answers, an item from ``n_items`` on is new. Sorting, and O(n_u + k_u) once per first item.
    """
    users = np.asarray(users, dtype=np.int64)
    sides = [
        places_of_items(users, np.asarray(side, dtype=np.int64), people.item_ptr, people.item_idx)
        for side in (left, right)
    ]
    kind: npt.NDArray[np.int8] = (sides[0] < 0).astype(np.int8) + (sides[1] < 0).astype(np.int8)
    known = np.flatnonzero(kind == 0)
    if not len(known):
        return kind
    known = known[np.lexsort((sides[0][known], users[known]))]
    marks = np.zeros(len(known), dtype=bool)
    mark_implied(
        users[known], sides[0][known], sides[1][known], people.answer_ptr, people.item_ptr, people.left, people.right,
        people.outcome, marks,
    )  # fmt: skip
    kind[known[marks]] = IMPLIED
    return kind


def kinds_of_sets(kind: npt.NDArray[np.int8], of_set: IntArray, n_sets: int) -> npt.NDArray[np.int8]:
    """Kinds of answers about sets, (n_sets,), from those of all pairs of items of each set, ``of_set`` (n_pairs,).

    Implied where all pairs are, and else what most are. Whatever the answer is the kind is the same, so that the
    probabilities of all answers sum to one.
    """
    newcomer = kind >= NEWCOMER
    of_pair = np.where(newcomer, kind - NEWCOMER, kind)
    size, n_implied, unseen, n_new = (
        np.bincount(of_set, count, n_sets)
        for count in (None, of_pair == IMPLIED, np.where(of_pair == IMPLIED, 0, of_pair), newcomer)
    )
    found = np.where(n_implied == size, IMPLIED, np.round(unseen / np.maximum(size, 1)))
    return np.asarray(found + NEWCOMER * (n_new > 0), dtype=np.int8)


_QUERIES_PER_SHARD = 20_000.0
_MOST_SHARDS = 16
_ROWS_AT_ONCE = 20_000


def margins_in(
    posterior: Any,
    law: Law,
    people: People,
    sites: Sites,
    users: IntArray,
    left: IntArray,
    right: IntArray,
    traits: FloatArray | None,
    asked: FloatArray,
    executor: ThreadPoolExecutor | None,
    if_engaged: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """Margins of users of one layout, draws of ``law``; ``asked`` (n, n_effects): covariates, in the units of
    ``people.slope_columns``.

    Of who may click at random ``if_engaged`` they are of somebody who does not, and else of the mixture with the law.
    """
    mixed = np.zeros(0, dtype=np.int64)
    if not if_engaged and posterior.calibration.click_rate:
        mixed = np.flatnonzero(users >= 0)
        mixed = mixed[people.engaged[users[mixed]] < 1.0]
    if len(mixed):
        mean, var = margins_in(posterior, law, people, sites, users, left, right, traits, asked, executor)
        w, known = people.engaged[users[mixed]], people.traits[users[mixed]]
        at, more = _margins_without_answers(posterior, law, left[mixed], right[mixed], known)
        more = more + np.einsum("ij,ij->i", asked[mixed], asked[mixed])
        gap = mean[mixed] - at
        mean[mixed] = at + w * gap
        var[mixed] = w * var[mixed] + (1.0 - w) * more + w * (1.0 - w) * gap * gap
        return mean, var
    mean, var = np.empty(len(users)), np.empty(len(users))
    unseen = (users < 0) | (people.answer_ptr[users + 1] == people.answer_ptr[users])
    rows = np.flatnonzero(unseen)
    if len(rows):
        known, there = np.zeros((len(rows), people.traits.shape[1])), users[rows] >= 0
        known[there] = people.traits[users[rows][there]]
        if traits is not None:
            known = np.where((users[rows] < 0)[:, None], traits[rows], known)
        mean[rows], var[rows] = _margins_without_answers(posterior, law, left[rows], right[rows], known)
        var[rows] += np.einsum("ij,ij->i", asked[rows], asked[rows])
    heavy = ~unseen
    heavy[heavy] = people.is_heavy[users[heavy]]
    for user in np.unique(users[heavy]).tolist():
        rows = np.flatnonzero(users == user)
        if posterior.basis is None or asked.shape[1]:
            found = _margins_by_items(posterior, law, people, sites, user, left[rows], right[rows], asked[rows])
        else:
            person = person_in(posterior, law, people, sites, user, C_m=posterior.C_predicted)
            found = person.margins(left[rows], right[rows])
        mean[rows], var[rows] = found
    known_rows = np.flatnonzero(~unseen & ~heavy)
    if not len(known_rows):
        return mean, var
    order = known_rows[np.argsort(users[known_rows], kind="stable")]
    who, n_queries = np.unique(users[order], return_counts=True)
    bounds = np.concatenate([[0], np.cumsum(n_queries)])
    codes = left[order].astype(np.int64), right[order].astype(np.int64)  # of one type, or loops are compiled once more
    queries = Queries(bounds, *codes, asked[order])
    sorted_mean = np.empty(len(order))
    sorted_var = np.empty(len(order))
    own_C = np.zeros(0) if posterior.basis is None else posterior.basis.offset_variance
    C_shift = np.zeros((0, *posterior.C_m.shape)) if posterior.effects is None else posterior.effects.stack
    consensus = Consensus(posterior.C_predicted, own_C, C_shift)

    def work(shard: tuple[int, int]) -> None:
        start, stop = shard
        predict_margins(
            who[start:stop], queries._replace(ptr=bounds[start : stop + 1]), *_answers(law, people, sites), consensus,
            sorted_mean, sorted_var,
        )  # fmt: skip

    for _ in map_shards(
        work, cut(n_queries.astype(float) + 20.0, _QUERIES_PER_SHARD, _MOST_SHARDS), executor, n_ahead=_MOST_SHARDS
    ):
        pass
    mean[order] = sorted_mean
    var[order] = sorted_var
    return mean, var


def _margins_by_items(
    posterior: Any, law: Law, people: People, sites: Sites, user: int, left: IntArray, right: IntArray,
    asked: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Margins of one user where the items are the basis, or of the items that are asked about and the user's own.

    O(k²) per pair, and without a basis nothing of n_items x n_items.
    """
    items, x, Q = people.sums(user, sites, law)
    Sigma, C, known = posterior.Sigma, posterior.C_predicted, people.traits[user]
    prior = law.mean
    if posterior.effects is not None:
        prior = prior + law.shift @ known
        C = C + posterior.effects.spread(known)
    if posterior.basis is not None:
        some, place = np.unique(np.concatenate((items, left, right)), return_inverse=True)
        Phi, more = posterior.basis.Phi[some], offset_variance(posterior)
        Sigma, C, prior = law.covariance(some), symmetrise(Phi @ C @ Phi.T), prior[some]
        C += np.diag(more[some]) if len(more) else 0.0
        items, left, right = np.split(place.astype(np.int32), np.cumsum((len(items), len(left))))
    own = items[:, None]
    c = Sigma[own, left] - Sigma[own, right]
    k, z = len(items), asked.T
    e = Q[:k, :k] @ c + Q[:k, k:] @ z
    across = C[own, left] - C[own, right]
    var = pair_variance(Sigma, left, right) + pair_variance(C, left, right)
    var += np.einsum("kq,kq->q", e, C[own, items] @ e - c - 2.0 * across)
    mean = prior[left] - prior[right] + x[:k] @ c
    if len(z):
        mean += x[k:] @ z
        var += np.einsum("kq,kq->q", z, z - Q[k:, :k] @ c - Q[k:, k:] @ z)
    return mean, var


def person_in(
    posterior: Any, law: Law, people: People, sites: Sites, user: int, traits: FloatArray | None = None, *,
    C_m: FloatArray | None = None,
) -> Utilities:  # fmt: skip
    """Utilities of one user of one layout, a draw of ``law``.

    ``C_m``: covariance of the consensus, by default of the fit, and that of now for a user without answers.
    """
    known = people.traits[user] if user >= 0 else np.zeros(people.traits.shape[1])
    known = traits if traits is not None and user < 0 else known
    M, basis = len(posterior.m), posterior.basis
    nothing = user < 0 or people.answer_ptr[user] == people.answer_ptr[user + 1]
    if C_m is None:
        C_m = posterior.now.C if nothing else posterior.C_m
    mean = law.mean
    if posterior.effects is not None:
        mean = mean + law.shift @ known
        C_m = C_m + posterior.effects.spread(known)
    own = np.zeros(0, dtype=np.int64)
    if nothing:
        return Utilities(
            mean, posterior.Sigma + C_m, None if basis is None else basis.Phi, own, _own_variance(posterior)
        )
    items, x, Q = people.believed_sums(user, sites, law)
    x, Q = x[: len(items)], Q[: len(items), : len(items)]
    if basis is None:
        return _person_by_items(mean, posterior.Sigma, C_m, items, x, Q)
    rows = basis.Phi[items]
    own = items.astype(np.int64) if basis.has_own else own
    T, C = _blocks(posterior.Sigma, law.rho[own]), _blocks(C_m, offset_variance(posterior)[own])
    A = np.hstack([rows, np.eye(len(items))]) if len(own) else rows
    gain = T @ A.T
    F = gain @ Q  # the prior mean counts as (I - F A)
    rest = C - F @ (A @ C)
    covariance = T - F @ gain.T + rest - (rest @ A.T) @ F.T
    move = gain @ x
    mean = mean + basis.Phi @ move[:M]
    mean[own] += move[M:]
    return Utilities(mean, symmetrise(covariance), basis.Phi, own, _own_variance(posterior, own))


def _person_by_items(
    mean: FloatArray, Sigma: FloatArray, C_m: FloatArray, items: IntArray, x: FloatArray, Q: FloatArray
) -> Utilities:
    """A user with answers where the items are the basis: Σ - F Gᵀ + (I - F A) C (I - F A)ᵀ for the rows A of items.

    Picking rows takes no product; two products of n_items² k operations remain, done as one.
    """
    G, C = Sigma[:, items], C_m[:, items]
    F = G @ Q
    covariance = np.hstack((F, C - F @ C[items])) @ np.hstack((G + C, F)).T
    np.subtract(Sigma, covariance, out=covariance)
    covariance += C_m
    return Utilities.of(mean + G @ x, symmetrise(covariance))


def apart_from_crowd(
    posterior: Any, law: Law, people: People, sites: Sites, user: int, left: IntArray, right: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """Mean of a user's margins, and its variance within the user and by the consensus as it is now, (n,) each."""
    C, own_C = posterior.now.C, offset_variance(posterior)
    if user < 0 or people.answer_ptr[user] == people.answer_ptr[user + 1]:
        traits = people.traits[user] if user >= 0 else np.zeros(people.traits.shape[1])
        mean = law.mean[left] - law.mean[right] + (law.shift[left] - law.shift[right]) @ traits
        within = _pair_variance(posterior, posterior.Sigma, law.rho, left, right)
        return mean, within, _pair_variance(posterior, C, own_C, left, right)
    items, x, Q = people.sums(user, sites, law)
    k = len(items)
    x, Q = x[:k], Q[:k, :k]
    # Σ e on the own items, (k, n), and how far the own items' consensus moves the margin.
    if law.has_basis:
        e = law.Phi[left] - law.Phi[right]
        c = law.cov[items] @ e.T
    else:
        c = law.Sigma[items[:, None], left] - law.Sigma[items[:, None], right]
    if len(law.rho):
        c += law.rho[items][:, None] * ((items[:, None] == left) - 1.0 * (items[:, None] == right))
    moved = Q @ c
    traits = people.traits[user]
    mean = law.mean[left] - law.mean[right] + (law.shift[left] - law.shift[right]) @ traits + x @ c
    within = _pair_variance(posterior, posterior.Sigma, law.rho, left, right) - np.einsum("kn,kn->n", c, moved)
    if law.has_basis:
        a = e - moved.T @ law.Phi[items]
        shared = np.einsum("ij,ij->i", a @ C, a)
        if len(own_C):
            shared += own_C[left] + own_C[right] + own_C[items] @ moved**2
            at_own = (items[:, None] == left) - 1.0 * (items[:, None] == right)
            shared -= 2.0 * np.einsum("kn,kn->n", own_C[items][:, None] * at_own, moved)
    else:
        across = C[items[:, None], left] - C[items[:, None], right]
        shared = pair_variance(C, left, right)
        shared += np.einsum("kn,kn->n", moved, C[np.ix_(items, items)] @ moved - 2.0 * across)
    return mean, within, shared


def centred_in(
    posterior: Any, law: Law, people: People, sites: Sites, users: IntArray,
    executor: ThreadPoolExecutor | None,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Centred utilities of users of one layout, draws of ``law``."""
    mean = np.empty((len(users), posterior.n_items))
    var = np.empty_like(mean)
    plain = posterior.basis is None and posterior.effects is None
    one_by_one = people.is_heavy[users] | (people.engaged[users] < 1.0) if plain else np.ones(len(users), dtype=bool)

    def work_one(shard: tuple[int, int]) -> None:
        for row in others[slice(*shard)].tolist():
            mean[row], var[row] = person_in(posterior, law, people, sites, int(users[row])).centred_marginals()

    others = np.flatnonzero(one_by_one)
    for _ in map_shards(work_one, cut(np.ones(len(others)), 1.0, _MOST_SHARDS), executor, n_ahead=_MOST_SHARDS):
        pass
    light = np.flatnonzero(~one_by_one)
    C_m = posterior.now.C if law is posterior.now.newcomer_law else posterior.C_m
    light_mean = np.empty((len(light), posterior.n_items))
    light_var = np.empty_like(light_mean)

    def work(shard: tuple[int, int]) -> None:
        rows = slice(*shard)
        centred_utilities(users[light[rows]], *_answers(law, people, sites), C_m, light_mean[rows], light_var[rows])

    shards = cut(np.full(len(light), float(posterior.n_items)), _QUERIES_PER_SHARD, _MOST_SHARDS)
    for _ in map_shards(work, shards, executor, n_ahead=_MOST_SHARDS):
        pass
    mean[light], var[light] = light_mean, light_var
    return mean, var


def _margins_without_answers(
    posterior: Any, law: Law, left: IntArray, right: IntArray, traits: FloatArray
) -> tuple[FloatArray, FloatArray]:
    mean = law.mean[left] - law.mean[right]
    var = _pair_variance(posterior, posterior.Sigma, law.rho, left, right)
    var += _pair_variance(posterior, posterior.now.C_answers, offset_variance(posterior), left, right)
    if posterior.effects is not None:
        mean = mean + np.einsum("ij,ij->i", law.shift[left] - law.shift[right], traits)
        for size, covariance in zip(posterior.effects.sizes(traits).T, posterior.effects.stack, strict=True):
            rows = np.flatnonzero(size)
            var[rows] += size[rows] * _pair_variance(posterior, covariance, np.zeros(0), left[rows], right[rows])
    return mean, var


def _pair_variance(
    posterior: Any, covariance: FloatArray, own: FloatArray, left: IntArray, right: IntArray
) -> FloatArray:
    if posterior.basis is None:
        return pair_variance(covariance, left, right)
    out = np.empty(len(left))
    for start in range(0, len(left), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        direction = posterior.basis.Phi[left[rows]] - posterior.basis.Phi[right[rows]]
        out[rows] = np.einsum("ij,ij->i", direction @ covariance, direction)
    return out + own[left] + own[right] if len(own) else out


def _own_variance(posterior: Any, without: IntArray | None = None) -> FloatArray:
    """Item-specific residual variances, of a user and of the consensus; 0 for the items in ``without``."""
    if posterior.basis is None or not posterior.basis.has_own:
        return np.zeros(0)
    variance: FloatArray = posterior.basis.rho + posterior.basis.offset_variance
    if without is not None:
        variance[without] = 0.0
    return variance


def offset_variance(posterior: Any) -> FloatArray:
    """Item-specific residual variance of the consensus; empty without residuals."""
    return np.zeros(0) if posterior.basis is None else posterior.basis.offset_variance


def _answers(law: Law, people: People, sites: Sites) -> tuple[Any, ...]:
    return people.columns(sites), people.among_items, law.prior, law.functions


def _blocks(dense: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Block-diagonal covariance of a dense block and independent variances."""
    n, k = len(dense), len(diagonal)
    out = np.zeros((n + k, n + k))
    out[:n, :n] = dense
    out[np.arange(n, n + k), np.arange(n, n + k)] = diagonal
    return out
