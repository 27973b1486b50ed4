"""Protocol A of Houlsby et al. 2012 (Tables 1 and 2): ``python -m benchmarks.houlsby``.

A hundred people, some random pairs of each for training and the others for the test: error of the sign of the margin,
and CPU seconds of a fit at one thread. Runs are kept as they are made, and made once.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from benchmarks.active import estimator
from benchmarks.datasets.all_pairs import DATA, OTHER_DATA, OTHER_HEAD, SECTIONS, introduction
from benchmarks.datasets.all_pairs import DIFFERENCES as OF_DATA
from benchmarks.in_short import IN_SHORT
from benchmarks.rounds import cases_of, gain, resume, sign_error
from benchmarks.splits import split_answers
from benchmarks.store import write_whole
from benchmarks.task import without_absent
from predilect.data import Comparisons
from predilect.errors import ConvergenceWarning
from predilect.show.report.folder import package_versions

__all__ = ["MODELS", "main", "split"]

HERE = Path(__file__).parent / "results"
N_PEOPLE, N_REPETITIONS = 100, 25
N_TRAIN = {"synthetic": 30, "synthetic-as-hard": 30, "movielens": 20, "sushi": 20, "jura": 15, "uk-election-2010": 20}
# Name in the paper, or ours: estimator with options.
MODELS = {
    "CPU": "CollaborativeGP@user_features=True",
    "CP": "CollaborativeGP",
    "CP (evidence)": "CollaborativeGP@length_scale=optimise",
    "CP (as published)": "CollaborativeGP@preset=paper",
    "CP (as published; evidence)": "CollaborativeGP@preset=paper@length_scale=optimise",
    "BI": "HierarchicalGP",
    "BO": "BonillaGP",
    "SU": "SingleUserGP",
    "GPVU": "GPVU",
    "GP classification": "GPClassifier",
    "Population": "Population",
}
# Test error and training seconds.
PUBLISHED = {
    "synthetic": {
        "CPU": (0.162, 7.8), "CP": (0.180, 9.5), "BI": (0.175, 22.5), "BO": (0.157, 311.6), "SU": (0.226, 0.9)
    },
    "movielens": {
        "CPU": (0.182, 5.3), "CP": (0.166, 4.0), "BI": (0.168, 19.4), "BO": (0.302, 69.0), "SU": (0.217, 0.6)
    },
    "sushi": {"CPU": (0.171, 5.7), "CP": (0.163, 4.3), "BI": (0.160, 20.0), "BO": (0.266, 215.1), "SU": (0.187, 0.8)},
    "jura": {"CPU": (0.159, 3.8), "CP": (0.153, 2.4), "BI": (0.153, 15.2), "BO": (0.254, 88.5), "SU": (0.181, 0.6)},
    "uk-election-2010": {
        "CPU": (0.199, 13.1), "CP": (0.123, 12.4), "BI": (0.077, 20.9), "BO": (0.401, 120.0), "SU": (0.300, 0.9)
    },
}  # fmt: skip
PUBLISHED["synthetic-as-hard"] = PUBLISHED["synthetic"]
DIFFERENCES = {
    "synthetic-as-hard": OF_DATA["synthetic-as-hard"],
    "synthetic": "100 of 1 000 people drawn from the model, 30 of their 45 pairs for training: five functions of ten "
    "items, weighed by five functions of the features of people, noise 1; five standard normal features of items and "
    "of people, squared exponentials at the median distance, variance 1: the paper does not say",
    "movielens": "MovieLens 100k, the ten most-rated movies, 100 of the 120 people with at least 20 pairs rated "
    "differently; 20 for training where there are more than 23, and all but 3 otherwise; the paper's movies are not "
    "known",
    "sushi": "set A; 100 of the 5 000 people drawn anew for each repetition, 20 of their 45 pairs for training",
    "jura": "100 of all 359 places, 15 of their 21 pairs for training; log concentrations, standardised: the paper "
    "does not say",
    "uk-election-2010": "100 of 632 constituencies, where the paper has 264 that are not known; parties that did not "
    "stand count as 0 votes, and pairs of two such parties are left out: at least 18 pairs a place, of which 20 are "
    "for training where there are more, and all but 3 otherwise",
}


def split(data: str, seed: int) -> tuple[Comparisons, Comparisons, dict[str, Any]]:
    """Training and test answers of a hundred people, and the features of items and people."""
    everything = DATA[data](seed)
    answers = everything.answers
    people = np.random.default_rng(seed).permutation(answers.n_users)[:N_PEOPLE]
    answers = without_absent(answers.take(np.isin(answers.user, people)))
    n_pairs = np.bincount(answers.user, minlength=answers.n_users)
    n_test = np.maximum(n_pairs - N_TRAIN[data], 3)
    test = np.zeros(answers.n_rows, dtype=bool)
    for n in np.unique(n_test).tolist():
        here = n_test[answers.user] == n
        _, held_out = split_answers(answers.take(here), n_test_per_person=n, random_state=seed)
        test[here] = held_out
    users = everything.users.filter(pl.col("user").is_in(list(answers.users.ids)))
    known = {"items": everything.items, "people": users}
    return answers.take(~test), answers.take(test), known


def run(case: dict[str, Any], command: str) -> list[dict[str, Any]]:
    """One fit of one model."""
    train, test, known = split(case["data"], case["seed"])
    model = estimator(MODELS[case["model"]])()
    _compile(MODELS[case["model"]])
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # "converged" of the record says it
        start = time.process_time()
        model.fit(train, **known)
        seconds = time.process_time() - start
        error = sign_error(model, test)["error"]
    log_loss = -float(model.score(test))
    converged = bool(model.report_.get("fit", {}).get("converged", True))
    told = {"error": error, "log_loss": log_loss, "fit_cpu_s": seconds, "converged": converged}
    return [told | {"estimator": MODELS[case["model"]], "versions": package_versions(), "command": command}]


@cache
def _compile(name: str) -> None:
    """Fit once to next to nothing: what is compiled on the way is not part of a fit."""
    answers = Comparisons.from_frame(
        {"user": [0, 0, 1, 1], "left": [0, 1, 0, 1], "right": [1, 2, 2, 2], "winner": ["left", "left", "left", "right"]}
    )
    users = {"user": [0, 1], "x": [0.0, 1.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit that nobody looks at
        estimator(name)().fit(answers, items={"item": [0, 1, 2], "x": [0.0, 1.0, 2.0]}, people=users)


def markdown(runs: list[dict[str, Any]]) -> str:
    """The tables."""
    lines = [
        "# A hundred people, a few pairs each", "", IN_SHORT["houlsby"], "",
        "Protocol A of Houlsby et al. 2012 (Tables 1 and 2): test error of the sign of the margin, log loss in nats an "
        "answer, and CPU seconds of a fit at one thread; means over repetitions ± standard error. The published "
        "seconds are of another machine. *CP (as published)* is the paper's algorithm (`preset=\"paper\"`), the other "
        "rows are ours. `python -m benchmarks.houlsby` makes this file from houlsby.jsonl.", "",
    ]  # fmt: skip
    for data in SECTIONS:
        here = [r for r in runs if r["data"] == data]
        if not here:
            continue
        compared = data not in OTHER_DATA
        head = ["model", "repetitions", "error", *["published"] * compared, "log loss", "seconds",
                *["published"] * compared, "not converged"]  # fmt: skip
        lines += [*introduction(data, DIFFERENCES[data]), f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for model in [name for name in MODELS if any(r["model"] == name for r in here)]:
            rounds = [r["rounds"][0] for r in here if r["model"] == model]
            error, seconds = _published(data, model)
            measured = [_mean(rounds, name) for name in ("error", "log_loss", "fit_cpu_s")]
            cells = [model, str(len(rounds)), measured[0], *[error] * compared, *measured[1:], *[seconds] * compared,
                     str(sum(not r["converged"] for r in rounds))]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join([*lines, *_evidence_lines(runs), *_other_lines()])


def _published(data: str, model: str) -> tuple[str, str]:
    """Test error and training seconds of the paper; empty where it has none."""
    found = PUBLISHED[data].get(model.partition(" (")[0])
    return (f"{found[0]:.3f}", f"{found[1]:.1f}") if found else ("", "")


def _other_lines() -> list[str]:
    rows = [
        f"| {data} | {model} | {' | '.join(_published(data, model))} |"
        for data in OTHER_DATA
        for model in PUBLISHED[data]
    ]
    return [*OTHER_HEAD, "| data | model | error | seconds |", "|---" * 4 + "|", *rows, ""]


def _evidence_lines(runs: list[dict[str, Any]]) -> list[str]:
    """What length-scales by the evidence gain over the median's, on the same splits."""
    head = [
        "## Length-scales by the evidence", "",
        "The paper has one length-scale for all features, the median distance; its evidence could choose. By how much "
        "error and log loss are lower (+) or higher (-) with the factor of the median's length-scale, from 1/8 to 8, "
        "that has the most evidence; ± standard error.", "",
        "| data | model | repetitions | error | log loss |", "|---" * 5 + "|",
    ]  # fmt: skip
    lines = []
    for data in DATA:
        for start, chosen in (("CP", "CP (evidence)"), ("CP (as published)", "CP (as published; evidence)")):
            one, other = ([r for r in runs if (r["data"], r["model"]) == (data, name)] for name in (chosen, start))
            found = [gain(one, other, measure) for measure in ("error", "log_loss")]
            if found[0].n:
                cells = " | ".join(f"{g.mean:+.4f} ± {g.standard_error:.4f}" for g in found)
                lines.append(f"| {data} | {start} | {found[0].n} | {cells} |")
    return [*head, *lines, ""] if lines else []


