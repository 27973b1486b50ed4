"""Charts as inline SVG, with text of any script.

A chart is one ``<svg>`` with a title and a description for those who do not see it. Its colours are the properties of
``chart.css``, light and dark; what a colour says is also said by a number, a sign, a label or the shape of a mark.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple, assert_never

import numpy as np

from predilect._base.text import shortened
from predilect._base.types import FloatArray
from predilect.show.charts.chart import MANY, Chart, Field, Grid, Panels, Plane, Whiskers, name_of


class Room(NamedTuple):
    """What a drawing may take in width, in units of which text is 12 high: the longest texts, the least for marks."""

    width: float
    label: float
    group: float
    marks: float


WIDE, PHONE = Room(640.0, 320.0, 130.0, 340.0), Room(340.0, 110.0, 52.0, 142.0)
_SIZE, _ROW = 12.0, 19.0
_HEADING = ".chart .h{font-size:15px;font-weight:600}"
_SHADES, _DARKEST = 8, 0.5  # darker cells would hide their numbers
Drawn = tuple[float, float, list[str]]  # width, height, and what is on it


@cache
def style() -> str:
    """The style sheet of all charts."""
    return (files("predilect.show.charts") / "chart.css").read_text(encoding="utf-8")


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


def mark(x: float, y: float, group: int, sentence: str = "", size: float = 4.0) -> str:
    """A mark whose shape and fill say the group: disc, square, triangle, ring, hollow square, hollow triangle."""
    shape, s = group % 3, size
    if shape == 0:
        drawn = f'circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(s)}"'
    elif shape == 1:
        drawn = f'path d="M{_n(x - s)} {_n(y - s)}h{_n(2 * s)}v{_n(2 * s)}h{_n(-2 * s)}z"'
    else:
        drawn = f'path d="M{_n(x)} {_n(y - 1.2 * s)}l{_n(1.2 * s)} {_n(2.1 * s)}h{_n(-2.4 * s)}z"'
    kind = ("dot", "g1", "g2", "g3", "g4", "g5")[group % 6]
    inside = f"><title>{escape(sentence)}</title></{drawn.split()[0]}>" if sentence else "/>"
    return f'<{drawn} class="{kind}"{inside}'


def drawing(chart: Chart, width: float, height: float, parts: Sequence[str]) -> str:
    """The whole picture; its colours are those of :func:`style`, in an element of class "predilect"."""
    title, notes = name_of(chart.title), name_of(chart.notes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" style="max-width:{_n(width)}px;min-width:{_n(0.75 * width)}px">'
        f"<title>{escape(title)}</title><desc>{escape(notes)}</desc>{''.join(parts)}</svg>"
    )


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers from ``low`` to ``high``."""
    span = max(high - low, 1e-12)
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * k for k in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0) if span / (power * k) <= most)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def svg(chart: Chart, room: Room = WIDE) -> str:
    """The chart as an ``<svg>``."""
    if chart.is_empty:
        return drawing(chart, room.width, 40.0, [text(12, 25, "Nothing to show.", "s")])
    return drawing(chart, *_drawn(chart, room))


def standing_alone(chart: Chart, heading: str = "", foot: str = "", room: Room = WIDE) -> str:
    """The chart as a file: with its colours, a size of its own, and a line above and below it where they are given."""
    drawn = svg(chart, room)
    found = re.match(r'(<svg [^>]*)class="chart"([^>]*) viewBox="0 0 (\S+) (\S+)" style="[^"]*">', drawn)
    assert found is not None
    before, after, width, height = found.groups()
    above, below = 34.0 * bool(heading), 26.0 * bool(foot)
    tall = _n(float(height) + above + below)
    size = f'width="{width}" height="{tall}" viewBox="0 0 {width} {tall}"'
    own = f"{style()}svg.chart{{width:{width}px;height:{tall}px}}" + _HEADING * bool(heading)
    inside = drawn[found.end() : -len("</svg>")]
    if heading or foot:
        edge = float(width) - 24.0
        inside = (
            f'{text(12.0, 22.0, heading, "h", edge)}<g transform="translate(0 {_n(above)})">{inside}</g>'
            f"{text(12.0, float(tall) - 9.0, foot, 's', edge)}"
        )
    return f'{before}class="chart predilect"{after} {size}><style>{own}</style>{inside}</svg>\n'


def _drawn(chart: Chart, room: Room) -> Drawn:
    match chart.data:
        case Whiskers() as data:
            return _intervals(data, chart.axes, room)
        case Grid() as data:
            return _grid(data, chart.axes, room)
        case Plane() as data:
            return _plane(data, chart.axes, room)
        case Panels() as data:
            return _panels(data, chart.axes, room)
        case _:
            assert_never(chart.data)


