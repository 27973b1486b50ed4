"""Databases, workbooks and archives, and those that are made to do harm."""

from __future__ import annotations

import gc
import gzip
import io
import re
import sqlite3
import tracemalloc
import warnings
import zipfile
from contextlib import closing, suppress
from datetime import date, datetime, time, timedelta

import openpyxl
import polars as pl
import pytest
from openpyxl.utils.datetime import MAC_EPOCH

from predilect import read
from predilect.data.read.files import Allowance
from predilect.data.read.readers import is_text, read_frame, read_table
from predilect.data.read.workbooks import Workbook
from predilect.errors import DataError

ROWS = [("ann", "tea", "milk", "tea"), ("bob", "milk", "juice", "tie"), ("ann", "juice", "tea", "tea")]
NAMES = ("user", "left", "right", "winner")
FRAME = pl.DataFrame(ROWS, schema=list(NAMES), orient="row")


def database(path, *statements):
    with closing(sqlite3.connect(path)) as base:
        for statement in statements:
            base.execute(statement)
        base.commit()
    return path


def votes_in(path, name="votes"):
    name = name.replace('"', '""')
    with closing(sqlite3.connect(path)) as base:
        base.execute(f'CREATE TABLE "{name}" ("user", "left", "right", "winner", note)')
        base.executemany(f"INSERT INTO \"{name}\" VALUES (?, ?, ?, ?, x'00')", ROWS)
        base.commit()
    return path


def workbook(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name.replace("r__", "r/").replace("_dot_", "."), data)
    return path


CSV = FRAME.write_csv()


