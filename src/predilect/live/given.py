"""What callers give, checked: answers, items, keys; and what is refused."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from predilect._base.text import did_you_mean, one_line, quoted
from predilect.errors import DataError
from predilect.live.settings import LONGEST_TEXT, storable
from predilect.live.state import TOLD, Item, Participant, PollState, Shown

REASONS = ("unknown", "neither", "same", "unclear")  # why somebody cannot say
SKIPS = {"skip": "", **{f"skip:{reason}": reason for reason in REASONS}}
_KINDS = {"answered": "an answer", "undone": "an answer to be taken back", "proposed": "a proposal"}
_LONGEST_KEY, _MOST_ITEMS, _MOST_ATTRIBUTES = 200, 3000, 30
_LONGEST_TOLD = 2000
_LONGEST_CALLED = 80
_ARTICLES = {"image": "an image", "link": "a link"}
_ALIKE, _MOST_ALIKE = 0.5, 5


class Button(str):
    """A word of an answer that is no name of an item, whatever items are called."""

    __slots__ = ()


class Refused(DataError):
    """What was asked for cannot be had now; ``status`` is HTTP's number for why."""

    def __init__(self, said: str, status: int = 409) -> None:
        super().__init__(said)
        self.status = status


class Unfit(Refused):
    """What was sent cannot be used."""

    def __init__(self, said: str) -> None:
        super().__init__(said, 400)


