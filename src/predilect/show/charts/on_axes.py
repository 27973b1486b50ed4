"""Charts on Matplotlib axes, and in files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, assert_never

import numpy as np

from predilect._base.text import one_line, shortened
from predilect.show.charts.chart import ISOLATED, MANY, Chart, Field, Grid, Panels, Plane, Whiskers

_LONGEST = 70  # characters of a label
_MARKS = ("o", "s", "^", "D", "v", "x")
_BARE = str.maketrans("", "", ISOLATED)  # fonts have no such letters


def can_plot() -> bool:
    """Whether Matplotlib, the extra ``plots``, is installed."""
    return find_spec("matplotlib") is not None


def new_figure(width: float, height: float) -> Any:
    """A figure that opens no window; sizes in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def write_figure(figure: Any, paths: Iterable[Path]) -> None:
    """Write a figure into files, by their suffix; the same figure gives the same bytes."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "predilect", "svg.fonttype": "none"}), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box; the table beside the picture has the name.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        for path in paths:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
            figure.set_layout_engine("none")  # the first drawing has arranged everything


def write_chart(chart: Chart, paths: Iterable[Path], title: str) -> None:
    """Draw a chart into files, by their suffix."""
    write_figure(figure_of(chart, title), paths)


def figure_of(chart: Chart, title: str = "") -> Any:
    """A figure of a chart."""
    figure = new_figure(*size_of(chart))
    if isinstance(chart.data, Panels):
        _panels(figure, chart.data)
    else:
        draw(chart, figure.add_subplot(), title)
    return figure


def size_of(chart: Chart) -> tuple[float, float]:
    """Width and height of a figure in which no label of usual length is cut, in inches."""
    match chart.data:
        case Whiskers(rows):
            longest = max((len(_label(row.label)) for row in rows), default=0)
            return 5.5 + 0.075 * longest, 1.5 + (0.26 if len(rows) <= 40 else 0.19) * max(len(rows), 4)
        case Grid(rows, columns, _, said):
            across, up = (max((len(_label(one)) for one in names), default=0) for names in (rows, columns))
            cell = max((len(one) for line in said for one in line), default=1)
            wide = max(1.0 + 0.065 * across + max(0.3, 0.09 * cell) * len(columns), 4.0)
            return wide, 1.2 + 0.24 * len(rows) + (0.065 * up if up > 4 else 0.0)
        case Plane(square=square, shares=shares):
            return (5.0, 5.0) if shares else (6.5, 6.0 if square else 4.5)
        case Panels(charts):
            return 8.0, 0.9 + 1.75 * len(charts)


def draw(chart: Chart, ax: Any, title: str = "", scaled: bool = True) -> Any:
    """Draw a chart on axes, with a title if there is one, and with the scale of its shades; give the axes back."""
    ax.tick_params(labelsize=8.5)
    match chart.data:
        case Whiskers() as data:
            _intervals(ax, data)
        case Grid() as data:
            _grid(ax, data)
        case Plane() as data:
            mesh = _plane(ax, data)
            if data.field is not None and scaled:
                ax.figure.colorbar(mesh, ax=ax).set_label(data.field.said, fontsize=8.5)
        case Panels():
            raise TypeError("panels are a figure of several charts; draw each on axes of its own")
        case _:
            assert_never(chart.data)
    ax.set_xlabel(chart.axes[0].translate(_BARE), fontsize=9, parse_math=False)
    ax.set_ylabel(chart.axes[1].translate(_BARE), fontsize=9, parse_math=False)
    if title:
        ax.set_title(one_line(title), fontsize=11, loc="left", parse_math=False)
    return ax


def _intervals(ax: Any, data: Whiskers) -> None:
    rows, n = data.rows, len(data.rows)
    size = 9.0 if n <= 40 else 7.5
    ax.hlines(range(n), [row.lower for row in rows], [row.upper for row in rows], linewidth=1.8, zorder=2)
    ax.scatter([row.mean for row in rows], range(n), s=20, linewidths=0, zorder=3)
    for number, (group, places) in enumerate(groupby(range(n), key=lambda k: rows[k].group)):
        own = list(places)
        if group and number % 2 == 0:
            ax.axhspan(own[0] - 0.5, own[-1] + 0.5, color="0.95", linewidth=0, zorder=0)
        if group:
            ax.annotate(
                _label(group), (1.01, (own[0] + own[-1]) / 2), xycoords=("axes fraction", "data"), va="center",
                fontsize=size - 1, color="0.35", annotation_clip=False, parse_math=False,
            )  # fmt: skip
    ax.set_yticks(range(n), [_label(row.label) for row in rows], fontsize=size, parse_math=False)
    ax.set_ylim(max(n, 1) - 0.5, -0.5)  # the first on top
    ax.tick_params(axis="y", length=0)
    ax.axvline(0.0, color="0.75", linewidth=0.8, zorder=1)
    ax.grid(axis="x", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _grid(ax: Any, data: Grid) -> None:
    signed = bool((data.shade < 0.0).any())
    # Numbers stay readable on the darkest cell.
    colours = {"cmap": "RdBu", "vmin": -1.6, "vmax": 1.6} if signed else {"cmap": "Blues", "vmin": 0.0, "vmax": 1.4}
    ax.imshow(data.shade, aspect="auto", interpolation="nearest", **colours)
    for i, j in np.argwhere(~np.isnan(data.shade)).tolist():
        ax.text(j, i, data.said[i][j], ha="center", va="center", fontsize=7, color="black")
    columns = [_label(one) for one in data.columns]
    ax.set_yticks(range(len(data.rows)), [_label(one) for one in data.rows], fontsize=8, parse_math=False)
    turned = 90 if max(map(len, columns), default=0) > 4 else 0
    ax.set_xticks(range(len(columns)), columns, fontsize=8, rotation=turned, parse_math=False)
    ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)


def _panels(figure: Any, data: Panels) -> None:
    panels = figure.subplots(len(data.rows), len(data.rows[0]), squeeze=False, sharex=True)
    for number, (axes, row) in enumerate(zip(panels, data.rows, strict=True)):
        for ax, chart in zip(axes, row, strict=True):
            draw(chart, ax, chart.title * (number == 0), scaled=False)
    for axes, chart in zip(panels.T, data.rows[0], strict=True):
        if isinstance(chart.data, Plane) and chart.data.field is not None:
            bar = figure.colorbar(axes[-1].collections[0], ax=list(axes), location="bottom", shrink=0.9, aspect=30)
            bar.set_label(chart.data.field.said, fontsize=8.5)


def _plane(ax: Any, data: Plane) -> Any:
    mesh = None if data.field is None else _field(ax, data.field, smooth=data.names == (None, None))
    for k, one in enumerate(data.series):
        style: dict[str, Any] = {"marker": _MARKS[k % len(_MARKS)], "label": _label(one.name)}
        many = len(one.x) > MANY
        if one.line and one.lower is not None and one.upper is not None:
            colour = f"C{k}" if mesh is None else "black"
            ax.fill_between(one.x, one.lower, one.upper, alpha=0.2, linewidth=0, color=colour)
            ax.plot(one.x, one.y, linewidth=1.8, color=colour)
        elif one.lower is not None and one.upper is not None:
            y = np.array(one.y)
            ax.errorbar(one.x, y, [y - one.lower, one.upper - y], linestyle="", markersize=5, linewidth=1.8, **style)
        elif one.line:
            ax.plot(one.x, one.y, **style | ({} if one.sentence else {"marker": ""}))
        else:
            ax.scatter(one.x, one.y, s=4 if many else 22, linewidths=0.0 if many else 0.5, edgecolors="white", **style)
    if any(one.name for one in data.series):
        ax.legend(fontsize=8, frameon=False)
    if data.square:
        ax.set_aspect("equal", adjustable="box" if data.shares else "datalim")
    for axis, names in zip((ax.xaxis, ax.yaxis), data.names, strict=True):
        if names is not None:
            axis.set_ticks([*names], [_label(name) for name in names.values()], parse_math=False)
    if mesh is not None:
        ax.set(xlim=data.x, ylim=data.y)
    elif data.shares:
        ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linestyle="--", linewidth=1.0, zorder=0)
        ax.set(xlim=data.x, ylim=data.y)
    elif data.square:
        ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        ax.axvline(0.0, color="0.8", linewidth=0.8, zorder=0)
    return mesh


def _field(ax: Any, field: Field, smooth: bool) -> Any:
    mesh = ax.pcolormesh(
        field.x, field.y, field.value, cmap="RdBu" if field.both_ways else "Greys", vmin=field.low, vmax=field.high,
        shading="gouraud" if smooth else "nearest", rasterized=True,
    )  # fmt: skip
    if smooth and field.edge is not None and field.edge.min() < 0.0 < field.edge.max():
        ax.contour(field.x, field.y, field.edge, levels=[0.0], colors="black", linewidths=1.1)
    return mesh


def _label(name: str) -> str:
    return shortened(name.translate(_BARE), _LONGEST)
