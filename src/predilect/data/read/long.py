"""Long tables: one row for each alternative of a task, with what was chosen, its rank or its rating."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

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
    end_told,
    flags,
    has_constants,
    is_none,
    is_noted,
    is_place,
    is_plain,
    items_described,
    low_is_good,
    nothing_of,
    numbers_of,
    numbers_rows,
    once_in_each,
    plain_values,
    varies_within,
    words_of,
)
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
    """A long table: its columns, and which of them has which role, None where there is none."""

    raw: Mapping[str, pl.Series]
    user: str | None
    task: str | None
    alternative: str | None
    value: str | None
    best: str | None = None
    worst: str | None = None

    @property
    def own(self) -> pl.Series | None:
        """The alternative that each row is about."""
        return None if self.alternative is None else self.raw[self.alternative]

    def chosen(self, task: IntArray) -> BoolArray | None:
        """Which alternatives were chosen, (n,); None where no column says it."""
        return None if self.value is None else chosen_of(self.raw[self.value], self.own, task)

    def tells_itself(self, by_answer: bool = False) -> bool:
        """Whether the values tell, whatever the names, that each row is an alternative of a task.

        Tasks have several rows, each about another alternative, and the answer is one of them, or, unless
        ``by_answer``, alternatives are counted.
        """
        keys = [self.raw[name] for name in (self.user, self.task) if name is not None]
        own = self.own
        if self.task is None or not all(is_plain(one) for one in (*keys, own) if one is not None):
            return False
        _, task = distinct(keys)
        if len(task) < 2 or np.bincount(task).min() < 2 or (own is not None and not _once_in(own, task)):
            return False
        if own is not None and not by_answer and counts_within(own, task):
            return True
        if self.value is None:
            return own is not None and not by_answer
        return not self.raw[self.value].dtype.is_nested() and once_in_each(self.chosen(task), task)


def find_long(raw: Mapping[str, pl.Series], options: ReadOptions) -> Long | None:
    """A long table of some columns, or None if these are none of one."""
    names = list(raw)
    user = named_or_guessed(names, options.get("user"), PEOPLE_OF_SETS)
    if user is not None and options.get("user") is None and len(raw[user]) > 1 and is_plain(raw[user]):
        user = None if raw[user].is_unique().all() else user  # it numbers the rows
    task = named_or_guessed([name for name in names if name != user], options.get("task"), TASKS)
    kind, winner, named = options.get("kind"), options.get("winner"), options.get("alternatives")
    rest = [name for name in names if name not in (user, task, named)]
    best, worst = guess_one(rest, ("best", "is_best", "most")), guess_one(rest, ("worst", "is_worst", "least"))
    both = best is not None and worst is not None and kind in (None, "best_worst") and winner is None
    value = winner
    if value is None and not both:
        words = KIND_OF.values() if kind is None else [(*KIND_OF.get(kind, RANKED), *CHOSEN)]
        value = next((found for one in words if (found := guess_one(rest, one))), None)
        if value is None:
            return None
    rest = [name for name in rest if name not in ((best, worst) if both else (value,))]
    alternative = named if isinstance(named, str) and named in names else guess_one(rest, (*IDENTIFIED, *PLACED))
    if alternative is None and task is None:
        # All rows of a person are one task: ratings of the one thing that is left.
        others = [name for name in rest if not is_called(name, WEIGHT, AVAILABLE)]
        if user is None or len(others) != 1:
            return None
        alternative = others[0]
    if not both:
        return Long(raw, user, task, alternative, value)
    flagged = all({*as_text(raw[str(name)]).drop_nulls()} <= {"0", "1"} for name in (best, worst))
    return Long(raw, user, task, alternative, None, best, worst) if flagged and alternative != best else None


def _answer_is_clear(long: Long, task: IntArray, options: ReadOptions) -> None:
    """DataError if another column can be the answer, or what it names."""
    raw, value, own = long.raw, long.value, long.alternative
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
        if name not in (long.user, long.task, own, value) and is_plain(column) and not is_called(name, AVAILABLE)
        and not tells_note(name)
    ]  # fmt: skip
    others = [name for name in free if varies_within(raw[name], task)]
    found, told = guess_one(others, RATED), "may be ranks"
    if rated:
        found = next((name for name in free if _may_answer(name, long, task)), None)
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


def _may_answer(name: str, long: Long, task: IntArray) -> bool:
    """Whether a column of no name in the lists marks or names one alternative of every task, or ranks them."""
    column = long.raw[name]
    if is_called(name, PLACED, IDENTIFIED, _ON_SCREEN) or numbers_rows(column):
        return False
    if any(once_in_each(chosen_of(column, of, task), task) for of in (None, long.own)) or counts_within(column, task):
        return True
    words = plain_values(column)
    return words.dtype == pl.String and any(
        words.drop_nulls().is_in(other.drop_nulls().unique().to_list()).all()
        for one, other in long.raw.items() if one != name and other.dtype == pl.String
    )  # fmt: skip


def read_long(long: Long, options: ReadOptions) -> Sets:
    """Answers of a long table; raises DataError."""
    raw, names = long.raw, list(long.raw)
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
    available = guess_one([name for name in names if name not in columns.values()], AVAILABLE)
    shown_rows = None if available is None else flags(raw[available])
    if available is not None and shown_rows is not None:
        columns["available"] = available
    sets = Sets(options, "best", task, pl.Series(), np.zeros(0, dtype=np.int64), first, np.bincount(task), columns)
    if long.user is not None:
        sets.person = raw[long.user].gather(first)
    weight = named_or_guessed(names, options.get("weight"), WEIGHT)
    if weight is not None and weight not in columns.values():
        if not varies_within(raw[weight], task):
            columns["weight"] = weight
            sets.weight = raw[weight].gather(first)
        elif options.get("weight") is not None:  # else it may be an attribute
            raise DataError(f'column "{shown(weight)}" is the weight of tasks, but differs between rows of one task.')
    sets.take_context(raw)
    if long.task is not None:
        lost = sets.any_of(keys[-1].is_null().to_numpy())
        sets.unusable.append(("missing id", lost, "the task is missing in {where}. Fill it in."))

    if shown_rows is not None and not shown_rows.all():
        chosen = long.chosen(task)
        gone = np.zeros(sets.n_tasks, dtype=bool) if chosen is None else sets.any_of(~shown_rows & chosen)
        message = f'an alternative was chosen that was not available (column "{shown(available)}") in {{where}}.'
        sets.unusable.append((UNCLEAR, gone, message))
        sets.notes.append(f"{counted(int((~shown_rows).sum()), 'alternative')} not available, and so not shown.")
        long = replace(long, raw={name: column.filter(pl.Series(shown_rows)) for name, column in raw.items()})
        sets.task = task[shown_rows]
    _answer_is_clear(long, sets.task, options)
    sets.kind = _kind_of(long, options, sets.task)
    _name_items(long, sets)
    _read_values(long, sets)
    return sets


def _name_items(long: Long, sets: Sets) -> None:
    """Set the ids of the alternatives: their own, or their profiles."""
    options = sets.options
    none_id = options.get("none", NONE)
    given = options.get("profile")
    columns = sets.columns
    attributes = _attributes(long, sets)
    own = None if long.own is None else clean_ids(long.own, str(long.alternative))
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
            _make_profiles(name, long.raw[name], rest, sets)
    if not attributes or (own is None and not given and all(tells(name, OF_TIME) for name in attributes)):
        raise DataError(
            "found no column that says which alternative a row is about, nor attributes that differ within a task"
            f"{design_asked(list(long.raw))} If there is such a column, name it with {option('alternatives', 'NAME')}."
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


def _attributes(long: Long, sets: Sets) -> dict[str, pl.Series]:
    """Columns that describe alternatives: those named, or all that differ within tasks; raises DataError."""
    raw, names, given = long.raw, list(long.raw), sets.options.get("profile")
    taken = {name: role for role, name in sets.columns.items()}
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


def _kind_of(long: Long, options: ReadOptions, task: IntArray) -> Kind:
    """What was asked: as said, or by the name of the answer, and best-worst where it holds -1."""
    if long.value is None:
        return "best_worst"
    by_name: Kind = next((one for one, words in KIND_OF.items() if is_called(long.value, words)), "best")
    kind = options.get("kind") or by_name
    if kind == "pairs":
        raise DataError("a table with one row for each alternative cannot hold pairs; leave kind out.")
    if kind == "best" and not long.raw[long.value].dtype.is_nested():
        said = words_of(long.raw[long.value])
        words = set(said.drop_nulls().unique().to_list())
        if "-1" in words and words <= {"-1", "0", "1"}:
            # Of all that somebody was asked about any number may be up or down.
            once = all(once_in_each((said == one).fill_null(False).to_numpy(), task) for one in ("1", "-1"))
            kind = "best_worst" if once or long.task is not None else "rating"
    return kind


def _read_values(long: Long, sets: Sets) -> None:
    """Set the level of each alternative."""
    if long.best is not None and long.worst is not None:
        most, least = flags(long.raw[long.best]), flags(long.raw[long.worst])
        if most is not None and least is not None:  # as find_long has seen
            sets.level = best_worst_levels(most, least)
        return
    value = str(long.value)
    series = long.raw[value]
    if sets.kind in ("order", "rank"):
        sets.kind, sets.level = "order", levels_of_ranks(numbers_of(series, value, "rank"), value, sets)
    elif sets.kind == "rating":
        rating = numbers_of(series, value, "rating")
        sets.level = levels_of_ratings(rating, value, sets)
        keep_rated(sets, ~np.isnan(rating))
    elif sets.kind == "best_worst":
        words = words_of(series).drop_nulls().unique()
        if not words.is_in(["-1", "0", "1"]).all():
            raise DataError(f'column "{shown(value)}" must hold 1 for the best, -1 for the worst, and 0 for the rest.')
        number = numbers_of(series, value, "choice")
        sets.level = best_worst_levels(number == 1, number == -1)
    else:
        chosen = long.chosen(sets.task) if sets.kind == "best" else flags(series)
        if chosen is None:
            raise _not_chosen(series, value, long.own)
        if sets.options.get("kind") is None:
            _refuse_points(series, value, long.own, sets.task)
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
    chosen = _said_itself(series, own, task)
    return _of_two_words(series, task) if chosen is None else chosen


def _said_itself(series: pl.Series, own: pl.Series | None, task: IntArray) -> BoolArray | None:
    """As ``chosen_of``, but by two words of any meaning."""
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
        once = once_in_each(marked, task)
        if one_each and len(constant) and not once and (marked is None or not varies_within(said, task)):
            by_task = np.full(n_tasks, -1, dtype=np.int64)
            by_task[constant["task"].to_numpy()] = np.arange(len(constant))
            of = pl.Series(by_task[task])
            answer = constant["said"].gather(of.set(of < 0, None))
            chosen = (answer == name).fill_null(False).to_numpy()
            return chosen
    return marked


def _of_two_words(series: pl.Series, task: IntArray) -> BoolArray | None:
    said = words_of(series)
    words = said.unique()
    if len(words) != 2 or said.null_count() or (said == "").any():
        return None
    of_one = [mark for one in words if once_in_each(mark := (said == one).to_numpy(), task)]
    return of_one[0] if len(of_one) == 1 else None


def _refuse_points(series: pl.Series, value: str, own: pl.Series | None, task: IntArray) -> None:
    """DataError for two numbers that may mark what was chosen, or be points: any but 0 and 1, and 1 and 2."""
    words = words_of(series).unique().sort()
    if words.cast(pl.Float64, strict=False).null_count() or words.to_list() in (["0", "1"], ["1", "2"]):
        return
    if _said_itself(series, own, task) is not None:
        return
    mark = words_of(series).filter(pl.Series(_of_two_words(series, task)))[0]
    low, high = map(shown, sorted(words, key=float))
    raise DataError(
        f'column "{shown(value)}" holds {low} and {high}, where 1 was expected for the alternative that was chosen and '
        f"0 for the others. If they are points or ratings, say {option('kind', 'rating')}; if {shown(mark)} only marks "
        f"what was chosen, say {option('kind', 'best')}."
    )


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


def levels_of_ratings(rating: FloatArray, column: str, sets: Sets) -> IntArray:
    """Levels of ratings, the good end first."""
    low = low_is_good(column, rating, sets.options.get("best"))
    sets.notes.append(end_told(column, low))
    return ranked_levels(rating) if low else rated_levels(rating)


def levels_of_ranks(rank: FloatArray, column: str, sets: Sets) -> IntArray:
    """Levels of ranks by task, the good end first; what is not ranked is below all that is."""
    odd = np.flatnonzero((rank < 0) | (rank != np.round(rank)) & ~np.isnan(rank))
    if len(odd):
        raise DataError(
            f'column "{shown(column)}" must hold ranks, whole numbers from 1 for the best; other numbers came in '
            f"{counted(len(odd), 'row')} (first: row {odd[0] + 1}, {rank[odd[0]]:g}). If more is better, say "
            f"{option('kind', 'rating')}."
        )
    low = sets.options.get("best") != "high"
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
