"""Account of what was read, what was left out, and why: in two or three lines, and in full."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from predilect._base.text import amount, first_few, shown
from predilect.data.read.options import OPTIONS, option

NO_WEIGHT = "weight zero"
# Of tasks with several alternatives.
UNCLEAR, TWICE, ONE_ALTERNATIVE = "no clear winner", "an alternative twice", "one alternative"
ALL_ALIKE, NOT_ANSWERED, MISSING_ATTRIBUTE = "all alike", "not answered", "missing attribute"
REASONS = (
    "missing id", "self-pair", "unknown winner", NO_WEIGHT, "missing covariate", MISSING_ATTRIBUTE, UNCLEAR, TWICE,
    ONE_ALTERNATIVE, ALL_ALIKE, NOT_ANSWERED,
)  # fmt: skip

# Why there are no sides, besides names of columns and "sorted pairs".
FIRST, LAST, TAKEN_APART, UNWANTED = "winner first", "winner last", "choices taken apart", "not wanted"
SORTED = "sorted pairs"
BASELINE = "some items are always on the same side, so a side cannot be told from how good they are"
# Of the decided answers with the winner on one side: enough where the winner is an item, as files that list it first
# write it; and where the answers are sides, which say where it was, and a side may have swayed people.
MOSTLY, NEARLY_ALL = 0.8, 0.98
_NAMES = {one.key: one.name for one in OPTIONS if one.is_column}
_HEADS = {
    "covariate": "covariates", "available": "available", "feature": "features", "left": "answer", "right": "answer",
    "tie": "answer", "user": "answer",
}  # fmt: skip
_MOST_COLUMNS = 6  # of one role that are named
_MOST_SHOWN = 5  # alternatives of a sentence
_MEANT = {"item ids": "items", "side words": "sides", "signs": "signs", "given outcome": "outcomes"}


@dataclass(frozen=True, slots=True)
class TableReading:
    """What was read of a table of answers.

    Attributes
    ----------
    what : str
        What the answers are, such as "pairs" or "240 choices of the best of 3".
    columns : dict of str to tuple of str
        Columns of each role, by the names that ``columns=`` takes.
    answers : str
        How the answers were read, such as "sides".
    ties : tuple of str
        Words that stood for a tie.
    example : str
        The first answer that was used, as a sentence.
    notes : tuple of str
        How values were understood, and what was left out, in sentences.
    unused : tuple of str
        Columns that were not used.
    """

    what: str
    columns: Mapping[str, tuple[str, ...]]
    answers: str
    ties: tuple[str, ...]
    example: str
    notes: tuple[str, ...]
    unused: tuple[str, ...]

    def lines(self) -> list[str]:
        """Two or three lines: roles and columns; the first answer; what was left out, and what was not used."""
        meant = self.answers + "".join(f"; {shown(word)} is a tie" for word in self.ties[:3])
        roles = []
        for role, names in self.columns.items():
            some = ",".join(map(shown, names[:_MOST_COLUMNS])) + ("..." if len(names) > _MOST_COLUMNS else "")
            roles.append(f"{role}={some}" + (f" ({meant})" if role == "answer" and meant else ""))
        lines = [f"Read: {self.what}{'; ' if roles else ''}{', '.join(roles)}."]
        lines += [self.example] if self.example else []
        rest = [*self.notes]
        if self.unused:
            rest.append(f"Not used: {first_few(self.unused, _MOST_COLUMNS)}".removesuffix(", ...") + _end(self.unused))
        return [*lines, " ".join(rest)] if rest else lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def _end(names: Sequence[str]) -> str:
    """End of a list of which the first few were named."""
    more = len(names) - _MOST_COLUMNS
    return f" and {more} more." if more > 0 else "."


@dataclass(frozen=True, slots=True)
class Intake:
    """Account of reading comparisons.

    Attributes
    ----------
    rows_read : int
    left_out : dict of str to int
        Rows left out by reason: "missing id", "self-pair", "unknown winner", "weight zero", "missing covariate"; those
        of tasks also by "no clear winner", "an alternative twice", "one alternative", "all alike", "not answered",
        "missing attribute"; those of several criteria by "of another criterion".
    ties_by_word : dict of str to float
        Weight of the ties by the word that stood for them.
    duplicates : int
        Rows that were merged into an identical one, with their weights added.
    left_wins, right_wins, ties : float
        Weight of the answers by outcome, left and right as the question was shown.
    choices_found : int
        Choices of one item over others that the order of the rows told, where no column of tasks did.
    joint_answers : int
        Tasks of several rows that are one answer each, as "the best of four" is.
    columns : dict of str to str
        Column used for each role.
    ignored_columns : tuple of str
    winner_reading : str
        "item ids", "side words", "signs" or "given outcome"; "" for tasks with several alternatives.
    unused_items, unused_users : tuple
        Ids that were met only in rows left out; they are not in the vocabularies.
    no_sides : str
        Why the left and right of the rows are not taken for the sides on which items were shown: "winner first",
        "winner last", "choices taken apart", "sorted pairs", "chosen and rejected columns" and the like, or "not
        wanted"; "" where they are.
    tasks_read : dict of str to int
        Tasks with several alternatives that were used, by what they are in words; empty for pairs.
    attributes : tuple of str
        What describes the alternatives, where the answers themselves say.
    notes : tuple of str
        Sentences on how values were understood.
    example : tuple of two str
        The first answer that was used, as a sentence, with and without the id of who gave it.
    """

    rows_read: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    ties_by_word: Mapping[str, float] = field(default_factory=dict)
    duplicates: int = 0
    left_wins: float = 0.0
    right_wins: float = 0.0
    ties: float = 0.0
    choices_found: int = 0
    joint_answers: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    ignored_columns: tuple[str, ...] = ()
    winner_reading: str = "given outcome"
    unused_items: tuple[Any, ...] = ()
    unused_users: tuple[Any, ...] = ()
    no_sides: str = ""
    tasks_read: Mapping[str, int] = field(default_factory=dict)
    attributes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    example: tuple[str, str] = ("", "")

    @property
    def reading(self) -> TableReading:
        """What was read, in two or three lines."""
        return self._reading(name_people=True)

    def _reading(self, name_people: bool) -> TableReading:
        what = "; ".join(f"{n} {what.replace('s ', ' ', n == 1)}" for what, n in self.tasks_read.items()) or "pairs"
        notes = (*self._left_out(), *self.notes, *self._unused(name_people))
        return TableReading(
            what, roles_of(self.columns), meaning_of(self.winner_reading), tuple(self.ties_by_word),
            self.example[0 if name_people else 1], notes, self.ignored_columns,
        )  # fmt: skip

    @property
    def rows_left_out(self) -> int:
        """Rows left out, for whatever reason."""
        return sum(self.left_out.values())

    def describe(self, *, name_people: bool = False) -> list[str]:
        """The account in plain sentences, what was read first; ``name_people``: with ids of people."""
        reading = self._reading(name_people)
        used = self.rows_read - self.rows_left_out
        lines = [*reading.lines(), f"Read {counted(self.rows_read, 'row')}; used {used}."]
        if self.winner_reading:
            lines.append(
                f"Answers by weight: left {amount(self.left_wins)}, right {amount(self.right_wins)}, "
                f"ties {amount(self.ties)}."
            )
        if self.no_sides in (FIRST, LAST, BASELINE):
            lines.append(f"Sides are not used: {self.why_no_sides()}.")
        if self.choices_found:
            lines.append(
                f"Rows that follow each other, of one person and with one winner, are held together as "
                f"{counted(self.choices_found, 'choice')} of one item over others, as if a column of tasks said so. If "
                f"each was asked by itself, say {option('runs', False)}."
            )
        if self.joint_answers:
            lines.append(
                f"{counted(self.joint_answers, 'answer')} about several alternatives: the rows of each are one answer. "
                f"If they were answers of their own, say {option('kind', 'pairs')}."
            )
        if self.duplicates:
            lines.append(f"Merged {counted(self.duplicates, 'row')} into identical ones, adding the weights.")
        return lines

    def _left_out(self) -> list[str]:
        return [f"Left out {counted(count, 'row')}: {reason}." for reason, count in self.left_out.items()]

    def _unused(self, name_people: bool) -> list[str]:
        lines = []
        for ids, noun, is_named in ((self.unused_items, "item", True), (self.unused_users, "user", name_people)):
            if ids:
                met = f"No usable answer for {counted(len(ids), noun)} met only in rows left out"
                lines.append(f"{met}: {first_few(ids)}." if is_named else f"{met}.")
        return lines

    def why_no_sides(self) -> str:
        """The reason for ``no_sides`` in words."""
        if self.no_sides not in (FIRST, LAST):
            return self.no_sides
        wins = self.left_wins if self.no_sides == FIRST else self.right_wins
        share = int(100 * wins / (self.left_wins + self.right_wins))  # 99.9 % are not 100 %
        side = "left" if self.no_sides == FIRST else "right"
        return f"{share} % of decided answers have the winner on the {side}, so the file lists the {self.no_sides}"

    def merge(self, other: Intake) -> Intake:
        """Account of both readings together; for columns, the first reading's stay where both name one."""
        merged: dict[str, Any] = {
            "columns": {**other.columns, **self.columns},
            "winner_reading": " and ".join(
                dict.fromkeys(word for word in (self.winner_reading, other.winner_reading) if word)
            ),
            "no_sides": self._no_sides_with(other),
            "example": self.example if any(self.example) else other.example,
        }
        for name in (one.name for one in fields(self) if one.name not in merged):
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, Mapping):
                merged[name] = {key: mine.get(key, 0) + theirs.get(key, 0) for key in {**mine, **theirs}}
            else:
                merged[name] = tuple(dict.fromkeys(mine + theirs)) if isinstance(mine, tuple) else mine + theirs
        return Intake(**merged)

    def _no_sides_with(self, other: Intake) -> str:
        """No reason once some answers have sides; what was never read says nothing."""
        reasons = [intake.no_sides for intake in (self, other) if intake.rows_read]
        return " and ".join(dict.fromkeys(reasons)) if all(reasons) else ""


