"""The charts: a function makes one of what is to be shown, another, marked ``of_a_model``, of a fitted model.

What is marked is a function of :mod:`predilect.plot` under the same name, whose docstring users read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl

from predilect._base.text import amount, number, percent
from predilect._base.types import FloatArray
from predilect.decisions.scales import scale_of
from predilect.errors import DataError
from predilect.evaluation.metrics import Reliability
from predilect.show.charts.chart import Chart, Grid, Plane, Row, Series, Whiskers, isolated, name_of
from predilect.show.charts.facts import (
    MOST_ITEMS,
    MOST_PEOPLE,
    PairShares,
    PeopleMap,
    further_table,
    has_attributes,
    pairs_of,
    part_worths_of,
    people_map,
    rank_shares,
)

MOST_ROWS = 60  # of a board
MOST_SEGMENTS, _MOST_ITEMS = 12, 40
NOISE = "noise of one answer = 1"
Maker = TypeVar("Maker", bound=Callable[..., Chart])
OF_A_MODEL: dict[str, Callable[..., Chart]] = {}


def of_a_model(make: Maker) -> Maker:
    """Make a chart of a fitted model a function of :mod:`predilect.plot`."""
    OF_A_MODEL[make.__name__] = make
    return make


def board_chart(
    board: pl.DataFrame, unit: str, digits: int = 2, top: int = MOST_ROWS, origin: str = "0 is the mean of the items"
) -> Chart:
    """Scores with 95 % intervals, best first, by tier."""
    shown = board.head(top)
    rows = [
        Row(
            f"{row['rank']}  {isolated(row['item'])}", row["mean"], row["lower"], row["upper"],
            f"{name_of(row['item'])}: score {number(row['mean'], digits)} ({number(row['lower'], digits)} to "
            f"{number(row['upper'], digits)}), rank {row['rank']} ({row['rank_low']} to {row['rank_high']}), "
            f"best with probability {percent(row['p_best'])}, tier {row['tier']}, {amount(row['n'])} answers",
            f"tier {row['tier']}",
        )
        for row in shown.iter_rows(named=True)
    ]  # fmt: skip
    which = f"The best {len(shown)} of {len(board)} items" if len(shown) < len(board) else f"{len(board)} items"
    sentence = (
        f"A dot and a line for each item, best on top: its score with the 95 % interval, in {unit}. Bands are tiers."
    )
    if rows:
        sentence += f" First: {rows[0].sentence}. Last: {rows[-1].sentence}."
    return Chart(Whiskers(rows), f"{which} by score", sentence, (f"score and 95 % interval ({unit}; {origin})", ""))


@of_a_model
def board(
    model: Any, *, user: Any = None, top: int | None = None, scale: str = "probit", base: float | None = None,
    anchor: Any = None,
) -> Chart:  # fmt: skip
    """Scores with 95 % intervals by tier, best first: of the crowd or one person, of all items or the best ``top``.

    ``scale``, ``base`` and ``anchor`` are as a model's ``rank`` takes them.
    """
    unit = scale_of(scale, model._likelihood.name, base, anchor)
    ranked = pl.DataFrame(model.rank(user, scale=unit))
    return board_chart(ranked, unit.unit, unit.digits, len(ranked) if top is None else top, unit.origin)


def pairs_chart(pairs: PairShares, observed: bool = False) -> Chart:
    """How often the row is preferred to the column: expected of a new person, or in the answers."""
    share = pairs.observed if observed else pairs.expected
    names = [f"{k}  {isolated(item)}" for k, item in enumerate(pairs.items, 1)]
    what = "What was answered" if observed else "What a new person would answer"
    sentence = (
        f"A table of {len(names)} by {len(names)} items, best first. A cell is the percentage of answers in which the "
        "item of the row is preferred to the item of the column; ties are for neither."
        + (" Empty where nobody was asked." if observed else "")
    )
    said = [["" if np.isnan(one) else f"{100 * one:.0f}" for one in row] for row in share]
    columns = [str(k) for k in range(1, len(names) + 1)]
    title = f"{what}: row preferred to column, in per cent"
    return Chart(Grid(names, columns, share, said), title, sentence, ("per cent", ""))


@of_a_model
def pairs(model: Any, *, observed: bool = False, top: int = MOST_ITEMS) -> Chart:
    """Per cent of answers that prefer the row to the column: of a new person's, or ``observed`` in the answers."""
    return pairs_chart(pairs_of(model, _best(model, top)), observed)


