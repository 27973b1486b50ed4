"""``python -m benchmarks.vvm``: what compressing costs and gains (Abbasnejad, Bonilla and Sanner 2013, Figs. 2 and 3).

    python -m benchmarks.vvm --tasks synthetic,cars --repetitions 2
    python -m benchmarks.vvm --tasks none          # only the page and the figure

A joint process is fitted to 60 % of each person's answers; of every person's items a share is kept, by each criterion,
and the rest of the answers is predicted, and an item recommended, from what is kept. Hyper-parameters are learned on
the first repetition of a task, and fixed for the others. Results are in ``results/vvm``, one file a task; runs that are
there are skipped (``--force``). The page is ``results/vvm.md``.
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
from predilect.compression.losses import kept_of
from predilect.compression.model import compress
from predilect.compression.sparsify import people_of_model, sparsify
from predilect.errors import ConvergenceWarning
from predilect.models.joint.fit import JointAnswers, fit_joint_process

__all__ = ["CRITERIA", "SHARES", "recommendation_loss", "run", "speed"]

HERE = Path(__file__).parent / "results"
CRITERIA = ("voi", "ucb", "gp-ucb", "ivm", "adf", "random", "mean", "pairs")
SHARES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
N_REPETITIONS = 40
SPEED_ITEMS = (10, 20, 50)
NOISE = 3.0  # the paper's α; its β = 1 counts utilities in units of 1, ours in units of the noise
FloatArray = npt.NDArray[np.float64]


def estimator(**fixed: Any) -> Any:
    """The model that is compressed."""
    return JointGP(noise=NOISE, max_evaluations=25, **fixed)


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


def run(task: str, seed: int, settings: dict[str, Any] | None, marginals: str = "centred") -> Iterator[dict[str, Any]]:
    """Records of one repetition: the full model, and each criterion at each share.

    Parameters
    ----------
    task : str
    seed : int
    settings : dict or None
        Hyper-parameters of the first repetition; None: learn them.
    marginals : str
        As in :func:`predilect.compression.sparsify.sparsify`.
    """
    data = TASKS[task](seed)
    began = time.process_time()
    model = _learned(data) if settings is None else _fixed(data, settings)
    fit_seconds = time.process_time() - began
    users, left, right = data.test.user, data.test.left, data.test.right
    people, codes, best = people_of_model(model), np.arange(data.train.n_users), data.best

    def record(criterion: str, share: int, posterior: Any, seconds: float) -> dict[str, Any]:
        start = time.process_time()
        margin, _ = posterior.margins(users, left, right)
        predict_seconds = time.process_time() - start
        mean = np.array([posterior.person(user).mean for user in codes])
        kept = np.array([kept_of(posterior, user, mean.shape[1]) for user in codes.tolist()])
        return {
            "task": task, "model": f"{criterion}@{share}", "criterion": criterion, "share": share, "seed": seed,
            "zero_one": zero_one_loss(data, margin),
            "recommendation": recommendation_loss(best, np.where(kept, mean, -np.inf)),
            "recommendation_all": recommendation_loss(best, mean),
            "compress_seconds": seconds, "predict_seconds": predict_seconds, "n_test": len(margin),
            "fit_seconds": fit_seconds, "learned": settings is None, "settings": _settings(model),
        }  # fmt: skip

    yield record("full", 100, model.posterior_, 0.0)
    for criterion in CRITERIA:
        for share in SHARES:
            options: dict[str, Any] = {"random_state": seed}
            if criterion == "ucb":
                options["beta"] = NOISE  # the paper's 1
            elif criterion == "gp-ucb":
                options["ucb"] = "gp_ucb"
            start = time.process_time()
            found = sparsify(
                model, f"{share}%", criterion.removeprefix("gp-"), marginals=marginals, people=people, **options
            )
            yield record(criterion, share, found, time.process_time() - start)


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
        small = None if share is None else compress(model, f"{share}%", criterion="ucb")
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
    return estimator().fit(data.train, items=data.items, users=data.users)


def _fixed(data: Preferences, settings: dict[str, Any]) -> Any:
    """A fit at the hyper-parameters of another repetition."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # only its kernel is used
        model = estimator(n_tuning=0, max_iter=1).fit(data.train, items=data.items, users=data.users)
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
    parser.add_argument("--repetitions", type=int, default=N_REPETITIONS)
    parser.add_argument("--marginals", default="centred", choices=("centred", "raw"))
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--force", action="store_true", help="run again what is there already")
    given = parser.parse_args(None if arguments is None else list(arguments))
    store = Store(given.out / "vvm")
    tasks = [] if given.tasks == "none" else given.tasks.split(",")
    with threadpool_limits(1):
        for task in tasks:
            if task == "speed":
                for n_items in SPEED_ITEMS:
                    if given.force or not store.has("speed", f"{n_items}x200@full", 0):
                        for record in speed(n_items):
                            store.add(record)
                continue
            last = f"{CRITERIA[-1]}@{SHARES[-1]}"
            for seed in range(given.repetitions):
                if not given.force and store.has(task, last, seed):
                    continue
                first = store.records.get(task, {}).get(("full@100", 0))
                settings = None if seed == 0 or first is None else first["settings"]
                records = list(run(task, seed, settings, given.marginals))
                for record in records:
                    if seed:
                        record.pop("settings")
                    store.add(record)
                full = records[0]
                print(f"{task:10s} {seed:2d}  0/1 {full['zero_one']:.2f}  recommendation {full['recommendation']:.2f}  "
                      f"fit {full['fit_seconds']:.1f} s", file=sys.stderr, flush=True)  # fmt: skip
    write_page(given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
