"""The winner column: item ids, side words or signs, and one reading for the whole column."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._base.text import is_whole, near_miss, quoted, shown
from predilect.data.frames import where_present, where_true
from predilect.data.intake import counted
from predilect.data.read.names import GRADED, SideWords, could_be_side, squeezed, tokens
from predilect.data.read.options import ReadOptions, as_words, option, own_words
from predilect.data.read.profiles import values_of
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

UNKNOWN = 9  # outside the outcomes -1, 0, +1

_READING = {"item": "item ids", "side": "side words", "sign": "signs"}

MOST_GRADES = 6
_MOST_PHRASES = 1000  # different words that are looked at for more than the word of a side
# Words in common use, from slight to strong, without "better".
_LADDER = {
    "slightly": 0, "slight": 0, "a bit": 0, "a little": 0, "somewhat": 0, "marginally": 0, "weakly": 0, "": 1,
    "moderately": 1, "clearly": 1, "much": 2, "far": 2, "a lot": 2, "significantly": 2, "strongly": 2,
    "considerably": 2, "very much": 3, "extremely": 3, ">": 1, ">>": 2, ">>>": 3,
}  # fmt: skip
_LADDER_NAMES = ("slightly better", "better", "much better", "very much better")
_THIRDS = _LADDER_NAMES[:3]
# What came of it for the left one.
_RESULTS = {
    **dict.fromkeys(("w", "win", "won", "victory"), 1), **dict.fromkeys(("l", "loss", "lose", "lost", "defeat"), -1),
    **dict.fromkeys(("d", "t", "draw", "drawn", "tie", "tied"), 0),
}  # fmt: skip
_BETTER = frozenset({"better", "preferred", "prefer"})
_WINS = frozenset({"wins", "won", "win", "winner", "chosen", "selected"})
_PARTS = re.compile(r"[\s_:,]+|(?<=[a-z])-(?=[a-z])")
# "1-0", "3:2": what each side got, the left one first.
_GOT = re.compile(r"(\d+|½|1/2|0?\.5)\s*[-–:]\s*(\d+|½|1/2|0?\.5)")
_HALF = {"½": 0.5, "1/2": 0.5}
_COMPARED = re.compile(r"\[*(.+?)\s*(>+|<+|=+)\s*(.+?)\]*")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Outcomes of rows (+1 left better, 0 tie, -1 right better, ``UNKNOWN``), how they were read, the tie words.

    With grades: their numbers from 1, 0 for none, and their names from slight to strong.
    """

    outcome: NDArray[np.int8]
    reading: str
    tie_word: pl.Series
    grade: NDArray[np.int8] | None = None
    grades: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Way:
    """What the distinct words of an answer may stand for, in small letters: 0 a tie, or ±(1 + g), 1 without grades.

    ``say``: the options that choose it; ``sentence``: in words, where these do not tell; ``open``: whether nothing
    tells that it is so rather than otherwise, ``guess`` that nobody knows the words. Without ``code`` answers are
    items.
    """

    reading: str
    code: Mapping[str, int] | None
    say: ReadOptions = field(default_factory=ReadOptions)
    sentence: str = ""
    grades: tuple[str, ...] = ()
    open: bool = False
    guess: bool = False


