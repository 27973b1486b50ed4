"""What a process believes about one board of a poll: a model that follows the log."""

from __future__ import annotations

import copy
import io
import logging
import threading
import time
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import polars as pl
import sqlalchemy as sa

from predilect.data import Vocabulary
from predilect.decisions.versus import duels
from predilect.errors import DataError
from predilect.live.answers import as_update, comparisons, standing, user_of
from predilect.live.log import Log
from predilect.live.state import Answer, Change, Item, PollState
from predilect.live.tables import models
from predilect.models.registry import estimator, load

_log = logging.getLogger("predilect.live")
_SECONDS_OF_AN_ASKER, _SECONDS_OF_AN_OUTLOOK = 0.25, 5.0
_SECONDS_OF_SILENCE = 10.0  # of the thread that follows, after which whoever asks makes the weights
_TIMES_AS_LONG, _LONGEST_PAUSE = 10.0, 10.0  # as it took to make a board it stands at least; seconds
_MOST_MADE = 200  # boards, of participants too, that are kept
_MANY = 20  # changes from which a frame is faster than one answer at a time
# Columns of boards: shares of duels, with their 95 % intervals
DUELS = ("duel_share", "duel_share_low", "duel_share_high")
FEWEST_ANSWERS, FEWEST_PEOPLE = 10, 2  # below, the prior: all items alike


def keys_of(state: PollState) -> list[str]:
    """Items that a model knows: what is asked about, and what was."""
    return [item.key for item in state.moderated()]


class Renamed(Vocabulary):
    """Items of a model under the names that they have now, in the order of their keys."""

    __slots__ = ("_places",)

    def __init__(self, names: list[str]) -> None:
        self._ids = pl.Series("id", names, dtype=pl.String)
        self._list, self._hash, self._is_integer = None, None, False
        self._places = {name: place for place, name in enumerate(names)}

    def _position(self, value: Any) -> int:
        return self._places.get(value, -1)


def fitted(state: PollState, criterion: int) -> Any:
    """The model of a criterion, fitted to the answers that stand; None for fewer than 10, or of one person.

    The same events give the same model, in whichever process.
    """
    answers = standing(state.changes, criterion)
    if len(answers) < FEWEST_ANSWERS or len({answer.participant for answer in answers}) < FEWEST_PEOPLE:
        return None
    return _new(state).fit(comparisons(state, answers), items=keys_of(state))


def prior(state: PollState) -> Any:
    """The model before there are answers: all items are alike."""
    return _new(state).fit(None, items=keys_of(state))


def _new(state: PollState) -> Any:
    assert state.settings is not None
    return estimator("population")(ties=state.settings.ties and state.settings.kind == "pair", n_jobs=1)


def packed(model: Any) -> bytes:
    """A saved model as one piece."""
    with TemporaryDirectory(prefix="predilect-") as place:
        folder = Path(place) / "model"
        model.save(folder)
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for file in sorted(folder.iterdir()):
                archive.write(file, file.name)
    return content.getvalue()


def unpacked(content: bytes) -> Any:
    """The model that :func:`packed` took."""
    with TemporaryDirectory(prefix="predilect-") as place:
        folder = Path(place) / "model"
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(folder)
        return load(folder)


def knows(model: Any, user: str) -> bool:
    """Whether a model has answers of somebody."""
    return user in model._added_users or model.users_.code(user) >= 0


class _Asker(NamedTuple):
    """What chooses questions: when it was made, of which refit and event, and itself."""

    time: float
    at: tuple[int, int]
    questions: Any


class _Made(NamedTuple):
    """A board or an outlook: when it was made, for how long it stands at least, of what and of which event."""

    time: float
    pause: float
    of: tuple[int, ...]
    sequence: int
    found: Any


