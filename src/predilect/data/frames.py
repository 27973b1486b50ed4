"""Columns of any data frame as polars series, and data frames of the caller's own kind out of columns."""

from __future__ import annotations

import math
import re
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, wraps
from os import PathLike
from typing import Any, Literal, TypeVar, cast

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._base.arguments import check_text
from predilect._base.forks import refuse_without_threads
from predilect._base.text import did_you_mean, quoted, shown
from predilect.errors import DataError, DataWarning

_Found = TypeVar("_Found")


def is_list(values: Any) -> bool:
    """Whether these are ids and not a table."""
    if isinstance(values, np.ndarray):
        return values.ndim == 1 and values.dtype.names is None
    if isinstance(values, str) or hasattr(values, "columns") or hasattr(values, "column_names"):
        return False
    return isinstance(values, Sequence | set | frozenset | pl.Series) or type(values).__name__ == "Series"


def open_frame(frame: Any) -> tuple[Any, str]:
    """Data frame of any kind in memory, and the name of its library ("polars" for a dict); raises DataError."""
    if isinstance(frame, Mapping):
        for name, column in frame.items():
            if isinstance(column, str) or not hasattr(column, "__len__"):
                raise DataError(
                    f'the columns of a dict must be lists of values, but "{shown(name)}" is {shown(column)}. Write '
                    f"[{shown(column)}] for one row."
                )
        lengths = {str(name): len(column) for name, column in frame.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"the columns of a dict must be equally long, but their lengths are {lengths}.")
        return dict(frame), "polars"
    if isinstance(frame, Deferred):
        return frame, "polars"
    if isinstance(frame, str | PathLike):
        raise DataError(
            f'expected a data frame or a dict of columns, got the name of a file, "{shown(frame)}". Read answers '
            "from it with predilect.read(path), other tables with pandas or polars."
        )
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        table: Any = frame
    else:
        try:
            table = nw.from_native(frame)
        except nw.exceptions.DuplicateError as error:
            names = Counter(map(str, getattr(frame, "column_names", None) or frame.columns))
            doubled = sorted(name for name, count in names.items() if count > 1)
            raise DataError(
                f'there are several columns called "{shown(doubled[0])}"; rename, or leave out, all but one.'
            ) from error
        except (TypeError, ValueError, nw.exceptions.NarwhalsError) as error:
            raise DataError(
                f"expected a data frame (pandas, polars, Arrow ...) or a dict of columns, got {type(frame).__name__}. "
                'Give columns with names, such as pandas.DataFrame(rows, columns=["user", "left", "right", "winner"]) '
                'or {"left": [...], "right": [...], "winner": [...]}.'
            ) from error
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    _refuse_levels(getattr(table.to_native(), "columns", None))
    return table, str(table.implementation.value)


def _refuse_levels(columns: Any) -> None:
    """DataError for names of columns of pandas in several levels."""
    if getattr(columns, "nlevels", 1) > 1:
        last = columns.get_level_values(-1)
        flat = "frame.columns.get_level_values(-1)"
        if not last.is_unique:
            flat = '["_".join(map(str, name)) for name in frame.columns]'
        raise DataError(
            f"columns have {columns.nlevels} levels of names (first: {shown(columns[0])}), and one was expected; "
            f"flatten them: frame.columns = {flat}."
        )


def column_names(table: Any) -> list[str]:
    """Names of the columns of what ``open_frame`` returned."""
    return [str(name) for name in (table if isinstance(table, dict) else table.columns)]


def index_names(table: Any) -> list[str]:
    """Names of the index of a pandas frame that ``open_frame`` returned, which is none of its columns."""
    native = table if isinstance(table, dict | Deferred) else table.to_native()
    return [str(name) for name in getattr(getattr(native, "index", None), "names", ()) if name is not None]


@dataclass
class Deferred:
    """A table of which some columns are held, and the others are read when the first of them is looked at."""

    columns: list[str]
    held: pl.DataFrame
    rest: Callable[[], pl.DataFrame]

    def filter(self, rows: pl.Series) -> Deferred:
        """The same of some rows."""
        return Deferred(self.columns, self.held.filter(rows), lambda: self._others.filter(rows))

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, name: str) -> pl.Series:
        return self.held[name] if name in self._held else self._others[name]

    @cached_property
    def _held(self) -> frozenset[str]:
        return frozenset(self.held.columns)

    @cached_property
    def _others(self) -> pl.DataFrame:
        return self.rest()


