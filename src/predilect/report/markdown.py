"""The board and the verdict as Markdown."""

from __future__ import annotations

import re

import polars as pl

from predilect._text import amount, percent
from predilect.charts.pictures import number
from predilect.charts.svg import name_of
from predilect.decisions.scales import Scale
from predilect.evaluation.verdict import Verdict
from predilect.report.tables import sentence_of_pair

_HEADS = ("Rank", "95 %", "Item", "Score", "95 % interval", "P(best)", "Tier", "Answers")


def markdown(
    board: pl.DataFrame, scale: Scale, verdict: Verdict | None, rows: int, versus: pl.DataFrame | None = None
) -> str:
    """A table of the first rows of a board, and the verdict below it; between them what is said of named pairs."""
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
    for one in [] if versus is None else versus.iter_rows(named=True):
        lines += ["", escaped(sentence_of_pair(one, scale.of_differences))]
    for sentence in [] if verdict is None else verdict.sentences:
        lines += ["", sentence]
    return "\n".join(lines) + "\n"


def escaped(value: object) -> str:
    """An id that Markdown, and HTML within it, show as it is."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&-])", r"\\\1", name_of(value))
