"""Natural breaks (Fisher-Jenks): exact one-dimensional k-means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from predilect._types import FloatArray, IntArray
from predilect.errors import DataError

MOST_DISTINCT = 10_000  # beyond it values are merged into bins first
_AT_ONCE = 1 << 20  # last classes tried at once


@dataclass(frozen=True, slots=True, eq=False)
class Breaks:
    """Levels of one column of numbers."""

    levels: FloatArray  # (n_levels,), weighted means of the classes, ascending
    edges: FloatArray  # (n_levels - 1,), half-way between neighbouring classes
    within: float  # weighted sum of squared distances of the values to the level of their class
    total: float  # the same to the mean of all values, or to 0 if 0 had to be a level

    @property
    def share_lost(self) -> float:
        """``within / total``; 0 where all values are equal."""
        return self.within / self.total if self.total > 0 else 0.0


def breaks_up_to(
    values: ArrayLike, n_levels: int, weights: ArrayLike | None = None, *, zero_is_level: bool = False
) -> tuple[Breaks, ...]:
    """Natural breaks with 1, 2, ... levels (at most the distinct values), at the cost of the last."""
    if n_levels < 1:
        raise DataError(f"the number of levels must be at least 1, got {n_levels}.")
    x, w = _distinct(values, weights, zero_is_level)
    centre, mass, square, first = _bins(x, w, zero_is_level)
    starts = _class_starts(centre, mass, square, min(n_levels, len(centre)), zero_is_level)
    about = 0.0 if zero_is_level else x[0] + float(np.average(x - x[0], weights=w))
    total = float(w @ (x - about) ** 2)
    return tuple(_summary(x, w, first[start], total, zero_is_level) for start in starts)


def _distinct(values: ArrayLike, weights: ArrayLike | None, with_zero: bool) -> tuple[FloatArray, FloatArray]:
    """Ascending distinct values and their weights; 0 in front, if need be of weight 0, where it must be a level."""
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1:
        raise DataError(f"expected one column of numbers, got an array of shape {x.shape}.")
    if not np.isfinite(x).all():
        raise DataError(f"{int((~np.isfinite(x)).sum())} of {len(x)} values are not finite numbers.")
    if with_zero and (x < 0).any():
        raise DataError(
            "levels with a zero are made of sizes, but some values are negative. Give their absolute values."
        )
    if weights is None:
        x, count = np.unique(x + 0.0, return_counts=True)
        w = count.astype(np.float64)
    else:
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != x.shape or not np.isfinite(given).all() or (given < 0).any():
            raise DataError(f"weights must be {len(x)} finite numbers that are not negative, one a value.")
        x, code = np.unique(x[given > 0] + 0.0, return_inverse=True)
        w = np.bincount(code, weights=given[given > 0], minlength=len(x)).astype(np.float64)
    if not len(x):
        raise DataError("there are no values of positive weight to find levels of.")
    if with_zero and x[0] > 0:
        x, w = np.append(0.0, x), np.append(0.0, w)
    return x, w


def _bins(x: FloatArray, w: FloatArray, with_zero: bool) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Mean, weight and sum of squares about the mean of each bin, and the index of its first value."""
    m = len(x)
    if m <= MOST_DISTINCT:
        return x, w, np.zeros(m), np.arange(m)
    half = MOST_DISTINCT // 2 - 1
    middle = np.cumsum(w) - 0.5 * w
    by_weight = np.floor(middle / w.sum() * half)
    by_width = np.floor((x - x[0]) / (x[-1] - x[0]) * half)
    fresh = np.append(True, (np.diff(by_weight) > 0) | (np.diff(by_width) > 0))
    fresh[1] |= with_zero  # 0 has a bin of its own
    first = np.flatnonzero(fresh)
    mass = np.add.reduceat(w, first)
    code = np.cumsum(fresh) - 1
    # About the first value of the bin, so that few digits cancel.
    apart = np.add.reduceat(w * (x - x[first][code]), first) / np.where(mass > 0, mass, 1.0)
    centre = x[first] + apart
    return centre, mass, np.add.reduceat(w * (x - centre[code]) ** 2, first), first


def _class_starts(x: FloatArray, w: FloatArray, q: FloatArray, n_levels: int, with_zero: bool) -> list[IntArray]:
    """Indices at which the classes start, for 1, ..., n_levels classes."""
    m = len(x)
    cost = _class_costs(x, w, q)
    everything = np.arange(m)
    best = np.cumsum(w * x**2 + q) if with_zero else cost(np.zeros(m, dtype=np.int64), everything)
    layers: list[IntArray] = []
    for k in range(1, n_levels):
        best, last_start = _next_layer(best, cost, k)
        layers.append(last_start)
    found: list[IntArray] = []
    for k in range(n_levels):
        end, starts = m - 1, [0]
        for layer in reversed(layers[:k]):
            starts.append(int(layer[end]))
            end = starts[-1] - 1
        found.append(np.sort(np.array(starts, dtype=np.int64)))
    return found


