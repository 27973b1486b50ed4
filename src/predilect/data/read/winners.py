"""The winner column: item ids, side words or signs, and one reading for the whole column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._text import is_whole, near_miss, quoted, shown
from predilect.data.intake import counted
from predilect.data.read.names import GRADED, SideWords, squeezed, tokens
from predilect.data.read.options import ReadOptions, as_words, option, own_words
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

UNKNOWN = 9  # outside the outcomes -1, 0, +1

SIGN_WORDS = {"1": 1, "+1": 1, "1.0": 1, "-1": -1, "-1.0": -1, "0": 0, "0.0": 0, "-0.0": 0}
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
_BETTER = frozenset({"better", "preferred", "prefer"})
_WINS = frozenset({"wins", "won", "win", "winner", "chosen", "selected"})
_PARTS = re.compile(r"[\s_:,]+|(?<=[a-z])-(?=[a-z])")
# "1-0", "3:2": what each side got, the left one first.
_GOT = re.compile(r"(\d+|½|1/2|0?\.5)\s*[-–:]\s*(\d+|½|1/2|0?\.5)")
_HALF = {"½": 0.5, "1/2": 0.5}
_COMPARED = re.compile(r"\[*(.+?)\s*(>+|<+|=+)\s*(.+?)\]*")


class TwoReadings(DataError):
    """The winners can be read in two ways."""


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


def decode_winners(
    words: pl.Series,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    items: Vocabulary,
    sides: SideWords,
    options: ReadOptions,
    column: str = "winner",
) -> Decoded:
    """Outcome of every row under the one reading that fits the column; DataError if two fit and disagree on some row.

    ``left`` and ``right`` are codes of the items in the order shown, different in every row; ``sides`` the words for
    the sides; ``column`` a name for messages. Signs are positive for left.
    """
    winner_is, grades = options.get("winner_is"), options.get("grades", ())
    if winner_is not in (None, *_READING):
        raise DataError(f'winner_is must be "item", "side" or "sign", got {quoted(winner_is)}.')
    distinct = words.drop_nulls().unique().sort()
    number = _place(words, distinct)
    plain = [word.strip().lower() for word in distinct.to_list()]
    own_ties = {word.strip().lower() for word in as_words(options.get("ties"))}
    all_ties = own_ties | sides.ties
    if {_short(word) for word in plain} - all_ties <= {"1", "1.5", "2"}:
        all_ties |= {"1.5"}  # between the first and the second
    has_item = np.append(items.codes(distinct, unknown="minus_one") if len(distinct) else [], -1).astype(np.int32)

    said = _Said.of([word for word in plain if word not in all_ties], sides.sign)
    numbers = {_short(word) for word in plain} - own_ties
    if winner_is == "side" and {"1", "0"} <= numbers and "2" not in plain:
        said.sign.update({word: -1 for word in plain if _short(word) == "0"})
    codes = {_short(word) for word in plain} == {"0", "1", "2"}
    if codes and "2" in own_ties and "0" not in sides.sign:
        said.sign.update({word: 1 if _short(word) == "0" else -1 for word in plain if _short(word) in ("0", "1")})
    zero_one = {"1", "0"} <= numbers and "0" not in {_short(word) for word in said.sign}
    tables = {"side": said.sign}
    if winner_is == "sign" or any(_short(word) == "-1" for word in plain):
        tables["sign"] = dict(SIGN_WORDS)
    if (
        "0.5" in numbers and not grades and numbers <= {"0", "0.5", "1"} and winner_is != "side"
    ):  # what the left or the right one got
        tables = {"sign": {word: 1 if _short(word) == "1" else -1 for word in plain if _short(word) in ("0", "1")}}
        all_ties |= {"0.5"}
        zero_one = False
    graded = _graded_words([word for word in plain if word not in all_ties], grades, said)
    told = graded is not None and graded.signs and bool(grades)  # that numbers are grades
    if graded is not None:
        if told and winner_is is None:  # none of them is a side
            tables["side"] = {word: sign for word, sign in said.sign.items() if not is_number(word)}
        tables[graded.reading] = tables.get(graded.reading, dict(SIGN_WORDS)) | graded.code
        all_ties |= graded.ties
    is_tie = np.array([word in all_ties or word in said.ties for word in plain] + [False])

    outcome, grade = {"item": _by_item(has_item[number], left, right, is_tie[number])}, {}
    for reading, table in tables.items():
        coded = [0 if tie else table.get(word, UNKNOWN) for word, tie in zip(plain, is_tie[:-1], strict=True)]
        parts = taken_apart(np.array([*coded, UNKNOWN], dtype=np.int8))
        outcome[reading], grade[reading] = (part[number] for part in parts)

    chosen = winner_is or _choose(outcome, column)
    if winner_is is None:
        scale = {*tokens(column)} & GRADED and {_short(word) for word in plain} - all_ties <= {"1", "2"}
        if scale and chosen == "side" and own_words(options) == ([], []):
            raise DataError(_open_numbers(column, "scale"))
        if codes and not own_ties & {"0", "2"} and "0" not in said.sign and (outcome["item"] == UNKNOWN).any():
            raise DataError(_open_numbers(column, "codes"))
        only_zero_one = not told and zero_one and all(_short(word) in ("0", "1") or word in own_ties for word in plain)
        if only_zero_one and (outcome["item"] == UNKNOWN).sum() > words.null_count():
            raise DataError(_open_numbers(column, "flags"))
        if chosen == "item":
            _refuse_tie_items(outcome["item"], is_tie[number], words, column, plain, own_ties)
    result = outcome[chosen]
    tie_word = words.set(pl.Series(result != 0), None)
    if graded is not None and chosen == graded.reading:
        return Decoded(result, f"grades of {_READING[chosen]}", tie_word, grade[chosen], graded.names)
    return Decoded(result, _READING[chosen], tie_word)


def tells_of_sides(words: Iterable[str], sides: SideWords) -> bool:
    """Whether all of distinct words may say which side won, or that none did."""
    plain = [word.strip().lower() for word in words]
    said = _Said.of(plain, sides.sign)
    return all(word in said.sign or word in said.ties or word in sides.ties for word in plain)


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


def _place(words: pl.Series, distinct: pl.Series) -> NDArray[np.int32]:
    """Position of each word among the distinct ones; missing words get the place after the last."""
    position = pl.Series(np.arange(len(distinct), dtype=np.int32))
    return words.replace_strict(distinct, position, default=len(distinct), return_dtype=pl.Int32).to_numpy()


@dataclass(frozen=True, slots=True)
class _Graded:
    """What words of a column with grades stand for."""

    code: dict[str, int]  # ±(1 + g)
    names: tuple[str, ...]
    signs: bool  # whether they are numbers, positive for left
    ties: frozenset[str] = frozenset()

    @property
    def reading(self) -> str:
        """The reading of the column under which they are grades."""
        return "sign" if self.signs else "side"


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


def _graded_words(plain: Sequence[str], grades: Sequence[str], said: _Said) -> _Graded | None:
    """Grades in the distinct words of a column, in small letters; None where there are none."""
    if len(grades) > MOST_GRADES or len(set(grades)) < len(grades):
        raise DataError(f"grades are at most {MOST_GRADES} different names, from slight to strong; got {len(grades)}.")
    short = {word: _short(word) for word in plain}
    whole = {word: int(text) for word, text in short.items() if is_whole(text.removeprefix("-"))}
    if grades and all(map(is_whole, grades)):
        named = numbers_named(grades)
        code = {w: named[str(n)] for w, n in whole.items() if n and str(n) in named}
        return _Graded(code, tuple(grades), True, frozenset(w for w, n in whole.items() if not n))
    names = () if grades else grades_of_numbers(whole.values())
    if names and len(whole) == len(plain):
        named = numbers_named(names)
        return _Graded({word: named[str(n)] for word, n in whole.items() if n}, names, True)
    if (scale := _from_one_to_two(plain, grades)) is not None:
        return scale
    return _graded_phrases(said, grades)


def _from_one_to_two(plain: Sequence[str], grades: Sequence[str]) -> _Graded | None:
    """Numbers from 1, the left one much better, over 1.5, a tie, to 2."""
    named = [float(name) for name in grades if re.fullmatch(r"0\.\d+", name)]
    if not all(re.fullmatch(r"[12](\.\d*)?", word) for word in plain):
        return None
    value = {word: float(word) - 1.5 for word in plain}
    if len(named) < len(grades):
        between = any(abs(x) not in (0.0, 0.5) for x in value.values())  # 1 and 2 alone are sides
        return _thirds(value, grades) if between and set(grades) <= set(_THIRDS) else None
    away = named or sorted({round(abs(x), 9) for x in value.values()} - {0.0})
    if max(map(abs, value.values()), default=1.0) > 0.5 or len(away) < 2:
        return None
    if len(away) > MOST_GRADES and not grades:
        return _thirds(value)
    place = {x: 2 + number for number, x in enumerate(away)}
    known = {word: x for word, x in value.items() if round(abs(x), 9) in place}
    code = {word: (1 if x < 0.0 else -1) * place[round(abs(x), 9)] for word, x in known.items()}
    return _Graded(code, tuple(f"{x:g}" for x in away), False, frozenset(w for w, x in value.items() if not x))


def _thirds(value: Mapping[str, float], grades: Sequence[str] = ()) -> _Graded:
    """Grades of distances up to ½ of any size: by sixths from the tie at 0, as many as somebody would name."""
    place = {word: _THIRDS[min(int(6.0 * abs(x)), 2)] for word, x in value.items() if x}
    used = tuple(grades) or tuple(name for name in _THIRDS if name in place.values())
    code = {w: (2 + used.index(name)) * (1 if value[w] < 0.0 else -1) for w, name in place.items() if name in used}
    return _Graded(code, used, False, frozenset(w for w, x in value.items() if not x))


def _graded_phrases(said: _Said, grades: Sequence[str]) -> _Graded | None:
    """What words such as "left much better" say, by the names of grades or by words in common use.

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
    return _Graded({word: said.sign[word] * place_of[place] for word, place in rank.items()}, names, False)


