"""A row a task, with columns for the attributes of each alternative, and one of the choice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import permutations

import numpy as np
import polars as pl

from predilect._base.text import did_you_mean, shown
from predilect._base.types import BoolArray, IntArray
from predilect.data.frames import Columns, as_text
from predilect.data.intake import UNCLEAR, counted
from predilect.data.read.columns import first_columns, listed
from predilect.data.read.long import may_be_alternatives
from predilect.data.read.names import (
    AVAILABLE,
    CHOSEN,
    MEASURES,
    NO_ANSWER,
    all_named,
    best_and_worst,
    could_be_side,
    is_called,
    places_between,
    tells,
    tells_works,
)
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.profiles import (
    NONE,
    NONE_WORDS,
    constants_of,
    could_be_items,
    first_word,
    flags,
    holds_numbers,
    is_place,
    pairs_of_items,
    stripped,
)
from predilect.data.read.readings import LIKELY, OPEN, SURE, Reading
from predilect.data.read.sets import MOST_KEYS, Sets, assembled_sets, columns_by_role, sets_of_rows
from predilect.errors import DataError

_WORD = r"(?:alternative|alt|option|concept|profile|choice|product|item)"
_PARTS = (
    # alt1_price, alt_1_price, A_price, TRAIN_TT: the alternative first.
    re.compile(rf"(?P<alt>{_WORD}?[_. ]?(?:\d+|[A-Za-z]))[_. ](?P<name>.+)", re.I),
    re.compile(r"(?P<alt>[^_.]+)[_.](?P<name>.+)"),
    # price1, price_1, price.alt1, price_A, time_car: the alternative last.
    re.compile(rf"(?P<name>.*?[^\d_. ])[_. ]?(?P<alt>{_WORD}?[_. ]?\d+)", re.I),
    re.compile(r"(?P<name>.+)[_.](?P<alt>[^_.]+)"),
)
# x11 and x12, x21 and x22: an attribute with a number in its name, and a digit for the alternative.
_DIGIT = re.compile(r"(?P<name>.*[^\W_])(?P<alt>\d)")


_WHOLE = re.compile(r"(\d{1,18})(\.0*)?")


@dataclass(frozen=True)
class _Wide:
    """A wide table: its columns, those ``by`` what they hold and by alternative, those of the answer and by role."""

    raw: Columns
    alternatives: tuple[str, ...]
    by: dict[str, dict[str, str]]
    roles: dict[str, str]
    answer: tuple[str, ...]  # columns of the best, the second ..., and of the worst if it is ``last``
    last: bool
    codes: dict[str, int] = field(default_factory=dict)  # alternative of each value of the answer
    note: str = ""
    say: ReadOptions = field(default_factory=ReadOptions)  # what says that values mean this
    sure: int = SURE
    labelled: bool | None = None  # as of ``constants_of``
    zeros: bool = False  # whether what an alternative lacks is 0

    @property
    def attributes(self) -> dict[str, dict[str, str]]:
        """Columns of each attribute by alternative."""
        return {name: by for name, by in self.by.items() if not is_called(name, AVAILABLE)}

    @property
    def available(self) -> dict[str, str]:
        """Columns that say whether an alternative was available."""
        return {alt: one for name, by in self.by.items() if is_called(name, AVAILABLE) for alt, one in by.items()}

    @property
    def used(self) -> set[str]:
        """All columns by alternative."""
        return {name for by in self.by.values() for name in by.values()}

    @property
    def are_places(self) -> bool:
        """Whether the names of alternatives only say where they stood."""
        return all(map(is_place, self.alternatives))

    @property
    def lone(self) -> list[str]:
        """Alternatives with a name that have one column alone, of several attributes, and were never chosen."""
        attributes, chosen = self.attributes, {*self.codes.values()}
        columns = Counter(alt for by in attributes.values() for alt in by)
        return [alt for place, alt in enumerate(self.alternatives) if len(attributes) > 1 and not is_place(alt)
                and place not in chosen and columns[alt] == 1]  # fmt: skip

    def is_mixed(self, attribute: str) -> bool:
        """Whether an attribute is a number for some alternatives and a word for others."""
        return len({holds_numbers(self.raw[name]) for name in self.by[attribute].values()}) > 1

    def words(self, name: str) -> pl.Series:
        """Values of a column as text without blanks around them."""
        return stripped(self.raw[name])


def wide_readings(raw: Columns, said: ReadOptions) -> Iterator[Reading]:
    """Tables of a row a task whose columns describe alternatives."""
    several = _found(raw, said)
    apart = len({frozenset(wide.alternatives) for wide in several}) > 1
    for wide in several:
        for one in _constants(_doubted(wide, said), said):
            say: ReadOptions = {**one.say}
            if len(one.answer) == 1:
                say["winner"] = one.answer[0]
            else:
                say["kind"] = "order" if len(one.answer) > 2 else "best_worst"
            if apart:
                say["alternatives"] = list(one.alternatives)
            sentence = (
                f"a choice from {first_columns(one.alternatives)}, described by {first_columns([*one.attributes])}"
            )
            yield Reading(sentence, say, partial(assembled_sets, raw, {**said, **say}, _built, one), one.sure)


def _found(raw: Columns, said: ReadOptions) -> list[_Wide]:
    """What the names of columns may tell of alternatives, with columns that say which was chosen."""
    kind, winner, given = said.get("kind"), said.get("winner"), said.get("alternatives")
    if kind not in (None, "best", "best_worst", "order") or (isinstance(given, str) and given in raw):
        return []
    roles = columns_by_role(raw.names, said)
    free = [name for name in raw if name not in roles.values()]
    ends = best_and_worst(free) if kind != "best" and winner is None else None
    if ends is None and kind not in (None, "best"):
        return []
    answers: list[tuple[str, ...]] = [(name,) for name in ([winner] if winner else all_named(free, CHOSEN))]
    if ends is not None:
        answers = [(ends[0], *(places_between(free) if kind != "best_worst" else ()), ends[1])]
    taken = {name for columns in answers for name in columns}
    free = [name for name in free if name not in taken]
    if given is not None and not isinstance(given, str):
        readings = [_by_names(free, [str(name) for name in given])]
    else:
        readings = [reading for part in _PARTS if (reading := _families(free, part)) is not None]
        if (digits := _families(free, _DIGIT)) is not None and not any(name[:-1] in digits[1] for name in digits[1]):
            readings.append(digits)
    readings = [(alts, by) for alts, by in readings if given is not None or len(alts) <= _MOST_SHOWN]
    readings = [_profile_only(*reading, said.get("profile")) for reading in readings]
    readings.sort(key=lambda reading: -sum(map(len, reading[1].values())))  # that of most columns
    found: dict[tuple[object, ...], _Wide] = {}
    for alternatives, by in readings:
        used = {column for columns in by.values() for column in columns.values()}
        called, none = {*map(_bare, alternatives)}, str(said.get("none", NONE))
        for answer in answers or [(name,) for name in free if name not in used and _may_say(raw, name, called, none)]:
            if any(raw[name].dtype.is_nested() for name in (*answer, *used)):
                continue
            wide = _Wide(raw, tuple(alternatives), by, roles, answer, last=ends is not None)
            for coded in _coded(wide, said, named_only=not answers):
                if ends is None or not _hold(coded):
                    found.setdefault((frozenset(coded.alternatives), answer, str(coded.say)), coded)
    return _best_explained(list(found.values()))


def _best_explained(several: list[_Wide]) -> list[_Wide]:
    """Those that leave no other columns of alternatives, and whose choice or availability is told most clearly."""
    whole = [wide for wide in several if all(len(by) == len(wide.alternatives) for by in wide.attributes.values())]
    several = [wide for wide in several if not any(
        wide.used < other.used or (wide not in whole and wide.used == other.used) for other in whole
    )]  # fmt: skip
    several = [wide for wide in several if not any(map(wide.is_mixed, wide.attributes))] or several
    glued = any(wide.are_places and _are_glued(wide) for wide in several)
    clear: tuple[Callable[[_Wide], bool], ...] = (
        lambda wide: not wide.note and wide.sure == SURE and not wide.say, lambda wide: bool(wide.available),
        lambda wide: wide.are_places,
    )  # fmt: skip
    for sure in clear:
        if len({wide.alternatives for wide in several}) > 1 and not glued and any(map(sure, several)):
            several = [wide for wide in several if sure(wide)]
    if len({wide.alternatives for wide in several}) > 1:
        least = min(wide.sure for wide in several)
        several = [replace(wide, sure=least) for wide in several]
    return several


def _doubted(wide: _Wide, said: ReadOptions) -> _Wide:
    """The table with how surely it is one: rows may be alternatives, or columns numbered alike items."""
    if said.get("alternatives") is not None or wide.sure < SURE:
        return wide
    doubt = SURE if said.get("profile") is not None else _may_be_items(wide)
    if doubt < SURE:
        return replace(wide, sure=doubt, say={**wide.say, "profile": list(wide.attributes)})
    if wide.are_places and not wide.last and not wide.available and may_be_alternatives(wide.raw, said, wide.answer[0]):
        return replace(wide, sure=OPEN, say={**wide.say, "alternatives": list(wide.alternatives)})
    return wide


def _may_be_items(wide: _Wide) -> int:
    """How surely it is one beside what its own columns, or two others, may be: items."""
    attributes = wide.attributes
    if not all(is_place(alt) or could_be_side(alt) for alt in wide.alternatives):
        return SURE
    sets = [list(by.values()) for name, by in attributes.items() if len(by) == len(wide.alternatives)
            and (len(attributes) == 1 or tells_works(name)) and not tells(name, MEASURES)]  # fmt: skip
    if any(could_be_items([wide.raw[name] for name in one]) for one in sets):
        return LIKELY if len(wide.alternatives) > 2 else OPEN  # two are a pair
    if len(wide.alternatives) > 2 or len(attributes) > 1:
        return SURE
    taken = {*wide.used, *wide.roles.values(), *wide.answer}
    few = [name for name in wide.raw if name not in taken][:MOST_KEYS]
    return OPEN if pairs_of_items({name: wide.raw[name] for name in few}) else SURE


def _are_glued(wide: _Wide) -> bool:
    """Whether the number of each alternative may be part of the name of an attribute of others, as in car_x1."""
    return all(re.search(r"[^_. ][_. ]", name) for name in wide.attributes) and all(
        re.search(r"[^_. \d]\d+$", column) for column in wide.used
    )


_MOST_SHOWN = 100  # alternatives of a task, unless they were named
_FEW = 3  # alternatives whose numbers may follow any order


def _hold(wide: _Wide) -> bool:
    """Whether the only columns by alternative hold the answers: then they are what was shown, and describe nothing."""
    columns = [wide.raw[name] for by in wide.attributes.values() for name in by.values()]
    if len(wide.attributes) > 1:
        return False
    if all(column.dtype == pl.String and column.str.contains(r"[^\d.\s]").any() for column in columns):
        return True
    return set(wide.codes) <= {value for column in columns for value in as_text(column).unique()}


_Reading = tuple[list[str], dict[str, dict[str, str]]]


def _families(names: Sequence[str], part: re.Pattern[str]) -> _Reading | None:
    """Alternatives in the order of the columns, and columns by attribute and alternative; None without any.

    An attribute that only one alternative has belongs to it if others share an attribute with it.
    """
    columns: dict[tuple[str, str], dict[str, str]] = {}  # by attribute and what separates it from the alternative
    for name in names:
        if match := part.fullmatch(name):
            first, second = sorted((match.span("alt"), match.span("name")))
            columns.setdefault((match["name"], name[first[1] : second[0]]), {})[match["alt"]] = name
    # Availability last: it tells nothing of the order in which alternatives are numbered.
    inner = sorted(columns, key=lambda key: is_called(key[0], AVAILABLE))
    joint = dict.fromkeys(alt for key in inner if len(columns[key]) > 1 for alt in columns[key])
    kept: dict[str, dict[str, str]] = {}
    for (name, _), by in sorted(columns.items(), key=lambda one: len(one[1])):
        if inside := {alt: column for alt, column in by.items() if alt in joint}:
            kept[name] = {**kept.get(name, {}), **inside}
    return (list(joint), kept) if len(joint) > 1 else None


def _by_names(names: Sequence[str], alternatives: list[str]) -> _Reading:
    """As ``_families``, with alternatives by name, with or without a separator."""
    columns: dict[str, dict[str, str]] = {}
    longest = sorted(alternatives, key=len, reverse=True)
    for separator in ("[_. ]", "[_. ]?"):
        for name in names:
            for alt in longest:
                word = re.escape(alt)
                match = re.fullmatch(f"{word}{separator}(.+)|(.+?){separator}{word}", name)
                if match:
                    columns.setdefault((match[1] or match[2]).strip("_. "), {})[alt] = name
                    break
        if columns:
            break
    kept = {name: by for name, by in columns.items() if len(by) > 1 or len(columns) > 1}
    return alternatives, kept


def _profile_only(
    alternatives: list[str], columns: dict[str, dict[str, str]], profile: Sequence[str] | None
) -> _Reading:
    if profile is None:
        return alternatives, columns
    kept = {name: by for name, by in columns.items() if is_called(name, profile, AVAILABLE)}
    there = {alt for by in kept.values() for alt in by}
    return [alt for alt in alternatives if alt in there] or alternatives, kept


def _coded(wide: _Wide, said: ReadOptions, named_only: bool) -> Iterator[_Wide]:
    """The table with what each value of the choice may mean; nothing if too few values mean anything.

    ``named_only``: the name of the column does not tell that it holds the choice, so its values must.
    """
    alternatives = list(wide.alternatives)
    if not wide.attributes:
        return
    places = {_bare(alt): place for place, alt in enumerate(alternatives)}
    words = pl.concat([wide.words(name) for name in wide.answer]).drop_nulls().unique().sort().to_list()
    by_name = {word: places[_bare(word)] for word in words if _bare(word) in places}
    numbers = {word: int(match[1]) for word in words if (match := _WHOLE.fullmatch(word))}
    numbers = {word: number for word, number in numbers.items() if word != str(said.get("none", NONE))}
    k, most, ordered = len(alternatives), max(numbers.values(), default=0), said.get("alternatives") is not None
    if named_only and (len({**by_name, **numbers}) < len(words) or len(words) < 2 or most > k):
        return
    from_0 = set(numbers.values()) == set(range(k)) and len(numbers) == len(words) and len(by_name) < k
    in_order = sorted(alternatives, key=_bare) if wide.are_places and not ordered else alternatives  # A, B, C
    start = 0 if from_0 else 1
    counted_off = {word: alternatives.index(in_order[number - start]) for word, number in numbers.items()
                   if start <= number < k + start}  # fmt: skip
    from_1 = wide.are_places and _bare("0") in places and set(numbers.values()) == set(range(1, k + 1))
    from_1 = from_1 and len(numbers) == len(words) and len(by_name) < k
    if (from_0 or from_1) and wide.are_places and not ordered:  # or the one that no column has is none of them
        none = "0" if from_0 else str(k)
        rest = {word: place for word, place in by_name.items() if numbers.get(word) != int(none)}
        say: ReadOptions = {"alternatives": in_order}
        ways = [replace(wide, codes=counted_off, say=say), replace(wide, codes=rest, say={"none": none})]
    elif not from_0 and not (numbers and most <= k and (ordered or not by_name)):
        if not by_name and ordered and numbers:
            raise DataError(
                f'column "{shown(wide.answer[0])}" holds the choice {most}, and {k} alternatives '
                f"were named ({', '.join(map(shown, alternatives))}). Name them all, in the order of their numbers."
            )
        ways = [replace(wide, codes=by_name)]
    elif ordered or wide.are_places:
        note = f"The choice counts the alternatives from 0: 0 {shown(alternatives[0])}." if from_0 else ""
        ways = [replace(wide, codes={**counted_off, **({} if from_0 or from_1 else by_name)}, note=note)]
    else:
        ways = _numbered(replace(wide, codes=counted_off), start)
    for way in ways:
        if way.codes and not (len(way.codes) < 2 and len(words) > 2):
            yield from _without_lone(way, said, named_only, words)


def _without_lone(wide: _Wide, said: ReadOptions, named_only: bool, words: Sequence[str]) -> Iterator[_Wide]:
    """The table with and without alternatives that have one column alone, and were never chosen."""
    lone = {*wide.lone} if said.get("alternatives") is None else set()
    others = [alt for alt in wide.alternatives if alt not in lone]
    if lone and len(others) > 1:
        kept = {name: {alt: by[alt] for alt in by if alt in others} for name, by in wide.by.items()}
        by = {name: of for name, of in kept.items() if of}
        codes = {word: others.index(wide.alternatives[place]) for word, place in wide.codes.items()}
        say: ReadOptions = {**wide.say, "alternatives": others}
        few = replace(wide, alternatives=tuple(others), by=by, codes=codes, say=say)
        if all(map(is_place, others)):
            yield from _coded(replace(few, say={}, codes={}), said, named_only)
            return
        yield few
        wide = replace(wide, say={**wide.say, "alternatives": list(wide.alternatives)})
    if named_only and all(is_place(word) or could_be_side(word) for word in words):  # of the screen, or a group
        yield replace(wide, sure=OPEN)
        return
    yield wide


def _numbered(wide: _Wide, first: int) -> list[_Wide]:
    """The table in which numbers count alternatives that have names, by the order of the columns if it tells one."""
    alternatives = wide.alternatives
    orders = {tuple(alt for alt in by) for by in wide.attributes.values() if len(by) > 1}
    agree = all(list(order) == [alt for alt in alternatives if alt in order] for order in orders)
    sentence = ", ".join(f"{place} {shown(alt)}" for place, alt in enumerate(alternatives, first))
    if agree and [alt.lower() for alt in alternatives] != sorted(alt.lower() for alt in alternatives):
        return [replace(wide, note=f"The choice was read by the order of the columns: {sentence}.")]
    every = permutations(alternatives) if len(alternatives) <= _FEW else [alternatives]
    return [replace(wide, alternatives=order, sure=OPEN, say={**wide.say, "alternatives": list(order)})
            for order in every]  # fmt: skip


def _may_say(raw: Columns, name: str, called: Set[str], none: str) -> bool:
    """Whether the first value of a column is what an alternative is called, or perhaps its number."""
    first = first_word(raw[name])
    if _WHOLE.fullmatch(first) is None or first == none:
        return _bare(first) in called
    return int(float(first)) <= len(called) and not tells(name, MEASURES | NO_ANSWER)


def _bare(alternative: str) -> str:
    """An alternative without words such as alt before its number or letter; a number as one."""
    match = re.fullmatch(rf"{_WORD}?[_. ]*(\d{{1,18}})(?:\.0*)?", alternative.strip(), re.I)
    if match:
        return f"{int(match[1]):09d}"
    match = re.fullmatch(rf"{_WORD}[_. ]*([a-z])", alternative.strip(), re.I)
    return (match[1] if match else alternative.strip()).lower()


def _constants(wide: _Wide, said: ReadOptions) -> Iterator[_Wide]:
    """The table with constants of the alternatives, or without; where these differ in attributes, what that means."""
    raw, profile = wide.raw, said.get("profile")
    names, columns = pl.Series(wide.alternatives), wide.attributes
    n = raw.n_rows
    none = np.array([_bare(alt) in NONE_WORDS for alt in wide.alternatives])
    task, place = np.tile(np.arange(n), len(names)), np.repeat(np.arange(len(names)), n)
    unequal = [name for name, by in columns.items() if len(by) < len(names) - none.sum()]
    attributes = _stacked(wide, wide.alternatives) if wide.are_places else {}
    ways = constants_of(names.gather(place), attributes, none[place], task, said.get("constants"), None)
    are_places = all(is_place(alt) for alt, nothing in zip(wide.alternatives, none, strict=True) if not nothing)
    if unequal and are_places and profile is None and said.get("constants") is None:
        say: ReadOptions = {**wide.say, "constants": True}
        yield replace(wide, labelled=True, say=say)
        shared = [name for name in columns if name not in unequal]
        if all(raw[one].dtype.is_numeric() for name in unequal for one in columns[name].values()):
            yield replace(wide, labelled=None, zeros=True, say={**wide.say, "profile": list(columns)})
        if shared:
            by = {name: of for name, of in wide.by.items() if name not in unequal}
            yield replace(wide, by=by, labelled=None, say={**wide.say, "profile": shared})
        return
    for labelled in ways:
        more: ReadOptions = {"constants": bool(labelled)} if len(ways) > 1 else {}
        yield replace(wide, labelled=labelled, say={**wide.say, **more}, zeros=profile is not None and not labelled)


def _stacked(wide: _Wide, alternatives: Sequence[str]) -> dict[str, pl.Series]:
    """Attributes of alternatives under each other, (n * k,)."""
    raw = wide.raw
    return {
        name: _under_each_other([raw[by[alt]] if alt in by else None for alt in alternatives], raw.n_rows)
        for name, by in wide.attributes.items()
    }


def _built(wide: _Wide, options: ReadOptions) -> Sets:
    """Answers of a wide table; raises DataError."""
    for name in options.get("profile") or ():
        if not is_called(name, list(wide.attributes)):
            raise DataError(
                f'no columns hold "{shown(name)}" (given as profile) by alternative; they hold '
                f"{listed(list(wide.attributes))}.{did_you_mean(name, wide.attributes)}"
            )
    none_id = options.get("none", NONE)
    raw, n, alternatives = wide.raw, wide.raw.n_rows, list(wide.alternatives)
    nothing = [_bare(alt) in (*NONE_WORDS, none_id.lower()) for alt in alternatives]
    words = [wide.words(name) for name in wide.answer]
    said_none = [word.str.to_lowercase().is_in([*NONE_WORDS, none_id.lower()]).fill_null(False) for word in words]
    if any(said.any() for said in said_none) and not any(nothing):
        alternatives, nothing = [*alternatives, none_id], [*nothing, True]
    old, new = list(wide.codes), list(wide.codes.values())
    chosen = np.stack([
        np.where(said.to_numpy(), nothing.index(True) if any(nothing) else -1,
                 word.replace_strict(old, new, default=-1, return_dtype=pl.Int64).to_numpy())
        for word, said in zip(words, said_none, strict=True)
    ])  # fmt: skip

    k = len(alternatives)
    task = np.tile(np.arange(n), k)
    place = np.repeat(np.arange(k), n)
    none = np.array(nothing)[place]
    attributes = _stacked(wide, alternatives)
    names_of = pl.Series(alternatives).gather(place)
    blank = np.stack([column.is_null().to_numpy() for column in attributes.values()]).all(axis=0) & ~none
    labelled = wide.labelled
    if not labelled and all(is_place(alt) for alt, nought in zip(alternatives, nothing, strict=True) if not nought):
        attributes = _filled(wide, alternatives, nothing, attributes, place)
    there = ~blank
    tops = len(wide.answer) - wide.last
    kind = {(1, False): "best", (1, True): "best_worst"}.get((tops, wide.last), "order")
    columns = {**wide.roles, "winner" if len(wide.answer) == 1 else "best": wide.answer[0]}
    if len(wide.answer) > 1:
        columns |= {"worst": wide.answer[-1]}
        columns |= {f"place {nth}": name for nth, name in enumerate(wide.answer[1:-1], 2)}
    columns = {role: name for role, name in columns.items() if name not in wide.used}
    for alt, column in wide.available.items():
        flagged = flags(raw[column])
        if flagged is None:
            raise DataError(f'column "{shown(column)}" says whether "{shown(alt)}" was available, and must be 1 or 0.')
        there[place == alternatives.index(alt)] &= flagged
        columns[f"available {alt}"] = column
    for name, by in wide.attributes.items():
        columns.update({f"{alt} {name}": column for alt, column in by.items()})

    level = np.full(n * k, tops)
    for nth, one in enumerate(chosen):
        level[(place == np.tile(one, k))] = nth + (nth == tops)
    sets = sets_of_rows(kind, raw, columns, options)
    sets.task, sets.level = task[there], level[there]
    kept = pl.Series(there)
    attributes = {name: column.filter(kept) for name, column in attributes.items()}
    sets.describe(names_of.filter(kept), labelled, attributes, none[there], none_id)
    for name, one, word in zip(wide.answer, chosen, words, strict=True):
        _refuse_unclear(sets, wide, name, one, word, there[one * n + np.arange(n)])
    again = (np.diff(np.sort(chosen, axis=0), axis=0) == 0).any(axis=0)
    message = f"columns {listed(wide.answer)} name the same alternative twice in {{where}}."
    sets.unusable.append((UNCLEAR, again, message))
    if wide.note:
        sets.notes.append(wide.note)
    gone = int((~there).sum())
    if gone:
        sets.notes.append(f"{counted(gone, 'alternative')} not available or blank, and so not shown.")
    return sets


def _refuse_unclear(
    sets: Sets, wide: _Wide, name: str, chosen: IntArray, words: pl.Series, was_there: BoolArray
) -> None:
    column = shown(name)
    unknown = chosen < 0
    if unknown.any():
        word = words.gather(np.flatnonzero(unknown)).drop_nulls()
        example = "it is empty" if not len(word) else f'it holds "{shown(word[0])}"'
        near = "" if not len(word) else did_you_mean(word[0], wide.alternatives)
        numbers = all(one.isdecimal() for one in [*wide.alternatives, *word.head(1)])
        if len(word) == 1 and numbers and word[0] != "0":  # one that comes again may be a code
            near = " Write the number of the alternative that was chosen."
        elif not near and word.n_unique() == 1:
            said = word[0] if shown(word[0]) == word[0] else "WORD"
            near = f" If that is the choice of none of them, say {option('none', said)}."
        listing = ", ".join(map(shown, wide.alternatives))
        message = f'column "{column}" chooses none of {listing} in {{where}}: {example}.{near}'
        sets.unusable.append((UNCLEAR, unknown, message))
    message = f'column "{column}" chooses an alternative that was not available, or blank, in {{where}}.'
    sets.unusable.append((UNCLEAR, ~unknown & ~was_there, message))


def _filled(
    wide: _Wide, alternatives: Sequence[str], nothing: Sequence[bool], attributes: dict[str, pl.Series], place: IntArray
) -> dict[str, pl.Series]:  # fmt: skip
    """Attributes of alternatives that are only numbered, with 0 for what one lacks; DataError unless that was said."""
    shown_ones = [alt for alt, is_nothing in zip(alternatives, nothing, strict=True) if not is_nothing]
    for name, by in wide.attributes.items():
        lacking = [alt for alt in shown_ones if alt not in by]
        if lacking and not (wide.zeros and attributes[name].dtype.is_numeric()):
            raise DataError(
                f'columns hold "{shown(name)}" for the alternatives {listed(list(by))} but not for {listed(lacking)}. '
                "Leave the cells of an alternative that was not shown blank, and name what describes alternatives: "
                f"{option('profile', [n for n, b in wide.attributes.items() if len(b) == len(shown_ones)])}."
            )
        if lacking:
            gone = pl.Series(np.isin(place, [alternatives.index(alt) for alt in lacking]))
            attributes = {**attributes, name: attributes[name].set(gone, 0)}
    return attributes


def _under_each_other(columns: Sequence[pl.Series | None], n: int) -> pl.Series:
    """Columns one after the other, (n * k,), nulls for none; as text unless all are numbers, or of one kind."""
    kinds = {column.dtype for column in columns if column is not None}
    kind = kinds.pop() if len(kinds) == 1 and pl.Object not in kinds else None
    if kind is None:
        kind = pl.Float64() if all(one.is_numeric() for one in kinds) else pl.String()
    parts = [pl.Series([None] * n, dtype=kind) if one is None else one for one in columns]
    return pl.concat([(as_text(one) if kind == pl.String else one.cast(kind)).alias("") for one in parts])