def digest(secret: str) -> str:
    """SHA-256 of a secret of 32 random bytes, in hexadecimal."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def check_key(key: str | None) -> None:
    """DataError for a key that cannot be kept."""
    if key is not None and not 0 < len(storable(key)) <= _LONGEST_KEY:
        raise Unfit(f"a key has 1 to {_LONGEST_KEY} characters")


def check_time(shown_ms: int | None) -> None:
    """DataError for what is no time on the screen."""
    if shown_ms is None or (isinstance(shown_ms, int) and not isinstance(shown_ms, bool) and 0 <= shown_ms < 2**53):
        return
    raise Unfit(f"shown_ms is a whole number of milliseconds since the question was shown; got {quoted(shown_ms)}")


def repeated(person: Participant, key: str | None, kind: str) -> int | None:
    """Result of what came with this key before, if anything did; Refused if that was something else."""
    there = None if key is None else person.keys.get(key)
    if there is not None and there.kind != kind:
        raise Refused(
            f"this key came with {_KINDS[there.kind]} before, not with {_KINDS[kind]}. Send each with a key of its own"
        )
    return None if there is None else there.result


def person_of(state: PollState, number: int) -> Participant:
    """The participant of a number; Refused if there is none."""
    person = state.people.get(number)
    if person is None:
        raise Refused(f"the poll knows no participant {number}", 404)
    return person


def item_of(items: Iterable[Item], item: str | int) -> Item:
    """The one of some items with a name or a number; Refused if there is none."""
    known = list(items)
    found = next((one for one in known if item == (one.name if isinstance(item, str) else one.number)), None)
    if found is None:
        meant = did_you_mean(item, [one.name for one in known]) if isinstance(item, str) else ""
        raise Refused(f"the poll has no item {quoted(item)}.{meant}", 404)
    return found


def question_of(
    state: PollState, person: Participant, shown: int, criterion: int | None, old: int | None, before: int | None
) -> tuple[Shown, int]:
    """The question that an answer is to, and on which criterion; Refused if there is none."""
    if before is not None or old is not None:
        there = person.answers.get(before if before is not None else old or 0)
        if there is not None and (old is not None or there.shown == shown):
            return person.shown[there.shown], there.criterion
        if before is None:
            raise Refused(f"there is no answer {old} of this participant to replace", 404)
        what = "was replaced or taken back since" if there is None else "was to another question"
        raise Refused(f"the answer that came with this key {what}. Send each answer with a key of its own")
    asked = person.shown.get(shown)
    if asked is None:
        raise Refused(f"no question {shown} is put before this participant. Ask for the next one", 404)
    if criterion is None:
        criterion = person.next_criterion(asked, state.n_criteria)
        # Answered on all: a repetition of the last, or a mistake.
        criterion = state.n_criteria - 1 if criterion is None else criterion
    if not 0 <= criterion < state.n_criteria:
        raise Refused(f"the poll has {state.n_criteria} criteria, from 0", 404)
    return asked, criterion


def read_answer(state: PollState, shown: Shown, answer: Any) -> tuple[int, ...] | None:
    """Places on the screen that an answer names, () for a tie and None for a skip; DataError if it does not fit."""
    settings = state.settings
    assert settings is not None
    names = [state.items[number - 1].name for number in shown.items]
    named = [] if isinstance(answer, Button) else names  # which may be words of answers, too
    if answer is None or (isinstance(answer, str) and answer in SKIPS and answer not in named):
        if not settings.skips:
            raise Refused("this poll takes no skipped questions", 403)
        return None
    if answer == "tie" and "tie" not in named:
        if settings.kind != "pair" or not settings.ties:
            raise Refused("this poll takes no ties", 403)
        return ()
    if settings.kind == "pair" and answer in ("left", "right") and answer not in named:
        return (0,) if answer == "left" else (1,)
    several = isinstance(answer, Sequence) and not isinstance(answer, str)
    places = tuple(_place(one, names, shown.items) for one in (answer if several else [answer]))
    wanted = {"pair": 1, "best": 1, "best-worst": 2, "order": len(names)}[settings.kind]
    if len(places) != wanted or len(set(places)) < len(places):
        raise Unfit(
            f'an answer of kind "{settings.kind}" names {wanted} of the items shown, each once; got {quoted(answer)}'
        )
    return places


def _place(answer: Any, names: list[str], numbers: tuple[int, ...]) -> int:
    if isinstance(answer, str) and answer in names:
        return names.index(answer)
    if isinstance(answer, int) and not isinstance(answer, bool) and answer in numbers:
        return numbers.index(answer)
    raise Unfit(f"{quoted(answer)} is none of the items shown.{did_you_mean(answer, names)}")


def read_items(items: Iterable[str | Mapping[str, Any]], state: PollState) -> list[dict[str, Any]]:
    """Items of an organiser as the log keeps them; DataError for one without a name, twice, too long, or odd."""
    found: list[dict[str, Any]] = []
    names = set[str]()
    for one in items:
        said = {"name": one} if isinstance(one, str) else dict(one)
        name, attributes = read_name(said.pop("name", ""), one), said.pop("attributes", None) or {}
        more = read_told({key: value or "" for key, value in said.items()})
        refuse_known(state, name)
        if name in names:
            raise Refused(f'the item "{one_line(name)}" stands twice in the list')
        names.add(name)
        if not isinstance(attributes, Mapping) or len(attributes) > _MOST_ATTRIBUTES:
            raise Unfit(f'attributes of the item "{one_line(name)}" are a dict of at most {_MOST_ATTRIBUTES} texts')
        texts = {storable(str(key))[:200]: storable(str(value))[:LONGEST_TEXT] for key, value in attributes.items()}
        found.append({"name": name} | {key: value for key, value in (more | {"attributes": texts}).items() if value})
    if len(names) + len(state.items) > _MOST_ITEMS:
        raise Unfit(f"there are {len(names) + len(state.items)} items; a poll has at most {_MOST_ITEMS}")
    return found


def refuse_known(state: PollState, name: str, besides: Item | None = None) -> None:
    """Refused for the name of an item that there is, whatever became of it, but for one."""
    there = state.by_name.get(name)
    if there is None or there is besides:
        return
    what = {
        "active": "asked about", "retired": "retired; accept it to ask again", "merged": "merged into another one"
    }.get(there.state, f"{there.state}; accept it to ask about it")  # fmt: skip
    raise Refused(f'the item "{one_line(name)}" is there already: it is {what}')


def read_told(said: Mapping[str, Any]) -> dict[str, str]:
    """What is said of an item besides its name; DataError for what is no text, no address, too long, or unknown."""
    for key, value in said.items():
        if key not in TOLD:
            raise Unfit(f"an item has {', '.join(TOLD)} and attributes; got {quoted(key)}")
        if not isinstance(value, str):
            raise Unfit(f"the {key} of an item is a text; got {quoted(value)}")
        if key in ("image", "link") and value and not re.match(r"https?://[^\s\"<>]+$", value.strip()):
            raise Unfit(f"{_ARTICLES[key]} is an address, https://...; got {quoted(value)}")
        if len(value) > _LONGEST_TOLD:
            raise Unfit(f"the {key} of an item has {len(value)} characters; at most {_LONGEST_TOLD} are shown")
    return {key: storable(value).strip() for key, value in said.items()}


def read_name(name: Any, given: Any) -> str:
    """The name of an item, its blanks single; DataError for none, one that cannot be seen, or is too long."""
    if not isinstance(name, str) or not (name := " ".join(storable(name).split())):
        raise Unfit(f"an item needs a name; got {quoted(given)}")
    if not any(unicodedata.category(one)[0] in "LNPS" for one in name):  # zero-width blanks, say
        raise Unfit("an item needs a name that can be seen")
    if len(name) > LONGEST_TEXT:
        raise Unfit(f"the name of an item has {len(name)} characters; at most {LONGEST_TEXT} are shown")
    return name


def read_called(name: Any) -> str:
    """The name of an organiser, its blanks single; DataError for none, or one that is too long."""
    called = " ".join(storable(name).split()) if isinstance(name, str) else ""
    if not 0 < len(called) <= _LONGEST_CALLED:
        raise Unfit(f"the name of an organiser has 1 to {_LONGEST_CALLED} characters; got {quoted(name)}")
    return called


def folded(name: str) -> str:
    """What is left of a name where case, width, blanks and the marks at its end make no difference."""
    text = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    return text.rstrip(".,;:!? ") or text


@lru_cache(maxsize=8192)
def trigrams(name: str) -> frozenset[str]:
    """Three letters each, of the words of a name without marks and accents; words stand apart, in no order."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c))
    words = re.findall(r"\w+", plain)
    return frozenset(padded[k : k + 3] for word in words for padded in [f"  {word} "] for k in range(len(padded) - 2))


def alike(name: str, items: Iterable[Item]) -> list[Item]:
    """Items that a name may mean, the likest first: with half of all trigrams in common (Dice's coefficient)."""
    own = trigrams(name)
    found = []
    for item in items:
        theirs = trigrams(item.name)
        share = 2.0 * len(own & theirs) / ((len(own) + len(theirs)) or 1)
        if share >= _ALIKE:
            found.append((-share, item.number, item))
    return [item for _, _, item in sorted(found)[:_MOST_ALIKE]]
