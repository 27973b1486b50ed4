"""Learning from few questions: protocol B of Houlsby et al. 2012 (Table 3, Fig. 2): ``python -m benchmarks.active``.

Everybody starts with a few answers and is asked ten questions, each time the best of their own pool; after each round
the model is fitted again, or updated, and measured on answers held out. Runs are kept as they are made, and made once.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import predilect
from benchmarks.active_figure import figure
from benchmarks.datasets.all_pairs import DATA, DIFFERENCES, OTHER_DATA, OTHER_HEAD, SECTIONS, introduction
from benchmarks.in_short import IN_SHORT
from benchmarks.rounds import cases_of, curve, gain, play, pools_of, resume, sign_error
from benchmarks.store import write_whole
from predilect import Population
from predilect.data import Comparisons
from predilect.decisions.questions import STRATEGIES

HERE = Path(__file__).parent / "results"
N_ROUNDS = 10
# Test error after ten questions (Table 3): CP and SU, by strategy; the second column of its head is misprinted.
PUBLISHED = {
    "synthetic": {"CP": (0.153, 0.160, 0.173), "CPU": (0.135, 0.135, 0.139), "SU": (0.249, 0.259, 0.268)},
    "movielens": {"CP": (0.163, 0.170, 0.195), "CPU": (0.170, 0.176, 0.199), "SU": (0.225, 0.235, 0.248)},
    "sushi": {"CP": (0.144, 0.151, 0.176), "CPU": (0.148, 0.153, 0.178), "SU": (0.179, 0.197, 0.212)},
    "jura": {"CP": (0.138, 0.138, 0.169), "CPU": (0.143, 0.141, 0.168), "SU": (0.176, 0.166, 0.197)},
    "uk-election-2010": {"CP": (0.097, 0.093, 0.151), "CPU": (0.202, 0.158, 0.224), "SU": (0.332, 0.346, 0.338)},
}

PUBLISHED["synthetic-as-hard"] = PUBLISHED["synthetic"]


def estimator(name: str) -> Callable[[], Any]:
    """From ``Population@strength=10`` to what makes one; baselines are found too."""
    base, *pairs = name.split("@")
    kind = getattr(predilect.models, base, None) if base[:1].isupper() else None
    if kind is None or not hasattr(kind, "predict_margin"):
        raise ValueError(f"predilect has no estimator {base!r}")
    options = {key: _option(value) for key, value in (pair.split("=", 1) for pair in pairs)}
    if "n_jobs" in kind().get_params():
        options["n_jobs"] = 1
    return lambda: kind(**options)


def _option(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):  # a word
        return text


def as_found(model: Any) -> Any:
    """A model that is not fitted, with the hyper-parameters that a search found for a population."""
    if not isinstance(model, Population):
        return model.__class__(**model.get_params())
    h = model.hyperparameters_
    names = ("strength", "variance", "consensus_variance", "length_scale")
    found = {name: getattr(h, name) for name in names} | model._choices
    return Population(**(model.get_params() | found))


def losses(model: Any, test: Comparisons) -> dict[str, float]:
    """Share of answers that are not the sign of the margin, and log loss in nats an answer."""
    return sign_error(model, test) | {"log_loss": -float(model.score(test))}


def run(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Play one repetition."""
    data = DATA[case["data"]](case["seed"])
    name, _, how = case["model"].partition("+")
    make = estimator(name)
    known = {"items": data.items, "people": data.users}

    def learn(model: Any, new: Comparisons, everything: Comparisons) -> Any:
        if how == "update":
            return model.update(new)
        return (make() if how == "refit" else as_found(model)).fit(everything, **known)

    return play(
        pools_of(data.answers, data.n_start, data.n_test, case["seed"]), case["strategy"],
        fit=lambda start: make().fit(start, **known), learn=learn, measure=losses, n_rounds=N_ROUNDS,
        random_state=case["seed"],
    )  # fmt: skip


