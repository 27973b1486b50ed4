"""Answers of a poll in the forms that models and files take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import polars as pl

from predilect.data import Comparisons
from predilect.live.settings import Settings
from predilect.live.state import Answer, Change, State


def user_of(number: int) -> str:
    """What models and exports call a participant."""
    return f"p{number}"


def over(kind: str, n: int, value: Sequence[int]) -> list[tuple[int, int]]:
    """Places of the better and the worse of each pair that an answer about ``n`` items tells of."""
    places = range(n)
    if kind == "order":
        return list(combinations(value, 2))
    best = value[0]
    found = [(best, other) for other in places if other != best]
    if kind == "best-worst":
        worst = value[1]
        found += [(other, worst) for other in places if other not in (best, worst)]
    return found


def rows(state: State, answers: Iterable[Answer]) -> dict[str, list[Any]]:
    """Columns user, left, right, outcome and, of sets, task: a row a pair, left as it was shown."""
    settings = _settings(state)
    is_pair = settings.kind == "pair"
    columns: dict[str, list[Any]] = {name: [] for name in ("user", "left", "right", "outcome")}
    tasks: list[int] = []
    for answer in answers:
        assert answer.value is not None
        names = [state.items[number - 1].name for number in answer.items]
        if is_pair:
            outcome = 0 if not answer.value else 1 if answer.value[0] == 0 else -1
            pairs = [(0, 1, outcome)]
        else:
            pairs = [(*pair, 1) for pair in over(settings.kind, len(names), answer.value)]
        for left, right, outcome in pairs:
            row = (user_of(answer.participant), names[left], names[right], outcome)
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
            tasks.append(answer.sequence)
    return columns if is_pair else columns | {"task": tasks}


def comparisons(state: State, answers: Iterable[Answer]) -> Comparisons:
    """Answers as models take them; the rows of a set are one answer."""
    columns = rows(state, answers)
    outcome = columns.pop("outcome")
    is_joint = "task" in columns
    types = {name: pl.Int64 if name == "task" else pl.String for name in columns}
    frame = pl.DataFrame(columns, schema=types)
    found = Comparisons.from_frame(frame, outcome=outcome, reading={"kind": "pairs"})
    return replace(found, joint=True) if is_joint else found


def standing(changes: Iterable[Change], criterion: int) -> list[Answer]:
    """Answers of a criterion that stand after some changes, in the order of the log."""
    found: dict[int, Answer] = {}
    for change in changes:
        if change.criterion != criterion:
            continue
        if change.is_added:
            found[change.answer.sequence] = change.answer
        else:
            found.pop(change.answer.sequence, None)
    return list(found.values())


def _settings(state: State) -> Settings:
    assert state.settings is not None
    return state.settings
