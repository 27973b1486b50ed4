"""What a page is about: a file, how it is read, and what is fitted, all of which stands in its address."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from predilect._base.text import as_typed, for_shell
from predilect.cli.options import Said
from predilect.cli.rank import Personal
from predilect.data.read.options import OPTIONS, ReadOptions, as_given, joined

TABLES = ("items", "people", "design")  # that may lie beside the answers
PERSONAL = tuple(one.value for one in Personal)


@dataclass(frozen=True)
class Asked:
    """Files by their keys, options as the command takes them; ``segment``: columns of people to rank by."""

    file: str
    column: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    items: str = ""
    people: str = ""
    design: str = ""
    segment: tuple[str, ...] = ()
    personal: str = "auto"

    @classmethod
    def of(cls, given: Iterable[tuple[str, str]]) -> Self:
        """What an address or a form says; a name that it does not know is left alone."""
        lists: dict[str, list[str]] = {"column": [], "read": [], "segment": []}
        found: Any = {"file": ""}
        for name, value in given:
            if name in lists and value:
                lists[name].append(value)
            elif name in ("file", *TABLES) or (name == "personal" and value in PERSONAL):
                found[name] = value
        found |= {name: tuple(values) for name, values in lists.items()}
        return cls(**found)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Names and values, for an address or hidden fields of a form."""
        found = [("file", self.file)]
        for name in ("column", "read", "segment"):
            found += [(name, value) for value in getattr(self, name)]
        found += [(name, value) for name in TABLES if (value := getattr(self, name))]
        return [*found, *([("personal", self.personal)] if self.personal != "auto" else [])]

    @property
    def query(self) -> str:
        """The part of an address behind the question mark."""
        return urlencode(self.pairs)

    def with_options(self, options: ReadOptions) -> Asked:
        """With options of reading, in place of those that said something else about the same."""
        column, read = as_given(options)
        return replace(self, column=_over(self.column, column), read=_over(self.read, read))

    def with_roles(self, roles: Mapping[str, Sequence[str]], taken: Mapping[str, Sequence[str]]) -> Asked:
        """With columns of roles; what was taken for a role without being said need not be said."""
        named = {said.partition("=")[0] for said in self.column}
        column = []
        for one in OPTIONS:
            names = list(roles.get(one.name, ())) if one.is_column else []
            is_said = names != list(taken.get(one.name, ())) or (one.name in named and names)
            if one.is_column and is_said and (names or one.may_lack or one.key == "profile"):
                column.append(f"{one.name}={joined(names) if one.form == 'columns' else ''.join(names[:1])}")
        return replace(self, column=tuple(column))

    def with_values(self, values: Mapping[str, Sequence[str]]) -> Asked:
        """With what values mean, by the name of each key that has a control; without those that are empty."""
        known = {one.name for one in OPTIONS if not one.is_column}
        kept = [said for said in self.read if said.partition("=")[0] not in known]  # unpack-limit and the like
        return replace(self, read=(*kept, *(f"{name}={one}" for name, each in values.items() for one in each if one)))

    def said(self, design: Path | None) -> Said:
        """What the reader takes."""
        return Said(list(self.column), list(self.read), design, None, None, {})

    def arguments(self, paths: Mapping[str, Path]) -> list[str]:
        """Words of the command that ranks; ``paths``: of the files, by their keys."""
        words = ["rank", str(paths[self.file])]
        for flag, values in (("-c", self.column), ("--read", self.read), ("--segment", self.segment)):
            words += [word for value in values for word in (flag, value)]
        words += [word for name in TABLES if (key := getattr(self, name)) for word in (f"--{name}", str(paths[key]))]
        return [*words, *(["--personal", self.personal] if self.personal != "auto" else [])]

    def command(self, paths: Mapping[str, Path], out: str = "results") -> str:
        """The command as one types it where the files are."""
        names = {str(path): as_typed(path.name) for path in paths.values()}
        words = (
            names.get(word) or (word if word.startswith("-") else for_shell(word)) for word in self.arguments(paths)
        )
        return f"predilect {' '.join(words)} -o {out}"

    def key(self, paths: Mapping[str, Path]) -> str:
        """What the results are known by: the command, and when its files were last written."""
        used = [paths[key] for key in (self.file, self.items, self.people, self.design) if key]
        known = [self.arguments(paths), [(str(path), path.stat().st_mtime_ns) for path in used]]
        return hashlib.sha256(json.dumps(known).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _over(given: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """What was given, without what is said anew, and then that."""
    names = {said.partition("=")[0] for said in new}
    return (*(said for said in given if said.partition("=")[0] not in names), *new)
