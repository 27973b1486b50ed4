"""What the stored runs of GaSPK say: means with intervals, curves over training shares, differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.store import Record, Store

__all__ = ["LABELS", "MEASURES", "TEN", "Point", "curve", "grouped", "paired", "point_of", "tasks_of"]

CONFIDENCE = 0.90
TEN = "gaspk@n_components=10"
LABELS = {
    TEN: "GaSPK",
    "gaspk-heuristic": "GaSPK, heuristic, no prior",
    "gaspk-exact": "GaSPK, exact, no prior",
    "gaspk": "GaSPK, number chosen",
    "gaspk@n_components=1": "GP classification, pooled",
    "gp-person": "GP classification, each person",
    "bi": "hierarchical GP",
    "cp": "collaborative GP",
    "mixed-logit": "mixed logit",
    "population": "population",
}
MEASURES = {
    "accuracy": ("scores", "accuracy", 3),
    "log loss": ("scores", "log_loss", 3),
    "CPU seconds of the fit": ("cost", "fit_cpu_s", 2),
}


@dataclass(frozen=True, slots=True)
class Point:
    """A mean over splits.

    Attributes
    ----------
    mean : float
    half : float
        Half the width of its 90 % interval by Student's t, as if splits were independent; NaN for one split.
    n : int
    """

    mean: float
    half: float
    n: int

    def text(self, digits: int) -> str:
        """Mean ± half width."""
        return f"{self.mean:.{digits}f}" + (f" ± {self.half:.{digits}f}" if math.isfinite(self.half) else "")


def point_of(values: Sequence[float]) -> Point | None:
    """The mean of some numbers; None of none."""
    n = len(values)
    if not n:
        return None
    half = math.nan
    if n > 1:
        half = float(student.ppf(0.5 + CONFIDENCE / 2, n - 1) * np.std(values, ddof=1) / math.sqrt(n))
    return Point(float(np.mean(values)), half, n)


def curve(store: Store, task: str, model: str) -> dict[int, list[Record]]:
    """Runs by training share, with attributes selected or not."""
    found: dict[int, list[Record]] = {}
    for name in store.records:
        base, _, options = name.partition("@share=")
        if base == task and options:
            some = store.runs(name, model)
            if some:
                found.setdefault(int(options.split("@")[0]), []).extend(some)
    return dict(sorted(found.items()))


def paired(a: Sequence[Record], b: Sequence[Record], measure: str) -> Point | None:
    """Mean difference a - b over the splits that both have."""
    others = {r["seed"]: r for r in b}
    shared = [r for r in a if r["seed"] in others]
    for r in shared:
        if r["split_hash"] != others[r["seed"]]["split_hash"]:
            raise ValueError(
                f"{r['model']} and {others[r['seed']]['model']} were run on different splits of {r['task']}"
            )
    return point_of([r["scores"][measure] - others[r["seed"]]["scores"][measure] for r in shared])


def tasks_of(store: Store) -> list[str]:
    """Tasks that there are curves of."""
    return sorted({name.partition("@share=")[0] for name in store.records if "@share=" in name})


def grouped(scaling: Sequence[Record], part: str, key: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    found: dict[Any, list[Record]] = {}
    for r in scaling:
        if r["part"] == part and "error" not in r:
            found.setdefault(key(r), []).append(r)
    return found
