"""``predilect rank --versus A,B``: how sure it is which of two items is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from rich.text import Text

from predilect._text import one_line, shown
from predilect.cli.options import items_in
from predilect.cli.session import Talk
from predilect.data import Comparisons, ItemFeatures
from predilect.decisions import versus
from predilect.decisions.scales import Scale
from predilect.errors import DataError
from predilect.report.tables import sentence_of_pair


def named_pairs(given: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs out of ``A,B``; DataError for another number of names, or a pair of an item with itself."""
    pairs = []
    for text in given:
        names = items_in(text, "--versus")
        if len(names) != 2 or names[0] == names[1]:
            raise DataError(
                f'--versus takes two items with a comma between them, such as tea,milk; got "{shown(text)}". Put a '
                "name that has a comma itself in double quotes, and say --versus again for another pair"
            )
        pairs.append((names[0], names[1]))
    return pairs


def refuse_unknown_items(
    flag: str, names: Sequence[str], answers: Comparisons, features: ItemFeatures | None
) -> None:  # fmt: skip
    """DataError for an item, named with an option, that will not be on the board; before anything is fitted."""
    for name in names:
        if answers.items.code(name) < 0 and (features is None or features.ids.code(name) < 0):
            there = ", ".join(shown(item) for item in answers.items.ids[:5])
            raise DataError(f'{flag} names "{shown(name)}", which nobody compared. Items are {there}')


def versus_table(model: Any, pairs: list[tuple[str, str]], scale: Scale) -> pl.DataFrame | None:
    """The named pairs on the crowd's board; None without any."""
    return pl.DataFrame(versus(model, pairs, scale=scale)) if pairs else None


def say_versus(talk: Talk, table: pl.DataFrame | None, scale: Scale) -> None:
    """Print a sentence for each named pair."""
    for row in [] if table is None else table.iter_rows(named=True):
        talk.say(Text(one_line(sentence_of_pair(row, scale.of_differences))))
