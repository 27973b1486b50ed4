"""What values of columns mean, and alternatives that have no id of their own: each distinct profile is an item."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import polars as pl

from predilect._base.text import shown
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.canonical import packed
from predilect.data.frames import as_text, codes_in_order, once_a_column, present, typed_text, where_true
from predilect.data.intake import counted
from predilect.data.read.names import EITHER_END, IDENTIFIED, NO, NTH, PLACED, YES, is_called, plain, tells_note
from predilect.errors import DataError

End = Literal["low", "high"]
ITEM, LABEL = "item", "alternative"
NONE = "None"  # the item that stands for none of those shown, unless another word is given
NONE_WORDS = ("none", "none of these", "nothing", "no choice", "nochoice", "neither", "opt out", "optout", "opt-out")
# A number or a single letter, with or without a word such as alt before it: a place in the task and no label.
_PLACE = re.compile(r"(alternative|alt|option|concept|profile|choice|product|item)?[ _.-]*(\d+|[a-z])(\.0)?", re.I)


def is_plain(series: pl.Series) -> bool:
    """Whether values are neither lists nor Python objects."""
    return not series.dtype.is_nested() and series.dtype != pl.Object


@once_a_column
def stripped(series: pl.Series) -> pl.Series:
    """Values as text without blanks around them."""
    return as_text(series).str.strip_chars()


@once_a_column
def flags(series: pl.Series) -> BoolArray | None:
    """True and false of a column of 1 and 0, yes and no and the like, (n,); None if it holds anything else.

    What is missing is false.
    """
    if series.dtype.is_nested():
        return None
    word = stripped(series).str.to_lowercase().str.strip_suffix(".0")
    if not present(word).is_in([*YES, *NO]).all() or word.null_count() == len(word):
        return None
    return where_true(word.is_in(YES))


@once_a_column
def words_of(series: pl.Series) -> pl.Series:
    """Values as text, as they are compared: without blanks around them, and 1.0 as 1."""
    return stripped(series).str.strip_suffix(".0")


def first_word(series: pl.Series) -> str:
    """The first value that is there, as text without blanks around it; empty where there is none."""
    values = present(series)
    return next(filter(None, map(str.strip, values if values.dtype == pl.String else as_text(values.head(1)))), "")


_ORDINAL = re.compile(
    r"(?:(?P<nth>\d{1,2})(?:st|nd|rd|th)|(?P<word>[a-z]+))(?:[ _-]*(?:choice|place|preference|pref|rank|option))?", re.I
)


def place_of(word: str) -> int | None:
    """The number of a place in words, as 1st, second or Third Choice; None if it is none."""
    match = _ORDINAL.fullmatch(word.strip())
    if match is None:
        return None
    return int(match["nth"]) if match["nth"] else next(
        (k for k, one in enumerate(NTH, 1) if one == match["word"].lower()), None)  # fmt: skip


def _places(text: pl.Series) -> pl.Series:
    """Places in words as numbers; anything else as it is."""
    words = {word: str(place) for word in text.drop_nulls().unique() if (place := place_of(word)) is not None}
    return text.replace(words) if words else text


def numbers_of(
    series: pl.Series, column: str, what: str, advice: str = "Put a number there, or leave such rows out of the table.",
    rows: IntArray | None = None,
) -> FloatArray:  # fmt: skip
    """Numbers of a column, NaN where missing, (n,); DataError if one is none.

    ``what`` says what they are, ``advice`` what can be done; ``rows`` are those of the table, from 0, of some of it.
    """
    said = f'column "{shown(column)}" is read as the {what}, which must be a number, but holds'
    if series.dtype.is_nested() or series.dtype.is_temporal():  # which polars would cast
        raise DataError(f"{said} values of type {series.dtype}. {advice}")
    text = series if series.dtype.is_numeric() else stripped(series)
    if what == "rank" and text.dtype == pl.String:
        text = _places(text)
    number = text.cast(pl.Float64, strict=False)
    if number.null_count() > text.null_count():
        odd = (number.is_null() & text.is_not_null()).to_numpy()
        place = int(odd.argmax())
        row = place if rows is None else int(rows[place])
        raise DataError(
            f'{said} text in {counted(int(odd.sum()), "row")} (first: row {row + 1}, "{shown(text[place])}"). {advice}'
        )
    found: FloatArray = number.to_numpy()
    return found


def holds_numbers(series: pl.Series, *, whole: bool = False, least: float = -np.inf) -> bool:
    """Whether a column holds numbers, perhaps whole ones, from ``least``, or nothing."""
    if not is_plain(series):
        return False
    text = stripped(series)
    number = text.cast(pl.Float64, strict=False)
    there = present(number)
    if number.null_count() > text.null_count() or (there < least).any():
        return False
    return not whole or bool((there == there.round(0)).all())


def good_ends(name: str, values: FloatArray, said: End | None, known: bool = True) -> tuple[End, ...]:
    """Which ends of ratings may be the good one: as said, or by the name of the column; both if neither tells."""
    if said is not None:
        return (said,)
    down = bool((values < 0).any())  # NaN is not
    return ("high",) if known and not down and not is_called(name, EITHER_END) else ("high", "low")


def end_sentence(name: str, end: End) -> str:
    """Which end was taken for the good one."""
    return f'In "{shown(name)}" {end} numbers are good.'


def could_be_items(columns: Sequence[pl.Series]) -> bool:
    """Whether columns hold ids, some of them now in one and now in another, and never one twice in a row."""
    words = [one for column in columns if (one := _ids_of(column)) is not None]
    return len(words) == len(columns) and _of_one_kind(words)


@once_a_column
def _ids_of(column: pl.Series) -> pl.Series | None:
    """A column as text if it could hold ids, and no measured numbers."""
    if not is_plain(column) or column.dtype.is_float():
        return None
    words = stripped(column)
    return None if words.str.contains(r"^-|\.\d").any() else words


@once_a_column
def values_of(column: pl.Series) -> pl.Series:
    """The values that a column holds, each once, in any order."""
    return present(column).unique()


def _of_one_kind(words: Sequence[pl.Series]) -> bool:
    """Whether some ids stand now in one and now in another of some columns, and never twice in a row."""
    held = pl.concat([values_of(one) for one in words])
    if held.n_unique() == len(held):
        return False
    return not any((one == two).any() for one, two in itertools.combinations(words, 2))


def pairs_of_items(columns: Mapping[str, pl.Series]) -> list[list[str]]:
    """Any two columns that could hold the items of pairs, unless no value recurs in either, as in numbers of rows."""
    ids = {name: words for name, column in columns.items() if (words := _ids_of(column)) is not None}
    recurs = {name: columns[name].n_unique() < len(columns[name]) for name in ids}
    return [
        [one, two] for one, two in itertools.combinations(ids, 2)
        if (recurs[one] or recurs[two]) and _of_one_kind([ids[one], ids[two]])
    ]  # fmt: skip


def is_place(name: str) -> bool:
    """Whether the name of an alternative says only where it stood."""
    return _PLACE.fullmatch(name.strip()) is not None


def is_none(names: pl.Series, none: str) -> BoolArray:
    """Which alternatives stand for "none of these"; (n,)."""
    plain = stripped(names).str.to_lowercase()
    return where_true(plain.is_in([*NONE_WORDS, none.lower()]))


@once_a_column
def plain_values(series: pl.Series) -> pl.Series:
    """Values of an attribute: numbers where all are, whatever the file; blank text as missing."""
    if series.dtype == pl.Object:
        series = as_text(series)
    if series.dtype == pl.Boolean:
        return series.cast(pl.Int8)
    # 007 is a code.
    coded = series.dtype == pl.String and series.str.contains(r"^\s*0\d+\s*$").any()
    return typed_text(series) if series.dtype == pl.String and not coded else series


def distinct(columns: list[pl.Series]) -> tuple[IntArray, IntArray]:
    """First row of each distinct combination of values, and the number of each row's combination; (n,)."""
    _, first, number = np.unique(packed(*map(codes_in_order, columns)), return_index=True, return_inverse=True)
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
    codes = codes_in_order(column)
    return bool((codes != codes[member[group]]).any())


