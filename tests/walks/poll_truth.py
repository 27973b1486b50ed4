"""What has to be true of a poll, as whoever reads the documentation would keep account of it."""

from __future__ import annotations

import html
import re
import shutil
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import note

from predilect.live import Poll, belief
from predilect.live.web import pages
from walks.poll_ways import Api, Command, Pages, Person, Python, Question, Refusal, Send, Server

_NOW = time.time
_ENGLISH = re.compile(r"\b(the|this|there|is|are|of|with|your?|answers?|poll)\b")  # what no other language says


class Broken(AssertionError):
    """What has to be true of a poll is not."""


@dataclass
class Item:
    """Something that is compared."""

    name: str | None  # None: the text of somebody who is erased
    state: str = "active"
    proposers: list[Person] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)  # of it besides its name
    before: list[str] = field(default_factory=list)  # names that it had
    into: int | None = None  # what it is merged into
    was: str = "active"  # before it was merged

    @property
    def is_moderated(self) -> bool:
        return (self.was if self.state == "merged" else self.state) in ("active", "retired")


class Dice:
    """What numpy draws without a seed, the same in each walk."""

    def __init__(self) -> None:
        self._seeds, self._made = count(), np.random.default_rng

    def __call__(self, seed: Any = None) -> np.random.Generator:
        return self._made(next(self._seeds) if seed is None else seed)


