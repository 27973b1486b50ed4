"""How a message says what to set: in the words of the interface, command or function, that the reader called."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

Interface = Literal["command", "function", "fit", "pairs"]

_FLAGS = {"ties": "tie", "value": "item-map-column"}  # of the command, where they are not the argument's name

_INTERFACE: ContextVar[Interface] = ContextVar("interface", default="function")


@contextmanager
def spoken_to(interface: Interface) -> Iterator[None]:
    """Interface for the messages inside the block.

    "command": the terminal; "function": ``Comparisons.from_frame`` and ``read_comparisons``; "fit": a model's ``fit``,
    ``score`` and the like, which take a frame of answers but none of the arguments that say how it is read; "pairs":
    what takes a frame of pairs, which can only have other names of columns.
    """
    token = _INTERFACE.set(interface)
    try:
        yield
    finally:
        _INTERFACE.reset(token)


def option(name: str, value: Any) -> str:
    """How to set an argument of ``Comparisons.from_frame``, for messages; the value "NAME" is the name of a column."""
    interface = _INTERFACE.get()
    if interface == "command":
        flag = _FLAGS.get(name, name.replace("_", "-"))
        if isinstance(value, bool):
            return f"--{flag}" if value else f"--no-{flag}"
        return f"--{flag} {_quoted(value if isinstance(value, str) else value[0])}"
    if interface == "pairs":
        return f'the header "{name}"'
    said = f"{name}={value if isinstance(value, bool) else json.dumps(value, ensure_ascii=False)}"
    return f"Comparisons.from_frame(frame, {said})" if interface == "fit" else said


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w.+-]+", word) else json.dumps(word, ensure_ascii=False)
