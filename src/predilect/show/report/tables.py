"""Tables as files that people open."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import polars as pl

from predilect._base.text import first_few, one_line, percent, shown
from predilect.data.formulas import no_formula
from predilect.decisions.scales import Scale
from predilect.errors import DataError
from predilect.inference.people.layout import NOISY


def sentence_of_pair(row: dict[str, Any], scale: Scale) -> str:
    """A row of :func:`predilect.decisions.versus` in a sentence."""
    left, right, digits = one_line(row["left"]), one_line(row["right"]), scale.digits
    tie = f", a tie {100 * row['p_tie']:.0f} %" if row["p_tie"] >= 0.005 else ""
    return (
        f"{left} is better than {right} with probability {percent(row['p_better'])}: {row['difference']:+.{digits}f} "
        f"({row['lower']:+.{digits}f} to {row['upper']:+.{digits}f}). One answer: {left} {100 * row['p_left']:.0f} %, "
        f"{right} {100 * row['p_right']:.0f} %{tie}."
    )


def least_consistent(people: pl.DataFrame | None) -> list[str]:
    """Who has more than twice the usual noise, in a sentence; none where it is nobody, or people do not differ.

    ``people``: the model's table of them, if it has one.
    """
    if people is None:
        return []
    people = people.filter(pl.col("lower").is_not_null() & (pl.col("consistency") < NOISY))
    ids = people.sort("consistency", maintain_order=True)["user"].to_list()
    return [f"More than twice the usual noise: {first_few(ids)}."] if ids else []


def misfitting(people: pl.DataFrame | None, *, names: bool = True) -> list[str]:
    """Who answers less like the rest than chance explains, in a sentence; none where it is not known.

    ``people``: the model's table of them, if it has one.
    """
    if people is None or "infit" not in people.columns or people["infit"].is_null().all():
        return []
    known = people.filter(pl.col("infit").is_not_null())
    ids = known.filter("misfit").sort("infit_z", descending=True, maintain_order=True)["user"].to_list()
    if not ids:
        return [f"Nobody of {len(known)} people answers less like the rest than chance explains (infit)."]
    who = f": {first_few(ids)}" if names else ""
    answer = "person answers" if len(ids) == 1 else "people answer"
    return [f"{len(ids)} of {len(known)} {answer} less like the rest than chance explains (high infit){who}."]


_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"


def whole_numbers(column: pl.Series, ids: pl.Series | None = None) -> pl.Series:
    """Text as integers, if all of it (or of ``ids``, of which it is a part) are written as such; else as it is."""
    whole = column if ids is None else ids
    if column.dtype != pl.String or not whole.str.contains(_WHOLE).fill_null(True).all():
        return column
    return column.cast(pl.Int64)


def write_csv(table: pl.DataFrame, file: Path | IO[bytes]) -> None:
    """Write a table that people open in a spreadsheet, which would obey a formula in an id.

    Text that begins as a formula does, and is no number, gets an apostrophe before it, and so do names of columns; the
    readers take it away again.
    """
    table = table.with_columns(no_formula(column) for column in table if column.dtype == pl.String)
    table.columns = no_formula(pl.Series(table.columns, dtype=pl.String)).to_list()
    table.write_csv(file)


def refuse_nested(table: pl.DataFrame) -> None:
    """DataError for columns that a CSV has no form for: lists, bytes or the like."""
    for name, dtype in table.schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Duration, pl.Object):
            raise DataError(
                f'column "{shown(name)}" holds values of type {dtype}, which a CSV cannot hold. Leave it out, or '
                "write .parquet or .jsonl with -o FILE"
            )
