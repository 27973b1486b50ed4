"""``results/gaspk.md``: learning curves of GaSPK, what it costs, eigenpairs, and the bars."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gaspk_bars import bars
from benchmarks.gaspk_figures import SUSHI_ATTRIBUTES, curves_figure, planes_figure
from benchmarks.gaspk_runs import LABELS, MEASURES, TEN, curve, grouped, point_of, tasks_of
from benchmarks.in_short import IN_SHORT
from benchmarks.selection import selections
from benchmarks.store import Record, Store, write_whole

__all__ = ["markdown", "write_page"]

# (Task, model): why there is no curve.
WHY_NOT = {
    ("tax-plans", "mixed-logit"): "Mixed logit: not run. One fit to 80 % takes 94 CPU s and has not converged (a split "
    "R-hat of 2.5).",
    ("uk-election-2010", "mixed-logit"): "Mixed logit: not run. One fit to 80 %, with eight attributes, takes more "
    "than four minutes by the clock.",
}


def write_page(folder: Path) -> None:
    """Write ``gaspk.md`` and the figures in ``folder``, from what is stored there."""
    store, path = Store(folder / "learning-curves"), folder / "figures" / "gaspk-scaling.json"
    scaling = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.is_file() else []
    selected = selections()
    write_whole({folder / "gaspk.md": markdown(store, scaling, selected)})
    curves_figure(store, folder / "figures" / "gaspk-learning-curves.svg")
    planes_figure(scaling, folder / "figures" / "gaspk-planes.svg")


def markdown(store: Store, scaling: Sequence[Record], selected: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = [
        "# GaSPK",
        IN_SHORT["gaspk"],
        "Written by `python -m benchmarks.learning_curves` and `python -m benchmarks.gaspk_scaling`; do not edit. What "
        "is measured: [README](../README.md). ± is half the width of a 90 % interval over random splits, as in the "
        "paper; splits share people and answers, so that intervals for other people would be wider. Without "
        "intervals: one run. CPU seconds of one thread. Ten characteristics, but where the number is chosen, as it is "
        "by default.",
        _provenance([*(r for runs in store.records.values() for r in runs.values()), *scaling]),
        _table("## Bars", ["what", "bar", "found", "met"], [list(row) for row in bars(store, scaling)]),
    ]
    if tasks_of(store):
        parts.append("![Learning curves](figures/gaspk-learning-curves.svg)")
    parts += [_task(store, task) for task in tasks_of(store)]
    parts += [_selected(selected), _grid(scaling), _estimator(scaling), _planes(scaling), _eigenpairs(scaling)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _provenance(records: Iterable[Record]) -> str:
    known = [r["provenance"] for r in records if "provenance" in r]
    if not known:
        return "No runs yet."
    versions = {", ".join(f"{k} {v}" for k, v in p["versions"].items()) for p in known}
    dates = sorted(p["date"][:10] for p in known)
    return (
        f"Machine: {'; '.join(sorted({p['cpu'] for p in known}))}. Versions: {'; '.join(sorted(versions))}. Commits "
        f"(+: with changes): {', '.join(sorted({p['revision'] for p in known}))}. Runs from {dates[0]} to {dates[-1]}."
    )


def _task(store: Store, task: str) -> str:
    parts = [f"## {task}"]
    models = {model for name in store.records if name.startswith(f"{task}@share=") for model in store.models(name)}
    ordered = [m for m in LABELS if m in models] + sorted(models - set(LABELS))
    curves = {model: curve(store, task, model) for model in ordered}
    shares = sorted({share for found in curves.values() for share in found})
    full = curves.get(TEN) or next(iter(curves.values()))
    if shares and shares[-1] in full:
        counts = full[shares[-1]][0]["counts"]
        parts.append(
            f"{counts['people']:g} people; at {shares[-1]} % {counts['train_answers']:g} answers for training, "
            f"{counts['test_answers']:g} for the test."
        )
    for heading, (section, measure, digits) in MEASURES.items():
        rows = []
        for model, found in curves.items():
            points = {share: point_of([r[section][measure] for r in runs]) for share, runs in found.items()}
            cells = [p.text(digits) if (p := points.get(share)) else "" for share in shares]
            splits = sorted({len(runs) for runs in found.values()})
            rows.append([LABELS.get(model, f"`{model}`"), *cells, "-".join(map(str, (splits[:1] + splits[1:][-1:])))])
        parts.append(_table("", [heading, *(f"{share} %" for share in shares), "splits"], rows))
    parts += [text for (of, model), text in WHY_NOT.items() if of == task and model not in models]
    failed: dict[str, set[str]] = {}
    for name, runs in store.records.items():
        for (model, seed), record in runs.items():
            if name.startswith(f"{task}@share=") and "error" in record:
                failed.setdefault(f"{model}: {record['error']}", set()).add(f"{name} seed {seed}")
    parts += [f"**Failed**, {what} ({', '.join(sorted(where))})" for what, where in sorted(failed.items())]
    return "\n\n".join(part for part in parts if part)


def _selected(selected: Mapping[str, Any]) -> str:
    """Which attributes were chosen, and how often."""
    counts: dict[tuple[str, int], dict[str, int]] = {}
    runs: dict[tuple[str, int], list[Any]] = {}
    for found in selected.values():
        key = found["task"].partition("@share=")[0], len(found["attributes"])
        runs.setdefault(key, []).append(found)
        for name in found["attributes"]:
            counts.setdefault(key, {})[name] = counts.get(key, {}).get(name, 0) + 1
    parts = []
    for (task, number), often in sorted(counts.items()):
        some = runs[task, number]
        ordered = sorted(often.items(), key=lambda item: (-item[1], item[0]))
        names = ", ".join(f"{name} {count / len(some):.0%}" for name, count in ordered[: 2 * number])
        seconds = np.mean([found["seconds"] for found in some])
        parts.append(
            f"{task}: {number} attributes, {len(some)} selections of {seconds:.1f} CPU s on average, which the seconds "
            f"above leave out. Most often chosen: {names}."
        )
    return "\n\n".join(["## Selected attributes", *parts]) if parts else ""


def _grid(scaling: Sequence[Record]) -> str:
    rows = [
        [r["size"], r["gamma"], str(r["seed"]), f"{r['n_points']:,}", f"{r['rank']:,}", str(r["rounds"]),
         "yes" if r["converged"] else f"no ({r['residual']:.2g})", f"{r['setup_cpu_s']:.2f}", f"{r['round_cpu_s']:.2f}",
         f"{r['em_cpu_s']:.1f}" if "em_cpu_s" in r else "", f"{r['fit_cpu_s']:.1f}",
         f"{r['before_mb']:.0f}", f"{r['peak_mb']:.0f}"]
        for r in scaling if r["part"] == "grid" and "error" not in r
    ]  # fmt: skip
    rows += _errors(scaling, "grid", 13)
    head = ["choices", "weights", "seed", "points", "rank", "rounds", "converged", "setup s", "a round s", "EM s",
            "with evidence s", "before MB", "peak MB"]  # fmt: skip
    what = "## EM on a grid of 3^5 x 5^3 points, ten characteristics, antisymmetric; from one draw of weights"
    return _table(what, head, rows) if rows else ""


def _estimator(scaling: Sequence[Record]) -> str:
    rows = [
        [r["size"], f"`{r['line']}`", r["report"]["backend"], f"{r['report']['n_trade_offs']:,}",
         f"{r['report']['rank']:,}", f"{r['fit_cpu_s']:.1f}", f"{r['fit_peak_mb']:.0f}", f"{r['predict_cpu_s']:.2f}",
         f"{r['peak_mb']:.0f}", f"{r['accuracy']:.3f}", f"{r['log_loss']:.3f}"]
        for r in scaling if r["part"] == "estimator" and "error" not in r
    ]  # fmt: skip
    rows += _errors(scaling, "estimator", 11)
    head = ["choices", "model", "back end", "trade-offs", "rank", "fit s", "peak MB", "10^6 predictions s",
            "peak MB with them", "accuracy", "log loss"]  # fmt: skip
    return _table("## The estimator on items whose differences are that grid", head, rows) if rows else ""


def _errors(scaling: Sequence[Record], part: str, width: int) -> list[list[str]]:
    return [
        [r.get("size", ""), r.get("gamma", r.get("line", "")), f"**{r['error']}**", *[""] * (width - 3)]
        for r in scaling if r["part"] == part and "error" in r
    ]  # fmt: skip


def _planes(scaling: Sequence[Record]) -> str:
    groups = grouped(scaling, "planes", lambda r: (r["own"], r["dimensions"], r["levels"], r["people"]))
    rows = []
    for (own, d, levels, people), runs in sorted(groups.items()):
        seconds, accuracy = (point_of([r[m] for r in runs]) for m in ("fit_cpu_s", "accuracy"))
        assert seconds is not None
        assert accuracy is not None
        n_grid = [r["report"]["grid"]["points"] for r in runs]
        rows.append([
            "own" if own else "shared", str(d), str(levels), str(people), f"{max(n_grid):,}",
            f"{np.mean([r['report']['n_trade_offs'] for r in runs]):,.0f}",
            f"{np.mean([r['report']['rank'] for r in runs]):,.0f}", seconds.text(2), accuracy.text(3), str(len(runs)),
        ])  # fmt: skip
    rows += [
        ["own" if r["own"] else "shared", str(r["dimensions"]), str(r["levels"]), str(r["people"]), f"**{r['error']}**",
         "", "", "", "", ""]
        for r in scaling if r["part"] == "planes" and "error" in r
    ]  # fmt: skip
    head = ["instances", "dimensions", "levels", "people", "grid points", "trade-offs", "rank", "fit CPU s", "accuracy",
            "data sets"]  # fmt: skip
    what = "## Random utility planes (Fig. 7): 15 instances, 105 pairs of each person, 80 % for training"
    return "\n\n".join([_table(what, head, rows), "![Training time](figures/gaspk-planes.svg)"]) if rows else ""


def _eigenpairs(scaling: Sequence[Record]) -> str:
    found = [r for r in scaling if r["part"] == "eigenpairs" and "error" not in r]
    groups = grouped(found, "eigenpairs", lambda r: (r["task"], *_variances(r["line"])))
    rows = []
    for (task, how, n), runs in sorted(groups.items()):
        losses = [-r["log_loss"] for r in runs]
        error = 2 * np.std(losses, ddof=1) / math.sqrt(len(losses)) if len(losses) > 1 else math.nan
        clamps = sum("clamp" in line for r in runs for line in r["warnings"])
        rows.append([task, how, str(n) if n else "all", f"{runs[0]['report']['rank']:,}",
                     f"{np.mean(losses):.4f}" + (f" ({error:.4f})" if math.isfinite(error) else ""),
                     f"{np.mean([r['accuracy'] for r in runs]):.4f}",
                     f"{np.mean([r['calibration_error'] for r in runs]):.4f}",
                     f"{np.mean([r['predict_cpu_s'] for r in runs]):.3f}", str(clamps), str(len(runs))])  # fmt: skip
    head = ["task", "variances", "n_e", "rank", "log predictive likelihood (2 s.e.)", "accuracy", "cal. error",
            "predict CPU s", "splits with clamps", "splits"]  # fmt: skip
    what = (
        "## Eigenpairs (Fig. 8)\n\nThe paper has -0.4988 (0.0067) with n_e = 10, -0.4992 (0.0065) with 100 and "
        "1000, probably on Sushi, which the text to its Fig. 4 names, and four attributes that it does not name. Here "
        f"these are {', '.join(SUSHI_ATTRIBUTES)}; 15 answers of each of 1,000 people are for training and 5 for the "
        "test. Fig. 4 itself, what one person thinks of trade-offs on the plane of their first two principal "
        "components, is drawn by `python -m benchmarks.gaspk_figures --plane DIR`; as it shows a person's answers, it "
        "is not kept here."
    )
    return _table(what, head, rows) if rows else ""


def _variances(model: str) -> tuple[str, int]:
    options = dict(part.split("=", 1) for part in model.split("@")[1:])
    return options["variances"], int(options.get("n_eigenpairs", 0))


def _table(title: str, head: list[str], body: list[list[str]]) -> str:
    lines = "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])
    return f"{title}\n\n{lines}" if title else lines