def ranks_chart(items: pl.Series, shares: FloatArray) -> Chart:
    """Probability of each rank."""
    n = len(items)
    columns = [str(k) for k in range(1, n + 1)] + ([f">{n}"] if shares.shape[1] > n else [])
    said = [["" if one < 0.005 else f"{100 * one:.0f}" for one in row] for row in shares]
    sentence = "A row for each item, best first, and a column for each rank: the probability of the rank, in per cent."
    grid = Grid([isolated(item) for item in items], columns, shares, said)
    return Chart(grid, "Probability of each rank, in per cent", sentence, ("rank", ""))


@of_a_model
def ranks(model: Any, *, top: int = MOST_ITEMS) -> Chart:
    """Probability of each rank for the best ``top`` items, in per cent."""
    items = _best(model, top)
    return ranks_chart(items, rank_shares(model, items))


def people_chart(found: PeopleMap) -> Chart:
    """People on the two main axes of how they differ."""
    n = len(found.place)
    drawn = f"{n} of {found.n_people} people, drawn at random" if n < found.n_people else f"{n} people"
    sentence = (
        f"A mark for each of {drawn}. Across: {100 * found.share[0]:.0f} % of how people differ, up: "
        f"{100 * found.share[1]:.0f} %. To the right are people who like {', '.join(found.ends[0][1])} more than "
        f"others do, to the left {', '.join(found.ends[0][0])}; at the top {', '.join(found.ends[1][1])}, at the "
        f"bottom {', '.join(found.ends[1][0])}."
    )
    series = []
    for k, name in enumerate(found.groups or [""]):
        x, y = found.place[found.group == k].T.tolist()
        series.append(Series(name, x, y, [name] * len(x)))
    reach = float(np.abs(found.place).max(initial=0.0)) * 1.06 or 1.0
    across, up = (f"more for {_some(low)}  ←  →  more for {_some(high)}" for low, high in found.ends)
    span = (-reach, reach)
    return Chart(Plane(series, span, span, square=True), "People by how they differ", sentence, (across, up))


def _some(names: Sequence[str]) -> str:
    return isolated(names[0]) if names else "nothing"


@of_a_model
def people(model: Any, *, most: int = MOST_PEOPLE) -> Chart:
    """People on the two main axes of how their utilities differ, at most ``most``, by segment where there are any.

    Raises DataError where the model tells fewer than three people apart, or all are the same.
    """
    found = people_map(model, most)
    if found is None:
        raise DataError("there is no map of people: the model tells fewer than three apart, or all are the same")
    return people_chart(found)


def calibration_chart(bins: Sequence[Reliability]) -> Chart:
    """Shares of held-out answers against the probabilities they were given."""
    words = [
        f"given {100 * one.predicted:.0f} %, came out in {100 * one.observed:.0f} % ({100 * one.lower:.0f} to "
        f"{100 * one.upper:.0f} %) of {amount(round(one.n))} cases"
        for one in bins
    ]
    x, y, lower, upper = ([getattr(one, key) for one in bins] for key in ("predicted", "observed", "lower", "upper"))
    sentence = f"Probabilities that were given to held-out answers, and how often these came: {'; '.join(words)}"
    plane = Plane([Series("", x, y, words, lower, upper)], (0.0, 1.0), (0.0, 1.0), square=True, shares=True)
    return Chart(plane, "Predicted and observed", sentence, ("probability that was given", "share that came out"))


