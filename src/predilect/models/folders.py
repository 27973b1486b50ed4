"""The folder of a saved model: ``model.json`` for everything a person may want to read, ``arrays.npz`` for numbers.

No pickle: a model from somebody else can be opened safely. The format is described in docs/model-format.md.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from predilect.errors import DataError

__all__ = ["FORMAT_VERSION", "number", "read_document", "read_model", "write_model"]

SCHEMA = "predilect/model"
FORMAT_VERSION = 1


def write_model(path: Path, document: Mapping[str, Any], arrays: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write a model to a folder, whole or not at all.

    Parameters
    ----------
    path : Path
    document : mapping
        Plain values; schema, versions and the list of arrays are added.
    arrays : mapping of str to array
    overwrite : bool

    Raises
    ------
    FileExistsError
        If the path exists and ``overwrite`` is False.
    OSError
        If the folder cannot be written.
    """
    from predilect import __version__

    refuse_to_replace(path, overwrite)
    head = {"schema": SCHEMA, "version": FORMAT_VERSION, "predilect": __version__}
    whole = {**head, **document, "arrays": _described(arrays)}
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        (staging / "model.json").write_text(json.dumps(whole, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        np.savez(staging / "arrays.npz", **arrays)
        staging.chmod(0o755)  # mkdtemp makes it private
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}-old-", dir=path.parent))
            path.replace(old / "old")
            staging.replace(path)
            shutil.rmtree(old)
        else:
            staging.replace(path)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def refuse_to_replace(path: Path, overwrite: bool) -> None:
    """Raise FileExistsError if the path exists and may not be replaced."""
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already. Choose another folder, or save with overwrite=True")


def read_model(path: Path, names: tuple[str, ...], build: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Any:
    """Read a folder that :func:`write_model` wrote.

    Parameters
    ----------
    path : Path
    names : tuple of str
        Values of "model" that are accepted.
    build : callable
        Makes the model from the document and the arrays.

    Raises
    ------
    DataError
        If it is no model, a damaged one, one of a later format, or another kind of model.
    """
    document = read_document(path)
    kind = document.get("model")
    if kind not in names:
        raise DataError(
            f"{path} holds a model called {kind!r}, not {' or '.join(map(repr, names))}. "
            "predilect.load_model(path) opens any"
        )
    try:
        return build(document, _read_arrays(path / "arrays.npz", document["arrays"]))
    except (OSError, EOFError, AttributeError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path} holds a damaged model ({type(error).__name__}: {error}). Save it again, or fit it anew"
        ) from error


def read_document(path: Path) -> dict[str, Any]:
    """The description in a folder, checked for schema and version.

    Raises
    ------
    DataError
        If there is none, or it cannot be read.
    """
    file = path / "model.json"
    if not path.exists():
        raise DataError(f"there is no folder {path} (looked in {Path.cwd()}). Check the name")
    if not file.is_file():
        raise DataError(
            f"{path} holds no model: there is no {file.name} in it. Give the folder that save() or predilect rank wrote"
        )
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file} is not readable JSON ({error}). Save the model again, or fit it anew") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise DataError(f'{file} is not a Predilect model: its "schema" is not "{SCHEMA}"')
    version = document.get("version")
    if not isinstance(version, int):
        raise DataError(f'{file} is damaged: its "version" is {version!r} and not a number. Save the model again')
    if version > FORMAT_VERSION:
        raise DataError(
            f"{file} has format version {version}, but this Predilect reads up to {FORMAT_VERSION}. "
            "Install a newer Predilect"
        )
    return document


def _read_arrays(file: Path, expected: dict[str, Any]) -> dict[str, Any]:
    """The arrays, of the kinds and shapes that the description lists."""
    # Opened here, since np.load does not close what turns out to be no archive.
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if _described(arrays) != expected:
        raise ValueError(f"{file.name} does not hold the arrays that model.json lists")
    return arrays


def _described(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: [str(np.asarray(a).dtype), list(np.shape(a))] for name, a in arrays.items()}


def number(value: Any) -> Any:
    """A value of JSON, infinities and not-a-number from their words."""
    return float(value) if value in ("inf", "-inf", "nan") else value
