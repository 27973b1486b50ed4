from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys

import polars as pl
import pytest

from predilect.data import Comparisons, check, read, read_frame, read_item_map
from predilect.errors import DataError, DataWarning

TEXT = "user,left,right,winner\n1,01,1,01\n1,1,x,tie\n2,x,01,x\n"


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_ids_of_text_files_stay_as_written(tmp_path):
    comparisons = read(write(tmp_path / "a.csv", TEXT))
    assert comparisons.items.ids == ["01", "1", "x"]
    assert comparisons.users.ids == ["1", "2"]
    assert comparisons.backend == "polars"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", b"\xef\xbb\xbf" + TEXT.encode()),
        ("a.csv", TEXT.replace("\n", "\r\n")),
        ("a.csv", TEXT.replace(",", ";")),
        ("a.tsv", TEXT.replace(",", "\t")),
        ("a.txt", TEXT.replace(",", "\t")),
        ("a.csv", TEXT + "\n\n"),
        ("a.csv", TEXT.rstrip("\n")),
        ("a.CSV.gz", gzip.compress(TEXT.encode(), mtime=0)),
    ],
)
def test_variants_of_text_files(tmp_path, name, data):
    expected = read(write(tmp_path / "plain.csv", TEXT))
    assert read(write(tmp_path / name, data)) == expected


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_blanks_beside_separators_are_left_out_where_the_header_has_them_and_that_is_said(tmp_path, separator, end):
    lines = ["user, left ,right, winner ", '1, 01,  1, "01"', "1,1,x , tie", " 2, x, 01, x  "]
    text = end.join(lines).replace(",", separator) + end
    with pytest.warns(DataWarning, match="blanks beside separators are left out") as caught:
        found = read(write(tmp_path / "a.csv", text))
    assert caught[0].filename == __file__
    same = read(write(tmp_path / "b.csv", TEXT))
    assert found.to_frame("polars").equals(same.to_frame("polars"))
    assert found.intake.columns == same.intake.columns


def test_blanks_within_values_and_quotes_stay(tmp_path):
    text = 'left, right, winner\n" tea", green tea , " tea"\n"a, \n ""b"" , c", mug, " tea"\n'
    with pytest.warns(DataWarning, match="blanks"):
        frame = read_frame(write(tmp_path / "a.csv", text))
    assert frame.to_dict(as_series=False) == {
        "left": [" tea", 'a, \n "b" , c'], "right": ["green tea", "mug"], "winner": [" tea", " tea"],
    }  # fmt: skip
    # Names that differ by a blank are two where the file does not say that blanks are of no account: check asks.
    found = read(write(tmp_path / "b.csv", "left,right,winner\ntea,milk,tea\n tea,milk,milk\n"))
    assert found.items.ids == [" tea", "milk", "tea"]
    assert "look-alike-items" in [finding.code for finding in check(found)]


def test_parquet_and_json_lines(tmp_path):
    frame = read_frame(write(tmp_path / "a.csv", TEXT)).with_columns(pl.lit("en").alias("lang"))
    frame = frame.with_columns(pl.all().cast(pl.String))
    expected = Comparisons.from_frame(frame)
    frame.write_parquet(tmp_path / "a.parquet")
    lines = "".join(json.dumps(row) + "\n" for row in frame.to_dicts())
    write(tmp_path / "a.jsonl", lines)
    write(tmp_path / "a.ndjson.gz", gzip.compress(lines.encode(), mtime=0))
    for name in ("a.parquet", "a.jsonl", "a.ndjson.gz"):
        comparisons = read(tmp_path / name)
        assert comparisons == expected
        assert comparisons.intake.ignored_columns == ("lang",)


def test_quoted_line_ends_and_separators(tmp_path):
    text = 'left,right,note,winner\n"a\nb",c,"x, y","a\nb"\nc,d,,d\n'
    comparisons = read(write(tmp_path / "a.csv", text))
    assert comparisons.items.ids == ["a\nb", "c", "d"]
    assert comparisons.intake.right_wins == 1


