"""Tables with one row a task that name items: orders, the best, or best and worst, of those shown, ranks by column."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from predilect._text import shown
from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data.frames import as_text, clean_ids
from predilect.data.intake import TWICE, UNCLEAR
from predilect.data.read.columns import listed
from predilect.data.read.long import keep_rated, levels_of_ranks, levels_of_ratings
from predilect.data.read.names import (
    APPROVED,
    BEST,
    CHOSEN,
    KIND_OF,
    MEASURES,
    NO_ANSWER,
    NTH,
    NUMBERED,
    PEOPLE_OF_SETS,
    RANKED,
    RATED,
    guess_one,
    is_called,
    pair_families,
    plain,
    tells,
    won_and_lost_families,
)
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.set_columns import (
    best_and_worst,
    flags,
    holds_numbers,
    numbers_of,
    place_of,
    places_between,
    words_of,
)
from predilect.data.read.sets import (
    Sets,
    best_worst_levels,
    chosen_levels,
    columns_by_role,
    named_or_guessed,
    sets_of_rows,
)
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

_SHOWN = ("alternatives", "items", "options", "shown", "candidates", "choices", "choice_set", "models", "set")
_EACH = (
    "item", "alt", "alternative", "option", "candidate", "model", "product", "object", "concept", "shown", "stimulus",
    "statement", "feature", "message",
)  # fmt: skip
_ORDER = ("order", "ranking", "ranked", "ballot", "preferences", "ranks")
_ANSWER = ("preference", "vote", "answer", "response")
_PLACES = ("rank", "ranked", "place", "position", "pos", "choice", "pref", "preference", "top", "order")


@dataclass(frozen=True)
class Listed:
    """Columns of a table of items by role: those shown, and those of the answer, the best first."""

    kind: str
    alternatives: tuple[str, ...]
    answer: tuple[str, ...]
    columns: dict[str, str] = field(default_factory=dict)
    items: tuple[str, ...] = ()  # what the columns of the answer are about, where they hold ranks or ratings
    last: bool = False  # whether the last column of an order has the worst, below all that it does not name
    ask: str = ""  # what must be said first, unless the table can be read otherwise


def find_listed(names: Sequence[str], raw: Mapping[str, pl.Series], options: ReadOptions) -> Listed | None:
    """Columns of a table of orders or of choices from listed items, or None if these are none of one."""
    kind, winner, given = options.get("kind"), options.get("winner"), options.get("alternatives")
    roles = columns_by_role([name for name in names if not _is_order(raw[name], named=True)], options)
    free = [name for name in names if name not in roles.values()]
    in_columns = not isinstance(given, str) and given is not None and all(name in names for name in given)
    if kind in ("rank", "rating") and in_columns and given is not None:
        return Listed(kind, (), tuple(given), roles, tuple(given))
    in_list = isinstance(given, str) and given in names and is_list(raw[given])
    shown_in = (str(given),) if in_list else tuple(given or ()) if in_columns else ()
    shown_in = shown_in or _alternatives(free, raw)
    rest = [name for name in free if name not in shown_in]
    both = best_and_worst(rest)
    if both is not None and kind in (None, "best_worst", "order") and winner is None:
        shown_in = shown_in or _columns_that_hold(both, rest, raw)
        between = places_between(rest)
        if between and kind != "best_worst" and flags(raw[both[0]]) is None:
            order = (both[0], *between, both[1])
            return Listed("order", shown_in, order, roles, last=True, ask=_unshared(order, raw, shown_in, kind))
        if shown_in and kind != "order":
            return Listed("best_worst", shown_in, both, {**roles, "best": both[0], "worst": both[1]})
        if kind != "order":
            return None
    if kind in (None, "rank"):
        in_words = tuple(name for name in rest if _in_places(raw[name]))
        if len(in_words) > 1:
            return Listed("rank", (), in_words, roles, _inner(in_words))
    if kind in (None, "rank", "rating"):
        found = _ranks_by_column(rest, raw, kind, roles)
        if found is None and kind is not None and guess_one(rest, (*KIND_OF[kind], *CHOSEN)) is None and winner is None:
            several = _any_family(rest)
            found = Listed(kind, (), several, roles, several) if several else None
        if found is not None:
            return found
    doubt: Listed | None = _places_rated(rest, raw, roles) if kind is None else None
    if kind in (None, "order"):
        order = _order_columns(rest, raw)
        if kind == "order" and winner is not None:
            # Numbers are the ranks of a long table.
            order = (winner,) if raw[winner].dtype == pl.String or _lists(raw[winner]) is not None else ()
        elif kind == "order" and not order:
            order = _any_family(rest)
        if order:
            used = {**roles, "order": order[0]} if len(order) == 1 else roles
            found = Listed("order", shown_in, order, used, ask=_unshared(order, raw, shown_in, kind))
            if not found.ask:
                return found
            doubt = doubt or found
    chosen = winner or guess_one(rest, CHOSEN)
    if chosen is None or not shown_in or kind not in (None, "best", "approval"):
        return doubt
    in_list = _lists(raw[chosen]) is not None
    if in_list and kind == "best":
        return None
    return Listed(
        "approval" if in_list or kind == "approval" else "best", shown_in, (chosen,), {**roles, "winner": chosen}
    )


def _alternatives(names: Sequence[str], raw: Mapping[str, pl.Series]) -> tuple[str, ...]:
    """One column with the list of all that was shown, or a column for each."""
    one = guess_one(names, _SHOWN)
    if one is not None and _lists(raw[one], separated=True) is not None:
        return (one,)
    found = {word: columns for word in _EACH if len(columns := _family(names, word)) > 1}
    return max(found.values(), key=len, default=())


def _family(names: Sequence[str], word: str) -> tuple[str, ...]:
    """Columns of a word and a number, or a letter, in their order."""
    numbered = {int(match[1]): name for name in names if (match := re.fullmatch(rf"{word}(\d{{1,18}})", plain(name)))}
    lettered = {
        match[1]: name for name in names if (match := re.fullmatch(rf"{word}[_ .-]([a-z])", name.strip().lower()))
    }
    return tuple(numbered[key] for key in sorted(numbered)) or tuple(lettered[key] for key in sorted(lettered))


def _any_family(names: Sequence[str]) -> tuple[str, ...]:
    """Most columns of one word and a number, in their order."""
    words = dict.fromkeys(match[1] for name in names if (match := re.fullmatch(r"(\D*)\d+", plain(name))))
    return max((family for word in words if len(family := _family(names, re.escape(word))) > 1), key=len, default=())


def _columns_that_hold(
    answer: tuple[str, str], names: Sequence[str], raw: Mapping[str, pl.Series]
) -> tuple[str, ...]:  # fmt: skip
    """The columns of one word and a number among whose values are most of the answer's, which are no flags."""

    def values(columns: Sequence[str]) -> set[str]:
        return {value for name in columns for value in as_text(raw[name]).drop_nulls().unique()}

    if all(flags(raw[name]) is not None for name in answer):
        return ()
    said, family = values(answer), _any_family(names)
    places = {str(place) for place in range(1, len(family) + 1)}
    if said <= places and all(raw[name].dtype == pl.String for name in family):
        return family  # by their places
    return family if 2 * len(said & values(family)) > len(said) else ()


