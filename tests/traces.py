"""Search of files for all traces of one id: in their bytes, and in what they decode to."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


def traces(place: Path, id: str | int) -> list[str]:
    """Where an id stands in a file, or in any file of a folder, of whatever kind; packed ones are unpacked."""
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    assert files
    return [f"{path.name}: {where}" for path in files for where in _in_file(path.name, path.read_bytes(), id)]


def _in_file(name: str, content: bytes, id: str | int) -> Iterator[str]:
    if isinstance(id, str):
        yield from (f"bytes in {encoding}" for encoding in ENCODINGS if id.encode(encoding) in content)
        if json.dumps(id)[1:-1].encode() in content:
            yield "bytes escaped as in JSON"
    suffix = Path(name).suffix
    if suffix in (".npz", ".zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.namelist():
                yield from (f"{member}: {where}" for where in _in_file(member, archive.read(member), id))
    elif suffix == ".npy":
        yield from _in_values(np.load(io.BytesIO(content), allow_pickle=False).tolist(), id)
    elif suffix == ".parquet":
        table = pl.read_parquet(io.BytesIO(content))
        yield from _in_values(table.to_dict(as_series=False), id)
    elif suffix == ".csv":
        yield from _in_values(pl.read_csv(io.BytesIO(content), infer_schema=False).to_dict(as_series=False), id)
    elif suffix == ".json":
        yield from _in_values(json.loads(content), id)


def _in_values(value: Any, id: str | int, where: str = "") -> Iterator[str]:
    """Places of the id among values, at any depth, and within their words."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _in_values(key, id, f"{where} key")
            yield from _in_values(part, id, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _in_values(part, id, where)
    elif (isinstance(value, str) and str(id) in value) or (value == id and not isinstance(value, bool)):
        yield f"value{where}"