def _degree(phrase: str) -> str:
    """What is said of a side, without "better" or "preferred"."""
    return " ".join(word for word in phrase.split() if word not in _BETTER).strip(" :,.")


def _short(word: str) -> str:
    return word.removeprefix("+").removesuffix(".0")


def _by_item(
    winner: NDArray[np.int32], left: NDArray[np.int32], right: NDArray[np.int32], tie: NDArray[np.bool_]
) -> NDArray[np.int8]:
    outcome = np.where(tie, 0, UNKNOWN).astype(np.int8)
    outcome[winner == left] = 1
    outcome[winner == right] = -1
    return outcome


def _choose(outcome: dict[str, NDArray[np.int8]], column: str) -> str:
    decoded = {reading: values != UNKNOWN for reading, values in outcome.items()}
    decisive = {reading: int((decoded[reading] & (outcome[reading] != 0)).sum()) for reading in outcome}
    readable = np.logical_or.reduce(list(decoded.values()))
    complete = [name for name in outcome if decisive[name] and bool(decoded[name][readable].all())]
    rivals = complete or [name for name in outcome if decisive[name]]
    if not rivals:
        return "side"
    for first, second in combinations(rivals, 2):
        differ = decoded[first] & decoded[second] & (outcome[first] != outcome[second])
        if differ.any():
            raise TwoReadings(
                f'column "{column}" can be read as {_READING[first]} and as {_READING[second]}, and the two disagree '
                f"in {counted(int(differ.sum()), 'row')}. Say which is meant: {option('winner_is', first)} or "
                f"{option('winner_is', second)}."
            )
    return max(rivals, key=lambda name: decisive[name])


