"""Tables with one row a task that name items: orders, the best, or best and worst, of those shown, ranks by column."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from predilect._text import shown
from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data.frames import as_text, clean_ids
from predilect.data.intake import TWICE, UNCLEAR
from predilect.data.read.columns import first_columns, listed
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
    best_and_worst,
    guess_one,
    is_called,
    pair_families,
    places_between,
    plain,
    tells,
    won_and_lost_families,
)
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.profiles import first_word, flags, holds_numbers, numbers_of, place_of, words_of
from predilect.data.read.sets import (
    Sets,
    best_worst_levels,
    chosen_levels,
    columns_by_role,
    named_or_guessed,
    sets_of_rows,
)
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


def find_listed(raw: Mapping[str, pl.Series], options: ReadOptions) -> Listed | None:
    """Columns of a table of orders or of choices from listed items, or None if these are none of one."""
    kind, winner, given = options.get("kind"), options.get("winner"), options.get("alternatives")
    marked = _with_marks(raw)
    roles = columns_by_role(
        [name for name in raw if not (name in marked and _is_order(raw[name], named=True))], options
    )
    free = {name: column for name, column in raw.items() if name not in roles.values()}
    in_columns = not isinstance(given, str) and given is not None and all(name in raw for name in given)
    if kind in ("rank", "rating") and in_columns and given is not None:
        return Listed(kind, (), tuple(given), roles, tuple(given))
    in_list = isinstance(given, str) and given in raw and is_list(raw[given])
    shown_in = (str(given),) if in_list else tuple(given or ()) if in_columns else ()
    shown_in = shown_in or _alternatives(free)
    rest = {name: column for name, column in free.items() if name not in shown_in}
    both = best_and_worst(list(rest))
    if both is not None and kind in (None, "best_worst", "order") and winner is None:
        shown_in = shown_in or _columns_that_hold(both, rest)
        between = places_between(list(rest))
        if between and kind != "best_worst" and flags(raw[both[0]]) is None:
            order = (both[0], *between, both[1])
            return Listed("order", shown_in, order, roles, last=True, ask=_unshared(order, raw, shown_in, kind))
        if shown_in and kind != "order":
            return Listed("best_worst", shown_in, both, {**roles, "best": both[0], "worst": both[1]})
        if kind != "order":
            return None
    if kind in (None, "rank"):
        in_words = tuple(name for name, column in rest.items() if _in_places(column))
        if len(in_words) > 1:
            return Listed("rank", (), in_words, roles, _inner(in_words))
    if kind in (None, "rank", "rating"):
        found = _ranks_by_column(rest, kind, roles, raw)
        if (
            found is None
            and kind is not None
            and guess_one(list(rest), (*KIND_OF[kind], *CHOSEN)) is None
            and winner is None
        ):
            several = _any_family(list(rest))
            found = Listed(kind, (), several, roles, several) if several else None
        if found is not None:
            return found
    doubt: Listed | None = _places_rated(rest, roles, raw) if kind is None else None
    if kind in (None, "order"):
        order = _order_columns(rest, marked)
        if kind == "order" and winner is not None:
            # Numbers are the ranks of a long table.
            order = (winner,) if raw[winner].dtype == pl.String or _lists(raw[winner]) is not None else ()
        elif kind == "order" and not order:
            order = _any_family(list(rest))
        if order:
            used = {**roles, "order": order[0]} if len(order) == 1 else roles
            found = Listed("order", shown_in, order, used, ask=_unshared(order, raw, shown_in, kind))
            if not found.ask:
                return found
            doubt = doubt or found
    chosen = winner or guess_one(list(rest), CHOSEN)
    if chosen is None or not shown_in or kind not in (None, "best", "approval"):
        return doubt
    in_list = _lists(raw[chosen]) is not None
    if in_list and kind == "best":
        return None
    return Listed(
        "approval" if in_list or kind == "approval" else "best", shown_in, (chosen,), {**roles, "winner": chosen}
    )


def _alternatives(raw: Mapping[str, pl.Series]) -> tuple[str, ...]:
    """One column with the list of all that was shown, or a column for each."""
    names = list(raw)
    one = guess_one(names, _SHOWN)
    if one is not None and _lists(raw[one], separated=True) is not None:
        return (one,)
    families = _families(names)
    return max((families[word] for word in _EACH if word in families), key=len, default=())


def _families(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Several columns of a word and a number each, or a letter, in their order; by the word."""
    numbered: dict[str, dict[int, str]] = {}
    lettered: dict[str, dict[str, str]] = {}
    for name in names:
        if match := re.fullmatch(r"(\D*)(\d{1,18})", plain(name)):
            numbered.setdefault(match[1], {})[int(match[2])] = name
        if match := re.fullmatch(r"(.+)[_ .-]([a-z])", name.strip().lower()):
            lettered.setdefault(match[1], {})[match[2]] = name
    of_words = {**_in_order(lettered), **_in_order(numbered)}
    return {word: family for word, family in of_words.items() if len(family) > 1}


