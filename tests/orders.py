"""Orders of columns, for tests in which none may matter."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import pytest

__all__ = ["EVERY", "SLOW", "TURNS", "orders_of"]

EVERY, TURNS = "every order", "turns"
SLOW = pytest.param(EVERY, marks=pytest.mark.slow)


def orders_of(columns: Iterable[str], which: str) -> list[tuple[str, ...]]:
    """Every order, or turns: those in which each column stands in each place and on both sides of every other one."""
    columns = tuple(columns)
    if which == EVERY:
        return list(permutations(columns))
    turns = [columns[place:] + columns[:place] for place in range(len(columns))]
    return [*turns, *(turn[::-1] for turn in turns)]
