"""GaSPK's number of characteristics: "auto" beside each number that it tries, and whether it finds kinds of customers.

``python -m benchmarks.gaspk_numbers`` prints the number that "auto" takes, and by it and by each number the prior
variance, log loss of held-out answers and CPU seconds; of made-up customers also the share of the right kind, and the
log loss of Population, MixedLogit and the truth. What came of it is noted in results/choice_kit.md.
"""

from __future__ import annotations

import sys
import time
from itertools import permutations
from typing import Any

import numpy as np
import polars as pl
from scipy.special import log_ndtr
from threadpoolctl import threadpool_limits

from benchmarks.measure import warm_up
from benchmarks.parts import find_loader
from predilect import GaSPK, MixedLogit, Population
from predilect.data import Comparisons

TASKS = ("amt-cars@share=80", "uk-election-2010@share=40@select=8", "electricity@share=40")
NUMBERS = (1, 2, 3, 5, 10)
N_SEEDS = 3
KINDS = np.array([[-2.0, 0.2, -0.5], [-0.5, 1.5, 0.0], [-1.0, 0.0, 1.0]])


def standard(tariffs: pl.DataFrame) -> Any:
    """What kinds of customers weigh, (n, 3)."""
    return (tariffs.drop("item").to_numpy() - [40, 0.5, 12]) / [12, 0.5, 10]


def customers(n_people: int, n_pairs: int, seed: int) -> tuple[pl.DataFrame, pl.DataFrame, Any]:
    """30 tariffs, answers of customers of three kinds to pairs of them, and the kind of each customer."""
    rng = np.random.default_rng(seed)
    tariffs = pl.DataFrame({"item": [f"t{k}" for k in range(30)], "price": rng.uniform(20, 60, 30).round(1),
                            "green": rng.integers(0, 2, 30), "months": rng.choice([1, 12, 24], 30)})  # fmt: skip
    X = standard(tariffs)
    kind = rng.integers(0, 3, n_people)
    user = np.repeat(np.arange(n_people), n_pairs)
    left = rng.integers(0, 30, len(user))
    right = (left + rng.integers(1, 30, len(user))) % 30
    margin = ((X[left] - X[right]) * KINDS[kind[user]]).sum(axis=1) + rng.normal(size=len(user))
    pairs = pl.DataFrame({"user": user, "left": [f"t{k}" for k in left], "right": [f"t{k}" for k in right],
                          "winner": np.where(margin > 0, "left", "right")})  # fmt: skip
    return tariffs, pairs, kind


def in_kind(model: Any, kind: Any) -> float:
    """Share of people whose largest weight is on the characteristic of their kind, as these are best matched."""
    table = pl.DataFrame(model.segments())
    of, largest = kind[table["user"].to_numpy()], table["largest"].to_numpy()
    names = range(1, model.hyperparameters_.n_components + 1)
    if len(names) != len(KINDS):
        return float("nan")
    return max(float((np.array(order)[of] == largest).mean()) for order in permutations(names))


def _loss(model: Any, test: Comparisons) -> float:
    return -float(np.average(model._answer_log_proba(test), weights=test.weight))


def compared(name: str, seed: int) -> list[float]:
    """Print a line for "auto" and each number; by how much "auto" is worse than the number it finds, and the best."""
    if name == "customers":
        items, pairs, kind = customers(500, 25, seed)
        held = np.arange(len(pairs)) % 25 >= 20
        train, test = Comparisons.from_frame(pairs.filter(~held)), Comparisons.from_frame(pairs.filter(held))
        for other in (Population(), MixedLogit()):
            other.fit(train, items=items)
            print(f"{name} {seed} {type(other).__name__}, log loss {_loss(other, test):.4f}", flush=True)
        asked = pairs.filter(held)
        X, left, right = standard(items), *(asked[side].str.slice(1).cast(int).to_numpy() for side in ("left", "right"))
        won = np.where(asked["winner"] == "left", 1, -1)
        margin = ((X[left] - X[right]) * KINDS[kind[asked["user"].to_numpy()]]).sum(axis=1)
        print(f"{name} {seed} the truth, log loss {-log_ndtr(won * margin).mean():.4f}", flush=True)
    else:
        task = find_loader(name)(seed)
        train, test, items, kind = task.train, task.test, task.items, None
    loss: dict[Any, float] = {}
    for number in ("auto", *NUMBERS):
        begin = time.process_time()
        model = GaSPK(n_components=number).fit(train, items=items)
        seconds, h = time.process_time() - begin, model.hyperparameters_
        loss[number] = _loss(model, test)
        told = "" if kind is None else f", of the right kind {in_kind(model, kind):.3f}"
        print(f"{name} {seed} {number!s:5s} {h.n_components:2d} found, amplitude {h.kernel.kernel.variance:8.3g}, "
              f"concentration {h.concentration:.3g}, log loss {loss[number]:.4f}, {seconds:.1f} CPU s{told}",
              flush=True)  # fmt: skip
        if number == "auto":
            found = h.n_components
    return [loss["auto"] - loss[found], loss["auto"] - min(loss[n] for n in NUMBERS)]


def main() -> int:
    """Run and print all."""
    warm_up("gaspk")
    with threadpool_limits(1):
        for name in ("customers", *TASKS):
            lost = np.array([compared(name, seed) for seed in range(N_SEEDS)])
            print(f"{name}: auto minus the number it finds {lost[:, 0].round(4)}, minus the best {lost[:, 1].round(4)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
