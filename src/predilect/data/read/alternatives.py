"""All ways to read a table as answers about sets of alternatives: a row an alternative, or a row a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from predilect._base.text import shown
from predilect.data.frames import Columns
from predilect.data.read.columns import no_column
from predilect.data.read.listed import listed_readings
from predilect.data.read.long import long_readings, rows_are_alternatives
from predilect.data.read.names import CHOSEN, WINNER, guess_one, pair_families
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.readings import OPEN, SURE, Reading, or_refused
from predilect.data.read.sets import design_asked
from predilect.data.read.wide import wide_readings
from predilect.errors import DataError

Layout = Callable[[Columns, ReadOptions], Iterator[Reading]]
_LAYOUTS: tuple[Layout, ...] = (long_readings, wide_readings, listed_readings)
_OF_PAIRS = ("left", "right", "won", "lost", "outcome")
_LAST = 9  # below all guesses
_MOST_GUESSES = 12
_OF_CHOICES = ("chosen", "choice", *(name for name in CHOSEN if name not in WINNER))
_COLUMNS = ("user", "task", "weight", "winner", "context", "alternatives")


def set_readings(raw: Columns, said: ReadOptions) -> Iterator[Reading]:
    """Ways to read a table as answers about sets of alternatives; those that were said are sure.

    Raises DataError for a column that was named and is not there.
    """
    if raw.n_rows == 0 or said.get("kind") == "pairs" or any(said.get(key) is not None for key in _OF_PAIRS):
        return
    for role in _COLUMNS:
        given = said.get(role)
        if isinstance(given, str) and given not in raw:
            raise no_column(given, f"as {role}", raw.names)
    named = said.get("alternatives")
    # A row is an alternative if its values tell so; otherwise it may be that, or a whole task.
    sure = (named is None or isinstance(named, str)) and rows_are_alternatives(raw, said)
    layouts = _LAYOUTS[:1] if sure else _LAYOUTS
    # What keeps a layout from offering more is said if the table cannot be read otherwise.
    every = (way for layout in layouts for way in or_refused(layout(raw, said), OPEN - _LAST))
    ways = sorted((meant for way in every if (meant := as_said(way, said)) is not None), key=lambda one: -one.sure)
    # Below OPEN there is what two or more guesses make of a table.
    guesses = [way for way in ways if way.sure < OPEN][:_MOST_GUESSES]
    yield from (way for way in ways if way.sure >= OPEN)
    yield from (replace(way, sure=OPEN) for way in guesses)


def as_said(way: Reading, said: ReadOptions) -> Reading | None:
    """The reading, sure if all that tells it was said; None if something else was said."""
    told: dict[str, Any] = dict(way.say)
    given = {key: said.get(key) for key in told if said.get(key) is not None}
    if any(not _is_same(value, told[key]) for key, value in given.items()):
        return None
    return replace(way, sure=SURE) if told and len(given) == len(told) else way


def refuse_choices(names: Sequence[str]) -> None:
    """DataError for a table that by its columns is about choices, in none of the ways that can be read.

    A table of pairs has two columns whose names differ by the word of a side.
    """
    answer = guess_one(names, _OF_CHOICES)
    if answer is None or pair_families(names):
        return
    raise DataError(
        f'column "{shown(answer)}" may say what was chosen, and found neither which alternative a row is about nor '
        f"columns of what was shown{design_asked(names)} Otherwise name the alternatives, "
        f"{option('alternatives', 'NAME')}, and what says which rows are one task, {option('task', 'NAME')}. If rows "
        f"are pairs, name their items: {option('left', 'NAME', right='NAME')}."
    )


def _is_same(one: object, other: object) -> bool:
    """Whether two values of an option say the same; names in any order."""
    if isinstance(one, str) or isinstance(other, str) or not isinstance(one, list | tuple):
        one, other = ([value] if isinstance(value, str) else value for value in (one, other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return {*one} == {*other}
    return one == other
