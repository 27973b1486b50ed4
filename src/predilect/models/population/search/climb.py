"""The loop of every search here: proposals, made one after the other, and told whether they gained."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

P = TypeVar("P")
Proposals = Generator[P, Any, None]


def climb(proposals: Proposals[P], gains: Callable[[P], bool]) -> None:
    """Try proposals in turn. The generator receives whether a proposal gained before it makes the next one."""
    gained = None
    while True:
        try:
            proposal = proposals.send(gained)
        except StopIteration:
            return
        gained = gains(proposal)


def one_way(directions: Iterable[int], further: Callable[[int], P | None]) -> Proposals[P]:
    """Steps in the first of the directions that gains, as long as each does and there is one."""
    for direction in directions:
        moved = False
        while (proposal := further(direction)) is not None and (yield proposal):
            moved = True
        if moved:
            return
