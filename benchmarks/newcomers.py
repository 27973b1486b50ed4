"""Predictions for people whom the fit never saw: ``python -m benchmarks.newcomers``.

A sixth of the people is held out whole. Their questions are the same whether 0, 1, 3, 6 or 12 of their other answers
are known, which the model takes in by ``update``. Beside it stand the same model without calibration, the pooled model,
and the usual test answers of the people who stayed.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import TASKS
from benchmarks.metrics import CalibrationBins, calibration_bins, calibration_error
from benchmarks.store import made_with, missing, read_lines, write_whole
from benchmarks.task import Task, without_absent
from predilect import Population
from predilect.data import Comparisons
from predilect.errors import ConvergenceWarning, DataWarning
from predilect.evaluation import answer_losses
from predilect.inference.likelihoods.calibration import Calibration
from predilect.inference.people.posterior import PopulationPosterior

RESULTS = Path(__file__).parent / "results"
SHARE = 6  # one of so many people is held out
KNOWN = (0, 1, 3, 6, 12)
N_QUESTIONS = 20
DEFAULT_TASKS = (
    "movielens-10", "polis", "electricity", "facebook-social", "llmfao-responses", "llmfao-models", "sushi-a-small",
    "sushi-a15", "jura", "uk-election-2010", "amt-cars", "swissmetro", "tax-plans", "generator-10k",
)  # fmt: skip
MODELS = ("calibrated", "uncalibrated", "pooled")
STAYED = "stayed"

FloatArray = npt.NDArray[np.float64]


class Split(NamedTuple):
    """What is fitted, and what is asked of whom."""

    train: Comparisons  # of those who stay
    test: Comparisons  # of the same people
    known: Comparisons  # of the newcomers, every row one answer
    place: npt.NDArray[np.int64]  # (known.n_rows,): the how-manieth of its person it is, from 0
    questions: Comparisons  # of the newcomers


def split(task: Task) -> Split:
    """Draw newcomers by the task's seed.

    Up to half of a newcomer's answers may become known, and 20 of the rest are asked. No question is about the pair, or
    part of the choice, of an answer that may.
    """
    rng = np.random.default_rng([task.seed, SHARE])
    both = task.train.append(task.test)
    both = replace(both, weight=np.ones(both.n_rows))
    people = task.train.users
    newcomers = set(people.labels(rng.permutation(len(people))[: len(people) // SHARE]).tolist())
    first: list[int] = []
    place: list[int] = []
    asked: list[int] = []
    for code, user in enumerate(both.users.ids):
        if user not in newcomers:
            continue
        own = rng.permutation(np.arange(*both.user_offsets[code : code + 2]))
        # Which answers of the test set were one choice is not known.
        may = own if both.task is None else own[both.task[own] >= 0]
        taken = may[: min(max(KNOWN), len(own) // 2)]
        rest = own[~np.isin(own, taken)]
        pair = both.left.astype(np.int64) * both.n_items + both.right
        rest = rest[~np.isin(pair[rest], pair[taken])]
        if both.task is not None:
            rest = rest[~np.isin(both.task[rest], both.task[taken])]
        first += taken.tolist()
        place += range(len(taken))
        asked += rest[:N_QUESTIONS].tolist()
    order = np.argsort(first)

    def of_those_who_stay(rows: Comparisons) -> Comparisons:
        gone = np.array([user in newcomers or user not in people for user in rows.users.ids])
        return without_absent(rows.take(~gone[rows.user]))

    train, test = of_those_who_stay(task.train), of_those_who_stay(task.test)
    return Split(train, test, both.take(np.array(first)[order]), np.array(place)[order], both.take(np.array(asked)))


def losses(model: Population, rows: Comparisons, users: Any) -> tuple[FloatArray, FloatArray]:
    """Log loss of each row, and log-probabilities of left, tie and right."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # newcomers are meant to be new
        log_proba = np.asarray(model.predict_log_proba(rows, people=users))
    return answer_losses(rows.outcome, log_proba), log_proba


def uncalibrated(model: Population) -> Population:
    """The same model with the posterior's own margins."""
    plain, posterior = copy.copy(model), model.posterior_
    assert isinstance(posterior, PopulationPosterior)
    plain.posterior_ = replace(posterior, calibration=Calibration(tie_spread=posterior.calibration.tie_spread))
    return plain


def mean_over_people(loss: FloatArray, rows: Comparisons) -> list[float]:
    """Mean over answers, and its standard error with people as the sample."""
    total, n = (np.bincount(rows.user, w * rows.weight) for w in (loss, np.ones(rows.n_rows)))
    total, n = total[n > 0], n[n > 0]
    mean = total.sum() / n.sum()
    error = math.sqrt(((total - mean * n) ** 2).sum() * len(n) / max(len(n) - 1, 1)) / n.sum()
    return [float(mean), error]


