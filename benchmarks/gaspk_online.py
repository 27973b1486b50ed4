"""GaSPK's posterior as the prior of the next answers, beside going on with all: the last 900 in batches of ten.

``python -m benchmarks.gaspk_online [N_COMPONENTS [N_SEEDS]]``, by default "auto" and eight splits, prints CPU ms an
answer and log loss of held-out answers, and the mean difference with its standard error.
"""

from __future__ import annotations

import copy
import math
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import warm_up
from benchmarks.parts import find_loader
from predilect import GaSPK
from predilect.data import Comparisons

TASKS = ("amt-cars", "uk-election-2010@share=40@select=8", "electricity@share=40")
N_LATER, N_BATCH = 900, 10


def measured(name: str, seed: int, online: bool, n_components: int | str) -> tuple[float, float]:
    """CPU ms an answer, and log loss afterwards."""
    task = find_loader(name)(seed)
    rows = task.train.to_frame().sample(fraction=1.0, shuffle=True, seed=seed)
    model = GaSPK(n_components=n_components).fit(
        Comparisons.from_frame(rows[:-N_LATER], reading={"side": False}), items=task.items
    )
    batches = [
        Comparisons.from_frame(rows[begin : begin + N_BATCH], reading={"side": False})
        for begin in range(len(rows) - N_LATER, len(rows), N_BATCH)
    ]
    copy.deepcopy(model).update(batches[0], items=task.items, online=online)  # whatever is compiled is compiled now
    began = time.process_time()
    for batch in batches:
        model.update(batch, items=task.items, online=online)
    spent = time.process_time() - began
    loss = -np.average(model._answer_log_proba(task.test), weights=task.test.weight)
    return 1e3 * spent / N_LATER, float(loss)


def main() -> int:
    """Run and print all."""
    number: int | str = int(sys.argv[1]) if sys.argv[1:2] not in ([], ["auto"]) else "auto"
    n_seeds = int(sys.argv[2]) if sys.argv[2:] else 8
    print(f"{number} characteristics")
    warm_up("gaspk")
    with threadpool_limits(1):
        for name in TASKS:
            lost = []
            for seed in range(n_seeds):
                (fast, fast_loss), (slow, slow_loss) = (
                    measured(name, seed, online, number) for online in (True, False)
                )
                print(
                    f"{name:36s} {seed}  online {fast:.2f} ms, {fast_loss:.4f}  all {slow:.2f} ms, {slow_loss:.4f}"
                    f"  difference {fast_loss - slow_loss:+.4f}", flush=True,
                )  # fmt: skip
                lost.append(fast_loss - slow_loss)
            error = np.std(lost, ddof=1) / math.sqrt(n_seeds)
            print(f"{name:36s} mean difference {np.mean(lost):+.4f} ± {error:.4f}, the worst {max(lost):+.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
