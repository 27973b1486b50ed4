"""Discretisation error of a grid of trade-offs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predilect.data.folding import CLOSE, as_rows, distinct_points
from predilect.data.grids import Grid
from predilect.errors import DataError

__all__ = ["GridLoss", "grid_loss"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GridLoss:
    """Discretisation error, by dimension and in all; means and shares are over answers."""

    names: tuple[str, ...]
    rms: FloatArray  # (k,), root mean square change, in units of the trade-offs
    rms_in_units: FloatArray  # (k,), in each dimension's own units
    variance_lost: FloatArray  # (k,), of the mean square about 0 if antisymmetric, else about the mean
    moved: FloatArray  # (k,), share of answers whose value is no level
    moved_at_all: float  # share of answers moved in any dimension
    lost_to_zero: float  # share of answers whose trade-off became 0
    n_trade_offs: int  # different ones before
    n_points: int  # and after
    n_pairs_merged: int  # pairs of different trade-offs that became one

    def lines(self) -> list[str]:
        """Sentences for a report: one in all, and one for each dimension that loses anything."""
        if self.moved_at_all == 0.0:
            return [f"Every trade-off lies on the grid ({self.n_trade_offs} different ones)."]
        lines = [
            f"The grid moves {_percent(self.moved_at_all)} of the answers; {self.n_trade_offs} different trade-offs "
            f"become {self.n_points} ({self.n_pairs_merged} pairs become one)."
        ]
        if self.lost_to_zero > 0.0:
            lines.append(
                f"{_percent(self.lost_to_zero)} of the answers are about differences so small that they become none: "
                f"use more levels."
            )
        lines += [
            f"{name}: {_percent(moved)} of the answers are moved, by {rms:.3g} (root mean square), which is "
            f"{_percent(lost)} of the variance."
            for name, moved, rms, lost in zip(
                self.names, self.moved, self.rms_in_units, self.variance_lost, strict=True
            )
            if moved > 0.0
        ]
        return lines


def grid_loss(grid: Grid, t: ArrayLike, weights: ArrayLike | None = None) -> GridLoss:
    """Discretisation error of trade-offs t (n, k) with ``weights`` (n,) answers a row; DataError if they do not fit."""
    rows = as_rows(t)
    code, _ = grid.snap(rows)
    w = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (len(rows),) or not w.sum() > 0:
        raise DataError(f"weights must be {len(rows)} numbers, some of them positive.")
    w = w / w.sum()
    change = grid.points(code) - rows
    far = np.abs(change) > CLOSE * np.array([np.abs(level).max() for level in grid.levels])
    squares = w @ np.where(far, change, 0.0) ** 2
    about = np.zeros(rows.shape[1]) if grid.antisymmetric else w @ rows
    spread = w @ (rows - about) ** 2
    points = distinct_points(rows, grid.antisymmetric).points
    after, _ = grid.snap(points)
    if grid.antisymmetric:
        after, _ = grid.fold(after)
    _, count = np.unique(after, return_counts=True)
    became_zero = ~grid.points(code).any(axis=1) & far.any(axis=1)
    rms = np.sqrt(squares)
    return GridLoss(
        names=grid.names,
        rms=rms,
        rms_in_units=rms * grid.scale,
        variance_lost=np.divide(squares, spread, out=np.zeros_like(rms), where=spread > 0),
        moved=w @ far,
        moved_at_all=float(w @ far.any(axis=1)),
        lost_to_zero=float(w @ became_zero),
        n_trade_offs=len(points),
        n_points=len(count),
        n_pairs_merged=int((count * (count - 1) // 2).sum()),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
