"""A row an alternative: which rows are one task, what was chosen or how it was ranked or rated, and what was shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import permutations

import numpy as np
import polars as pl

from predilect._base.text import did_you_mean, shown
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.frames import Columns, as_text, clean_ids
from predilect.data.intake import UNCLEAR, counted
from predilect.data.read.assemble import Unclear
from predilect.data.read.columns import first_columns, listed, named_or_guessed, no_column
from predilect.data.read.levels import keep_rated, levels_of_ranks, levels_of_ratings
from predilect.data.read.listed import is_list
from predilect.data.read.names import (
    APPROVED,
    AVAILABLE,
    CHOSEN,
    CONTESTANTS,
    IDENTIFIED,
    KIND_OF,
    MEASURES,
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
    constants_of,
    counts_within,
    distinct,
    flags,
    good_ends,
    holds_numbers,
    is_none,
    is_noted,
    is_place,
    is_plain,
    items_described,
    nothing_of,
    numbers_of,
    numbers_rows,
    once_in,
    once_in_each,
    place_of,
    plain_values,
    values_of,
    varies_within,
    words_of,
)
from predilect.data.read.readings import LIKELY, OPEN, SURE, Reading, refused
from predilect.data.read.sets import (
    CHOICES,
    MOST_FREE,
    MOST_KEYS,
    Sets,
    assembled_sets,
    best_worst_levels,
    chosen_levels,
)
from predilect.errors import DataError

_ON_SCREEN = ("position", "place", "slot", "screenposition", "order", "row", "line")
_MOST_ROWS = 200_000  # of tables whose values are searched for tasks
_MOST_SHOWN = 50  # alternatives of a task that is found so
_MARKS = ("note", "notes")  # in some languages
_MOST = 0.5  # of the tasks have one choice, where a row is an alternative by its answer alone
_SCREEN = ("place", "position")  # the place in an order, or on the screen


@dataclass(frozen=True)
class _Rows:
    """Rows parted into tasks by who answered, a column of tasks, or both."""

    raw: Columns
    said: ReadOptions
    user: str | None
    task: str | None
    say: ReadOptions = field(default_factory=ReadOptions)  # what says so, where the names of the columns do not

    @cached_property
    def available(self) -> str | None:
        """The column that says what was shown."""
        used = (self.user, self.task, self.said.get("winner"), self.said.get("alternatives"))
        name = guess_one([name for name in self.raw if name not in used], AVAILABLE)
        return name if name is not None and flags(self.raw[name]) is not None else None

    @cached_property
    def there(self) -> BoolArray:
        """Which rows were shown, (n,)."""
        found = None if self.available is None else flags(self.raw[self.available])
        return np.ones(self.raw.n_rows, dtype=bool) if found is None else found

    @cached_property
    def keys(self) -> list[pl.Series]:
        """Ids of who answered and of the task."""
        return [clean_ids(self.raw[name], name) for name in (self.user, self.task) if name is not None]

    @cached_property
    def parts(self) -> tuple[IntArray, IntArray]:
        """The first row of each task, and the task of each row."""
        return distinct(self.keys)

    @cached_property
    def group(self) -> IntArray:
        """The task of each row that was shown."""
        return self.parts[1][self.there]

    @cached_property
    def varying(self) -> list[str]:
        """Columns that tell rows of one task apart, and do not only number all rows."""
        names = [name for name in self.raw if name not in (self.user, self.task, self.available)]
        return [name for name in names if not self.raw[name].dtype.is_nested()
                and varies_within(self.column(name), self.group) and not numbers_rows(self.column(name))]  # fmt: skip

    def column(self, name: str) -> pl.Series:
        """A column in the rows that were shown."""
        return self.raw[name] if self.available is None else self.raw[name].filter(pl.Series(self.there))

    @cached_property
    def _chosen(self) -> dict[tuple[str, str | None, bool], BoolArray | None]:
        return {}

    def chosen(self, name: str, own: str | None, *, whole: bool = False) -> BoolArray | None:
        """Which rows a column says were chosen, of those shown or of the ``whole`` table."""
        if (key := (name, own, whole)) not in self._chosen:
            series, of = (self.raw[name], self.raw.get(own or "")) if whole else (
                self.column(name), None if own is None else self.column(own))  # fmt: skip
            task = self.parts[1] if whole else self.group
            self._chosen[key] = chosen_of(series, of, task, self.said.get("none"))
        return self._chosen[key]


@dataclass(frozen=True)
class _Answer:
    """Columns of the answer, and how they are understood; ``fits``: one is chosen in each task, if it is a choice."""

    kind: Kind
    columns: tuple[str, ...]
    sure: int
    say: ReadOptions
    fits: bool = True
    by: str | None = None  # the column that it names or numbers alternatives by, unless that is what they are


def long_readings(raw: Columns, said: ReadOptions) -> Iterator[Reading]:
    """Tables of a row an alternative."""
    named = said.get("alternatives")
    if raw.n_rows < 2 or (
        named is not None and (not isinstance(named, str) or named not in raw or is_list(raw[named]))
    ):
        return
    rows = _by_names(raw, said)
    ways = [] if rows is None else list(_ways(rows))
    if rows is not None and (any(fits for _, fits in ways) or None not in (rows.user, rows.task)):
        yield from (way for way, _ in ways)
        return
    guessed = [*_by_values(raw, said, rows)]
    yield from guessed
    # Where another column parts the rows as the answers need it, what the names tell is only possible.
    yield from (replace(way, sure=OPEN) if guessed else way for way, _ in ways)
    if rows is None and not guessed and None not in _own_and_value(_Rows(raw, said, None, None)):
        yield refused(_without_tasks(raw), OPEN)


def rows_are_alternatives(raw: Columns, said: ReadOptions) -> bool:
    """Whether the values tell, whatever the names, that each row is an alternative of a task.

    Tasks have several rows, each about another alternative, and the answer is one of them, or alternatives are counted.
    """
    rows = _by_names(raw, said) if raw.n_rows > 1 and said.get("kind") != "pairs" else None
    if rows is None or rows.task is None or not all(is_plain(raw[name]) for name in (rows.user, rows.task) if name):
        return False
    size, own, value = np.bincount(rows.group), *_own_and_value(rows)
    if len(size) < 2 or size.min() < 2:
        return False
    if own is not None and not (is_plain(raw[own]) and once_in(rows.column(own), rows.group)):
        return False
    if own is not None and (value is None or counts_within(rows.column(own), rows.group)):
        return True
    plain_value = value is not None and not raw[value].dtype.is_nested()
    return plain_value and once_in_each(rows.chosen(str(value), own), rows.group)


def may_be_alternatives(raw: Columns, said: ReadOptions, answer: str) -> bool:
    """Whether each row may be an alternative of a task that a column answers, or ranks, whatever others are called."""
    said = {**said, "winner": answer}
    rows = _by_names(raw, said)
    if rows is not None and np.bincount(rows.parts[1]).min() > 1 and any(fits for _, fits in _ways(rows)):
        return True
    parted = (counts_within(raw[answer], one.group) for one in _parted(raw, said, rows))
    return any(True for _ in _by_values(raw, said, rows)) or any(parted)


def _by_names(raw: Columns, said: ReadOptions) -> _Rows | None:
    """Rows parted by columns that were named, or that are called so."""
    user = named_or_guessed(raw.names, said.get("user"), PEOPLE_OF_SETS)
    if user is not None and said.get("user") is None and is_plain(raw[user]) and raw[user].is_unique().all():
        user = None  # it numbers the rows
    task = named_or_guessed([name for name in raw if name != user], said.get("task"), TASKS)
    return None if user is None and task is None else _Rows(raw, said, user, task)


def _own_and_value(rows: _Rows) -> tuple[str | None, str | None]:
    """Columns of the alternatives and of the answer, as they were named or are called."""
    named, winner = rows.said.get("alternatives"), rows.said.get("winner")
    free = [name for name in rows.raw if name not in (rows.user, rows.task, winner)]
    own = named if isinstance(named, str) and named in rows.raw else guess_one(free, (*IDENTIFIED, *PLACED))
    return own, winner or _called_so(rows, [name for name in free if name != own], rows.said.get("kind"))


def _without_tasks(raw: Columns) -> DataError:
    """That a table has alternatives and an answer, but nothing says which rows are one task."""
    return DataError(
        f"found no column that says which rows are one task; the columns are {listed(raw.names)}. Name it with "
        f"{option('task', 'NAME')}, or who answered with {option('user', 'NAME')}."
    )


def _by_values(raw: Columns, said: ReadOptions, known: _Rows | None) -> Iterator[Reading]:
    """Readings of rows that columns of any name part into tasks, each with an answer and no alternative twice."""
    by_one = False
    for rows in _parted(raw, said, known):
        by_two = {"user", "task"} <= {*rows.say}
        if by_one and by_two:
            return
        for way, fits in _ways(rows):
            if fits and not (rows.task is None and "choice" in way.sentence):
                by_one = not by_two
                yield way


def _parted(raw: Columns, said: ReadOptions, known: _Rows | None) -> Iterator[_Rows]:
    """Ways in which columns of any name part the rows into tasks of several: by one beside those known, or by two."""
    if len(raw) > MOST_FREE or raw.n_rows > _MOST_ROWS:
        return
    user, task = (None, None) if known is None else (known.user, known.task)
    named = [said.get(key) for key in ("winner", "alternatives", "weight", "context", "time")]
    taken = (user, task, *named, *(said.get("profile") or ()))
    words = (WEIGHT, AVAILABLE, *KIND_OF.values())
    free = [name for name in sorted(raw) if name not in taken and not is_called(name, *words) and _may_part(raw[name])]
    free = free[:MOST_KEYS]
    ways: list[tuple[str | None, str | None]] = [(user, name) for name in free] if task is None else []
    ways += [(name, task) for name in free] if user is None and said.get("user") is not False else []
    for who, what in [*ways, *(permutations(free, 2) if known is None else ())]:
        say: ReadOptions = {"user": who} if who is not None and who != user else {}
        if what is not None and what != task:
            say = {**say, "task": what}
        rows = _Rows(raw, said, who, what, say)
        size = np.bincount(rows.parts[1])
        if size.min() >= 2 and size.max() <= _MOST_SHOWN:
            yield rows


def _may_part(column: pl.Series) -> bool:
    """Whether values are ids that recur."""
    if not is_plain(column) or column.dtype.is_float() or column.dtype == pl.Boolean or column.null_count():
        return False
    return 1 < column.n_unique() <= len(column) / 2


def _ways(rows: _Rows) -> Iterator[tuple[Reading, bool]]:
    """Ways to read the rows of some tasks, and whether they fit: one choice a task, and no alternative twice in it."""
    raw, said = rows.raw, rows.said
    if np.bincount(rows.parts[1]).max() < 2:
        return  # a row a task
    named, (own, value) = said.get("alternatives"), _own_and_value(rows)
    free = [name for name in raw if name not in (rows.user, rows.task, said.get("winner"))]
    if own is None:
        own = _own_by_values(rows, value)
        if own is None and rows.task is None:
            return
    if rows.say and own is not None and rows.raw[own].is_unique().all():
        return  # a table of items
    numbers, given = None, said.get("profile")
    if given and len(given) == 1 and own in (named,) and own is not None and is_called(given[0], IDENTIFIED):
        own, numbers = given[0], own
    elif own is not None and named is None and is_called(own, IDENTIFIED):
        numbers = next((one for one in free if is_called(one, PLACED) and one in rows.varying
                        and counts_within(rows.column(one), rows.group)), None)  # fmt: skip
    for answer in _answers(rows, own, numbers):
        other = rows.chosen(answer.columns[0], numbers) if numbers and answer.kind in CHOICES else None
        chosen = None if other is None else rows.chosen(answer.columns[0], own)
        say: ReadOptions = {**answer.say, "alternatives": str(numbers), "profile": [str(own)]}
        by_number = replace(answer, by=numbers, say=say, fits=once_in_each(other, rows.group))
        if other is not None and (named is not None or chosen is None):
            yield from _shown(rows, own, by_number)
        elif other is None or chosen is None or np.array_equal(chosen, other):
            yield from _shown(rows, own, answer)
        else:
            yield from _shown(rows, own, replace(answer, say={**answer.say, "alternatives": str(own)}))
            yield from _shown(rows, own, by_number)


def _called_so(rows: _Rows, names: Sequence[str], kind: Kind | None) -> str | None:
    """The column that is called as an answer is, and does not hold words where ranks or ratings are."""
    free = [name for name in names if name != rows.available]
    words = KIND_OF.values() if kind is None else [(*KIND_OF.get(kind, RANKED), *CHOSEN)]
    for some in words:
        found = guess_one(free, some)
        if found is not None and (is_called(found, CHOSEN, APPROVED) or _holds_any_number(rows.raw[found])):
            return found
    return None


def _holds_any_number(column: pl.Series) -> bool:
    """Whether any value is a number or a place in words."""
    words = values_of(words_of(column)) if is_plain(column) else pl.Series([], dtype=pl.String)
    return bool(words.cast(pl.Float64, strict=False).is_not_null().any()) or any(map(place_of, words))


def _own_by_values(rows: _Rows, value: str | None) -> str | None:
    """The column of any name that holds what the answer names, or that is all that people ranked or rated."""
    free = [name for name in rows.varying if name != value and not is_called(name, WEIGHT)]
    if len(rows.raw) < MOST_FREE and (value is None or (value not in rows.varying and is_plain(rows.raw[value]))):
        items = [name for name in free if once_in(rows.column(name), rows.group)]
        answers = [value] if value is not None else [
            name for name in rows.raw if items and name not in rows.varying and name not in (rows.user, rows.task)
            and is_plain(rows.raw[name]) and rows.raw[name].n_unique() > 1 and not tells(name, NO_ANSWER | MEASURES)
        ]  # fmt: skip
        named = [name for name in items if any(once_in_each(rows.chosen(one, name), rows.group) for one in answers)]
        return named[0] if len(named) == 1 else None
    if value is None or (rows.task is not None and not rows.say):
        return None
    others, _ = _attributes(rows, None, {value, *_weight(rows, set())})
    others = [name for name in others if not is_called(name, *KIND_OF.values())]
    return others[0] if len(others) == 1 else None


# --- the answer -------------------------------------------------------------------------------------------------------


def _answers(rows: _Rows, own: str | None, numbers: str | None) -> Iterator[_Answer]:
    """Columns that may be the answer: the one that was named, that which is called so, or what values let pass."""
    kind, winner = rows.said.get("kind"), rows.said.get("winner")
    free = [name for name in rows.raw if name not in (rows.user, rows.task, own, rows.available)]
    if winner is not None:
        yield from _of_column(rows, own, winner, SURE)
        return
    best, worst = guess_one(free, ("best", "is_best", "most")), guess_one(free, ("worst", "is_worst", "least"))
    if best is not None and worst is not None and kind in (None, "best_worst"):
        marks = [flags(rows.column(name)) for name in (best, worst)]
        if all(one is not None for one in marks):
            fits = all(once_in_each(one, rows.group) for one in marks)
            yield _Answer("best_worst", (best, worst), SURE, {"kind": "best_worst"}, fits)
        return
    value = _called_so(rows, free, kind)
    rivals = [] if kind is not None or value is None else _rivals(rows, own, value)
    alone = value is not None and kind is None and not rivals and is_called(value, _SCREEN)
    alone = alone and not (own and is_called(own, CONTESTANTS))
    if value is None or alone:
        named = own is not None or any(_names_items(rows.column(name), rows.group) for name in rows.varying)
        for name in _unnamed(rows, own):
            if _may_answer(rows, own, name) and (named or once_in_each(rows.chosen(name, own), rows.group)):
                yield from _of_column(rows, own, name, OPEN)
    if value is None:
        return
    by_own = numbers is None or kind not in (None, "best") or rows.chosen(value, own) is not None
    if not by_own and once_in_each(rows.chosen(value, numbers), rows.group):
        yield _Answer("best", (value,), SURE, {"winner": value, "kind": "best"})
        return
    yield from _of_column(rows, own, value, OPEN if alone else SURE)
    for rival in rivals:
        yield from _of_column(rows, own, rival, SURE)


def _rivals(rows: _Rows, own: str | None, value: str) -> list[str]:
    """Columns that may be the answer as well as one of ranks or ratings."""
    rated = is_called(value, RATED)
    if not rated and not is_called(value, RANKED):
        return []
    free = [name for name in rows.varying if name not in (own, value) and is_plain(rows.raw[name])
            and not tells_note(name)]  # fmt: skip
    if rated:
        others = [name for name in _unnamed(rows, own) if name != value and not tells(name, NO_ANSWER)]
        others = [name for name in others if _may_answer(rows, own, name, strictly=True)]
        return sorted(others, key=lambda name: not once_in_each(rows.chosen(name, own), rows.group))[:1]
    found = guess_one(free, RATED)
    marked = [name for name in free if is_called(value, _SCREEN) and flags(rows.raw[name]) is not None]
    return [found] if found is not None else marked[:1]


def _unnamed(rows: _Rows, own: str | None) -> list[str]:
    """Columns of any name that may be the answer: those that differ within tasks, or name one of the items of each."""
    if own is None or len(rows.raw) > MOST_FREE:
        return [name for name in rows.varying if name != own]
    words = words_of(rows.raw[own]).unique().to_list()
    free = [name for name in rows.raw if name not in (own, rows.user, rows.task, rows.available)]
    return [name for name in free if is_plain(rows.raw[name]) and (name in rows.varying
            or values_of(words_of(rows.raw[name])).is_in(words).all())]  # fmt: skip


def _may_answer(rows: _Rows, own: str | None, name: str, *, strictly: bool = False) -> bool:
    """Whether a column of any name marks or names one alternative of every task, or ranks them, or holds numbers."""
    column = rows.column(name)
    if is_called(name, PLACED, IDENTIFIED, _ON_SCREEN) or not is_plain(column) or column.null_count():
        return False
    if not strictly and not is_called(name, _MARKS) and (
        tells(name, NO_ANSWER) or is_noted(name, column) or is_called(name, WEIGHT)
    ):  # fmt: skip
        return False
    if any(once_in_each(chosen_of(column, of, rows.group), rows.group) for of in (
        None, None if own is None else rows.column(own)
    )) or counts_within(column, rows.group):  # fmt: skip
        return True
    words = plain_values(column)
    if not strictly:
        return words.dtype.is_numeric()
    return words.dtype == pl.String and any(
        words.drop_nulls().is_in(rows.column(one).drop_nulls().unique().to_list()).all()
        for one in rows.varying if one != name and rows.raw[one].dtype == pl.String
    )  # fmt: skip


def _of_column(rows: _Rows, own: str | None, name: str, sure: int) -> Iterator[_Answer]:
    """What a column of answers may mean: as said, by its name, or by its values."""
    said, column = rows.said.get("kind"), rows.raw[name]
    known = next((one for one, words in KIND_OF.items() if is_called(name, words)), None)
    words = set() if column.dtype.is_nested() else {*values_of(words_of(column))}
    if column.dtype.is_nested():
        kinds: list[Kind] = []
    elif said is not None:
        kinds = [_signed(rows, name) or said if said == "best" else "rank" if said == "order" else said]
    elif known not in (None, "best"):
        kinds = [known]
    else:
        kinds = _kinds_by_values(rows, own, name, known is not None)
    for kind in kinds:
        say: ReadOptions = {"winner": name, "kind": said or kind}
        chosen = rows.chosen(name, own) if kind == "best" else None
        size = np.zeros(0) if chosen is None else np.bincount(rows.group[chosen], minlength=len(rows.parts[0]))
        unsure = said is None and (
            (known is None and kind not in CHOICES)
            or (known == "best" and "best" not in kinds and not words <= {"-1", "0", "1"})  # points, numbers
            or (kind == "best" and chosen is None)  # it says nothing of alternatives
            or (own is None and chosen is not None and np.mean(size == 1) <= _MOST)
        )
        less = OPEN if unsure else sure
        if kind in ("rank", "rating"):
            numbers = holds_numbers(column)
            values: FloatArray = numbers_of(column, name, kind) if numbers else np.zeros(0)
            end = rows.said.get("best")
            for one in good_ends(name, values, end, known is not None) if kind == "rating" else (end or "low",):
                yield _Answer(kind, (name,), less, {**say, "best": one})
            continue
        fits = kind != "best" or once_in_each(chosen, rows.group) or rows.said.get("none") is not None
        yield _Answer(kind, (name,), less, say, fits)


def _kinds_by_values(rows: _Rows, own: str | None, name: str, known: bool) -> list[Kind]:
    """What the values of a column may mean whose name does not tell ranks from choices; the likeliest first."""
    column = rows.column(name)
    if (signed := _signed(rows, name)) is not None:
        return [signed]
    chosen = rows.chosen(name, own)
    if chosen is not None and (once_in_each(chosen, rows.group) or (known and not rows.say)):
        points = _may_be_points(column, None if own is None else rows.column(own), rows)
        return ["best", "rating"] if points else ["best"]
    if chosen is not None and (not known or rows.say):
        return ["approval"]
    if not holds_numbers(column):
        return ["best"]
    counted_off = counts_within(column, rows.group)
    return ["rank", "rating"] if counted_off else ["rating"]


def _signed(rows: _Rows, name: str) -> Kind | None:
    """What a column of 1, 0 and -1 holds: the best and the worst, or votes."""
    said = words_of(rows.column(name))
    words = {*said.drop_nulls().unique()}
    if "-1" not in words or not words <= {"-1", "0", "1"}:
        return None
    # Of all that somebody was asked about any number may be up or down.
    once = all(once_in_each((said == one).fill_null(False).to_numpy(), rows.group) for one in ("1", "-1"))
    return "best_worst" if once or rows.task is not None else "rating"


def chosen_of(series: pl.Series, own: pl.Series | None, task: IntArray, none: str | None = None) -> BoolArray | None:
    """Which alternatives were chosen, (n,); None where the column does not say.

    Yes and no, 1 and 0; or the name or number of the alternative, in all rows of a task or in one of them; or two words
    of which one stands once in every task, and the other does not. ``none``: a word for none of them.
    """
    chosen = _said_itself(series, own, task, none)
    return _of_two_words(series, task) if chosen is None else chosen


def _said_itself(series: pl.Series, own: pl.Series | None, task: IntArray, none: str | None) -> BoolArray | None:
    """As ``chosen_of``, but by two words of any meaning."""
    marked = flags(series)
    if own is None:
        return marked
    word, name = words_of(series), words_of(own)
    said = word.set(((word == "") | (word == (none or ""))).fill_null(False), None)
    constant = pl.DataFrame({"task": task, "said": said}).unique().filter(pl.col("said").is_not_null())
    if not constant["task"].is_unique().all():  # what fills the other rows
        constant = constant.filter((pl.col("said") != "0") | pl.col("task").is_unique())
    one_each = bool(constant["task"].is_unique().all()) and constant["said"].is_in(name.unique().to_list()).all()
    if not (one_each and len(constant)) or once_in_each(marked, task):
        return marked
    if marked is not None and varies_within(said, task):
        return marked
    by_task = np.full(int(task.max(initial=-1)) + 1, -1, dtype=np.int64)
    by_task[constant["task"].to_numpy()] = np.arange(len(constant))
    of = pl.Series(by_task[task])
    chosen: BoolArray = (constant["said"].gather(of.set(of < 0, None)) == name).fill_null(False).to_numpy()
    return chosen


def _of_two_words(series: pl.Series, task: IntArray) -> BoolArray | None:
    said = words_of(series)
    words = values_of(said)
    if len(words) != 2 or said.null_count() or (said == "").any():
        return None
    of_one = [mark for one in words if once_in_each(mark := (said == one).to_numpy(), task)]
    return of_one[0] if len(of_one) == 1 else None


def _may_be_points(series: pl.Series, own: pl.Series | None, rows: _Rows) -> bool:
    """Whether two numbers may mark what was chosen, or be points: any but 0 and 1, and 1 and 2."""
    words = words_of(series).unique().sort()
    if words.cast(pl.Float64, strict=False).null_count() or words.to_list() in (["0", "1"], ["1", "2"]):
        return False
    return _said_itself(series, own, rows.group, rows.said.get("none")) is None


def _not_chosen(series: pl.Series, value: str, own: pl.Series | None) -> DataError:
    """The error for a column that does not say which alternatives were chosen."""
    odd = values_of(words_of(series)).sort()
    near = ""
    if own is not None:
        names = values_of(words_of(own)).sort()
        other = odd.filter(~odd.is_in(names.to_list()))
        if len(other):
            odd, near = other, did_you_mean(other[0], names.to_list())
    message = (
        f'column "{shown(value)}" must say 1 for the alternative that was chosen and 0 for the others, or name it; it '
        f"holds {', '.join(shown(word) for word in odd.head(3))}.{near}"
    )
    kinds: tuple[Kind, ...] = ("rank", "rating")
    return Unclear(message, [(f"If it holds {kind}s, say {option('kind', kind)}.", {"kind": kind}) for kind in kinds])


# --- what was shown ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shown:
    """What alternatives are: items by the column ``own``, or what ``attributes`` describe, with constants or without.

    ``labelled``: whether the column that names them is part of what describes them; None if it only counts places.
    """

    own: str | None
    attributes: tuple[str, ...] = ()
    by_profile: bool = False
    labelled: bool | None = None
    notes: tuple[str, ...] = ()


def _shown(rows: _Rows, own: str | None, answer: _Answer) -> Iterator[tuple[Reading, bool]]:
    """Readings of one answer, by what alternatives may be."""
    given = None if answer.by is not None else rows.said.get("profile")
    used = {*answer.columns, rows.user, rows.task, own, rows.available, *_weight(rows, {*answer.columns, own})}
    used |= {rows.said.get("context"), rows.said.get("time")}
    fits, sure = answer.fits, answer.sure
    if rows.say:  # the names of columns do not tell which rows are one task
        sure = LIKELY if own and answer.kind in CHOICES and sure == SURE else OPEN
    if own is not None:
        if rows.said.get("alternatives") is None and not is_called(own, IDENTIFIED, PLACED):
            sure = min(sure, LIKELY)
        fits = fits and once_in(rows.column(own), rows.group)
    elif answer.kind not in CHOICES:
        fits = fits and any(_names_items(rows.column(name), rows.group) for name in rows.varying)
    ways: list[tuple[_Shown, ReadOptions]] = []
    if given:
        ways = [(_Shown(own, tuple(name for name in given if name != own), by_profile=True), {})]
    else:
        attributes, notes = _attributes(rows, own, used)
        if given is None and not _whole(rows, own, attributes, answer.kind):
            fits, sure = False, min(sure, OPEN)
        ways = list(_kinds_of_items(rows, own, attributes, answer, given is None))
        ways = [(replace(one, notes=(*notes, *one.notes)), say) for one, say in ways]
    if not ways:
        yield _reading(rows, answer, _Shown(own), {}, sure), fits
    for one, say in ways:
        labels = _labels(rows, one)
        for labelled in labels:
            also: ReadOptions = {} if len(labels) < 2 else {"constants": bool(labelled)}
            yield _reading(rows, answer, replace(one, labelled=labelled), {**say, **also}, sure), fits


def _labels(rows: _Rows, one: _Shown) -> tuple[bool | None, ...]:
    """Whether alternatives may have constants of their own, as of ``constants_of``."""
    if one.own is None or not one.by_profile or not {*one.attributes} <= {*rows.raw}:
        return (None,)
    given = rows.said.get("profile") or ()
    said = True if one.own in given else rows.said.get("constants")
    own = rows.column(one.own)
    none = is_none(own, rows.said.get("none", NONE))
    return constants_of(own, {name: rows.column(name) for name in one.attributes}, none, rows.group, said, one.own)


def _attributes(rows: _Rows, own: str | None, used: set[str | None]) -> tuple[list[str], list[str]]:
    """Columns that describe alternatives, all that differ within tasks but for what is noted of a row, and a note."""
    found = [name for name in rows.varying if name not in used]
    noted = [name for name in found if is_noted(name, rows.column(name))]
    sentence = [f"Not used, as it describes nothing that was shown: {listed(noted)}."] if noted else []
    # Where an item stood on the screen describes nothing.
    places = {*map(plain, (*_ON_SCREEN, *(PLACED if own else ())))}
    return [name for name in found if name not in noted and not (
        plain(name) in places and counts_within(rows.column(name), rows.group))], sentence  # fmt: skip


def _whole(rows: _Rows, own: str | None, attributes: Sequence[str], kind: str) -> bool:
    """Whether what may name items does not come again in a task, and but once among rows of one further value.

    Else a task is one of several people, or several tasks. Where two alternatives are the best of one, it is found
    without.
    """
    naming = [*([own] if own else []), *([] if rows.user else attributes)]
    for name in attributes if kind not in CHOICES else ():
        _, part = distinct([pl.Series(rows.group), rows.column(name)])
        if np.bincount(part).min() < 2:
            continue
        for one in naming:
            if one != name and once_in(rows.column(one), part) and not once_in(rows.column(one), rows.group):
                return False
    return True


def _kinds_of_items(
    rows: _Rows, own: str | None, attributes: list[str], answer: _Answer, free: bool
) -> Iterator[tuple[_Shown, ReadOptions]]:
    """What alternatives may be: items that have names, or what attributes describe."""
    if own is not None:
        yield from _items_or_profiles(rows, own, attributes, answer.kind, {} if free else None)
        return
    if not attributes or all(tells(name, OF_TIME) for name in attributes):
        return
    naming = [name for name in attributes if _names_items(rows.column(name), rows.group)]
    for name in naming if len(naming) == 1 else ():
        rest = [one for one in attributes if one != name]
        ways = list(_items_or_profiles(rows, name, rest, answer.kind, {"alternatives": name}))
        yield from [way for way in ways if not way[0].by_profile] if len(ways) > 1 else []
    counting = [name for name in attributes if counts_within(rows.column(name), rows.group)]
    several = len(rows.parts[0]) > 1
    for name in counting[:1] if several else ():
        rest = [one for one in attributes if one != name]
        for one, say in _items_or_profiles(rows, name, rest, answer.kind, {}):
            yield one, {**say, "alternatives": name}
    yield _Shown(None, tuple(attributes), by_profile=True), {"profile": attributes}


def _items_or_profiles(
    rows: _Rows, own: str, attributes: list[str], kind: str, say: ReadOptions | None
) -> Iterator[tuple[_Shown, ReadOptions]]:
    """Items by a column, with what always describes them, or profiles of attributes that change, as prices do.

    ``say``: what else says that these are items; None if it was said.
    """
    _, number = distinct([rows.column(own)])
    changing = [one for one in attributes if varies_within(rows.column(one), number)]
    fixed = tuple(name for name in attributes if name not in changing)
    identified = is_called(own, IDENTIFIED)
    if say is None or not attributes or (identified and (kind not in CHOICES or not changing)):
        sentence = f'Not used, as it differs for one "{shown(own)}" between rows: {listed(changing)}.'
        yield _Shown(own, fixed, notes=(sentence,) if changing and say is not None else ()), {}
        return
    codes = values_of(as_text(rows.column(own)))
    whole = len(codes) <= np.bincount(rows.group).max() and not all(tells(one, NO_ANSWER) for one in changing)
    offered = not changing or plain(own) == "mode" or any(tells(one, OFFERED) for one in changing)
    profiles = _Shown(own, tuple(attributes), by_profile=True)
    if offered or (whole and (not identified or all(map(is_place, codes)))):
        yield profiles, {}
        return
    yield profiles, {"profile": [own, *attributes]}
    yield _Shown(own, fixed), {**say, "profile": []}


def _names_items(column: pl.Series, task: IntArray) -> bool:
    """Whether a column holds words that come again in other tasks, and in each task another for every row."""
    word = plain_values(column)
    named = word.dtype == pl.String and not word.null_count() and not word.is_unique().all()
    return named and once_in(word, task)


# --- the reading ------------------------------------------------------------------------------------------------------

_VERBS = {"best": "chosen by", "best_worst": "the best and the worst by", "rank": "ranked by", "rating": "rated by",
          "approval": "approved of by"}  # fmt: skip


def _reading(rows: _Rows, answer: _Answer, alternatives: _Shown, say: ReadOptions, sure: int) -> Reading:
    said: ReadOptions = {**rows.say, **answer.say, **say}
    sentence = f"a row an alternative, {_VERBS[answer.kind]} {listed(answer.columns)}"
    if answer.kind in CHOICES:
        sentence = sentence.replace("a row an", "a choice, a row an", 1)
    if "best" in answer.say:
        sentence += f", {answer.say['best']} is good"
    if rows.say:
        sentence += f", tasks by {listed([name for name in (rows.user, rows.task) if name])}"
    if alternatives.by_profile:
        sentence += f", described by {first_columns(alternatives.attributes)}"
    elif alternatives.own:
        sentence += f', about "{shown(alternatives.own)}"'
    made = partial(assembled_sets, rows.raw, {**rows.said, **said}, _built, rows, answer, alternatives)
    return Reading(sentence, said, made, sure)


def _weight(rows: _Rows, taken: set[str | None]) -> list[str]:
    """The column of weights of tasks, if there is one."""
    name = named_or_guessed(rows.raw.names, rows.said.get("weight"), WEIGHT)
    if name is None or name in taken or name in (rows.user, rows.task):
        return []
    # One that differs may be an attribute.
    return [name] if rows.said.get("weight") or not varies_within(rows.raw[name], rows.parts[1]) else []


def _built(rows: _Rows, answer: _Answer, alternatives: _Shown, options: ReadOptions) -> Sets:
    """The answers of one way to read a table; DataError where its rows mean nothing."""
    raw, own = rows.raw, alternatives.own
    first, task = rows.parts
    roles = (("user", rows.user), ("task", rows.task), ("alternatives", own), *zip(
        ("winner",) if len(answer.columns) == 1 else ("best", "worst"), answer.columns, strict=True
    ), ("available", rows.available))  # fmt: skip
    columns = {role: name for role, name in roles if name is not None}
    sets = Sets(options, answer.kind, task, pl.Series(), np.zeros(0, dtype=np.int64), first, np.bincount(task), columns)
    if rows.user is not None:
        sets.person = raw[rows.user].gather(first)
    for weight in _weight(rows, {*columns.values()}):
        if varies_within(raw[weight], task):
            raise DataError(f'column "{shown(weight)}" is the weight of tasks, but differs between rows of one task.')
        columns["weight"], sets.weight = weight, raw[weight].gather(first)
    sets.take_context(raw)
    if rows.task is not None:
        lost = sets.any_of(rows.keys[-1].is_null().to_numpy())
        sets.unusable.append(("missing id", lost, "the task is missing in {where}. Fill it in."))
    if not rows.there.all():
        chosen = (
            rows.chosen(answer.columns[0], answer.by or own, whole=True)
            if answer.kind in ("best", "approval")
            else None
        )
        gone = np.zeros(sets.n_tasks, dtype=bool) if chosen is None else sets.any_of(~rows.there & chosen)
        sentence = (
            f'an alternative was chosen that was not available (column "{shown(str(rows.available))}") in {{where}}.'
        )
        sets.unusable.append((UNCLEAR, gone, sentence))
        sets.notes.append(f"{counted(int((~rows.there).sum()), 'alternative')} not available, and so not shown.")
    sets.task = rows.group
    sets.notes += alternatives.notes
    _name_items(rows, alternatives, sets, _levels_of(rows, answer, own, sets))
    return sets


def _name_items(rows: _Rows, alternatives: _Shown, sets: Sets, rated: BoolArray) -> None:
    """Set the ids of the alternatives: their own, or their profiles; those that were not rated are left out."""
    none_id = sets.options.get("none", NONE)
    own = None if alternatives.own is None else clean_ids(rows.column(alternatives.own), alternatives.own)
    attributes = {name: _described(rows, name) for name in alternatives.attributes}
    none = np.zeros(len(sets.task), dtype=bool) if own is None else is_none(own, none_id)
    marker = guess_one(list(attributes), ("none", "no_choice", "opt_out", "none_option"))
    if marker is not None and (marked := flags(attributes[marker])) is not None:
        none |= marked
        sets.columns["none"] = marker
        del attributes[marker]
    if alternatives.by_profile and attributes:
        outside, marker = nothing_of(attributes, sets.task)
        if outside.any():
            none |= outside
            sets.notes.append(
                f"An alternative of each task has no attributes, and stands for none of these ({shown(none_id)})."
            )
        if marker is not None:
            sets.columns["none"] = marker
            del attributes[marker]
    if sets.kind == "best" and not none.any():
        if "none" in sets.options:
            own, attributes, none = _with_none(sets, own, attributes, none_id)
        else:
            sets.none_is_open = True
    if not alternatives.by_profile:
        if own is None:
            raise DataError(
                "found no column that says which alternative a row is about, nor attributes that differ within a task; "
                f"the columns are {listed(rows.raw.names)}. If there is such a column, name it with "
                f"{option('alternatives', 'NAME')}; if a table of its own says what was shown, a design, give it too: "
                f"{option('design', 'DESIGN')}."
            )
        if attributes:
            sets.profiles = items_described(own, attributes)
            sets.columns.update({f"feature {name}": name for name in attributes})
        sets.item = own.cast(pl.String).set(pl.Series(none), none_id) if none.any() else own
    else:
        sets.columns.update({f"attribute {name}": name for name in attributes})
        label = None if own is None else own.cast(pl.String)
        sets.describe(label, alternatives.labelled if label is not None else None, attributes, none, none_id)
    keep_rated(sets, rated)


def _described(rows: _Rows, name: str) -> pl.Series:
    """A column that was named as what describes alternatives, or was found to."""
    raw = rows.raw
    if name not in raw:
        raise no_column(name, "as profile", raw.names)
    taken = {column: role for role, column in (("user", rows.user), ("task", rows.task)) if column is not None}
    if name in taken:
        rest = [one for one in rows.said.get("profile") or () if one != name]
        raise DataError(
            f'column "{shown(name)}" cannot be both {taken[name]} and part of the profile. Leave it out: '
            f"{option('profile', rest)}, or name another with {option(taken[name], 'NAME')}."
        )
    if raw[name].dtype.is_nested():
        raise DataError(f'column "{shown(name)}" (given as profile) holds lists, and must hold one value a row.')
    return rows.column(name)


def _with_none(
    sets: Sets, own: pl.Series | None, attributes: dict[str, pl.Series], none_id: str
) -> tuple[pl.Series | None, dict[str, pl.Series], BoolArray]:
    """One more alternative of every task, none of these, which is chosen where no other one is."""
    n, old = sets.n_tasks, len(sets.task)
    level = np.where(sets.any_of(sets.level == 0), 1, 0)
    sets.task, sets.level = np.append(sets.task, np.arange(n)), np.append(sets.level, level)
    sets.notes.append(f"{shown(none_id)} was one more alternative of each task, chosen where no other one was.")
    if own is not None:
        own = pl.concat([as_text(own), pl.Series([none_id] * n)])
    longer = {name: column.extend_constant(None, n) for name, column in attributes.items()}
    none = np.append(np.zeros(old, dtype=bool), np.ones(n, dtype=bool))
    return own, longer, none


def _levels_of(rows: _Rows, answer: _Answer, own: str | None, sets: Sets) -> BoolArray:
    """Set the level of each alternative; which of them were rated, (n,)."""
    value = answer.columns[0]
    series, every = rows.column(value), np.ones(len(sets.task), dtype=bool)
    if len(answer.columns) > 1:
        most, least = (flags(rows.column(name)) for name in answer.columns)
        if most is not None and least is not None:  # as _answers has seen
            sets.level = best_worst_levels(most, least)
    elif answer.kind == "rank":
        end = answer.say.get("best") or "low"
        sets.kind, sets.level = "order", levels_of_ranks(numbers_of(series, value, "rank"), value, sets, end)
    elif answer.kind == "rating":
        rating = numbers_of(series, value, "rating")
        sets.level = levels_of_ratings(rating, value, sets, answer.say.get("best") or "high")
        every = ~np.isnan(rating)
    elif answer.kind == "best_worst":
        words = values_of(words_of(series))
        if not words.is_in(["-1", "0", "1"]).all():
            raise DataError(f'column "{shown(value)}" must hold 1 for the best, -1 for the worst, and 0 for the rest.')
        number = numbers_of(series, value, "choice")
        sets.level = best_worst_levels(number == 1, number == -1)
    else:
        chosen = rows.chosen(value, answer.by or own) if answer.kind == "best" else flags(series)
        if chosen is None:
            raise _not_chosen(series, value, None if own is None else rows.column(own))
        sets.level = chosen_levels(chosen)
    return every
