"""Sheets of workbooks (ECMA-376, part 1, 18), whose XML goes by as a stream and leaves nothing but values of cells.

A small file can be made to hold hundreds of millions of cells, or of other elements, so that each counts as it comes.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime, time, timedelta
from sys import getsizeof
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

from predilect.data.read.files import Allowance
from predilect.errors import DataError

MOST_ROWS, MOST_COLUMNS = 2**20, 2**14  # of a sheet of Excel
_LONGEST = 1 << 20  # bytes of a tag, characters of a cell; Excel writes 32 767
_PIECE, _DEEPEST = 1 << 16, 64
# What they count for besides their XML: a whole sheet of four columns is read within the usual limit, and whatever is
# made to fill the memory takes 0.9 GB of it.
_VALUES_A_CELL, _TIMES_A_TEXT = 4, 3
_DATES = {*range(14, 23), 45, 46, 47}  # formats that are built in; 46 is of durations
_NOT_OF_A_FORMAT = re.compile(r'".*?"|\[(?!hh?\]|mm?\]|ss?\])[^\]]*\]|[_\\].')  # words, colours, places

Start = Callable[[str, dict[str, str]], None]


class DamagedWorkbook(ValueError):
    """What is no workbook, or contradicts itself."""


class Workbook:
    """The sheets of a file that is open; what is read of it is taken of an allowance."""

    def __init__(self, archive: zipfile.ZipFile, allowance: Allowance) -> None:
        self.archive, self.allowance = archive, allowance
        book = next((part for kind, part in self._related("").values() if kind == "officeDocument"), "xl/workbook.xml")
        related = self._related(book)
        self.sheets: dict[str, str] = {}  # parts by name
        self.epoch = datetime(1899, 12, 30)

        def start(name: str, given: dict[str, str]) -> None:
            if name == "workbookPr" and given.get("date1904", "0") in ("1", "true"):
                self.epoch = datetime(1904, 1, 1)
            elif name == "sheet":
                kind, part = related[{key.rpartition("}")[2]: value for key, value in given.items()}["id"]]
                if kind == "worksheet":
                    self.sheets[given["name"]] = part

        self._all_of(book, start)
        self._parts = {kind: part for kind, part in related.values() if kind in ("sharedStrings", "styles")}

    def rows(self, sheet: str) -> list[list[Any]]:
        """Rows of values, None where there is none, of all rows that have any; all of the same width."""
        formats = self._formats()
        strings = _Strings()
        if "sharedStrings" in self._parts:
            for _ in self._pieces(self._parts["sharedStrings"], strings.start, strings.end, strings.hear):
                self.allowance.take(strings.forget())
        cells = _Cells(strings.found, formats, self.epoch, self.allowance)
        for _ in self._pieces(self.sheets[sheet], cells.start, cells.end, cells.hear):
            pass
        width = max(map(len, cells.rows), default=0)
        self.allowance.take(0, _VALUES_A_CELL * sum(width - len(row) for row in cells.rows))
        for row in cells.rows:
            row.extend([None] * (width - len(row)))
        return cells.rows

    def _related(self, part: str) -> dict[str, tuple[str, str]]:
        """Kind and name of each part that a part refers to, by its id."""
        folder, name = posixpath.split(part)
        found: dict[str, tuple[str, str]] = {}

        def start(name: str, given: dict[str, str]) -> None:
            if name == "Relationship":
                target = posixpath.normpath(posixpath.join("/", folder, given["Target"])).lstrip("/")
                found[given["Id"]] = posixpath.basename(given["Type"]), target

        self._all_of(posixpath.join(folder, "_rels", f"{name}.rels"), start)
        return found

    def _formats(self) -> list[str]:
        """What numbers of each style are: "date", "duration", or "" for any other."""
        kinds = {number: "duration" if number == 46 else "date" for number in _DATES}
        found: list[str] = []
        inside = ""

        def start(name: str, given: dict[str, str]) -> None:
            nonlocal inside
            if name == "numFmt":
                kinds[int(given["numFmtId"])] = _kind_of_format(given["formatCode"])
            elif name == "xf" and inside == "cellXfs":
                found.append(kinds.get(int(given.get("numFmtId", 0)), ""))
            elif name in ("cellXfs", "cellStyleXfs"):
                inside = name

        if "styles" in self._parts:
            self._all_of(self._parts["styles"], start)
        return found

    def _all_of(self, part: str, start: Start) -> None:
        for _ in self._pieces(part, start):
            pass

    def _pieces(
        self, part: str, start: Start, end: Callable[[str], None] | None = None, hear: Any = None
    ) -> Iterator[None]:
        """Let a part of the file go by in pieces; names without their namespaces."""
        n_elements = n_bytes = depth = 0

        def started(name: str, given: dict[str, str]) -> None:
            nonlocal n_elements, depth
            n_elements, depth = n_elements + 1, depth + 1
            if depth > _DEEPEST:
                raise DamagedWorkbook(f"it is nested more than {_DEEPEST} levels deep")
            start(name.rpartition("}")[2], given)

        def ended(name: str) -> None:
            nonlocal depth
            depth -= 1
            if end is not None:
                end(name.rpartition("}")[2])

        def refuse(*_: Any) -> None:
            raise DamagedWorkbook("it has a document type, which no workbook has")

        parser = ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = started, ended, hear
        parser.StartDoctypeDeclHandler = refuse  # whose entities may stand for any amount of text
        try:
            with self.archive.open(part) as stream:
                while piece := stream.read(_PIECE):
                    parser.Parse(piece)
                    n_bytes += len(piece)
                    self.allowance.take(len(piece), n_elements)
                    n_elements = 0
                    if n_bytes - parser.CurrentByteIndex > _LONGEST:
                        raise DamagedWorkbook("it has a tag that does not end")
                    yield
            parser.Parse(b"", True)
            yield
        except DataError:
            raise
        except (ExpatError, LookupError, ValueError) as error:
            raise DamagedWorkbook(f"{error}, in its part {part}") from error


class _Texts:
    """Text of the elements that hold it, as it goes by."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length, self.hears, self.is_spoken = 0, False, False

    def start(self, name: str, given: dict[str, str]) -> None:
        if name in ("v", "t"):
            self.hears = not self.is_spoken
        elif name == "rPh":  # how a word is said
            self.is_spoken = True

    def end(self, name: str) -> None:
        if name in ("v", "t"):
            self.hears = False
        elif name == "rPh":
            self.is_spoken = False

    def hear(self, text: str) -> None:
        if self.hears:
            self.length += len(text)
            if self.length > _LONGEST:
                raise DamagedWorkbook("it has a cell of more text than a cell holds")
            self.pieces.append(text)

    def said(self) -> str:
        """All that was heard since it was asked last."""
        text, self.length = "".join(self.pieces), 0
        self.pieces.clear()
        return text