def _order_columns(names: Sequence[str], raw: Mapping[str, pl.Series]) -> tuple[str, ...]:
    named = [name for word in _ORDER if (name := guess_one(names, [word])) and _is_order(raw[name], named=True)]
    named += [name for word in _ANSWER if (name := guess_one(names, [word])) and _is_order(raw[name], named=False)]
    if named:
        return (named[0],)
    # First and second are the two of a pair, and text with a > is any text, where another column answers.
    if guess_one(names, (*CHOSEN, *APPROVED, *RATED, *RANKED, *BEST)) is not None:
        return ()
    for words in (NTH, NUMBERED):
        found = tuple(name for word in words if (name := guess_one(names, [word])) is not None)
        if len(found) > 1:
            return found
    for word in _PLACES:
        family = _family(names, word)
        if len(family) > 1 and (plain(family[0])[-1].isdecimal() or not tells(family[0], MEASURES)):
            return family
    texts = [name for name in names if raw[name].dtype == pl.String and not tells(name, NO_ANSWER)]
    return tuple(name for name in texts if _is_order(raw[name], named=False))[:1]


def _is_order(series: pl.Series, named: bool) -> bool:
    """Whether values are lists or items with a > between; any text may hold a >, unless the column is ``named`` so."""
    if series.dtype != pl.String:
        return _lists(series) is not None
    text = series.drop_nulls()
    text = text.filter(text.str.strip_chars() != "")
    if not len(text) or not text.str.contains("[>\\[]").any():
        return False
    is_text = text.str.contains(">", literal=True)
    if named or not is_text.any():
        return bool((is_text | text.str.starts_with("[")).mean() > 0.5)  # type: ignore[operator]
    row, _, item = _order_of(text, "order")
    return bool(
        is_text.all() and (item != "").all() and len(pl.DataFrame({"row": row, "item": item}).unique()) == len(row)
    )


