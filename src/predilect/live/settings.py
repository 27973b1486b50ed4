"""What an organiser decides about a poll: one model, of which forms, command, API and reference are drawn."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from predilect._base.text import did_you_mean, one_line, quoted
from predilect.decisions.groups import LEAST, SMALLEST
from predilect.errors import DataError
from predilect.live.moments import moment, seconds_of
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
TIMES = ("opens", "closes")


class Setting(NamedTuple):
    """What a setting is, as forms, the command, the API and the reference show it."""

    name: str
    form: str  # how it is asked for: "text", "page", "choice", "switch", "whole", "number", "list", "hosts", "secret"
    section: str
    said: str
    default: Any
    takes: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    longest: int = LONGEST_TEXT

    def read(self, text: str, between: str = "") -> Any:
        """Its value from what somebody wrote: yes or no, a number, parts with lines or ``between`` between them."""
        if self.form == "switch":
            if text not in ("yes", "no"):
                raise DataError(f'{self.name} is yes or no; got "{one_line(text)}"')
            return text == "yes"
        if self.form in ("whole", "number"):
            try:
                found = json.loads(text)
            except ValueError:
                found = None
            if isinstance(found, bool) or not isinstance(found, int | float):
                raise DataError(f'{self.name} is {self.takes}; got "{one_line(text)}"')
            return found
        if self.form in ("list", "hosts"):
            parts = re.split(r"[\s,]+" if self.form == "hosts" else between or r"[\r\n]+", text)
            return [part.strip() for part in parts if part.strip()]
        return text

    def written(self, value: Any) -> str:
        """A value as :meth:`read` reads it."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        return (" " if self.form == "hosts" else "\n").join(value) if isinstance(value, tuple) else str(value)


def _one_of(name: str, value: Any, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise DataError(f"{name} is one of {', '.join(allowed)}; got {quoted(value)}.{did_you_mean(value, allowed)}")


def _group(value: int) -> int:
    if 0 < value < LEAST:
        raise DataError(f"smallest_group is 0, for no groups, or from {LEAST} up; got {value}")
    return value


def _address(name: str, value: str) -> str:
    if value and urlsplit(value).scheme not in ("http", "https"):
        raise DataError(f"{name} is an address, https://...; got {quoted(value)}")
    return value


def _webhook(value: str) -> str:
    """An address that a request can be sent to as it stands."""
    try:
        found = urlsplit(value)
        is_one = bool(found.hostname) and found.port != 0 and "@" not in found.netloc
    except ValueError:
        is_one = False
    if value and (not is_one or not re.fullmatch(r"[\x21-\x7e]+", value)):
        raise DataError(f"webhook is an address, https://...; got {quoted(value)}")
    return _address("webhook", value)


def _text(name: str, longest: int, value: Any, *, needed: bool = False) -> str:
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
    found = tuple(_text(name, LONGEST_TEXT, one, needed=True) for one in value)
    if len(set(found)) < len(found):
        raise DataError(f"{name} has the same text twice")
    if name == "criteria" and len(found) > _MOST_CRITERIA:
        raise DataError(f"there are {len(found)} criteria; at most {_MOST_CRITERIA} can be asked in turn")
    return found


def _hosts(value: Any) -> tuple[str, ...]:
    found = _texts("images", value)
    for host in found:
        if urlsplit(f"//{host}").netloc != host or "'" in host or ";" in host or "," in host:
            raise DataError(f"images are hosts, such as images.example.org; got {quoted(host)}")
    return found


def _origins(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_origin, _texts("origins", value))))


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


def _setting(section: str, said: str, form: str = "", **more: Any) -> Any:
    """What is said of a setting, in which section of forms it stands, and what pydantic is to check.

    ``form`` is how it is asked for where its type does not say so.
    """
    return Field(description=said, json_schema_extra={"section": section, "form": form}, **more)