@of_a_model
def calibration(model: Any) -> Chart:
    """Shares of held-out answers that came against the probabilities they were given, with 95 % intervals.

    Raises DataError unless ``model.verdict()`` was asked for before, and could judge.
    """
    verdict = getattr(model, "verdict_", None)
    if verdict is None or not verdict.reliability:
        raise DataError("nothing was held out that could be shown: call model.verdict() first")
    return calibration_chart(verdict.reliability)


def effects_chart(covariates: pl.DataFrame) -> Chart:
    """Effects of covariates of answers, each for a usual difference."""
    rows = []
    for row in covariates.iter_rows(named=True):
        low, high = row["lower"] * row["rms"], row["upper"] * row["rms"]
        name, mean = name_of(row["covariate"]), row["effect_of_rms"]
        sentence = f"{name}: {mean:+.3f} ({low:+.3f} to {high:+.3f}) for a usual difference of {row['rms']:.3g}"
        rows.append(Row(isolated(name), mean, low, high, sentence))
    axis = f"added to the item's utility by a usual difference ({NOISE}), 95 % interval"
    return Chart(Whiskers(rows), "Effects of the side and of other covariates", _all(rows), (axis, ""))


@of_a_model
def effects(model: Any) -> Chart:
    """Effects of the side and of other covariates of answers, each for a usual difference, with 95 % intervals.

    Raises DataError where the model has none.
    """
    covariates = further_table(model, "covariates")
    if covariates is None:
        raise DataError("the model has no covariates of answers: neither the side nor others are in it")
    return effects_chart(covariates)


def segments_chart(
    boards: Sequence[pl.DataFrame], crowd: pl.DataFrame, unit: str, digits: int = 2, most: int = MOST_SEGMENTS,
    top: int = _MOST_ITEMS,
) -> Chart:  # fmt: skip
    """Segments against the crowd: differences of their scores, a star where they are more than chance."""
    shown, items = boards[:most], crowd["item"].head(top)
    aligned = [pl.DataFrame({"item": items}).join(board, on="item", maintain_order="left") for board in shown]
    difference = np.array([board["difference"].to_numpy() for board in aligned]).T.reshape(len(items), len(shown))
    sure = np.array([board["more_than_chance"].to_numpy() for board in aligned]).T.reshape(len(items), len(shown))
    said = [
        [
            f"{round(value, digits) + 0.0:+.{digits}f}{'*' if is_sure else ''}"
            for value, is_sure in zip(*row, strict=True)
        ]
        for row in zip(difference.tolist(), sure.tolist(), strict=True)
    ]
    heads = [(isolated(board["column"][0]), isolated(board["segment"][0]), board["people"][0]) for board in shown]
    several = len({column for column, *_ in heads}) > 1
    names = [f"{f'{column}: ' if several else ''}{segment} ({n})" for column, segment, n in heads]
    sentence = (
        f"A row for each of {len(items)} items and a column for each of {len(shown)} segments, with the number of its "
        f"people: the segment's score less the crowd's, in {unit}. A star: more than chance."
    )
    grid = Grid(
        [isolated(item) for item in items], names, difference / (np.abs(difference).max(initial=0.0) or 1.0), said
    )
    return Chart(
        grid, "Segments against the crowd", sentence, (f"score less the crowd's ({unit}); a star: more than chance", "")
    )


@of_a_model
def segments(model: Any, *, top: int = 60, most: int = 60) -> Chart:
    """Segments of people against the crowd, the best ``top`` items by at most ``most`` segments.

    A star says that a difference is more than chance. Raises DataError if the model has no segments.
    """
    if not model._has_segments:
        raise DataError("this model knows no segments of people: Population does, where the fit was given some")
    boards = pl.DataFrame(model.segments()).partition_by("column", "segment", maintain_order=True)
    return segments_chart(boards, pl.DataFrame(model.rank()), NOISE, most=most, top=top)


