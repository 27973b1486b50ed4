"""Boards as tables on a given scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from predilect._text import shown
from predilect.errors import DataError

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
SCORE_COLUMNS = ("mean", "sd", "lower", "upper")


def rescaled(board: pl.DataFrame, per_probit: float) -> pl.DataFrame:
    """A board in another unit (:class:`~predilect.report.tables.Scale`), from units of the noise of one answer."""
    return board.with_columns(pl.col(*SCORE_COLUMNS) * per_probit)


def write_csv(table: pl.DataFrame, path: Path) -> None:
    """Write a table that people open in a spreadsheet, which would obey a formula in an id.

    Text that begins as a formula does, and is no number, gets an apostrophe before it, and so do names of columns.
    """
    text = [_no_formula(column) for column in table if column.dtype == pl.String]
    table = table.with_columns(text)
    table.columns = _no_formula(pl.Series(table.columns)).to_list()
    table.write_csv(path)


def _no_formula(text: pl.Series) -> pl.Series:
    obeyed = text.str.contains(r"^[=+\-@\t\r＝＋－＠]") & ~text.str.contains(_NUMBER)
    return text.zip_with(~obeyed.fill_null(False), "'" + text)


def refuse_nested(table: pl.DataFrame) -> None:
    """DataError for columns that a CSV has no form for: lists, bytes or the like."""
    for name, dtype in table.schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Duration, pl.Object):
            raise DataError(
                f'column "{shown(name)}" holds values of type {dtype}, which a CSV cannot hold. Leave it out, or '
                "write .parquet or .jsonl with --out FILE"
            )


# The logistic function of 1.702 g is within .0095 of Φ(g) everywhere (Camilli 1994).
LOGISTIC_SLOPE = 1.702


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit for scores.

    ``per_probit``: how many of this unit are one unit of the noise of one answer; ``unit``: for the axis of a plot;
    ``meaning``: what a gap between two scores means, in a sentence; ``digits``: decimals worth showing.
    """

    name: str
    per_probit: float
    unit: str
    meaning: str
    digits: int

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {"name": self.name, "per_probit": self.per_probit, "unit": self.unit, "meaning": self.meaning}

    def ties(self, threshold: float, spread: float = 0.0) -> str:
        """Meaning of the tie threshold, in probit units, for the median person; empty without ties."""
        if threshold <= 0.0:
            return ""
        equal = math.erf(threshold / math.sqrt(2.0))
        better, worse = (0.5 * math.erfc((threshold - gap) / math.sqrt(2.0)) for gap in (1.0, -1.0))
        return (
            "That is without ties; with them, as here, two items with equal "
            f"scores tie in {100 * equal:.0f} % of answers; {self.per_probit:.{self.digits}f} apart, the better one is "
            f"preferred in {100 * better:.0f} %, the other in {100 * worse:.0f} %, and the rest are ties."
        ) + self._spread_of_ties(threshold, spread)

    def _spread_of_ties(self, threshold: float, spread: float) -> str:
        if spread <= 0.0:
            return ""
        low, high = (math.erf(threshold * math.exp(sign * spread) / math.sqrt(2.0)) for sign in (-1.0, 1.0))
        return (
            " That is the middle person: people differ in how readily they call a tie, and two thirds of them tie in "
            f"{100 * low:.0f} to {100 * high:.0f} % of answers on equal items."
        )


SCALES = {
    "probit": Scale(
        "probit",
        1.0,
        "noise of one answer = 1",
        "One unit is the noise of one answer (standard deviation 1): if two items lie g apart, the better one is "
        "preferred with probability Φ(g), which is 69 % for 0.5, 84 % for 1 and 98 % for 2.",
        2,
    ),
    "logit": Scale(
        "logit",
        LOGISTIC_SLOPE,
        "log-odds of one answer",
        "Scores are approximate log-odds, probit scores times 1.702: if two items lie g apart, the better one is "
        "preferred with probability about 1 / (1 + exp(-g)), which is 73 % for 1 and 88 % for 2.",
        2,
    ),
    "elo": Scale(
        "elo",
        LOGISTIC_SLOPE * 400.0 / math.log(10.0),
        "Elo points",
        "Scores are Elo points, probit scores times 1.702 · 400 / ln 10 = 295.7: a gap of 100 means that the better "
        "item is preferred with probability about 64 %, a gap of 200 about 76 %.",
        0,
    ),
}
_OF_LOGIT = Scale(
    "logit",
    1.0,
    "log-odds of one answer",
    "Scores are log-odds: if two items lie g apart, the better one is preferred with probability 1 / (1 + exp(-g)), "
    "which is 73 % for 1 and 88 % for 2.",
    2,
)
_ELO_OF_LOGIT = Scale(
    "elo",
    400.0 / math.log(10.0),
    "Elo points",
    "Scores are Elo points, log-odds times 400 / ln 10 = 173.7: a gap of 100 means that the better item is preferred "
    "with probability 64 %, a gap of 200 76 %.",
    0,
)


def scale_of(name: str, likelihood: str) -> Scale:
    """Scale by name, for a model whose answers have this likelihood: utilities of a logit model are log-odds."""
    if likelihood == "logit":
        return _ELO_OF_LOGIT if name == "elo" else _OF_LOGIT
    return SCALES[name]
