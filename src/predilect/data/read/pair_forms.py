"""Pairs whose winner stands in other columns: one-hot, winner and loser, and codes 0, 1, 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from predilect._text import option, shown
from predilect.data.frames import as_text, to_columns
from predilect.data.intake import counted
from predilect.data.read.assemble import ReadOptions
from predilect.data.read.columns import WINNER, guess_one, guess_pair
from predilect.data.read.covariates import LOST, WON
from predilect.data.read.set_columns import flags
from predilect.errors import DataError

_TIE = ("winner_tie", "winner_ties", "tie", "is_tie", "draw", "winner_draw")
_BAD = ("winner_tie_both_bad", "winner_bothbad", "winner_both_bad", "bothbad", "both_bad")


def pair_options(names: Sequence[str], table: Any, options: ReadOptions) -> tuple[ReadOptions, dict[str, str]]:
    """Options that say how the pairs of a table are read, with an outcome where other columns hold it, by role."""
    left, right = guess_pair(names, options.get("left"), options.get("right"))
    if options.get("outcome") is not None:
        return options, {}
    if left is None and right is None and options.get("winner") is None:
        won, lost = won_and_lost(names)
        if won is None or lost is None:
            return options, {}
        n_rows = len(to_columns(table, [won])[won])
        return {**options, "left": won, "right": lost, "outcome": np.ones(n_rows, dtype=np.int8)}, {}
    if left is None or right is None:
        return options, {}
    winner = options.get("winner") or guess_one(names, WINNER)
    hot = one_hot(names, left, right) if winner is None else None
    outcome, used = None, {}
    if hot is not None:
        used = {"left wins": hot[0], "right wins": hot[1], **{f"tie {n}": tie for n, tie in enumerate(hot[2], 1)}}
        outcome = _of_one_hot(to_columns(table, [hot[0], hot[1], *hot[2]]), hot)
    elif (
        winner is not None
        and options.get("winner_is") is None
        and all(names.count(name) == 1 for name in (left, right, winner))
    ):
        used = {"winner": winner}
        outcome = _of_codes(to_columns(table, [left, right, winner]), left, right, winner, options)
    if outcome is None:
        return options, {}
    said: ReadOptions = {**options, "left": left, "right": right, "winner": None, "outcome": outcome, "ties": ["0"]}
    return said, used


def won_and_lost(names: Sequence[str]) -> tuple[str | None, str | None]:
    """Columns of winners and of losers."""
    for won, lost in zip(WON, LOST, strict=True):
        found = guess_one(names, [won]), guess_one(names, [lost])
        if None not in found:
            return found
    return None, None


def one_hot(names: Sequence[str], left: str, right: str) -> tuple[str, str, list[str]] | None:
    """Columns that say whether the left item, the right item, or neither of them won."""
    found = [
        guess_one(names, [f"winner_{side}", f"{side}_wins", f"{side}_won", f"{side}_win", f"{side}_is_winner"])
        for side in (left, right)
    ]  # fmt: skip
    if found[0] is None or found[1] is None:
        return None
    ties = [name for words in (_TIE, _BAD) if (name := guess_one(names, words)) is not None]
    return found[0], found[1], ties


def _of_one_hot(raw: Mapping[str, pl.Series], columns: tuple[str, str, list[str]]) -> Any:
    left, right, ties = columns
    flagged = {}
    for name in (left, right, *ties):
        flag = flags(raw[name])
        if flag is None:
            raise DataError(f'column "{shown(name)}" says whether it won, and must be 1 or 0 in every row.')
        flagged[name] = flag
    tie = np.logical_or.reduce([flagged[name] for name in ties]) if ties else np.zeros(len(raw[left]), dtype=bool)
    several = flagged[left].astype(int) + flagged[right] + tie > 1
    if several.any():
        row = int(several.argmax())
        raise DataError(
            f'{counted(int(several.sum()), "row")} have more than one of "{shown(left)}", "{shown(right)}" and a tie '
            f"(first: row {row + 1}); exactly one must be 1."
        )
    outcome = flagged[left].astype(float) - flagged[right]
    outcome[~(flagged[left] | flagged[right] | tie)] = np.nan
    return outcome


def _of_codes(raw: Mapping[str, pl.Series], left: str, right: str, winner: str, options: ReadOptions) -> Any:
    """Outcomes of codes 0 first, 1 second, 2 tie, if ties are said to be 2; None where the winner is no such code."""
    if raw[winner].dtype.is_nested() or raw[winner].dtype == pl.Object or raw[winner].n_unique() > 4:
        return None
    words = as_text(raw[winner]).str.strip_chars()
    if set(words.drop_nulls().unique()) != {"0", "1", "2"}:
        return None
    named = ((words == as_text(raw[left])) | (words == as_text(raw[right]))).fill_null(False)
    if named.all():
        return None
    ties = options.get("ties") or ()
    said = {ties} if isinstance(ties, str) else {str(word) for word in ties}
    if "0" in said:
        return None
    if "2" not in said:
        raise DataError(
            f'column "{shown(winner)}" holds 0, 1 and 2. Count a word as a tie with {option("ties", ["0"])} if they '
            f"mean a tie, the first and the second, or with {option('ties', ['2'])} if they mean the first, the second "
            "and a tie."
        )
    return words.replace_strict(["0", "1", "2"], [1.0, -1.0, 0.0], default=None, return_dtype=pl.Float64)
