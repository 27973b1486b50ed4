"""A poll of a crowd by who is asked what: ``python -m benchmarks.polls``.

60 items, 60 people who agree, 8 answers each with the noise of the model. Questions by ``suggest`` are of a model that
is fitted anew at each quarter more of answers, and updated in between. Printed a row a crowd: distinct pairs that were
asked, answers on the item with fewest, and the rank correlation of the board of all answers with the truth.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import spearmanr

from predilect import Population
from predilect.errors import DataWarning

N_ITEMS, N_USERS, PER_PERSON, MORE = 60, 60, 8, 1.25
IDS = [f"item {k:02d}" for k in range(N_ITEMS)]
WAYS = ("random", "in turn", "suggest twelve", "suggest random", "suggest")


def fitted(rows: list[tuple[str, str, str, str]]) -> Population:
    """A model of all answers so far that knows every item."""
    table = pl.DataFrame(rows, schema=["user", "left", "right", "winner"], orient="row")
    return Population(n_jobs=1).fit(table, items=pl.DataFrame({"item": IDS}))


def poll(way: str, seed: int) -> tuple[int, int, float]:
    """Distinct pairs, answers on the item with fewest, and rank correlation with the truth."""
    rng = np.random.default_rng(seed)
    truth, shown = rng.standard_normal(N_ITEMS), np.zeros(N_ITEMS)
    rows: list[tuple[str, str, str, str]] = []
    pairs: set[frozenset[int]] = set()
    model: Any = None
    n_fitted = 0
    for _ in range(PER_PERSON):
        for user in (f"person {k}" for k in rng.permutation(N_USERS)):
            if way == "in turn":
                order = np.lexsort((rng.random(N_ITEMS), shown)).tolist()
                a, b = next(((order[0], k) for k in order[1:] if frozenset((order[0], k)) not in pairs), order[:2])
            elif way == "random" or model is None:
                a, b = rng.choice(N_ITEMS, 2, replace=False).tolist()
            else:
                some = [IDS[k] for k in rng.choice(N_ITEMS, 12, replace=False)] if way == "suggest twelve" else None
                asked = model.suggest(user, candidates=some, strategy="random" if way == "suggest random" else "bald")
                a, b = (IDS.index(asked[side][0]) for side in ("left", "right"))
            shown[[a, b]] += 1.0
            pairs.add(frozenset((a, b)))
            winner = IDS[a if truth[a] - truth[b] + rng.standard_normal() > 0.0 else b]
            rows.append((user, IDS[a], IDS[b], winner))
            if model is not None:
                model.update(user=user, left=IDS[a], right=IDS[b], winner=winner)
            if way.startswith("suggest") and len(rows) > MORE * n_fitted + 10:
                model, n_fitted = fitted(rows), len(rows)
    board = fitted(rows).rank()
    score = dict(zip(board["item"], board["mean"], strict=True))
    return len(pairs), int(shown.min()), float(spearmanr([score[item] for item in IDS], truth).statistic)


def main(arguments: list[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.polls", description=__doc__)
    parser.add_argument("--crowds", type=int, default=5)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    given = parser.parse_args(arguments)
    print("questions        crowd  pairs  fewest  rank correlation")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of people without answers
        for way in given.ways:
            found = [poll(way, seed) for seed in range(1, given.crowds + 1)]
            for seed, (n_pairs, fewest, correlation) in enumerate(found, 1):
                print(f"{way:15}  {seed:5}  {n_pairs:5}  {fewest:6}  {correlation:.3f}", flush=True)
            means = np.mean(found, axis=0)
            print(f"{way:15}   mean  {means[0]:5.0f}  {means[1]:6.1f}  {means[2]:.3f}", flush=True)


if __name__ == "__main__":
    main()
