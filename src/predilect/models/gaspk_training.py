"""From what ``GaSPK.fit`` is given to a fitted posterior."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels import Antisymmetric, Kernel, Scaled, Stationary
from predilect.data import Comparisons, k_folds_answers
from predilect.data.grid_loss import grid_loss
from predilect.data.grids import Grid
from predilect.data.tradeoff_fit import fit_trade_offs
from predilect.data.tradeoffs import TradeOffMap
from predilect.errors import DataError
from predilect.inference.gaspk.answers import TradeOffAnswers
from predilect.inference.gaspk.em import EM, Settings
from predilect.inference.gaspk.fit import Candidate, Trial, best_start, try_candidates
from predilect.inference.gaspk.hyperparameters import LENGTH_RULES, by_evidence, length_scales_by_rule
from predilect.inference.gaspk.mode import State
from predilect.inference.gaspk.solve import FACTORISED, curvature_at
from predilect.inference.inducing import centres
from predilect.inference.prior import FeatureSpace
from predilect.inference.report import Report
from predilect.inference.training import Watcher
from predilect.models.gaspk_parameters import Resolved, resolve
from predilect.models.inputs import Training
from predilect.posteriors.gaspk.basis import MOST_RANK, Basis, DenseBasis
from predilect.posteriors.gaspk.grid import GridBasis
from predilect.posteriors.gaspk.low_rank import LowRank
from predilect.posteriors.gaspk.posterior import GaSPKPosterior
from predilect.posteriors.gaspk.products import ByProducts
from predilect.posteriors.gaspk.scores import ItemScores

__all__ = ["Choices", "FittedGaSPK", "Told", "basis_of", "fit_gaspk", "posterior_of", "read_choices"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_AMPLITUDES = (1.0, 3.0, 10.0, 30.0)
_NUMBERS = (1, 2, 3, 5, 10)
_FOLDS, _ENOUGH_HELD_OUT = 5, 600.0
_MOST_PEOPLE_TRIED = 1000
_SCORED = 4000  # trade-offs that boards are made of
_FEW_QUESTIONS = 100  # whose variances on a grid are worked out exactly: a twentieth of a second each and more
_FEW_POINTS = 1500  # below, dense algebra over the points of a grid costs less than the grid


@dataclass(frozen=True, slots=True)
class Choices:
    """Answers as answers about trade-offs.

    Attributes
    ----------
    trade_offs : TradeOffMap
    grid : Grid or None
        Where trade-offs were brought to, if anywhere.
    points : array of float, shape (n_points, d)
        The distinct trade-offs, folded if antisymmetric.
    places : array of int, shape (n_points,), or None
        Their codes in the grid.
    """

    trade_offs: TradeOffMap
    grid: Grid | None
    points: FloatArray
    places: IntArray | None


@dataclass(frozen=True, slots=True)
class Told:
    """What the rows of comparisons say of the points.

    Attributes
    ----------
    point : array of int, shape (n_rows,)
    outcome : array of int8, shape (n_rows,)
    n_points : int
    report : dict
        What became of attributes and trade-offs.
    """

    point: IntArray
    outcome: npt.NDArray[np.int8]
    n_points: int
    report: dict[str, Any]

    def answers(self, comparisons: Comparisons, rows: npt.NDArray[np.bool_] | None = None) -> TradeOffAnswers:
        """The answers, or some of them."""
        some = np.ones(comparisons.n_rows, dtype=bool) if rows is None else rows
        return TradeOffAnswers.of(
            comparisons.user[some], self.point[some], self.outcome[some], comparisons.weight[some],
            n_users=comparisons.n_users, n_points=self.n_points,
        )  # fmt: skip


class FittedGaSPK(NamedTuple):
    """What the estimator keeps of a fit."""

    posterior: GaSPKPosterior
    choices: Choices
    answers: TradeOffAnswers
    backend: str
    kernel: Kernel
    em: EM
    spread: float
    personal: bool
    report: Report
    search: dict[str, Any]


def read_choices(model: Any, training: Training, antisymmetric: bool) -> tuple[Choices, Told]:
    """Trade-offs of the answers, and the grid if one is asked for.

    Raises
    ------
    DataError
        If attributes do not vary, items with answers have none, or the grid is too large.
    """
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
        report["grid"] = {"levels": list(grid.shape), "points": grid.n_points, "loss": list(grid_loss(grid, points, weight).lines())}
        points, point = grid.points(places), which[point]
    outcome = (answers.outcome * sign).astype(np.int8)
    report["n_trade_offs"] = len(points)
    choices = Choices(trade_offs, grid, points, places)
    return choices, Told(point.astype(np.int64), outcome, len(points), report)


def basis_of(kernel: Kernel, choices: Choices, backend: str, n_c: int, n_rows: int) -> Basis:
    """The basis of a kernel over the trade-offs of answers, for so many characteristics and rows of answers."""
    if backend == "function" or choices.grid is None or choices.places is None:
        return DenseBasis.of(kernel, choices.points, MOST_RANK if n_rows <= FACTORISED else FACTORISED // n_c)
    antisymmetric = isinstance(kernel, Antisymmetric)
    scaled = kernel.kernel if isinstance(kernel, Antisymmetric) else kernel
    assert isinstance(scaled, Scaled) and isinstance(scaled.kernel, Stationary)
    inner = scaled.kernel
    scales = np.broadcast_to(inner.length_scales, len(choices.grid.levels))
    return GridBasis.of(
        choices.grid.levels, [Stationary(np.array([scale]), inner.shape) for scale in scales], choices.places,
        amplitude=scaled.variance, antisymmetric=antisymmetric,
    )  # fmt: skip


class _Bases:
    """The last basis, which one of another amplitude only scales."""

    def __init__(self, choices: Choices, backend: str, n_c: int, n_rows: int) -> None:
        self.made = lambda kernel: basis_of(kernel, choices, backend, n_c, n_rows)
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
            self.basis = self.made(kernel)
        self.kernel = kernel
        return self.basis


def choose_backend(asked: str, choices: Choices) -> str:
    """Where the algebra is done: "grid" or "function".

    Notes
    -----
    gaspk.md 1.1: both give the same. A product takes n_points rank operations in function space, and n_T Σ n_d on the
    grid, for each characteristic. Function space it is without a grid, and on a grid with up to 1 500 trade-offs.
    """
    if asked != "auto":
        return asked
    return "grid" if choices.grid is not None and len(choices.points) > _FEW_POINTS else "function"


def fit_gaspk(
    model: Any, training: Training, delta: float | None, executor: ThreadPoolExecutor | None, watch: Watcher | None
) -> FittedGaSPK:
    """Fit ``model``, a GaSPK.

    Raises
    ------
    DataError
        If attributes do not vary, items with answers have none, or the grid is too large.
    """
    answers, how = training.comparisons, resolve(model)
    personal = answers.has_users and answers.n_users > 1
    choices, told = read_choices(model, training, how.antisymmetric)
    backend = choose_backend(how.backend, choices)
    settings = Settings(model.gamma, how.damping, float(model.tolerance), max_rounds=int(model.max_iterations))
    start = _kernel(model, choices, how.antisymmetric)
    shared = {"delta": delta, "random_state": int(model.random_state), "executor": executor}
    bases = _Bases(choices, backend, max(_numbers(model, personal)), answers.n_rows)
    trials = _trials(model, how, personal, told, answers, start, bases, settings, shared, watch)
    best = min(trials, key=lambda trial: trial.log_loss) if trials else None
    numbers = _numbers(model, personal)
    chosen = best.candidate if best else Candidate(start(_amplitudes(how)[0]), numbers[0])
    kernel, whole, at_bound = chosen.kernel, told.answers(answers), ()
    progress = None if watch is None else (lambda share: watch("fitting characteristics, %", round(100 * share)))
    if fixed := _to_learn(model, how, kernel):
        first = best_start(bases.of(kernel), whole, chosen.n_c, settings, 1, **shared)
        found = by_evidence(
            kernel, choices.points, whole, first.em.gamma, first.em.delta, fixed=fixed,
            random_state=int(model.random_state),
        )  # fmt: skip
        kernel, at_bound = found.kernel, found.at_bound
    fitted = best_start(bases.of(kernel), whole, chosen.n_c, settings, int(model.n_restarts), **shared, progress=progress)
    em = fitted.em
    spread = how.spread if how.spread is not None else best.spread if best else 1.0
    posterior = posterior_of(
        model, choices.trade_offs, kernel, bases.of(kernel), em.mode.w, em.gamma, em.mode.state, spread, training.space
    )
    search = {
        **told.report, "backend": backend, "rank": bases.of(kernel).rank,
        "left_out": getattr(bases.of(kernel), "left_out", 0.0), "at_bound": list(at_bound),
        "evidence_of_starts": list(fitted.evidences),
        "trials": [
            {**_values(t.candidate.kernel), "n_characteristics": t.candidate.n_c, "log_loss": t.log_loss,
             "spread": t.spread} for t in trials
        ],
    }  # fmt: skip
    return FittedGaSPK(posterior, choices, whole, backend, kernel, em, spread, personal, fitted.report, search)


def posterior_of(
    model: Any, trade_offs: TradeOffMap, kernel: Kernel, basis: Basis, w: FloatArray, gamma: FloatArray, state: State,
    spread: float, space: FeatureSpace | None = None,
) -> GaSPKPosterior:  # fmt: skip
    """The posterior at a mode; ``space`` holds the attributes of the items, by default the model's."""
    scores = item_scores(basis, kernel, trade_offs, model.space_ if space is None else space, model.random_state)
    curvature, low_rank, exact_up_to = curvature_at(state), None, math.inf
    how = resolve(model).variances
    if isinstance(curvature, ByProducts) and isinstance(basis, GridBasis) and how != "exact":
        form: Literal["consistent", "paper"] = "paper" if how == "paper" else "consistent"
        low_rank = LowRank.of(basis, state.B, int(model.n_eigenpairs), form=form)
        exact_up_to = _FEW_QUESTIONS if how == "auto" else 0
    return GaSPKPosterior(basis, w, curvature, gamma, scores, spread, _prior_variance(kernel), low_rank, exact_up_to)


