"""Text and numbers from data in messages, safe for a terminal and readable."""

from __future__ import annotations

import re
from typing import Any

LONGEST_MESSAGE = 2000  # characters
_LONGEST_ID = 60

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
    return printable(shortened(str(value), _LONGEST_ID))


def message(text: str) -> str:
    """A whole message, printable and of a length that somebody reads."""
    return shortened(printable(shortened(text, LONGEST_MESSAGE)), LONGEST_MESSAGE)


def percent(share: float) -> str:
    """A probability estimated from draws, never shown as 0 or 1."""
    if share < 0.005:
        return "<1 %"
    return ">99 %" if share >= 0.995 else f"{100 * share:.0f} %"


def amount(number: float) -> str:
    """An amount, whole where it is."""
    return f"{number:.0f}" if float(number).is_integer() else f"{number:.6g}"
