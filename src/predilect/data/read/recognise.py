"""What a table says: every layout offers the ways in which it can be read, and one is taken or asked about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, get_args

from predilect._base.text import shown
from predilect.data.frames import Columns, as_text
from predilect.data.read.alternatives import refuse_choices, set_readings
from predilect.data.read.assemble import Assembled, Pairs, assemble
from predilect.data.read.columns import guess_columns, guess_pair, listed
from predilect.data.read.names import (
    CHOSEN,
    TASKS,
    WINNER,
    Kind,
    best_and_worst,
    guess_one,
    likely_items,
    pair_families,
    tells_text,
)
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.pairs import pair_readings
from predilect.data.read.polls import fewer_rows, read_poll
from predilect.data.read.profiles import flags, words_of
from predilect.data.read.readings import Question, Reading, settle, tried
from predilect.data.read.reshape import Reshaped, reshaped
from predilect.data.read.sets import assemble_sets, design_asked
from predilect.errors import DataError

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
        raise tried(error, lambda said: _assembled(raw, {**options, **said})) from None


def _assembled(raw: Columns, options: ReadOptions) -> Assembled:
    fewer = fewer_rows(raw, options)
    if fewer is not None:
        with fewer.counting():
            found = _assembled(fewer.columns, fewer.options)
        return found._replace(intake=fewer.told(found.intake))
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
    pairs = [*pair_readings(raw, options)]
    yield from pairs
    if not pairs and options.get("kind") is None and options.get("alternatives") is None:
        _refuse_half(raw, options)
    if options.get("profile") is not None and _are_pairs(raw, options):
        raise _nothing(raw, options)
    if options.get("outcome") is None and not (pairs and _are_pairs(raw, options)):
        yield from set_readings(raw, options)


def _refuse_half(raw: Columns, options: ReadOptions) -> None:
    """DataError where a column is that of the one item, and there is none of the other but perhaps in an index."""
    left, right = options.get("left"), options.get("right")
    if (left, right) == (None, None):
        left, right = guess_pair(raw.names, None, None)
    if (left is None) != (right is None):
        roles = {role: options.get(role) for role in ("user", "winner", "weight", "task")}
        guess_columns(raw.names, left=left, right=right, index=raw.index, **roles)  # type: ignore[arg-type]


def _reshaped(shape: Reshaped) -> Assembled:
    found = _assembled(Columns(shape.columns), shape.options)
    return found._replace(intake=shape.told(found.intake))


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
    names, kind = raw.names, options.get("kind")
    for name in ("alternatives", "profile"):
        if (given := options.get(name)) is not None:
            helps = kind is None and _can_be_read(raw, {**options, "kind": "best"})
            how = f", or say what was asked, such as {option('kind', 'best')}" if helps else ""
            return DataError(
                f"{option(name, given)} is about choices from several alternatives, and nothing in the table could be "
                f"read so. Leave it out{how}."
            )
    no_pair = options.get("left") is None and guess_pair(names, None, None) == (None, None)
    answer, both = guess_one(names, WINNER), best_and_worst(names)
    if no_pair and answer is not None and words_of(raw[answer]).str.contains("(?i)^team").any():
        return DataError(
            f'column "{shown(answer)}" names teams, and answers about several items a side cannot be read. Give the '
            "teams as items: in columns team1 and team2, the members of each joined, such as Ash+Birch."
        )
    if kind in (None, "best_worst") and both and no_pair:
        return DataError(
            f"found no columns of what was shown, of which {listed(both)} would say the best and the worst; the "
            f"columns are {listed(names)}. Name them: {option('alternatives', ['A', 'B', 'C'])}, or "
            f"{option('alternatives', 'NAME')} if one lists all, as tea|milk|juice."
        )
    if kind not in (None, "pairs"):
        return DataError(
            f"found no columns that hold answers of kind {kind}; the columns are {listed(names)}. Name that of the "
            f"answer with {option('winner', 'NAME')}, that of the alternatives with {option('alternatives', 'NAME')}."
        )
    if no_pair and guess_one(names, TASKS) is not None and guess_one(names, CHOSEN) is not None:
        return DataError(
            f"found no columns of what was shown in each task{design_asked(names)} If the rows are pairs, name their "
            f"items: {option('left', 'NAME')}, {option('right', 'NAME')}."
        )
    if not any(options.get(role) for role in ("left", "right", "won", "lost", "outcome")):
        try:
            refuse_choices(names)
        except DataError as error:
            return error
    roles = {role: options.get(role) for role in ("user", "left", "right", "winner", "weight", "task")}
    try:
        guess_columns(names, index=raw.index, **roles)  # type: ignore[arg-type]
    except DataError as error:
        return error
    return DataError(
        f"found no answers, neither two items and who won nor a choice; the columns are {listed(names)}. Name the "
        f"two items and the answer, {option('left', 'NAME', right='NAME', winner='NAME')}; or of choices from several "
        f"the answer, the task and the alternatives, {option('winner', 'NAME', task='NAME', alternatives='NAME')}."
    )


def _can_be_read(raw: Columns, options: ReadOptions) -> bool:
    """Whether a table can be read as was said, or may be after one more question."""
    try:
        return settle(_readings(raw, options)) is not None
    except Question:
        return True
    except DataError:
        return False


def used_columns(names: Sequence[str], options: ReadOptions) -> list[str]:
    """Columns that are likely read of a table with some ``names``: all but texts, where others hold the items."""
    once = [name for name, count in Counter(names).items() if count == 1]
    likely = likely_items(pair_families(once))
    if options.get("left") is None and not (likely and likely[0].rank in (0, 1)):
        return list(names)
    said = {str(options.get("keep")).partition(":")[0]} | {one for value in options.values() for one in (
        [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else [])}  # fmt: skip
    return [name for name in dict.fromkeys(names) if name in said or (name in once and not tells_text(name))]
