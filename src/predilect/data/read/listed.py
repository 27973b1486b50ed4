"""A row a task that names items: the best, or the best and worst, of those shown; orders; a column an item."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl

from predilect._base.text import shown
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.frames import Columns, as_text, clean_ids
from predilect.data.intake import TWICE, UNCLEAR
from predilect.data.read.columns import first_columns, listed, named_or_guessed
from predilect.data.read.levels import keep_rated, levels_of_ranks, levels_of_ratings
from predilect.data.read.names import (
    APPROVED,
    BEST,
    CHOSEN,
    IDENTIFIED,
    KIND_OF,
    MEASURES,
    NO_ANSWER,
    NTH,
    NUMBERED,
    PEOPLE_OF_SETS,
    RANKED,
    RATED,
    TASKS,
    all_named,
    best_and_worst,
    guess_one,
    is_called,
    pair_families,
    places_between,
    plain,
    tells,
    won_and_lost_families,
)
from predilect.data.read.options import ReadOptions
from predilect.data.read.profiles import (
    End,
    could_be_items,
    first_word,
    flags,
    good_ends,
    holds_numbers,
    is_plain,
    numbers_of,
    place_of,
    values_of,
    words_of,
)
from predilect.data.read.readings import LIKELY, OPEN, SURE, Reading
from predilect.data.read.sets import (
    MOST_FREE,
    Sets,
    assembled_sets,
    best_worst_levels,
    chosen_levels,
    columns_by_role,
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
    is_a: Literal["item", "side"] = "item"  # whether answers are items, or numbers of those shown
    end: End = "low"  # of ranks or ratings


def listed_readings(raw: Columns, said: ReadOptions) -> Iterator[Reading]:
    """Tables of a row a task that names items."""
    marked = _with_marks(raw)
    roles = columns_by_role([name for name in raw if not (name in marked and _is_order(raw[name], named=True))], said)
    free = [name for name in raw if name not in roles.values()]
    yield from _choices(raw, said, roles, free)
    yield from _orders(raw, said, roles, free, marked)
    yield from _by_item(raw, said, roles, free)
    yield from _votes(raw, said)


def _reading(raw: Columns, said: ReadOptions, found: Listed, say: ReadOptions, sure: int, sentence: str) -> Reading:
    return Reading(sentence, say, partial(assembled_sets, raw, {**said, **say}, sets_listed, raw, found), sure)


# --- the best of those shown ------------------------------------------------------------------------------------------


def _choices(raw: Columns, said: ReadOptions, roles: dict[str, str], free: Sequence[str]) -> Iterator[Reading]:
    """Choices of the best, of the best and the worst, or of any number of the items that columns or a list show."""
    kind, winner = said.get("kind"), said.get("winner")
    if kind not in (None, "best", "best_worst", "approval"):
        return
    both = best_and_worst(free) if winner is None and kind in (None, "best_worst") else None
    if both is not None and kind is None and places_between(free) and flags(raw[both[0]]) is None:
        return  # an order
    answer: tuple[str, ...] | None = both
    if both is None:
        one = winner or guess_one(free, (*CHOSEN, *APPROVED))
        answer = None if one is None else (one,)
    for shown_in, sure in _shown_in(raw, said, [name for name in free if name not in (answer or ())], answer):
        if answer is not None:
            yield from _of_shown(raw, said, roles, shown_in, answer, sure)
            continue
        rest = [name for name in free if name not in shown_in]
        offered = _with_ids(_offered(raw, shown_in), shown_in[0])
        for name in rest if len(rest) < MOST_FREE else ():
            column = raw[name]
            if not is_plain(column) or column.null_count() or column.dtype == pl.Boolean or column.dtype.is_float():
                continue
            answered = _with_ids(_in_columns(raw, (name,)), name)
            if _are_shown(answered, offered):
                yield from _of_shown(raw, said, roles, shown_in, (name,), min(sure, LIKELY))
            elif not tells(name, MEASURES | NO_ANSWER) and _placed(answered, offered).is_not_null().all():
                yield from _of_shown(raw, said, roles, shown_in, (name,), OPEN)


def _shown_in(
    raw: Columns, said: ReadOptions, free: Sequence[str], answer: tuple[str, ...] | None
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Columns of what was shown, or the one that lists it, and how surely."""
    given = said.get("alternatives")
    if isinstance(given, str):
        if given in raw and is_list(raw[given]):
            yield (given,), SURE
        return
    if given is not None:
        if all(name in raw for name in given):
            yield tuple(given), SURE
        return
    one = guess_one(free, _SHOWN)
    if one is not None and _lists(raw[one], separated=True) is not None:
        yield (one,), SURE
        return
    families = _families(free)
    if known := max((families[word] for word in _EACH if word in families), key=len, default=()):
        yield known, SURE
        return
    for word, family in families.items() if len(free) < MOST_FREE else ():
        if any(raw[name].dtype.is_nested() for name in (*family, *(answer or ()))):
            continue
        if (len(answer or ()) == 2 and _hold(raw, family, answer or (), free)) or (
            not tells(family[0], MEASURES) and word not in _PLACES and could_be_items([raw[name] for name in family])
        ):
            yield family, LIKELY if len(family) > 2 else OPEN  # two are a pair


