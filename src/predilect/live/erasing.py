"""Erasing a participant: their rows keep their numbers and what kind they were, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from predilect.live.log import Log, New, Plan
from predilect.live.state import State, erased_name
from predilect.live.tables import events, models, participants


def erase(log: Log, number: int) -> None:
    """Erase a participant from the database; processes hear of it by an event, and forget them too.

    Refits since they joined are thrown away, to be made anew without them. Items of theirs that were accepted stay, as
    others have answered about them, with nobody's name; the texts of the others go. ``Database.scrub`` takes what was
    deleted out of the files.
    """

    def decide(state: State, _: Any) -> Plan:
        states: dict[int, str] = {item.added_at: item.state for item in state.items}

        def remove(connection: Any, _: list[int]) -> None:
            _empty(connection, log.poll, number, states, {item.added_at: item.number for item in state.items})

        return Plan(lambda _: None, [New("erased", {"number": number})], remove)

    log.write(None, decide)


def _empty(connection: Any, poll: int, number: int, states: dict[int, str], numbers: dict[int, int]) -> None:
    """Take what is theirs out of every table."""
    theirs = (events.c.poll == poll) & (events.c.participant == number)
    proposals = sa.select(events.c.sequence).where(theirs, events.c.kind == "item_added")
    for sequence in list(connection.scalars(proposals)):
        if states[sequence] in ("proposed", "refused"):
            nothing = json.dumps({"items": [{"name": erased_name(numbers[sequence]), "state": "refused"}]})
            this = (events.c.poll == poll) & (events.c.sequence == sequence)
            connection.execute(sa.update(events).where(this).values(payload=nothing))
    kept = events.c.kind.in_(("item_added", "reported"))  # which say nothing of them once the number is gone
    connection.execute(sa.update(events).where(theirs, ~kept).values(payload=None))
    connection.execute(sa.update(events).where(theirs).values(participant=None, key=None, time=0.0))
    gone = (participants.c.poll == poll) & (participants.c.number == number)
    connection.execute(sa.delete(participants).where(gone))
    connection.execute(sa.delete(models).where(models.c.poll == poll, models.c.sequence >= number))
