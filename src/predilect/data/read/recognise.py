"""Which layout a table has: pairs, or answers about sets of alternatives in long, wide or listed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from predilect._text import shown
from predilect.data.frames import Columns
from predilect.data.read.assemble import Assembled, Pairs, assemble, columns_of
from predilect.data.read.columns import first_columns, guess_pair, listed, no_column
from predilect.data.read.covariates import flat
from predilect.data.read.listed import Listed, find_listed, find_votes, is_list, read_listed
from predilect.data.read.long import Long, find_long, read_long
from predilect.data.read.names import (
    CHOSEN,
    CRITERION,
    NO_ANSWER,
    PEOPLE,
    TASKS,
    Kind,
    all_named,
    answer_columns,
    best_and_worst,
    guess_one,
    is_poll,
    likely_items,
    pair_families,
    tells,
)
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.pair_forms import find_pairs, refuse_both_in_one
from predilect.data.read.polls import fewer_rows, read_poll
from predilect.data.read.profiles import flags, words_of
from predilect.data.read.reshape import reshaped
from predilect.data.read.sets import Droppable, Sets, assemble_sets, design_asked
from predilect.data.read.wide import find_wide, read_wide
from predilect.data.read.winners import TwoReadings
from predilect.errors import DataError

_SET_OPTIONS = ("user", "task", "weight", "winner", "context", "alternatives")


def assembled(table: Any, options: ReadOptions) -> Assembled:
    """As ``assemble``, for answers of every kind: ``table`` is what ``frames.open_frame`` returned.

    Raises DataError if the table cannot be read in one clear way, or nothing usable remains.
    """
    raw = Columns(table)
    names, kind = raw.names, options.get("kind")
    if kind is not None and kind not in get_args(Kind):
        raise DataError(f"kind must be one of {', '.join(get_args(Kind))}, got {shown(kind)}.")
    if not names and not raw.index:
        raise DataError("the table has no columns and no rows. Is it the right file?")
    index = [name for name in raw.index if name not in names]
    if index and not {None, *names} >= {*guess_pair([*names, *index], options.get("left"), options.get("right"))}:
        return assemble(raw, Pairs(options))  # refuses an index that holds what was answered on
    fewer = fewer_rows(raw, options)
    if fewer is not None:
        with fewer.counting():
            found = assembled(fewer.columns.table, fewer.options)
        return found._replace(intake=fewer.told(found.intake))
    poll = read_poll(raw, options)
    if poll is not None:
        return assemble(raw, poll) if isinstance(poll, Pairs) else assemble_sets(poll, names, raw.n_rows)
    shape = reshaped(raw, options)
    if shape is not None:
        found = assembled(shape.columns, shape.options)
        return found._replace(intake=shape.told(found.intake))
    may_be_long = _could_be_long(names, options, raw)
    long = _long_by_itself(raw, options) if may_be_long else None
    pairs = None if long is not None else find_pairs(raw, options)
    if pairs is not None:
        _refuse_set_options(options)
        try:
            return assemble(raw, pairs)
        except TwoReadings as error:
            raise TwoReadings(f"{error}{_or_a_choice(raw, options)}") from None
    has_sets = _may_have_sets(raw, options)
    if not may_be_long:
        long = _long_by_itself(raw, options)
    sets = _sets(raw, long, options) if has_sets else None
    if sets is not None:
        try:
            return assemble_sets(sets, names, raw.n_rows)
        except Droppable as error:
            raise DataError(f"{error}{_tried(error, raw, long, options)}") from None
    both = best_and_worst(names)
    if kind in (None, "best_worst") and both and None in guess_pair(names, options.get("left"), options.get("right")):
        raise DataError(
            f"found no columns of what was shown, of which {listed(both)} would say the best and the worst; the "
            f"columns are {listed(names)}. Name them: {option('alternatives', ['A', 'B', 'C'])}, or "
            f"{option('alternatives', 'NAME')} if one lists all, as tea|milk|juice."
        )
    if kind not in (None, "pairs"):
        raise DataError(
            f"found no columns that hold answers of kind {kind}; the columns are {listed(names)}. Name that of the "
            f"answer with {option('winner', 'NAME')}, that of the alternatives with {option('alternatives', 'NAME')}."
        )
    if has_sets and guess_pair(names, None, None) == (None, None) and options.get("left") is None:
        _refuse_without_design(names)
    _refuse_set_options(options)
    return assemble(raw, find_pairs(raw, options, perhaps=True) or Pairs(options))


def _numbers_of_places(rated: Listed, raw: Columns) -> str | None:
    """A column that may say by its number which of the columns was chosen."""
    places = {str(place) for place in range(1, len(rated.answer) + 1)}
    used = {*rated.answer, *rated.columns.values()}
    free = (name for name in sorted({*raw} - used) if not tells(name, NO_ANSWER) and not raw[name].dtype.is_nested())
    return next((name for name in free if {*words_of(raw[name]).drop_nulls()} == places), None)


def _refuse_choice(rated: Listed, answer: str | None) -> None:
    """DataError for ratings or ranks, a column an item, beside a column that says which of these was chosen."""
    if answer is not None:
        raise DataError(
            f"the columns {first_columns(rated.answer)} may be the answers, a column an item, "
            f'{option("kind", rated.kind)}, or describe the alternatives of which "'
            f'{shown(answer)}" says the one that was chosen, {option("winner", answer, kind="best")}.'
        )


def _refuse_without_design(names: Sequence[str]) -> None:
    """DataError for answers to tasks of which the table does not say what was shown in them."""
    if guess_one(names, TASKS) is not None and guess_one(names, CHOSEN) is not None:
        raise DataError(
            f"found no columns of what was shown in each task{design_asked(names)} If the rows are pairs, name their "
            f"items: {option('left', 'NAME')}, {option('right', 'NAME')}."
        )


_MOST_UNKNOWN = 0.05  # of the tasks: where more say nothing clear, it is the reading that is wrong


def _tried(error: Droppable, raw: Columns, long: Long | None, options: ReadOptions) -> str:
    """Advice to leave tasks out, if few say nothing clear, and the others can be read."""
    if error.drop == "drop_unknown" and error.share > _MOST_UNKNOWN:
        return ""
    said: ReadOptions = {**options, "drop_missing": True, "drop_self": True, "drop_unknown": True}
    try:
        sets = _sets(raw, long, said)
        if sets is not None:
            assemble_sets(sets, raw.names, raw.n_rows)
    except DataError:
        return ""
    return f" Leave such tasks out with {option(error.drop, True)}."


def _or_a_choice(raw: Columns, options: ReadOptions) -> str:
    """Advice to read rows as alternatives, if they can be, of what was taken for pairs."""
    said: ReadOptions = {**options, "kind": "best"}
    try:
        long = find_long(raw, said) if options.get("kind") is None else None
        if long is None:
            return ""
        assemble_sets(_of_long(long, said), raw.names, raw.n_rows)
    except DataError:
        return ""
    return f" If each row is an alternative, of which one was chosen in each task, say {option('kind', 'best')}."


def _refuse_set_options(options: ReadOptions) -> None:
    """DataError if something was said of alternatives where left and right are all there are."""
    for name in ("alternatives", "profile"):
        if (given := options.get(name)) is not None:
            raise DataError(
                f"{option(name, given)} is about choices from several alternatives, and these answers are read as "
                f"pairs. Leave it out, or say what was asked, such as {option('kind', 'best')}."
            )


def used_columns(names: Sequence[str], options: ReadOptions) -> list[str]:
    """Columns that are read of a table with some ``names``: all where only values tell which; raises DataError."""
    answers = [options.get("winner")] if options.get("winner") else answer_columns(names)
    by_name = options.get("kind") in (None, "pairs") and options.get("alternatives") is None and bool(answers)
    given = [options.get(role) for role in ("left", "right", "won", "lost")]
    if is_poll(names) or not by_name or given[2:] != [None, None] or _could_be_long(names, options):
        return list(names)
    likely = likely_items(pair_families(names))
    if None in given[:2] and not (len(likely) == 1 and likely[0].rank in (0, 1, 2)):
        return list(names)
    roles, covariates = columns_of(names, options, True)
    if len(roles["left"]) == 1:
        return list(names)  # a and b may be attributes
    paired = [name for family in pair_families(names) for name in (family.left, family.right)]
    return [*roles.values(), *flat(covariates), *answers, *all_named(names, (*PEOPLE, *CRITERION)), *paired]


def _may_have_sets(raw: Columns, options: ReadOptions) -> bool:
    """Whether there can be answers about sets of alternatives; DataError for a column named that is not there."""
    if options.get("outcome") is not None:
        return False
    for role in _SET_OPTIONS:
        given = options.get(role)
        if isinstance(given, str) and given not in raw:
            raise no_column(given, f"as {role}", raw.names)
    return raw.n_rows > 0


def _could_be_long(names: Sequence[str], options: ReadOptions, raw: Columns | None = None) -> bool:
    """Whether no two columns are items of a pair for sure: x1 and x2, a and b, or flags, may be attributes of one."""
    if options.get("kind") == "pairs" or any(options.get(side) is not None for side in ("left", "right")):
        return False
    likely = likely_items(pair_families(names))
    if not likely or likely[0].rank == 2 or len(likely[0].left) == 1:
        return True
    pair = likely[0].left, likely[0].right
    return raw is not None and all(flags(raw[name]) is not None for name in pair)


def _long_by_itself(raw: Columns, options: ReadOptions) -> Long | None:
    """A long table of which the values tell that it is one, whatever its columns are called; or None."""
    long = find_long(raw, options) if _may_have_sets(raw, options) else None
    named = options.get("alternatives")
    if long is not None and isinstance(named, str) and named in raw and not is_list(raw[named]):
        return long
    pair = bool(likely_items(pair_families(raw.names)))
    return long if long is not None and long.tells_itself(by_answer=pair) else None


def _of_long(long: Long, options: ReadOptions) -> Sets:
    if long.alternative is not None and long.value is not None and options.get("alternatives") is None:
        refuse_both_in_one(long.raw[long.alternative], long.raw[long.value])
    return read_long(long, options)


def _sets(raw: Columns, long: Long | None, options: ReadOptions) -> Sets | None:
    if long is not None:
        return _of_long(long, options)
    names = raw.names
    if best_and_worst(names) is not None and (wide := find_wide(raw, options)) is not None:
        return read_wide(wide, options)
    found_listed = find_listed(raw, options)
    if found_listed is not None and not found_listed.ask:
        if found_listed.items and options.get("kind") is None:
            wide = find_wide(raw, options)
            _refuse_choice(found_listed, _numbers_of_places(found_listed, raw) if wide is None else wide.answer[0])
        return read_listed(raw, found_listed, options)
    wide = find_wide(raw, options)
    if wide is not None:
        return read_wide(wide, options)
    long = find_long(raw, options)
    if long is not None:
        return _of_long(long, options)
    if found_listed is not None:
        raise DataError(found_listed.ask)
    votes = find_votes(raw, options)
    if votes is not None:
        return read_listed(raw, votes, options)
    named = options.get("alternatives")
    if isinstance(named, str) and named in names and not is_list(raw[named]):
        raise DataError(
            f'column "{shown(named)}" was named as that of the alternatives, but found no column that says which was '
            f"chosen, its rank or its rating; the columns are {listed(names)}. Name it with {option('winner', 'NAME')}."
        )
    return None
