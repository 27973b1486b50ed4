"""What sections are made of, as data: paragraphs (plain text), headings, lists, tables and charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from predilect.show.charts.chart import Chart


class Heading(NamedTuple):
    """A heading within a section."""

    said: str


class List(NamedTuple):
    """Sentences below each other, with numbers if ``ordered``."""

    lines: Sequence[str]
    ordered: bool = False


class Figure(NamedTuple):
    """A chart, and what stands below it."""

    chart: Chart
    caption: str


class Column(NamedTuple):
    """A column of a table: its head, and its cell out of a record.

    ``kind``: text and names stand left, names of items and people are isolated, and cut where there is no room; ``by``:
    how the page sorts the column first, by "up", "down" or as "text"; ``folded``: how a phone, which has no room for
    the column, says its cell below the name.
    """

    head: str
    cell: Callable[[Any], Any]
    kind: Literal["number", "text", "name"] = "number"
    by: str = ""
    folded: str = ""


@dataclass(frozen=True)
class Table:
    """Records in columns; a line parts records of two ``group``s; ``summary``: what a folded table is called."""

    caption: str
    columns: Sequence[Column]
    records: Sequence[Any]
    group: Callable[[Any], Any] | None = None
    summary: str = ""

    @property
    def rows(self) -> list[list[str]]:
        """The cells."""
        return [[str(column.cell(record)) for column in self.columns] for record in self.records]


Part = str | Heading | List | Figure | Table


class Section(NamedTuple):
    """A section: its name in links, its heading, and what it says."""

    key: str
    head: str
    parts: list[Part]
