"""Learning curves of strategies, as Fig. 2 of Houlsby et al. 2012 has them: a panel a data set and model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rounds import curve
from benchmarks.simulation_figure import save

__all__ = ["figure"]

STYLES = {"bald": ("C0", "o"), "entropy": ("C1", "s"), "eubo": ("C2", "^"), "random": ("C7", "x")}
_EACH = (2.6, 2.3)  # inches


def figure(runs: Sequence[dict[str, Any]], names: Sequence[str], path: Path) -> None:
    """Draw what there are runs of, and save it.

    Parameters
    ----------
    runs : sequence of dict
        As ``active.jsonl`` keeps them.
    names : sequence of str
        Data sets, in order.
    path : Path
    """
    from matplotlib.figure import Figure

    names = [name for name in names if any(run["data"] == name for run in runs)]
    if not names:
        return
    models = list(dict.fromkeys(run["model"] for run in runs))
    drawing = Figure(figsize=(_EACH[0] * len(names), _EACH[1] * len(models) + 0.4), layout="constrained")
    grid: Any = drawing.subplots(len(models), len(names), squeeze=False, sharex=True, sharey="col")
    labelled: set[str] = set()  # in the first column with runs of theirs
    for column, name in enumerate(names):
        for row, model in enumerate(models):
            axes = grid[row, column]
            here = [run for run in runs if (run["data"], run["model"]) == (name, model)]
            for strategy in [strategy for strategy in STYLES if any(run["strategy"] == strategy for run in here)]:
                part = [run for run in here if run["strategy"] == strategy]
                mean, error = curve(part)
                colour, marker = STYLES[strategy]
                axes.errorbar(np.arange(len(mean)), mean, np.nan_to_num(error), label=f"{strategy} ({len(part)})",
                              color=colour, marker=marker, markersize=3, linewidth=1.1, capsize=2)  # fmt: skip
            axes.grid(alpha=0.3)
            if here:
                axes.legend(fontsize=6)
            else:
                axes.set_axis_off()
            if not row:
                axes.set_title(name, fontsize=9)
            if here and model not in labelled:
                labelled.add(model)
                axes.set_ylabel(f"{model}\ntest error", fontsize=8)
    drawing.supxlabel("questions asked of each person; bars: standard error over repetitions (number)", fontsize=8)
    save(drawing, path)