def _in_order(families: Mapping[str, Mapping[Any, str]]) -> dict[str, tuple[str, ...]]:
    return {word: tuple(family[key] for key in sorted(family)) for word, family in families.items()}


def _any_family(names: Sequence[str]) -> tuple[str, ...]:
    """Most columns of one word and a number, in their order."""
    numbered = (family for family in _families(names).values() if plain(family[0])[-1].isdecimal())
    return max(numbered, key=len, default=())


def _columns_that_hold(answer: tuple[str, str], raw: Mapping[str, pl.Series]) -> tuple[str, ...]:
    """The columns of one word and a number among whose values are most of the answer's, which are no flags."""

    def values(columns: Sequence[str]) -> set[str]:
        return {value for name in columns for value in as_text(raw[name]).drop_nulls().unique()}

    if all(flags(raw[name]) is not None for name in answer):
        return ()
    said, family = values(answer), _any_family(list(raw))
    places = {str(place) for place in range(1, len(family) + 1)}
    if said <= places and all(raw[name].dtype == pl.String for name in family):
        return family  # by their places
    return family if 2 * len(said & values(family)) > len(said) else ()


def _order_columns(raw: Mapping[str, pl.Series], marked: Set[str]) -> tuple[str, ...]:
    """The column of orders, or columns of the first, the second ...; the best first."""
    names, families = list(raw), _families(list(raw))
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
        family = families.get(word, ())
        if family and (plain(family[0])[-1].isdecimal() or not tells(family[0], MEASURES)):
            return family
    texts = [name for name in names if name in marked and raw[name].dtype == pl.String and not tells(name, NO_ANSWER)]
    return tuple(name for name in texts if _is_order(raw[name], named=False))[:1]


