"""A report, its sections and their parts as Markdown, and for a terminal. A chart is said in its own words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl
from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table as Lines
from rich.text import Text

from predilect._base.text import one_line, shortened
from predilect.show.charts.chart import name_of
from predilect.show.report.parts import Column, Figure, Heading, List, Part, Section, Table
from predilect.show.report.sections import Contents

_SHORTEST_NAME, _LONGEST_NAME = 8, 48


def document(contents: Contents) -> str:
    """The whole report as Markdown."""
    head = f"# {_escaped(contents.title)}\n\n{_escaped(contents.in_short)}\n\n"
    return head + "\n".join(f"## {head}\n\n{markdown(parts)}" for _, head, parts in contents.sections)


def markdown(parts: Iterable[Part]) -> str:
    """Parts as Markdown, with a blank line between two."""
    return "\n".join(map(_as_markdown, parts))


def _as_markdown(part: Part) -> str:
    match part:
        case str():
            return f"{_escaped(part)}\n"
        case Heading(said):
            return f"### {said}\n"
        case List(lines, ordered):
            return "".join(f"{'1.' if ordered else '-'} {_escaped(line)}\n" for line in lines)
        case Figure(chart, caption):
            return f"*{_escaped(chart.title)}.* {_escaped(chart.notes)} {_escaped(caption)}\n"
        case Table(columns=columns, rows=rows):
            caption = f"{_escaped(part.caption)}\n\n" if part.caption else ""
            numbers = [column.kind == "number" for column in columns]
            return caption + _lines([column.head for column in columns], numbers, rows)


def table_as_markdown(table: pl.DataFrame) -> str:
    """Any table; empty cells are empty."""
    rows = ([f"{one:.4g}" if isinstance(one, float) else one for one in row] for row in table.iter_rows())
    return _lines(table.columns, [dtype.is_numeric() for dtype in table.dtypes], rows)


def _lines(heads: Iterable[str], is_number: Iterable[bool], rows: Iterable[Iterable[Any]]) -> str:
    """Lines of a table; numbers stand to the right."""
    sides = "|".join("---:" if right else ":---" for right in is_number)
    cells = (["" if one is None or one == "" else _escaped(one) for one in row] for row in (heads, *rows))
    head, *lines = (f"| {' | '.join(row)} |\n" for row in cells)
    return f"{head}|{sides}|\n{''.join(lines)}"


def _escaped(value: object) -> str:
    """A text that Markdown, and HTML within it, show as it is; no sentence of ours needs more than these."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&]|^[+-](?= ))", r"\\\1", name_of(value))


def terminal(part: Part | Section, width: int) -> RenderableType:
    """A part or a section for a terminal of so many columns."""
    match part:
        case str():
            return Text(one_line(part))
        case Heading(said):
            return Text(said, style="bold")
        case List(lines, ordered):
            return Text("\n".join(f"{f'{k}.' if ordered else '-'} {one_line(line)}" for k, line in enumerate(lines, 1)))
        case Figure(chart, caption):
            return Text(one_line(f"{chart.title}. {chart.notes} {caption}"))
        case Table(columns=columns, rows=rows):
            return _table(columns, rows, width)
        case Section(_, head, parts):
            return Group(Text(head, style="bold"), *(terminal(one, width) for one in _captioned(parts)))


def _captioned(parts: Iterable[Part]) -> Iterator[Part]:
    """Parts with what tables are called above them, as a terminal, which prints no caption, needs it."""
    for part in parts:
        if isinstance(part, Table):
            yield part.caption
        yield part


def _table(columns: Iterable[Column], rows: list[list[str]], width: int) -> Lines:
    """A table in which numbers are whole, and text and names give way, the longest most."""
    columns = list(columns)
    rows = [[one_line(cell) for cell in cells] for cells in rows]
    widths = [max(map(cell_len, (column.head, *(row[k] for row in rows)))) for k, column in enumerate(columns)]
    giving = [k for k, column in enumerate(columns) if column.kind != "number"]
    left = width - 2 * len(columns) - sum(size for k, size in enumerate(widths) if k not in giving)
    for n, k in enumerate(sorted(giving, key=widths.__getitem__)):
        widths[k] = min(widths[k], max(_SHORTEST_NAME, min(left // (len(giving) - n), _LONGEST_NAME)))
        left -= widths[k]
    table = Lines(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column, size in zip(columns, widths, strict=True):
        side: Any = "right" if column.kind == "number" else "left"
        table.add_column(Text(column.head), justify=side, no_wrap=True, overflow="ellipsis", width=size)
    for row in rows:
        table.add_row(*(Text(shortened(cell, size)) for cell, size in zip(row, widths, strict=True)))
    return table
