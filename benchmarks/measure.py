"""One model on one split: fit, predict, and what came of it as plain values."""

from __future__ import annotations

import contextlib
import platform
import resource
import subprocess
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from scipy.stats import kendalltau
from threadpoolctl import threadpool_limits

from benchmarks import metrics
from benchmarks.models import REFERENCE, Fitted, build
from benchmarks.parts import find_loader
from benchmarks.store import pack_predictions
from benchmarks.task import HeldOut, Task, split_rows
from predilect import evaluation as ev
from predilect.data import Comparisons

__all__ = ["answer_scores", "further_scores", "measure", "peak_megabytes", "provenance", "taus", "warm_up"]

# Losses are kept by block of people, enough for paired differences and for a bootstrap over people.
N_BLOCKS = 256
PACKAGES = ("predilect", "numpy", "scipy", "scikit-learn", "numba", "polars")
PEER_PACKAGES = ("choix", "evalica", "openskill")

T = TypeVar("T")


def measure(task_name: str, model_name: str, seed: int) -> dict[str, Any]:
    """Run a model on a task, at one thread.

    Returns
    -------
    record : dict
        ``scores``, ``blocks`` and ``report`` (the same on every run), apart from ``cost`` (seconds, megabytes) and
        ``provenance``. A model that fails leaves ``error`` instead of scores.
    """
    record: dict[str, Any] = {"task": task_name, "model": model_name, "seed": seed}
    cost: dict[str, float] = {}
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")  # into the record
        task = find_loader(task_name)(seed)
        record |= {"split_hash": task.split_hash, "counts": _counts(task)}
        cost["before_mb"] = peak_megabytes()
        try:
            fitted, cost["fit_cpu_s"], cost["fit_wall_s"] = _timed(lambda: build(model_name)(task))
            logp, cost["predict_cpu_s"], cost["predict_wall_s"] = _timed(lambda: fitted.log_proba(task.test))
            cost["peak_mb"] = peak_megabytes()
            record |= {"scores": _scores(task, logp, fitted), "blocks": _blocks(task, logp), "report": fitted.report()}
            if task.further:
                record["further"] = {what: further_scores(task, held, fitted) for what, held in task.further.items()}
            if model_name == REFERENCE:
                record["predictions"] = _predictions(task, logp)
        except Exception as error:  # noqa: BLE001  a peer may fail in any way; that is a result too
            record["error"] = f"{type(error).__name__}: {error}"
    record["warnings"] = sorted({str(w.message) for w in caught})
    return record | {"cost": cost, "provenance": provenance()}


