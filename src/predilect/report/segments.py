"""Segments of people against the crowd: a plot, and an overview for the terminal."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from predilect._text import amount, one_line, shortened
from predilect.report.tables import Scale

_MOST_ITEMS, _MOST_SEGMENTS, _LONGEST_NAME = 60, 60, 30  # in a plot
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
    for name in ("People", "Answers", "Sure"):
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
    return f"{round(row['difference'], scale.digits) + 0.0:+.{scale.digits}f}{'*' if row['more_than_chance'] else ' '}"


def plot_segments(boards: Sequence[pl.DataFrame], crowd: pl.DataFrame, scale: Scale, paths: Iterable[Path]) -> None:
    """Draw the differences of segments from the crowd, items by segments; the same boards give the same bytes.

    The best 60 items of the crowd, and the first 60 segments; a dot says that a difference is more than chance.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    items, shown = crowd["item"].head(_MOST_ITEMS), boards[:_MOST_SEGMENTS]
    aligned = [pl.DataFrame({"item": items}).join(board, on="item", maintain_order="left") for board in shown]
    difference = np.array([board["difference"].to_numpy() for board in aligned]).T
    at = np.argwhere(np.array([board["more_than_chance"].to_numpy() for board in aligned]).T)
    names = [f"{board['segment'][0]} ({board['people'][0]})" for board in shown]
    with rc_context({"svg.hashsalt": "predilect", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a box; segments.csv has the name
        figure = Figure(figsize=(3.5 + 0.3 * len(shown), 2.0 + 0.22 * len(items)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        most = float(np.abs(difference).max(initial=0.0)) or 1.0
        image = axes.imshow(difference, cmap="RdBu", vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
        axes.scatter(at[:, 1], at[:, 0], s=12, c="black", edgecolors="white", linewidths=0.5)
        for number in range(1, len(shown)):  # a line between two columns of segments
            if shown[number]["column"][0] != shown[number - 1]["column"][0]:
                axes.axvline(number - 0.5, color="0.3", linewidth=1.0)
        axes.set_yticks(range(len(items)), [_name(item) for item in items], fontsize=7.5, parse_math=False)
        axes.set_xticks(range(len(shown)), [_name(name) for name in names], fontsize=7.5, rotation=90, parse_math=False)
        axes.tick_params(length=0)
        axes.set_xlabel("segment (people); a dot: more than chance", fontsize=8.5)
        figure.colorbar(image, ax=axes, fraction=0.05).set_label(f"score less the crowd's ({scale.unit})", fontsize=8.5)
        for path in paths:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
            figure.set_layout_engine("none")


def _name(value: str) -> str:
    return shortened(one_line(value), _LONGEST_NAME)
