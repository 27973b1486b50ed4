"""Figures of GaSPK: learning curves, and training time on random utility planes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gaspk_runs import LABELS, MEASURES, Point, curve, grouped, point_of, tasks_of
from benchmarks.simulation_figure import save
from benchmarks.store import Record, Store

__all__ = ["curves_figure", "planes_figure"]


def curves_figure(store: Store, path: Path) -> None:
    """Accuracy, log loss and seconds against the training share, a column a task."""
    from matplotlib.figure import Figure

    tasks = tasks_of(store)
    if not tasks:
        return
    drawing = Figure(figsize=(3.6 * len(tasks), 8.2), layout="constrained")
    grid = drawing.subplots(len(MEASURES), len(tasks), squeeze=False)
    for column, task in enumerate(tasks):
        for row, (heading, (section, measure, _)) in enumerate(MEASURES.items()):
            axes = grid[row, column]
            for k, (model, label) in enumerate(LABELS.items()):
                found = curve(store, task, model)
                points = [(share, point_of([r[section][measure] for r in runs])) for share, runs in found.items()]
                line = [(share, p.mean, 0.0 if math.isnan(p.half) else p.half) for share, p in points if p]
                if line:
                    x, y, half = np.array(line).T
                    # Beside each other, so that intervals can be told apart.
                    axes.errorbar(x + 0.5 * (k - 2.5), y, yerr=half, label=label, color=f"C{k}", marker="os*^vD"[k % 6],
                                  markersize=4, linewidth=1.3, capsize=2)  # fmt: skip
            if row == 2:
                axes.set(yscale="log", xlabel="answers for training, %")
            axes.set(title=task if row == 0 else "", ylabel=heading if column == 0 else "", xlim=(4, 86))
            axes.grid(alpha=0.3)
    drawn = {label: line for axes in grid[0] for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    shown = [label for label in LABELS.values() if label in drawn]
    drawing.legend([drawn[label] for label in shown], shown, loc="outside lower center", ncols=3, fontsize=8)
    save(drawing, path)


def planes_figure(scaling: Sequence[Record], path: Path) -> None:
    """Training time against levels, a line for each number of dimensions, and against people."""
    from matplotlib.figure import Figure

    found = grouped(scaling, "planes", lambda r: (r["own"], r["dimensions"], r["levels"], r["people"]))
    if not found:
        return
    means = {key: point_of([r["fit_cpu_s"] for r in runs]) for key, runs in found.items()}
    drawing = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = drawing.subplots(1, 2)

    def line(axes: Any, points: list[tuple[int, Point | None]], label: str, colour: str, style: str) -> None:
        drawn = sorted((x, p.mean, 0.0 if math.isnan(p.half) else p.half) for x, p in points if p)
        if drawn:
            x, y, half = np.array(drawn).T
            axes.errorbar(x, y, yerr=half, label=label, color=colour, linestyle=style, marker="o", markersize=4,
                          capsize=2)  # fmt: skip

    for k, d in enumerate(sorted({key[1] for key in means})):
        for own, style in ((False, "-"), (True, "--")):
            line(left, [(key[2], p) for key, p in means.items() if key[:2] == (own, d) and key[3] == 50],
                 f"{d} dimensions{', own instances' if own else ''}", f"C{k}", style)  # fmt: skip
    for own, style in ((False, "-"), (True, "--")):
        line(right, [(key[3], p) for key, p in means.items() if key[0] == own and key[1:3] == (8, 5)],
             "8 dimensions, 5 levels", "C1", style)  # fmt: skip
    left.set(
        xlabel="levels of a continuous dimension", ylabel="CPU seconds of the fit", title="50 people", yscale="log"
    )
    right.set(xlabel="people (105 pairs each)", title="8 dimensions, 5 levels")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)
    save(drawing, path)
