"""Readers of files of answers and of features: text, JSON, Parquet, databases, workbooks and PrefLib's orders."""

from __future__ import annotations

import gzip
import io
import re
import sqlite3
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date, datetime
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

import polars as pl

from predilect._base.files import existing
from predilect._base.text import did_you_mean, either, first_few, is_whole, quoted, shown
from predilect.data.comparisons import Comparisons
from predilect.data.frames import Deferred, clean_ids, typed_text
from predilect.data.read.files import (
    LOOKED_AT,
    Allowance,
    DamagedParquet,
    is_title,
    read_delimited,
    read_footer,
    refuse_data_as_header,
    refuse_title,
    unpacked_size,
)
from predilect.data.read.names import ITEM, PEOPLE_OF_TABLES, guess_one, tells_text
from predilect.data.read.options import ReadOptions, WinnerIs, option, read_options
from predilect.data.read.profiles import LABEL
from predilect.data.read.workbooks import DamagedWorkbook, Workbook
from predilect.errors import DataError, DataWarning

Wanted = Callable[[list[str]], list[str]]
UNPACK_LIMIT = 2.5  # GB, about 10 million answers of four columns
_NAME = re.compile(r"#\s*ALTERNATIVE NAME\s+(\d+)\s*:\s*(.*)", re.I)
_LEVEL = re.compile(r"\{([^{}]*)\}|([^,{}]+)")
_DEEPEST_JSON = 64
# Some damaged Parquet files make polars panic, and a panic is not an Exception; damaged JSON is a RuntimeError to early
# versions of polars 1.
_UNREADABLE = (
    pl.exceptions.PolarsError, pl.exceptions.PanicException, DamagedParquet, RuntimeError, OSError, EOFError,
    zlib.error, sqlite3.Error, zipfile.BadZipFile, DamagedWorkbook,
)  # fmt: skip


def read(
    source: Any,
    *,
    columns: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    outcome: Any = None,
    item_map: Mapping[Any, Any] | None = None,
    design: Any = None,
    unpack_limit: float = UNPACK_LIMIT,
) -> Comparisons:
    """Read answers from a file or a data frame: pairs, choices from several, orders, ratings.

    Parameters
    ----------
    source : str, Path or data frame
        A .csv, .tsv, .txt, .dat, .json, .jsonl or .ndjson file, or PrefLib's .soc, .soi, .toc or .toi, each also with
        .gz or as the only one in a .zip; a .parquet file, a database of SQLite (.sqlite, .sqlite3, .db), or a workbook
        of Excel (.xlsx, .xlsm). Columns may be separated by comma, semicolon or tab. Ids in text
        files are text and stay as they are written: "01" is not "1".
    columns, reading, outcome, item_map, design
        As of :meth:`Comparisons.from_frame <predilect.Comparisons.from_frame>`. Of files ``reading`` also has
        ``table``, of a database, or the sheet of a workbook; by default the only table, or the first sheet.
    unpack_limit : float, default 2.5
        GB (10⁹ bytes) of memory that a packed file, .parquet or .xlsx may unpack to: its text, and 50 bytes for each
        value; of a workbook three times its text, and 300 bytes for each cell. A small file can be made to fill the
        memory.

    Returns
    -------
    Comparisons
        ``print(answers.reading)`` says what was read.

    Raises
    ------
    DataError
        If the file cannot be read, unpacks to more than the limit, or its answers cannot be read in one clear way.

    Notes
    -----
    A million rows take about a second. Columns that are called as long texts are read only where one is looked at.
    """
    if not isinstance(source, str | Path):
        return Comparisons.from_frame(
            source, columns=columns, reading=reading, outcome=outcome, item_map=item_map, design=design
        )
    options = read_options(columns, reading, of_file=True)
    options |= {"outcome": outcome, "item_map": item_map, "design": design}
    return read_file(Path(source), options, unpack_limit)


def read_file(path: Path, options: ReadOptions, unpack_limit: float = UNPACK_LIMIT) -> Comparisons:
    """Answers of a file, by the options of the readers."""
    return read_opened(open_table(path, options.get("table"), unpack_limit), path, options)


