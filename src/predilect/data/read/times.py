"""When answers were given: dates or numbers, of every row, and of one kind."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._base.text import shown
from predilect._base.types import BoolArray, FloatArray
from predilect.errors import DataError

DATES, NUMBERS = "dates", "numbers"
_DAY = 86_400_000_000  # in microseconds, to which dates are told apart
_DATE = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"[ T]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?"
_ZONE = r"(Z|z|[+-]\d{2}:?\d{2})"
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_LARGEST = 1e15
_WANTED = (
    "Write dates as 2026-11-29 or 2026-11-29 14:30, or with +02:00 at the end; or numbers, such as years or rounds"
)


def times_of(column: pl.Series, name: str, used: BoolArray) -> tuple[FloatArray, str]:
    """Times of the rows, (n_rows,), NaN where they are not ``used``; and whether they are "dates" or "numbers".

    Dates are in days since 1970, to the microsecond, in UTC where the text says a zone. DataError for a used row
    without a time, for what is neither a date nor a number, and where one kind stands beside the other.
    """
    there = np.flatnonzero(used)
    values = column.gather(there)
    if values.dtype == pl.Object:  # dates of Python, or of NumPy by the day
        plain = [one.item() if isinstance(one, np.datetime64) else one for one in values.to_list()]
        values = pl.Series(name, plain, strict=False)
    if values.dtype.is_temporal() and values.dtype not in (pl.Date, pl.Datetime):
        raise DataError(f'column "{shown(name)}" holds {values.dtype}, and no dates. {_WANTED}')
    found, clock = _dates(values, there, name) if values.dtype.is_temporal() else _told(values, there, name)
    times = np.full(len(column), np.nan)
    times[there] = found
    return times, clock


def _told(values: pl.Series, rows: NDArray[np.int64], name: str) -> tuple[FloatArray, str]:
    """Times of numbers, or of text that is all numbers or all dates."""
    if values.dtype.is_numeric():
        found = values.cast(pl.Float64).fill_null(np.nan).to_numpy()
        _refuse(~np.isfinite(found) | (np.abs(found) > _LARGEST), values, rows, name, "no time")
        _refuse_run_together(values, found, name)
        return found, NUMBERS
    if values.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        raise DataError(f'column "{shown(name)}" holds {values.dtype}, and no times. {_WANTED}')
    text = values.cast(pl.String).str.strip_chars()
    _refuse((text.is_null() | (text == "")).fill_null(True).to_numpy(), values, rows, name, "no time")
    dated = text.str.contains(f"^{_DATE}({_CLOCK}{_ZONE}?)?$").to_numpy()
    numbered = text.str.contains(f"^{_NUMBER}$").to_numpy()
    _refuse(~dated & ~numbered, values, rows, name, f'a time that is not understood: "{{}}". {_WANTED}')
    if dated.all():
        return _dates(text, rows, name)
    if not numbered.all():
        first = [shown(text[int(np.argmax(kind))]) for kind in (dated, numbered)]
        raise DataError(
            f'column "{shown(name)}" mixes dates and numbers, such as "{first[0]}" and "{first[1]}". {_WANTED}'
        )
    return _told(text.cast(pl.Float64), rows, name)


def _dates(values: pl.Series, rows: NDArray[np.int64], name: str) -> tuple[FloatArray, str]:
    """Days since 1970 of dates, as they are or in text."""
    _refuse(values.is_null().to_numpy(), values, rows, name, "no time")
    if values.dtype != pl.String:
        return values.cast(pl.Datetime("us")).to_physical().to_numpy() / _DAY, DATES
    zoned = values.str.contains(f"{_ZONE}$").to_numpy() & values.str.contains(":").to_numpy()
    if zoned.any() and not zoned.all():
        first = [shown(values[int(np.argmax(kind))]) for kind in (zoned, ~zoned)]
        raise DataError(
            f'column "{shown(name)}" mixes times with a zone and without, such as "{first[0]}" and "{first[1]}". Write '
            "all of them with one, or none"
        )
    plain = values.str.replace("T", " ").str.replace(",", ".").str.replace("(Z|z)$", "+00:00")
    plain = plain.str.replace(r"([+-]\d{2})(\d{2})$", "${1}:${2}") if zoned.any() else plain
    plain = pl.select(pl.when(plain.str.len_chars() == 10).then(plain + " 00:00").otherwise(plain)).to_series()
    plain = plain.str.replace(r"( \d{2}:\d{2})([+-]|$)", "${1}:00${2}")
    how = "%Y-%m-%d %H:%M:%S%.f" + ("%:z" if zoned.any() else "")
    found = plain.str.to_datetime(how, time_unit="us", strict=False)
    _refuse(found.is_null().to_numpy(), values, rows, name, 'no such date: "{}"')
    return found.to_physical().to_numpy() / _DAY, DATES


def _refuse_run_together(values: pl.Series, found: FloatArray, name: str) -> None:
    """DataError where numbers look like dates without dashes, between which months would be of many lengths."""
    if len(found) and ((found == np.floor(found)) & (found >= 19000101) & (found <= 21001231)).all():
        text = pl.Series(found).cast(pl.Int64).cast(pl.String)
        if text.str.to_date("%Y%m%d", strict=False).is_not_null().all():
            raise DataError(
                f'column "{shown(name)}" holds numbers that look like dates, such as {shown(text[0])}. Write them with '
                f"dashes, {text[0][:4]}-{text[0][4:6]}-{text[0][6:]}, or as smaller numbers if they are none"
            )


def _refuse(bad: BoolArray, values: pl.Series, rows: NDArray[np.int64], name: str, why: str) -> None:
    """DataError that names how many rows are bad, and the first."""
    if bad.any():
        first = int(np.argmax(bad))
        said = why.format(shown(values[first]))
        more = "" if bad.sum() == 1 else f" ({int(bad.sum())} rows in all)"
        raise DataError(
            f'column "{shown(name)}" has in row {int(rows[first]) + 1} {said}{more}. Every answer needs a '
            "time: fill it in, or leave the row out"
        )


def shown_times(time: FloatArray, clock: str) -> pl.Series:
    """Times as a column of a frame: dates, or timestamps where any has a time of day, or the numbers."""
    if clock == DATES:
        found = pl.Series(np.round(np.asarray(time) * _DAY).astype(np.int64)).cast(pl.Datetime("us"))
        return found.cast(pl.Date) if bool((found == found.dt.truncate("1d")).all()) else found
    return pl.Series(np.asarray(time, dtype=np.float64))


def time_in_words(time: float, clock: str) -> str:
    """One time as text: a date, with the time of day unless that is midnight, or a number."""
    if clock != DATES:
        return f"{time:.6g}"
    moment = shown_times(np.array([time]), clock)
    return str(moment[0]) if moment.dtype == pl.Date else str(moment[0].isoformat(" ", "minutes"))
