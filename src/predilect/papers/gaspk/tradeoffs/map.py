"""Trade-offs: what the left item of a comparison has more, and less, of than the right one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from predilect._base.json import typed
from predilect._base.text import did_you_mean, either
from predilect._base.types import FloatArray
from predilect.data.encoding import Output
from predilect.data.frames import column_names, open_frame, to_columns
from predilect.errors import DataError
from predilect.papers.gaspk.tradeoffs.folding import CLOSE, Points, as_rows, distinct_points

TauFunction = Callable[[FloatArray, FloatArray], ArrayLike]

ITEM_LENGTH = float(np.sqrt(0.5))  # of one item among items that are their own attributes
_MOST_NUMBERS = 250_000_000  # 2 GB of trade-offs


@dataclass(frozen=True, slots=True)
class Dimension:
    """One number of a trade-off."""

    name: str  # of its column: "price", "fuel=hybrid"
    source: str  # column of the table of items
    kind: Literal["number", "missing", "category", "item", "custom"]
    unit: str | None  # of scale * t
    scale: float  # own units in one unit of t: for differences the standard deviation over the items

    @property
    def label(self) -> str:
        """The name, with the unit in brackets if it is known."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True, slots=True, eq=False)
class TradeOffMap:
    """The function from two items to a trade-off t = tau(left, right) of k numbers; made by ``fit_trade_offs``."""

    kind: Literal["difference", "relative", "custom"]
    dimensions: tuple[Dimension, ...]  # the d numbers of a trade-off
    place: tuple[int, ...]  # their columns in the items' features, or in what a function gives
    # columns of the features that a function reads, or from which relative changes are taken
    inputs: tuple[tuple[int, Output], ...]
    # categories left out, each minus another in every answer: category -> the category kept
    mirrors: Mapping[str, str]
    n_columns: int  # columns of the features, or items where these are their own attributes
    antisymmetric: bool = True  # whether tau(b, a) = -tau(a, b) on the data of the fit
    report: tuple[str, ...] = ()  # what was left out
    tau_name: str = ""  # name of a function
    function: TauFunction | None = None  # tau itself; not in ``to_dict``

    @property
    def n_dimensions(self) -> int:
        """Numbers of a trade-off."""
        return len(self.dimensions)

    @property
    def names(self) -> tuple[str, ...]:
        """Labels of the numbers, such as "price (EUR)"."""
        return tuple(dimension.label for dimension in self.dimensions)

    @property
    def scale(self) -> FloatArray:
        """Own units in one unit of each of the numbers, shape (d,)."""
        return np.array([dimension.scale for dimension in self.dimensions])

    @property
    def items_are_attributes(self) -> bool:
        """Whether there are no features, so that each item is an attribute."""
        return self.dimensions[0].kind == "item"

    def __call__(self, left: ArrayLike, right: ArrayLike) -> FloatArray:
        """Trade-offs (n, k) of items given by features (n, n_columns).

        Features as ``ItemFeatures.matrix`` and ``transform`` have them. Raises DataError for another number of columns,
        or if tau gives anything but finite numbers.
        """
        one, other = self._checked(left), self._checked(right)
        t = raw_trade_offs(self, one, other)
        if self.kind != "difference":
            t = t[:, list(self.place)] / np.array([d.scale if changes(self, d) else 1.0 for d in self.dimensions])
        return t

    def pairs(self, matrix: ArrayLike | None, left: NDArray[Any], right: NDArray[Any]) -> FloatArray:
        """Trade-offs (n, k) of pairs of rows of ``matrix`` (n_items, n_columns); None: items are their own attributes.

        Raises DataError beyond 2 GB, or as for calling the map.
        """
        if matrix is None and not self.items_are_attributes:
            raise DataError(
                f"these trade-offs are made of features ({', '.join(self.names[:5])} ...). Give the items'."
            )
        if len(left) * self.n_dimensions > _MOST_NUMBERS:
            raise DataError(
                f"{len(left)} trade-offs of {self.n_dimensions} dimensions take more than 2 GB. Name "
                f"fewer attributes, or ask for fewer at a time."
            )
        rows = self._checked(np.eye(self.n_columns) if matrix is None else matrix)
        codes = np.concatenate([left, right])
        if len(codes) and (codes.min() < 0 or codes.max() >= len(rows)):
            raise DataError(f"items must lie in [0, {len(rows)}), got {codes.min()} to {codes.max()}.")
        if self.kind == "difference":
            own = raw_trade_offs(self, rows, np.zeros((1, rows.shape[1])))
            return np.asarray(own[left] - own[right])
        return self(rows[left], rows[right])

    def points(
        self, matrix: ArrayLike | None, left: NDArray[Any], right: NDArray[Any], *, antisymmetric: bool = True
    ) -> Points:
        """Distinct trade-offs of many answers, each pair of items evaluated once; see ``distinct_points``."""
        n_items = int(max(left.max(initial=0), right.max(initial=0))) + 1
        pair, which = np.unique(left.astype(np.int64) * n_items + right, return_inverse=True)
        found = distinct_points(self.pairs(matrix, pair // n_items, pair % n_items), antisymmetric)
        return Points(found.points, found.code[which], found.sign[which])

    def in_units(self, t: ArrayLike) -> dict[str, FloatArray]:
        """Trade-offs in the attributes' own units: label -> column of shape (n,).

        Differences of numbers in their unit, of categories and items in {-1, 0, 1}; relative changes as fractions of
        the mean size of both.
        """
        rows = as_rows(t)
        if rows.shape[1] != self.n_dimensions:
            raise DataError(f"these trade-offs have {self.n_dimensions} dimensions, the array has {rows.shape[1]}.")
        return {d.label: tidy(rows[:, k] * d.scale, d.scale) for k, d in enumerate(self.dimensions)}

    def from_units(self, frame: Any) -> FloatArray:
        """Trade-offs (n, k) from columns in own units, by name or label: the inverse of ``in_units``.

        A missing column or an empty cell is 0. Raises DataError if a column is not a dimension of these trade-offs.
        """
        table, _ = open_frame(frame)
        names = column_names(table)
        series = to_columns(table, names)
        t = np.zeros((len(next(iter(series.values()))) if names else 0, len(self.dimensions)))
        for name in names:
            kept = self.mirrors.get(name, name)
            found = [k for k, d in enumerate(self.dimensions) if kept in (d.name, d.label)]
            if not found:
                known = ", ".join(d.label for d in self.dimensions)
                raise DataError(f'"{name}" is no attribute of these trade-offs; the attributes are {known}')
            if not (series[name].dtype.is_numeric() or series[name].dtype in (pl.Boolean, pl.Null)):
                raise DataError(f'column "{name}" must hold numbers, how much more of it the left item has.')
            amount = series[name].cast(pl.Float64).fill_null(0.0).to_numpy()
            t[:, found[0]] += (-amount if name in self.mirrors else amount) / self.dimensions[found[0]].scale
        as_rows(t)
        return t

    def find(self, name: str) -> tuple[int, ...]:
        """Positions of the dimension of that label or name, or of all of a column; DataError if there is none."""
        of_each = [(d.label, d.name) for d in self.dimensions]
        found = tuple(k for k, known in enumerate(of_each) if name in known)
        found = found or tuple(k for k, d in enumerate(self.dimensions) if d.source == name)
        if not found:
            raise DataError(
                f'there is no attribute "{name}"; there are {", ".join(self.names)}.{did_you_mean(name, self.names)}'
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a custom function only by its name."""
        return {
            "kind": self.kind,
            "dimensions": [asdict(dimension) for dimension in self.dimensions],
            "place": list(self.place),
            "inputs": [[column, asdict(output)] for column, output in self.inputs],
            "mirrors": dict(self.mirrors),
            "n_columns": self.n_columns,
            "antisymmetric": self.antisymmetric,
            "report": list(self.report),
            "tau_name": self.tau_name,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """The map that ``to_dict`` wrote; DataError if it used a function, which is not kept."""
        if plain["kind"] == "custom":
            raise DataError(f'these trade-offs were made by the function "{plain["tau_name"]}". Give it again, tau=...')
        found: Self = typed(cls, dict(plain), "trade-offs")
        columns = range(found.n_columns if found.kind == "difference" else len(found.inputs))
        scales = [dimension.scale for dimension in found.dimensions]
        if not scales or not all(0.0 < scale < np.inf for scale in scales) or len(found.place) != len(scales):
            raise ValueError("dimensions without a scale, or without a place")
        if not all(place in columns for place in found.place):
            raise ValueError("dimensions of columns that are not there")
        if not all(0 <= column < found.n_columns for column, _ in found.inputs):
            raise ValueError("inputs of columns that are not there")
        return found

    def steps(self) -> list[Step]:
        """A step for every number, and in every column of categories one for each category instead of the first.

        Marks of missing numbers are left out. Where items are their own attributes there are none.
        """
        steps, seen = [], set()
        for dimension in self.dimensions:
            if dimension.kind in ("number", "custom"):
                steps.append(self.step(dimension.label))
            elif dimension.kind == "category" and dimension.source not in seen:
                seen.add(dimension.source)
                first, *others = [d.name for d in _categories(self, dimension.source)]
                steps += [self.step(name) for name in others or [first]]
        return steps

    def step(self, name: str) -> Step:
        """The step of that name; DataError if there is none, or items are their own attributes.

        Label or name of a number; "fuel=gas instead of fuel=petrol"; "fuel=gas": instead of the first category, or the
        first instead of the second; "fuel", if it has two categories.
        """
        if self.items_are_attributes:
            raise DataError(
                "this model was fitted without a table of items: items are their own attributes, which come in no "
                f"amounts. Fit it with {either('--items FILE', 'items=...')}."
            )
        gained, _, lost = str(name).partition(_INSTEAD)
        found = _dimension(self, gained)
        if found is not None and found.kind != "category" and not lost:
            return _made(self, found.label, found, {found.name: 1.0})
        if found is not None and found.kind == "category":
            mirrors = self.mirrors
            others = [d.name for d in _categories(self, found.source)]
            others += [mirror for mirror, kept in mirrors.items() if kept in others]
            others.remove(gained)
            if lost in others or not lost:
                lost = lost or (others[0] if others else "")
                label = f"{gained}{_INSTEAD}{lost}" if lost else gained
                changes = {mirrors.get(gained, gained): -1.0 if gained in mirrors else 1.0}
                if lost and mirrors.get(lost, lost) not in changes:
                    changes[mirrors.get(lost, lost)] = 1.0 if lost in mirrors else -1.0
                return _made(self, label, found, changes)
        of_column = [d.name for d in self.dimensions if d.source == name and d.kind != "missing"]
        if len(of_column) == 1:
            return self.step(of_column[0])
        known = [step.label for step in self.steps() if not of_column or step.source == name]
        listed = ", ".join(known[:_MOST_LISTED]) + (" ..." if len(known) > _MOST_LISTED else "")
        if of_column:
            raise DataError(f'"{name}" has several categories. Name a change, such as: {listed}.')
        raise DataError(f'there is no attribute "{name}"; there are {listed}.{did_you_mean(name, known)}')

    def _checked(self, rows: ArrayLike) -> FloatArray:
        matrix = np.asarray(rows, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != self.n_columns:
            raise DataError(
                f"expected items with {self.n_columns} columns of features, got an array of shape {matrix.shape}. "
                f"Encode new items with the features' own transform."
            )
        return matrix


def changes(trade_offs: TradeOffMap, dimension: Dimension) -> bool:
    """Whether a dimension is scaled by its size over the answers, and not by the attribute's deviation."""
    return trade_offs.kind == "custom" or (trade_offs.kind == "relative" and dimension.kind == "number")


def raw_trade_offs(trade_offs: TradeOffMap, left: FloatArray, right: FloatArray) -> FloatArray:
    """Trade-offs before scaling: (n, d) for differences, else (n, n_raw) of all inputs.

    Raises DataError if a function gives anything but finite numbers, one row each.
    """
    if trade_offs.kind == "difference":
        columns = list(trade_offs.place)
        length = ITEM_LENGTH if trade_offs.items_are_attributes else 1.0
        return (left[:, columns] - right[:, columns]) * length
    one, other = (_original(trade_offs.inputs, rows) for rows in (left, right))
    if trade_offs.function is None:
        t = np.empty((len(left), len(trade_offs.inputs)))
        for k, (column, output) in enumerate(trade_offs.inputs):
            if output.kind == "number":
                size = np.abs(one[:, k]) + np.abs(other[:, k])
                t[:, k] = np.where(size > 0, 2.0 * (one[:, k] - other[:, k]) / np.where(size > 0, size, 1.0), 0.0)
            else:
                t[:, k] = left[:, column] - right[:, column]
        return t
    t = np.asarray(trade_offs.function(one, other), dtype=np.float64)
    t = t[:, None] if t.ndim == 1 else t
    least = max(trade_offs.place, default=0)
    if t.ndim != 2 or len(t) != len(left) or t.shape[1] <= least:
        raise DataError(
            f"tau must give one row of numbers for each of {len(left)} pairs, but gave an array of shape {t.shape}."
        )
    if not np.isfinite(t).all():
        row = int(np.flatnonzero(~np.isfinite(t).all(axis=1))[0])
        raise DataError(f"tau gave {t[row]} for the items {one[row]} and {other[row]}. It must give finite numbers.")
    return t


def _original(inputs: tuple[tuple[int, Output], ...], rows: FloatArray) -> FloatArray:
    """Values of attributes in their own units, categories as 0 and 1, without the noise of standardising."""
    original = np.empty((len(rows), len(inputs)))
    for k, (column, output) in enumerate(inputs):
        values = rows[:, column] * output.scale + output.centre
        original[:, k] = tidy(values, abs(output.centre) + output.scale)
    return original


def tidy(values: FloatArray, size: float) -> FloatArray:
    """Values rounded to the twelfth digit of ``size``, as 0.3 for 0.30000000000000004."""
    decimals = int(np.clip(-np.log10(CLOSE) - np.ceil(np.log10(size)), -290, 290))
    return np.asarray(np.round(values, decimals) + 0.0)


_INSTEAD = " instead of "
_MOST_LISTED = 20


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A direction among trade-offs."""

    label: str  # "price (EUR)", or "fuel=hybrid instead of fuel=petrol"
    source: str  # column of the table of items
    is_number: bool  # else an amount of 1 is one category instead of another
    dimension: Dimension  # of two categories the one that is gained
    direction: FloatArray  # (k,), the trade-off of one own unit


def round_size(size: float) -> float:
    """1, 2 or 5 times a power of ten, the nearest to ``size`` > 0 by ratio."""
    power = 10.0 ** np.floor(np.log10(size))
    steps = np.array([1.0, 2.0, 5.0, 10.0])
    return float(f"{steps[np.argmin(np.abs(np.log(steps * power / size)))] * power:.1g}")


def _made(trade_offs: TradeOffMap, label: str, dimension: Dimension, changes: dict[str, float]) -> Step:
    t = np.array([changes.get(d.name, 0.0) / d.scale for d in trade_offs.dimensions])
    return Step(label, dimension.source, dimension.kind != "category", dimension, t)


def _categories(trade_offs: TradeOffMap, source: str) -> list[Dimension]:
    return [d for d in trade_offs.dimensions if d.kind == "category" and d.source == source]


def _dimension(trade_offs: TradeOffMap, name: str) -> Dimension | None:
    kept = trade_offs.mirrors.get(name, name)
    return next((d for d in trade_offs.dimensions if kept in (d.name, d.label)), None)
