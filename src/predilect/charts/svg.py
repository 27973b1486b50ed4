"""Pieces of SVG: text of any script, axes, and the kinds of picture that every chart is one of.

A chart is one ``<svg>`` with a title and a description for those who do not see it. Its colours are the properties of
``chart.css``, light and dark; what a colour says is also said by a number, a sign, a label or the shape of a mark.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from predilect._text import one_line, printable, shortened
from predilect._types import FloatArray

WIDTH = 640.0
_LONGEST_LABEL, _SIZE, _ROW = 190.0, 12.0, 19.0
_SHADES, _DARKEST = 8, 0.5  # darker cells would hide their numbers


@cache
def style() -> str:
    """The style sheet of all charts."""
    return (files("predilect.charts") / "chart.css").read_text(encoding="utf-8")


def name_of(value: Any) -> str:
    """An id on one line; of nothing but what cannot be seen, its escapes."""
    return one_line(value) or printable(str(value)) or "(no name)"


def isolated(name: str) -> str:
    """A name in a longer label, which keeps its own direction of writing where it is not from left to right."""
    turned = any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in name)
    return f"\u2068{name}\u2069" if turned else name


def width_of(text: str, size: float = _SIZE) -> float:
    """Estimated width of a text: an East Asian character or an emoji is a square, a combining mark is nothing."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    nothing = sum(unicodedata.combining(c) > 0 or unicodedata.category(c) == "Cf" for c in text)
    capital = sum(c.isupper() for c in text)
    return size * (1.0 * wide + 0.56 * (len(text) - wide - nothing) + 0.1 * capital)


