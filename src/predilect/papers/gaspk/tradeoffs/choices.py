"""The trade-offs that answers are about: those there are, and the answers coded by them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons
from predilect.models.reading import Training
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.settings import FitSettings
from predilect.papers.gaspk.tradeoffs.fit import fit_trade_offs
from predilect.papers.gaspk.tradeoffs.folding import distinct_points
from predilect.papers.gaspk.tradeoffs.grids import LevelGrid, grid_loss
from predilect.papers.gaspk.tradeoffs.map import TradeOffMap


@dataclass(frozen=True, slots=True)
class TradeOffChoices:
    """The distinct trade-offs of answers."""

    trade_offs: TradeOffMap
    grid: LevelGrid | None  # that trade-offs were rounded to
    points: FloatArray  # (n_points, d), folded if antisymmetric
    places: IntArray | None  # (n_points,), codes in the grid

    def extended(
        self, matrix: FloatArray | None, left: IntArray, right: IntArray, antisymmetric: bool
    ) -> tuple[TradeOffChoices, IntArray, npt.NDArray[np.int8], IntArray]:
        """All trade-offs; for each new answer its trade-off and sign; and where the old trade-offs went."""
        found = self.trade_offs.points(matrix, left, right, antisymmetric=antisymmetric)
        n_old = len(self.points)
        if self.grid is not None and self.places is not None:
            code, turned = self.grid.rounded(found.points)
            places, which = np.unique(np.append(self.places, code), return_inverse=True)
            merged = replace(self, points=self.grid.points(places), places=places)
            return merged, which[n_old:][found.code], found.sign * turned[found.code], which[:n_old]
        every = distinct_points(np.vstack([self.points, found.points]), antisymmetric)
        sign = every.sign[n_old:][found.code] * found.sign
        return replace(self, points=every.points), every.code[n_old:][found.code], sign, every.code[:n_old]


class FirstShown(NamedTuple):
    """Answers by what stood first: which row of the comparisons, codes of items, outcome and weight, all (n,)."""

    row: IntArray
    first: IntArray
    second: IntArray
    outcome: npt.NDArray[np.int8]
    weight: FloatArray


def as_shown(comparisons: Comparisons, antisymmetric: bool) -> FirstShown:
    """Answers by the side on which items were shown; where it is not known half of them each way.

    An antisymmetric function does not ask: all as they are.
    """
    left, right = comparisons.left.astype(np.int64), comparisons.right.astype(np.int64)
    rows = np.arange(comparisons.n_rows)
    if antisymmetric:
        return FirstShown(rows, left, right, comparisons.outcome, comparisons.weight)
    sides = np.zeros((len(rows), 2)) if comparisons.sides is None else comparisons.sides
    weight = (sides + 0.5 * np.maximum(comparisons.weight - sides.sum(axis=1), 0.0)[:, None]).T.ravel()
    kept = weight > 0.0
    first, second = np.append(left, right), np.append(right, left)
    outcome = np.append(comparisons.outcome, -comparisons.outcome)
    return FirstShown(np.append(rows, rows)[kept], first[kept], second[kept], outcome[kept], weight[kept])


@dataclass(frozen=True, slots=True)
class CodedAnswers:
    """Answers as they were shown, about the points."""

    row: IntArray  # (n,), of the comparisons
    point: IntArray  # (n,)
    outcome: npt.NDArray[np.int8]  # (n,)
    weight: FloatArray  # (n,)
    n_points: int
    report: dict[str, Any]  # attributes and trade-offs left out

    def answers(self, comparisons: Comparisons, rows: BoolArray | None = None) -> TradeOffAnswers:
        """The answers, or those of some rows of the comparisons."""
        some = np.ones(len(self.row), dtype=bool) if rows is None else rows[self.row]
        return TradeOffAnswers.of(
            comparisons.user[self.row[some]], self.point[some], self.outcome[some], self.weight[some],
            n_users=comparisons.n_users, n_points=self.n_points,
        )  # fmt: skip


def read_choices(settings: FitSettings, training: Training) -> tuple[TradeOffChoices, CodedAnswers]:
    """Trade-offs of the answers, and the grid if asked for; DataError if attributes or grid do not serve."""
    answers, features, antisymmetric = training.comparisons, training.features, settings.antisymmetric
    trade_offs = fit_trade_offs(
        features, answers, tau=settings.tau, attributes=settings.attributes, units=settings.units,
        antisymmetric=antisymmetric,
    )  # fmt: skip
    matrix = None if features is None else training.space.matrix
    shown = as_shown(answers, antisymmetric)
    found = trade_offs.points(matrix, shown.first, shown.second, antisymmetric=antisymmetric)
    sign = found.sign
    points, point, places, grid = found.points, found.code, None, None
    report: dict[str, Any] = {"trade_offs": list(trade_offs.report), "dimensions": list(trade_offs.names)}
    if settings.levels is not None or settings.backend == "grid":
        weight = np.bincount(point, shown.weight, len(points))
        grid = LevelGrid.of(points, weight, settings.levels, antisymmetric=antisymmetric, trade_offs=trade_offs)
        code, turned = grid.rounded(points)
        places, which = np.unique(code, return_inverse=True)
        sign = sign * turned[point]
        report["grid"] = {
            "levels": list(grid.shape),
            "points": grid.n_points,
            "loss": list(grid_loss(grid, points, weight).lines()),
        }
        points, point = grid.points(places), which[point]
    outcome = (shown.outcome * sign).astype(np.int8)
    report["n_trade_offs"] = len(points)
    choices = TradeOffChoices(trade_offs, grid, points, places)
    return choices, CodedAnswers(shown.row, point.astype(np.int64), outcome, shown.weight, len(points), report)