def importances_chart(importances: pl.DataFrame) -> Chart:
    """How much each attribute matters."""
    rows = [
        Row(
            isolated(row["attribute"]), 100 * row["importance"], 100 * row["lower"], 100 * row["upper"],
            f"{name_of(row['attribute'])}: {100 * row['importance']:.0f} % ({100 * row['lower']:.0f} to "
            f"{100 * row['upper']:.0f} %); people differ by {100 * row['spread']:.0f}",
        )
        for row in importances.sort("importance", descending=True).iter_rows(named=True)
    ]  # fmt: skip
    axis = "share of the range of utilities, per cent, mean over people with its 95 % interval"
    return Chart(Whiskers(rows), "How much each attribute matters", _all(rows), (axis, ""))


@of_a_model
def importances(model: Any) -> Chart:
    """How much each attribute matters over the range of the items, with 95 % intervals.

    Raises DataError where the model has no attributes.
    """
    return importances_chart(_worths(model)[0])


def part_worths_chart(worths: pl.DataFrame, top: int = MOST_ROWS) -> Chart:
    """What each attribute is worth: the population's mean."""
    rows = []
    for row in worths.head(top).iter_rows(named=True):
        level, attribute = name_of(row["label"]), name_of(row["attribute"])
        sentence = (
            f"{attribute}, {level}: {row['mean']:+.3g} ({row['lower']:+.3g} to {row['upper']:+.3g}); people differ by "
            f"{row['spread']:.3g}"
        )
        rows.append(Row(isolated(level), row["mean"], row["lower"], row["upper"], sentence, attribute))
    axis = f"added to the utility ({NOISE}), mean of the population with its 95 % interval"
    return Chart(Whiskers(rows), "What attributes are worth", _all(rows), (axis, ""))


@of_a_model
def part_worths(model: Any, *, top: int = MOST_ROWS) -> Chart:
    """What attributes and their levels are worth, as the model's ``coefficients`` say it; the first ``top`` of them.

    Raises DataError where the model has no attributes.
    """
    return part_worths_chart(_worths(model)[1], top)


@of_a_model
def learning(losses: Mapping[str, Sequence[tuple[float, float]]]) -> Chart:
    """Log loss on held-out answers by the number of answers of each person.

    ``losses``: of models by name, points (number of answers, log loss in nats an answer).
    """
    said = [
        f"{name}: {', '.join(f'{loss:.3f} with {amount(round(n, 1))}' for n, loss in points)}"
        for name, points in losses.items()
    ]
    sentence = (
        f"Log loss of held-out answers, in nats an answer, with so many answers of each person. {'; '.join(said)}."
    )
    series = []
    for name, points in losses.items():
        x, y = (list(values) for values in zip(*points, strict=True)) if points else ([], [])
        series.append(Series(name, x, y, [f"{name}: {b:.4g} at {a:.4g}" for a, b in points], line=True))
    counts, seen = [n for one in series for n in one.x], [loss for one in series for loss in one.y] or [0.0]
    room = 0.08 * (max(seen) - min(seen)) or 1.0
    plane = Plane(series, (0.0, max(counts, default=0.0) or 1.0), (min(seen) - room, max(seen) + room))
    axes = "answers of each person", "log loss of held-out answers (nats)"
    return Chart(plane, "What more answers of each person are worth", sentence, axes)


def _best(model: Any, top: int) -> pl.Series:
    return pl.DataFrame(model.rank())["item"].head(top)


def _worths(model: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    if not has_attributes(model):
        raise DataError("this model knows no attributes of items: give the fit items=, a table of them")
    return part_worths_of(model)


def _all(rows: Sequence[Row]) -> str:
    return "; ".join(row.sentence for row in rows) or "Nothing to show."
