"""Layouts in which a row is about two: which columns hold the items, and every way in which others say who won."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._base.text import did_you_mean, first_few, shown
from predilect._base.types import BoolArray
from predilect.data.canonical import may_be_choices, may_be_taken_apart, tells_tasks_apart
from predilect.data.frames import Columns, as_text, clean_ids, present, where_present, without_points
from predilect.data.intake import counted
from predilect.data.read.assemble import Pairs, assemble, outcomes_of
from predilect.data.read.columns import guess_pair, lacking, listed, people_in, refuse_index
from predilect.data.read.covariates import covariate_columns, flat
from predilect.data.read.names import (
    BOTH_ITEMS,
    CHOICE_TASK,
    COUNTED,
    FLAGGED,
    NO_ANSWER,
    OF_ANY,
    OPEN_WEIGHT,
    PEOPLE,
    PEOPLE_BY_RANK,
    SCORED,
    TASK,
    WEIGHT,
    WINNER,
    Family,
    all_named,
    answer_columns,
    good_end,
    guess_one,
    half_of_pair,
    is_called,
    likely_items,
    opponents,
    pair_families,
    plain,
    positive_side,
    side_words,
    sides_of,
    squeezed,
    tells,
    tokens,
    won_and_lost_families,
)
from predilect.data.read.options import ReadOptions, option, own_words
from predilect.data.read.profiles import (
    could_be_items,
    flags,
    holds_numbers,
    is_plain,
    numbers_of,
    numbers_rows,
    pairs_of_items,
    stripped,
    values_of,
)
from predilect.data.read.readings import LIKELY, OPEN, SURE, Reading, or_refused, refused
from predilect.data.read.reshape import items_apart
from predilect.data.read.winners import UNKNOWN, Answered, Way
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

_TIE = ("winner_tie", "winner_ties", "tie", "is_tie", "draw", "is_draw", "winner_draw", "tied", "drawn")
_TIES = (
    "ties", "tie", "draws", "draw", "drawn", "n_ties", "num_ties", "num_tie", "tie_votes", "num_vote_tie", "wins_tie",
    "votes_tie",
)  # fmt: skip
_BAD = ("winner_tie_both_bad", "winner_bothbad", "winner_both_bad", "bothbad", "both_bad")
_WON, _LOST = ("won", "wins", "win", "n_wins"), ("lost", "losses", "loss", "loses", "n_losses")
_MAY_BE_ITEMS = frozenset(("text", "id", "ids", "name", "names", "key", "code", "title"))
_BY_CHANCE = 1e-3  # that every answer is one of the two items of its row
_MOST_PAIRS = 3  # of columns that may be the two items, whatever they are called
_MOST_COLUMNS = 40  # in which items are looked for by their values


@dataclass(frozen=True)
class _Base:
    """The two columns of the items, how surely, and what chooses them."""

    left: str
    right: str
    sure: int
    say: ReadOptions

    @property
    def roles(self) -> dict[str, str]:
        """The columns by role."""
        return {"left": self.left, "right": self.right}


def pair_readings(raw: Columns, said: ReadOptions) -> Iterator[Reading]:
    """Every way in which the rows of a table can be about two."""
    if said.get("kind") not in (None, "pairs") or any(
        said.get(role) is not None for role in ("alternatives", "profile")
    ):
        return
    results = said.get("won"), said.get("lost")
    sides = said.get("left"), said.get("right")
    if results == (None, None):
        for base in _bases(raw, said):
            yield from or_refused(_of_base(raw, said, base), base.sure)
    if sides == (None, None):
        yield from _of_results(raw, said, *results)


# --- the two items ----------------------------------------------------------------------------------------------------


def _bases(raw: Columns, said: ReadOptions) -> Iterator[_Base]:
    """Columns of the two items: those named, those called so, or by what they hold."""
    families, sides = pair_families(raw.names), (said.get("left"), said.get("right"))
    if sides != (None, None):
        left, right = guess_pair(raw.names, *sides)
        if left is None or right is None:
            raise lacking("left" if left is None else "right", raw.names, raw.index)
        yield _Base(left, right, SURE, {})
        return
    likely = likely_items(families)
    if likely and likely[0].rank == 3 and len(likely) > _MOST_PAIRS:
        likely = []  # attributes of two alternatives
    # Those that are less surely the items are not even looked at where there are such: they may be long texts.
    ranks = sorted({one.rank for one in families if one.rank is not None}) if likely else []
    held = ([one for one in families if one.rank == rank and _may_be_items(raw, one)] for rank in ranks)
    likely = next(filter(None, map(likely_items, held)), [])
    by_name = [one for one in likely if one.rank in (0, 1)]
    others = [] if by_name else _by_values(raw, said, likely)
    recur = [] if by_name else [one for one in likely if could_be_items([raw[one.left], raw[one.right]])]
    results = any(one.rank in (0, 1) for one in won_and_lost_families(raw.names))
    for one in likely:
        texts, alone = _are_texts(raw, one.left, one.right), one in recur or (len(likely) == 1 and not others)
        sure = LIKELY if texts and alone else OPEN
        if one in by_name:
            sure = SURE if len(one.left) > 1 or texts else LIKELY  # a and b may be attributes
        elif one.rank == 2 and alone and not results:
            sure = SURE if texts else LIKELY
        say = {} if sure == SURE and len(likely) == 1 else {"left": one.left, "right": one.right}
        yield _Base(one.left, one.right, sure, say)  # type: ignore[arg-type]
    yield from others


def _by_values(raw: Columns, said: ReadOptions, but: Sequence[Family]) -> list[_Base]:
    """Columns that hold items whatever they are called: two of the same ones, or one that names both."""
    found = [_Base(one.left, one.right, SURE, {}) for one in _named_by_counts(raw.names)]
    if found:
        return found
    opponent, named = opponents(raw.names)
    if opponent is not None and len(named) == 1:
        return [_Base(named[0], opponent, SURE, {})]
    taken = [name for one in but for name in (one.left, one.right)]
    taken += [str(said.get(role)) for role in ("user", "weight", "task", "context", "time", "winner")]
    free = [
        name for name in raw
        if name not in taken and not is_called(name, WEIGHT) and not tells(name, NO_ANSWER - _MAY_BE_ITEMS)
    ]  # fmt: skip
    if len(free) > _MOST_COLUMNS:
        return []
    halves = {name: half_of_pair(name) for name in free}
    for pair in _alike(raw, free):
        if opponent in pair:  # what is said of a row is said of the other
            other = pair[0] if pair[1] == opponent else pair[1]
            found.append(_Base(other, str(opponent), LIKELY, {"left": other, "right": str(opponent)}))
            continue
        both = [one for one in (pair, pair[::-1]) if halves[one[0]][1] is None and halves[one[1]][0] is None]
        for left, right in both:  # mostly nothing tells which one was on the left
            found.append(_Base(left, right, OPEN, {"left": left, "right": right}))
    for name in sorted(free):
        if _names_both(raw[name]):
            sure = SURE if is_called(name, BOTH_ITEMS) else OPEN
            found.append(_Base(name, name, sure, {"left": name, "right": name}))
    return found


def _alike(raw: Columns, free: Sequence[str]) -> list[list[str]]:
    """Any two columns that hold the same items; none if there are many: attributes, or places of an order."""
    found = pairs_of_items({name: raw[name] for name in sorted(free)}) if len(free) <= _MOST_COLUMNS else []
    return found if len(found) <= _MOST_PAIRS else []


def _names_both(column: pl.Series) -> bool:
    """Whether every value names two items, of which some recur in other values."""
    if column.dtype != pl.String or column.null_count() or len(column) < 2:
        return False
    both = items_apart(column)
    if both is None or (both[0] == both[1]).any():
        return False
    left, right = ({*side.drop_nulls()} for side in both)
    return "" not in left | right and len(left | right) < 2 * column.n_unique()


def _may_be_items(raw: Columns, one: Family) -> bool:
    """Whether the values of two columns can be ids, and are no marks such as 1 and 0."""
    columns = raw[one.left], raw[one.right]
    if one.rank == 0 and len(one.left) > 1:
        return True
    return all(is_plain(column) and column.dtype != pl.Boolean for column in columns) and not all(
        flags(column) is not None and one.rank != 0 for column in columns
    )


def _are_texts(raw: Mapping[str, pl.Series], *names: str) -> bool:
    """Whether columns hold texts of which none is a number."""
    return all(
        raw[name].dtype == pl.String
        and stripped(raw[name]).cast(pl.Float64, strict=False).null_count() == len(raw[name])
        and raw[name].null_count() < len(raw[name])
        for name in names
    )


def _named_by_counts(names: Sequence[str]) -> list[Family]:
    """Columns of items whose words for the sides only counts tell: base and ours by votes_base and votes_ours."""
    forms = {name: tokens(name) for name in names}
    counts = sorted(name for name in names if {*forms[name][:-1]} and {*forms[name][:-1]} <= COUNTED)
    for one, two in combinations(counts, 2):
        if forms[one][:-1] == forms[two][:-1]:
            families = likely_items(pair_families(names, (forms[one][-1], forms[two][-1])))
            if len(families) == 1 and families[0].rank == 0:
                return families
    return []


# --- who answered, how often, in which task ---------------------------------------------------------------------------


def _roles(raw: Columns, said: ReadOptions, taken: Sequence[str]) -> Iterator[tuple[ReadOptions, dict[str, str]]]:
    """Columns of who answered, of weights and contexts, in every way in which they may be told."""
    covariates = flat(covariate_columns(raw.names, said.get("covariates"), raw.index))
    given = {role: said.get(role) for role in ("user", "weight", "context", "time", "task")}
    used: dict[str, str] = dict.fromkeys(taken, "item or answer") | dict.fromkeys(covariates, "covariate")
    for role, name in given.items():
        if isinstance(name, str):
            if name in used:
                raise DataError(
                    f'column "{shown(name)}" cannot be both {role} and {used[name]}; the columns are '
                    f"{', '.join(map(shown, raw.names))}. Name another with {option(role, 'NAME')}."
                )
            used[name] = role
    free = [name for name in raw if name not in used]
    users = _choices(given["user"], "user", people_in(raw, free))
    if users == [({}, None)] and given["user"] is None:
        refuse_index(raw.index, PEOPLE, "user")
    weight = guess_one(free, WEIGHT)
    weights = _choices(given["weight"], "weight", [weight] if weight else [])
    open_count = given["weight"] is None and weight is not None and is_called(weight, OPEN_WEIGHT)
    if weight is not None and open_count and bool((as_text(raw[weight]) != "1").fill_null(False).any()):
        weights = [({"weight": weight}, weight), ({"weight": False}, None)]
    for (say_user, user), (say_weight, times) in product(users, weights):
        roles = {"user": user, "weight": times, "context": given["context"], "time": given["time"]}
        yield {**say_user, **say_weight}, {role: str(name) for role, name in roles.items() if name}


def _choices(given: Any, role: str, found: Sequence[str]) -> list[tuple[ReadOptions, str | None]]:
    """What was said, or what was found: with what chooses one of several."""
    if given is not None:
        return [({}, given or None)]
    if len(found) > 1:
        return [({role: name}, name) for name in found]  # type: ignore[misc]
    return [({}, found[0] if found else None)]


def _tasks(
    raw: Columns, said: ReadOptions, roles: Mapping[str, str], taken: Sequence[str], pairs: Pairs
) -> list[tuple[ReadOptions, str | None, bool]]:
    """The column of tasks, if one tells answers of a person apart, or none, and whether that must be asked."""
    given = said.get("task")
    if given is not None or said.get("runs") or "user" not in roles:
        return [({}, given if isinstance(given, str) else None, False)]
    none: list[tuple[ReadOptions, str | None, bool]] = [({}, None, False)]
    column = guess_one([name for name in raw if name not in (*taken, *roles.values())], TASK)
    try:
        outcome = outcomes_of(pairs, np.arange(raw.n_rows)).outcome
        who, left, right = (as_text(raw[roles[role]]) for role in ("user", "left", "right"))
        tasks = None if column is None else clean_ids(raw[column], column)
    except DataError:
        return none  # of which something else is to be said
    there = np.flatnonzero((outcome != UNKNOWN) & where_present(who) & where_present(left) & where_present(right))
    user, both = _codes(who)[there], _codes(pl.concat([left.alias(""), right.alias("")]))
    one, two = (side[there] for side in np.split(both, 2))
    if tasks is None:
        if said.get("kind") is None and may_be_taken_apart(user, one, two, outcome[there]):
            return [({"runs": False}, None, True), ({"runs": True}, None, True)]
        return none
    task = _codes(tasks)[there]
    if not len(there) or not tells_tasks_apart(user, task):
        return none
    if said.get("kind") is not None or is_called(str(column), CHOICE_TASK):
        return [({}, column, False)]
    rows, open_to_doubt = may_be_choices(user, one, two, outcome[there], task)
    if rows is None or not open_to_doubt:
        return [({}, column, False)]
    return [({"task": str(column)}, column, True), ({"task": False}, None, True)]


def _codes(text: pl.Series) -> NDArray[np.int32]:
    """Values numbered from 0, those that are missing by -1."""
    return Vocabulary(present(text)).codes(text, unknown="minus_one")


# --- who won, in a column ---------------------------------------------------------------------------------------------


def _of_base(raw: Columns, said: ReadOptions, base: _Base) -> Iterator[Reading]:
    """All ways to read who won of the items of two columns."""
    if said.get("outcome") is not None:
        pairs = Pairs(said, base.roles, outcome=said["outcome"], given=True)
        yield from _read(raw, pairs, "the outcomes that were given", base.say, SURE)
        return
    given = said.get("winner")
    if isinstance(given, str) and base.left != base.right and (forms := [*_of_both_sides(raw, said, base, given)]):
        yield from forms
        return
    try:
        found = _InColumn(raw, said, base)
        named = found.named()
    except DataError as error:
        yield refused(error, base.sure)
        return
    read = [one for one in named if any(not way.guess for way in one.ways)] or [one for one in named if one.ways]
    for one in read:
        # Where every answer is an item of its row no other reading of it is as likely.
        of_items = any(way.code is None for way in one.ways)
        for way in one.ways:
            if not (of_items and way.open):
                yield from found.read(one, way, base.sure)
    if read:
        return
    others = [] if given else found.others()
    apart = base.left != base.right and not (named and given)
    forms = [*_of_both_sides(raw, said, base, None, bool(others or named))] if apart else []
    # Of numbers in columns that nothing calls items, and an answer that nothing calls so, nothing tells anything.
    is_likely = base.sure > OPEN or bool(named) or not any(holds_numbers(side) for side in found.items)
    yield from (forms if is_likely else ())
    if named and not any(form.sure == SURE for form in forms):
        yield found.partly(named[0])
        return
    for one in others:
        for way in one.ways:
            by_items = way.code is None and found.is_hardly_chance(one)
            if is_likely or by_items:
                yield from found.read(one, way, LIKELY if by_items else OPEN)
    if not forms and not others and base.sure == SURE:
        yield refused(lacking("winner", raw.names, raw.index), OPEN)


class _InColumn:
    """Answers about the items of two columns, or of one that names both, in a column of their own."""

    def __init__(self, raw: Columns, said: ReadOptions, base: _Base) -> None:
        self.raw, self.said, self.base = raw, said, base
        self.left, self.right = base.left, base.right
        self.table: Mapping[str, pl.Series] = raw
        self.more: dict[str, Any] = {}
        if base.left == base.right:
            both = items_apart(raw[base.left])
            if both is None:
                first = as_text(raw[base.left]).drop_nulls().head(1).to_list()
                raise DataError(
                    f'column "{shown(base.left)}" must name both items in every row, with one and the same sign '
                    f'between them that no name holds, such as "tea_milk" or "tea vs milk"; got {listed(first)}. Make '
                    "two columns of it, called left and right."
                )
            self.table, self.left, self.right = {**raw, "left": both[0], "right": both[1]}, "left", "right"
            used = dict.fromkeys(("left", "right"), base.left)
            self.more = {"table": self.table, "called": ("left", "right"), "used": used}
        for name in (self.left, self.right):
            clean_ids(self.table[name], name)
        self.items = tuple(as_text(self.table[name]) for name in (self.left, self.right))

    def named(self) -> list[Answered]:
        """Columns of answers by their names: the one that was said, or called winner, or all that may be them."""
        given = self.said.get("winner")
        names = [given] if isinstance(given, str) else self._called_so()
        found = [one for name in names if (one := self._answered(name, needed=name == given)) is not None]
        found = [one for one in found if plain(one.name) == "winner"][:1] or found
        own = own_words(self.said)
        if own == ([], []) or not found:
            return found
        fit = [one for one in found if not _other_words(own, one)]
        if not fit:
            raise DataError(_other_words(own, found[0]))
        return fit

    def _called_so(self) -> list[str]:
        raw, base = self.raw, self.base
        return [
            name for name in answer_columns(raw.names) if name not in self._taken() and not raw[name].dtype.is_nested()
            and not (_side_of(name, base) and flags(raw[name]) is not None)
        ]  # fmt: skip

    def _taken(self) -> set[str]:
        lost = [family.right for family in won_and_lost_families(self.raw.names)]
        given = [self.said.get(role) for role in ("user", "weight", "task", "context", "time")]
        counts = _won_and_lost_counts(self.raw) if self.said.get("winner") is None else ()
        return {self.base.left, self.base.right, *lost, *counts, *(name for name in given if isinstance(name, str))}

    def others(self) -> list[Answered]:
        """Columns of other names that may hold answers."""
        raw = self.raw
        paired = {name for family in pair_families(raw.names) for name in (family.left, family.right)}
        people = [name for some in PEOPLE_BY_RANK for name in some]
        known = {*paired, *self._taken(), *self._called_so(), *all_named(raw.names, (*WEIGHT, *people, *_TIE, *_BAD))}
        free = [name for name in raw if name not in known and not tells(name, NO_ANSWER)][:_MOST_COLUMNS]
        plain_ones = [name for name in free if is_plain(raw[name]) and not raw[name].dtype.is_temporal()]
        varying = [name for name in plain_ones if raw[name].n_unique() > 1 and not numbers_rows(raw[name])]
        found = [one for name in varying if (one := self._answered(name)) is not None]
        own = own_words(self.said)
        return [one for one in found if one.ways and not _other_words(own, one)]

    def _answered(self, name: str, needed: bool = False) -> Answered | None:
        try:
            text = as_text(self.table[name])
        except DataError:
            if needed:
                raise
            return None
        texts, notes = without_points(
            {"left": self.items[0], "right": self.items[1], "answer": text},
            {"left": self.left, "right": self.right, "answer": name},
        )
        self.notes = tuple(note for note in notes if f'"{shown(name)}"' in note)
        words = side_words(self.left, self.right, *own_words(self.said))
        toward = positive_side(name, self.left, self.right)
        answer = texts["answer"].alias(name)
        return Answered(answer, texts["left"], texts["right"], words, self.said, toward, self.notes)

    def is_hardly_chance(self, answered: Answered) -> bool:
        """Whether every answer is an item of its row, and would hardly be if it were any of the items."""
        if not answered.names_items:
            return False
        n_items = pl.concat([side.alias("") for side in self.items]).n_unique()
        return n_items > 2 and answered.n_decided * math.log(n_items / 2.0) > -math.log(_BY_CHANCE)

    def _pairs(self, answered: Answered, way: Way) -> Pairs:
        roles = {"left": self.left, "right": self.right}
        return Pairs(self.said, roles, answered, way, notes=answered.notes, **self.more)

    def read(self, answered: Answered, way: Way, sure: int) -> Iterator[Reading]:
        """The readings of a column of answers in one way."""
        say: ReadOptions = {**self.base.say, "winner": answered.name, **way.say}
        if len(answered.ways) > 1 and not way.say and self.said.get("winner_is") is None:
            say["winner_is"] = "item" if way.code is None else "side"
        sentence = f'who won by "{shown(answered.name)}"' + (f", {way.sentence}" if way.sentence else "")
        yield from _read(self.raw, self._pairs(answered, way), sentence, say, sure)

    def partly(self, answered: Answered) -> Reading:
        """The reading under which most words mean something, and others nothing."""
        return next(_read(self.raw, self._pairs(answered, answered.partly), "", {}, self.base.sure))


def _other_words(own: Sequence[Sequence[object]], answered: Answered) -> str:
    """That a word for a side is one that no answer is; empty where each is one."""
    there = {squeezed(word): word for word in values_of(answered.text).sort().to_list()}
    for key, words in zip(("left_word", "right_word"), own, strict=True):
        lacking = next((str(word) for word in words if squeezed(str(word)) not in there), None)
        if lacking is not None:
            return (
                f'{option(key, shown(lacking))} names a word that column "{shown(answered.name)}" never holds; it '
                f"holds {first_few(list(there.values()))}.{did_you_mean(lacking, there.values())}"
            )
    return ""


def _read(raw: Columns, pairs: Pairs, sentence: str, say: ReadOptions, sure: int) -> Iterator[Reading]:
    """The readings of pairs with every choice of who answered, of weights and of tasks."""
    table, said = raw if pairs.table is None else Columns(pairs.table), pairs.options
    answer = [] if pairs.answered is None else [pairs.answered.name]
    taken = [*pairs.roles.values(), *answer, *pairs.used.values()]
    for say_roles, roles in _roles(table, said, taken):
        full = {**roles, **pairs.roles}
        for say_task, task, ask in _tasks(table, said, full, taken, pairs):
            more: ReadOptions = {**say_roles, **say_task}
            placed = {**full, **({} if task is None else {"task": task})}
            how = [f'{role} by "{shown(name)}"' for role, name in more.items() if isinstance(name, str)]
            made = partial(assemble, raw, replace(pairs, options={**said, **more, **say}, roles=placed))
            yield Reading(", ".join([sentence, *how]), {"kind": "pairs", **say, **more}, made, sure, ask)


# --- who won, in a column for each side -------------------------------------------------------------------------------


def _of_both_sides(
    raw: Columns, said: ReadOptions, base: _Base, named: str | None = None, others: bool = False
) -> Iterator[Reading]:
    """Who won by a column for each side: whether it won, how often, or how good it is.

    ``named`` is one of the two that were said to be the answer; ``others``: whether other columns may say who won, so
    that numbers which say how good each is do not tell it for sure.
    """
    left, right = base.left, base.right
    sides = sides_of(left, right)
    families = dict.fromkeys(
        [*pair_families(raw.names, *([] if sides is None else [sides])), *pair_families(raw.names)]
    )
    rest = [one for one in families if {one.left, one.right}.isdisjoint((left, right))]
    stem = {*next((one.stem for one in families if (one.left, one.right) == (left, right)), ())}
    if named is not None:
        rest = [one for one in rest if named in (one.left, one.right)]
        if not rest:
            return
    flagged = [*_of_flags(raw, said, base, rest, stem)]
    yield from flagged
    if flagged:
        return
    counted_ones = [*_of_counts(raw, said, base, rest, stem)]
    yield from counted_ones
    if not counted_ones:
        yield from _of_scores(raw, said, base if named or not others else replace(base, sure=OPEN), rest, stem)


def _of_flags(
    raw: Columns, said: ReadOptions, base: _Base, families: Sequence[Family], stem: set[str]
) -> Iterator[Reading]:
    """Columns that say whether the left item, the right item, or neither of them won; or one for one side alone."""
    found = [one for one in families if FLAGGED & {*one.stem} and {*one.stem} <= FLAGGED | stem]
    if found:
        both = found[0].left, found[0].right
        odd = next((name for name in both if flags(raw[name]) is None), None)
        if odd is None:
            yield from _flagged(raw, said, base, *both)
        elif not COUNTED & {*found[0].stem}:
            message = f'column "{shown(odd)}" says whether it won, and must be 1 or 0 in every row.'
            yield refused(DataError(message), base.sure)
        return
    if said.get("winner"):
        return
    for name in sorted({*raw} - {base.left, base.right}):
        if (sign := _side_of(name, base)) and flags(raw[name]) is not None:
            yield from _flagged(raw, said, base, *((name, None) if sign > 0 else (None, name)))
            return


def _side_of(name: str, base: _Base) -> int:
    """The side that a mark such as left_won or is_A_selected speaks of: 1 the left one, -1 the right one, or 0."""
    form = tokens(name)
    rest = [token for token in form if token not in FLAGGED]
    if form and not rest and opponents([base.left, base.right])[0] == base.right:
        return 1  # whether the one of the row won
    return side_words(base.left, base.right).sign.get(squeezed("".join(rest)), 0) if 0 < len(rest) < len(form) else 0


def _flagged(raw: Columns, said: ReadOptions, base: _Base, left: str | None, right: str | None) -> Iterator[Reading]:
    ties = [name for words in (_TIE, _BAD) if (name := guess_one(raw.names, words)) is not None]
    ties = [name for name in ties if flags(raw[name]) is not None]
    marks = {name: flags(raw[name]) for name in (left, right, *ties) if name is not None}
    flagged = {name: mark for name, mark in marks.items() if mark is not None}
    n = raw.n_rows
    tie, bad = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for name in ties:
        tie |= flagged[name]
        bad |= flagged[name] & is_called(name, _BAD)
    one, two = (None if name is None else flagged[name] for name in (left, right))
    wins: list[BoolArray] = [
        ~tie & ~other if mine is None and other is not None else np.asarray(mine)
        for mine, other in ((one, two), (two, one))
    ]
    outcome = wins[0].astype(float) - wins[1]
    outcome[~(wins[0] | wins[1] | tie)] = np.nan
    several = wins[0].astype(int) + wins[1] + tie > 1
    used = {"left wins": left, "right wins": right, **{f"tie {k}": name for k, name in enumerate(ties, 1)}}
    pairs = Pairs(
        said, base.roles, outcome=outcome, both_bad=bad,
        used={role: name for role, name in used.items() if name is not None},
    )  # fmt: skip
    if several.any():
        row = int(several.argmax())
        message = (
            f'{counted(int(several.sum()), "row")} have more than one of "{shown(left)}", "{shown(right)}" and a tie '
            f"(first: row {row + 1}); exactly one must be 1."
        )
        yield refused(DataError(message), base.sure)
        return
    yield from _read(raw, pairs, "who won by marks of each side", base.say, base.sure)


def _of_counts(
    raw: Columns, said: ReadOptions, base: _Base, families: Sequence[Family], stem: set[str]
) -> Iterator[Reading]:
    """How many were for each side: a row becomes an answer for each, weighted by how many."""
    found = [(one.left, one.right) for one in families if {*one.stem} & COUNTED and {*one.stem} <= COUNTED | stem]
    if not found and said.get("winner") is None and (two_counts := _won_and_lost_counts(raw)):
        found = [two_counts]
    for one, two in found:
        if not _hold_numbers(raw, (one, two), whole=True, least=0.0):
            continue
        tie = guess_one([name for name in raw if name not in (one, two)], _TIES)
        tie = tie if tie is not None and _hold_numbers(raw, (tie,), whole=True, least=0.0) else None
        counts = [name for name in (one, two, tie) if name is not None]
        number = np.stack([numbers_of(raw[name], name, "number of answers") for name in counts]).T
        number = np.where(np.isnan(number), 0.0, number)
        row, place = np.nonzero((number > 0) | ((number.sum(axis=1) == 0)[:, None] & (np.arange(len(counts)) == 0)))
        weight = " and ".join(counts)
        unfolded = {name: series.gather(row) for name, series in raw.items() if name not in counts}
        unfolded[weight] = pl.Series(number[row, place])
        used = {"left wins": counts[0], "right wins": counts[1]} | ({} if tie is None else {"ties": tie})
        note = f"Each row says how many were for the left item ({shown(one)}) and for the right ({shown(two)})."
        pairs = Pairs(
            {**said, "weight": False}, {**base.roles, "weight": weight}, outcome=np.array([1.0, -1.0, 0.0])[place],
            table=unfolded, used=used, notes=(note,), called=(weight,),
        )  # fmt: skip
        if isinstance(said.get("weight"), str):
            message = (
                f'"{shown(one)}" and "{shown(two)}" count the answers for each side, which are their weights; leave '
                f"{option('weight', str(said.get('weight')))} out."
            )
            yield refused(DataError(message), base.sure)
            return
        yield from _read(raw, pairs, f'counts in "{shown(one)}" and "{shown(two)}"', base.say, base.sure)


def _won_and_lost_counts(raw: Columns) -> tuple[str, str] | tuple[()]:
    """Columns of how often the one of the row won and lost, if there are both."""
    won, lost = guess_one(raw.names, _WON), guess_one(raw.names, _LOST)
    if won is None or lost is None or not _hold_numbers(raw, (won, lost), whole=True, least=0.0):
        return ()
    return won, lost


def _of_scores(
    raw: Columns, said: ReadOptions, base: _Base, families: Sequence[Family], stem: set[str]
) -> Iterator[Reading]:
    """Two numbers of the pair: the better one wins, equal ones are a tie."""
    ends = [(base.left, base.right)]
    rest = [one for one in families if _hold_numbers(raw, (one.left, one.right)) and (one.left, one.right) not in ends]
    named = [one for one in rest if {*one.stem} & SCORED and {*one.stem} <= SCORED | OF_ANY | stem]
    for one in named or rest:
        values = [numbers_of(raw[name], name, "score") for name in (one.left, one.right)]
        difference = np.sign(values[0] - values[1])
        sentence = f'"{shown(one.left)}" and "{shown(one.right)}" say how good each is'
        known = said.get("best") or (good_end(one.left) if named else None)
        for best in ("high", "low") if known is None else (known,):
            which = "higher" if best == "high" else "lower"
            note = (
                f'Of "{shown(one.left)}" and "{shown(one.right)}" the {which} number wins, and equal numbers are a tie.'
            )
            pairs = Pairs(
                {**said, "winner": None}, base.roles, outcome=difference if best == "high" else -difference,
                used={"score of left": one.left, "score of right": one.right}, notes=(note,),
            )  # fmt: skip
            say: ReadOptions = {**base.say, "winner": one.left, **({"best": best} if known is None else {})}
            sure = base.sure if named or said.get("winner") else OPEN
            yield from _read(raw, pairs, f"{sentence}, {best} is good", say, sure)


def _hold_numbers(raw: Mapping[str, pl.Series], names: Sequence[str], **more: Any) -> bool:
    """Whether columns hold some numbers and nothing else."""
    return all(
        raw[name].dtype != pl.Boolean and raw[name].null_count() < len(raw[name]) and holds_numbers(raw[name], **more)
        for name in names
    )


# --- winners and losers -----------------------------------------------------------------------------------------------


def _of_results(raw: Columns, said: ReadOptions, won: str | None, lost: str | None) -> Iterator[Reading]:
    """A column of winners and one of losers, and the side on which the winner was, where a column says it."""
    families = won_and_lost_families(raw.names)
    sure = SURE
    if won is not None or lost is not None:
        found = next((one for one in families if won in (None, one.left) and lost in (None, one.right)), None)
        if None in (won, lost) and found is None:
            role = "won" if won is None else "lost"
            raise DataError(f"found no column for the item that {role}; name it with {option(role, 'NAME')}.")
        pairs = [(won or found.left, lost or found.right)] if found else [(str(won), str(lost))]
    else:
        likely = [one for one in likely_items(families) if one.rank in (0, 1) and not _are_counts(raw, one)]
        likely = sorted(likely, key=lambda one: ("name" not in one.stem, not one.stem))[:1]
        pairs = [(one.left, one.right) for one in likely]
        if not pairs and not pair_families(raw.names):
            pairs, sure = _perhaps_results(raw), OPEN
    for one, two in pairs:
        yield from or_refused(_won_and_lost(raw, said, one, two, {"won": one, "lost": two}, sure), sure)


def _are_counts(raw: Columns, one: Family) -> bool:
    """Whether columns called won and lost count, beside columns that hold the items."""
    rest = [name for name in raw if name not in (one.left, one.right)]
    return _won_and_lost_counts(raw) == (one.left, one.right) and any(
        _are_texts(raw, name) and not tells(name, NO_ANSWER) for name in rest
    )


def _perhaps_results(raw: Columns) -> list[tuple[str, str]]:
    """Any two columns of items, either way round."""
    free = [name for name in raw if not tells(name, NO_ANSWER) and not is_called(name, WEIGHT)]
    if any(half_of_pair(name) != (None, None) for name in free):
        return []
    return [(one, two) for pair in _alike(raw, free) for one, two in (pair, pair[::-1])]


def _won_and_lost(
    raw: Columns, said: ReadOptions, won: str, lost: str, say: ReadOptions, sure: int
) -> Iterator[Reading]:
    roles = {"left": won, "right": lost}
    tie = guess_one([name for name in raw if name not in (won, lost)], _TIE)
    tied = None if tie is None or said.get("winner") == tie else flags(raw[tie])
    outcome = np.ones(raw.n_rows, dtype=np.int8) if tied is None else np.where(tied, 0, 1).astype(np.int8)
    used = {"tie": str(tie)} if tied is not None and tied.any() else {}
    pairs = Pairs({**said, "winner": None}, roles, outcome=outcome, used=used, no_sides=f"{won} and {lost} columns")
    side = said.get("winner") or guess_one([name for name in raw if name not in (won, lost)], WINNER)
    if side is not None and side in raw and is_plain(raw[side]):
        words = side_words("left", "right", *own_words(said)).sign
        text = as_text(raw[side])
        there = text.drop_nulls().unique().to_list()
        if there and all(squeezed(word) in words for word in there):
            shown_left = np.array([0 if word is None else words[squeezed(word)] for word in text], dtype=np.int8)
            note = f'"{shown(side)}" says on which side the winner was shown.'
            used = {**used, "side of the winner": side}
            pairs = replace(pairs, used=used, shown_left=shown_left, no_sides="", notes=(note,))
        elif said.get("winner") is not None:
            raise DataError(
                f'column "{shown(side)}" beside those of the winner, "{shown(won)}", and of the loser, '
                f'"{shown(lost)}", must say the side on which the winner was shown, such as left or right; it holds '
                f"{', '.join(shown(word) for word in sorted(there)[:3])}. Leave {option('winner', side)} out."
            )
    yield from _read(raw, pairs, f'"{shown(won)}" won over "{shown(lost)}"', say, sure)
