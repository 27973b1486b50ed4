"""Text and numbers from data in messages, and what a message says to set."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, Literal

LONGEST_MESSAGE = 2000  # characters
_LONGEST_ID, _LONGEST_VALUE = 60, 100

# Control characters; marks that turn the direction of writing, or cannot be seen; halves of characters.
HARMFUL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Text in which characters that steer a terminal, line ends among them, are written as escapes."""
    return HARMFUL.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def one_line(value: Any) -> str:
    """Text without line ends and control characters, so that an id cannot break a table."""
    return "".join(c for c in " ".join(str(value).split()) if c.isprintable())


def shortened(text: str, longest: int) -> str:
    """Text of at most ``longest`` characters; the middle gives way, since ids often differ at their ends."""
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def shown(value: Any) -> str:
    """An id, a name of a column or another value of the data, as a message shows it."""
    return printable(shortened(_written(value), _LONGEST_ID))


def quoted(value: Any) -> str:
    """A value that somebody gave, as Python writes it: text in quotes."""
    return printable(shortened(_written(value, repr), _LONGEST_VALUE))


def written(value: Any) -> str:
    """A value that somebody may give, as the reader writes it: in Python, or in words and JSON of the command."""
    if _INTERFACE.get() != "command":
        return quoted(value)
    return quoted(value if isinstance(value, str) else json.dumps(value, default=str)).strip("'")


def setting(name: str, value: Any) -> str:
    """An argument of a model with its value, as the reader writes it: after the model's name in ``--model``."""
    return f"{name}={written(value)}"


def _written(value: Any, write: Callable[[Any], str] = str) -> str:
    try:
        return write(value)
    except ValueError:  # Python writes no whole number of more than 4 300 digits
        return f"{type(value).__name__} of more digits than can be written"


def first_few(values: Sequence[Any], most: int = 3) -> str:
    """The first ids of some, as a message lists them: apart by semicolons where ids have commas."""
    some = [shown(value) for value in values[:most]] + ["..."] * (len(values) > most)
    return ("; " if any("," in one for one in some) else ", ").join(some)


def is_whole(text: str) -> bool:
    """Whether text is a whole number that somebody counts with; of thousands of digits Python makes none."""
    return text.isdecimal() and len(text) <= 18


def message(text: str) -> str:
    """A whole message, printable and of a length that somebody reads."""
    return shortened(printable(shortened(text, LONGEST_MESSAGE)), LONGEST_MESSAGE)


_LONGEST_SLIP, _MOST_COMPARED = 100, 5000  # characters of a name, and names


def near_miss(value: Any, known: Iterable[Any]) -> Any:
    """The one of ``known`` that ``value`` was probably meant to be, None if there is none.

    Spelled alike but for case, blanks and marks; otherwise nearly alike, with the same numbers in it.
    """
    word = _written(value)
    if len(word) > _LONGEST_SLIP or not (plain := _letters(word)):
        return None
    digits = re.findall(r"\d+", word)
    close, best = None, 0.6 if len(plain) < 5 else 0.75  # one letter of a short word, one in four of a long one
    for one in islice(known, _MOST_COMPARED):
        other = str(one)
        if len(other) > _LONGEST_SLIP or other == word:
            continue
        if _letters(other) == plain and (not plain.isdecimal() or other.strip() == word.strip()):
            return one
        if min(len(plain), len(other)) > 2 and not plain.isdecimal() and re.findall(r"\d+", other) == digits:
            match = difflib.SequenceMatcher(None, plain, _letters(other))
            if match.real_quick_ratio() > best and match.quick_ratio() > best and match.ratio() > best:
                close, best = one, match.ratio()
    return close


def _letters(word: str) -> str:
    """A word without case, blanks and marks, unless it is marks alone."""
    return "".join(c for c in word.casefold() if c.isalnum()) or word.strip()


def did_you_mean(value: Any, known: Iterable[Any]) -> str:
    """A question to append to a message, with a space before; empty where nothing like it is known."""
    found = near_miss(value, known)
    return "" if found is None else f' Did you mean "{shown(found)}"?'


def number(value: float, digits: int = 2) -> str:
    """A number with so many decimals, never -0.00."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def percent(share: float) -> str:
    """A probability estimated from draws, never shown as 0 or 1."""
    if share < 0.005:
        return "<1 %"
    return ">99 %" if share >= 0.995 else f"{100 * share:.0f} %"


def amount(number: float) -> str:
    """An amount, whole where it is."""
    return f"{number:.0f}" if float(number).is_integer() else f"{number:.6g}"


def grouped(number: float) -> str:
    """An amount with a space between thousands."""
    whole, point, rest = amount(number).partition(".")
    return f"{int(whole):,}".replace(",", " ") + point + rest if whole.lstrip("-").isdigit() else amount(number)


Interface = Literal["command", "function", "pairs"]

_INTERFACE: ContextVar[Interface] = ContextVar("interface", default="function")


@contextmanager
def spoken_to(interface: Interface) -> Iterator[None]:
    """Interface for the messages inside the block.

    "command": the terminal; "function": what takes a table of answers and says how it is read, with ``columns`` and
    ``reading``; "pairs": what takes a frame of pairs, which can only have other names of columns.
    """
    token = _INTERFACE.set(interface)
    try:
        yield
    finally:
        _INTERFACE.reset(token)


def interface() -> Interface:
    """Interface of whoever reads messages."""
    return _INTERFACE.get()


def either(command: str, python: str) -> str:
    """What to set, in the words of whoever reads the message: an option of the command, or Python."""
    return command if _INTERFACE.get() == "command" else python


def by_option(said: str, otherwise: str) -> str:
    """What to do about a table: by an option or an argument, or ``otherwise`` where pairs are read, without any."""
    return otherwise if _INTERFACE.get() == "pairs" else said


def for_shell(word: str) -> str:
    """A word as a shell takes it, in quotes where it needs them."""
    if re.fullmatch(r"[\w.,=+-]+", word):
        return word
    if HARMFUL.search(word):
        marks = {"'": "\\'", "\\": "\\\\"}
        return "$'" + "".join(printable(marks.get(c, c)) for c in word) + "'"
    return shlex.quote(word) if re.search(r'["$`\\!]', word) else f'"{word}"'


def as_typed(path: object) -> str:
    """A path as one types it after a command: in quotes where a shell needs them, and never like an option."""
    text = str(path)
    text = f"./{text}" if text.startswith("-") and text != "-" else text
    return for_shell(text) if HARMFUL.search(text) else shlex.quote(text)
