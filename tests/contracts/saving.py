"""Every estimator is saved without pickle, whole or not at all, and comes back with the same bits."""

from __future__ import annotations

import errno
import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from contracts.estimator import EstimatorContract
from contracts.votes import item_ids, same_bits, user_ids, votes
from predilect.errors import DataError


def seal(folder: Path) -> None:
    """Make the list of arrays and the checksum true again: what one does who knows the format."""
    with np.load(folder / "arrays.npz", allow_pickle=True) as archive:
        arrays = dict(archive)
    document = json.loads((folder / "model.json").read_text())
    document["arrays"] = {name: [str(a.dtype), list(a.shape)] for name, a in arrays.items()}
    document.pop("checksum", None)
    found = hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(arrays):
        found.update(arrays[name].tobytes())
    document["checksum"] = f"sha256:{found.hexdigest()}"
    (folder / "model.json").write_text(json.dumps(document))


def edit_json(change: Any) -> Any:
    def damage(folder: Path) -> None:
        file = folder / "model.json"
        document = json.loads(file.read_text())
        change(document)
        file.write_text(json.dumps(document))

    return damage


def edit_arrays(change: Any) -> Any:
    def damage(folder: Path) -> None:
        with np.load(folder / "arrays.npz", allow_pickle=False) as archive:
            arrays = dict(archive)
        change(arrays)
        np.savez(folder / "arrays.npz", **arrays)

    return damage


def truncate(name: str, share: float) -> Any:
    def damage(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(share * len(content))])

    return damage


def flip_a_byte(folder: Path) -> None:
    """Of the longest array: a byte between two arrays, such as a time of day, may say nothing."""
    content = bytearray((folder / "arrays.npz").read_bytes())
    with zipfile.ZipFile(folder / "arrays.npz") as arrays:
        longest = max(arrays.infolist(), key=lambda member: member.compress_size)
    head = longest.header_offset
    begin = head + 30 + int.from_bytes(content[head + 26 : head + 28], "little")
    begin += int.from_bytes(content[head + 28 : head + 30], "little")
    content[begin + longest.compress_size // 2] ^= 0xFF
    (folder / "arrays.npz").write_bytes(content)


def first_of(arrays: Any, names: tuple[str, ...]) -> str:
    """Name of the first array that is called one of these within a part of the model."""
    last = {name.rpartition(".")[2]: name for name in sorted(arrays)}
    return next(last[name] for name in names if name in last)


def mean_of(arrays: Any) -> str:
    """Name of an array of means."""
    return first_of(arrays, ("m", "mean", "v_mean", "w", "B", "linear"))


def as_pickle(arrays: dict[str, Any]) -> None:
    arrays[mean_of(arrays)] = np.array([{"a": 1}], dtype=object)


def uncertainty(arrays: dict[str, Any]) -> Any:
    """A covariance, weights that sum to 1, or precisions."""
    return arrays[first_of(arrays, ("C_m", "v_covariance", "covariance", "gamma", "Omega", "precision"))]


def skew(arrays: dict[str, Any]) -> None:
    found = uncertainty(arrays)
    if found.ndim > 1:
        found[..., 0, 1] += 0.5
    else:
        found[0] = np.nan


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def edit_text(old: str, new: str) -> Any:
    def damage(folder: Path) -> None:
        file = folder / "model.json"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))

    return damage


def compress_arrays(folder: Path) -> None:
    """Zeros that are a thousand times smaller in the file than in memory."""
    with np.load(folder / "arrays.npz") as archive:
        arrays = dict(archive)
    np.savez_compressed(folder / "arrays.npz", **arrays, zeros=np.zeros(10**6))
    edit_json(lambda document: document["arrays"].update(zeros=["float64", [10**6]]))(folder)


def lie_of_a_shape(folder: Path) -> None:
    """An array of 10^12 numbers, as its header and the description say, in a file that holds a few."""
    described = json.loads((folder / "model.json").read_text())["arrays"]
    lying = mean_of(described)
    shape = [10**12, *described[lying][1][1:]]
    with np.load(folder / "arrays.npz") as archive:
        arrays = dict(archive)
    with zipfile.ZipFile(folder / "arrays.npz", "w") as out:
        for name, array in arrays.items():
            with out.open(f"{name}.npy", "w") as stream:
                head = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
                np.lib.format.write_array_header_1_0(stream, head | ({"shape": tuple(shape)} if name == lying else {}))
                stream.write(array.tobytes())
    edit_json(lambda document: document["arrays"][lying].__setitem__(1, shape))(folder)