@pytest.mark.parametrize("kind", ["json", "json.gz", "ndjson.gz", "csv.zip", "jsonl.zip", "sqlite", "xlsx", "db"])
def test_every_format_holds_the_same_answers(tmp_path, kind):
    path = tmp_path / f"votes.{kind}"
    if kind == "json":
        FRAME.write_json(path)
    elif kind == "json.gz":
        path.write_bytes(gzip.compress(FRAME.write_json().encode()))
    elif kind == "ndjson.gz":
        path.write_bytes(gzip.compress(FRAME.write_ndjson().encode()))
    elif kind == "csv.zip":
        archive(path, folder__votes_dot_csv=CSV, **{"__MACOSX/votes_dot_csv": "x"})
    elif kind == "jsonl.zip":
        archive(path, votes_dot_jsonl=FRAME.write_ndjson(), readme_dot_md="x")
    elif kind == "xlsx":
        workbook(path, votes=[[*NAMES, None], *([*row, None] for row in ROWS), [None] * 5])
    else:
        votes_in(path)
    found = read(path)
    plain = tmp_path / "plain.csv"
    plain.write_text(CSV)
    expected = read(plain)
    for name in ("user", "left", "right", "outcome"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    assert found.items.ids == expected.items.ids


def test_a_sheet_may_have_columns_of_three_letters(tmp_path):
    row = ["u", "x", "y", "x", *[None] * 698, "far"]  # AAA is the 703rd
    path = workbook(tmp_path / "a.xlsx", votes=[[*NAMES, *[None] * 698, "AAA"], row])
    assert read_frame(path)["AAA"].to_list() == ["far"]


def test_numbers_of_a_text_that_is_packed_have_their_type(tmp_path):
    assert read_frame(archive(tmp_path / "a.zip", a_dot_csv="item,size\nx,1\n"))["size"].dtype.is_integer()


def test_numbers_keep_their_type_and_mixed_ones_are_text(tmp_path):
    rows = [["item", "size", "share", "new", "mixed"], [7, 1, 0.5, True, "a"], [8, None, 2, False, 3.0]]
    from_book = read_frame(workbook(tmp_path / "a.xlsx", items=rows))
    path = database(
        tmp_path / "a.db", "CREATE TABLE items (item, size, share, new, mixed)",
        "INSERT INTO items VALUES (7, 1, 0.5, 1, 'a'), (8, NULL, 2, 0, 3.0)",
    )  # fmt: skip
    from_base = read_frame(path)
    assert [str(dtype) for dtype in from_book.dtypes] == ["Int64", "Int64", "Float64", "Boolean", "String"]
    assert [str(dtype) for dtype in from_base.dtypes] == ["Int64", "Int64", "Float64", "Int64", "String"]
    for frame in (from_book, from_base):
        assert frame["item"].to_list() == [7, 8]
        assert frame["mixed"].to_list() == ["a", "3"]
    assert not is_text(path)
    assert is_text(tmp_path / "a.csv.gz")


def test_one_table_of_several_has_to_be_named(tmp_path):
    path = votes_in(database(tmp_path / "a.db", "CREATE TABLE other (a)"), 'the "votes"')
    with pytest.raises(DataError, match=r'has 2 tables \("other", "the "votes""\).* Name one with reading={"table"'):
        read(path)
    with pytest.raises(DataError, match='has no table "none"; there are "other"'):
        read(path, reading={"table": "none"})
    assert read(path, reading={"table": 'the "votes"'}).n_answers == 3
    with pytest.raises(DataError, match="holds bytes"):
        read_table(path, table='the "votes"')
    (tmp_path / "a.csv").write_text(CSV)
    with pytest.raises(DataError, match=r'is one table, so reading={"table": "x"} means nothing there'):
        read(tmp_path / "a.csv", reading={"table": "x"})
    with pytest.raises(DataError, match=r"has 0 tables \(none\).* Is it the right file"):
        read_table(database(tmp_path / "b.db"))


def test_the_first_sheet_is_read_and_the_others_are_named(tmp_path):
    path = workbook(tmp_path / "a.xlsx", votes=[NAMES, *ROWS], notes=[["x"]])
    with pytest.warns(UserWarning, match='read its first sheet, "votes", and not "notes"'):
        assert read(path).n_answers == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(path, reading={"table": "votes"}).n_answers == 3
    with pytest.raises(DataError, match='sheet "empty", is empty'):
        read_table(workbook(tmp_path / "b.xlsx", empty=[]))
    with pytest.raises(DataError, match="several columns called left"):
        read_table(workbook(tmp_path / "c.xlsx", votes=[["left", "left"], ["a", "b"]]))


MOMENTS = [
    datetime(2024, 2, 29, 13, 5, 7, 250_000), datetime(1900, 1, 1), datetime(1900, 2, 28), datetime(1900, 3, 1),
    date(1999, 12, 31), time(0, 0), time(23, 59, 59), timedelta(hours=30, minutes=5), timedelta(seconds=1),
]  # fmt: skip
CELLS = [0, -1, 2**60, 1.5, 1e-300, 1e300, True, False, "", " a ", "<&>\"'", "a\nb", "_x000D_", "=1+1", "café 😀", "12"]
FORMATS = [
    "General", "0.00", "yyyy-mm-dd", "[h]:mm", "[Red]0.0", '"day" 0', "d", "[$-409]h:mm AM/PM;@", "0_d", "mm:ss.0",
    "[mm]:ss", "#,##0", "@", "\\d0",
]  # fmt: skip


def parts_of(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def changed(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return path


def share_strings(path):
    """Let the cells of a workbook have their strings in common, as those of Excel do."""
    parts, strings = parts_of(path), []

    def shared(cell):
        strings.append(cell[3])
        return b'<c%s t="s"%s><v>%d</v></c>' % (cell[1], cell[2], len(strings) - 1)

    for name in parts:
        if name.startswith("xl/worksheets/"):
            inline = rb'<c([^>]*) t="inlineStr"([^>]*)><is>(.*?)</is></c>'
            parts[name] = re.sub(inline, shared, parts[name], flags=re.DOTALL)
    mark, main = b"/relationships/styles", b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    rels = parts["xl/_rels/workbook.xml.rels"]
    kind = re.search(rb'Type="([^"]*)' + mark, rels)[1] + b"/relationships/sharedStrings"
    one = b'<Relationship Id="shared" Target="sharedStrings.xml" Type="%s"/></Relationships>' % kind
    parts["xl/_rels/workbook.xml.rels"] = rels.replace(b"</Relationships>", one)
    said = b'<Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-officedocument'
    types = parts["[Content_Types].xml"]
    parts["[Content_Types].xml"] = types.replace(b"</Types>", said + b'.spreadsheetml.sharedStrings+xml"/></Types>')
    parts["xl/sharedStrings.xml"] = b'<sst xmlns="%s">%s</sst>' % (main, b"".join(b"<si>%s</si>" % x for x in strings))
    return changed(path, parts)


def as_openpyxl_reads(path, sheet):
    with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that are no dates
        rows = [list(row) for row in book[sheet].iter_rows(values_only=True)]
    return [[None if cell == "" else cell for cell in row] for row in rows if any(cell is not None for cell in row)]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("mac", [False, True])
def test_cells_are_what_openpyxl_says(tmp_path, mac, shared):
    book = openpyxl.Workbook()
    if mac:
        book.epoch = MAC_EPOCH
    sheet = book.active
    for row in (CELLS, MOMENTS, [None, 3, None], [], ["x"]):
        sheet.append(row)
    for place, code in enumerate(FORMATS, 1):
        for number, value in enumerate((0.0, 0.25, 7, 45_000.5, 1e9), 10):
            cell = sheet.cell(number, place, value)
            cell.number_format = code
    sheet.cell(30, 28, "far")
    book.create_sheet("other").append([1])
    book.save(path := tmp_path / "a.xlsx")
    if shared:
        share_strings(path)
    with zipfile.ZipFile(path) as archive:
        found = Workbook(archive, Allowance(path, 2.5))
        assert list(found.sheets) == ["Sheet", "other"]
        ours = found.rows("Sheet")
        assert found.rows("other") == [[1]]
    theirs = as_openpyxl_reads(path, "Sheet")
    assert {len(row) for row in ours} == {28}
    for row, other in zip(ours, theirs, strict=True):
        for cell, expected in zip(row, other + [None] * (28 - len(other)), strict=True):
            # A serial number that is no date stays the number that it is.
            assert (cell or None if cell == "" else cell) == (1e9 if expected == "#VALUE!" else expected)
            assert cell == "" or type(cell) is type(expected) or expected == "#VALUE!"


def test_a_chart_is_no_sheet(tmp_path):
    book = openpyxl.Workbook()
    book.create_chartsheet("a chart", 0)
    book.save(tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "a.xlsx") as archive:
        assert list(Workbook(archive, Allowance(tmp_path / "a.xlsx", 2.5)).sheets) == ["Sheet"]


def sheet_of(tmp_path, replace, limit=2.5, part="xl/worksheets/sheet1.xml"):
    """Frame of a workbook of which one part was changed."""
    parts = parts_of(share_strings(workbook(tmp_path / "whole.xlsx", votes=[NAMES, *ROWS])))
    parts[part] = replace(parts[part])
    return read_table(changed(tmp_path / "a.xlsx", parts), unpack_limit=limit)[1]


def test_cells_that_other_programs_write(tmp_path):
    rows = (
        b'<row><c t="inlineStr"><is><r><t>te</t></r><r><t>a</t></r><rPh sb="0" eb="1"><t>no</t></rPh></is></c>'
        b'<c t="str"><f>A1&amp;B1</f><v>milk</v></c><c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c></row>'
        b'<row><c r="D9"><v>2</v></c><c r="A9" t="d"><v>2024-01-02</v></c><c r="B9"/></row>'
    )
    found = sheet_of(tmp_path, lambda xml: re.sub(b"<sheetData>.*</sheetData>", b"<sheetData>" + rows + b"</sheetData>",
                                                  xml, flags=re.DOTALL))  # fmt: skip
    assert found.columns == ["tea", "milk", "True", "#N/A"]
    assert found.rows() == [("2024-01-02", None, None, 2)]


BOMBS = {
    "cells in a row": lambda n: b"<row>" + b"<c><v>1</v></c>" * n + b"</row>",
    "rows": lambda n: b"<row><c><v>1</v></c></row>" * n,
    "texts": lambda n: b'<row><c t="inlineStr"><is><t>a</t></is></c></row>' * n,
    "wide rows": lambda n: b'<row><c r="XFC1"><v>1</v></c></row>' * (n // 10),
    "one wide row": lambda n: b'<row r="1"><c r="XFC1"><v>1</v></c></row>' + b"<row><c><v>1</v></c></row>" * (n // 10),
    "elements of no use": lambda n: b'<x a="" b=""/>' * n,
    "deep elements": lambda n: b"<x>" * n + b"</x>" * n,
    "attributes": lambda n: b"<x " + b" ".join(b'a%d=""' % i for i in range(3 * n)) + b"/>",
    "one text": lambda n: b'<row><c t="inlineStr"><is><t>' + "aé😀".encode() * 10 * n + b"</t></is></c></row>",
    "a text many times": lambda n: b'<row><c t="s"><v>0</v></c></row>' * n,
    "rows in rows": lambda n: b"<row><c><v>1</v></c>" * n + b"</row>" * n,
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_workbook_that_is_made_to_fill_the_memory_takes_less_than_the_limit(tmp_path, kind):
    with pytest.raises(DataError, match=r"unpacks to more than 0.002 GB|cannot be read as a workbook"):
        sheet_of(tmp_path, lambda xml: xml.replace(b"</sheetData>", BOMBS[kind](100_000) + b"</sheetData>"), 0.002)
    tracemalloc.start()
    with pytest.raises(DataError):
        read_table(tmp_path / "a.xlsx", unpack_limit=0.002)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e6 + 2 * 2**20  # what is held of a tag or a text that does not end


@pytest.mark.parametrize("part", ["xl/styles.xml", "xl/sharedStrings.xml", "xl/workbook.xml", "[Content_Types].xml"])
def test_no_part_of_a_workbook_fills_the_memory(tmp_path, part):
    def filled(xml):
        head, mark, tail = xml.rpartition(b"</")
        return head + b'<si><t>a</t></si><numFmt numFmtId="1" formatCode="d"/>' * 100_000 + mark + tail

    if part == "[Content_Types].xml":  # which is not read
        assert len(sheet_of(tmp_path, filled, 0.002, part)) == 3
        return
    with pytest.raises(DataError, match=r"unpacks to more than 0.002 GB"):
        sheet_of(tmp_path, filled, 0.002, part)


def test_entities_are_refused(tmp_path):
    with pytest.raises(DataError, match="cannot be read as a workbook of Excel: it has a document type"):
        sheet_of(tmp_path, lambda xml: b"<!DOCTYPE x [<!ENTITY a 'lol'>]>" + xml[xml.index(b"<worksheet") :])


@pytest.mark.parametrize("kind", ["sqlite", "xlsx", "zip"])
def test_files_that_are_not_what_their_name_says(tmp_path, kind):
    path = tmp_path / f"votes.{kind}"
    whole = {
        "sqlite": votes_in,
        "xlsx": lambda p: workbook(p, votes=[NAMES, *ROWS]),
        "zip": lambda p: archive(p, a_dot_csv=CSV),
    }
    whole[kind](path)
    data = path.read_bytes()
    for bad in (b"left,right,winner\na,b,a\n", data[: len(data) // 2], data[:40]):
        path.write_bytes(bad)
        with pytest.raises(DataError, match=r"cannot be read as (a database|a workbook|a zip archive)"):
            read(path)


@pytest.mark.slow
def test_no_changed_byte_of_a_workbook_or_a_database_gets_past(tmp_path):
    for path in (votes_in(tmp_path / "a.db"), workbook(tmp_path / "a.xlsx", votes=[NAMES, *ROWS])):
        data, changed = path.read_bytes(), tmp_path / f"changed{path.suffix}"
        for place in range(0, len(data), max(len(data) // 60, 1)):
            changed.write_bytes(data[:place] + bytes([data[place] ^ 107]) + data[place + 1 :])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with suppress(DataError):
                    read(changed)


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/styles.xml", "xl/worksheets/sheet1.xml"])
def test_a_damaged_workbook_is_closed(tmp_path, part):
    whole = workbook(tmp_path / "a.xlsx", votes=[NAMES, *ROWS])
    with zipfile.ZipFile(whole) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    path = tmp_path / "b.xlsx"
    with zipfile.ZipFile(path, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data[: len(data) // 2] if name == part else data)
    with pytest.raises(DataError, match="cannot be read as a workbook") as caught:
        read_table(path)
    assert caught.traceback  # which holds what was being read: nothing but the reader itself closes it
    opened = [one for one in gc.get_objects() if isinstance(one, io.BufferedReader) and one.name == str(path)]
    assert all(one.closed for one in opened)


@pytest.mark.slow
def test_archives_that_unpack_to_too_much_or_hold_several(tmp_path):
    path = archive(tmp_path / "a.zip", a_dot_csv="left,right,winner\n" + "a,b,a\n" * 200_000)
    with pytest.raises(DataError, match=r"unpacks to more than 0.001 GB.*unpack_limit=GB"):
        read_table(path, unpack_limit=0.001)
    assert len(read_table(path)[1]) == 200_000
    with pytest.raises(DataError, match=r"holds 2 tables of text \(a.csv, b.csv\), and one is read"):
        read_table(archive(tmp_path / "b.zip", a_dot_csv=CSV, b_dot_csv=CSV))
    with pytest.raises(DataError, match="holds no tables of text"):
        read_table(archive(tmp_path / "c.zip", a_dot_exe=CSV))
    rows = [["left", "right", "winner"], *[["a", "b", "a"]] * 30_000]
    with pytest.raises(DataError, match=r"unpacks to more than 0.001 GB"):
        read_table(workbook(tmp_path / "d.xlsx", votes=rows), unpack_limit=0.001)


def test_views_and_virtual_tables_are_not_run(tmp_path):
    endless = (
        "CREATE VIEW v AS WITH RECURSIVE n(left) AS (SELECT 1 UNION ALL SELECT left + 1 FROM n) SELECT left FROM n"
    )
    with pytest.raises(DataError, match="has 0 tables"):
        read_table(database(tmp_path / "a.db", endless))

    before = votes_in(tmp_path / "b.db").read_bytes()
    read(tmp_path / "b.db")
    assert (tmp_path / "b.db").read_bytes() == before