def _with_marks(raw: Mapping[str, pl.Series]) -> Set[str]:
    """Columns that may hold orders: text with a > or a [ somewhere, and whatever is no text; looked for in one go."""
    text = pl.DataFrame([raw[name].alias(name) for name in raw if raw[name].dtype == pl.String])
    marks = text.select(pl.all().str.contains("[>\\[]").any()).row(0, named=True) if text.width else {}
    return {name for name in raw if marks.get(name, True)}


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
    order = _order_of(text, "order")
    return bool(
        is_text.all() and (order["item"] != "").all() and not order.select("task", "item").is_duplicated().any()
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
    if not several and (is_called(order[0], _ORDER) or raw[order[0]].dtype != pl.String):
        return ""
    seen = _in_columns(raw, order) if several else _order_of(raw[order[0]], "order")
    seen = seen.drop_nulls("item")
    known = seen.group_by("item").agg(pl.col("level" if several else "task").n_unique().alias("n"))["n"] > 1
    if several and known.any() and not seen.select("item", "task").is_duplicated().any():
        return ""
    if not several and len(known) and known.all() and raw[order[0]].drop_nulls().n_unique() > 1:
        return ""
    first = seen.filter(pl.col("task") == seen["task"].min())["item"].to_list()
    told = ", then ".join(f'"{shown(item)}"' for item in first[:3])
    if several:
        return (
            f"the columns {first_columns(order)} may hold one order, the best first, or the answers to {len(order)} "
            f"questions: items of an order stand now in one column, now in another. Row 1 has {told}, the best first, "
            f"if you say {option('kind', 'order')}. If they are questions, give each question a table of its own."
        )
    return (
        f'column "{shown(order[0])}" holds text with a ">" in every row, which may be an order. Row 1 has {told}, the '
        f"best first, if you say {option('winner', order[0], kind='order')}."
    )


def _ranks_by_column(
    rest: Mapping[str, pl.Series], kind: str | None, roles: dict[str, str], raw: Mapping[str, pl.Series]
) -> Listed | None:
    """Columns that hold each item's rank or rating, such as rank_tea or rating.milk; DataError if two readings fit."""
    for one, words in (("rank", RANKED), ("rating", RATED)):
        if kind not in (None, one):
            continue
        pattern = rf"(?:{'|'.join(words)})[_. ]?(?P<a>.+)|(?P<b>.+?)[_. ](?:{'|'.join(words)})"
        found = {name: (match["a"] or match["b"]) for name in rest if (match := re.fullmatch(pattern, name, re.I))}
        whole = all(holds_numbers(rest[name], whole=True, least=0.0) for name in found)
        if len(found) < 2 or not whole or {*found.values()} <= {*raw}:
            continue  # score_left beside left is of whatever stands there
        sides = pair_families([*found]) or won_and_lost_families([*found])
        if kind is None and len(found) == 2 and sides and not any(item.isdecimal() for item in found.values()):
            continue  # of two sides, whatever stood there
        others = [name for name in rest if name not in found]
        numbered = one == "rating" and all(re.fullmatch(r"[a-z]?\d*", item, re.I) for item in found.values())
        if kind is None and (numbered or all(_describes(item, others) for item in found.values())):
            continue  # of what stands in another column, or one of several attributes
        if kind is None and one == "rank" and all(item.isdecimal() for item in found.values()):
            # All within 0 ... k, as ranks are: then the items may be numbers too.
            largest = max(np.nanmax(numbers_of(rest[name], name, "rank"), initial=0) for name in found)
            if largest <= len(found):
                raise DataError(
                    f"the columns {listed(list(found)[:3])} ... could say which item has each rank, or which rank each "
                    f"item has. For the first say {option('kind', 'order')}, for the second {option('kind', 'rank')}."
                )
            continue
        return Listed(one, (), tuple(found), roles, tuple(found.values()))
    return None


def _places_rated(
    rest: Mapping[str, pl.Series], roles: dict[str, str], raw: Mapping[str, pl.Series]
) -> Listed | None:  # fmt: skip
    """What is asked of ratings in columns of numbers or letters, which may be items or places."""
    found = _ranks_by_column(rest, "rating", roles, raw)
    if found is None:
        return None
    items = found.items
    told = ", ".join(map(shown, items[:3])) + (" ..." if len(items) > 3 else "")
    return replace(found, ask=(
        f"the columns {first_columns(found.answer)} hold ratings of {told}: these may be items, or the numbers of "
        "alternatives that other columns describe. If they are the items, say "
        f"{option('kind', 'rating')}; otherwise give a table with a row for each alternative."
    ))  # fmt: skip


def _describes(item: str, names: Sequence[str]) -> bool:
    """Whether a column is about an item, such as car_price about the car."""
    word = re.escape(item)
    return any(re.fullmatch(rf"{word}[_. ].+|.+[_. ]{word}", name, re.I) for name in names)


def _in_places(series: pl.Series) -> bool:
    """Whether all values are places in words, such as First Choice."""
    if series.dtype != pl.String or place_of(first_word(series)) is None:
        return False
    return all(place_of(word) is not None for word in words_of(series).drop_nulls().unique())


def _inner(names: tuple[str, ...]) -> tuple[str, ...]:
    """Items that columns name in brackets after one and the same question; else the names as they are."""
    parts = [re.fullmatch(r"(.*?)\s*\[(.+)\]", name.strip()) for name in names]
    if all(parts) and len({part[1] for part in parts if part}) == 1:
        return tuple(part[2] for part in parts if part)
    return names


def find_votes(raw: Mapping[str, pl.Series], options: ReadOptions) -> Listed | None:
    """Columns of items that hold votes, 1, 0 and -1, or ratings, where nothing else holds an answer; raises DataError.

    Ratings are asked about: columns of numbers may be anything.
    """
    user = named_or_guessed(list(raw), options.get("user") or None, PEOPLE_OF_SETS)
    if options.get("kind") not in (None, "rating") or user is None or options.get("winner") is not None:
        return None
    rest = [name for name in raw if name != user and holds_numbers(raw[name])]
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
        f"the columns {first_columns(few)} hold small numbers that may be ratings, a column an item. If they are, say "
        f"{option('alternatives', list(few), kind='rating')}; if not, name the column of the answer with "
        f"{option('winner', 'NAME')}."
    )


