"""Parameters of ``GaSPK`` and what they stand for: trade-offs, bases, hyper-parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._text import quoted
from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.features import FeatureSpace
from predilect.gaussian.kernels import Antisymmetric, Kernel, Scaled, Stationary
from predilect.gaussian.kernels.stationary import SHAPES
from predilect.gaussian.projection import centres
from predilect.models.checks import check_choice, check_count, check_positive
from predilect.models.gaspk.em.answers import TradeOffAnswers
from predilect.models.gaspk.em.fit import ESTIMATORS, LENGTH_RULES, Estimator, left_open_at
from predilect.models.gaspk.em.held_out import Calibration
from predilect.models.gaspk.em.mode import FACTORISED, State, curvature_at
from predilect.models.gaspk.posterior.grid import GridBasis
from predilect.models.gaspk.posterior.low_rank import LowRank
from predilect.models.gaspk.posterior.posterior import GaSPKPosterior
from predilect.models.gaspk.posterior.scores import MOST_RANK, Basis, DenseBasis, ItemScores
from predilect.models.gaspk.posterior.solver import ByProducts
from predilect.models.gaspk.tradeoffs.fit import fit_trade_offs
from predilect.models.gaspk.tradeoffs.grids import Grid, grid_loss
from predilect.models.gaspk.tradeoffs.map import TradeOffMap
from predilect.models.reading import Training

PRESETS = ("modern", "paper")
BACKENDS = ("auto", "grid", "function")
VARIANCES = ("auto", "exact", "consistent", "paper")


class Resolved(NamedTuple):
    """Arguments with every "auto" that a preset decides replaced; None: by held-out answers."""

    gamma: Estimator
    concentration: float | None
    n_restarts: int
    antisymmetric: bool
    amplitude: float | str
    backend: str
    variances: str
    damping: float
    spread: float | None


def resolve(model: Any) -> Resolved:
    """Values of "auto" under a preset.

    Modern: antisymmetric, a prior of the weights, amplitude and calibration by held-out answers, the start of the
    answers. Paper: none of these, an amplitude of 1, a grid, the low-rank variances of its algorithm 3, random starts.
    """
    paper = model.preset == "paper"
    swap, alpha = model.antisymmetric, model.concentration
    concentration = (0.0 if paper else None) if isinstance(alpha, str) else float(alpha)
    starts = 5 if concentration == 0.0 else 1
    return Resolved(
        gamma=("heuristic" if paper else "exact") if model.gamma == "auto" else model.gamma,
        concentration=concentration,
        n_restarts=starts if isinstance(model.n_restarts, str) else int(model.n_restarts),
        antisymmetric=(not paper) if isinstance(swap, str) else bool(swap),
        amplitude=1.0 if paper and isinstance(model.variance, str) and model.variance == "auto" else model.variance,
        backend="grid" if paper and model.backend == "auto" else model.backend,
        variances="paper" if paper and model.variances == "auto" else model.variances,
        damping=(1.0 if paper else 0.7) if isinstance(model.damping, str) else float(model.damping),
        spread=(1.0 if paper else None) if isinstance(model.spread, str) else float(model.spread),
    )


def check_gaspk(model: Any) -> None:
    """Raise ValueError if an argument is out of its range."""
    check_choice("gamma", model.gamma, ("auto", *ESTIMATORS))
    check_choice("preset", model.preset, PRESETS)
    check_choice("backend", model.backend, BACKENDS)
    check_choice("variances", model.variances, VARIANCES)
    check_choice("kernel", model.kernel, SHAPES)
    check_choice("antisymmetric", model.antisymmetric, ("auto", True, False))
    check_count("n_components", model.n_components, 1, "auto")
    check_count("n_restarts", model.n_restarts, 1, "auto")
    for name, words in (("max_iter", ()), ("n_eigenpairs", ()), ("n_dimensions", (None,))):
        check_count(name, getattr(model, name), 1, *words)
    check_positive("variance", model.variance, "auto", "evidence")
    check_positive("tol", model.tol)
    if model.concentration != 0.0:
        check_positive("concentration", model.concentration, "auto")
    check_positive("damping", model.damping, "auto")
    check_positive("spread", model.spread, "auto")
    if not isinstance(model.spread, str) and model.spread < 1.0:
        raise ValueError(f'spread must be "auto" or a number from 1 up, not {quoted(model.spread)}')
    if not isinstance(model.damping, str) and model.damping > 1.0:
        raise ValueError(f'damping must be "auto" or a number in (0, 1], not {quoted(model.damping)}')
    if not callable(model.tau):
        check_choice("tau", model.tau, ("difference", "relative"))
    scales = model.length_scale
    if isinstance(scales, str):
        check_choice("length_scale", scales, (*LENGTH_RULES, "evidence"))
    else:
        numbers = np.atleast_1d(np.asarray(scales, dtype=np.float64))
        if numbers.ndim != 1 or not (np.isfinite(numbers).all() and (numbers > 0.0).all()):
            raise ValueError(f"length_scale must be a rule or positive numbers, not {quoted(scales)}")
    levels = model.levels
    if levels is not None and (
        isinstance(levels, str) or not isinstance(levels, int | Sequence | Mapping | np.ndarray)
    ):
        raise ValueError(
            f"levels must be a number, a list for each dimension or a mapping of names, not {quoted(levels)}"
        )


@dataclass(frozen=True, slots=True)
class Choices:
    """The distinct trade-offs of answers."""

    trade_offs: TradeOffMap
    grid: Grid | None  # that trade-offs were rounded to
    points: FloatArray  # (n_points, d), folded if antisymmetric
    places: IntArray | None  # (n_points,), codes in the grid


class Shown(NamedTuple):
    """Answers by what stood first: which row of the comparisons, codes of items, outcome and weight, all (n,)."""

    row: IntArray
    first: IntArray
    second: IntArray
    outcome: npt.NDArray[np.int8]
    weight: FloatArray


def as_shown(comparisons: Comparisons, antisymmetric: bool) -> Shown:
    """Answers by the side on which items were shown; where it is not known half of them each way.

    An antisymmetric function does not ask: all as they are.
    """
    left, right = comparisons.left.astype(np.int64), comparisons.right.astype(np.int64)
    rows = np.arange(comparisons.n_rows)
    if antisymmetric:
        return Shown(rows, left, right, comparisons.outcome, comparisons.weight)
    sides = np.zeros((len(rows), 2)) if comparisons.sides is None else comparisons.sides
    weight = (sides + 0.5 * np.maximum(comparisons.weight - sides.sum(axis=1), 0.0)[:, None]).T.ravel()
    kept = weight > 0.0
    first, second = np.append(left, right), np.append(right, left)
    outcome = np.append(comparisons.outcome, -comparisons.outcome)
    return Shown(np.append(rows, rows)[kept], first[kept], second[kept], outcome[kept], weight[kept])


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


def read_choices(model: Any, training: Training, antisymmetric: bool) -> tuple[Choices, CodedAnswers]:
    """Trade-offs of the answers, and the grid if asked for; DataError if attributes or grid do not serve."""
    answers, features = training.comparisons, training.features
    trade_offs = fit_trade_offs(
        features, answers, tau=model.tau, attributes=model.attributes, n_dimensions=model.n_dimensions,
        units=model.units, antisymmetric=antisymmetric,
    )  # fmt: skip
    matrix = None if features is None else training.space.matrix
    shown = as_shown(answers, antisymmetric)
    found = trade_offs.points(matrix, shown.first, shown.second, antisymmetric=antisymmetric)
    sign = found.sign
    points, point, places, grid = found.points, found.code, None, None
    report: dict[str, Any] = {"trade_offs": list(trade_offs.report), "dimensions": list(trade_offs.names)}
    if model.levels is not None or resolve(model).backend == "grid":
        weight = np.bincount(point, shown.weight, len(points))
        grid = Grid.of(points, weight, model.levels, antisymmetric=antisymmetric, trade_offs=trade_offs)
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
    choices = Choices(trade_offs, grid, points, places)
    return choices, CodedAnswers(shown.row, point.astype(np.int64), outcome, shown.weight, len(points), report)


_SCORED = 4000  # trade-offs that boards are made of
_FEW_QUESTIONS = 100  # whose variances on a grid are worked out exactly: a twentieth of a second each and more
_FEW_POINTS = 1500  # below, dense algebra over the points of a grid costs less than the grid


def kernel_parts(kernel: Kernel) -> tuple[float, Stationary, bool]:
    """Amplitude, kernel of amplitude 1 before it was made antisymmetric, and whether it was."""
    antisymmetric = isinstance(kernel, Antisymmetric)
    scaled = kernel.kernel if isinstance(kernel, Antisymmetric) else kernel
    assert isinstance(scaled, Scaled)
    assert isinstance(scaled.kernel, Stationary)
    return scaled.variance, scaled.kernel, antisymmetric


def basis_of(kernel: Kernel, choices: Choices, backend: str, n_c: int, n_rows: int) -> Basis:
    """The basis of a kernel over the trade-offs of answers, for so many characteristics and rows of answers."""
    if backend == "function" or choices.grid is None or choices.places is None:
        return DenseBasis.of(kernel, choices.points, MOST_RANK if n_rows <= FACTORISED else FACTORISED // n_c)
    amplitude, inner, antisymmetric = kernel_parts(kernel)
    scales = np.broadcast_to(inner.length_scales, len(choices.grid.levels))
    return GridBasis.of(
        choices.grid.levels, [Stationary(np.array([scale]), inner.shape) for scale in scales], choices.places,
        amplitude=amplitude, antisymmetric=antisymmetric,
    )  # fmt: skip


class Bases:
    """Cache of the last basis, which another amplitude only scales."""

    def __init__(self, choices: Choices, backend: str, n_c: int, n_rows: int) -> None:
        self.choices, self.backend, self.n_c, self.n_rows = choices, backend, n_c, n_rows
        self.kernel: Kernel | None = None
        self.basis: Basis | None = None

    def of(self, kernel: Kernel) -> Basis:
        """The basis of a kernel."""
        before, theta = self.kernel, kernel.theta
        if self.basis is not None and before is not None and np.array_equal(before.theta, theta):
            return self.basis
        if isinstance(self.basis, DenseBasis) and before is not None and np.array_equal(before.theta[1:], theta[1:]):
            self.basis = self.basis.times(math.exp(theta[0] - before.theta[0]), kernel)
        else:
            self.basis = basis_of(kernel, self.choices, self.backend, self.n_c, self.n_rows)
        self.kernel = kernel
        return self.basis


def choose_backend(asked: str, choices: Choices) -> str:
    """Choice of backend: "grid" for more than 1 500 trade-offs on a grid, else "function".

    gaspk.md 1.1: both give the same. A product takes n_points rank operations in function space, and n_T Σ n_d on the
    grid, for each characteristic.
    """
    if asked != "auto":
        return asked
    return "grid" if choices.grid is not None and len(choices.points) > _FEW_POINTS else "function"


def posterior_of(
    model: Any, trade_offs: TradeOffMap, kernel: Kernel, w: FloatArray, state: State, concentration: float,
    calibration: Calibration, space: FeatureSpace | None = None,
) -> GaSPKPosterior:  # fmt: skip
    """The posterior at a mode; ``space`` holds the attributes of the items, by default the model's."""
    basis = state.basis
    scores = item_scores(basis, kernel, trade_offs, model._space if space is None else space, model.seed_)
    amplitude, _, antisymmetric = kernel_parts(kernel)
    prior = 0.5 * amplitude if antisymmetric else amplitude
    curvature, low_rank, exact_up_to = curvature_at(state), None, math.inf
    how = resolve(model).variances
    if isinstance(curvature, ByProducts) and isinstance(basis, GridBasis) and how != "exact":
        form: Literal["consistent", "paper"] = "paper" if how == "paper" else "consistent"
        low_rank = LowRank.of(basis, state.B, int(model.n_eigenpairs), form=form)
        exact_up_to = _FEW_QUESTIONS if how == "auto" else 0
    left_open = left_open_at(state, w, resolve(model).gamma, concentration)
    if left_open is not None:
        left_open *= calibration.open_share
    return GaSPKPosterior(
        basis, w, curvature, state.gamma, scores, calibration.spread, prior, low_rank, exact_up_to, left_open,
        calibration.factors_of(state.answers),
    )  # fmt: skip


