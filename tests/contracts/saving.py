"""Every estimator is saved without pickle, whole or not at all, and comes back with the same bits."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from contracts.estimator import EstimatorContract
from contracts.votes import item_ids, same_bits, user_ids, votes
from predilect.errors import DataError


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
    content = bytearray((folder / "arrays.npz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (folder / "arrays.npz").write_bytes(content)


def as_pickle(arrays: dict[str, Any]) -> None:
    arrays["m"] = np.array([{"a": 1}], dtype=object)


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
    "no items": edit_json(lambda document: document.pop("items")),
    "too few items": edit_json(lambda document: document["items"].pop()),
    "a parameter of another model": edit_json(lambda document: document["parameters"].update(other=1)),
    "an array missing": edit_arrays(lambda arrays: arrays.pop("m")),
    "an array cut short": edit_arrays(lambda arrays: arrays.update(m=arrays["m"][:-1])),
    "an array of objects": edit_arrays(as_pickle),
}


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
            columns, y, items=items, users={"user": user_ids(range(20)), "age": [*range(20)]}
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

    def test_the_same_model_is_saved_as_the_same_bytes(self, model, tmp_path):
        for name in ("one", "two"):
            self.make().fit(*votes()).save(tmp_path / name)
        assert (tmp_path / "one/model.json").read_bytes() == (tmp_path / "two/model.json").read_bytes()

    def test_what_is_there_is_kept_unless_it_may_be_replaced(self, model, tmp_path):
        folder = tmp_path / "model"
        folder.mkdir()
        (folder / "precious").write_text("x")
        with pytest.raises(FileExistsError, match="overwrite"):
            model.save(folder)
        assert [file.name for file in folder.iterdir()] == ["precious"]
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

    def test_no_model_at_all(self, tmp_path):
        for path, said in (
            (tmp_path, r"holds no model: there is no model\.json"), (tmp_path / "nowhere", "there is no folder"),
        ):  # fmt: skip
            with pytest.raises(DataError, match=said):
                type(self.make()).load(path)
