"""Folder of a saved model: ``model.json`` with readable values and ``arrays.npz`` with numbers; docs/model-format.md.

No pickle, and everything read is checked, so that a model from somebody else can be opened safely.
"""

from __future__ import annotations

import hashlib
import json
import math
import stat
import threading
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from predilect._base.arguments import check_count
from predilect._base.json import typed
from predilect._base.replace import foreign, put_in_place, resolved, staged
from predilect._base.stored import DAMAGE, PART, Fields, Value, check_sizes, check_values, read, stored_in
from predilect._base.text import either
from predilect.data import Vocabulary
from predilect.errors import DataError, OutputError
from predilect.inference.likelihoods.registry import LIKELIHOODS

Read = TypeVar("Read")

# Of one thread at a time: headers are literals, and Python before 3.11.8 and 3.12.2 counts how deep it is in one with
# a number that all threads share, and raises a SystemError where they take turns.
_HEADERS = threading.Lock()

SCHEMA = "predilect/model"
FORMAT_VERSION = 10
_DEEPEST = 50  # levels of nesting in what is read and kept as it is


def write_model(path: Path, document: Mapping[str, Any], arrays: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write a model to a folder, whole or not at all.

    ``document`` holds plain values; schema, versions and the list of arrays are added. Raises FileExistsError if the
    path exists and ``overwrite`` is False, OutputError if the folder cannot be written.
    """
    from predilect._version import __version__

    refuse_to_replace(path, overwrite)
    head = {"schema": SCHEMA, "version": FORMAT_VERSION, "predilect": __version__}
    described = {name: [str(np.asarray(a).dtype), list(np.shape(a))] for name, a in arrays.items()}
    text = json.dumps({**head, **document, "arrays": described}, allow_nan=False)
    whole = json.loads(text)  # as whoever reads it will have it
    whole["checksum"] = _checksum(whole, arrays)
    try:
        target = resolved(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with staged(target) as new:
            new.mkdir()
            (new / "model.json").write_text(json.dumps(whole, indent=1, allow_nan=False) + "\n", encoding="utf-8")
            np.savez(new / "arrays.npz", **arrays)
            refuse_to_replace(target, overwrite)
            put_in_place(new, target)
    except OSError as error:
        if error.strerror is None:
            raise  # our own words: it exists already
        why = f"{path.parent} is no folder" if path.parent.is_file() else error.strerror
        raise OutputError(
            f"{path} could not be written: {why}. Nothing half-written was left behind; make room, or choose another "
            "place"
        ) from error


_FILES = ("model.json", "arrays.npz")


def refuse_to_replace(path: Path, overwrite: bool, ours: Callable[[str], object] = _FILES.__contains__) -> None:
    """FileExistsError if the path exists and may not be replaced, as what is there is not all ``ours``."""
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError:  # nothing is there, or another process has just moved it away
        return
    if not overwrite:
        raise FileExistsError(f"{path} exists already. Choose another folder, or save with overwrite=True")
    if not is_folder:
        raise FileExistsError(f"{path} is a file, and a model needs a folder. Choose another name")
    if other := foreign(path, ours):
        raise FileExistsError(
            f"{path} holds what is no part of a model (first: {other}), and will not be replaced. Choose another folder"
        )


def read_model(
    path: Path,
    names: tuple[str, ...],
    fields: Callable[[dict[str, Any]], tuple[Fields, dict[str, int]]],
    build: Callable[[dict[str, Any], dict[str, Any]], Any],
) -> Any:
    """Read a folder that :func:`write_model` wrote.

    ``names`` are the values of "model" that are accepted; ``fields`` gives what the arrays must be and the sizes by
    name; ``build`` makes the model from the document and the arrays. Raises DataError for no model, a damaged one, one
    of another format, or another kind of model.
    """
    return settled(path, lambda path: _read_model(model_folder(path), names, fields, build))


def _read_model(
    path: Path,
    names: tuple[str, ...],
    fields: Callable[[dict[str, Any]], tuple[Fields, dict[str, int]]],
    build: Callable[[dict[str, Any], dict[str, Any]], Any],
) -> Any:
    document = read_document(path)
    kind = document.get("model")
    if kind not in names:
        raise DataError(
            f"{path} holds a model called {kind!r:.100}, not {' or '.join(map(repr, names))}. "
            "predilect.load(path) opens any"
        )
    if (likelihood := document.get("likelihood", "probit")) not in list(LIKELIHOODS):
        raise DataError(
            f"{path} holds a model with a likelihood called {likelihood!r:.100}; known are {', '.join(LIKELIHOODS)}. "
            "Register it before the model is loaded"
        )
    file = _regular(path / "arrays.npz")
    try:
        _refuse_deep(document["report"], _DEEPEST)
        table, sizes = fields(document)
        sizes = check_sizes(table, sizes, document["arrays"])
        arrays = _read_arrays(file, document["arrays"])
        if document.pop("checksum") != _checksum(document, arrays):
            raise ValueError("the checksum is not that of its numbers and words")
        check_values(table, sizes, arrays)
        return build(document, arrays)
    except MemoryError as error:
        raise DataError(f"{path} holds a model that does not fit into memory ({error})") from error
    except DAMAGE as error:
        if isinstance(error, OSError) and error.strerror:
            raise _unopened(file, error) from error
        said = str(error).split("\n", 1)[0]  # NumPy goes on for lines
        raise DataError(
            f"{path} holds a damaged model ({type(error).__name__}: {said}). Save it again, or fit it anew"
        ) from error


_TRIES = 20


def settled(path: Path, read: Callable[[Path], Read]) -> Read:
    """What ``read`` makes of a folder that another process may replace meanwhile: the old model or the new one.

    Two files are opened one after the other, so they may be of two models, or gone: then they are read again.
    """
    for _ in range(_TRIES):
        before = _files_of(path)
        try:
            return read(path)
        except DataError:
            if _files_of(path) == before:
                raise
    return read(path)


def _files_of(path: Path) -> list[tuple[int, ...] | None]:
    """What tells the files of a model from those of another one that takes their place."""
    found: list[tuple[int, ...] | None] = []
    for folder in (path, path / "model"):
        for name in _FILES:
            try:
                there = (folder / name).stat()
                found.append((there.st_dev, there.st_ino, there.st_mtime_ns, there.st_ctime_ns))
            except (OSError, ValueError):
                found.append(None)
    return found


def _regular(file: Path) -> Path:
    """The file, if it is there and can be read to its end: a pipe may have none, and a device neither."""
    try:
        if stat.S_ISREG(file.stat().st_mode):
            return file
    except OSError as error:
        raise _unopened(file, error) from error
    raise DataError(f"{file} is no file that could be a part of a model. Save the model again, or fit it anew")


def _unopened(file: Path, error: OSError) -> DataError:
    return DataError(f"{file} cannot be opened: {error.strerror}. Check who may read it, and that the folder is whole")


def model_folder(path: Path) -> Path:
    """Folder of a model: the one that is named or, of results that ``predilect rank`` wrote, ``model`` in it."""
    inside = path / "model"
    try:
        return inside if not (path / "model.json").exists() and (inside / "model.json").is_file() else path
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror}. Check the name") from error


def read_document(path: Path) -> dict[str, Any]:
    """The description in a folder, checked for schema and version; DataError if there is none, or it cannot be read."""
    file = path / "model.json"
    if not path.exists():
        raise DataError(f"there is no folder {path} (looked in {Path.cwd()}). Check the name")
    if not file.is_file():
        what = f"holds no model: there is no {file.name} in it" if path.is_dir() else "is a file, and no model"
        raise DataError(f"{path} {what}. Give the folder that {either('', 'save() or ')}predilect rank wrote")
    try:
        document = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_each_once)
    except OSError as error:
        raise _unopened(file, error) from error
    except (MemoryError, RecursionError, ValueError) as error:
        raise DataError(f"{file} is not readable JSON ({error}). Save the model again, or fit it anew") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise DataError(f'{file} is not a Predilect model: its "schema" is not "{SCHEMA}"')
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise DataError(f'{file} is damaged: its "version" is {version!r:.100} and not a number. Save the model again')
    if version < FORMAT_VERSION:
        raise DataError(
            f"{file} has format version {version}, of an earlier Predilect; this one reads version {FORMAT_VERSION}. "
            f"Fit the model anew, or take the Predilect that saved it ({document.get('predilect')})"
        )
    if version > FORMAT_VERSION:
        raise DataError(
            f"{file} has format version {version}, but this Predilect reads up to {FORMAT_VERSION}. "
            "Install a newer Predilect"
        )
    return document


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object of JSON; repeated names are an error, as either value could be meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice in one object")
    return found


def _refuse_deep(value: Any, levels: int) -> None:
    if isinstance(value, dict | list):
        if not levels:
            raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
        for part in value.values() if isinstance(value, dict) else value:
            _refuse_deep(part, levels - 1)


def _checksum(document: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """SHA-256 of a model's content, independent of the layout of its files; ``document`` without the checksum."""
    words = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    found = hashlib.sha256(words.encode())
    for name in sorted(arrays):
        found.update(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
    return f"sha256:{found.hexdigest()}"


def _read_arrays(file: Path, described: dict[str, Any]) -> dict[str, Any]:
    """Arrays of the types and shapes that the description lists; no more is read than the file is long."""
    with zipfile.ZipFile(file) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if members.keys() != described.keys() or len(members) < len(archive.infolist()):
            raise ValueError(f"{file.name} does not hold the arrays that model.json lists")
        if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
            raise ValueError(f"{file.name} is compressed, which no saved model is")
        if sum(info.file_size for info in members.values()) > file.stat().st_size:
            raise ValueError(f"{file.name} lists more than it holds")
        return {name: _read_array(archive, info, *described[name]) for name, info in members.items()}


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, dtype: str, shape: list[int]) -> Any:
    with archive.open(info) as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError(f"{info.filename} is of another version of NumPy's format")
        with _HEADERS:
            there = np.lib.format.read_array_header_1_0(stream)
        found, is_fortran, kind = list(there[0]), there[1], there[2]
        size = math.prod(shape) * kind.itemsize
        if kind.hasobject or str(kind) != dtype or found != shape or stream.tell() + size != info.file_size:
            raise ValueError(f"{info.filename} is not the array that model.json lists")
        # Into memory that may be written to: updates do, and loops would be compiled once more for memory that may not.
        content = bytearray(stream.read())
        if len(content) != size:
            raise ValueError(f"{info.filename} is cut short")
    return np.ndarray(shape, kind, content, order="F" if is_fortran else "C")


def number(value: Any) -> Any:
    """A value of JSON, infinities and not-a-number from their words."""
    return float(value) if value in ("inf", "-inf", "nan") else value


def sizes_of(document: dict[str, Any]) -> dict[str, int]:
    """Sizes that a document gives: I items, U people, and F and G columns of the features of both."""
    features, people, users = document["features"], document["user_features"], document["users"]
    return {
        "I": len(document["items"]), "U": 1 if users is None else len(users),
        "F": 0 if features is None else len(features["outputs"]),
        "G": 0 if people is None else len(people["outputs"]),
    }  # fmt: skip


def restore(model: Any, document: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    """Set what is stored of a model, and give it by name; ValueError, TypeError or KeyError for damaged input.

    Values come first, then the parts, which may take what there is already, and the posterior last.
    """
    check_computing(model)
    outcomes = [array for name, array in arrays.items() if name.rpartition(".")[2] == "outcome"]
    if document["tie_threshold"] == 0.0 and any((outcome == 0).any() for outcome in outcomes):
        raise ValueError("ties in a model without them")
    kind, found, sizes, model._added_users = model.__class__, {}, sizes_of(document), {}
    parts = {name: how is PART for name, (_, how) in stored_in(kind).items()}
    for name in sorted(parts, key=lambda name: (parts[name], name != "_space", name == "posterior_")):
        given = {"sizes": sizes} | (model._given() if parts[name] and name != "_space" else {})
        found[name] = read(kind, name, document, arrays, given)
        if not isinstance(getattr(kind, name, None), property):
            setattr(model, name, found[name])
    return found


def _vocabulary(_: Any, ids: Any, what: str) -> Vocabulary:
    found = Vocabulary(ids)
    if found.ids != ids:
        raise ValueError(f"the ids of {what} are not in the order of their codes, or one is there twice")
    return found


def _report(_: Any, value: Any, name: str) -> dict[str, Any]:
    report: dict[str, Any] = typed(dict[str, Any], value, name)
    typed(str, report["model"], "model")
    if "updates" in report:
        counts = report["updates"] = typed(dict[str, int | float], report["updates"], "updates")
        if counts.keys() != {"answers_added", "answers_taken_back", "people_added"}:
            raise ValueError(f"updates are counted as {', '.join(counts)}")
    return report


IDS = Value(lambda ids: ids.ids, _vocabulary)
LIKELIHOOD = Value(lambda likelihood: likelihood.name, lambda _, name, __: LIKELIHOODS[name])
# How long a fit took is no part of the model: the same answers give the same bytes.
REPORT = Value(lambda report: {key: value for key, value in report.items() if key != "timing"}, _report)


def check_computing(model: Any) -> None:
    """DataError if an argument that says how to compute, which every model has or lacks, is out of its range."""
    check_count("random_state", model.random_state, 0, None)
    n_jobs = getattr(model, "n_jobs", None)
    if n_jobs != -1:
        check_count("n_jobs", n_jobs, 1, None)
    typed(bool, getattr(model, "strict", False), "strict")
