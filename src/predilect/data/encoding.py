"""Encoding of columns of features as numbers: centred and scaled, a column for each category."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._base.forks import refuse_without_threads
from predilect._base.text import first_few, shown
from predilect.data.frames import as_text
from predilect.data.intake import counted
from predilect.data.vocabulary import Vocabulary, rises
from predilect.errors import DataError

FREE_TEXT_VALUES = 50
_FARTHEST = 1e100  # standard deviations of a new number; the squares of far larger ones are no numbers
_SMALLEST = float(np.finfo(np.float64).tiny)  # below it numbers lose their digits, and what is per unit overflows


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the matrix: ``(raw - centre) / scale`` of a source column, 0 where a number is missing.

    Of a number that is piecewise linear, what of it lies between ``low`` and ``high``, None at an open end. Of a
    product, whose source is a term such as "price:brand", raw values are those of two columns before it, multiplied.
    """

    name: str
    source: str
    kind: Literal["number", "missing", "category", "product"]
    category: str | None
    centre: float
    scale: float
    low: float | None = None
    high: float | None = None
    factors: tuple[int, int] | None = None

    @property
    def piece(self) -> str:
        """Which piece of a number it is, "3 to 5" or the like; empty for a number of one slope, and no number."""
        if self.low is None:
            return "" if self.high is None else f"up to {self.high:g}"
        return f"from {self.low:g}" if self.high is None else f"{self.low:g} to {self.high:g}"

    def scaled(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """The column from raw values, NaN where a number is missing."""
        return np.nan_to_num((raw - self.centre) / self.scale, nan=0.0, posinf=np.inf, neginf=-np.inf)

    def __post_init__(self) -> None:
        is_number = math.isfinite(self.centre) and 0.0 < self.scale < math.inf
        ends = [end for end in (self.low, self.high) if end is not None]
        if ends and (self.kind != "number" or not np.isfinite(ends).all() or ends != sorted(set(ends))):
            raise ValueError(f"the feature {self.name!r:.100} has ends that are none of a piece of a number")
        if not is_number or (self.kind == "category") != (self.category is not None):
            raise ValueError(f"the feature {self.name!r:.100} is neither a number nor a category")
        if (self.kind == "product") != (self.factors is not None):
            raise ValueError(f"the feature {self.name!r:.100} is no product of two others")


class OnlyFor(NamedTuple):
    """Which items alone have a column: those with some levels of a category."""

    category: str
    levels: tuple[str, ...]

    def __str__(self) -> str:
        return f'where "{shown(self.category)}" is {first_few(self.levels)}'


def only_for(
    present: Mapping[str, NDArray[np.bool_]], levels: Mapping[str, pl.Series], described: NDArray[np.bool_]
) -> dict[str, OnlyFor]:
    """Columns that all items with some levels of a category have, and no other item, such as a fee of cars alone.

    ``present``: whether items have each column, (n_items,); ``levels``: categories, as text; ``described``: items with
    any value, (n_items,). An item of which nothing but the category is known, such as "none", counts for neither. Of
    several categories that tell it takes the one with the most levels. One tells only if each of its levels has two
    items: by a level for each item all gaps could be told.
    """
    found: dict[str, OnlyFor] = {}
    for category in sorted(levels, key=lambda one: -levels[one].n_unique()):
        others = [mask for name, mask in present.items() if name != category]
        rows = described & np.logical_or.reduce(others) if others else np.zeros_like(described)
        mine = levels[category].filter(rows)
        if not len(mine) or mine.null_count() or mine.value_counts()["count"].min() < 2:  # type: ignore[operator]
            continue
        for name in (one for one in present if one != category and one not in found):
            have = present[name][rows]
            if have.all() or not have.any():
                continue
            with_it, without = (set(mine.filter(some).to_list()) for some in (have, ~have))
            if not with_it & without:
                found[name] = OnlyFor(category, tuple(sorted(with_it)))
    return found


def plan_and_encode(
    columns: Mapping[str, pl.Series], categorical: Collection[str], ids: pl.Series, what: str,
    piecewise: Mapping[str, Sequence[float]] | None = None,
) -> tuple[tuple[Output, ...], NDArray[np.float64], int, list[str]]:  # fmt: skip
    """How each column is encoded, the matrix of that, the number of columns before constants went, and report lines.

    ``categorical``: numeric columns whose values are labels; ``piecewise``: where slopes of numbers change; ``ids`` and
    ``what`` ("item" or "person") are for messages. Raises DataError if a number is infinite.
    """
    from predilect.data.read.profiles import NONE

    outputs: list[Output] = []
    encoded: list[NDArray[np.float64]] = []
    report: list[str] = []
    constant: list[str] = []
    n_encoded = 0
    cuts = piecewise or {}
    outside = (ids.cast(pl.String) == NONE).to_numpy() if what == "item" else None
    empty, is_marked = _described_by_nothing(columns, outside), False
    told = _told_by_categories(columns, categorical, empty) if what == "item" else {}
    for name, column in columns.items():
        missing = column.null_count()
        known_gaps = bool(missing) and bool((column.is_null().to_numpy() == empty).all())
        if name in categorical or column.dtype in (pl.String, pl.Null, pl.Object):
            text = as_text(column)
            values = text.drop_nulls().unique().sort().to_list()
            if name not in categorical and len(values) > FREE_TEXT_VALUES and 2 * len(values) > len(text):
                report.append(f'Ignored column "{name}": free text ({len(values)} different values).')
                continue
            bare = [Output(f"{name}={value}", name, "category", value, 0.0, 1.0) for value in values]
            if name in told:
                report.append(_said_of_gaps(name, text, empty, told[name], "without it belong to no category"))
            elif text.null_count() and not known_gaps:
                report.append(f'Column "{name}": {text.null_count()} missing values belong to no category.')
        elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
            _refuse_infinite(column, name, ids, what)
            bare = _pieces(name, column, cuts[name]) if name in cuts else [Output(name, name, "number", None, 0.0, 1.0)]
            if missing and not known_gaps:
                bare.append(Output(f"{name} missing", name, "missing", None, 0.0, 1.0))
                report.append(
                    _said_of_gaps(name, column, empty, told[name], "are set to the mean, and marked in a column")
                    if name in told
                    else f'Column "{name}": {missing} missing values set to the mean, and marked in a column.'
                )
        else:
            report.append(f'Ignored column "{name}": values of type {column.dtype} are not encoded.')
            continue
        if known_gaps and not is_marked:
            is_marked = True
            who = [str(ids[row]) for row in np.flatnonzero(empty).tolist()]
            # An item has a name there, such as "none of these"; nobody has, as what is learned is kept and handed on.
            is_named = what == "item"
            constant_of = who[0] if len(who) == 1 and is_named else "no features"
            bare.append(Output(constant_of, name, "missing", None, 0.0, 1.0))
            first = f" (first: {who[0]})" if is_named else ""
            report.append(
                f"{counted(len(who), what)} without any feature{first}: a column marks this, the constant of "
                f'"{constant_of}".'
            )
        for output in bare:
            n_encoded += 1
            raw = _raw(output, text if output.kind == "category" else column)
            centre, scale = _centre_and_scale(raw)
            if scale == 0:
                constant.append(output.name)
            else:
                outputs.append(replace(output, centre=centre, scale=scale))
                encoded.append(outputs[-1].scaled(raw))
    if constant:
        report.append("Dropped constant columns: " + ", ".join(f'"{name}"' for name in constant) + ".")
    if not outputs:
        report.append(f"No usable feature is left; every {what} looks the same.")
    matrix = np.column_stack(encoded) if encoded else np.zeros((len(ids), 0))
    return tuple(outputs), matrix, n_encoded, report


def _told_by_categories(
    columns: Mapping[str, pl.Series], categorical: Collection[str], empty: NDArray[np.bool_]
) -> dict[str, OnlyFor]:
    """Columns that some levels of a category have and others have not."""
    present = {name: column.is_not_null().to_numpy() for name, column in columns.items()}
    if all((mask | empty).all() for mask in present.values()):
        return {}
    texts = [name for name, column in columns.items() if name in categorical or column.dtype == pl.String]
    return only_for(present, {name: as_text(columns[name]) for name in texts}, ~empty)


def _said_of_gaps(name: str, column: pl.Series, empty: NDArray[np.bool_], only: OnlyFor, done: str) -> str:
    n_others = int((column.is_null().to_numpy() & ~empty).sum())
    return (
        f'Column "{name}": only {only}. A logit has a coefficient of these alone; for other models '
        f"{counted(n_others, 'other item')} {done}."
    )


def _described_by_nothing(
    columns: Mapping[str, pl.Series], outside: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Rows without any value, (n_rows,), such as the item that stands for "none of these": of several columns, or of
    one that has all values but that of the ``outside`` option.
    """
    gaps = [column.is_null().to_numpy() for column in columns.values()]
    empty = np.logical_and.reduce(gaps) if gaps else np.zeros(0, dtype=bool)
    is_known = len(gaps) > 1 or (outside is not None and np.array_equal(empty, outside))
    return empty if is_known and not empty.all() else np.zeros(len(empty), dtype=bool)


def _pieces(name: str, column: pl.Series, cuts: Sequence[float]) -> list[Output]:
    """The pieces of a number that is piecewise linear; DataError for cuts that leave nothing on one side."""
    seen = np.unique(column.drop_nulls().cast(pl.Float64).to_numpy())
    ends = [None, *(float(cut) for cut in cuts), None]
    if len(cuts) == 0 or not np.isfinite(cuts).all() or list(cuts) != sorted(set(cuts)):
        raise DataError(f'the cuts of "{name}" should be numbers, ascending, got {list(cuts)}.')
    edges = np.array([seen[0], *cuts, seen[-1]]) if len(seen) else np.zeros(len(cuts) + 2)
    if (edges[1:] <= edges[:-1]).any():
        raise DataError(
            f'"{name}" lies between {edges[0]:g} and {edges[-1]:g}, and is cut at '
            f"{', '.join(f'{cut:g}' for cut in cuts)}: a slope changes between these two. Give cuts inside."
        )
    bare = [Output("", name, "number", None, 0.0, 1.0, low, high) for low, high in pairwise(ends)]
    return [replace(output, name=f"{name} {output.piece}") for output in bare]


def encode(outputs: Sequence[Output], columns: Mapping[str, pl.Series]) -> tuple[NDArray[np.float64], list[str]]:
    """Matrix of the planned columns, (n_rows, n_outputs), and lines on unknown categories; raises DataError."""
    refuse_without_threads()
    n_rows = len(next(iter(columns.values()))) if columns else 0
    matrix = np.zeros((n_rows, len(outputs)))
    texts = {output.source: as_text(columns[output.source]) for output in outputs if output.kind == "category"}
    for place, output in enumerate(outputs):
        with np.errstate(over="ignore"):
            if output.factors is not None:
                raw = product_of(matrix, output.factors)
            else:
                raw = _raw(output, (texts if output.kind == "category" else columns)[output.source])
            matrix[:, place] = output.scaled(raw)
        if np.isinf(raw).any():
            _refuse_infinite(columns[output.source], output.source, range(1, n_rows + 1), "row")
        far = np.flatnonzero(np.abs(matrix[:, place]) > _FARTHEST)
        if len(far):
            raise DataError(
                f'feature "{shown(output.source)}" is {raw[far[0]]:g} in row {far[0] + 1}, too far from what was '
                f"learned from (mean {output.centre:g}, standard deviation {output.scale:g}). Is it in the same unit?"
            )
    report = []
    marked = {output.source for output in outputs if output.kind == "missing"}
    filled = ~_described_by_nothing(columns)
    for source in dict.fromkeys(output.source for output in outputs if output.kind == "number"):
        missing = int((columns[source].is_null().to_numpy() & filled).sum())
        if missing and source not in marked:
            report.append(f'Column "{source}": {counted(missing, "missing value")} set to the mean.')
    for source, text in texts.items():
        known = [output.category for output in outputs if output.source == source]
        new = text.drop_nulls()
        new = new.filter(~new.is_in(known))
        if len(new):
            report.append(f'Column "{source}": {len(new)} values belong to no known category (first: "{new[0]}").')
    return matrix, report


def product_of(rows: NDArray[np.float64], factors: tuple[int, int]) -> NDArray[np.float64]:
    """Products of two columns of encoded rows (..., n_columns)."""
    return np.asarray(rows[..., factors[0]] * rows[..., factors[1]])


def product_output(name: str, source: str, factors: tuple[int, int], rows: NDArray[np.float64]) -> Output:
    """The plan of a product of columns of encoded rows (n_rows, n_columns); one that is constant becomes 0."""
    centre, scale = _centre_and_scale(raw := product_of(rows, factors))
    centre = centre if scale else float(raw[0])
    return Output(name, source, "product", None, centre, scale or 1.0, factors=factors)


def _raw(output: Output, column: pl.Series) -> NDArray[np.float64]:
    """Values of a column before they are scaled, of a category from text."""
    if output.kind == "missing":
        return column.is_null().to_numpy().astype(np.float64)
    if output.kind == "category":
        return (column == output.category).fill_null(False).to_numpy().astype(np.float64)
    try:
        number = (as_text(column) if column.dtype.is_nested() else column).cast(pl.Float64, strict=False)
    except (pl.exceptions.PolarsError, DataError):  # bytes; lists
        number = pl.Series([None] * len(column), dtype=pl.Float64)
    odd = column.filter(number.is_null() & column.is_not_null())
    if len(odd):
        raise DataError(
            f'column "{output.source}" held numbers when the features were made, and now no number in '
            f'{counted(len(odd), "row")} (first: "{shown(odd[0])}"). Give a number, or leave the cell empty.'
        )
    value = number.fill_null(np.nan).to_numpy()
    if output.piece:
        return np.asarray(np.clip(value, output.low, output.high) - (output.low or 0.0))
    return value


def _centre_and_scale(raw: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard deviation of what is not missing; scale 0 for a constant, up to rounding."""
    seen = np.sort(raw[~np.isnan(raw)])
    if len(seen) == 0 or seen[0] == seen[-1]:
        return 0.0, 0.0
    # By a power of two, which changes no digit, to squares that neither overflow nor vanish.
    exponent = int(np.frexp(max(abs(seen[0]), abs(seen[-1])))[1]) - 1
    near_one = np.ldexp(seen, -exponent)
    centre, scale = float(near_one.mean()), float(near_one.std())
    is_constant = scale <= 1e-12 * max(abs(near_one[0]), abs(near_one[-1]))
    centre, scale = math.ldexp(centre, exponent), math.ldexp(scale, exponent)
    return centre, 0.0 if is_constant or scale < _SMALLEST else scale


def _refuse_infinite(column: pl.Series, name: str, ids: pl.Series | range, what: str) -> None:
    """DataError for infinite numbers, and for numbers whose differences are."""
    values = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    bad = np.flatnonzero(np.isinf(values))
    if len(bad):
        raise DataError(
            f'feature "{name}" is infinite in {counted(len(bad), "row")} (first: {what} {ids[int(bad[0])]}, '
            f"{values[bad[0]]}). Replace them by numbers, or leave them empty to count as missing."
        )
    least, most = np.fmin.reduce(values, initial=np.inf), np.fmax.reduce(values, initial=-np.inf)
    if most / 2.0 - least / 2.0 > np.finfo(np.float64).max / 2.0:
        raise DataError(
            f'feature "{shown(name)}" goes from {least:g} to {most:g}, a difference that no number holds. Give it in '
            "another unit."
        )


def one_row_each(
    series: dict[str, pl.Series], ids: pl.Series, what: str
) -> tuple[dict[str, pl.Series], pl.Series, list[str]]:
    """Rows in the order of the sorted ids, identical ones merged."""
    refuse_without_threads()
    if rises(ids):
        return series, ids, []
    order = ids.arg_sort()
    code = Vocabulary(ids).codes(ids, what=what)[order.to_numpy()]
    again = np.append(False, code[1:] == code[:-1])
    sorted_ids = ids.gather(order)
    moved = {name: column.gather(order) for name, column in series.items()}
    if not again.any():
        return moved, sorted_ids, []
    for name, column in moved.items():
        values = column
        if column.dtype == pl.Object or column.dtype.is_nested():
            values = pl.Series(column.name, [None if value is None else repr(value) for value in column.to_list()])
        differ = again & values.ne_missing(values.shift(1)).to_numpy()
        if differ.any():
            row = int(np.flatnonzero(differ)[0])
            raise DataError(
                f'{len(np.unique(code[differ]))} {what} ids have rows that differ in column "{name}" '
                f"(first: {sorted_ids[row]}, {column[row - 1]!r} and {column[row]!r}). Keep one row per {what}."
            )
    first = pl.Series(~again)
    merged = {name: column.filter(first) for name, column in moved.items()}
    return merged, sorted_ids.filter(first), [f"Merged {int(again.sum())} repeated identical rows."]