class _Strings(_Texts):
    """Strings that cells have in common."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._told = 0

    def end(self, name: str) -> None:
        super().end(name)
        if name == "si":
            self.found.append(self.said().replace("x005F_", ""))  # an underscore before what would be an escape

    def forget(self) -> int:
        """What the strings count for that came since."""
        new = self.found[self._told :]
        self._told = len(self.found)
        return _TIMES_A_TEXT * sum(map(getsizeof, new))


class _Cells(_Texts):
    """Rows of a sheet."""

    def __init__(self, strings: list[str], formats: list[str], epoch: datetime, allowance: Allowance) -> None:
        super().__init__()
        self.strings, self.formats, self.epoch, self.allowance = strings, formats, epoch, allowance
        self.rows: list[list[Any]] = []
        self.place, self.kind, self.style = 0, "", ""
        self.row: list[Any] = []

    def start(self, name: str, given: dict[str, str]) -> None:
        super().start(name, given)
        if name == "c":
            self.kind, self.style = given.get("t", "n"), given.get("s", "")
            self.place = _column_of(given["r"]) if "r" in given else self.place + 1
            if self.place > MOST_COLUMNS:
                raise DamagedWorkbook("it numbers a column that no sheet has")
        elif name == "row":
            if int(given.get("r", 1)) > MOST_ROWS:
                raise DamagedWorkbook("it numbers a row that no sheet has")
            self.row, self.place = [], 0

    def end(self, name: str) -> None:
        super().end(name)
        if name == "c" and (text := self.said()):
            self.row.extend([None] * (self.place - len(self.row)))
            self.row[self.place - 1] = value = self._value(text)
            if isinstance(value, str):
                self.allowance.take(_TIMES_A_TEXT * getsizeof(value))
        elif name == "row" and self.row:
            self.allowance.take(0, _VALUES_A_CELL * len(self.row))
            self.rows.append(self.row)
            self.row = []

    def _value(self, text: str) -> Any:
        match self.kind:
            case "s":
                return self.strings[int(text)]
            case "b":
                return bool(int(text))
            case "n":
                number = float(text) if {".", "E", "e"} & set(text) else int(text)
                kind = self.formats[int(self.style)] if self.style else ""
                return _moment(number, kind, self.epoch) if kind else number
        return text


def _column_of(cell: str) -> int:
    """Number of the column of a cell such as "AB12", from 1."""
    letters = cell.rstrip("0123456789")
    if not (letters.isascii() and letters.isalpha()) or len(letters) > 3:
        raise DamagedWorkbook(f"it has no cell {cell!r:.20}")
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _kind_of_format(code: str) -> str:
    plain = _NOT_OF_A_FORMAT.sub("", code.split(";")[0]).lower()
    if plain.startswith(("[h", "[m", "[s")):
        return "duration"
    return "date" if re.search("[dmhys]", plain) else ""


def _moment(number: float, kind: str, epoch: datetime) -> Any:
    """What days since the epoch stand for: a date with its time, the time of a day, or a duration."""
    try:
        since = timedelta(milliseconds=round(number * 86_400_000))
        if kind == "duration":
            return since
        if timedelta() <= since < timedelta(1):
            return time(*divmod(since.seconds // 60, 60), since.seconds % 60, since.microseconds)
        if epoch.year == 1899 and number < 60:  # Excel's February of 1900 has 29 days
            since += timedelta(1)
        return epoch + since
    except (OverflowError, ValueError):
        return number
