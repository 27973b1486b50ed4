"""Choice of the basis of ``GaSPK`` (grid or function space), and the posterior in it."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from predilect._types import FloatArray, IntArray
from predilect.data.features import FeatureSpace
from predilect.gaussian.kernels import Antisymmetric, Kernel, Scaled, Stationary
from predilect.gaussian.projection import centres
from predilect.models.gaspk.em.mode import FACTORISED, State, curvature_at
from predilect.models.gaspk.parameters import Choices, resolve
from predilect.models.gaspk.posterior.grid import GridBasis
from predilect.models.gaspk.posterior.low_rank import LowRank
from predilect.models.gaspk.posterior.posterior import GaSPKPosterior
from predilect.models.gaspk.posterior.scores import MOST_RANK, Basis, DenseBasis, ItemScores
from predilect.models.gaspk.posterior.solver import ByProducts
from predilect.models.gaspk.tradeoffs.map import TradeOffMap

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
    model: Any, trade_offs: TradeOffMap, kernel: Kernel, basis: Basis, w: FloatArray, gamma: FloatArray, state: State,
    spread: float, space: FeatureSpace | None = None,
) -> GaSPKPosterior:  # fmt: skip
    """The posterior at a mode; ``space`` holds the attributes of the items, by default the model's."""
    scores = item_scores(basis, kernel, trade_offs, model.space_ if space is None else space, model.random_state)
    amplitude, _, antisymmetric = kernel_parts(kernel)
    prior = 0.5 * amplitude if antisymmetric else amplitude
    curvature, low_rank, exact_up_to = curvature_at(state), None, math.inf
    how = resolve(model).variances
    if isinstance(curvature, ByProducts) and isinstance(basis, GridBasis) and how != "exact":
        form: Literal["consistent", "paper"] = "paper" if how == "paper" else "consistent"
        low_rank = LowRank.of(basis, state.B, int(model.n_eigenpairs), form=form)
        exact_up_to = _FEW_QUESTIONS if how == "auto" else 0
    return GaSPKPosterior(basis, w, curvature, gamma, scores, spread, prior, low_rank, exact_up_to)


def item_scores(
    basis: Basis, kernel: Kernel, trade_offs: TradeOffMap, space: FeatureSpace, random_state: int
) -> ItemScores:
    """Scores of the items, each against the same references."""
    n_items = len(space.matrix)
    matrix = None if trade_offs.items_are_attributes else space.matrix
    against = _references(space.matrix if matrix is not None else np.eye(n_items), random_state)
    item, other = np.repeat(np.arange(n_items), len(against)), np.tile(against, n_items)
    signs = np.where(item == other, 0.0, 1.0)
    if not kernel_parts(kernel)[2]:  # the answers had the item with the smaller code on the left
        signs = np.sign(other - item).astype(float)
    t = trade_offs.pairs(matrix, np.where(signs < 0.0, other, item), np.where(signs < 0.0, item, other))
    return ItemScores.of(basis, kernel, t.reshape(n_items, len(against), -1), signs.reshape(n_items, len(against)))


def _references(rows: FloatArray, random_state: int) -> IntArray:
    """The items that every item is scored against: all, or as many as make 4 000 trade-offs, spread over them."""
    n_items = len(rows)
    n = min(n_items, max(1, _SCORED // n_items))
    if n == n_items:
        return np.arange(n_items)
    middle = rows.mean(axis=0)[None, :] if n == 1 else centres(rows, n, random_state)
    return np.unique([int(np.square(rows - centre).sum(axis=1).argmin()) for centre in middle])
