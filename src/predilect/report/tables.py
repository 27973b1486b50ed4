"""Boards as tables on a given scale."""

from __future__ import annotations

import polars as pl

__all__ = ["rescaled"]

SCORE_COLUMNS = ("mean", "sd", "lower", "upper")


def rescaled(board: pl.DataFrame, per_probit: float) -> pl.DataFrame:
    """A board with its scores in another unit.

    Parameters
    ----------
    board : polars.DataFrame
        With :data:`~predilect.decisions.ranking.BOARD_COLUMNS`, scores in units of the noise of one answer.
    per_probit : float
        The new unit (:class:`~predilect.report.scales.Scale`).
    """
    return board.with_columns(pl.col(*SCORE_COLUMNS) * per_probit)
