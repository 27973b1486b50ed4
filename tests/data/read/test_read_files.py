"""Files that hold more than a table: PrefLib's orders, and JSON arrays."""

from __future__ import annotations

import json
import re

import openpyxl
import polars as pl
import pytest

from answers import tasks_of
from predilect.data import Comparisons, read, read_frame
from predilect.data.read.readers import open_table
from predilect.errors import DataError

HEADER = """\
# FILE NAME: 00001-00000001.soi
# TITLE: Drinks
# NUMBER ALTERNATIVES: 4
# ALTERNATIVE NAME 1: tea
# ALTERNATIVE NAME 2: milk
# ALTERNATIVE NAME 3: oat milk, cold
# ALTERNATIVE NAME 4: water
"""


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("suffix", "line", "expected"),
    [
        (".soc", "1: 3,1,2,4", ("milk > water", "oat milk, cold > tea", "tea > milk")),
        (".soi", "1: 3,1", ("oat milk, cold > tea",)),
        (".toc", "1: 3,{1,2},4", ("milk > water", "oat milk, cold > milk", "oat milk, cold > tea", "tea > water")),
        (".toi", "1: {1,3},2", ("oat milk, cold > milk", "tea > milk")),
    ],
)
def test_orders_of_preflib(tmp_path, suffix, line, expected):
    found = read(write(tmp_path, f"drinks{suffix}", HEADER + line + "\n"))
    assert tasks_of(found) == [(None, *expected)]
    assert not found.has_users


def test_counts_of_preflib_are_weights_and_equal_ballots_stay_whole(tmp_path):
    found = read(write(tmp_path, "drinks.soi", HEADER + "3: 3,1,2\n1: 3,1,2\n5: 4\n2: 1,2\n"))
    assert found.intake.columns["weight"] == "count"
    assert found.intake.left_out == {"one alternative": 1}
    assert sorted(found.weight.tolist()) == [1, 1, 2, 3, 3]
    assert tasks_of(found).count((None, "oat milk, cold > tea", "tea > milk")) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "1: 3,1\nwhat\n", 'line 9 is no order, "what"; expected how many gave it, a colon'),
        (HEADER + "1: 3,7\n", 'line 8 names the alternative "7", but the header names 4 others'),
        (HEADER, "holds no order"),
        (HEADER.replace("milk\n", "tea\n", 1) + "1: 1,2\n", "gives two alternatives the same name"),
        (HEADER + "1: 1,2,1\n", 'the same alternative stands twice in 1 task (first: row 1), such as "tea"'),
    ],
)
def test_damaged_files_of_orders_are_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=re.escape(message)):
        read(write(tmp_path, "drinks.soc", text))


RECORDS = [
    {"annotator": "ann", "prompt": 1, "ranking": ["tea", "milk"], "alternatives": ["milk", "tea", "water"]},
    {"annotator": "bob", "prompt": 2, "ranking": ["water"], "alternatives": ["milk", "water"]},
]


@pytest.mark.parametrize("lines", [False, True])
def test_json_records_whose_values_are_lists(tmp_path, lines):
    text = "\n".join(map(json.dumps, RECORDS)) if lines else json.dumps(RECORDS, indent=1)
    found = read(write(tmp_path, "orders.jsonl" if lines else "orders.json", text))
    assert tasks_of(found) == [("ann", "milk > water", "tea > milk"), ("bob", "water > milk")]


def test_json_orders_with_ties_and_choices_of_lists(tmp_path):
    tied = json.dumps([{"user": "ann", "order": [["tea", "milk"], ["water"]]}])
    assert tasks_of(read(write(tmp_path, "a.json", tied))) == [("ann", "milk > water", "tea > water")]
    some = json.dumps([{"user": "ann", "choice": ["tea", "milk"], "items": ["tea", "milk", "water"]}])
    found = read(write(tmp_path, "b.json", some))
    assert found.intake.tasks_read == {"choices of any number of 3": 1}
    assert tasks_of(found) == [("ann", "milk > water", "tea > water")]
    with pytest.raises(DataError, match=r"b.json cannot be read as JSON"):
        read(write(tmp_path, "b.json", some[:-1]))


TITLES = {
    "Umfrage 2026;;;\n;;;\nuser;left;right;winner\na;x;y;x\n": ("Umfrage 2026", "row 2 has 4"),
    "Survey results July 2026,,,\nuser,left,right,winner\na,x,y,x\n": ("Survey results July 2026", "row 1 has 4"),
    '"Survey, July",\nleft,right\nx,y\n': ("Survey, July", "row 1 has 2"),
    "Survey\nuser,left,right,winner\na,x,y,x\n": ("Survey", "row 1 has 4"),
}


@pytest.mark.parametrize("text", TITLES)
def test_a_title_above_the_names_is_to_be_taken_out_with_or_without_separators(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    title, below = TITLES[text]
    with pytest.raises(DataError) as error:
        read(tmp_path / "a.csv")
    said = f'the first line must name the columns, and is "{title}", one field, where {below}. Take out'
    assert said in str(error.value)


def test_a_title_of_a_sheet_is_to_be_taken_out(tmp_path):
    book = openpyxl.Workbook()
    for row in (["Survey July"], [], ["user", "left", "right", "winner"], ["a", "x", "y", "x"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(DataError, match=r'columns, and is "Survey July", one field, where row 1 has 4\. Take out'):
        read(tmp_path / "a.xlsx")


def test_one_column_with_a_separator_after_it_has_no_title(tmp_path):
    (tmp_path / "a.csv").write_text("item,\na,\nb,\n")
    assert read_frame(tmp_path / "a.csv", id_column="item")["item"].to_list() == ["a", "b"]


def test_tasks_of_label_studio_are_a_row_an_annotation(tmp_path):
    ann, bob = {"id": 7, "email": "ann@x"}, {"id": 8, "email": "bob@x"}

    def annotated(who, selected):
        value = {"from_name": "better", "type": "pairwise", "value": {"selected": selected}}
        return {"completed_by": who, "result": [value] if selected else []}

    tasks = [
        {"id": 1, "data": {"left": "x", "right": "y"},
         "annotations": [annotated(ann, "left"), annotated(bob, None)]},
        {"id": 2, "data": {"left": "z", "right": "x"}, "annotations": [annotated(bob, "right")]},
        {"id": 3, "data": {"left": "z", "right": "x"}, "annotations": []},
        {"id": 4, "data": {"left": "x", "right": "z"}, "annotations": [annotated({"id": 9}, "left")]},
    ]  # fmt: skip
    found = read(write(tmp_path, "export.json", json.dumps(tasks)), reading={"drop": "unknown"})
    assert tasks_of(found) == [("9", "x > z"), ("ann@x", "x > y"), ("bob@x", "x > z")]
    assert (found.intake.rows_read, found.n_rows) == (4, 3)  # one annotation says nothing


def test_long_texts_beside_votes_are_not_looked_at(tmp_path):
    """A table whose columns of items are called so needs no others that may be the items: texts are read late."""
    votes = {
        "judge": list("aab"),
        "model_a": list("xyz"),
        "model_b": list("yzx"),
        "winner": ["model_a", "tie", "model_b"],
    }
    texts = {name: ["so", "much", "text"] for name in ("prompt", "response_a", "response_b", "conversation_a")}
    pl.DataFrame({**votes, **texts}).write_csv(tmp_path / "votes.csv")
    table = open_table(tmp_path / "votes.csv")
    assert Comparisons.read_with(table, {}).n_answers == 3
    assert "_others" not in vars(table)
