"""People's answers as arrays and back, for posteriors that hold a layout of people."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from predilect.models.fields import Fields, amounts, codes, numbers, outcomes, pointer, positive
from predilect.posteriors.people import People

__all__ = ["PEOPLE_ARRAYS", "pack_people", "unpack_people"]

_ARRAYS = ("traits", "tie_factor", "answer_ptr", "item_ptr", "item_idx", "left", "right", "outcome", "weight")

# U people with T traits, R rows of answers, K own items of all of them.
PEOPLE_ARRAYS: Fields = {
    "traits": numbers("U T"), "tie_factor": positive("U"), "answer_ptr": pointer("U+1", "R"),
    "item_ptr": pointer("U+1", "K"), "item_idx": codes("K", "I"), "left": codes("R", "I"), "right": codes("R", "I"),
    "outcome": outcomes("R"), "weight": positive("R"), "site_precision": amounts("R"), "site_linear": numbers("R"),
    "shards": amounts("S 2", "int64"),
}  # fmt: skip


def pack_people(people: People) -> dict[str, Any]:
    """Arrays of a layout, without those of the sites."""
    return {name: getattr(people, name) for name in _ARRAYS} | {"shards": np.array(people.shards, dtype=np.int64)}


def unpack_people(arrays: dict[str, Any], n_items: int) -> People:
    """The layout that :func:`pack_people` packed; ValueError if the arrays do not fit each other."""
    shards = [(int(start), int(stop)) for start, stop in arrays["shards"]]
    people = People(**{name: arrays[name] for name in _ARRAYS}, n_items=n_items, shards=shards)
    owner = np.repeat(np.arange(people.n_users), np.diff(people.item_ptr))
    if (np.diff(owner * n_items + people.item_idx) <= 0).any():
        raise ValueError("the own items of a person do not ascend")
    n_own = np.repeat(np.diff(people.item_ptr), np.diff(people.answer_ptr))
    if (people.left >= people.right).any() or (people.right >= n_own).any():
        raise ValueError("an answer compares what is not two of the person's own items")
    edges = [0, *(stop for _, stop in shards)]
    if shards != list(pairwise(edges)) or edges != sorted(edges) or edges[-1] != people.n_users:
        raise ValueError("the shards do not hold every person once, in order")
    return people