def item_scores(
    basis: Basis, kernel: Kernel, trade_offs: TradeOffMap, space: FeatureSpace, random_state: int
) -> ItemScores:
    """Scores of the items, each against the same references."""
    n_items = len(space.matrix)
    matrix = None if trade_offs.items_are_attributes else space.matrix
    against = _references(space.matrix if matrix is not None else np.eye(n_items), random_state)
    left, right = np.repeat(np.arange(n_items), len(against)), np.tile(against, n_items)
    t = trade_offs.pairs(matrix, left, right)
    return ItemScores.of(basis, kernel, t.reshape(n_items, len(against), -1))


def _references(rows: FloatArray, random_state: int) -> IntArray:
    """The items that every item is scored against: all, or as many as make 4 000 trade-offs, spread over them."""
    n_items = len(rows)
    n = min(n_items, max(1, _SCORED // n_items))
    if n == n_items:
        return np.arange(n_items)
    middle = rows.mean(axis=0)[None, :] if n == 1 else centres(rows, n, random_state)
    return np.unique([int(np.square(rows - centre).sum(axis=1).argmin()) for centre in middle])


def _kernel(model: Any, choices: Choices, antisymmetric: bool) -> Callable[[float], Kernel]:
    """The kernel of an amplitude."""
    d = choices.points.shape[1]
    scales = model.length_scales
    if isinstance(scales, str):
        rule = scales if scales in LENGTH_RULES else "per-dimension"
        lengths = length_scales_by_rule(choices.points, rule, antisymmetric, int(model.random_state))
    else:
        lengths = np.atleast_1d(np.asarray(scales, dtype=np.float64))
        if len(lengths) not in (1, d):
            raise DataError(
                f"length_scales holds {len(lengths)} numbers, but trade-offs have {d} dimensions: "
                f"{', '.join(choices.trade_offs.names)}. Give one number for all, or one for each."
            )
        lengths = np.broadcast_to(lengths, d).copy()

    def of(amplitude: float) -> Kernel:
        kernel = Scaled(Stationary(lengths, model.kernel, "product"), amplitude)
        return Antisymmetric(kernel) if antisymmetric else kernel

    return of


def _amplitudes(how: Resolved) -> tuple[float, ...]:
    if isinstance(how.amplitude, str):
        return _AMPLITUDES if how.amplitude == "auto" else (_AMPLITUDES[1],)
    return (float(how.amplitude),)


def _numbers(model: Any, personal: bool) -> tuple[int, ...]:
    if not personal:
        return (1,)
    return _NUMBERS if isinstance(model.n_characteristics, str) else (int(model.n_characteristics),)


def _to_learn(model: Any, how: Resolved, kernel: Kernel) -> tuple[str, ...] | None:
    """Names of what the evidence is not to learn; None if it learns nothing."""
    amplitude, lengths = how.amplitude == "evidence", isinstance(model.length_scales, str) and model.length_scales == "evidence"
    if not amplitude and not lengths:
        return None
    return tuple(n for n in kernel.names if (n == "variance" and not amplitude) or (n != "variance" and not lengths))


def _prior_variance(kernel: Kernel) -> float:
    """Of a characteristic far from the trade-off 0."""
    scaled = kernel.kernel if isinstance(kernel, Antisymmetric) else kernel
    assert isinstance(scaled, Scaled)
    return 0.5 * scaled.variance if isinstance(kernel, Antisymmetric) else scaled.variance


def _values(kernel: Kernel) -> dict[str, float]:
    return dict(zip(kernel.names, np.exp(kernel.theta).tolist(), strict=True))


def _trials(
    model: Any, how: Resolved, personal: bool, choices: Told, answers: Comparisons,
    kernel: Callable[[float], Kernel], bases: _Bases, settings: Settings, shared: dict[str, Any],
    watch: Watcher | None,
) -> list[Trial]:  # fmt: skip
    """What held-out answers say of amplitudes and numbers of characteristics, and of how sure to be."""
    numbers, amplitudes = _numbers(model, personal), _amplitudes(how)
    if how.spread is not None and len(numbers) == len(amplitudes) == 1:
        return []
    folds = []
    fold, held_out = k_folds_answers(answers, _FOLDS, random_state=int(model.random_state)), 0.0
    drawn = np.random.default_rng(int(model.random_state)).permutation(answers.n_users)[:_MOST_PEOPLE_TRIED]
    tried = np.isin(answers.user, drawn)
    for k in range(_FOLDS):
        out = tried & (fold == k)
        if not out.any() or held_out >= _ENOUGH_HELD_OUT:
            continue
        folds.append((choices.answers(answers, tried & ~out), choices.answers(answers, out)))
        held_out += float(answers.weight[out].sum())
    if not folds:
        return []
    candidates = [Candidate(kernel(amplitude), n) for amplitude in amplitudes for n in numbers]
    told = None if watch is None else (lambda share: watch("trying amplitudes on held-out answers, %", round(100 * share)))
    return try_candidates(candidates, bases.of, folds, settings, **shared, progress=told)
