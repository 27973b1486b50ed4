"""Checks of files before they are read: delimited text, Parquet, and what either may take of the memory."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice, pairwise, zip_longest
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._base.arguments import check_number
from predilect._base.text import either, shown
from predilect._base.types import BoolArray
from predilect.data.formulas import as_before
from predilect.data.intake import counted
from predilect.data.read.columns import guess_pair, listed
from predilect.data.read.names import is_poll
from predilect.errors import DataError, DataWarning

_BOM = b"\xef\xbb\xbf"


def read_delimited(
    data: bytes, source: str, wanted: Callable[[list[str]], list[str]] | None, separator: str | None = None
) -> tuple[list[str], pl.DataFrame]:
    """All column names, and the columns that ``wanted(names)`` asks for (None: all) as text, empty fields null.

    ``data`` is the whole file, UTF-8, with a header line; the separator is by default what a line ``sep=;`` above it
    says, as spreadsheets write, or the commonest of comma, semicolon, tab and | in the header. Where the header has
    blanks beside separators, those of all lines are left out. Raises DataError if the text is not UTF-8, or a line has
    another number of fields than the header; warns of blanks that are left out, and of blank lines between others,
    which are no rows.
    """
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError as error:
        raise DataError(_not_utf8(source, data, error)) from error
    data = data.removeprefix(_BOM).lstrip(b"\r\n")
    if b"\n" not in data:  # as old programs of Apple's end lines
        data = data.replace(b"\r", b"\n")
    if data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n") + b"\n"
    if said := re.match(rb"sep=([,;\t|])\r?\n", data):
        data, separator = data[said.end() :], said[1].decode()
    names, separator = _header(data, source, separator)
    if any(name != name.strip(" ") for name in names):
        data, n_bytes = _without_padding(data, separator), len(data)
        if len(data) < n_bytes:
            sentence = f"{source}: blanks beside separators are left out, as the header has them too."
            warnings.warn(sentence, DataWarning, stacklevel=7)  # of whoever called a reader
        names, separator = _header(data, source, separator)
    _refuse_title_line(data, names, source, separator)
    try:
        keep = wanted_of(names, wanted, source)
    except DataError:
        refuse_data_as_header(names, _first_rows(data, separator, len(names)), source)
        raise
    fields = _fields_of_lines(data, separator)
    if b'"' not in data and len(fields) > 1 and set(fields[1:]) - {0} == {len(names) + 1}:
        ends = re.sub(re.escape(separator.encode()) + rb"(\r?(?:\n|$))", rb"\1", data)
        if set(_fields_of_lines(ends, separator)) - {0} == {len(names)}:  # each row ends in a separator
            data, fields = ends, _fields_of_lines(ends, separator)
    _refuse_ragged(fields, names, source, separator)
    # In the order of the file: whether polars returns columns so or as asked for depends on its version.
    first = {name: place for place, name in reversed([*enumerate(names)])}
    places = sorted(first[name] for name in keep)
    frame = pl.read_csv(io.BytesIO(data), separator=separator, infer_schema=False, columns=places)
    frame.columns = [names[place] for place in places]
    if b"'" in data:
        frame = frame.with_columns(map(as_before, frame))
    return names, _without_blank(frame.select(keep), fields[1:] == 0, source)


def wanted_of(names: Sequence[str], wanted: Callable[[list[str]], list[str]] | None, source: object) -> list[str]:
    """Columns that are wanted, each once, all for None; DataError if there are several of the name of one."""
    keep = list(dict.fromkeys(names if wanted is None else wanted(list(names))))
    times = Counter(names)
    if any(times[name] > 1 for name in keep):
        doubled = ", ".join(sorted(shown(name) for name, n in times.items() if n > 1))
        raise DataError(f"{source} has several columns called {doubled}; rename all but one of each.")
    return keep


def _header(data: bytes, source: str, separator: str | None) -> tuple[list[str], str]:
    if separator is None:
        first = data.partition(b"\n")[0].decode()
        separator = max(",;\t|", key="".join(first.split('"')[::2]).count)
    # A quoted header name may hold a line end, so the csv module and not a split finds its end.
    try:
        return next(_rows(data, separator), []), separator
    except csv.Error as error:
        raise DataError(f"the header of {source} cannot be read as delimited text: {error}.") from error


def _without_padding(data: bytes, separator: str) -> bytes:
    """Delimited text without blanks beside separators and at the ends of lines; what is in quotes stays."""
    mark, before = re.escape(separator.encode()), rb"(?<! ) ++(?=%b|\r?$)"
    if b'"' in data:
        field = rb'(^|%b) *("(?:[^"]|"")*+")? *|%b' % (mark, before % mark)
        return re.sub(field, rb"\1\2", data, flags=re.MULTILINE)
    data = re.sub(mark + b" +", separator.encode(), data)  # a constant takes a third of the time
    return re.sub(rb"^ +|%b" % (before % mark), b"", data, flags=re.MULTILINE)


LOOKED_AT = 200  # rows, for whether the header is one more of them


def refuse_data_as_header(names: Sequence[str], below: Sequence[Iterable[Any]], source: object) -> None:
    """DataError if the names of columns are values: they come again ``below``, in the first rows of their columns."""
    numbers = [int(name) for name in names if name.isdecimal()]  # items of a matrix, which may be called 0, 1, 2 ...
    gaps = [other - one for one, other in pairwise(sorted(numbers))]
    numbered = (len(numbers) > 2 and set(gaps) == {1}) or (
        len(numbers) > 4 and sorted(numbers) == numbers and 0 not in gaps
    )
    again = any(
        name.strip() and name in values and not (numbered and name.isdecimal())
        for name, values in zip(names, below, strict=True)
    )
    if again and not is_poll(names) and None in guess_pair(names, None, None):
        raise DataError(
            f"{source} seems to have no header: its first line, {listed(names)}, looks like one more answer. Put a "
            f"line of names above it, such as {'user,' if len(names) > 3 else ''}left,right,winner."
        )


def _first_rows(data: bytes, separator: str, n_columns: int) -> list[list[str]]:
    """First values of each column, as far as they can be read."""
    try:
        rows = list(islice(_rows(data, separator), 1, 1 + LOOKED_AT))
    except csv.Error:
        rows = []
    return [[row[place] for row in rows if place < len(row)] for place in range(n_columns)]


def _rows(data: bytes, separator: str) -> Iterator[list[str]]:
    csv.field_size_limit(2**31 - 1)
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="replace", newline="")
    return csv.reader(text, delimiter=separator)


def _not_utf8(source: str, data: bytes, error: UnicodeDecodeError) -> str:
    line = data.count(b"\n", 0, error.start) + 1
    encoding = "UTF-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "WINDOWS-1252"
    return (
        f"{source} is not UTF-8 text (first at line {line}: {data[error.start : error.start + 4]!r}). Save it as "
        f"UTF-8: in a spreadsheet choose “CSV UTF-8”; elsewhere iconv -f {encoding} -t UTF-8."
    )


def _without_blank(frame: pl.DataFrame, blank: BoolArray, source: str) -> pl.DataFrame:
    """Frame without rows that were blank lines, of which polars makes nulls."""
    if len(blank) != len(frame) or not blank.any():
        return frame
    warnings.warn(
        f"{source}: skipped {counted(int(blank.sum()), 'blank line')}.", DataWarning, stacklevel=8
    )  # of whoever called a reader
    return frame.filter(pl.Series(~blank))


def _refuse_ragged(fields: NDArray[np.int64], names: Sequence[str], source: str, separator: str) -> None:
    """DataError for lines longer or shorter than the header, which polars lets pass."""
    bad = np.flatnonzero((fields != len(names)) & (fields > 0))
    if not len(bad):
        return
    row, found = bad[0], fields[bad[0]]
    if len(names) == 1:
        raise title_above(names[0], row, found, source)
    raise DataError(
        f"{source}: {counted(len(bad), 'row')} without the {len(names)} fields of the header "
        f"(first: row {row}, {found} fields). Put values that hold {separator!r} in double quotes."
    )


def _refuse_title_line(data: bytes, names: Sequence[str], source: str, separator: str) -> None:
    """DataError for a title and separators above the names, as spreadsheets write them."""
    if is_title(names):
        try:
            refuse_title(names, enumerate(islice(_rows(data, separator), 1, 1 + LOOKED_AT), 1), source)
        except csv.Error:
            return  # whoever reads the rows will say what is wrong


def is_title(names: Sequence[str | None]) -> bool:
    """Whether only the first of several columns has a name."""
    return len(names) > 1 and bool((names[0] or "").strip()) and not any((name or "").strip() for name in names[1:])


def refuse_title(names: Sequence[str], rows: Iterable[tuple[int, Sequence[str | None]]], source: object) -> None:
    """DataError if the only name of a table is a title: numbered ``rows`` below it have values in other columns."""
    for number, row in rows:
        filled = sum(bool((value or "").strip()) for value in row)
        if filled > 1:
            raise title_above(names[0], number, filled, source)


def title_above(title: str, row: int, found: int, source: object) -> DataError:
    """The error for what stands above the names of columns."""
    return DataError(
        f'{source}: the first line must name the columns, and is "{shown(title.strip())}", one field, where row {row} '
        f"has {found}. Take out what stands above the names."
    )


def _fields_of_lines(data: bytes, separator: str) -> NDArray[np.int64]:
    """Number of fields of each line, 0 of a blank one."""
    if b'"' in data:
        try:
            return np.array([len(fields) for fields in _rows(data, separator)])
        except csv.Error:
            return np.zeros(0, dtype=np.int64)  # polars will say what is wrong
    byte = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(byte == ord("\n"))
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(byte))
    length = np.diff(ends, prepend=-1) - 1
    blank = (length == 0) | ((length == 1) & (byte[ends - 1] == ord("\r")))
    fields = np.diff(np.searchsorted(np.flatnonzero(byte == ord(separator)), ends), prepend=0) + 1
    return np.where(blank, 0, fields)


class Allowance:
    """What a packed file may yet take of the memory, of a limit in GB: text, and so much for each value of a table.

    A file can hold a value once that it means a million times, so that neither its size nor that of its text tells.
    """

    # Besides its text, with what is made of it: 5 and 20 million answers, of one letter and of names, took 45 to 65.
    BYTES_A_VALUE = 50

    def __init__(self, path: Path, limit: float) -> None:
        check_number("unpack_limit", limit, low=0.0, high=math.inf)
        self.path, self.limit, self.left = path, limit, limit * 1e9

    def take(self, n_bytes: int, n_values: int = 0) -> None:
        """DataError if so much text and so many values are more than is left."""
        self.left -= n_bytes + self.BYTES_A_VALUE * n_values
        if self.left < 0:
            allow = either("--read unpack-limit=GB with a file of answers", "unpack_limit=GB")
            raise DataError(
                f"{self.path} unpacks to more than {self.limit:g} GB of memory, as a file does that is made to fill "
                f"it. If you know what it is, unpack it first, or allow more: {allow}."
            )

    def unpack(self, stream: IO[bytes] | gzip.GzipFile) -> bytes:
        """All of a stream of text; DataError as soon as it is too much, with its separators for values."""
        pieces = []
        while piece := stream.read(1 << 18):
            self.take(len(piece), len(piece) - len(piece.translate(None, b",;\t|\n")))
            pieces.append(piece)
        return b"".join(pieces)


_DEEPEST = 64  # levels of nested columns; some hundreds overflow polars' stack
_HEADER = 1 << 16

Struct = dict[int, Any]  # by the numbers of fields in parquet.thrift


class DamagedParquet(ValueError):
    """The headers contradict themselves or the size of the file."""


class Footer(NamedTuple):
    """Top-level column of each leaf of the schema, the groups of rows, and where these end in the file."""

    columns: list[bytes]
    groups: list[Struct]
    end_of_data: int


def read_footer(path: Path) -> Footer:
    """Columns and groups of rows in the footer; DamagedParquet if it is none, or nests too deep for polars."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 8, 0))
        tail = file.read()
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != b"PAR1" or length > size - 12:
            raise DamagedParquet("it does not end as Parquet does")
        file.seek(size - 8 - length)
        footer = _Compact(file.read(length)).struct()
    columns: list[bytes] = []
    still_open: list[int] = []  # children to come at each level
    for element in _expected(footer, 2, list):
        n_children = _amount(element, 5, 2**31) if isinstance(element, dict) and 5 in element else 0
        if len(still_open) == 1:
            top = _expected(element, 4, bytes)
        if still_open:
            still_open[-1] -= 1
        if not n_children and still_open:
            columns.append(top)
        still_open.append(n_children)
        if len(still_open) > _DEEPEST:
            raise DamagedParquet(f"its columns are nested more than {_DEEPEST} levels deep")
        while still_open and not still_open[-1]:
            still_open.pop()
    return Footer(columns, _expected(footer, 4, list), size - 8 - length)


