"""Long tables: one row for each alternative of a task, with what was chosen, its rank or its rating."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._text import did_you_mean, shown
from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data.frames import as_text, clean_ids
from predilect.data.intake import UNCLEAR, counted
from predilect.data.read.columns import listed, no_column
from predilect.data.read.names import (
    AVAILABLE,
    CHOSEN,
    IDENTIFIED,
    KIND_OF,
    NO_ANSWER,
    OF_TIME,
    OFFERED,
    PEOPLE_OF_SETS,
    PLACED,
    RANKED,
    RATED,
    TASKS,
    WEIGHT,
    Kind,
    guess_one,
    is_called,
    plain,
    tells,
    tells_note,
)
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.profiles import (
    NONE,
    counts_within,
    distinct,
    has_constants,
    is_none,
    is_noted,
    is_place,
    items_described,
    nothing_of,
    numbers_rows,
    plain_values,
    varies_within,
)
from predilect.data.read.set_columns import end_told, flags, low_is_good, numbers_of, words_of
from predilect.data.read.sets import (
    CHOICES,
    Sets,
    best_worst_levels,
    chosen_levels,
    design_asked,
    named_or_guessed,
    ranked_levels,
    rated_levels,
)
from predilect.errors import DataError

_ON_SCREEN = ("position", "place", "slot", "screenposition", "order", "row", "line")


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
    """Columns of a long table, or None if these are none of one; DataError if several answers stand side by side."""
    user = named_or_guessed(names, options.get("user"), PEOPLE_OF_SETS)
    guessed = user is not None and options.get("user") is None
    if guessed and user is not None and _names_rows(raw[user]):
        user = None
    task = named_or_guessed([name for name in names if name != user], options.get("task"), TASKS)
    kind, winner = options.get("kind"), options.get("winner")
    named = options.get("alternatives")
    rest = [name for name in names if name not in (user, task, named)]
    best, worst = guess_one(rest, ("best", "is_best", "most")), guess_one(rest, ("worst", "is_worst", "least"))
    both = best is not None and worst is not None and kind in (None, "best_worst") and winner is None
    value = winner
    if value is None and not both:
        words = KIND_OF.values() if kind is None else [(*KIND_OF.get(kind, RANKED), *CHOSEN)]
        value = next((found for one in words if (found := guess_one(rest, one))), None)
    if value is None and not both:
        return None
    rest = [name for name in rest if name != value and not (both and name in (best, worst))]
    alternative = named if isinstance(named, str) and named in names else guess_one(rest, (*IDENTIFIED, *PLACED))
    if alternative is None and user is None and task is None:
        return None
    if alternative is None:
        others = [name for name in rest if not is_called(name, WEIGHT, AVAILABLE)]
        # Without a task, all rows of a person are one: ratings of the one thing that is left.
        if task is None and len(others) == 1:
            alternative = others[0]
        elif task is None:
            return None
    if both:
        flagged = all(set(as_text(raw[name]).drop_nulls().unique()) <= {"0", "1"} for name in (best, worst) if name)
        return Long(user, task, alternative, None, best, worst) if flagged and alternative != best else None
    return Long(user, task, alternative, value)


def tells_itself(raw: Mapping[str, pl.Series], long: Long, by_answer: bool = False) -> bool:
    """Whether the values tell, whatever the names, that each row is an alternative of a task.

    Tasks have several rows, each about another alternative, and the answer is one of them, or, unless ``by_answer``,
    alternatives are counted.
    """
    keys = [raw[name] for name in (long.user, long.task) if name is not None]
    if long.task is None or any(key.dtype.is_nested() or key.dtype == pl.Object for key in keys):
        return False
    _, task = distinct(keys)
    own = None if long.alternative is None else raw[long.alternative]
    if own is not None and (own.dtype.is_nested() or own.dtype == pl.Object):
        return False
    if len(task) < 2 or np.bincount(task).min() < 2:
        return False
    if own is not None and len(distinct([pl.Series(task), own])[0]) < len(task):
        return False
    if own is not None and not by_answer and counts_within(own, task):
        return True
    if long.value is None:
        return own is not None and not by_answer
    chosen = None if raw[long.value].dtype.is_nested() else chosen_of(raw[long.value], own, task)
    return chosen is not None and bool((np.bincount(task[chosen], minlength=int(task.max()) + 1) == 1).all())


def _answer_is_clear(raw: Mapping[str, pl.Series], long: Long, task: IntArray, options: ReadOptions) -> None:
    """DataError if another column can be the answer, or what it names."""
    value, own = long.value, long.alternative
    for name in raw if value and own and options.get("alternatives") is None else ():
        if name == own or not is_called(name, PLACED) or not counts_within(raw[name], task):
            continue
        one, two = (chosen_of(raw[str(value)], raw[by], task) for by in (str(own), name))
        if one is not None and two is not None and (one != two).any():
            raise DataError(
                f'column "{shown(value)}" may name what was chosen as "{shown(own)}" does, or as "{shown(name)}" does. '
                f"For the first say {option('alternatives', own)}, for the second "
                f"{option('alternatives', name, profile=[own])}."
            )
    if value is None or options.get("kind") is not None or options.get("winner") is not None:
        return
    rated = is_called(value, RATED)
    if not rated and not is_called(value, RANKED):
        return
    free = [
        name for name, column in raw.items()
        if name not in (long.user, long.task, long.alternative, value) and not column.dtype.is_nested()
        and column.dtype != pl.Object and not is_called(name, AVAILABLE) and not tells_note(name)
    ]  # fmt: skip
    others = [name for name in free if varies_within(raw[name], task)]
    found, told = guess_one(others, RATED), "may be ranks"
    if rated:
        of = None if own is None else raw[own]
        found = next((name for name in free if _may_answer(name, raw, of, task)), None)
        told = "may be ratings"
    if plain(value) in ("position", "place"):
        found = found or next((name for name in others if flags(raw[name]) is not None), None)
        told = "may be the place on the screen"
        if found is None:
            raise DataError(
                f'column "{shown(value)}" may hold the places of an order, 1 the best, or where each item stood on the '
                f"screen. If it is the answer, say {option('kind', 'rank')}; otherwise name the column of the answer "
                f"with {option('winner', 'NAME')}."
            )
    if found is not None:
        kind: Kind = "rating" if is_called(found, RATED) else "best"
        raise DataError(
            f'column "{shown(value)}" {told}, and "{shown(found)}" may be the answer. If "{shown(value)}" is the '
            f"answer, {'say' if rated else '1 the best, say'} "
            f'{option("kind", "rating" if rated else "rank")}; if "{shown(found)}" is, say '
            f"{option('winner', found, kind=kind)}."
        )


def _may_answer(name: str, raw: Mapping[str, pl.Series], own: pl.Series | None, task: IntArray) -> bool:
    """Whether a column of no name in the lists marks or names one alternative of every task, or ranks them."""
    if is_called(name, PLACED, IDENTIFIED, _ON_SCREEN) or numbers_rows(raw[name]):
        return False
    for of in (None, own):
        chosen = chosen_of(raw[name], of, task)
        if chosen is not None and (np.bincount(task[chosen], minlength=int(task.max()) + 1) == 1).all():
            return True
    if counts_within(raw[name], task):
        return True
    words = plain_values(raw[name])
    return words.dtype == pl.String and any(
        words.drop_nulls().is_in(other.drop_nulls().unique().to_list()).all()
        for one, other in raw.items() if one != name and other.dtype == pl.String
    )  # fmt: skip


def _names_rows(column: pl.Series) -> bool:
    """Whether no value comes twice, as numbers of rows."""
    plain_type = column.dtype != pl.Object and not column.dtype.is_nested()
    return plain_type and len(column) > 1 and bool(column.is_unique().all())


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
    sets.take_context(raw, options)
    if blank.any() and long.task is not None:
        lost = sets.any_of(clean_ids(raw[long.task], long.task).is_null().to_numpy())
        sets.unusable.append(("missing id", lost, "the task is missing in {where}. Fill it in."))

    if not shown_rows.all():
        gone = sets.any_of(~shown_rows & _chosen(raw, long, task))
        message = f'an alternative was chosen that was not available (column "{shown(available)}") in {{where}}.'
        sets.unusable.append((UNCLEAR, gone, message))
        sets.notes.append(f"{counted(int((~shown_rows).sum()), 'alternative')} not available, and so not shown.")
        raw = {name: column.filter(pl.Series(shown_rows)) for name, column in raw.items()}
        sets.task = task[shown_rows]
    _answer_is_clear(raw, long, sets.task, options)
    sets.kind = _kind_of(raw, long, options, sets.task)
    _name_items(names, raw, long, columns, sets, options)
    _read_values(raw, long, sets, options.get("best"))
    return sets


def _chosen(raw: Mapping[str, pl.Series], long: Long, task: IntArray) -> BoolArray:
    """Alternatives marked as chosen."""
    own = None if long.alternative is None else raw[long.alternative]
    chosen = None if long.value is None else chosen_of(raw[long.value], own, task)
    return np.zeros(len(task), dtype=bool) if chosen is None else chosen


def _weight(
    names: Sequence[str], raw: Mapping[str, pl.Series], columns: Mapping[str, str], task: IntArray,
    given: str | bool | None,
) -> str | None:  # fmt: skip
    """Column of the weight of tasks; one that differs within tasks is guessed to be an attribute."""
    name = named_or_guessed(names, given, WEIGHT)
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


def _name_items(
    names: Sequence[str], raw: Mapping[str, pl.Series], long: Long, columns: dict[str, str], sets: Sets,
    options: ReadOptions,
) -> None:  # fmt: skip
    """Set the ids of the alternatives: their own, or their profiles."""
    none_id = options.get("none", NONE)
    given = options.get("profile")
    attributes = _attributes(names, raw, long, columns, sets, given)
    own = None if long.alternative is None else clean_ids(raw[long.alternative], long.alternative)
    none = np.zeros(len(sets.task), dtype=bool) if own is None else is_none(own, none_id)
    marker = guess_one(list(attributes), ("none", "no_choice", "opt_out", "none_option"))
    if marker is not None and (marked := flags(attributes[marker])) is not None:
        none |= marked
        columns["none"] = marker
        del attributes[marker]
    if given is None:
        _tasks_are_whole(long, own, attributes, sets)
    called = str(long.alternative)
    if own is not None and (given == [] or (not given and not _make_profiles(called, own, attributes, sets))):
        _, number = distinct([own])
        attributes = {name: column for name, column in attributes.items() if not varies_within(column, number)}
        if attributes:
            sets.profiles = items_described(own, attributes)
            columns.update({f"feature {name}": name for name in attributes})
        sets.item = own.cast(pl.String).set(pl.Series(none), none_id) if none.any() else own
        return
    if own is None and given is None:
        naming = [name for name, column in attributes.items() if _names_items(column, sets.task)]
        for name in naming if len(naming) == 1 else ():
            rest = {one: column for one, column in attributes.items() if one != name}
            _make_profiles(name, raw[name], rest, sets)
    if not attributes or (own is None and not given and all(tells(name, OF_TIME) for name in attributes)):
        raise DataError(
            "found no column that says which alternative a row is about, nor attributes that differ within a task"
            f"{design_asked(names)} If there is such a column, name it with {option('alternatives', 'NAME')}."
        )
    outside, marker = nothing_of(attributes, sets.task)
    if outside.any():
        none |= outside
        sets.notes.append(
            f"An alternative of each task has no attributes, and stands for none of these ({shown(none_id)})."
        )
    if marker is not None:
        columns["none"] = marker
        del attributes[marker]
    labelled = None
    if own is not None:
        named = True if long.alternative in (given or ()) else options.get("constants")
        labelled = has_constants(own, attributes, none, sets.task, named, str(long.alternative))
    columns.update({f"attribute {name}": name for name in attributes})
    sets.describe(None if own is None else own.cast(pl.String), labelled, attributes, none, none_id)


def _attributes(
    names: Sequence[str], raw: Mapping[str, pl.Series], long: Long, columns: Mapping[str, str], sets: Sets,
    given: Sequence[str] | None,
) -> dict[str, pl.Series]:  # fmt: skip
    """Columns that describe alternatives: those named, or all that differ within tasks; raises DataError."""
    taken = {name: role for role, name in columns.items()}
    for name in given or ():
        if name not in names:
            raise no_column(name, "as profile", names)
        if name in taken and name != long.alternative:
            raise DataError(
                f'column "{shown(name)}" cannot be both {taken[name]} and part of the profile. Leave it out of '
                f"{option('profile', list(given or ()))}, or name another with {option(taken[name], 'NAME')}."
            )
        if raw[name].dtype.is_nested():
            raise DataError(f'column "{shown(name)}" (given as profile) holds lists, and must hold one value a row.')
    if given:
        return {name: raw[name] for name in given if name != long.alternative}
    found = {name: raw[name] for name in names if name not in taken and not raw[name].dtype.is_nested()}
    found = {name: column for name, column in found.items() if _describes(column, sets.task)}
    if noted := [name for name, column in found.items() if is_noted(name, column)]:
        sets.notes.append(f"Not used, as it describes nothing that was shown: {listed(noted)}.")
        found = {name: column for name, column in found.items() if name not in noted}
    counting = [name for name, column in found.items() if counts_within(column, sets.task)]
    if long.alternative is None and counting and sets.n_tasks > 1:
        name, k = counting[0], int(np.bincount(sets.task).max())
        first = int(numbers_of(raw[name], name, "number")[0])
        raise DataError(
            f'column "{shown(name)}" holds {k} numbers, each once in every task of {k}: it may number the '
            f"alternatives, or describe them. Row 1 is about alternative {first} if you say "
            f"{option('alternatives', name)}; it has {shown(name)}={first}, an attribute, if you say "
            f"{option('profile', list(found))}."
        )
    # Where an item stood on the screen describes nothing.
    places = {*map(plain, (*_ON_SCREEN, *(PLACED if long.alternative else ())))}
    return {name: column for name, column in found.items() if name not in counting or plain(name) not in places}


def _make_profiles(name: str, own: pl.Series, attributes: Mapping[str, pl.Series], sets: Sets) -> bool:
    """Whether items are profiles of attributes, and not the alternatives with what always describes them; or it asks.

    Names of alternatives are items unless what is shown with them changes, as in a study in which prices do.
    """
    if not attributes:
        return False
    _, number = distinct([own])
    changing = [one for one, column in attributes.items() if varies_within(column, number)]
    identified = is_called(name, IDENTIFIED)
    if identified and (sets.kind not in CHOICES or not changing):
        if changing:
            sets.notes.append(f'Not used, as it differs for one "{shown(name)}" between rows: {listed(changing)}.')
        return False
    if not changing or plain(name) == "mode" or any(tells(one, OFFERED) for one in changing):
        return True
    codes = own.drop_nulls().cast(pl.String).unique()
    whole = len(codes) <= np.bincount(sets.task).max() and not all(tells(one, NO_ANSWER) for one in changing)
    if whole and (not identified or all(map(is_place, codes))):
        return True
    more = {} if name in sets.columns.values() else {"alternatives": name}
    said = ", ".join(f"{shown(one)}={shown(as_text(attributes[one])[0])}" for one in changing[:3])
    raise DataError(
        f"{listed(changing)} may describe what was shown, or be noted of the row alone. Row 1 is about "
        f'"{shown(own[0])}, {said}" if you say {option("profile", [name, *attributes])}; it is about '
        f'"{shown(own[0])}", as every row of that {shown(name)}, if you say {option("profile", [], **more)}.'
    )


def _tasks_are_whole(long: Long, own: pl.Series | None, attributes: Mapping[str, pl.Series], sets: Sets) -> None:
    """DataError if what may name items comes again in a task, and but once among rows of one further value.

    A task of several people, or several tasks; where two alternatives are the best of one, it is found without.
    """
    naming = {} if long.user else dict(attributes)
    if own is not None:
        naming[str(long.alternative)] = own
    for name, column in attributes.items() if sets.kind not in CHOICES else ():
        _, part = distinct([pl.Series(sets.task), column])
        if np.bincount(part).min() < 2:
            continue
        for one, item in naming.items():
            if one != name and _once_in(item, part) and not _once_in(item, sets.task):
                role = "task" if long.user else "user"
                raise DataError(
                    f'the same "{shown(one)}" stands in several rows of a task, and once with each "{shown(name)}", '
                    f"which may say {'which rows are one task' if long.user else 'who answered'}, or describe what was "
                    f"shown. For the first say {option(role, name)}, for the second "
                    f"{option('profile', sorted({*naming, *attributes}))}."
                )


def _once_in(column: pl.Series, group: IntArray) -> bool:
    """Whether no value comes twice in a group."""
    return len(distinct([pl.Series(group), column])[0]) == len(group)


def _names_items(column: pl.Series, task: IntArray) -> bool:
    """Whether a column holds words that come again in other tasks, and in each task another for every row."""
    word = plain_values(column)
    named = word.dtype == pl.String and not word.null_count() and not word.is_unique().all()
    return named and _once_in(word, task)


def _describes(column: pl.Series, task: IntArray) -> bool:
    """Whether a column tells alternatives of one task apart, and is not the number of the row."""
    return varies_within(column, task) and not numbers_rows(column)


def _kind_of(raw: Mapping[str, pl.Series], long: Long, options: ReadOptions, task: IntArray) -> Kind:
    """What was asked: as said, or by the name of the answer, and best-worst where it holds -1."""
    if long.value is None:
        return "best_worst"
    by_name: Kind = next((one for one, words in KIND_OF.items() if is_called(long.value, words)), "best")
    kind = options.get("kind") or by_name
    if kind == "pairs":
        raise DataError("a table with one row for each alternative cannot hold pairs; leave kind out.")
    if kind == "best" and not raw[long.value].dtype.is_nested():
        said = words_of(raw[long.value])
        words = set(said.drop_nulls().unique().to_list())
        if "-1" in words and words <= {"-1", "0", "1"}:
            # Of all that somebody was asked about any number may be up or down.
            where = [task[(said == one).fill_null(False).to_numpy()] for one in ("1", "-1")]
            once = all((np.bincount(one, minlength=int(task.max()) + 1) == 1).all() for one in where)
            kind = "best_worst" if once or long.task is not None else "rating"
    return kind


def _read_values(raw: Mapping[str, pl.Series], long: Long, sets: Sets, best: str | None) -> None:
    """The level of each alternative; ``best`` is the end of ranks and ratings that was said to be good."""
    if long.best is not None and long.worst is not None:
        most, least = flags(raw[long.best]), flags(raw[long.worst])
        if most is not None and least is not None:  # as find_long has seen
            sets.level = best_worst_levels(most, least)
        return
    value = str(long.value)
    series = raw[value]
    if sets.kind in ("order", "rank"):
        sets.kind, sets.level = "order", levels_of_ranks(numbers_of(series, value, "rank"), value, sets, best)
    elif sets.kind == "rating":
        rating = numbers_of(series, value, "rating")
        sets.level = levels_of_ratings(rating, value, sets, best)
        keep_rated(sets, ~np.isnan(rating))
    elif sets.kind == "best_worst":
        words = words_of(series).drop_nulls().unique()
        if not words.is_in(["-1", "0", "1"]).all():
            raise DataError(f'column "{shown(value)}" must hold 1 for the best, -1 for the worst, and 0 for the rest.')
        number = numbers_of(series, value, "choice")
        sets.level = best_worst_levels(number == 1, number == -1)
    else:
        own = None if long.alternative is None else raw[long.alternative]
        chosen = chosen_of(series, own, sets.task) if sets.kind == "best" else flags(series)
        if chosen is None:
            raise _not_chosen(series, value, own)
        sets.level = chosen_levels(chosen)


def keep_rated(sets: Sets, rated: BoolArray) -> None:
    """Leave out what was not rated."""
    if not rated.all():
        sets.notes.append(f"{counted(int((~rated).sum()), 'row')} without a rating: nothing is said of them.")
        sets.task, sets.level, sets.item = sets.task[rated], sets.level[rated], sets.item.filter(pl.Series(rated))


def chosen_of(series: pl.Series, own: pl.Series | None, task: IntArray) -> BoolArray | None:
    """Which alternatives were chosen, (n,); None where the column does not say.

    Yes and no, 1 and 0; or the name or number of the alternative, in all rows of a task or in one of them; or two words
    of which one stands once in every task, and the other does not.
    """
    marked: BoolArray | None = flags(series)
    chosen: BoolArray
    word = words_of(series)
    n_tasks = int(task.max(initial=-1)) + 1
    said = word.set(word == "", None)
    if own is not None:
        name = words_of(own)
        constant = pl.DataFrame({"task": task, "said": said}).unique().filter(pl.col("said").is_not_null())
        if not constant["task"].is_unique().all():  # what fills the other rows
            constant = constant.filter((pl.col("said") != "0") | pl.col("task").is_unique())
        one_each = bool(constant["task"].is_unique().all()) and constant["said"].is_in(name.unique().to_list()).all()
        once = marked is not None and (np.bincount(task[marked], minlength=n_tasks) == 1).all()
        if one_each and len(constant) and not once and (marked is None or not varies_within(said, task)):
            by_task = np.full(n_tasks, -1, dtype=np.int64)
            by_task[constant["task"].to_numpy()] = np.arange(len(constant))
            of = pl.Series(by_task[task])
            answer = constant["said"].gather(of.set(of < 0, None))
            chosen = (answer == name).fill_null(False).to_numpy()
            return chosen
    if marked is not None:
        return marked
    words = said.drop_nulls().unique()
    marked = None
    if len(words) == 2 and not said.null_count():
        counts = [np.bincount(task[(said == one).to_numpy()], minlength=n_tasks) for one in words]
        once = [bool((count == 1).all()) for count in counts]
        if sum(once) == 1:
            marked = (said == words[once.index(True)]).to_numpy()
    return marked


def _not_chosen(series: pl.Series, value: str, own: pl.Series | None) -> DataError:
    """The error for a column that does not say which alternatives were chosen."""
    odd = words_of(series).drop_nulls().unique().sort()
    near = ""
    if own is not None:
        names = words_of(own).drop_nulls().unique().sort()
        other = odd.filter(~odd.is_in(names.to_list()))
        if len(other):
            odd, near = other, did_you_mean(other[0], names.to_list())
    return DataError(
        f'column "{shown(value)}" must say 1 for the alternative that was chosen and 0 for the others, or name it; it '
        f"holds {', '.join(shown(word) for word in odd.head(3))}.{near} If it holds ranks or ratings, say "
        f"{option('kind', 'rank')} or {option('kind', 'rating')}."
    )


def levels_of_ratings(rating: FloatArray, column: str, sets: Sets, best: str | None) -> IntArray:
    """Levels of ratings, the good end first."""
    low = low_is_good(column, rating, best)
    sets.notes.append(end_told(column, low))
    return ranked_levels(rating) if low else rated_levels(rating)


def levels_of_ranks(rank: FloatArray, column: str, sets: Sets, best: str | None) -> IntArray:
    """Levels of ranks by task, the good end first; what is not ranked is below all that is."""
    odd = np.flatnonzero((rank < 0) | (rank != np.round(rank)) & ~np.isnan(rank))
    if len(odd):
        raise DataError(
            f'column "{shown(column)}" must hold ranks, whole numbers from 1 for the best; other numbers came in '
            f"{counted(len(odd), 'row')} (first: row {odd[0] + 1}, {rank[odd[0]]:g}). If more is better, say "
            f"{option('kind', 'rating')}."
        )
    low = best != "high"
    levels = ranked_levels(rank) if low else rated_levels(rank)
    sets.notes.append(end_told(column, low))
    ranked = ~np.isnan(rank)
    start = 1.0
    if ranked.any() and rank[ranked].min() == 0:
        start = 0.0
        sets.notes.append(f'Ranks in "{shown(column)}" start at 0, the best.')
    if is_called(column, RANKED):
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
