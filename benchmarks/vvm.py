"""``python -m benchmarks.vvm``: what compressing costs and gains (Abbasnejad, Bonilla and Sanner 2013, Figs. 2 and 3).

    python -m benchmarks.vvm --tasks synthetic,cars --repetitions 2
    python -m benchmarks.vvm --tasks none          # only the page and the figure

A joint process is fitted to 60 % of each person's answers; of every person's items a share is kept, by each criterion,
and the rest of the answers is predicted, and an item recommended, from what is kept. Beside our own way of predicting
from it are the paper's: its Algorithm 1, and its baseline. Hyper-parameters are learned on the first repetition of a
task, and fixed for the others. Results are in ``results/vvm``, one file a task; runs that are there are skipped
(``--force``). The page is ``results/vvm.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.datasets.vvm import TASKS, Preferences
from benchmarks.store import Store
from benchmarks.vvm_page import write_page
from predilect import JointGP
from predilect.errors import ConvergenceWarning
from predilect.inference.gaussian.posterior import Utilities
from predilect.papers.compression import IVM, UCB, VOI, Pairs
from predilect.papers.compression.criteria import Criterion, Score, items_a_person
from predilect.papers.compression.posterior import ItemSelection
from predilect.papers.compression.sparsify import people_of_model, restrict, select
from predilect.papers.joint.fit import JointAnswers, fit_joint_process
from predilect.papers.joint.informative import items_of_answers, order_of_answers, vector_machine
from predilect.papers.joint.process import JointProcess

__all__ = ["CRITERIA", "PRINTED", "SHARES", "criteria_of", "recommendation_loss", "run", "speed"]

HERE = Path(__file__).parent / "results"
ALPHA = 3.0  # noise of an answer: β = 1 counts utilities in units of 1, ours are in units of the noise
CRITERIA = ("voi", "ucb", "gp-ucb", "ivm", "adf", "random", "mean", "pairs")
OURS: dict[str, Criterion] = {"voi": VOI(), "ucb": UCB(beta=ALPHA), "ivm": IVM(), "pairs": Pairs()}
# As the paper has them: its Algorithm 1 as printed, by marginals of utilities that are not centred and with what is
# kept of all people together, and its baseline, the informative vector machine, whose posterior is of active answers.
AS_PRINTED: dict[str, Criterion] = {
    "voi-printed": VOI(raw=True), "ucb-printed": UCB(beta=ALPHA, taylor=True, raw=True), "ivm-printed": IVM(raw=True),
}  # fmt: skip
PRINTED = (*AS_PRINTED, "ivm-machine")
# Both hold matrices of all people's items: not run where that would take hours.
DENSE = {"synthetic": (PRINTED, 100), "cars": (PRINTED, 100), "facebook": (PRINTED, 50), "llmfao": ((), 0)}
SHARES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
N_REPETITIONS = 40
SPEED_ITEMS = (10, 20, 50)
_SAME = 1e-6  # per cent
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def estimator(**fixed: Any) -> Any:
    """The model that is compressed."""
    return JointGP(noise=ALPHA, max_evaluations=25, **fixed)


def control(name: str, seed: int) -> Score:
    """Scores that nobody proposes: "random" ones, the "mean", and the mean plus a standard deviation ("gp-ucb")."""
    rng = np.random.default_rng(seed)

    def of_person(user: int, utilities: Utilities) -> FloatArray:
        mean, var = utilities.centred_marginals()
        return {"random": rng.random(len(mean)), "mean": mean, "gp-ucb": mean + np.sqrt(np.maximum(var, 0.0))}[name]

    return of_person


def recommendation_loss(best: npt.NDArray[np.bool_], mean: FloatArray) -> float:
    """100 |{x in T* not in T}| / n_items, the mean over people.

    Parameters
    ----------
    best : bool array, shape (n_users, n_items)
        T of each person.
    mean : array of float, shape (n_users, n_items)
        T* are the items with the largest posterior mean, all of them where there are several.
    """
    chosen = mean >= mean.max(axis=1, keepdims=True)
    return float(100.0 * np.mean((chosen & ~best).sum(axis=1) / best.shape[1]))


def zero_one_loss(data: Preferences, margin: FloatArray) -> float:
    """Per cent of test answers predicted wrong; ties are left out, and a margin of 0 is half wrong."""
    strict = data.test.outcome != 0
    said = np.sign(margin[strict]) * data.test.outcome[strict]
    return float(50.0 * np.average(1.0 - said, weights=data.test.weight[strict]))


def criteria_of(task: str) -> dict[str, tuple[str, int]]:
    """Criterion and share of all runs of a task by their names, the full model first."""
    printed, most = DENSE.get(task, (PRINTED, 100))
    found = {"full@100": ("full", 100)}
    for criterion in (*CRITERIA, *printed):
        shares = SHARES if criterion in CRITERIA else [share for share in SHARES if share <= most]
        found |= {f"{criterion}@{share}": (criterion, share) for share in shares}
    return found


def run(
    task: str,
    seed: int,
    settings: dict[str, Any] | None,
    wanted: Iterable[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Records of one repetition: the full model, and each criterion at each share.

    Parameters
    ----------
    task : str
    seed : int
    settings : dict or None
        Hyper-parameters of the first repetition; None: learn them.
    wanted : iterable of str, optional
        Names of the runs besides the full model; by default all of :func:`criteria_of`.
    """
    data = TASKS[task](seed)
    began = time.process_time()
    model = _learned(data) if settings is None else _fixed(data, settings)
    fit_seconds = time.process_time() - began
    users, left, right = data.test.user, data.test.left, data.test.right
    people, codes, best = people_of_model(model), np.arange(data.train.n_users), data.best
    order = order_of_answers(model)

    def record(criterion: str, share: int, mean: FloatArray, kept: BoolArray, seconds: float) -> dict[str, Any]:
        return {
            "task": task, "model": f"{criterion}@{share}", "criterion": criterion, "share": share, "seed": seed,
            "zero_one": zero_one_loss(data, mean[users, left] - mean[users, right]),
            "recommendation": recommendation_loss(best, np.where(kept, mean, -np.inf)),
            "recommendation_all": recommendation_loss(best, mean),
            "compress_seconds": seconds, "n_test": len(users),
            "fit_seconds": fit_seconds, "learned": settings is None, "settings": _settings(model),
        }  # fmt: skip

    def means(posterior: Any) -> FloatArray:
        return np.array([posterior.person(user).mean for user in codes])

    everything = np.ones(best.shape, dtype=bool)
    yield record("full", 100, means(model.posterior_), everything, 0.0)
    for criterion, share in [criteria_of(task)[name] for name in (criteria_of(task) if wanted is None else wanted)]:
        if criterion == "full":
            continue
        start = time.process_time()
        if criterion == "ivm-machine":  # all that the active answers say, of items too for which there was no room
            found, items = vector_machine(model, items_a_person(f"{share}%", best.shape[1]))
            selection = ItemSelection.of(items)
        else:
            if criterion == "adf":
                r = items_a_person(f"{share}%", best.shape[1])
                selection = ItemSelection.of(items_of_answers(model, r, order))
            else:
                how = OURS.get(criterion) or AS_PRINTED.get(criterion) or control(criterion, seed)
                selection = select(model, f"{share}%", how, people=people)
            found = restrict(model, selection, local=criterion not in PRINTED, people=people)
        seconds = time.process_time() - start
        kept = np.zeros_like(everything)
        kept[selection.users, selection.items] = True
        mean = _means_of_process(found) if criterion in PRINTED else means(found)
        yield record(criterion, share, mean, kept, seconds)


