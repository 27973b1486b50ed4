"""The board and the verdict as Markdown."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from predilect._text import amount, number, percent
from predilect.charts.svg import name_of
from predilect.decisions.scales import Scale
from predilect.evaluation.verdict import Verdict

_HEADS = ("Rank", "95 %", "Item", "Score", "95 % interval", "P(best)", "Tier", "Answers")


def markdown(board: pl.DataFrame, scale: Scale, verdict: Verdict | None, rows: int) -> str:
    """A table of the first rows of a board, and the verdict below it."""
    lines = [f"| {' | '.join(_HEADS)} |", "|---:|:---|:---|---:|---:|---:|---:|---:|"]
    for row in board.head(rows).iter_rows(named=True):
        lower, upper = (number(row[name], scale.digits) for name in ("lower", "upper"))
        cells = (
            str(row["rank"]), f"{row['rank_low']}–{row['rank_high']}", escaped(row["item"]),
            number(row["mean"], scale.digits), f"{lower} … {upper}", percent(row["p_best"]).replace("<", "\\<"),
            str(row["tier"]), amount(row["n"]),
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    if rows < len(board):
        lines += ["", f"... and {len(board) - rows} more items."]
    lines += ["", scale.meaning.replace("|", "\\|")]
    for sentence in [] if verdict is None else verdict.sentences:
        lines += ["", sentence]
    return "\n".join(lines) + "\n"


def table_as_markdown(table: pl.DataFrame) -> str:
    """Any table; numbers stand to the right, and empty cells are empty."""

    def told(cell: Any) -> str:
        return "" if cell is None or cell == "" else f"{cell:.4g}" if isinstance(cell, float) else escaped(cell)

    sides = ["---:" if dtype.is_numeric() else ":---" for dtype in table.dtypes]
    lines = [[escaped(name) for name in table.columns], sides, *(map(told, row) for row in table.iter_rows())]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def escaped(value: object) -> str:
    """An id that Markdown, and HTML within it, show as it is."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&-])", r"\\\1", name_of(value))
