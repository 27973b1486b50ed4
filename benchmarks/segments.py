"""Segments of people that borrow, against separate fits and none: ``python -m benchmarks.segments``.

Simulated crowds whose people belong to segments. Judged by the expected log loss under the truth, of new questions to
the people of the fit and to strangers of whom the segment is known, and by how often 95 % intervals cover the truth.
The settings were fixed before the first run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from benchmarks.store import made_with, missing, read_lines, write_whole
from predilect import Population
from predilect.data import PersonFeatures
from predilect.errors import ConvergenceWarning, DataWarning

RESULTS = Path(__file__).parent / "results"
N_ITEMS, N_QUESTIONS, STRANGERS = 12, 20, 5  # questions a person; strangers a segment
CONSENSUS_SD, PERSON_SD = 0.8, 0.6
MODELS = ("borrowing", "separate fits", "no segments")
JUDGED = ("known", "strangers")
_UNEQUAL = (5,) * 10 + (20,) * 10 + (100,) * 3


@dataclass(frozen=True)
class Cell:
    """People of each segment, their answers, and the standard deviation of a segment's effect."""

    people: tuple[int, ...]
    answers: tuple[int, ...]  # of each person, taken in turn by the segments
    effect_sd: float


CELLS = {
    "25 of 20": Cell((20,) * 25, (10,), 0.5),
    "25 of 20, alike": Cell((20,) * 25, (10,), 0.0),
    "5, 20 and 100": Cell(_UNEQUAL, (10,), 0.5),
    "5, 20 and 100, some busy": Cell(_UNEQUAL, (4, 10, 25), 0.5),
    "half of the items": Cell(_UNEQUAL, (10,), 0.5),  # every other segment was asked about the first half only
}


