"""Risk against coverage of decisions: a panel a data set and model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.simulation_figure import save

__all__ = ["figure"]

_EACH = (2.6, 2.1)  # inches
_LEAST = 0.02  # coverage: the risk of fewer acts is chance


def figure(records: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw what there are records of, as ``decide.jsonl`` keeps them, and save it."""
    from matplotlib.figure import Figure

    data = list(dict.fromkeys(record["data"] for record in records))
    models = list(dict.fromkeys(record["model"] for record in records))
    if not data:
        return
    drawing = Figure(figsize=(_EACH[0] * len(data), _EACH[1] * len(models) + 0.4), layout="constrained")
    grid: Any = drawing.subplots(len(models), len(data), squeeze=False, sharex=True, sharey="col")
    for axes in grid.flat:
        axes.set_axis_off()
    for record in records:
        axes = grid[models.index(record["model"]), data.index(record["data"])]
        axes.set_axis_on()
        curve, narrowed = (
            [point for point in record.get(name, []) if point["coverage"] >= _LEAST] for name in ("curve", "narrowed")
        )
        for points, value, style, label in (
            (curve, "plain", "C1-", "threshold, plain"), (curve, "risk", "C0-", "decide"),
            (narrowed, "risk", "C0--", "decide, narrower questions"),
        ):  # fmt: skip
            if points:
                axes.plot(
                    [point["coverage"] for point in points], [point[value] for point in points], style, label=label
                )
        axes.axhline(record["always"], color="C7", linestyle=":", label="act always")
        axes.set_title(f"{record['data']}, {record['model']}", fontsize=8)
        axes.tick_params(labelsize=7)
    for axes in grid.flat:  # after all lines: the panels of a column share their scale
        axes.set_xlim(0.0, 1.0)
        axes.set_ylim(bottom=0.0)
    known = {label: line for axes in grid.flat for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    drawing.legend(
        known.values(), known.keys(), loc="outside upper center", ncols=len(known), fontsize=8, frameon=False
    )
    drawing.supxlabel("share acted on", fontsize=8)
    drawing.supylabel("share of acts that are wrong", fontsize=8)
    save(drawing, path)