def _next_layer(
    previous: FloatArray, cost: Callable[[IntArray, IntArray], FloatArray], k: int
) -> tuple[FloatArray, IntArray]:
    """Best cost of values 0..j in k + 1 classes, and where the last class starts, from that in k classes."""
    m = len(previous)
    best, start = np.full(m, np.inf), np.full(m, k, dtype=np.int64)
    n = m - k  # ends k..m-1 have enough values
    step = 1 << (n.bit_length() - 1)
    while step:
        place = np.arange(step - 1, n, 2 * step)
        end = place + k
        low = np.where(place >= step, start[np.maximum(end - step, 0)], k)
        high = np.minimum(np.where(place + step < n, start[np.minimum(end + step, m - 1)], m - 1), end)
        reach = np.cumsum(high - low + 1)
        cuts = np.searchsorted(reach, np.arange(_AT_ONCE, reach[-1] + _AT_ONCE, _AT_ONCE), side="right")
        for some in np.split(np.arange(len(end)), np.unique(cuts)):
            if len(some):
                best[end[some]], start[end[some]] = _lowest(previous, cost, end[some], low[some], high[some])
        step >>= 1
    return best, start


def _lowest(
    previous: FloatArray, cost: Callable[[IntArray, IntArray], FloatArray], end: IntArray, low: IntArray, high: IntArray
) -> tuple[FloatArray, IntArray]:
    """Least cost over starts low..high of the last class, and the first start that has it."""
    length = high - low + 1
    offset = np.cumsum(length) - length
    start = np.arange(length.sum()) - np.repeat(offset - low, length)
    value = previous[start - 1] + cost(start, np.repeat(end, length))
    least = np.minimum.reduceat(value, offset)
    hits = np.flatnonzero(value == np.repeat(least, length))
    return least, start[hits[np.searchsorted(hits, offset)]]


def _class_costs(x: FloatArray, w: FloatArray, q: FloatArray) -> Callable[[IntArray, IntArray], FloatArray]:
    """A function (first, last) -> sum of squares of the classes first..last, in constant time each.

    For every h, each value has the weight, mean and squares of its aligned block of 2^h values up to itself, and from
    itself on. A class lies in two neighbouring blocks of the largest h in which its ends differ, so it is one merge.
    """
    m = len(x)
    position = np.arange(m)
    up_to, onwards = [(w, x, q)], [(w, x, q)]
    for h in range((m - 1).bit_length() - 1):
        size = 1 << h
        right = position[position & size != 0]
        left_end = (right >> h << h) - 1
        left = position[(position & size == 0) & ((position >> h) + 1 << h < m)]
        right_start = (left >> h) + 1 << h
        for table, mine, other in ((up_to, right, left_end), (onwards, left, right_start)):
            grown = [part.copy() for part in table[-1]]
            for part, merged in zip(grown, _merge(*(p[k] for k in (other, mine) for p in table[-1])), strict=True):
                part[mine] = merged
            table.append((grown[0], grown[1], grown[2]))
    w1, x1, q1 = (np.concatenate(parts) for parts in zip(*onwards, strict=True))
    w2, x2, q2 = (np.concatenate(parts) for parts in zip(*up_to, strict=True))

    def cost(first: IntArray, last: IntArray) -> FloatArray:
        h = np.maximum(np.frexp((first ^ last).astype(np.float64))[1].astype(np.int64) - 1, 0)
        a, b = h * m + first, h * m + last
        wa, wb = w1[a], w2[b]
        merged = q1[a] + q2[b] + (x2[b] - x1[a]) ** 2 * (wa * wb / (wa + wb))
        return np.where(first == last, q[first], merged)

    return cost


def _merge(
    w1: FloatArray, x1: FloatArray, q1: FloatArray, w2: FloatArray, x2: FloatArray, q2: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weight, mean and sum of squares of two groups together."""
    w, apart = w1 + w2, x2 - x1
    return w, x1 + apart * (w2 / w), q1 + q2 + apart**2 * (w1 * w2 / w)


def _summary(x: FloatArray, w: FloatArray, first: IntArray, total: float, with_zero: bool) -> Breaks:
    size = np.diff(np.append(first, len(x)))
    apart = w * (x - np.repeat(x[first], size))
    mass = np.add.reduceat(w, first)
    levels = x[first] + np.add.reduceat(apart, first) / np.where(mass > 0, mass, 1.0)
    if with_zero:
        levels[0] = 0.0
    within = float(w @ (x - np.repeat(levels, size)) ** 2)
    edges = x[first[1:] - 1] + 0.5 * (x[first[1:]] - x[first[1:] - 1])
    return Breaks(levels, edges, within, total)