def _of_shown(
    raw: Columns, said: ReadOptions, roles: dict[str, str], shown_in: tuple[str, ...], answer: tuple[str, ...],
    sure: int,
) -> Iterator[Reading]:  # fmt: skip
    """Readings of an answer about those shown: of items, or of their numbers."""
    kind = said.get("kind") or ("best_worst" if len(answer) == 2 else "best")
    lists = _lists(raw[answer[0]]) if len(answer) == 1 else None
    if lists is not None and said.get("kind") == "best":
        return
    kind = "approval" if lists is not None else kind
    if len(answer) == 2 and (kind != "best_worst" or all(flags(raw[name]) is not None for name in answer)):
        return
    roles = {**roles, **({"best": answer[0], "worst": answer[1]} if len(answer) == 2 else {"winner": answer[0]})}
    found = Listed(kind, shown_in, answer, roles)
    ways = _what_answers_are(raw, found, said)
    for is_a in ways:
        say: ReadOptions = {} if len(answer) == 2 else {"winner": answer[0]}
        if sure < SURE:
            say["alternatives"] = list(shown_in)
        if len(ways) > 1:
            say["winner_is"] = is_a
        say = say or {"kind": "best_worst"}
        sentence = f"{listed(answer)} of those shown in {first_columns(shown_in)}"
        yield _reading(raw, said, replace(found, is_a=is_a), say, sure, sentence)


def _what_answers_are(raw: Columns, found: Listed, options: ReadOptions) -> tuple[Literal["item", "side"], ...]:
    """Whether answers may be items, or the places of items."""
    if (given := options.get("winner_is")) in ("item", "side"):
        return (given,)
    answered, offered = _answered(raw, found)
    if not len(offered) or not len(answered):
        return ("item",)
    known = _matched(answered, offered, ["task", "item"])["level"].is_not_null()
    placed = _placed(answered, offered)
    hit = placed.is_not_null()
    if hit.all() and known.all() and (placed != answered["item"]).any():
        return ("item", "side")
    return ("side",) if (hit.all() and not known.all()) or (hit.any() and not known.any()) else ("item",)


def _placed(answered: pl.DataFrame, offered: pl.DataFrame) -> pl.Series:
    """The items whose numbers among those shown were given, null where they are none."""
    number = as_text(answered["item"]).cast(pl.Float64, strict=False)
    place = number.set((number != number.round(0)).fill_null(False), None).cast(pl.Int64, strict=False) - 1
    return _matched(answered.select("task", level=place), offered, ["task", "level"])["item"]


