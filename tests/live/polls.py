"""Polls for tests: made in a moment, answered by simulated people."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from predilect.live import Poll
from predilect.live.state import PollState

DRINKS = ["tea", "milk", "juice", "water", "cola"]


def made(place: Path | str, items: Any = DRINKS, **settings: Any) -> Poll:
    """A poll whose questions need no model."""
    told = {"question": "Which drink?", "strategy": "random", "background": False} | settings
    return Poll.create(place / "poll.db" if isinstance(place, Path) and place.is_dir() else place, items=items, **told)


def of_kind(kind: str, size: int = 3) -> dict[str, Any]:
    """Settings of questions of a kind, with so many items where that can be said."""
    return {"kind": kind} | ({} if kind == "pair" else {"size": size})


def answered(poll: Poll, people: list[str], n: int, seed: int = 0) -> None:
    """Have people answer ``n`` questions each; the later an item stands in the list the better it is."""
    source = random.Random(seed)
    for _ in range(n):
        for person in people:
            for question in poll.ask(person):
                poll.tell(person, question.shown, reply(question, source))


def reply(question: Any, source: random.Random) -> Any:
    """An answer of somebody whose utilities grow with the number of an item, with normal noise."""
    scores = {item.number: item.number / 2.0 + source.gauss(0.0, math.sqrt(0.5)) for item in question.items}
    order = sorted(scores, key=lambda number: -scores[number])
    return {"pair": order[0], "best": order[0], "best-worst": [order[0], order[-1]], "order": order}[question.kind]


def fail_once(monkeypatch: Any, kind: str) -> list[int]:
    """Let no process take in the next row of a kind, as of a mistake of ours; a list that will hold its number."""
    right = getattr(PollState, f"_on_{kind}")
    row: list[int] = []

    def wrong(self: PollState, event: Any, said: Any) -> None:
        if not row:
            row.append(event.sequence)
        if event.sequence in row:
            raise ZeroDivisionError("a mistake of ours")
        right(self, event, said)

    monkeypatch.setattr(PollState, f"_on_{kind}", wrong)
    return row
