"""What a table says: every layout offers the ways in which it can be read, and one is taken or asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, get_args

from predilect._base.text import either, shown
from predilect.data.frames import Columns, as_text
from predilect.data.read.assemble import Assembled, Pairs, Unclear, assemble
from predilect.data.read.columns import guess_pair, lacking, listed, people_in, require_columns
from predilect.data.read.listed import listed_readings
from predilect.data.read.long import long_readings, rows_are_alternatives
from predilect.data.read.names import (
    CHOSEN,
    IDENTIFIED,
    ITEM,
    PEOPLE,
    WINNER,
    Kind,
    answer_columns,
    best_and_worst,
    guess_one,
    likely_items,
    pair_families,
)
from predilect.data.read.options import OPTIONS, ReadOptions, option
from predilect.data.read.pairs import pair_readings
from predilect.data.read.polls import fewer_rows, read_poll
from predilect.data.read.profiles import flags, is_plain, words_of
from predilect.data.read.readings import OPEN, SURE, Question, Reading, helped, or_refused, settle, tried
from predilect.data.read.reshape import Reshaped, reshaped
from predilect.data.read.sets import assemble_sets
from predilect.data.read.wide import wide_readings
from predilect.errors import DataError

Layout = Callable[[Columns, ReadOptions], Iterator[Reading]]
_LAYOUTS: tuple[Layout, ...] = (long_readings, wide_readings, listed_readings)
_MOST_GUESSES = 40
_OFTEN = 0.05  # of the rows


def assembled(table: Any, options: ReadOptions) -> Assembled:
    """Answers of every kind in a table: ``table`` is what ``frames.open_frame`` returned.

    Raises DataError if the table cannot be read in one clear way, or nothing usable remains.
    """
    raw = Columns(table)
    kind = options.get("kind")
    if kind is not None and kind not in get_args(Kind):
        raise DataError(f"kind must be one of {', '.join(get_args(Kind))}, got {shown(kind)}.")
    if not raw.names and not raw.index:
        raise DataError("the table has no columns and no rows. Is it the right file?")
    try:
        return _assembled(raw, options)
    except Question as error:
        if error.is_open and (belongs := _belongs(raw, options, may_be_read=True)):
            raise _found_no("answers", raw.names, belongs) from None
        raise tried(error, lambda said: _assembled(raw, {**options, **said})) from None
    except Unclear as error:
        raise helped(error, lambda said: _assembled(raw, {**options, **said})) from None


def _assembled(raw: Columns, options: ReadOptions) -> Assembled:
    fewer = fewer_rows(raw, options)
    if fewer is not None:
        with fewer.counting():
            found = _assembled(fewer.columns, fewer.options)
        return found._replace(intake=fewer.account(found.intake))
    made = settle(_readings(raw, options))
    if made is not None:
        return made
    raise _nothing(raw, options)


def _readings(raw: Columns, options: ReadOptions) -> Iterator[Reading]:
    """Every way in which the table can be read."""
    poll = read_poll(raw, options)
    if poll is not None:
        make = assemble(raw, poll) if isinstance(poll, Pairs) else assemble_sets(poll, raw.names, raw.n_rows)
        yield Reading("", {}, lambda: make)
        return
    shapes = [*reshaped(raw, options)]
    for shape in shapes:
        yield Reading(shape.what, shape.say, partial(_reshaped, shape))
    if shapes:
        return
    require_columns(raw, options)
    pairs = [*pair_readings(raw, options)]
    yield from pairs
    if not pairs and options.get("kind") is None and options.get("alternatives") is None:
        left, right = guess_pair(raw.names, options.get("left"), options.get("right"))
        if (left is None) != (right is None):
            raise lacking("left" if left is None else "right", raw.names, raw.index)
    if options.get("profile") is not None and _are_pairs(raw, options):
        raise _nothing(raw, options)
    if options.get("outcome") is None and not (pairs and _are_pairs(raw, options)):
        yield from _set_readings(raw, options)


def _set_readings(raw: Columns, said: ReadOptions) -> Iterator[Reading]:
    """Ways to read a table as answers about sets of alternatives; those that were said are sure."""
    if (
        raw.n_rows == 0
        or said.get("kind") == "pairs"
        or any(said.get(key) is not None for key in ("left", "right", "won", "lost", "outcome"))
    ):
        return
    taken = [said.get(role) for role in ("task", "winner", "weight", "context", "time")]
    people = [] if said.get("user") is not None else people_in(raw, [name for name in raw if name not in taken])
    users: list[ReadOptions] = [{"user": name} for name in people] if len(people) > 1 else [{}]
    every = (replace(way, say={**way.say, **user}) for user in users for way in _layouts(raw, {**said, **user}))
    ways = [meant for way in every if (meant := _as_said(way, said)) is not None]
    yield from (way for way in ways if way.sure > OPEN)
    yield from [way for way in ways if way.sure == OPEN][:_MOST_GUESSES]


def _layouts(raw: Columns, said: ReadOptions) -> Iterator[Reading]:
    named = said.get("alternatives")
    # A row is an alternative if its values tell so; otherwise it may be that, or a whole task.
    sure = (named is None or isinstance(named, str)) and rows_are_alternatives(raw, said)
    for layout in _LAYOUTS[:1] if sure else _LAYOUTS:
        # What keeps a layout from offering more is said if the table cannot be read otherwise.
        yield from or_refused(layout(raw, said), OPEN)


def _as_said(way: Reading, said: ReadOptions) -> Reading | None:
    """The reading, sure if all that tells it was said; None if something else was said."""
    wanted: dict[str, Any] = dict(way.say)
    given = {key: said.get(key) for key in wanted if said.get(key) is not None}
    if any(not _is_same(value, wanted[key]) for key, value in given.items()):
        return None
    return replace(way, sure=SURE) if wanted and len(given) == len(wanted) else way


def _is_same(one: object, other: object) -> bool:
    """Whether two values of an option say the same; names in any order."""
    if isinstance(one, str) or isinstance(other, str) or not isinstance(one, list | tuple):
        one, other = ([value] if isinstance(value, str) else value for value in (one, other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return {*one} == {*other}
    return one == other


def _reshaped(shape: Reshaped) -> Assembled:
    found = _assembled(Columns(shape.columns), shape.options)
    return found._replace(intake=shape.account(found.intake))


def _are_pairs(raw: Columns, options: ReadOptions) -> bool:
    """Whether two columns are the items of a pair for sure: x1 and x2, a and b, or marks, may be attributes."""
    if options.get("kind") == "pairs" or any(options.get(side) is not None for side in ("left", "right")):
        return True
    families = pair_families(raw.names)
    likely = likely_items(families)
    if not likely or likely[0].rank not in (0, 1) or len(likely[0].left) == 1:
        return False
    left, right = raw[likely[0].left], raw[likely[0].right]
    if flags(left) is not None and flags(right) is not None:
        return False
    # Where one often meets itself, it is one of several columns that describe the items.
    beside = any(one.sides == likely[0].sides for one in families if one != likely[0])
    return not beside or bool((as_text(left) == as_text(right)).sum() < _OFTEN * raw.n_rows)


def _nothing(raw: Columns, options: ReadOptions) -> DataError:
    """That a table holds no answers, and what may be said of it."""
    names, kind, a_column = raw.names, options.get("kind"), option("alternatives", "NAME")
    for name in ("alternatives", "profile"):
        if (given := options.get(name)) is not None:
            sentence = f"{option(name, given)} is about choices from several alternatives, and nothing in the table"
            asked: ReadOptions = {"kind": "best"}
            helps = [] if kind else [(f"Or say what was asked, such as {option('kind', 'best')}.", asked)]
            return Unclear(str(_found_no("answers", names, f"{sentence} could be read so. Leave it out.")), helps)
    if kind not in (None, "pairs", "best_worst"):
        sentence = f"Name that of the answer with {option('winner', 'NAME')}, that of the alternatives with {a_column}."
        return _found_no(f"columns that hold answers of kind {kind}", names, sentence)
    answer, both = guess_one(names, WINNER), best_and_worst(names)
    left, right = guess_pair(names, options.get("left"), options.get("right"))
    if (left, right) == (None, None) and answer and words_of(raw[answer]).str.contains("(?i)^team").any():
        sentence = (
            f'Column "{shown(answer)}" names teams, and answers about several items a side cannot be read. Give the '
            "teams as items: in columns team1 and team2, the members of each joined, such as Ash+Birch."
        )
        return _found_no("pairs", names, sentence)
    chosen = guess_one(names, ("chosen", "choice", *(name for name in CHOSEN if name not in WINNER)))
    if (left, right) == (None, None) and (both or chosen):
        ends = " and the worst" if both else ""
        sentence = (
            f"If a table of its own says what was shown, a design, give it too: {option('design', 'DESIGN')}. "
            f"Otherwise name what says which rows are one task, {option('task', 'NAME')}, and the alternatives. Name "
            f"them: {option('alternatives', ['A', 'B', 'C'])}, or {a_column} if one lists all, as tea|milk|juice, or "
            f"each row is about one. Of pairs name the two items: {option('left', 'NAME', right='NAME')}."
        )
        what = f"columns of what was shown, of which {listed(both or [str(chosen)])} would say the best{ends}"
        return _found_no(what, names, sentence)
    if left or right or answer:
        return lacking("left" if left is None else "winner", names, raw.index)
    if len(names) == 1 and len(names[0].split()) > 2:
        sentence = "It is the only one: what lies between columns must be a comma, a semicolon, a tab or |."
    else:
        sentence = _belongs(raw, options, may_be_read=False) or (
            f"Name the two items and the answer, {option('left', 'NAME', right='NAME', winner='NAME')}; or of choices "
            f"from several the answer, the task and the alternatives, "
            f"{option('winner', 'NAME', task='NAME', alternatives='NAME')}."
        )
    return _found_no("answers, neither two items and who won nor a choice", names, sentence)


def _found_no(what: str, names: Sequence[str], sentence: str) -> DataError:
    return DataError(f"found no {what}; the columns are {listed(names)}. {sentence}")


def _belongs(raw: Columns, options: ReadOptions, *, may_be_read: bool) -> str:
    """Where a table without answers may belong, by its column of items, or if each row is another person; "" for none.

    If it ``may_be_read``, each row must be another item.
    """
    said = any(options.get(one.key) is not None for one in OPTIONS if one.is_column or one.key == "kind")
    if said or answer_columns(raw.names):
        return ""
    who, item = guess_one(raw.names, PEOPLE), guess_one(raw.names, IDENTIFIED if may_be_read else ITEM)
    name = who or item
    another = name is not None and is_plain(raw[name]) and raw[name].n_unique() == raw.n_rows > 1
    if name is None or (not another and (who or may_be_read)) or (who and may_be_read):
        return ""
    what = "people" if who else "items"
    how = either(f"--{what} FILE", f"{what}=FRAME")
    return f'By its column "{shown(name)}" this may be a table of {what}: give it beside the answers with {how}.'