class Columns(Mapping[str, pl.Series]):
    """Columns of what ``open_frame`` returned, as polars series by name, each made when it is first looked at.

    Missing values (None, NaN, NA) are null. Columns of Python objects that are not all text come as ``pl.Object`` and
    keep their values. DataError for a column that is not there.
    """

    def __init__(self, table: Any) -> None:
        self.table, self.names, self.index = table, column_names(table), index_names(table)
        self._names = frozenset(self.names)
        self._made: dict[str, pl.Series] = {}

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.table.values()), ())) if isinstance(self.table, dict) else len(self.table)

    def __getitem__(self, name: str) -> pl.Series:
        if name not in self:
            have = ", ".join(self.names) or "(none)"
            raise DataError(f'there is no column "{name}"; the columns are {have}.{did_you_mean(name, self.names)}')
        if name not in self._made:
            self._made[name] = to_series(self.table[name], name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def to_columns(frame: Any, names: Iterable[str]) -> dict[str, pl.Series]:
    """Some columns of a data frame, as of :class:`Columns`; without pyarrow for pandas frames."""
    columns = Columns(frame if isinstance(frame, dict) else open_frame(frame)[0])
    return {name: columns[name] for name in names}


def to_series(values: Any, name: str = "") -> pl.Series:
    """One column (a series of any kind, an array or a list) as a polars series with nulls for what is missing."""
    if isinstance(values, pl.Series):
        return _plain(values).alias(name)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
        return _plain(pl.Series(name, values))
    if isinstance(values, list | tuple | np.ndarray):
        return _from_objects(list(values), name)
    if not isinstance(values, nw.Series):
        try:
            values = nw.from_native(values, series_only=True)
        except TypeError:
            return _from_objects(list(values), name)
    native = values.to_native()
    if isinstance(native, pl.Series):
        return _plain(native).alias(name)
    if values.implementation.value == "pyarrow":
        return _plain(pl.Series(name, native))
    if values.dtype.is_numeric() and not values.is_null().any():
        return _plain(pl.Series(name, values.to_numpy()))
    return _from_objects(values.to_list(), name)


def _plain(series: pl.Series) -> pl.Series:
    """Series with categories as text and NaN as null, so that later steps know one form of each."""
    if series.dtype in (pl.Categorical, pl.Enum):
        return series.cast(pl.String)
    if series.dtype.is_float():
        refuse_without_threads()
        return series.cast(pl.Float64).fill_nan(None)
    if series.dtype == pl.Object:
        return _from_objects(series.to_list(), series.name)
    return series


_NUMBERS = (int, float, np.integer, np.floating)


def _from_objects(values: list[Any], name: str) -> pl.Series:
    values = [None if _is_missing(value) else value for value in values]
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pl.Series(name, [None] * len(values), dtype=pl.String)
    if all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return pl.Series(name, [None if value is None else bool(value) for value in values], dtype=pl.Boolean)
    if all(issubclass(kind, _NUMBERS) and not issubclass(kind, bool | np.timedelta64) for kind in kinds):
        if all(issubclass(kind, int | np.integer) for kind in kinds):
            whole = [None if value is None else int(value) for value in values]
            if all(value is None or -(2**63) <= value < 2**63 for value in whole):
                return pl.Series(name, whole, dtype=pl.Int64)
        return pl.Series(name, [None if value is None else _float(value) for value in values], dtype=pl.Float64)
    if all(issubclass(kind, str) for kind in kinds):
        with suppress(UnicodeEncodeError):
            return pl.Series(name, values, dtype=pl.String)
    for row, value in enumerate(values):
        try:
            str(value).encode()
        except ValueError as error:  # half a pair of UTF-16, or a whole number of more digits than Python writes
            raise DataError(
                f'column "{shown(name)}" holds in row {row + 1} what is no text ({error}). Mend it, or leave it empty.'
            ) from error
    return pl.Series(name, values, dtype=pl.Object)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # of whole numbers, where those with a fraction are infinite
        return math.inf if value > 0 else -math.inf


def _is_missing(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return value is None
    # NaN differs from itself; pandas' NA answers every comparison with itself and has no truth value.
    try:
        return bool(value != value)
    except ArithmeticError:  # Decimal's signalling NaN
        return True
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


FEW = 1000  # ids of which polars takes longer to begin than to end


def clean_ids(series: pl.Series, column: str) -> pl.Series:
    """Ids as text (otherwise unchanged) or int64, null for None, NaN, empty or blank text; raises DataError."""
    if series.dtype in (pl.Null, pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    dtype = series.dtype
    if dtype == pl.String:
        if _has_no_blanks(series):
            return series
        refuse_without_threads()
        return series.set(series.str.strip_chars() == "", None)
    if dtype.is_integer():
        try:
            return series.cast(pl.Int64)
        except pl.exceptions.InvalidOperationError as error:
            raise DataError(
                f'column "{column}" holds integer ids beyond 64 signed bits (largest: {series.max()!r}). '
                "Turn the column into text first."
            ) from error
    if dtype.is_float():
        odd = (series != series.round(0)) | (series.abs() >= 2.0**53)
        if odd.any():
            row = int(odd.fill_null(False).arg_max() or 0)
            raise DataError(
                f'column "{column}" holds {int(odd.sum())} ids that are fractions or too large to be exact '
                f"(first: row {row + 1}, {series[row]!r}). Ids must be text or whole numbers; "
                "turn the column into text first."
            )
        return series.cast(pl.Int64)
    if dtype == pl.Object:
        raise DataError(_message_of_objects(series.to_list(), column))
    kind = "true/false values" if dtype == pl.Boolean else f"values of type {dtype}"
    raise DataError(f'column "{column}" holds {kind}; ids must be text or whole numbers. Is it the right column?')


def _has_no_blanks(text: pl.Series) -> bool:
    """Whether of few texts none is empty or begins with a space, as hardly any does."""
    return len(text) <= FEW and not any(one is not None and one[:1].strip() == "" for one in text.to_list())


def _message_of_objects(values: list[Any], column: str) -> str:
    first: dict[str, str] = {}
    for row, value in enumerate(values):
        if value is not None:
            first.setdefault(type(value).__name__, f"row {row + 1}, {quoted(value)}")
    examples = "; ".join(f"first {kind}: {example}" for kind, example in first.items())
    found = f"mixes kinds of ids ({examples}); ids must be all text or all integers"
    if len(first) == 1:
        ((kind, example),) = first.items()
        found = f"holds values of type {kind} (first: {example}); ids must be text or whole numbers"
    return (
        f'column "{column}" {found}. '
        f'Turn them into text first, with pandas: frame["{column}"] = frame["{column}"].astype(str).'
    )


def once_a_column(find: Callable[[pl.Series], _Found]) -> Callable[[pl.Series], _Found]:
    """A function of a column that keeps what it found as long as the column is there: every layout asks for it anew.

    Neither the column nor what was found may be changed in place.
    """
    kept: dict[int, tuple[weakref.ref[pl.Series], _Found]] = {}

    @wraps(find)
    def found(series: pl.Series) -> _Found:
        known = kept.get(key := id(series))
        if known is None or known[0]() is not series:
            known = weakref.ref(series, lambda _: kept.pop(key, None)), find(series)
            kept[key] = known
        return known[1]

    return found


@once_a_column
def as_text(series: pl.Series) -> pl.Series:
    """Values as text, whole numbers without a fraction, blank and missing as null; DataError for what is no text."""
    refuse_without_threads()
    if series.dtype == pl.Boolean:
        series = series.cast(pl.Int8)
    elif series.dtype.is_float():
        whole = ((series == series.round(0)) & (series.abs() < 2.0**63)).fill_null(False)
        text = series.cast(pl.String)
        return text.zip_with(~whole, series.set(~whole, None).cast(pl.Int64, strict=False).cast(pl.String))
    elif series.dtype == pl.Object:
        series = pl.Series(series.name, [None if v is None else str(v) for v in series.to_list()], dtype=pl.String)
    if series.dtype.is_nested() or series.dtype == pl.Duration:  # polars casts none of them, or in a form of its own
        raise DataError(
            f'column "{shown(series.name)}" holds values of type {series.dtype}, and not text or numbers. '
            "Is it the right column?"
        )
    try:
        text = series.cast(pl.String)
    except pl.exceptions.PolarsError as error:  # bytes that are no text
        raise DataError(f'column "{shown(series.name)}" cannot be read as text: {error}.') from error
    return text if _has_no_blanks(text) else _without_blanks(text, text.str.strip_chars())


def _without_blanks(text: pl.Series, stripped: pl.Series) -> pl.Series:
    """Text, missing where nothing is left of it once it is stripped."""
    blank = stripped == ""
    return text.set(pl.Series(where_true(blank)), None) if blank.any() else text


def present(series: pl.Series) -> pl.Series:
    """The values that are there. Polars takes as long to begin with a column of few rows as for many of its values."""
    return series.drop_nulls() if series.null_count() else series


def where_present(series: pl.Series) -> NDArray[np.bool_]:
    """Which values are there, (n,)."""
    there: NDArray[np.bool_] = (
        series.is_not_null().to_numpy() if series.null_count() else np.ones(len(series), dtype=bool)
    )
    return there


def where_true(mask: pl.Series) -> NDArray[np.bool_]:
    """Where a mask is true, (n,); what is missing is not."""
    found: NDArray[np.bool_] = (mask.fill_null(False) if mask.null_count() else mask).to_numpy()
    return found


@once_a_column
def codes_in_order(column: pl.Series) -> NDArray[np.int64]:
    """Numbers of a column's values in their order, from 1, and 0 where one is missing; (n,)."""
    ranks = (as_text(column) if column.dtype == pl.Object else column).rank("dense")
    codes: NDArray[np.int64] = (ranks.fill_null(0) if ranks.null_count() else ranks).cast(pl.Int64).to_numpy()
    return codes


@once_a_column
def _numerals(series: pl.Series) -> Literal["whole", "pointed"] | None:
    """Whether all texts of a column are whole numbers, or all with .0 behind them."""
    if series.dtype != pl.String or series.null_count() == len(series):
        return None
    if re.fullmatch(r"-?\d+(\.0)?", next(text for text in series if text is not None)) is None:
        return None  # as the first mostly tells
    if series.str.contains(r"^-?\d+$").all():
        return "whole"
    return "pointed" if series.str.contains(r"^-?\d+\.0$").all() else None


def without_points(
    ids: Mapping[str, pl.Series], roles: Mapping[str, str]
) -> tuple[dict[str, pl.Series], tuple[str, ...]]:
    """Items by role, and a note: as 2 what some columns write as 2.0 and left or right as 2.

    Programs that hold an empty cell as no number write the others of its column so.
    """
    if not any(_numerals(ids[side]) == "whole" for side in ("left", "right")):
        return dict(ids), ()
    pointed = [role for role, series in ids.items() if _numerals(series) == "pointed"]
    notes = tuple(f'Column "{shown(roles[role])}" writes whole numbers with .0, which is left out.' for role in pointed)
    return dict(ids) | {role: ids[role].str.strip_suffix(".0") for role in pointed}, notes


def typed_text(series: pl.Series) -> pl.Series:
    """Text as booleans, integers or floats if every value is one, as polars reads a file; warns of decimal commas."""
    text = series.str.strip_chars()
    text = _without_blanks(text, text)
    if text.null_count() == len(text):
        return text
    lower = text.str.to_lowercase()
    if present(lower).is_in(["true", "false"]).all():
        return lower == "true"
    for dtype in (pl.Int64, pl.Float64):
        number = text.cast(dtype, strict=False)
        if number.null_count() == text.null_count():
            return number
    # 1,234 may be a thousand and more; 0,234 and 1,23 are none.
    if text.str.contains(r"^-?\d+(,\d+)?$").all() and text.str.contains(r",(\d\d?|\d{4,})$|^-?0,").any():
        first = text.filter(text.str.contains(",", literal=True).fill_null(False))[0]
        said = (
            f'column "{shown(series.name)}" writes numbers with a comma: {first} is read as {first.replace(",", ".")}.'
        )
        warnings.warn(said, DataWarning, stacklevel=4)
        return text.str.replace(",", ".", literal=True).cast(pl.Float64)
    return series


def build_frame(columns: Mapping[str, Any], backend: str = "polars") -> Any:
    """Data frame of columns, (n_rows,) each, by an eager library that narwhals knows; DataError if it is not there."""
    check_text("backend", backend)
    if backend == "polars":
        return pl.DataFrame({name: pl.Series(name, column) for name, column in columns.items()})
    lists = {name: _portable(column, backend) for name, column in columns.items()}
    try:
        return nw.from_dict(lists, backend=cast(Any, backend)).to_native()
    except (ImportError, ValueError, nw.exceptions.NarwhalsError) as error:
        raise DataError(
            f'cannot make a data frame of kind "{backend}" ({error}). Choose "polars", "pandas" or "pyarrow" and '
            "install that library."
        ) from error


def _portable(column: Any, backend: str) -> Any:
    if isinstance(column, pl.Series):
        has_nulls = backend == "pyarrow" and column.null_count()  # elsewhere a missing number is NaN
        return column.to_numpy() if column.dtype.is_numeric() and not has_nulls else column.to_list()
    array = np.asarray(column)
    return array.tolist() if array.dtype.kind in "OUS" else array
