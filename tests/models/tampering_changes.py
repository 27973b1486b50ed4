"""Random changes of a saved model: of its arrays, of its document, and of what no library writes."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from tampering_kinds import N_ITEMS, N_USERS

from contracts.saving import seal

NASTY_NUMBERS = (
    0.0, -0.0, -1.0, 1.0, 0.5, 2.0, 1e-9, -1e-9, 1e3, -1e3, 1e6, 1e9, 1e14, 1e15, -1e15, 1e16, 1e100, 1e308, -1e308,
    1e-308, 5e-324, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
NASTY_INTEGERS = (-(10**9), -2, -1, 0, 1, 2, 3, N_ITEMS - 1, N_ITEMS, N_USERS, 127, 255, 10**6, 2**31 - 1, -(2**31))
NASTY_VALUES: tuple[Any, ...] = (
    None, True, False, "", "x", "auto", "inf", "nan", "-inf", "population", "é", [], {}, [1], {"a": 1}, [[]], 0, 1, -1,
    2, 3, -5, 0.5, -0.5, 1.5, 1e-12, 1e6, 1e12, 1e15, 1e18, 1e100, 1e300, -1e300, 10**9, 10**30, 10**400, 2**63,
)  # fmt: skip


def nasty(rng: random.Random, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        value = rng.choice(NASTY_NUMBERS) if rng.random() < 0.7 else rng.gauss(0.0, 3.0)
        with np.errstate(over="ignore"):
            return dtype.type(value)
    if dtype.kind == "b":
        return rng.random() < 0.5
    info = np.iinfo(dtype)
    return dtype.type(min(max(rng.choice(NASTY_INTEGERS), info.min), info.max))


def change_array(rng: random.Random, arrays: dict[str, Any]) -> None:
    """One change of one array, or of which there are."""
    name = rng.choice(sorted(arrays))
    a = np.array(arrays[name])
    how = rng.choice((
        *["entry"] * 4, *["touched"] * 4, "entries", "twins", "row", "all", "scaled", "shifted", "order", "reversed",
        "type", "cut", "longer", "empty", "flat", "turned", "gone", "another", "swapped", "deeper", "noise",
    ))  # fmt: skip
    if how in ("entry", "entries") and a.size:
        for _ in range(1 if how == "entry" else rng.randrange(2, 6)):
            a.reshape(-1)[rng.randrange(a.size)] = nasty(rng, a.dtype)
    elif how == "touched" and a.size:
        place = rng.randrange(a.size)
        old = a.reshape(-1)[place].item()
        new = (
            old * rng.choice((-1.0, 0.5, 2.0, 10.0, 1e3, 1e-3, 1e6))
            if a.dtype.kind == "f"
            else old + rng.choice((-1, 1))
        )
        with np.errstate(all="ignore"):
            a.reshape(-1)[place] = np.array(new).astype(a.dtype)
    elif how == "twins" and a.ndim >= 2 and a.shape[-1] == a.shape[-2] and a.size:  # a covariance stays symmetric
        i, j, value = rng.randrange(a.shape[-1]), rng.randrange(a.shape[-1]), nasty(rng, a.dtype)
        a[..., i, j] = a[..., j, i] = value
    elif how == "row" and a.ndim and len(a):
        a[rng.randrange(len(a))] = nasty(rng, a.dtype)
    elif how == "all":
        a[...] = nasty(rng, a.dtype)
    elif how == "scaled":
        with np.errstate(all="ignore"):
            a = (a * rng.choice((-1, 0, 2, 1e-12, 1e3, 1e6, 1e12, 1e100))).astype(a.dtype)
    elif how == "shifted" and a.dtype.kind != "b":
        with np.errstate(all="ignore"):
            a = (a + nasty(rng, a.dtype)).astype(a.dtype)
    elif how == "order" and a.ndim and len(a):
        a = a[np.random.default_rng(rng.randrange(2**32)).permutation(len(a))]
    elif how == "reversed" and a.ndim:
        a = a[::-1]
    elif how == "type":
        with np.errstate(all="ignore"):
            a = a.astype(rng.choice(("f4", "f8", ">f8", "i4", "i8", "u1", "i1", "b1", "c16", "U3", "f2", "O", "M8[s]")))
    elif how == "cut" and a.ndim:
        a = a[: rng.randrange(len(a) + 1)] if rng.random() < 0.5 else a[..., : rng.randrange(a.shape[-1] + 1)]
    elif how == "longer" and a.ndim:
        a = np.concatenate([a, a[-1:]], axis=0) if rng.random() < 0.5 else np.repeat(a, 2, axis=-1)
    elif how == "empty":
        a = np.zeros(rng.choice(((0,), (0, 0), (0, 3), (3, 0), ())), dtype=a.dtype)
    elif how == "flat":
        a = a.reshape(-1)
    elif how == "turned":
        a = a.T
    elif how == "deeper":
        a = a[None]
    elif how == "gone":
        del arrays[name]
        return
    elif how == "another":
        arrays[
            rng.choice(("B", "Phi", "points", "site_precision", "user_rows", "root", "alpha", "extra", "crowd_mean"))
        ] = a
        return
    elif how == "swapped":
        other = rng.choice(sorted(arrays))
        arrays[other], a = a, np.array(arrays[other])
    elif how == "noise" and a.dtype.kind == "f":
        a = np.random.default_rng(rng.randrange(2**32)).normal(0.0, rng.choice((1.0, 1e6)), a.shape).astype(a.dtype)
    arrays[name] = a


def places(value: Any, parent: Any = None, key: Any = None) -> list[tuple[Any, Any]]:
    found = [] if parent is None else [(parent, key)]
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        found += places(part, value, name)
    return found


def change_document(rng: random.Random, document: dict[str, Any]) -> None:
    """One change of one value anywhere, each part of the document being as likely as another."""
    names = [name for name in document if name != "arrays"]
    part = rng.choice(names)
    where = places({part: document[part]})
    holder, key = rng.choice(where)
    if isinstance(holder, dict) and key == part and len(where) >= 1 and holder.get(part) is document[part]:
        holder = document
    value = holder[key]
    how = rng.choice(
        ("value", "value", "value", "number", "number", "number", "gone", "more", "reversed", "cut", "deep", "again")
    )
    if how == "value":
        holder[key] = rng.choice(NASTY_VALUES)
    elif how == "number" and isinstance(value, int | float):
        holder[key] = rng.choice((-value, value * 1e6, value + 1, value / 3, value * 1e-9, int(value), str(value)))
    elif how == "gone":
        del holder[key]
    elif how == "more" and isinstance(value, list):
        value.append(rng.choice(NASTY_VALUES))
    elif how == "more" and isinstance(value, dict):
        value[rng.choice(("type", "array", "extra", "version"))] = rng.choice(NASTY_VALUES)
    elif how == "reversed" and isinstance(value, list):
        value.reverse()
    elif how == "cut" and isinstance(value, list | str):
        holder[key] = value[: rng.randrange(len(value) + 1)]
    elif how == "deep":
        for _ in range(rng.choice((3, 40, 400))):
            value = [value]
        holder[key] = value
    elif how == "again" and isinstance(value, list) and value:
        value.insert(rng.randrange(len(value) + 1), value[0])
    else:
        holder[key] = rng.choice(NASTY_VALUES)


def change_files(rng: random.Random, folder: Path) -> None:
    """What no JSON or array library writes."""
    how = rng.choice(("bytes", "cut", "words", "twice", "deep", "bomb", "header", "constant"))
    if how in ("bytes", "cut"):
        file = folder / rng.choice(("model.json", "arrays.npz"))
        content = bytearray(file.read_bytes())
        if how == "cut":
            content = content[: rng.randrange(len(content))]
        else:
            for _ in range(rng.randrange(1, 4)):
                content[rng.randrange(len(content))] = rng.randrange(256)
        file.write_bytes(content)
        return
    file = folder / "model.json"
    text = file.read_text()
    if how == "words":
        text = text.replace('"schema"', '"Schema"')
    elif how == "twice":
        text = text.replace("{", '{"version": 2, "model": "x",', 1)
    elif how == "deep":
        text = text.replace('"report": {', '"report": {"a": ' + "[" * 100_000 + "]" * 100_000 + ",", 1)
    elif how == "constant":
        text = text.replace(
            '"log_evidence": ', rng.choice(('"log_evidence": NaN, "a": ', '"a": 1e999, "log_evidence": ')), 1
        )
    else:
        document = json.loads(text)
        name = rng.choice(sorted(document["arrays"]))
        shape = [10 ** rng.randrange(1, 10) for _ in document["arrays"][name][1]]
        document["arrays"][name][1] = shape
        with np.load(folder / "arrays.npz") as archive:
            arrays = dict(archive)
        with zipfile.ZipFile(folder / "arrays.npz", "w", zipfile.ZIP_DEFLATED) as out:
            for other, array in arrays.items():
                with out.open(f"{other}.npy", "w") as stream:
                    if other == name:
                        np.lib.format.write_array_header_1_0(
                            stream, {"descr": array.dtype.str, "fortran_order": False, "shape": tuple(shape)}
                        )
                        stream.write(bytes(10**6) if how == "bomb" else b"")
                    else:
                        np.lib.format.write_array(stream, array)
        text = json.dumps(document)
    file.write_text(text)


def tamper(folder: Path, seed: int) -> None:
    """Change a saved model; every second time in a way of which the checksum knows nothing."""
    document = json.loads((folder / "model.json").read_text())
    rng = random.Random(f"{seed} {document['model']} {document['arrays']}")  # other changes for every kind
    if rng.random() < 0.06:
        change_files(rng, folder)
        return
    with np.load(folder / "arrays.npz") as archive:
        arrays = dict(archive)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        change = change_array if rng.random() < 0.6 and arrays else change_document
        try:
            change(rng, arrays if change is change_array else document)
        except (TypeError, ValueError, IndexError, OverflowError):
            continue  # numbers that cannot be changed so
    np.savez(folder / "arrays.npz", **{name: arrays[name] for name in arrays})
    (folder / "model.json").write_text(json.dumps(document))
    if seed % 2:
        seal(folder)
