"""``python -m benchmarks.gaspk_scaling``: what GaSPK costs, and what its eigenpairs are good for (Figs. 7-8).

    python -m benchmarks.gaspk_scaling --parts grid
    python -m benchmarks.gaspk_scaling --parts planes,eigenpairs --seeds 2

Parts: ``grid`` (EM on a grid of 3^5 x 5^3 points, from random weights, for choices at random points of it),
``estimator`` (``predilect.GaSPK`` on items whose differences are that grid, and 10^6 predictions), ``planes`` (the
paper's synthetic data against dimensions, levels and people), ``eigenpairs`` (log predictive likelihood against n_e).
Each run has a process of its own, in which loops are compiled or loaded before the clock starts; memory is that of the
process at its peak, interpreter included. Results are in ``results/figures/gaspk-scaling.json``; runs that are there
are skipped (``--force``). The page is ``results/gaspk.md``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.datasets.trade_offs import grid_crowd, grid_items, utility_planes
from benchmarks.gaspk_figures import SUSHI_ATTRIBUTES
from benchmarks.gaspk_page import write_page
from benchmarks.measure import answer_scores, peak_megabytes, provenance, warm_up
from benchmarks.models import build
from benchmarks.parts import find_loader
from benchmarks.store import write_whole
from benchmarks.task import Task
from benchmarks.workers import alone
from predilect._base.json import plain
from predilect.inference.gaussian.kernels import Stationary
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.fit import run
from predilect.papers.gaspk.em.mode import log_det_at
from predilect.papers.gaspk.em.weights import random_weights
from predilect.papers.gaspk.posterior.grid import GridBasis
from predilect.papers.gaspk.settings import FitSettings

__all__ = ["PARTS", "on_grid", "with_estimator"]

HERE = Path(__file__).parent / "results"
SHAPE = (3, 3, 3, 3, 3, 5, 5, 5)
HALVES = tuple((n + 1) // 2 for n in SHAPE)  # levels of items, whose differences have those of the grid
N_CHARACTERISTICS = 10
LENGTH_SCALE, AMPLITUDE = (
    2.0,
    3.0,
)  # about the median distance of points of the grid; what held-out answers often choose
N_PREDICTIONS = 1_000_000
MOST_ROUNDS = 300  # so that what is compared has converged

# Choices and people.
SIZES = {
    "7k": (7_392, 264),
    "74k, as many people": (73_920, 264),
    "74k, ten times the people": (73_920, 2_640),
    "1m": (1_000_000, 100_000),
}
GAMMAS = ("heuristic", "exact")
ESTIMATORS = (
    "gaspk@n_components=10@backend=grid@variance=3.0@n_restarts=1",
    "gaspk@n_components=10@backend=function@variance=3.0@n_restarts=1", "gaspk",
)  # fmt: skip
PLANE_MODEL = "gaspk@n_components=10@backend=grid@variance=3.0@n_restarts=1@levels={levels}"
# Dimensions, levels of the continuous ones, people.
PLANES = [
    *((d, levels, 50) for d in (6, 8, 9) for levels in (3, 5, 7)), *((6, levels, 50) for levels in (9, 11)),
    *((8, 5, people) for people in (10, 20, 100, 200)),
]  # fmt: skip
# What the published number is of, probably, and two further.
EIGEN_TASKS = {
    "sushi-a15": f"@attributes={'+'.join(SUSHI_ATTRIBUTES)}", "uk-election-2010@select=8": "", "tax-plans": "",
}  # fmt: skip
EIGENPAIRS = (10, 100, 1000)


def on_grid(n_answers: int, n_users: int, gamma: str, seed: int, shape: tuple[int, ...] = SHAPE) -> dict[str, Any]:
    """EM to convergence, from one draw of random weights."""
    _fit_on_grid(500, 20, gamma, 0, (3, 3, 5), 3)  # compiles
    return _fit_on_grid(n_answers, n_users, gamma, seed, shape, N_CHARACTERISTICS)


def _fit_on_grid(
    n_answers: int, n_users: int, gamma: str, seed: int, shape: tuple[int, ...], n_c: int
) -> dict[str, Any]:
    crowd = grid_crowd(shape, n_answers, n_users, seed)
    mirrored = int(np.prod(shape)) - 1 - crowd.code
    code = np.maximum(crowd.code, mirrored)
    outcome = np.where(code == crowd.code, crowd.outcome, -crowd.outcome)
    places, point = np.unique(code, return_inverse=True)
    kernels = [Stationary(np.array([LENGTH_SCALE]), "squared-exponential")] * len(shape)
    record: dict[str, Any] = {"before_mb": peak_megabytes()}
    after: list[float] = []
    with threadpool_limits(1):
        began = time.process_time()
        basis = GridBasis.of(crowd.levels, kernels, places, amplitude=AMPLITUDE, antisymmetric=True)
        answers = TradeOffAnswers.of(crowd.user, point, outcome, n_users=n_users, n_points=len(places))
        start = random_weights(n_users, n_c, np.random.default_rng(seed))
        record["setup_cpu_s"] = time.process_time() - began
        found = run(
            basis, answers, start, FitSettings(gamma, max_rounds=MOST_ROUNDS),
            progress=lambda _: after.append(time.process_time() - began), with_evidence=False,
        )  # fmt: skip
        record["em_cpu_s"] = time.process_time() - began
        evidence = found.mode.psi - 0.5 * log_det_at(found.mode.state, 0)
        record["fit_cpu_s"] = time.process_time() - began
    rounds = found.report.iterations
    return record | {
        "peak_mb": peak_megabytes(), "n_grid": int(np.prod(shape)), "n_points": len(places), "rank": basis.rank,
        "n_answers": n_answers, "n_users": n_users, "rounds": rounds, "converged": found.report.converged,
        "residual": found.report.residual, "round_cpu_s": after[-1] / rounds, "evidence": evidence,
        "largest_weight": float(found.gamma.max(axis=1).mean()),
    }  # fmt: skip


def with_estimator(n_answers: int, n_users: int, model: str, seed: int) -> dict[str, Any]:
    """``predilect.GaSPK`` on items, and 10^6 predictions."""
    task = grid_items(HALVES, n_answers, n_users, seed, n_test=N_PREDICTIONS)
    return _fitted(task, model) | {"n_answers": n_answers, "n_users": n_users}


def on_planes(n_dimensions: int, levels: int, n_users: int, seed: int, own: bool = False) -> dict[str, Any]:
    """The paper's synthetic data."""
    task = utility_planes(n_dimensions, n_users, seed, own_instances=own)
    return _fitted(task, PLANE_MODEL.format(levels=levels)) | {"n_users": n_users}


