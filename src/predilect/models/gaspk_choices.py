"""Answers between items converted to answers about trade-offs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.data import Comparisons
from predilect.data.grid_loss import grid_loss
from predilect.data.grids import Grid
from predilect.data.tradeoff_fit import fit_trade_offs
from predilect.data.tradeoffs import TradeOffMap
from predilect.inference.gaspk.answers import TradeOffAnswers
from predilect.models.gaspk_parameters import resolve
from predilect.models.inputs import Training

__all__ = ["Choices", "Told", "read_choices"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Choices:
    """The distinct trade-offs of answers."""

    trade_offs: TradeOffMap
    grid: Grid | None  # that trade-offs were rounded to
    points: FloatArray  # (n_points, d), folded if antisymmetric
    places: IntArray | None  # (n_points,), codes in the grid


@dataclass(frozen=True, slots=True)
class Told:
    """Rows of comparisons as answers about the points."""

    point: IntArray  # (n_rows,)
    outcome: npt.NDArray[np.int8]  # (n_rows,)
    n_points: int
    report: dict[str, Any]  # attributes and trade-offs left out

    def answers(self, comparisons: Comparisons, rows: npt.NDArray[np.bool_] | None = None) -> TradeOffAnswers:
        """The answers, or some of them."""
        some = np.ones(comparisons.n_rows, dtype=bool) if rows is None else rows
        return TradeOffAnswers.of(
            comparisons.user[some], self.point[some], self.outcome[some], comparisons.weight[some],
            n_users=comparisons.n_users, n_points=self.n_points,
        )  # fmt: skip


def read_choices(model: Any, training: Training, antisymmetric: bool) -> tuple[Choices, Told]:
    """Trade-offs of the answers, and the grid if asked for; DataError if attributes or grid do not serve."""
    answers, features = training.comparisons, training.features
    trade_offs = fit_trade_offs(
        features, answers, tau=model.tau, attributes=model.attributes, n_dimensions=model.n_dimensions,
        units=model.units, antisymmetric=antisymmetric,
    )  # fmt: skip
    matrix = None if features is None else training.space.matrix
    found = trade_offs.points(matrix, answers.left, answers.right, antisymmetric=antisymmetric)
    sign = found.sign
    points, point, places, grid = found.points, found.code, None, None
    report: dict[str, Any] = {"trade_offs": list(trade_offs.report), "dimensions": list(trade_offs.names)}
    if model.levels is not None or resolve(model).backend == "grid":
        weight = np.bincount(point, answers.weight, len(points))
        grid = Grid.of(points, weight, model.levels, antisymmetric=antisymmetric, trade_offs=trade_offs)
        code, _ = grid.snap(points)
        turned = np.ones(len(code), dtype=np.int8)
        if antisymmetric:
            code, turned = grid.fold(code)
        places, which = np.unique(code, return_inverse=True)
        sign = sign * turned[point]
        report["grid"] = {
            "levels": list(grid.shape),
            "points": grid.n_points,
            "loss": list(grid_loss(grid, points, weight).lines()),
        }
        points, point = grid.points(places), which[point]
    outcome = (answers.outcome * sign).astype(np.int8)
    report["n_trade_offs"] = len(points)
    choices = Choices(trade_offs, grid, points, places)
    return choices, Told(point.astype(np.int64), outcome, len(points), report)
