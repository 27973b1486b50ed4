"""Greedy choice of several questions, each for its gain given those before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.gaussian.utilities import Utilities

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Scores of some pairs, given how much of their variance other questions resolve.
Score = Callable[[Any, FloatArray | None], FloatArray]

_SETTLED = 1e-10  # of the largest variance: what rounding leaves of the variance between identical items
_PAIRS_IN_CACHE = 2**14
_SHORTLIST = 2**15  # eight times as many each time that a pair beyond them may be better
_RESCORED_FIRST = 4096  # four times as many each time that these do not decide


def are_settled(var: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether margins have no variance but for rounding, as those of identical items; shape (n,)."""
    return np.asarray(var <= _SETTLED * var.max(initial=0.0))


def shuffled(var: FloatArray, rng: np.random.Generator) -> IntArray:
    """All pairs in random order, but those without variance last."""
    order = rng.permutation(len(var))
    return np.asarray(order[np.argsort(are_settled(var)[order], kind="stable")])


def greedy(
    score: Score, var: FloatArray, left: IntArray, right: IntArray, utilities: Utilities, n: int
) -> tuple[IntArray, FloatArray]:
    """Places and scores (at most n,) of pairs chosen one by one for the largest gain.

    Information about others never raises the gain of a question, so an earlier score is a bound: only pairs that might
    be the best by it are scored again. Rows of G are such that Cov(f) - Gᵀ G is the covariance given the questions.
    """
    bound = np.empty(len(var))
    for start in range(0, len(var), _PAIRS_IN_CACHE):
        bound[start : start + _PAIRS_IN_CACHE] = score(slice(start, start + _PAIRS_IN_CACHE), None)
    settled = are_settled(var)
    n_open = len(var) - int(settled.sum())
    last = np.flatnonzero(settled)[: max(n - n_open, 0)].astype(np.int64)
    bound[settled] = -np.inf
    if n == 1 and n_open:  # nothing to condition on
        first = np.array([np.argmax(bound)], dtype=np.int64)
        return first, bound[first]
    rows = None if utilities.Phi is None else utilities.rows()
    G = np.zeros((min(n, n_open), len(utilities.mean)))
    fresh = np.zeros(len(var), dtype=np.int64)  # number of questions that the bound takes into account
    chosen: list[int] = []
    scores: list[float] = []
    size = _SHORTLIST
    shortlist, outside = _best_of(bound, size)
    for k in range(len(G)):
        floor, at_once = -np.inf, _RESCORED_FIRST
        while True:
            here = bound[shortlist]
            best = int(shortlist[np.argmax(here)])
            if bound[best] <= outside:
                size *= 8
                shortlist, outside = _best_of(bound, size)
                continue
            if fresh[best] == k:
                break
            stale = shortlist[(here >= floor) & (here > -np.inf) & (fresh[shortlist] < k)]
            if len(stale) > at_once:
                stale = stale[np.argpartition(bound[stale], -at_once)[-at_once:]]
            bound[stale] = score(stale, _resolved(G[:k], left[stale], right[stale]))
            fresh[stale] = k
            floor, at_once = max(floor, float(bound[stale].max())), 4 * at_once
        chosen.append(best)
        scores.append(float(bound[best]))
        bound[best] = -np.inf
        a, b = int(left[best]), int(right[best])
        g = _against(utilities, rows, a, b) - (G[:k, a] - G[:k, b]) @ G[:k]
        G[k] = g / np.sqrt(1.0 + max(g[a] - g[b], 0.0))
    worth = score(last, _resolved(G, left[last], right[last]))
    return np.append(np.array(chosen, dtype=np.int64), last), np.append(np.array(scores), worth)


def _best_of(bound: FloatArray, size: int) -> tuple[IntArray, float]:
    """The places of the largest bounds, in order of place, and the largest bound of all others."""
    if size >= len(bound):
        return np.arange(len(bound)), -np.inf
    place = np.argpartition(bound, -size)
    return np.sort(place[-size:]), float(bound[place[:-size]].max())


def _resolved(G: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """Variance of pairs that the questions behind G resolve."""
    difference = G[:, left] - G[:, right]
    return np.asarray(np.einsum("ij,ij->j", difference, difference))


def _against(utilities: Utilities, rows: FloatArray | None, a: int, b: int) -> FloatArray:
    """Covariance of all utilities with f(a) - f(b), shape (n_items,)."""
    if rows is None:
        return np.asarray(utilities.covariance[:, a] - utilities.covariance[:, b])
    g = rows @ (utilities.covariance @ (rows[a] - rows[b]))
    if len(utilities.own):
        g[a] += utilities.own[a]
        g[b] -= utilities.own[b]
    return np.asarray(g)
