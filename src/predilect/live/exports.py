"""What leaves a poll: tables of answers, of what was shown, of people; all that is kept of one of them."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from itertools import chain
from typing import Any, Literal, get_args

import polars as pl
import sqlalchemy as sa

from predilect._base.text import did_you_mean, quoted
from predilect.decisions.groups import Groups
from predilect.errors import DataError
from predilect.live.answers import moment, table, user_of
from predilect.live.state import PollState, is_moment
from predilect.live.suspects import FAST, REASONS, seconds, suspects
from predilect.live.tables import events, participants
from predilect.live.trail import trail
from predilect.show.report.tables import write_csv

Export = Literal["answers", "shown", "items", "board", "groups", "participants", "events", "trail"]
_SMALLEST_GROUP = 5


def export(poll: Any, kind: str, show_pids: bool) -> pl.DataFrame:
    """The table of a kind; DataError if there is none of that name."""
    kinds = get_args(Export)
    if kind not in kinds:
        raise DataError(f"there are exports {', '.join(kinds)}; got {quoted(kind)}.{did_you_mean(kind, kinds)}")
    if kind == "board":
        boards = [pl.DataFrame(poll.board(place)).with_columns(criterion=pl.lit(name))
                  for place, name in enumerate(poll.settings.boards)]  # fmt: skip
        return pl.concat(boards)
    if kind == "groups":
        found = [(name, poll.groups(place)) for place, name in enumerate(poll.settings.boards)]
        tables = [(Groups("none") if one is None else one).table().with_columns(criterion=pl.lit(name))
                  for name, one in found]  # fmt: skip
        return pl.concat(tables)
    if kind == "events":
        return _events(poll)
    if kind == "trail":
        return trail(poll)
    if kind == "participants":
        return _participants(poll, show_pids)
    with poll.log.lock:
        state: PollState = poll.log.state
        return {"answers": _answers, "shown": _shown, "items": _items}[kind](state)


def written(rows: pl.DataFrame, form: str) -> bytes:
    """A table as a file: "csv", "json" or "parquet"; a spreadsheet obeys no formula that somebody proposed as an item.

    Readers take off again what it marks.
    """
    content = io.BytesIO()
    if form == "csv":
        write_csv(rows, content)
    elif form == "json":
        rows.write_json(content)
    else:
        rows.write_parquet(content)
    return content.getvalue()


def _answers(state: PollState) -> pl.DataFrame:
    """Answers that stand, and what they count for once items are merged; one that is about one item then has no row."""
    return table(state, state.counting())


def _shown(state: PollState) -> pl.DataFrame:
    every = chain.from_iterable(one.shown.values() for one in state.people.values())
    rows = [
        {
            "question": one.sequence, "user": user_of(one.participant), "time": moment(one.time),
            "items": " | ".join(state.items[number - 1].name for number in one.items), "probability": one.probability,
            "retest": one.retest,
        }
        for one in sorted(every, key=lambda one: one.sequence)
    ]  # fmt: skip
    types = {"question": pl.Int64, "user": pl.String, "time": pl.String, "items": pl.String,
             "probability": pl.Float64, "retest": pl.Boolean}  # fmt: skip
    return pl.DataFrame(rows, schema=types)


def _items(state: PollState) -> pl.DataFrame:
    attributes = sorted({name for item in state.items for name in item.attributes})
    rows = [
        {
            "number": item.number, "item": item.name, "state": item.state, "merged_into": item.into,
            "description": item.description, "link": item.link, "image": item.image,
            "times_shown": state.times_shown[item.number - 1], "reports": item.reports,
        } | {f"attribute {name}": item.attributes.get(name) for name in attributes}
        for item in state.items
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def _participants(poll: Any, show_pids: bool) -> pl.DataFrame:
    """Who took part; outer references as HMAC by the poll's key, so that nobody can try all of a short form."""
    with poll.log.reading() as connection:
        chosen = sa.select(participants).where(participants.c.poll == poll.log.poll).order_by(participants.c.number)
        kept = {row.number: row for row in connection.execute(chosen)}
    rows = []
    with poll.log.lock:
        flagged = suspects(poll.log.state)
        for number, person in sorted(poll.log.state.people.items()):
            pid = kept[number].pid if number in kept else None
            if pid is not None and not show_pids:
                pid = hashlib.sha256(f"{poll.log.signing}{pid}".encode()).hexdigest()[:16]
            rows.append({
                "user": user_of(number), "joined": moment(person.time), "language": person.language or None, "pid": pid,
                "shown": len(person.shown), "answers": sum(one.value is not None for one in person.answers.values()),
                "skipped": sum(one.value is None for one in person.answers.values()), "proposals": person.proposals,
                "suspected_of": ", ".join(flagged.get(number, ())) or None,
            })  # fmt: skip
    types = {"user": pl.String, "joined": pl.String, "language": pl.String, "pid": pl.String, "shown": pl.Int64,
             "answers": pl.Int64, "skipped": pl.Int64, "proposals": pl.Int64, "suspected_of": pl.String}  # fmt: skip
    return pl.DataFrame(rows, schema=types)