def test_weights_and_options(tmp_path):
    text = "a,b,pick,count\nx,y,x,2\ny,z,skip,1\n"
    comparisons = read(
        write(tmp_path / "a.csv", text), columns={"answer": "pick", "weights": "count"}, reading={"drop": "unknown"}
    )
    assert comparisons.weight.tolist() == [2.0]
    assert comparisons.intake.left_out == {"unknown winner": 1}


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n\n", "is empty"),
        ("a.csv", b"left,right,winner\n", "but no rows"),
        ("a.csv", b"left,right,winner\na,\xe9\xff,a\n", "not UTF-8 text (first at line 2"),
        ("a.csv", b"l\xe9ft,right,winner\na,b,a\n", "not UTF-8 text (first at line 1"),
        ("a.csv", b"left,right,winner\na,b,a\na,b\nb,c,b,d\n",
         "2 rows without the 3 fields of the header (first: row 2, 2"),
        ("a.csv", b'left,right,winner,note\na,b,a,"x"\na,b,a,"x",y\n', "1 row without the 4 fields"),
        ("a.csv", b"left,left,right,winner\na,b,a,b\n", 'several columns called left'),
        ("a.csv", b"first,right,winner\na,b,a\n", 'the columns are "first", "right", "winner"'),
        ("a.parquet", b"PAR1 and no more", "cannot be read as Parquet"),
        ("a.jsonl", b'{"left": "a"}\n{"left": ', "cannot be read as JSON lines"),
        ("a.csv.gz", gzip.compress(TEXT.encode() * 50, mtime=0)[:60], "truncated, damaged"),
        ("a.csv.gz", b"not gzip", "truncated, damaged"),
        ("a.docx", b"x", 'ends in ".docx"; expected .csv'),
        ("a", b"x", 'has no ending that says what is in it'),
    ],
)  # fmt: skip
def test_bad_files(tmp_path, name, data, told):
    with pytest.raises(DataError, match=re.escape(told)):
        read(write(tmp_path / name, data))


def test_truncated_parquet(tmp_path):
    frame = pl.DataFrame({"left": ["a"] * 1000, "right": ["b"] * 1000, "winner": ["a"] * 1000})
    frame.write_parquet(tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    for share in (0.2, 0.9):
        with pytest.raises(DataError, match="cannot be read as Parquet") as caught:
            read(write(tmp_path / "cut.parquet", whole[: int(len(whole) * share)]))
        assert caught.value.__cause__ is not None


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        read(tmp_path / "none.csv")
    with pytest.raises(DataError, match="is a directory"):
        read(tmp_path)


def test_numbers_with_a_decimal_comma_are_numbers(tmp_path):
    path = write(tmp_path / "a.csv", "item;price;much;size\nx;3,5;1,000;1\ny;;2,000;2,25\nz;4;3;3\n")
    with pytest.warns(DataWarning, match="writes numbers with a comma") as told:
        frame = read_frame(path)
    assert str(told[0].message) == 'column "price" writes numbers with a comma: 3,5 is read as 3.5.'
    assert len(told) == 2
    assert frame["price"].to_list() == [3.5, None, 4.0]
    assert frame["size"].to_list() == [1.0, 2.25, 3.0]
    assert frame["much"].to_list() == ["1,000", "2,000", "3"]  # thousands, or not


def test_read_frame_infers_all_but_the_id(tmp_path):
    text = "item,size,share,new,kind,empty\n01,1,0.5,true,a,\n2,,1,False,7,\n"
    frame = read_frame(write(tmp_path / "a.csv", text))
    assert [str(frame[name].dtype) for name in ("item", "size", "share", "new", "kind")] == [
        "String", "Int64", "Float64", "Boolean", "String"]  # fmt: skip
    assert frame["item"].to_list() == ["01", "2"]
    assert frame["empty"].null_count() == 2
    kept = read_frame(write(tmp_path / "a.csv", text), id_column="size")
    assert kept["size"].to_list() == ["1", None]
    with pytest.raises(DataError, match="has no column"):
        read_frame(tmp_path / "a.csv", id_column="nope")


def test_read_item_map(tmp_path):
    path = write(tmp_path / "m.csv", "item,model,n\n01,a,1\n02,a,2\n")
    assert read_item_map(path, value="model") == {"01": "a", "02": "a"}
    assert read_item_map(write(tmp_path / "two.csv", "x,y\n1,a\n")) == {"1": "a"}
    with pytest.raises(DataError, match="no value column was named"):
        read_item_map(path)
    with pytest.raises(DataError, match=r'2 ids are mapped to more than one \(first: "1", to a, b\)'):
        read_item_map(write(tmp_path / "bad.csv", "item,to\n1,a\n2,c\n1,b\n2,d\n"))


@pytest.mark.slow
def test_importing_is_light():
    code = "import predilect.data, sys; print([m for m in ('pandas', 'sklearn', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("text", ["user|left|right|winner\nu|x|y|x\n", "sep=;\r\nuser;left;right;winner\r\nu;x;y;x"])
def test_separators_of_spreadsheets_and_databases(tmp_path, text):
    found = read(write(tmp_path / "a.csv", text))
    assert (found.users.ids, found.items.ids, found.outcome.tolist()) == (["u"], ["x", "y"], [1])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            b"# of May\nuser,left,right,winner\nu,x,y,x\n",
            'must name the columns, and is "# of May", one field',
        ),
        (b"user left right winner\nu x y x\n", "It is the only one: what lies between columns must be a comma, a semi"),
        ("left,right,winner\nx,y,x\n".encode("utf-16"), "iconv -f UTF-16 -t UTF-8"),
        (b"left,right,winner\nx,y,True\ny,z,False\n", 'reading={"left_word": "false", "right_word": "true"}'),
        (
            b"left,right,size_left,size_right\nx,y,3,1\ny,z,2,4\n",
            'columns={"answer": "size_left"}, reading={"best": "high"}',
        ),
    ],
)
def test_what_is_no_table_of_answers_is_told_why(tmp_path, data, said):
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(DataError, match=re.escape(said)):
        read(tmp_path / "a.csv")


