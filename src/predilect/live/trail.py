"""Who did what of those who look after a poll: read from the log, which keeps each act and whose it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl
import sqlalchemy as sa

from predilect.live.answers import moment, user_of
from predilect.live.settings import described
from predilect.live.state import OWNER, TOLD, PollState, decoded, is_moment
from predilect.live.tables import events

_KINDS = ("state", "item_added", "item_state", "item_retired", "item_changed", "item_merged", "organiser", "erased")
_LONGEST_SHOWN = 40  # characters of a setting
_TYPES = {"sequence": pl.Int64, "time": pl.String, "who": pl.String, "act": pl.String, "what": pl.String}


def trail(poll: Any) -> pl.DataFrame:
    """Acts of organisers, the oldest first: ``sequence``, ``time``, ``who``, ``act``, ``what``.

    ``who`` is empty of whoever has the poll's own token or its file. Items are called what they are called now.
    """
    chosen = sa.select(events).where(events.c.poll == poll.log.poll, events.c.kind.in_(_KINDS))
    with poll.log.reading() as connection:
        rows = [decoded(row) for row in connection.execute(chosen.order_by(events.c.sequence))]
    names = {OWNER.number: OWNER.name}
    settings: dict[str, Any] = {}
    found = []
    with poll.log.lock:
        state: PollState = poll.log.state
        left_out = {one.row for one in state.left_out}
        for row in rows:
            said = row.payload
            if row.sequence in left_out or said is None or row.participant is not None:
                continue
            if row.kind == "organiser" and said["role"] is not None:
                names[row.sequence] = said["name"]
            by = said.get("by", OWNER.number if row.kind != "erased" else None)
            for act, what in _acts(state, row.kind, said, names, settings):
                time = moment(row.time) if is_moment(row.time) else None
                if by is not None:
                    found.append((row.sequence, time, names.get(by, ""), act, what))
            settings |= said.get("settings", {})
    return pl.DataFrame(found, schema=_TYPES, orient="row")


def _acts(
    state: PollState, kind: str, said: dict[str, Any], names: dict[int, str], settings: dict[str, Any]
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """What an event says of acts: a word for each, and what it was about."""

    def called(number: int) -> str:
        item = state.item(number)
        return f"item {number}" if item is None else item.name

    if kind == "state":
        if not settings:
            yield "made", ""
        moved = {name: value for name, value in said.get("settings", {}).items() if settings.get(name) != value}
        if settings and moved:
            yield "changed", ", ".join(f"{name}: {_short(name, value)}" for name, value in moved.items())
        if settings and "status" in said:
            yield said["status"], f"{said['at']} {settings.get(said['at'], '')}" if "at" in said else ""
    elif kind == "item_added":
        if not any("state" in one for one in said["items"]):  # otherwise somebody proposed it
            yield "added", ", ".join(one["name"] for one in said["items"])
    elif kind == "item_changed":
        fields = ", ".join(name for name in TOLD if name in said)
        yield "edited", f"{called(said['item'])} ({fields})" if fields else called(said["item"])
    elif kind == "item_merged":
        into = said["into"]
        yield ("parted", called(said["item"])) if into is None else (
            "merged", f"{called(said['item'])} → {called(into)}"
        )  # fmt: skip
    elif kind == "organiser":
        if said["role"] is None:
            yield "revoked", names.get(said["number"], "")
        else:
            yield "invited", f"{said['name']} ({said['role']})"
    elif kind == "erased":
        yield "erased", user_of(said["number"])
    else:
        become = said.get("state", "retired")
        yield "accepted" if become == "active" else become, called(said["item"])


def _short(name: str, value: Any) -> str:
    if name in described() and described()[name].form == "secret":
        return "..."
    told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return told if len(told) <= _LONGEST_SHOWN else f"{told[:_LONGEST_SHOWN]}..."
