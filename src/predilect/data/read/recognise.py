"""Which layout a table has: pairs, or answers about sets of alternatives in long, wide or listed form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import polars as pl

from predilect._text import option, shown
from predilect.data.frames import column_names, index_names, to_columns
from predilect.data.read.assemble import Assembled, Kind, ReadOptions, assemble, columns_of
from predilect.data.read.columns import WINNER, guess_one, guess_pair, listed, no_column, plain
from predilect.data.read.covariates import flat
from predilect.data.read.listed import find_listed, find_votes, is_list, read_listed
from predilect.data.read.long import Long, find_long, read_long, tells_itself
from predilect.data.read.pair_forms import one_hot, pair_options, side_by_side, won_and_lost
from predilect.data.read.reshape import reshaped
from predilect.data.read.set_columns import CHOSEN, TASKS, best_and_worst
from predilect.data.read.sets import Droppable, Sets, assemble_sets, design_asked
from predilect.data.read.wide import find_wide, read_wide
from predilect.errors import DataError

_SET_OPTIONS = ("user", "task", "weight", "winner", "context", "alternatives")


def assembled(table: Any, options: ReadOptions) -> Assembled:
    """As ``assemble``, for answers of every kind: ``table`` is what ``frames.open_frame`` returned.

    Raises DataError if the table cannot be read in one clear way, or nothing usable remains.
    """
    names, kind = column_names(table), options.get("kind")
    if kind is not None and kind not in get_args(Kind):
        raise DataError(f"kind must be one of {', '.join(get_args(Kind))}, got {shown(kind)}.")
    if not names and not index_names(table):
        raise DataError("the table has no columns and no rows. Is it the right file?")
    index = [name for name in index_names(table) if name not in names]
    if index and not {None, *names} >= {*guess_pair([*names, *index], options.get("left"), options.get("right"))}:
        return assemble(table, options)  # refuses an index that holds what was answered on
    shape = reshaped(table, names, options)
    if shape is not None:
        *found, intake, shown_items = assembled(shape.columns, shape.options)
        return (*found, shape.told(intake), shown_items)  # type: ignore[return-value]
    folded = side_by_side(names, options)
    if folded is not None:
        *found, intake, shown_items = assembled(folded.unfolded(table, names), {**options, "winner": folded.called})
        return (*found, folded.told(intake), shown_items)  # type: ignore[return-value]
    raw = _all_columns(table, names, options)
    long = _long_by_itself(names, raw, options)
    if long is None and _is_pairs(names, options):
        _refuse_set_options(options)
        said, used = pair_options(names, table, options)
        users, items, contexts, answers, covariates, grades, has_users, intake, _ = assemble(table, said)
        rest = tuple(name for name in intake.ignored_columns if name not in used.values())
        # Of flags and codes outcomes were made, in which a tie is 0.
        ties = {"2": sum(intake.ties_by_word.values())} if "winner" in used and intake.ties_by_word else {}
        intake = replace(
            intake, columns={**intake.columns, **used}, ignored_columns=rest,
            ties_by_word=ties if used else intake.ties_by_word,
        )  # fmt: skip
        return users, items, contexts, answers, covariates, grades, has_users, intake, None
    sets = None if raw is None else _sets(names, raw, long, options)
    if raw is not None and sets is not None:
        n_read = len(next(iter(raw.values())))
        try:
            return assemble_sets(sets, options, names, n_read)
        except Droppable as error:
            again = _sets(names, raw, long, options)
            advice = "" if again is None else _tried(error, again, options, names, n_read)
            raise DataError(f"{error}{advice}") from None
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
    if raw is not None and guess_pair(names, None, None) == (None, None) and options.get("left") is None:
        _refuse_without_design(names)
    _refuse_set_options(options)
    return assemble(table, options)


def _refuse_without_design(names: Sequence[str]) -> None:
    """DataError for answers to tasks of which the table does not say what was shown in them."""
    if guess_one(names, TASKS) is not None and guess_one(names, CHOSEN) is not None:
        raise DataError(
            f"found no columns of what was shown in each task{design_asked(names)} If the rows are pairs, name their "
            f"items: {option('left', 'NAME')}, {option('right', 'NAME')}."
        )


_MOST_UNKNOWN = 0.05  # of the tasks: where more say nothing clear, it is the reading that is wrong


def _tried(error: Droppable, sets: Sets, options: ReadOptions, names: list[str], n_read: int) -> str:
    """Advice to leave tasks out, if few say nothing clear, and the others can be read."""
    if error.drop == "drop_unknown" and error.share > _MOST_UNKNOWN:
        return ""
    try:
        assemble_sets(sets, {**options, "drop_missing": True, "drop_self": True, "drop_unknown": True}, names, n_read)
    except DataError:
        return ""
    return f" Leave such tasks out with {option(error.drop, True)}."


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
    if options.get("kind") in (None, "pairs") and _is_plain(names, options) and not _could_be_long(names, options):
        roles, covariates = columns_of(names, options)
        return [*roles.values(), *flat(covariates)]
    return list(names)


def _is_plain(names: Sequence[str], options: ReadOptions) -> bool:
    """Whether pairs and a winner stand in columns of their own."""
    left, right = guess_pair(names, options.get("left"), options.get("right"))
    if options.get("left") is None and options.get("right") is None:
        if left is None or right is None or options.get("alternatives") is not None:
            return False
        if _third(names, right) is not None:
            return False
    answered = options.get("winner") is not None or options.get("outcome") is not None
    return answered or guess_one(names, WINNER) is not None or options.get("left") is not None


def _is_pairs(names: Sequence[str], options: ReadOptions) -> bool:
    kind = options.get("kind")
    if kind is not None:
        return kind == "pairs"
    if _is_plain(names, options):
        return True
    left, right = guess_pair(names, options.get("left"), options.get("right"))
    if left is not None and right is not None:
        return one_hot(names, left, right) is not None
    half = left or right
    if half is not None and guess_one([half], ("a", "b")) is None and options.get("alternatives") is None:
        return True  # of which the other half is missing
    return left is None and right is None and options.get("winner") is None and None not in won_and_lost(names)


def _third(names: Sequence[str], right: str) -> str | None:
    """The column after item2 or model_b, if there is one: then more than two were shown."""
    match = re.fullmatch(r"(.*[^\d])2|(.+[_ .-])b", right.strip(), re.I)
    return match and guess_one(names, [f"{match[1]}3" if match[1] else f"{match[2]}c"])


def _all_columns(table: Any, names: list[str], options: ReadOptions) -> dict[str, pl.Series] | None:
    """All columns, for answers about sets of alternatives; None where these can only be pairs."""
    if any(count > 1 for count in Counter(names).values()) or options.get("outcome") is not None:
        return None
    if _is_pairs(names, options) and not _could_be_long(names, options):
        return None
    for role in _SET_OPTIONS:
        given = options.get(role)
        if isinstance(given, str) and given not in names:
            raise no_column(given, f"as {role}", names)
    raw = to_columns(table, names)
    return raw if len(next(iter(raw.values()), ())) else None


def _could_be_long(names: Sequence[str], options: ReadOptions) -> bool:
    """Whether columns that may hold pairs may be attributes as well, called a and b."""
    if options.get("kind") == "pairs" or any(options.get(side) is not None for side in ("left", "right")):
        return False
    left, _ = guess_pair(names, None, None)
    return left is None or plain(left) == "a"


def _long_by_itself(names: list[str], raw: dict[str, pl.Series] | None, options: ReadOptions) -> Long | None:
    """Columns of a long table whose values tell that it is one, whatever its columns are called; or None."""
    if raw is None or not _could_be_long(names, options):
        return None
    long = find_long(names, raw, options)
    pair = None not in guess_pair(names, None, None)
    named = options.get("alternatives")
    if long is not None and isinstance(named, str) and named in names and not is_list(raw[named]):
        return long
    return long if long is not None and tells_itself(raw, long, by_answer=pair) else None


def _sets(names: list[str], raw: dict[str, pl.Series], long: Long | None, options: ReadOptions) -> Sets | None:
    if long is not None:
        return read_long(names, raw, long, options)
    if best_and_worst(names) is not None and (wide := find_wide(names, raw, options)) is not None:
        return read_wide(names, raw, wide, options)
    found_listed = find_listed(names, raw, options)
    if found_listed is not None and not found_listed.ask:
        return read_listed(names, raw, found_listed, options)
    wide = find_wide(names, raw, options)
    if wide is not None:
        return read_wide(names, raw, wide, options)
    long = find_long(names, raw, options)
    if long is not None:
        return read_long(names, raw, long, options)
    if found_listed is not None:
        raise DataError(found_listed.ask)
    votes = find_votes(names, raw, options)
    if votes is not None:
        return read_listed(names, raw, votes, options)
    named = options.get("alternatives")
    if isinstance(named, str) and named in names and not is_list(raw[named]):
        raise DataError(
            f'column "{shown(named)}" was named as that of the alternatives, but found no column that says which was '
            f"chosen, its rank or its rating; the columns are {listed(names)}. Name it with {option('winner', 'NAME')}."
        )
    return None
