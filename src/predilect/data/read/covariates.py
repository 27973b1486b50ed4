"""Covariates of answers, and whether the sides on which items were shown can be told from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._base.text import by_option, did_you_mean, shown
from predilect._base.types import IntArray
from predilect.data.canonical import ALONE, Codes
from predilect.data.intake import BASELINE, FIRST, LAST, MOSTLY, NEARLY_ALL, SORTED, TAKEN_APART, counted
from predilect.data.read.columns import listed, refuse_doubled, refuse_index
from predilect.data.read.names import won_and_lost_families
from predilect.data.read.options import option
from predilect.data.read.profiles import numbers_of
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

_FORMS = (("{}",), ("{}_left", "{}_right"), ("{}_a", "{}_b"))
# Columns of to_frame.
_TAKEN = ("user", "left", "right", "winner", "outcome", "weight", "task", "shown_left", "context", "when")
_EQUAL = "without a covariate left and right count as equal"
_LARGEST = 1e100  # of a covariate; the squares of far larger and far smaller ones are no numbers
_TRUE = {"true": "1", "false": "0"}

FEWEST = 20  # decided answers: fewer cannot tell whether the winner is listed first


def covariate_columns(
    names: Sequence[str], covariates: Sequence[str] | None, index: Sequence[str] = (), *, needed: bool = True
) -> dict[str, tuple[str, ...]]:
    """The column with the difference of each covariate, or its columns for left and right; DataError if one that is
    ``needed`` is not in names, or there is a column for one side alone.

    ``index`` holds names of a pandas frame's index, refused where one would be the column.
    """
    wanted = [covariates] if isinstance(covariates, str) else list(covariates or ())
    found: dict[str, tuple[str, ...]] = {}
    for name in wanted:
        if name in found:
            raise DataError(f'the covariate "{shown(name)}" is named twice; name it once.')
        if name in _TAKEN:
            raise DataError(f'a covariate cannot be called "{name}", as a part of every answer is. Rename the column.')
        forms = [tuple(part.format(name) for part in form) for form in _FORMS]
        there = [form for form in forms if all(column in names for column in form)]
        if not there:
            for form in forms:
                refuse_index(index, form, f'covariate "{shown(name)}"')
                _refuse_half(name, form, names, needed)
            if not needed:
                continue
            pairs = "".join(f', nor "{shown(one)}" and "{shown(two)}"' for one, two in forms[1:])
            raise DataError(
                f'there is no column "{shown(name)}"{pairs} (given with {option("covariates", [shown(name)])}); the '
                f"columns are {listed(names)}.{did_you_mean(name, names)}"
            )
        if len(there) > 1:
            named = "; and ".join(" and ".join(f'"{shown(column)}"' for column in form) for form in there)
            raise DataError(
                f'the covariate "{shown(name)}" can be read from {named}. Rename, or leave out, all but one of these.'
            )
        refuse_doubled(there[0], names)
        found[name] = there[0]
    return found


def _refuse_half(name: str, form: tuple[str, ...], names: Sequence[str], needed: bool) -> None:
    """DataError for one of the two columns of a covariate without the other."""
    have = [column for column in form if column in names]
    if have:
        (lacking,) = set(form) - set(have)
        raise DataError(
            f'the covariate "{shown(name)}" has a column "{shown(have[0])}" and no column "{shown(lacking)}" for the '
            f"other side; the columns are {listed(names)}. Add it{'' if needed else f', or leave out both: {_EQUAL}'}."
        )


def flat(columns: Mapping[str, tuple[str, ...]]) -> list[str]:
    """All columns of covariates."""
    return [column for pair in columns.values() for column in pair]


def role_names(columns: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Columns of covariates by their role in ``Intake.columns``."""
    return {
        f"covariate {name}" + (f" ({side})" if len(pair) > 1 else ""): column
        for name, pair in columns.items()
        for side, column in zip(("left", "right"), pair, strict=False)
    }


