"""Which columns hold pairs and who won: a winner, winners and losers, one-hot, counts or scores of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from predilect._text import shown
from predilect._types import BoolArray
from predilect.data.frames import Columns, as_text
from predilect.data.intake import counted
from predilect.data.read.assemble import Pairs
from predilect.data.read.columns import guess_pair, listed
from predilect.data.read.names import (
    COUNTED,
    FLAGGED,
    IDENTIFIED,
    NO_ANSWER,
    OF_ANY,
    PEOPLE,
    PEOPLE_OF_SETS,
    PLACED,
    PLACES,
    SCORED,
    TASKS,
    TIE_WORDS,
    WEIGHT,
    WINNER,
    Family,
    all_named,
    answer_columns,
    best_and_worst,
    could_be_side,
    good_end,
    guess_one,
    half_of_pair,
    is_called,
    likely_items,
    pair_families,
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
)
from predilect.data.read.reshape import items_apart
from predilect.data.read.winners import tells_of_sides
from predilect.errors import DataError

_TIE = ("winner_tie", "winner_ties", "tie", "is_tie", "draw", "winner_draw")
_TIES = ("ties", "tie", "draws", "n_ties", "num_ties", "num_tie", "tie_votes", "num_vote_tie", "wins_tie", "votes_tie")
_BAD = ("winner_tie_both_bad", "winner_bothbad", "winner_both_bad", "bothbad", "both_bad")


def refuse_both_in_one(series: pl.Series, answer: pl.Series) -> None:
    """DataError if all values of a column hold both items of a pair, of which the answer is one, or a side."""
    both = None if series.dtype.is_nested() or answer.dtype.is_nested() else items_apart(series)
    if both is None:
        return
    said = as_text(answer).str.strip_chars()
    tie = said.str.to_lowercase().is_in(list(TIE_WORDS))
    words = said.filter(~tie).unique()
    sides = all(could_be_side(word) and not word.isdecimal() for word in words.drop_nulls())
    if sides or ((said == both[0]) | (said == both[1]) | tie).all():
        raise DataError(
            f'column "{shown(series.name)}" may hold two items in every row, as {shown(both[0][0])} and '
            f'{shown(both[1][0])} in row 1, of which "{shown(answer.name)}" says the better one: then make two columns '
            f"of it, called left and right. If each is one alternative, say {option('alternatives', series.name)}."
        )


def find_pairs(raw: Columns, options: ReadOptions, *, perhaps: bool = False) -> Pairs | None:
    """How a table holds pairs, None where its columns do not say that it does; DataError where several could be them.

    ``perhaps``: columns that could hold anything are taken, too, as nothing else is in the table.
    """
    if options.get("kind") not in (None, "pairs"):
        return None
    names = raw.names
    sides = options.get("left"), options.get("right")
    results = options.get("won"), options.get("lost")
    none = (None, None)
    if sides == results == none and options.get("kind") is None and options.get("alternatives") is not None:
        return None
    left, right = guess_pair(names, *sides)
    if sides == none and not perhaps and options.get("kind") is None and left is not None and right is not None:
        likely = likely_items(pair_families(names))
        if likely and likely[0].rank == 2 and _are_texts(raw, left, right):
            _refuse_other_items(raw, left, right)
        elif likely and likely[0].rank == 2:
            left = right = None  # numbers under a name that is none of items: attributes, as well
    won, lost = _won_and_lost(names, *results)
    rank = _rank(left, right)
    if sides == none and (rank == 3 or (rank == 2 and won is not None)):
        left = right = None
    if sides == none and left is right is None and won is None:
        left, right = _any_pair(raw, perhaps) or none
    if left is not None and right is not None and results == none:
        return _with_answer(raw, {**options, "left": left, "right": right}, perhaps)
    if won is not None and lost is not None and sides == none:
        return _with_winners(raw, options, won, lost)
    if not sides == results == none:
        return Pairs(options)
    half = left or right
    return Pairs(options) if half is not None and half_of_pair(half) != (None, None) else None


def _refuse_other_items(raw: Columns, left: str, right: str) -> None:
    """DataError if two columns of texts are all that their names say of items, and two others hold what recurs."""
    names = raw.names
    taken = {*answer_columns(names), *all_named(names, PEOPLE), left, right}
    if could_be_items([raw[left], raw[right]]):
        return
    for one, two in pairs_of_items(
        {name: raw[name] for name in sorted({*names} - taken) if not tells(name, NO_ANSWER)}
    ):
        raise DataError(
            f"the items that were compared could stand in {listed([left, right])}, or in {listed([one, two])}. Row 1 "
            f"is about {shown(raw[left][0])} and {shown(raw[right][0])}, {option('left', left, right=right)}, or about "
            f"{shown(raw[one][0])} and {shown(raw[two][0])}, {option('left', one, right=two)}."
        )


def _rank(left: str | None, right: str | None) -> int | None:
    """How surely two columns hold items by their names, as of :class:`Family`."""
    if left is None or right is None:
        return None
    return next((one.rank for one in pair_families([left, right]) if one.left == left), None)


def _won_and_lost(names: Sequence[str], won: str | None, lost: str | None) -> tuple[str | None, str | None]:
    """Columns of winners and of losers, as given or by their names; of models rather than of what they wrote."""
    if won is not None and lost is not None:
        return won, lost
    families = won_and_lost_families(names)
    if won is not None or lost is not None:
        found = next((one for one in families if one.left == won or one.right == lost), None)
        return (won, lost) if found is None else (found.left, found.right)
    likely = [one for one in likely_items(families) if one.rank in (0, 1)]
    likely = sorted(likely, key=lambda one: ("name" not in one.stem, not one.stem))
    return (likely[0].left, likely[0].right) if likely else (None, None)


def _any_pair(raw: Columns, perhaps: bool) -> tuple[str, str] | None:
    """The only two columns of any name for two sides; of numbers, which may be attributes, only ``perhaps``."""
    counts, likely = _named_by_counts(raw.names), likely_items(pair_families(raw.names))
    if counts is not None or len(likely) != 1:
        return counts
    pair = likely[0].left, likely[0].right
    return pair if perhaps or _are_texts(raw, *pair) else None


def _are_texts(raw: Columns, *names: str) -> bool:
    """Whether columns hold texts of which none is a number."""
    return all(
        raw[name].dtype == pl.String
        and raw[name].str.strip_chars().cast(pl.Float64, strict=False).null_count() == len(raw[name])
        and raw[name].null_count() < len(raw[name])
        for name in names
    )


def _named_by_counts(names: Sequence[str]) -> tuple[str, str] | None:
    """Columns of items whose words for the sides only counts tell: base and ours by votes_base and votes_ours."""
    forms = {name: tokens(name) for name in names}
    counts = sorted(name for name in names if {*forms[name][:-1]} and {*forms[name][:-1]} <= COUNTED)
    for one, two in combinations(counts, 2):
        if forms[one][:-1] == forms[two][:-1]:
            families = likely_items(pair_families(names, (forms[one][-1], forms[two][-1])))
            if len(families) == 1 and families[0].rank == 0:
                return families[0].left, families[0].right
    return None


def _with_winners(raw: Columns, options: ReadOptions, won: str, lost: str) -> Pairs:
    """Pairs by columns of winners and losers, and the side on which the winner was, where a column says it."""
    side = options.get("winner") or guess_one([name for name in raw if name not in (won, lost)], WINNER)
    found = Pairs(
        {**options, "left": won, "right": lost, "winner": None}, outcome=np.ones(raw.n_rows, dtype=np.int8),
        no_sides=f"{won} and {lost} columns",
    )  # fmt: skip
    if side is not None and side in raw:
        words = side_words("left", "right", *own_words(options)).sign
        text = as_text(raw[side])
        said = text.drop_nulls().unique().to_list()
        if said and all(squeezed(word) in words for word in said):
            shown_left = np.array([0 if word is None else words[squeezed(word)] for word in text], dtype=np.int8)
            note = f'"{shown(side)}" says on which side the winner was shown.'
            used = {"side of the winner": side}
            return replace(found, used=used, shown_left=shown_left, no_sides="", notes=(note,))
        if options.get("winner") is not None:
            raise DataError(
                f'column "{shown(side)}" beside those of the winner, "{shown(won)}", and of the loser, '
                f'"{shown(lost)}", must say the side on which the winner was shown, such as left or right; it holds '
                f"{', '.join(shown(word) for word in sorted(said)[:3])}. Leave {option('winner', side)} out."
            )
    return found


def _with_answer(raw: Columns, options: ReadOptions, perhaps: bool) -> Pairs | None:
    """Pairs of two columns with whatever says who won; None where nothing does."""
    names, left, right = raw.names, str(options["left"]), str(options["right"])
    if options.get("outcome") is not None or options.get("winner") is not None:
        return Pairs(options, answers=tuple(filter(None, [options.get("winner")])))
    named = options.get("kind") == "pairs" or perhaps
    bare = tokens(left) in (("a",), ("1",), ("x",)) or (tokens(left), tokens(right)) == (("first",), ("second",))
    in_long = guess_one(names, (*PLACED, *IDENTIFIED)) and guess_one(names, TASKS)
    if bare and not named and in_long and not _are_texts(raw, left, right):
        return None  # attributes called a and b
    lost = [family.right for family in won_and_lost_families(names)]
    taken = [left, right, *lost, *(options.get(role) for role in ("user", "weight", "task", "context"))]
    answers = tuple(name for name in answer_columns(names) if name not in taken)

    def otherwise() -> Pairs | None:
        return _of_both_sides(raw, options)

    if answers:
        return Pairs(options, answers=answers, otherwise=otherwise)
    form = otherwise()
    places = (tokens(left), tokens(right)) == (("first",), ("second",)) or not PLACES.isdisjoint(tokens(left))
    by_name = _rank(left, right) in (0, 1, 2) and not places and best_and_worst(names) is None
    if form is None and by_name and not all(flags(raw[name]) is not None for name in (left, right)):
        return Pairs(options)  # in which the winner is missing
    return form


def _of_both_sides(raw: Columns, options: ReadOptions) -> Pairs | None:
    """Who won by a column for each side: whether it won, how often, or how good it is."""
    names, left, right = raw.names, str(options["left"]), str(options["right"])
    if left not in names or right not in names:
        return None
    sides = sides_of(left, right)
    families = dict.fromkeys([*pair_families(names, *([] if sides is None else [sides])), *pair_families(names)])
    rest = [one for one in families if {one.left, one.right}.isdisjoint((left, right))]
    stem = {*next((one.stem for one in families if (one.left, one.right) == (left, right)), ())}
    return (
        _of_flags(raw, options, rest, stem)
        or _of_counts(raw, options, rest, stem)
        or _of_scores(raw, options, rest, stem)
    )


def _of_flags(raw: Columns, options: ReadOptions, families: Sequence[Family], stem: set[str]) -> Pairs | None:
    """Columns that say whether the left item, the right item, or neither of them won."""
    found = [one for one in families if FLAGGED & {*one.stem} and {*one.stem} <= FLAGGED | stem]
    if not found:
        return None
    left, right = found[0].left, found[0].right
    ties = [name for words in (_TIE, _BAD) if (name := guess_one(raw.names, words)) is not None]
    flagged: dict[str, BoolArray] = {}
    for name in (left, right, *ties):
        flag = flags(raw[name])
        if flag is None and COUNTED & {*found[0].stem}:
            return None
        if flag is None:
            raise DataError(f'column "{shown(name)}" says whether it won, and must be 1 or 0 in every row.')
        flagged[name] = flag
    tie, bad = np.zeros(raw.n_rows, dtype=bool), np.zeros(raw.n_rows, dtype=bool)
    for name in ties:
        tie |= flagged[name]
        bad |= flagged[name] & is_called(name, _BAD)
    several = flagged[left].astype(int) + flagged[right] + tie > 1
    if several.any():
        row = int(several.argmax())
        raise DataError(
            f'{counted(int(several.sum()), "row")} have more than one of "{shown(left)}", "{shown(right)}" and a tie '
            f"(first: row {row + 1}); exactly one must be 1."
        )
    outcome = flagged[left].astype(float) - flagged[right]
    outcome[~(flagged[left] | flagged[right] | tie)] = np.nan
    used = {"left wins": left, "right wins": right, **{f"tie {n}": name for n, name in enumerate(ties, 1)}}
    return Pairs(options, outcome=outcome, used=used, both_bad=bad)


def _of_counts(raw: Columns, options: ReadOptions, families: Sequence[Family], stem: set[str]) -> Pairs | None:
    """How many were for each side: a row becomes an answer for each, weighted by how many."""
    found = [one for one in families if {*one.stem} & COUNTED and {*one.stem} <= COUNTED | stem]
    found = [one for one in found if _hold_numbers(raw, one, whole=True, least=0.0)]
    if not found:
        return None
    if len(found) > 1:
        raise DataError(_several(found, "how many were for each side"))
    if isinstance(options.get("weight"), str):
        raise DataError(
            f'"{shown(found[0].left)}" and "{shown(found[0].right)}" count the answers for each side, which are their '
            f"weights; leave {option('weight', str(options.get('weight')))} out."
        )
    tie = guess_one(raw.names, _TIES)
    counts = [name for name in (found[0].left, found[0].right, tie) if name is not None]
    number = np.stack([numbers_of(raw[name], name, "number of answers") for name in counts]).T
    number = np.where(np.isnan(number), 0.0, number)
    row, place = np.nonzero((number > 0) | ((number.sum(axis=1) == 0)[:, None] & (np.arange(len(counts)) == 0)))
    weight = " and ".join(counts)
    unfolded = {name: series.gather(row) for name, series in raw.items() if name not in counts}
    unfolded[weight] = pl.Series(number[row, place])
    outcome = np.array([1.0, -1.0, 0.0])[place]
    used = {"left wins": counts[0], "right wins": counts[1]} | ({} if tie is None else {"ties": tie})
    note = f"Each row says how many were for the left item ({shown(counts[0])}) and for the right ({shown(counts[1])})."
    return Pairs(
        {**options, "weight": weight}, table=unfolded, outcome=outcome, used=used, notes=(note,), called=(weight,)
    )


def _of_scores(raw: Columns, options: ReadOptions, families: Sequence[Family], stem: set[str]) -> Pairs | None:
    """Two ratings of the pair: the better one wins, equal ones are a tie."""
    found = [one for one in families if {*one.stem} & SCORED and {*one.stem} <= SCORED | OF_ANY | stem]
    found = [one for one in found if _hold_numbers(raw, one)]
    if not found:
        return None
    open_ones = [one for one in families if one.rank is not None and _hold_numbers(raw, one)]
    if len(found) > 1 or open_ones:
        raise DataError(_several([*found, *open_ones], "how good each was"))
    left, right = found[0].left, found[0].right
    values = [numbers_of(raw[name], name, "score") for name in (left, right)]
    difference = np.sign(values[0] - values[1])
    best = options.get("best") or good_end(left)
    row = int(np.argmax(np.nan_to_num(difference) != 0))
    one, two = (shown(raw[str(options[side])][row]) for side in ("left", "right"))
    high, low = (one, two) if difference[row] > 0 else (two, one)
    says = (
        f"Row {row + 1} ({one} {values[0][row]:g}, {two} {values[1][row]:g}) says that {high} is better, "
        f"{option('best', 'high')}, or {low}, {option('best', 'low')}"
    )
    other = None if options.get("best") else _other_answer(raw, options, (left, right))
    if other is not None:
        raise DataError(
            f'columns "{shown(left)}" and "{shown(right)}" could say who won, and so could "{shown(other)}". {says}; '
            f"or name the column that says it: {option('winner', other)}."
        )
    if best is None:
        raise DataError(
            f'columns "{shown(left)}" and "{shown(right)}" say how good each item is, and no word says which end of '
            f"the numbers is good. {says}."
        )
    which = "higher" if best == "high" else "lower"
    note = f'Of "{shown(left)}" and "{shown(right)}" the {which} number wins, and equal numbers are a tie.'
    outcome = difference if best == "high" else -difference
    return Pairs(options, outcome=outcome, used={"score of left": left, "score of right": right}, notes=(note,))


def _other_answer(raw: Columns, options: ReadOptions, scores: tuple[str, str]) -> str | None:
    """A column that may say who won: it is called so, or it holds numbers, words for sides, or items."""
    names, left, right = raw.names, str(options["left"]), str(options["right"])
    families = [name for family in pair_families(names) for name in (family.left, family.right)]
    given = [options.get(role) for role in ("user", "weight", "task", "context")]
    known = {*all_named(names, (*PEOPLE_OF_SETS, *TASKS, *WEIGHT)), *families, *given, *scores, left, right}
    words = side_words(left, right, *own_words(options))
    items = {*as_text(raw[left]).drop_nulls(), *as_text(raw[right]).drop_nulls()}
    by_name = [name for name in answer_columns(names) if name not in known]
    if by_name:
        return by_name[0]
    for name in sorted({*names} - known):
        column = raw[name]
        if tells(name, NO_ANSWER) or not is_plain(column) or column.dtype.is_temporal():
            continue
        said = {*as_text(column).drop_nulls()}
        if len(said) < 2 or numbers_rows(column):
            continue
        sides = all(map(could_be_side, said - items - TIE_WORDS)) or tells_of_sides(said - items, words)
        if holds_numbers(column) or sides or flags(column) is not None:
            return name
    return None


def _hold_numbers(raw: Columns, one: Family, **more: Any) -> bool:
    """Whether the columns of both sides hold some numbers and nothing else."""
    return all(
        column.dtype != pl.Boolean and column.null_count() < len(column) and holds_numbers(column, **more)
        for column in (raw[one.left], raw[one.right])
    )


def _several(found: Sequence[Family], what: str) -> str:
    told = ", or ".join(f'"{shown(one.left)}" and "{shown(one.right)}"' for one in found)
    return (
        f"no column says who won, and {what} could be said by {told}. Leave all but one of these out of the table, or "
        f"name the column of the answer with {option('winner', 'NAME')}."
    )
