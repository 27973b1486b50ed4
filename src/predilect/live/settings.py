"""What an organiser decides about a poll."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from predilect._base.text import did_you_mean, one_line, quoted
from predilect.decisions.groups import LEAST, SMALLEST
from predilect.errors import DataError
from predilect.live.web.languages import LANGUAGES

Kind = Literal["pair", "best", "best-worst", "order"]
Strategy = Literal["board", "best", "top", "person", "random"]
Pids = Literal["none", "open", "signed"]
LONGEST_TEXT = 500  # characters of an item, or of anything else that participants write
_LONGEST_PAGE = 10_000
_MOST_CRITERIA = 10
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>[a-z0-9]([a-z0-9.-]*[a-z0-9])?)(:(?P<port>[0-9]{1,5}))?/?")

# May not change once people have answered: answers would mean something else.
FIXED = ("kind", "size", "criteria", "ties")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an organiser decides about a poll.

    Parameters
    ----------
    question : str
        What every participant is asked, such as "Which idea should we do first?".
    kind : {"pair", "best", "best-worst", "order"}, default "pair"
        The better of two; the best, the best and the worst, or the order of ``size`` items.
    size : int, default 4
        Items of a set, from 3 to 8; pairs have two.
    strategy : {"board", "best", "top", "person", "random"}, default "board"
        What questions are for: the crowd's board; its first place; its first ``top`` places; each participant's own
        ranking; any pair as likely as any other, which is fair where participants are graded by their answers.
    top : int, default 3
        Places that "top" is about.
    criteria : tuple of str, default ()
        Several questions about the same items, answered in turn; each has a board of its own. None: the question alone.
    instruction, consent : str
        What stands before the first question; ``consent`` is what a participant agrees to.
    language : str, default "en"
        Of the pages, unless a participant's browser asks for another that there is a catalogue of.
    ties, skips, undo : bool, default True
        Whether "equally good", "I cannot say" and taking back the last answer are offered.
    at_once : bool, default False
        Whether the first question comes at once, with a line that says what answering it means; otherwise after a page
        with instruction, consent and a tick.
    proposals : bool, default False
        Whether participants may propose items, which are shown once the organiser accepts them.
    limit : int, default 0
        Questions a participant; 0 for as many as they like.
    own_ranking : int, default 10
        Answers after which participants may see their own ranking; 0 for never.
    public : bool, default False
        Whether everybody may see the board.
    smallest_group : int, default 10
        People that a group of opinion has at least to be shown, from 5 up; 0: no groups are looked for.
    level : float, default 0.95
        Probability that is enough to settle a claim.
    retest : float, default 0
        Probability that a pair answered at least five questions ago comes again, sides swapped.
    difficulty : float, default 0
        Pairs whose likelier answer has a smaller probability, such as 0.6, come after all others, so that questions are
        not all hard.
    retention_days : int, default 0
        Days after which a closed poll's participants are erased by ``predilect poll erase --expired``; 0: kept.
    images : tuple of str, default ()
        Hosts from which images may be shown; they see the addresses of participants.
    origins : tuple of str, default ()
        Sites that may show the participants' pages in a frame and call their part of the API from a script, such as
        https://city.example.
    pids : {"none", "open", "signed"}, default "none"
        Whether a link may carry a panel's id, ``?pid=``; "signed" ones can resume, and answer as one participant only.
    completion : str, default ""
        Address to which participants go at the end of their ``limit``.
    """

    question: str
    kind: Kind = "pair"
    size: int = 4
    strategy: Strategy = "board"
    top: int = 3
    criteria: tuple[str, ...] = ()
    instruction: str = ""
    consent: str = ""
    language: str = LANGUAGES[0]
    ties: bool = True
    skips: bool = True
    undo: bool = True
    at_once: bool = False
    proposals: bool = False
    limit: int = 0
    own_ranking: int = 10
    public: bool = False
    smallest_group: int = SMALLEST
    level: float = 0.95
    retest: float = 0.0
    difficulty: float = 0.0
    retention_days: int = 0
    images: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    pids: Pids = "none"
    completion: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "question", _text("question", self.question, LONGEST_TEXT, needed=True))
        for name in ("criteria", "images", "origins"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        for name in ("instruction", "consent", "language"):
            _text(name, getattr(self, name), _LONGEST_PAGE)
        words = {"kind": get_args(Kind), "strategy": get_args(Strategy), "pids": get_args(Pids)}
        for name, allowed in words.items():
            _one_of(name, getattr(self, name), allowed)
        for name, least, most in (
            ("size", 3, 8), ("top", 1, 100), ("limit", 0, 10_000), ("own_ranking", 0, 10_000),
            ("retention_days", 0, 36_500), ("smallest_group", 0, 100_000),
        ):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise DataError(f"{name} is a whole number from {least} to {most}; got {quoted(value)}")
        if 0 < self.smallest_group < LEAST:
            raise DataError(f"smallest_group is 0, for no groups, or from {LEAST} up; got {self.smallest_group}")
        for name, low, high in (("level", 0.5, 1.0), ("retest", 0.0, 1.0), ("difficulty", 0.0, 1.0)):
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not low <= value < high or value == 0.5 == low:  # a level of .5 says nothing
                above = "above" if low else "from"
                raise DataError(f"{name} is a probability {above} {low:g} and below {high:g}; got {quoted(value)}")
        for name in ("ties", "skips", "undo", "at_once", "proposals", "public"):
            if not isinstance(getattr(self, name), bool):
                raise DataError(f"{name} is True or False; got {quoted(getattr(self, name))}")
        if len(self.criteria) > _MOST_CRITERIA:
            raise DataError(f"there are {len(self.criteria)} criteria; at most {_MOST_CRITERIA} can be asked in turn")
        if self.completion and urlsplit(self.completion).scheme not in ("http", "https"):
            raise DataError(f"completion is an address, https://...; got {quoted(self.completion)}")
        for host in self.images:
            if urlsplit(f"//{host}").netloc != host or "'" in host or ";" in host or "," in host:
                raise DataError(f"images are hosts, such as images.example.org; got {quoted(host)}")
        object.__setattr__(self, "origins", tuple(dict.fromkeys(map(_origin, self.origins))))

    @property
    def n_shown(self) -> int:
        """Items in a question."""
        return 2 if self.kind == "pair" else self.size

    @property
    def boards(self) -> tuple[str, ...]:
        """Names of the boards: the criteria, or the question."""
        return self.criteria or (self.question,)

    @property
    def meaning(self) -> tuple[Any, ...]:
        """What answers mean: settings that stay once there are answers; before, their change withdraws questions."""
        return tuple(getattr(self, name) for name in FIXED)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the log."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Settings:
        """Settings from plain values; DataError names what there is not."""
        known = {one.name for one in fields(cls)}
        for name in values:
            if name not in known:
                raise DataError(f'a poll has no setting "{one_line(name)}".{did_you_mean(name, known)}')
        if "question" not in values:
            raise DataError("a poll needs a question, such as question='Which idea should we do first?'")
        return cls(**values)


class _Needs(NamedTuple):
    """When a setting does anything, what to say where it does not, and what it is there unless somebody says it."""

    holds: Callable[[Settings], bool]
    why: str
    otherwise: Callable[[Settings], Any]


def _default(name: str) -> Callable[[Settings], Any]:
    return lambda _: next(one.default for one in fields(Settings) if one.name == name)


_MODELLED = ("board", "best", "top")  # strategies that weigh pairs
_NEEDS = {
    "size": _Needs(lambda one: one.kind != "pair", "a pair has two items: give another kind", _default("size")),
    "retest": _Needs(lambda one: one.kind == "pair", "only pairs are repeated: give kind=pair", _default("retest")),
    "difficulty": _Needs(
        lambda one: one.kind == "pair" and one.strategy in _MODELLED,
        f"it is about pairs that are chosen by what they tell: give kind=pair, and strategy one of "
        f"{', '.join(_MODELLED)}", _default("difficulty"),
    ),
    "completion": _Needs(
        lambda one: one.limit > 0, "nobody comes to the end without one: give a limit", _default("completion")
    ),
    "own_ranking": _Needs(
        lambda one: one.limit == 0 or one.own_ranking <= one.limit,
        "nobody gives so many answers within the limit: give fewer, or 0 for no ranking of their own",
        lambda one: min(10, one.limit),
    ),
}  # fmt: skip


def agreed(said: Mapping[str, Any], before: Settings | None = None) -> Settings:
    """Settings as somebody wants them; DataError for one that was said, and does nothing beside the others.

    What was not said stays as before, or as it is by default, unless it does nothing any more.
    """
    wanted = Settings.of(({} if before is None else before.to_dict()) | dict(said))
    if "language" in said:  # a poll that was made where there are more is read everywhere
        _one_of("language", wanted.language, LANGUAGES)
    for name, needs in _NEEDS.items():
        if needs.holds(wanted):
            continue
        otherwise = needs.otherwise(wanted)
        if name in said and getattr(wanted, name) != otherwise:
            raise DataError(f"{name}={getattr(wanted, name)} does nothing here: {needs.why}")
        wanted = replace(wanted, **{name: otherwise})
    return wanted


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise DataError(f"{name} is one of {', '.join(allowed)}; got {quoted(value)}.{did_you_mean(value, allowed)}")


def _text(name: str, value: Any, longest: int, *, needed: bool = False) -> str:
    if not isinstance(value, str):
        raise DataError(f"{name} is a text; got {quoted(value)}")
    if needed and not value.strip():
        raise DataError(f"{name} is empty")
    if len(value) > longest:
        raise DataError(f"{name} has {len(value)} characters; at most {longest} are shown")
    return storable(value).strip()


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise DataError(f"{name} is a list of texts; got {quoted(value)}")
    found = tuple(_text(name, one, LONGEST_TEXT, needed=True) for one in value)
    if len(set(found)) < len(found):
        raise DataError(f"{name} has the same text twice")
    return found


def _origin(address: str) -> str:
    """A site as browsers name it: scheme, host, and a port that is not the usual one."""
    found = _ORIGIN.fullmatch(address.lower())
    if found is None or int(found["port"] or 0) > 65_535:
        raise DataError(f"origins are sites without a path, such as https://city.example; got {quoted(address)}")
    port = "" if int(found["port"] or 0) in (0, {"http": 80, "https": 443}[found["scheme"]]) else f":{found['port']}"
    return f"{found['scheme']}://{found['host']}{port}"


def storable(text: str) -> str:
    """The text, if a database can hold it: PostgreSQL takes no NUL, and UTF-8 no half characters; else DataError."""
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise DataError("a text holds a character that no file can keep. Type it again")
    return text