def differences(
    raw: Mapping[str, pl.Series], columns: Mapping[str, tuple[str, ...]], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Covariates of some rows, left minus right as shown, NaN where missing, (n_rows, n_covariates); raises DataError.

    A column of text that is no number, an infinite value, or a difference whose square is no number is an error.
    """
    found = np.empty((len(rows), len(columns)))
    for place, pair in enumerate(columns.values()):
        values = [_numbers(raw[column].gather(rows), column, rows) for column in pair]
        with np.errstate(over="ignore"):
            found[:, place] = values[0] if len(values) == 1 else values[0] - values[1]
        said = f"the covariate of {' and '.join(map(shown, pair))} is beyond ±{_LARGEST:g}"
        _refuse(np.abs(found[:, place]) > _LARGEST, said, rows)
    return np.where(np.abs(found) < 1.0 / _LARGEST, 0.0, found)


def _numbers(series: pl.Series, column: str, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    instead = by_option(f"Name another with {option('covariates', ['NAME'])}", f"Leave it out ({_EQUAL})")
    if series.dtype == pl.String:
        word = series.str.strip_chars().str.to_lowercase()
        series = word.replace(_TRUE) if word.drop_nulls().is_in(["", *_TRUE]).all() else series
    found = numbers_of(series, column, "covariate", f"{instead}, or turn it into numbers.", rows)
    _refuse(np.isinf(found), f'column "{shown(column)}" is used as a covariate, but holds infinite values', rows)
    return found


def _refuse(bad: NDArray[np.bool_], said: str, rows: NDArray[np.int64]) -> None:
    if bad.any():
        raise DataError(
            f"{said} in {counted(int(bad.sum()), 'row')} (first: row {rows[bad.argmax()] + 1}). Put a number there, "
            "or leave such rows out of the table."
        )


def refuse_missing(values: NDArray[np.float64], names: Sequence[str], rows: NDArray[np.int64]) -> None:
    """DataError if a covariate is missing, NaN, in some of the ``rows``."""
    bad = np.isnan(values)
    if bad.any():
        any_bad = bad.any(axis=1)
        each = ", ".join(f'"{shown(name)}" {n}' for name, n in zip(names, bad.sum(axis=0), strict=True) if n)
        first = ", ".join(str(row + 1) for row in rows[any_bad][:3])
        how = by_option(f" with {option('drop_missing', True)}", f", or all of its columns: {_EQUAL}")
        raise DataError(
            f"a covariate is missing in {counted(int(any_bad.sum()), 'row')} (missing values by covariate: {each}; "
            f"first: row {first}). Fill them in, or leave such rows out{how}."
        )


def why_no_sides(
    left: Codes,
    right: Codes,
    items: Vocabulary,
    columns: Mapping[str, str],
    wins: tuple[float, float],
    task: Codes | None,
    said: bool,
    by_item: bool,
) -> str:
    """Why the sides of a table are not those on which items were shown; "" if they may be.

    ``left`` and ``right`` are codes in ``items`` in the order of the table, (n_rows,); ``wins`` the weight of answers
    won by each; ``task`` as of ``canonical_answers``; ``said``: the user says that they are, and nothing is guessed;
    ``by_item``: the answers name items, and no sides.
    """
    one, two = (columns[side].strip() for side in ("left", "right"))
    if won_and_lost_families([one, two]):
        return f"{one.lower()} and {two.lower()} columns"
    if task is not None and _share_items(left, right, task):
        return TAKEN_APART
    if said:
        return ""
    decided = sum(wins)
    if decided >= FEWEST and max(wins) > MOSTLY * decided:
        if len(baselines(left, right, decided)):
            return BASELINE
        if by_item or max(wins) >= NEARLY_ALL * decided:
            return FIRST if wins[0] > wins[1] else LAST
    if _one_way(left, right) or _one_way(*(_by_number(items)[codes] for codes in (left, right))):
        return SORTED
    return ""


def baselines(left: IntArray, right: IntArray, n: float) -> IntArray:
    """The few items that are on the same side in all ``n`` answers, the others being on the other; or none."""
    sides = [np.unique(side) for side in (left, right)]
    few = min(sides, key=len)
    return few if len(few) * FEWEST <= n and not np.isin(sides[0], sides[1]).any() else few[:0]


def _share_items(left: Codes, right: Codes, task: Codes) -> bool:
    """Whether in most tasks of several answers one item is in several of them, as it is in choices and orders."""
    in_task = task > ALONE
    code, size = np.unique(task[in_task], return_inverse=True, return_counts=True)[1:]
    span = int(max(left.max(), right.max())) + 1
    met = np.unique(np.concatenate([code * span + side[in_task] for side in (left, right)]))
    several = size > 1
    shared = np.bincount(met // span, minlength=len(size)) < 2 * size
    return bool(2 * (shared & several).sum() > several.sum())


def _one_way(left: NDArray[np.int32], right: NDArray[np.int32]) -> bool:
    """Whether left is always before right, or always after, over at least two pairs."""
    several = bool((left != left[0]).any() or (right != right[0]).any())
    return several and (bool((left < right).all()) or bool((left > right).all()))


def _by_number(items: Vocabulary) -> NDArray[np.int32]:
    """Place of each id among the others by the number that it writes; by the text if one writes none."""
    number = items.series().cast(pl.Int64, strict=False)
    same = np.arange(len(items), dtype=np.int32)
    if number.null_count():
        return same
    place: NDArray[np.int32] = number.rank("ordinal").cast(pl.Int32).to_numpy()
    return place
