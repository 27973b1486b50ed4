"""How shares answer to a price, and what price or line to offer: elasticities and the best of several offers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from predilect._base.text import either
from predilect._base.types import FloatArray, IntArray
from predilect.decisions.conjoint import PersonDraws, average
from predilect.errors import DataError
from predilect.inference.likelihoods.special import TAILS_95

AIMS = ("share", "revenue", "margin")
_STEP = 1e-4  # of central differences of a chance, in units of utility
_MOST_LINES = 2000


def elasticities(
    draws: PersonDraws, rows: Any, step: FloatArray, price: FloatArray, of: str, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Elasticity of the share of item i (row) by the price of item j (column), and its 95 % interval; three (k, k).

    ``rows``: the k items, then each once more with its price moved by ``step`` (k,), which utilities follow linearly.
    Shares S_i are means over people: (∂S_i / ∂p_j) p_j / S_i. Chances are differentiated by central differences.
    """
    k = len(price)

    def of_people() -> Iterable[FloatArray]:
        for code in range(draws.n_people):
            V = draws.utilities(code, rows)
            slope = (V[:, k:] - V[:, :k]) / step
            V = V[:, :k]
            parts = [draws.chances(V)]
            for j in range(k):
                moved = np.zeros_like(V)
                moved[:, j] = _STEP
                by_utility = (draws.chances(V + moved) - draws.chances(V - moved)) / (2.0 * _STEP)
                parts.append(by_utility * slope[:, [j]])
            yield np.concatenate(parts, axis=1)

    mean, _, by_draw = average(of_people(), of, seed)

    def ratios(values: FloatArray) -> FloatArray:
        share, slopes = values[..., :k], values[..., k:].reshape(*values.shape[:-1], k, k)
        return np.swapaxes(slopes, -1, -2) * price / share[..., None]

    found = ratios(mean)
    by_draw = ratios(by_draw)
    lower, upper = np.quantile(by_draw + found - by_draw.mean(axis=0), TAILS_95, axis=0)
    return found, lower, upper


class Offer(NamedTuple):
    """A set on offer: places of its items, of ours among these, and what one of each that is sold brings."""

    items: IntArray
    ours: IntArray
    worth: FloatArray


def best_of(
    draws: PersonDraws, rows: Any, offers: Sequence[Offer], of: str, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """What each offer brings, for each who chooses: mean, 95 % interval, and P(it brings the most); four (n,).

    An offer brings Σ share times worth over our items. All are compared in the same draws of people's coefficients.
    """

    def of_people() -> Iterable[FloatArray]:
        for code in range(draws.n_people):
            V = draws.utilities(code, rows)
            yield np.stack([draws.chances(V[:, one.items])[:, one.ours] @ one.worth for one in offers], axis=1)

    mean, _, by_draw = average(of_people(), of, seed)
    by_draw = by_draw + mean - by_draw.mean(axis=0)
    lower, upper = np.quantile(by_draw, TAILS_95, axis=0)
    best = by_draw == by_draw.max(axis=1, keepdims=True)
    return mean, lower, upper, np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))


def lines_of(n: int, size: int) -> list[tuple[int, ...]]:
    """All lines of so many of n offers; DataError if there are none, or too many to go through."""
    if not 1 <= size <= n:
        raise DataError(f"a line of {size} out of {n} offers cannot be: take {either('--line', 'size=')} from 1 to {n}")
    if comb(n, size) > _MOST_LINES:
        raise DataError(
            f"{comb(n, size)} lines of {size} out of {n} offers are more than the {_MOST_LINES} that are gone through. "
            f"Leave out offers that cannot win, or take a smaller {either('--line', 'size=')}"
        )
    return list(combinations(range(n), size))
