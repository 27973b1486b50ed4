"""Names in use for the columns of answers about sets of alternatives, and what their values mean."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from predilect._text import option, shown
from predilect._types import BoolArray, FloatArray
from predilect.data.frames import as_text
from predilect.data.intake import counted
from predilect.data.read.assemble import Kind
from predilect.data.read.columns import TASK, USER, WINNER, guess_one, plain
from predilect.errors import DataError

WHO = (
    *USER, "sys_respnum", "respnum", "resp_id", "respid", "resp", "hhid", "household", "household_id", "individual",
    "individual_id", "panelist", "panelist_id", "customer", "customer_id", "uid", "id",
)  # fmt: skip
TASKS = (
    *TASK, "chid", "obs_id", "obs", "observation", "question", "question_id", "ques", "qes", "qid", "scenario",
    "situation", "choice_situation", "occasion", "case", "case_id", "set", "set_id", "sp_task", "block_task", "ballot",
)  # fmt: skip
# Names of things with an id of their own, and of places in a task.
IDENTIFIED = (
    "item", "item_id", "product", "product_id", "model", "candidate", "candidate_id", "movie", "movie_id", "movieid",
    "title", "object", "stimulus", "name", "brand_id", "comment_id", "statement", "statement_id",
)  # fmt: skip
PLACED = (
    "alternative",
    "alternative_id",
    "alt",
    "alt_id",
    "altid",
    "option",
    "option_id",
    "concept",
    "profile",
    "mode",
)
AVAILABLE = ("available", "availability", "avail", "av")
CHOSEN = (
    "chosen", "choice", "is_chosen", "selected", "picked", "choose", "response", "y", "depvar", "decision", "answer",
    *(name for name in WINNER if name not in ("chosen", "choice")),
)  # fmt: skip
APPROVED = ("approved", "approval", "approve", "approves")
RANKED = ("rank", "ranking", "place", "position")
RATED = ("rating", "ratings", "score", "stars", "points", "grade", "mark", "marks", "penalty", "penalties")
# Of these nobody knows which end is good: school marks, points against somebody, places.
EITHER_END = ("grade", "grades", "mark", "marks", "penalty", "penalties", "place", "position", "cost", "errors", "loss")
# In the order in which they are looked for: a conjoint study may have an attribute called rating.
KIND_OF: dict[Kind, tuple[str, ...]] = {
    "best": CHOSEN,
    "approval": APPROVED,
    "rank": (*RANKED, "tier"),
    "rating": RATED,
}
NTH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
NUMBERED = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th")
BEST, WORST = ("best", "most", "best_item", "most_important"), ("worst", "least", "worst_item", "least_important")
_YES, _NO = ("1", "true", "yes", "y", "x", "chosen"), ("0", "false", "no", "n", "not chosen")


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


def flags(series: pl.Series) -> BoolArray | None:
    """True and false of a column of 1 and 0, yes and no and the like, (n,); None if it holds anything else.

    What is missing is false.
    """
    if series.dtype.is_nested():
        return None
    word = as_text(series).str.strip_chars().str.to_lowercase().str.strip_suffix(".0")
    if not word.drop_nulls().is_in([*_YES, *_NO]).all() or word.null_count() == len(word):
        return None
    return word.is_in(_YES).fill_null(False).to_numpy()


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


def low_is_good(name: str, values: FloatArray, said: str | None) -> bool:
    """Whether low ratings are good, as said or as the name of the column has it; DataError if neither tells."""
    if said is not None:
        return said == "low"
    there = values[~np.isnan(values)]
    if plain(name) in map(plain, EITHER_END) or (len(there) and there.min() < 0):
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