class Belief:
    """The model of one criterion: the newest refit, with all that came after it.

    ``made_at`` is the sequence of the refit, 0 for the prior; ``sequence`` how far the log is taken in;
    ``is_followed`` whether a thread calls :meth:`follow` again and again, so that whoever asks need not wait.
    """

    def __init__(self, log: Log, criterion: int, *, is_followed: bool) -> None:
        self.log, self.criterion, self.is_followed = log, criterion, is_followed
        self.made_at, self.sequence = -1, 0
        self.model: Any = None
        self._lock = threading.RLock()
        self._erased = 0  # erasures that the model has followed
        self._asker: _Asker | None = None
        self._followed_at = time.monotonic()
        self._making = threading.Lock()
        self._made: dict[Any, _Made] = {}  # the last one that was looked at stands last
        self._looking = threading.Lock()

    def catch_up(self) -> Any:
        """The model, with every event that this process knows."""
        with self._lock:
            with self.log.lock:
                state = self.log.state
                if self.model is None:
                    self._begin(state, prior(state), 0)
                last = state.sequence
                if last == self.sequence:
                    return self.model
                changes, erased = self._changes_after(self.sequence), state.erasures[self._erased :]
                keys = keys_of(state) if state.board_changed > self.sequence else []
            self._add_items(keys)
            for _, number in erased:
                self.model = self._without(self.model, [number])
                self.made_at = min(self.made_at, number - 1)  # a refit without them takes this one's place
                self._asker = None
                self._made.clear()
            self._change(*_came_and_went(changes, self.criterion))
            self._erased += len(erased)
            self.sequence = last
            return self.model

    def renew(self) -> bool:
        """Take the newest refit that is stored, if it is newer than this one's; whether it did."""
        chosen = (
            sa.select(models.c.sequence, models.c.folder)
            .where(models.c.poll == self.log.poll, models.c.criterion == self.criterion,
                   models.c.sequence > max(self.made_at, 0), models.c.folder.is_not(None))
            .order_by(models.c.sequence.desc()).limit(1)
        )  # fmt: skip
        with self.log.reading() as connection:
            row = connection.execute(chosen).first()
        if row is None:
            return False
        try:
            model = unpacked(row.folder)
        except (DataError, OSError, zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
            _log.warning("The refit of row %d cannot be read, and is made again: %s", row.sequence, error)
            self._throw_away(row.sequence)
            return False
        with self._lock, self.log.lock:
            if self.log.state.sequence < row.sequence:
                return False  # of events that this process has yet to read
            if any(sequence > row.sequence for sequence, _ in self.log.state.erasures) and self._lost(row.sequence):
                return False
            self._begin(self.log.state, model, row.sequence)
        self.follow()
        return True

    def _throw_away(self, sequence: int) -> None:
        this = (models.c.poll == self.log.poll) & (models.c.criterion == self.criterion)
        with self.log.writing() as connection:
            connection.execute(sa.delete(models).where(this, models.c.sequence == sequence))

    def _lost(self, sequence: int) -> bool:
        """Whether a refit was thrown away meanwhile, as somebody was erased."""
        chosen = sa.select(models.c.sequence).where(
            models.c.poll == self.log.poll, models.c.criterion == self.criterion, models.c.sequence == sequence
        )
        with self.log.reading() as connection:
            return connection.scalar(chosen) is None

    def _begin(self, state: PollState, model: Any, sequence: int) -> None:
        self.model, self.made_at, self.sequence = model, sequence, sequence
        # A stored refit holds nobody who is erased: it is thrown away with them.
        self._erased = len(state.erasures) if sequence else 0
        self._made.clear()
        self._add_items(keys_of(state))

    def _add_items(self, keys: Sequence[str]) -> None:
        missing = [key for key in keys if self.model.items_.code(key) < 0]
        if missing:
            self.model.update(items=missing)

    def _changes_after(self, sequence: int) -> list[Change]:
        changes = self.log.state.changes
        return changes[bisect_right(changes, sequence, key=lambda change: change.sequence) :]

    def _change(self, came: list[Answer], went: list[Answer]) -> None:
        """Take answers in, and others out; one at a time, or many as a frame."""
        state = self.log.state
        assert state.settings is not None
        for answers, change in ((went, self.model.forget), (came, self.model.update)):
            if state.settings.kind == "pair" and len(answers) < _MANY:
                for answer in answers:
                    change(**as_update(state, answer))
            elif answers:
                change(comparisons(state, answers))

    def knows(self, user: str) -> bool:
        """Whether the model has answers of somebody."""
        return knows(self.model, user)

    def asker(self) -> Any:
        """What chooses questions, one after the other until there are some, of the board a quarter of a second ago.

        The model stands still as long: to move the board takes milliseconds, and whoever asks has it left out what they
        have seen, answered a moment ago or not.
        """
        made = self._asker
        if made is None or made.at[1] < self.log.state.board_changed:  # other items may be asked about
            return self._prepared()
        now = time.monotonic()
        is_followed = self.is_followed and now - self._followed_at < _SECONDS_OF_SILENCE
        return made.questions if is_followed or now - made.time < _SECONDS_OF_AN_ASKER else self._prepared()

    def _prepared(self) -> Any:
        """What chooses questions, made anew if the log has grown."""
        with self._making:
            with self._lock:
                model, at = copy.copy(self.catch_up()), (self.made_at, self.sequence)
            made = self._asker
            if made is None or made.at != at:
                made = self._asker = _Asker(time.monotonic(), at, self._questions(model))
            return made.questions

    def _questions(self, model: Any) -> Any:
        with self.log.lock:
            state, known = self.log.state, self._known(model)
            settings = state.settings
            retired = [item.key for item in known if item.state != "active"]
            shown = {item.key: state.times_shown[item.number - 1] for item in known}
        assert settings is not None
        told = {"target": settings.strategy, "k": _within(model, settings.top, retired), "retired": retired}
        # Who answered all that are easy, as nobody's answers make any so at first, is asked the others.
        each = [settings.difficulty, None] if settings.difficulty else [None]
        return [model.questions(**told, difficulty=one, shown=shown) for one in each]

    def follow(self) -> None:
        """Take in what came, and make what chooses questions anew if somebody was asked before."""
        if self._asker is None:
            self.catch_up()
        else:
            self._prepared()
        self._followed_at = time.monotonic()

    def board(self, max_age: float = 0.0) -> Any:
        """The crowd's board, a polars frame of the active items, best first; at most so many seconds old.

        If not 0, or as many as let boards take a tenth of the time, up to ten seconds.
        """
        model = self.catch_up()
        return self._looked("board", (), max_age or None, lambda: self._ranked(model))

    def board_without(self, numbers: Sequence[int]) -> Any:
        """The crowd's board as it is without the answers of some participants; of a state at most some seconds old."""
        model = self.catch_up()

        def made() -> Any:
            another = unpacked(packed(copy.copy(model)))  # to forget them in
            return self._ranked(self._without(another, numbers))

        return self._looked("without", tuple(numbers), _SECONDS_OF_AN_OUTLOOK, made)

    def _without(self, model: Any, numbers: Iterable[int]) -> Any:
        """A model that forgot some participants, in place; the prior once nobody is left in it."""
        for user in map(user_of, numbers):
            if knows(model, user):
                if len(model.users_) + len(model._added_users) == 1:
                    with self.log.lock:
                        return prior(self.log.state)
                model.forget(user=user)
        return model

    def own(self, number: int, of: tuple[int, ...]) -> Any:
        """The board of a participant, a polars frame of the active items, best first; None without answers.

        What others answered may be as old as of :meth:`board`; ``of`` is different once this participant answered.
        """
        model, user = self.catch_up(), user_of(number)
        if not self.knows(user):
            return None
        return self._looked(number, of, 0.0, lambda: self._ranked(model, user))

    def _ranked(self, model: Any, user: str | None = None) -> Any:
        """A board of the active items: the columns of ``rank``, and which share of its duels each wins."""
        model = self.named(model)
        board = model._rank_among(self._names(model)[0], user)
        shares = duels(model, board["item"].to_list(), board["lower"].to_numpy(), board["upper"].to_numpy(), user)
        return board.with_columns(pl.Series(name, column) for name, column in zip(DUELS, shares.T, strict=True))

    def outlook(self, claim: str, level: float, k: int) -> Any:
        """The model's outlook on a claim about the active items, of a state at most some seconds old."""
        model = self.catch_up()

        def made() -> Any:
            shown = self.named(model)
            _, retired = self._names(shown)
            return shown.outlook(claim, level, k=_within(shown, k, retired), retired=retired)

        return self._looked((claim, level, k), (), _SECONDS_OF_AN_OUTLOOK, made)

    def _looked(self, what: Any, of: tuple[int, ...], max_age: float | None, make: Callable[[], Any]) -> Any:
        """What was made last, or is made now: one thing at a time, and whoever waited for it gets it.

        Anew if it was ``of`` something else, or is older than ``max_age``; None: of another state of the log.
        """
        asked = time.monotonic()
        with self._looking:
            of = (*of, self.log.state.board_changed)
            made = self._made.pop(what, None)
            is_old = made is None or asked >= (made.time + max(max_age, made.pause) if max_age is not None else 0.0)
            if made is None or made.of != of or (made.sequence != self.sequence and is_old):
                sequence, started = self.sequence, time.monotonic()
                found = make()
                now = time.monotonic()
                made = _Made(now, min(_LONGEST_PAUSE, _TIMES_AS_LONG * (now - started)), of, sequence, found)
            self._made[what] = made
            if len(self._made) > _MOST_MADE:
                del self._made[next(iter(self._made))]
            return made.found

    def _known(self, model: Any) -> list[Item]:
        """Items that a model is asked about, by whoever holds the lock: more may have come a moment ago."""
        return [item for item in self.log.state.moderated() if item.key in model.items_]

    def named(self, model: Any) -> Any:
        """The model with items under the names that they have now: itself where none was renamed."""
        with self.log.lock:
            now = {item.key: item.name for item in self._known(model) if item.name != item.key}
        if not now:
            return model
        shown = copy.copy(model)
        shown.items_ = Renamed([now.get(key, key) for key in model.items_.ids])
        return shown

    def to_report(self, model: Any) -> Any:
        """The same for a report: without its answers, which go by keys, where an item was renamed."""
        return model if self.named(model) is model else self.named(unpacked(packed(copy.copy(model))))

    def _names(self, model: Any) -> tuple[list[str], list[str]]:
        """Names of the items of a model that are asked about, and of those that are not any more."""
        with self.log.lock:
            known = [item for item in self.log.state.moderated() if item.name in model.items_]
            return ([item.name for item in known if item.state == "active"],
                    [item.name for item in known if item.state != "active"])  # fmt: skip


def _within(model: Any, k: int, retired: list[str]) -> int:
    """How many places a claim is about: fewer than there are items."""
    return min(k, max(1, len(model.items_) - len(retired) - 1))


def _came_and_went(changes: list[Change], criterion: int) -> tuple[list[Answer], list[Answer]]:
    """Answers of a criterion that count after some changes and did not before, and the other way round.

    One that counts for other items since, as some were merged, goes and comes.
    """
    before: dict[int, Answer | None] = {}
    after: dict[int, Answer | None] = {}
    for change in changes:
        if change.criterion == criterion:
            before.setdefault(change.answer.sequence, None if change.is_added else change.answer)
            after[change.answer.sequence] = change.answer if change.is_added else None
    moved = [(before[one], after[one]) for one in after if before[one] != after[one]]
    return [new for _, new in moved if new is not None], [old for old, _ in moved if old is not None]
