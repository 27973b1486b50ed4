"""Folders of saved models as they are found: replaced while they are read, links, pipes, archives that lie of sizes."""

from __future__ import annotations

import errno
import io
import os
import zipfile

import numpy as np
import pytest

from contracts.votes import same_bits, votes
from predilect import GPPL, Population, load
from predilect.errors import DataError
from predilect.models import saving
from predilect.models.saving import settled

NAMES = ["model.json", "arrays.npz"]


@pytest.fixture(scope="module")
def models():
    """Three models: the first two of one kind, the third of another, with other arrays."""
    columns, y = votes()
    few = {name: column[:40] for name, column in columns.items()}
    return (
        Population(personal=False).fit(columns, y), Population(personal=False).fit(few, y[:40]),
        GPPL(users="pooled").fit(columns, y),
    )  # fmt: skip


@pytest.fixture
def folder(models, tmp_path):
    models[0].save(tmp_path / "out" / "model")
    return tmp_path / "out" / "model"


@pytest.mark.parametrize("step", ["read_document", "_read_arrays"])
@pytest.mark.parametrize(("load", "new"), [(load, 1), (load, 2), (Population.load, 1)])
@pytest.mark.parametrize("way", ["before", "after", "gone before", "of results"])
def test_a_folder_that_is_replaced_while_it_is_read_gives_one_of_the_two_models(
    models, folder, monkeypatch, step, load, new, way
):
    read, left = getattr(saving, step), [way]

    def meanwhile(*given):
        if not left or left.pop() == "after":
            found = read(*given)
            if not done:
                models[new].save(folder, overwrite=True)
                done.append(step)
            return found
        if way == "gone before":
            folder.rename(folder.with_name("elsewhere"))
            try:
                return read(*given)
            finally:
                models[new].save(folder)
        models[new].save(folder, overwrite=True)
        return read(*given)

    done = [] if way == "after" else [step]
    monkeypatch.setattr(saving, step, meanwhile)
    found = load(folder.parent if way == "of results" else folder)
    # What is opened is read to its end, whatever takes its place.
    same_bits(found, models[0 if way == "after" and step == "_read_arrays" else new])


def test_a_folder_that_stays_as_it_is_is_read_once_and_one_that_never_rests_a_few_times(tmp_path):
    times = []

    def fail(path):
        times.append(path)
        if restless:
            (path / "model.json").write_text(str(len(times)))
        raise DataError("damaged")

    restless = False
    with pytest.raises(DataError, match="damaged"):
        settled(tmp_path, fail)
    assert times == [tmp_path]
    restless = True
    with pytest.raises(DataError, match="damaged"):
        settled(tmp_path, fail)
    assert 10 < len(times) < 50


@pytest.mark.parametrize("name", NAMES)
def test_links_are_followed_and_those_that_lead_nowhere_are_said(models, folder, name):
    beside = folder.with_name("beside")
    (folder / name).rename(beside)
    (folder / name).symlink_to(beside)
    folder.with_name("link").symlink_to(folder)
    same_bits(load(folder.with_name("link")), models[0])
    for target in (name, "nowhere"):
        (folder / name).unlink()
        (folder / name).symlink_to(target)
        with pytest.raises(DataError, match=r"no model\.json in it|cannot be opened: (No such file|Too many levels)"):
            load(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", ["a pipe", "a device", "a folder"])
def test_what_may_have_no_end_is_not_opened(folder, name, what):
    (folder / name).unlink()
    if what == "a pipe":
        os.mkfifo(folder / name)  # nobody writes to it
    elif what == "a device":
        (folder / name).symlink_to("/dev/zero")
    else:
        (folder / name).mkdir()
    with pytest.raises(DataError, match=r"no model\.json in it|is no file that could be a part of a model"):
        load(folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_may_not_be_read_is_not_called_damaged(folder, name, monkeypatch):
    opened = io.open

    def refuse(file, *given, **more):
        if str(file).endswith(name):
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return opened(file, *given, **more)

    monkeypatch.setattr(io, "open", refuse)
    with pytest.raises(DataError, match=rf"{name} cannot be opened: Permission denied\. Check who may read it"):
        load(folder)


@pytest.mark.slow
def test_a_compressed_array_is_refused_whatever_size_the_archive_gives_it(folder):
    with np.load(folder / "arrays.npz") as archive:
        sizes = {name: archive[name].nbytes + 128 for name in archive.files}
    with zipfile.ZipFile(folder / "arrays.npz", "w", zipfile.ZIP_DEFLATED) as out:
        for name in sizes:
            out.writestr(f"{name}.npy", bytes(10_000_000))
    content = bytearray((folder / "arrays.npz").read_bytes())
    head = content.find(b"PK\x01\x02")
    while head >= 0:  # the directory of the archive: as if nothing became smaller
        content[head + 24 : head + 28] = content[head + 20 : head + 24]
        head = content.find(b"PK\x01\x02", head + 4)
    (folder / "arrays.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"arrays\.npz is compressed"):
        load(folder)


def test_a_message_is_one_line_whatever_numpy_says(folder):
    with np.load(folder / "arrays.npz") as archive:
        names = archive.files
    with zipfile.ZipFile(folder / "arrays.npz", "w") as out:
        for name in names:
            out.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + (60_000).to_bytes(2, "little") + 60_000 * b"(")
    with pytest.raises(DataError, match="damaged model") as caught:
        load(folder)
    assert "\n" not in caught.value.args[0]
    assert "allow_pickle" not in caught.value.args[0]


def test_a_model_without_features_of_items_holds_none(models, folder):
    with np.load(folder / "arrays.npz") as archive:
        assert not [name for name in archive if name.startswith("space.")]
    found = load(folder)
    assert found._space.matrix.shape == (len(found.items_), 0)
    assert not found._space.known.any()