def markdown(runs: list[dict[str, Any]]) -> str:
    """The tables."""
    lines = [
        "# Learning from few questions", "", IN_SHORT["active"], "",
        "Protocol B of Houlsby et al. 2012: test error of the sign of the margin before and after ten questions of "
        "each person, mean over repetitions ± standard error, and log loss in nats an answer (in brackets of how many, "
        "where not of all). Better than random: by how much, on the same splits. Seconds: CPU, the whole run. A "
        "collaborative GP is CP, with features of people CPU; a single-user GP is SU. All are fitted again in each "
        "round as the protocol says: `Population+refit` chooses its prior anew, `Population` keeps that of its first "
        "fit, and `Population+update` only takes the answers in. `python -m benchmarks.active` makes this file.", "",
        "![Test error against questions asked](figures/active.png)", "",
    ]  # fmt: skip
    for data in SECTIONS:
        here = [r for r in runs if r["data"] == data]
        if not here:
            continue
        lines += [
            *introduction(data, DIFFERENCES[data]),
            "| model | strategy | repetitions | error before | after | better than random | log loss before | "
            "after | seconds |", "|---" * 9 + "|",
        ]  # fmt: skip
        curves = []
        for model in dict.fromkeys(r["model"] for r in here):
            for strategy in dict.fromkeys(r["strategy"] for r in here if r["model"] == model):
                part = [r for r in here if (r["model"], r["strategy"]) == (model, strategy)]
                random = [r for r in here if (r["model"], r["strategy"]) == (model, "random")]
                mean, error = curve(part)
                ahead = gain(part, random)
                better = "" if strategy == "random" or not ahead.n else _told(ahead.mean, ahead.standard_error)
                seconds = np.mean([sum(r["ask_cpu_s"] + r["learn_cpu_s"] for r in p["rounds"]) for p in part])
                lines.append(
                    f"| {model} | {strategy} | {len(part)} | {_told(mean[0], error[0])} | {_told(mean[-1], error[-1])} "
                    f"| {better} | {_log_losses(part)} | {seconds:.1f} |"
                )
                curves.append(f"| {model}, {strategy} | " + " | ".join(f"{value:.3f}" for value in mean) + " |")
        if data not in OTHER_DATA:
            lines += [
                f"| {model} (published) | {strategy} | 25 | | {error} | {better} | | | |"
                for model, strategy, error, better in _published(data)
            ]
        head = " | ".join(str(number) for number in range(N_ROUNDS + 1))
        lines += ["", f"| error after | {head} |", "|---" * (N_ROUNDS + 2) + "|", *curves, ""]
    lines += [*OTHER_HEAD, "| data | model | strategy | error after | better than random |", "|---" * 5 + "|"]
    lines += [f"| {data} | {' | '.join(cells)} |" for data in OTHER_DATA for cells in _published(data)]
    return "\n".join([*lines, ""])


def _published(data: str) -> list[tuple[str, str, str, str]]:
    """Model, strategy, error after ten questions, and by how much it is better than random ones."""
    return [
        (model, strategy, f"{number:.3f}", "" if strategy == "random" else f"{numbers[2] - number:.3f}")
        for model, numbers in PUBLISHED[data].items()
        for strategy, number in zip(("bald", "entropy", "random"), numbers, strict=True)
    ]


def _log_losses(runs: list[dict[str, Any]]) -> str:
    """Two cells, before and after, of the runs that kept them, with their number where some did not."""
    kept = [run for run in runs if all("log_loss" in record for record in run["rounds"])]
    if not kept:
        return " | "
    mean, error = curve(kept, "log_loss")
    fewer = f" ({len(kept)})" if len(kept) < len(runs) else ""
    return " | ".join(f"{_told(mean[k], error[k])}{fewer}" for k in (0, -1))


def _told(mean: float, error: float) -> str:
    """A mean with its standard error; of one run without."""
    return f"{mean:.4f}" if np.isnan(error) else f"{mean:.4f} ± {error:.4f}"


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.active", description=__doc__)
    parser.add_argument("--data", default=",".join(DATA), help=f"separated by commas; by default {', '.join(DATA)}")
    parser.add_argument(
        "--models", default="CollaborativeGP,CollaborativeGP@user_features=True,CollaborativeGP@preset=paper,"
        "CollaborativeGP@preset=paper@user_features=True,SingleUserGP,Population,Population+update,Population+refit",
        help="estimators of predilect with options as Population@strength=10, separated by commas; +update takes "
        "answers in where others are fitted again, a Population with the hyper-parameters of its first fit, or with "
        "+refit all anew",
    )  # fmt: skip
    parser.add_argument("--strategies", default="bald,entropy,random", help=f"of {', '.join(STRATEGIES)}")
    parser.add_argument("--repetitions", type=int, default=5, help="by default 5; the paper has 25")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of active.jsonl and active.md")
    given = parser.parse_args(arguments)
    cases = [
        {"data": data, "model": model, "strategy": strategy, "seed": seed}
        for data in given.data.split(",")
        for seed in range(given.repetitions)
        for model in given.models.split(",")
        for strategy in given.strategies.split(",")
    ]
    unknown = {case["data"] for case in cases} - set(DATA) | {case["strategy"] for case in cases} - set(STRATEGIES)
    if unknown:
        parser.error(f"not known: {', '.join(sorted(unknown))}")
    for model in {case["model"] for case in cases}:
        try:
            estimator(model.partition("+")[0])
        except ValueError as error:
            parser.error(str(error))

    def told(case: dict[str, Any]) -> list[dict[str, Any]]:
        rounds = list(run(case))
        print(f"{case}: error {rounds[0]['error']:.4f} -> {rounds[-1]['error']:.4f}", file=sys.stderr, flush=True)
        return rounds

    path = given.out / "active.jsonl"
    cases += [case for case in cases_of(path) if case not in cases]
    runs = sorted(resume(path, cases, told), key=lambda run: run["model"])  # whatever was asked for this time
    write_whole({given.out / "active.md": markdown(runs)})
    figure(runs, list(DATA), given.out / "figures" / "active.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