def read_listed(raw: Mapping[str, pl.Series], found: Listed, options: ReadOptions) -> Sets:
    """Answers of a table of items; raises DataError."""
    columns = dict(found.columns)
    for role, used in (("shown", found.alternatives), ("place", found.answer)):
        columns.update({f"{role} {nth}": name for nth, name in enumerate(used, 1) if name not in columns.values()})
    sets = sets_of_rows(found.kind, raw, columns, options)
    if found.items:
        _read_ranks(raw, found, sets)
    else:
        _read_items(raw, found, sets)
    return sets


def _read_ranks(raw: Mapping[str, pl.Series], found: Listed, sets: Sets) -> None:
    n, k = sets.n_tasks, len(found.items)
    what = "rank" if found.kind == "rank" else "rating"
    values: FloatArray = np.concatenate([numbers_of(raw[name], name, what) for name in found.answer])
    sets.task, sets.item = np.tile(np.arange(n), k), pl.Series(found.items).gather(np.repeat(np.arange(k), n))
    word = next((word for word in (*RANKED, *RATED) if plain(found.answer[0]).startswith(plain(word))), found.answer[0])
    if found.kind == "rating":
        sets.level = levels_of_ratings(values, word, sets)
        keep_rated(sets, ~np.isnan(values))
        return
    sets.kind = "order"
    sets.level = levels_of_ranks(values, RANKED[0], sets)


def _read_items(raw: Mapping[str, pl.Series], found: Listed, sets: Sets) -> None:
    """Items that are shown, and the levels that the answer gives them."""
    order = found.kind == "order"
    if len(found.answer) > 1 or found.kind in ("best", "best_worst"):
        said = _in_columns(raw, found.answer)
    else:
        said = _order_of(raw[found.answer[0]], found.kind)
    if order and len(found.answer) > 1:
        said = said.with_columns(level=pl.col("level") + (pl.col("level") == len(found.answer) - 1) * int(found.last))
        filled = np.stack([clean_ids(raw[name], name).is_not_null().to_numpy() for name in found.answer])
        gap: BoolArray = np.logical_or.reduce(filled[1:] & ~np.logical_and.accumulate(filled)[:-1])
        message = (
            f"an order leaves a gap before a later place (columns {listed(found.answer)}) in {{where}}. Fill it in."
        )
        sets.unusable.append((UNCLEAR, gap, message))
    said = _with_ids(said, found.answer[0])
    if not found.alternatives:
        sets.take(said, said["level"].to_numpy())
        return
    several = len(found.alternatives) > 1
    offered = _in_columns(raw, found.alternatives) if several else _listed_in(raw[found.alternatives[0]])
    offered = _with_ids(offered, found.alternatives[0])
    if offered["item"].dtype != said["item"].dtype:
        offered, said = (one.with_columns(item=as_text(one["item"])) for one in (offered, said))
    sets.heeded = ("winner_is",)
    known = _matched(said, offered, ["task", "item"])["level"].is_not_null()
    if len(offered) and (is_a := sets.options.get("winner_is")) != "item":
        number = as_text(said["item"]).cast(pl.Float64, strict=False)
        place = number.set((number != number.round(0)).fill_null(False), None).cast(pl.Int64, strict=False) - 1
        placed = _matched(said.select("task", level=place), offered, ["task", "level"])["item"]
        hit = placed.is_not_null()
        if hit.all() and known.all() and (placed != said["item"]).any() and is_a != "side":
            first, stands = shown(said["item"][0]), shown(placed[0])
            raise DataError(
                f"the answers in {first_columns(found.answer)} are items, or the places of items in "
                f"{first_columns(found.alternatives)}: row {said['task'][0] + 1} means {first}, if you say "
                f"{option('winner_is', 'item')}, or {stands}, number {first} of those shown, if you say "
                f"{option('winner_is', 'side')}."
            )
        if is_a == "side" or (hit.all() and not known.all()) or (hit.any() and not known.any()):
            said, known = said.with_columns(item=placed.fill_null(said["item"])), hit
            sets.notes.append("The answers are the numbers of those shown, from 1.")
    unknown = said.filter(~known)
    if len(unknown):
        message = (
            f'the answer names an item that was not shown in {{where}}, such as "{shown(unknown["item"][0])}": it must '
            f"be one of those in {first_columns(found.alternatives)}."
        )
        sets.unusable.append((UNCLEAR, sets.tasks_of(unknown["task"]), message))
    said = said.filter(known)
    if order:
        again = said.filter(said.select("task", "item").is_duplicated())
        sets.unusable.append((TWICE, sets.tasks_of(again["task"]), "an order names the same item twice in {where}."))
    rest = len(found.answer) - 1 if found.last else int(said["level"].to_numpy().max(initial=-1)) + 1
    sets.take(offered, _levels(found.kind, offered, said, rest))