def read_opened(table: Deferred, path: Path, options: ReadOptions) -> Comparisons:
    """Answers of a table of a file, by the options of the readers."""
    try:
        return Comparisons.read_with(table, options)
    except DataError:
        rows = table.held.head(LOOKED_AT).to_dict(as_series=False)
        refuse_data_as_header(table.columns, [rows.get(name, ()) for name in table.columns], path)
        raise


def open_table(path: Path, table: str | None = None, unpack_limit: float = UNPACK_LIMIT) -> Deferred:
    """A table of a file; columns that are called as long texts are read when one of them is looked at."""

    def short(names: list[str]) -> list[str]:
        times = Counter(names)
        return [name for name in names if times[name] == 1 and not tells_text(name)] or names

    def others(names: list[str]) -> list[str]:
        return [name for name in names if name not in held]

    names, frame = read_table(path, short, table=table, unpack_limit=unpack_limit)
    held = frozenset(frame.columns)
    return Deferred(names, frame, lambda: read_table(path, others, table=table, unpack_limit=unpack_limit)[1])


_READINGS: dict[str, WinnerIs] = {"item ids": "item", "side words": "side", "signs": "sign"}


def as_the_whole(options: ReadOptions, whole: Comparisons) -> ReadOptions:
    """Options by which a part is read as the whole was, where it alone might fit another reading."""
    found = ReadOptions(**options)
    if found.get("winner_is") is None:
        found["winner_is"] = _READINGS.get(whole.intake.winner_reading)
    described = whole.intake.attributes and not any(role.startswith("feature ") for role in whole.intake.columns)
    if described and found.get("profile") is None:
        # What is the same in all of a segment still is a part of its items' ids.
        found["profile"] = [name for name in whole.intake.attributes if name != LABEL]
    if not whole.intake.tasks_read:
        found["task"] = whole.intake.columns.get("task", None if whole.intake.choices_found else False)
    if whole.grades:
        found["grades"] = whole.grades
    # Few answers may look as if they had no sides, or had some, where all together tell.
    if found.get("side") is None and whole.intake.no_sides and not whole.intake.tasks_read:
        found["side"] = False
    return found


def read_frame(path: str | Path, *, id_column: str | None = None, unpack_limit: float = UNPACK_LIMIT) -> pl.DataFrame:
    """Read a table of features of items or people, from a file as ``read`` takes; DataError if it cannot.

    In text files ``id_column`` stays text, and what is called item, item_id, id, model, name or as people are; other
    columns get the type of their values.
    """
    names, frame = read_table(path, unpack_limit=unpack_limit)
    if id_column is not None and id_column not in names:
        raise DataError(f'{path} has no column "{id_column}"; its columns are {", ".join(names)}.')
    if is_text(Path(path)):
        keep = {id_column, guess_one(names, ITEM), guess_one(names, PEOPLE_OF_TABLES)}
        frame = frame.with_columns(typed_text(frame[name]) for name in frame.columns if name not in keep)
    return frame


def read_item_map(
    path: str | Path, *, key: str | None = None, value: str | None = None, unpack_limit: float = UNPACK_LIMIT
) -> dict[Any, Any]:
    """Read which id replaces which; DataError if a column is missing, or one id is mapped to two.

    ``key``, the column of the ids in the answers, is "item" by default, or the first; ``value``, that of the ids which
    replace them, the other one of a file with two.
    """
    names, frame = read_table(path, unpack_limit=unpack_limit)
    key = key or guess_one(names, ("item",)) or names[0]
    others = [name for name in names if name != key]
    if value is None and len(others) == 1:
        value = others[0]
    for column in (key, value):
        if column not in names:
            raise DataError(
                f"{path}: expected the columns of an item map, key and value; "
                f"{'no value column was named' if column is None else f'there is no column {quoted(column)}'}. "
                f"The columns are {', '.join(names)}; name one of them with "
                f"{either('--map FILE:COLUMN', 'value=...')}."
                f"{did_you_mean(column or '', names)}"
            )
    if key == value:
        raise DataError(
            f'{path}: column "{shown(key)}" cannot be both the ids in the answers and what replaces them. Name the '
            f"other column with {either('--map FILE:COLUMN', 'value=...')}; the ids themselves are in the column "
            f"item, or else in the first{either('', ', or in that of key=')}."
        )
    pairs = frame.select(clean_ids(frame[column], column) for column in (key, str(value))).unique(maintain_order=True)
    repeated = pairs.filter(pairs[key].is_duplicated() & pairs[key].is_not_null())
    if len(repeated):
        first = repeated.row(0)[0]
        to = ", ".join(shown(row[1]) for row in repeated.filter(repeated[key] == first).rows()[:2])
        raise DataError(
            f'{path}: {repeated[key].n_unique()} ids are mapped to more than one (first: "{shown(first)}", to {to}).'
        )
    return dict(pairs.rows())


