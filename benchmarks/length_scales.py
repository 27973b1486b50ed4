"""``python -m benchmarks.length_scales``: why optimised length-scales do not win for crowdGPPL.

At the median length-scales and at those of the largest bound, with and without an item-specific share of the kernel:
the bound of :class:`predilect.CrowdGPPL`; the evidence that expectation propagation gives
:class:`predilect.CollaborativeGP` under the same kernel; the prequential log-likelihood of CrowdGPPL, which is what an
evidence stands for; and log loss of the test answers. Prequential: everybody's k-th answer, in a random order, is
predicted from everybody's first k - 1, and the logs are summed over k; the first is a coin.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.parts import find_loader
from benchmarks.task import Task
from predilect import CollaborativeGP, CrowdGPPL
from predilect.data import Comparisons
from predilect.evaluation import log_loss

__all__ = ["optimised_length_scales", "prequential"]

COLUMNS = ("seed", "own share", "length-scales", "bound", "EP evidence", "prequential", "log loss")
# What held-out answers choose on Sushi-A: the search of a prior is left out of the many fits.
PRIOR = (10.0, 100.0)


def optimised_length_scales(task: Task, own_share: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Median length-scales of the items' features, and those of the largest bound, each (n_columns,)."""
    found = []
    for rule in ("median", "optimise"):
        kernel = fitted(task.train, task, rule, own_share).hyperparameters_.kernel
        named = zip(kernel.names, np.exp(kernel.theta), strict=True)
        found.append(np.array([value for name, value in named if "length_scale" in name]))
    return found[0], found[1]


def fitted(rows: Comparisons, task: Task, length_scale: object, own_share: float) -> CrowdGPPL:
    """CrowdGPPL on some answers of a task."""
    model = CrowdGPPL(length_scale=length_scale, own_share=own_share, component_prior=PRIOR)
    return model.fit(rows, items=task.items)


def prequential(task: Task, length_scale: object, own_share: float, seed: int = 0) -> float:
    """Log-likelihood in nats of the training answers, each predicted from the earlier ones."""
    train, rng = task.train, np.random.default_rng(seed)
    place = np.zeros(train.n_rows, dtype=np.int64)
    for user in range(train.n_users):
        own = np.flatnonzero(train.user == user)
        place[own] = rng.permutation(len(own))
    total = -np.log(2.0) * np.count_nonzero(place == 0)
    for k in range(1, int(place.max()) + 1):
        model = fitted(train.take(np.flatnonzero(place < k)), task, length_scale, own_share)
        asked = train.take(np.flatnonzero(place == k))
        total -= asked.n_answers * log_loss(asked.outcome, model.predict_log_proba(asked), asked.weight)
    return float(total)


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.length_scales", description=__doc__)
    parser.add_argument("--task", default="sushi-a")
    parser.add_argument("--seeds", type=int, default=2, help="how many splits (default 2)")
    given = parser.parse_args(arguments)
    print("\n".join("| " + " | ".join(row) + " |" for row in (COLUMNS, ["---"] * len(COLUMNS))))
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for seed in range(given.seeds):
            task = find_loader(given.task)(seed)
            for own_share in (0.0, 0.5):
                scales = optimised_length_scales(task, own_share)
                for name, length_scale in zip(("median", "optimised"), scales, strict=True):
                    crowd = fitted(task.train, task, length_scale, own_share)
                    process = CollaborativeGP(length_scale=length_scale, own_share=own_share)
                    process.fit(task.train, items=task.items)
                    loss = log_loss(task.test.outcome, crowd.predict_log_proba(task.test), task.test.weight)
                    numbers = (crowd.log_evidence_, process.log_evidence_, prequential(task, length_scale, own_share))
                    cells = [str(seed), f"{own_share:g}", name, *(f"{x:.0f}" for x in numbers), f"{loss:.3f}"]
                    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