def _are_shown(answered: pl.DataFrame, offered: pl.DataFrame) -> bool:
    """Whether every answer is one of those shown in its row, now one and now another."""
    if answered["item"].dtype != offered["item"].dtype:
        answered, offered = (one.with_columns(item=as_text(one["item"])) for one in (answered, offered))
    known = _matched(answered, offered, ["task", "item"])["level"]
    return bool(known.is_not_null().all()) and known.n_unique() > 1


def _hold(raw: Columns, family: tuple[str, ...], answer: tuple[str, ...], free: Sequence[str]) -> bool:
    """Whether columns hold most of the answers, which are no flags, or alone are numbered as these, and hold text."""

    def values(columns: Sequence[str]) -> set[str]:
        return {value for name in columns for value in values_of(as_text(raw[name]))}

    if all(flags(raw[name]) is not None for name in answer):
        return False
    answers = values(answer)
    places = {str(place) for place in range(1, len(family) + 1)}
    alone = [len(one) for one in _families(free).values()].count(len(family)) == 1
    if answers <= places and alone and all(raw[name].dtype == pl.String for name in family):
        return True  # by their places
    return 2 * len(answers & values(family)) > len(answers)


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


# --- orders -----------------------------------------------------------------------------------------------------------


def _orders(
    raw: Columns, said: ReadOptions, roles: dict[str, str], free: Sequence[str], marked: Set[str]
) -> Iterator[Reading]:
    """Orders in columns, the best first, as a text or as a list."""
    kind, winner, given = said.get("kind"), said.get("winner"), said.get("alternatives")
    if kind not in (None, "order", "best_worst"):
        return
    shown_in = next(iter(one for one, sure in _shown_in(raw, said, free, None) if sure == SURE), ())
    rest = {name: raw[name] for name in free if name not in shown_in}

    def reading(order: tuple[str, ...], say: ReadOptions, sure: int, *, last: bool = False) -> Reading:
        columns = {**roles, "order": order[0]} if len(order) == 1 else roles
        found = Listed("order", shown_in, order, columns, last=last)
        return _reading(raw, said, found, {"kind": "order", **say}, sure, f"an order, {first_columns(order)}")

    both = best_and_worst(list(rest)) if winner is None and kind != "best_worst" else None
    if both is not None:
        between = places_between(list(rest))
        order = (both[0], *between, both[1])
        if between and flags(raw[both[0]]) is None:
            shown_in = shown_in or _family_of(raw, order)
            if shown_in or not _are_numbers_of(raw, order):  # of what several columns describe
                yield reading(order, {}, SURE, last=True)
        return
    if kind == "best_worst":
        return
    if kind == "order" and given is not None and not isinstance(given, str) and all(name in raw for name in given):
        shown_in = ()
        yield reading(tuple(given), {}, SURE)
        return
    order = _order_columns(rest, marked)
    if kind == "order" and winner is not None:
        # Numbers are the ranks of a long table.
        order = (winner,) if raw[winner].dtype == pl.String or _lists(raw[winner]) is not None else ()
    elif kind == "order" and not order:
        order = _any_family(list(rest))
    if order:
        sure = OPEN if _unshared(order, raw, shown_in, kind) else SURE
        if len(order) > 1 and _are_ranks(raw, order):
            names, sure = tuple(re.sub(r"^\D*", "", name) for name in order), SURE
            ranks = Listed("rank", (), order, roles, names)
            yield _reading(raw, said, ranks, {"kind": "rank"}, sure, f"the rank of each of {first_columns(names)}")
        yield reading(order, {"winner": order[0]} if len(order) == 1 else {}, sure)
        return
    shown_in = ()
    for word, family in _families(list(rest)).items() if len(rest) < MOST_FREE and kind is None else ():
        if word not in _EACH and not tells(family[0], MEASURES) and could_be_items([raw[name] for name in family]):
            yield reading(family, {"alternatives": list(family)}, OPEN)