def read_table(
    path: str | Path, wanted: Wanted | None = None, *, table: str | None = None, unpack_limit: float = UNPACK_LIMIT
) -> tuple[list[str], pl.DataFrame]:
    """All column names of a file, and the columns that ``wanted(names)`` asks for (None: all); raises DataError.

    Text files keep every value as it is written. ``table`` is one of a database, or a sheet of a workbook. Of a
    .parquet file only the columns read count for ``unpack_limit``.
    """
    path = existing(path, f"one file: {_KINDS}")
    form = format_of(path)
    if table is not None and not form.tables:
        raise DataError(
            f"{path} is one table, so {option('table', table)} means nothing there. It is for databases and workbooks."
        )
    allowance = Allowance(path, unpack_limit)
    try:
        if form.of_file is not None:
            return form.of_file(path, table, wanted, allowance)
        with _opened(path) as stream:
            data = allowance.unpack(stream) if isinstance(stream, gzip.GzipFile) else stream.read()
        return _of_text(form, data, path, wanted)
    except _UNREADABLE as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{path} cannot be read as {form.noun}: {why}. It may be truncated, damaged, or of another kind than its "
            "name says; write or download it again."
        ) from error


def format_of(path: Path) -> Format:
    """The format of what a file holds, packed or not; DataError for a name that tells none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"] and len(suffixes) > 1
    found = FORMATS.get(suffixes[-2] if packed else (suffixes or [""])[-1])
    if found is None or (packed and found.of_file is not None):
        ending = f'ends in "{"".join(suffixes[-2:])}"' if suffixes else "has no ending that says what is in it"
        raise DataError(f"{path} {ending}; expected {_KINDS}.")
    return found


def is_text(path: Path) -> bool:
    """Whether a file holds delimited text, in which a number has no type."""
    return format_of(path).is_untyped


def _of_text(form: Format, data: bytes, path: Path, wanted: Wanted | None) -> tuple[list[str], pl.DataFrame]:
    if not data.strip():
        raise DataError(f"{path} is empty; expected a line of column names and one answer a line.")
    return form.of_text(data, str(path), wanted)


def _archive(
    path: Path, table: str | None, wanted: Wanted | None, allowance: Allowance
) -> tuple[list[str], pl.DataFrame]:
    with zipfile.ZipFile(path) as archive:
        member = only_member(archive, path, _OF_TEXT)
        with archive.open(member) as stream:
            data = allowance.unpack(stream)
    return _of_text(FORMATS[PurePosixPath(member.filename).suffix.lower()], data, path, wanted)


def _parquet(
    path: Path, table: str | None, wanted: Wanted | None, allowance: Allowance
) -> tuple[list[str], pl.DataFrame]:
    footer, scan = read_footer(path), pl.scan_parquet(path)
    names = scan.collect_schema().names()
    keep = wanted_of(names, wanted)
    n_values, n_bytes = unpacked_size(path, footer, keep)
    allowance.take(n_bytes, n_values)
    return names, scan.select(keep).collect()


def _json(data: bytes, source: str, wanted: Wanted | None) -> tuple[list[str], pl.DataFrame]:
    """One array of records, whatever the name says, or a record a line."""
    _refuse_deep(data, source)
    whole = data.lstrip()[:1] == b"["
    frame = (pl.read_json if whole else pl.read_ndjson)(io.BytesIO(data), infer_schema_length=None)
    shown, annotated = frame.schema.get("data"), frame.schema.get("annotations")
    if isinstance(shown, pl.Struct) and isinstance(annotated, pl.List) and isinstance(annotated.inner, pl.Struct):
        frame = _annotated(frame)
    return frame.columns, frame.select(wanted_of(frame.columns, wanted))


def _annotated(frame: pl.DataFrame) -> pl.DataFrame:
    """A row an annotation of tasks as Label Studio exports them: what was shown, what was answered, and by whom."""
    rows = []
    for task, done in frame.select("data", "annotations").iter_rows():
        for one in done or ():
            who = one.get("completed_by")
            row = {**task, "annotator": who.get("email") or who.get("id") if isinstance(who, dict) else who}
            for part in one.get("result") or ():
                values = [value for value in (part.get("value") or {}).values() if value is not None]
                single = len(values) > 0 and isinstance(values[0], list) and len(values[0]) == 1
                row[str(part.get("from_name"))] = None if not values else values[0][0] if single else values[0]
            rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None, strict=False)


BLOCK = 1 << 23  # bytes of text, or rows of Parquet times 64, that are read at a time
_BYTES_A_ROW = 64


def read_blocks(
    path: str | Path, wanted: Wanted | None = None, *, table: str | None = None, unpack_limit: float = UNPACK_LIMIT,
    size: int = BLOCK,
) -> Iterator[pl.DataFrame]:  # fmt: skip
    """As :func:`read_table`, the rows in blocks of about ``size`` bytes; raises DataError.

    Delimited text, lines of JSON and Parquet are read block by block; what is packed in a .zip, an array of JSON, a
    workbook, a database and PrefLib's orders are one block, and ``unpack_limit`` holds for these alone.
    """
    path = existing(path, f"one file: {_KINDS}")
    form = format_of(path)
    whole = not form.in_blocks or (form.of_text is _json and _is_array(path))
    if table is not None or whole or not path.stat().st_size:
        yield read_table(path, wanted, table=table, unpack_limit=unpack_limit)[1]
        return
    line = 1
    try:
        if form.of_file is not None:
            scan = pl.scan_parquet(path)
            names, n_rows = scan.collect_schema().names(), int(scan.select(pl.len()).collect().item())
            step = max(size // max(_BYTES_A_ROW, path.stat().st_size // max(n_rows, 1)), 1)
            for start in range(0, n_rows, step):
                yield scan.select(wanted_of(names, wanted)).slice(start, step).collect()
            return
        with _opened(path) as stream:
            for begins, data in text_blocks(stream, size, header=form.is_untyped):
                line = begins
                yield form.of_text(data, str(path), wanted)[1]
    except _UNREADABLE as error:
        raise DataError(f"{path} cannot be read from line {line} on: {str(error).splitlines()[0]}.") from error
    except DataError as error:
        if line == 1:
            raise
        raise DataError(f"{error} Rows are counted from line {line} of {path}.") from error


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _is_array(path: Path) -> bool:
    with _opened(path) as stream:
        return bool(stream.read(1 << 12).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[")


def text_blocks(stream: IO[bytes] | gzip.GzipFile, size: int, *, header: bool) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole records of a text, each below its first lines up to the header, and the line each begins at.

    A record ends at the end of a line with an even number of double quotes before it.
    """
    above, rest, line, is_first = b"", b"", 1, True
    while piece := stream.read(size):
        rest += piece
        if header and not above:
            end = _end_of_header(rest)
            above, rest = rest[:end], rest[end:]
            line += above.count(b"\n")
        end = _end_of_records(rest, header) if above or not header else 0
        if end:
            yield (1 if is_first else line), above + rest[:end]
            line, is_first = line + rest.count(b"\n", 0, end), False
            rest = rest[end:]
    if is_first or rest.strip():
        yield (1 if is_first else line), above + rest