def once_in(column: pl.Series, group: IntArray) -> bool:
    """Whether no value comes twice in a group."""
    return len(np.unique(packed(group, codes_in_order(column)))) == len(group)


def once_in_each(mark: BoolArray | None, task: IntArray) -> bool:
    """Whether just one row of every task, coded from 0, is marked; (n,) each."""
    return mark is not None and bool((np.bincount(task[mark], minlength=int(task.max(initial=-1)) + 1) == 1).all())


def numbers_rows(column: pl.Series) -> bool:
    """Whether a column only numbers the rows of the table."""
    value = plain_values(column)
    if not value.dtype.is_integer() or len(value) < 2 or value.null_count():
        return False
    return bool(value.n_unique() == len(value) == value.max() - value.min() + 1)  # type: ignore[operator]


def is_noted(name: str, column: pl.Series) -> bool:
    """Whether a column describes no alternative: dates, texts of which each is another, or what its name says."""
    value = plain_values(column)
    if tells_note(name) or value.dtype.is_temporal():
        return True
    text = present(value) if value.dtype == pl.String else pl.Series([], dtype=pl.String)
    return len(text) > 1 and bool(text.is_unique().all() or text.str.contains(r"^\d{4}-\d\d?-\d\d?([T ]|$)").all())


def counts_within(column: pl.Series, task: IntArray) -> bool:
    """Whether a column counts the rows of each task, coded from 0, in any order: from 1, or everywhere from 0."""
    value = plain_values(column)
    if not value.dtype.is_numeric() or value.null_count() or not len(value) or not np.bincount(task).min() > 1:
        return False
    number = value.to_numpy()
    order = np.lexsort((number, task))
    size = np.bincount(task)
    place = np.arange(len(task)) - np.repeat(np.cumsum(size) - size, size)
    return bool((number[order] - place == number.min()).all()) and number.min() in (0, 1)


