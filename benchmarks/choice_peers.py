"""The same choices to Predilect, xlogit, Biogeme and choice-learn: log likelihood, estimates and user seconds.

``python -m benchmarks.choice_peers [--python OTHER] [--programs NAMES] [--tasks NAMES]`` writes
results/choice_peers.md. ``--python`` is that of an environment in which the peers are installed; what is not installed
is left out, and said. Swissmetro (logit, nested) and electricity (mixed) come from PREDILECT_DATA. One thread; each
program runs in a process of its own, and its seconds are those of the fit alone, with what it compiles at that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.peers import choice_programs
from benchmarks.store import write_whole
from benchmarks.task import folder

HERE = Path(__file__).parent
TASKS = {
    "logit": "Swissmetro, logit: headway of trains and Swissmetro alone, seats of Swissmetro alone",
    "nested": "Swissmetro, nested logit: train and car in a nest",
    "mixed": f"Electricity, mixed logit: six independent normal coefficients, {choice_programs.N_DRAWS} draws a person",
}
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
_LIMIT = 600.0  # seconds for a program


def swissmetro(table: pl.DataFrame) -> dict[str, Any]:
    """Choices of train, Swissmetro and car, those that chose nothing left out; times, costs and headways over 100."""
    table = table.filter(pl.col("CHOICE") > 0)
    modes, columns = ("TRAIN", "SM", "CAR"), {"time": "TT", "cost": "CO", "headway": "HE", "seats": "SEATS"}
    has = np.array([[f"{mode}_{column}" in table.columns for column in columns.values()] for mode in modes])
    X = np.zeros((len(table), *has.shape))
    for a, j in zip(*np.nonzero(has), strict=True):
        column = list(columns.values())[j]
        X[:, a, j] = table[f"{modes[a]}_{column}"].to_numpy() / (1.0 if column == "SEATS" else 100.0)
    return {
        "X": X, "names": np.array(list(columns)), "has": has, "best": table["CHOICE"].to_numpy() - 1,
        "available": np.stack([table[f"{mode}_AV"].to_numpy() > 0 for mode in modes], axis=1),
        "person": table["ID"].to_numpy(),
    }  # fmt: skip


def electricity(table: pl.DataFrame) -> dict[str, Any]:
    """Choices of four contracts without labels."""
    table, names = table.sort("user", "task", "alt"), ["pf", "cl", "loc", "wk", "tod", "seas"]
    X = table.select(names).to_numpy().astype(float).reshape(-1, 4, len(names))
    return {
        "X": X, "names": np.array(names), "has": np.ones(X.shape[1:], bool), "available": np.ones(X.shape[:2], bool),
        "best": table["choice"].to_numpy().reshape(-1, 4).argmax(axis=1),
        "person": table["user"].to_numpy().reshape(-1, 4)[:, 0],
    }  # fmt: skip


def asked(program: str, task: str, data: dict[str, Any], python: str) -> dict[str, Any]:
    """What a program finds, or what is missing for it; RuntimeError if it fails."""
    ours = program == "predilect"
    paths = {"PYTHONPATH": str(HERE.parent / "src")} if ours else {}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | ONE_THREAD | paths
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "choices.npz"
        np.savez(file, **data)
        command = [sys.executable if ours else python, choice_programs.__file__, program, task, str(file)]
        try:
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LIMIT, check=False)
        except subprocess.TimeoutExpired:
            return {"missing": "time"}
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode or not lines:
        raise RuntimeError(f"{program} failed in {task}: {ran.stderr[-500:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def section(task: str, names: list[str], found: dict[str, dict[str, Any]]) -> list[str]:
    """A table of what the programs found for a task."""
    there = {program: one for program, one in found.items() if "missing" not in one}
    rows = [name for name in (*names, "dissimilarity", *(f"sd {name}" for name in names), choice_programs.NOISE)
            if any(name in one["estimates"] for one in there.values())]  # fmt: skip
    heads = [f"{program} {one.get('version', '')}".strip() for program, one in there.items()]
    lines = [f"## {TASKS[task]}", "", f"| | {' | '.join(heads)} |", f"|---|{'---:|' * len(there)}"]
    cells = {"log likelihood": [f"{one['log_likelihood']:.4f}" for one in there.values()]}
    for name in rows:
        values = [one["estimates"].get(name) for one in there.values()]
        # Spreads have no sign.
        cells[name] = ["" if v is None else f"{abs(v) if name.startswith('sd ') else v:.4f}" for v in values]
    cells["user seconds"] = [f"{one['seconds']:.1f}" for one in there.values()]
    lines += [f"| {name} | {' | '.join(values)} |" for name, values in cells.items()]
    why = {"model": "no such model", "time": f"not done in {_LIMIT / 60:.0f} minutes of the clock"}
    lacking = [f"{program} ({why.get(one['missing'], 'not installed')})" for program, one in found.items()
               if "missing" in one]  # fmt: skip
    return [*lines, "", *([f"Not there: {', '.join(lacking)}.", ""] if lacking else [])]


def main(arguments: list[str] | None = None) -> None:
    """Ask all programs, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choice_peers", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="Python of the environment of the peers")
    parser.add_argument("--programs", default=",".join(choice_programs.PROGRAMS), help="which, with commas between")
    parser.add_argument("--tasks", default=",".join(TASKS), help="which, with commas between")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "choice_peers.md", help="page to write")
    given = parser.parse_args(arguments)
    swiss = swissmetro(pl.read_csv(folder("layouts") / "swissmetro_wide.csv.gz"))
    contracts = electricity(pl.read_csv(folder("electricity") / "choices_long.csv.gz"))
    lines = [
        "# The same choices to other programs", "",
        "`python -m benchmarks.choice_peers --python PYTHON`, one thread. Seconds are user seconds of the fit, with "
        "what a program compiles at that; loops of Predilect are compiled once per installation. choice-learn counts "
        "in 32 bits. Draws of mixed logits differ, and so do their log likelihoods and spreads.",
        "",
    ]  # fmt: skip
    for task in given.tasks.split(","):
        data = contracts if task == "mixed" else swiss
        found = {}
        for program in given.programs.split(","):
            found[program] = asked(program, task, data, given.python)
            print(f"{task}, {program}: {found[program]}", file=sys.stderr, flush=True)
        lines += section(task, data["names"].tolist(), found)
    write_whole({given.out: "\n".join(lines).rstrip() + "\n"})


if __name__ == "__main__":
    main()