def on_eigenpairs(task: str, model: str, seed: int) -> dict[str, Any]:
    """A task of the benchmarks."""
    return _fitted(find_loader(task)(seed), model)


def _fitted(task: Task, model: str) -> dict[str, Any]:
    warm_up(model)
    record: dict[str, Any] = {
        "model": model, "split_hash": task.split_hash, "train_answers": task.train.n_answers,
        "before_mb": peak_megabytes(),
    }  # fmt: skip
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")  # into the record
        began = time.process_time()
        fitted = build(model)(task)
        record["fit_cpu_s"] = time.process_time() - began
        record["fit_peak_mb"] = peak_megabytes()
        began = time.process_time()
        log_proba = fitted.log_proba(task.test)
        record["predict_cpu_s"] = time.process_time() - began
        record["predictions"] = task.test.n_rows
    scores = answer_scores(task.test, log_proba)
    record |= {key: scores[key] for key in ("accuracy", "log_loss", "calibration_error")}
    report = fitted.report()
    record["report"] = {
        "fit": report["fit"],
        **{key: report["prior"][key] for key in ("backend", "rank", "n_trade_offs", "grid") if key in report["prior"]},
    }
    return record | {"peak_mb": peak_megabytes(), "warnings": sorted({str(w.message) for w in caught})}