DAMAGE = {
    "no description": lambda folder: (folder / "model.json").unlink(),
    "no arrays": lambda folder: (folder / "arrays.npz").unlink(),
    "description cut off": truncate("model.json", 0.5),
    "empty description": truncate("model.json", 0.0),
    "arrays cut off": truncate("arrays.npz", 0.5),
    "arrays nearly whole": truncate("arrays.npz", 0.99),
    "empty arrays": truncate("arrays.npz", 0.0),
    "a byte flipped": flip_a_byte,
    "not text": lambda folder: (folder / "model.json").write_bytes(b"\xff\xfe\x00"),
    "a list": lambda folder: (folder / "model.json").write_text("[1]"),
    "another schema": edit_json(lambda document: document.update(schema="other")),
    "no version": edit_json(lambda document: document.pop("version")),
    "a version in words": edit_json(lambda document: document.update(version="one")),
    "a later version": edit_json(lambda document: document.update(version=document["version"] + 1)),
    "an earlier version": edit_json(lambda document: document.update(version=1)),
    "a version of true": edit_json(lambda document: document.update(version=True)),
    "a version below zero": edit_json(lambda document: document.update(version=-5)),
    "a name twice": edit_text("{", '{"model": "x",'),
    "a number that is none": edit_text('"log_evidence": ', '"log_evidence": NaN, "old": '),
    "a number beyond all": edit_text('"tie_threshold": ', '"other": 1e999, "tie_threshold": '),
    "lists in lists": edit_text('"report": {', '"report": {"deep": ' + 100_000 * "[" + 100_000 * "]" + ","),
    "no items": edit_json(lambda document: document.pop("items")),
    "too few items": edit_json(lambda document: document["items"].pop()),
    "an item twice": edit_json(lambda document: document["items"].insert(0, document["items"][0])),
    "items in another order": edit_json(lambda document: document["items"].reverse()),
    "a negative tie threshold": edit_json(lambda document: document.update(tie_threshold=-1.0)),
    "an evidence without end": edit_json(lambda document: document.update(log_evidence="-inf")),
    "counts in words": edit_json(lambda document: document["report"].update(updates={"answers_added": "x"})),
    "a seed in words": edit_json(lambda document: document["parameters"].update(random_state="x")),
    "a report that is nested deep": edit_json(lambda document: document["report"].update(deep=nested(400))),
    "a parameter of another model": edit_json(lambda document: document["parameters"].update(other=1)),
    "an array missing": edit_arrays(lambda arrays: arrays.pop(mean_of(arrays))),
    "an array cut short": edit_arrays(lambda arrays: arrays.update({mean_of(arrays): arrays[mean_of(arrays)][:-1]})),
    "an array of objects": edit_arrays(as_pickle),
    "an array of another type": edit_arrays(
        lambda arrays: arrays.update({mean_of(arrays): arrays[mean_of(arrays)].astype(np.float32)})
    ),
    "a mean that is no number": edit_arrays(lambda arrays: arrays[mean_of(arrays)].__setitem__(0, np.nan)),
    "a mean beyond all": edit_arrays(lambda arrays: arrays[mean_of(arrays)].__setitem__(0, 1e308)),
    "a negative count": edit_arrays(lambda arrays: arrays["results_by_item"].__setitem__((0, 0), -1.0)),
    "a covariance that is none": edit_arrays(lambda arrays: uncertainty(arrays).__setitem__(..., -1.0)),
    "a covariance that is not symmetric": edit_arrays(skew),
    "arrays that unpack to more than their file": compress_arrays,
    "an array larger than its file": lie_of_a_shape,
}


# What cannot be opened to make a checksum, or is put right by that.
NOT_FOR_SEALING = {
    "no description", "no arrays", "description cut off", "empty description", "arrays cut off", "arrays nearly whole",
    "empty arrays", "a byte flipped", "not text", "a list", "lists in lists", "an array larger than its file",
    "arrays that unpack to more than their file", "a name twice",
}  # fmt: skip


