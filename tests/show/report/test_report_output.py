"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import os

import pytest

from predilect.errors import DataError, OutputError
from predilect.models.saving import write_model
from predilect.show.report.output import OutputFile, OutputFolder


def test_folder_appears_only_when_the_block_ends_well(tmp_path):
    folder = OutputFolder(tmp_path / "out")

    def fail():
        with folder.writing() as place:
            (place / "leaderboard.csv").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []
    with folder.writing() as place:
        (place / "leaderboard.csv").write_text("whole")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out" / "leaderboard.csv").read_text() == "whole"
    assert len(list(tmp_path.iterdir())) == 1


def test_folder_has_the_permissions_of_any_new_folder(tmp_path):
    (tmp_path / "usual").mkdir()
    with OutputFolder(tmp_path / "out").writing():
        pass
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_folder_made_meanwhile_is_not_replaced(tmp_path):
    folder = OutputFolder(tmp_path / "out")
    with pytest.raises(DataError, match="exists already"), folder.writing():
        (tmp_path / "out").mkdir()
    assert len(list(tmp_path.iterdir())) == 1


def test_only_what_was_written_there_is_replaced(tmp_path):
    path = tmp_path / "out"
    with OutputFolder(path).writing() as place:
        (place / "leaderboard.csv").write_text("old")
    with OutputFolder(path, force=True).writing() as place:
        (place / "scores.csv").write_text("new")
    assert sorted(entry.name for entry in path.iterdir()) == [".predilect", "scores.csv"]
    (path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match=r"holds what Predilect did not write \(first: notes.txt\)"):
        OutputFolder(path, force=True)
    (path / "notes.txt").unlink()
    with OutputFolder(path, force=True).writing() as place:
        (place / "model/deep").mkdir(parents=True)
        (place / "model/deep/arrays.npz").write_text("new")
    (path / "model/deep/own").mkdir()
    with pytest.raises(DataError, match=r"holds what Predilect did not write \(first: model/deep/own\)"):
        OutputFolder(path, force=True)
    (path / "model/deep/own").rmdir()
    with OutputFolder(path, force=True).writing() as place:
        (place / "scores.csv").write_text("new")
    (path / ".predilect").unlink()
    with pytest.raises(DataError, match=r"no file \.predilect: remove it yourself if it holds old results"):
        OutputFolder(path, force=True)
    (path / "scores.csv").unlink()
    with OutputFolder(path, force=True).writing():  # an empty folder is nobody's
        pass


def test_the_folder_one_is_in_is_not_replaced(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    with pytest.raises(DataError, match="the folder you are in"):
        OutputFolder(tmp_path / "out", force=True)


@pytest.mark.parametrize("place", ["circle", "circle/out"])
def test_links_that_lead_in_a_circle_are_no_place(tmp_path, place):
    (tmp_path / "circle").symlink_to("circle")
    for output in (OutputFolder, OutputFile):
        with pytest.raises(DataError, match=r"Too many levels of symbolic links\. Change|does not exist\. Make it"):
            output(tmp_path / place)
    with pytest.raises(OutputError, match="could not be written: Too many levels of symbolic links"):
        write_model(tmp_path / place, {}, {})


def test_file_is_replaced_whole_or_kept(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("old")
    with pytest.raises(DataError, match="--force"):
        OutputFile(path)

    def fail(place):
        place.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="No space left"):
        OutputFile(path, force=True).write(fail)
    assert path.read_text() == "old"
    OutputFile(path, force=True).write(lambda place: place.write_text("new"))
    assert path.read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_pipe_is_written_into(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    OutputFile(tmp_path / "pipe").write(lambda place: place.write_text("through"))
    assert os.read(reader, 100) == b"through"
    os.close(reader)


@pytest.mark.parametrize("said", [
    "No space left on device (os error 28)",
    "parquet: File out of specification: underlying IO error: No space left on device (os error 28)",
])  # fmt: skip
def test_what_polars_says_of_a_full_disk_is_told_as_the_system_says_it(tmp_path, said):
    def full(path):
        raise OSError(said)

    with pytest.raises(OutputError, match=r"p\.csv could not be written: No space left on device\. Nothing"):
        OutputFile(tmp_path / "p.csv").write(full)
