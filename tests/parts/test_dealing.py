"""Files of answers, dealt out by person: nothing is lost, nobody is split, and what is wrong is said."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import predilect
from predilect.data.read.readers import read_blocks, read_table
from predilect.errors import DataError, OutputError
from predilect.parts import Parts, partition
from predilect.parts.manifest import MANIFEST, hashes_of
from simulate_parts import in_parts, votes


def whole(parts: Parts) -> predilect.Comparisons:
    """All answers of some parts."""
    return parts.sample(10**9, 10**9)


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "jsonl"])
def test_parts_together_are_the_answers_of_the_file(tmp_path, form):
    frame = votes(ties=0.3)
    file = tmp_path / f"votes.{form}"
    if form == "parquet":
        frame.write_parquet(file)
    elif form == "jsonl":
        frame.write_ndjson(file)
    else:
        frame.write_csv(file, compression="gzip" if form.endswith("gz") else "uncompressed")
    read = predilect.read(file)
    parts = partition(file, tmp_path / "parts", n_parts=4)
    assert whole(parts) == read
    assert (parts.n_users, parts.n_answers) == (read.n_users, read.n_answers)
    assert parts.intake.columns == read.intake.columns
    for part in range(4):
        users = parts.answers(part).users.ids
        assert {int(h % np.uint64(4)) for h in hashes_of(users)} <= {part}
    assert len(list(parts.check())) == 4


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_parts_hold_what_was_used_of_the_file_whatever_it_is_called(tmp_path, form):
    frame = votes().with_columns(pl.lit("a long text").alias("prompt")).rename({"winner": "answer"})
    file = tmp_path / f"votes.{form}"
    frame.write_parquet(file) if form == "parquet" else frame.write_csv(file)
    parts = partition(file, tmp_path / "parts", n_parts=3)
    assert whole(parts) == predilect.read(file)
    assert parts.intake.ignored_columns == ("prompt",)


def test_parts_without_anybody_are_parts(tmp_path):
    table = pl.DataFrame({"user": ["ann", "bob"] * 3, "left": ["x"] * 6, "right": ["y"] * 6, "winner": ["x", "y"] * 3})
    table.write_csv(tmp_path / "two.csv")
    parts = partition(tmp_path / "two.csv", tmp_path / "parts", n_parts=8)
    assert sorted(one.n_users for one in parts.records)[-3:] == [0, 1, 1]
    assert len(list(parts.check())) == 8


def test_hashes_are_the_same_for_ever():
    # printf %s ann | b2sum -l 64
    told = ["8d3adf6abf23f3a5", "e75017cace788f82", "e75017cace788f82", "14271d2c3225f075"]
    assert hashes_of(["ann", "7", 7, "Ωλ"]).tobytes().hex() == "".join(told)


@pytest.mark.parametrize("above", ["", "\ufeff", "sep=,\n", "\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blocks_of_any_size_are_the_table(tmp_path, above, end):
    rows = [f'p{k % 7},"a ""b"",{k % 3}\nc",d{k % 2},left' for k in range(40)]
    file = tmp_path / "votes.csv"
    file.write_bytes((above + "user,left,right,winner" + end + end.join(rows)).encode())
    table = read_table(file)[1]
    for size in (7, 64, 333, 10**6):
        assert pl.concat(list(read_blocks(file, size=size))).equals(table)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_without_rows_is_refused(kind, tmp_path):
    table = pl.DataFrame(schema=dict.fromkeys(("user", "left", "right", "winner"), pl.String))
    getattr(table, f"write_{kind}")(tmp_path / f"votes.{kind}")
    with pytest.raises(DataError, match=r"no rows.* Is it the right file\?"):
        partition(tmp_path / f"votes.{kind}", tmp_path / "parts", n_parts=2)
    assert not (tmp_path / "parts").exists()


def test_choices_stay_whole(tmp_path):
    tasks = [
        {"user": f"p{k % 9}", "task": k, "item": item, "chosen": int(item == k % 4)}
        for k in range(90)
        for item in range(4)
    ]
    file = tmp_path / "choices.csv"
    pl.DataFrame(tasks).write_csv(file)
    parts = partition(file, tmp_path / "parts", n_parts=3)
    assert parts.joint
    assert whole(parts) == predilect.read(file)


def test_grades_covariates_sides_and_contexts_come_along(tmp_path):
    frame = votes(20).with_columns(
        pl.Series("winner", ["left slightly better", "right much better"] * 80), pl.Series("length", range(160)) * 0.5,
        pl.Series("prompt", ["a", "b", "c", None] * 40),
    )  # fmt: skip
    how = {"columns": {"covariates": ["length"], "context": "prompt"}, "reading": {"grades": ["slightly", "much"]}}
    parts = in_parts(tmp_path, frame, **how)
    read = predilect.read(tmp_path / "votes.csv", **how)
    found = whole(parts)
    assert found == read
    np.testing.assert_array_equal(found.sides, read.sides)


def test_a_new_day_joins_its_people(tmp_path):
    first, more = votes(30, seed=1), votes(40, seed=2).with_columns(left=pl.lit("new item"), winner=pl.lit("new item"))
    in_parts(tmp_path, first)
    more.write_csv(tmp_path / "more.csv")
    parts = partition(tmp_path / "more.csv", tmp_path / "parts", add=True)
    pl.concat([first, more]).write_csv(tmp_path / "both.csv")
    both = predilect.read(tmp_path / "both.csv")
    assert whole(parts) == both
    assert parts.n_by_item.sum() == 2.0 * both.n_answers


def test_answers_are_not_added_where_somebody_keeps_notes(tmp_path):
    in_parts(tmp_path, votes(30))
    (notes := tmp_path / "parts" / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match=r"first: notes\.txt.*Move that elsewhere"):
        partition(tmp_path / "votes.csv", tmp_path / "parts", add=True)
    assert notes.read_text() == "mine"
    notes.unlink()
    assert partition(tmp_path / "votes.csv", tmp_path / "parts", add=True).n_answers == 2 * len(votes(30))


def test_several_files_and_integer_ids(tmp_path):
    frame = votes(20).with_columns(user=pl.col("user").str.strip_prefix("p").cast(pl.Int64))
    frame[:70].write_parquet(tmp_path / "a.parquet")
    frame[70:].write_parquet(tmp_path / "b.parquet")
    parts = partition([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "parts")
    assert parts.user_is_integer
    assert whole(parts) == predilect.read(frame)
    assert parts.part_of(3) == parts.part_of("3")


def changed(folder: Path, **values) -> None:
    """Another manifest, with the checksum that it should have."""
    from predilect.parts.manifest import _checksum

    document = json.loads((folder / MANIFEST).read_text()) | values
    document.pop("checksum")
    (folder / MANIFEST).write_text(json.dumps({**document, "checksum": _checksum(document)}))


def test_what_is_not_as_the_manifest_says_is_refused(tmp_path):
    kept = in_parts(tmp_path, votes())

    def broken(name: str) -> Path:
        folder = tmp_path / name
        shutil.copytree(kept.path, folder)
        return folder

    folder = broken("missing")
    (folder / kept.records[1].file).unlink()
    with pytest.raises(DataError, match=r"missing, half.*part-0001"):
        Parts.open(folder)
    folder = broken("half")
    file = folder / kept.records[2].file
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"half\s+written.*part-0002"):
        Parts.open(folder)
    folder = broken("changed")
    file = folder / kept.records[0].file
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(DataError, match="checksum"):
        Parts.open(folder).answers(0)
    folder = broken("version")
    changed(folder, version=99)
    with pytest.raises(DataError, match="another version"):
        Parts.open(folder)
    folder = broken("edited")
    text = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(text.replace('"n_users"', '"n_people"', 1))
    with pytest.raises(DataError, match="changed after"):
        Parts.open(folder)
    with pytest.raises(DataError, match="no manifest"):
        Parts.open(tmp_path)


def swapped(parts: Parts, one: int, other: int) -> None:
    """A part under the name of another, and the manifest made to fit."""
    document = json.loads((parts.path / MANIFEST).read_text())
    records = document["parts"]
    names = records[one]["file"], records[other]["file"]
    shutil.copyfile(parts.path / names[0], parts.path / names[1])
    records[other] = records[one] | {"file": names[1]}
    changed(parts.path, parts=records)


def test_a_person_in_two_parts_is_refused(tmp_path):
    parts = in_parts(tmp_path, votes())
    swapped(parts, 0, 1)
    with pytest.raises(DataError, match="who belongs to part 0"):
        list(Parts.open(parts.path).check())


def test_other_vocabularies_and_counts_are_refused(tmp_path):
    parts = in_parts(tmp_path, votes())
    changed(parts.path, items={"ids": ["item 0", "item 1"], "n": [1.0, 1.0]})
    with pytest.raises(DataError, match="different vocabularies"):
        Parts.open(parts.path).answers(0)
    items = parts.items.ids
    changed(parts.path, items={"ids": items, "n": [1.0] * len(items)})
    with pytest.raises(DataError, match="counts of items"):
        list(Parts.open(parts.path).check())


def test_answers_without_people_have_no_parts(tmp_path):
    votes().drop("user").write_csv(tmp_path / "votes.csv")
    with pytest.raises(DataError, match="who answered"):
        partition(tmp_path / "votes.csv", tmp_path / "parts")
    assert not (tmp_path / "parts").exists()


def test_a_part_that_reads_otherwise_is_refused(tmp_path):
    # The first block holds sides alone; the second names items.
    frame = votes(40)
    frame = frame.with_columns(winner=pl.when(pl.int_range(len(frame)) < 100).then(pl.lit("left")).otherwise("winner"))
    frame[:100].write_csv(tmp_path / "a.csv")
    frame[100:].write_csv(tmp_path / "b.csv")
    with pytest.raises(DataError, match=r"answer|winner"):
        partition([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "parts", n_parts=2)
    assert not (tmp_path / "parts").exists()


def test_a_folder_is_not_replaced_unasked_and_nothing_is_left_behind(tmp_path):
    parts = in_parts(tmp_path, votes())
    before = parts.checksum
    with pytest.raises(DataError, match="exists already"):
        partition(tmp_path / "votes.csv", parts.path)
    (tmp_path / "bad.csv").write_text("user,left,right,winner\nann,a,b\n")
    with pytest.raises(DataError, match="fields"):
        partition(tmp_path / "bad.csv", parts.path, overwrite=True)
    assert Parts.open(parts.path).checksum == before
    (parts.path / "mine.txt").write_text("keep me")
    with pytest.raises(DataError, match="what is no part"):
        partition(tmp_path / "votes.csv", parts.path, overwrite=True)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["bad.csv", "parts", "votes.csv"]


def test_a_part_larger_than_memory_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("predilect.parts.manifest.free_memory", lambda: 1e3)
    with pytest.raises(DataError, match=r"GB of memory.*more than 3 parts"):
        in_parts(tmp_path, votes())
    monkeypatch.undo()
    parts = in_parts(tmp_path, votes())
    monkeypatch.setattr("predilect.parts.manifest.free_memory", lambda: 1e3)
    with pytest.raises(DataError, match=r"part 0 takes.*into\s+more than 3 parts"):
        parts.answers(0)


def test_no_space_is_said(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("predilect.parts.dealing.put_in_place", full)
    with pytest.raises(OutputError, match="No space left"):
        in_parts(tmp_path, votes())
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize("n_parts", [0, 5000])
def test_numbers_of_parts_have_a_range(tmp_path, n_parts):
    with pytest.raises(DataError, match="from 1 to"):
        in_parts(tmp_path, votes(), n_parts)
