"""Erasing a participant: their rows keep their numbers and what kind they were, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from predilect.live.log import New, Writing
from predilect.live.state import PollState
from predilect.live.tables import events, groups, models, participants


def erase(state: PollState, poll: int, number: int) -> Writing:
    """Erase a participant from the database; processes hear of it by an event, and forget them too.

    Refits since they joined are thrown away, to be made anew without them. So are groups of opinion that were
    published; that they were stays known, and the next ones do not tell by their difference. Items of theirs that were
    accepted, or that others proposed too, stay with nobody's name; the texts of the others go. ``Database.scrub`` takes
    what was deleted out of the files.
    """
    gone = [(item, name) for item in state.items if (name := item.name_without(number)) != item.name]
    added = {item.added_at: {"items": [{"name": name, "state": "refused"}]} for item, name in gone}
    more = {sequence: {"item": item.number} for item, _ in gone for sequence in item.told_at}
    return Writing(lambda _: None, [New("erased", {"number": number})],
                   lambda connection, _: _empty(connection, poll, number, added | more))  # fmt: skip


def _empty(connection: Any, poll: int, number: int, instead: dict[int, dict[str, Any]]) -> None:
    """Take what is theirs out of every table; ``instead`` stands, by row, in the place of what they proposed."""
    for sequence, said in instead.items():
        this = (events.c.poll == poll) & (events.c.sequence == sequence)
        connection.execute(sa.update(events).where(this).values(payload=json.dumps(said), crc=None))
    theirs = (events.c.poll == poll) & (events.c.participant == number)
    kept = events.c.kind.in_(("item_added", "reported"))  # which say nothing of them once the number is gone
    connection.execute(sa.update(events).where(theirs, ~kept).values(payload=None))
    connection.execute(sa.update(events).where(theirs).values(participant=None, key=None, time=0.0, crc=None))
    gone = (participants.c.poll == poll) & (participants.c.number == number)
    connection.execute(sa.delete(participants).where(gone))
    connection.execute(sa.delete(models).where(models.c.poll == poll, models.c.sequence >= number))
    connection.execute(sa.update(groups).where(groups.c.poll == poll).values(content=None))
