"""How a message says what to set: in the words of the command, or of the function, that whoever reads it called."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

__all__ = ["Interface", "option", "spoken_to"]

Interface = Literal["command", "function", "fit", "pairs"]

_FLAGS = {"ties": "tie", "value": "item-map-column"}  # of the command, where they are not the argument's name

_INTERFACE: ContextVar[Interface] = ContextVar("interface", default="function")


@contextmanager
def spoken_to(interface: Interface) -> Iterator[None]:
    """Whoever reads the messages of what is done inside came by this interface.

    Parameters
    ----------
    interface : {"command", "function", "fit", "pairs"}
        The terminal; ``Comparisons.from_frame`` and ``read_comparisons``; a model's ``fit``, ``score`` and the like,
        which take a frame of answers but none of the arguments that say how it is read; or what takes a frame of
        pairs, which can only have other names of columns.
    """
    token = _INTERFACE.set(interface)
    try:
        yield
    finally:
        _INTERFACE.reset(token)


def option(name: str, value: Any) -> str:
    """How to set an argument of ``Comparisons.from_frame``, for whoever reads the message.

    Parameters
    ----------
    name : str
        Of the argument.
    value : str, bool or list of str
        What to set it to; "NAME" stands for the name of a column.
    """
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
