"""Saved models of every kind, changed at random and then used: what no file may do to whoever opens it.

``PYTHONPATH=tests python tests/models/tampering.py --cases 2000`` runs every kind in processes of its own and prints a
table; a kind's name runs that kind alone. The same seed makes the same change.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from contracts.saving import seal

SECONDS = 20  # of the processor, a case
UNHARMED = ("refused at load", "refused at use", "no effect", "other numbers")

N_USERS, N_ITEMS = 8, 5
ITEMS = {"item": [f"i{k}" for k in range(N_ITEMS)], "x": [0.3, -1.0, 2.0, 0.5, 1.1], "kind": list("aabba")}
PEOPLE = {
    "user": [f"u{k}" for k in range(N_USERS)],
    "age": [20.0, 30, 40, 50, 25, 35, 45, 55],
    "group": list("pqpqqpqp"),
}


def answers(ties: bool) -> tuple[dict[str, list[str]], list[int]]:
    rng = np.random.default_rng(7)
    columns: dict[str, list[str]] = {"user": [], "left": [], "right": []}
    outcomes = []
    utility = rng.normal(0.0, 1.0, (N_USERS, N_ITEMS)) + np.linspace(-1.0, 1.0, N_ITEMS)
    for user in range(N_USERS):
        for _ in range(7):
            a, b = rng.choice(N_ITEMS, 2, replace=False)
            z = utility[user, a] - utility[user, b] + rng.normal()
            columns["user"].append(f"u{user}")
            columns["left"].append(f"i{a}")
            columns["right"].append(f"i{b}")
            outcomes.append(0 if ties and abs(z) < 0.5 else 1 if z > 0 else -1)
    return columns, outcomes


def kinds() -> dict[str, Callable[[], Any]]:
    """How a small fitted model of each kind is made."""
    import predilect
    from predilect import GPPL, CollaborativeGP, CrowdGPPL, GaSPK, JointGP, Population
    from predilect.models.gppl.model import GPClassifier, SingleUserGP
    from predilect.models.gpvu import GPVU
    from predilect.models.hierarchical import HierarchicalGP
    from predilect.models.joint.model import BonillaGP

    given: dict[str, Any] = {
        "strength": 10.0,
        "variance": 2.0,
        "consensus_variance": 4.0,
        "calibration": None,
        "n_jobs": 1,
    }
    careless = given | {"calibration": predilect.Calibration(lapse_rate=0.05)}
    spk = {"n_components": 2, "n_restarts": 1, "variance": 4.0, "spread": 1.2, "n_jobs": 1}
    plain, features, both = {}, {"items": ITEMS}, {"items": ITEMS, "users": PEOPLE}  # type: ignore[var-annotated]

    def fit(make: Any, more: dict[str, Any], ties: bool = True, **settings: Any) -> Callable[[], Any]:
        return lambda: make(**settings).fit(*answers(ties), **more)

    def small(precision: str, **options: Any) -> Callable[[], Any]:
        def made() -> Any:
            full = Population(**given, tie_threshold=("auto", 0.3)).fit(*answers(True))
            return predilect.compress(full, 3, precision=precision, **options)

        return made

    def small_of_joint() -> Any:
        full = JointGP(n_tuning=0).fit(*answers(True), **both)
        return predilect.compress(full, 3, local=False)

    return {
        "population": fit(Population, plain, False, **given),
        "population, everything chosen": fit(Population, plain, n_jobs=1),
        "population, features": fit(Population, features, **given, feature_weight=(0.7, "auto")),
        "population, ties": fit(Population, plain, **careless, tie_threshold=("auto", 0.3)),
        "population, traits": fit(Population, both, **given, user_features=True),
        "population, attributes": fit(Population, features, **given, basis="attributes"),
        "population, inducing": fit(Population, both, **given, basis="attributes+inducing", user_features=True),
        "pooled": fit(Population, plain, personal=False, n_jobs=1),
        "pooled, features": fit(Population, features, personal=False, n_jobs=1, basis="inducing", n_inducing=3),
        "gppl pooled": fit(GPPL, features, n_jobs=1, n_inducing=3),
        "gppl separate": fit(GPPL, features, users="separate", n_jobs=1),
        "gppl joint": fit(GPPL, both, users="joint", n_jobs=1),
        "crowd-gppl": fit(CrowdGPPL, both, n_components=2, user_features=True, n_jobs=1),
        "crowd-gppl, paper": fit(CrowdGPPL, both, preset="paper", n_components=2, user_features=True, n_jobs=1),
        "collaborative": fit(CollaborativeGP, both, n_components=2, user_features=True, n_jobs=1),
        "collaborative, paper": fit(CollaborativeGP, features, preset="paper", n_components=2, n_jobs=1),
        "gaspk": fit(GaSPK, features, **spk),
        "gaspk, items": fit(GaSPK, plain, **spk, gamma="exact"),
        "gaspk, grid": fit(GaSPK, features, **spk, levels=3, backend="grid"),
        "gaspk, paper": fit(GaSPK, features, n_components=2, n_restarts=1, preset="paper", n_jobs=1, levels=3),
        "gaspk, relative": fit(GaSPK, features, **spk, tau="relative", n_dimensions=2),
        "joint": fit(JointGP, both, n_tuning=0),
        "bonilla-gp": fit(BonillaGP, both, n_tuning=0, item_nugget=0.05, user_nugget=1.0),
        "single-user-gp": fit(SingleUserGP, features, n_jobs=1),
        "gp-classifier": fit(GPClassifier, features, n_jobs=1),
        "hierarchical-gp": fit(HierarchicalGP, plain, n_jobs=1),
        "gpvu": fit(GPVU, plain, n_jobs=1, n_components=2, own_share=0.5),
        "compressed, half": small("half"),
        "compressed, single": small("single"),
        "compressed, double": small("double"),
        "compressed, joint": small_of_joint,
    }


# ------------------------------------------------------------------------------------------------ changes

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


# ------------------------------------------------------------------------------------------------ use

ASKED = {
    "user": [f"u{k}" for k in range(N_USERS) for _ in range(3)] + ["new", "new"],
    "left": ["i0", "i1", "i2"] * N_USERS + ["i0", "i3"],
    "right": ["i1", "i2", "i4"] * N_USERS + ["i4", "i2"],
}
NEW_ITEMS = {"item": ["j0", "j1"], "x": [0.1, 5.0], "kind": ["a", "c"]}
NEW_PEOPLE = {"user": ["new", "newer"], "age": [33.0, 80.0], "group": ["p", "r"]}


class WrongError(Exception):
    """A number that no model may give."""


def finite(what: str, *arrays: Any) -> None:
    for array in arrays:
        if not np.isfinite(np.asarray(array, dtype=float)).all():
            raise WrongError(f"{what} not finite")


def chances(what: str, p: Any) -> None:
    finite(what, p)
    if (p < 0.0).any() or (p > 1.0 + 1e-9).any() or (np.abs(p.sum(axis=1) - 1.0) > 1e-6).any():
        raise WrongError(f"{what} no probabilities")


def board(what: str, frame: Any) -> None:
    import polars as pl

    table = frame if isinstance(frame, pl.DataFrame) else pl.from_pandas(frame)
    finite(what, *(table[name].to_numpy() for name in ("mean", "sd", "lower", "upper", "p_best", "n")))


def use(folder: Path, seed: int) -> np.ndarray:
    """Load a model and do everything with it; returns what is predicted.

    What one step refuses, the others are still tried with; the first refusal is raised at the end.
    """
    import predilect
    from predilect.decisions.queries import suggest
    from predilect.errors import PredilectError

    model = predilect.load_model(folder)
    refused: list[PredilectError] = []
    found: list[np.ndarray] = []

    def predict() -> None:
        mean, var, p = model.predict_margin_and_proba(ASKED)
        finite("margin", mean, var)
        if (var < 0.0).any():
            raise WrongError("variance negative")
        chances("proba", p)
        found.append(np.column_stack([mean, var, p]))
        if np.isnan(model.predict_log_proba(ASKED)).any():
            raise WrongError("log proba not a number")

    def predict_new() -> None:
        asked = {"user": ["u0", "new", "u1"], "left": ["j0", "i1", "j0"], "right": ["i1", "j1", "j1"]}
        chances("new", model.predict_proba(asked, items=NEW_ITEMS, users=NEW_PEOPLE))

    def boards() -> None:
        board("rank", model.rank())
        board("rank of one", model.rank("u1"))
        board("utilities", model.utilities())
        board("utilities of somebody new", model.utilities("new"))
        finite("consensus", *model.consensus_distribution(), *model.utility_distribution("u2"))

    def ask() -> None:
        pairs = suggest(model, "u3", n=2)
        finite("suggest", *(pairs[name].to_numpy() for name in pairs.columns if pairs[name].dtype.is_float()))

    def update() -> None:
        if not hasattr(model, "update"):
            return
        model.update({"user": ["u0", "zz"], "left": ["i0", "i1"], "right": ["i1", "i2"]}, [1, -1])
        chances("updated", model.predict_proba(ASKED))
        if hasattr(model, "forget"):
            model.update(user="u1", left="i0", right="i1", outcome=1)
            model.forget(user="u1", left="i0", right="i1", outcome=1)
            chances("forgotten", model.predict_proba(ASKED))

    def save() -> None:
        if hasattr(model, "describe"):
            model.describe()
        model.save(folder.parent / "again", overwrite=True)
        predilect.load_model(folder.parent / "again")

    def compress() -> None:
        if not isinstance(model, predilect.CompressedModel):
            small = predilect.compress(model, 2)
            chances("compressed", small.predict_proba(ASKED))

    steps = [predict, predict_new, boards, ask]
    if seed % 4 == 1:
        steps += [compress]
    if seed % 3 != 1:
        steps += [update, save]
    if seed % 10 == 3:
        steps += [lambda: command(folder)]
    for step in steps:
        try:
            step()
        except PredilectError as error:
            refused.append(error)
    if refused:
        raise refused[0]
    return found[0]


def command(folder: Path) -> None:
    from typer.testing import CliRunner

    from predilect.cli.main import app

    asked = folder.parent / "asked.csv"
    asked.write_text("user,left,right\nu0,i0,i1\nnew,i1,i2\n")
    for arguments in (["predict", str(folder), str(asked)], ["ask", str(folder), "--user", "u1"]):
        found = CliRunner().invoke(app, arguments)
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise WrongError(f"command {arguments[0]}") from found.exception
        if "nan" in found.stdout.lower() or "inf" in found.stdout.lower():
            raise WrongError(f"command {arguments[0]} not finite")


def outcome(original: Path, folder: Path, seed: int, base: np.ndarray) -> str:
    """What becomes of one case, in a word or two."""
    import predilect
    from predilect.errors import PredilectError

    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    tamper(folder, seed)
    # Ended by the signal itself: no handler runs while a compiled loop does. A busy machine is no hang.
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(10 * SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                predilect.load_model(folder)
            except PredilectError:
                return "refused at load"
            try:
                found = use(folder, seed)
            except PredilectError:
                return "refused at use"
        return "no effect" if np.array_equal(found, base) else "other numbers"
    except WrongError as error:
        return f"wrong: {error}"
    except Exception as error:  # noqa: BLE001  any other than those is what is looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def work(original: Path, start: int, stop: int) -> None:
    """Print the outcome of each case on a line; a crash or a hang ends the process within one."""
    base = use(original, 0)
    use(original, 3)
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(start, stop):
            print(f"{seed} begins", flush=True)
            print(f"{seed} {outcome(original, Path(scratch) / 'model', seed, base)}", flush=True)


def run(original: Path, start: int, stop: int) -> dict[int, str]:
    """The outcome of each case, those in which the process dies among them."""
    found: dict[int, str] = {}
    while start < stop:
        done = subprocess.run(
            [sys.executable, __file__, "--work", str(original), str(start), str(stop)], capture_output=True, text=True,
            check=False, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        begun = start
        for line in done.stdout.splitlines():
            seed, said = line.split(" ", 1)
            begun = int(seed)
            if said != "begins":
                found[begun] = said
        if begun + 1 == stop and begun in found:
            break
        if begun in found or not done.stdout:
            raise RuntimeError(f"the process ended between two cases: {done.stderr[-2000:]}")
        died = -done.returncode
        name = signal.Signals(died).name if died > 0 else f"exit {done.returncode}"
        found[begun] = "hang" if died in (signal.SIGALRM, signal.SIGPROF) else f"died of {name}"
        start = begun + 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--work", nargs=3)
    parser.add_argument("--seed", type=int, help="One case, with its traceback.")
    given = parser.parse_args()
    if given.work:
        work(Path(given.work[0]), int(given.work[1]), int(given.work[2]))
        return
    makers = kinds()
    for kind in given.kinds or makers:
        with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            original = Path(scratch) / "model"
            makers[kind]().save(original)
            if given.seed is not None:
                use(original, 0)
                tamper(original, given.seed)
                use(original, given.seed)
                return
            began = time.perf_counter()
            found = run(original, given.start, given.start + given.cases)
        told = Counter(found.values())
        print(f"{kind}: {dict(told)} in {time.perf_counter() - began:.0f} s", flush=True)
        for seed, what in found.items():
            if what not in UNHARMED:
                print(f"    {seed} {what}", flush=True)


if __name__ == "__main__":
    main()