def _matched(rows: pl.DataFrame, known: pl.DataFrame, on: list[str]) -> pl.DataFrame:
    """For each of some rows the first of others that is equal ``on`` some columns, nulls where there is none."""
    known = known.unique(on, keep="first", maintain_order=True)
    return rows.select(on).join(known, on=on, how="left", maintain_order="left")


def _levels(kind: str, offered: pl.DataFrame, said: pl.DataFrame, rest: int) -> IntArray:
    """Level of each alternative that was shown, by those that the answer names; ``rest`` of the others."""

    def named(some: pl.DataFrame) -> pl.Series:
        return _matched(offered, some, ["task", "item"])["level"]

    if kind == "best_worst":
        best, worst = (named(said.filter(pl.col("level") == end)).is_not_null().to_numpy() for end in (0, 1))
        return best_worst_levels(best, worst)
    level = named(said)
    return chosen_levels(level.is_not_null().to_numpy()) if kind != "order" else level.fill_null(rest).to_numpy()


def _with_ids(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Rows with ids of items, without those that have none."""
    return rows.with_columns(item=clean_ids(rows["item"], column)).drop_nulls("item")


def _in_columns(raw: Mapping[str, pl.Series], names: Sequence[str]) -> pl.DataFrame:
    """Task, level (the place of the column) and item of items that stand in a column each."""
    columns = [clean_ids(raw[name], name).alias("item") for name in names]
    if len({column.dtype for column in columns}) > 1:
        columns = [as_text(column) for column in columns]
    n, k = len(columns[0]), len(columns)
    return pl.DataFrame(
        {"task": np.tile(np.arange(n), k), "level": np.repeat(np.arange(k), n), "item": pl.concat(columns)}
    )


def _exploded(lists: pl.Series) -> pl.DataFrame:
    """Task, level (the place in it) and item of the members of lists, one a task."""
    rows = pl.DataFrame({"task": np.arange(len(lists)), "item": lists})
    rows = rows.with_columns(level=pl.int_ranges(pl.col("item").list.len())).explode("level", "item")
    return rows.drop_nulls("level").select("task", "level", "item")


def _order_of(series: pl.Series, kind: str) -> pl.DataFrame:
    """Task, level and item of orders: lists, of items or of lists of equals, or text as "a > b = c".

    A choice of any number is a list, or text with | ; or commas, whose levels mean nothing.
    """
    lists = _lists(series)
    if lists is None and series.dtype != pl.String:
        series = as_text(series)
    if lists is None and (kind == "approval" or not series.str.contains(">", literal=True).any()):
        separator = next((one for one in "|;," if series.str.contains(one, literal=True).any()), "|")
        lists = series.str.split(separator)
    if lists is None:
        rows = _exploded(series.str.strip_chars().str.replace_all("~", "=", literal=True).str.split(">"))
        rows = rows.with_columns(pl.col("item").str.strip_chars(" {}()").str.split("="))
    else:
        rows = _exploded(lists)
    rows = rows.explode("item") if isinstance(rows["item"].dtype, pl.List) else rows
    return rows.with_columns(pl.col("item").str.strip_chars()) if rows["item"].dtype == pl.String else rows


def _listed_in(series: pl.Series) -> pl.DataFrame:
    lists = _lists(series, separated=True)
    if lists is None:
        raise DataError(
            f'column "{shown(series.name)}" must list what was shown, such as "tea|milk|juice"; it holds values '
            f"of type {series.dtype}."
        )
    rows = _exploded(lists)
    return rows.with_columns(pl.col("item").str.strip_chars()) if rows["item"].dtype == pl.String else rows


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
