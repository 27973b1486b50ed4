"""Sizes that a Parquet file states, read before anything is unpacked.

Polars believes the numbers in the headers of pages: a damaged one makes it ask for exabytes, which ends the process,
and a few hundred kilobytes can stand for gigabytes. Only the footer and these headers are read here.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

_BYTES_A_VALUE = 16  # of a value in memory, besides the text that it points to
_DEEPEST = 64  # levels of nested columns; some hundreds overflow polars' stack
_HEADER = 1 << 16

Struct = dict[int, Any]  # by the numbers of fields in parquet.thrift


class DamagedParquet(ValueError):
    """The headers contradict themselves or the size of the file."""


class Footer(NamedTuple):
    """Top-level column of each leaf of the schema, and the groups of rows."""

    columns: list[bytes]
    groups: list[Struct]


def read_footer(path: Path) -> Footer:
    """Columns and groups of rows in the footer; DamagedParquet if it is none, or nests too deep for polars."""
    with path.open("rb") as file:
        footer = _Compact(_footer(file)[0]).struct()
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
    return Footer(columns, _expected(footer, 4, list))


def unpacked_size(path: Path, footer: Footer, columns: Collection[str]) -> int:
    """Bytes that top-level columns take in memory, as the headers of their pages say.

    DamagedParquet if a size or a number of values cannot be true. Time grows with the number of pages and not with the
    rows. Text that a page stores as differences from the text before (DELTA_BYTE_ARRAY) may take more.
    """
    wanted = {name.encode() for name in columns}
    total = 0
    with path.open("rb") as file:
        _, end_of_data = _footer(file)
        for group in footer.groups:
            for name, chunk in zip_longest(footer.columns, _expected(group, 1, list)):
                # Encrypted columns and those in other files are left to polars, which refuses them.
                if name in wanted and isinstance(chunk, dict) and 3 in chunk and 1 not in chunk:
                    total += _unpacked_column(file, end_of_data, _expected(chunk, 3, dict))
    return total


def _footer(file: BinaryIO) -> tuple[bytes, int]:
    """The footer, and where it begins."""
    size = file.seek(0, 2)
    file.seek(max(size - 8, 0))
    tail = file.read()
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or length > size - 12:
        raise DamagedParquet("it does not end as Parquet does")
    file.seek(size - 8 - length)
    return file.read(length), size - 8 - length


def _unpacked_column(file: BinaryIO, end_of_data: int, column: Struct) -> int:
    left = n_values = _amount(column, 5, 2**62)
    place = _amount(column, 9, end_of_data)
    if column.get(11):
        place = min(place, _amount(column, 11, end_of_data))
    total = _BYTES_A_VALUE * n_values
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
    return total


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
    """Structures in Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def struct(self, depth: int = 0) -> Struct:
        if depth > _DEEPEST:
            raise DamagedParquet("a header is nested too deeply")
        fields: Struct = {}
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._signed()
            fields[number] = kind & 15 == 1 if kind & 15 in (1, 2) else self._value(kind & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2, 3):  # a truth value within a list, or a byte
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (7, 13):
            return self._bytes(8 if kind == 7 else 16)
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind in (9, 10):
            head = self._byte()
            length = head >> 4 if head >> 4 != 15 else self._unsigned()
            if length > len(self.data) - self.place:
                raise DamagedParquet("a header ends too early")
            return [self._element(head & 15, depth) for _ in range(length)]
        if kind == 12:
            return self.struct(depth + 1)
        raise DamagedParquet(f"a header holds a value of the unknown kind {kind}")

    def _element(self, kind: int, depth: int) -> Any:
        if kind in (9, 10):
            raise DamagedParquet("a header holds a list of lists")
        return self._value(kind, depth)

    def _bytes(self, length: int) -> bytes:
        if length > len(self.data) - self.place:
            raise DamagedParquet("a header ends too early")
        self.place += length
        return self.data[self.place - length : self.place]

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise DamagedParquet("a header holds a number of more than 64 bits")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