class SavingContract(EstimatorContract):
    # A constructor argument that JSON has no word for.
    beyond_json: ClassVar[dict[str, Any]]

    def test_it_comes_back_with_the_same_bits(self, model, tmp_path):
        model.save(tmp_path / "deep" / "model")
        again = type(model).load(str(tmp_path / "deep" / "model"))
        same_bits(again, model)
        assert again.get_params() == model.get_params()
        assert again.log_evidence_ == model.log_evidence_
        assert again.n_answers_ == model.n_answers_
        assert again.score(*votes()) == model.score(*votes())
        assert sorted(file.name for file in (tmp_path / "deep").iterdir()) == ["model"]

    def test_features_are_saved_too(self, tmp_path):
        columns, y = votes()
        items = {"item": item_ids(range(6)), "x": [0, 5, 1, 3, 2, 4], "kind": list("ababbc")}
        model = self.make(**self.fixed).fit(
            columns, y, items=items, people={"user": user_ids(range(20)), "age": [*range(20)]}
        )
        model.save(tmp_path / "model")
        again = type(model).load(tmp_path / "model")
        same_bits(again, model)
        asked, new = {"left": ["new"], "right": ["item 2"]}, {"item": ["new"], "x": [2.5], "kind": ["c"]}
        for a, b in zip(model.predict_margin(asked, items=new), again.predict_margin(asked, items=new), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_parameters_that_json_cannot_hold_come_back(self, tmp_path):
        model = self.make(**self.beyond_json).fit(*votes())
        model.save(tmp_path / "model")
        again = type(model).load(tmp_path / "model")
        for name, value in self.beyond_json.items():
            assert getattr(again, name) == value

    def test_nothing_in_it_is_pickled_and_strict_json_can_be_read(self, model, tmp_path):
        model.save(tmp_path / "model")
        assert sorted(file.name for file in (tmp_path / "model").iterdir()) == ["arrays.npz", "model.json"]
        with np.load(tmp_path / "model" / "arrays.npz", allow_pickle=False) as archive:
            arrays = dict(archive)
        assert all(array.dtype.kind in "biuf" for array in arrays.values())

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is not JSON")

        document = json.loads((tmp_path / "model" / "model.json").read_text(), parse_constant=refuse)
        assert document["schema"] == "predilect/model"
        assert document["arrays"] == {name: [str(a.dtype), list(a.shape)] for name, a in arrays.items()}
        assert "seconds" not in json.dumps(document)

    def test_the_same_model_is_saved_as_the_same_bytes(self, model, again, tmp_path):
        model.save(tmp_path / "one")
        again.save(tmp_path / "two")
        assert (tmp_path / "one/model.json").read_bytes() == (tmp_path / "two/model.json").read_bytes()

    def test_what_is_there_is_kept_unless_it_is_a_model_that_may_be_replaced(self, model, tmp_path):
        folder = tmp_path / "model"
        (folder / "mine").mkdir(parents=True)
        (folder / "mine/precious").write_text("x")
        with pytest.raises(FileExistsError, match="overwrite"):
            model.save(folder)
        with pytest.raises(FileExistsError, match=r"holds what is no part of a model \(first: mine\)"):
            model.save(folder, overwrite=True)
        assert (folder / "mine/precious").read_text() == "x"
        (folder / "mine/precious").rename(folder.parent / "precious")
        (folder / "mine").rmdir()
        with pytest.raises(FileExistsError, match="is a file"):
            model.save(tmp_path / "precious", overwrite=True)
        (tmp_path / "precious").unlink()
        model.save(folder, overwrite=True)
        model.save(folder, overwrite=True)
        same_bits(type(model).load(folder), model)
        assert [file.name for file in tmp_path.iterdir()] == ["model"]

    @pytest.mark.parametrize("overwrite", [False, True])
    def test_a_full_disk_leaves_nothing_half_written(self, model, tmp_path, monkeypatch, overwrite):
        folder = tmp_path / "model"
        if overwrite:
            model.save(folder)

        def full(file: Any, **arrays: Any) -> None:
            Path(file).write_bytes(b"PK")
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(np, "savez", full)
            with pytest.raises(OSError, match="No space left"):
                model.save(folder, overwrite=overwrite)
        assert [file.name for file in tmp_path.iterdir()] == (["model"] if overwrite else [])
        if overwrite:
            same_bits(type(model).load(folder), model)

    @pytest.mark.parametrize("what", DAMAGE)
    def test_a_damaged_model_is_refused(self, model, tmp_path, what):
        model.save(tmp_path / "model")
        DAMAGE[what](tmp_path / "model")
        with pytest.raises(DataError, match="model"):
            type(model).load(tmp_path / "model")

    @pytest.mark.parametrize("what", [name for name in DAMAGE if name not in NOT_FOR_SEALING])
    def test_a_damaged_model_whose_checksum_was_made_anew_is_refused(self, model, tmp_path, what):
        model.save(tmp_path / "model")
        DAMAGE[what](tmp_path / "model")
        seal(tmp_path / "model")
        with pytest.raises(DataError, match="model"):
            type(model).load(tmp_path / "model")

    def test_numbers_that_somebody_else_wrote_are_refused_by_the_checksum_alone(self, model, tmp_path):
        model.save(tmp_path / "model")
        edit_arrays(lambda arrays: arrays["results_by_item"].__setitem__(0, [70.0, 0.0, 7.0]))(tmp_path / "model")
        with pytest.raises(DataError, match=r"damaged model .*checksum"):
            type(model).load(tmp_path / "model")
        seal(tmp_path / "model")
        assert type(model).load(tmp_path / "model").n_by_item_[0] == 77.0

    def test_no_model_at_all(self, tmp_path):
        for path, said in (
            (tmp_path, r"holds no model: there is no model\.json"), (tmp_path / "nowhere", "there is no folder"),
        ):  # fmt: skip
            with pytest.raises(DataError, match=said):
                type(self.make()).load(path)
