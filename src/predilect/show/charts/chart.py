"""A chart as data: what is drawn, what it is called, and what it says in words. ``svg`` and ``on_axes`` draw it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from predilect._base.text import one_line, printable
from predilect._base.types import FloatArray

MANY = 300  # marks of one look, from which on they are small
ISOLATED = "\u2068\u2069"  # around a name that keeps its own direction of writing


def name_of(value: Any) -> str:
    """An id on one line; of nothing but what cannot be seen, its escapes."""
    return one_line(value) or printable(str(value)) or "(no name)"


def isolated(value: Any) -> str:
    """A name for a longer label, in which it keeps its direction of writing where that is not from left to right."""
    name = name_of(value)
    turned = any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in name)
    return f"{ISOLATED[0]}{name}{ISOLATED[1]}" if turned else name


class Row(NamedTuple):
    """A mark with an interval: in ``told`` all of it in words; rows of one ``group`` stand together."""

    label: str
    mean: float
    lower: float
    upper: float
    sentence: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Whiskers:
    """Marks with whiskers below each other; groups of rows have bands and their name beside them."""

    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of cells with numbers; ``shade`` (rows, columns) from -1 to 1, NaN for none, is how dark they are.

    What is below 0 has another colour, so its number must have a sign.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    shade: FloatArray
    said: Sequence[Sequence[str]]


class Series(NamedTuple):
    """Marks of one look, or the line through them if ``line``; each mark is said in ``told``, of a line if it has any.

    ``lower`` and ``upper``: intervals up and down, of a line a band.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    sentence: Sequence[str]
    lower: Sequence[float] | None = None
    upper: Sequence[float] | None = None
    line: bool = False


class Field(NamedTuple):
    """Values on a grid, ``value`` (n_y, n_x), shaded from ``low`` to ``high``, or from the middle of these both ways.

    ``edge``: values that are 0 along a line that is drawn; ``said``: what a shade means.
    """

    x: FloatArray
    y: FloatArray
    value: FloatArray
    low: float
    high: float
    said: str
    both_ways: bool = True
    edge: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class Plane:
    """Marks and lines in the plane, over a field if there is one, with a key where series have names.

    ``x`` and ``y``: what the axes reach from and to; ``square``: both have one unit; ``shares``: they are shares, from
    0 to 1, and a dashed line says where both are the same; ``names``: of places on the axes that are no numbers.
    """

    series: Sequence[Series]
    x: tuple[float, float]
    y: tuple[float, float]
    square: bool = False
    shares: bool = False
    field: Field | None = None
    names: tuple[Mapping[float, str] | None, Mapping[float, str] | None] = (None, None)


@dataclass(frozen=True, slots=True)
class Panels:
    """Charts of planes in rows; those of a column have a title and a scale of shades in common."""

    rows: Sequence[Sequence[Chart]]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its kind is the class of ``data``; ``notes`` say it in words, for those who do not see it.

    ``axes``: what is across, and what is up.
    """

    data: Whiskers | Grid | Plane | Panels
    title: str
    notes: str
    axes: tuple[str, str] = ("", "")

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        match self.data:
            case Whiskers(rows):
                return not rows
            case Grid(rows, columns):
                return not rows or not columns
            case Plane(series, field=field):
                return field is None and not any(len(one.x) for one in series)
            case Panels(rows):
                return not any(rows)
