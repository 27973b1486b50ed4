"""The page and the figure of what compressing costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.simulation_figure import save
from benchmarks.store import Record, Store, write_whole

__all__ = ["points", "table", "write_page"]

LABELS = {
    "voi": "value of information", "ucb": "exponential utility, β = 1", "gp-ucb": "mean + sd", "ivm": "IVM (entropy)",
    "adf": "IVM (answers, ADF)", "random": "random", "mean": "highest mean",
    "pairs": "pairs told best",
}  # fmt: skip
MEASURES = {
    "recommendation": "recommendation loss, %", "recommendation_all": "recommendation loss among all items, %",
    "zero_one": "0/1 loss, % of test pairs",
}  # fmt: skip
_HEAD = """# What compressing costs

Made by `python -m benchmarks.vvm`; do not edit. A joint process (alpha = 3, length-scales and shares by the evidence of
the first repetition) is fitted to 60 % of each person's answers. Each person keeps a share of the items, and everything
else is dropped. *Recommendation loss*: 100 |T* without T| / n_items, with T* the item of the largest posterior mean
among those the person keeps, and T the best ones (synthetic: by the true utilities; otherwise items asked about and
never refused by the person, in training or test answers); *among all items*, T* may be an item that was dropped, by its
prediction from the kept ones. *0/1 loss*: test answers predicted wrong, ties left out. Mean over repetitions and its
standard error; `full` is the model with everything. In brackets: repetitions in which the criterion is better / worse
than IVM (entropy).
"""


def points(store: Store, task: str, criterion: str, measure: str) -> dict[int, np.ndarray]:
    """Values over repetitions by the share kept, in per cent."""
    found: dict[int, list[float]] = {}
    for record in _runs(store, task):
        if record["criterion"] == criterion:
            found.setdefault(record["share"], []).append(record[measure])
    return {share: np.array(values) for share, values in sorted(found.items())}


def table(store: Store, task: str, measure: str) -> list[str]:
    """Lines of one measure of a task: a row a criterion, a column a share."""
    full = points(store, task, "full", measure).get(100, np.zeros(0))
    shares = sorted({record["share"] for record in _runs(store, task) if record["criterion"] != "full"})
    lines = ["| kept | " + " | ".join(f"{share} %" for share in shares) + " |", "|---" * (len(shares) + 1) + "|"]
    against = points(store, task, "ivm", measure)
    for criterion, label in LABELS.items():
        cells = []
        for share in shares:
            values = points(store, task, criterion, measure).get(share, np.zeros(0))
            cell = _said(values)
            other = against.get(share, np.zeros(0))
            if measure != "zero_one" and criterion in ("voi", "ucb", "gp-ucb") and len(other) == len(values) > 1:
                cell += f" ({(values < other).sum()}/{(values > other).sum()})"
            cells.append(cell)
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return [f"Full: {_said(full)}, {len(full)} repetitions.", "", *lines]


def write_page(folder: Path) -> None:
    """Write ``vvm.md`` and ``figures/vvm.png`` from the records in ``vvm``."""
    store = Store(folder / "vvm")
    tasks = [task for task in store.records if task != "speed"]
    lines = [_HEAD]
    for task in tasks:
        lines += [f"## {task}", ""]
        for measure, heading in MEASURES.items():
            lines += [f"**{heading[0].upper()}{heading[1:]}**", "", *table(store, task, measure), ""]
    if speed := list(store.records.get("speed", {}).values()):
        lines += _speed_lines(speed)
    if tasks:
        _figure(store, tasks, speed, folder / "figures" / "vvm.png")
        lines += ["![Losses against the share kept](figures/vvm.png)", ""]
    write_whole({folder / "vvm.md": "\n".join(lines)})


def _runs(store: Store, task: str) -> list[Record]:
    return [record for record in store.records.get(task, {}).values() if "error" not in record]


def _said(values: Sequence[float] | np.ndarray) -> str:
    if not len(values):
        return ""
    error = f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{error}"


def _speed_lines(speed: list[Record]) -> list[str]:
    lines = [
        "## Time and size", "",
        "CPU time of a margin and its variance, of random people and pairs; bytes of the numbers that are saved.", "",
        "| people x items | kept | µs a pair | compressing, s | kB | times smaller |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for r in sorted(speed, key=lambda r: (r["n_items"], -1 if r["share"] is None else r["share"])):
        size = ["", ""] if r["bytes"] is None else [f"{r['bytes'] / 1e3:.0f}", f"{r['bytes_full'] / r['bytes']:.1f}"]
        kept = "full" if r["share"] is None else f"{r['share']} %"
        cells = [f"{r['n_users']} x {r['n_items']}", kept, f"{r['microseconds_a_pair']:.1f}",
                 "" if r["share"] is None else f"{r['compress_seconds']:.2f}", *size]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def _figure(store: Store, tasks: list[str], speed: list[Record], path: Path) -> None:
    from matplotlib.figure import Figure

    columns = len(tasks) + bool(speed)
    drawing = Figure(figsize=(3.6 * columns, 9.0), layout="constrained")
    grid: Any = drawing.subplots(len(MEASURES), columns, squeeze=False)
    for column, task in enumerate(tasks):
        for row, (measure, heading) in enumerate(MEASURES.items()):
            axes = grid[row, column]
            for k, (criterion, label) in enumerate(LABELS.items()):
                found = points(store, task, criterion, measure)
                if found:
                    mean = [values.mean() for values in found.values()]
                    error = [v.std(ddof=1) / np.sqrt(len(v)) if len(v) > 1 else 0.0 for v in found.values()]
                    style = {"color": f"C{k}", "marker": "os*^vDP"[k], "markersize": 4, "linewidth": 1.2}
                    axes.errorbar(list(found), mean, error, label=label, capsize=2, **style)
            full = points(store, task, "full", measure).get(100)
            if full is not None:
                axes.axhline(full.mean(), color="black", linestyle=":", linewidth=1.2, label="full")
            axes.set(title=task if row == 0 else "", ylabel=heading if column == 0 else "", xlabel="kept, %")
            axes.grid(alpha=0.3)
    if speed:
        for row, measure in enumerate(("microseconds_a_pair", "bytes")):
            axes = grid[row, -1]
            for k, n_items in enumerate(sorted({r["n_items"] for r in speed})):
                runs = sorted((r for r in speed if r["n_items"] == n_items and r["share"]), key=lambda r: r["share"])
                axes.plot([r["share"] for r in runs], [r[measure] for r in runs], f"C{k}o-", label=f"200 x {n_items}")
                full = [r for r in speed if r["n_items"] == n_items and r["share"] is None]
                level = runs[0]["bytes_full"] if measure == "bytes" else full[0][measure]
                axes.axhline(level, color=f"C{k}", linestyle=":", linewidth=1.2)
            axes.set(
                yscale="log",
                xlabel="kept, %",
                ylabel=["µs a pair", "bytes"][row],
                title="" if row else "people x items",
            )
            axes.grid(alpha=0.3)
            axes.legend(fontsize=7)
        grid[2, -1].axis("off")
    drawing.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    save(drawing, path)
