"""Delimited text with every value kept as written, and ragged lines refused."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import numpy as np
import polars as pl

from predilect.data.intake import counted
from predilect.errors import DataError

__all__ = ["read_delimited"]

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 22


def read_delimited(
    data: bytes, source: str, separator: str | None, wanted: Callable[[list[str]], list[str]] | None
) -> tuple[list[str], pl.DataFrame]:
    """Parse delimited text.

    Parameters
    ----------
    data : bytes
        The whole file, UTF-8, with a header line.
    source : str
        Name of the file, for messages.
    separator : str, optional
        By default the commonest of comma, semicolon and tab in the header.
    wanted : callable, optional
        Given all column names, returns those to keep; None keeps all.

    Returns
    -------
    names : list of str
        All columns.
    frame : polars.DataFrame
        The wanted columns, all as text; empty fields are null.

    Raises
    ------
    DataError
        If the text is not UTF-8, or a line has another number of fields than the header.
    """
    data = data.removeprefix(_BOM)
    data = data.lstrip(b"\r\n")
    if data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n") + b"\n"
    names, separator = _header(data, source, separator)
    doubled = sorted({name for name in names if names.count(name) > 1})
    keep = list(dict.fromkeys(names if wanted is None else wanted(names)))
    if any(name in doubled for name in keep):
        raise DataError(f"{source} has several columns called {', '.join(doubled)}; rename all but one of each.")
    _refuse_ragged(data, source, separator, len(names))
    # In the order of the file: whether polars returns columns so or as asked for depends on its version.
    places = sorted(names.index(name) for name in keep)
    try:
        frame = pl.read_csv(io.BytesIO(data), separator=separator, infer_schema=False, columns=places)
    except pl.exceptions.ComputeError as error:
        if "utf-8" in str(error).lower():
            raise DataError(_not_utf8(source, data)) from error
        raise
    frame.columns = [names[place] for place in places]
    return names, frame.select(keep)


def _header(data: bytes, source: str, separator: str | None) -> tuple[list[str], str]:
    try:
        # A quoted header name may hold a line end, so the csv module and not a split finds its end.
        text = data[:65536].decode("utf-8", errors="strict" if len(data) <= 65536 else "ignore")
        first = data.split(b"\n", 1)[0].decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(_not_utf8(source, data)) from error
    if separator is None:
        bare = "".join(first.split('"')[::2])
        separator = max(",;\t", key=bare.count)
    names = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
    return names, separator


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


def _refuse_ragged(data: bytes, source: str, separator: str, n_fields: int) -> None:
    """A stray separator shifts every later column of its line, so no line may be longer or shorter.

    Polars checks neither when only some of the columns are wanted.
    """
    bad = _ragged_quoted(data, separator, n_fields) if b'"' in data else _ragged_plain(data, separator, n_fields)
    if bad:
        row, found = bad[0]
        raise DataError(
            f"{source}: {counted(len(bad), 'row')} without the {n_fields} fields of the header "
            f"(first: row {row}, {found} fields). Put values that hold {separator!r} in double quotes."
        )


def _ragged_plain(data: bytes, separator: str, n_fields: int) -> list[tuple[int, int]]:
    bad: list[tuple[int, int]] = []
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
        start, line = stop, line + len(ends)
    return bad


def _ragged_quoted(data: bytes, separator: str, n_fields: int) -> list[tuple[int, int]]:
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="replace", newline="")
    csv.field_size_limit(2**31 - 1)
    try:
        rows = csv.reader(text, delimiter=separator)
        return [(row, len(fields)) for row, fields in enumerate(rows) if fields and len(fields) != n_fields]
    except csv.Error:
        return []  # polars will say what is wrong
