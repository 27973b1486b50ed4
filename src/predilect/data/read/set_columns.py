"""What values of the columns of answers about sets of alternatives mean."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from predilect._text import shown
from predilect._types import BoolArray, FloatArray
from predilect.data.frames import as_text
from predilect.data.intake import counted
from predilect.data.read.names import BEST, EITHER_END, NO, NTH, NUMBERED, WORST, YES, guess_one, is_called
from predilect.data.read.options import option
from predilect.errors import DataError


def best_and_worst(names: Sequence[str]) -> tuple[str, str] | None:
    """Columns of the best and of the worst, None unless there are both."""
    best, worst = guess_one(names, BEST), guess_one(names, WORST)
    return None if best is None or worst is None else (best, worst)


def places_between(names: Sequence[str]) -> tuple[str, ...]:
    """Columns of the second, the third ..., as they stand between one of the best and one of the worst."""
    after = ("", "_pref", "_preference", "_choice", "_best", "_place", "_rank")
    found = (guess_one(names, [f"{word}{end}" for word in words for end in after])
             for words in list(zip(NTH, NUMBERED, strict=True))[1:])  # fmt: skip
    return tuple(itertools.takewhile(lambda name: name is not None, found))  # type: ignore[arg-type]


def is_plain(series: pl.Series) -> bool:
    """Whether values are neither lists nor Python objects."""
    return not series.dtype.is_nested() and series.dtype != pl.Object


def flags(series: pl.Series) -> BoolArray | None:
    """True and false of a column of 1 and 0, yes and no and the like, (n,); None if it holds anything else.

    What is missing is false.
    """
    if series.dtype.is_nested():
        return None
    word = as_text(series).str.strip_chars().str.to_lowercase().str.strip_suffix(".0")
    if not word.drop_nulls().is_in([*YES, *NO]).all() or word.null_count() == len(word):
        return None
    return word.is_in(YES).fill_null(False).to_numpy()


def words_of(series: pl.Series) -> pl.Series:
    """Values as text, as they are compared: without blanks around them, and 1.0 as 1."""
    return as_text(series).str.strip_chars().str.strip_suffix(".0")


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


def numbers_of(series: pl.Series, column: str, what: str) -> FloatArray:
    """Numbers of a column, NaN where missing, (n,); DataError if one is none."""
    text = as_text(series)
    if what == "rank":
        text = _places(text)
    number = text.str.strip_chars().cast(pl.Float64, strict=False)
    odd = (number.is_null() & text.is_not_null()).to_numpy()
    if odd.any():
        row = int(odd.argmax())
        raise DataError(
            f'column "{shown(column)}" is read as the {what}, which must be a number, but holds text in '
            f'{counted(int(odd.sum()), "row")} (first: row {row + 1}, "{shown(text[row])}"). Put a number there, or '
            "leave such rows out of the table."
        )
    found: FloatArray = number.fill_null(np.nan).to_numpy()
    return found


def holds_numbers(series: pl.Series, *, whole: bool = False, least: float = -np.inf) -> bool:
    """Whether a column holds numbers, perhaps whole ones, from ``least``, or nothing."""
    if not is_plain(series):
        return False
    text = as_text(series).str.strip_chars()
    number = text.cast(pl.Float64, strict=False)
    there = number.drop_nulls()
    if number.null_count() > text.null_count() or (there < least).any():
        return False
    return not whole or bool((there == there.round(0)).all())


def low_is_good(name: str, values: FloatArray, said: str | None) -> bool:
    """Whether low ratings are good, as said or as the name of the column has it; DataError if neither tells."""
    if said is not None:
        return said == "low"
    there = values[~np.isnan(values)]
    if is_called(name, EITHER_END) or (len(there) and there.min() < 0):
        least, most = (there.min(), there.max()) if len(there) else (0, 0)
        raise DataError(
            f'column "{shown(name)}" holds numbers from {least:g} to {most:g}, and no word says which end is good. '
            f"{least:g} is better than {most:g} if you say {option('best', 'low')}, {most:g} better than {least:g} if "
            f"you say {option('best', 'high')}."
        )
    return False


def end_told(name: str, low: bool) -> str:
    """Which end was taken for the good one."""
    return f'In "{shown(name)}" {"low" if low else "high"} numbers are good.'


def could_be_items(columns: Sequence[pl.Series]) -> bool:
    """Whether columns hold ids, some of them now in one and now in another, and never one twice in a row."""
    if any(not is_plain(column) or column.dtype.is_float() for column in columns):
        return False
    words = [as_text(column).str.strip_chars() for column in columns]
    if any(word.str.contains(r"^-|\.\d").any() for word in words):
        return False
    held = [{*word.drop_nulls()} for word in words]
    if len({*itertools.chain(*held)}) == sum(map(len, held)):
        return False
    return not any((one == two).any() for one, two in itertools.combinations(words, 2))


def pairs_of_items(columns: Mapping[str, pl.Series]) -> list[list[str]]:
    """Any two columns that could hold the items of pairs, unless no value recurs in either, as in numbers of rows."""
    recurs = {name: is_plain(one) and one.n_unique() < len(one) for name, one in columns.items()}
    return [
        [one, two] for one, two in itertools.combinations(columns, 2)
        if (recurs[one] or recurs[two]) and could_be_items([columns[one], columns[two]])
    ]  # fmt: skip
