"""``python -m benchmarks.sizes``: CPU seconds and memory of default fits to few busy people and to many items.

Simulated crowds (:func:`crowd`) are fitted by ``Population().fit`` at its defaults, choice of the prior included, each
in a process of its own in which everything is compiled or loaded before the clock starts. CPU seconds are of all
threads; memory is the peak of the process, interpreter included. ``results/sizes.md`` (``--out``) is written anew.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.measure import answer_scores, peak_megabytes, provenance, warm_up
from benchmarks.task import Task, split_rows
from predilect import Population
from predilect.data import Vocabulary
from predilect.inference.likelihoods.probit import tilted

__all__ = ["SIZES", "Size", "crowd", "measure_once"]

OUT = Path(__file__).parent / "results" / "sizes.md"
N_TEST = 10_000


@dataclass(frozen=True)
class Size:
    """A crowd, and the bars of its fit: CPU seconds of all threads, and peak megabytes."""

    n_users: int
    per_person: int
    n_items: int
    cpu_s: float
    mb: float | None = None
    delta: float = 0.0
    personal: bool = True


SIZES = {
    "10x2000, 300 items": Size(10, 2000, 300, 15.0),
    "30x400, 200 items": Size(30, 400, 200, 10.0),
    "30x400, 1000 items": Size(30, 400, 1000, 30.0),
    "14x400, 576 items, ties": Size(14, 400, 576, 10.0, delta=0.5),
    "200x150, 3000 items": Size(200, 150, 3000, 90.0, 2500.0),
    "40x1000, 10000 items, pooled": Size(40, 1000, 10_000, 90.0, 4000.0, personal=False),
}
HEAD = ("crowd", "seed", "CPU s", "bar", "peak MB", "bar", "passes", "settings tried", "log loss", "of the truth")


def crowd(size: Size, seed: int) -> Task:
    """Answers of people whose utilities are a consensus and a part of their own, each N(0, 1) an item; random pairs.

    Probit answers, with ties below the threshold; further pairs of the same people are the test. Nobody has an own part
    where nobody is told apart.
    """
    rng = np.random.default_rng(seed)
    utilities = rng.standard_normal(size.n_items) + size.personal * rng.standard_normal((size.n_users, size.n_items))
    user = np.repeat(np.arange(size.n_users), size.per_person)
    user = np.concatenate([user, rng.integers(size.n_users, size=N_TEST)])
    left = rng.integers(size.n_items, size=len(user))
    right = (left + rng.integers(1, size.n_items, size=len(user))) % size.n_items
    z = utilities[user, left] - utilities[user, right]
    noisy = z + rng.standard_normal(len(user))
    outcome = np.where(np.abs(noisy) <= size.delta, 0, np.sign(noisy)).astype(np.int8)
    test = np.arange(len(user)) >= len(user) - N_TEST
    truth = -float(tilted(outcome[test], z[test], np.zeros(N_TEST), size.delta)[0].mean())
    frame = pl.DataFrame({"user": user, "left": left, "right": right})
    vocabulary = Vocabulary(range(size.n_items))
    return split_rows("sizes", seed, frame, outcome, test, vocabulary=vocabulary, oracle_log_loss=truth)


def measure_once(size: Size, seed: int) -> dict[str, Any]:
    """Cost and log loss of one fit."""
    task = crowd(size, seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cpu, wall = time.process_time(), time.perf_counter()
        model = Population(personal=size.personal).fit(task.train)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = peak_megabytes()
    return {
        "cpu_s": cpu, "wall_s": wall, "peak_mb": peak, "passes": model.report_["fit"]["iterations"],
        "trials": len(model.report_["prior"]["trials"]), "truth": task.oracle_log_loss,
        "log_loss": answer_scores(task.test, model.predict_log_proba(task.test))["log_loss"],
        "strength": model.hyperparameters_.strength, "variance": model.hyperparameters_.variance,
        "warnings": sorted({str(warning.message) for warning in caught}),
    }  # fmt: skip


def _work(sender: Any, size: Size, seed: int) -> None:
    warm_up("population")
    sender.send(measure_once(size, seed))


def isolated(size: Size, seed: int, limit: float) -> dict[str, Any] | None:
    """A fit in a process of its own; None where it took longer than ``limit`` seconds."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, size, seed), daemon=True)
    process.start()
    sender.close()
    found: dict[str, Any] | None = receiver.recv() if receiver.poll(limit) else None
    process.kill()
    process.join()
    return found


def row(name: str, size: Size, seed: int, found: dict[str, Any] | None, limit: float) -> str:
    """A line of the table."""
    if found is None:
        cells = [name, seed, f"not within {limit:g} s", f"{size.cpu_s:g}", *[""] * 6]
    else:
        cells = [
            name, seed, f"{found['cpu_s']:.1f}", f"{size.cpu_s:g}", f"{found['peak_mb']:.0f}",
            "" if size.mb is None else f"{size.mb:g}", found["passes"], found["trials"], f"{found['log_loss']:.4f}",
            f"{found['truth']:.4f}",
        ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=__doc__)
    parser.add_argument("--sizes", default=",".join(str(k) for k in range(len(SIZES))), help="which, from 0 on")
    parser.add_argument("--seeds", default="1", help="seeds of the crowds (default 1)")
    parser.add_argument("--limit", type=float, default=1200.0, help="wall seconds a fit may take (default 1200)")
    parser.add_argument("--out", type=Path, default=OUT, help="the page (default results/sizes.md)")
    given = parser.parse_args()
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    print("\n".join(lines), flush=True)
    for number in map(int, given.sizes.split(",")):
        name, size = list(SIZES.items())[number]
        for seed in map(int, given.seeds.split(",")):
            found = isolated(size, seed, given.limit)
            lines.append(row(name, size, seed, found, given.limit))
            print(lines[-1], found, flush=True)
    made = provenance()
    versions = ", ".join(f"{name} {number}" for name, number in made["versions"].items())
    given.out.write_text(
        "# Default fits at the largest sizes\n\n"
        f"Written by `{made['command']}`; do not edit. What is measured: [README](../README.md). People x answers "
        "each; `passes` are those of the last fit. "
        f"{made['date']}, {made['cpu']}, revision {made['revision']}, Python {made['python']}, {versions}.\n\n"
        + "\n".join(lines) + "\n"
    )  # fmt: skip


if __name__ == "__main__":
    main()
