"""Answers of polls: the table that ``predilect poll export`` writes; tables of answers about several criteria."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, takewhile

import numpy as np
import polars as pl

from predilect._base.text import did_you_mean, first_few, shown
from predilect._base.types import BoolArray, IntArray
from predilect.data.frames import Columns, as_text
from predilect.data.intake import NOT_ANSWERED, Intake, nothing_left
from predilect.data.read.assemble import Pairs
from predilect.data.read.columns import no_column
from predilect.data.read.listed import Listed, sets_listed
from predilect.data.read.names import CRITERION, guess_one, is_poll
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.profiles import values_of, words_of
from predilect.data.read.sets import Sets
from predilect.errors import DataError

OF_ANOTHER, NOT_KEPT = "of another criterion", "not among those kept"
_OUTCOMES = {"left": 1.0, "tie": 0.0, "right": -1.0}
# Columns of ours have these roles; whoever says anything else of them has them read as any other table.
_ROLES = {"user": "user", "left": "left", "right": "right", "winner": "winner"}
_OF_ANY = (
    "criterion",
    "keep",
    "item_map",
    "table",
    "drop_missing",
    "drop_self",
    "drop_unknown",
    "side",
    "context",
    "time",
    "task",
)
_ROW = re.compile(r"^Row (\d+)")


@dataclass(frozen=True)
class Fewer:
    """Rows that are read of a table, and how many are not, by why."""

    columns: Columns
    options: ReadOptions
    rows: IntArray  # from 0
    left_out: Mapping[str, int]
    roles: Mapping[str, str]

    def account(self, intake: Intake) -> Intake:
        """The account of reading all rows."""
        columns = {**intake.columns, **self.roles}
        one, other = (_ROW.sub(lambda row: f"Row {self.rows[int(row[1]) - 1] + 1}", text) for text in intake.example)
        return replace(
            intake, rows_read=intake.rows_read + sum(self.left_out.values()), columns=columns, example=(one, other),
            left_out={**self.left_out, **intake.left_out},
            ignored_columns=tuple(name for name in intake.ignored_columns if name not in columns.values()),
        )  # fmt: skip

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Errors say which rows they count."""
        try:
            yield
        except DataError as error:
            if self.left_out:
                error.args = (f"{error} Rows are counted without those {' and '.join(self.left_out)}.",)
            raise


def fewer_rows(raw: Columns, options: ReadOptions) -> Fewer | None:
    """The rows of the criterion that was chosen, and of a poll's those that were answered; None for all.

    DataError where the answers are about several criteria, and none was chosen.
    """
    keep, left_out, roles = np.ones(raw.n_rows, dtype=bool), dict[str, int](), dict[str, str]()
    column = _criterion(raw, options)
    if column is not None:
        keep = _chosen(raw[column], options)
        left_out, roles = {OF_ANOTHER: int((~keep).sum())}, {"criterion": column}
    if (said := options.get("keep")) is not None:
        kept = _kept(raw, said)
        roles["keep"] = said.partition(":")[0]
        left_out[NOT_KEPT] = int((keep & ~kept).sum())
        keep &= kept
    if (answer := _answer(raw, options)) is not None:
        text = as_text(raw[answer])
        skipped = (text == "skip" if answer == "winner" else text.is_null()).fill_null(False).to_numpy()
        left_out[NOT_ANSWERED] = int((keep & skipped).sum())
        keep &= ~skipped
    left_out = {why: n for why, n in left_out.items() if n}
    if not left_out and not roles:
        return None
    if not keep.any() and raw.n_rows:
        raise DataError(nothing_left(left_out))
    rows = Columns({name: raw[name].filter(pl.Series(keep)) for name in raw})
    return Fewer(rows, {**options, "criterion": False, "keep": None}, np.flatnonzero(keep), left_out, roles)


def _kept(raw: Columns, said: str) -> BoolArray:
    """Rows with one of the values that are kept of a column; DataError for a column or a value that is not there."""
    column, colon, values = said.partition(":")
    if not colon or not values:
        raise DataError(
            f"{option('keep', 'COLUMN:VALUE')} names a column and the values to keep; got {shown(repr(said))}."
        )
    if column not in raw:
        raise no_column(column, f"by {option('keep', said)}", raw.names)
    return _rows_with(raw[column], next(csv.reader([values], skipinitialspace=True)))