def _mean(rounds: list[dict[str, Any]], name: str) -> str:
    values = np.array([r[name] for r in rounds])
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}" if len(values) > 1 else ""
    return f"{values.mean():.4f}{error}"


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.houlsby", description=__doc__)
    parser.add_argument("--data", default=",".join(DATA), help=f"separated by commas; by default {', '.join(DATA)}")
    parser.add_argument("--models", default=",".join(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--repetitions", type=int, default=N_REPETITIONS, help="by default 25, as the paper has")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of houlsby.jsonl and houlsby.md")
    given = parser.parse_args(arguments)
    cases = [
        {"data": data, "model": model, "seed": seed}
        for data in given.data.split(",")
        for seed in range(given.repetitions)
        for model in given.models.split(",")
    ]
    unknown = {case["data"] for case in cases} - set(DATA) | {case["model"] for case in cases} - set(MODELS)
    if unknown:
        parser.error(f"not known: {', '.join(sorted(unknown))}")
    command = (
        f'python -m benchmarks.houlsby --data {given.data} --models "{given.models}" --repetitions {given.repetitions}'
    )

    def told(case: dict[str, Any]) -> list[dict[str, Any]]:
        rounds = run(case, command)
        found = rounds[0]
        print(f"{case}: error {found['error']:.4f}, {found['fit_cpu_s']:.2f} s", file=sys.stderr, flush=True)
        return rounds

    path = given.out / "houlsby.jsonl"
    cases += [case for case in cases_of(path) if case not in cases]
    write_whole({given.out / "houlsby.md": markdown(resume(path, cases, told))})
    return 0


if __name__ == "__main__":
    sys.exit(main())
