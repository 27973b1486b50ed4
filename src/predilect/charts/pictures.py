"""The charts: boards, pairs, ranks, people, calibration, effects, segments, attributes, learning; each an ``<svg>``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from predilect._text import amount, number, percent
from predilect._types import FloatArray
from predilect.charts.facts import Pairs, PeopleMap
from predilect.charts.svg import Point, Row, against, curves, grid, intervals, isolated, name_of, scatter
from predilect.evaluation.metrics import Reliability

MOST_ROWS = 60  # of a board
_MOST_SEGMENTS, _MOST_ITEMS = 12, 40


def board_chart(
    board: pl.DataFrame, unit: str, digits: int = 2, top: int = MOST_ROWS, origin: str = "0 is the mean of the items"
) -> str:
    """Scores with 95 % intervals, best first, by tier."""
    shown = board.head(top)
    rows = [
        Row(
            f"{row['rank']}  {isolated(name_of(row['item']))}", row["mean"], row["lower"], row["upper"],
            f"{name_of(row['item'])}: score {number(row['mean'], digits)} ({number(row['lower'], digits)} to "
            f"{number(row['upper'], digits)}), rank {row['rank']} ({row['rank_low']} to {row['rank_high']}), "
            f"best with probability {percent(row['p_best'])}, tier {row['tier']}, {amount(row['n'])} answers",
            f"tier {row['tier']}",
        )
        for row in shown.iter_rows(named=True)
    ]  # fmt: skip
    which = f"The best {len(shown)} of {len(board)} items" if len(shown) < len(board) else f"{len(board)} items"
    told = f"A dot and a line for each item, best on top: its score with the 95 % interval, in {unit}. Bands are tiers."
    if rows:
        told += f" First: {rows[0].told}. Last: {rows[-1].told}."
    return intervals(rows, f"{which} by score", told, f"score and 95 % interval ({unit}; {origin})")


def pairs_chart(pairs: Pairs, observed: bool = False) -> str:
    """How often the row is preferred to the column: expected of a new person, or in the answers."""
    share = pairs.observed if observed else pairs.expected
    names = [f"{k}  {isolated(name_of(item))}" for k, item in enumerate(pairs.items, 1)]
    what = "What was answered" if observed else "What a new person would answer"
    told = (
        f"A table of {len(names)} by {len(names)} items, best first. A cell is the percentage of answers in which the "
        "item of the row is preferred to the item of the column; ties are for neither."
        + (" Empty where nobody was asked." if observed else "")
    )
    said = [["" if np.isnan(one) else f"{100 * one:.0f}" for one in row] for row in share]
    columns = [str(k) for k in range(1, len(names) + 1)]
    return grid(names, columns, share, said, f"{what}: row preferred to column, in per cent", told, "per cent")


def ranks_chart(items: Sequence[Any], shares: FloatArray) -> str:
    """Probabilities of every rank for the best items."""
    names = [name_of(item) for item in items]
    n = len(names)
    columns = [str(k) for k in range(1, n + 1)] + ([f">{n}"] if n and shares.shape[1] > n else [])
    said = [["" if one < 0.005 else f"{100 * one:.0f}" for one in row] for row in shares]
    told = "A row for each item, best first, and a column for each rank: the probability of the rank, in per cent."
    return grid(names, columns, shares, said, "Probability of each rank, in per cent", told, "rank")


def people_chart(found: PeopleMap) -> str:
    """People on the two main axes of how they differ."""
    n = len(found.place)
    drawn = f"{n} of {found.n_people} people, drawn at random" if n < found.n_people else f"{n} people"
    points = [
        Point(x, y, group, found.groups[group] if found.groups else "")
        for (x, y), group in zip(found.place.tolist(), found.group.tolist(), strict=True)
    ]
    told = (
        f"A mark for each of {drawn}. Across: {100 * found.share[0]:.0f} % of how people differ, up: "
        f"{100 * found.share[1]:.0f} %. To the right are people who like {', '.join(found.ends[0][1])} more than "
        f"others do, to the left {', '.join(found.ends[0][0])}; at the top {', '.join(found.ends[1][1])}, at the "
        f"bottom {', '.join(found.ends[1][0])}."
    )
    axes = tuple(f"more for {_some(low)}  ←  →  more for {_some(high)}" for low, high in found.ends)
    return scatter(points, found.groups, "People by how they differ", told, (axes[0], axes[1]))


def _some(names: Sequence[str]) -> str:
    return isolated(names[0]) if names else "nothing"


def calibration_chart(bins: Sequence[Reliability]) -> str:
    """Shares of held-out answers against the probabilities they were given."""
    points = [
        (
            one.predicted, one.observed, one.lower, one.upper,
            f"given {100 * one.predicted:.0f} %, came out in {100 * one.observed:.0f} % ({100 * one.lower:.0f} to "
            f"{100 * one.upper:.0f} %) of {amount(round(one.n))} cases",
        )
        for one in bins
    ]  # fmt: skip
    told = "Probabilities that were given to held-out answers, and how often these came: " + "; ".join(
        p[4] for p in points
    )
    return against(points, "Predicted and observed", told, ("probability that was given", "share that came out"))


def effects_chart(effects: pl.DataFrame) -> str:
    """Effects of the side and of other covariates, each for a usual difference."""
    rows = []
    for row in effects.iter_rows(named=True):
        low, high = row["lower"] * row["rms"], row["upper"] * row["rms"]
        name, mean = name_of(row["covariate"]), row["effect_of_rms"]
        told = f"{name}: {mean:+.3f} ({low:+.3f} to {high:+.3f}) for a usual difference of {row['rms']:.3g}"
        rows.append(Row(name, mean, low, high, told))
    axis = "added to the item's utility by a usual difference (noise of one answer = 1), 95 % interval"
    return intervals(rows, "Effects of the side and of other covariates", _all(rows), axis)


def segments_chart(boards: Sequence[pl.DataFrame], crowd: pl.DataFrame, unit: str, digits: int = 2) -> str:
    """Segments against the crowd: differences of their scores, a star where they are more than chance."""
    shown = boards[:_MOST_SEGMENTS]
    items = crowd["item"].head(_MOST_ITEMS)
    aligned = [pl.DataFrame({"item": items}).join(board, on="item", maintain_order="left") for board in shown]
    difference = np.array([board["difference"].to_numpy() for board in aligned]).T.reshape(len(items), len(shown))
    sure = np.array([board["more_than_chance"].to_numpy() for board in aligned]).T.reshape(len(items), len(shown))
    most = float(np.abs(difference).max(initial=0.0)) or 1.0
    said = [
        [
            f"{round(value, digits) + 0.0:+.{digits}f}{'*' if is_sure else ''}"
            for value, is_sure in zip(*row, strict=True)
        ]
        for row in zip(difference.tolist(), sure.tolist(), strict=True)
    ]
    names = [f"{isolated(name_of(board['segment'][0]))} ({board['people'][0]})" for board in shown]
    told = (
        f"A row for each of {len(items)} items and a column for each of {len(shown)} segments, with the number of its "
        f"people: the segment's score less the crowd's, in {unit}. A star: more than chance."
    )
    rows = [name_of(item) for item in items.to_list()]
    axis = f"score less the crowd's ({unit})"
    return grid(rows, names, difference / most, said, "Segments against the crowd", told, axis)


def importances_chart(importances: pl.DataFrame) -> str:
    """How much each attribute matters."""
    rows = [
        Row(
            name_of(row["attribute"]), 100 * row["importance"], 100 * row["lower"], 100 * row["upper"],
            f"{name_of(row['attribute'])}: {100 * row['importance']:.0f} % ({100 * row['lower']:.0f} to "
            f"{100 * row['upper']:.0f} %); people differ by {100 * row['spread']:.0f}",
        )
        for row in importances.sort("importance", descending=True).iter_rows(named=True)
    ]  # fmt: skip
    axis = "share of the range of utilities, per cent, mean over people with its 95 % interval"
    return intervals(rows, "How much each attribute matters", _all(rows), axis)


def part_worths_chart(worths: pl.DataFrame) -> str:
    """What each attribute is worth, mean over people."""
    rows = []
    for row in worths.head(MOST_ROWS).iter_rows(named=True):
        level, attribute = name_of(row["label"]), name_of(row["attribute"])
        told = (
            f"{attribute}, {level}: {row['mean']:+.3g} ({row['lower']:+.3g} to {row['upper']:+.3g}); people differ by "
            f"{row['spread']:.3g}"
        )
        rows.append(Row(level, row["mean"], row["lower"], row["upper"], told, attribute))
    axis = "added to the utility (noise of one answer = 1), mean over people with its 95 % interval"
    return intervals(rows, "What attributes are worth", _all(rows), axis)


def learning_chart(losses: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Log loss on held-out answers by the number of answers of each person: of models by name, points (n, loss)."""
    said = [
        f"{name}: {', '.join(f'{loss:.3f} with {amount(round(n, 1))}' for n, loss in points)}"
        for name, points in losses.items()
    ]
    told = f"Log loss of held-out answers, in nats an answer, with so many answers of each person. {'; '.join(said)}."
    axes = "answers of each person", "log loss of held-out answers (nats)"
    return curves(losses, "What more answers of each person are worth", told, axes)


def _all(rows: Sequence[Row]) -> str:
    return "; ".join(row.told for row in rows) or "Nothing to show."
