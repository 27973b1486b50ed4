"""What a poll's events say so far: a fold over the log, the same in every process."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from typing import Any, Literal, NamedTuple, get_args

from predilect._base.text import one_line
from predilect.errors import DataError
from predilect.live.moments import seconds_of
from predilect.live.settings import TIMES, Settings

_LAST_MOMENT = 253_402_300_800.0  # the end of the year 9999
# Kinds of rows: those without which others would mean something else, and those that others can do without.
_ALONE = (
    "proposed", "item_state", "item_retired", "item_changed", "item_merged", "reported", "joined", "shown", "answered",
    "undone", "erased", "organiser",
    "settled",
)  # fmt: skip
KINDS = ("state", "item_added", *_ALONE)
Status = Literal["draft", "open", "paused", "closed"]
Role = Literal["reader", "moderator", "organiser"]  # each may do what those before it may
ItemState = Literal["proposed", "active", "retired", "refused", "merged"]
_DECIDED = get_args(ItemState)[:-1]  # what an item can be by itself
TOLD = ("name", "description", "image", "link")  # what is said of an item, and may be changed


class Event(NamedTuple):
    """One row of the log."""

    sequence: int
    time: float  # seconds since 1970
    kind: str
    participant: int | None
    payload: dict[str, Any] | None  # None of the erased
    key: str | None = None
    damage: str = ""  # what is wrong with the row


class Organiser(NamedTuple):
    """Somebody who looks after a poll; number 0 is whoever has the poll's own token, or the file of the poll."""

    number: int  # sequence of the event that let them in
    name: str
    role: Role


OWNER = Organiser(0, "", "organiser")


class LeftOut(NamedTuple):
    """A row of the log that could not be taken in; it stays there."""

    row: int
    kind: str
    why: str
    participant: int | None


@dataclass(slots=True)
class Item:
    """Something that is compared.

    ``key`` is what models call it, which stays when it is renamed; ``into`` the number of the item that its answers
    count for, where it is merged into one, and ``was`` the state that it had before.
    """

    number: int
    name: str
    image: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    state: ItemState = "active"
    proposers: set[int] = field(default_factory=set)
    reports: int = 0
    added_at: int = 0  # sequence of the event
    description: str = ""  # Markdown
    link: str = ""
    key: str = ""
    into: int | None = None
    was: ItemState = "active"
    told_at: list[int] = field(default_factory=list)  # sequences of events that say more of it

    @property
    def is_moderated(self) -> bool:
        """Whether somebody decided on it: it is asked about, or was."""
        return (self.was if self.state == "merged" else self.state) in ("active", "retired")

    def name_without(self, number: int) -> str:
        """What it is called once somebody is erased: text that nobody accepted, and nobody else proposed, goes too."""
        stays = self.is_moderated or self.proposers != {number}
        return self.name if stays else f"(erased\N{NO-BREAK SPACE}{self.number})"  # which nobody can propose


class Shown(NamedTuple):
    """A question that was put before a participant."""

    sequence: int
    time: float
    participant: int
    items: tuple[int, ...]  # numbers, in the order on the screen
    probability: float | None  # with which these items were drawn; None of a repeated pair
    retest: bool


class Answer(NamedTuple):
    """An answer that stands."""

    sequence: int
    time: float
    participant: int
    shown: int  # sequence of the question
    items: tuple[int, ...]  # of the question
    criterion: int
    value: tuple[int, ...] | None  # places on the screen, the best first; () a tie, None a skip
    shown_ms: int | None = None  # since the question was on the screen, as the page says
    reason: str = ""  # of a skip, where one was given


class Keyed(NamedTuple):
    """What came with a key: the kind of event, and its result: an answer, the answer taken back, an item."""

    kind: str
    result: int


class Change(NamedTuple):
    """What an event means for the model of a criterion."""

    sequence: int
    criterion: int
    is_added: bool
    answer: Answer


