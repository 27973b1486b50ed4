"""Delimited text with every value kept as written, and ragged lines refused."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from predilect.data.intake import counted
from predilect.errors import DataError, DataWarning

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 22


def read_delimited(
    data: bytes, source: str, separator: str | None, wanted: Callable[[list[str]], list[str]] | None
) -> tuple[list[str], pl.DataFrame]:
    """All column names, and the columns that ``wanted(names)`` asks for (None: all) as text, empty fields null.

    ``data`` is the whole file, UTF-8, with a header line; the separator is by default the commonest of comma, semicolon
    and tab in the header. Raises DataError if the text is not UTF-8, or a line has another number of fields than the
    header; warns of blank lines between others, which are no rows.
    """
    data = data.removeprefix(_BOM)
    data = data.lstrip(b"\r\n")
    if data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n") + b"\n"
    names, separator = _header(data, source, separator)
    doubled = sorted(name for name, count in Counter(names).items() if count > 1)
    keep = list(dict.fromkeys(names if wanted is None else wanted(names)))
    if any(name in doubled for name in keep):
        raise DataError(f"{source} has several columns called {', '.join(doubled)}; rename all but one of each.")
    blank = _refuse_ragged(data, source, separator, len(names))
    # In the order of the file: whether polars returns columns so or as asked for depends on its version.
    places = sorted(names.index(name) for name in keep)
    try:
        frame = pl.read_csv(io.BytesIO(data), separator=separator, infer_schema=False, columns=places)
    except pl.exceptions.ComputeError as error:
        if "utf-8" in str(error).lower():
            raise DataError(_not_utf8(source, data)) from error
        raise
    frame.columns = [names[place] for place in places]
    return names, _without_blank(frame.select(keep), blank, source)


def _header(data: bytes, source: str, separator: str | None) -> tuple[list[str], str]:
    try:
        first = data[: data.find(b"\n") + 1 or None].decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(_not_utf8(source, data)) from error
    if separator is None:
        bare = "".join(first.split('"')[::2])
        separator = max(",;\t", key=bare.count)
    # A quoted header name may hold a line end, so the csv module and not a split finds its end.
    try:
        return next(_rows(data, separator), []), separator
    except csv.Error as error:
        raise DataError(f"the header of {source} cannot be read as delimited text: {error}.") from error


def _rows(data: bytes, separator: str) -> Iterator[list[str]]:
    csv.field_size_limit(2**31 - 1)
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="replace", newline="")
    return csv.reader(text, delimiter=separator)


def _not_utf8(source: str, data: bytes) -> str:
    try:
        data.decode("utf-8")
        place = ""
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = f" (first at line {line}: {data[error.start : error.start + 4]!r})"
    return (
        f"{source} is not UTF-8 text{place}. Save it as UTF-8: in a spreadsheet choose “CSV UTF-8”; elsewhere "
        f"iconv -f WINDOWS-1252 -t UTF-8."
    )


def _without_blank(frame: pl.DataFrame, blank: list[int], source: str) -> pl.DataFrame:
    """Frame without blank lines, of which polars makes rows of nulls; the header is line 0."""
    is_blank = np.zeros(len(frame), dtype=bool)
    is_blank[[line - 1 for line in blank if line <= len(frame)]] = True
    is_blank &= frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
    n_blank = int(is_blank.sum())
    if not n_blank:
        return frame
    warnings.warn(
        f"{source}: skipped {counted(n_blank, 'blank line')}.", DataWarning, stacklevel=6
    )  # of whoever called a reader
    return frame.filter(pl.Series(~is_blank))


def _refuse_ragged(data: bytes, source: str, separator: str, n_fields: int) -> list[int]:
    """DataError for lines longer or shorter than the header; returns the numbers of blank lines.

    A stray separator shifts every later column of its line. Polars checks neither when only some of the columns are
    wanted.
    """
    bad, blank = _ragged_quoted(data, separator, n_fields) if b'"' in data else _ragged_plain(data, separator, n_fields)
    if bad:
        row, found = bad[0]
        raise DataError(
            f"{source}: {counted(len(bad), 'row')} without the {n_fields} fields of the header "
            f"(first: row {row}, {found} fields). Put values that hold {separator!r} in double quotes."
        )
    return blank


def _ragged_plain(data: bytes, separator: str, n_fields: int) -> tuple[list[tuple[int, int]], list[int]]:
    bad: list[tuple[int, int]] = []
    blanks: list[int] = []
    start, line = 0, 0
    while start < len(data):
        stop = data.find(b"\n", min(start + _CHUNK, len(data)))
        stop = len(data) if stop < 0 else stop + 1
        chunk = np.frombuffer(data, dtype=np.uint8, count=stop - start, offset=start)
        ends = np.flatnonzero(chunk == 10)
        if chunk[-1] != 10:
            ends = np.append(ends, len(chunk))
        fields = np.diff(np.searchsorted(np.flatnonzero(chunk == ord(separator)), ends), prepend=0) + 1
        length = np.diff(ends, prepend=-1) - 1
        blank = (length == 0) | ((length == 1) & (chunk[np.maximum(ends - 1, 0)] == 13))
        odd = np.flatnonzero((fields != n_fields) & ~blank)
        bad += [(line + int(place), int(fields[place])) for place in odd]
        blanks += (line + np.flatnonzero(blank)).tolist()
        start, line = stop, line + len(ends)
    return bad, blanks


def _ragged_quoted(data: bytes, separator: str, n_fields: int) -> tuple[list[tuple[int, int]], list[int]]:
    try:
        odd = [(row, len(fields)) for row, fields in enumerate(_rows(data, separator)) if len(fields) != n_fields]
    except csv.Error:
        return [], []  # polars will say what is wrong
    return [place for place in odd if place[1]], [row for row, n_found in odd if not n_found]
