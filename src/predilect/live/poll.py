"""A poll: one question about one list of items, asked of many people; every answer is kept."""

from __future__ import annotations

import hashlib
import hmac
import logging
import random
import re
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa

from predilect._base.text import one_line, quoted
from predilect.decisions.groups import Groups
from predilect.errors import DataError, OutputError
from predilect.live import verbs
from predilect.live.acts import acted
from predilect.live.answers import comparisons
from predilect.live.belief import Belief
from predilect.live.erasing import erase
from predilect.live.exports import Export, export, own, people
from predilect.live.given import (
    Refused,
    Unfit,
    alike,
    check_key,
    check_time,
    digest,
    person_of,
    read_items,
)
from predilect.live.groups import published
from predilect.live.hooks import Hooks
from predilect.live.log import THEMSELVES, Log, New, Writing
from predilect.live.questions import AskedParticipant, Drawn, draw
from predilect.live.refits import Refitter, Worker, missing
from predilect.live.settings import TIMES, Settings, agreed, storable
from predilect.live.state import (
    OWNER,
    Item,
    LeftOut,
    Organiser,
    Participant,
    PollState,
    Shown,
    Status,
)
from predilect.live.suspects import suspects
from predilect.live.tables import Database, organisers, participants, polls
from predilect.live.verbs import Told

_log = logging.getLogger("predilect.live")
_LONGEST = {"pid": 200, "name": 250}  # of a signed pid a name is made
_SECONDS_BETWEEN_LOOKS = 0.25
_KNOWN_BY = {
    what: sa.select(polls.c.signing, participants.c.number)
    .join_from(polls, participants, (participants.c.poll == polls.c.poll)
               & (participants.c[what] == sa.bindparam("this")), isouter=True)
    .where(polls.c.poll == sa.bindparam("poll"))
    for what in ("name", "secret")
}  # made once: to make such a statement takes longer than to run it  # fmt: skip


@dataclass(frozen=True)
class PollQuestion:
    """What a participant is asked: items in the order on the screen, and the criterion."""

    shown: int
    items: tuple[Item, ...]
    criterion: int
    text: str
    kind: str
    retest: bool


@dataclass(frozen=True)
class Progress:
    """How far a participant is; ``left`` is None where there is no limit."""

    answered: int
    left: int | None
    ranking_after: int | None
    status: Status


