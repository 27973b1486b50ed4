"""``python -m benchmarks``: run models on tasks, keep every result, and write the table."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from pathlib import Path

from benchmarks.datasets import GROUPS, MOST_SEEDS, TASKS, default_seeds
from benchmarks.models import GROUPS as MODEL_GROUPS
from benchmarks.models import MODELS, build
from benchmarks.parts import find_loader
from benchmarks.store import Store, write_whole
from benchmarks.table import markdown
from benchmarks.task import folder
from benchmarks.workers import runs
from predilect.errors import DataError

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0, 1 if a run failed, 2 if the command or the data cannot be used."""
    given = _parser().parse_args(arguments)
    try:
        tasks = _tasks(given.tasks)
        models = list(dict.fromkeys(m for part in given.models.split(",") for m in MODEL_GROUPS.get(part, [part])))
        for model in models:
            build(model)
        seeds = None if given.seeds == "default" else _seeds(given.seeds)
        if any(not task.startswith("generator") for task in tasks):
            folder("")
    except (DataError, KeyError, ModuleNotFoundError, ValueError) as error:
        print(f"benchmarks: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 2
    store = Store(given.out)
    failed = 0
    for task in tasks:
        wanted = [s for s in seeds or default_seeds(task) if s < MOST_SEEDS.get(task.partition("@")[0], s + 1)]
        for model in models:
            missing = [seed for seed in wanted if given.force or not store.has(task, model, seed)]
            for record in runs(task, model, missing, isolate=given.isolate, limit=given.limit):
                store.add(record)
                failed += "error" in record
                print(_line(record), file=sys.stderr, flush=True)
    if store.records:
        write_whole({given.out / "results.md": markdown(store, TASKS)})
        print(f"benchmarks: {given.out / 'results.md'}", file=sys.stderr)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--tasks", default="all",
        help=f"names, patterns (sushi-*) or groups, separated by commas. Groups: {', '.join(GROUPS)}. "
        f"Tasks: {', '.join(TASKS)}. 'none' only writes the table anew",
    )  # fmt: skip
    parser.add_argument(
        "--models", default=",".join(MODELS),
        help=f"separated by commas: {', '.join(MODELS)}, or the groups {', '.join(MODEL_GROUPS)}; with options as "
        "population@strength=10@variance=4",
    )  # fmt: skip
    parser.add_argument("--seeds", default="default", help="such as 0-9 or 0,3,5-7; by default those of the task")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--force", action="store_true", help="run again what is there already")
    parser.add_argument(
        "--isolate", action=argparse.BooleanOptionalAction, default=True,
        help="a process of its own for each model and task, as peak memory needs it",
    )  # fmt: skip
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which an isolated run is ended")
    return parser


def _tasks(text: str) -> list[str]:
    chosen: dict[str, None] = {}
    for part in text.split(","):
        base, *options = part.split("@")
        found = [] if part == "none" else GROUPS.get(part) or fnmatch.filter(TASKS, base)
        if not found and part != "none":
            raise ValueError(f"no task is called {part!r}; there are {', '.join(TASKS)}")
        found = ["@".join([name, *options]) for name in found]
        for name in found:
            find_loader(name)
        chosen |= dict.fromkeys(found)
    return list(chosen)


def _seeds(text: str) -> list[int]:
    chosen: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        chosen |= set(range(int(first), int(last or first) + 1))
    return sorted(chosen)


def _line(record: dict[str, object]) -> str:
    head = f"{record['task']:24s} {record['model']:20s} seed {record['seed']}"
    if "error" in record:
        return f"{head}  FAILED: {record['error']}"
    scores, cost = record["scores"], record["cost"]
    assert isinstance(scores, dict)
    assert isinstance(cost, dict)
    return (
        f"{head}  accuracy {scores['accuracy']:.4f}  log loss {scores['log_loss']:.4f}  fit {cost['fit_cpu_s']:.3f} "
        f"CPU s  predict {cost['predict_cpu_s']:.3f}  peak {cost['peak_mb']:.0f} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