def _unshared(
    order: tuple[str, ...], raw: Mapping[str, pl.Series], shown_in: tuple[str, ...], kind: str | None
) -> str:  # fmt: skip
    """What is asked of columns or of a text that may be an order, but whose items nothing else in the table shows."""
    if kind == "order" or shown_in:
        return ""
    several = len(order) > 1
    if several and re.match("choice|pos", plain(order[0])) is None:
        return ""
    if several:
        row, _, items = _in_columns([raw[name] for name in order])
        where = pl.Series(np.repeat(np.arange(len(order)), len(raw[order[0]])))
    elif is_called(order[0], _ORDER) or raw[order[0]].dtype != pl.String:
        return ""
    else:
        row, _, items = _order_of(raw[order[0]], "order")
        where = pl.Series(row)
    seen = pl.DataFrame({"item": items, "where": where, "row": row}).drop_nulls("item")
    known = seen.group_by("item").agg(pl.col("where").n_unique())["where"] > 1
    if several and known.any() and len(seen.unique(["item", "row"])) == len(seen):
        return ""
    if not several and len(known) and known.all() and raw[order[0]].drop_nulls().n_unique() > 1:
        return ""
    first = seen.filter(pl.col("row") == seen["row"].min())["item"].to_list()
    told = ", then ".join(f'"{shown(item)}"' for item in first[:3])
    if several:
        return (
            f"the columns {listed(order[:3])}{' ...' if len(order) > 3 else ''} may hold one order, the best first, or "
            f"the answers to {len(order)} questions: items of an order stand now in one column, now in another. Row 1 "
            f"has {told}, the best first, if you say {option('kind', 'order')}. If they are questions, give each "
            "question a table of its own."
        )
    return (
        f'column "{shown(order[0])}" holds text with a ">" in every row, which may be an order. Row 1 has {told}, the '
        f"best first, if you say {option('winner', order[0], kind='order')}."
    )


def _ranks_by_column(
    names: Sequence[str], raw: Mapping[str, pl.Series], kind: str | None, roles: dict[str, str]
) -> Listed | None:
    """Columns that hold each item's rank or rating, such as rank_tea or rating.milk; DataError if two readings fit."""
    for one, words in (("rank", RANKED), ("rating", RATED)):
        if kind not in (None, one):
            continue
        pattern = rf"(?:{'|'.join(words)})[_. ]?(?P<a>.+)|(?P<b>.+?)[_. ](?:{'|'.join(words)})"
        found = {name: (match["a"] or match["b"]) for name in names if (match := re.fullmatch(pattern, name, re.I))}
        if (
            len(found) < 2
            or not all(holds_numbers(raw[name], whole=True, least=0.0) for name in found)
            or {*found.values()} <= {*raw}
        ):
            continue  # score_left beside left is of whatever stands there
        sides = pair_families([*found]) or won_and_lost_families([*found])
        if kind is None and len(found) == 2 and sides and not any(item.isdecimal() for item in found.values()):
            continue  # of two sides, whatever stood there
        others = [name for name in names if name not in found]
        numbered = one == "rating" and all(map(_is_number, found.values()))
        if kind is None and (numbered or all(_describes(item, others) for item in found.values())):
            continue  # of what stands in another column, or one of several attributes
        if kind is None and one == "rank" and all(item.isdecimal() for item in found.values()):
            if _could_be_either([raw[name] for name in found]):
                raise DataError(
                    f"the columns {listed(list(found)[:3])} ... could say which item has each rank, or which rank each "
                    f"item has. For the first say {option('kind', 'order')}, for the second {option('kind', 'rank')}."
                )
            continue
        return Listed(one, (), tuple(found), roles, tuple(found.values()))
    return None


