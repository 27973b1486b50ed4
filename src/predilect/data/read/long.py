"""Long tables: one row for each alternative of a task, with what was chosen, its rank or its rating."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._text import did_you_mean, option, shown
from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data.frames import as_text, clean_ids
from predilect.data.intake import MISSING_ATTRIBUTE, UNCLEAR, counted
from predilect.data.read.assemble import ReadOptions
from predilect.data.read.columns import WEIGHT, guess_one, listed, no_column, plain
from predilect.data.read.profiles import (
    distinct,
    is_none,
    is_place,
    items_described,
    missing_in,
    numbers_rows,
    profiles_of,
    varies_within,
)
from predilect.data.read.set_columns import (
    AVAILABLE,
    CHOSEN,
    IDENTIFIED,
    KIND_OF,
    PLACED,
    RANKED,
    TASKS,
    WHO,
    flags,
    numbers_of,
)
from predilect.data.read.sets import Sets, context_of
from predilect.data.tasks import best_worst_levels, chosen_levels, ranked_levels, rated_levels
from predilect.errors import DataError


@dataclass(frozen=True)
class Long:
    """Columns of a long table by role; None where there is none."""

    user: str | None
    task: str | None
    alternative: str | None
    value: str | None
    best: str | None = None
    worst: str | None = None


def find_long(names: Sequence[str], raw: Mapping[str, pl.Series], options: ReadOptions) -> Long | None:
    """Columns of a long table, or None if these are none of one."""
    user = _role(names, options.get("user"), WHO)
    guessed = user is not None and options.get("user") is None
    if guessed and user is not None and _names_rows(raw[user]):
        user = None
    task = _role([name for name in names if name != user], options.get("task"), TASKS)
    kind, winner = options.get("kind"), options.get("winner")
    rest = [name for name in names if name not in (user, task)]
    best, worst = guess_one(rest, ("best", "is_best", "most")), guess_one(rest, ("worst", "is_worst", "least"))
    both = best is not None and worst is not None and kind in (None, "best_worst") and winner is None
    value = winner
    if value is None and not both:
        words = KIND_OF.values() if kind is None else [(*KIND_OF.get(kind, RANKED), *CHOSEN)]
        value = next((found for one in words if (found := guess_one(rest, one))), None)
    if value is None and not both:
        return None
    rest = [name for name in rest if name != value and not (both and name in (best, worst))]
    named = options.get("alternatives")
    alternative = named if isinstance(named, str) and named in names else guess_one(rest, (*IDENTIFIED, *PLACED))
    if alternative is None and user is None and task is None:
        return None
    if alternative is None:
        others = [name for name in rest if plain(name) not in map(plain, (*WEIGHT, *AVAILABLE))]
        # Without a task, all rows of a person are one: ratings of the one thing that is left.
        if task is None and len(others) == 1:
            alternative = others[0]
        elif task is None:
            return None
    if both:
        flagged = all(set(as_text(raw[name]).drop_nulls().unique()) <= {"0", "1"} for name in (best, worst) if name)
        return Long(user, task, alternative, None, best, worst) if flagged and alternative != best else None
    return Long(user, task, alternative, value)


def _names_rows(column: pl.Series) -> bool:
    """Whether no value comes twice, as numbers of rows."""
    plain_type = column.dtype != pl.Object and not column.dtype.is_nested()
    return plain_type and len(column) > 1 and bool(column.is_unique().all())


def _role(names: Sequence[str], given: str | bool | None, candidates: Sequence[str]) -> str | None:
    if given is False:
        return None
    return given if isinstance(given, str) else guess_one(names, candidates)


def read_long(names: Sequence[str], raw: Mapping[str, pl.Series], long: Long, options: ReadOptions) -> Sets:
    """Answers of a long table; raises DataError."""
    n_rows = len(next(iter(raw.values())))
    columns = {role: name for role, name in (("user", long.user), ("task", long.task),
               ("alternatives", long.alternative), ("winner", long.value), ("best", long.best),
               ("worst", long.worst)) if name is not None}  # fmt: skip
    keys = [clean_ids(raw[name], name) for name in (long.user, long.task) if name is not None]
    if not keys:
        raise DataError(
            f"found no column that says which rows are one task; the columns are {listed(names)}. Name it with "
            f"{option('task', 'NAME')}, or who answered with {option('user', 'NAME')}."
        )
    first, task = distinct(keys)
    blank = np.zeros(n_rows, dtype=bool)
    for key in keys:
        blank |= key.is_null().to_numpy()
    shown_rows, available = _available(names, raw, columns, n_rows)
    sets = Sets("best", task, pl.Series(), np.zeros(0, dtype=np.int64), first, np.bincount(task), columns)
    if long.user is not None:
        sets.person = raw[long.user].gather(first)
    column = _weight(names, raw, columns, task, options.get("weight"))
    if column is not None:
        columns["weight"] = column
        sets.weight = raw[column].gather(first)
    sets.context = context_of(raw, options, columns, first)
    if blank.any() and long.task is not None:
        lost = sets.any_of(clean_ids(raw[long.task], long.task).is_null().to_numpy())
        sets.unusable.append(("missing id", lost, "the task is missing in {where}. Fill it in."))

    if not shown_rows.all():
        gone = sets.any_of(~shown_rows & _chosen(raw, long))
        message = f'an alternative was chosen that was not available (column "{shown(available)}") in {{where}}.'
        sets.unusable.append((UNCLEAR, gone, message))
        sets.notes.append(f"{counted(int((~shown_rows).sum()), 'alternative')} not available, and so not shown.")
        raw = {name: column.filter(pl.Series(shown_rows)) for name, column in raw.items()}
        sets.task = task[shown_rows]
    sets.item = _items(names, raw, long, columns, sets, options)
    _read_values(raw, long, sets, options)
    return sets


def _chosen(raw: Mapping[str, pl.Series], long: Long) -> BoolArray:
    """Alternatives marked as chosen."""
    chosen = None if long.value is None else flags(raw[long.value])
    return np.zeros(len(next(iter(raw.values()))), dtype=bool) if chosen is None else chosen


def _weight(
    names: Sequence[str], raw: Mapping[str, pl.Series], columns: Mapping[str, str], task: IntArray,
    given: str | bool | None,
) -> str | None:  # fmt: skip
    """Column of the weight of tasks; one that differs within tasks is guessed to be an attribute."""
    name = given if isinstance(given, str) else None if given is False else guess_one(names, WEIGHT)
    if name is None or name in columns.values():
        return None
    if not varies_within(raw[name], task):
        return name
    if isinstance(given, str):
        raise DataError(f'column "{shown(name)}" is the weight of tasks, but differs between rows of one task.')
    return None


def _available(
    names: Sequence[str], raw: Mapping[str, pl.Series], columns: dict[str, str], n_rows: int
) -> tuple[BoolArray, str | None]:
    name = guess_one([one for one in names if one not in columns.values()], AVAILABLE)
    flagged = None if name is None else flags(raw[name])
    if name is None or flagged is None:
        return np.ones(n_rows, dtype=bool), None
    columns["available"] = name
    return flagged, name


def _items(
    names: Sequence[str], raw: Mapping[str, pl.Series], long: Long, columns: dict[str, str], sets: Sets,
    options: ReadOptions,
) -> pl.Series:  # fmt: skip
    """Ids of the alternatives: their own, or their profiles."""
    none_id = options.get("none") or "None"
    given = options.get("profile")
    absent = [name for name in given or () if name not in names]
    if absent:
        raise no_column(absent[0], "as profile", names)
    taken = {*columns.values()}
    there = [name for name in (given or names) if name not in taken and not raw[name].dtype.is_nested()]
    attributes = {name: raw[name] for name in there if given or _describes(raw[name], sets.task)}
    own = None if long.alternative is None else clean_ids(raw[long.alternative], long.alternative)
    none = np.zeros(len(sets.task), dtype=bool) if own is None else is_none(own, none_id)
    marker = guess_one(list(attributes), ("none", "no_choice", "opt_out", "none_option"))
    marked = None if marker is None else flags(attributes[marker])
    if marker is not None and marked is not None:
        none |= marked
        columns["none"] = marker
        del attributes[marker]
    if own is not None and not given:
        identified = plain(long.alternative or "") in map(plain, IDENTIFIED)
        if identified or not attributes:
            _, number = distinct([own])
            attributes = {name: column for name, column in attributes.items() if not varies_within(column, number)}
            if attributes:
                sets.profiles = items_described(own, attributes)
                columns.update({f"feature {name}": name for name in attributes})
            return own.cast(pl.String).set(pl.Series(none), none_id) if none.any() else own
    if not attributes:
        raise DataError(
            "found no column that says which alternative a row is about, nor attributes that differ within a task; the "
            f"columns are {listed(names)}. Name it with {option('alternatives', 'NAME')}."
        )
    none |= _empty(attributes, sets)
    label = None
    if own is not None and not all(is_place(str(name)) for name in own.filter(pl.Series(~none)).unique().drop_nulls()):
        label = own.cast(pl.String)
    lacking, told = missing_in(attributes, label, none)
    message = f"an attribute ({told}) is missing in {{where}}. Fill it in."
    sets.unusable.append((MISSING_ATTRIBUTE, sets.any_of(lacking), message))
    columns.update({f"attribute {name}": name for name in attributes})
    ids, sets.profiles = profiles_of(label, attributes, none, none_id)
    return ids


def _describes(column: pl.Series, task: IntArray) -> bool:
    """Whether a column tells alternatives of one task apart, and is not the number of the row."""
    return varies_within(column, task) and not numbers_rows(column)


def _empty(attributes: Mapping[str, pl.Series], sets: Sets) -> BoolArray:
    """Alternatives with no attribute at all, one in every task: blank, or 0 in each where no other one has a 0."""
    columns = [as_text(column) for column in attributes.values()]
    zero = np.stack([(column == "0").fill_null(False).to_numpy() for column in columns])
    blank = np.stack([column.is_null().to_numpy() for column in columns])
    nothing: BoolArray = np.logical_and.reduce(zero | blank)
    if zero[:, ~nothing].any():
        nothing = np.logical_and.reduce(blank)
    one_each = (np.bincount(sets.task[nothing], minlength=sets.n_tasks) == 1).all()
    return nothing if one_each and len(columns) > 1 else np.zeros(len(nothing), dtype=bool)


def _read_values(raw: Mapping[str, pl.Series], long: Long, sets: Sets, options: ReadOptions) -> None:
    kind = options.get("kind")
    if long.best is not None and long.worst is not None:
        best, worst = flags(raw[long.best]), flags(raw[long.worst])
        if best is not None and worst is not None:  # as find_long has seen
            sets.kind, sets.level = "best_worst", best_worst_levels(best, worst)
        return
    value = str(long.value)
    series = raw[value]
    if kind is None:
        kind = next((one for one, words in KIND_OF.items() if plain(value) in map(plain, words)), "best")
    if kind in ("order", "rank"):
        sets.kind, sets.level = "order", levels_of_ranks(numbers_of(series, value, "rank"), value, sets)
    elif kind == "rating":
        rating = numbers_of(series, value, "rating")
        sets.kind, sets.level = "rating", rated_levels(rating)
        keep_rated(sets, ~np.isnan(rating))
    elif kind in ("best", "approval", "best_worst"):
        words = set(as_text(series).drop_nulls().unique().to_list())
        if kind in ("best", "best_worst") and "-1" in words and words <= {"-1", "0", "1"}:
            number = numbers_of(series, value, "choice")
            sets.kind, sets.level = "best_worst", best_worst_levels(number == 1, number == -1)
            return
        if kind == "best_worst":
            raise DataError(f'column "{shown(value)}" must hold 1 for the best, -1 for the worst, and 0 for the rest.')
        chosen = flags(series)
        if chosen is None:
            chosen = _named(series, value, raw, long)
        sets.kind, sets.level = kind, chosen_levels(chosen)
    else:
        raise DataError(f"a table with one row for each alternative cannot hold {kind}; leave kind out.")


def keep_rated(sets: Sets, rated: BoolArray) -> None:
    """Leave out what was not rated."""
    if not rated.all():
        sets.notes.append(f"{counted(int((~rated).sum()), 'row')} without a rating: nothing is said of them.")
        sets.task, sets.level, sets.item = sets.task[rated], sets.level[rated], sets.item.filter(pl.Series(rated))


def _named(series: pl.Series, value: str, raw: Mapping[str, pl.Series], long: Long) -> BoolArray:
    """Which alternatives are the one that the column names in all rows of their task."""
    words = as_text(series)
    if long.alternative is not None:
        own = as_text(raw[long.alternative])
        if words.drop_nulls().is_in(own.unique().to_list()).all():
            return (words == own).fill_null(False).to_numpy()
    odd = words.drop_nulls().unique().sort()
    near = ""
    if long.alternative is not None:
        odd = odd.filter(~odd.is_in(own.unique().to_list()))
        near = did_you_mean(odd[0], own.unique().sort().to_list())
    raise DataError(
        f'column "{shown(value)}" must say 1 for the alternative that was chosen and 0 for the others, or name it; it '
        f"holds {', '.join(shown(word) for word in odd.head(3))}.{near} If it holds ranks or ratings, say "
        f"{option('kind', 'rank')} or {option('kind', 'rating')}."
    )


def levels_of_ranks(rank: FloatArray, column: str, sets: Sets) -> IntArray:
    """Levels of ranks by task; what is not ranked is below all that is."""
    odd = np.flatnonzero((rank < 0) | (rank != np.round(rank)) & ~np.isnan(rank))
    if len(odd):
        raise DataError(
            f'column "{shown(column)}" must hold ranks, whole numbers from 1 for the best; other numbers came in '
            f"{counted(len(odd), 'row')} (first: row {odd[0] + 1}, {rank[odd[0]]:g}). If more is better, say "
            f"{option('kind', 'rating')}."
        )
    levels = ranked_levels(rank)
    ranked = ~np.isnan(rank)
    start = 1.0
    if ranked.any() and rank[ranked].min() == 0:
        start = 0.0
        sets.notes.append(f'Ranks in "{shown(column)}" start at 0, the best.')
    if plain(column) in map(plain, RANKED):
        bad, tied = _gaps(sets.task[ranked], rank[ranked], start, sets.n_tasks)
        message = (
            f'ranks leave a gap in {{where}} (column "{shown(column)}"): expected {start:g}, {start + 1:g}, '
            f"{start + 2:g} ... in each task. Is a row missing?"
        )
        sets.unusable.append((UNCLEAR, bad, message))
        if tied:
            sets.notes.append(f"Equal ranks in {counted(tied, 'task')} say nothing about each other.")
    return levels


def _gaps(task: IntArray, rank: FloatArray, start: float, n_tasks: int) -> tuple[BoolArray, int]:
    """Tasks whose ranks leave a gap, but for the places after equal ones, (n_tasks,), and how many have equal ones."""
    order = np.lexsort((rank, task))
    task, rank = task[order], rank[order]
    fresh = np.append(True, np.diff(task) != 0)[: len(task)]
    place = np.arange(len(task)) - np.maximum.accumulate(np.where(fresh, np.arange(len(task)), 0))
    step = np.where(fresh, rank - start, np.diff(rank, prepend=start))
    lagging = rank == place + start  # 1, 2, 2, 4
    bad = np.where(fresh, step != 0, (step > 1) & ~lagging)
    tied: NDArray[np.int64] = np.bincount(task[~fresh & (step == 0)], minlength=n_tasks)
    return np.bincount(task[bad], minlength=n_tasks) > 0, int((tied > 0).sum())
