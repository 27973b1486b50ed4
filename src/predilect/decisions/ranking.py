"""Ranking of items: scores, intervals, rank intervals, P(best) and tiers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtr

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Vocabulary
from predilect.errors import DataError
from predilect.inference.gaussian.posterior import Utilities
from predilect.inference.likelihoods.special import TAILS_95

BOARD_COLUMNS = (
    "item", "mean", "sd", "lower", "upper", "rank", "rank_low", "rank_high", "p_best", "tier", "tied_with_leader", "n",
    "wins", "ties", "losses", "win_share",
)  # fmt: skip
N_DRAWS = 4000
MANY_ITEMS, N_DRAWS_MANY_ITEMS = 1000, 1000
_MOST_PLACES, _FEWEST_DRAWS = 50_000_000, 100  # of 50 000 items a thousand draws, of half a million a hundred
_ENTRIES_AT_ONCE = 20_000_000
TIER_CONFIDENCE = 0.95
TIER_RULE = "a new one opens at the first item that the tier's leader beats with more than 95 % probability"
FALSE_DISCOVERY_RATE = 0.05
_FIRST_STEP = 64  # places behind a leader of a tier
_TIED = 1e-7  # what iterations and rounding leave open, of the largest score or standard deviation
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Board:
    """Items from best to worst; arrays of shape (n_items,) in that order.

    ``item`` holds codes; ``mean``, ``sd``, ``lower``, ``upper`` are of the centred utility, with 95 % intervals; 1 is
    the best ``rank``, ``rank_low`` and ``rank_high`` are 2.5 and 97.5 % quantiles; a new ``tier`` opens at the first
    item of which the tier's leader is better with probability above .95; ``tied_with_leader``: the first item is not.
    """

    item: IntArray
    mean: FloatArray
    sd: FloatArray
    lower: FloatArray
    upper: FloatArray
    rank: IntArray
    rank_low: IntArray
    rank_high: IntArray
    p_best: FloatArray
    tier: IntArray
    tied_with_leader: BoolArray

    def by_item(self) -> Board:
        """The board in the order of the items' codes."""
        order = np.argsort(self.item)
        return Board(**{field.name: getattr(self, field.name)[order] for field in fields(self)})


def beyond_chance(z: FloatArray) -> BoolArray:
    """Which of several differences, in standard deviations, stand out at a false discovery rate of 5 %.

    Benjamini and Hochberg's rule on two-sided p-values.
    """
    # Not by SciPy's statistics, which take longer to import than most boards to fit.
    order = np.argsort(-np.abs(z), kind="stable")
    p, found = 2.0 * ndtr(-np.abs(z[order])), np.zeros(len(z), dtype=bool)
    passed = np.flatnonzero(p * len(z) <= FALSE_DISCOVERY_RATE * np.arange(1, len(z) + 1))
    found[order[: passed[-1] + 1 if len(passed) else 0]] = True
    return found


def refuse_unsound(mean: FloatArray, variance: FloatArray) -> None:
    """DataError unless means are finite and variances not negative: a saved model may have been edited."""
    finite = np.isfinite(mean) & np.isfinite(variance)
    rounding = _ROUNDING * (1.0 + float(np.abs(variance[finite]).max(initial=0.0)))
    wrong = ~finite | (variance < -rounding)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise DataError(
            f"{int(wrong.sum())} of {len(wrong)} numbers cannot be worked out (first: mean {mean[first]:g}, variance "
            f"{variance[first]:g}): the model holds numbers that do not go together. Fit it anew"
        )