def _places_rated(names: Sequence[str], raw: Mapping[str, pl.Series], roles: dict[str, str]) -> Listed | None:
    """What is asked of ratings in columns of numbers or letters, which may be items or places."""
    found = _ranks_by_column(names, raw, "rating", roles)
    if found is None:
        return None
    items = found.items
    told = ", ".join(map(shown, items[:3])) + (" ..." if len(items) > 3 else "")
    return replace(found, ask=(
        f"the columns {listed(found.answer[:3])}{' ...' if len(items) > 3 else ''} hold ratings of {told}: these may "
        "be items, or the numbers of alternatives that other columns describe. If they are the items, say "
        f"{option('kind', 'rating')}; otherwise give a table with a row for each alternative."
    ))  # fmt: skip


def _describes(item: str, names: Sequence[str]) -> bool:
    """Whether a column is about an item, such as car_price about the car."""
    word = re.escape(item)
    return any(re.fullmatch(rf"{word}[_. ].+|.+[_. ]{word}", name, re.I) for name in names)


def _is_number(item: str) -> bool:
    """Whether an item is a number or a letter, or both: a place, as a1 or 2."""
    return re.fullmatch(r"[a-z]?\d*", item, re.I) is not None


def _in_places(series: pl.Series) -> bool:
    """Whether all values are places in words, such as First Choice."""
    if series.dtype != pl.String:
        return False
    words = series.drop_nulls().str.strip_chars().unique()
    words = words.filter(words != "")
    return len(words) > 0 and all(place_of(word) is not None for word in words)


def _inner(names: tuple[str, ...]) -> tuple[str, ...]:
    """Items that columns name in brackets after one and the same question; else the names as they are."""
    parts = [re.fullmatch(r"(.*?)\s*\[(.+)\]", name.strip()) for name in names]
    if all(parts) and len({part[1] for part in parts if part}) == 1:
        return tuple(part[2] for part in parts if part)
    return names


def find_votes(names: Sequence[str], raw: Mapping[str, pl.Series], options: ReadOptions) -> Listed | None:
    """Columns of items that hold votes, 1, 0 and -1, or ratings, where nothing else holds an answer; raises DataError.

    Ratings are asked about: columns of numbers may be anything.
    """
    user = named_or_guessed(names, options.get("user") or None, PEOPLE_OF_SETS)
    if options.get("kind") not in (None, "rating") or user is None or options.get("winner") is not None:
        return None
    rest = [name for name in names if name != user and holds_numbers(raw[name])]
    held = {name: set(words_of(raw[name]).drop_nulls().unique()) for name in rest}
    votes = tuple(name for name in rest if held[name] and held[name] <= {"-1", "0", "1"})
    down = tuple(name for name in votes if "-1" in held[name])
    counted_items = tuple(name for name in votes if name.isdecimal())
    if len(counted_items) > 2 and down:
        votes = counted_items
    elif down != votes:  # a group of people is 0 and 1 too
        votes = ()
    if len(votes) > 2 and down:
        return Listed("rating", (), votes, {"user": str(user)}, _inner(votes))
    few = down if len(down) > 2 else tuple(name for name in rest if held[name] <= set(map(str, range(11))))
    if len(few) < 3:
        return None
    raise DataError(
        f"the columns {listed(few[:3])}{' ...' if len(few) > 3 else ''} hold small numbers that may be ratings, a "
        f"column an item. If they are, say {option('alternatives', list(few), kind='rating')}; if "
        f"not, name the column of the answer with {option('winner', 'NAME')}."
    )


