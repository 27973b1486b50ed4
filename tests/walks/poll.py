"""A walk through a poll: any verbs in any order, by any way to it, beside a plain account of what has to be true.

What may be refused, and what has to be, is written from the documentation. A check that fails says what it found in
its first words. A new verb, setting or export of a poll joins the walk here, in ``poll_ways.py`` and ``poll_looks.py``.
"""

from __future__ import annotations

import math
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Any, ClassVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule

from predilect.errors import DataError
from predilect.live import Settings
from predilect.live.web.languages import LANGUAGES
from walks.poll_looks import LOOKS, Looks
from walks.poll_truth import Item
from walks.poll_ways import Person, Question, Refusal

# What is compared, as people write it: what a spreadsheet, a page or a reader might take for something else.
NAMES = [
    "tea", "milk", "juice", "water", "cola", "oat milk", "Ünï", "שלום", "left", "tie", "skip", "=1+1", '<b>"a", b</b>',
    "7", "None", "a | b",
]  # fmt: skip
PROPOSALS = [
    "lemonade of the poll's own", "an insult <i>about</i> the mayor", "+the 2nd", "tea", " Tea  ", "", "x" * 501,
]  # fmt: skip
CALLED = ["ann", "bob of Babel-7", "Zoë Quint-Unique"]
SPOKEN = st.sampled_from(["", *LANGUAGES])
RULERS = ["Ann O'Neil", "<b>Zoë</b>"]
ROLES = ["reader", "moderator", "organiser"]
KEYS = st.sampled_from([None, "k", "l"])

# Each value alone is one that the documentation allows.
SETTINGS = {
    "kind": st.sampled_from(["pair", "best", "best-worst", "order"]),
    "size": st.integers(3, 5),
    "strategy": st.sampled_from(["board", "best", "top", "person", "random"]),
    "top": st.integers(1, 5),
    "criteria": st.sampled_from([(), ("cheap", "good"), ("=1", "a,b", "c")]),
    "instruction": st.sampled_from(["", "Take your time."]),
    "language": st.sampled_from(LANGUAGES),
    "ties": st.booleans(),
    "skips": st.booleans(),
    "undo": st.booleans(),
    "at_once": st.booleans(),
    "proposals": st.booleans(),
    "limit": st.integers(0, 6),
    "own_ranking": st.integers(0, 6),
    "public": st.booleans(),
    "smallest_group": st.sampled_from([0, 5, 10]),
    "level": st.sampled_from([0.5, 0.8, 0.95]),
    "retest": st.sampled_from([0.0, 0.5, 0.9]),
    "difficulty": st.sampled_from([0.0, 0.5, 0.6]),
    "retention_days": st.integers(0, 3),
    "images": st.sampled_from([(), ("images.example.org",)]),
    "origins": st.sampled_from([(), ("https://city.example", "http://localhost:8080")]),
    "pids": st.sampled_from(["none", "open", "signed"]),
    "completion": st.sampled_from(["", "https://panel.example/done"]),
    "webhook": st.sampled_from(["", "https://hook.example"]),
    "opens": st.sampled_from(["", "2098-01-01 09:00 Europe/Berlin"]),
    "closes": st.sampled_from(["", "2099-03-01 18:00 UTC"]),
}
# When each comes, in which states it does anything, and which it brings the poll into.
TIMES = {
    "opens": (4_039_401_600.0, ("draft", "paused"), "open"), "closes": (4_076_071_200.0, ("open", "paused"), "closed")
}  # fmt: skip
WRONG = [
    {"kind": "pairs"}, {"kind": None}, {"size": 2}, {"size": True}, {"level": 1.0}, {"limit": -1}, {"limit": 0.5},
    {"smallest_group": 4}, {"criteria": "x"}, {"criteria": ("x", "x")}, {"language": "tlh"}, {"public": "yes"},
    {"colour": "red"},
]  # fmt: skip


def _one_of(name: str, values: dict[str, Any]) -> Any:
    return st.fixed_dictionaries({name: values[name]})


FIXED = ("kind", "size", "criteria", "ties")  # what answers mean

PICKS = st.integers(0, 3) | st.sampled_from(["tie", "skip", "skip:same"])
ANY_PICK = st.one_of(PICKS, PICKS, PICKS, st.sampled_from(["nothing", "too many", "nobody's"]))
NEWEST = st.integers(0, 2)  # the newest question of somebody, the one before it, ...
SPELLED = st.sampled_from(["number", "name", "side"])
HTTP = ("api", "page")
TAKE_PART = st.sampled_from(["one", "two", "api", "page"])
WITH_NUMBERS = st.sampled_from(["one", "two", "api"])  # a page says no numbers of answers


@dataclass(frozen=True)
class Sent:
    """What somebody sent, to be sent again."""

    verb: Callable[..., None]
    arguments: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"<{self.verb.__name__.strip('_')} {', '.join(map(repr, self.arguments))}>"


