"""``python -m benchmarks.learning_curves``: accuracy, log loss and training time against answers (GaSPK's Figs. 5-6).

    python -m benchmarks.learning_curves --tasks amt-cars --seeds 3
    python -m benchmarks.learning_curves --models gaspk,gaspk-exact --shares 20,80
    python -m benchmarks.learning_curves --tasks none          # only the page and the figure

A fifth of the answers is held out, and 10 to 80 % of all answers are for training, those of a smaller share among those
of a larger one. Of the 36 numbers that describe a party in uk-election-2010, GaSPK, GP classification and the mixed
logit get the eight of greedy forward selection on the training answers; seconds do not count the selection. Results are
in ``results/learning-curves``, one file a task and share; runs that are there are skipped (``--force``). The page is
``results/gaspk.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.gaspk_page import write_page
from benchmarks.gaspk_runs import TEN
from benchmarks.models import build
from benchmarks.parts import find_loader
from benchmarks.store import Store
from benchmarks.workers import runs

__all__ = ["MODELS", "SHARES", "TASKS", "task_name", "wanted"]

HERE = Path(__file__).parent / "results"
SHARES = (10, 20, 40, 60, 80)
TASKS = ("amt-cars", "uk-election-2010", "tax-plans", "electricity")
MODELS = (
    TEN, "gaspk-exact", "gaspk", "gaspk@n_components=1", "gp-person", "bi", "cp", "mixed-logit",
    "population",
)  # fmt: skip
# Attributes that models of few attributes get: dimensions of their kernels, or coefficients, cost them.
SELECTED = {"uk-election-2010": 8}
FEW_ATTRIBUTES = ("gaspk", "gp-person", "mixed-logit")
N_SEEDS = 20


def task_name(task: str, model: str, share: int) -> str:
    """The part of a task that a model is run on."""
    name = f"{task}@share={share}"
    few = task in SELECTED and model.startswith(FEW_ATTRIBUTES)
    return f"{name}@select={SELECTED[task]}" if few else name


def wanted(tasks: Iterable[str], models: Iterable[str], shares: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Part of a task and model, the quick ones of each task first."""
    models, shares = list(models), list(shares)
    for task in tasks:
        for share in shares:
            for model in models:
                yield task_name(task, model, share), model


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, and write the page; exit code 1 if a run failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning_curves", description=__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS), help="separated by commas; none only writes the page anew")
    parser.add_argument("--models", default=",".join(MODELS), help="as for python -m benchmarks")
    parser.add_argument("--shares", default=",".join(map(str, SHARES)), help="per cent of all answers, up to 80")
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="how many random splits, the first of them")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds after which a run is ended")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--force", action="store_true", help="run again what is there already")
    given = parser.parse_args(arguments)
    tasks = [] if given.tasks == "none" else given.tasks.split(",")
    store = Store(given.out / "learning-curves")
    failed = 0
    for name, model in wanted(tasks, given.models.split(","), map(int, given.shares.split(","))):
        find_loader(name), build(model)
        missing = [seed for seed in range(given.seeds) if given.force or not store.has(name, model, seed)]
        for record in runs(name, model, missing, limit=given.limit):
            # Losses by block are as many numbers as all else together, and splits share people anyway.
            record.pop("blocks", None)
            record.pop("predictions", None)
            store.add(record)
            failed += "error" in record
            told = record.get("error") or "accuracy {accuracy:.4f}  log loss {log_loss:.4f}".format(**record["scores"])
            print(f"{name:36s} {model:28s} {record['seed']:2d}  {told}", file=sys.stderr, flush=True)
    write_page(given.out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
