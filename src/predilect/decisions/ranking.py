"""From a posterior over utilities to a board: scores, intervals, rank intervals, P(best) and tiers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from predilect.covariance.dense import factorise
from predilect.data import Vocabulary
from predilect.posteriors.gaussian import centre

__all__ = ["BOARD_COLUMNS", "Board", "board_columns", "is_whole", "rank_items"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

BOARD_COLUMNS = (
    "item", "mean", "sd", "lower", "upper", "rank", "rank_low", "rank_high", "p_best", "tier", "n",
)  # fmt: skip
N_DRAWS = 4000
TIER_CONFIDENCE = 0.95
_Z_95 = 1.959963984540054  # 97.5 % quantile of the standard normal


@dataclass(frozen=True, slots=True)
class Board:
    """Items from best to worst.

    Attributes
    ----------
    item : int64[n_items]
        Codes, best first; everything below is in this order.
    mean, sd, lower, upper : float64[n_items]
        Centred utility, its posterior standard deviation, and the ends of its 95 % interval.
    rank, rank_low, rank_high : int64[n_items]
        1 is best; 2.5 and 97.5 % quantiles of the rank.
    p_best : float64[n_items]
        Probability of being the best.
    tier : int64[n_items]
        1, 2, ...: a new tier opens at the first item of which the tier's leader is better with probability above .95.
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

    def by_item(self) -> Board:
        """The same in the order of the items' codes."""
        order = np.argsort(self.item)
        return Board(**{field.name: getattr(self, field.name)[order] for field in fields(self)})


def rank_items(mean: FloatArray, covariance: FloatArray, *, random_state: int = 0, n_draws: int = N_DRAWS) -> Board:
    """Rank items by their mean utility, and say how sure each place is.

    Parameters
    ----------
    mean : array of float, shape (n_items,)
    covariance : array of float, shape (n_items, n_items)
    random_state : int, default 0
        Seed of the posterior draws.
    n_draws : int, default 4000
        Joint, centred draws for rank intervals and P(best).

    Returns
    -------
    board : Board

    Notes
    -----
    Defined in docs/outputs.md. n_items³/3 + n_draws n_items² operations; n_draws x n_items memory.
    """
    n_items = len(mean)
    score, centred = centre(mean, covariance)
    sd = np.sqrt(np.maximum(np.diagonal(centred), 0.0))  # rounding may leave -1e-17 where an item is alone
    # Equal scores keep the order of the ids, whatever the sort does.
    order = np.lexsort((np.arange(n_items), -score))
    draws = np.random.default_rng(random_state).standard_normal((n_draws, n_items)) @ factorise(covariance).lower.T
    draws += mean
    places = np.empty((n_draws, n_items), dtype=np.int32)
    np.put_along_axis(places, np.argsort(-draws, axis=1), np.arange(1, n_items + 1, dtype=np.int32)[None, :], axis=1)
    # A rank is a whole number: take the draw at the quantile, never a mixture of two.
    low, high = np.quantile(places, [0.025, 0.975], axis=0, method="inverted_cdf")
    best = np.bincount(np.argmax(draws, axis=1), minlength=n_items) / n_draws
    return Board(
        item=order,
        mean=score[order],
        sd=sd[order],
        lower=(score - _Z_95 * sd)[order],
        upper=(score + _Z_95 * sd)[order],
        rank=np.arange(1, n_items + 1),
        rank_low=low[order].astype(np.int64),
        rank_high=high[order].astype(np.int64),
        p_best=best[order],
        tier=_tiers(order, mean, covariance),
    )


def board_columns(board: Board, items: Vocabulary, n_answers: npt.NDArray[np.float64]) -> dict[str, Any]:
    """The columns of a board, best item first.

    Parameters
    ----------
    board : Board
    items : Vocabulary
    n_answers : array of float, shape (n_items,)
        Answers on each item, by code; whole numbers come out as integers.
    """
    n = n_answers[board.item]
    columns: dict[str, Any] = {"item": items.labels(board.item)}
    columns |= {name: getattr(board, name) for name in BOARD_COLUMNS[1:-1]}
    columns["n"] = n.astype(np.int64) if is_whole(n) else n
    return columns


def is_whole(amounts: npt.NDArray[np.float64]) -> bool:
    """Whether all amounts are whole numbers."""
    return np.array_equal(amounts, np.rint(amounts))


def _tiers(order: IntArray, mean: FloatArray, covariance: FloatArray) -> IntArray:
    tiers = np.empty(len(order), dtype=np.int64)
    leader, tier = int(order[0]), 1
    for place, item in enumerate(order):
        var = covariance[leader, leader] + covariance[item, item] - 2.0 * covariance[leader, item]
        if var > 0.0 and ndtr((mean[leader] - mean[item]) / np.sqrt(var)) > TIER_CONFIDENCE:
            leader, tier = int(item), tier + 1
        tiers[place] = tier
    return tiers
