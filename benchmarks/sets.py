"""Answers about several alternatives, taken as they are and as pairs: ``python -m benchmarks.sets``.

Electricity: two choices of each person held out, the last ones or random ones (seeds 1 to 6); log loss is that of the
choice, over its four alternatives, in nats, and a hit is a choice that was likeliest. Sushi: whole orders of the ten
items of set A, a sixth of the people held out, of whom the order of three items becomes known by ``update``; log loss
of pairs of the others, and of the best of the rest. "pairs" is the same model with each row for an answer of its own.
Pairs of the order that is known in part share its noise, which a model of new answers takes for fresh, and one that
takes noise for taste does not; simulated people give a second order, in which that is told apart.
"""

from __future__ import annotations

import argparse
import platform
import time
from dataclasses import replace
from importlib.metadata import version
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from threadpoolctl import threadpool_limits

from benchmarks.store import write_whole
from benchmarks.task import read_csv
from predilect import Comparisons, Population

RESULTS = Path(__file__).parent / "results" / "sets.md"
N_HELD_OUT, SPLITS = 2, ("last", "1", "2", "3", "4", "5", "6")
KNOWN, SHARE = 3, 6
Losses = npt.NDArray[np.float64]
Orders = npt.NDArray[np.int64]


def held_out(frame: pl.DataFrame, split: str) -> pl.Series:
    """Which rows are of the choices that a split holds out, of a table with a row an alternative."""
    tasks = frame.select("user", "task").unique().sort("user", "task")
    chance = np.random.default_rng(0 if split == "last" else int(split)).random(len(tasks))
    tasks = tasks.with_columns(place=-pl.col("task").cast(pl.Float64) if split == "last" else pl.Series(chance))
    tasks = tasks.with_columns(out=pl.col("place").rank("ordinal").over("user") <= N_HELD_OUT)
    return frame.join(tasks, on=["user", "task"], how="left", maintain_order="left")["out"]


def read(frame: dict[str, Any] | pl.DataFrame, taken: str, **options: Any) -> Comparisons:
    """Answers as they are, or their rows as pairs that were only asked together."""
    found = Comparisons.from_frame(frame, **options)
    if taken == "as they are":
        return found
    return Comparisons.from_frame(found.to_frame(), columns={"task": "task"}, reading={"side": False, "kind": "pairs"})


def electricity(split: str, taken: str) -> tuple[float, float, Losses, Losses]:
    """CPU s of the fit, hit rate, log loss of each choice held out, and who made it."""
    frame = read_csv("electricity", "choices_long.csv.gz")
    items = Comparisons.from_frame(frame).item_table
    assert items is not None
    attributes = [name for name in items.columns if name != "item"]
    frame = frame.join(items, on=attributes, how="left", maintain_order="left")
    out = held_out(frame, split)
    asked = frame.filter(out)
    answers = read(frame.filter(~out).drop(attributes, "alt"), taken)
    began = time.process_time()
    model = Population(basis="attributes", n_jobs=1).fit(answers, items=items)
    seconds = time.process_time() - began
    asked = asked.filter(~pl.struct("user", "task", "item").is_duplicated())
    p = model.predict_choice(asked.select("user", "task", "item"))
    table = asked.with_columns(p=pl.Series(p))
    hit = table.group_by("user", "task").agg(pl.col("choice").get(pl.col("p").arg_max()))["choice"].mean()
    chosen = table.filter(pl.col("choice") == 1)
    return seconds, float(hit), -np.log(chosen["p"].to_numpy()), chosen["user"].to_numpy()  # type: ignore[arg-type]


def simulated() -> tuple[Orders, Orders]:
    """Two orders of ten items by each of 5 000 people, with noise of their own."""
    rng = np.random.default_rng(7)
    tastes = rng.normal(size=(10, 10)) * 0.27
    f = rng.normal(size=10) * 0.6 + rng.normal(size=(5_000, 10)) @ tastes.T
    first, second = (np.argsort(-(f + rng.normal(size=f.shape) * np.sqrt(0.5)), axis=1) for _ in range(2))
    return first, second