class PollWalk(Looks, RuleBasedStateMachine):
    """A walk in one process."""

    goes_back: ClassVar[bool] = True  # whether who answers a page anew went back to it
    can_wait: ClassVar[bool] = True  # for a time that comes, and for servers that begin anew
    people: Bundle[Person] = Bundle("people")
    sent: Bundle[Sent] = Bundle("sent")

    # Making it, and taking part

    @initialize(
        names=st.lists(st.sampled_from(NAMES), min_size=2, max_size=7, unique=True),
        settings=st.fixed_dictionaries({}, optional=SETTINGS),
        at_the_end=st.lists(st.sampled_from(list(LOOKS)), max_size=4, unique=True),
    )
    def create(self, names: list[str], settings: dict[str, Any], at_the_end: list[str]) -> None:
        """Make a poll; settings that are not accepted together are left out until they are."""
        self.at_the_end = at_the_end
        dropped = dict(settings)
        while True:
            try:
                self.begin("Which one?", names, dropped)
                break
            except DataError as error:
                note(f"  not accepted: {error}")
                if not self.check(dropped, "a poll of nothing but a question and two items is refused", error):
                    raise
                dropped.popitem()
        self.settings = Settings(question="Which one?").to_dict() | dropped
        self.status = "draft" if self.settings["opens"] else "open"
        self.items = {number: Item(name) for number, name in enumerate(names, 1)}

    @rule(
        target=people, way=TAKE_PART, name=st.none() | st.sampled_from(CALLED), like=st.none() | people,
        pid=st.sampled_from([None, "panel-0001", "panel-0002"]), language=SPOKEN, is_signed=st.booleans(),
    )  # fmt: skip
    def join(
        self, way: str, name: str | None, like: Person | None, pid: str | None, language: str, is_signed: bool
    ) -> Any:  # fmt: skip
        """Somebody comes: new, or known by a name or a signed reference; names may look like the ids of exports."""
        name = name if like is None else f"p{like.number}"
        known = next((one for one in self.living() if way not in HTTP and name and one.name == name), None)
        signature = self.ways["one"].poll.sign(pid or "") if is_signed else "0" * 64
        must = may = ""
        if way in HTTP and self.settings["pids"] == "signed":
            if pid is None or not is_signed:
                must = "its reference is not signed"
            else:
                known = next((one for one in self.living() if one.name == f"pid {pid}"), None)
        if shut := self._why_nobody_joins():
            may = shut
            must = must or (shut if known is None else "")
            if way == "page":
                must, may = "", shut
        is_in, found = self.do(way, "join", name, pid, language, signature, must=must, may=may)
        if not is_in:
            return multiple()
        name, secret = found
        if way in HTTP and self.settings["pids"] == "signed":
            name = f"pid {pid}"
        number = self.ways["one"].poll.who(secret=secret) if known is None or way in HTTP else known.number
        if known is not None:
            self.check(number == known.number, "somebody known is taken for somebody new", f"{known}, now p{number}")
            known.secret = secret if way in HTTP else known.secret
            return known
        self.check(number is not None, "somebody who joined is not known")
        kept = pid if way not in HTTP or self.settings["pids"] != "none" else None
        person = Person(number or 0, name, secret, kept, language)
        self.everybody.append(person)
        return person

    def _why_nobody_joins(self) -> str:
        return {"closed": "the poll is closed", "draft": "it has not begun"}.get(self.status, "")

    @rule(person=people, way=TAKE_PART, n=st.integers(1, 3))
    def ask(self, person: Person, way: str, n: int) -> None:
        """Ask somebody's next questions."""
        self._ask(person, way, n)

    def _ask(self, person: Person, way: str, n: int) -> list[Question]:
        way = self._reach(person, way)
        n = 2 if way == "page" else n
        must = "they are erased" if person.is_gone and way != "page" else ""
        is_done, found = self.do(way, "ask", person, n, must=must)
        if person.is_gone:  # a page that begins at once shows them what it shows anybody, a question without a number
            anybodys = way == "page" and self.settings.get("at_once")
            of_theirs = [one for one in found or () if one.shown or not anybodys]
            self.check(not of_theirs, "somebody who is erased is asked", of_theirs)
        if not is_done or person.is_gone:
            return []
        self._asked(person, found, n)
        return list(found)

    def _reach(self, person: Person, way: str) -> str:
        """The way, or another if it is one for people with a secret."""
        return "one" if way in HTTP and person.secret is None else way

    def _asked(self, person: Person, found: list[Question], n: int) -> None:
        """These questions are put before somebody, who asked for so many."""
        self._check_questions(person, found, n)
        for one in found:
            person.questions.setdefault(one.shown, one)

    def _check_questions(self, person: Person, found: list[Question], n: int) -> None:
        settings = self.settings
        state = {item.name: item.state for item in self.items.values()}
        seen = {frozenset(map(self.root, one.names)) for one in person.asked.values()}
        still = self.open_questions(person)
        if self.status != "open":
            self.check(not found, f"somebody is asked though the poll is {self.status}")
            return
        if not any(one in person.void for one in still):
            first = [one.shown for one in found][: len(still)]
            self.check(first == still[:n], "open questions are not asked first", f"{first} instead of {still[:n]}")
        active = {item.name for item in self.items.values() if item.state == "active"}
        n_left = math.comb(len(active), self.n_shown) - sum(len(one) == self.n_shown and one <= active for one in seen)
        may_ask = not settings["limit"] or len(person.asked) < settings["limit"]
        if n_left > 0 and may_ask and not still:
            self.check(found, "nothing is asked though something is left", f"{n_left} sets of {self.n_shown}")
        for one in found:
            states = {state.get(name, "unknown") for name in one.names}
            self.check(states <= {"active", "retired"}, "a participant reads what is not moderated", one)
            self.check("retired" not in states, "somebody is asked about a retired item", one)
            if one.shown in person.questions:
                continue
            self.check(len(set(one.names)) == self.n_shown, "a question has not as many items as are set", one)
            self.check(one.kind == settings["kind"], "a question is of another kind than is set", one)
            self.check(one.text == self.boards[one.criterion], "a question has another text than is set", one)
            if frozenset(one.names) in seen:
                is_again = settings["retest"] > 0 and settings["kind"] == "pair" and one.is_retest is not False
                self.check(is_again, "somebody is asked the same twice", one)
        if settings["limit"]:
            new = {one.shown for one in found} - person.questions.keys()
            is_over = new and self.n_questions(person) + len(new) > settings["limit"]
            self.check(not is_over, "somebody is asked more than the limit", f"{new} are new")

    @rule(
        target=sent, person=people, newest=NEWEST, way=TAKE_PART, pick=ANY_PICK, spelled=SPELLED, key=KEYS,
        criterion=st.none() | st.integers(0, 2), by=st.none() | people,
    )  # fmt: skip
    def tell(
        self, person: Person, newest: int, way: str, pick: Any, spelled: str, key: str | None, criterion: int | None,
        by: Person | None,
    ) -> Any:  # fmt: skip
        """Answer one of somebody's newest questions, for the first time or again; now and then somebody else does."""
        told = (person if by is None else by, self.question(person, newest), way, pick, spelled, key, criterion)
        self._tell(*told)
        return Sent(self._tell, told)

    @rule(it=sent)
    def send_again(self, it: Sent) -> None:
        """Send once more what was sent before, key and all, as a browser does that heard no answer."""
        it.verb(*it.arguments)

    def _tell(
        self, person: Person, question: Question, way: str, pick: Any, spelled: str = "number",
        key: str | None = None, criterion: int | None = None,
    ) -> None:  # fmt: skip
        question = self.as_it_is(question)
        way, meant = self._reach(person, way), _meant(question, pick)
        if way == "page":
            key, criterion = None, criterion or 0
        elif meant in question.names:  # the word would be the item of this name
            return
        said = self._in_a_form(question, pick, meant) if way == "page" else self._said(question, pick, meant, spelled)
        on = criterion
        if on is None:
            on = next((k for k in range(self.n_criteria) if (question.shown, k) not in person.answers), None)
        must, may = self._why_no_answer(person, question, meant, on), ""
        sent = person.keys.get(key or "")
        if sent is not None:
            if sent[:2] != ("tell", question.shown) or sent[3] != meant or criterion not in (None, sent[2]):
                must = must or "its key was used for something else"
            else:
                on = sent[2]
                stands = person.answers.get((question.shown, on)) == (meant, sent[4])
                must, may = "it is of the erased" if person.is_gone else "", must or ("" if stands else "taken back")
        elif on is None:
            may = "it is answered on every criterion"
        elif (there := person.answers.get((question.shown, on))) is not None and there[0] != meant:
            if way == "page" and not self.goes_back:
                return
            can_change = way == "page" and self.settings["undo"]
            must = must or ("" if can_change else "it was answered otherwise")
        if question.shown in person.void:
            may = may or must or "the question ended"
            must = ""
        if way == "page" and meant is None and self.status != "open":  # a form that is not complete: the page says so
            must, may = "", may or must
        stood = None if on is None else person.answers.get((question.shown, on))
        is_done, number = self.do(way, "tell", person, question.shown, said, criterion, key, must=must, may=may)
        if is_done and on is not None and meant is not None:
            self._acknowledge(person, (question.shown, on), meant, number)
            if key and (stood is None or stood[0] != meant):  # what changes nothing is not kept, nor is its key
                person.keys.setdefault(key, ("tell", question.shown, on, meant, number))

    def _why_no_answer(self, person: Person, question: Question, meant: Any, on: int | None) -> str:
        """Why somebody cannot give an answer now; nothing if they can."""
        settings = self.settings
        reasons = {
            "they are erased": person.is_gone,
            f"the poll is {self.status}": self.status != "open",
            "the question was not put before them": question.shown not in person.questions,
            "the answer does not fit": meant is None,
            "nothing is skipped": meant == "skip" and not settings["skips"],
            "there are no ties": meant == "tie" and not (settings["ties"] and settings["kind"] == "pair"),
            "there is no such criterion": on is not None and on >= self.n_criteria,
        }
        return next((reason for reason, is_so in reasons.items() if is_so), "")

    def _acknowledge(self, person: Person, place: tuple[int, int], meant: Any, number: int) -> None:
        """An answer stands from now on, as the last one of theirs unless it stood before."""
        there = person.answers.get(place)
        if there is not None and there[0] == meant:
            is_same = not number or not there[1] or there[1] == number
            self.check(is_same, "an answer that stands got another number", f"{there[1]}, then {number}")
            return
        person.answers.pop(place, None)
        person.answers[place] = (meant, number)
        self.fresh = False

    def _said(self, question: Question, pick: Any, meant: Any, spelled: str) -> Any:
        """An answer as callers of Python and of the API write it."""
        numbers = {item.name: number for number, item in self.items.items()}
        several = [numbers[name] for name in question.names]
        if not isinstance(pick, int):
            wrong = {"nothing": [], "too many": [*several, several[0]], "nobody's": 10**6}
            return wrong.get(pick, pick)
        if spelled == "side" and question.kind == "pair" and not {"left", "right"} & set(question.names):
            return ("left", "right")[question.names.index(meant[0])]
        told = list(meant) if spelled == "name" else [numbers[name] for name in meant]
        return told if question.kind in ("best-worst", "order") else told[0]

    def _in_a_form(self, question: Question, pick: Any, meant: Any) -> dict[str, str]:
        """An answer as the form of a page sends it."""
        numbers = {item.name: str(number) for number, item in self.items.items()}
        if not isinstance(pick, int):
            return {"answer": pick} if meant else {"best": "1", "worst": "1"}
        if question.kind == "pair":
            return {"answer": ("left", "right")[question.names.index(meant[0])]}
        if question.kind == "best":
            return {"answer": numbers[meant[0]]}
        if question.kind == "best-worst":
            return {"best": numbers[meant[0]], "worst": numbers[meant[1]]}
        return {f"place{numbers[name]}": str(place) for place, name in enumerate(meant, 1)}

    @rule(
        person=people, newest=NEWEST, way=WITH_NUMBERS, pick=ANY_PICK, criterion=st.integers(0, 1), key=KEYS
    )  # fmt: skip
    def replace(self, person: Person, newest: int, way: str, pick: Any, criterion: int, key: str | None) -> None:
        """Put another answer in the place of one."""
        question = self.question(person, newest)
        way, meant, place = self._reach(person, way), _meant(question, pick), (question.shown, criterion)
        there = person.answers.get(place, (None, 0))
        must = self._why_no_answer(person, question, meant, criterion)
        if there[0] is None:
            must = must or "there is no answer to replace"
        elif there[0] != meant and not self.settings["undo"]:
            must = must or "answers cannot be changed"
        may = "its number is on no page" if not there[1] else ""
        is_again = False
        if (sent := person.keys.get(key or "")) is not None:
            is_again = sent[:2] == ("replace", there[1]) and sent[3] == meant
            must, may = must if is_again else must or "its key was used for something else", may or "the key was used"
        if meant in question.names:
            return
        said = self._said(question, pick, meant, "number")
        old = there[1] or 10**6
        is_done, number = self.do(way, "replace", person, old, said, key, must="" if may else must, may=may or must)
        if is_done and (sent is None or is_again):  # what came with a key before gives its first result, and no more
            self._acknowledge(person, place, meant, number)
            if key:
                person.keys.setdefault(key, ("replace", old, criterion, meant, number))

    @rule(target=sent, person=people, way=TAKE_PART, key=KEYS)
    def undo(self, person: Person, way: str, key: str | None) -> Any:
        """Take back somebody's last answer."""
        self._undo(person, way, key)
        return Sent(self._undo, (person, way, key))

    def _undo(self, person: Person, way: str, key: str | None) -> None:
        way = self._reach(person, way)
        key = None if way == "page" else key
        last = next(reversed(person.answers), None)
        reasons = {
            "they are erased": person.is_gone, "answers cannot be taken back": not self.settings["undo"],
            f"the poll is {self.status}": self.status != "open", "there is no answer": last is None,
        }  # fmt: skip
        must, may = next((reason for reason, is_so in reasons.items() if is_so), ""), ""
        sent = person.keys.get(key or "")
        is_again = sent is not None and sent[0] == "undo"
        if is_again:
            must, may = "it is of the erased" if person.is_gone else "", must
        elif sent is not None:
            must = must or "its key was used for something else"
        is_done, number = self.do(way, "undo", person, key, must=must, may=may)
        if not is_done:
            return
        if is_again:
            self.check(number == sent[4], "the same key gives another result", f"{number}, first {sent[4]}")
            return
        assert last is not None
        _, known = person.answers.pop(last)
        self.check(not number or not known or number == known, "another answer than the last is taken back", number)
        self.fresh = False
        if key:
            person.keys.setdefault(key, ("undo", 0, 0, None, number))

    @rule(target=sent, person=people, way=TAKE_PART, text=st.sampled_from(PROPOSALS), key=KEYS)
    def propose(self, person: Person, way: str, text: str, key: str | None) -> Any:
        """Propose an item."""
        self._propose(person, way, text, key)
        return Sent(self._propose, (person, way, text, key))

    def _propose(self, person: Person, way: str, text: str, key: str | None) -> None:
        way = self._reach(person, way)
        key = None if way == "page" else key
        name = " ".join(text.split())
        reasons = {
            "they are erased": person.is_gone, "there are no proposals": not self.settings["proposals"],
            f"the poll is {self.status}": self.status != "open", "the text is no name": not 0 < len(name) <= 500,
        }  # fmt: skip
        must = next((reason for reason, is_so in reasons.items() if is_so), "")
        known = {item.name.casefold(): number for number, item in self.items.items() if item.name}
        may = "it is there" if name.casefold() in known else ""
        sent = person.keys.get(key or "")
        is_again = sent is not None and sent[:2] == ("propose", text)
        if is_again:
            must, may = "it is of the erased" if person.is_gone else "", must
        elif sent is not None:
            must = must or "its key was used for something else"
        is_done, number = self.do(way, "propose", person, text, key, must=must, may=may)
        if not is_done:
            return
        if is_again:
            self.check(number == sent[4], "the same key gives another result", f"{number}, first {sent[4]}")
        elif not may or len(self.ways["one"].export("items")) > len(self.items):
            made = len(self.items) + 1
            self.check(number in (0, made), "an item has another number than the next", number)
            self.items[made] = Item(name, "proposed", [person])
            person.proposals += 1
        elif person not in (there := self.items[known[name.casefold()]]).proposers:
            self.check(number in (0, known[name.casefold()]), "what is there has another number", number)
            there.proposers.append(person)
            person.proposals += 1
        else:
            return
        if key:
            person.keys.setdefault(key, ("propose", text, 0, None, number))

    @rule(person=people, newest=NEWEST, way=TAKE_PART, by=st.none() | people)
    def report(self, person: Person, newest: int, way: str, by: Person | None) -> None:
        """Tell the organiser of the first item of a question."""
        name = self.question(person, newest).names[0]
        person = person if by is None else by
        item = self.number_of(name)
        if item is None:
            return
        was_shown = any(name in one.names for one in person.asked.values())
        must = "they are erased" if person.is_gone else "" if was_shown else "they never saw it"
        self.do(self._reach(person, way), "report", person, item, must=must)

    @rule(
        target=people, n_people=st.integers(1, 4), n_each=st.integers(1, 5),
        picks=st.lists(PICKS, min_size=1, max_size=3), way=st.sampled_from(["one", "two"]),
    )  # fmt: skip
    def crowd(self, n_people: int, n_each: int, picks: list[Any], way: str) -> Any:
        """Some people come and answer some questions each, as the picks say one after the other."""
        came, said = [], cycle(picks)
        for _ in range(n_people):
            person = Person(0, f"somebody {len(self.everybody)}")
            is_done, found = self.do(way, "ask", person, 1, must=self._why_nobody_joins())
            number = self.ways[way].poll.who(name=person.name)
            if number is None:
                break
            person.number = number
            self.everybody.append(person)
            came.append(person)
            if is_done:
                self._asked(person, found, 1)
            for _ in range(n_each):
                for one in self._ask(person, way, 1):
                    for criterion in range(self.n_criteria):
                        self._tell(person, one, way, next(said), criterion=criterion)
        return multiple(*came)

    # Each name counts when a step is drawn: people do more than who organises.
    ask_more = ask
    tell_more = tell_still_more = tell
    send_once_more = send_again

    # The organiser

    @rule(
        way=st.sampled_from(["one", "api", "page", "command"]),
        names=st.lists(st.sampled_from([*NAMES, "mate"]), max_size=2),
    )
    def add(self, way: str, names: list[str]) -> None:
        """Add items."""
        there = {item.name for item in self.items.values()}
        must = "a name is there twice" if there & set(names) or len(set(names)) < len(names) else ""
        is_done, _ = self.do(way, "add", names, must=must, may="" if names else "there is nothing to add")
        if is_done:
            self.items |= {number: Item(name) for number, name in enumerate(names, len(self.items) + 1)}
            self.fresh = False

    @rule(
        way=st.sampled_from(["one", "api", "page", "command"]), called=st.sampled_from(RULERS),
        role=st.sampled_from(ROLES),
    )  # fmt: skip
    def invite(self, way: str, called: str, role: str) -> None:
        """Let somebody look after the poll."""
        must = "there is one of this name" if called in self.rulers else ""
        is_done, token = self.do(way, "invite", called, role, must=must)
        if is_done:
            self.rulers[called] = (role, token)

    @precondition(lambda self: self.rulers)
    @rule(way=st.sampled_from(["one", "api", "page", "command"]), called=st.sampled_from(RULERS))
    def revoke(self, way: str, called: str) -> None:
        """Take back the link of somebody, who can do nothing with it from then on."""
        must = "" if called in self.rulers else "there is nobody of this name"
        if self.do(way, "revoke", called, must=must)[0]:
            _, token = self.rulers.pop(called)
            self.ways["revoked"] = self.ways["api"].of(token)
            self.do("revoked", "add", ["nothing of theirs"], must="their link was taken back")

    @precondition(lambda self: self.rulers)
    @rule(
        way=st.sampled_from(["api", "page"]), newest=NEWEST, name=st.sampled_from(NAMES),
        status=st.sampled_from(["paused", "open"]),
    )  # fmt: skip
    def act_as_invited(self, way: str, newest: int, name: str, status: str) -> None:
        """Somebody who was invited adds an item and opens or pauses the poll, as far as their role goes."""
        called, (role, token) = list(self.rulers.items())[::-1][min(newest, len(self.rulers) - 1)]
        self.ways["theirs"] = self.ways[way].of(token)
        must = "they only look on" if role == "reader" else ""
        if self.number_of(name) is not None:
            must = "a name is there twice"
        is_done, _ = self.do("theirs", "add", [name], must=must)
        if is_done:
            self.items[len(self.items) + 1] = Item(name)
            self.fresh = False
            *_, last = self.ways["one"].export("trail")
            self.check((last["who"], last["act"], last["what"]) == (called, "added", name),
                       "the trail tells of somebody else", last)  # fmt: skip
        if self.do("theirs", "set_status", status, must="" if role == "organiser" else "their role is less")[0]:
            self.status = status

    @rule(way=st.sampled_from(["one", "api", "page"]), item=st.integers(1, 12), accept=st.booleans())
    def moderate(self, way: str, item: int, accept: bool) -> None:
        """Accept or refuse an item."""
        there = self.items.get(item)
        must = "there is no such item" if there is None else ""
        may = "its text is gone" if there is not None and there.name is None else ""
        if there is not None and (there.state == "merged" or (not accept and there.is_moderated)):
            must = "it was accepted, or is merged"
        is_done, _ = self.do(way, "moderate", item, accept, must=must, may=may)
        if is_done and there is not None:
            there.state = "active" if accept else "refused"
            if there.name is None:
                there.name = next(row["item"] for row in self.ways["one"].export("items") if row["number"] == item)
            self.fresh = False

    @rule(way=st.sampled_from(["one", "api", "page", "command"]), item=st.integers(1, 8))
    def retire(self, way: str, item: int) -> None:
        """Ask no more about an item."""
        there = self.items.get(item)
        n_active = sum(one.state == "active" for one in self.items.values())
        must = "there is no such item" if there is None else ""
        if there is not None and there.state == "active" and n_active <= self.n_shown:
            must = "too few are left"
        may = "it is not asked about" if there is not None and there.state != "active" else ""
        is_done, _ = self.do(way, "retire", item, must=must, may=may)
        if is_done and there is not None and there.state == "active":
            there.state = "retired"
            self._end_questions(lambda one: there.name in one.names)
            self.fresh = False

    @rule(
        way=st.sampled_from(["one", "api", "page"]), item=st.integers(1, 8),
        name=st.none() | st.sampled_from([*NAMES, "", " the  new\tname ", *(f"renamed {k}" for k in range(20))]),
        told=st.fixed_dictionaries({}, optional={"description": st.sampled_from(["", "*Why* <b>not</b>"]),
                                                 "link": st.sampled_from(["", "https://a.example/b", "javascript:1"])}),
    )  # fmt: skip
    def edit(self, way: str, item: int, name: str | None, told: dict[str, str]) -> None:
        """Call an item otherwise, or say more of it."""
        there, called = self.items.get(item), None if name is None else " ".join(name.split())
        taken = {one.name for number, one in self.items.items() if number != item}
        must = "there is no such item" if there is None else ""
        if called == "" or called in taken or told.get("link") == "javascript:1":
            must = must or "it cannot be called so"
        may = "its text is gone" if there is not None and there.name is None else ""
        said = told if name is None else {"name": name, **told}
        is_done, _ = self.do(way, "edit", item, said, must="" if may else must, may=may)
        if not is_done or there is None or may:
            return
        there.told |= told
        if called is not None and called != there.name:
            self.rename(item, called)

    @rule(way=st.sampled_from(["one", "api", "page"]), item=st.integers(1, 8), into=st.integers(1, 8))
    def merge(self, way: str, item: int, into: int) -> None:
        """Let the answers on an item count for another one."""
        there, other = self.items.get(item), self.items.get(into)
        if there is None or other is None:
            self.do(way, "merge", item, into, must="there is no such item")
            return
        n_active = sum(one.state == "active" for one in self.items.values())
        is_there = there.state == "merged" and there.into == into
        reasons = {
            "it is itself": item == into, "it is merged already": there.state == "merged",
            "the other is no item that was accepted": other.state not in ("active", "retired"),
            "too few are left": there.state == "active" and n_active <= self.n_shown,
        }  # fmt: skip
        must = "" if is_there else next((why for why, is_so in reasons.items() if is_so), "")
        may = "its text is gone" if there.name is None else ""
        if self.do(way, "merge", item, into, must=must, may=may)[0] and not is_there:
            there.was, there.state, there.into = there.state, "merged", into
            self._end_questions(lambda one: there.name in one.names)
            self._since_a_merge()

    @rule(way=st.sampled_from(["one", "api", "page"]), item=st.integers(1, 8))
    def part(self, way: str, item: int) -> None:
        """Undo a merge."""
        there = self.items.get(item)
        is_done, _ = self.do(way, "part", item, must="" if there is not None else "there is no such item")
        if is_done and there is not None and there.state == "merged":
            there.state, there.into = there.was, None
            self._since_a_merge()

    def _since_a_merge(self) -> None:
        self.hear()
        self.fresh, self.merged_at = False, self.ways["one"].poll.log.state.sequence

    @precondition(lambda self: self.settings.get("at_once") and self.status == "open")
    @rule(target=people, pick=st.integers(0, 3), n=st.sampled_from([1, 1, 2]))
    def answer_at_once(self, pick: int, n: int) -> Any:
        """Somebody new answers the first question that they see, and takes part by it; now and then by two clicks."""
        if self.settings["pids"] == "signed":
            return multiple()
        is_done, found = self.do("page", "first", lambda one: self._in_a_form(one, pick, _meant(one, pick)), n)
        if not is_done or found is None:
            return multiple()
        secret, question = found
        poll = self.ways["one"].poll
        number = poll.who(secret=secret)
        self.check(number is not None, "somebody who answered at once is not known")
        person = Person(number or 0, None, secret)
        self.everybody.append(person)
        shown = next(iter(poll.log.state.people[person.number].shown), None)
        self.check(shown is not None, "a question that was answered at once was never put")
        self._asked(person, [question._replace(shown=shown or 0)], 1)
        self._acknowledge(person, (shown or 0, 0), _meant(question, pick), 0)
        return person

    def _end_questions(self, which: Callable[[Question], bool]) -> None:
        """Questions that are open may end: by an act of the organiser, which participants are told."""
        for person in self.everybody:
            person.void |= {one for one in self.open_questions(person) if which(person.questions[one])}

    @rule(way=st.sampled_from(["one", "api", "page", "command"]), status=st.sampled_from(["paused", "closed", "open"]))
    def set_status(self, way: str, status: str) -> None:
        """Pause, close or open the poll."""
        if self.do(way, "set_status", status)[0]:
            self.status = status

    @precondition(lambda self: self.can_wait and self.ways and not self.seconds_ahead)
    @rule(name=st.sampled_from(list(TIMES)))
    def wait(self, name: str) -> None:
        """A time of the settings comes: the poll opens or closes by itself, at once for everybody."""
        last, *_ = TIMES[name]
        self.seconds_ahead = last + 1.0 - time.time()
        for one, (at, before, then) in TIMES.items():
            if self.settings[one] and at <= last and self.status in before:
                self.status = then
        there = {"api": self.ways["api"].send("GET", f"/api/polls/{self.name}").json()["status"]}
        for way in ("one", "two"):
            self.ways[way].poll.keep_time()
            there[way] = self.ways[way].poll.status
        self.check(set(there.values()) == {self.status}, "a time came, and it is not so", f"{there}, not {self.status}")

    @rule(
        way=st.sampled_from(["one", "page", "api", "command"]),
        settings=st.sampled_from(list(SETTINGS)).flatmap(lambda name: _one_of(name, SETTINGS)),
        wrong=st.sampled_from([None] * 2 * len(WRONG) + WRONG),
    )
    def change(self, way: str, settings: dict[str, Any], wrong: dict[str, Any] | None) -> None:
        """Change a setting, with questions open or answered; now and then to what no poll takes."""
        self._change(way, settings, wrong)

    @precondition(lambda self: not any(person.answers for person in self.everybody))
    @rule(settings=st.fixed_dictionaries({}, optional={name: SETTINGS[name] for name in FIXED}))
    def change_what_answers_mean(self, settings: dict[str, Any]) -> None:
        """Change what may be changed before there are answers, with questions open or not."""
        self._change("one", settings, None)

    def _change(self, way: str, settings: dict[str, Any], wrong: dict[str, Any] | None) -> None:
        said, way = (settings, way) if wrong is None else (settings | wrong, "one")
        if way == "command" and any(
            "," in one for one in said.get("criteria", ())
        ):  # which a list of the command splits
            way = "one"
        new = self.settings | said
        moved = [name for name in FIXED if new[name] != self.settings[name] and self.settings[name] is not None]
        is_answered = any(person.answers for person in self.everybody)
        must = "there is no such value" if wrong and wrong.items() <= said.items() else ""
        must = must or ("it is what answers mean" if moved and is_answered else "")
        opens = said.get("opens")
        if opens and opens != self.settings["opens"] and self.status not in ("draft", "paused"):
            must = must or "it opens nothing by itself"
        for name in TIMES:
            if said.get(name) and said[name] != self.settings[name] and TIMES[name][0] <= time.time():
                must = must or "the time is over"
        may = "they do not go together"
        is_done, _ = self.do(way, "change", said, must=must, may=may)
        if not is_done:
            return
        self.settings = new
        for person in self.everybody if moved else ():
            person.withdrawn |= person.questions.keys()
        if said.keys() & {*FIXED, "limit"}:
            self._end_questions(lambda _: True)
        self.fresh = False
        n_active = sum(item.state == "active" for item in self.items.values())
        self.check(self.n_shown <= n_active, "settings are accepted that cannot take effect",
                   f"a question shows {self.n_shown} items, and there are {n_active}")  # fmt: skip

    @rule(
        person=people, way=st.sampled_from(["self by api", "self by page", "one", "two", "api", "command", "command"]),
        by_name=st.booleans(),
    )  # fmt: skip
    def erase(self, person: Person, way: str, by_name: bool) -> None:
        """Erase somebody: they do it themselves, or the organiser, who has what exports call them or their name."""
        self._erase(person, way, by_name)

    @rule(way=st.sampled_from(["self by api", "one", "two", "api", "command"]), what=st.sampled_from(list(LOOKS)))
    def erase_everybody(self, way: str, what: str) -> None:
        """Erase all, one after the other, whom a board knows, and look at the poll that goes on without anybody."""
        self.crowd(3, 4, [0, 1], "one")
        self.refit("one")
        self.look_at_boards("one")
        for person in self.living():
            self._erase(person, way, by_name=False)
        self.look_at_boards("one")
        self.look_at(what, "one")

    def _erase(self, person: Person, way: str, by_name: bool) -> None:
        must = "they are erased" if person.is_gone else ""
        if way.startswith("self") and person.secret is not None:
            is_done, _ = self.do(way.removeprefix("self by "), "leave", person, must=must)
        else:
            way = "one" if way.startswith("self") else way
            called = f"p{person.number}"
            if way == "command" and by_name and person.name and not re.fullmatch(r"p\d+", person.name):
                called = person.name
                person = next((one for one in self.living() if one.name == called), person)
                must = "they are erased" if person.is_gone else ""
            namesake = way == "command" and any(one.name == called for one in self.living() if one is not person)
            is_done, _ = self.do(way, "erase", called, may=must or "two are called so" * namesake)
        if is_done:
            self._forget(person)

    def _forget(self, person: Person) -> None:
        person.is_gone = True
        self.forgotten += [one for one in (person.name, person.pid) if one and len(one) > 7]
        for item in self.items.values():
            if person in item.proposers:
                item.proposers.remove(person)
                if not item.proposers and not item.is_moderated and item.name:
                    self.forgotten += [item.name, *item.before]
                    item.name, item.told = None, {}
                    item.was, item.state = ("refused", "merged") if item.state == "merged" else ("", "refused")
        self.fresh = False

    @precondition(lambda self: self.can_wait and self.ways)
    @rule()
    def move(self) -> None:
        """Move the poll away and back; whoever serves it begins anew."""
        self.do("command", "move")
        for one in self.restarts.values():
            one.restart()

    @precondition(lambda self: self.can_wait and self.ways)
    @rule(way=st.sampled_from(["one", "two"]), is_replaced=st.booleans())
    def take_away(self, way: str, is_replaced: bool) -> None:
        """Take the file from under whoever serves it, and bring it back: meanwhile nothing is acknowledged."""
        files, away = list(self.folder.glob(f"{self.file.name}*")), self.folder / "away"
        away.mkdir(exist_ok=True)
        for file in files:
            file.rename(away / file.name)
        if is_replaced:
            shutil.copyfile(away / self.file.name, self.file)
        try:
            self.ways[way].add(["an item of no file"])
        except Refusal as refusal:
            self.check(refusal.status == 503, "who writes into a file that is gone is told otherwise", refusal.words)
        else:
            self.failed("an item is added to a file that is gone", way)
        finally:
            for file in files:
                (away / file.name).replace(file)

    @rule(way=st.sampled_from(["one", "two"]))
    def refit(self, way: str) -> None:
        """Make the refit that is due, and have all take it up."""
        self.hear()
        n_before = sum(len(one.answers) for one in self.everybody)
        made = self.ways[way].poll.refit()
        note(f"  {way}.refit() gives {made}")
        for other in ("one", "two"):
            self.ways[other].poll.refit()
        numbers = [number for person in self.living() for _, number in person.answers.values()]
        self.fresh = bool(n_before) and made is not None and made == max(numbers, default=0) > self.merged_at

    @rule(what=st.sampled_from(["one", "two", "server"]))
    def restart(self, what: str) -> None:
        """End a process, and start it again."""
        self.restarts[what].restart()

    # What has to be true after each step, and what is looked at

    def answers_of(self, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """What the rows of an export say: who, on what, which question, and the answer."""
        return sorted(((row["user"], row["criterion"], row["question"], _exported(row)) for row in rows), key=repr)

    @invariant()
    def each_acknowledged_answer_stands_once_as_it_was_given(self) -> None:
        if not self.ways:
            return
        there = sorted(
            ((f"p{person.number}", self.boards[on], shown, said[1])
             for person in self.living() for (shown, on), (meant, _) in person.answers.items()
             if (said := self.counted(person.questions[shown], meant)) is not None), key=repr,
        )  # fmt: skip
        for way in ("one", "two"):
            is_done, rows = self.do(way, "export", "answers", is_told=False)
            if is_done:
                found = self.answers_of(rows)
                self.check(found == there, "the answers that stand are others than were acknowledged",
                           f"{found} instead of {there}")  # fmt: skip

    @invariant()
    def whoever_joined_is_there_until_they_are_erased(self) -> None:
        if not self.ways:
            return
        is_done, rows = self.do("one", "export", "participants", is_told=False)
        users = {row["user"] for row in rows or ()}
        there = {f"p{person.number}" for person in self.living()}
        self.check(not is_done or users == there, "others are there than joined", f"{users} instead of {there}")

    @rule(what=st.sampled_from(list(LOOKS)), way=st.sampled_from(["one", "two", "api", "command"]))
    def look(self, what: str, way: str) -> None:
        """Look at something that everybody has to tell alike."""
        self.look_at(what, way)


def _order(question: Question, pick: int) -> tuple[str, ...]:
    """The items from the one that is picked on: the best first."""
    place = pick % len(question.names)
    return question.names[place:] + question.names[:place]


def _meant(question: Question, pick: Any) -> Any:
    """An answer as it has to stand: names, the best first, "tie" or "skip"; None for what is no answer."""
    if not isinstance(pick, int):
        word = str(pick).partition(":")[0]
        return word if word in ("tie", "skip") else None
    order = _order(question, pick)
    return {"pair": order[:1], "best": order[:1], "best-worst": (order[0], order[-1]), "order": order}[question.kind]


def _exported(row: dict[str, Any]) -> Any:
    """The answer that a row of the export holds, as :func:`_meant` has it."""
    if "winner" in row:
        winner = row["winner"] or "skip"
        return (row[winner],) if winner in ("left", "right") else winner
    columns = ("best", "worst") if "best" in row else tuple(name for name in row if re.fullmatch(r"rank\d+", name))
    return tuple(row[name] for name in columns if row.get(name) is not None) or "skip"
