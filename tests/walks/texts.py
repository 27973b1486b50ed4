"""What no text for people holds, and the commands that a text advises, as somebody would copy them."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Collection, Iterator
from typing import Any

from walks.commands import COMMANDS, taking

__all__ = ["advised", "formulas", "has_numbers", "texts_in", "wrong_in"]

_NEVER = {
    "an escape": r"\\[nrt0]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}",
    "a placeholder": r"\{[a-z_]*(?:[.\[!:][^{}]*)?\}|%\(\w+\)s|%[sdr]\b",
    "an object of Python": r"<[^<>]* at 0x|<class |\b(?:np|pl|numpy|polars)\.\w+\(|\bdtype=|\barray\(|Path\(|Traceback",
    "a dumped array or table": r"\[ *-?\d+\.\d*(?:e[-+]\d+)?[ ,]|\{'\w|\['\w|\(\('|shape: \(",
    "no number": r"(?<![\w-])(?:nan|None|NaN|<NA>|NaT)(?![\w-])",
}


def wrong_in(text: str, known: Collection[str] = ()) -> str:
    """What stands in a text and never should, "" if nothing does; names that the user gave may hold anything."""
    for what, pattern in _NEVER.items():
        for found in re.finditer(pattern, text):
            line = text[text.rfind("\n", 0, found.start()) + 1 :].split("\n", 1)[0]
            if not any(found[0].strip() in one for one in known):
                return f"{what}, {found[0]!r}, in: {line[:300]}"
    return ""


def texts_in(document: Any) -> Iterator[str]:
    """All texts within a document of JSON."""
    if isinstance(document, str):
        yield document
    for one in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from texts_in(one)


def has_numbers(printed: str, kind: str) -> str:
    """The first row of numbers of a result that was printed as a "table", "csv", "md" or "json"; "" without any."""
    if kind == "json":
        rows = [row for rows in json.loads(printed or "{}").values() if isinstance(rows, list) for row in rows]
        of_tables = (row for row in rows if isinstance(row, dict))
        return next((str(row) for row in of_tables if any(isinstance(one, float) for one in row.values())), "")
    # A row of a table has numbers between other cells, and a sentence has not.
    cells = {"csv": r"(?:^|,)-?\d+\.\d+(?:,|$)", "md": r"\|[^|]*\d\.\d", "table": r"^ .* {2}-?\d+(?:\.\d+)?(?: |$)"}
    lines = printed.replace("95 % interval", "").splitlines()
    return next((line for line in lines if re.search(cells[kind], line)), "")


def formulas(data: str) -> list[str]:
    """Cells of a CSV file that a spreadsheet obeys."""
    number = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
    cells = [cell for row in csv.reader(data.splitlines()) for cell in row]
    return [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t") and not number.fullmatch(cell)]


# --- advice -----------------------------------------------------------------------------------------------------------

_PIECE = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|[^\s'"])+""")
_CAPITALS = re.compile(r"[A-Z]{2,}")


def advised(text: str, known: Collection[str]) -> list[list[str] | str]:
    """The commands within a text, each as words, or as it stands where no shell can read it.

    ``known``: names of files, folders, items and people; one with blanks that is written without quotes comes apart, as
    in a shell. A word of prose ends a command, unless capitals follow it at once. A command without anything after its
    name is but its name.
    """
    found: list[list[str] | str] = []
    for start in re.finditer(r"(?<![\w/.-])predilect (?=[a-z])", text):
        rest = text[start.end() :].split("\n", 1)[0]
        before = text[: start.start()].rstrip()
        if before.endswith(("such as:", "Example:")):
            continue
        closing = {"`": "`", '"': '"', "'": "'", "“": "”"}.get(text[start.start() - 1 : start.start()], "")
        if closing and closing in rest:
            rest = rest[: rest.index(closing)]
        line = _line(rest, sorted(known, key=len, reverse=True))
        try:
            words = shlex.split(line)
        except ValueError:
            found.append(line)
            continue
        if len(words) > 1 + (words[:1] == ["poll"]):
            found.append(words)
    return found


def _line(rest: str, known: list[str]) -> str:
    """As much of a text as belongs to a command."""
    taken: list[str] = []
    command = ""
    while rest := rest.lstrip():
        whole = next((one for one in known if re.match(rf"{re.escape(one)}(?=[\s.,;:)]|$)", rest)), None)
        found = _PIECE.match(rest)
        if whole is not None:
            piece = whole
        elif found is None:
            return " ".join([*taken, rest])  # a quote that nothing closes
        else:
            piece = found[0]
        bare = piece if whole is not None else piece.rstrip(".,;:)?") or piece
        option = taking(command, taken[-1]) if taken else None
        if not command or command == "poll":
            command = f"{command} {bare}".strip()
            belongs = command in COMMANDS or command == "poll"
        else:
            wants = option is not None and not option.alone
            quoted = bare[:1] in "'\"" or bare[:2] == "./"
            stands_for = _CAPITALS.fullmatch(bare) or re.match(rf" {_CAPITALS.pattern}\b", rest[len(piece) :])
            belongs = wants or whole is not None or quoted or bare[:1] == "-" or bool(stands_for)
        if not belongs:
            break
        rest = rest[len(piece) :]
        if rest[:1] in ("'", '"'):
            return " ".join([*taken, piece + rest])  # a quote that nothing closes
        taken.append(bare)
        if bare != piece:
            break
    return " ".join(taken)