def measured(models: dict[str, Population], rows: Comparisons, users: Any) -> dict[str, Any]:
    """Losses of the models on the same rows, differences from the first, and its calibration error."""
    found = {name: losses(model, rows, users) for name, model in models.items()}
    loss, log_proba = found[MODELS[0]]
    bins = calibration_bins(rows.outcome, log_proba, rows.weight)
    record: dict[str, Any] = {"people": len(np.unique(rows.user)), "questions": rows.n_answers}
    record |= {name: mean_over_people(one, rows) for name, (one, _) in found.items()}
    record |= {f"to {name}": mean_over_people(loss - found[name][0], rows) for name in MODELS[1:]}
    return record | {"bins": [column.tolist() for column in (bins.count, bins.confidence, bins.correct)]}


def run(name: str, seed: int, code: str) -> list[dict[str, Any]]:
    """Fit one split, and judge it step by step."""
    task = TASKS[name](seed)
    parts = split(task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # losses say how good a fit is
        began = time.process_time()
        model = Population(n_jobs=1).fit(parts.train, items=task.items, people=task.users)
        seconds = time.process_time() - began
        pooled = Population(personal=False, n_jobs=1).fit(parts.train, items=task.items)
    head = {"code": code, "task": name, "seed": seed, "fit_cpu_s": round(seconds, 3)}
    records = [{**head, "known": STAYED, **measured(_models(model, pooled), parts.test, task.users)}]
    before = 0
    for k in KNOWN:
        more = parts.known.take((parts.place >= before) & (parts.place < k))
        # New people's features must be about new people alone.
        if more.n_rows:
            model.update(without_absent(more), people=task.users)
        records.append({**head, "known": k, **measured(_models(model, pooled), parts.questions, task.users)})
        before = k
    return records


def _models(model: Population, pooled: Population) -> dict[str, Population]:
    return dict(zip(MODELS, (model, uncalibrated(model), pooled), strict=True))


def together(records: list[dict[str, Any]], name: str) -> tuple[float, float]:
    """Mean over seeds and its standard error over people; seeds share few newcomers, and are taken for independent."""
    pairs = np.array([record[name] for record in records])
    return float(pairs[:, 0].mean()), float(math.sqrt((pairs[:, 1] ** 2).sum()) / len(pairs))


def page(records: list[dict[str, Any]], command: str) -> str:
    """What is written to ``results/newcomers.md``."""
    lines = [
        "# Newcomers: people whom the fit never saw", "",
        f"One of {SHARE} people is held out whole; up to {N_QUESTIONS} questions of each, the same at every step; so "
        "many of their other answers (at most half of all) are known by `update`. Log loss in nats an answer, standard "
        f"error over people. *{STAYED}*: the usual test answers of the people who were fitted. *uncalibrated* is the "
        "same fit with the posterior's own margins. Differences are paired; negative is better than the other.", "",
    ]  # fmt: skip
    for code in sorted({r["code"] for r in records}):
        rows = []
        head = ["task", "seeds", "known", *MODELS, *(f"to {name}" for name in MODELS[1:]), "cal. error", "fit CPU s"]
        for task in DEFAULT_TASKS:
            for known in (*KNOWN, STAYED):
                some = [r for r in records if (r["code"], r["task"], r["known"]) == (code, task, known)]
                if not some:
                    continue
                error = calibration_error(CalibrationBins(*np.sum([r["bins"] for r in some], axis=0)))
                plain = [f"{together(some, name)[0]:.4f}" for name in MODELS]
                paired = ["{:+.4f} ± {:.4f}".format(*together(some, f"to {name}")) for name in MODELS[1:]]
                seeds = sorted(r["seed"] for r in some)
                cpu = f"{np.mean([r['fit_cpu_s'] for r in some]):.2f}" if known == STAYED else ""
                rows.append([task, f"{seeds[0]}-{seeds[-1]}", str(known), *plain, *paired, f"{error:.4f}", cpu])
        lines += [f"## {code}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(row) + " |" for row in rows] + [""]
    lines += [made_with(command), ""]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.newcomers", description=__doc__)
    parser.add_argument("--tasks", default=",".join(DEFAULT_TASKS))
    parser.add_argument("--seeds", type=int, default=10, help="0 to this less one (default 10)")
    parser.add_argument("--code", default="now", help="what the records are called, to compare two states of the code")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    path = given.out / "newcomers.jsonl"
    wanted = ((task, seed, given.code) for seed in range(given.seeds) for task in given.tasks.split(","))
    for (task, seed, _), found in missing(path, ("task", "seed", "code"), wanted, run):
        print(task, seed, *(f"{r['known']}: {r['calibrated'][0]:.4f}" for r in found), file=sys.stderr, flush=True)
    write_whole({given.out / "newcomers.md": page(read_lines(path), "python -m benchmarks.newcomers")})
    return 0


if __name__ == "__main__":
    sys.exit(main())