def _end_of_header(data: bytes) -> int:
    """Where the rows begin; 0 if that is not within ``data``."""
    said = re.match(rb"(\xef\xbb\xbf)?[\r\n]*(sep=[,;\t|]\r?\n)?", data)
    end = 0 if said is None else said.end()
    while (end := data.find(b"\n", end) + 1) > 0:
        if not data.count(b'"', 0, end) % 2:
            return end
    return 0


def _end_of_records(data: bytes, quoted: bool) -> int:
    end = data.rfind(b"\n") + 1
    while quoted and end and data.count(b'"', 0, end) % 2:
        end = data.rfind(b"\n", 0, data.rfind(b'"', 0, end)) + 1
    return end


def _refuse_deep(data: bytes, source: str) -> None:
    """DataError for deeply nested JSON: polars takes minutes for hundreds of levels."""
    for number, line in enumerate(io.BytesIO(data), 1):
        if line.count(b"[") + line.count(b"{") <= _DEEPEST_JSON:
            continue
        depth = 0
        for bracket in re.findall(rb"[\[\]{}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", line)):
            depth += 1 if bracket in b"[{" else -1
            if depth > _DEEPEST_JSON:
                raise DataError(
                    f"{source}: the values of line {number} are nested more than {_DEEPEST_JSON} levels deep. Expected "
                    "an object of plain values on each line."
                )


