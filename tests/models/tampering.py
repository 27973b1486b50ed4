"""Saved models of every kind, changed at random and then used: what no file may do to whoever opens it.

The same seed makes the same change: ``tamper(folder, seed)`` and ``use(folder, seed)`` are a case again.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tampering_changes import tamper
from tampering_kinds import N_USERS

from cases import run_cases

SECONDS = 20  # of the processor, a case
UNHARMED = ("refused at load", "refused at use", "no effect", "other numbers")

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
    from predilect.errors import PredilectError

    model = predilect.load(folder)
    refused: list[PredilectError] = []
    found: list[np.ndarray] = []

    def predict() -> None:
        mean, var, p = model._predict_margin_and_proba(ASKED)
        finite("margin", mean, var)
        if (var < 0.0).any():
            raise WrongError("variance negative")
        chances("proba", p)
        found.append(np.column_stack([mean, var, p]))
        if np.isnan(model.predict_log_proba(ASKED)).any():
            raise WrongError("log proba not a number")

    def predict_new() -> None:
        asked = {"user": ["u0", "new", "u1"], "left": ["j0", "i1", "j0"], "right": ["i1", "j1", "j1"]}
        chances("new", model.predict_proba(asked, items=NEW_ITEMS, people=NEW_PEOPLE))

    def boards() -> None:
        board("rank", model.rank())
        board("rank of one", model.rank("u1"))
        board("utilities", model.utilities())
        board("utilities of somebody new", model.utilities("new"))
        finite("consensus", *model.utility_distribution(), *model.utility_distribution("u2"))
        if getattr(model, "drift_", None) is not None:
            history = model.history()
            finite("history", *(history[name].to_numpy() for name in ("mean", "sd", "lower", "upper")))
            board("rank at", model.rank(at=3.5))

    def ask() -> None:
        pairs = model.suggest("u3", n=2)
        finite("suggest", *(pairs[name].to_numpy() for name in pairs.columns if pairs[name].dtype.is_float()))

    def update() -> None:
        if not hasattr(model, "update") or getattr(model, "drift_", None) is not None:
            return  # ratings over time take no more answers
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
        predilect.load(folder.parent / "again")

    def compress() -> None:
        if not isinstance(model, predilect.models.CompressedModel):
            small = model.compress(2)
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
        said = found.stdout
        for name in json.loads((folder / "model.json").read_text())["items"]:
            said = said.replace(str(name), "")  # an item may be called inf
        if "nan" in said.lower() or "inf" in said.lower():
            raise WrongError(f"command {arguments[0]} not finite")


def outcome(original: Path, folder: Path, seed: int, base: np.ndarray) -> str:
    """What becomes of one case, in a word or two."""
    import predilect
    from predilect.errors import PredilectError

    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    tamper(folder, seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                predilect.load(folder)
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


def outcomes(original: Path, seeds: list[int]) -> Iterator[str]:
    """Within a child: the outcome of each case, once all loops are compiled."""
    base = use(original, 0)
    use(original, 3)

    def each() -> Iterator[str]:
        with tempfile.TemporaryDirectory() as scratch:
            for seed in seeds:
                yield outcome(original, Path(scratch) / "model", seed, base)

    return each()


def run(original: Path, start: int, stop: int) -> dict[int, str]:
    """The outcome of each case, those in which the process dies among them. A busy machine is no hang."""
    return run_cases(outcomes, (original,), range(start, stop), seconds=10 * SECONDS, processor=SECONDS)
