"""Boards as columns with ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.data import Vocabulary
from predilect.decisions.ranking import Board

__all__ = ["BOARD_COLUMNS", "board_columns"]

BOARD_COLUMNS = (
    "item", "mean", "sd", "lower", "upper", "rank", "rank_low", "rank_high", "p_best", "tier", "n",
)  # fmt: skip


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
    columns["n"] = n.astype(np.int64) if np.array_equal(n, np.rint(n)) else n
    return columns
