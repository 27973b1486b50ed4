"""Alternatives that have no id of their own: each distinct profile of attributes becomes an item."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import polars as pl

from predilect._text import shown
from predilect._types import BoolArray, IntArray
from predilect.data.canonical import packed
from predilect.data.frames import as_text, typed_text
from predilect.errors import DataError

ITEM, LABEL = "item", "alternative"
NONE_WORDS = ("none", "none of these", "nothing", "no choice", "nochoice", "neither", "opt out", "optout", "opt-out")
# A number or a single letter, with or without a word such as alt before it: a place in the task and no label.
_PLACE = re.compile(r"(alternative|alt|option|concept|profile|choice|product|item)?[ _.-]*(\d+|[a-z])(\.0)?", re.I)


def is_place(name: str) -> bool:
    """Whether the name of an alternative says only where it stood."""
    return _PLACE.fullmatch(name.strip()) is not None


def is_none(names: pl.Series, none: str) -> BoolArray:
    """Which alternatives stand for "none of these"; (n,)."""
    plain = names.cast(pl.String).str.strip_chars().str.to_lowercase()
    return plain.is_in([*NONE_WORDS, none.lower()]).fill_null(False).to_numpy()


def plain_values(series: pl.Series) -> pl.Series:
    """Values of an attribute: numbers where all are, whatever the file; blank text as missing."""
    if series.dtype == pl.Object:
        series = as_text(series)
    if series.dtype == pl.Boolean:
        return series.cast(pl.Int8)
    return typed_text(series) if series.dtype == pl.String else series


def distinct(columns: list[pl.Series]) -> tuple[IntArray, IntArray]:
    """First row of each distinct combination of values, and the number of each row's combination; (n,)."""
    codes = [column.rank("dense").fill_null(0).cast(pl.Int64).to_numpy() for column in columns]
    _, first, number = np.unique(packed(*codes), return_index=True, return_inverse=True)
    return first, number


def profiles_of(
    label: pl.Series | None, attributes: Mapping[str, pl.Series], none: BoolArray, none_id: str
) -> tuple[pl.Series, pl.DataFrame]:
    """Id of each alternative, (n,), and the table of the items: item, the label if there is one, attributes by name.

    An id lists the label and the attributes by name, whatever the order of columns: "cl=5, loc=1, pf=7".
    """
    named = {name: plain_values(attributes[name]) for name in sorted(attributes)}
    for name in named:
        if name in (ITEM, LABEL):
            raise DataError(f'an attribute cannot be called "{name}". Rename the column.')
    if label is not None:
        named = {LABEL: as_text(label), **named}
    blank = pl.Series(none)
    named = {name: column.set(blank, None) if none.any() else column for name, column in named.items()}
    first, number = distinct([*named.values(), blank.cast(pl.Int8)])
    table = pl.DataFrame([column.gather(first).alias(name) for name, column in named.items()])
    parts = [
        as_text(table[name]) if name == LABEL else pl.Series(name, [f"{name}="]).new_from_index(0, len(table))
        + as_text(table[name])
        for name in table.columns
    ]  # fmt: skip
    ids = pl.DataFrame(parts).select(pl.concat_str(pl.all(), separator=", ", ignore_nulls=True)).to_series()
    ids = ids.set(blank.gather(first), none_id).alias(ITEM)
    # Text may hold commas: what reads alike is one item.
    return ids.gather(number), pl.DataFrame([ids, *table.get_columns()]).unique(ITEM, maintain_order=True)


def items_described(ids: pl.Series, attributes: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Table of items that have ids, with attributes that are the same wherever an item stands."""
    first, _ = distinct([ids])
    columns = [plain_values(attributes[name]).gather(first).alias(name) for name in sorted(attributes)]
    return pl.DataFrame([ids.gather(first).alias(ITEM), *columns])


def varies_within(column: pl.Series, group: IntArray) -> bool:
    """Whether a column has several values, or one and gaps, in any group, coded from 0."""
    member = np.zeros(int(group.max(initial=0)) + 1, dtype=np.int64)
    member[group] = np.arange(len(group))
    if column.dtype == pl.Object:
        column = as_text(column)
    return not bool(column.eq_missing(column.gather(member[group])).all())


def numbers_rows(column: pl.Series) -> bool:
    """Whether a column only numbers the rows of the table."""
    value = plain_values(column)
    if not value.dtype.is_integer() or len(value) < 2 or value.null_count():
        return False
    return bool(value.n_unique() == len(value) == value.max() - value.min() + 1)  # type: ignore[operator]


def missing_in(attributes: Mapping[str, pl.Series], label: pl.Series | None, none: BoolArray) -> tuple[BoolArray, str]:
    """Alternatives without a value of some attribute that others of their label have, (n,), and which attributes."""
    missing = np.zeros(len(none), dtype=bool)
    named = []
    for name, column in attributes.items():
        empty = plain_values(column).is_null().to_numpy() & ~none
        if label is not None:
            has = label.filter(pl.Series(~empty & ~none)).unique()
            empty &= label.is_in(has.to_list()).fill_null(False).to_numpy()
        if empty.any():
            named.append(f'"{shown(name)}"')
        missing |= empty
    return missing, ", ".join(named)