def whole_orders(taken: str, orders: Orders, asked: Orders) -> tuple[float, Losses, Losses]:
    """CPU s of the fit, and log losses of pairs and of the best of the rest in ``asked``, by person held out."""
    people = np.random.default_rng(0).permutation(len(orders))
    test, train = np.split(people, [len(people) // SHARE])
    rng = np.random.default_rng(1)

    def rows(users: Any, told: Any) -> dict[str, list[Any]]:
        every = [(f"p{user:04d}", 0, f"i{a:03d}", f"i{b:03d}")
                 for user, order in zip(users, told, strict=True)
                 for a, b in (pairwise(order) if taken == "as they are" else combinations(order, 2))]  # fmt: skip
        user, task, left, right = map(list, zip(*every, strict=True))
        return {"user": user, "task": task, "left": left, "right": right, "winner": left}

    def answers(users: Any, told: Any) -> Comparisons:
        found = Comparisons.from_frame(
            rows(users, told), columns={"task": "task"}, reading={"side": False, "kind": "pairs"}
        )
        return replace(found, joint=taken == "as they are")

    began = time.process_time()
    model = Population(n_jobs=1).fit(answers(train, orders[train]))
    seconds = time.process_time() - began
    shown = [set(rng.permutation(np.sort(order))[:KNOWN].tolist()) for order in orders[test]]
    known = [[item for item in order if item in some] for order, some in zip(orders[test], shown, strict=True)]
    model.update(answers(test, known))
    pairs: dict[str, list[str]] = {"user": [], "left": [], "right": []}
    sets: dict[str, list[Any]] = {"user": [], "task": [], "item": []}
    for user, order, told in zip(test, asked[test], known, strict=True):
        for a, b in combinations(order, 2):
            if a not in told or b not in told:
                for name, value in zip(pairs, (f"p{user:04d}", f"i{a:03d}", f"i{b:03d}"), strict=True):
                    pairs[name].append(value)
        for item in order:
            if item not in told:
                for name, value in zip(sets, (f"p{user:04d}", 0, f"i{item:03d}"), strict=True):
                    sets[name].append(value)
    of_pairs = -model.predict_log_proba(pairs)[:, 0].reshape(len(test), -1).mean(axis=1)
    of_best = -np.log(model.predict_choice(sets).reshape(len(test), -1)[:, 0])
    return seconds, of_pairs, of_best


def difference(one: Losses, other: Losses, groups: Losses | None = None) -> str:
    """Mean of paired differences, with its standard error clustered by group."""
    gain = one - other
    if groups is not None:
        _, place = np.unique(groups, return_inverse=True)
        sums = np.bincount(place, gain - gain.mean())
        error = float(np.sqrt(sums @ sums)) / len(gain)
    else:
        error = float(gain.std() / np.sqrt(len(gain)))
    return f"{gain.mean():+.4f} ± {error:.4f}"


def main() -> None:
    """Run all, and write the page."""
    argparse.ArgumentParser(prog="python -m benchmarks.sets", description=__doc__).parse_args()
    lines = ["| electricity, held out | hit rate | log loss | as pairs | as they are - pairs | CPU s |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    with threadpool_limits(1):
        for split in SPLITS:
            seconds, hit, loss, who = electricity(split, "as they are")
            _, hit_pairs, loss_pairs, _ = electricity(split, "pairs")
            what = "the last two" if split == "last" else f"two at random, seed {split}"
            lines.append(f"| {what} | {hit:.3f} | {loss.mean():.4f} | {hit_pairs:.3f} / {loss_pairs.mean():.4f} | "
                         f"{difference(loss, loss_pairs, who)} | {seconds:.1f} |")  # fmt: skip
            print(lines[-1], flush=True)
        lines += ["", "| orders of ten | log loss of pairs, as they are | as all pairs | difference | of the best of "
                  "the rest | CPU s, as they are | as all pairs |", "|---|---|---|---|---|---|---|"]  # fmt: skip
        sushi = read_csv("sushi", "rankings_a.csv").select(pl.exclude("user")).to_numpy()
        first, second = simulated()
        for what, orders, asked in (
            ("sushi, the order known in part", sushi, sushi),
            ("simulated, the order known in part", first, first),
            ("simulated, another order", first, second),
        ):
            seconds, one, one_best = whole_orders("as they are", orders, asked)
            seconds_pairs, other, other_best = whole_orders("pairs", orders, asked)
            lines.append(f"| {what} | {one.mean():.4f} | {other.mean():.4f} | {difference(one, other)} | "
                         f"{difference(one_best, other_best)} | {seconds:.1f} | {seconds_pairs:.1f} |")  # fmt: skip
            print(lines[-1], flush=True)
    where = f"Python {platform.python_version()}, numpy {version('numpy')}, predilect {version('predilect')}"
    about = (__doc__ or "").split("\n\n", 1)[1]
    page = f"# Answers about several alternatives\n\n{about}\n`python -m benchmarks.sets`, {where}.\n\n"
    write_whole({RESULTS: page + "\n".join(lines) + "\n"})


if __name__ == "__main__":
    main()
