"""``python -m benchmarks.importances``: how much each component of crowdGPPL matters (Fig. 4): variances 1/s_c, sorted.

    python -m benchmarks.importances --tasks sushi-a,sushi-b,ukp-topics --seeds 3

Reads ``component_importances`` of the stored runs, and runs what is missing; ``results/figures/importances.svg``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.simulation_figure import save
from benchmarks.store import Store
from benchmarks.workers import runs

__all__ = ["figure", "importances"]

HERE = Path(__file__).parent / "results"


def importances(store: Store, task: str, model: str) -> npt.NDArray[np.float64]:
    """Variances 1/s_c, largest first, one row a stored run that has them; shape (runs, C).

    Raises
    ------
    ValueError
        If runs have different numbers of components.
    """
    found = [
        sorted((float(v) for v in run["report"]["component_importances"]), reverse=True)
        for run in (store.runs(task, model) if task in store.records else [])
        if "component_importances" in run["report"]
    ]
    if len({len(row) for row in found}) > 1:
        raise ValueError(f"runs of {model} on {task} have different numbers of components; run them with --force")
    return np.array(found, dtype=float).reshape(len(found), len(found[0]) if found else 0)


def figure(store: Store, tasks: list[str], models: list[str], path: Path) -> bool:
    """One panel a task, one line a model (mean over runs), on a logarithmic axis. False if there is nothing to draw."""
    from matplotlib.figure import Figure

    lines = {(t, m): importances(store, t, m) for t in tasks for m in models}
    shown = [task for task in tasks if any(lines[task, m].size for m in models)]
    if not shown:
        return False
    drawing = Figure(figsize=(4.2 * len(shown), 3.6), layout="constrained")
    for axes, task in zip(np.atleast_1d(drawing.subplots(1, len(shown))), shown, strict=True):
        for model in models:
            values = lines[task, model]
            if values.size:
                rank = np.arange(1, values.shape[1] + 1)
                axes.plot(rank, values.mean(axis=0), marker="o", markersize=3, label=model)
                axes.fill_between(rank, values.min(axis=0), values.max(axis=0), alpha=0.2)
        axes.set(title=task, xlabel="component, by importance", ylabel="variance 1/s", yscale="log")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    save(drawing, path)
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, and draw; exit code 1 if there is nothing to draw or a run failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.importances", description=__doc__)
    parser.add_argument("--tasks", default="sushi-a,sushi-b,ukp-topics")
    parser.add_argument("--models", default="crowd-gppl,crowd-gppl@preset=paper")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs of each")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    given = parser.parse_args(arguments)
    store, failed = Store(given.out), 0
    tasks, models = given.tasks.split(","), given.models.split(",")
    for task in tasks:
        for model in models:
            missing = [seed for seed in range(given.seeds) if not store.has(task, model, seed)]
            for record in runs(task, model, missing):
                store.add(record)
                failed += "error" in record
                print(task, model, record["seed"], record.get("error", ""), file=sys.stderr, flush=True)
    drawn = figure(store, tasks, models, given.out / "figures" / "importances.svg")
    return 0 if drawn and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
