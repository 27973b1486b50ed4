"""Act, ask or leave it to the person, on held-out answers: ``python -m benchmarks.decide``.

Each fifth of the people in turn is served: half of their answers, at most ten, are in the fit, with all answers of the
others; each of the rest is a decision. Settings are the defaults, and were fixed before the first look.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from threadpoolctl import threadpool_limits

from benchmarks.datasets import TASKS
from benchmarks.decide_figure import figure
from benchmarks.store import write_whole
from benchmarks.task import read_csv
from predilect import Comparisons
from predilect.data.splits import shuffled_place
from predilect.decisions.acting import weigh
from predilect.decisions.questions import choice_chances
from predilect.errors import ConvergenceWarning, DataWarning
from predilect.models.registry import estimator

RESULTS = Path(__file__).parent / "results"
DATA = ("amt-cars", "electricity", "uk-election-2010", "facebook-social")
# The last one needs attributes.
MODELS = {"GaSPK": "gaspk", "GPClassifier": "gp-classifier", "Population": "population", "MixedLogit": "mixed-logit"}
FOLDS, MOST_KNOWN = 5, 10
COSTS = np.geomspace(0.002, 1.0, 40)  # of a question about two, where a wrong act costs 1
SHOWN_COSTS = (0.05, 0.1, 0.2)
SHOWN_COVERAGES = (0.25, 0.5, 0.75, 0.9)
NEAR, LEAST_COVERAGE = 0.1, 0.1
SURE, ENOUGH, BAR = 0.9, 200, 0.02
SIGNS = 4000  # draws of the signs of people's differences
CURVE_HEAD = (
    "| data | model | decisions (people) | " + " | ".join(f"{c:.0%}" for c in SHOWN_COVERAGES)
    + " | acting always | largest excess over plain | by chance | over always |",
    "|---|---|---|" + "---|" * (len(SHOWN_COVERAGES) + 4),
)  # fmt: skip
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Choices:
    """Choices with a row an alternative: columns user, task, item and chosen (1 or 0), and attributes of the items."""

    rows: pl.DataFrame
    items: pl.DataFrame | None
    is_pairs: bool


def read(name: str) -> Choices:
    """All answers of a data set that prefer an item; without choices in which two alternatives are the same."""
    if name == "electricity":
        frame = read_csv(name, "choices_long.csv.gz")
        items = Comparisons.from_frame(frame).item_table
        assert items is not None
        frame = frame.join(items, on=[column for column in items.columns if column != "item"], how="left")
        rows = frame.select("user", "task", "item", chosen="choice")
        twice = rows.filter(pl.struct("user", "task", "item").is_duplicated()).select("user", "task").unique()
        return Choices(rows.join(twice, on=["user", "task"], how="anti"), items, is_pairs=False)
    task = TASKS[name](0)
    pairs = pl.concat([task.train.to_frame(), task.test.to_frame()]).filter(pl.col("outcome") != 0)
    pairs = pairs.select("user", "left", "right", "outcome").sort(pl.all()).with_row_index("task")
    sides = [pairs.select("user", "task", item=side, chosen=(pl.col("outcome") == sign).cast(pl.Int64))
             for side, sign in (("left", 1), ("right", -1))]  # fmt: skip
    return Choices(pl.concat(sides), task.items, is_pairs=True)


def split(rows: pl.DataFrame, fold: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What the fit knows, and the decisions."""
    tasks = rows.select("user", "task").unique().sort("user", "task")
    people, person = np.unique(tasks["user"].to_numpy(), return_inverse=True)
    served = np.random.default_rng(0).permutation(len(people)) % FOLDS == fold
    place, n = shuffled_place(person, len(people), np.random.default_rng([1, fold]))
    known = ~served[person] | (place < np.minimum(np.maximum(n // 2, 1), MOST_KNOWN)[person])
    kept = rows.join(tasks.with_columns(known=pl.Series(known)), on=["user", "task"], how="left").sort(
        "user", "task", "item"
    )
    return kept.filter("known").drop("known"), kept.filter(~pl.col("known")).drop("known")


def answers(known: pl.DataFrame, is_pairs: bool) -> Any:
    """What models are fitted to."""
    if not is_pairs:
        return Comparisons.from_frame(known.rename({"chosen": "choice"}))
    pair = known.group_by("user", "task", maintain_order=True).agg(
        left=pl.col("item").get(0), right=pl.col("item").get(1), winner=pl.col("item").get(pl.col("chosen").arg_max())
    )
    return Comparisons.from_frame(pair.drop("task"), reading={"side": False})


@dataclass(frozen=True)
class Judged:
    """Decisions: probabilities falling, and whether the person chose that option; (n, k), with zeros to fill up."""

    person: Array  # (n,)
    p: Array
    is_choice: Array
    plain: Array  # (n,) the largest probability at the mean utilities alone, and whether it was right
    plain_right: Array
    margin: Array  # (n,) what rises with it and does not round to 1

    @classmethod
    def joined(cls, parts: list[Judged]) -> Judged:
        """Of all folds."""
        names = ("person", "p", "is_choice", "plain", "plain_right", "margin")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def judged(model: Any, asked: pl.DataFrame) -> Judged:
    """Probabilities of the decisions under a fitted model."""
    asked = asked.sort("user", "task", "item")
    tasks = asked.group_by("user", "task", maintain_order=True).agg(pl.len(), first=pl.col("item").first())
    size = tasks["len"].to_numpy().astype(np.int64)
    begin = np.concatenate([[0], np.cumsum(size)[:-1]])
    row = np.repeat(np.arange(len(size)), size)
    column = np.arange(len(asked)) - begin[row]
    p, chosen, mean = (np.zeros((len(size), size.max())) for _ in range(3))
    absent = np.ones(p.shape, dtype=bool)
    absent[row, column] = False
    p[row, column] = model.predict_choice(asked.select("user", "task", "item"))
    chosen[row, column] = asked["chosen"].to_numpy()
    other = column > 0
    pairs = {"user": asked["user"].filter(pl.Series(other)), "left": asked["item"].filter(pl.Series(other)),
             "right": tasks["first"].gather(row[other])}  # fmt: skip
    mean[row[other], column[other]] = model.predict_margin(pairs)[0]
    plain = _at_mean(mean, absent, type(model).__name__ == "MixedLogit")
    best = np.arange(len(p)), plain.argmax(axis=1)
    order = np.argsort(-p, axis=1, kind="stable")
    sorted_p, sorted_chosen = np.take_along_axis(p, order, axis=1), np.take_along_axis(chosen, order, axis=1)
    margin = np.abs(mean[:, 1]) if mean.shape[1] == 2 else plain[best]
    found = Judged(tasks["user"].to_numpy(), sorted_p, sorted_chosen > 0, plain[best], chosen[best] > 0, margin)
    _check(model, asked, tasks, found)
    return found


def _at_mean(mean: Array, absent: Array, is_logit: bool) -> Array:
    """Choice probabilities if utilities were known to be their means."""
    if is_logit:
        e = np.where(absent, 0.0, np.exp(mean - mean.max(axis=1, keepdims=True)))
        return np.asarray(e / e.sum(axis=1, keepdims=True))
    return choice_chances(np.where(absent, -1e3, mean))


def _check(model: Any, asked: pl.DataFrame, tasks: pl.DataFrame, found: Judged) -> None:
    """``decide`` itself gives what is worked out here for all costs: a few of the decisions."""
    for place in range(0, len(tasks), max(1, len(tasks) // 5)):
        user, task = tasks.row(place)[:2]
        options = asked.filter((pl.col("user") == user) & (pl.col("task") == task))["item"].to_list()
        said = model.decide(user, options, cost_question=0.1)
        here = weigh(found.p[place, : len(options)], 1.0, 0.1)
        same = np.allclose(said.probabilities, found.p[place, : len(options)], atol=1e-9)
        if said.action != here.action or not same:
            raise AssertionError(f"decide says {said}, the benchmark {here}")


def acted(found: Judged, cost: float, cost_defer: float | None = None) -> tuple[Array, Array, Array]:
    """For one cost of a question: which are acts, which of all end wrong, and what each costs; (n,)."""
    act, wrong, spent = (np.zeros(len(found.p), dtype=kind) for kind in (bool, bool, float))
    for row, p in enumerate(found.p):
        k = int((p > 0.0).sum()) if p[-1] == 0.0 else len(p)
        weighed = weigh(p[: max(k, 2)], 1.0, cost, cost_defer)
        act[row] = weighed.action == "act"
        n = {"act": 1, "ask": weighed.n_asked, "defer": len(p)}[weighed.action]
        wrong[row] = not found.is_choice[row, :n].any()
        paid = weighed.costs[weighed.action] - weighed.losses[weighed.action]
        spent[row] = paid + wrong[row]
    return act, wrong, spent


def surest(score: Array, n: float) -> Array:
    """Weights, (n_rows,), of the n rows with the highest scores; those that tie for the last places share them."""
    order = np.sort(score)[::-1]
    if n <= 0:
        return np.zeros(len(score))
    edge = order[min(int(n), len(score)) - 1]
    above, level = score > edge, score == edge
    return np.asarray(above + level * (n - above.sum()) / level.sum())


def of_people(values: Array, person: Array) -> float:
    """Root of the sum of squares of people's sums: the standard error of a sum, people drawn anew."""
    _, code = np.unique(person, return_inverse=True)
    sums = np.bincount(code, values)
    return float(np.sqrt(sums @ sums))


def chance(gaps: Array) -> float:
    """How often the largest sum over people, in standard errors, is as high if their differences had random signs.

    Differences (n_points, n_people), of all points of a curve at once. The signs are drawn for people, whole.
    """
    size = np.sqrt(np.square(gaps).sum(axis=1))
    t = gaps[size > 0.0] / size[size > 0.0, None]
    if not len(t):
        return 1.0
    drawn = np.random.default_rng(0).choice([-1.0, 1.0], (SIGNS, t.shape[1])) @ t.T
    return float(np.mean(drawn.max(axis=1) >= t.sum(axis=1).max() - 1e-12))


def curve(found: Judged, narrowing: bool) -> tuple[list[dict[str, float]], float]:
    """Risk against coverage over all costs, and the :func:`chance` of its excess over the plain threshold.

    Without ``narrowing`` leaving it all to the person costs one question, so that an act is given up for that alone.
    """
    points, gaps = [], []
    _, person = np.unique(found.person, return_inverse=True)
    for cost in COSTS:
        act, wrong, _ = acted(found, cost, None if narrowing else cost)
        if not act.any():
            continue
        lost, plainly = act * wrong, surest(found.margin, act.sum()) * ~found.plain_right
        if act.mean() >= LEAST_COVERAGE:
            gaps.append(np.bincount(person, lost - plainly))
        points.append({
            "cost": float(cost), "coverage": float(act.mean()), "risk": float(lost.sum() / act.sum()),
            "plain": float(plainly.sum() / act.sum()),
            "gap_se": of_people(lost - plainly, found.person) / float(act.sum()),
        })  # fmt: skip
    return points, chance(np.array(gaps).reshape(len(gaps), -1))


def measured(found: Judged) -> dict[str, Any]:
    """The curve over all costs, what decisions cost, and the calibration of sure acts."""
    n, wrong_now = len(found.p), ~found.is_choice[:, 0]
    record: dict[str, Any] = {"decisions": n, "people": len(np.unique(found.person)), "always": float(wrong_now.mean())}
    record["curve"], record["chance"] = curve(found, narrowing=False)
    if found.p.shape[1] > 2:
        record["narrowed"], record["narrowed_chance"] = curve(found, narrowing=True)
    record["spent"] = {}
    most = np.log2((found.p > 0.0).sum(axis=1).clip(2))
    for cost in SHOWN_COSTS:
        act, _, spent = acted(found, cost)
        whole = np.where(found.p[:, 0] >= 1.0 - cost * most - 1e-12, wrong_now, cost * most)
        plainly = np.where(found.plain >= 1.0 - cost, ~found.plain_right, cost * most)
        fixed = np.where(found.plain >= SURE, ~found.plain_right, cost * most)
        gap = spent - plainly
        record["spent"][str(cost)] = {
            "act": float(act.mean()), "decide": float(spent.mean()), "whole": float(whole.mean()),
            "plain": float(plainly.mean()),
            "fixed": float(fixed.mean()), "always act": record["always"], "always ask": float((cost * most).mean()),
            "gap_se": of_people(gap - gap.mean(), found.person) / n,
        }  # fmt: skip
    sure = found.p[:, 0] >= SURE
    residual = (found.is_choice[:, 0] - found.p[:, 0])[sure]
    plainly_sure = found.plain >= SURE
    record["sure"] = {
        "n": int(sure.sum()), "stated": float(found.p[sure, 0].mean()) if sure.any() else None,
        "right": float(found.is_choice[sure, 0].mean()) if sure.any() else None,
        "se": of_people(residual, found.person[sure]) / max(int(sure.sum()), 1), "plain_n": int(plainly_sure.sum()),
        "plain_stated": float(found.plain[plainly_sure].mean()) if plainly_sure.any() else None,
        "plain_right": float(found.plain_right[plainly_sure].mean()) if plainly_sure.any() else None,
    }  # fmt: skip
    return record


def run(data: str, model: str) -> dict[str, Any]:
    """All folds of one model on one data set."""
    choices = read(data)
    parts, seconds = [], 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a default fit is judged as it comes
        warnings.simplefilter("ignore", DataWarning)  # people served may have no answers in the fit
        for fold in range(FOLDS):
            known, asked = split(choices.rows, fold)
            fitted = estimator(MODELS[model])()
            if "n_jobs" in fitted.get_params():
                fitted.set_params(n_jobs=1)
            told = answers(known, choices.is_pairs)
            began = time.process_time()
            fitted.fit(told, items=choices.items)
            seconds += time.process_time() - began
            parts.append(judged(fitted, asked))
    return {"data": data, "model": model, **measured(Judged.joined(parts)), "fit_cpu_s": seconds / FOLDS}


def _row_of_curve(record: dict[str, Any], points: list[dict[str, float]], by_chance: float) -> str:
    cells = []
    for coverage in SHOWN_COVERAGES:
        point = min(points, key=lambda point: abs(point["coverage"] - coverage))
        near = abs(point["coverage"] - coverage) < NEAR
        cells.append(f"{point['risk']:.3f} / {point['plain']:.3f}" if near else "")
    enough = [point for point in points if point["coverage"] >= LEAST_COVERAGE]
    worst = max(enough, key=lambda point: point["risk"] - point["plain"])
    sure = any(point["risk"] - point["plain"] > 2.0 * point["gap_se"] + 1e-12 for point in enough)
    excess = f"{worst['risk'] - worst['plain']:+.4f} ± {worst['gap_se']:.4f}"
    excess = f"**{excess}**" if sure else excess
    above = max(point["risk"] for point in enough) - record["always"]
    return (
        f"| {record['data']} | {record['model']} | {record['decisions']} ({record['people']}) | "
        + " | ".join(cells)
        + f" | {record['always']:.3f} | {excess} at {worst['coverage']:.0%} | {by_chance:.2f} | {above:+.4f} |"
    )


def page(records: list[dict[str, Any]]) -> str:
    """What is written to ``results/decide.md``."""
    lines = [
        "# Act, ask or leave it to the person", "",
        f"Each fifth of the people in turn is served: half of their answers, at most {MOST_KNOWN}, are in the fit, "
        "with all answers of the others; each of their other answers is a decision between its alternatives (two; four "
        "for electricity). Ties, and choices between two alternatives that are the same, are left out. Models at their "
        "defaults. A wrong act is one that takes what the person did not choose. Standard errors are over people.", "",
        "*plain*: a threshold on the largest probability of the same model at its mean utilities, as if these were "
        "known, set so that as many are acted on. A threshold on the probability of `predict_choice` is for two "
        "options the rule itself, since acting is best where cost_wrong (1 - p) is at most cost_question.", "",
        "![Share acted on against share wrong](figures/decide.svg)", "", "## Share of acts that are wrong", "",
        "By the share that is acted on, as the cost of a question varies: decide / plain. An act is given up for "
        "leaving the choice to the person, and for nothing else. The excess is the largest over plain where at least "
        f"{LEAST_COVERAGE:.0%} are acted on; in bold where one is beyond two standard errors. A largest of many is "
        "above 0 by chance: *by chance* is how often the largest excess of the whole curve, in standard errors, is as "
        f"high if every person's differences, at all shares at once, had a sign drawn at random ({SIGNS} draws). It "
        f"knows one row, not that there are {len(records)}.", "",
        *CURVE_HEAD,
    ]  # fmt: skip
    lines += [_row_of_curve(r, r["curve"], r["chance"]) for r in records]
    narrowed = [r for r in records if "narrowed" in r]
    if narrowed:
        lines += [
            "", "### Where a question about some of the options may be asked", "",
            "Here an act is also given up where a question about two of four settles nearly everything, however "
            "likely its option. That costs least (below), but the acts that stay are not those that are likeliest to "
            "be right: this is no curve of the same thing as plain's. (It stood first on this page until the "
            "comparison at equal terms, which was added after the first look and was called *whole*, took its "
            "place.)", "",
            *CURVE_HEAD, *(_row_of_curve(r, r["narrowed"], r["narrowed_chance"]) for r in narrowed),
        ]  # fmt: skip
    lines += [
        "", "## What a decision costs", "",
        "A wrong act costs 1, a question about two options as stated, about m options log2(m) as much. *whole*: decide "
        "without questions about some of the options; *plain*: act where the plain probability is at least 1 less the "
        f"cost of a question, else ask about all; *fixed*: where it is at least {SURE}. In bold the least.", "",
        "| data | model | question | acted on | decide | whole | plain | fixed | always act | always ask "
        "| decide - plain |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for r in records:
        for cost, told in r["spent"].items():
            ways = [told[name] for name in ("decide", "whole", "plain", "fixed", "always act", "always ask")]
            cells = [f"**{way:.4f}**" if way == min(ways) else f"{way:.4f}" for way in ways]
            lines.append(
                f"| {r['data']} | {r['model']} | {cost} | {told['act']:.0%} | " + " | ".join(cells)
                + f" | {told['decide'] - told['plain']:+.4f} ± {told['gap_se']:.4f} |"
            )  # fmt: skip
    lines += [
        "", f"## Acts with probability {SURE} and more", "",
        f"Stated is the mean probability; the bar is {BAR} between it and the share right, where there are {ENOUGH} or "
        "more. GPClassifier, the papers' baseline, is one process for everybody: it takes answers of one person for "
        "independent, and nothing calibrates it on people who were left out, as GaSPK and Population are.", "",
        "| data | model | acts | stated | right | right - stated | within the bar | plain: acts | stated | right |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for r in records:
        s = r["sure"]
        if not s["n"]:
            lines.append(f"| {r['data']} | {r['model']} | 0 | | | | | {s['plain_n']} | | |")
            continue
        gap = s["right"] - s["stated"]
        kept = ("yes" if abs(gap) <= BAR else "**no**") if s["n"] >= ENOUGH else "too few"
        plainly = f"{s['plain_stated']:.3f} | {s['plain_right']:.3f}" if s["plain_n"] else " | "
        lines.append(
            f"| {r['data']} | {r['model']} | {s['n']} | {s['stated']:.3f} | {s['right']:.3f} | {gap:+.3f} ± "
            f"{s['se']:.3f} | {kept} | {s['plain_n']} | {plainly} |"
        )
    seconds = ", ".join(f"{r['data']} {r['model']} {r['fit_cpu_s']:.1f}" for r in records)
    lines += [
        "", f"CPU seconds of a fit: {seconds}.", "",
        f"`python -m benchmarks.decide`, people shuffled by seed 0, their answers by seeds (1, fold); Python "
        f"{platform.python_version()}, predilect {version('predilect')}, NumPy {version('numpy')}, SciPy "
        f"{version('scipy')}, Numba {version('numba')}.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, then write the page and the picture."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decide", description=__doc__)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--force", action="store_true", help="run again what is there already")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    path = given.out / "decide.jsonl"
    (given.out / "figures").mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = {(r["data"], r["model"]): r for r in map(json.loads, lines)}
    with threadpool_limits(1):
        for data in given.data.split(","):
            for model in given.models.split(","):
                if model == "MixedLogit" and data == "facebook-social":
                    continue  # no attributes
                if given.force or (data, model) not in records:
                    records[data, model] = record = run(data, model)
                    told = {name: record[name] for name in ("data", "model", "always", "sure", "fit_cpu_s")}
                    print(told, file=sys.stderr, flush=True)
                    path.write_text("".join(json.dumps(r) + "\n" for r in records.values()), encoding="utf-8")
    found = sorted(records.values(), key=lambda r: (DATA.index(r["data"]), list(MODELS).index(r["model"])))
    figure(found, given.out / "figures" / "decide.svg")
    write_whole({path: "".join(json.dumps(r) + "\n" for r in found), given.out / "decide.md": page(found)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