def _rows_with(column: pl.Series, wanted: Sequence[str]) -> BoolArray:
    """Rows with one of some values; DataError for a value that is not there."""
    words = words_of(column)
    there = words.drop_nulls().unique().sort().to_list()
    for value in wanted:
        if value not in there:
            raise DataError(
                f'column "{shown(column.name)}" holds no "{shown(value)}"; it holds {first_few(there)}.'
                f"{did_you_mean(value, there)}"
            )
    rows: BoolArray = words.is_in(wanted).fill_null(False).to_numpy()
    return rows


def _criterion(raw: Columns, options: ReadOptions) -> str | None:
    """The column of criteria, unless it is taken for something else, or it was said how to read all of them."""
    said, column = options.get("criterion"), guess_one(raw.names, CRITERION)
    used = [one for value in options.values() for one in ([value] if isinstance(value, str) else
            value if isinstance(value, Sequence) else [])]  # fmt: skip
    if said is False or options.get("outcome") is not None:
        return None
    if isinstance(said, str) and column is None:
        raise no_column(CRITERION[0], f"by {option('criterion', said)}", raw.names)
    return None if column is None or (said is None and column in used) else column


def _chosen(criteria: pl.Series, options: ReadOptions) -> BoolArray:
    """Rows of the criterion that was chosen, or of the only one; DataError if there are several and none was."""
    said = options.get("criterion")
    if isinstance(said, str):
        return _rows_with(criteria, [said])
    there = values_of(words_of(criteria)).sort().to_list()
    if len(there) > 1:
        raise DataError(
            f'column "{shown(criteria.name)}" says that the answers are about {len(there)} criteria '
            f"({first_few(there)}), and a board is about one. Choose it: {option('criterion', there[0])}."
        )
    return np.ones(len(criteria), dtype=bool)


def _answer(raw: Columns, options: ReadOptions) -> str | None:
    """The column of the answers, if the columns are those that a poll exports, and nothing else was said of them."""
    names = set(raw.names)
    if not is_poll(raw.names):
        return None
    for key, value in options.items():
        if value not in (None, False) and key not in _OF_ANY and value != _ROLES.get(key):
            return None
    heads = ("left", "right", "winner"), ("item1", "item2", "item3", "best"), ("rank1", "rank2", "rank3")
    return next((one[-1] if one[-1] != "rank3" else "rank1" for one in heads if names.issuperset(one)), None)


def read_poll(raw: Columns, options: ReadOptions) -> Pairs | Sets | None:
    """Answers of a poll by the columns of its export, of rows that were answered; None for any other table."""
    answer = _answer(raw, options)
    if answer is None:
        return None
    heads = ("left", "right") if answer == "winner" else _numbered(raw, "rank" if answer == "rank1" else "item")
    if answer == "winner":
        outcome = as_text(raw["winner"]).replace_strict(_OUTCOMES, default=None, return_dtype=pl.Float64)
        roles = {role: name for role, name in _ROLES.items() if role != "winner"}
        return Pairs({**options, "task": False}, roles, outcome=outcome, used={"winner": "winner"}, table=dict(raw))
    return _sets(raw, options, heads)


def _numbered(raw: Columns, head: str) -> tuple[str, ...]:
    return tuple(takewhile(raw.__contains__, (f"{head}{k}" for k in count(1))))


def _sets(raw: Columns, options: ReadOptions, heads: tuple[str, ...]) -> Sets:
    """Answers about sets: a row a question, a column a place; of an order the best place first."""
    if heads[0] == "rank1":
        return sets_listed(raw, Listed("order", (), heads, {"user": "user"}), options)
    if "worst" not in raw:
        return sets_listed(raw, Listed("best", heads, ("best",), {"user": "user", "winner": "best"}), options)
    roles = {"user": "user", "best": "best", "worst": "worst"}
    return sets_listed(raw, Listed("best_worst", heads, ("best", "worst"), roles), options)