@once_a_column
def _zero_one_blank(column: pl.Series) -> BoolArray:
    """Where a column holds 0, where 1, and where nothing, (3, n)."""
    text = as_text(column).str.strip_suffix(".0")
    return np.stack([where_true(text == "0"), where_true(text == "1"), text.is_null().to_numpy()])


def nothing_of(attributes: Mapping[str, pl.Series], task: IntArray) -> tuple[BoolArray, str | None]:
    """Alternatives with no attribute, one in every task, (n,), and the column that marks them by 1, if one does.

    Blank in all, or 0 in each where no other alternative has a 0; but for the column that marks them.
    """
    zero, one, blank = np.stack([_zero_one_blank(column) for column in attributes.values()], axis=1)
    n_blank = blank.sum(axis=0)
    for place, name in enumerate(attributes if len(attributes) > 1 else ()):
        marks = one[place]
        rest = n_blank - blank[place] == len(attributes) - 1
        if (zero[place] | blank[place] == ~marks).all() and (rest == marks).all() and once_in_each(marks, task):
            return marks, name
    nothing: BoolArray = np.logical_and.reduce(zero | blank)
    if len(attributes) == 1 or zero[:, ~nothing].any():
        nothing = np.logical_and.reduce(blank)
    return (nothing if once_in_each(nothing, task) else np.zeros(len(nothing), dtype=bool)), None


def constants_of(
    own: pl.Series, attributes: Mapping[str, pl.Series], none: BoolArray, task: IntArray, said: bool | None,
    column: str | None,
) -> tuple[bool | None, ...]:  # fmt: skip
    """Whether alternatives may have constants of their own: True, False where they have names, None where they count.

    ``said`` decides. ``column`` names them, None where names of columns do. Numbers and letters count places, unless
    the column or the attributes tell that they may be labels: then both.
    """
    if said is not None:
        return (said,)
    codes = as_text(own.filter(pl.Series(~none))).drop_nulls().unique()
    called = plain(column or PLACED[0])
    if not all(is_place(name) for name in codes) or called == "mode":
        return (True,)
    few = len(codes) <= np.bincount(task).max()
    if not few and called in map(plain, IDENTIFIED):
        return (True,)  # of a list that no task shows as a whole
    places = few and called in map(plain, PLACED)
    return (None,) if places and not _differs(own, attributes, none) else (True, False)


def _differs(own: pl.Series, attributes: Mapping[str, pl.Series], none: BoolArray) -> bool:
    """Whether an attribute differs by alternative far more than a design of equal places would have it.

    Distinct rows count once, as few of them may be shown to many people. F above 25 is hardly ever chance.
    """
    there = pl.Series(~none)
    values = {name: plain_values(column).filter(there) for name, column in attributes.items()}
    first, _ = distinct([own.filter(there), *values.values()])
    _, code = distinct([own.filter(there).gather(first)])
    size = np.bincount(code)
    if len(first) < 20 or len(size) < 2 or len(first) <= len(size):
        return False
    # Labels that go with the numbers one to one are constants themselves.
    if any(value.dtype == pl.String and len(size) == value.n_unique() == len(distinct([own.filter(there), value])[0])
           for value in values.values()):  # fmt: skip
        return False
    for value in values.values():
        column = value.gather(first)
        if column.n_unique() < 2:
            continue
        given = np.bincount(code, column.is_not_null().to_numpy())
        if (given == 0).any() and (given == size).any():
            return True  # which some alternatives never have
        if not column.dtype.is_numeric():
            levels = column.drop_nulls().unique()
            parts = [(column == level).fill_null(False).to_numpy().astype(float) for level in levels[:50]]
        else:
            parts = [column.cast(pl.Float64).fill_null(strategy="mean").to_numpy()]
        for part in parts:
            mean = np.bincount(code, part) / size
            between = float(size @ (mean - part.mean()) ** 2)
            within = float(((part - mean[code]) ** 2).sum())
            if between / (len(size) - 1) > 25.0 * within / (len(first) - len(size)):
                return True
    return False


def missing_in(attributes: Mapping[str, pl.Series], label: pl.Series | None, none: BoolArray) -> tuple[BoolArray, str]:
    """Alternatives without a value of some attribute that others of their label have, (n,), and which attributes."""
    missing = np.zeros(len(none), dtype=bool)
    named = []
    for name, column in attributes.items():
        empty = plain_values(column).is_null().to_numpy() & ~none
        if label is not None:
            has = label.filter(pl.Series(~empty & ~none)).unique()
            empty &= where_true(label.is_in(has.to_list()))
        if empty.any():
            named.append(f'"{shown(name)}"')
        missing |= empty
    return missing, ", ".join(named)