def fitted(text: str, widest: float, size: float = _SIZE) -> str:
    """Text that is at most so wide; the middle gives way."""
    n = len(text)
    while n > 1 and width_of(shortened(text, n), size) > widest:
        n -= max(1, (n - 8) // 8)
    return shortened(text, n)


def text(x: float, y: float, said: str, kind: str = "", widest: float = math.inf, more: str = "") -> str:
    """A line of text; one that is cut keeps the whole in a title."""
    short = said if math.isinf(widest) else fitted(said, widest)
    whole = f"<title>{escape(said)}</title>" if short != said else ""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{_n(x)}" y="{_n(y)}"{named}{more}>{whole}{escape(short)}</text>'


def line(kind: str, *points: tuple[float, float]) -> str:
    """A line through points."""
    return f'<path class="{kind}" d="M{"L".join(f"{_n(x)} {_n(y)}" for x, y in points)}"/>'


def mark(x: float, y: float, group: int, told: str = "", size: float = 4.0) -> str:
    """A mark whose shape and fill say the group: disc, square, triangle, ring, hollow square, hollow triangle."""
    shape, s = group % 3, size
    if shape == 0:
        drawn = f'circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(s)}"'
    elif shape == 1:
        drawn = f'path d="M{_n(x - s)} {_n(y - s)}h{_n(2 * s)}v{_n(2 * s)}h{_n(-2 * s)}z"'
    else:
        drawn = f'path d="M{_n(x)} {_n(y - 1.2 * s)}l{_n(1.2 * s)} {_n(2.1 * s)}h{_n(-2.4 * s)}z"'
    kind = ("dot", "g1", "g2", "g3", "g4", "g5")[group % 6]
    inside = f"><title>{escape(told)}</title></{drawn.split()[0]}>" if told else "/>"
    return f'<{drawn} class="{kind}"{inside}'


def drawing(title: str, told: str, width: float, height: float, parts: Sequence[str]) -> str:
    """The whole picture; its colours are those of :func:`style`, in an element of class "predilect"."""
    title, told = name_of(title), name_of(told)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" style="max-width:{_n(width)}px">'
        f"<title>{escape(title)}</title><desc>{escape(told)}</desc>{''.join(parts)}</svg>"
    )


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers from ``low`` to ``high``."""
    span = max(high - low, 1e-12)
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * k for k in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0) if span / (power * k) <= most)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


class Row(NamedTuple):
    """A mark with an interval: in ``told`` all of it in words; rows of one ``group`` stand together."""

    label: str
    mean: float
    lower: float
    upper: float
    told: str
    group: str = ""


def intervals(rows: Sequence[Row], title: str, told: str, axis: str) -> str:
    """Marks with whiskers below each other; groups of rows have bands and their name beside them."""
    if not rows:
        return drawing(title, told, WIDTH, 40.0, [text(12, 25, "Nothing to show.", "s")])
    left = min(max(width_of(row.label) for row in rows), _LONGEST_LABEL) + 22.0
    right = WIDTH - 14.0 - max(width_of(row.group, 11.0) for row in rows)
    low, high = min(0.0, *(row.lower for row in rows)), max(0.0, *(row.upper for row in rows))
    room = 0.03 * (high - low) or 1.0
    low, high = low - room, high + room
    bottom = 8.0 + _ROW * len(rows)

    def at(value: float) -> float:
        return left + (right - left) * (value - low) / (high - low)

    parts: list[str] = []
    for number, (group, places) in enumerate(groupby(range(len(rows)), key=lambda k: rows[k].group)):
        own = list(places)
        top, tall = 8.0 + _ROW * own[0], _ROW * len(own)
        if group and number % 2 == 0:
            parts.append(f'<path class="band" d="M0 {_n(top)}h{_n(WIDTH)}v{_n(tall)}h{_n(-WIDTH)}z"/>')
        if group:
            parts.append(text(WIDTH - 6.0, top + tall / 2.0 + 4.0, group, "s e"))
    for value in ticks(low, high):
        parts.append(line("grid", (at(value), 8.0), (at(value), bottom)))
        parts.append(text(at(value), bottom + 15.0, f"{round(value, 9) + 0.0:g}", "s m"))
    parts.append(line("zero", (at(0.0), 8.0), (at(0.0), bottom)))
    for number, row in enumerate(rows):
        y = 8.0 + _ROW * (number + 0.5)
        parts.append(
            f"<g><title>{escape(row.told)}</title>{text(left - 12.0, y + 4.0, row.label, 'e', left - 14.0)}"
            f"{line('whisker', (at(row.lower), y), (at(row.upper), y))}{mark(at(row.mean), y, 0)}</g>"
        )
    parts.append(text((left + right) / 2.0, bottom + 32.0, axis, "s m"))
    return drawing(title, told, WIDTH, bottom + 40.0, parts)


def grid(
    rows: Sequence[str],
    columns: Sequence[str],
    shade: FloatArray,
    said: Sequence[Sequence[str]],
    title: str,
    told: str,
    axis: str,
) -> str:
    """A table of cells with numbers; ``shade`` (rows, columns) from -1 to 1, NaN for none, is how dark they are.

    What is below 0 has another colour, so its number must have a sign.
    """
    if not rows or not columns:
        return drawing(title, told, WIDTH, 40.0, [text(12, 25, "Nothing to show.", "s")])
    wide = max(18.0, 9.0 + 5.2 * max((len(one) for line_ in said for one in line_), default=0))
    left = min(max(width_of(row) for row in rows), _LONGEST_LABEL) + 12.0
    upright = max(width_of(column, 11.0) for column in columns) > wide
    head = 30.0 + (min(max(width_of(column, 11.0) for column in columns), 150.0) if upright else 8.0)
    tall = _ROW - 1.0
    parts = [text(left, 13.0, axis, "s")]
    for k, column in enumerate(columns):
        x = left + wide * (k + 0.5)
        if upright:
            parts.append(text(x + 4.0, head - 6.0, column, "s", 150.0, _upright(x + 4.0, head - 6.0)))
        else:
            parts.append(text(x, head - 6.0, column, "s m"))
    level = np.where(np.isnan(shade), 0.0, np.clip(np.rint(_SHADES * shade), -_SHADES, _SHADES)).astype(int)
    for value in np.unique(level[level != 0]).tolist():
        cells = "".join(
            f"M{_n(left + wide * k)} {_n(head + tall * j)}h{_n(wide)}v{_n(tall)}h{_n(-wide)}z"
            for j, k in np.argwhere(level == value).tolist()
        )
        kind = "cell" if value > 0 else "minus"
        parts.append(f'<path class="{kind}" fill-opacity="{_DARKEST * abs(value) / _SHADES:.2f}" d="{cells}"/>')
    for j, row in enumerate(rows):
        y = head + tall * (j + 0.5) + 3.5
        parts.append(text(left - 6.0, y, row, "e", left - 10.0))
        numbers = "".join(
            f'<tspan x="{_n(left + wide * (k + 0.5))}">{escape(one)}</tspan>' for k, one in enumerate(said[j]) if one
        )
        parts.append(f'<text class="c" y="{_n(y)}">{numbers}</text>')
    right = left + max(wide * len(columns), width_of(axis, 11.0))
    return drawing(title, told, right + 6.0, head + tall * len(rows) + 8.0, parts)


class Point(NamedTuple):
    """A mark of a group at a place, with ``told`` in words."""

    x: float
    y: float
    group: int
    told: str


def scatter(points: Sequence[Point], groups: Sequence[str], title: str, told: str, axes: tuple[str, str]) -> str:
    """Marks in the plane, both axes in one unit, with a key where there are groups."""
    side, left, top = 420.0, 54.0, 12.0
    reach = max((max(abs(one.x), abs(one.y)) for one in points), default=0.0) * 1.06 or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        return left + side * (x + reach) / (2.0 * reach), top + side * (reach - y) / (2.0 * reach)

    parts = []
    for value in ticks(-reach, reach, 6):
        kind = "zero" if abs(value) < 1e-9 else "grid"
        parts.append(line(kind, at(value, -reach), at(value, reach)) + line(kind, at(-reach, value), at(reach, value)))
        said = f"{round(value, 9) + 0.0:g}"
        parts.append(text(at(value, 0)[0], top + side + 15.0, said, "s m"))
        parts.append(text(left - 6.0, at(0, value)[1] + 4.0, said, "s e"))
    parts += [mark(*at(one.x, one.y), one.group, one.told) for one in points]
    parts.append(text(left + side / 2.0, top + side + 33.0, axes[0], "s m", 640.0))
    middle = top + side / 2.0
    parts.append(text(14.0, middle, axes[1], "s m", side, _upright(14.0, middle)))
    for number, group in enumerate(groups):
        y = top + 12.0 + _ROW * number
        parts.append(mark(left + side + 24.0, y - 4.0, number))
        parts.append(text(left + side + 36.0, y, group, "", WIDTH - left - side - 40.0))
    return drawing(title, told, WIDTH if groups else left + side + 60.0, top + side + 44.0, parts)


def against(
    points: Sequence[tuple[float, float, float, float, str]], title: str, told: str, axes: tuple[str, str]
) -> str:
    """Shares that came out, with intervals, against the probabilities that were given: x, y, lower, upper, words."""
    side, left, top = 380.0, 54.0, 12.0

    def at(x: float, y: float) -> tuple[float, float]:
        return left + side * x, top + side * (1.0 - y)

    parts = []
    for value in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        parts.append(line("grid", at(value, 0), at(value, 1)) + line("grid", at(0, value), at(1, value)))
        said = f"{100 * value:.0f} %"
        parts.append(text(at(value, 0)[0], top + side + 15.0, said, "s m"))
        parts.append(text(left - 6.0, at(0, value)[1] + 4.0, said, "s e"))
    parts.append(line("dash", at(0, 0), at(1, 1)))
    for x, y, lower, upper, words in points:
        parts.append(
            f"<g><title>{escape(words)}</title>{line('whisker', at(x, lower), at(x, upper))}{mark(*at(x, y), 0)}</g>"
        )
    parts.append(text(left + side / 2.0, top + side + 33.0, axes[0], "s m"))
    middle = top + side / 2.0
    parts.append(text(14.0, middle, axes[1], "s m", side, _upright(14.0, middle)))
    return drawing(title, told, left + side + 30.0, top + side + 44.0, parts)


def curves(series: Mapping[str, Sequence[tuple[float, float]]], title: str, told: str, axes: tuple[str, str]) -> str:
    """Lines through marks, each with its name at its end; the axis across begins at 0, the other where the lines do."""
    if not any(series.values()):
        return drawing(title, told, WIDTH, 40.0, [text(12, 25, "Nothing to show.", "s")])
    left, top, tall = 64.0, 12.0, 260.0
    wide = WIDTH - left - 24.0 - min(max(map(width_of, series)), _LONGEST_LABEL)
    points = np.array([point for one in series.values() for point in one], dtype=float)
    furthest, (low, high) = points[:, 0].max() or 1.0, (points[:, 1].min(), points[:, 1].max())
    room = 0.08 * (high - low) or 1.0
    low, high = low - room, high + room

    def at(x: float, y: float) -> tuple[float, float]:
        return left + wide * x / furthest, top + tall * (high - y) / (high - low)

    parts = []
    for value in ticks(0.0, furthest):
        parts.append(line("grid", at(value, low), at(value, high)))
        parts.append(text(at(value, low)[0], top + tall + 15.0, f"{round(value, 9):g}", "s m"))
    for value in ticks(low, high):
        parts.append(line("grid", at(0.0, value), at(furthest, value)))
        parts.append(text(left - 6.0, at(0.0, value)[1] + 4.0, f"{round(value, 9) + 0.0:g}", "s e"))
    ends = sorted((at(*one[-1])[1], number) for number, one in enumerate(series.values()) if one)
    beside: dict[int, float] = {}
    for y, number in ends:  # names do not stand on each other
        beside[number] = max([y, *(other + _ROW for other in beside.values())])
    for number, (name, one) in enumerate(series.items()):
        if one:
            parts.append(line("whisker" if number % 2 == 0 else "dash", *(at(*point) for point in one)))
            parts += [mark(*at(x, y), number, f"{name}: {y:.4g} at {x:.4g}") for x, y in one]
            parts.append(text(left + wide + 12.0, beside[number] + 4.0, name, "", _LONGEST_LABEL))
    parts.append(text(left + wide / 2.0, top + tall + 33.0, axes[0], "s m"))
    parts.append(text(14.0, top + tall / 2.0, axes[1], "s m", tall, _upright(14.0, top + tall / 2.0)))
    return drawing(title, told, WIDTH, top + tall + 44.0, parts)


def _upright(x: float, y: float) -> str:
    return f' transform="rotate(-90 {_n(x)} {_n(y)})"'


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
