"""Databases, workbooks and archives, and those that are made to do harm."""

from __future__ import annotations

import gc
import gzip
import io
import sqlite3
import sys
import warnings
import zipfile
from contextlib import closing, suppress

import openpyxl
import polars as pl
import pytest

from predilect import read
from predilect.data.read.readers import is_text, read_frame, read_table
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


def test_without_openpyxl_it_says_what_to_install(tmp_path, monkeypatch):
    path = workbook(tmp_path / "a.xlsx", votes=[NAMES, *ROWS])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r'pip install "predilect\[excel\]", or save the sheet as CSV'):
        read(path)


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