def _family_of(raw: Columns, order: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of one word and a number that hold what an order names."""
    free = [name for name in raw if name not in order]
    family = _any_family(free)
    return family if family and _hold(raw, family, order, free) else ()


def _are_numbers_of(raw: Columns, order: tuple[str, ...]) -> bool:
    """Whether an order holds the numbers of columns of one word."""
    n_columns = len(_any_family([name for name in raw if name not in order]))
    return {value for name in order for value in words_of(raw[name])} <= {str(place + 1) for place in range(n_columns)}


def _are_ranks(raw: Columns, order: tuple[str, ...]) -> bool:
    """Whether columns called rank with a number each may hold the rank of the item of that number."""
    if not all(re.fullmatch(rf"(?:{'|'.join(RANKED)})[_. ]?\d+", name, re.I) for name in order):
        return False
    if not all(holds_numbers(raw[name], whole=True, least=0.0) for name in order):
        return False
    return all(np.nanmax(numbers_of(raw[name], name, "rank"), initial=0) <= len(order) for name in order)


def _order_columns(raw: Mapping[str, pl.Series], marked: Set[str]) -> tuple[str, ...]:
    """The column of orders, or columns of the first, the second ...; the best first."""
    names, families = list(raw), _families(list(raw))
    named = [name for name in all_named(names, _ORDER) if _is_order(raw[name], named=True)]
    named += [name for name in all_named(names, _ANSWER) if _is_order(raw[name], named=False)]
    if named:
        return (named[0],)
    # First and second are the two of a pair, and text with a > is any text, where another column answers.
    if guess_one(names, (*CHOSEN, *APPROVED, *RATED, *RANKED, *BEST)) is not None:
        return ()
    for words in (NTH, NUMBERED):
        found = tuple(all_named(names, words))
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
) -> bool:  # fmt: skip
    """Whether columns or a text may be an order, but nothing else in the table shows their items."""
    if kind == "order" or shown_in:
        return False
    several = len(order) > 1
    if several and re.match("choice|pos", plain(order[0])) is None:
        return False
    if not several and (is_called(order[0], _ORDER) or raw[order[0]].dtype != pl.String):
        return False
    seen = _in_columns(raw, order) if several else _order_of(raw[order[0]], "order")
    seen = seen.drop_nulls("item")
    known = seen.group_by("item").agg(pl.col("level" if several else "task").n_unique().alias("n"))["n"] > 1
    if several and known.any() and not seen.select("item", "task").is_duplicated().any():
        return False
    return several or not (len(known) and known.all() and raw[order[0]].drop_nulls().n_unique() > 1)


# --- a column an item -------------------------------------------------------------------------------------------------


def _by_item(raw: Columns, said: ReadOptions, roles: dict[str, str], free: Sequence[str]) -> Iterator[Reading]:
    """Columns that hold each item's rank or rating, such as rank_tea or rating.milk."""
    kind, given = said.get("kind"), said.get("alternatives")
    if kind not in (None, "rank", "rating") or said.get("winner") is not None:
        return
    if given is not None:
        if kind is not None and not isinstance(given, str) and all(name in raw for name in given):
            yield from _of_items(raw, said, Listed(kind, (), tuple(given), roles, _inner(tuple(given))), SURE)
        return
    text = pl.DataFrame([raw[name].alias(name) for name in free if raw[name].dtype == pl.String])
    first = text.select(pl.all().drop_nulls().first()).row(0, named=True) if text.width else {}
    perhaps = [name for name, word in first.items() if word is not None and (not word or place_of(word) is not None)]
    in_words = tuple(name for name in perhaps if _in_places(raw[name])) if kind != "rating" else ()
    if len(in_words) > 1:
        yield from _of_items(raw, said, Listed("rank", (), in_words, roles, _inner(in_words)), SURE)
        return
    found = [way for one in ("rank", "rating") if kind in (None, one) for way in _called(raw, one, kind, roles, free)]
    for one, sure in found:
        yield from _of_items(raw, said, one, sure)
    if not found and kind is not None and guess_one(free, (*KIND_OF[kind], *CHOSEN)) is None:
        several = _any_family(free)
        if several:
            yield from _of_items(raw, said, Listed(kind, (), several, roles, _inner(several)), SURE)


def _called(
    raw: Columns, one: str, kind: str | None, roles: dict[str, str], free: Sequence[str]
) -> Iterator[tuple[Listed, int]]:
    """Columns by name that hold ranks or ratings of what else they are called."""
    words = RANKED if one == "rank" else RATED
    pattern = re.compile(rf"(?:{'|'.join(words)})[_. ]?(?P<a>.+)|(?P<b>.+?)[_. ](?:{'|'.join(words)})", re.I)
    found = {name: match["a"] or match["b"] for name in free if (match := pattern.fullmatch(name))}
    if len(found) < 2 or {*found.values()} <= {*raw}:
        return  # score_left beside left is of whatever stands there
    if not all(holds_numbers(raw[name], whole=True, least=0.0) for name in found):
        return
    sides = pair_families([*found]) or won_and_lost_families([*found])
    if kind is None and len(found) == 2 and sides and not any(item.isdecimal() for item in found.values()):
        return  # of two sides, whatever stood there
    others = [name for name in free if name not in found]
    if kind is None and all(_describes(item, others) for item in found.values()):
        return  # of what stands in another column, or one of several attributes
    if kind is None and one == "rank" and all(item.isdecimal() for item in found.values()):
        return  # an order, or as such
    numbered = one == "rating" and all(re.fullmatch(r"[a-z]?\d*", item, re.I) for item in found.values())
    # Letters and numbers may be items or places.
    yield Listed(one, (), tuple(found), roles, tuple(found.values())), OPEN if numbered and kind is None else SURE


def _of_items(
    raw: Columns, said: ReadOptions, found: Listed, sure: int, *, known: bool = True
) -> Iterator[Reading]:  # fmt: skip
    """Readings of ranks or ratings by the end that may be the good one, either unless words are ``known``."""
    word = _stem(found)
    what = "rank" if found.kind == "rank" else "rating"
    values = np.concatenate([numbers_of(raw[name], name, what) for name in found.answer])
    ends = good_ends(word, values, said.get("best"), known)
    if what == "rank" and known:
        ends = (said.get("best") or "low",)
    for end in ends:
        say: ReadOptions = {"kind": "rank" if what == "rank" else "rating"}
        if len(ends) > 1:
            say["best"] = end
        sentence = f"the {what} of each of {first_columns(found.items)}, {end} is good"
        yield _reading(raw, said, replace(found, end=end), say, sure, sentence)


def _stem(found: Listed) -> str:
    """The word that columns have before what they are about."""
    words = (word for word in (*RANKED, *RATED) if plain(found.answer[0]).startswith(plain(word)))
    return next(words, found.answer[0])


def _describes(item: str, names: Sequence[str]) -> bool:
    """Whether a column is about an item, such as car_price about the car."""
    word = re.escape(item)
    return any(re.fullmatch(rf"{word}[_. ].+|.+[_. ]{word}", name, re.I) for name in names)


def _in_places(series: pl.Series) -> bool:
    """Whether all values are places in words, such as First Choice."""
    if series.dtype != pl.String or place_of(first_word(series)) is None:
        return False
    return all(place_of(word) is not None for word in values_of(words_of(series)))


def _inner(names: tuple[str, ...]) -> tuple[str, ...]:
    """Items that columns name in brackets, or behind a line, after one and the same word; else their names."""
    parts = [re.fullmatch(r"(.*?)\s*\[(.+)\]", name.strip()) or re.fullmatch(r"(.+?)_(.+)", name) for name in names]
    if all(parts) and len({part[1] for part in parts if part}) == 1:
        return tuple(part[2] for part in parts if part)
    return names


def _votes(raw: Columns, said: ReadOptions) -> Iterator[Reading]:
    """Columns of items that hold votes, 1, 0 and -1, ranks or ratings, where nothing else holds an answer."""
    if said.get("kind") not in (None, "rating", "rank") or said.get("winner") is not None:
        return
    if said.get("alternatives") is not None or guess_one(list(raw), (*CHOSEN, *TASKS, *IDENTIFIED)) is not None:
        return  # of another layout, or a table of items
    user = named_or_guessed(list(raw), said.get("user"), PEOPLE_OF_SETS)
    roles = {} if user is None else {"user": user}
    # Where people have several rows each, hardly any columns of numbers are items.
    one_each = user is None or (is_plain(raw[user]) and bool(raw[user].is_unique().all()))
    # Of very many columns only numbers may be items.
    names = [name for name in raw if name != user and (len(raw) < MOST_FREE or name.isdecimal())]
    rest = [name for name in names if not tells(name, MEASURES | NO_ANSWER) and _holds_small(raw[name])]
    held = {name: set(values_of(words_of(raw[name]))) for name in rest}
    votes = tuple(name for name in rest if held[name] <= {"-1", "0", "1"})
    down = tuple(name for name in votes if "-1" in held[name])
    counted_items = tuple(name for name in votes if name.isdecimal())
    votes = counted_items if len(counted_items) > 2 and down else votes
    of_one_word = [family for family in _by_stem(rest) if len(family) > 2]
    ways = (
        [(votes, LIKELY if down in (votes, ()) or votes == counted_items else OPEN)]
        if down and user and one_each
        else []
    )
    ways += [(down, OPEN), *((one, OPEN) for one in of_one_word if not down), (tuple(rest), OPEN)]
    seen = set()
    for some, sure in ways:
        if len(some) > 2 and some not in seen:
            seen.add(some)
            kind = "rank" if _are_permutations(raw, some) else "rating"
            for way in _of_items(raw, said, Listed(kind, (), some, roles, _inner(some)), sure, known=False):
                yield replace(way, say={"alternatives": list(some), **way.say})


def _by_stem(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Columns that share a word before a line."""
    found: dict[str, list[str]] = {}
    for name in names:
        if match := re.fullmatch(r"(.+?)_(.+)", name):
            found.setdefault(match[1], []).append(name)
    return [tuple(family) for family in found.values()]


def _are_permutations(raw: Columns, names: tuple[str, ...]) -> bool:
    """Whether each row holds the numbers from 1 to that of the columns."""
    rows = np.sort(np.stack([numbers_of(raw[name], name, "rank") for name in names]), axis=0)
    return bool((rows == np.arange(1, len(names) + 1)[:, None]).all())


def _holds_small(series: pl.Series) -> bool:
    """Whether a column holds whole numbers from -1 to 10, by the first of them; then by all."""
    if not is_plain(series) or re.fullmatch(r"-?\d{1,2}(\.0)?", first_word(series)) is None:
        return False
    return holds_numbers(series, whole=True, least=-1.0)


# --- the reading ------------------------------------------------------------------------------------------------------


def sets_listed(raw: Columns, found: Listed, options: ReadOptions) -> Sets:
    """Answers of a table of items; raises DataError."""
    columns = dict(found.columns)
    for role, used in (("alternatives", found.alternatives), ("place", found.answer)):
        columns.update({f"{role} {nth}": name for nth, name in enumerate(used, 1) if name not in columns.values()})
    sets = sets_of_rows(found.kind, raw, columns, options)
    if found.items:
        _read_ranks(raw, found, sets)
    else:
        _read_items(raw, found, sets)
    return sets


def _read_ranks(raw: Columns, found: Listed, sets: Sets) -> None:
    n, k = sets.n_tasks, len(found.items)
    what = "rank" if found.kind == "rank" else "rating"
    values: FloatArray = np.concatenate([numbers_of(raw[name], name, what) for name in found.answer])
    sets.task, sets.item = np.tile(np.arange(n), k), pl.Series(found.items).gather(np.repeat(np.arange(k), n))
    if what == "rating":
        sets.level = levels_of_ratings(values, _stem(found), sets, found.end)
        keep_rated(sets, ~np.isnan(values))
        return
    sets.kind = "order"
    sets.level = levels_of_ranks(values, RANKED[0], sets, found.end)


def _answered(raw: Columns, found: Listed) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Task, level and item of what the answer names, and of what was shown."""
    if len(found.answer) > 1 or found.kind in ("best", "best_worst"):
        said = _in_columns(raw, found.answer)
    else:
        said = _order_of(raw[found.answer[0]], found.kind)
    said = _with_ids(said, found.answer[0])
    if not found.alternatives:
        return said, said.clear()
    offered = _with_ids(_offered(raw, found.alternatives), found.alternatives[0])
    if offered["item"].dtype != said["item"].dtype:
        offered, said = (one.with_columns(item=as_text(one["item"])) for one in (offered, said))
    return said, offered


def _offered(raw: Columns, alternatives: tuple[str, ...]) -> pl.DataFrame:
    return _in_columns(raw, alternatives) if len(alternatives) > 1 else _listed_in(raw[alternatives[0]])


def _read_items(raw: Columns, found: Listed, sets: Sets) -> None:
    """Items that are shown, and the levels that the answer gives them."""
    order = found.kind == "order"
    said, offered = _answered(raw, found)
    if order and len(found.answer) > 1:
        if found.last:
            said = said.with_columns(level=pl.col("level") + (pl.col("level") == len(found.answer) - 1) * 2 * _REST)
        filled = np.stack([clean_ids(raw[name], name).is_not_null().to_numpy() for name in found.answer])
        gap: BoolArray = np.logical_or.reduce(filled[1:] & ~np.logical_and.accumulate(filled)[:-1])
        message = (
            f"an order leaves a gap before a later place (columns {listed(found.answer)}) in {{where}}. Fill it in."
        )
        sets.unusable.append((UNCLEAR, gap, message))
    if not found.alternatives:
        sets.take(said, said["level"].to_numpy())
        return
    sets.heeded = ("winner_is",)
    known = _matched(said, offered, ["task", "item"])["level"].is_not_null()
    if found.is_a == "side" or (order and len(said) and _what_answers_are(raw, found, sets.options) == ("side",)):
        placed = _placed(said, offered)
        known = placed.is_not_null()
        said = said.with_columns(item=placed.fill_null(said["item"]))
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
    sets.take(offered, _levels(found.kind, offered, said))


def _matched(rows: pl.DataFrame, known: pl.DataFrame, on: list[str]) -> pl.DataFrame:
    """For each of some rows the first of others that is equal ``on`` some columns, nulls where there is none."""
    known = known.unique(on, keep="first", maintain_order=True)
    return rows.select(on).join(known, on=on, how="left", maintain_order="left")


_REST = 1 << 40  # level of what an order does not name: below all that it names, but for the worst


def _levels(kind: str, offered: pl.DataFrame, said: pl.DataFrame) -> IntArray:
    """Level of each alternative that was shown, by those that the answer names."""

    def named(some: pl.DataFrame) -> pl.Series:
        return _matched(offered, some, ["task", "item"])["level"]

    if kind == "best_worst":
        best, worst = (named(said.filter(pl.col("level") == end)).is_not_null().to_numpy() for end in (0, 1))
        return best_worst_levels(best, worst)
    level = named(said)
    return chosen_levels(level.is_not_null().to_numpy()) if kind != "order" else level.fill_null(_REST).to_numpy()


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
