"""What was read of a table, in two or three lines: the role of each column, and one row as a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from predilect._text import first_few, shown
from predilect.data.read.options import OPTIONS

_NAMES = {one.key: one.name for one in OPTIONS if one.is_column}
_HEADS = {
    "covariate": "covariates", "available": "available", "feature": "features", "left": "answer", "right": "answer",
    "tie": "answer", "user": "answer",
}  # fmt: skip
_MOST_COLUMNS = 6  # of one role that are named
_MOST_SHOWN = 5  # alternatives of a sentence
_MEANT = {"item ids": "items", "side words": "sides", "signs": "signs", "given outcome": "outcomes"}


@dataclass(frozen=True, slots=True)
class Reading:
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
