"""Natural breaks (Fisher-Jenks): exact one-dimensional k-means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from predilect._base.compile import kernel
from predilect._base.types import FloatArray, IntArray

MOST_DISTINCT = 10_000  # beyond it values are merged into bins first


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
    """Natural breaks with 1, 2, ... levels (at most the distinct values), at the cost of the last.

    ``values`` (n,) are finite, and some have positive ``weights``; with ``zero_is_level`` none is negative.
    """
    x, w = _distinct(values, weights, zero_is_level)
    centre, mass, square, first = _bins(x, w, zero_is_level)
    starts = _class_starts(centre, mass, square, min(n_levels, len(centre)), zero_is_level)
    about = 0.0 if zero_is_level else x[0] + float(np.average(x - x[0], weights=w))
    total = float(w @ (x - about) ** 2)
    return tuple(_summary(x, w, first[start], total, zero_is_level) for start in starts)


def _distinct(values: ArrayLike, weights: ArrayLike | None, with_zero: bool) -> tuple[FloatArray, FloatArray]:
    """Ascending distinct values and their weights; 0 in front, if need be of weight 0, where it must be a level."""
    x = np.asarray(values, dtype=np.float64) + 0.0
    given = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    x, code = np.unique(x[given > 0], return_inverse=True)
    w = np.bincount(code, weights=given[given > 0], minlength=len(x)).astype(np.float64)
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
    layers = np.zeros((n_levels, len(x)), dtype=np.int64)
    _last_starts(x, w, q, with_zero, layers)
    found: list[IntArray] = []
    for k in range(n_levels):
        end, starts = len(x) - 1, [0]
        for layer in layers[k:0:-1]:
            starts.append(int(layer[end]))
            end = starts[-1] - 1
        found.append(np.sort(np.array(starts, dtype=np.int64)))
    return found


@kernel
def _last_starts(x: FloatArray, w: FloatArray, q: FloatArray, with_zero: bool, out: IntArray) -> None:
    """Where the last of k + 1 classes of the values 0..j starts in the best partition, into ``out`` (n_levels, m).

    Fisher's dynamic programme (1958). A class grows to the left while its own squares are less than the best so far.
    """
    m = x.shape[0]
    best, better = np.empty(m), np.empty(m)  # least sums of squares in k classes, and in k + 1
    mass = mean = squares = 0.0
    for j in range(m):
        mass += w[j]
        if with_zero:
            squares += q[j] + w[j] * x[j] ** 2
        elif mass > 0.0:
            apart = x[j] - mean
            squares += q[j] + apart**2 * (w[j] * (mass - w[j]) / mass)
            mean += apart * (w[j] / mass)
        best[j] = squares
    for k in range(1, out.shape[0]):
        for j in range(k, m):
            mass, mean, squares = w[j], x[j], q[j]
            least, start = best[j - 1] + squares, j
            for i in range(j - 1, k - 1, -1):
                total, apart = mass + w[i], x[i] - mean
                squares += q[i] + apart**2 * (mass * w[i] / total)
                mean += apart * (w[i] / total)
                mass = total
                if squares > least:
                    break
                if best[i - 1] + squares <= least:
                    least, start = best[i - 1] + squares, i
            better[j], out[k, j] = least, start
        best, better = better, best


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