class Poll:
    """A poll in a database; made by :meth:`create` or :meth:`open`, to be used by any number of threads.

    A participant is a text, whatever the caller calls people, or the number that :meth:`join` gave.

    Attributes
    ----------
    name : str
        Of the poll in its database, and in addresses.
    token : str or None
        The organiser's, of a poll that was just made: it is stored nowhere.

    Notes
    -----
    docs/howto/live-polls.md. The log of events is the truth, and an answer is in it, on the disk, when :meth:`tell`
    returns. The models are caches that follow it: own answers count at once, those of other processes within a quarter
    of a second, and refits are made in a process of their own.

    Examples
    --------
    >>> from predilect.live import Poll
    >>> poll = Poll.create("poll.db", question="Which drink?", items=["tea", "milk"])
    >>> question = poll.ask("ann")[0]
    >>> poll.tell("ann", question.shown, "tea").repeated
    False
    >>> poll.board()["item"].to_list()
    ['tea', 'milk']
    >>> poll.disconnect()
    """

    def __init__(self, database: Database, name: str | None = None, *, background: bool = True) -> None:
        self.database = database
        self.log = Log(database, name)
        self.name = self.log.name
        self.token: str | None = None
        self._background = background
        self._beliefs: dict[int, Belief] = {}
        self._worker = Worker(database)
        self._stored = self._erased = 0  # newest refit that is known to be stored, and erasures known then
        self._traces = False  # of somebody who is erased
        self._people: tuple[float, dict[str, Any]] = (0.0, {})
        self.hooks = Hooks(self.name, self.webhook_key)
        self._ending = threading.Event()
        self._follower: threading.Thread | None = None
        self._lock = threading.Lock()
        self._source = random.SystemRandom()
        self.keep_time()

    # Opening

    @classmethod
    def create(
        cls, url: str | Path, *, question: str, items: Iterable[str | Mapping[str, Any]], name: str | None = None,
        background: bool = True, draft: bool = False, **settings: Any,
    ) -> Poll:  # fmt: skip
        """Make a poll; the database is made too, if there is none.

        Parameters
        ----------
        url : str or Path
            A file, ``poll.db``, or an address of PostgreSQL, ``postgresql://HOST/NAME``.
        question : str
        items : list of str, or of dicts
            Names, or dicts with ``name``, ``description`` (Markdown), ``image`` and ``link`` (addresses) and
            ``attributes`` (a dict of texts).
        name : str, optional
            Of the poll in addresses: letters, digits and hyphens; by default some letters at random.
        background : bool, default True
            Whether a thread and a process of this program make refits; otherwise call :meth:`refit`.
        draft : bool, default False
            Whether nobody may take part before :meth:`resume`, or before the time ``opens`` of the settings, with which
            every poll begins so.
        **settings
            As :class:`Settings` has them.

        Raises
        ------
        DataError
            If a setting or an item cannot be used, or there is a poll of this name.
        OutputError
            If the database cannot be written.
        """
        said = agreed({"question": question, **settings})
        listed = read_items(items, PollState())
        if len(listed) < said.n_shown:
            raise DataError(f"a question shows {said.n_shown} items, and there are {len(listed)}. Give more items")
        name = secrets.token_hex(4) if name is None else name
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}", name):
            raise DataError(f"the name of a poll is letters, digits and hyphens; got {quoted(name)}")
        token = secrets.token_urlsafe(32)
        database = Database(url, create=True)
        row = {"name": name, "sequence": 0, "token": digest(token), "signing": secrets.token_urlsafe(32)}
        with database.writing() as connection:
            if connection.scalar(sa.select(polls.c.poll).where(polls.c.name == name)) is not None:
                raise DataError(f'{database.place} holds a poll "{name}" already. Choose another name')
            key: Any = connection.execute(sa.insert(polls).values(row)).inserted_primary_key
            number = int(key[0])
            Log.extend(connection, number, [
                New("state", {"settings": said.to_dict(), "status": "draft" if draft or said.opens else "open"}),
                New("item_added", {"items": listed}),
            ])  # fmt: skip
        made = cls(database, name, background=background)
        made.token = token
        return made

    @classmethod
    def open(cls, url: str | Path, name: str | None = None, *, background: bool = True) -> Poll:
        """Open a poll; of several in one database the one with this name.

        Raises
        ------
        DataError
            If there is none, or several and no name is given.
        """
        return cls(Database(url), name, background=background)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Finish what is being written, and close the connections; the poll itself stays as it is."""
        self._ending.set()
        if self._follower is not None:
            self._follower.join()
        self._worker.close()
        self.hooks.close()
        self.log.close()
        self.database.close()

    @property
    def settings(self) -> Settings:
        """As they are now."""
        with self.log.lock:
            assert self.log.state.settings is not None
            return self.log.state.settings

    @property
    def status(self) -> Status:
        """Whether it is draft, open, paused or closed."""
        with self.log.lock:
            return self.log.state.status

    @property
    def items(self) -> list[Item]:
        """All items, in whatever state."""
        with self.log.lock:
            return list(self.log.state.items)

    # Participants

    def join(
        self, name: str | None = None, *, secret: str | None = None, pid: str | None = None, language: str = ""
    ) -> int:
        """Number of a participant; a new one, unless there is one of this name or secret.

        ``name`` is what the caller calls them, ``secret`` what they show to come back (only its SHA-256 is kept), and
        ``pid`` an outer reference, which is no key.
        """
        for what, value in (("name", name), ("pid", pid)):
            if value is not None and not 0 < len(storable(value)) <= _LONGEST[what]:
                raise Unfit(f"the {what} of a participant has 1 to {_LONGEST[what]} characters")
        hashed = None if secret is None else digest(secret)
        self.keep_time()

        def decide(state: PollState, connection: Any) -> Writing:
            known: int | None = self.log.checked(connection.execute(*self._asked_for(name, hashed)).first()).number
            if known is not None:
                return Writing(lambda _: known)
            verbs.must_have_begun(state)

            def keep(connection: Any, numbers: list[int]) -> None:
                row = {"poll": self.log.poll, "number": numbers[0], "name": name, "secret": hashed, "pid": pid}
                connection.execute(sa.insert(participants).values(row))

            joined = New("joined", {"language": language} if language else {}, THEMSELVES)
            return Writing(lambda numbers: numbers[0], [joined], keep)

        return int(self.log.write(("join", name or hashed or secrets.token_hex(8)), decide))

    def readmit(self, name: str, secret: str, pid: str | None = None, language: str = "") -> int:
        """Number of the participant of a name, who has this secret from now on: the one before is worth nothing."""
        number = self.join(name, secret=secret, pid=pid, language=language)
        with self.log.writing() as connection:
            this = (participants.c.poll == self.log.poll) & (participants.c.number == number)
            connection.execute(sa.update(participants).where(this).values(secret=digest(secret)))
        return number

    def who(self, *, name: str | None = None, secret: str | None = None) -> int | None:
        """Number of the participant with a name or a secret; None if there is none."""
        asked = self._asked_for(name, None if secret is None else digest(secret))
        number: int | None = self.log.checked(self.database.first(*asked)).number
        if number is not None and not self.has(number):
            self.log.refresh()
        return number

    def has(self, number: int) -> bool:
        """Whether there is a participant of this number."""
        with self.log.lock:
            return number in self.log.state.people

    def _asked_for(self, name: str | None, hashed: str | None) -> tuple[Any, dict[str, Any]]:
        """What asks the database for the number of a participant, and its values."""
        what, this = ("name", name) if name is not None else ("secret", hashed)
        return _KNOWN_BY[what], {"poll": self.log.poll, "this": this}

    def _number(self, participant: str | int, *, new: bool = False) -> int:
        self.keep_time()
        if isinstance(participant, str):
            known = self.who(name=participant)
            if known is None and new:
                return self.join(participant)
            if known is not None:
                return known
        elif self.has(participant):
            return participant
        raise Refused(f"the poll knows no participant {quoted(participant)}", 404)

    # Questions and answers

    def ask(self, participant: str | int, n: int = 1) -> list[PollQuestion]:
        """Questions for a participant: those that are open first, until they are answered, then new ones.

        Fewer than ``n``, or none, if the limit is reached, nothing is left to ask, or the poll is not open.
        """
        number = self._number(participant, new=True)
        drawn = self._drawn(number, n)
        if drawn:
            self.log.write(number, lambda state, _: Writing(lambda _: None, self._shown(state, number, drawn, n)))
        return self._questions(number, n)

    def first(self) -> tuple[PollQuestion, Drawn] | None:
        """What somebody is asked first who has yet to take part, and what :meth:`put` takes; None if there is nothing.

        The log knows of neither until they answer.
        """
        return self._first("open")

    def preview(self) -> PollQuestion | None:
        """A question as somebody may be asked it first, whether the poll is open or not; nothing of it is kept."""
        found = self._first("draft", "open", "paused", "closed")
        return None if found is None else found[0]

    def _first(self, *where: Status) -> tuple[PollQuestion, Drawn] | None:
        self._follow()
        self.keep_time()
        with self.log.lock:
            state, person = self.log.state, Participant(0, 0.0)
            asked = AskedParticipant.of(state, person) if state.status in where else None
        drawn = [] if asked is None else draw(asked, 1, lambda: self.belief(0), self._source)
        if not drawn:
            return None
        shown = Shown(0, 0.0, 0, drawn[0].items, drawn[0].probability, False)
        with self.log.lock:
            return self._question(state, self.settings, person, shown), drawn[0]

    def put(self, participant: str | int, question: Drawn) -> int:
        """Put the :meth:`first` question before somebody who took part since; its number, to be answered."""
        number = self._number(participant)
        return int(self.log.write(number, lambda state, _: verbs.put(state, number, question)))

    def _drawn(self, number: int, n: int, closing: int = 0) -> list[Drawn]:
        """New questions, so that ``n`` are open once the one that is ``closing`` is answered."""
        self._follow()
        with self.log.lock:
            state = self.log.state
            person = person_of(state, number)
            wanted = self._wanted(state, person, n, closing)
            asked = AskedParticipant.of(state, person) if wanted else None
            criterion = len(person.shown) % state.n_criteria
        return [] if asked is None else draw(asked, wanted, lambda: self.belief(criterion), self._source)

    def _shown(self, state: PollState, number: int, drawn: list[Drawn], n: int, closing: int = 0) -> list[New]:
        """Events of the questions that are still wanted, and about items that are still asked about."""
        active = {item.number for item in state.active()}
        wanted = self._wanted(state, person_of(state, number), n, closing)
        return [one.event(number) for one in drawn[:wanted] if active.issuperset(one.items)]

    def _wanted(self, state: PollState, person: Participant, n: int, closing: int = 0) -> int:
        """How many new questions to draw, so that ``n`` are open; ``closing`` is about to be answered."""
        assert state.settings is not None
        if state.status != "open":
            return 0
        limit = state.settings.limit - state.n_questions(person) if state.settings.limit else n
        n_open = sum(one.sequence != closing for one in state.open_questions(person))
        return max(0, min(n - n_open, limit))

    def _questions(self, number: int, n: int) -> list[PollQuestion]:
        with self.log.lock:
            state = self.log.state
            settings, person = self.settings, person_of(state, number)
            if state.status != "open":
                return []
            return [self._question(state, settings, person, one) for one in state.open_questions(person)[:n]]

    def _question(self, state: PollState, settings: Settings, person: Participant, shown: Shown) -> PollQuestion:
        criterion = person.next_criterion(shown, state.n_criteria) or 0
        items = tuple(state.items[number - 1] for number in shown.items)
        return PollQuestion(shown.sequence, items, criterion, settings.boards[criterion], settings.kind, shown.retest)

    def tell(
        self, participant: str | int, shown: int, answer: Any, *, criterion: int | None = None, key: str | None = None,
        shown_ms: int | None = None,
    ) -> Told:  # fmt: skip
        """Keep an answer: when this returns, it is on the disk.

        Parameters
        ----------
        participant : str or int
        shown : int
            ``shown`` of the question.
        answer : item, list of items, "left", "right", "tie" or "skip"
            An item is its name or its number. Of a pair the better item, its side, or a tie; of "best" the best item;
            of "best-worst" the best and the worst; of "order" all items, the best first. "skip" for no answer, which
            may say why: "skip:unknown" (I do not know enough), "skip:neither", "skip:same", "skip:unclear".
        criterion : int, optional
            By default the first one on which the question is not answered.
        key : str, optional
            The same key again, of the same participant, gives the first result and counts once.
        shown_ms : int, optional
            Milliseconds since the question was on the screen, by which hasty answers show.

        Raises
        ------
        DataError
            If there is no such question, the answer does not fit it, it was answered otherwise already, the key was
            used for something else, or the poll is not open.
        OutputError
            If nothing could be written.
        """
        number = self._number(participant)
        return self._answer(number, answer, key, shown=shown, criterion=criterion, shown_ms=shown_ms)

    def tell_and_ask(
        self, participant: str | int, shown: int, answer: Any, n: int, *, criterion: int | None = None,
        key: str | None = None, shown_ms: int | None = None,
    ) -> tuple[Told, list[PollQuestion]]:  # fmt: skip
        """Keep an answer as :meth:`tell` does, and give the next ``n`` questions, all in one commit."""
        number = self._number(participant)
        told = self._answer(number, answer, key, shown=shown, criterion=criterion, n=n, shown_ms=shown_ms)
        return told, self._questions(number, n)

    def skip(self, participant: str | int, shown: int, *, key: str | None = None) -> Told:
        """Keep that a participant gives no answer to a question; it is not asked again."""
        return self.tell(participant, shown, "skip", key=key)

    def replace(
        self, participant: str | int, old: int, answer: Any, *, key: str | None = None, shown_ms: int | None = None
    ) -> Told:
        """Put an answer in the place of an earlier one, ``old``; the log keeps both, the board the last."""
        return self._answer(self._number(participant), answer, key, old=old, shown_ms=shown_ms)

    def _answer(
        self, number: int, answer: Any, key: str | None, *, shown: int = 0, criterion: int | None = None,
        old: int | None = None, n: int = 0, shown_ms: int | None = None,
    ) -> Told:  # fmt: skip
        with self.log.lock:
            person = person_of(self.log.state, number)
            is_last = self.log.state.n_criteria - sum(one == shown for one, _ in person.given) <= 1
        closing = shown if is_last else 0
        drawn = self._drawn(number, n, closing) if n else []

        def decide(state: PollState, _: Any) -> Writing:
            person = person_of(state, number)
            return verbs.answer(
                state, person, answer, key, shown=shown, criterion=criterion, old=old, shown_ms=shown_ms,
                then=lambda: self._shown(state, number, drawn, n, closing),
            )  # fmt: skip

        check_key(key)
        check_time(shown_ms)
        told: Told = self.log.write(number, decide)
        self._follow()
        return told

    def undo(self, participant: str | int, *, key: str | None = None) -> int:
        """Take back the last answer of a participant, whose question is open again; the number of that answer."""
        number = self._number(participant)
        check_key(key)
        return int(self.log.write(number, lambda state, _: verbs.undo(state, number, key)))

    # Items

    def propose_item(self, participant: str | int, text: str, *, key: str | None = None) -> int:
        """Propose an item, which is shown once the organiser accepts it; its number."""
        number = self._number(participant, new=True)
        check_key(key)

        def decide(state: PollState, _: Any) -> Writing:
            plan = verbs.propose(state, number, text, key)
            return replace(plan, result=lambda numbers: (plan.result(numbers), numbers))

        item, written = self.log.write(None, decide)
        if written:
            with self.log.lock:
                said = {"number": item, "name": self.log.state.items[item - 1].name}
            self._notify("proposed", written[0], {"item": said})
        return int(item)

    def add_items(self, items: Iterable[str | Mapping[str, Any]]) -> list[int]:
        """Add items while the poll runs; their numbers."""
        said = list(items)
        return list(self.act("add", said))

    def moderate(self, item: str | int, accept: bool) -> None:
        """Accept an item that was proposed, or retired, or refuse one that was proposed."""
        self.act("moderate", item, accept)

    def edit_item(self, item: str | int, **said: str) -> None:
        """Rename an item, or say more of it: ``name``, ``description`` (Markdown), ``image``, ``link``.

        Its answers stay: what they were about is in the log under the name that it had then.
        """
        self.act("edit", item, said)

    def merge_items(self, item: str | int, into: str | int) -> None:
        """Let the answers on an item count for another one, too, which says the same; :meth:`part_item` undoes it.

        Questions about both say nothing meanwhile; in an order the better place counts. The log keeps all as it was.
        """
        self.act("merge", item, into)

    def part_item(self, item: str | int) -> None:
        """Undo :meth:`merge_items`: an item is asked about again, if it was before, and has its answers back."""
        self.act("part", item)

    def alike(self, text: str) -> list[Item]:
        """Items that are asked about and may say the same as a text, the likest first, five at most."""
        with self.log.lock:
            return alike(text, self.log.state.active())

    def retire(self, item: str | int) -> None:
        """Ask no more about an item; its answers stay."""
        self.act("retire", item)

    def report(self, participant: str | int, item: str | int) -> None:
        """Tell the organiser that an item should not be there."""
        number = self._number(participant)
        self.log.write(number, lambda state, _: verbs.report(state, number, item))

    # The organiser

    def act(self, verb: str, *said: Any, by: int = 0) -> Any:
        """Do something as an organiser: what the methods that organise do, with who did it.

        ``by`` is the number of :meth:`organiser`, whose role has to allow it; 0 is whoever runs this program.
        """
        return self.log.write(None, lambda state, _: acted(state, verb, said, by))

    def invite(self, name: str, role: str = "moderator", *, by: int = 0) -> tuple[int, str]:
        """Let somebody look after the poll; their number, and their token, which is kept nowhere.

        A "reader" sees boards, items, people and exports, but for outer references and the log as it is; a "moderator"
        decides on items too; an "organiser" may do everything. Their link to the pages is ``/o/NAME/in/TOKEN``.
        """
        token = secrets.token_urlsafe(32)

        def keep(connection: Any, number: int) -> None:
            row = {"poll": self.log.poll, "number": number, "token": digest(token)}
            connection.execute(sa.insert(organisers).values(row))

        return int(self.act("invite", name, role, keep, by=by)), token

    def revoke(self, who: str | int, *, by: int = 0) -> None:
        """Take back the link of an organiser, by name or number; what they did stays in the trail."""

        def forget(connection: Any, number: int) -> None:
            this = (organisers.c.poll == self.log.poll) & (organisers.c.number == number)
            connection.execute(sa.delete(organisers).where(this))

        self.act("revoke", who, forget, by=by)

    def organisers(self) -> list[Organiser]:
        """Who looks after the poll, the first who was invited first; without whoever has the poll's own token."""
        with self.log.lock:
            return [one for one in self.log.state.organisers.values() if one is not OWNER]

    def organiser(self, token: str) -> Organiser | None:
        """Whose token this is: of number 0 the poll's own; None if it is nobody's."""
        hashed = digest(token)
        with self.log.reading() as connection:
            own = connection.scalar(sa.select(polls.c.token).where(polls.c.poll == self.log.poll))
            this = (organisers.c.poll == self.log.poll) & (organisers.c.token == hashed)
            number = connection.scalar(sa.select(organisers.c.number).where(this))
        if hmac.compare_digest(str(own), hashed):
            return OWNER
        if number is not None and number not in self.log.state.organisers:
            self.log.refresh()
        return None if number is None else self.log.state.organisers.get(int(number))

    @property
    def is_due(self) -> bool:
        """Whether the time came to open or close the poll, and nobody did so yet."""
        return bool(self.log.state.due_by(time.time()))  # without the lock: whoever serves asks for each request

    def keep_time(self) -> None:
        """Open or close the poll if a time of its settings came. All that asks or answers does so first."""
        for _ in TIMES:  # both may have come since somebody looked
            if self.is_due:
                self.log.write(None, lambda state, _: verbs.keep_time(state, time.time()))

    def pause(self) -> None:
        """Ask nobody, and take no answers, until :meth:`resume`."""
        self._set_status("paused")

    def resume(self) -> None:
        """Open a poll that is a draft, paused or closed."""
        self._set_status("open")

    def close(self) -> None:
        """End the poll: nobody may join or answer. (:meth:`disconnect` lets go of the database.)"""
        self._set_status("closed")

    def _set_status(self, status: Status) -> None:
        self.act("set_status", status)

    def change(self, **settings: Any) -> None:
        """Change settings; those that say what answers mean, only before there are answers."""
        self.act("change", settings)

    def new_token(self) -> str:
        """A new token of the organiser; the old one is worth nothing from now on."""
        token = secrets.token_urlsafe(32)
        with self.log.writing() as connection:
            chosen = sa.update(polls).where(polls.c.poll == self.log.poll)
            connection.execute(chosen.values(token=digest(token)))
        return token

    def is_organiser(self, token: str) -> bool:
        """Whether a token is an organiser's, in whatever role."""
        return self.organiser(token) is not None

    @property
    def webhook_key(self) -> str:
        """Key by which notices to the ``webhook`` of the settings are signed, in hexadecimal."""
        return hmac.new(self.log.signing.encode(), b"webhook", hashlib.sha256).hexdigest()

    def _notify(self, event: str, sequence: int, said: dict[str, Any]) -> None:
        """Tell the webhook, if there is one, beside everything else."""
        url = self.settings.webhook
        if url and self._background:
            self.hooks.send(url, {"poll": self.name, "event": event, "sequence": sequence, **said})

    def _settle(self) -> None:
        """Find whether first place is clear now, and tell so once, whichever process finds it."""
        for criterion in range(len(self.settings.boards)):
            try:
                found = self.outlook(criterion=criterion)
            except DataError:  # there is no such claim on this board, yet
                continue
            if found.enough:
                self._settled(criterion, list(map(str, found.items)), float(found.probability))

    def _settled(self, criterion: int, items: list[str], probability: float) -> None:
        sequence = self.log.write(None, lambda state, _: verbs.settle(state, criterion, items, probability))
        if sequence is not None:
            name = self.settings.boards[criterion]
            told = {"claim": "best", "criterion": name, "items": items, "probability": round(probability, 4)}
            self._notify("settled", sequence, told)

    def sign(self, pid: str) -> str:
        """Signature of an outer reference: HMAC-SHA-256 in hexadecimal by the poll's key."""
        return hmac.new(self.log.signing.encode(), pid.encode(), hashlib.sha256).hexdigest()

    # What came out

    def belief(self, criterion: int = 0) -> Belief:
        """The model of a criterion in this process."""
        with self._lock:
            if criterion not in self._beliefs:
                if not 0 <= criterion < self.log.state.n_criteria:
                    raise Refused(f"the poll has {self.log.state.n_criteria} criteria, from 0", 404)
                self._beliefs[criterion] = Belief(self.log, criterion, is_followed=self._background)
                self._beliefs[criterion].renew()
            return self._beliefs[criterion]

    def board(self, criterion: int = 0, *, max_age: float = 0.0) -> Any:
        """The crowd's board: columns as ``Population.rank`` has them, the best item first, and ``duel_share``.

        That is the share of its duels with the others that an item wins, of the next person; ``duel_share_low``
        and ``duel_share_high`` are its 95 % interval.

        It holds every answer that this process knows. With ``max_age`` one comes again that was made up to so many
        seconds ago, or ten times as many as it took, up to ten: a board of thousands of items takes one.
        """
        self._follow()
        return self.belief(criterion).board(max_age)

    def board_without_suspects(self, criterion: int = 0) -> Any:
        """The crowd's board as it would be without those whose answers look like none, as :meth:`people` counts them.

        ``export("participants")`` says who they are, and why; nobody is left out of any other board.
        """
        self._follow()
        with self.log.lock:
            flagged = list(suspects(self.log.state))
        return self.belief(criterion).board_without(flagged)

    def outlook(self, claim: str = "best", level: float | None = None, criterion: int = 0) -> Any:
        """How likely the claim is, and about how many more answers settle it: ``Population.outlook``."""
        self._follow()
        settings = self.settings
        level = settings.level if level is None else level
        return self.belief(criterion).outlook(claim, level, settings.top)

    def groups(self, criterion: int = 0) -> Groups | None:
        """Groups of opinion, as they were last published: ``Population.groups``; None before there are any.

        They are looked for at refits. Each has ``smallest_group`` people at least, and so many of each gave answers
        since the publication before: no smaller group is told by the difference of two. Of the active items.
        """
        self._follow()
        with self.log.lock:
            names = {item.key: item.name for item in self.log.state.active()}
        return published(self.log, criterion, self.settings.smallest_group, names)

    def contents(self, criterion: int = 0) -> Any:
        """What the page of a report on the board holds: :func:`predilect.show.report.page.page` makes it.

        Refused before there are answers.
        """
        from predilect.show.report.sections import contents_of

        belief = self.belief(criterion)
        model = belief.catch_up()
        if not model.n_answers_:
            raise Refused("there are no answers to report on")
        with self.log.lock:
            every = [one for one in self.log.state.counting() if one.criterion == criterion]
            read = comparisons(self.log.state, every, by="name")
        return contents_of(
            belief.to_report(model), title=self.settings.boards[criterion], answers=read,
            groups=lambda: self.groups(criterion),
        )  # fmt: skip

    def mine(self, participant: str | int, criterion: int = 0) -> Any:
        """The participant's own board, or None before they gave enough answers to see it.

        It holds all their answers; those of others may be some seconds old, as of :meth:`board`.
        """
        number = self._number(participant)
        self._follow()
        with self.log.lock:
            needed = self.settings.own_ranking
            state = self.log.state
            theirs = [one.sequence for one in state.said_by(person_of(state, number), criterion)]
        if not needed or len(theirs) < needed:
            return None
        return self.belief(criterion).own(number, (max(theirs), len(theirs)))

    def progress(self, participant: str | int) -> Progress:
        """How far a participant is."""
        number = self._number(participant)
        with self.log.lock:
            state, settings = self.log.state, self.settings
            person = person_of(state, number)
            done = state.n_questions(person) - len(state.open_questions(person))
            left = max(0, settings.limit - done) if settings.limit else None
            return Progress(done, left, settings.own_ranking or None, state.status)

    def people(self, *, max_age: float = 0.0) -> dict[str, Any]:
        """Numbers about who answered, by which stuffing shows; groups of fewer than five are not told."""
        made, found = self._people
        if not found or time.monotonic() - made >= max_age:
            with self.log.lock:
                found = people(self.log.state)
            self._people = (time.monotonic(), found)
        return found

    def export(self, kind: Export = "answers", *, show_pids: bool = False) -> Any:
        """A table, as a polars frame: "answers", "shown", "items", "board", "groups", "participants", "events" or
        "trail": who of those who look after the poll did what, ``who`` empty of whoever has its own token or its file.

        Outer references are hashed, unless ``show_pids``.
        """
        self.log.refresh()
        return export(self, kind, show_pids)

    def own(self, participant: str | int) -> dict[str, Any]:
        """All that is kept of a participant, as plain values."""
        number = self._number(participant)
        with self.log.lock:
            return own(self.log.state, number)

    def erase(self, participant: str | int, *, by: int | None = None) -> None:
        """Erase a participant: the id, the answers, and what they told of the board; cannot be undone.

        The rows of the log keep their number and what kind they were. Back-ups and exports are the organiser's to mend.
        ``by`` is the organiser who erases them, as :meth:`act` has it; None: they do it themselves.

        Raises
        ------
        OutputError
            If nothing could be written, or if traces are left in an SQLite file that another program reads for long,
            though the participant is erased. They go once it ends: by the thread that follows the log, or when the
            number is erased again.
        """
        if not self.was_erased(participant):
            told = self.log.poll, self._number(participant)
            if by is None:
                self.log.write(None, lambda state, _: erase(state, *told))
            else:
                self.act("erase", *told, by=by)
        self._traces = not self.database.scrub()
        for belief in list(self._beliefs.values()):
            belief.follow()
        self._follow()
        if self._traces:
            raise OutputError(
                f"the participant is erased, and another program reads {self.database.place}, so that traces stay in "
                "it until that ends. Erase the same number again then, or leave it to the server"
            )

    def was_erased(self, participant: str | int) -> bool:
        """Whether somebody of this number was erased."""
        with self.log.lock:
            return participant in {number for _, number in self.log.state.erasures}

    def expired(self, now: float) -> list[int]:
        """Participants whose time to be kept is over: all, ``retention_days`` after the poll was closed."""
        with self.log.lock:
            state, days = self.log.state, self.settings.retention_days
            is_over = days and state.closed_at is not None and now >= state.closed_at + 86_400 * days
            return sorted(state.people) if is_over else []

    def left_out(self) -> list[LeftOut]:
        """Rows of the log that cannot be taken in, as they are damaged, or this Predilect makes a mistake."""
        with self.log.lock:
            return list(self.log.state.left_out)

    def readable(self) -> bool:
        """Whether the database can be read now: the log to its end, from where it is."""
        try:
            self.log.refresh()
        except (DataError, OutputError):
            return False
        return True

    # Refits

    def refit(self) -> int | None:
        """Make the refit that is due in this process, if any, and take it up; its sequence."""
        made = Refitter(self.database, self.name).refit()
        for belief in list(self._beliefs.values()):
            belief.renew()
        return made

    def numbers(self) -> dict[str, int]:
        """How much there is, for those who watch a server."""
        with self.log.lock:
            state = self.log.state
            return {
                "answers": sum(state.n_answers), "participants": len(state.people), "refits_due": len(state.due),
                "refits_failed": self._worker.failures, "rows_left_out": len(state.left_out),
                "notices_failed": self.hooks.failed,
            }  # fmt: skip

    def _follow(self) -> None:
        """Start the thread that reads what others wrote, has refits made, and takes them up."""
        if not self._background or self._follower is not None:
            return
        with self._lock:
            if self._follower is None:
                self._follower = threading.Thread(target=self._look, name=f"follower of {self.name}", daemon=True)
                self._follower.start()

    def _look(self) -> None:
        known = ""
        while not self._ending.wait(_SECONDS_BETWEEN_LOOKS):
            try:
                self.look()
            except (DataError, OutputError):
                continue  # the database is away for now: whoever asks next is told
            except Exception as error:  # noqa: BLE001  a mistake of ours, which is told once, and does not end the thread
                told = f"{type(error).__name__}: {one_line(error)}"
                if told != known:
                    _log.error("%s: following the log failed: %s", self.name, told)
                known = told

    def look(self) -> None:
        """Read what others wrote, ask for the refit that is due, take up the newest one."""
        self.log.refresh()
        self.keep_time()
        if self._traces:
            self._traces = not self.database.scrub()
        with self.log.lock:
            due = self.log.state.due[-1] if self.log.state.due else 0
            n_erased = len(self.log.state.erasures)
        if n_erased > self._erased:
            self._erased, self._stored = n_erased, 0  # refits that held them are made anew
        if due > self._stored:
            if missing(self.log) is not None:
                self._worker.ask(self.name)
            else:
                for belief in list(self._beliefs.values()):
                    belief.renew()
                if missing(self.log) is None:  # one that cannot be read is made again
                    self._stored = due
                    if self.settings.webhook:
                        self._settle()
        for belief in list(self._beliefs.values()):
            belief.follow()
