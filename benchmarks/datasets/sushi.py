"""Sushi (Kamishima): the four protocols of crowdGPPL, and the very splits of its original experiment.

The licence forbids redistribution: the files stay outside the project.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.task import Loader, Task, expect, read_csv, split_rows

__all__ = ["TASKS"]

N_USERS = 5000
PLACES = np.array([(i, j) for i in range(10) for j in range(i + 1, 10)])  # the 45 pairs of a ranking of ten
# Protocol: item set, people, training and test pairs a person.
PROTOCOLS = {
    "sushi-a-small": ("a", 100, 5, 25),
    "sushi-a": ("a", 100, 20, 25),
    "sushi-a15": ("a", 1000, 15, 5),
    "sushi-b": ("b", 5000, 10, 1),
}
# Name in sushi_splits, repeats, training and test pairs in all.
ORIGINAL = {
    "sushi-original-a-small": ("a-small", 5, 500, 2500),
    "sushi-original-a": ("a-script", 5, 2000, 2500),
    "sushi-original-a15": ("a", 5, 15000, 5000),
    "sushi-original-b": ("b", 2, 50000, 5000),
}


def features(item_set: str) -> pl.DataFrame:
    """The seven attributes of the items of a set: 18 columns once the 12 minor groups are one-hot.

    ``items.csv`` lists set B. Set A's ids are not B's; ``rankings_a.csv`` holds B's ids, and ``set_a_id`` tells which
    ten they are.
    """
    items = read_csv("sushi", "items.csv").sort("item")
    in_a = items.filter(pl.col("set_a_id") >= 0)
    expect("sushi", items=(len(items), 100), items_of_set_a=(len(in_a), 10))
    chosen = in_a if item_set == "a" else items
    return chosen.drop("name", "set_a_id").with_columns(pl.col("minor_group").cast(pl.String))


def rankings(item_set: str) -> npt.NDArray[np.int64]:
    """Item ids in order of preference, shape (5000, 10)."""
    table = read_csv("sushi", f"rankings_{item_set}.csv")
    order = table.select(f"r{place}" for place in range(1, 11)).to_numpy()
    distinct = int((np.diff(np.sort(order, axis=1), axis=1) > 0).all(axis=1).sum())
    expect(
        "sushi",
        users=(len(table), N_USERS),
        complete_rankings=(distinct, N_USERS),
        items=(len(np.unique(order)), 10 if item_set == "a" else 100),
    )
    return order


def load_protocol(name: str, seed: int) -> Task:
    """Sample people, and pairs of each one's own ranking; all that is random depends on ``seed`` alone."""
    item_set, n_users, n_train, n_test = PROTOCOLS[name]
    order = rankings(item_set)
    rng = np.random.default_rng(seed)
    people = rng.permutation(N_USERS)[:n_users]
    picked = np.argsort(rng.random((n_users, len(PLACES))), axis=1)[:, : n_train + n_test]
    better, worse = PLACES[picked][..., 0], PLACES[picked][..., 1]
    row = people[:, None]
    frame = pl.DataFrame(
        {
            "user": np.repeat(people, n_train + n_test),
            "left": order[row, better].ravel(),
            "right": order[row, worse].ravel(),
        }
    )
    test = np.tile(np.arange(n_train + n_test) >= n_train, n_users)
    gold = pl.DataFrame(
        {
            "user": np.repeat(people, 10),
            "item": order[people].ravel(),
            "score": np.tile(np.arange(10, 0, -1), n_users),
        }
    )
    people_features = read_csv("sushi", "users.csv").drop("user_id").filter(pl.col("user").is_in(people.tolist()))
    outcome = np.ones(len(frame), dtype=np.int8)
    return split_rows(name, seed, frame, outcome, test, items=features(item_set), users=people_features, gold=gold)


def load_original(name: str, seed: int) -> Task:
    """Repeat ``seed`` of the original experiment, with the right features of set A."""
    split, repeats, n_train, n_test = ORIGINAL[name]
    if not 0 <= seed < repeats:
        raise IndexError(f"{name} has repeats 0 to {repeats - 1}; there is no {seed}.")
    parts = {part: read_csv("sushi_splits", f"{split}-{seed}-{part}.csv.gz") for part in ("train", "test", "gold")}
    expect(name, training_pairs=(len(parts["train"]), n_train), test_pairs=(len(parts["test"]), n_test))
    items = read_csv("sushi_splits", f"{split[0]}-items.csv.gz").drop("name")
    users = read_csv("sushi_splits", f"{split}-{seed}-users.csv.gz").drop("orig_row")
    expect(
        name,
        features=(items.width - 1, 18),
        items=(len(items), 10 if split[0] == "a" else 100),
        features_of_people=(users.width - 1, 62 if split[0] == "a" else 123),
    )
    both = pl.concat([parts["train"], parts["test"]])
    frame = both.select("user", left="item_a", right="item_b")
    test = np.arange(len(both)) >= len(parts["train"])
    outcome = (2 * both["label"].to_numpy() - 1).astype(np.int8)
    return split_rows(name, seed, frame, outcome, test, items=items, users=users, gold=parts["gold"])


def _loader(name: str) -> Loader:
    return lambda seed: (load_protocol if name in PROTOCOLS else load_original)(name, seed)


TASKS: dict[str, Loader] = {name: _loader(name) for name in (*PROTOCOLS, *ORIGINAL)}
