"""Choice experiments: the items are points on a grid of attributes, far more of them than anyone sees."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.splits import split_answers, split_groups
from benchmarks.task import Loader, Task, expect, read_answers, read_csv, split_comparisons, split_rows, winner_outcome

__all__ = ["TASKS"]

Codes = npt.NDArray[np.integer[Any]]

TEST_SHARE = 0.25
# Data set: file of the items; users, comparisons, items.
SETS = {
    "electricity": ("items.csv", 361, 12_924, 35),
    "swissmetro": ("items.csv.gz", 1_191, 19_755, 19_482),
    "tax_plans": ("items.csv.gz", 2_000, 16_000, 7_988),
}


def load(name: str, seed: int, test_share: float = TEST_SHARE) -> Task:
    """Hold out a quarter of the tasks: all pairs of one choice go to the same side."""
    items_file, n_users, n_comparisons, n_items = SETS[name]
    frame, items = read_csv(name, "comparisons.csv.gz"), read_csv(name, items_file)
    expect(
        name,
        users=(frame["user"].n_unique(), n_users),
        comparisons=(len(frame), n_comparisons),
        items=(len(items), n_items),
    )
    task_id = frame["user"].cast(pl.Int64).to_numpy() * 1000 + frame["task"].to_numpy()
    _, test = split_groups(task_id, test_share, random_state=seed)
    users = _people(name)
    name = name.replace("_", "-")
    return split_rows(name, seed, frame, winner_outcome(frame), test, "task", items=items, users=users)


def _people(name: str) -> pl.DataFrame | None:
    if name == "electricity":
        return None
    users = read_csv(name, "users.csv")
    return users.drop("weight") if name == "tax_plans" else users


def load_cars(seed: int, test_share: float = 0.2) -> Task:
    """Experiment 1 of the car study as GaSPK used it: people with four right controls, controls left out, 80 / 20."""
    users = read_csv("amt_cars", "exp1/users.csv").filter(pl.col("n_correct_controls") >= 4)
    frame = read_csv("amt_cars", "exp1/comparisons.csv").filter(
        (pl.col("is_control") == 0) & pl.col("user").is_in(users["user"].to_list())
    )
    items = read_csv("amt_cars", "exp1/items.csv").with_columns(
        pl.col("body_type", "transmission", "fuel").cast(pl.String)
    )
    expect("amt_cars", users=(len(users), 53), comparisons=(len(frame), 2_362), items=(len(items), 10))
    everything = read_answers(frame, winner_outcome(frame))
    _, test = split_answers(everything, test_share, random_state=seed)
    people = users.drop("n_correct_controls")
    return split_comparisons("amt-cars", seed, everything, test, items=items, users=people)


def _loader(name: str) -> Loader:
    return partial(load, name)


TASKS: dict[str, Loader] = {name.replace("_", "-"): _loader(name) for name in SETS} | {"amt-cars": load_cars}
