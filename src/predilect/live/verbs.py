"""What participants and organisers may do in a state of a poll, and the events that it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from predilect._base.text import one_line, quoted
from predilect.live.given import (
    SKIPS,
    Refused,
    Unfit,
    folded,
    item_of,
    person_of,
    question_of,
    read_answer,
    read_items,
    read_name,
    read_told,
    refuse_known,
    repeated,
)
from predilect.live.log import New, Writing
from predilect.live.questions import Drawn
from predilect.live.settings import FIXED, Settings, agreed
from predilect.live.state import Item, Participant, PollState, Status

STATUSES = ("open", "paused", "closed")  # that organisers bring a poll into; it begins as a draft or open
_MOST_PROPOSALS = 20
_DECIDED = {
    "active": "asked about. Retire it", "retired": "retired, and not asked about any more",
    "merged": "merged into another one. Part them first",
}  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What became of an answer: its number, and whether the same key had come before."""

    answer: int
    repeated: bool = False


def answer(
    state: PollState, person: Participant, given: Any, key: str | None, *, shown: int, criterion: int | None,
    old: int | None, shown_ms: int | None, then: Callable[[], list[New]],
) -> Writing:  # fmt: skip
    """Keep an answer to a question, or in the place of an ``old`` one; ``then``: the questions that follow."""
    before = repeated(person, key, "answered")
    asked, on = question_of(state, person, shown, criterion, old, before)
    value = read_answer(state, asked, given)
    if before is not None:
        if person.answers[before].value != value or criterion not in (None, on):
            raise Refused("this key was used for another answer. Send each answer with a key of its own")
        return Writing(lambda _: Told(before, True))
    _must_be_open(state)
    last = old if old is not None else person.given.get((asked.sequence, on))
    if last is not None and person.answers[last].value == value:
        return Writing(lambda _: Told(last, True))
    payload: dict[str, Any] = {"shown": asked.sequence, "value": None if value is None else list(value)}
    payload |= ({"criterion": on} if on else {}) | ({} if shown_ms is None else {"ms": shown_ms})
    if value is None and (reason := SKIPS.get(given or "skip", "")):
        payload["reason"] = reason
    if old is not None:
        if not _settings(state).undo:
            raise Refused("answers of this poll cannot be changed", 403)
        payload["replaces"] = old
    elif last is not None:
        raise Refused("this question was answered already. Replace that answer, or take it back")
    return Writing(lambda numbers: Told(numbers[0]), [New("answered", payload, person.number, key), *then()])


def put(state: PollState, number: int, question: Drawn) -> Writing:
    """Put a question before somebody who read it before they took part: their first; its number."""
    person = person_of(state, number)
    there = next((one.sequence for one in person.shown.values() if one.items == question.items), None)
    if there is not None:
        return Writing(lambda _: there)
    _must_be_open(state)
    active = {item.number for item in state.active()}
    if person.shown or not active.issuperset(question.items) or len(question.items) != _settings(state).n_shown:
        raise Refused("this question is asked no more")
    return Writing(lambda numbers: numbers[0], [question.event(number)])


def undo(state: PollState, number: int, key: str | None) -> Writing:
    """Take back the last answer of a participant."""
    person = person_of(state, number)
    if (before := repeated(person, key, "undone")) is not None:
        return Writing(lambda _: before)
    if not _settings(state).undo:
        raise Refused("answers of this poll cannot be taken back", 403)
    _must_be_open(state)
    last = person.last_answer()
    if last is None:
        raise Refused("there is no answer to take back")
    return Writing(lambda _: last.sequence, [New("undone", {"answer": last.sequence}, number, key)])


def propose(state: PollState, number: int, text: str, key: str | None) -> Writing:
    """Propose an item; one that waits already, or was refused, is that one, and who proposed it is not told."""
    person = person_of(state, number)
    before = repeated(person, key, "proposed")
    if before is None and not _settings(state).proposals:
        raise Refused("this poll takes no proposals", 403)
    if before is None:
        _must_be_open(state)
    wanted = folded(read_name(text, text))
    if before is not None:
        if folded(state.items[before - 1].name) != wanted:
            raise Refused("this key came with another proposal before. Send each with a key of its own")
        return Writing(lambda _: before)
    there = next((item for item in state.items if folded(item.name) == wanted), None)
    if there is not None and state.items[(root := state.root(there.number)) - 1].is_moderated:
        raise Refused(f'the poll asks about "{one_line(state.items[root - 1].name)}" already')
    if there is not None and number in there.proposers:
        return Writing(lambda _: there.number)
    if person.proposals >= _MOST_PROPOSALS:
        raise Refused(f"a participant may propose {_MOST_PROPOSALS} items", 429)
    if there is not None:
        return Writing(lambda _: there.number, [New("proposed", {"item": there.number}, number, key)])
    listed = [one | {"state": "proposed"} for one in read_items([text], state)]
    place = len(state.items) + 1
    return Writing(lambda _: place, [New("item_added", {"items": listed}, number, key)])


def add(state: PollState, said: Sequence[str | Mapping[str, Any]]) -> Writing:
    """Add items of the organiser."""
    listed = read_items(said, state)
    first = len(state.items) + 1
    return Writing(lambda _: list(range(first, first + len(listed))), [New("item_added", {"items": listed})])


