"""Attributes of items that greedy forward selection leaves, kept on disk: one choice serves every model of a split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from threadpoolctl import threadpool_limits

import predilect
from benchmarks.store import write_whole
from benchmarks.task import Task
from predilect._base.json import plain
from predilect.data import ItemFeatures

__all__ = ["SELECTED", "selected_attributes", "selections"]

SELECTED = Path(__file__).parent / "results" / "learning-curves" / "selected-attributes.json"
# Quick fits: attributes are compared, and for what is right nobody need know how sure a prediction should be.
QUICK: dict[str, Any] = {
    "gamma": "heuristic", "concentration": 0.0, "variance": 3.0, "spread": 1.0, "n_components": 5, "n_restarts": 1,
    "max_iter": 8, "n_jobs": 1,
}  # fmt: skip


def selected_attributes(task: Task, n_attributes: int, path: Path = SELECTED) -> pl.DataFrame:
    """The task's table of items with so many attributes, chosen for GaSPK by its training answers alone.

    Choices are kept in ``path``, by the fingerprint of the split; one that is there is not made again.

    Raises
    ------
    ValueError
        If the task has no attributes.
    """
    if task.items is None:
        raise ValueError(f"{task.name} has no attributes to choose from")
    known = selections(path)
    key = f"{task.name} {n_attributes} of {len(task.items.columns) - 1} {task.split_hash}"
    if key not in known:
        with threadpool_limits(1):
            found = predilect.evaluation.select_attributes(
                lambda chosen: predilect.GaSPK(attributes=chosen, **QUICK), task.train,
                ItemFeatures.from_frame(task.items), n_attributes=n_attributes, random_state=task.seed,
            )  # fmt: skip
        known[key] = plain({"task": task.name, "seed": task.seed, "settings": QUICK, **found.to_dict()})
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
        write_whole({path: f"{{\n{lines}\n}}\n"})
    return task.items.select("item", *known[key]["attributes"])


def selections(path: Path = SELECTED) -> dict[str, Any]:
    """What was chosen, by task, number of attributes and split."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found
