"""Cost of large data: answers are generated into a file, dealt out to parts, and fitted; seconds of processor, memory.

    python -m benchmarks.large FOLDER --people 5e5 --pool threads --jobs 2

20 pairs a person on 200 items with eight features, strict, of a consensus and five directions in which people differ.
Each stage is a process of its own, as memory that was once taken is not given back.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

N_ITEMS, N_FEATURES, N_DIRECTIONS, LENGTH, PER_PERSON, BLOCK = 200, 8, 5, 2.83, 20, 20_000
STAGES = ("make", "partition", "fit", "top")


def make(folder: Path, n_people: int, held_out: int = 2) -> None:
    """Write votes.csv, with rows of each block of people in an order of no meaning, items.csv and held-out.parquet."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N_ITEMS, N_FEATURES))
    K = np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) / (2.0 * LENGTH**2))
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = root @ rng.standard_normal((N_ITEMS, N_DIRECTIONS + 1))
    name = np.array([f"item-{k:03d}" for k in range(N_ITEMS)])
    pl.DataFrame({"item": name} | {f"x{k}": x[:, k] for k in range(N_FEATURES)}).write_csv(folder / "items.csv")
    kept = []
    with (folder / "votes.csv").open("wb") as file:
        for start in range(0, n_people, BLOCK):
            n = min(BLOCK, n_people - start)
            weights = rng.standard_normal((n, N_DIRECTIONS))
            who = rng.permutation(np.repeat(np.arange(n), PER_PERSON + held_out))
            left = rng.integers(N_ITEMS, size=len(who))
            right = (left + rng.integers(1, N_ITEMS, size=len(who))) % N_ITEMS
            margin = 1.8 * (draws[left, 0] - draws[right, 0])
            margin += 1.2 * np.einsum("nk,nk->n", weights[who], draws[left, 1:] - draws[right, 1:])
            wins = margin + rng.standard_normal(len(who)) > 0
            table = pl.DataFrame({
                "user": [f"u{start + one}" for one in who.tolist()], "left": name[left], "right": name[right],
                "winner": name[np.where(wins, left, right)],
            })  # fmt: skip
            of_person = table.select(pl.int_range(pl.len()).over("user")).to_series()
            table.filter(of_person >= held_out).write_csv(file, include_header=start == 0)
            kept.append(table.filter(of_person < held_out))
    pl.concat(kept[:5]).write_parquet(folder / "held-out.parquet")


def partition(folder: Path) -> str:
    """Deal the votes out."""
    import predilect.parts

    return repr(predilect.parts.partition(folder / "votes.csv", folder / "parts", overwrite=True))


def fit(folder: Path, pool: str, jobs: int) -> str:
    """Fit to the parts, and score held-out answers of the first 100 000 people."""
    import predilect

    began: dict[str, float] = {}

    def watch(stage: str, _: int) -> None:
        began.setdefault(stage, time.process_time())

    model = predilect.Population(n_jobs=jobs).fit_parts(
        folder / "parts", items=pl.read_csv(folder / "items.csv"), pool=None if pool == "threads" else pool, watch=watch
    )
    model.save(folder / "model", overwrite=True)
    report, chosen = model.population.report_, time.process_time()
    held = predilect.Comparisons.from_frame(pl.read_parquet(folder / "held-out.parquet"))
    loss = -model._score_and_accuracy(held)[0]
    return (
        f"passes {report['fit']['iterations']}; log loss of held-out answers {loss:.5f}; sample of "
        f"{report['parts']['sample']} people; driver {chosen:.0f} s of processor"
    )


def top(folder: Path) -> str:
    """The best ten of everybody, into files."""
    from predilect.models.population.in_parts import PopulationInParts

    model = PopulationInParts.load(folder / "model")
    with tempfile.TemporaryDirectory(dir=folder) as room:
        return f"{model.top_parts(10, path=Path(room) / 'top')['n_rows'].sum()} rows"


def run(stage: str, folder: Path, options: argparse.Namespace) -> None:
    """One stage in this process, with what it took."""
    began = time.perf_counter()
    told = {
        "make": lambda: make(folder, int(options.people)), "partition": lambda: partition(folder),
        "fit": lambda: fit(folder, options.pool, options.jobs), "top": lambda: top(folder),
    }[stage]()  # fmt: skip
    mine, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    load = f"load {os.getloadavg()[0]:.1f}. {told or ''}"
    print(
        f"{stage}: {mine.ru_utime + mine.ru_stime:.1f} s of processor, workers "
        f"{children.ru_utime + children.ru_stime:.1f} s; {time.perf_counter() - began:.1f} s; "
        f"{mine.ru_maxrss / 1024:.0f} MB, the largest worker {children.ru_maxrss / 1024:.0f} MB; {load}",
        flush=True,
    )


def main() -> None:
    """Run the stages one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--people", type=float, default=5e4)
    parser.add_argument("--pool", default="threads", help="threads, processes, ray or an address")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for stage in options.stages.split(","):
        if options.here:
            run(stage, options.folder, options)
            continue
        command = [sys.executable, "-m", "benchmarks.large", str(options.folder), "--stages", stage, "--here"]
        more = ["--people", str(options.people), "--pool", options.pool, "--jobs", str(options.jobs)]
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(command + more, check=True, env=os.environ | threads)


if __name__ == "__main__":
    main()
