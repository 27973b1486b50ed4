"""Files that are made to end the process or to fill its memory, and what a Parquet file says of its sizes."""

from __future__ import annotations

import gzip
import inspect
import subprocess
import sys
import tracemalloc
import zipfile

import openpyxl
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from predilect.data.read import readers
from predilect.data.read.files import DamagedParquet, read_footer, unpacked_size
from predilect.data.read.readers import read, read_frame, read_item_map, read_table
from predilect.errors import DataError

VOTES = pl.DataFrame({"left": ["a", "b"], "right": ["b", "a"], "winner": ["a", "a"]})


def alike(n):
    return pl.select(pl.repeat("a", n).alias("left"), right=pl.lit("b"), winner=pl.lit("a"))


READERS = (read, read_frame, read_item_map, read_table)


FLIPS = """
import sys
from pathlib import Path
from predilect.data.read.readers import read_table
from predilect.errors import DataError
path, data = Path(sys.argv[1]), Path(sys.argv[2]).read_bytes()
for place in range(int(sys.argv[3]) - 1, len(data), int(sys.argv[3])):
    for change in map(int, sys.argv[4:]):
        path.write_bytes(data[:place] + bytes([data[place] ^ change]) + data[place + 1 :])
        try:
            read_table(path)
        except DataError:
            pass
print("survived")
"""


# Places 35, 131 and 225 of this file, as polars 2.1 writes it, hold the number of values of a page.
@pytest.mark.parametrize(
    ("step", "changes"), [(4, (1,)), pytest.param(1, (1, 4, 107, 128, 255), marks=pytest.mark.slow)]
)
def test_no_changed_byte_of_a_parquet_file_ends_the_process(tmp_path, step, changes):
    VOTES.write_parquet(tmp_path / "whole.parquet", compression="uncompressed")
    files = [str(tmp_path / "flip.parquet"), str(tmp_path / "whole.parquet")]
    command = [sys.executable, "-c", FLIPS, *files, *map(str, (step, *changes))]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout == "survived\n"


