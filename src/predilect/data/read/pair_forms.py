"""Pairs whose winner stands in other columns: one-hot, winner and loser, codes 0, 1, 2, a column an annotator."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from predilect._text import option, shown
from predilect.data.frames import as_text, to_columns
from predilect.data.intake import Intake, counted
from predilect.data.read.assemble import ReadOptions, as_words
from predilect.data.read.columns import USER, WINNER, guess_one, guess_pair
from predilect.data.read.covariates import LOST, WON
from predilect.data.read.set_columns import flags
from predilect.errors import DataError

_TIE = ("winner_tie", "winner_ties", "tie", "is_tie", "draw", "winner_draw")
_BAD = ("winner_tie_both_bad", "winner_bothbad", "winner_both_bad", "bothbad", "both_bad")

_ANNOTATOR = re.compile(r"(?:annotator|rater|judge|grader|labell?er|evaluator|worker)[ _.-]?(\d{1,18})", re.I)
_KEY = ("cmp_key", "comparison", "pair", "pair_key", "matchup")
_BETWEEN = (" vs. ", " vs ", "_vs_", "-vs-", " / ", "|", "/", ":", ",", "_")


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A row of answers, one column an annotator, and perhaps one column that names both items."""

    annotators: tuple[str, ...]
    key: str | None

    @property
    def called(self) -> str:
        """What the columns of annotators are called together."""
        return f"{self.annotators[0]} to {self.annotators[-1]}"

    def unfolded(self, table: Any, names: Sequence[str]) -> dict[str, pl.Series]:
        """Columns of the table with a row for each answer; DataError if ``key`` does not name two items everywhere."""
        raw = to_columns(table, [name for name in names if name not in self.annotators])
        if self.key is not None:
            raw |= _both_items(raw.pop(self.key), self.key)
        answers, n = to_columns(table, self.annotators), len(self.annotators)
        place = np.arange(len(answers[self.annotators[0]]) * n)
        found = {name: series.gather(place // n) for name, series in raw.items()}
        found["annotator"] = pl.Series(self.annotators).gather(place % n)
        words = pl.DataFrame({name: as_text(answers[name]) for name in self.annotators})
        found[self.called] = pl.Series(words.to_numpy().ravel().tolist(), dtype=pl.String)
        asked = found[self.called].is_not_null()
        return {name: series.filter(asked) for name, series in found.items()}

    def told(self, intake: Intake) -> Intake:
        """The account of reading, by the columns that the table has."""
        columns = {role: name for role, name in intake.columns.items() if role not in ("user", "winner")}
        columns |= {} if self.key is None else {"left": self.key, "right": self.key}
        columns |= {f"user and winner {n}": name for n, name in enumerate(self.annotators, 1)}
        return replace(intake, columns=columns)


def side_by_side(names: Sequence[str], options: ReadOptions) -> SideBySide | None:
    """The columns of annotators, where nothing else tells who answered what; None where they are no such columns."""
    number = {name: int(match[1]) for name in names if (match := _ANNOTATOR.fullmatch(name.strip()))}
    annotators = tuple(sorted(number, key=lambda name: (number[name], name)))
    given = any(options.get(role) is not None for role in ("user", "winner", "outcome", "kind", "alternatives"))
    if len(annotators) < 2 or given or guess_one(names, (*WINNER, *USER)) is not None:
        return None
    if None not in guess_pair(names, options.get("left"), options.get("right")):
        return SideBySide(annotators, None)
    key = guess_one(names, _KEY)
    return None if key is None or options.get("left") or options.get("right") else SideBySide(annotators, key)


def _both_items(series: pl.Series, name: str) -> dict[str, pl.Series]:
    """The items left and right of the first separator that every value holds just once."""
    words = as_text(series)
    for separator in _BETWEEN:
        if (words.str.count_matches(separator, literal=True) == 1).all():
            return {
                side: words.str.split(separator).list.get(k).str.strip_chars()
                for k, side in enumerate(("left", "right"))
            }
    first = words.drop_nulls()[0]
    raise DataError(
        f'column "{shown(name)}" must name both items in every row, with one and the same sign between them that no '
        f'name holds, such as "tea_milk" or "tea vs milk"; got "{shown(first)}". Make two columns of it, called '
        "left and right."
    )


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
    said = set(as_words(options.get("ties")))
    if "0" in said:
        return None
    if "2" not in said:
        raise DataError(
            f'column "{shown(winner)}" holds 0, 1 and 2. Count a word as a tie with {option("ties", ["0"])} if they '
            f"mean a tie, the first and the second, or with {option('ties', ['2'])} if they mean the first, the second "
            "and a tie."
        )
    return words.replace_strict(["0", "1", "2"], [1.0, -1.0, 0.0], default=None, return_dtype=pl.Float64)
