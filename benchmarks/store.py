"""Records on disk: one JSON file a task, written whole or not at all, and what they say together."""

from __future__ import annotations

import base64
import json
import math
import os
import platform
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calibration_floor import CalibrationFloor, calibration_floor
from benchmarks.metrics import CalibrationBins, calibration_error
from predilect._base.json import plain
from predilect.evaluation import PairedDifference, paired_difference

__all__ = [
    "Store",
    "difference",
    "made_with",
    "mean_and_error",
    "missing",
    "pack_predictions",
    "pooled_calibration",
    "pooled_floor",
    "read_lines",
    "write_whole",
]

FORMAT = 1
_STEPS = 65_535  # of a stored probability
Record = dict[str, Any]


class Store:
    """The records of a folder, by task, model and seed.

    What was predicted of every test answer tells of the answers, which not every licence lets anybody pass on: it goes
    to ``predictions``, which git ignores. What the tables need of it, the floors of calibration, is kept.

    Parameters
    ----------
    folder : Path
        Holds ``<task>.json``; it need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: dict[str, dict[tuple[str, int], Record]] = {}
        self.floors: dict[str, dict[str, Record]] = {}
        for path in sorted(folder.glob("*.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.get("format") == FORMAT:
                self.records[path.stem] = {(r["model"], r["seed"]): r for r in content["runs"]}
                self.floors[path.stem] = content.get("floors", {})

    def has(self, task: str, model: str, seed: int) -> bool:
        """Whether the run is there, failed or not."""
        return (model, seed) in self.records.get(task, {})

    def add(self, record: Record) -> None:
        """Keep a record in place of an earlier one, and write the file of its task anew."""
        record = plain(record)
        task, model = record["task"], record["model"]
        predictions = record.pop("predictions", None)
        if predictions is not None:
            kept = self._predictions(task) | {f"{model} {record['seed']}": predictions}
            write_whole({self._path_of_predictions(task): json.dumps(kept, allow_nan=False)})
        self.records.setdefault(task, {})[model, record["seed"]] = record
        self.floors.setdefault(task, {}).pop(model, None)
        self._write(task)

    def floor(self, task: str, model: str) -> CalibrationFloor | None:
        """Calibration error that chance alone makes of all seeds together; None if predictions of a run are unknown."""
        seeds = [run["seed"] for run in self.runs(task, model)]
        known = self.floors.get(task, {}).get(model)
        if known and known["seeds"] == seeds:
            return CalibrationFloor(known["mean"], known["upper"])
        kept = self._predictions(task)
        if not seeds or any(f"{model} {seed}" not in kept for seed in seeds):
            return None
        found = pooled_floor([kept[f"{model} {seed}"] for seed in seeds])
        self.floors.setdefault(task, {})[model] = {"seeds": seeds, "mean": found.mean, "upper": found.upper}
        self._write(task)
        return found

    def _write(self, task: str) -> None:
        runs = self.records[task]
        lines = ",\n".join(json.dumps(runs[key], allow_nan=False) for key in sorted(runs))
        floors = f'"floors": {json.dumps(self.floors[task], sort_keys=True)}, ' if self.floors.get(task) else ""
        text = f'{{"format": {FORMAT}, "task": {json.dumps(task)}, {floors}"runs": [\n{lines}\n]}}\n'
        write_whole({self.folder / f"{task}.json": text})

    def _path_of_predictions(self, task: str) -> Path:
        return self.folder / "predictions" / f"{task}.json"

    def _predictions(self, task: str) -> dict[str, Any]:
        path = self._path_of_predictions(task)
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return kept

    def models(self, task: str) -> list[str]:
        """Models with a record on the task, in order of their names."""
        return sorted({model for model, _ in self.records[task]})

    def runs(self, task: str, model: str) -> list[Record]:
        """Records of a model that did not fail, by seed."""
        return [r for (name, _), r in sorted(self.records[task].items()) if name == model and "error" not in r]


def read_lines(path: Path) -> list[Record]:
    """Records of a file with one a line; none if it is not there yet."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def missing(
    path: Path, keys: Sequence[str], wanted: Iterable[tuple[Any, ...]], run: Callable[..., Record | list[Record]]
) -> Iterator[tuple[tuple[Any, ...], list[Record]]]:
    """Make what a file of JSON lines lacks of what is wanted, and keep it as soon as it is made.

    A record is one of ``wanted`` by its fields ``keys``; ``run(*one)`` makes it, or several. Gives each that was made,
    with its records.
    """
    done = {tuple(record[key] for key in keys) for record in read_lines(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    for one in wanted:
        if one in done:
            continue
        made = run(*one)
        records = made if isinstance(made, list) else [made]
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        yield one, records


def made_with(command: str) -> str:
    """The line of a page that says what it was made with."""
    return (
        f"`{command}`; Python {platform.python_version()}, predilect {version('predilect')}, NumPy {version('numpy')}, "
        f"SciPy {version('scipy')}, Numba {version('numba')}."
    )


def write_whole(texts: dict[Path, str]) -> None:
    """Write files beside their places first, and then move all of them there."""
    written: list[tuple[str, Path]] = []
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
            written.append((name, path))
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).chmod(0o644)  # mkstemp gives 0o600
        for name, path in written:
            Path(name).replace(path)
    finally:
        for name, _ in written:
            Path(name).unlink(missing_ok=True)


def mean_and_error(runs: Iterable[Record], section: str, measure: str) -> tuple[float, float] | None:
    """Mean over seeds and its standard error (NaN for one seed); None if no run has the measure."""
    values = np.array([float(run[section][measure]) for run in runs if measure in run[section]])
    if not len(values):
        return None
    if len(values) == 1 or not np.isfinite(values).all():
        return float(values.mean()), math.nan
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def pack_predictions(name: np.ndarray, proba: np.ndarray, weight: np.ndarray) -> dict[str, Any]:
    """Predictions as text.

    Parameters
    ----------
    name : array of int, shape (n,)
        Names of the answers, below 2^32; an answer has the same name in every test set.
    proba : array of float, shape (n, 3)
        Of left, tie and right; kept to 1 in 65 535.
    weight : array of float, shape (n,)
    """
    return {
        "name": _packed(name.astype("<u4")),
        "proba": _packed(np.rint(proba[:, :2] * _STEPS).astype("<u2")),
        "weight": None if np.all(weight == 1.0) else weight.tolist(),
    }


def _packed(values: np.ndarray) -> str:
    return base64.b85encode(zlib.compress(values.tobytes(), 9)).decode()


def _unpacked(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype=kind)


def pooled_floor(predictions: Iterable[dict[str, Any]]) -> CalibrationFloor:
    """Calibration error that chance alone makes of all seeds together, from what :func:`pack_predictions` made."""
    names, probabilities, weights = [], [], []
    for stored in predictions:
        names.append(_unpacked(stored["name"], "<u4"))
        two = _unpacked(stored["proba"], "<u2").reshape(-1, 2) / _STEPS
        probabilities.append(np.column_stack([two, np.maximum(1.0 - two.sum(axis=1), 0.0)]))
        weights.append(np.ones(len(two)) if stored["weight"] is None else np.array(stored["weight"]))
    with np.errstate(divide="ignore"):
        log_proba = np.log(np.concatenate(probabilities))
    return calibration_floor(log_proba, np.concatenate(names), np.concatenate(weights))


def pooled_calibration(runs: Sequence[Record]) -> float:
    """Calibration error of all seeds together."""
    bins = [
        CalibrationBins(*(np.array(run["scores"]["calibration_bins"][k]) for k in ("count", "confidence", "correct")))
        for run in runs
    ]
    return calibration_error(sum(bins[1:], bins[0]))


def difference(a: Sequence[Record], b: Sequence[Record]) -> PairedDifference | None:
    """Log loss of a minus that of b on the seeds they share.

    People (in blocks) are resampled, whatever seeds they appear in; seeds share people, so they are not independent.

    Returns
    -------
    PairedDifference or None
        None if no seed is shared, or a loss is infinite.

    Raises
    ------
    ValueError
        If the same seed was another split.
    """
    others = {run["seed"]: run for run in b}
    shared = [(run, others[run["seed"]]) for run in a if run["seed"] in others]
    for run, other in shared:
        if run["split_hash"] != other["split_hash"]:
            raise ValueError(
                f"{run['model']} and {other['model']} were run on different splits of {run['task']}, seed "
                f"{run['seed']}: run them again with --force"
            )
    if not shared or any(run["blocks"] is None for pair in shared for run in pair):
        return None
    weight = np.concatenate([run["blocks"]["weight"] for run, _ in shared])
    losses = [np.concatenate([pair[side]["blocks"]["loss"] for pair in shared]) for side in (0, 1)]
    block = np.tile(np.arange(len(shared[0][0]["blocks"]["weight"])), len(shared))
    there = weight > 0
    a_mean, b_mean = (loss[there] / weight[there] for loss in losses)
    return paired_difference(a_mean, b_mean, block[there], 0, weight=weight[there])
