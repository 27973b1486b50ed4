"""How the reader does on tables made of answers that are known: ``python tests/reading_score.py FROM TO [LAYOUT ...]``.

Of each layout: how many tables are read as they were meant, how many wrongly, how many are asked about; and of those
that can be read, how many questions offer options, how many lead to the truth within two steps, and how many options to
a refusal. ``FROM`` and ``TO`` are seeds. With layouts named, tables that are not led to the truth are shown.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from functools import cache
from typing import Any

import polars as pl

from made_tables import LAYOUTS, Dice, Made, is_truth, made
from predilect.data import Comparisons
from predilect.errors import DataError

__all__ = ["first_reading", "frame_of", "offers", "score"]

_SAID = re.compile(r"(columns=\{[^}]*\})?(?:(?<=\}), )?(reading=\{[^}]*\})?")
Said = dict[str, dict[str, Any]]


def frame_of(columns: dict[str, list[Any]], as_text: bool) -> pl.DataFrame:
    """The table; as text, what a file of text holds."""
    frame = pl.DataFrame(columns, strict=False)
    flat = [name for name, kind in frame.schema.items() if not kind.is_nested()]
    return frame.with_columns(pl.col(flat).cast(pl.String)) if as_text else frame


def offers(message: str) -> list[Said]:
    """The options that a message offers, those with a column called NAME excepted."""
    found: list[Said] = []
    for match in _SAID.finditer(message):
        said: Said = {}
        for part in filter(None, match.groups()):
            key, _, value = part.partition("=")
            said[key] = json.loads(value.replace(": True", ": true").replace(": False", ": false"))
        if said and said not in found and "NAME" not in json.dumps(said):
            found.append(said)
    return found


def _read(frame: pl.DataFrame, said: Said | None = None) -> Comparisons | str:
    try:
        return Comparisons.from_frame(frame, **(said or {}))
    except DataError as error:
        return str(error)


def _both(one: Said, two: Said) -> Said:
    return {key: {**one.get(key, {}), **two.get(key, {})} for key in {**one, **two}}


def _asked(table: Made, frame: pl.DataFrame, message: str) -> Counter[str]:
    found, leads, refused = offers(message), False, False
    for one in found:
        then = _read(frame, one)
        ways = [_both(one, two) for two in offers(then)] if isinstance(then, str) else []
        refused |= isinstance(then, str) and not ways
        # One way to the truth is enough: others after it need not be read.
        leads = leads or any(
            not isinstance(made, str) and is_truth(table, made)
            for made in ([then] if not isinstance(then, str) else (_read(frame, way) for way in ways))
        )
    known = bool(table.truths)
    return Counter({"asked": 1, "of which can be read": known, "offers": known and bool(found),
                    "truth in two": known and leads, "refusals": refused})  # fmt: skip


@cache
def first_reading(layout: str, seed: int) -> tuple[Made, pl.DataFrame, Comparisons | str]:
    """A table of a layout, as a frame, and what is read of it or asked; read once, however many tests look at it."""
    table = made(layout, Dice(seed))
    frame = frame_of(table.columns, seed % 2 == 1)
    return table, frame, _read(frame)


def score(layout: str, seeds: range, tell: bool = False) -> Counter[str]:
    """Counts of what is made of the tables of a layout."""
    total: Counter[str] = Counter()
    for seed in seeds:
        table, frame, found = first_reading(layout, seed)
        if isinstance(found, str):
            told = _asked(table, frame, found)
            total += told
            if tell and (told["refusals"] or told["of which can be read"] > told["truth in two"]):
                print(f"{layout}, seed {seed}, {table.told}\n{table.columns}\n{found}\n")
        else:
            right = is_truth(table, found)
            total["right" if right else "WRONG"] += 1
            if not right:
                print(f"WRONG: {layout}, seed {seed}, {table.told}\n{table.columns}\n{found.intake.columns}\n")
    return total


def main(arguments: list[str]) -> None:
    """Print the score of each layout, and of all."""
    first, last, *layouts = arguments
    total: Counter[str] = Counter()
    for layout in layouts or LAYOUTS:
        one = score(layout, range(int(first), int(last)), tell=bool(layouts))
        total += one
        print(f"{layout:22s} {dict(one)}")
    print(f"{'all':22s} {dict(total)}")


if __name__ == "__main__":
    main(sys.argv[1:])
