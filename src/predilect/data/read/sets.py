"""Answers about sets of alternatives, checked, and coded as canonical rows.

An answer of any kind puts the alternatives that were shown on levels, 0 the best: a choice has the chosen one above all
others, best-worst one above and one below the rest, an order a level each, the first m of k all others on one more
level, ratings a level for each value. Rows are the cover relations, from each level to the next lower one; what follows
from them is no row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._base.text import either, shown
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.canonical import ALONE, AnswerColumns, canonical_answers, repeats
from predilect.data.frames import Columns, clean_ids
from predilect.data.intake import (
    ALL_ALIKE,
    MISSING_ATTRIBUTE,
    NO_WEIGHT,
    NOT_ANSWERED,
    ONE_ALTERNATIVE,
    TAKEN_APART,
    TWICE,
    UNCLEAR,
    Intake,
    counted,
    examples,
    from_columns,
    nothing_left,
    task_sentence,
)
from predilect.data.read.assemble import (
    Assembled,
    Usable,
    map_items,
    used_only,
    weights_of,
)
from predilect.data.read.columns import named_or_guessed
from predilect.data.read.names import PEOPLE_OF_SETS, TASKS, WEIGHT
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.profiles import NONE, missing_in, profiles_of
from predilect.data.read.times import times_of
from predilect.data.vocabulary import EVERYONE, Vocabulary
from predilect.errors import DataError

CHOICES = ("best", "best_worst")  # kinds in which exactly one alternative is the best of each task


@dataclass
class Sets(Usable):
    """Alternatives of all tasks under each other, and what belongs to each task.

    ``task``, ``item``, ``level`` (0 the best), shapes (n,): task of each alternative, from 0; ``first``, ``n_rows``,
    ``person``, ``weight``, ``context``, ``time``, shapes (n_tasks,): its first row in the table, how many rows it has
    there, who answered, how often, about what, when. ``unusable``: reasons for which tasks cannot be used, by task,
    (n_tasks,) each, with what to say of them. ``profiles``: item and attributes of each alternative that has any;
    ``by_profile``: items are these. ``heeded``: options of pairs that were asked for.
    ``none_is_open``: whether people may have chosen none of those shown.
    """

    options: ReadOptions
    kind: str
    task: IntArray
    item: pl.Series
    level: IntArray
    first: IntArray
    n_rows: IntArray
    columns: dict[str, str]
    person: pl.Series | None = None
    weight: pl.Series | None = None
    context: pl.Series | None = None
    time: pl.Series | None = None
    profiles: pl.DataFrame | None = None
    by_profile: bool = False
    heeded: tuple[str, ...] = ()
    unusable: list[tuple[str, BoolArray, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    none_is_open: bool = False
    noun = "task"

    def __post_init__(self) -> None:
        self.reason = np.zeros(self.n_tasks, dtype=np.int8)

    def rows_of(self, bad: BoolArray) -> IntArray:
        """The first rows of tasks."""
        return self.first[bad]

    def take_context(self, raw: Mapping[str, pl.Series]) -> None:
        """Contexts and times of the tasks by their first rows, where a column of them was named."""
        if (name := self.options.get("context")) is not None:
            self.columns["context"] = name
            self.context = raw[name].gather(self.first)
        if (name := self.options.get("time")) is not None:
            self.columns["time"] = name
            self.time = raw[name].gather(self.first)

    def describe(
        self, own: pl.Series | None, labelled: bool | None, attributes: Mapping[str, pl.Series], none: BoolArray,
        none_id: str,
    ) -> None:  # fmt: skip
        """Make items of the profiles of alternatives; ``own`` and ``labelled`` as of ``has_constants``."""
        label = None if labelled is None else own
        lacking, words = missing_in(attributes, label, none)
        message = f"an attribute ({words}) is missing in {{where}}. Fill it in."
        of_tasks = self.any_of(lacking)
        if label is None and of_tasks.all():
            how = either("-c alternatives=COLUMN", 'columns={"alternatives": "COLUMN"}')
            message += f" If only some alternatives have it, say which column names them: {how}."
        self.unusable.append((MISSING_ATTRIBUTE, of_tasks, message))
        self.item, self.profiles = profiles_of(own if labelled else None, attributes, none, none_id)
        self.by_profile = True

    def take(self, rows: pl.DataFrame, level: IntArray) -> None:
        """Take the alternatives of rows with their task and item, and the level of each."""
        self.task, self.item, self.level = rows["task"].to_numpy(), rows["item"], level

    @property
    def n_tasks(self) -> int:
        """Number of tasks, usable or not."""
        return len(self.first)

    def count(self, alternatives: BoolArray | None = None) -> IntArray:
        """How many alternatives tasks have, of all or of some; (n_tasks,)."""
        return np.bincount(self.task if alternatives is None else self.task[alternatives], minlength=self.n_tasks)

    def tasks_of(self, task: pl.Series) -> BoolArray:
        """Tasks that are among some."""
        return np.bincount(task.to_numpy(), minlength=self.n_tasks) > 0

    def any_of(self, alternatives: BoolArray) -> BoolArray:
        """Tasks with any of some alternatives."""
        return self.count(alternatives) > 0


MOST_FREE = 200  # columns of a table of which any may be the answer, or part the rows
MOST_KEYS = 12  # columns of other names that are looked at for what parts the rows into tasks


def assembled_sets(raw: Columns, options: ReadOptions, build: Callable[..., Sets], *what: Any) -> Assembled:
    """Canonical rows of the answers that ``build`` makes of ``what`` by some options."""
    return assemble_sets(build(*what, options), raw.names, raw.n_rows)


def assemble_sets(sets: Sets, names: Sequence[str], n_read: int) -> Assembled:
    """Vocabularies, rows and intake as of ``assemble``, with the table of items where alternatives were described.

    Raises DataError for tasks that mean nothing clear and that no option leaves out, or if nothing usable remains.
    """
    options = sets.options
    _refuse_pair_options(options, sets.heeded)
    for why, bad, message in sets.unusable:
        sets.leave_out(bad, why, message)
    sets.item = clean_ids(sets.item, sets.columns.get("alternatives", "alternatives"))
    bad = sets.any_of(sets.item.is_null().to_numpy())
    if sets.person is not None:
        sets.person = clean_ids(sets.person, sets.columns["user"])
        bad |= sets.person.is_null().to_numpy()
    sets.leave_out(bad, "missing id", "an id is missing in {where}. Fill it in.")
    items = Vocabulary(sets.item.drop_nulls())
    code = items.codes(sets.item, unknown="minus_one")
    if options.get("item_map") is not None:
        items, table = map_items(items, options["item_map"] or {})
        code = np.where(code < 0, code, table[code])
    copies = _copies(sets, code) if sets.by_profile else None
    if copies is None:
        _leave_out_repeated(sets, code, items)
    _leave_out_uninformative(sets)

    weight = np.ones(sets.n_tasks)
    if sets.weight is not None:
        weight = weights_of(sets.weight, sets.columns["weight"], sets.reason)
        sets.leave_out(weight == 0, NO_WEIGHT)
    left_out, used = sets.left_out(sets.n_rows), sets.in_use
    if not used.any():
        raise DataError(f"{nothing_left(left_out)} Check the columns: {from_columns(sets.columns)}.")
    keep = used[sets.task]
    task, level, code = sets.task[keep], sets.level[keep], code[keep]
    items, code, unused_items = used_only(items, code.astype(np.int32))
    people, who, unused_users = Vocabulary([EVERYONE]), np.zeros(sets.n_tasks, dtype=np.int32), ()
    if sets.person is not None:
        every = Vocabulary(sets.person.drop_nulls())
        people, who[used], unused_users = used_only(every, every.codes(sets.person, unknown="minus_one")[used])
    over, under = cover(task, level)
    of = task[over]
    several = np.bincount(of, minlength=sets.n_tasks) > 1
    both = None
    if copies is not None:
        copies = copies[keep]
        both = np.stack([copies[over], copies[under]], axis=1)
        several[of[both.any(axis=1)]] = True
    # A task of one row is a pair, as any other.
    held = np.where(several[of], of, ALONE).astype(np.int32)
    contexts, context = None, None
    if sets.context is not None:
        ids = clean_ids(sets.context, sets.columns["context"])
        contexts = Vocabulary(ids.drop_nulls()) if ids.null_count() < len(ids) else None
        context = None if contexts is None else contexts.codes(ids, unknown="minus_one")[of]
    time, clock = None, ""
    if sets.time is not None:
        of_tasks, clock = times_of(sets.time, sets.columns["time"], used)
        time = of_tasks[of]
    won = np.ones(len(of), dtype=np.int8)
    answers = canonical_answers(
        AnswerColumns(who[of], code[over], code[under], won, weight[of], held, context=context, copies=both, time=time)
    )
    profiles = sets.profiles
    if profiles is not None:
        known = items.codes(profiles["item"], unknown="minus_one") >= 0
        profiles = profiles.filter(pl.Series(known)).sort("item")
    intake = Intake(
        rows_read=n_read,
        left_out=left_out,
        duplicates=len(of) - len(answers.user),
        columns=sets.columns,
        ignored_columns=tuple(name for name in names if name not in sets.columns.values()),
        winner_reading="",
        unused_items=unused_items,
        unused_users=unused_users,
        no_sides=TAKEN_APART,
        tasks_read=_counted_kinds(sets.kind, task),
        attributes=() if profiles is None else tuple(profiles.columns[1:]),
        notes=tuple(sets.notes),
        example=_example(sets, used, task, level, sets.item.filter(pl.Series(keep))),
    )
    return Assembled(
        people, items, sets.person is not None, answers, intake, contexts, item_table=profiles, clock=clock
    )


def _example(sets: Sets, used: BoolArray, task: IntArray, level: IntArray, item: pl.Series) -> tuple[str, str]:
    """The answer that stands first in the table, of those in use."""
    first = int(np.flatnonzero(used)[np.argmin(sets.first[used])])
    mine = task == first
    levels = [item.filter(pl.Series(mine & (level == one))).to_list() for one in np.unique(level[mine])]
    who = None if sets.person is None else sets.person[first]
    return examples(who, lambda one: task_sentence(int(sets.first[first]), one, sets.kind, levels))


_OF_PAIRS = ("left", "right", "covariates", "side", "ties", "winner_is")


def _refuse_pair_options(options: ReadOptions, heeded: Sequence[str]) -> None:
    asked = {name: value for name, value in options.items() if name in _OF_PAIRS and name not in heeded}
    said = {name: value for name, value in asked.items() if value and value != "where known"}
    given = next((option(name, value) for name, value in said.items()), None)
    if given is not None:
        raise DataError(
            f"{given} is about pairs, and the table was read as answers about sets of alternatives. Leave it out, or "
            f"say {option('kind', 'pairs')}."
        )


def _copies(sets: Sets, code: NDArray[np.int32]) -> NDArray[np.int16] | None:
    """Which of the alternatives of its task that are one item each is, from 0, the best first, (n,); None if all are 0.

    Alternatives of one profile are as many as were shown: each of them could have been chosen.
    """
    order = np.lexsort((sets.level, code, sets.task))
    same = repeats(sets.task[order], code[order]) & (code[order] >= 0)
    if not same.any():
        return None
    place = np.arange(len(order))
    copies = np.zeros(len(order), dtype=np.int16)
    copies[order] = place - np.maximum.accumulate(np.where(same, 0, place))
    words = counted(int(sets.any_of(copies > 0).sum()), "task")
    sets.notes.append(f"In {words} alternatives have the same attributes: each counts, as often as it was shown.")
    return copies


def _leave_out_repeated(sets: Sets, code: NDArray[np.int32], items: Vocabulary) -> None:
    place = sets.task * (len(items) + 1) + code + 1
    order = np.argsort(place, kind="stable")
    again = np.zeros(len(place), dtype=bool)
    again[order[1:]] = (place[order[1:]] == place[order[:-1]]) & (code[order[1:]] >= 0)
    again &= sets.in_use[sets.task]
    if not again.any():
        return
    example = shown(items.ids[code[again.argmax()]])
    message = (
        f'the same alternative stands twice in {{where}}, such as "{example}"; it must stand there once.'
        f"{_several_tasks(sets)}"
    )
    sets.leave_out(sets.any_of(again), TWICE, message)


def _several_tasks(sets: Sets) -> str:
    """What to do where the tasks of a person may have been taken for one."""
    if "task" in sets.columns or sets.n_tasks == len(sets.task) or sets.kind == "order":
        return ""
    return f" If somebody answered several tasks, name the column that tells them apart: {option('task', 'NAME')}."


def _leave_out_uninformative(sets: Sets) -> None:
    size = sets.count()
    if sets.kind in CHOICES:
        message = "only one alternative was there to choose from in {where}; a choice needs two."
        sets.leave_out(size < 2, ONE_ALTERNATIVE, message)
        top, low = sets.count(sets.level == 0), sets.count(sets.level == 2)
        column = ", ".join(f'"{shown(sets.columns[role])}"' for role in ("winner", "best", "worst")
                           if role in sets.columns)  # fmt: skip
        if sets.kind == "best_worst":
            message = (
                f"the best or the worst is not exactly one alternative, or both are the same, in {{where}} "
                f"(column {column})."
            )
            votes = f"If any number may be up or down, say {option('kind', 'rating')}."
            sets.leave_out((top != 1) | (low != 1), UNCLEAR, message, (votes, {"kind": "rating"}))
        message = f"no alternative was chosen in {{where}}: column {column} must say one of those that were shown."
        none: tuple[str, ReadOptions] = (
            f"If people could choose none of these, say {option('none', NONE)}.",
            {"none": NONE},
        )
        sets.leave_out(top == 0, UNCLEAR, message, *([none] if sets.none_is_open else []))
        message = f"more than one alternative was chosen in {{where}} (column {column}).{_several_tasks(sets)}"
        several = f"If any number could be chosen, say {option('kind', 'approval')}."
        sets.leave_out(top > 1, UNCLEAR, message, (several, {"kind": "approval"}))
        return
    sets.leave_out(size == 0, NOT_ANSWERED)
    sets.leave_out(size == 1, ONE_ALTERNATIVE)
    least, most = np.full(sets.n_tasks, np.iinfo(np.int64).max), np.full(sets.n_tasks, -1)
    np.minimum.at(least, sets.task, sets.level)
    np.maximum.at(most, sets.task, sets.level)
    sets.leave_out(least == most, ALL_ALIKE)


_WORDS = {
    "best": "choices of the best of {}", "best_worst": "choices of the best and the worst of {}",
    "order": "orders of {}", "rating": "sets of {} ratings", "approval": "choices of any number of {}",
}  # fmt: skip


def _counted_kinds(kind: str, task: IntArray) -> dict[str, int]:
    """Number of tasks in use by what they are in words."""
    size = np.bincount(task)
    size = size[size > 0]
    words = f"{size.min()}" if size.min() == size.max() else f"{size.min()} to {size.max()}"
    return {_WORDS[kind].format(words): len(size)}


def columns_by_role(names: Sequence[str], options: ReadOptions) -> dict[str, str]:
    """Columns of who answered, of the task and of the weight of sets, as said or by their names."""
    found: dict[str, str] = {}
    for role, words in (("user", PEOPLE_OF_SETS), ("task", TASKS), ("weight", WEIGHT)):
        name = named_or_guessed(names, options.get(role), words)
        if name is not None and name not in found.values():
            found[role] = name
    return found


def sets_of_rows(
    kind: str, raw: Mapping[str, pl.Series], columns: dict[str, str], options: ReadOptions
) -> Sets:  # fmt: skip
    """Answers of a table in which each row is a task, before their alternatives."""
    n = len(next(iter(raw.values())))
    none, rows, once = np.zeros(0, dtype=np.int64), np.arange(n), np.ones(n, dtype=np.int64)
    sets = Sets(options, kind, none, pl.Series(), none, rows, once, columns)
    if "user" in columns:
        sets.person = raw[columns["user"]]
    if "weight" in columns:
        sets.weight = raw[columns["weight"]]
    sets.take_context(raw)
    return sets


def cover(task: IntArray, level: IntArray) -> tuple[IntArray, IntArray]:
    """Places of the better and of the worse alternative of each row: a level over the next lower one of its task.

    ``task`` and ``level`` are those of the alternatives, (n,) each; levels may have gaps. O(n log n).
    """
    order = np.lexsort((level, task))
    task, level = task[order], level[order]
    start = np.flatnonzero(~repeats(task, level))
    size = np.diff(start, append=len(task))
    group = np.repeat(np.arange(len(start)), size)
    below = np.zeros(len(start), dtype=np.int64)
    below[:-1] = np.where(task[start[1:]] == task[start[:-1]], size[1:], 0)
    n_rows = below[group]
    over = np.repeat(np.arange(len(task)), n_rows)
    nth = np.arange(len(over)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    return order[over], order[start[np.minimum(group[over] + 1, len(start) - 1)] + nth]


def chosen_levels(chosen: BoolArray) -> IntArray:
    """Levels of a choice of one, or of any number of alternatives: the chosen above all others; (n,)."""
    return np.where(chosen, 0, 1).astype(np.int64)


def best_worst_levels(best: BoolArray, worst: BoolArray) -> IntArray:
    """Levels of a choice of the best and the worst: one above the rest, one below; (n,)."""
    return 1 - best.astype(np.int64) + worst.astype(np.int64)


def ranked_levels(rank: FloatArray) -> IntArray:
    """Levels of ranks, the lowest number the best; NaN is below all that were ranked, as in the first m of k; (n,)."""
    filled = np.where(np.isnan(rank), np.inf, rank)
    levels: IntArray = np.unique(filled, return_inverse=True)[1]
    return levels


def rated_levels(rating: FloatArray) -> IntArray:
    """Levels of ratings, the highest number the best; (n,)."""
    return ranked_levels(-rating)