def _could_be_either(columns: list[pl.Series]) -> bool:
    """Whether all values are within 0 ... k, as ranks are: then the items may be numbers too."""
    return max(float(np.nanmax(numbers_of(column, column.name, "rank"), initial=0)) for column in columns) <= len(
        columns
    )


def read_listed(names: Sequence[str], raw: Mapping[str, pl.Series], found: Listed, options: ReadOptions) -> Sets:
    """Answers of a table of items; raises DataError."""
    columns = dict(found.columns)
    for role, used in (("shown", found.alternatives), ("place", found.answer)):
        columns.update({f"{role} {nth}": name for nth, name in enumerate(used, 1) if name not in columns.values()})
    sets = sets_of_rows(found.kind, raw, columns, options)
    if found.items:
        _read_ranks(raw, found, sets, options.get("best"))
    else:
        _read_items(raw, found, sets, options)
    return sets


def _read_ranks(raw: Mapping[str, pl.Series], found: Listed, sets: Sets, best: str | None) -> None:
    n, k = sets.n_tasks, len(found.items)
    what = "rank" if found.kind == "rank" else "rating"
    values: FloatArray = np.concatenate([numbers_of(raw[name], name, what) for name in found.answer])
    sets.task, sets.item = np.tile(np.arange(n), k), pl.Series(found.items).gather(np.repeat(np.arange(k), n))
    word = next((word for word in (*RANKED, *RATED) if plain(found.answer[0]).startswith(plain(word))), found.answer[0])
    if found.kind == "rating":
        sets.level = levels_of_ratings(values, word, sets, best)
        keep_rated(sets, ~np.isnan(values))
        return
    sets.kind = "order"
    sets.level = levels_of_ranks(values, RANKED[0], sets, best)