def item_scores(
    basis: Basis, kernel: Kernel, trade_offs: TradeOffMap, space: FeatureSpace, random_state: int
) -> ItemScores:
    """Scores of the items, each against the same references."""
    n_items = len(space.matrix)
    matrix = None if trade_offs.items_are_attributes else space.matrix
    against = _references(space.matrix if matrix is not None else np.eye(n_items), random_state)
    item, other = np.repeat(np.arange(n_items), len(against)), np.tile(against, n_items)
    signs = np.where(item == other, 0.0, 1.0).reshape(n_items, -1)
    t = trade_offs.pairs(matrix, item, other).reshape(n_items, len(against), -1)
    if not kernel_parts(kernel)[2]:  # the item on the left and on the right, half each
        t = np.concatenate([t, trade_offs.pairs(matrix, other, item).reshape(t.shape)], axis=1)
        signs = np.concatenate([signs, -signs], axis=1)
    return ItemScores.of(basis, kernel, t, signs)


def _references(rows: FloatArray, random_state: int) -> IntArray:
    """The items that every item is scored against: all, or as many as make 4 000 trade-offs, spread over them."""
    n_items = len(rows)
    n = min(n_items, max(1, _SCORED // n_items))
    if n == n_items:
        return np.arange(n_items)
    middle = rows.mean(axis=0)[None, :] if n == 1 else centres(rows, n, random_state)
    return np.unique([int(np.square(rows - centre).sum(axis=1).argmin()) for centre in middle])
