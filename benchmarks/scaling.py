"""``python -m benchmarks.scaling``: CPU seconds and memory against pairs and inducing points (the papers' Figs. 2-3).

    python -m benchmarks.scaling --curves pairs,inducing
    python -m benchmarks.scaling --curves large --models gppl@n_inducing=500

Curves: ``pairs`` (10 % to 100 % of the 65 340 strict labels of UKPConvArg, inducing points fixed), ``inducing`` (their
number; all strict labels of the sample), ``large`` (10^5 items with 20 features, 10^6 pairs). Each run has a process of
its own, in which everything is compiled and loaded before the clock starts. Results and figure are
``results/figures/scaling.json`` and ``.svg``; runs that are there are skipped (``--force``).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from benchmarks.datasets.arguments import argument_features, strict_labels
from benchmarks.measure import answer_scores, peak_megabytes, warm_up
from benchmarks.models import build
from benchmarks.simulation_figure import save
from benchmarks.store import write_whole
from benchmarks.task import Task, read_answers, split_rows, winner_outcome
from benchmarks.workers import THREAD_VARIABLES
from predilect._base.json import plain
from predilect.data import Vocabulary

__all__ = ["CURVES", "crowded_items", "measure_once", "some_labels"]

FloatArray = npt.NDArray[np.float64]
HERE = Path(__file__).parent / "results" / "figures"

SHARES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
INDUCING = (25, 50, 100, 200, 300, 500, 700)
N_INDUCING = 500
LARGE = (100_000, 20, 1_000_000)  # items, features, pairs
LARGE_BAR = {"fit_cpu_s": 60.0, "peak_mb": 2048.0}
GROWTH_BAR = 1.3  # CPU seconds with all pairs over those with the fewest
# "No SVI": all items as inducing points and all answers in one batch.
NO_SVI = "@inference=variational@n_inducing=None"
_SVI = "gppl@inference=stochastic@n_inducing="
_CROWD = "crowd-gppl@n_components=5@n_inducing="
# Curve: models, {x} standing for what varies.
# With a fixed number of batches of fixed size, and of sweeps: what is left to grow with the pairs is reading them.
_FIXED = f"@n_inducing={N_INDUCING}@max_iter="
IN_BATCHES = [
    f"gppl@inference=stochastic@sites=linearised@batch_size=1000{_FIXED}70",
    f"crowd-gppl@preset=paper@n_components=5@batch_size=1000@tol=1e-9{_FIXED}70",
]
CURVES = {
    "pairs": [*IN_BATCHES, f"crowd-gppl@n_components=5@n_restarts=1@tol=1e-9{_FIXED}20", f"gppl{NO_SVI}"],
    "inducing": [_SVI + "{x}", _CROWD + "{x}"],
    "large": [f"{_SVI}{N_INDUCING}"],
}
TEST_SHARE = 0.02


def some_labels(share: float, seed: int = 0, *, crowd_sample: bool = False) -> Task:
    """A random share of the workers' strict labels for training, over all topics; 2 % are always held out."""
    frame = strict_labels(crowd_sample=crowd_sample)
    place = np.random.default_rng(seed).random(len(frame))
    test = place < TEST_SHARE
    kept = test | (place >= 1.0 - share * (1.0 - TEST_SHARE))
    frame = frame.filter(pl.Series(kept))
    features = argument_features()
    return split_rows(
        "ukp labels", seed, frame, winner_outcome(frame), test[kept], vocabulary=Vocabulary(features["item"]),
        items=features,
    )  # fmt: skip


