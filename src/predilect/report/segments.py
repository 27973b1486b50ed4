"""Segments of people against the crowd: a plot, and an overview for the terminal."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from predilect._plots import new_figure, write_figure
from predilect._text import amount, one_line, shortened
from predilect.decisions.scales import Scale

SURE = "Sure"  # head of the column that counts differences beyond chance
_MOST_ITEMS, _MOST_SEGMENTS = 60, 60  # in a plot
_ACROSS, _ITEM_ROWS, _LONGEST_ITEM, _WIDTH = 7, 30, 24, 48  # in a table of items by segments
_LINES, _AROUND = 60, 9  # of all overviews, and of one beside its rows


def overviews(boards: Sequence[pl.DataFrame], crowd: pl.DataFrame, scale: Scale) -> list[tuple[str, Table, str]]:
    """For each column of segments a title, a table of at most 60 lines in all, and what it leaves out.

    Up to seven segments stand beside each other, items below each other; of more each has a row with the items that
    differ most. A star says that a difference is more than chance.
    """
    columns = list(dict.fromkeys(board["column"][0] for board in boards))
    rows = max(_LINES // len(columns) - _AROUND, 3)
    found = []
    for column in columns:
        own = [board for board in boards if board["column"][0] == column]
        title = f'Segments by "{one_line(column)}": differences of their scores from the crowd\'s'
        if len(own) <= _ACROSS:
            shown = crowd.head(min(rows, _ITEM_ROWS))
            table, left = _by_item(own, shown, scale), f"{len(crowd) - len(shown)} more items"
        else:
            table, left = _by_segment(own[:rows], scale), f"{len(own) - rows} smaller segments"
        found.append((title, table, "" if left.startswith(("0", "-")) else left))
    return found


def _by_item(boards: Sequence[pl.DataFrame], crowd: pl.DataFrame, scale: Scale) -> Table:
    table = _table()
    table.add_column("Item", overflow="ellipsis", no_wrap=True, ratio=1)
    table.add_column("Crowd", justify="right", no_wrap=True, min_width=6)
    width = min(_WIDTH // len(boards) - 1, _LONGEST_ITEM)
    for board in boards:
        table.add_column(Text(shortened(one_line(board["segment"][0]), width)), justify="right", no_wrap=True)
    table.add_row("(people)", "", *(str(board["people"][0]) for board in boards), style="dim")
    of = [{row["item"]: row for row in board.iter_rows(named=True)} for board in boards]
    for item, score in crowd.select("item", "mean").iter_rows():
        name = Text(shortened(one_line(item), _LONGEST_ITEM))
        table.add_row(name, f"{score:.{scale.digits}f}", *(_difference(rows[item], scale) for rows in of))
    return table


def _by_segment(boards: Sequence[pl.DataFrame], scale: Scale) -> Table:
    table = _table()
    table.add_column("Segment", overflow="ellipsis", no_wrap=True, ratio=1)
    for name in ("People", "Answers", SURE):
        table.add_column(name, justify="right", no_wrap=True, min_width=4)
    for name in ("Furthest above the crowd", "Furthest below"):
        table.add_column(name, overflow="ellipsis", no_wrap=True, ratio=2)
    for board in boards:
        order = board.sort("difference", descending=True)
        ends = [
            Text(f"{_difference(row, scale)} {one_line(row['item'])}")
            for row in (order.row(0, named=True), order.row(-1, named=True))
        ]
        table.add_row(
            Text(one_line(board["segment"][0])), str(board["people"][0]), amount(float(board["n"].sum()) / 2.0),
            str(board["more_than_chance"].sum()), *ends,
        )  # fmt: skip
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _difference(row: dict[str, Any], scale: Scale) -> str:
    digits = scale.of_differences.digits
    return f"{round(row['difference'], digits) + 0.0:+.{digits}f}{'*' if row['more_than_chance'] else ' '}"


def plot_segments(boards: Sequence[pl.DataFrame], crowd: pl.DataFrame, scale: Scale, paths: Iterable[Path]) -> None:
    """Draw the differences of segments from the crowd, items by segments; the same boards give the same bytes.

    The best 60 items of the crowd, and the first 60 segments; a dot says that a difference is more than chance.
    """
    from predilect.plot import draw_segments, size_of_segments

    items, shown = crowd["item"].head(_MOST_ITEMS), boards[:_MOST_SEGMENTS]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a box; segments.csv has the name
        figure = new_figure(*size_of_segments(len(shown), len(items)))
        draw_segments(figure.add_subplot(), shown, items, scale.of_differences.unit)
        write_figure(figure, paths)