def rank_utilities(utilities: Utilities, *, random_state: int = 0, n_draws: int | None = None) -> Board:
    """Board from joint, centred posterior draws: 4 000 by default, 1 000 for more than 1 000 items.

    Defined in docs/reference/outputs.md. Scores, and utilities of a draw, that agree to 1e-7 of the largest score or
    standard deviation are tied: they count as equal, and stand in the order of the ids. So rounding, and an answer
    added and removed, move no place. With M functions (or M = n_items) M³/3 + n_draws n_items (M + log n_items)
    operations; n_draws x n_items integers of memory.
    """
    n_items = len(utilities.mean)
    score, sd, below, above = _scores(utilities)
    tied = _TIED * max(np.abs(score).max(initial=0.0), sd.max(initial=0.0))
    order, score = _best_first(score, tied)
    n_draws = n_draws or default_draws(n_items)
    places = np.empty((n_draws, n_items), dtype=np.int32)
    best = np.zeros(n_items)
    ranks = np.arange(1, n_items + 1, dtype=np.int32)
    done = 0
    for draws in board_draws(utilities, random_state, n_draws):
        in_order = np.argsort(_worse(draws, tied), axis=1)
        np.put_along_axis(places[done : done + len(draws)], in_order, ranks[None, :], axis=1)
        best += np.bincount(in_order[:, 0], minlength=n_items)
        done += len(draws)
    # A rank is a whole number: take the draw at the quantile, never a mixture of two.
    low, high = np.quantile(places, TAILS_95, axis=0, method="inverted_cdf")
    return Board(
        item=order,
        mean=score[order],
        sd=sd[order],
        lower=(score - below)[order],
        upper=(score + above)[order],
        rank=np.arange(1, n_items + 1),
        rank_low=low[order].astype(np.int64),
        rank_high=high[order].astype(np.int64),
        p_best=(best / n_draws)[order],
        tier=_tiers(order, utilities, tied),
        tied_with_leader=~_beaten(order[0], order, utilities, tied),
    )


def separation_reliability(utilities: Utilities) -> float:
    """Share of the variance of the items' utilities that is not error, 0 to 1.

    v / (v + e), with v the variance over the items of the posterior means and e the mean of the posterior variances:
    means of a Bayesian fit are drawn together, and v + e is the variance of the utilities themselves.
    """
    score, sd, *_ = _scores(utilities.in_sure_unit())
    observed, error = float(np.mean(score**2)), float(np.mean(sd**2))
    return observed / (observed + error) if observed + error else 0.0


def separation_sentence(reliability: float) -> str:
    """Scale separation reliability in words."""
    index = np.sqrt(reliability / max(1.0 - reliability, 1e-12))
    return (
        f"Scale separation reliability (SSR): {reliability:.2f}; items lie {index:.1f} times as far apart as their "
        "standard errors (separation index)."
    )


