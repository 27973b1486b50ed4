"""Formats that are no text with columns: PrefLib's orders, databases of SQLite, workbooks of Excel, archives."""

from __future__ import annotations

import re
import sqlite3
import warnings
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from predilect._text import first_few, is_whole, shown
from predilect.data.read.files import Allowance
from predilect.data.read.options import option
from predilect.errors import DataError, DataWarning

ORDERS = (".soc", ".soi", ".toc", ".toi")
_NAME = re.compile(r"#\s*ALTERNATIVE NAME\s+(\d+)\s*:\s*(.*)", re.I)
_LEVEL = re.compile(r"\{([^{}]*)\}|([^,{}]+)")


def read_preflib(data: bytes, source: str) -> pl.DataFrame:
    """Table of orders: "order", lists of levels from the best of the names of alternatives, and "count", of ballots.

    Raises DataError for a line that is no order, and for a number of an alternative that the header does not name.
    """
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{source} is not UTF-8 text ({error}). Save it as UTF-8.") from error
    names: dict[str, str] = {}
    orders: list[list[list[str]]] = []
    counts: list[int] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        if text.startswith("#"):
            if match := _NAME.match(text):
                names[match[1]] = match[2].strip() or match[1]
            continue
        count, colon, order = text.partition(":")
        if not colon or not is_whole(count.strip()):
            raise DataError(
                f'{source}: line {number} is no order, "{shown(text)}"; expected how many gave it, a colon, and the '
                'numbers of alternatives from the best, such as "12: 3,{1,4},2". Files of before 2022 are others: '
                "download the file again from preflib.org."
            )
        levels = [[one.strip() for one in (tied or single).split(",") if one.strip()]
                  for tied, single in _LEVEL.findall(order)]  # fmt: skip
        levels = [level for level in levels if level]
        unknown = next((one for level in levels for one in level if names and one not in names), None)
        if unknown is not None:
            raise DataError(
                f'{source}: line {number} names the alternative "{shown(unknown)}", but the header names {len(names)} '
                'others ("# ALTERNATIVE NAME n: ..."). Is the file whole?'
            )
        orders.append([[names.get(one, one) for one in level] for level in levels])
        counts.append(int(count))
    if not orders:
        raise DataError(f'{source} holds no order; expected lines such as "12: 3,1,2" after those that begin with #.')
    doubled = len(set(names.values())) < len(names)
    if doubled:
        raise DataError(f"{source} gives two alternatives the same name. Rename one of them.")
    return pl.DataFrame({"order": pl.Series(orders, dtype=pl.List(pl.List(pl.String))), "count": counts})


class DamagedWorkbook(ValueError):
    """What openpyxl does not make sense of."""


_MOST_ROWS = 2**20  # of a sheet of Excel
DATABASES, WORKBOOKS = (".sqlite", ".sqlite3", ".db"), (".xlsx", ".xlsm")
Wanted = Callable[[list[str]], list[str]]