def unpacked_size(path: Path, footer: Footer, columns: Collection[str]) -> tuple[int, int]:
    """Number of values of top-level columns, and bytes of their pages, as the headers of these say.

    DamagedParquet if a size or a number of values cannot be true. Time grows with the number of pages and not with the
    rows. Text that a page stores as differences from the text before (DELTA_BYTE_ARRAY) may take more.
    """
    wanted = {name.encode() for name in columns}
    values = total = 0
    with path.open("rb") as file:
        for group in footer.groups:
            for name, chunk in zip_longest(footer.columns, _expected(group, 1, list)):
                # Encrypted columns and those in other files are left to polars, which refuses them.
                if name in wanted and isinstance(chunk, dict) and 3 in chunk and 1 not in chunk:
                    n_values, n_bytes = _unpacked_column(file, footer.end_of_data, _expected(chunk, 3, dict))
                    values, total = values + n_values, total + n_bytes
    return values, total


def _unpacked_column(file: BinaryIO, end_of_data: int, column: Struct) -> tuple[int, int]:
    left = n_values = _amount(column, 5, 2**62)
    place = _amount(column, 9, end_of_data)
    if column.get(11):
        place = min(place, _amount(column, 11, end_of_data))
    total = 0
    while left > 0:
        header, n_bytes = _page_header(file, place, end_of_data)
        unpacked = _amount(header, 2, 2**31)
        stored = _amount(header, 3, end_of_data - place - n_bytes)
        if 7 in header:
            _amount(header[7], 1, unpacked)
        for kind in (5, 8):
            if kind in header:
                left -= _amount(header[kind], 1, left)
        if 8 in header and _amount(header[8], 5, unpacked) + _amount(header[8], 6, unpacked) > unpacked:
            raise DamagedParquet("a page is smaller than what it should hold")
        total += unpacked
        place += n_bytes + stored
    return n_values, total


