"""Wide tables: one row a task, with columns for the attributes of each alternative, and the choice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import polars as pl

from predilect._text import did_you_mean, shown
from predilect._types import BoolArray, IntArray
from predilect.data.frames import as_text
from predilect.data.intake import UNCLEAR, counted
from predilect.data.read.columns import listed
from predilect.data.read.names import (
    AVAILABLE,
    CHOSEN,
    MEASURES,
    PLACED,
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
    could_be_items,
    distinct,
    first_word,
    flags,
    has_constants,
    is_place,
    is_plain,
    once_in_each,
    pairs_of_items,
)
from predilect.data.read.sets import Sets, columns_by_role, sets_of_rows
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


_WHOLE = re.compile(r"(\d{1,18})(\.0*)?")


@dataclass(frozen=True)
class Wide:
    """A wide table: its columns, those ``by`` what they hold and by alternative, those of the answer and by role."""

    raw: Mapping[str, pl.Series]
    alternatives: tuple[str, ...]
    by: dict[str, dict[str, str]]
    roles: dict[str, str]
    answer: tuple[str, ...]  # columns of the best, the second ..., and of the worst if it is ``last``
    last: bool
    codes: dict[str, int] = field(default_factory=dict)  # alternative of each value of the answer
    note: str = ""
    ask: str = ""  # what must be said first

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

    def words(self, name: str) -> pl.Series:
        """Values of a column as text without blanks around them."""
        return as_text(self.raw[name]).str.strip_chars()


def find_wide(raw: Mapping[str, pl.Series], options: ReadOptions) -> Wide | None:
    """A wide table of some columns, or None if these are none of one; DataError if several readings fit."""
    kind, said, given = options.get("kind"), options.get("winner"), options.get("alternatives")
    if kind not in (None, "best", "best_worst", "order") or (isinstance(given, str) and given in raw):
        return None
    roles = columns_by_role(list(raw), options)
    free = [name for name in raw if name not in roles.values()]
    ends = best_and_worst(free) if kind != "best" and said is None else None
    if ends is None and kind not in (None, "best"):
        return None
    answers: list[tuple[str, ...]] = [(name,) for name in ([said] if said else all_named(free, CHOSEN))]
    if ends is not None:
        answers = [(ends[0], *(places_between(free) if kind != "best_worst" else ()), ends[1])]
    taken = {name for columns in answers for name in columns}
    free = [name for name in free if name not in taken and not raw[name].dtype.is_nested()]
    if given is not None and not isinstance(given, str):
        readings = [_by_names(free, [str(name) for name in given])]
    else:
        readings = [reading for part in _PARTS if (reading := _families(free, part)) is not None]
    readings = [_profile_only(*reading, options.get("profile")) for reading in readings]
    readings.sort(key=lambda reading: -sum(map(len, reading[1].values())))  # that of most columns
    found: dict[tuple[frozenset[str], tuple[str, ...]], Wide] = {}
    for alternatives, by in readings:
        used = {column for columns in by.values() for column in columns.values()}
        called, none = {*map(_bare, alternatives)}, str(options.get("none", NONE))
        for answer in answers or [(name,) for name in free if name not in used and _may_say(raw[name], called, none)]:
            wide = Wide(raw, tuple(alternatives), by, roles, answer, last=ends is not None)
            coded = _coded(wide, options, named_only=not answers)
            if coded is not None and (ends is None or not _hold(coded)):
                found.setdefault((frozenset(coded.alternatives), answer), coded)
    several = list(found.values())
    # That of more attributes; that of which the choice names alternatives, or one tells which are available.
    whole = [wide for wide in several if all(len(by) == len(wide.alternatives) for by in wide.attributes.values())]
    several = [wide for wide in several if not any(wide.used < other.used for other in whole)]
    glued = any(wide.are_places and _are_glued(wide) for wide in several)
    for sure in (
        lambda wide: not wide.note and not wide.ask, lambda wide: bool(wide.available), lambda wide: wide.are_places
    ):  # fmt: skip
        if len(several) > 1 and not glued and any(map(sure, several)):
            several = [wide for wide in several if sure(wide)]
    if len({frozenset(wide.alternatives) for wide in several}) > 1:
        told = "; or ".join(
            f"{', '.join(map(shown, wide.alternatives[:4]))}, {option('alternatives', list(wide.alternatives))}"
            for wide in several
        )
        raise DataError(f"the columns can be read as those of several sets of alternatives. Say which: {told}.")
    if not several:
        return None
    if not said:
        _refuse_other_answers(several)
    wide = several[0]
    if given is None and ends is None and not wide.ask and not wide.available and (ask := _grouped(wide, options)):
        return None if isinstance(options.get("task"), str) else replace(wide, ask=ask)
    return _or_items(wide, options)


def _refuse_other_answers(several: Sequence[Wide]) -> None:
    """DataError if columns say in different ways which of the same alternatives was chosen."""
    one = several[0]

    def said(wide: Wide) -> pl.Series:
        place = {word: one.alternatives.index(wide.alternatives[place]) for word, place in wide.codes.items()}
        return wide.words(wide.answer[0]).replace_strict(place, default=None, return_dtype=pl.Int64)

    for wide in several[1:]:
        differ = said(one).ne_missing(said(wide))
        if differ.any():
            row = differ.arg_max() or 0
            told = " or ".join(
                f"{shown(one.raw[each.answer[0]][row])}, {option('winner', each.answer[0])}" for each in (one, wide)
            )
            raise DataError(
                f'columns "{shown(one.answer[0])}" and "{shown(wide.answer[0])}" could both say which alternative was '
                f"chosen: in row {row + 1} it is {told}."
            )


def _or_items(wide: Wide, options: ReadOptions) -> Wide:
    """The reading, with what is asked if columns that are numbered alike may hold items as well as an attribute."""
    if options.get("alternatives") is not None or options.get("profile") is not None:
        return wide
    raw, lone, attributes = wide.raw, wide.lone, wide.attributes
    if lone:
        others = [alt for alt in wide.alternatives if alt not in lone]
        return replace(wide, ask=(
            f"the names of columns tell of the alternatives {', '.join(map(shown, wide.alternatives))}, and "
            f'"{shown(wide.answer[0])}" never of {", ".join(map(shown, lone))}, with one column alone. If that is one '
            f"of those shown, say {option('alternatives', list(wide.alternatives))}; if not, "
            f"{option('alternatives', others)}."
        ))  # fmt: skip
    if not all(is_place(alt) or could_be_side(alt) for alt in wide.alternatives):
        return wide
    sets = [list(by.values()) for name, by in attributes.items() if len(by) == len(wide.alternatives)
            and (len(attributes) == 1 or tells_works(name)) and not tells(name, MEASURES)]  # fmt: skip
    if len(wide.alternatives) == 2 and len(attributes) == 1:
        taken = {*wide.used, *wide.roles.values(), *wide.answer}
        sets += pairs_of_items({name: column for name, column in raw.items() if name not in taken})
    items = next((one for one in sets if could_be_items([raw[name] for name in one])), None)
    if items is None:
        return wide
    said = option("left", items[0], right=items[1]) if len(items) == 2 else option("alternatives", items)
    name, by = next(iter(attributes.items()))
    ask = (
        f"the columns {listed(items)} may hold the items that were shown, or columns may describe alternatives by "
        f'"{shown(name)}". Row 1 was about {", ".join(shown(raw[one][0]) for one in items)}, {said}, or about '
        f'alternatives whose "{shown(name)}" is {", ".join(shown(raw[one][0]) for one in by.values())}, '
        f"{option('profile', list(attributes))}."
    )
    return replace(wide, ask=ask)


def _are_glued(wide: Wide) -> bool:
    """Whether the number of each alternative may be part of the name of an attribute of others, as in car_x1."""
    return all(re.search(r"[^_. ][_. ]", name) for name in wide.attributes) and all(
        re.search(r"[^_. \d]\d+$", column) for column in wide.used
    )


_MOST_KEYS = 12  # columns that are looked at for what parts the rows into tasks


def _grouped(wide: Wide, options: ReadOptions) -> str:
    """What is asked where each row may be one alternative: several rows have one task, and one answer or mark."""
    if not wide.are_places:
        return ""
    raw, described = wide.raw, [name for by in wide.attributes.values() for name in by.values()]
    answer = wide.words(wide.answer[0])
    user, task = wide.roles.get("user"), options.get("task")
    rest = [name for name, column in raw.items() if name not in (*described, *wide.answer, user)
            and is_plain(column) and not column.null_count()]  # fmt: skip
    rest = [task] if isinstance(task, str) else rest
    told = [name for name in rest if is_called(name, PLACED) and all(map(is_place, as_text(raw[name])))]
    parts: dict[bytes, tuple[str, pl.Series]] = {}  # ways to part the rows, of which no part is a row alone
    for name in sorted(rest):
        first, group = distinct([raw[one] for one in (name, user) if one is not None])
        if len(first) > 1 and np.bincount(group).min() > 1:
            parts.setdefault(first[group].tobytes(), (name, pl.Series(group)))
    alone = list(parts.values())[:_MOST_KEYS]
    counts = [*answer.value_counts()["count"]]
    for ways in [(one,) for one in alone] + list(combinations(alone, 2)):
        keys = pl.DataFrame(dict(ways))
        n_parts = keys.n_unique()
        constant = keys.with_columns(answer=answer).n_unique() == n_parts
        if not constant and n_parts not in counts:
            continue
        _, group = distinct(keys.get_columns())
        marks = ((answer == word).fill_null(False).to_numpy() for word in answer.drop_nulls().unique())
        if np.bincount(group).min() > 1 and (constant or any(once_in_each(mark, group) for mark in marks)):
            told += keys.columns
    if not told:
        return ""
    return (
        f"each row may be a choice from {listed(wide.alternatives)}, which columns such as {listed(described[:2])} "
        f'describe, or one alternative, as "{shown(told[0])}" tells. If it is a choice, say '
        f"{option('alternatives', list(wide.alternatives))}; if rows are alternatives, name the column that says which "
        f"are of one task: {option('task', 'NAME')}."
    )


def _hold(wide: Wide) -> bool:
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


def _coded(wide: Wide, options: ReadOptions, named_only: bool) -> Wide | None:
    """The table with what each value of the choice means; None if too few values mean anything.

    ``named_only``: the name of the column does not tell that it holds the choice, so its values must.
    """
    alternatives, choice = list(wide.alternatives), wide.answer[0]
    if not wide.attributes or any(name not in wide.raw or wide.raw[name].dtype.is_nested() for name in wide.answer):
        return None
    places = {_bare(alt): place for place, alt in enumerate(alternatives)}
    words = pl.concat([wide.words(name) for name in wide.answer]).drop_nulls().unique().sort().to_list()
    codes = {word: places[_bare(word)] for word in words if _bare(word) in places}
    note, ask, ordered = "", "", options.get("alternatives") is not None
    numbers = {word: int(match[1]) for word in words if (match := _WHOLE.fullmatch(word))}
    numbers = {word: number for word, number in numbers.items() if word != str(options.get("none", NONE))}
    if named_only and (numbers or len(codes) < len(words)):
        return None
    k, most = len(alternatives), max(numbers.values(), default=0)
    from_0 = set(numbers.values()) == set(range(k)) and len(numbers) == len(words)
    if from_0 and len(codes) < k:
        codes = dict(numbers)
        if ordered:
            note = f"The choice counts the alternatives from 0: 0 {shown(alternatives[0])}."
        elif wide.are_places:
            ask = _from_0(choice, sorted(alternatives, key=_bare))
        else:
            note, ask = _numbered(wide, 0)
    elif numbers and most <= k and (ordered or not codes):
        in_order = sorted(alternatives, key=_bare) if wide.are_places and not ordered else alternatives  # A, B, C
        if not ordered and not wide.are_places:
            note, ask = _numbered(wide, 1)
        codes |= {word: alternatives.index(in_order[number - 1]) for word, number in numbers.items()
                  if number > 0 and word not in codes}  # fmt: skip
    elif not codes and ordered and numbers:
        raise DataError(
            f'column "{shown(choice)}" holds the choice {most}, and {k} alternatives '
            f"were named ({', '.join(map(shown, alternatives))}). Name them all, in the order of their numbers."
        )
    if not codes or (len(codes) < 2 and len(words) > 2):
        return None
    coded = replace(wide, codes=codes, note=note, ask=ask)
    lone = {*coded.lone}
    others = [alt for alt in alternatives if alt not in lone]
    if len(others) < k and not ordered and all(map(is_place, others)):
        kept = {name: {alt: by[alt] for alt in by if alt in others} for name, by in wide.by.items()}
        return _coded(replace(wide, alternatives=tuple(others), by=kept), options, named_only)
    if named_only and all(is_place(word) or could_be_side(word) for word in words):  # of the screen, or a group
        ask = (
            f'"{shown(choice)}" holds {", ".join(map(shown, words))}, as alternatives are called in names of columns. '
            f"If it says which was chosen, say {option('winner', choice)}; if another column does, name that one."
        )
        return replace(coded, ask=ask) if len({*codes.values()}) == k else None
    return coded


def _may_say(series: pl.Series, called: Set[str], none: str) -> bool:
    """Whether the first value of a column is what an alternative is called, and no number that may be anything."""
    first = first_word(series)
    return _bare(first) in called and (first == none or _WHOLE.fullmatch(first) is None)


def _bare(alternative: str) -> str:
    """An alternative without words such as alt before its number or letter; a number as one."""
    match = re.fullmatch(rf"{_WORD}?[_. ]*(\d{{1,18}})(?:\.0*)?", alternative.strip(), re.I)
    if match:
        return f"{int(match[1]):09d}"
    match = re.fullmatch(rf"{_WORD}[_. ]*([a-z])", alternative.strip(), re.I)
    return (match[1] if match else alternative.strip()).lower()


def _from_0(choice: str, alternatives: Sequence[str]) -> str:
    """What is asked where columns count from 1 and the choice from 0."""
    last = alternatives[-1]
    return (
        f'column "{shown(choice)}" holds 0 to {len(alternatives) - 1}, and the alternatives of the columns are '
        f"{', '.join(map(shown, alternatives))}. If 0 is the choice of {shown(alternatives[0])}, the first, say "
        f"{option('alternatives', list(alternatives))}; if 0 is none of them, and {shown(last)} was never chosen, say "
        f"{option('none', '0')}."
    )


def _numbered(wide: Wide, first: int) -> tuple[str, str]:
    """How numbers were understood where alternatives have names, and what is asked if the columns do not tell."""
    alternatives = wide.alternatives
    orders = {tuple(alt for alt in by) for by in wide.attributes.values() if len(by) > 1}
    agree = all(list(order) == [alt for alt in alternatives if alt in order] for order in orders)
    told = ", ".join(f"{place} {shown(alt)}" for place, alt in enumerate(alternatives, first))
    if agree and [alt.lower() for alt in alternatives] != sorted(alt.lower() for alt in alternatives):
        return f"The choice was read by the order of the columns: {told}.", ""
    return "", (
        f'column "{shown(wide.answer[0])}" holds numbers, and the order of the columns does not tell which alternative '
        f"is which. Name them in the order of their numbers: {option('alternatives', list(alternatives))}, counted "
        f"from {first}."
    )


def read_wide(wide: Wide, options: ReadOptions) -> Sets:
    """Answers of a wide table; raises DataError."""
    if wide.ask:
        raise DataError(wide.ask)
    for name in options.get("profile") or ():
        if not is_called(name, list(wide.attributes)):
            raise DataError(
                f'no columns hold "{shown(name)}" (given as profile) by alternative; they hold '
                f"{listed(list(wide.attributes))}.{did_you_mean(name, wide.attributes)}"
            )
    none_id = options.get("none", NONE)
    raw, n, alternatives = wide.raw, len(wide.raw[wide.answer[0]]), list(wide.alternatives)
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
    attributes = {
        name: _under_each_other([raw[by[alt]] if alt in by else None for alt in alternatives], n)
        for name, by in wide.attributes.items()
    }
    names_of = pl.Series(alternatives).gather(place)
    labelled = has_constants(names_of, attributes, none, task, options.get("constants"), None)
    if not labelled and all(is_place(alt) for alt, nought in zip(alternatives, nothing, strict=True) if not nought):
        _refuse_unequal(wide, alternatives, nothing)
    blank = np.stack([column.is_null().to_numpy() for column in attributes.values()]).all(axis=0) & ~none
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
    sets: Sets, wide: Wide, name: str, chosen: IntArray, words: pl.Series, was_there: BoolArray
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


def _refuse_unequal(wide: Wide, alternatives: Sequence[str], nothing: Sequence[bool]) -> None:
    """DataError where alternatives that are only numbered have different attributes."""
    shown_ones = [alt for alt, is_nothing in zip(alternatives, nothing, strict=True) if not is_nothing]
    for name, by in wide.attributes.items():
        lacking = [alt for alt in shown_ones if alt not in by]
        if lacking:
            raise DataError(
                f'columns hold "{shown(name)}" for the alternatives {listed(list(by))} but not for {listed(lacking)}. '
                "Leave the cells of an alternative that was not shown blank, and name what describes alternatives: "
                f"{option('profile', [n for n, b in wide.attributes.items() if len(b) == len(shown_ones)])}."
            )


def _under_each_other(columns: Sequence[pl.Series | None], n: int) -> pl.Series:
    """Columns one after the other, (n * k,), nulls for none; as text unless all are numbers, or of one kind."""
    kinds = {column.dtype for column in columns if column is not None}
    kind = kinds.pop() if len(kinds) == 1 and pl.Object not in kinds else None
    if kind is None:
        kind = pl.Float64() if all(one.is_numeric() for one in kinds) else pl.String()
    parts = [pl.Series([None] * n, dtype=kind) if one is None else one for one in columns]
    return pl.concat([(as_text(one) if kind == pl.String else one.cast(kind)).alias("") for one in parts])