class Account:
    """A poll in one process, that is two polls on one log, a server without a network, and the command; its truth."""

    def __init__(self) -> None:
        super().__init__()
        self._patched = ExitStack()
        self._patched.enter_context(mock.patch.object(np.random, "default_rng", Dice()))
        self._patched.enter_context(mock.patch.object(belief, "_SECONDS_OF_AN_ASKER", 0.0))
        self._patched.enter_context(mock.patch.object(pages, "_A_MOMENT", -1.0))  # who answers again went back
        self.folder = Path(tempfile.mkdtemp(prefix="predilect-walk-"))
        self.settings: dict[str, Any] = {}
        self.status = "open"
        self.items: dict[int, Item] = {}
        self.everybody: list[Person] = []
        self.forgotten: list[str] = []  # texts of the erased
        self.fresh = False  # whether nothing came after the refit that was taken up
        self.merged_at = 0  # sequence at which answers last began to count for other items
        self.seconds_ahead = 0.0  # of the clock of this process and of all in it
        self._patched.enter_context(mock.patch("time.time", self._now))
        self.rulers: dict[str, tuple[str, str]] = {}  # role and token of whoever was invited
        self.at_the_end: list[str] = []
        self.ways: dict[str, Any] = {}
        self.restarts: dict[str, Any] = {}  # what can be ended and started again

    def _now(self) -> float:
        return _NOW() + self.seconds_ahead

    def begin(self, question: str, names: list[str], settings: dict[str, Any]) -> None:
        """Make the poll, and the ways to it."""
        self.file, self.name = self.place()
        made = Poll.create(self.file, question=question, items=names, name=self.name, background=False, **settings)
        made.disconnect()
        assert made.token is not None
        self.restarts = {"one": Python(self.opened), "two": Python(self.opened)}
        first, second = self.serve()
        self.ways = {
            "one": self.restarts["one"], "two": self.restarts["two"], "api": Api(first, self.name, made.token),
            "page": Pages(second, self.name, made.token), "command": Command(self.file, self.name),
        }  # fmt: skip

    def place(self) -> tuple[Path, str]:
        """The file of the poll, and its name."""
        return self.folder / "poll.db", "walk"

    def serve(self) -> tuple[Send, Send]:
        """What asks the server that has the API, and the one that has the pages."""
        server = self.restarts["server"] = Server(self.file)
        return server.send, server.send

    def opened(self) -> Poll:
        """The poll as a process that starts now has it."""
        return Poll.open(self.file, self.name, background=False)

    def hear(self) -> None:
        """Let each process know what others wrote, which takes a quarter of a second otherwise."""
        for one in self.restarts.values():
            one.hear()

    def teardown(self) -> None:
        try:
            for what in self.at_the_end:
                self.look_at(what, "one")
        finally:
            for one in self.restarts.values():
                one.close()
            self._patched.close()
            shutil.rmtree(self.folder)

    def failed(self, what: str, details: str) -> None:
        """End the walk."""
        raise Broken(f"{what}: {details}" if details else what)

    def check(self, ok: object, what: str, details: object = "") -> bool:
        """Whether something is as it has to be; the walk ends where it is not."""
        if not ok:
            self.failed(what, str(details))
        return bool(ok)

    def do(
        self, way: str, verb: str, *arguments: Any, must: str = "", may: str = "", is_told: bool = True
    ) -> tuple[bool, Any]:  # fmt: skip
        """Do something; whether it was done, and what came back. Refused is what must or may be refused, and no more.

        Nothing may fail, whoever asks for whatever.
        """
        if is_told:
            self.hear()
        said = f"{way}.{verb}({', '.join(map(repr, arguments))})"
        try:
            found = getattr(self.ways[way], verb)(*arguments)
        except Refusal as refusal:
            words = plain(refusal.words)
            note(f"  {said} is refused, {refusal.status}: {words}")
            if not self.check(refusal.status < 500, f"{verb} fails", words):
                return False, None
            self.check(must or may, f"{verb} is refused without a reason", words)
            if way == "page":
                self._told_with_a_way_back(refusal.words, arguments)
            found = None
            is_done = False
        else:
            if is_told:
                note(f"  {said} gives {_short(found)}")
            self.check(not must, f"{verb} is accepted though {must}", said)
            is_done = not must
        for person in arguments:
            if isinstance(person, Person):
                self._nothing_unmoderated(person)
                met, person.met[:] = {one.shown: one for one in person.met}, []
                if verb != "ask":  # a page that asks again, or what was to be answered
                    person.questions |= met | person.questions
        return is_done, found

    def _told_with_a_way_back(self, page: str, arguments: Iterable[Any]) -> None:
        person = next((one for one in arguments if isinstance(one, Person)), None)
        if person is None or "<main" not in page:
            return
        main = page[page.index("<main") :]
        self.check('href="/p/walk' in main or 'action="/p/walk' in main, "a refusal is a dead end", plain(main))
        if person.language not in ("", "en"):
            told = plain(main)
            self.check(not _ENGLISH.search(told), "a refusal is not in the language of the page", told)

    def _nothing_unmoderated(self, person: Person) -> None:
        """Nobody reads what somebody else proposed before it is accepted."""
        read, person.read[:] = "\n".join(person.read), []
        for item in self.items.values():
            if item.name and not item.is_moderated and person not in item.proposers:
                is_read = re.search(rf"(?<!\w){re.escape(item.name)}(?!\w)", read)
                self.check(not is_read, "a participant reads what is not moderated", item.name)

    @property
    def n_criteria(self) -> int:
        return max(1, len(self.settings["criteria"]))

    @property
    def n_shown(self) -> int:
        return 2 if self.settings["kind"] == "pair" else int(self.settings["size"])

    @property
    def boards(self) -> tuple[str, ...]:
        return tuple(self.settings["criteria"]) or (self.settings["question"],)

    def living(self) -> list[Person]:
        return [person for person in self.everybody if not person.is_gone]

    def number_of(self, name: str) -> int | None:
        return next((number for number, item in self.items.items() if item.name == name), None)

    def root(self, name: str) -> str:
        """The name of the item that answers on an item count for."""
        number = self.number_of(name)
        while number is not None and (into := self.items[number].into) is not None:
            number = into
        return name if number is None else str(self.items[number].name)

    def counted(self, question: Question, meant: Any) -> tuple[tuple[str, ...], Any] | None:
        """Items that a question is about once some are merged, and what an answer says; None for nothing."""
        names = tuple(dict.fromkeys(map(self.root, question.names)))
        if len(names) < 2:
            return None
        if not isinstance(meant, tuple):
            return names, meant
        said = tuple(dict.fromkeys(map(self.root, meant)))
        return None if question.kind == "best-worst" and len(said) < 2 else (names, said)

    def rename(self, number: int, name: str) -> None:
        """Call an item otherwise, wherever it stands in this account."""
        item = self.items[number]
        old, item.name = item.name, name
        item.before.append(str(old))

        def now(names: Any) -> Any:
            return tuple(name if one == old else one for one in names) if isinstance(names, tuple) else names

        for person in self.everybody:
            person.questions = {k: one._replace(names=now(one.names)) for k, one in person.questions.items()}
            person.answers = {k: (now(meant), n) for k, (meant, n) in person.answers.items()}
            person.keys = {k: tuple(map(now, one)) for k, one in person.keys.items()}

    def as_it_is(self, question: Question) -> Question:
        """A question that somebody remembers, with items under the names that they have now."""
        there = (one.questions[question.shown] for one in self.everybody if question.shown in one.questions)
        return next(there, self._never_put())._replace(criterion=question.criterion)

    def open_questions(self, person: Person) -> list[int]:
        """Numbers of the questions that somebody has not answered on every criterion, the oldest first."""
        places = range(self.n_criteria)
        return [one for one in sorted(person.questions) if any((one, k) not in person.answers for k in places)]

    def question(self, person: Person, newest: int) -> Question:
        """One of somebody's newest questions; if there is none, one that was never put."""
        there = list(person.questions.values())[::-1] or [self._never_put()]
        return there[min(newest, len(there) - 1)]

    def _never_put(self) -> Question:
        names = tuple(item.name for item in self.items.values() if item.name is not None)
        return Question(10**6, 0, self.boards[0], self.settings["kind"], names[: self.n_shown])

    def n_questions(self, person: Person) -> int:
        """Questions that were put before somebody and count: those that ended unanswered may not."""
        answered = {shown for shown, _ in person.answers}
        return sum(one in answered or one not in person.void for one in person.questions)

    def given(self, criterion: int) -> list[tuple[Person, Question, Any]]:
        """Answers that stand on a criterion and are no skips."""
        every = [
            (person, person.questions[shown], self.counted(person.questions[shown], meant))
            for person in self.living()
            for (shown, on), (meant, _) in person.answers.items() if on == criterion and meant != "skip"
        ]  # fmt: skip
        return [(person, one._replace(names=said[0]), said[1]) for person, one, said in every if said is not None]


def _short(found: Any) -> str:
    told = repr(found)
    return told if len(told) <= 200 else f"{told[:200]}..."


def plain(page: str) -> str:
    """What a page says, without its marks."""
    text = re.sub(r"<(style|script|head)\b.*?</\1>", " ", page, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