class Settings(BaseModel):
    """What an organiser decides about a poll."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    question: Annotated[str, BeforeValidator(partial(_text, "question", LONGEST_TEXT, needed=True))] = _setting(
        "asked",
        'What every participant is asked, such as "Which idea should we do first?".',
        max_length=LONGEST_TEXT,
    )
    kind: Kind = _setting(
        "asked", "The better of two; the best, the best and the worst, or the order of ``size`` items.", default="pair"
    )
    size: int = _setting("asked", "Items of a set; pairs have two.", default=4, ge=3, le=8)
    strategy: Strategy = _setting(
        "asked",
        "What questions are for: the crowd's board; its first place; its first ``top`` places; each participant's own "
        "ranking; any pair as likely as any other, which is fair where participants are graded by their answers.",
        default="board",
    )
    top: int = _setting("asked", 'Places that "top" is about.', default=3, ge=1, le=100)
    criteria: Annotated[tuple[str, ...], BeforeValidator(partial(_texts, "criteria"))] = _setting(
        "asked",
        "Several questions about the same items, answered in turn; each has a board of its own. None: the question "
        "alone.",
        default=(),
    )
    instruction: Annotated[str, BeforeValidator(partial(_text, "instruction", _LONGEST_PAGE))] = _setting(
        "welcome",
        "What stands before the first question (Markdown).",
        form="page",
        default="",
        max_length=_LONGEST_PAGE,
    )
    consent: Annotated[str, BeforeValidator(partial(_text, "consent", _LONGEST_PAGE))] = _setting(
        "welcome", "What a participant agrees to (Markdown).", form="page", default="", max_length=_LONGEST_PAGE
    )
    language: Annotated[str, Field(json_schema_extra={"enum": list(LANGUAGES)})] = _setting(
        "welcome", "Of the pages, unless a participant's browser asks for another.", default=LANGUAGES[0]
    )
    at_once: bool = _setting(
        "welcome",
        "Whether the first question comes at once, with a line that says what answering it means; otherwise after a "
        "page with instruction, consent and a tick.",
        default=False,
    )
    ties: bool = _setting("answering", 'Whether "equally good" is offered.', default=True)
    skips: bool = _setting("answering", 'Whether "I cannot say" is offered.', default=True)
    undo: bool = _setting("answering", "Whether taking back the last answer is offered.", default=True)
    proposals: bool = _setting(
        "answering",
        "Whether participants may propose items, which are shown once the organiser accepts them.", default=False,
    )  # fmt: skip
    limit: int = _setting(
        "answering", "Questions a participant; 0 for as many as they like.", default=0, ge=0, le=10_000
    )
    retest: float = _setting(
        "answering",
        "Probability that a pair answered at least five questions ago comes again, sides swapped.",
        default=0.0, ge=0.0, lt=1.0,
    )  # fmt: skip
    difficulty: float = _setting(
        "answering",
        "Pairs whose likelier answer has a smaller probability, such as 0.6, come after all others, so that questions "
        "are not all hard.", default=0.0, ge=0.0, lt=1.0,
    )  # fmt: skip
    own_ranking: int = _setting(
        "results", "Answers after which participants may see their own ranking; 0 for never.",
        default=10, ge=0, le=10_000,
    )  # fmt: skip
    public: bool = _setting("results", "Whether everybody may see the board.", default=False)
    smallest_group: Annotated[int, AfterValidator(_group)] = _setting(
        "results",
        f"People that a group of opinion has at least to be shown, from {LEAST} up; 0: no groups are looked for.",
        default=SMALLEST, ge=0, le=100_000,
    )  # fmt: skip
    level: float = _setting(
        "results", "Probability that is enough to settle a claim.", default=0.95, gt=0.5, lt=1.0
    )  # fmt: skip
    opens: Annotated[str, BeforeValidator(partial(moment, "opens"))] = _setting(
        "times",
        'When a poll that is a draft, or paused, opens by itself, such as "2027-03-01 09:00 Europe/Berlin"; empty: '
        "when you open it.", default="", max_length=100,
    )  # fmt: skip
    closes: Annotated[str, BeforeValidator(partial(moment, "closes"))] = _setting(
        "times", "When it closes by itself, in the same form; empty: when you close it.", default="", max_length=100
    )
    retention_days: int = _setting(
        "times",
        "Days after which a closed poll's participants are erased by ``predilect poll erase --expired``; 0: kept.",
        default=0, ge=0, le=36_500,
    )  # fmt: skip
    images: Annotated[tuple[str, ...], BeforeValidator(_hosts)] = _setting(
        "elsewhere",
        "Hosts from which images may be shown; they see the addresses of participants.",
        form="hosts",
        default=(),
    )
    origins: Annotated[tuple[str, ...], BeforeValidator(_origins)] = _setting(
        "elsewhere",
        "Sites that may show the participants' pages in a frame and call their part of the API from a script, such as "
        "https://city.example.", form="hosts", default=(),
    )  # fmt: skip
    pids: Pids = _setting(
        "elsewhere",
        'Whether a link may carry a panel\'s id, ``?pid=``; "signed" ones can resume, and answer as one participant '
        "only.", default="none",
    )  # fmt: skip
    completion: Annotated[str, AfterValidator(partial(_address, "completion"))] = _setting(
        "elsewhere", "Address to which participants go at the end of their ``limit``.", default=""
    )
    webhook: Annotated[str, AfterValidator(_webhook)] = _setting(
        "elsewhere",
        "Address that gets news of proposals and of a clear first place, https://...; empty: none is sent.",
        form="secret",
        default="", max_length=2000,
    )  # fmt: skip

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _in_words(error, values) from None

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        opens, closes = seconds_of(self.opens), seconds_of(self.closes)
        if opens is not None and closes is not None and closes <= opens:
            raise DataError(f"closes={self.closes} is not after opens={self.opens}")
        return self

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
        return self.model_dump()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Settings:
        """Settings from plain values; DataError names what there is not."""
        known = described()
        for name in values:
            if name not in known:
                raise _unknown(name)
        if "question" not in values:
            raise DataError("a poll needs a question, such as question='Which idea should we do first?'")
        return cls(**values)


@cache
def described() -> dict[str, Setting]:
    """All settings by their names, as the model's JSON schema has them, in the order of forms."""
    return {name: _described(name, told) for name, told in Settings.model_json_schema()["properties"].items()}