def moderate(state: PollState, item: str | int, accept: bool) -> Writing:
    """Accept or refuse an item."""
    found = item_of(state.items, item)
    if found.state == "merged" or (not accept and found.state in _DECIDED):
        raise Refused(f'the item "{one_line(found.name)}" is {_DECIDED[found.state]}')
    new = "active" if accept else "refused"
    return _nothing_or(New("item_state", {"item": found.number, "state": new}), found.state != new)


def edit(state: PollState, item: str | int, said: Mapping[str, Any]) -> Writing:
    """Call an item otherwise, or say more of it; its answers stay."""
    found = item_of(state.items, item)
    told = read_told(said)
    if "name" in told:
        told["name"] = read_name(told["name"], told["name"])
        refuse_known(state, told["name"], found)
    new = {key: value for key, value in told.items() if getattr(found, key) != value}
    return _nothing_or(New("item_changed", {"item": found.number, **new}), bool(new))


def merge(state: PollState, item: str | int, into: str | int) -> Writing:
    """Let the answers on an item count for another one, and ask no more about it."""
    found, other = item_of(state.items, item), item_of(state.items, into)
    if found.state == "merged" and found.into == other.number:
        return Writing(lambda _: None)
    if found.state == "merged":
        raise Refused(f'the item "{one_line(found.name)}" is {_DECIDED["merged"]}')
    if other.state not in ("active", "retired"):
        raise Refused(f'nothing is merged into the item "{one_line(other.name)}": it is {other.state}')
    if other.number == found.number:
        raise Refused("an item is not merged into itself")
    _must_leave_enough(state, found)
    return Writing(lambda _: None, [New("item_merged", {"item": found.number, "into": other.number})])


def part(state: PollState, item: str | int) -> Writing:
    """Undo a merge: the answers on an item count for itself again, and it is what it was before."""
    found = item_of(state.items, item)
    return _nothing_or(New("item_merged", {"item": found.number, "into": None}), found.state == "merged")


def _must_leave_enough(state: PollState, item: Item) -> None:
    shown = _settings(state).n_shown
    if item.state == "active" and len(state.active()) <= shown:
        raise Refused(f"a question shows {shown} items, and no more are left")


def retire(state: PollState, item: str | int) -> Writing:
    """Ask no more about an item."""
    found = item_of(state.items, item)
    _must_leave_enough(state, found)
    return _nothing_or(New("item_retired", {"item": found.number}), found.state == "active")


def report(state: PollState, number: int, item: str | int) -> Writing:
    """Report an item."""
    found = item_of(state.moderated(), item)
    if not any(found.number in shown.items for shown in person_of(state, number).shown.values()):
        raise Refused("only an item that was shown to you can be reported", 403)
    return _nothing_or(
        New("reported", {"item": found.number}, number), (number, found.number) not in state.reports
    )  # fmt: skip


def set_status(state: PollState, status: Status) -> Writing:
    """Open, pause or close the poll."""
    if status not in STATUSES:
        raise Unfit(f"a poll is made {', '.join(STATUSES)}; got {quoted(status)}")
    return _nothing_or(New("state", {"status": status}), state.status != status)


def keep_time(state: PollState, now: float) -> Writing:
    """Open or close the poll because a time of its settings came."""
    name = state.due_by(now)
    said = {"status": {"opens": "open", "closes": "closed", "": state.status}[name], "at": name}
    return _nothing_or(New("state", said), bool(name))


def settle(state: PollState, criterion: int, items: Sequence[str], probability: float) -> Writing:
    """Keep that first place is clear; the number of that, or None if it was known."""
    numbers = [item.number for item in state.active() if item.name in items]
    if not numbers or state.settled.get(criterion) == numbers:
        return Writing(lambda _: None)
    said = {"criterion": criterion, "items": numbers, "probability": round(probability, 4)}
    return Writing(lambda written: written[0], [New("settled", said)])


def change(state: PollState, settings: Mapping[str, Any]) -> Writing:
    """Change settings."""
    before = _settings(state)
    new = agreed(settings, before)
    moved = [name for name, old, now in zip(FIXED, before.meaning, new.meaning, strict=True) if old != now]
    if moved and state.n_events:
        raise Refused(f"{', '.join(moved)} cannot change once there are answers. Make another poll")
    if new.opens and new.opens != before.opens and state.status not in ("draft", "paused"):
        raise Refused(f"the poll is {state.status}, and opens nothing by itself. Pause it first")
    if len(state.active()) < new.n_shown:
        raise Refused(f"a question would show {new.n_shown} items, and there are {len(state.active())}. Add some first")
    return _nothing_or(New("state", {"settings": new.to_dict()}), new != state.settings)


def _nothing_or(event: New, is_new: bool) -> Writing:
    """An event, if it changes anything."""
    return Writing(lambda _: None, [event] if is_new else [])


def must_have_begun(state: PollState) -> None:
    """Refused for whoever wants to take part in a poll that is a draft, or over."""
    if state.status == "draft":
        raise Refused("the poll has not begun")
    if state.status == "closed":
        raise Refused("the poll is closed")


def _must_be_open(state: PollState) -> None:
    if state.status != "open":
        raise Refused(f"the poll is {state.status}")


def _settings(state: PollState) -> Settings:
    assert state.settings is not None
    return state.settings
