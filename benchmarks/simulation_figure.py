"""Panels of the simulations: what the papers' Fig. 1 shows, for any models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.in_short import IN_SHORT

__all__ = ["PANELS", "figure", "lines", "markdown", "save"]

# Reading: simulation: title, what is on the axis (a measure, or the number in the setting's name), measure.
PANELS: dict[str, dict[str, tuple[str, str, str]]] = {
    "code": {
        "a": ("a: consensus", "noise_rate", "consensus_tau"),
        "b": ("b: people", "noise_rate", "tau_person"),
        "c": ("c: people", "P", "tau_person"),
        "d": ("d: components", "C", "recovery"),
    },
    "preprint": {
        "a": ("a: one person", "noise_rate", "tau_person"),
        "b": ("b: consensus", "noise_rate", "consensus_tau"),
        "c": ("c: people", "noise_rate", "tau_person"),
        "d": ("d: components", "C", "recovery"),
    },
}
LABELS = {
    "noise_rate": "share of answers against the truth",
    "P": "pairs drawn",
    "C": "true components",
    "tau_person": "Kendall's tau, mean over people",
    "consensus_tau": "Kendall's tau of the consensus",
    "recovery": "mean |r|, best assignment",
}


def lines(records: Iterable[dict[str, Any]], x: str, y: str) -> dict[str, np.ndarray]:
    """Points of each line: mean x, mean y, standard error of y over seeds; sorted by x; shape (n, 3).

    One line a model, or a model and number of components where the axis is the number of pairs.
    """
    groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for record in records:
        if y not in record or isinstance(record[y], str):
            continue
        parts = dict(part.split("=") for part in record["setting"].split())
        line = record["model"] + (f", C = {parts['C']}" if x == "P" else "")
        value = record[x] if x in record else float(parts[x])
        groups.setdefault((line, record["setting"]), []).append((value, record[y]))
    found: dict[str, list[tuple[float, float, float]]] = {}
    for (line, _), points in groups.items():
        values = np.array(points)
        error = values[:, 1].std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
        found.setdefault(line, []).append((values[:, 0].mean(), values[:, 1].mean(), error))
    return {line: np.array(sorted(points)) for line, points in found.items()}


def figure(records: Sequence[dict[str, Any]], reading: str, path: Path) -> None:
    """Draw the simulations that there are records of, one panel each, and save them."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    panels = {w: p for w, p in PANELS[reading].items() if any(r["simulation"] == w for r in records)}
    if not panels:
        return
    models = sorted({record["model"] for record in records})
    colours = {model: mpl.colormaps["tab10"](k % 10) for k, model in enumerate(models)}
    drawing = Figure(figsize=(4.2 * len(panels), 3.8), layout="constrained")
    for axes, (which, (title, x, y)) in zip(
        np.atleast_1d(drawing.subplots(1, len(panels))), panels.items(), strict=True
    ):
        drawn = lines([r for r in records if r["simulation"] == which], x, y)
        for k, (name, points) in enumerate(drawn.items()):
            model, _, count = name.partition(", C = ")
            style = dict(zip(("1", "3", "10", "20"), ("-", "--", "-.", ":"), strict=True)).get(count, "-")
            axes.errorbar(*points[:, :2].T, yerr=points[:, 2], label=name, color=colours[model], linestyle=style,
                          marker="ox+><*"[k % 6], markersize=4, linewidth=1.2)  # fmt: skip
        if x in ("P", "C"):
            axes.set_xscale("log")
        axes.set(title=title, xlabel=LABELS[x], ylabel=LABELS[y])
        axes.grid(alpha=0.3)
        if drawn:
            axes.legend(fontsize=6)
    save(drawing, path)


def markdown(readings: Mapping[str, Sequence[dict[str, Any]]]) -> str:
    """The page of the simulations: each reading's picture, and below it the numbers of each panel."""
    parts = [
        "# Simulated crowds",
        IN_SHORT["simulations"],
        "Written by `python -m benchmarks.simulations`; do not edit. The simulations of crowdGPPL's Fig. 1 in two "
        "readings, which [simulated_crowds.py](../datasets/simulated_crowds.py) tells apart; the papers show theirs as "
        "pictures only. Means over the draws, ± standard error, and how many draws in brackets; the papers have 25. "
        "Tau is Kendall's, with the true utilities of the test items; components are matched to the true ones by the "
        "best assignment. Share: of the training answers, against the truth.",
    ]
    for reading, records in readings.items():
        parts += [f"## The {reading}", f"![Simulations, {reading}](figures/simulations-{reading}.svg)"]
        for which, (title, x, y) in PANELS[reading].items():
            some = [r for r in records if r["simulation"] == which and "error" not in r]
            if some:
                parts += [f"### {title}: {LABELS[y]}, against {LABELS[x]}", _numbers(some, y)]
    return "\n\n".join(parts) + "\n"


def _numbers(records: Sequence[dict[str, Any]], y: str) -> str:
    """A row a setting, a column a model that has the measure."""
    models = list(dict.fromkeys(r["model"] for r in records if y in r))
    settings = list(dict.fromkeys(r["setting"] for r in sorted(records, key=_place)))
    table = [["setting", "share", *(f"`{model}`" for model in models)], ["---"] * (len(models) + 2)]
    for setting in settings:
        here = [r for r in records if r["setting"] == setting]
        row = [setting, f"{np.mean([r['noise_rate'] for r in here]):.2f}"]
        for model in models:
            found = np.array([r[y] for r in here if r["model"] == model and isinstance(r.get(y), float)])
            error = f" ± {found.std(ddof=1) / np.sqrt(len(found)):.3f}" if len(found) > 1 else ""
            row.append(f"{found.mean():.3f}{error} ({len(found)})" if len(found) else "–")
        table.append(row)
    return "\n".join("| " + " | ".join(line) + " |" for line in table)


def _place(record: dict[str, Any]) -> list[float]:
    """Settings in order of their numbers."""
    return [float(part.partition("=")[2]) for part in record["setting"].split()]


def save(drawing: Any, path: Path) -> None:
    """The same bytes for the same figure: no date, no random ids."""
    import matplotlib as mpl

    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "predilect"}):
        drawing.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