def read_database(path: Path, table: str | None, wanted: Wanted | None) -> tuple[list[str], pl.DataFrame]:
    """All column names of a table of a database, and the columns that ``wanted(names)`` asks for (None: all).

    DataError if there is no such table, or several and none was named. Nothing in the database is run: of views and
    virtual tables, which can be made to have no end, none are read.
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
        base.execute("PRAGMA trusted_schema = OFF")
        base.execute("PRAGMA cell_size_check = ON")
        found = base.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
            "AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
        )
        name = _chosen([row[0] for row in found], table, path, "table")
        names = [row[1] for row in base.execute(f"PRAGMA table_info({_quoted(name)})")]
        keep = wanted_of(names, wanted)
        rows = list(base.execute(f"SELECT {', '.join(map(_quoted, keep))} FROM {_quoted(name)}")) if keep else []
    return names, _frame(keep, rows, f"{path}, table {shown(name)}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def read_workbook(
    path: Path, sheet: str | None, wanted: Wanted | None, allowance: Allowance
) -> tuple[list[str], pl.DataFrame]:
    """As :func:`read_database`, of a sheet of a workbook, by default the first.

    The first row holds the names of columns; rows and columns without any value are none.
    """
    try:
        import openpyxl
    except ImportError as error:
        raise DataError(
            f'{path} is a workbook, and openpyxl, which reads them, is not installed: pip install "predilect[excel]", '
            "or save the sheet as CSV."
        ) from error
    try:
        # Opened here: openpyxl leaves open what it cannot make sense of, or has not read to its end.
        with path.open("rb") as file:
            with zipfile.ZipFile(file) as archive:
                allowance.take(sum(member.file_size for member in archive.infolist()))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of styles and the like
                book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheets = [one.title for one in book.worksheets]
            name = sheets[0] if sheet is None and sheets else _chosen(sheets, sheet, path, "sheet")
            book[name].reset_dimensions()  # which a file states, and openpyxl makes cells for
            rows = []
            for number, row in enumerate(book[name].iter_rows(values_only=True)):
                if number >= _MOST_ROWS:
                    raise DamagedWorkbook("it numbers a row that no sheet has")
                if any(cell is not None for cell in row):
                    rows.append(row)
    except DataError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError, SyntaxError) as error:  # SyntaxError: of XML
        raise DamagedWorkbook(str(error)) from error
    if len(sheets) > 1 and sheet is None:
        others = ", ".join(f'"{shown(one)}"' for one in sheets[1:])
        warnings.warn(
            f'{path}: read its first sheet, "{shown(name)}", and not {others}. Name another with '
            f"{option('table', 'NAME')}.", DataWarning, stacklevel=6,
        )  # fmt: skip
    if not rows:
        raise DataError(f'{path}, sheet "{shown(name)}", is empty; expected column names and one answer a row.')
    width = max(max((place for place, cell in enumerate(row, 1) if cell is not None), default=0) for row in rows)
    padded = [(*row, *[None] * (width - len(row)))[:width] for row in rows]
    names = [f"column {place}" if cell is None else str(cell) for place, cell in enumerate(padded[0], 1)]
    keep = wanted_of(names, wanted)
    places = [names.index(one) for one in keep]
    doubled = [one for one in keep if names.count(one) > 1]
    if doubled:
        raise DataError(f"{path} has several columns called {', '.join(doubled)}; rename all but one of each.")
    cells = [tuple(row[place] for place in places) for row in padded[1:]]
    return names, _frame(keep, cells, f"{path}, sheet {shown(name)}")


def _chosen(there: Sequence[str], asked: str | None, path: Path, what: str) -> str:
    """The table that was asked for, or the only one; DataError if there is none such."""
    listed = ", ".join(f'"{shown(name)}"' for name in there) or "none"
    if asked is not None and asked not in there:
        raise DataError(f'{path} has no {what} "{shown(asked)}"; there are {listed}.')
    if asked is None and len(there) != 1:
        which = f"Name one with {option('table', 'NAME')}" if there else "Is it the right file?"
        raise DataError(f"{path} has {len(there)} {what}s ({listed}), and one is read. {which}.")
    return there[0] if asked is None else asked


def wanted_of(names: Sequence[str], wanted: Wanted | None) -> list[str]:
    """Columns that are wanted, each once; all for None."""
    return list(dict.fromkeys(names if wanted is None else wanted(list(names))))


def _frame(names: Sequence[str], rows: Sequence[Sequence[Any]], source: str) -> pl.DataFrame:
    """Columns of whole numbers, numbers, truth values or text: what all their cells are; DataError for bytes."""
    return pl.DataFrame([_column(name, [row[place] for row in rows], source) for place, name in enumerate(names)])


def _column(name: str, cells: list[Any], source: str) -> pl.Series:
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds & {bytes, bytearray, memoryview}:
        raise DataError(f'{source}: column "{shown(name)}" holds bytes; expected text or numbers.')
    for types, dtype in (({bool}, pl.Boolean), ({int}, pl.Int64), ({int, float}, pl.Float64)):
        if kinds and kinds <= types and all(abs(cell) < 2**63 for cell in cells if type(cell) is int):
            return pl.Series(name, cells, dtype=dtype)
    text = [None if cell is None or cell == "" else _text(cell) for cell in cells]
    return pl.Series(name, text, dtype=pl.String)


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))  # as the spreadsheet shows it
    return cell.isoformat() if isinstance(cell, date | datetime) else str(cell)


def only_member(archive: zipfile.ZipFile, path: Path, readable: Iterable[str]) -> zipfile.ZipInfo:
    """The one file of an archive that can be read; DataError if there are none or several."""
    members = [
        one for one in archive.infolist()
        if not one.is_dir() and not PurePosixPath(one.filename).name.startswith(".") and "__MACOSX" not in one.filename
    ]  # fmt: skip
    fit = [one for one in members if PurePosixPath(one.filename).suffix.lower() in readable]
    if len(fit) != 1:
        listed = first_few([one.filename for one in members], 5)
        raise DataError(
            f"{path} holds {len(fit) or 'no'} tables of text ({listed or 'nothing'}), and one is read. Unpack it, and "
            "name one of its files."
        )
    return fit[0]