def _panels(data: Panels, axes: tuple[str, str], room: Room) -> Drawn:
    parts, y, right = [], 0.0, 0.0
    for row in data.rows:
        x, below = 0.0, y
        for chart in row:
            width, height, inside = _drawn(chart, room)
            parts.append(text(x + 60.0, y + 14.0, chart.title))
            parts.append(f'<g transform="translate({_n(x)} {_n(y + 14.0)})">{"".join(inside)}</g>')
            x, below = x + width, max(below, y + height + 20.0)
        y, right = below, max(right, x)
    return right, y, parts


def _intervals(data: Whiskers, axes: tuple[str, str], room: Room) -> Drawn:
    rows = data.rows
    left = min(max(width_of(row.label) for row in rows), room.label) + 22.0
    beside = 14.0 + min(max(width_of(row.group, 11.0) for row in rows), room.group)
    width = max(room.width, left + room.marks + beside)
    right = width - beside
    low, high = min(0.0, *(row.lower for row in rows)), max(0.0, *(row.upper for row in rows))
    edge = 0.03 * (high - low) or 1.0
    low, high = low - edge, high + edge
    bottom = 8.0 + _ROW * len(rows)

    def at(value: float) -> float:
        return left + (right - left) * (value - low) / (high - low)

    parts: list[str] = []
    for number, (group, places) in enumerate(groupby(range(len(rows)), key=lambda k: rows[k].group)):
        own = list(places)
        top, tall = 8.0 + _ROW * own[0], _ROW * len(own)
        if group and number % 2 == 0:
            parts.append(f'<path class="band" d="M0 {_n(top)}h{_n(width)}v{_n(tall)}h{_n(-width)}z"/>')
        if group:
            parts.append(text(width - 6.0, top + tall / 2.0 + 4.0, group, "s e", room.group))
    for value in ticks(low, high, min(7, int((right - left) // 34.0))):
        parts.append(line("grid", (at(value), 8.0), (at(value), bottom)))
        parts.append(text(at(value), bottom + 15.0, f"{round(value, 9) + 0.0:g}", "s m"))
    parts.append(line("zero", (at(0.0), 8.0), (at(0.0), bottom)))
    for number, row in enumerate(rows):
        y = 8.0 + _ROW * (number + 0.5)
        parts.append(
            f"<g><title>{escape(row.sentence)}</title>{text(left - 12.0, y + 4.0, row.label, 'e', left - 14.0)}"
            f"{line('whisker', (at(row.lower), y), (at(row.upper), y))}{mark(at(row.mean), y, 0)}</g>"
        )
    middle = min((left + right) / 2.0, width - 6.0 - width_of(axes[0], 11.0) / 2.0)
    parts.append(text(max(middle, width / 2.0), bottom + 32.0, axes[0], "s m", width))
    return width, bottom + 40.0, parts


def _grid(data: Grid, axes: tuple[str, str], room: Room) -> Drawn:
    rows, columns, said = data.rows, data.columns, data.said
    wide = max(18.0, 9.0 + 5.2 * max(len(one) for line_ in said for one in line_))
    left = min(max(width_of(row) for row in rows), max(room.label, room.width - wide * len(columns))) + 12.0
    upright = max(width_of(column, 11.0) for column in columns) > wide
    head = 30.0 + (min(max(width_of(column, 11.0) for column in columns), room.label) if upright else 8.0)
    tall = _ROW - 1.0
    parts = [text(left, 13.0, axes[0], "s")]
    for k, column in enumerate(columns):
        x = left + wide * (k + 0.5)
        if upright:
            parts.append(text(x + 4.0, head - 6.0, column, "s", room.label, _upright(x + 4.0, head - 6.0)))
        else:
            parts.append(text(x, head - 6.0, column, "s m"))
    shade = np.where(np.isnan(data.shade), 0.0, data.shade)
    edges = [left + wide * k for k in range(len(columns) + 1)], [head + tall * j for j in range(len(rows) + 1)]
    parts += _cells(shade, *edges)
    for j, row in enumerate(rows):
        y = head + tall * (j + 0.5) + 3.5
        parts.append(text(left - 6.0, y, row, "e", left - 10.0))
        numbers = "".join(
            f'<tspan x="{_n(left + wide * (k + 0.5))}">{escape(one)}</tspan>' for k, one in enumerate(said[j]) if one
        )
        parts.append(f'<text class="c" y="{_n(y)}">{numbers}</text>')
    right = left + max(wide * len(columns), width_of(axes[0], 11.0))
    return right + 6.0, head + tall * len(rows) + 8.0, parts


def _cells(shade: FloatArray, x: Sequence[float], y: Sequence[float]) -> list[str]:
    """Cells between edges x (n + 1,) and y (m + 1,), as dark as ``shade`` (m, n) from -1 to 1 says; equal ones join."""
    level = np.clip(np.rint(_SHADES * shade), -_SHADES, _SHADES).astype(int)
    paths: dict[int, str] = {}
    for j, row in enumerate(level.tolist()):
        tall = y[j + 1] - y[j]
        for value, run in groupby(range(len(row)), key=row.__getitem__):
            first, *_, last = [*run] * 2
            wide = x[last + 1] - x[first]
            paths[value] = f"{paths.get(value, '')}M{_n(x[first])} {_n(y[j])}h{_n(wide)}v{_n(tall)}h{_n(-wide)}z"
    return [
        f'<path class="{"cell" if value > 0 else "minus"}" fill-opacity="{_DARKEST * abs(value) / _SHADES:.2f}" '
        f'd="{path}"/>'
        for value, path in sorted(paths.items())
        if value
    ]


def _shaded(field: Field, at: Callable[[float, float], tuple[float, float]]) -> list[str]:
    middle = 0.5 * (field.low + field.high) if field.both_ways else field.low
    x, y = (
        np.concatenate([values[:1], 0.5 * (values[1:] + values[:-1]), values[-1:]]) for values in (field.x, field.y)
    )
    across, up = [at(one, 0.0)[0] for one in x], [at(0.0, one)[1] for one in y]
    return _cells((field.value - middle) / ((field.high - middle) or 1.0), across, up)


def _plane(data: Plane, axes: tuple[str, str], room: Room) -> Drawn:
    left, top = 60.0, 12.0
    names = [one.name for one in data.series if one.name]
    key = 42.0 + min(max(map(width_of, names)), room.label) if names else 30.0
    side = 340.0 if data.shares else 400.0
    wide, tall = (side, side) if data.square else (max(room.width - left - key, min(300.0, room.marks)), 260.0)
    wide, tall = (wide, tall) if data.field is None else (260.0, 220.0)
    (x_low, x_high), (y_low, y_high) = data.x, data.y

    def at(x: float, y: float) -> tuple[float, float]:
        return left + wide * (x - x_low) / (x_high - x_low), top + tall * (y_high - y) / (y_high - y_low)

    def said(value: float) -> str:
        return f"{100 * value:.0f} %" if data.shares else f"{round(value, 9) + 0.0:g}"

    def kind(value: float) -> str:
        return "zero" if data.square and not data.shares and abs(value) < 1e-9 else "grid"

    parts = [] if data.field is None else _shaded(data.field, at)
    across, up = ({value: said(value) for value in ticks(*reach)} for reach in (data.x, data.y))
    for value, name in (data.names[0] or across).items():
        parts.append(line(kind(value), at(value, y_low), at(value, y_high)))
        parts.append(text(at(value, y_low)[0], top + tall + 15.0, name, "s m"))
    for value, name in (data.names[1] or up).items():
        parts.append(line(kind(value), at(x_low, value), at(x_high, value)))
        parts.append(text(left - 6.0, at(x_low, value)[1] + 4.0, name, "s e", left - 20.0))
    if data.shares:
        parts.append(line("dash", at(0, 0), at(1, 1)))
    beside = 0
    for number, one in enumerate(data.series):
        if one.line and len(one.x):
            parts.append(line("dash" if number % 2 else "whisker", *map(at, one.x, one.y)))
            parts += [line("dash", *map(at, one.x, bound)) for bound in (one.lower, one.upper) if bound is not None]
        elif one.lower is not None and one.upper is not None:
            parts += [
                line("whisker", at(x, low), at(x, high))
                for x, low, high in zip(one.x, one.lower, one.upper, strict=True)
            ]
        parts += [
            mark(*at(x, y), number, sentence, 1.5 if len(one.x) > MANY else 4.0)
            for x, y, sentence in zip(one.x, one.y, one.sentence, strict=not one.line)
            if x_low <= x <= x_high and y_low <= y <= y_high
        ]
        if one.name:
            y = top + 12.0 + _ROW * beside
            beside += 1
            parts.append(mark(left + wide + 20.0, y - 4.0, number))
            parts.append(text(left + wide + 32.0, y, one.name, "", room.label))
    width, middle = left + wide + key, top + tall / 2.0
    widest = 2.0 * min(left + wide / 2.0, width - left - wide / 2.0)
    parts.append(text(left + wide / 2.0, top + tall + 33.0, axes[0], "s m", widest))
    parts.append(text(14.0, middle, axes[1], "s m", tall, _upright(14.0, middle)))
    return width, top + max(tall, _ROW * beside) + 44.0, parts


def _upright(x: float, y: float) -> str:
    return f' transform="rotate(-90 {_n(x)} {_n(y)})"'


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