class Crowd:
    """Answers of a simulated crowd, and the truth."""

    def __init__(self, name: str, seed: int) -> None:
        cell = CELLS[name]
        self.rng = rng = np.random.default_rng([seed, list(CELLS).index(name)])
        n_segments = len(cell.people)
        effects = cell.effect_sd * rng.standard_normal((n_segments, N_ITEMS))
        self.boards = CONSENSUS_SD * rng.standard_normal(N_ITEMS) + effects
        n_known = sum(cell.people)
        self.segment = np.concatenate(
            [np.repeat(np.arange(n_segments), cell.people), np.repeat(np.arange(n_segments), STRANGERS)]
        )
        self.people = {"known": np.arange(n_known), "strangers": np.arange(n_known, len(self.segment))}
        self.utilities = self.boards[self.segment] + PERSON_SD * rng.standard_normal((len(self.segment), N_ITEMS))
        self.differences = effects - np.average(effects, axis=0, weights=cell.people)
        user = np.repeat(self.people["known"], np.resize(cell.answers, n_segments)[self.segment[self.people["known"]]])
        halved = (self.segment[user] % 2 == 1) if name == "half of the items" else np.zeros(len(user), dtype=bool)
        left, right = self._pairs(user, np.where(halved, N_ITEMS // 2, N_ITEMS))
        self.answers = (user, left, right)
        z = self.utilities[user, left] - self.utilities[user, right]
        self.outcome = np.where(z + rng.standard_normal(len(z)) > 0.0, 1, -1)
        self.questions = {}
        for kind, people in self.people.items():
            asked = np.repeat(people, N_QUESTIONS)
            self.questions[kind] = (asked, *self._pairs(asked, np.full(len(asked), N_ITEMS)))

    def _pairs(self, user: Any, n_items: Any) -> tuple[Any, Any]:
        left = self.rng.integers(n_items)
        return left, (left + self.rng.integers(1, n_items)) % n_items

    @staticmethod
    def frame(user: Any, left: Any, right: Any) -> dict[str, list[str]]:
        """Columns of names."""
        return {
            "user": [f"u{code:04d}" for code in user], "left": [f"i{code:02d}" for code in left],
            "right": [f"i{code:02d}" for code in right],
        }  # fmt: skip

    def segments_of(self, kind: str) -> dict[str, list[str]]:
        """Table of people and their segments."""
        people = self.people[kind]
        return {"user": [f"u{u:04d}" for u in people], "segment": [f"s{self.segment[u]:02d}" for u in people]}

    def loss(self, kind: str, log_proba: Any) -> Any:
        """Expected log loss of each question under the truth, in nats."""
        user, left, right = self.questions[kind]
        z = self.utilities[user, left] - self.utilities[user, right]
        return -(np.exp(log_ndtr(z)) * log_proba[:, 0] + np.exp(log_ndtr(-z)) * log_proba[:, -1])


def run(name: str, seed: int, model: str) -> dict[str, Any]:
    """Fit and judge one model on one crowd."""
    crowd = Crowd(name, seed)
    began = time.process_time()
    losses: dict[str, Any] = {kind: np.empty(len(crowd.questions[kind][0])) for kind in JUDGED}
    record: dict[str, Any] = {"cell": name, "seed": seed, "model": model}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)  # that strangers have no answers
        whole = np.zeros(len(crowd.segment), dtype=int)
        for part in np.unique(parts := crowd.segment if model == "separate fits" else whole):
            users = None
            if model == "borrowing":
                users = PersonFeatures.from_frame(crowd.segments_of("known"), segments="segment")
            own = parts[crowd.answers[0]] == part
            answers = Crowd.frame(*(column[own] for column in crowd.answers))
            fitted = Population(random_state=0, n_jobs=1).fit(answers, crowd.outcome[own], people=users)
            for kind in JUDGED:
                asked = parts[crowd.questions[kind][0]] == part
                questions = Crowd.frame(*(column[asked] for column in crowd.questions[kind]))
                of = crowd.segments_of(kind) if model == "borrowing" else None
                log_proba = np.zeros((len(asked), 3))
                log_proba[asked] = fitted.predict_log_proba(questions, people=of)
                losses[kind][asked] = crowd.loss(kind, log_proba)[asked]
    record |= {kind: float(loss.mean()) for kind, loss in losses.items()}
    if model == "borrowing":
        record["coverage"] = _coverage(crowd, fitted, CELLS[name])
        record["effect_sd"] = fitted.hyperparameters_.segment_variances[0] ** 0.5
    return record | {"cpu_s": time.process_time() - began}


def _coverage(crowd: Crowd, fitted: Any, cell: Cell) -> dict[str, Any]:
    """By the size of a segment: scores, contrasts and differences within 95 % intervals; true and false findings."""
    table = fitted.segments()
    found: dict[str, Any] = {}
    left, right = np.triu_indices(N_ITEMS, 1)
    by_item = {name: np.empty(crowd.boards.shape) for name in ("mean", "sd", "difference", "difference_sd", "sure")}
    for row in table.sort("segment", "item").iter_rows(named=True):
        at = int(row["segment"][1:]), int(row["item"][1:])
        for name, values in by_item.items():
            values[at] = row["more_than_chance"] if name == "sure" else row[name]
    truth = crowd.boards - crowd.boards.mean(axis=1, keepdims=True)
    difference = crowd.differences - crowd.differences.mean(axis=1, keepdims=True)
    for size in sorted(set(cell.people)):
        of = np.flatnonzero(np.array(cell.people) == size)
        contrasts = 0
        for g in of:
            mean, var = fitted.posterior_.crowd(np.eye(len(cell.people))[g]).margins(left, right)
            contrasts += int((np.abs(mean - (truth[g, left] - truth[g, right])) < 1.96 * np.sqrt(var)).sum())
        sure = by_item["sure"][of] > 0.0
        # Of the wrong sign, or none at all.
        wrong = sure & (np.sign(by_item["difference"][of]) != np.sign(difference[of]))
        found[str(size)] = {
            "contrasts": contrasts / (len(of) * len(left)),
            "scores": float((np.abs(by_item["mean"] - truth)[of] < 1.96 * by_item["sd"][of]).mean()),
            "differences": float(
                (np.abs(by_item["difference"] - difference)[of] < 1.96 * by_item["difference_sd"][of]).mean()
            ),
            "findings": int(sure.sum()), "wrong": int(wrong.sum()),
        }  # fmt: skip
    return found


def page(records: list[dict[str, Any]]) -> str:
    """What is written to ``results/segments.md``."""
    lines = [
        "# Segments of people: what borrowing gains", "",
        f"Simulated crowds: {N_ITEMS} items, consensus N(0, {CONSENSUS_SD}²), segments' effects N(0, effect²), people "
        f"N(0, {PERSON_SD}²) about their segment. Expected log loss under the truth, nats an answer, of {N_QUESTIONS} "
        f"new questions to everybody, and to {STRANGERS} strangers a segment, of whom only the segment is known. "
        "Differences are paired by seed, mean ± standard error; negative: borrowing is better.", "",
        "| segments (people) | answers each | effect | asked | borrowing | separate fits | no segments "
        "| to separate fits | to no segments |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    by = {(r["cell"], r["model"], r["seed"]): r for r in records}
    seeds = sorted({r["seed"] for r in records})
    for name, cell in CELLS.items():
        for kind in JUDGED:
            loss = {m: np.array([by[name, m, s][kind] for s in seeds if (name, m, s) in by]) for m in MODELS}
            told = [f"{loss[m].mean():.4f}" if len(loss[m]) else "" for m in MODELS]
            ours = loss["borrowing"]
            told += [_paired(ours - loss[m]) if len(loss[m]) == len(ours) else "" for m in MODELS[1:]]
            answers = ", ".join(map(str, cell.answers))
            lines.append("| " + " | ".join([name, answers, f"{cell.effect_sd:g}", kind, *told]) + " |")
    lines += [
        "",
        "Shares of 95 % intervals that hold the truth: contrasts of two items on a segment's board, its scores, and "
        "its differences from the crowd; and how many differences are called more than chance (false discovery rate "
        "5 %), with those of the wrong sign, or, where segments are alike, all.", "",
        "| segments (people) | people of the segment | contrasts | scores | differences | more than chance | wrong | "
        "learned effect |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, cell in CELLS.items():
        runs = [r for r in records if r["cell"] == name and "coverage" in r]
        for size in sorted(set(cell.people)) if runs else []:
            told = [[r["coverage"][str(size)][key] for r in runs] for key in ("contrasts", "scores", "differences")]
            n_found, n_wrong = (sum(r["coverage"][str(size)][key] for r in runs) for key in ("findings", "wrong"))
            sd = np.mean([r["effect_sd"] for r in runs])
            lines.append(
                f"| {name} | {size} | " + " | ".join(f"{np.mean(x):.3f}" for x in told)
                + f" | {n_found} | {n_wrong} | {sd:.2f} |"
            )  # fmt: skip
    seconds = {m: np.mean([r["cpu_s"] for r in records if r["model"] == m]) for m in MODELS}
    lines += [
        "", f"Seeds {seeds[0]} to {seeds[-1]}. CPU seconds, fits and predictions: "
        + ", ".join(f"{m} {s:.1f}" for m, s in seconds.items()) + ".", "",
        made_with(f"python -m benchmarks.segments --seeds {len(seeds)}"), "",
    ]  # fmt: skip
    return "\n".join(lines)


def _paired(difference: Any) -> str:
    if len(difference) < 2:
        return f"{difference.mean():+.4f}"
    return f"{difference.mean():+.4f} ± {difference.std(ddof=1) / len(difference) ** 0.5:.4f}"


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.segments", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--cells", default=";".join(CELLS), help="with ; between them")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    path = given.out / "segments.jsonl"
    wanted = ((name, seed, model) for seed in range(given.seeds) for name in given.cells.split(";") for model in MODELS)
    for _, (record,) in missing(path, ("cell", "seed", "model"), wanted, run):
        print(record, file=sys.stderr, flush=True)
    records = read_lines(path)
    records.sort(key=lambda r: (list(CELLS).index(r["cell"]), r["seed"], MODELS.index(r["model"])))
    write_whole({path: "".join(json.dumps(r) + "\n" for r in records), given.out / "segments.md": page(records)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
