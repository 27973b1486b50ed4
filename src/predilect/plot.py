"""Plots of a fitted model on Matplotlib axes (the extra ``plots``), for PNG, PDF and SVG.

>>> from predilect import Population, plot
>>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
>>> model = Population().fit(answers, [1, 1, -1])
>>> axes = plot.board(model, top=10, title="Drinks", size=(5.0, 2.0))
>>> axes.get_title(loc="left")
'Drinks'
>>> axes.figure.savefig("board.pdf")  # doctest: +SKIP

Every function takes ``ax``, axes to draw on, or makes a figure of ``size`` (width and height in inches), and gives the
axes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl

from predilect._text import one_line, shortened
from predilect.charts.facts import MOST_ITEMS, MOST_PEOPLE, pairs_of, people_map
from predilect.decisions.scales import ScaleName, scale_of
from predilect.errors import DataError

__all__ = ["board", "calibration", "effects", "pairs", "people", "segments"]

NOISE = "noise of one answer = 1"
_LONGEST_NAME, _LONGEST_OF_SEGMENTS = 40, 30
_MARKS = ("o", "s", "^", "D", "v", "x")
Size = tuple[float, float] | None


def board(
    model: Any, *, user: Any = None, top: int | None = None, scale: ScaleName = "probit", base: float | None = None,
    anchor: Any = None, title: str = "", ax: Any = None, size: Size = None,
) -> Any:  # fmt: skip
    """Scores with 95 % intervals by tier, best first: of the crowd or one person, of all items or the best ``top``.

    ``scale``, ``base`` and ``anchor`` are as a model's ``rank`` takes them.
    """
    unit = scale_of(scale, model._likelihood.name, base, anchor)
    shown = pl.DataFrame(model.rank(user, scale=unit))
    shown = shown.head(len(shown) if top is None else top)
    few = len(shown) <= 40
    ax = _axes(ax, size or (8.0, 1.5 + (0.26 if few else 0.19) * max(len(shown), 4)), title)
    draw_board(ax, shown, font_size=9 if few else 7.5)
    ax.set_xlabel(f"score and 95 % interval ({unit.unit}; {unit.origin})", fontsize=9)
    return ax


def pairs(
    model: Any, *, observed: bool = False, top: int = MOST_ITEMS, title: str = "", ax: Any = None, size: Size = None
) -> Any:
    """Per cent of answers that prefer the row to the column: of a new person's, or ``observed`` in the answers."""
    found = pairs_of(model, pl.DataFrame(model.rank())["item"].head(top))
    n = len(found.items)
    ax = _axes(ax, size or (3.0 + 0.3 * n, 1.2 + 0.24 * n), title)
    share = 100.0 * (found.observed if observed else found.expected)
    ax.imshow(
        share, cmap="Blues", vmin=0.0, vmax=140.0, aspect="auto", interpolation="nearest"
    )  # numbers stay readable
    for i, j in np.argwhere(~np.isnan(share)).tolist():
        ax.text(j, i, f"{share[i, j]:.0f}", ha="center", va="center", fontsize=7, color="black")
    ax.set_yticks(
        range(n), [f"{k}  {_name(item)}" for k, item in enumerate(found.items, 1)], fontsize=8, parse_math=False
    )
    ax.set_xticks(range(n), [str(k) for k in range(1, n + 1)], fontsize=8)
    ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.set_xlabel("per cent of answers that prefer the row to the column", fontsize=9)
    return ax


def people(model: Any, *, most: int = MOST_PEOPLE, title: str = "", ax: Any = None, size: Size = None) -> Any:
    """People on the two main axes of how their utilities differ, at most ``most``, by segment where there are any.

    Raises DataError where the model tells fewer than three people apart, or all are the same.
    """
    found = people_map(model, most)
    if found is None:
        raise DataError("there is no map of people: the model tells fewer than three apart, or all are the same")
    ax = _axes(ax, size or (6.5, 6.0), title)
    for k, name in enumerate(found.groups or [""]):
        mine = found.place[found.group == k]
        ax.scatter(mine[:, 0], mine[:, 1], s=22, marker=_MARKS[k % len(_MARKS)], label=_name(name), linewidths=1.0)
    if found.groups:
        ax.legend(fontsize=8, frameon=False)
    ax.set_aspect("equal", adjustable="datalim")
    ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
    ax.axvline(0.0, color="0.8", linewidth=0.8, zorder=0)
    for place, (set_label, (low, high)) in enumerate(zip((ax.set_xlabel, ax.set_ylabel), found.ends, strict=True)):
        share = f"{100 * found.share[place]:.0f} % of how people differ"
        set_label(f"more for {_first(low)}  <  >  more for {_first(high)}\n({share})", fontsize=9, parse_math=False)
    return ax


