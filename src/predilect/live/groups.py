"""Groups of opinion that a poll publishes: none too small, and none that follows from the difference of two."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from predilect.decisions.groups import Groups
from predilect.live.answers import user_of
from predilect.live.log import Log
from predilect.live.state import PollState
from predilect.live.tables import events, groups


def publish(log: Log, state: PollState, criterion: int, model: Any, seen: int) -> None:
    """Look for groups among those who answered, and publish what may be: after a refit, of the events up to it.

    ``seen``: erasures that the events know of; after another one nothing is published.
    """
    assert state.settings is not None
    smallest = state.settings.smallest_group
    with log.reading() as connection:
        last = _last_told(connection, log.poll, criterion)
    since = {
        user_of(one.answer.participant)
        for one in state.changes if one.criterion == criterion and one.sequence > last
    }  # fmt: skip
    if not smallest or not model.personal_ or len(since) < 2 * smallest:  # of two groups, one would have too few
        return
    found, whose = model._grouped(smallest)
    if not may_follow(found, whose, since, smallest):
        return
    with log.writing() as connection:
        n_erased: Any = connection.scalar(
            sa.select(sa.func.count()).where(events.c.poll == log.poll, events.c.kind == "erased")
        )
        if n_erased > seen or _last_told(connection, log.poll, criterion) != last:
            return
        this = (groups.c.poll == log.poll) & (groups.c.criterion == criterion)
        connection.execute(sa.delete(groups).where(this, groups.c.sequence != last))
        if state.sequence != last:
            content = json.dumps(found.to_dict())
            row = {"poll": log.poll, "criterion": criterion, "sequence": state.sequence, "content": content}
            connection.execute(sa.insert(groups).values(row))


def may_follow(found: Groups, whose: dict[Any, str], since: Collection[Any], smallest: int) -> bool:
    """Whether groups may be published after others, ``since`` when these people answered, or took answers back.

    What a group says now less what it said is then of that many people of it, and never of a few.
    """
    counts = Counter(whose[user] for user in since if user in whose)
    return all(counts[one.name] >= smallest for one in found.groups)


def published(log: Log, criterion: int, smallest: int, names: Mapping[str, str]) -> Groups | None:
    """The newest publication, of items by their names now, by keys; None if there is none, or it is allowed no more."""
    this = (groups.c.poll == log.poll) & (groups.c.criterion == criterion)
    with log.reading() as connection:
        content = connection.scalar(
            sa.select(groups.c.content).where(this).order_by(groups.c.sequence.desc()).limit(1)
        )  # fmt: skip
    if content is None or not smallest:
        return None
    found = Groups.from_dict(json.loads(content))
    if any(one.people < smallest for one in found.groups):
        return None
    shown = tuple(replace(one, opinions=tuple(_named(one.opinions, names))) for one in found.groups)
    return replace(found, groups=shown, items=tuple(_named(found.items, names)))


def _named(each: Iterable[Any], names: Mapping[str, str]) -> Iterator[Any]:
    return (replace(one, item=names[str(one.item)]) for one in each if str(one.item) in names)


def _last_told(connection: sa.Connection, poll: int, criterion: int) -> int:
    """Sequence of the last publication that told of groups, or may have; 0 if there was none."""
    this = (groups.c.poll == poll) & (groups.c.criterion == criterion)
    rows = connection.execute(sa.select(groups.c.sequence, groups.c.content).where(this)).all()
    return max(
        (row.sequence for row in rows if row.content is None or json.loads(row.content)["groups"]), default=0
    )  # fmt: skip
