"""Answers of a poll in the forms that models and files take."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal

import polars as pl

from predilect.data import Comparisons
from predilect.live.settings import Settings
from predilect.live.state import Answer, Change, PollState

_SIDES = ("left", "right")


def user_of(number: int) -> str:
    """What models and exports call a participant."""
    return f"p{number}"


def moment(seconds: float) -> str:
    """A time as ISO 8601 has it, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def table(state: PollState, answers: Iterable[Answer], *, by: Literal["name", "key"] = "name") -> pl.DataFrame:
    """Answers as files hold them and :func:`predilect.read` reads them: a row each, also of those that were skipped.

    Items go by their names, as people read them, or by their keys, as models have them.
    """
    settings = _settings(state)
    kind, boards, size = settings.kind, settings.boards, settings.n_shown
    rows = []
    for answer in answers:
        names = [getattr(state.items[number - 1], by) for number in answer.items]
        row: dict[str, Any] = {"user": user_of(answer.participant), "criterion": boards[answer.criterion]}
        row |= _placed(kind, names, answer)
        rows.append(row | {"question": answer.shown, "time": moment(answer.time), "shown_ms": answer.shown_ms,
                            "reason": answer.reason or None})  # fmt: skip
    items = [f"item{k + 1}" for k in range(size)]
    heads = {
        "pair": [*_SIDES, "winner"], "best": [*items, "best"], "best-worst": [*items, "best", "worst"],
        "order": [f"rank{k + 1}" for k in range(size)],
    }[kind]  # fmt: skip
    types: dict[str, Any] = dict.fromkeys(["user", "criterion", *heads], pl.String)
    more = {"question": pl.Int64, "time": pl.String, "shown_ms": pl.Int64, "reason": pl.String}
    return pl.DataFrame(rows, schema=types | more, orient="row")


def _placed(kind: str, names: list[str], answer: Answer) -> dict[str, str]:
    """What was shown and answered, by the columns of a kind; empty cells of a skipped question."""
    value = answer.value
    if kind == "pair":
        winner = "skip" if value is None else "tie" if not value else _SIDES[value[0]]
        return {"left": names[0], "right": names[1], "winner": winner}
    chosen = [names[place] for place in value] if value else []
    if kind == "order":
        return {f"rank{k + 1}": name for k, name in enumerate(chosen)}
    shown = {f"item{k + 1}": name for k, name in enumerate(names)}
    return shown | dict(zip(("best", "worst"), chosen, strict=False))


def comparisons(state: PollState, answers: Iterable[Answer], *, by: Literal["name", "key"] = "key") -> Comparisons:
    """Answers on one criterion as models take them: as whoever reads the file of them has them, but for names."""
    rows = table(state, answers, by=by).drop("criterion", "reason")
    return Comparisons.from_frame(rows)


def as_update(state: PollState, answer: Answer) -> dict[str, Any]:
    """An answer to a pair as models take a single one."""
    assert answer.value is not None
    left, right = (state.items[number - 1].key for number in answer.items)
    outcome = 0 if not answer.value else 1 if answer.value[0] == 0 else -1
    return {"user": user_of(answer.participant), "left": left, "right": right, "outcome": outcome}


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


def _settings(state: PollState) -> Settings:
    assert state.settings is not None
    return state.settings