def default_draws(n_items: int) -> int:
    """How many draws a board of so many items has."""
    if n_items <= MANY_ITEMS:
        return N_DRAWS
    return int(np.clip(_MOST_PLACES // n_items, _FEWEST_DRAWS, N_DRAWS_MANY_ITEMS))


def board_draws(utilities: Utilities, random_state: int, n_draws: int) -> Iterator[FloatArray]:
    """The draws of a board, some at a time, (n, n_items) each."""
    rng, root = np.random.default_rng(random_state), utilities.root()
    step = max(1, _ENTRIES_AT_ONCE // max(len(utilities.mean), 1))
    for start in range(0, n_draws, step):
        yield utilities.draws(min(step, n_draws - start), rng, root)


def in_order(utilities: Utilities) -> IntArray:
    """Items as a board has them, the best first."""
    score, sd, *_ = _scores(utilities)
    return _best_first(score, _TIED * max(np.abs(score).max(initial=0.0), sd.max(initial=0.0)))[0]


def _scores(utilities: Utilities) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Centred utilities: mean, sd, and how far intervals go below and above, (n_items,) each."""
    score, variance = utilities.centred_marginals()
    refuse_unsound(score, variance)
    # Rounding may leave -1e-17 where an item is alone.
    return score, np.sqrt(np.maximum(variance, 0.0)), *utilities.centred_reach()


def score_columns(utilities: Utilities, items: Vocabulary, results: FloatArray) -> dict[str, Any]:
    """Columns of a board that need no draws, in the order of the items; O(n_items M²) at most."""
    score, sd, below, above = _scores(utilities)
    columns = {"mean": score, "sd": sd, "lower": score - below, "upper": score + above}
    return {"item": items.labels(np.arange(len(items))), **columns, **_counted(results)}


def _counted(results: FloatArray) -> dict[str, Any]:
    """Columns n, wins, ties, losses and win_share of wins, ties and losses (n, 3); whole numbers as integers.

    Of answers alone (n, 1), as a small model holds them, the rest is missing, and so is a share of nothing.
    """
    n = results.sum(axis=1)
    if results.shape[1] == 1:
        results = np.full((len(n), 3), np.nan)
    with np.errstate(invalid="ignore"):
        share = (results[:, 0] + 0.5 * results[:, 1]) / n
    columns = dict(zip(("n", "wins", "ties", "losses", "win_share"), (n, *results.T, share), strict=True))
    return {
        name: values.astype(np.int64) if is_whole(values) and name != "win_share"
        else pl.Series(values, nan_to_null=True)
        for name, values in columns.items()
    }  # fmt: skip


def board_columns(board: Board, items: Vocabulary, results: FloatArray) -> dict[str, Any]:
    """Columns of a board, best item first; ``results``: wins, ties and losses by code, (n_items, 3)."""
    columns: dict[str, Any] = {"item": items.labels(board.item)}
    columns |= {name: getattr(board, name) for name in BOARD_COLUMNS if hasattr(board, name) and name != "item"}
    return columns | _counted(results[board.item])


def is_whole(amounts: FloatArray) -> bool:
    """Whether all amounts are whole numbers."""
    return np.array_equal(amounts, np.rint(amounts))


def _best_first(score: FloatArray, tied: float) -> tuple[IntArray, FloatArray]:
    """Items by falling score, tied ones in the order of their codes; and the scores, of tied items their mean."""
    order = np.argsort(-score, kind="stable")
    group = np.empty(len(score), dtype=np.int64)
    group[order] = np.cumsum(np.diff(-score[order], prepend=-np.inf) > tied) - 1
    common = np.bincount(group, score) / np.bincount(group)
    return np.lexsort((np.arange(len(score)), group)), common[group]


def _worse(draws: FloatArray, tied: float) -> FloatArray:
    """Integers, distinct in each draw, rising as utilities fall and with codes of tied items; overwrites ``draws``."""
    n_items = draws.shape[1]
    draws -= draws.mean(axis=1, keepdims=True)  # what all share may be large, and its rounding too
    draws *= -1.0 / (tied or 1.0)
    np.rint(draws, out=draws)
    draws *= n_items
    draws += np.arange(n_items)
    return draws


def _tiers(order: IntArray, utilities: Utilities, tied: float) -> IntArray:
    """Tier of each place of the board, (n,); those behind a leader are looked at in growing steps."""
    tiers = np.empty(len(order), dtype=np.int64)
    first, tier = 0, 1
    while first < len(order):
        until, step = first + 1, _FIRST_STEP
        while until < len(order):
            behind = order[until : until + step]
            worse = _beaten(order[first], behind, utilities, tied)
            until += int(np.argmax(worse)) if worse.any() else len(behind)
            if worse.any():
                break
            step *= 2
        tiers[first:until] = tier
        first, tier = until, tier + 1
    return tiers


def _beaten(leader: int, items: IntArray, utilities: Utilities, tied: float) -> BoolArray:
    """Whether an item is better than each of some with probability above .95, (n,)."""
    apart = utilities.mean[leader] - utilities.mean[items] > tied
    return np.asarray(apart & (utilities.p_better(np.full(len(items), leader), items) > TIER_CONFIDENCE))


def best_items(
    model: Any, start: int, stop: int, n_best: int, executor: ThreadPoolExecutor | None
) -> tuple[IntArray, dict[str, Any]]:  # fmt: skip
    """Best items of the people ``start`` to ``stop`` of a snapshot, (stop - start, n_best), and columns of them.

    These are user, item, mean, sd and rank, sorted by person and rank; equal items are in the order of their ids.
    """
    who = np.arange(start, stop)
    mean, variance = model.posterior_.centred_utilities(who, executor=executor)
    sd = np.sqrt(np.maximum(variance * model.posterior_.widenings(who)[:, None], 0.0))  # rounding may leave -1e-17
    best = np.argsort(-mean, axis=1, kind="stable")
    tied = _TIED * np.maximum(np.abs(mean).max(axis=1, initial=0.0), sd.max(axis=1, initial=0.0))
    gaps = -np.diff(np.take_along_axis(mean, best, axis=1), axis=1)
    for row in np.flatnonzero((gaps <= tied[:, None]).any(axis=1)):  # as on a board
        best[row], mean[row] = _best_first(mean[row], float(tied[row]))
    best = best[:, :n_best]
    return best, {
        "user": model.users_.series().gather(np.repeat(who, best.shape[1])),
        "item": model.items_.series().gather(best.ravel()),
        "mean": np.take_along_axis(mean, best, axis=1).ravel(),
        "sd": np.take_along_axis(sd, best, axis=1).ravel(),
        "rank": np.tile(np.arange(1, best.shape[1] + 1), stop - start),
    }