@pytest.mark.parametrize("options", [
    {}, {"data_page_version": "2.0", "version": "2.6", "compression": "gzip"}, {"use_dictionary": False},
    {"compression": "none", "write_page_index": True, "write_page_checksum": True}, {"compression": "zstd"},
    {"use_dictionary": False, "column_encoding": {"left": "DELTA_BYTE_ARRAY", "n": "DELTA_BINARY_PACKED"}},
])  # fmt: skip
def test_files_of_every_kind_are_read_and_their_size_is_known(tmp_path, options):
    n = 5000
    table = pa.table({
        "left": ["an item with a name"] * n, "n": range(n), "tags": [[{"a": 1}]] * n, "none": pa.nulls(n),
        "a long value": ["x" * 100_000] + [None] * (n - 1), "right": [None, "b"] * (n // 2),
    })  # fmt: skip
    if "column_encoding" in options:
        table = table.select(["left", "n"])
    path = tmp_path / "v.parquet"
    pq.write_table(table, path, data_page_size=500, row_group_size=n // 3, **options)
    names, frame = read_table(path)
    assert names == table.column_names
    assert frame.equals(pl.read_parquet(path))
    values, packed = unpacked_size(path, read_footer(path), ["left", "n"])
    assert values == 2 * n
    assert 0 < packed <= 3 * 16 * 2 * n


def test_what_polars_writes_is_read_with_no_row_and_with_many(tmp_path):
    for frame in (VOTES.clear(), pl.concat([VOTES] * 10_000)):
        frame.write_parquet(tmp_path / "v.parquet", row_group_size=5000)
        assert read_table(tmp_path / "v.parquet")[1].equals(frame)


def test_deeply_nested_columns_of_a_parquet_file_are_refused(tmp_path):
    kind, value = pa.int64(), 1
    for _ in range(100):
        kind, value = pa.list_(kind), [value]
    pq.write_table(pa.table({"left": ["a"], "x": pa.array([value], kind)}), tmp_path / "v.parquet")
    with pytest.raises(DataError, match="nested more than 64 levels"):
        read_table(tmp_path / "v.parquet", lambda names: ["left"])


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\x00" * 8 + b"PAR1", b"PAR1\xff\xff\xff\x7fPAR1"])
def test_a_file_that_is_no_parquet_is_refused(tmp_path, data):
    (tmp_path / "v.parquet").write_bytes(data)
    with pytest.raises(DamagedParquet):
        read_footer(tmp_path / "v.parquet")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_table(tmp_path / "v.parquet")


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("b.csv.gz", read),
        ("b.jsonl.gz", read_frame),
        ("b.parquet", read),
        ("b.csv.gz", read_item_map),
    ],
)
def test_what_unpacks_to_more_than_the_limit_is_refused_before_it_is_unpacked(tmp_path, name, reader):
    path = tmp_path / name
    if name.endswith(".parquet"):
        alike(1_000_000).write_parquet(path)
    else:
        row = b"a,b,a\n" if ".csv" in name else b'{"left": "a", "right": "b", "winner": "a"}\n'
        path.write_bytes(gzip.compress(b"left,right,winner\n" + row * (12_000_000 // len(row))))
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    with pytest.raises(DataError, match=r"more than 0.01 GB.*unpack_limit=GB"):
        reader(path, unpack_limit=0.01)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_only_the_columns_that_are_read_count(tmp_path):
    path = tmp_path / "v.parquet"
    VOTES.with_columns(text=pl.Series(["x" * 3_000_000, "y" * 3_000_000])).write_parquet(path)
    assert len(read_table(path, lambda names: ["left"], unpack_limit=0.001)[1]) == 2
    with pytest.raises(DataError, match="unpacks to more"):
        read_frame(path, unpack_limit=0.001)


def pack(frame, path):
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress((frame.write_csv() if ".csv" in path.name else frame.write_ndjson()).encode()))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("v.csv", frame.write_csv())
    else:
        book = openpyxl.Workbook()
        for row in [frame.columns, *frame.rows()]:
            book.active.append(row)
        book.save(path)


@pytest.mark.parametrize("name", ["v.parquet", "v.csv.gz", "v.jsonl.gz", "v.zip", "v.xlsx"])
def test_short_values_count_as_what_they_take_in_memory_whatever_holds_them(tmp_path, name):
    # 3 000 values of one letter, 50 bytes each: 150 kB, out of files of 1 to 60 kB.
    pack(alike(1000), tmp_path / name)
    with pytest.raises(DataError, match=r"more than 0.00015 GB of memory.*unpack_limit=GB"):
        read(tmp_path / name, unpack_limit=0.00015)
    limit = 0.002 if name == "v.xlsx" else 0.0002  # cells are objects of Python
    assert read(tmp_path / name, unpack_limit=limit).n_answers == 1000


@pytest.mark.slow
def test_twenty_million_answers_of_one_letter_are_refused_within_the_default(tmp_path):
    alike(20_000_000).write_parquet(tmp_path / "v.parquet")
    assert (tmp_path / "v.parquet").stat().st_size < 200_000
    with pytest.raises(DataError, match=r"more than 2\.5 GB of memory"):
        read(tmp_path / "v.parquet")


def test_a_workbook_whose_rows_lie_far_apart_is_refused_at_once(tmp_path):
    path = tmp_path / "v.xlsx"
    pack(alike(2), path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet, far = "xl/worksheets/sheet1.xml", b'<row r="99999999999999"><c r="A99999999999999" t="n"><v>1</v></c></row>'
    parts[sheet] = parts[sheet].replace(b"</sheetData>", far + b"</sheetData>")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(DataError, match="cannot be read as a workbook of Excel: it numbers a row that no sheet has"):
        read_table(path)


def test_files_within_the_limit_are_read(tmp_path):
    text = "left,right,winner\n" + "a,b,a\n" * 100_000
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert read(tmp_path / "v.csv.gz", unpack_limit=0.016).n_answers == 100_000
    for reader in READERS:
        assert inspect.signature(reader).parameters["unpack_limit"].default == readers.UNPACK_LIMIT


@pytest.mark.parametrize("depth", [65, 500, 1000, 200_000])
@pytest.mark.parametrize("brackets", ["[]", ('{"a":', "}")])
def test_json_that_is_nested_deeply_is_refused_at_once(tmp_path, depth, brackets):
    value = brackets[0] * depth + "1" + brackets[1] * depth
    row = '{"left":"a","right":"b","winner":"a"'
    (tmp_path / "v.jsonl").write_text(f'{row}}}\n{row},"x":{value}}}\n')
    with pytest.raises(DataError, match="line 2 are nested more than 64 levels"):
        read(tmp_path / "v.jsonl")


def test_json_that_is_nested_as_deeply_as_may_be_is_read(tmp_path):
    row = '{"left":"a","right":"b","winner":"a","x":' + "[" * 63 + "1" + "]" * 63 + "}\n"
    (tmp_path / "v.jsonl").write_text(row)
    assert read(tmp_path / "v.jsonl").n_answers == 1


def test_brackets_within_text_are_no_nesting(tmp_path):
    text = '{"left":"a","right":"' + "[" * 500 + '\\"{","winner":"a"}\n'
    (tmp_path / "v.jsonl").write_text(text)
    assert read(tmp_path / "v.jsonl").items.ids == ["[" * 500 + '"{', "a"]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".parquet"])
def test_a_name_that_no_file_can_have_is_refused_as_an_input(tmp_path, reader, suffix):
    with pytest.raises(DataError, match=r"cannot be opened: File name too long\. Check the name\."):
        reader(tmp_path / ("a" * 300 + suffix))
