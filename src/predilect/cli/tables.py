"""Tables as a terminal shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from predilect._base.text import one_line, shortened

if TYPE_CHECKING:
    import polars as pl

_LONGEST_NAME = 40
_LABELS = ("scenario", "price", "line", "item", "changes", "attribute", "level", "user")


def table_like() -> Table:
    """An empty table in the style of all others."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def as_rich(table: pl.DataFrame) -> Table:
    """Any table, numbers with four digits and to the right."""
    found = table_like()
    for name, dtype in table.schema.items():
        found.add_column(Text(one_line(name)), justify="right" if dtype.is_numeric() else "left", overflow="fold")
    for row in table.iter_rows():
        found.add_row(*(Text(_cell(value)) for value in row))
    return found


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else shortened(one_line(value), _LONGEST_NAME)


def with_intervals(table: pl.DataFrame, heads: dict[str, str], *, as_percent: bool = False, rows: int = 60) -> Table:
    """The first rows with their labels, numbers by their ``heads``, and the 95 % interval of the first of these."""
    found = table_like()
    labels = [name for name in _LABELS if name in table.columns]
    for name in labels:
        found.add_column(name.capitalize(), overflow="ellipsis", no_wrap=True, ratio=1)
    first, *others = heads
    for head in (heads[first], "95 % interval", *(heads[name] for name in others)):
        found.add_column(head, justify="right", no_wrap=True)

    def as_number(value: float) -> str:
        return f"{100.0 * value:.1f} %" if as_percent else f"{value:.3g}" if abs(value) < 1e4 else f"{value:.0f}"

    for row in table.head(rows).iter_rows(named=True):
        interval = f"{as_number(row['lower'])} … {as_number(row['upper'])}"
        names = (Text(shortened(one_line(row[name]), _LONGEST_NAME)) for name in labels)
        found.add_row(*names, as_number(row[first]), interval, *(as_number(row[name]) for name in others))
    return found