@dataclass(slots=True)
class Participant:
    """What a participant was asked and answered."""

    number: int
    time: float
    language: str = ""
    shown: dict[int, Shown] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)  # by sequence
    given: dict[tuple[int, int], int] = field(default_factory=dict)  # (question, criterion) to answer
    keys: dict[str, Keyed] = field(default_factory=dict)
    proposals: int = 0

    def next_criterion(self, shown: Shown, n_criteria: int) -> int | None:
        """The first criterion on which a question is not answered."""
        return next((k for k in range(n_criteria) if (shown.sequence, k) not in self.given), None)

    def last_answer(self) -> Answer | None:
        """The latest answer that stands."""
        return self.answers[max(self.answers)] if self.answers else None


def due_counts() -> Iterator[int]:
    """Numbers of answers at which the model is fitted anew: 10 · 1.1^k, at least 50 apart."""
    last, value = -50, 10.0
    while True:
        if (count := -int(-value // 1)) >= last + 50:
            yield count
            last = count
        value *= 1.1


class PollState:
    """The fold of a poll's events.

    ``sequence`` is that of the last one; ``due`` are sequences at which a refit is due, ``n_events`` how many answers
    were ever given, erased ones too; ``changes`` what they mean for the models, in order.
    """

    def __init__(self) -> None:
        self.sequence = 0
        self.settings: Settings | None = None
        self.status: Status = "draft"
        self.closed_at: float | None = None
        self.items: list[Item] = []
        self.by_name: dict[str, Item] = {}
        self.by_key: dict[str, Item] = {}
        self.people: dict[int, Participant] = {}
        self.changes: list[Change] = []
        self.times_shown: list[int] = []
        self.n_events = 0
        self.n_answers = [0]  # that stand, by criterion
        self.due: list[int] = []
        self.over: set[tuple[str, str]] = set()  # times of the settings that came, and do nothing any more
        self.settled: dict[int, list[int]] = {}  # items in first place when it was last found clear, by criterion
        self.organisers = {OWNER.number: OWNER}
        self.reports: set[tuple[int, int]] = set()  # of whom, about which item
        self.erasures: list[tuple[int, int]] = []  # sequence, and number of whoever was erased
        self.left_out: list[LeftOut] = []
        self.board_changed = 0  # sequence at which the items or the settings last changed
        self._counts = due_counts()
        self._next_due = next(self._counts)

    @property
    def n_criteria(self) -> int:
        """Number of boards."""
        assert self.settings is not None
        return len(self.settings.boards)

    def active(self) -> list[Item]:
        """Items that are asked about."""
        return [item for item in self.items if item.state == "active"]

    def open_questions(self, person: Participant) -> list[Shown]:
        """Questions that are asked of somebody: not answered on every criterion; the oldest first.

        One about an item that was retired is asked no more; whoever has it before them may still answer.
        """
        n = self.n_criteria
        return [one for one in person.shown.values()
                if person.next_criterion(one, n) is not None and self._is_asked(one)]  # fmt: skip

    def n_questions(self, person: Participant) -> int:
        """How many questions somebody was asked, without those that were withdrawn before any answer."""
        answered = {shown for shown, _ in person.given}
        return sum(one.sequence in answered or self._is_asked(one) for one in person.shown.values())

    def _is_asked(self, shown: Shown) -> bool:
        return all(self.items[number - 1].state == "active" for number in shown.items)

    def moderated(self) -> list[Item]:
        """Items that somebody decided on: those that are asked about, and those that were.

        No other leaves the poll, but for the organiser and whoever proposed it.
        """
        return [item for item in self.items if item.is_moderated]

    def root(self, number: int) -> int:
        """The item that answers on an item count for: itself, unless it is merged into another."""
        while (into := self.items[number - 1].into) is not None:
            number = into
        return number

    def counted(self, answer: Answer) -> Answer | None:
        """What an answer says once items are merged; None where it is about one alone.

        Of an order the better place of the merged counts.
        """
        into = [self.items[number - 1].into for number in answer.items]
        if into.count(None) == len(into):
            return answer
        roots = [self.root(number) for number in answer.items]
        items = tuple(dict.fromkeys(roots))
        if len(items) < 2:
            return None
        value = None if answer.value is None else tuple(dict.fromkeys(items.index(roots[k]) for k in answer.value))
        if value is not None and len(value) < len(answer.value or ()) and self._kind() == "best-worst":
            return None  # the best and the worst are one
        return answer._replace(items=items, value=value)

    def said_by(self, person: Participant, criterion: int | None = None) -> list[Answer]:
        """Answers of somebody that say something of items as they are merged, on one criterion or all."""
        every = map(self.counted, person.answers.values())
        return [
            one for one in every if one is not None and one.value is not None and criterion in (None, one.criterion)
        ]

    def counting(self) -> list[Answer]:
        """All answers that stand, skips too, as they count once items are merged; the oldest first."""
        every = (self.counted(one) for person in self.people.values() for one in person.answers.values())
        return sorted((one for one in every if one is not None), key=lambda one: one.sequence)

    def _kind(self) -> str:
        assert self.settings is not None
        return self.settings.kind

    def item(self, number: int) -> Item | None:
        """The item of a number, from 1."""
        return self.items[number - 1] if 0 < number <= len(self.items) else None

    def apply(self, event: Event) -> None:
        """Take in the next event, or leave it out where it cannot be: one row ends no poll.

        So each ``_on_`` looks at all that an event says before it changes anything. DataError where what comes later
        would mean something else without the row.
        """
        if event.sequence != self.sequence + 1:
            raise damaged(event.sequence, f"it comes after row {self.sequence}")
        if event.kind == "answered":
            self.n_events += 1
            if self.n_events == self._next_due:
                self.due.append(event.sequence)
                self._next_due = next(self._counts)
        try:
            _must(not event.damage, event.damage)
            _must(event.kind in KINDS, f'there is no kind "{event.kind}"')
            _must(is_moment(event.time), "its time is none")
            if event.payload is not None:
                getattr(self, f"_on_{event.kind}")(event, event.payload)
        except Exception as error:  # noqa: BLE001  whatever is wrong with one row, the others are right
            self._leave_out(event, f"there is no {error}" if isinstance(error, KeyError) else one_line(error))
        self.sequence = event.sequence

    def _leave_out(self, event: Event, why: str) -> None:
        said, number = event.payload or {}, len(self.items)
        is_needed = "settings" in said or (event.kind == "item_added" and not isinstance(said.get("items"), list))
        if event.kind not in _ALONE and (event.damage or event.kind not in KINDS or is_needed):
            raise damaged(event.sequence, why)
        if event.kind == "item_added":  # those that come later keep their numbers
            self._add(Item(k, f"(left\N{NO-BREAK SPACE}out {k})", state="refused")
                      for k in range(number + 1, number + 1 + len(said["items"])))  # fmt: skip
        if event.kind == "joined" and isinstance(event.participant, int):  # who may answer, and be erased
            self.people[event.participant] = Participant(event.participant, 0.0)
        if event.participant in self.people:
            self._keep_key(event, event.sequence)  # which the database takes once
        self.left_out.append(LeftOut(event.sequence, event.kind, why, event.participant))

    def _add(self, items: Iterable[Item]) -> None:
        for item in items:
            self.items.append(item)
            self.by_name[item.name] = item
            item.key = item.name
            while item.key in self.by_key:  # an item had this name before it was renamed
                item.key += f"\N{NO-BREAK SPACE}({item.number})"
            self.by_key[item.key] = item
            self.times_shown.append(0)

    def _on_state(self, event: Event, said: dict[str, Any]) -> None:
        _must(said.get("status", "open") in get_args(Status), "its status is none")
        if "settings" in said:
            before, self.settings = self.settings, Settings.of(said["settings"])
            if before is not None and before.meaning != self.settings.meaning:
                for person in self.people.values():
                    self._withdraw(person)
            self.board_changed = event.sequence
            self.n_answers += [0] * (self.n_criteria - len(self.n_answers))
        if "status" in said:
            self.status = said["status"]
            self.closed_at = event.time if self.status == "closed" else None
            self.over |= {
                (name, text) for name, text in self._times()
                if said.get("at") == name or ("at" not in said and (seconds_of(text) or 0.0) <= event.time)
            }  # fmt: skip

    def _times(self) -> list[tuple[str, str]]:
        return [(name, text) for name in TIMES if (text := getattr(self.settings, name, ""))]

    def due_by(self, now: float) -> str:
        """The time of the settings that came, if one of them did and changes the status: "opens" or "closes"."""
        befores = {"opens": ("draft", "paused"), "closes": ("open", "paused")}
        return next(
            (name for name, text in self._times() if (name, text) not in self.over
             if self.status in befores[name] and (seconds_of(text) or 0.0) <= now), "",
        )  # fmt: skip

    def _on_item_added(self, event: Event, said: dict[str, Any]) -> None:
        person = None if event.participant is None else self.people[event.participant]
        new: dict[str, Item] = {}
        for number, one in enumerate(said["items"], len(self.items) + 1):
            name = one["name"]
            _must(
                isinstance(name, str) and name not in self.by_name and name not in new, "the name of its item is none"
            )
            _must(one.get("state", "active") in _DECIDED, "the state of its item is none")
            new[name] = Item(number, added_at=event.sequence, **one)
        self._add(new.values())
        if person is not None:
            self._propose(event, person, self.items[-1])
        self.board_changed = event.sequence

    def _on_proposed(self, event: Event, said: dict[str, Any]) -> None:
        """Somebody proposes what waits already, or was refused."""
        assert event.participant is not None
        self._propose(event, self.people[event.participant], self._item(said["item"]))

    def _propose(self, event: Event, person: Participant, item: Item) -> None:
        item.proposers.add(person.number)
        person.proposals += 1
        self._keep_key(event, item.number)

    def _on_item_state(self, event: Event, said: dict[str, Any]) -> None:
        item = self._item(said["item"])
        _must(said["state"] in _DECIDED and item.state != "merged", "the state of its item is none")
        item.state = said["state"]
        self.board_changed = event.sequence

    def _on_item_changed(self, event: Event, said: dict[str, Any]) -> None:
        """The organiser says more of an item, or calls it otherwise."""
        item, told = self._item(said["item"]), {name: said[name] for name in TOLD if name in said}
        _must(all(isinstance(value, str) for value in told.values()), "what it says of an item is no text")
        name = told.get("name", item.name)
        _must(name and self.by_name.get(name, item) is item, "the name of its item is none")
        del self.by_name[item.name]
        for key, value in told.items():
            setattr(item, key, value)
        self.by_name[name] = item
        item.told_at.append(event.sequence)
        self.board_changed = event.sequence

    def _on_item_merged(self, event: Event, said: dict[str, Any]) -> None:
        """Answers on an item count for another one from now on, or for itself again."""
        item, into = self._item(said["item"]), said["into"]
        if into is None:
            _must(item.state == "merged", "its item is not merged")
        else:
            _must(item.state != "merged" and self.root(self._item(into).number) != item.number, "it cannot be merged")
        now = self.root(item.number)
        theirs = [one for person in self.people.values() for one in person.answers.values()
                  if one.value is not None and any(self.root(number) == now for number in one.items)]  # fmt: skip
        before = [self.counted(one) for one in theirs]
        if into is None:
            item.state, item.into = item.was, None
        else:
            item.was, item.state, item.into = item.state, "merged", into
        for one, old in zip(theirs, before, strict=True):
            if (new := self.counted(one)) != old:
                self._count(old, event.sequence, is_added=False)
                self._count(new, event.sequence, is_added=True)
        self.board_changed = event.sequence

    def _count(self, answer: Answer | None, at: int, *, is_added: bool) -> None:
        """An answer counts from now on, or no more."""
        if answer is not None:
            self.n_answers[answer.criterion] += 1 if is_added else -1
            self.changes.append(Change(at, answer.criterion, is_added, answer))

    def _on_item_retired(self, event: Event, said: dict[str, Any]) -> None:
        self._on_item_state(event, {**said, "state": "retired"})

    def _on_reported(self, event: Event, said: dict[str, Any]) -> None:
        self._item(said["item"]).reports += 1
        if event.participant is not None:
            self.reports.add((event.participant, said["item"]))

    def _item(self, number: int) -> Item:
        if not (isinstance(number, int) and 0 < number <= len(self.items)):
            raise ValueError(f"there is no item {number}")
        return self.items[number - 1]

    def _on_joined(self, event: Event, said: dict[str, Any]) -> None:
        assert event.participant is not None
        person = Participant(event.participant, event.time, said.get("language", ""))
        self.people[event.participant] = person

    def _on_shown(self, event: Event, said: dict[str, Any]) -> None:
        assert event.participant is not None
        items = tuple(self._item(number).number for number in said["items"])
        chance = said["p"]
        _must(len({*items}) == len(items) > 1, "it shows an item twice, or less than two")
        _must(chance is None or (isinstance(chance, float | int) and 0.0 < chance <= 1.0), "its chance is none")
        shown = Shown(event.sequence, event.time, event.participant, items, chance, said.get("retest", False))
        self.people[event.participant].shown[event.sequence] = shown
        for number in items:
            self.times_shown[number - 1] += 1

    def _on_answered(self, event: Event, said: dict[str, Any]) -> None:
        assert event.participant is not None
        person = self.people[event.participant]
        value, criterion = said["value"], said.get("criterion", 0)
        shown = person.shown[said["shown"]]
        if value is not None:
            places = {*value}
            _must(places <= {*range(len(shown.items))} and len(places) == len(value), "its answer names what is not")
        _must(criterion in range(len(self.n_answers)), "there is no such criterion")
        answer = Answer(event.sequence, event.time, person.number, shown.sequence, shown.items, criterion,
                        None if value is None else tuple(value), said.get("ms"), said.get("reason", ""))  # fmt: skip
        if "replaces" in said:
            self._take_back(person, said["replaces"], event.sequence)
        person.answers[event.sequence] = answer
        person.given[answer.shown, answer.criterion] = event.sequence
        self._keep_key(event, event.sequence)
        if value is not None:
            self._count(self.counted(answer), event.sequence, is_added=True)

    def _on_undone(self, event: Event, said: dict[str, Any]) -> None:
        assert event.participant is not None
        person = self.people[event.participant]
        self._take_back(person, said["answer"], event.sequence)
        self._keep_key(event, said["answer"])

    def _keep_key(self, event: Event, result: int) -> None:
        if event.key is not None and event.participant is not None:
            kind = "proposed" if event.kind == "item_added" else event.kind
            self.people[event.participant].keys[event.key] = Keyed(kind, result)

    def _on_organiser(self, event: Event, said: dict[str, Any]) -> None:
        """Somebody may look after the poll from now on, or no more."""
        if said["role"] is None:
            _must(said["number"] in self.organisers and said["number"] != OWNER.number, "there is no such organiser")
            del self.organisers[said["number"]]
            return
        _must(said["role"] in get_args(Role) and isinstance(said["name"], str), "its role or name is none")
        self.organisers[event.sequence] = Organiser(event.sequence, said["name"], said["role"])

    def _on_settled(self, event: Event, said: dict[str, Any]) -> None:
        """First place of a criterion was found to be clear."""
        _must(said["criterion"] in range(len(self.n_answers)), "there is no such criterion")
        self.settled[said["criterion"]] = [self._item(number).number for number in said["items"]]

    def _on_erased(self, event: Event, said: dict[str, Any]) -> None:
        """Somebody is gone; a log that is read afterwards holds nothing of theirs before this event."""
        number = said["number"]
        self.left_out = [one for one in self.left_out if one.participant != number]
        self.erasures.append((event.sequence, number))
        person = self.people.pop(number, None)
        if person is None:
            return
        for answer in person.answers.values():
            if answer.value is not None and self.counted(answer) is not None:
                self.n_answers[answer.criterion] -= 1
        self._withdraw(person)
        for item in self.items:
            if number in item.proposers:
                self._disown(item, number)
        self.changes = [one for one in self.changes if one.answer.participant != number]
        self.reports = {one for one in self.reports if one[0] != number}

    def _withdraw(self, person: Participant) -> None:
        """All questions of somebody, as if they had not been asked."""
        for shown in person.shown.values():
            for number in shown.items:
                self.times_shown[number - 1] -= 1
        person.shown.clear()

    def _disown(self, item: Item, number: int) -> None:
        """An item outlives whoever proposed it if it was accepted, or others did too; otherwise its text goes."""
        name = item.name_without(number)
        item.proposers.discard(number)
        if name != item.name:
            del self.by_name[item.name], self.by_key[item.key]
            item.name = item.key = name
            item.image, item.description, item.link, item.attributes = "", "", "", {}
            if item.state == "merged":
                item.was = "refused"
            else:
                item.state = "refused"
            self.by_name[name] = self.by_key[name] = item

    def _take_back(self, person: Participant, sequence: int, at: int) -> None:
        answer = person.answers.pop(sequence)
        del person.given[answer.shown, answer.criterion]
        if answer.value is not None:
            self._count(self.counted(answer), at, is_added=False)


def is_moment(time: Any) -> bool:
    """Whether something is a time that can be told."""
    return isinstance(time, float | int) and 0.0 <= time < _LAST_MOMENT


def _must(holds: bool, otherwise: str) -> None:
    """ValueError unless something holds of an event."""
    if not holds:
        raise ValueError(otherwise)


def said_of(left_out: list[LeftOut]) -> str:
    """What is said of rows that were left out; "" of none."""
    if not left_out:
        return ""
    listed = "; ".join(f"row {one.row}, {one.kind}: {one.why}" for one in left_out[:3])
    more = f"; and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    return (
        f"the poll goes on without what its log says in {listed}{more}. Nothing of the log is lost. Put a back-up in "
        "the place of the database if it is damaged; otherwise a newer Predilect may read it"
    )


def damaged(sequence: int, why: str) -> DataError:
    """What is said of a row of the log without which nothing is to be had."""
    return DataError(
        f"row {sequence} of the poll's log is damaged: {why}. Nothing was changed. Put a back-up in the place of the "
        "database, or mend the row"
    )


_IN_JSON: dict[type, Callable[[Any], str]] = {
    int: int.__repr__, float: float.__repr__, str: encode_basestring_ascii, type(None): lambda _: "null",
}  # fmt: skip


def checksum(*columns: Any) -> int:
    """By which a row of the log is known to be as it was written; one that was mended by hand may have none.

    It is that of a list in JSON, written without an encoder, which took as long as all else of reading a row.
    """
    return zlib.crc32(f"[{', '.join([_IN_JSON.get(type(one), json.dumps)(one) for one in columns])}]".encode())


def decoded(row: Any) -> Event:
    """An event from a row of the table; of one that cannot be read it says why."""
    sequence, time, kind, participant, text, key = (
        row.sequence, row.time, row.kind, row.participant, row.payload, row.key
    )  # fmt: skip
    payload, damage = None, ""
    try:
        payload = None if text is None else json.loads(text)
        _must(payload is None or isinstance(payload, dict), "it holds no JSON object")
        crc = row.crc
        if crc is not None:
            _must(crc == checksum(sequence, time, kind, participant, text, key), "it is not as it was written")
    except (ValueError, TypeError, RecursionError) as error:
        damage = one_line(error)
    return Event(sequence, time, kind, participant, payload, key, damage)
