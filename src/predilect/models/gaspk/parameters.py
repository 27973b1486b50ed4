"""Validation of the arguments of ``GaSPK``, and what its presets stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons
from predilect.gaussian.kernels.stationary import SHAPES
from predilect.models.checks import check_choice, check_count, check_positive
from predilect.models.gaspk.em.fit import ESTIMATORS, LENGTH_RULES
from predilect.models.gaspk.em.mode import TradeOffAnswers
from predilect.models.gaspk.tradeoffs.fit import fit_trade_offs
from predilect.models.gaspk.tradeoffs.grids import Grid, grid_loss
from predilect.models.gaspk.tradeoffs.map import TradeOffMap
from predilect.models.reading import Training

PRESETS = ("modern", "paper")
BACKENDS = ("auto", "grid", "function")
VARIANCES = ("auto", "exact", "consistent", "paper")


class Resolved(NamedTuple):
    """Arguments with every "auto" that a preset decides replaced; ``spread`` None: by held-out answers."""

    antisymmetric: bool
    amplitude: float | str
    backend: str
    variances: str
    damping: float
    spread: float | None


def resolve(model: Any) -> Resolved:
    """Values of "auto" under a preset.

    Modern: antisymmetric, amplitude and calibration by held-out answers. Paper: neither, an amplitude of 1, a grid, and
    the low-rank variances of its algorithm 3.
    """
    paper = model.preset == "paper"
    swap = model.antisymmetric
    return Resolved(
        antisymmetric=(not paper) if isinstance(swap, str) else bool(swap),
        amplitude=1.0 if paper and isinstance(model.variance, str) and model.variance == "auto" else model.variance,
        backend="grid" if paper and model.backend == "auto" else model.backend,
        variances="paper" if paper and model.variances == "auto" else model.variances,
        damping=(1.0 if paper else 0.7) if isinstance(model.damping, str) else float(model.damping),
        spread=(1.0 if paper else None) if isinstance(model.spread, str) else float(model.spread),
    )


def check_gaspk(model: Any) -> None:
    """Raise ValueError if an argument is out of its range."""
    check_choice("gamma", model.gamma, ESTIMATORS)
    check_choice("preset", model.preset, PRESETS)
    check_choice("backend", model.backend, BACKENDS)
    check_choice("variances", model.variances, VARIANCES)
    check_choice("kernel", model.kernel, SHAPES)
    check_choice("antisymmetric", model.antisymmetric, ("auto", True, False))
    check_count("n_components", model.n_components, 1, "auto")
    for name, words in (("n_restarts", ()), ("max_iter", ()), ("n_eigenpairs", ()), ("n_dimensions", (None,))):
        check_count(name, getattr(model, name), 1, *words)
    check_count("random_state", model.random_state, 0)
    check_positive("variance", model.variance, "auto", "evidence")
    check_positive("tol", model.tol)
    check_positive("damping", model.damping, "auto")
    check_positive("spread", model.spread, "auto")
    if not isinstance(model.spread, str) and model.spread < 1.0:
        raise ValueError(f'spread must be "auto" or a number from 1 up, not {model.spread!r}')
    if not isinstance(model.damping, str) and model.damping > 1.0:
        raise ValueError(f'damping must be "auto" or a number in (0, 1], not {model.damping!r}')
    if not callable(model.tau):
        check_choice("tau", model.tau, ("difference", "relative"))
    scales = model.length_scale
    if isinstance(scales, str):
        check_choice("length_scale", scales, (*LENGTH_RULES, "evidence"))
    else:
        numbers = np.atleast_1d(np.asarray(scales, dtype=np.float64))
        if numbers.ndim != 1 or not (np.isfinite(numbers).all() and (numbers > 0.0).all()):
            raise ValueError(f"length_scale must be a rule or positive numbers, not {scales!r}")
    levels = model.levels
    if levels is not None and (
        isinstance(levels, str) or not isinstance(levels, int | Sequence | Mapping | np.ndarray)
    ):
        raise ValueError(f"levels must be a number, a list for each dimension or a mapping of names, not {levels!r}")


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

    def answers(self, comparisons: Comparisons, rows: BoolArray | None = None) -> TradeOffAnswers:
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
