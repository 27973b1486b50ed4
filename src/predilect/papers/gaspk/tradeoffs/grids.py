"""Grids of trade-offs: the levels of every dimension, and the nearest grid point of a trade-off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predilect._base.arguments import numbers_in
from predilect._base.json import typed
from predilect._base.text import quoted, setting
from predilect._base.types import FloatArray, IntArray
from predilect.data.intake import counted
from predilect.errors import DataError
from predilect.papers.gaspk.tradeoffs.folding import CLOSE, as_rows, distinct_points, merge_close
from predilect.papers.gaspk.tradeoffs.map import TradeOffMap
from predilect.papers.gaspk.tradeoffs.natural_breaks import breaks_up_to

LevelsOf = int | ArrayLike | None

MOST_LEVELS = 25  # of a dimension, unless asked for
FEWEST_LEVELS = 5  # below which a dimension is not thinned out to save points
AIM = 100_000  # grid points, unless levels are given
MOST_POINTS = 10_000_000


@dataclass(frozen=True, slots=True, eq=False)
class LevelGrid:
    """All combinations of some levels in each dimension, in row-major order.

    If antisymmetric, point g and point n_points - 1 - g are t and -t, and levels hold 0 and the negative of each.
    """

    levels: tuple[FloatArray, ...]  # (n_levels,) of each dimension, ascending, in the units of the trade-offs
    antisymmetric: bool
    names: tuple[str, ...]  # of the dimensions
    scale: FloatArray  # (k,), own units in one unit of t
    report: tuple[str, ...] = ()  # where levels are natural breaks, and thinned out

    @classmethod
    def of(
        cls,
        t: ArrayLike,
        weights: ArrayLike | None = None,
        levels: int | Sequence[LevelsOf] | Mapping[str, LevelsOf] | None = None,
        *,
        antisymmetric: bool = True,
        trade_offs: TradeOffMap | None = None,
        aim: int = AIM,
        most: int = MOST_POINTS,
    ) -> Self:
        """Levels for trade-offs t (n, k), folded or not, with ``weights`` (n,) answers at each row.

        ``levels`` are for all dimensions, for each in turn, or by name (a column of the table of items names all of its
        dimensions): a number, at most which natural breaks find (of |t| if antisymmetric, where it must be odd); or the
        levels, in own units where ``trade_offs`` is given; or None: every value up to 25 of them (with 0 and mirrored
        if antisymmetric), else 25 natural breaks. Default levels are thinned out while the grid has more than ``aim``
        points. Raises DataError for more than ``most`` points, a dimension of one value, an unknown name, or levels
        that are even in number or without their mirror image although antisymmetric.

        docs/math/gaspk.md sections 3, step 0, and 4. Thinning: while there are more than ``aim`` points, of the
        dimensions with default levels and more than 5 of them the one is refined less (by 2 levels if antisymmetric, by
        1 if not) that loses the smallest share of its variance for the logarithm of the factor saved. The optimal
        breaks for all numbers of levels come from one dynamic programme. **Differs from the paper**, where levels are
        chosen by hand.
        """
        rows = merge_close(as_rows(t))
        n, k = rows.shape
        if not n or not k:
            raise DataError(f"a grid needs trade-offs of one dimension at least, got an array of shape {rows.shape}.")
        names = trade_offs.names if trade_offs is not None else tuple(f"dimension {d + 1}" for d in range(k))
        scale = trade_offs.scale if trade_offs is not None else np.ones(k)
        if len(names) != k:
            raise DataError(f"the trade-offs have {k} dimensions, but what they come from has {len(names)}.")
        w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        found: list[list[FloatArray]] = []
        losses: list[list[float]] = []
        asked = _asked(levels, names, trade_offs)
        for d, wanted in enumerate(asked):
            column = rows[:, d]
            if (column == column[0]).all() and (column[0] == 0.0 or not antisymmetric):
                raise DataError(
                    f'the trade-offs do not vary in "{names[d]}": it is {column[0] * scale[d]:.6g} in every answer, '
                    f"one level, which says nothing. Leave it out with attributes=[...]."
                )
            if wanted is None or isinstance(wanted, int | np.integer):
                number = MOST_LEVELS if wanted is None else int(wanted)
                ladder, lost = _ladder(column, w, number, antisymmetric, names[d])
                found.append(ladder if wanted is None else ladder[-1:])
                losses.append(lost if wanted is None else lost[-1:])
            else:
                found.append([_given(wanted, scale[d], antisymmetric, names[d])])
                losses.append([0.0])
        chosen = _thin_out(found, losses, aim)
        shape = [len(ladder[c]) for ladder, c in zip(found, chosen, strict=True)]
        _refuse_too_many(shape, names, most)
        report = []
        for d, ladder in enumerate(found):
            if losses[d][chosen[d]] > 0.0:
                thinned = chosen[d] < len(ladder) - 1
                why = f", for a grid of about {aim} points" if thinned else ""
                report.append(
                    f'Natural breaks: {shape[d]} levels of "{names[d]}", which keep '
                    f"{100 * (1 - losses[d][chosen[d]]):.4g} % of its variance{why}."
                )
        picked = tuple(ladder[c] for ladder, c in zip(found, chosen, strict=True))
        return cls(picked, antisymmetric, names, scale, tuple(report))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each dimension."""
        return tuple(len(level) for level in self.levels)

    @property
    def n_points(self) -> int:
        """Grid points."""
        return math.prod(self.shape)

    def points(self, code: ArrayLike | None = None) -> FloatArray:
        """Coordinates of grid points, by default of all; shape (m, k)."""
        where = np.unravel_index(np.arange(self.n_points) if code is None else np.asarray(code), self.shape)
        return np.stack([level[place] for level, place in zip(self.levels, where, strict=True)], axis=-1)

    def snap(self, t: ArrayLike) -> tuple[IntArray, NDArray[np.bool_]]:
        """Row-major codes of the nearest grid points of trade-offs (n, k), and whether they are exact.

        Exact means to 1e-12 of the largest level. A value half-way goes to the lower level; to that nearer 0 if
        antisymmetric, so that -t goes to the mirror image.
        """
        rows = as_rows(t)
        if rows.shape[1] != len(self.levels):
            raise DataError(f"the grid has {len(self.levels)} dimensions, the trade-offs {rows.shape[1]}.")
        code, exact = np.zeros(len(rows), dtype=np.int64), np.ones(len(rows), dtype=bool)
        for column, level in zip(rows.T, self.levels, strict=True):
            if self.antisymmetric:
                centre = len(level) // 2
                half = level[centre:]
                place = np.searchsorted(half[:-1] + 0.5 * np.diff(half), np.abs(column))
                place = centre + np.where(column < 0, -place, place)
            else:
                place = np.searchsorted(level[:-1] + 0.5 * np.diff(level), column)
            code *= len(level)
            code += place
            exact &= np.abs(column - level[place]) <= CLOSE * np.abs(level).max()
        return code, exact

    def fold(self, code: ArrayLike) -> tuple[IntArray, NDArray[np.int8]]:
        """Codes of t or -t, with the first nonzero coordinate > 0, and signs; DataError if not antisymmetric."""
        if not self.antisymmetric:
            raise DataError("this grid is not its own mirror image, so that its points cannot be folded.")
        codes = np.asarray(code, dtype=np.int64)
        turned = np.maximum(codes, self.n_points - 1 - codes)
        return turned, np.where(codes == turned, 1, -1).astype(np.int8)

    def rounded(self, t: ArrayLike) -> tuple[IntArray, NDArray[np.int8]]:
        """Codes of the nearest grid points of trade-offs (n, k), folded if antisymmetric, and the signs of that."""
        code, _ = self.snap(t)
        return self.fold(code) if self.antisymmetric else (code, np.ones(len(code), dtype=np.int8))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "levels": [level.tolist() for level in self.levels],
            "antisymmetric": self.antisymmetric,
            "names": list(self.names),
            "scale": self.scale.tolist(),
            "report": list(self.report),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """The grid that ``to_dict`` wrote."""
        grid: Self = typed(cls, plain, "grid")
        if not all(len(level) and np.isfinite(level).all() and (np.diff(level) > 0.0).all() for level in grid.levels):
            raise ValueError("levels that do not ascend")
        if not len(grid.levels) == len(grid.names) == len(grid.scale) or grid.n_points > MOST_POINTS:
            raise ValueError("a grid of other dimensions, or of too many points")
        return grid