def _open_numbers(column: str, what: Literal["scale", "codes", "flags"]) -> str:
    """What is asked of 1 and 2 in a column called as a scale, of 0, 1 and 2, and of 1 and 0."""
    name = shown(column)
    if what == "scale":
        low, high = option("left_word", ["1", "2"]), option("right_word", ["4", "5"])
        return (
            f'column "{name}" holds 1 and 2, which can mean "the first is better" and "the second is better", or '
            f"grades of a scale of which only these came. For the first say {option('winner_is', 'side')}; of a scale "
            f"say which grades speak for which side, such as {low} with {high}."
        )
    if what == "codes":
        return (
            f'column "{name}" holds 0, 1 and 2. Count a word as a tie with {option("ties", ["0"])} if they mean a tie, '
            f"the first and the second, or with {option('ties', ['2'])} if they mean the first, the second and a tie."
        )
    return (
        f'column "{name}" holds only 1 and 0, which can mean "left is better" and "right is better", or "left is '
        f'better" and "tie". For the first say {option("winner_is", "side")}, for the second {option("ties", ["0"])}. '
        f"If 0 means that the left item won, say {option('left_word', '0', right_word='1')}."
    )


def _refuse_tie_items(
    outcome: NDArray[np.int8],
    tie: NDArray[np.bool_],
    words: pl.Series,
    column: str,
    plain: list[str],
    own_ties: set[str],
) -> None:
    """A tie word that is an item's id counts as the item only where nothing speaks for the tie."""
    won = tie & (outcome != 0) & (outcome != UNKNOWN)
    if not won.any():
        return
    for word in words.filter(pl.Series(won)).unique().sort().to_list():
        here = (words == word).fill_null(False).to_numpy()
        as_tie = int((here & ~won).sum())
        if as_tie or word.strip().lower() in own_ties:
            raise DataError(
                f'"{shown(word)}" in column "{column}" is both a word for a tie and the id of an item in '
                f"{counted(int((here & won).sum()), 'row')}, and can only mean a tie in "
                f"{counted(as_tie, 'other row')}. Rename the item, or write another word for ties; "
                f"{option('winner_is', 'item')} counts it as the item wherever the item is shown."
            )


def unknown_message(
    words: pl.Series, rows: NDArray[np.int64], reading: str, column: str, items: Vocabulary, pairs: NDArray[np.int32],
    advice: str,
) -> str:  # fmt: skip
    """Message for winner values that mean nothing; one that nearly names one of ``items`` is a slip, not a tie.

    ``pairs`` (2, n): codes of the items of all rows; ``advice`` what can be done where none is a slip.
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
        return said + " ".join(slips)
    if str(bad.drop_nulls().first()).lower() in ("true", "false"):
        return f"{said}Write which item won in their place: left or right."
    return said.rstrip() + advice


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
        float(word)
    except ValueError:
        return False
    return True