def warm_up(model_name: str) -> None:
    """Compile or load whatever the model needs, on a toy crowd without and with ties, so that it is not timed."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(40), 8)
    left = rng.integers(6, size=len(user))
    right = (left + rng.integers(1, 6, size=len(user))) % 6
    frame = pl.DataFrame({"user": user, "left": left, "right": right})
    items = pl.DataFrame({"item": range(6), "x": rng.standard_normal(6)})
    strict = np.where(rng.random(len(user)) < 0.5 + 0.08 * (left - right), 1, -1)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # the real run says it again, and is recorded
        for outcome in (strict, np.where(rng.random(len(user)) < 0.2, 0, strict)):
            task = split_rows("warm-up", 0, frame, outcome, rng.random(len(user)) < 0.2, items=items)
            try:
                build(model_name)(task).log_proba(task.test)
            except Exception:  # noqa: BLE001  the real run will tell
                continue


def peak_megabytes() -> float:
    """Largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """Result, CPU seconds, wall seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def _counts(task: Task) -> dict[str, float]:
    counts = {
        "people": task.train.n_users,
        "items": task.train.n_items,
        "train_answers": task.train.n_answers,
        "test_answers": task.test.n_answers,
        "test_ties": float(task.test.weight[task.test.outcome == 0].sum()),
    }
    if task.implied is not None:
        counts["test_implied"] = float(task.test.weight[task.implied].sum())
    return counts


def further_scores(task: Task, held: HeldOut, fitted: Fitted) -> dict[str, Any]:
    """Scores of further answers, and how many there are; without answers (a topic may lack a group) only taus."""
    found: dict[str, Any] = {"answers": held.test.n_answers}
    if held.test.n_rows:
        found |= answer_scores(held.test, fitted.log_proba(held.test))
    return found | (taus(task, held.gold, fitted) if held.gold is not None else {})


def answer_scores(test: Comparisons, logp: np.ndarray) -> dict[str, Any]:
    y, w = test.outcome, test.weight
    bins = metrics.calibration_bins(y, logp, w)
    return {
        "accuracy": ev.accuracy(y, logp, w),
        "strict_accuracy": metrics.strict_accuracy(y, logp, w),
        "log_loss": ev.log_loss(y, logp, w),
        "brier": metrics.brier(y, logp, w),
        "calibration_error": metrics.calibration_error(bins),
        "calibration_bins": {
            "count": bins.count.tolist(),
            "confidence": bins.confidence.tolist(),
            "correct": bins.correct.tolist(),
        },
    }


def _scores(task: Task, logp: np.ndarray, fitted: Fitted) -> dict[str, Any]:
    y, w = task.test.outcome, task.test.weight
    scores = answer_scores(task.test, logp)
    if task.implied is not None and not task.implied.all():
        left = ~task.implied
        scores["accuracy_not_implied"] = ev.accuracy(y[left], logp[left], w[left])
        scores["log_loss_not_implied"] = ev.log_loss(y[left], logp[left], w[left])
    if task.oracle_log_loss is not None:
        scores["oracle_log_loss"] = task.oracle_log_loss
        scores["excess_log_loss"] = scores["log_loss"] - task.oracle_log_loss
    if task.gold is not None:
        scores |= taus(task, task.gold, fitted)
    return scores


def taus(task: Task, gold: pl.DataFrame, fitted: Fitted) -> dict[str, float]:
    """Kendall's tau-b with true scores, of everybody's utilities or, without a column user, of the consensus."""
    known = gold.filter(pl.col("item").is_in(task.train.items.ids))
    if "user" not in gold.columns:
        consensus = fitted.scores(known)
        return {} if consensus is None else {"tau": float(kendalltau(consensus, known["score"].to_numpy()).statistic)}
    known = known.filter(pl.col("user").is_in(task.train.users.ids))
    predicted = fitted.scores(known)
    if predicted is None or not len(known):
        return {}
    true, who = known["score"].to_numpy(), known["user"].to_numpy()
    return {
        "tau_person": metrics.kendall_tau_per_person(predicted, true, who),
        "tau_pooled": metrics.kendall_tau_pooled(predicted, true, who),
    }


def _blocks(task: Task, logp: np.ndarray) -> dict[str, list[float]] | None:
    """Sum of the losses and number of answers of each block of people; None if a loss is infinite."""
    losses, weight = ev.answer_losses(task.test.outcome, logp), task.test.weight
    if not np.isfinite(losses).all():
        return None
    block = np.array([zlib.crc32(str(person).encode()) % N_BLOCKS for person in task.test.users.ids])[task.test.user]
    sums = np.bincount(block, weight * losses, N_BLOCKS)
    return {"loss": [float(f"{x:.7g}") for x in sums], "weight": np.bincount(block, weight, N_BLOCKS).tolist()}


def _predictions(task: Task, logp: np.ndarray) -> dict[str, Any]:
    """Every test answer's name, and what was predicted, for what test sets of several seeds have in common."""
    test = task.test
    who, left, right = test.users.labels(test.user), test.items.labels(test.left), test.items.labels(test.right)
    name = [zlib.crc32("|".join(map(str, row)).encode()) for row in zip(who, left, right, test.outcome, strict=True)]
    return pack_predictions(np.array(name), np.exp(logp), test.weight)


def provenance() -> dict[str, Any]:
    """Command, date, machine, versions and commit."""
    program = Path(sys.argv[0])
    inside = program.parent.name == "benchmarks" and program.stem != "__main__"
    called = f"benchmarks.{program.stem}" if inside else "benchmarks"
    return {
        "command": " ".join([f"python -m {called}", *_told(sys.argv[1:])]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "revision": _revision(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES} | _installed(PEER_PACKAGES),
        "threads": 1,
    }


def _told(arguments: list[str]) -> list[str]:
    """Arguments without the folder of the results, which is a matter of the machine."""
    kept, skip = [], False
    for argument in arguments:
        if not (skip or argument == "--out" or argument.startswith("--out=")):
            kept.append(argument)
        skip = argument == "--out"
    return kept


def _installed(packages: Iterable[str]) -> dict[str, str]:
    """Versions of those that are there."""
    found = {}
    for name in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _revision() -> str:
    """Commit of the repository, with "+" if files differ from it."""
    run = partial(subprocess.run, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    try:
        commit = run(["git", "rev-parse", "--short=12", "HEAD"]).stdout.strip()
        changed = run(["git", "status", "--porcelain", "--", "../src", "."]).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    # Results that are being written do not count.
    return commit + ("+" if any("benchmarks/results" not in line for line in changed) else "")


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{named[0] if named else platform.machine()}, {len(named) or 1} cores"