class Answered:
    """A column of answers about pairs, as text, beside the texts of the two items.

    ``ways`` are those in which all words mean something; ``partly`` the one in which most rows do. ``toward``: the side
    for which positive numbers speak by the name of the column.
    """

    def __init__(
        self, text: pl.Series, left: pl.Series, right: pl.Series, sides: SideWords, options: ReadOptions,
        toward: Literal["left", "right"] | None = None, notes: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.text, self.name, self.notes = text, str(text.name), notes
        self._is_left, self._is_right = (where_true(text == side) for side in (left, right))
        distinct, missing = values_of(text).sort(), ~where_present(text)
        self.words = [word.strip().lower() for word in distinct.to_list()]
        self._number = np.where(missing, len(distinct), distinct.search_sorted(text).to_numpy())
        own_ties = {word.strip().lower() for word in as_words(options.get("ties"))}
        self._ties = own_ties | sides.ties
        self._own_ties = own_ties
        self._said = said = options.get("winner_is")
        if said not in (None, *_READING):
            raise DataError(f'winner_is must be "item", "side" or "sign", got {quoted(said)}.')
        of_words = [] if said == "item" else _ways_of_words(self.words, self._ties, sides, options, self.name, toward)
        wanted = [way for way in of_words if said is None or _kind(way.reading) == said]
        everywhere = [Way(_READING["item"], None)] if said in (None, "item") else []
        ways = [(way, self._codes(way)) for way in (*everywhere, *wanted)]
        if bool((self._is_left | self._is_right).any()):  # then words that nobody knows are slips
            ways = [one for one in ways if not one[0].guess]
        there = ~missing
        decide = [one for one in ways if ((one[1] != UNKNOWN) & (one[1] != 0)).any()]
        self.ways = [way for way, code in decide if (code[there] != UNKNOWN).all()]
        known = [one for one in ways if not one[0].guess]
        if not self.ways and there.any():  # where all are ties any reading says the same
            self.ways = [way for way, code in known if (code[there] != UNKNOWN).all()][:1]
        best = [one for one in decide if not one[0].guess] or known
        self.partly = max(best, key=lambda one: np.sum(one[1] != UNKNOWN), default=(Way(_READING["side"], {"": 1}),))[0]

    def _codes(self, way: Way) -> NDArray[np.int8]:
        if way.code is not None:
            return np.array([*(way.code.get(word, UNKNOWN) for word in self.words), UNKNOWN], dtype=np.int8)[
                self._number
            ]
        tie = np.array([*(word in self._ties for word in self.words), False])[self._number]
        code = np.where(tie, 0, UNKNOWN).astype(np.int8)
        code[self._is_left] = 1
        code[self._is_right] = -1
        return code

    @property
    def n_decided(self) -> int:
        """How many answers are no word for a tie."""
        tie = np.array([*(word in self._ties for word in self.words), True])[self._number]
        return int((~tie).sum())

    @property
    def names_items(self) -> bool:
        """Whether every answer is one of the two items of its row or a tie, and now the one, now the other."""
        there = where_present(self.text)
        known = self._codes(Way(_READING["item"], None))[there] != UNKNOWN
        return bool(known.all() and self._is_left.any() and self._is_right.any())

    def decoded(self, way: Way, rows: NDArray[np.int64]) -> Decoded:
        """Outcomes of some rows; DataError where a word is both a tie and an item."""
        code = self._codes(way)[rows]
        if way.code is None and self._said is None:
            self._refuse_tie_items(rows)
        outcome, grade = taken_apart(code)
        tie_word = self.text.gather(rows).set(pl.Series(outcome != 0), None)
        return Decoded(outcome, way.reading, tie_word, grade if way.grades else None, way.grades)

    def _refuse_tie_items(self, rows: NDArray[np.int64]) -> None:
        """A word for a tie that is an item's id counts as the item only where nothing speaks for the tie."""
        for place in (place for place, word in enumerate(self.words) if word in self._ties):
            here, word = self._number[rows] == place, self.words[place]
            won = here & (self._is_left | self._is_right)[rows]
            if not won.any():
                continue
            as_tie = int((here & ~won).sum())
            if as_tie or word in self._own_ties:
                raise DataError(
                    f'"{shown(self.text[int(rows[here.argmax()])])}" in column "{shown(self.name)}" is both a word for '
                    f"a tie and the id of an item in {counted(int(won.sum()), 'row')}, and can only mean a tie in "
                    f"{counted(as_tie, 'other row')}. Rename the item, or write another word for ties; "
                    f"{option('winner_is', 'item')} counts it as the item wherever the item is shown."
                )


def _kind(reading: str) -> str:
    """The value of the option that says how answers are read."""
    return next(kind for kind, name in _READING.items() if reading.endswith(name))


# Ends of scales in use, of which the first that holds all numbers is taken; from 0 where there is a 0.
_SCALES = ((0.0, 1.0), (0.0, 2.0), (0.0, 4.0), (0.0, 6.0), (0.0, 10.0), (0.0, 100.0))
_SCALES_FROM_1 = ((1.0, 2.0), (1.0, 3.0), (1.0, 5.0), (1.0, 7.0), (1.0, 9.0), (0.0, 10.0), (0.0, 100.0))
# Codes of the first, the second and a tie, by the word of the tie.
_CODES = ({0.0, 1.0, 2.0}, "0"), ({0.0, 1.0, 2.0}, "2"), ({1.0, 2.0, 3.0}, "3")


def _ways_of_words(
    words: Sequence[str], ties: frozenset[str] | set[str], sides: SideWords, options: ReadOptions, column: str,
    toward: Literal["left", "right"] | None,
) -> Iterator[Way]:  # fmt: skip
    """The ways in which words are sides, perhaps with grades, or numbers that speak for one."""
    rest = [word for word in words if word not in ties]
    numbers = {word: float(_short(word)) for word in rest if is_number(_short(word))}
    known = dict.fromkeys((word for word in words if word in ties), 0)
    given = own_words(options) != ([], [])
    if numbers and len(numbers) == len(rest) and not given:
        yield from _ways_of_numbers(numbers, known, options, column, toward)
        return
    results = {word: _RESULTS[word] for word in words if word in _RESULTS}
    if len(results) == len(words) and {1, -1} <= {*results.values()} and not given:
        yield Way(_READING["side"], results)  # of the left one
        return
    said = _Said.of(rest, sides.sign)
    known |= dict.fromkeys(said.ties, 0)
    graded = _graded_phrases(said, _grade_names(options))
    if graded is not None:
        yield Way(f"grades of {_READING['side']}", known | said.sign | graded[0], grades=graded[1])
        return
    yield Way(_READING["side"], known | said.sign)
    unknown = [word for word in rest if word not in said.sign and word not in said.ties]
    if len(unknown) == len(rest) and not given and not numbers:
        if len(rest) == 2:
            for one, two in (unknown, unknown[::-1]):
                say: ReadOptions = {"left_word": [one], "right_word": [two]}
                yield Way(_READING["side"], known | {one: 1, two: -1}, say, open=True, guess=True)
        elif len(rest) == 1 and could_be_side(rest[0]):
            for key, sign in (("left_word", 1), ("right_word", -1)):
                say = {key: rest}  # type: ignore[misc]
                yield Way(_READING["side"], known | {rest[0]: sign}, say, open=True, guess=True)


def _grade_names(options: ReadOptions) -> Sequence[str]:
    grades = options.get("grades", ())
    if len(grades) > MOST_GRADES or len(set(grades)) < len(grades):
        raise DataError(f"grades are at most {MOST_GRADES} different names, from slight to strong; got {len(grades)}.")
    return grades


def _ways_of_numbers(
    numbers: Mapping[str, float], known: Mapping[str, int], options: ReadOptions, column: str,
    toward: Literal["left", "right"] | None,
) -> Iterator[Way]:  # fmt: skip
    """The ways in which numbers, and words of ``known`` meaning, say who won."""
    values, grades, said = {*numbers.values()}, _grade_names(options), options.get("winner_is")
    if said != "sign" and (graded := _from_one_to_two(numbers, grades)) is not None:
        yield Way(f"grades of {_READING['side']}", {**known, **graded[0]}, grades=graded[1])
        return
    if values == {0.0, 1.0} and options.get("positive") is None and (said == "side" or "2" in known):
        first = 1.0 if said == "side" else 0.0  # 0, 1 and 2 for a tie
        code = {word: 1 if value == first else -1 for word, value in numbers.items()}
        yield Way(_READING["side"], {**known, **code})
        return
    if (
        values <= {1.0, 1.5, 2.0}
        and said != "sign"
        and (said == "side" or (not grades and options.get("positive") is None))
    ):
        # The first and the second; of a column called as a scale they may be its grades.
        code = {word: int(np.sign(1.5 - value)) for word, value in numbers.items()}
        of_scale = bool({*tokens(column)} & GRADED) and said is None
        yield Way(_READING["side"], {**known, **code}, {"winner_is": "side"} if of_scale else {}, open=of_scale)
        if not of_scale or len(values) < 2:
            return
    for held, tie in _CODES if options.get("positive") is None else ():
        if values == held:
            way: ReadOptions = {"ties": [tie]} if tie != "2" else {"ties": [tie], "positive": "right"}
            first = min(held - {float(tie)})
            code = {word: 0 if value == float(tie) else 1 if value == first else -1 for word, value in numbers.items()}
            yield Way(_READING["side"], {**known, **code}, way, f"{first:g} the left one, {tie} a tie", open=True)
    middle = _middle(values, said, bool(grades) and all(map(is_whole, grades)))
    if middle is None:
        return
    sign = "sign" if middle == 0.0 else "side"
    away = {word: value - middle for word, value in numbers.items()}
    numbered = all(map(is_number, grades))  # others are words for another column
    names = tuple(grades if numbered else ()) or _grades_of({value - middle for value in values})
    code, ties = _coded_away(away, names)
    reading = f"grades of {_READING[sign]}" if names else _READING[sign]
    wanted = options.get("positive") or (toward if middle == 0.0 else None)
    for side, turn in (("left", 1), ("right", -1)):
        if wanted in (None, side):
            sentence = f"numbers above {middle:g} for the {side}"
            turned = {word: turn * value for word, value in code.items()}
            say: ReadOptions = {"positive": side} if wanted is None else {}  # type: ignore[typeddict-item]
            yield Way(reading, {**known, **ties, **turned}, say, sentence, names, open=wanted is None)
    if values == {0.0, 1.0} and options.get("positive") is None and said is None:
        code = {word: int(value) for word, value in numbers.items()}
        yield Way(_READING["side"], {**known, **code}, {"ties": ["0"]}, "1 the left one, 0 a tie", open=True)


def _middle(values: set[float], said: str | None, graded: bool) -> float | None:
    """The number that speaks for neither side: 0 of signs, the middle of the scale of others; None where none does."""
    if min(values) < 0.0 or said == "sign" or graded:
        return 0.0
    scales = _SCALES if min(values) < 1.0 or max(values) <= 1.0 else _SCALES_FROM_1
    ends = next((ends for ends in scales if max(values) <= ends[1]), None)
    return None if ends is None else sum(ends) / 2.0


def _grades_of(values: Iterable[float]) -> tuple[str, ...]:
    """Names of the grades of numbers on both sides of 0: their distances, if there are several, and few."""
    away = {round(abs(value), 9) for value in values} - {0.0}
    both = min(values, default=0.0) < 0.0 < max(values, default=0.0)
    several = 1 < len(away) <= MOST_GRADES and both
    return tuple(f"{distance:g}" for distance in sorted(away)) if several else ()


def _coded_away(away: Mapping[str, float], names: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Codes of words by their distances from the middle, and of those in it; grades by their names."""
    ties = {word: 0 for word, value in away.items() if not value}
    if not names:
        return {word: int(np.sign(value)) for word, value in away.items() if value}, ties
    place = {float(name): code for code, name in enumerate(names, 2)}
    return {
        word: int(np.sign(value)) * place[round(abs(value), 9)] for word, value in away.items()
        if value and round(abs(value), 9) in place
    }, ties  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Said:
    """What words say of a side: which, and with what words; and those that say that the two are alike."""

    sign: dict[str, int]
    degree: dict[str, str]
    ties: frozenset[str]

    @classmethod
    def of(cls, plain: Sequence[str], sides: Mapping[str, int]) -> _Said:
        """Of distinct words in small letters, by the squeezed words for sides."""
        sign = {word: sides[short] for word in plain if (short := squeezed(_short(word))) in sides}
        degree: dict[str, str] = {}
        ties: set[str] = set()
        for word in plain if len(plain) <= _MOST_PHRASES else ():
            if word in sign:
                continue
            found: tuple[int, str | None] | None
            if got := _GOT.fullmatch(word):
                one, two = (_HALF.get(part) or float(part) for part in got.groups())
                found = int(np.sign(one - two)), None
            elif compared := _COMPARED.fullmatch(word):
                found = _of_marks(compared, sides)
            else:
                found = _of_phrase(_PARTS.split(word), sides)
            if found is None:
                continue
            if found[0] == 0:
                ties.add(word)
                continue
            sign[word] = found[0]
            if found[1] is not None:
                degree[word] = found[1]
        return cls(sign, degree, frozenset(ties))


def _of_marks(compared: re.Match[str], sides: Mapping[str, int]) -> tuple[int, str | None] | None:
    """Side and mark of "A>>B"; the side is 0 of "A=B"."""
    one, mark, two = compared.groups()
    first, second = sides.get(squeezed(one)), sides.get(squeezed(two))
    if first is None or second is None or first == second:
        return None
    return (0, None) if mark[0] == "=" else (first if mark[0] == ">" else second, ">" * len(mark))


def _of_phrase(parts: Sequence[str], sides: Mapping[str, int]) -> tuple[int, str | None] | None:
    """Side of "A is much better" or "slightly better: left", and what is said of it without "better"."""
    for k in range(1, len(parts)):
        for side, rest in ((parts[:k], parts[k:]), (parts[k:], parts[:k])):
            sign = sides.get(squeezed(" ".join(side)))
            if sign is None:
                continue
            said = [word for word in rest if word not in ("is", "was", "")]
            if said and all(word in _WINS for word in said):
                return sign, None
            return sign, " ".join(word for word in said if word not in _BETTER).strip(" .")
    return None


def grades_of_numbers(values: Iterable[float]) -> tuple[str, ...]:
    """Names of the grades that numbers stand for, positive for left; none unless they go beyond 1 and -1."""
    numbers = set(values)
    if not all(abs(value) <= MOST_GRADES and value == int(value) for value in numbers):
        return ()
    found = sorted({abs(int(value)) for value in numbers} - {0})
    return tuple(map(str, found)) if min(numbers, default=0) < -1.0 and max(numbers) > 1.0 else ()


def numbers_named(grades: Sequence[str]) -> dict[str, int]:
    """Codes of the whole numbers that grades are called by, and of "0" and the negative ones."""
    if not all(map(is_whole, grades)) or list(grades) != sorted(set(grades), key=int) or not all(map(int, grades)):
        raise DataError(
            f"outcomes are numbers, but the grades are called {', '.join(grades)}. Name whole numbers above 0, from "
            'slight to strong: grades=["1", "2", "3"].'
        )
    found = {"0": 0}
    for number, name in enumerate(grades, 1):
        found |= {name: 1 + number, f"-{name}": -1 - number}
    return found


def numbers_of(grades: Sequence[str]) -> dict[float, int]:
    """Codes of outcomes as numbers: signs or, with grades, their own numbers or places."""
    if not grades:
        return {0: 0, 1: 1, -1: -1}
    named = numbers_named(grades if all(map(is_whole, grades)) else [str(k + 1) for k in range(len(grades))])
    return {int(name): code for name, code in named.items()}


def taken_apart(code: NDArray[np.int8]) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Outcome and grade of codes ±(1 + g), 0 and ``UNKNOWN``; (n,)."""
    known = code != UNKNOWN
    outcome = np.where(known, np.sign(code), UNKNOWN).astype(np.int8)
    return outcome, np.where(known, np.maximum(np.abs(code) - 1, 0), 0).astype(np.int8)


def _from_one_to_two(
    numbers: Mapping[str, float], grades: Sequence[str]
) -> tuple[dict[str, int], tuple[str, ...]] | None:
    """Codes and names of grades of numbers from 1, the left one much better, over 1.5, a tie, to 2.

    Grades are distances from the tie, or thirds where these are many, or are called so. 1 and 2 alone are sides.
    """
    away = {word: round(1.5 - value, 9) for word, value in numbers.items()}
    sizes = sorted({abs(x) for x in away.values()} - {0.0})
    of_size = all(re.fullmatch(r"0\.\d+", name) for name in grades) and (bool(grades) or len(sizes) <= MOST_GRADES)
    if not sizes or sizes[-1] > 0.5 or (sizes == [0.5] and not (grades and of_size)):
        return None
    called = {
        word: f"{abs(x):g}" if of_size else _THIRDS[min(int(6.0 * abs(x)), 2)] for word, x in away.items() if x
    }  # fmt: skip
    if of_size:
        names = tuple(f"{x:g}" for x in map(float, grades)) or tuple(f"{x:g}" for x in sizes)
    else:
        names = tuple(grades) or tuple(name for name in _THIRDS if name in called.values())
    if len(names) < 2 - (not of_size) or not (of_size or {*names} <= {*_THIRDS}):
        return None
    sign = {word: 1 if away[word] > 0.0 else -1 for word in called}
    code = {word: sign[word] * (2 + names.index(name)) for word, name in called.items() if name in names}
    return {**{word: 0 for word, x in away.items() if not x}, **code}, names


def _graded_phrases(said: _Said, grades: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...]] | None:
    """Codes and names of grades of words such as "left much better", by the names of grades or by words in common use.

    Words that mean no grade say nothing of a side either.
    """
    # The names that words in common use were read under stand for all of these words.
    given = {word: grades.index(_LADDER_NAMES[k]) for word, k in _LADDER.items() if _LADDER_NAMES[k] in grades}
    given |= {_degree(name.strip().lower()): place for place, name in enumerate(grades)}
    known = given if grades else _LADDER
    rank = {word: known[phrase] for word, phrase in said.degree.items() if phrase in known}
    for word in said.degree.keys() - rank.keys():
        del said.sign[word]
    used = sorted(set(rank.values()))
    if not used or (not grades and used == [1]):  # "a is better" without more is a side
        return None
    names = tuple(grades) or tuple(_LADDER_NAMES[place] for place in used)
    place_of = {place: 2 + (place if grades else used.index(place)) for place in used}
    return {word: said.sign[word] * place_of[place] for word, place in rank.items()}, names


def _degree(phrase: str) -> str:
    """What is said of a side, without "better" or "preferred"."""
    return " ".join(word for word in phrase.split() if word not in _BETTER).strip(" :,.")


def _short(word: str) -> str:
    return word.removeprefix("+").removesuffix(".0")


def unknown_message(
    words: pl.Series, rows: NDArray[np.int64], reading: str, column: str, items: Vocabulary, pairs: NDArray[np.int32]
) -> tuple[str, bool]:  # fmt: skip
    """Message for winner values that mean nothing, and whether it says what to do: what nearly names an item is a slip.

    ``pairs`` (2, n): codes of the items of all rows.
    """
    bad = words.gather(rows.tolist())
    first = "; ".join(
        f"row {row + 1}, " + ("empty" if word is None else f'"{shown(word)}"')
        for row, word in zip(rows[:3].tolist(), bad.head(3).to_list(), strict=True)
    )
    expected = {
        "item ids": "neither the left nor the right item nor a tie",
        "side words": "neither the left nor the right item, nor a side word such as left or right, nor a tie",
        "signs": "neither 1 nor -1 nor a tie",
    }[reading.removeprefix("grades of ")]
    plural = "1 value that is" if len(rows) == 1 else f"{len(rows)} values that are"
    said = f'column "{column}" holds {plural} {expected} (first: {first}). '
    slips = _slips(bad, items, pairs[:, rows])
    if slips:
        return said + " ".join(slips), True
    if str(bad.drop_nulls().first()).lower() in ("true", "false"):
        return f"{said}Write which item won in their place: left or right.", True
    return said.rstrip(), False


_MOST_SLIPS = 10  # different words that are looked at


def _slips(bad: pl.Series, items: Vocabulary, pairs: NDArray[np.int32]) -> list[str]:
    """Sentences on values that are an item's name in another spelling, or that of an item not in their row."""
    respelled, elsewhere, here = "", "", ""
    places = pl.DataFrame({"word": bad}).with_row_index().unique("word", maintain_order=True).drop_nulls()
    for place, word in places.head(_MOST_SLIPS).iter_rows():
        of_row = items.labels(pairs[:, place]).tolist()
        meant = near_miss(word, of_row)
        if word in map(str, of_row):
            here = here or f'"{shown(word)}" is an item of its row: say {option("winner_is", "item")}.'
        elif meant is None and word in items:
            elsewhere = elsewhere or word
        elif meant is not None or (meant := near_miss(word, items.ids)) is not None:
            respelled = (
                f'Did you mean "{shown(meant)}" by "{shown(word)}"? Ids must be spelled alike in all columns, '
                "blanks and capitals too."
            )
            break
    if elsewhere:
        elsewhere = (
            f'"{shown(elsewhere)}" is an item, but not one of the two in its row: are left, right and winner in the '
            "right columns, and is every winner in its own row?"
        )
    return [said for said in (here, respelled, elsewhere) if said]


def is_number(word: str) -> bool:
    """Whether a winner is a number, such as a graded score, which no tie is called."""
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False
