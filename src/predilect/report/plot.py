"""Plot of the board: one line an item, with its 95 % interval, coloured by tier."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from predilect._text import one_line, shortened
from predilect.report.tables import Scale

_MOST_ITEMS = 150
_LONGEST_NAME = 40


def plot_board(board: pl.DataFrame, scale: Scale, title: str, paths: Iterable[Path]) -> None:
    """Draw the best 150 items of a board into files, by their suffix; the same board gives the same bytes."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = board.head(_MOST_ITEMS)
    if len(shown) < len(board):
        title += f", the best {len(shown)} of {len(board)}"
    n = len(shown)
    row = 0.26 if n <= 40 else 0.19  # inches
    with rc_context({"svg.hashsalt": "predilect", "svg.fonttype": "none"}), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box; the table beside the picture has the name.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(8.0, 1.5 + row * max(n, 4)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        _draw(axes, shown, font_size=9 if n <= 40 else 7.5)
        axes.set_title(one_line(title), fontsize=11, loc="left", parse_math=False)
        axes.set_xlabel(f"score and 95 % interval ({scale.unit}; 0 is the mean of the items)", fontsize=9)
        for path in paths:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
            figure.set_layout_engine("none")  # the first drawing has arranged everything


def _draw(axes: Any, board: pl.DataFrame, font_size: float) -> None:
    from matplotlib import colormaps

    n = len(board)
    tiers = board["tier"].to_list()
    colour = [colormaps["viridis"](0.8 * (tier - 1) / max(tiers[-1] - 1, 1)) for tier in tiers]
    mean, lower, upper = (board[name].to_list() for name in ("mean", "lower", "upper"))
    axes.hlines(range(n), lower, upper, colors=colour, linewidth=1.8, zorder=2)
    axes.scatter(mean, range(n), c=colour, s=20, linewidths=0, zorder=3)
    for number, (tier, places) in enumerate(groupby(range(n), key=tiers.__getitem__)):
        rows = list(places)
        if number % 2 == 0:
            axes.axhspan(rows[0] - 0.5, rows[-1] + 0.5, color="0.95", linewidth=0, zorder=0)
        axes.annotate(
            f"tier {tier}", (1.01, (rows[0] + rows[-1]) / 2), xycoords=("axes fraction", "data"), va="center",
            fontsize=font_size - 1, color="0.35", annotation_clip=False,
        )  # fmt: skip
    names = [shortened(one_line(item), _LONGEST_NAME) for item in board["item"].to_list()]
    axes.set_yticks(range(n), names, fontsize=font_size, parse_math=False)
    axes.set_ylim(n - 0.5, -0.5)  # the best on top
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8.5)
    axes.axvline(0.0, color="0.75", linewidth=0.8, zorder=1)
    axes.grid(axis="x", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
