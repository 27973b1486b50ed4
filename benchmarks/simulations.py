"""``python -m benchmarks.simulations``: the simulations of crowdGPPL's Fig. 1, as JSON and as a figure.

    python -m benchmarks.simulations --reading code --which a,b --seeds 5 --models crowd-gppl,gppl,gppl@users=separate

Results are in ``results/figures/simulations-<reading>.json``, numbers and pictures on ``results/simulations.md``; runs
that are there are skipped (``--force``).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits

from benchmarks.datasets.simulated_crowds import SIMULATIONS, Crowd, draw, task_of
from benchmarks.measure import answer_scores, further_scores, taus, warm_up
from benchmarks.models import Fitted, build
from benchmarks.simulation_figure import PANELS, figure, markdown
from benchmarks.store import write_whole
from predilect._base.json import plain
from predilect.inference.factors.posterior import FactorPosterior

__all__ = ["recovery", "run"]

FloatArray = npt.NDArray[np.float64]
HERE = Path(__file__).parent / "results" / "figures"
# As many inducing points as in the papers' simulations.
MODELS = (
    "crowd-gppl@n_inducing=50,crowd-gppl@preset=paper@n_inducing=50,gppl@n_inducing=50,gppl@users=separate,population"
)


def run(crowd: Crowd, model: str, seed: int) -> dict[str, Any]:
    """Fit a model to a crowd, and compare it with the truth; see :func:`recovery` for the components."""
    task = task_of(crowd, seed=seed)
    record: dict[str, Any] = {"model": model, "seed": seed, "noise_rate": crowd.noise_rate}
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")  # into the record
        start = time.process_time()
        try:
            fitted = build(model)(task)
            record["fit_cpu_s"] = time.process_time() - start
            scores = answer_scores(task.test, fitted.log_proba(task.test))
            record |= {key: scores[key] for key in ("accuracy", "log_loss")}
            record["excess_log_loss"] = scores["log_loss"] - (task.oracle_log_loss or 0.0)
            assert task.gold is not None
            record |= taus(task, task.gold, fitted)
            consensus = further_scores(task, task.further["consensus"], fitted)
            record |= {f"consensus_{key}": consensus[key] for key in ("accuracy", "tau") if key in consensus}
            if len(crowd.components):
                found = components(fitted, crowd)
                if found is not None:
                    first, best = recovery(crowd.components, found)
                    record |= {"recovery_first": first, "recovery": best}
        except Exception as error:  # noqa: BLE001  that a model fails is a result
            record["error"] = f"{type(error).__name__}: {error}"
    record["warnings"] = sorted({str(w.message) for w in caught})
    return record


def components(fitted: Fitted, crowd: Crowd) -> FloatArray | None:
    """What a model takes for the components: its own, or the singular vectors of how people differ from their mean.

    :class:`predilect.CrowdGPPL` gives the posterior means of its components, the most important first; any other model
    only predicts utilities, and the right singular vectors of (people, items) are its components. None if people do not
    differ.
    """
    model = getattr(fitted, "model", None)
    posterior = getattr(model, "posterior_", None)
    if isinstance(posterior, FactorPosterior):
        values = posterior.projection.expand(posterior.v_mean)[_codes(model, len(crowd.places))]
        return np.asarray(values.T[np.argsort(-posterior.importances, kind="stable")], dtype=float)
    n_people, n_items = crowd.weights.shape[1], len(crowd.places)
    entries = pl.DataFrame(
        {"user": np.repeat(np.arange(n_people), n_items), "item": np.tile(np.arange(n_items), n_people)}
    )
    scores = fitted.scores(entries)
    if scores is None:
        return None
    f = scores.reshape(n_people, n_items)
    f = f - f.mean(axis=1, keepdims=True)
    f = f - f.mean(axis=0)
    _, size, vectors = np.linalg.svd(f, full_matrices=False)
    return vectors[size > 1e-8 * max(size[0], 1e-300)] if size[0] > 1e-8 else None


def _codes(model: Any, n_items: int) -> Any:
    return model.items_.codes(pl.Series(np.arange(n_items)))


def recovery(true: FloatArray, found: FloatArray) -> tuple[float, float]:
    """Mean |correlation| of true components with those found for them.

    Parameters
    ----------
    true : array, shape (C, n_items)
    found : array, shape (C', n_items)

    Returns
    -------
    first : float
        As the original code has it: each true component in turn takes the closest one that is left of the first C
        found; crowdgppl.md 4(f).
    best : float
        Assigned so that the sum is largest (Hungarian algorithm), among all found. Where fewer are found than there
        are, those without a partner count as 0, in both.
    """
    n = len(true)
    r = _correlations(true, found)
    left, picked = list(range(min(n, len(found)))), []
    for c in range(n):
        if left:
            closest = max(left, key=lambda k: r[c, k])
            picked.append(r[c, closest])
            left.remove(closest)
    rows, columns = linear_sum_assignment(r, maximize=True)
    return float(sum(picked) / n), float(r[rows, columns].sum() / n)


def _correlations(a: FloatArray, b: FloatArray) -> FloatArray:
    """|r| of the rows of a with those of b; 0 where a row is constant."""
    a, b = (x - x.mean(axis=1, keepdims=True) for x in (a, b))
    norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    r: FloatArray = np.abs(np.divide(a @ b.T, norms, out=np.zeros_like(norms), where=norms > 0))
    return r


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, and draw; exit code 1 if a run failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulations", description=__doc__)
    parser.add_argument("--reading", default="code", choices=list(SIMULATIONS))
    parser.add_argument("--which", default="a,b,c,d", help="simulations, separated by commas")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--seeds", type=int, default=25, help="how many draws (25, as in the papers)")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--force", action="store_true", help="run again what is there already")
    given = parser.parse_args(arguments)
    path = given.out / f"simulations-{given.reading}.json"
    records = {_key(r): r for r in stored(path)}
    failed = 0
    for model in given.models.split(","):
        build(model)
        warm_up(model)
        for which, name, seed in _wanted(given.reading, given.which.split(","), given.seeds):
            place = {"simulation": which, "setting": name}
            if not given.force and (which, name, model, seed) in records:
                continue
            record = plain(place | run(draw(SIMULATIONS[given.reading][which][name], seed), model, seed))
            records[_key(record)] = record
            failed += "error" in record
            told = record.get("error") or f"tau {record.get('tau_person', float('nan')):.3f}"
            print(f"{which} {name:14s} {model:30s} {seed}  {told}", file=sys.stderr, flush=True)
        lines = ",\n".join(json.dumps(records[key], allow_nan=False) for key in sorted(records))
        write_whole({path: f'{{"simulations": [\n{lines}\n]}}\n'})
    if records:
        figure(list(records.values()), given.reading, path.with_suffix(".svg"))
        readings = {reading: stored(given.out / f"simulations-{reading}.json") for reading in PANELS}
        write_whole({given.out.parent / "simulations.md": markdown({k: rows for k, rows in readings.items() if rows})})
    return 1 if failed else 0


def stored(path: Path) -> list[dict[str, Any]]:
    """Records of a file; none if it is not there."""
    return list(json.loads(path.read_text(encoding="utf-8"))["simulations"]) if path.is_file() else []


def _wanted(reading: str, which: Iterable[str], n_seeds: int) -> Iterable[tuple[str, str, int]]:
    return [(w, name, seed) for w in which for name in SIMULATIONS[reading][w] for seed in range(n_seeds)]


def _key(record: dict[str, Any]) -> tuple[str, str, str, int]:
    return record["simulation"], record["setting"], record["model"], record["seed"]


if __name__ == "__main__":
    sys.exit(main())