def calibration(model: Any, *, title: str = "", ax: Any = None, size: Size = None) -> Any:
    """Shares of held-out answers that came against the probabilities they were given, with 95 % intervals.

    Raises DataError unless ``model.verdict()`` was asked for before, and could judge.
    """
    verdict = getattr(model, "verdict_", None)
    if verdict is None or not verdict.reliability:
        raise DataError("nothing was held out that could be shown: call model.verdict() first")
    ax = _axes(ax, size or (5.0, 5.0), title)
    given, came, lower, upper = (
        np.array([getattr(one, key) for one in verdict.reliability])
        for key in ("predicted", "observed", "lower", "upper")
    )
    ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linestyle="--", linewidth=1.0)
    ax.errorbar(given, came, [came - lower, upper - came], fmt="o", markersize=5, linewidth=1.8)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    ax.set_xlabel("probability that was given", fontsize=9)
    ax.set_ylabel("share of held-out answers that came", fontsize=9)
    return ax


def effects(model: Any, *, title: str = "", ax: Any = None, size: Size = None) -> Any:
    """Effects of the side and of other covariates of answers, each for a usual difference, with 95 % intervals.

    Raises DataError where the model has none.
    """
    tables = model.further_tables()
    if "covariates" not in tables:
        raise DataError("the model has no covariates of answers: neither the side nor others are in it")
    table = pl.DataFrame(tables["covariates"]())
    rms, n = table["rms"].to_numpy(), len(table)
    mean, lower, upper = (table[key].to_numpy() * rms for key in ("effect", "lower", "upper"))
    ax = _axes(ax, size or (7.0, 1.2 + 0.3 * n), title)
    ax.hlines(range(n), lower, upper, linewidth=1.8)
    ax.scatter(mean, range(n), s=22)
    ax.set_yticks(range(n), [_name(name) for name in table["covariate"].to_list()], fontsize=9, parse_math=False)
    ax.set_ylim(n - 0.5, -0.5)
    ax.axvline(0.0, color="0.75", linewidth=0.8, zorder=0)
    ax.set_xlabel(f"added by a usual difference ({NOISE}), 95 % interval", fontsize=9)
    return ax


def segments(model: Any, *, top: int = 60, title: str = "", ax: Any = None, size: Size = None) -> Any:
    """Segments of people against the crowd, items by segments; a dot says that a difference is more than chance.

    Raises DataError if the model has none.
    """
    if not model.has_segments:
        raise DataError("this model knows no segments of people: Population does, where the fit was given some")
    boards = pl.DataFrame(model.segments()).partition_by("column", "segment", maintain_order=True)
    crowd = pl.DataFrame(model.rank()).head(top)
    ax = _axes(ax, size or size_of_segments(len(boards), len(crowd)), title)
    draw_segments(ax, boards, crowd["item"], NOISE)
    return ax


def draw_board(axes: Any, board: pl.DataFrame, font_size: float) -> None:
    """Draw a board on axes."""
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
    axes.set_yticks(range(n), [_name(item) for item in board["item"].to_list()], fontsize=font_size, parse_math=False)
    axes.set_ylim(n - 0.5, -0.5)  # the best on top
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8.5)
    axes.axvline(0.0, color="0.75", linewidth=0.8, zorder=1)
    axes.grid(axis="x", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def size_of_segments(n_segments: int, n_items: int) -> tuple[float, float]:
    """Size of a figure of segments, in inches."""
    return 3.5 + 0.3 * n_segments, 2.0 + 0.22 * n_items


def draw_segments(axes: Any, boards: Sequence[pl.DataFrame], items: pl.Series, unit: str) -> None:
    """Draw differences of segments from the crowd on axes."""
    aligned = [pl.DataFrame({"item": items}).join(board, on="item", maintain_order="left") for board in boards]
    difference = np.array([board["difference"].to_numpy() for board in aligned]).T
    at = np.argwhere(np.array([board["more_than_chance"].to_numpy() for board in aligned]).T)
    names = [f"{board['segment'][0]} ({board['people'][0]})" for board in boards]
    most = float(np.abs(difference).max(initial=0.0)) or 1.0
    image = axes.imshow(difference, cmap="RdBu", vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    axes.scatter(at[:, 1], at[:, 0], s=12, c="black", edgecolors="white", linewidths=0.5)
    for number in range(1, len(boards)):  # a line between two columns of segments
        if boards[number]["column"][0] != boards[number - 1]["column"][0]:
            axes.axvline(number - 0.5, color="0.3", linewidth=1.0)
    rows = [_name(item, _LONGEST_OF_SEGMENTS) for item in items]
    axes.set_yticks(range(len(items)), rows, fontsize=7.5, parse_math=False)
    columns = [_name(name, _LONGEST_OF_SEGMENTS) for name in names]
    axes.set_xticks(range(len(boards)), columns, fontsize=7.5, rotation=90, parse_math=False)
    axes.tick_params(length=0)
    axes.set_xlabel("segment (people); a dot: more than chance", fontsize=8.5)
    axes.figure.colorbar(image, ax=axes, fraction=0.05).set_label(f"score less the crowd's ({unit})", fontsize=8.5)


def _axes(ax: Any, size: tuple[float, float], title: str) -> Any:
    """The axes to draw on, with a title."""
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=size, layout="constrained")[1]
    if title:
        ax.set_title(one_line(title), fontsize=11, loc="left", parse_math=False)
    return ax


def _name(value: Any, longest: int = _LONGEST_NAME) -> str:
    return shortened(one_line(value), longest)


def _first(names: Sequence[str]) -> str:
    return _name(names[0], _LONGEST_OF_SEGMENTS) if names else "nothing"