Job = tuple[dict[str, Any], Callable[..., dict[str, Any]], tuple[Any, ...]]


def _grid_jobs(seeds: int) -> Iterator[Job]:
    for gamma in GAMMAS:
        for size, (n, people) in SIZES.items():
            for seed in range(seeds if size != "1m" else 1):
                yield {"size": size, "gamma": gamma, "seed": seed}, on_grid, (n, people, gamma, seed)


def _estimator_jobs(seeds: int) -> Iterator[Job]:
    for model in ESTIMATORS:
        for size, (n, people) in SIZES.items():
            for seed in range(seeds if size != "1m" else 1):
                yield {"size": size, "line": model, "seed": seed}, with_estimator, (n, people, model, seed)


def _plane_jobs(seeds: int) -> Iterator[Job]:
    for d, levels, people in PLANES:
        for seed in range(seeds):
            what = {"dimensions": d, "levels": levels, "people": people, "seed": seed}
            yield {**what, "own": False}, on_planes, (d, levels, people, seed)
            if d == 6:
                yield {**what, "own": True}, partial(on_planes, own=True), (d, levels, people, seed)


def _eigenpair_jobs(seeds: int) -> Iterator[Job]:
    for task, options in EIGEN_TASKS.items():
        base = f"gaspk{options}@n_components=10@backend=grid@variance=3.0@variances="
        models = [f"{base}low-rank@n_eigenpairs={n}" for n in EIGENPAIRS]
        for model in [*models, f"{base}exact"]:
            for seed in range(seeds):
                yield {"task": task, "line": model, "seed": seed}, on_eigenpairs, (task, model, seed)


PARTS = {
    "grid": _grid_jobs, "estimator": _estimator_jobs, "planes": _plane_jobs, "eigenpairs": _eigenpair_jobs,
}  # fmt: skip
DEFAULT_SEEDS = {"grid": 1, "estimator": 1, "planes": 10, "eigenpairs": 20}


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, and write the page; exit code 1 if a run failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaspk_scaling", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="separated by commas; none only writes the page anew")
    parser.add_argument("--seeds", type=int, help=f"by default {DEFAULT_SEEDS}")
    parser.add_argument("--only", default="", help="runs whose description holds this text")
    parser.add_argument("--limit", type=float, default=1800.0, help="CPU seconds after which a run is ended")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--force", action="store_true", help="run again what is there already")
    given = parser.parse_args(arguments)
    path = given.out / "figures" / "gaspk-scaling.json"
    stored = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.is_file() else []
    records = {_key(r): r for r in stored}
    failed = 0
    for part in [] if given.parts == "none" else given.parts.split(","):
        for what, function, parameters in PARTS[part](given.seeds or DEFAULT_SEEDS[part]):
            place = {"part": part, **what}
            name = " ".join(map(str, place.values()))
            if given.only not in name or (not given.force and _key(place) in records):
                continue
            found = alone(function, *parameters, limit=given.limit)
            record = plain(place | found | {"provenance": provenance()})
            records[_key(place)] = record
            failed += "error" in record
            told = record.get("error") or f"{record['fit_cpu_s']:.2f} CPU s, peak {record['peak_mb']:.0f} MB"
            print(f"{name}: {told}", file=sys.stderr, flush=True)
            lines = ",\n".join(json.dumps(records[key], allow_nan=False) for key in sorted(records))
            write_whole({path: f'{{"runs": [\n{lines}\n]}}\n'})
    write_page(given.out)
    return 1 if failed else 0


def _key(record: dict[str, Any]) -> str:
    names = ("part", "size", "gamma", "task", "line", "dimensions", "levels", "people", "own")
    return json.dumps([record.get(name) for name in names] + [f"{record['seed']:03d}"])


if __name__ == "__main__":
    sys.exit(main())