def crowded_items(n_items: int, n_features: int, n_pairs: int, seed: int = 0) -> Task:
    """Many items with standard normal features, one smooth utility, probit answers of nobody in particular.

    The utility is a sum of 100 random cosines: a draw, nearly, of a Gaussian process with a squared exponential kernel
    of length-scale 2 √n_features and standard deviation 2.
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_items, n_features))
    frequencies = rng.standard_normal((n_features, 100)) / (2.0 * np.sqrt(n_features))
    f = 2.0 * np.sqrt(2.0 / 100) * np.cos(x @ frequencies + rng.uniform(0.0, 2.0 * np.pi, 100)).sum(axis=1)
    left = rng.integers(n_items, size=n_pairs)
    right = (left + rng.integers(1, n_items, size=n_pairs)) % n_items
    outcome = np.where(rng.random(n_pairs) < ndtr(f[left] - f[right]), 1, -1)
    frame = pl.DataFrame({"user": np.zeros(n_pairs, dtype=np.int64), "left": left, "right": right})
    items = pl.DataFrame({"item": np.arange(n_items)} | {f"x{k}": x[:, k] for k in range(n_features)})
    vocabulary, n_test = Vocabulary(items["item"]), round(n_pairs * TEST_SHARE)
    # Without asking what is implied by transitivity: that takes items x items bits.
    train, test = (
        read_answers(frame[rows], outcome[rows], vocabulary).pooled()
        for rows in (slice(n_test, None), slice(None, n_test))
    )
    return Task("crowded items", seed, train, test, items=items)


def _task(curve: str, x: float) -> Task:
    if curve == "pairs":
        return some_labels(x)
    return some_labels(1.0, crowd_sample=True) if curve == "inducing" else crowded_items(*LARGE)


def measure_once(task: Task, model: str) -> dict[str, Any]:
    """CPU and wall seconds of the fit, memory before it and at the peak of process and fit, accuracy and log loss."""
    record: dict[str, Any] = {"train_answers": task.train.n_answers, "before_mb": peak_megabytes()}
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")  # into the record
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            fitted = build(model)(task)
            record |= {"fit_cpu_s": time.process_time() - cpu, "fit_wall_s": time.perf_counter() - wall}
            record["peak_mb"] = peak_megabytes()
            scores = answer_scores(task.test, fitted.log_proba(task.test))
            record |= {key: scores[key] for key in ("accuracy", "log_loss")}
            record["report"] = fitted.report()
        except Exception as error:  # noqa: BLE001  that a model fails is a result
            record["error"] = f"{type(error).__name__}: {error}"
    record["warnings"] = sorted({str(w.message) for w in caught})
    return record


def _work(sender: Any, curve: str, x: float, model: str) -> None:
    warm_up(model)
    sender.send(plain(measure_once(_task(curve, x), model)))


def isolated(curve: str, x: float, model: str, limit: float) -> dict[str, Any]:
    """A run in a process of its own, ended after ``limit`` seconds."""
    os.environ |= dict.fromkeys(THREAD_VARIABLES, "1")
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, curve, x, model), daemon=True)
    process.start()
    sender.close()
    try:
        found: dict[str, Any] = receiver.recv() if receiver.poll(limit) else {"error": f"no result after {limit:g} s"}
    except EOFError:
        process.join()
        found = {"error": f"the process ended with exit code {process.exitcode}"}
    process.kill()
    process.join()
    return found


def wanted(curve: str, models: list[str] | None = None) -> Iterator[tuple[float, str, str]]:
    """What varies, the line it belongs to and the model, for each run of a curve."""
    places = {"pairs": SHARES, "inducing": INDUCING, "large": (float(LARGE[2]),)}[curve]
    for line in models or CURVES[curve]:
        for x in places:
            yield x, line, line.replace("{x}", f"{x:g}")


def growth(records: list[dict[str, Any]]) -> dict[str, float]:
    """CPU seconds with the most pairs over those with the fewest, for each line of the curve ``pairs``."""
    lines: dict[str, dict[float, float]] = {}
    for record in records:
        if record["curve"] == "pairs" and "fit_cpu_s" in record:
            lines.setdefault(record["line"], {})[record["x"]] = record["fit_cpu_s"]
    return {line: found[max(found)] / found[min(found)] for line, found in lines.items() if len(found) > 1}


def figure(records: list[dict[str, Any]], path: Path) -> None:
    """Seconds and memory against pairs and against inducing points."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(10, 7), layout="constrained")
    grid = drawing.subplots(2, 2)
    labels = {"pairs": "share of 65 340 labels", "inducing": "inducing points",
              "fit_cpu_s": "CPU seconds of the fit", "peak_mb": "peak MB"}  # fmt: skip
    for row, measure in enumerate(("fit_cpu_s", "peak_mb")):
        for column, curve in enumerate(("pairs", "inducing")):
            axes = grid[row, column]
            drawn = [r for r in records if r["curve"] == curve and measure in r]
            for line in sorted({r["line"] for r in drawn}):
                points = sorted((r["x"], r[measure]) for r in drawn if r["line"] == line)
                name = f"{line} (no SVI)" if NO_SVI in line else line
                axes.plot(
                    *zip(*points, strict=True), marker="o", markersize=3, label=name.replace("@n_inducing={x}", "")
                )
            axes.set(xlabel=labels[curve], ylabel=labels[measure])
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
            if drawn:
                axes.legend(fontsize=7)
    save(drawing, path)


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, and draw; exit code 1 if a run failed or misses a bar (seconds, memory, growth)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--curves", default=",".join(CURVES))
    parser.add_argument("--models", help="instead of the usual ones, separated by commas; {x} is what varies")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a run is ended")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--force", action="store_true", help="run again what is there already")
    given = parser.parse_args(arguments)
    path = given.out / "scaling.json"
    stored = json.loads(path.read_text())["scaling"] if path.is_file() else []
    records = {(r["curve"], r["line"], r["x"]): r for r in stored}
    bad = 0
    for curve in given.curves.split(","):
        for x, line, model in wanted(curve, given.models.split(",") if given.models else None):
            if not given.force and (curve, line, x) in records:
                continue
            build(model)
            record = {"curve": curve, "line": line, "x": x, "model": model} | isolated(curve, x, model, given.limit)
            records[curve, line, x] = record
            over = curve == "large" and any(record.get(k, np.inf) > bar for k, bar in LARGE_BAR.items())
            bad += "error" in record or over
            told = record.get("error") or f"{record['fit_cpu_s']:.2f} CPU s, peak {record['peak_mb']:.0f} MB"
            print(f"{curve} {x:g} {model}: {told}{' OVER THE BAR' if over else ''}", file=sys.stderr, flush=True)
            lines = ",\n".join(json.dumps(records[key], allow_nan=False) for key in sorted(records))
            write_whole({path: f'{{"scaling": [\n{lines}\n]}}\n'})
    if records:
        figure(list(records.values()), path.with_suffix(".svg"))
        for line, times in growth(list(records.values())).items():
            over = line in IN_BATCHES and times > GROWTH_BAR
            bad += over
            print(
                f"{line}: x {times:.2f} from the fewest pairs to all{' OVER THE BAR' if over else ''}", file=sys.stderr
            )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