@pytest.mark.slow
def test_a_header_of_any_length_is_read_whole(tmp_path):
    extra = [f"attribute {k}" for k in range(20_000)]
    path = tmp_path / "v.csv"
    path.write_text(",".join(["left", "right", *extra, "winner"]) + "\n" + ",".join(["a", "b", *["1"] * 20_000, "a"]))
    answers = read(path)
    assert answers.intake.ignored_columns == tuple(extra)
    assert answers.intake.columns["winner"] == "winner"
    assert str(answers.reading).endswith(", attribute 5 and 19994 more.")  # which names a few of them


@pytest.mark.parametrize("items", [range(6), [0, 1, 3, 7, 12, 20], [101, 102, 107, 109, 115, 117]])
def test_the_items_of_a_matrix_are_a_header(tmp_path, items):
    """A vote of each person on each item, or wins of rows over columns: the numbers of items come again below."""
    lines = [",".join(["participant", "n-votes", *map(str, items)])]
    lines += [",".join([str(k), "6", *(str((items[i], -1, 1)[(k + i) % 3]) for i in range(6))]) for k in range(9)]
    with pytest.raises(DataError) as caught:
        read(write(tmp_path / "a.csv", "\n".join(lines)))
    assert "no header" not in str(caught.value)


def test_a_header_that_a_quote_leaves_open_is_refused(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text('left,"right,winner\n' + "a,b,a\n" * 100_000)
    with pytest.raises(DataError, match="no column for the") as caught:
        read(path)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoted", [False, True])
def test_blank_lines_are_no_rows_and_are_counted(tmp_path, end, quoted):
    item = '"a' + end + end + 'b"' if quoted else "a"
    lines = ["left,right,winner", "", f"{item},b,b", "", "", f"b,{item},b", "", "b,c,c", "", ""]
    path = tmp_path / "v.csv"
    path.write_bytes(end.join(lines).encode())
    with pytest.warns(DataWarning, match=r"v.csv: skipped 4 blank lines\.") as caught:
        answers = read(path)
    assert answers.intake.rows_read == 3
    assert answers.items.ids == sorted([item.strip('"'), "b", "c"])
    assert caught[0].filename == __file__


def test_a_row_of_separators_alone_is_a_row_with_missing_ids(tmp_path):
    (tmp_path / "v.csv").write_text("left,right,winner\na,b,b\n,,\nb,c,c\n")
    with pytest.raises(DataError, match=r"missing in 1 row .*first: row 2"):
        read(tmp_path / "v.csv")


@pytest.mark.parametrize("who", ["participant", "Observer_ID", "listener", "household", "id"])
def test_ids_of_people_keep_their_zeros_whatever_their_column_is_called(tmp_path, who):
    path = tmp_path / "people.csv"
    path.write_text(f"{who},age\n001,30\n002,40\n")
    frame = read_frame(path)
    assert frame[who].to_list() == ["001", "002"]
    assert frame["age"].to_list() == [30, 40]