def _page_header(file: BinaryIO, place: int, end_of_data: int) -> tuple[Struct, int]:
    """A page's header and its length; it is longer than expected only where it holds long statistics."""
    length = _HEADER
    while True:
        file.seek(place)
        compact = _Compact(file.read(min(length, end_of_data - place)))
        try:
            return compact.struct(), compact.place
        except DamagedParquet:
            if length >= end_of_data - place:
                raise
            length *= 16


def _amount(struct: Struct, field: int, most: int) -> int:
    amount: int = _expected(struct, field, int)
    if not 0 <= amount <= most:
        raise DamagedParquet(f"a header says {amount} where at most {most} is possible")
    return amount


def _expected(struct: Any, field: int, kind: type) -> Any:
    value = struct.get(field) if isinstance(struct, dict) else None
    if not isinstance(value, kind):
        raise DamagedParquet("a header lacks a part of it")
    return value


class _Compact:
    """Values in Thrift's compact protocol, from the beginning of some bytes on."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def struct(self, depth: int = 0) -> Struct:
        """A structure by the numbers of its fields; DamagedParquet if it is none."""
        if depth > _DEEPEST:
            raise DamagedParquet("a header is nested too deeply")
        fields: Struct = {}
        number = 0
        while head := self._bytes(1)[0]:
            number = number + (head >> 4) if head >> 4 else self._value(6, depth)
            fields[number] = head & 15 == 1 if head & 15 in (1, 2) else self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2, 3):  # a truth value within a list, or a byte
            return self._bytes(1)[0]
        if kind in (4, 5, 6):
            number = self._unsigned()
            return (number >> 1) ^ -(number & 1)
        if kind in (7, 8, 13):
            return self._bytes({7: 8, 13: 16}.get(kind) or self._unsigned())
        if kind in (9, 10):
            head = self._bytes(1)[0]
            length = head >> 4 if head >> 4 != 15 else self._unsigned()
            if length > len(self.data) - self.place or head & 15 in (9, 10):
                raise DamagedParquet("a header ends too early, or holds a list of lists")
            return [self._value(head & 15, depth) for _ in range(length)]
        if kind == 12:
            return self.struct(depth + 1)
        raise DamagedParquet(f"a header holds a value of the unknown kind {kind}")

    def _bytes(self, length: int) -> bytes:
        if length > len(self.data) - self.place:
            raise DamagedParquet("a header ends too early")
        self.place += length
        return self.data[self.place - length : self.place]

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._bytes(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise DamagedParquet("a header holds a number of more than 64 bits")
