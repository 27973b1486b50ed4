"""Boards as columns with ids, and as tables on a given scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from predilect.data import Vocabulary
from predilect.decisions.ranking import Board

__all__ = ["BOARD_COLUMNS", "board_columns", "is_whole", "rescaled"]

BOARD_COLUMNS = (
    "item", "mean", "sd", "lower", "upper", "rank", "rank_low", "rank_high", "p_best", "tier", "n",
)  # fmt: skip
SCORE_COLUMNS = ("mean", "sd", "lower", "upper")


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


def rescaled(board: pl.DataFrame, per_probit: float) -> pl.DataFrame:
    """A board with its scores in another unit.

    Parameters
    ----------
    board : polars.DataFrame
        With :data:`BOARD_COLUMNS`, scores in units of the noise of one answer.
    per_probit : float
        The new unit (:class:`~predilect.report.scales.Scale`).
    """
    return board.with_columns(pl.col(*SCORE_COLUMNS) * per_probit)