def read_preflib(data: bytes, source: str, wanted: Wanted | None) -> tuple[list[str], pl.DataFrame]:
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
    frame = pl.DataFrame({"order": pl.Series(orders, dtype=pl.List(pl.List(pl.String))), "count": counts})
    return frame.columns, frame.select(wanted_of(frame.columns, wanted))


def read_database(
    path: Path, table: str | None, wanted: Wanted | None, allowance: Allowance
) -> tuple[list[str], pl.DataFrame]:
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
    with zipfile.ZipFile(path) as archive:
        book = Workbook(archive, allowance)
        sheets = list(book.sheets)
        name = sheets[0] if sheet is None and sheets else _chosen(sheets, sheet, path, "sheet")
        rows = book.rows(name)
    if len(sheets) > 1 and sheet is None:
        others = ", ".join(f'"{shown(one)}"' for one in sheets[1:])
        warnings.warn(
            f'{path}: read its first sheet, "{shown(name)}", and not {others}. Name another with '
            f"{option('table', 'NAME')}.", DataWarning, stacklevel=7,
        )  # fmt: skip
    if not rows:
        raise DataError(f'{path}, sheet "{shown(name)}", is empty; expected column names and one answer a row.')
    texts = ([None if cell is None else str(cell) for cell in row] for row in rows)
    if is_title(title := [cell or "" for cell in next(texts)]):
        refuse_title(title, enumerate(islice(texts, LOOKED_AT), 1), f"{path}, sheet {shown(name)}")
    names = [f"column {place}" if cell is None else str(cell) for place, cell in enumerate(rows[0], 1)]
    keep = wanted_of(names, wanted)
    places = [names.index(one) for one in keep]
    doubled = [one for one in keep if names.count(one) > 1]
    if doubled:
        raise DataError(f"{path} has several columns called {', '.join(doubled)}; rename all but one of each.")
    cells = [[row[place] for place in places] for row in rows[1:]]
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


class Format(NamedTuple):
    """How files of some suffixes are read: whole, or as text, which may be packed.

    ``is_untyped``: whether all values are text, below a line of names; ``in_blocks``: whether it is read block by
    block; ``tables``: whether it holds several.
    """

    noun: str
    of_file: Callable[[Path, str | None, Wanted | None, Allowance], tuple[list[str], pl.DataFrame]] | None = None
    of_text: Callable[[bytes, str, Wanted | None], tuple[list[str], pl.DataFrame]] = read_delimited
    is_untyped: bool = False
    in_blocks: bool = False
    tables: bool = False


_TEXT = Format("delimited text", is_untyped=True, in_blocks=True)
FORMATS = {
    **dict.fromkeys((".csv", ".txt", ".dat"), _TEXT),
    ".tsv": _TEXT._replace(of_text=partial(read_delimited, separator="\t")),
    ".json": Format("JSON", of_text=_json, in_blocks=True),
    **dict.fromkeys((".jsonl", ".ndjson"), Format("JSON lines", of_text=_json, in_blocks=True)),
    **dict.fromkeys((".soc", ".soi", ".toc", ".toi"), Format("orders of PrefLib", of_text=read_preflib)),
    ".zip": Format("a zip archive", _archive, is_untyped=True),
    ".parquet": Format("Parquet", _parquet, in_blocks=True),
    **dict.fromkeys((".xlsx", ".xlsm"), Format("a workbook of Excel", read_workbook, tables=True)),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), Format("a database of SQLite", read_database, tables=True)),
}
_OF_TEXT = [suffix for suffix, one in FORMATS.items() if one.of_file is None]
_WHOLE = [suffix for suffix in FORMATS if suffix not in (*_OF_TEXT, ".zip")]
_KINDS = f"{', '.join(_OF_TEXT)} (each also with .gz, or in a .zip), {', '.join(_WHOLE)}"
