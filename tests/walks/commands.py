"""What each command takes, by its own signature: a walk gives every option, and one that is new tomorrow too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, get_args, get_origin

from typer.models import ArgumentInfo, OptionInfo

from predilect.cli import poll
from predilect.cli.main import app

__all__ = ["COMMANDS", "COMMON", "Parameter", "taking"]


@dataclass(frozen=True)
class Parameter:
    """An argument, which has no ``names``, or an option.

    ``word``: the capitals that stand for a value in the help; ``choices``: all that may be said; ``alone``: no value.
    """

    names: tuple[str, ...]
    word: str
    choices: tuple[str, ...]
    many: bool
    needed: bool
    alone: bool


def _parameters(function: Callable[..., None]) -> tuple[Parameter, ...]:
    found = []
    for one in inspect.signature(function, eval_str=True).parameters.values():
        hint, told = (*get_args(one.annotation), None, None)[:2]
        if not isinstance(told, ArgumentInfo | OptionInfo) or one.name == "version":
            continue
        kinds = _kinds(hint)
        # Typer takes the first name for a default, as it is without Annotated.
        names = (str(told.default), *(told.param_decls or ())) if isinstance(told, OptionInfo) else ()
        choices = tuple(str(value) for kind in kinds if issubclass(kind, Enum) for value in kind)
        needed = one.default is one.empty
        found.append(Parameter(names, told.metavar or "", choices, list in kinds, needed, bool in kinds))
    return tuple(found)


def _kinds(hint: Any) -> list[type]:
    """The plain types within an annotation, and ``list``."""
    inner = [kind for one in get_args(hint) for kind in _kinds(one)] or [hint]
    return [*inner, list] if get_origin(hint) is list else [kind for kind in inner if kind is not type(None)]


def _named(typer: Any, before: str = "") -> dict[str, tuple[Parameter, ...]]:
    commands = typer.registered_commands
    return {f"{before}{one.name or one.callback.__name__}": _parameters(one.callback) for one in commands}


COMMANDS = _named(app) | _named(poll.app, "poll ")
COMMON = _parameters(app.registered_callback.callback)  # type: ignore[union-attr,arg-type]


def taking(command: str, flag: str) -> Parameter | None:
    """The option of a command that has this name."""
    return next((one for one in [*COMMANDS.get(command, ()), *COMMON] if flag in one.names), None)
