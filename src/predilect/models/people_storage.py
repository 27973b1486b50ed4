"""People's answers as arrays and back, for posteriors that hold a layout of people."""

from __future__ import annotations

from typing import Any

from predilect.posteriors.people import People

__all__ = ["pack_people", "unpack_people"]

_ARRAYS = ("traits", "tie_factor", "answer_ptr", "item_ptr", "item_idx", "left", "right", "outcome", "weight")


def pack_people(people: People) -> dict[str, Any]:
    """Arrays of a layout, but for ``shards``."""
    return {name: getattr(people, name) for name in _ARRAYS}


def unpack_people(arrays: dict[str, Any], n_items: int) -> People:
    """The layout that :func:`pack_people` packed, with the ``shards`` beside it."""
    shards = [(int(start), int(stop)) for start, stop in arrays["shards"]]
    given = {name: arrays[name] for name in _ARRAYS if name in arrays}  # not all are in models of earlier versions
    return People(**given, n_items=n_items, shards=shards)
