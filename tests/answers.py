"""Answers in a form that tests can write down."""

from __future__ import annotations

from typing import Any

import pytest

from predilect.data import Comparisons
from predilect.errors import DataError

__all__ = ["read", "refused", "tasks_of"]


def read(table: dict[str, Any], more: Any = (), /, **options: Any) -> Comparisons:
    """Answers of a table of some columns, and more of them."""
    return Comparisons.from_frame({**table, **dict(more)}, **options)


def refused(table: dict[str, Any], more: Any, /, *messages: str, **options: Any) -> str:
    """The message with which a table is refused, in which all of ``messages`` stand."""
    with pytest.raises(DataError) as caught:
        read(table, more, **options)
    for message in messages:
        assert message in str(caught.value), str(caught.value)
    return str(caught.value)


def tasks_of(comparisons: Comparisons) -> list[tuple[object, ...]]:
    """Each task, or pair by itself, as who gave it and its rows, "better > worse", sorted; n times if it counts n."""
    found: dict[object, list[str]] = {}
    for number, row in enumerate(comparisons.to_frame("polars").to_dicts()):
        one, two = (row["left"], row["right"]) if row["outcome"] >= 0 else (row["right"], row["left"])
        task = row.get("task")
        key = (row.get("user"), row["weight"], f"pair {number}" if task is None else task)
        found.setdefault(key, []).append(f"{one} {'>' if row['outcome'] else '='} {two}")
    return sorted(
        ((user, *sorted(rows)) for (user, weight, _), rows in found.items() for _ in range(int(weight))), key=str
    )
