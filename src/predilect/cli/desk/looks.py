"""What a page shows of a file: how it was read, or which ways there are."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

import polars as pl

from predilect._base.text import one_line, shortened, spoken_to
from predilect.cli.desk.asked import Asked
from predilect.cli.desk.shelf import Shelf
from predilect.cli.reading import Source, amounts, read_features, read_people
from predilect.data import Comparisons, Finding, check
from predilect.data.checks import check_answers
from predilect.data.read.assemble import Unclear
from predilect.data.read.options import OPTIONS, Option
from predilect.data.read.readers import as_the_whole, read_opened
from predilect.data.read.readings import Question
from predilect.errors import DataError, DataWarning

_ROWS, _LONGEST = 3, 60  # shown, and characters of a cell
_FEW = 200  # rows of which a sentence is made
_MOST_KEPT = 4


class Offered(NamedTuple):
    """One way to read a file: what it makes of the first row, what is taken for what, and the page that reads it so."""

    example: str
    told: str
    asked: Asked


class Control(NamedTuple):
    """A control of one option: the values that are there, and those that are chosen."""

    option: Option
    chosen: list[str]
    values: Sequence[str]


@dataclass
class Look:
    """A file as it was read: either ``answers``, or what hinders, with the ``ways`` that there are."""

    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    answers: Comparisons | None = None
    sentences: list[str] = field(default_factory=list)
    amounts: str = ""
    problem: str = ""
    ways: list[Offered] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    segments: list[str] = field(default_factory=list)  # columns of people

    @property
    def taken(self) -> dict[str, tuple[str, ...]]:
        """Columns of each role, by the names of the roles."""
        return {} if self.answers is None else dict(self.answers.reading.columns)

    @property
    def can_be_ranked(self) -> bool:
        """Whether nothing hinders a ranking."""
        return self.answers is not None and not self.problem

    def controls(self, asked: Asked) -> tuple[list[Control], list[Control]]:
        """Controls of roles, and of what values mean, out of the one table of options."""
        roles, keys = _said(asked.column), _said(asked.read)
        columns = [
            Control(one, [*(self.taken.get(one.name) or roles.get(one.name, []))], self.columns)
            for one in OPTIONS if one.is_column
        ]  # fmt: skip
        named = {one.name: one for one in OPTIONS if not one.is_column}
        values = [
            Control(one, keys.get(one.name, []), ("yes", "no") if one.form == "yes" else one.values)
            for one in named.values()
        ]
        return columns, values


def _said(given: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for said in given:
        name, _, value = said.partition("=")
        found.setdefault(name, []).append(value)
    return found


class Looks:
    """Looks at files; the last few are kept, each for the state of its files."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf, self._lock = shelf, Lock()  # warnings are those of one look at a time
        self._looked = lru_cache(_MOST_KEPT)(lambda asked, _: _looked(asked, shelf))

    def at(self, asked: Asked) -> Look:
        """The look at a file; DataError if its page is not of an open file."""
        with self._lock:
            return self._looked(asked, asked.key(self._shelf))


def _looked(asked: Asked, shelf: Shelf) -> Look:
    look, path = Look(), shelf[asked.file]
    with warnings.catch_warnings(record=True) as caught, spoken_to("command"):
        warnings.simplefilter("always", DataWarning)
        try:
            source = Source.of(path, asked.said(shelf[asked.design] if asked.design else None))
            table = source.table()
            look.columns = list(table.columns)
            look.rows = [[_cell(one) for one in row] for row in table.held.head(_ROWS).iter_rows()]
            look.answers = read_opened(table, path, source.settings.options)
            features = read_features(shelf[asked.items] if asked.items else None, look.answers, source.settings)
            people = read_people(shelf[asked.people] if asked.people else None, source.settings, asked.segment)
            look.segments = [] if people is None else _segments_of(shelf[asked.people], source)
            look.sentences = _sentences(table, source.settings.options, look.answers)
            look.amounts = amounts(look.answers)
            look.findings = check(look.answers, None if features is None else features.ids)
            check_answers(look.answers.with_used_grades())
        except Question as error:
            look.problem = "This file can be read in more than one way. Which is meant?"
            if len(error.ways) == 1:
                look.problem = "This file can be read so, but nothing tells that it must be. Is this meant?"
            look.ways = [
                Offered(one_line(made.intake.example[0]), way.sentence, asked.with_options(way.say))
                for way, made in error.ways
            ]
        except Unclear as error:
            look.problem = str(error)
            look.ways = [Offered(sentence, "", asked.with_options(options)) for sentence, options in error.helps]
        except DataError as error:
            look.problem = str(error)
    look.problem = look.problem.replace(f"{path.parent}/", "")
    look.notes = list(dict.fromkeys(" ".join(str(one.message).split()) for one in caught))
    return look


def _cell(value: Any) -> str:
    return "" if value is None else shortened(one_line(str(value)), _LONGEST)


def _sentences(table: Any, options: Any, answers: Comparisons) -> list[str]:
    """The first three answers; of tasks and of tables that are turned the first alone."""
    first = answers.intake.example[0]
    found = [first] if first else []
    if answers.intake.tasks_read or answers.joint or not first.startswith("Row 1"):
        return found
    whole = as_the_whole(options, answers)
    for k in range(1, min(_ROWS, len(table.held))):
        try:
            part = Comparisons.read_with(table.filter(_from(len(table.held), k)), whole)
        except DataError:  # rows that mean nothing without those above
            continue
        example = part.intake.example[0]
        if example.startswith("Row 1"):
            found.append(re.sub("^Row 1", f"Row {k + 1}", example))
    return found


def _from(n_rows: int, first: int) -> pl.Series:
    place = pl.int_range(n_rows, eager=True)
    return (place >= first) & (place < first + _FEW)


def _segments_of(path: Any, source: Source) -> list[str]:
    """Columns of people that may be segments: those of texts."""
    from predilect.data import PersonFeatures, read_frame
    from predilect.data.read.names import guess_one

    frame = read_frame(path, unpack_limit=source.settings.unpack_limit)
    user = guess_one(frame.columns, PersonFeatures.id_names)
    return [name for name in frame.columns if name != user and frame[name].dtype == pl.String]