def _means_of_process(process: JointProcess) -> FloatArray:
    """Means of everybody's utilities, (n_users, n_items); without the covariances that ``persons`` has too."""
    user, item = process.rows.codes.astype(np.int64).T
    of_users, of_items = process.kernel.users.covariance()[:, user], process.kernel.items.covariance()[:, item]
    return np.asarray((of_users * process.alpha) @ of_items.T)


def speed(n_items: int, n_users: int = 200, n_answers: int = 3000, n_pairs: int = 2000) -> Iterator[dict[str, Any]]:
    """Records of time and size: the full model and shares of its items, on simulated people (Fig. 3)."""
    data = TASKS["synthetic"](0, n_users=n_users, n_items=n_items, n_answers=n_answers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few iterations do not converge, which does not matter to time and size
        model = estimator(n_tuning=0, max_iter=5).fit(data.train)
    rng = np.random.default_rng(1)
    users = rng.integers(0, len(model.users_), n_pairs)
    left = rng.integers(0, n_items, n_pairs)
    right = (left + rng.integers(1, n_items, n_pairs)) % n_items
    for share in (None, 10, 20, 50, 100):
        start = time.process_time()
        small = None if share is None else model.compress(f"{share}%", criterion="ucb")
        seconds = time.process_time() - start
        posterior = model.posterior_ if small is None else small.posterior_
        start = time.process_time()
        posterior.margins(users, left, right)
        predict_seconds = time.process_time() - start
        told = None if small is None else small.report_["compressed"]
        yield {
            "task": "speed", "model": f"{n_items}x{n_users}@{share or 'full'}", "seed": 0, "n_items": n_items,
            "n_users": len(model.users_), "share": share, "n_answers": int(model.n_answers_),
            "compress_seconds": seconds, "microseconds_a_pair": 1e6 * predict_seconds / n_pairs,
            "bytes": told and told["bytes"], "bytes_full": told and told["bytes_full"],
        }  # fmt: skip


def _learned(data: Preferences) -> Any:
    return estimator().fit(data.train, items=data.items, people=data.users)


def _fixed(data: Preferences, settings: dict[str, Any]) -> Any:
    """A fit at the hyper-parameters of another repetition."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # only its kernel is used: nothing is to be learned
        threshold = 1.0 if data.train.has_ties else 0.0
        model = estimator(n_tuning=0, max_iter=1, tie_threshold=threshold).fit(
            data.train, items=data.items, people=data.users
        )
    kernel = model.posterior_.kernel.with_theta(np.log(np.array(settings["values"])))
    if kernel.names != tuple(settings["names"]):
        raise ValueError(f"hyper-parameters {settings['names']} of another model than {kernel.names}")
    rows = data.train
    answers = JointAnswers(rows.user, rows.left, rows.right, rows.outcome, rows.weight)
    found = fit_joint_process(kernel, answers, delta=None if rows.has_ties else 0.0)
    model.posterior_, model.tie_threshold_ = found.posterior, found.delta
    return model


def _settings(model: Any) -> dict[str, Any]:
    kernel = model.posterior_.kernel
    return {"names": list(kernel.names), "values": np.exp(kernel.theta).tolist()}


def main(arguments: Iterable[str] | None = None) -> int:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vvm", description=__doc__)
    parser.add_argument("--tasks", default=",".join((*TASKS, "speed")), help="separated by commas; none: the page only")
    parser.add_argument("--criteria", default=",".join((*CRITERIA, *PRINTED)), help="separated by commas")
    parser.add_argument("--repetitions", type=int, default=N_REPETITIONS)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--force", action="store_true", help="run again what is there already")
    given = parser.parse_args(None if arguments is None else list(arguments))
    store = Store(given.out / "vvm")
    wanted = given.criteria.split(",")
    tasks = [] if given.tasks == "none" else given.tasks.split(",")
    with threadpool_limits(1):
        for task in tasks:
            if task == "speed":
                for n_items in SPEED_ITEMS:
                    if given.force or not store.has("speed", f"{n_items}x200@full", 0):
                        for record in speed(n_items):
                            store.add(record)
                continue
            names = [name for name, (what, _) in criteria_of(task).items() if what in ("full", *wanted)]
            for seed in range(given.repetitions):
                missing = [name for name in names if given.force or not store.has(task, name, seed)]
                if not missing:
                    continue
                first = store.records.get(task, {}).get(("full@100", 0))
                learn = first is None or (given.force and not seed)
                records = list(run(task, seed, None if learn else first["settings"], missing))
                full, before = records[0], store.records.get(task, {}).get(("full@100", seed))
                if not given.force and before and abs(before["zero_one"] - full["zero_one"]) > _SAME:
                    raise SystemExit(f"{task} {seed}: the model has changed since the runs that are there. Use --force")
                for record in records if "full@100" in missing else records[1:]:
                    if seed:
                        record.pop("settings")
                    store.add(record)
                print(f"{task:10s} {seed:2d}  0/1 {full['zero_one']:.2f}  recommendation {full['recommendation']:.2f}  "
                      f"fit {full['fit_seconds']:.1f} s", file=sys.stderr, flush=True)  # fmt: skip
    write_page(given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