def from_columns(columns: Mapping[str, str]) -> str:
    """Which column each role is from."""
    return ", ".join(f'{role} from "{shown(column)}"' for role, column in columns.items())


def counted(count: float, noun: str) -> str:
    """The number with its noun in the singular or plural."""
    return f"{amount(count)} {noun}" if count == 1 else f"{amount(count)} {noun}s"


def nothing_left(left_out: Mapping[str, int]) -> str:
    """That all rows were left out, by how many for which reason."""
    words, n = "; ".join(f"{n} × {why}" for why, n in left_out.items()), sum(left_out.values())
    return f"no usable answer: {'the only row was' if n == 1 else f'all {n} rows were'} left out ({words})."


def roles_of(columns: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Columns by the names of their roles, of those by which the readers know them."""
    found: dict[str, list[str]] = {}
    for key, name in columns.items():
        role = re.sub(r"( \d+| \((left|right)\))+$", "", key)
        head, blank, _ = role.partition(" ")
        if blank:  # "attribute price", "car price", "available car" ...
            role = _HEADS.get(head, "profile")
        found.setdefault(_NAMES.get(role, role), []).append(name)
    return {role: tuple(dict.fromkeys(names)) for role, names in found.items()}


def meaning_of(winner_reading: str) -> str:
    """How the answers were read, in a word or two."""
    head, comma, grades = winner_reading.partition(", ")
    word = _MEANT.get(head.removeprefix("grades of "), head)
    return f"grades, {grades}" if comma else word


def pair_sentence(row: int, person: Any, left: Any, right: Any, outcome: int, grade: str = "") -> str:
    """The answer of a row, counted from 0, to a pair."""
    better, worse = (left, right) if outcome >= 0 else (right, left)
    better, worse = shown(better), shown(worse)
    if outcome == 0:
        said = f"{better} and {worse} are a tie" + ("" if person is None else f" for {shown(person)}")
    elif person is None:
        said = f"{better} is preferred to {worse}"
    else:
        said = f"{shown(person)} prefers {better} to {worse}"
    return f"Row {row + 1}: {said}{f' ({grade})' if grade else ''}."


def task_sentence(row: int, person: Any, kind: str, levels: Sequence[Sequence[Any]]) -> str:
    """The answer about a set that begins in a row, counted from 0; ``levels`` of alternatives from the best."""
    who = "" if person is None else f"{shown(person)} "
    groups = [first_few(list(one), _MOST_SHOWN) for one in levels]
    if kind == "best" and len(groups) == 2:
        said = f"{who or 'the answer '}chooses {groups[0]} over {groups[1]}"
    elif kind == "best_worst" and len(groups) >= 2:
        rest = f", with {groups[1]} between" if len(groups) > 2 else ""
        said = f"{who or 'the answer '}has {groups[0]} best and {groups[-1]} worst{rest}"
    elif kind == "approval" and len(groups) == 2:
        said = f"{who or 'the answer '}takes {groups[0]} and leaves {groups[1]}"
    else:
        said = f"{who or 'the answer '}puts {' over '.join(groups[:_MOST_SHOWN])}"
        said += ", ..." if len(groups) > _MOST_SHOWN else ""
    return f"Row {row + 1}: {said}" + ("" if said.endswith("...") else ".")


def examples(person: Any, sentence: Callable[[Any], str]) -> tuple[str, str]:
    """A sentence on an answer, with and without the id of who gave it."""
    return sentence(person), sentence(None if person is None else "somebody")