def _read_items(raw: Mapping[str, pl.Series], found: Listed, sets: Sets, options: ReadOptions) -> None:
    """Items that are shown, and the levels that the answer gives them."""
    n = sets.n_tasks
    if found.kind in ("best", "best_worst"):
        said = [(np.arange(n), np.full(n, place), raw[name]) for place, name in enumerate(found.answer)]
        task, level = (np.concatenate([part[k] for part in said]) for k in (0, 1))
        items = _joined([part[2] for part in said])
    elif len(found.answer) > 1:
        task, level, items = _in_columns([raw[name] for name in found.answer])
        level = level + (level == len(found.answer) - 1) * found.last
        filled = np.stack([clean_ids(raw[name], name).is_not_null().to_numpy() for name in found.answer])
        gap: BoolArray = np.logical_or.reduce(filled[1:] & ~np.logical_and.accumulate(filled)[:-1])
        message = (
            f"an order leaves a gap before a later place (columns {listed(found.answer)}) in {{where}}. Fill it in."
        )
        sets.unusable.append((UNCLEAR, gap, message))
    else:
        task, level, items = _order_of(raw[found.answer[0]], found.kind)
    items = clean_ids(items, found.answer[0])
    there = items.is_not_null().to_numpy()
    task, level, items = task[there], level[there], items.filter(pl.Series(there))
    if not found.alternatives:
        sets.task, sets.level, sets.item = task, level, items
        return
    shown_task, place, shown_items = _in_columns([raw[name] for name in found.alternatives])
    if len(found.alternatives) == 1:
        shown_task, place, shown_items = _listed_in(raw[found.alternatives[0]])
    shown_items = clean_ids(shown_items, found.alternatives[0])
    there = shown_items.is_not_null().to_numpy()
    shown_task, place, shown_items = shown_task[there], place[there], shown_items.filter(pl.Series(there))
    if shown_items.dtype != items.dtype:
        shown_items, items = as_text(shown_items), as_text(items)
    known = Vocabulary(shown_items)
    code, said_code = known.codes(shown_items), known.codes(items, unknown="minus_one")
    key = shown_task * (len(known) + 1) + code
    said_key = task * (len(known) + 1) + said_code
    ok = np.isin(said_key, key) & (said_code >= 0)
    sets.heeded = ("winner_is",)
    if len(key) and options.get("winner_is") != "item":
        placed, hit = _by_place(task, items, shown_task, place, key)
        if hit.all() and ok.all() and (placed != said_key).any() and options.get("winner_is") != "side":
            raise DataError(
                f"the answers in {_columns_of(found.answer)} are items, or the places of items in "
                f"{_columns_of(found.alternatives)}: row {task[0] + 1} means {shown(items[0])}, if you say "
                f"{option('winner_is', 'item')}, or {shown(known.labels([placed[0] % (len(known) + 1)])[0])}, number "
                f"{shown(items[0])} of those shown, if you say {option('winner_is', 'side')}."
            )
        if options.get("winner_is") == "side" or (hit.all() and not ok.all()) or (hit.any() and not ok.any()):
            said_key, ok = np.where(hit, placed, -1), hit
            sets.notes.append("The answers are the numbers of those shown, from 1.")
    unknown = np.bincount(task[~ok], minlength=n) > 0
    if unknown.any():
        example = shown(items[int(np.flatnonzero(~ok)[0])])
        message = (
            f'the answer names an item that was not shown in {{where}}, such as "{example}": it must be one of those '
            f"in {_columns_of(found.alternatives)}."
        )
        sets.unusable.append((UNCLEAR, unknown, message))
    if found.kind == "order":
        ordered = np.sort(said_key[ok])
        again = np.bincount(ordered[1:][np.diff(ordered) == 0] // (len(known) + 1), minlength=n) > 0
        sets.unusable.append((TWICE, again, "an order names the same item twice in {where}."))
    sets.task, sets.item = shown_task, shown_items
    rest = len(found.answer) - 1 if found.last else int(level[ok].max(initial=-1)) + 1
    sets.level = _levels(found.kind, key, said_key[ok], level[ok], rest)


def _by_place(
    task: IntArray, items: pl.Series, shown_task: IntArray, place: IntArray, key: IntArray
) -> tuple[IntArray, BoolArray]:
    """Keys of what stands at the places, from 1, that answers may name, and which of them name one."""
    number = as_text(items).cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    by_place = task * (place.max(initial=0) + 2.0) + number - 1
    by_place[(number < 1) | (number > place.max(initial=0) + 1)] = np.nan
    places = shown_task * (place.max(initial=0) + 2.0) + place
    order = np.argsort(places)
    where = np.minimum(np.searchsorted(places[order], by_place), len(places) - 1)
    return key[order][where], places[order][where] == by_place


def _levels(kind: str, key: IntArray, said: IntArray, level: IntArray, rest: int) -> IntArray:
    """Level of each alternative that was shown, by the keys of those that the answer names; ``rest`` of the others."""
    if kind in ("best", "approval"):
        return chosen_levels(np.isin(key, said))
    if kind == "best_worst":
        return best_worst_levels(np.isin(key, said[level == 0]), np.isin(key, said[level == 1]))
    order = np.argsort(said, kind="stable")
    if not len(order):
        return np.zeros(len(key), dtype=np.int64)
    place = np.minimum(np.searchsorted(said[order], key), len(said) - 1)
    named: BoolArray = said[order][place] == key
    return np.where(named, level[order][place], rest)


def _columns_of(names: Sequence[str]) -> str:
    return listed(names[:3]) + (" ..." if len(names) > 3 else "")


def _joined(columns: Sequence[pl.Series]) -> pl.Series:
    """Ids of several columns under each other, as text unless all are of one type."""
    columns = [clean_ids(column, column.name) for column in columns]
    if len({column.dtype for column in columns}) > 1:
        columns = [as_text(column) for column in columns]
    return pl.concat([column.alias("") for column in columns])


def _in_columns(columns: Sequence[pl.Series]) -> tuple[IntArray, IntArray, pl.Series]:
    """Row, place and id of items that stand in a column each."""
    if len(columns) == 1 and (columns[0].dtype.is_nested() or columns[0].dtype == pl.Object):
        return np.zeros(0, dtype=int), np.zeros(0, dtype=int), pl.Series()
    n, k = len(columns[0]), len(columns)
    return np.tile(np.arange(n), k), np.repeat(np.arange(k), n), _joined(columns)


def _exploded(lists: pl.Series) -> tuple[IntArray, IntArray, pl.Series]:
    """Row, place in it and value of the members of lists."""
    length = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    row = np.repeat(np.arange(len(lists)), length)
    place = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
    return row, place, lists.filter(pl.Series(length > 0)).explode()


def _order_of(series: pl.Series, kind: str) -> tuple[IntArray, IntArray, pl.Series]:
    """Row, level and id of the items of orders: lists, of items or of lists of equals, or text as "a > b = c".

    A choice of any number is a list, or text with | ; or commas, whose levels mean nothing.
    """
    lists = _lists(series)
    if lists is None and series.dtype != pl.String:
        series = as_text(series)
    if lists is None and (kind == "approval" or not series.str.contains(">", literal=True).any()):
        separator = next((one for one in "|;," if series.str.contains(one, literal=True).any()), "|")
        lists = series.str.split(separator)
    if lists is None:
        text = series.str.strip_chars().str.replace_all("~", "=", literal=True)
        row, level, group = _exploded(text.str.split(">"))
        inner, _, items = _exploded(group.str.strip_chars(" {}()").str.split("="))
        return row[inner], level[inner], items.str.strip_chars()
    row, level, members = _exploded(lists)
    if isinstance(members.dtype, pl.List):
        inner, _, items = _exploded(members)
        return row[inner], level[inner], items
    return row, level, members.str.strip_chars() if members.dtype == pl.String else members


def _listed_in(series: pl.Series) -> tuple[IntArray, IntArray, pl.Series]:
    lists = _lists(series, separated=True)
    if lists is None:
        raise DataError(
            f'column "{shown(series.name)}" must list what was shown, such as "tea|milk|juice"; it holds values '
            f"of type {series.dtype}."
        )
    row, place, items = _exploded(lists)
    return row, place, items.str.strip_chars() if items.dtype == pl.String else items


def _lists(series: pl.Series, separated: bool = False) -> pl.Series | None:
    """Lists of a column: its own, or those that text writes in JSON or, if ``separated``, with | ; or commas."""
    if isinstance(series.dtype, pl.List | pl.Array):
        return series.cast(pl.List(series.dtype.inner)) if isinstance(series.dtype, pl.Array) else series
    if series.dtype == pl.Object:
        values = series.to_list()
        if not all(value is None or isinstance(value, list | tuple | np.ndarray) for value in values):
            return None
        return _of_python([None if value is None else list(value) for value in values], series.name)
    if series.dtype != pl.String:
        return None
    text = series.drop_nulls().str.strip_chars()
    if len(text) and text.str.starts_with("[").all():
        try:
            return _of_python([None if value is None else json.loads(value) for value in series], series.name)
        except (ValueError, RecursionError) as error:  # no JSON; more digits than Python reads; lists within lists
            raise DataError(
                f'column "{shown(series.name)}" holds a list that cannot be read: {error}. Expected JSON, such as '
                '["a", "b"].'
            ) from error
    for separator in "|;," if separated else "":
        if text.str.contains(separator, literal=True).mean() == 1:
            return series.str.split(separator)
    return None


def is_list(series: pl.Series) -> bool:
    """Whether the values of a column are lists, or text that writes them with | ; or commas."""
    return _lists(series, separated=True) is not None


def _of_python(values: list[list[object] | None], name: str) -> pl.Series:
    """Lists as a column; a member that is not in a list among those that are is one by itself."""
    nested = any(isinstance(member, list) for value in values for member in value or ())
    if nested:
        values = [None if value is None else [m if isinstance(m, list) else [m] for m in value] for value in values]
    try:
        return pl.Series(name, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f'column "{shown(name)}" holds lists whose members are of several kinds, or no ids ({error}). Ids must be '
            "all text or all integers."
        ) from error