def _asked(
    levels: int | Sequence[LevelsOf] | Mapping[str, LevelsOf] | None,
    names: tuple[str, ...],
    trade_offs: TradeOffMap | None,
) -> list[LevelsOf]:
    """The argument ``levels`` for each dimension."""
    if levels is None or isinstance(levels, int | np.integer):
        return [levels] * len(names)
    if isinstance(levels, Mapping):
        asked: list[LevelsOf] = [None] * len(names)
        for name, wanted in levels.items():
            if trade_offs is not None:
                places = trade_offs.find(name)
            elif name in names:
                places = (names.index(name),)
            else:
                raise DataError(f'levels are given for "{name}"; the dimensions are {", ".join(names)}.')
            for d in places:
                asked[d] = wanted
        return asked
    if len(levels) != len(names):
        raise DataError(
            f"levels are given for {counted(len(levels), 'dimension')}, the trade-offs have {len(names)}: "
            f"{', '.join(names)}. Name those that are meant, levels={{name: levels}}."
        )
    return list(levels)


def _ladder(
    column: FloatArray, w: FloatArray, number: int, antisymmetric: bool, name: str
) -> tuple[list[FloatArray], list[float]]:
    """Levels of a dimension from few to at most ``number``, and the share of its variance that each loses."""
    fewest = 3 if antisymmetric else 2
    if number < fewest or (antisymmetric and number % 2 == 0):
        odd = ", an odd number since they are mirrored about 0" if antisymmetric else ""
        near = f" Take {max(fewest, number - 1)} or {max(fewest, number - 1) + 2}." if antisymmetric else ""
        raise DataError(f'"{name}" needs at least {fewest} levels{odd}; got {number}.{near}')
    if not antisymmetric:
        breaks = breaks_up_to(column, number, w)[1:]
        return [b.levels for b in breaks], [b.share_lost for b in breaks]
    breaks = breaks_up_to(np.abs(column), (number + 1) // 2, w, zero_is_level=True)[1:]
    return [np.append(-b.levels[:0:-1], b.levels) for b in breaks], [b.share_lost for b in breaks]


def _given(wanted: ArrayLike, scale: float, antisymmetric: bool, name: str) -> FloatArray:
    levels = np.unique(numbers_in(f'the levels of "{name}"', wanted)) / scale + 0.0
    if not np.isfinite(levels).all() or len(levels) < 2:
        raise DataError(f'"{name}" needs at least two different levels, all finite numbers; got {quoted(wanted)}.')
    if not antisymmetric:
        return levels
    far = np.abs(levels + levels[::-1]) > 1e-9 * np.abs(levels).max()
    if far.any() or len(levels) % 2 == 0:
        lacks = "0" if not far.any() else f"{-levels[np.argmax(far)] * scale:.6g}"
        raise DataError(
            f'the levels of "{name}" must hold 0 and the negative of each, since t and -t are one trade-off; {lacks} '
            f"is missing. Add it, or set {setting('antisymmetric', False)}."
        )
    return 0.5 * (levels - levels[::-1])


def _thin_out(found: list[list[FloatArray]], losses: list[list[float]], aim: int) -> list[int]:
    """The rung of each ladder: the last, or lower where that saves most points for the variance it loses."""
    chosen = [len(ladder) - 1 for ladder in found]
    while math.prod(len(ladder[c]) for ladder, c in zip(found, chosen, strict=True)) > aim:
        price: dict[int, float] = {}
        for d, (ladder, c) in enumerate(zip(found, chosen, strict=True)):
            if c > 0 and len(ladder[c - 1]) >= FEWEST_LEVELS:
                saved = math.log(len(ladder[c]) / len(ladder[c - 1]))
                price[d] = (losses[d][c - 1] - losses[d][c]) / saved
        if not price:
            break
        chosen[min(price, key=lambda d: price[d])] -= 1
    return chosen


def _refuse_too_many(shape: list[int], names: tuple[str, ...], most: int) -> None:
    n_points = math.prod(shape)
    if n_points <= most:
        return
    largest = sorted(range(len(shape)), key=lambda d: -shape[d])[:3]
    shown = " x ".join(map(str, shape[:8])) + (" x ..." if len(shape) > 8 else "")
    raise DataError(
        f"the grid would have {shown} = {n_points:.6g} points, more than {most:.6g}. Give fewer levels (the most "
        f"are {', '.join(f'{shape[d]} of {names[d]}' for d in largest)}), use fewer attributes (attributes=[...]), "
        f'or do without a grid: backend="function".'
    )


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


def grid_loss(grid: LevelGrid, t: ArrayLike, weights: ArrayLike | None = None) -> GridLoss:
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
    _, count = np.unique(grid.rounded(points)[0], return_counts=True)
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
