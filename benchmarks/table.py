"""The Markdown table: losing cases first, then bars, then every task."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from benchmarks.bars import ANCHORS, BARS, BETTER_THAN, CALIBRATION, REASONS
from benchmarks.models import REFERENCE
from benchmarks.store import Store, difference, mean_and_error, pooled_calibration
from predilect.evaluation import PairedDifference

__all__ = ["markdown"]

# Heading: section, measure, digits.
COLUMNS = {
    "accuracy": ("scores", "accuracy", 4),
    "strict acc.": ("scores", "strict_accuracy", 4),
    "log loss": ("scores", "log_loss", 4),
    "Brier": ("scores", "brier", 4),
    "tau person": ("scores", "tau_person", 3),
    "tau pooled": ("scores", "tau_pooled", 3),
    "acc. not implied": ("scores", "accuracy_not_implied", 4),
    "log loss not implied": ("scores", "log_loss_not_implied", 4),
    "over oracle": ("scores", "excess_log_loss", 4),
    "fit CPU s": ("cost", "fit_cpu_s", 3),
    "predict CPU s": ("cost", "predict_cpu_s", 4),
    "peak MB": ("cost", "peak_mb", 0),
}
BAR_SECTION = {"accuracy": "scores", "log_loss": "scores", "excess_log_loss": "scores"}  # the rest is cost


def markdown(store: Store, order: Iterable[str] = ()) -> str:
    """The whole page.

    Parameters
    ----------
    store : Store
    order : iterable of str
        Tasks in the order wanted; others follow.
    """
    tasks = [task for task in order if task in store.records]
    tasks += [task for task in store.records if task not in tasks]
    parts = [
        "# Benchmark results",
        _provenance(store),
        _differences(store, tasks),
        _bars(store, tasks),
        _reasons(tasks),
    ]
    parts += [_task(store, task) for task in tasks]
    return "\n\n".join(part for part in parts if part) + "\n"


def _provenance(store: Store) -> str:
    runs = [r for records in store.records.values() for r in records.values() if "provenance" in r]
    if not runs:
        return "No runs yet."
    machines = sorted({r["provenance"]["cpu"] for r in runs})
    versions = sorted({", ".join(f"{k} {v}" for k, v in r["provenance"]["versions"].items()) for r in runs})
    commits = sorted({r["provenance"].get("revision", "unknown") for r in runs})
    dates = sorted(r["provenance"]["date"][:10] for r in runs)
    return (
        "Written by `python -m benchmarks`; do not edit. What is measured: [README](../README.md). Mean ± standard "
        f"error over seeds; one thread. Machine: {'; '.join(machines)}. Versions: {'; '.join(versions)}. "
        f"Commits (+: with changes): {', '.join(commits)}. Runs from {dates[0]} to {dates[-1]}."
    )


def _differences(store: Store, tasks: list[str]) -> str:
    rows = []
    for task in tasks:
        reference = store.runs(task, REFERENCE)
        for model in store.models(task):
            found = None if model == REFERENCE else difference(reference, store.runs(task, model))
            if found is not None:
                ratio = found.mean / found.standard_error if found.standard_error > 0 else math.nan
                rows.append((ratio, task, model, found))
    if not rows:
        return ""
    rows.sort(key=lambda row: (-row[0] if math.isfinite(row[0]) else math.inf, row[1], row[2]))
    worse = sum(ratio > 1 for ratio, *_ in rows)
    lines = [
        f"## Log loss of {REFERENCE} minus that of others",
        f"Positive: {REFERENCE} loses; worst cases first. Paired by answer; standard error and 95 % interval by "
        f"resampling people. {worse} of {len(rows)} are worse by more than one standard error.",
        _against_the_best(rows),
        _rows(
            ["task", "against", "difference", "± s.e.", "95 % interval", "s.e. away"],
            [
                [task, model, _signed(d.mean), _number(d.standard_error, 4),
                 f"{_signed(d.lower)} to {_signed(d.upper)}", f"{ratio:+.1f}"]
                for ratio, task, model, d in rows
            ],
        ),
    ]  # fmt: skip
    return "\n\n".join(lines)


def _against_the_best(rows: list[tuple[float, str, str, PairedDifference]]) -> str:
    """On which tasks the reference is more than one standard error behind the best of the others."""
    best: dict[str, tuple[str, PairedDifference]] = {}
    for _, task, model, found in rows:
        if task not in best or found.mean > best[task][1].mean:
            best[task] = model, found
    behind = sorted(f"{task} ({model})" for task, (model, d) in best.items() if d.mean > d.standard_error)
    return (
        f"On {len(best) - len(behind)} of {len(best)} tasks {REFERENCE} has the lowest log loss or is within one "
        f"standard error of the lowest{'; not on ' + ', '.join(behind) if behind else ''}."
    )


def _reasons(tasks: list[str]) -> str:
    known = [f"- **{task}**: {REASONS[task]}." for task in tasks if task in REASONS]
    return "\n\n".join([f"## Why {REFERENCE} falls short", "\n".join(known)]) if known else ""


def _bars(store: Store, tasks: list[str]) -> str:
    rows: list[tuple[bool, list[str]]] = []
    for task in tasks:
        runs = store.runs(task, REFERENCE)
        if not runs:
            if REFERENCE in store.models(task) and (task in BARS or task in BETTER_THAN):
                rows.append((False, [task, "any", "", "every run failed"]))
            continue
        for measure, bar in BARS.get(task, {}).items():
            found = mean_and_error(runs, BAR_SECTION.get(measure, "cost"), measure)
            if found is not None:
                good = found[0] >= bar if measure == "accuracy" else found[0] <= bar
                sign = "≥" if measure == "accuracy" else "≤"
                rows.append((good, [task, measure.replace("_", " "), f"{sign} {bar:g}", _pair(found, 4)]))
        calibration = pooled_calibration(runs)
        found_calibration = [task, "calibration error", f"≤ {CALIBRATION:g}", _calibration(store, task, REFERENCE)]
        rows.append((calibration <= CALIBRATION, found_calibration))
        for other in BETTER_THAN.get(task, ()):
            gap = difference(runs, store.runs(task, other))
            if gap is not None:
                text = f"{_signed(gap.mean)} ± {_number(gap.standard_error, 4)}"
                rows.append((gap.mean < 0, [task, f"log loss minus that of {other}", "< 0", text]))
    if not rows:
        return ""
    rows.sort(key=lambda row: row[0])
    body = [[*cells, "yes" if good else "**no**"] for good, cells in rows]
    return f"## Bars of {REFERENCE}\n\n" + _rows(["task", "measure", "bar", "found (mean)", "met"], body)


def _task(store: Store, task: str) -> str:
    models = store.models(task)
    models.sort(key=lambda model: (mean_and_error(store.runs(task, model), "scores", "log_loss") or (math.inf,))[0])
    runs = {model: store.runs(task, model) for model in models}
    shown = [
        heading
        for heading, (section, measure, _) in COLUMNS.items()
        if any(_worth_showing(run, section, measure) for model in models for run in runs[model])
    ]
    body = []
    for model in (model for model in models if runs[model]):
        cells = [model, str(len(runs[model]))]
        for heading in shown:
            section, measure, digits = COLUMNS[heading]
            cells.append(_pair(mean_and_error(runs[model], section, measure), digits))
        body.append([*cells, _calibration(store, task, model)])
    for who, *numbers in ANCHORS.get(task, []):
        known = dict(zip(("accuracy", "log loss", "tau person", "tau pooled", "fit CPU s"), numbers, strict=True))
        stored = [_number(known.get(heading), COLUMNS[heading][2] or 3) for heading in shown]
        body.append([f"*{who}*", "", *stored, ""])
    parts = [f"## {task}", _counts(store, task), _rows(["model", "seeds", *shown, "cal. error (floor)"], body)]
    parts += _failures(store, task)
    return "\n\n".join(part for part in parts if part)


def _calibration(store: Store, task: str, model: str) -> str:
    """Calibration error of all seeds together; mean and 95 % point of what chance alone makes of it, where known."""
    floor, found = store.floor(task, model), _number(pooled_calibration(store.runs(task, model)), 4)
    return found if floor is None else f"{found} ({_number(floor.mean, 4)}, {_number(floor.upper, 4)})"


def _worth_showing(run: dict[str, Any], section: str, measure: str) -> bool:
    if measure == "strict_accuracy" and not run["counts"]["test_ties"]:
        return False  # the accuracy says it
    return measure in run[section]


def _counts(store: Store, task: str) -> str:
    counted = [r for _, r in sorted(store.records[task].items()) if "counts" in r]
    if not counted:
        return ""
    n = counted[0]["counts"]
    text = (
        f"{n['people']:,g} people, {n['items']:,g} items; {n['train_answers']:,g} answers for training, "
        f"{n['test_answers']:,g} for the test"
    )
    if n["test_ties"]:
        text += f", {n['test_ties'] / n['test_answers']:.1%} of them ties"
    if "test_implied" in n:
        text += f", {n['test_implied'] / n['test_answers']:.1%} implied by the person's own answers"
    hashes = sorted({(r["seed"], r["split_hash"]) for r in counted})
    return f"{text}. Splits: {', '.join(f'{seed} `{code}`' for seed, code in hashes)}."


def _failures(store: Store, task: str) -> list[str]:
    failed: dict[tuple[str, str], list[int]] = {}
    for (model, seed), record in sorted(store.records[task].items()):
        if "error" in record:
            failed.setdefault((model, record["error"]), []).append(seed)
    return [
        f"**{model} failed** on seeds {', '.join(map(str, seeds))}: {error}" for (model, error), seeds in failed.items()
    ]


def _rows(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _pair(found: tuple[float, float] | None, digits: int) -> str:
    if found is None:
        return ""
    mean, error = found
    return _number(mean, digits) + (f" ± {_number(error, digits)}" if math.isfinite(error) else "")


def _number(value: Any, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _signed(value: float) -> str:
    return f"{value:+.4f}"