def _events(poll: Any) -> pl.DataFrame:
    chosen = sa.select(events.c.sequence, events.c.time, events.c.kind, events.c.participant, events.c.payload)
    with poll.log.reading() as connection:
        rows = connection.execute(chosen.where(events.c.poll == poll.log.poll).order_by(events.c.sequence)).all()
    types = {"sequence": pl.Int64, "time": pl.String, "kind": pl.String, "user": pl.String, "payload": pl.String}
    return pl.DataFrame(
        [(row.sequence, moment(row.time) if row.time and is_moment(row.time) else None, row.kind,
          None if row.participant is None else user_of(row.participant),
          None if row.payload is None else str(row.payload)) for row in rows],
        schema=types, orient="row",
    )  # fmt: skip


def own(state: PollState, number: int) -> dict[str, Any]:
    """All that is kept of one participant."""
    assert state.settings is not None
    person, boards = state.people[number], state.settings.boards
    return {
        "question": state.settings.question, "joined": moment(person.time), "language": person.language,
        "answers": [
            {
                "time": moment(one.time), "criterion": boards[one.criterion],
                "shown": [state.items[item - 1].name for item in one.items],
                "answer": [state.items[one.items[place] - 1].name for place in one.value or ()],
                "kind": "skip" if one.value is None else "tie" if not one.value else state.settings.kind,
            } | ({"reason": one.reason} if one.reason else {})
            for one in sorted(person.answers.values(), key=lambda one: one.sequence)
        ],
        "questions_without_answer": [
            {"time": moment(one.time), "shown": [state.items[item - 1].name for item in one.items]}
            for one in state.open_questions(person)
        ],
        "proposals": [item.name for item in state.items if number in item.proposers],
    }  # fmt: skip


def people(state: PollState) -> dict[str, Any]:
    """Numbers by which vote stuffing shows; a group of fewer than five people is only called that."""
    hours = Counter(moment(one.time)[:13] for one in state.people.values())
    languages = Counter(one.language or "?" for one in state.people.values())
    answers = (one for person in state.people.values() for one in person.answers.values())
    reasons = Counter(one.reason for one in answers if one.reason)
    took = [one for person in state.people.values() for one in seconds(person)]
    fast, slow = sum(one < FAST for one in took), sum(one >= FAST for one in took)
    flagged = suspects(state)
    return {
        "people": len(state.people),
        "with_answers": sum(bool(state.said_by(person)) for person in state.people.values()),
        "answers": sum(state.n_answers),
        "faster_than_a_second": fast,
        "share_faster_than_a_second": fast / (fast + slow) if fast + slow else None,
        "suspects": len(flagged),
        "suspected_of": {why: sum(why in one for one in flagged.values()) for why in REASONS},
        "skipped_because": dict(sorted(reasons.items())),
        "joined_by_hour": _groups(hours),
        "languages": _groups(languages),
    }


def _groups(counts: Counter[str]) -> dict[str, int | str]:
    return {name: n if n >= _SMALLEST_GROUP else "fewer than 5" for name, n in sorted(counts.items())}