def _described(name: str, told: dict[str, Any]) -> Setting:
    kind, choices, longest = told["type"], tuple(told.get("enum", ())), told.get("maxLength", LONGEST_TEXT)
    form = {"boolean": "switch", "integer": "whole", "number": "number", "array": "list"}.get(kind, "text")
    form = told["form"] or ("choice" if choices else form)
    low, high = told.get("minimum", told.get("exclusiveMinimum")), told.get("maximum", told.get("exclusiveMaximum"))
    takes = {
        "choice": f"one of {', '.join(choices)}", "switch": "True or False", "list": "a list of texts",
        "hosts": "a list of texts", "whole": f"a whole number from {low} to {high}",
        "number": f"a probability {'above' if low else 'from'} {low or 0:g} and below {high or 1:g}",
    }.get(form, "a text")  # fmt: skip
    default = () if kind == "array" else told.get("default")
    return Setting(name, form, told["section"], told["description"], default, takes, choices, low, high, longest)


def _unknown(name: str) -> DataError:
    return DataError(f'a poll has no setting "{one_line(name)}".{did_you_mean(name, described())}')


def read_settings(said: Mapping[str, str], between: str = "") -> dict[str, Any]:
    """Values of settings from what somebody wrote of each; DataError for what is no setting, or no value of one.

    Parts of a list have lines between them, or what the pattern ``between`` matches.
    """
    known = described()
    found = {}
    for name, text in said.items():
        if name not in known:
            raise _unknown(name)
        found[name] = known[name].read(text, between)
    return found


class _Needs(NamedTuple):
    """When a setting does anything, what to say where it does not, and what it is there unless somebody says it."""

    holds: Callable[[Settings], bool]
    why: str
    otherwise: Callable[[Settings], Any]


def _default(name: str) -> Callable[[Settings], Any]:
    return lambda _: Settings.model_fields[name].default


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
    was = {} if before is None else before.to_dict()
    wanted = Settings.of(was | dict(said))
    if "language" in said:  # a poll that was made where there are more is read everywhere
        _one_of("language", wanted.language, LANGUAGES)
    for name in TIMES:
        at = seconds_of(getattr(wanted, name))
        if at is not None and getattr(wanted, name) != was.get(name) and at <= time.time():
            raise DataError(f"{name}={getattr(wanted, name)} is over already")
    for name, needs in _NEEDS.items():
        if needs.holds(wanted):
            continue
        otherwise = needs.otherwise(wanted)
        if name in said and getattr(wanted, name) != otherwise:
            raise DataError(f"{name}={getattr(wanted, name)} does nothing here: {needs.why}")
        wanted = Settings.of(wanted.to_dict() | {name: otherwise})
    return wanted


def _in_words(error: ValidationError, values: Mapping[str, Any]) -> DataError:
    """What is wrong with settings, in our words: the first of it."""
    first = error.errors()[0]
    ours = first.get("ctx", {}).get("error")
    if isinstance(ours, DataError):
        return ours
    name = str(first["loc"][0]) if first["loc"] else ""
    known = described()
    if name not in known:
        return _unknown(name)
    if first["type"] == "missing":
        return DataError(f"a poll needs its {name}")
    meant = did_you_mean(values[name], known[name].choices) if known[name].choices else ""
    return DataError(f"{name} is {known[name].takes}; got {quoted(values[name])}{f'.{meant}' if meant else ''}")


def _with_parameters(text: str) -> str:
    """The docstring of the settings, with each of them."""
    told = [text, "", "Parameters", "----------"]
    kinds = {"switch": "bool", "whole": "int", "number": "float", "list": "tuple of str", "hosts": "tuple of str"}
    for one in described().values():
        among = "{" + ", ".join(f'"{choice}"' for choice in one.choices) + "}" if one.choices else ""
        kind = among or kinds.get(one.form, "str")
        limits = "" if one.form != "whole" else f", from {one.low} to {one.high}"
        default = "" if one.default is None else f", default {one.default!r}".replace("'", '"')
        told += [f"{one.name} : {kind}{limits}{default}", f"    {one.said}"]
    return "\n".join(told) + "\n"


Settings.__doc__ = _with_parameters("What an organiser decides about a poll.")
