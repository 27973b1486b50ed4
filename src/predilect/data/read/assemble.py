"""Coded, canonical answers from the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._base.arguments import check_mapping
from predilect._base.text import shown
from predilect._base.types import BoolArray, IntArray
from predilect.data.canonical import AnswerColumns, Codes, canonical_answers, choices_in_runs, exact_sum, task_codes
from predilect.data.frames import Columns, clean_ids, present, to_series, without_points
from predilect.data.intake import (
    MISSING_ATTRIBUTE,
    NO_WEIGHT,
    ONE_ALTERNATIVE,
    REASONS,
    TWICE,
    UNCLEAR,
    UNWANTED,
    Intake,
    counted,
    examples,
    from_columns,
    nothing_left,
    pair_sentence,
)
from predilect.data.read.covariates import covariate_columns, differences, refuse_missing, role_names, why_no_sides
from predilect.data.read.names import BAD_WORDS, could_be_side
from predilect.data.read.options import ReadOptions, as_words, option
from predilect.data.read.profiles import numbers_of
from predilect.data.read.times import times_of
from predilect.data.read.winners import (
    MOST_GRADES,
    UNKNOWN,
    Answered,
    Decoded,
    Way,
    grades_of_numbers,
    is_number,
    numbers_named,
    taken_apart,
    unknown_message,
)
from predilect.data.vocabulary import EVERYONE, Vocabulary
from predilect.errors import DataError

_FEW = 20  # of so many rows at most one is left out for an answer that nobody knows
_DROPS = {
    "missing id": "drop_missing", MISSING_ATTRIBUTE: "drop_missing", "self-pair": "drop_self", TWICE: "drop_self",
    UNCLEAR: "drop_unknown", ONE_ALTERNATIVE: "drop_unknown",
}  # fmt: skip


class Assembled(NamedTuple):
    """What a table of answers says, as the columns of ``Comparisons``."""

    users: Vocabulary
    items: Vocabulary
    has_users: bool
    answers: AnswerColumns
    intake: Intake
    contexts: Vocabulary | None = None
    covariate_names: tuple[str, ...] = ()
    grades: tuple[str, ...] = ()
    item_table: pl.DataFrame | None = None
    clock: str = ""


class Unclear(DataError):
    """Rows that mean nothing; ``helps``: sentences and the options they advise, which are tried before one is said."""

    def __init__(self, message: str, helps: Sequence[tuple[str, ReadOptions]]) -> None:
        super().__init__(message)
        self.helps = helps


class Usable:
    """Rows, or tasks, of which some are left out.

    ``reason`` is 0 for what is in use, or the place of why it is left out in ``REASONS``, from 1; (n,).
    """

    options: ReadOptions
    reason: NDArray[np.int8]
    noun = "row"

    @property
    def in_use(self) -> BoolArray:
        """What is in use, (n,)."""
        found: BoolArray = self.reason == 0
        return found

    def rows_of(self, bad: BoolArray) -> IntArray:
        """The first rows in the table of what is ``bad``, from 0."""
        return np.flatnonzero(bad)

    def leave_out(self, bad: BoolArray, why: str, message: str = "", *helps: tuple[str, ReadOptions]) -> None:
        """Mark what is left out, and why; DataError with a message, unless the option for it was given.

        ``helps``: sentences on what else may do, and the options that they advise.
        """
        bad = bad & self.in_use
        drop = _DROPS.get(why)
        if message and drop is not None and not self.options.get(drop) and bad.any():
            rows = ", ".join(str(row + 1) for row in np.sort(self.rows_of(bad))[:3])
            where = f"{counted(int(bad.sum()), self.noun)} (first: row {rows})"
            said: ReadOptions = {drop: True}  # type: ignore[misc]
            few = drop != "drop_unknown" or bad.mean() * _FEW <= 1.0  # else it is the reading that is wrong
            leave = [(f"Leave such {self.noun}s out with {option(drop, True)}.", said)] if few else []
            raise Unclear(message.replace("{where}", where), [*helps, *leave])
        self.reason[bad] = 1 + REASONS.index(why)

    def left_out(self, n_rows: IntArray | None = None) -> dict[str, int]:
        """How many rows are left out, by why; of tasks of ``n_rows``."""
        count = np.bincount(self.reason, n_rows, len(REASONS) + 1)[1:]
        return {why: int(n) for why, n in zip(REASONS, count, strict=True) if n}


@dataclass(frozen=True)
class Pairs:
    """Rows of pairs: columns by role, what was said, and what says who won.

    ``answered`` and ``way``: a column of answers, and what its words stand for; without them ``outcome`` says it, of
    every row, NaN where it says nothing, made of the columns ``used``, by role. ``table`` stands in place of the table
    that was given, with columns ``called`` as none of it is. ``shown_left`` is 1 where the left item was shown on the
    left, -1 on the right, 0 where that is not known, (n_rows,); ``no_sides`` is why no side is known of any.
    ``both_bad`` tells which ties were of two that are bad.
    """

    options: ReadOptions
    roles: Mapping[str, str]
    answered: Answered | None = None
    way: Way | None = None
    outcome: Any = None
    used: Mapping[str, str] = field(default_factory=dict)
    table: Mapping[str, pl.Series] | None = None
    called: tuple[str, ...] = ()
    shown_left: NDArray[np.int8] | None = None
    no_sides: str = ""
    both_bad: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()
    given: bool = False  # whether the outcomes were handed in


def assemble(raw: Columns, pairs: Pairs) -> Assembled:
    """Answers of a table of pairs; raises DataError for rows that mean nothing, or if nothing usable remains."""
    raw = raw if pairs.table is None else Columns(pairs.table)
    options, roles = pairs.options, dict(pairs.roles)
    covariates = covariate_columns(raw.names, options.get("covariates"), raw.index)
    if raw.n_rows == 0:
        raise DataError(f"the table has columns ({', '.join(raw)}) but no rows. Is it the right file?")
    ids = dict(zip(("left", "right"), _same_kind(raw, roles), strict=True))
    ids, notes = without_points(ids, roles)
    user = clean_ids(raw[roles["user"]], roles["user"]) if "user" in roles else None
    rows = _Rows(options, roles, ids["left"], ids["right"], user)
    decoded = outcomes_of(pairs, rows.kept, raw.n_rows)
    lost = rows.kept[decoded.outcome == UNKNOWN]
    if len(lost) and not options.get("drop_unknown"):
        raise _unclear(pairs, rows, decoded, lost)
    unknown = np.zeros(raw.n_rows, dtype=bool)
    unknown[lost] = True
    rows.leave_out(unknown, "unknown winner")
    return _in_use(raw, pairs, rows, decoded, covariates, notes)


def _unclear(pairs: Pairs, rows: _Rows, decoded: Decoded, lost: NDArray[np.int64]) -> Unclear:
    """The error for rows without a clear winner, and what may be said of them."""
    n_rows, answered, helps = len(rows.reason), pairs.answered, list[tuple[str, ReadOptions]]()
    if answered is None:
        what = "the given outcome is" if pairs.given else f"who won ({from_columns(pairs.used)}) is"
        message, n_words = f"{what} missing in {len(lost)} of {n_rows} rows (first: row {lost[0] + 1}).", len(lost)
    else:
        codes, name = np.stack([rows.one, rows.two]), str(answered.text.name)
        message, explained = unknown_message(answered.text, lost, decoded.reading, name, rows.items, codes)
        if explained:
            return Unclear(message, ())
        unknown = answered.text.gather(lost).drop_nulls()
        words, n_words = unknown.unique().to_list(), len(unknown)
        of_sides = decoded.reading.endswith("side words")
        if len(words) == 1 and shown(words[0]) == words[0] and not is_number(words[0]):
            ties = [*as_words(rows.options.get("ties")), words[0]]
            side = f"{option('left_word', words)} or {option('right_word', words)}"
            if not of_sides or (not could_be_side(words[0]) and {1, -1} <= {*decoded.outcome.tolist()}):
                advice = f'If "{words[0]}" means a tie, say {option("ties", words)}.'
                helps.append((advice, {"ties": ties, "drop_unknown": True}))
            else:
                advice = f'If "{words[0]}" means a side, say which: {side}.'
                helps.append((advice, {"left_word": words, "drop_unknown": True}))
    if n_words * _FEW <= n_rows:
        helps.append((f"Leave such rows out with {option('drop_unknown', True)}.", {"drop_unknown": True}))
    return Unclear(message, helps)


def outcomes_of(pairs: Pairs, rows: NDArray[np.int64], n_rows: int | None = None) -> Decoded:
    """Outcomes of some rows, of all by default; DataError if those that were handed in are none."""
    if pairs.answered is not None and pairs.way is not None:
        return pairs.answered.decoded(pairs.way, rows)
    return _given_outcome(pairs, len(rows) if n_rows is None else n_rows, rows)


_ORDER = ("user", "left", "right", "winner", "weight", "task", "context", "time")


def _in_use(
    raw: Columns, pairs: Pairs, rows: _Rows, decoded: Decoded, covariates: dict[str, tuple[str, ...]],
    notes: tuple[str, ...],
) -> Assembled:  # fmt: skip
    """Rows that are in use, with their weights and all that is known of them; raises DataError."""
    options, roles, reason, kept = rows.options, rows.roles, rows.reason, rows.kept
    answered, items, one, two = reason == 0, rows.items, rows.one, rows.two
    if options.get("item_map") is not None:
        items, new = map_items(items, options["item_map"] or {})
        one, two = new[one], new[two]  # rows with a missing id (-1) stay left out
        rows.leave_out_self(one, two, items, " after the items were mapped")
    weight = weights_of(raw[roles["weight"]], roles["weight"], reason) if "weight" in roles else np.ones(len(reason))
    rows.leave_out(weight == 0, NO_WEIGHT)
    differ: NDArray[np.float64] | None = None
    if covariates:
        there = np.flatnonzero(reason == 0)
        differ = differences(raw, covariates, there)
        if not options.get("drop_missing"):
            refuse_missing(differ, list(covariates), there)
        missing = np.isnan(differ).any(axis=1)
        reason[there[missing]] = 1 + REASONS.index("missing covariate")
        differ = differ[~missing]
    left_out, use = rows.left_out(), rows.in_use
    if not use.any():
        raise DataError(f"{nothing_left(left_out)} Check the columns: {from_columns(roles)}.")

    outcome, amount = decoded.outcome[use[kept]], weight[use]
    users, who, no_users = used_only(rows.people, rows.who[use])
    final, pair, no_items = used_only(items, np.concatenate([one[use], two[use]]))
    task = rows.tasks(raw)
    found: Codes | None = None
    if "task" not in roles and options.get("runs"):
        # Of the items as they were shown, since those they are mapped to may be the same.
        answered &= weight > 0
        asked = rows.who[answered], rows.one[answered], rows.two[answered]
        found = choices_in_runs(*asked, decoded.outcome[answered[kept]], weight[answered])
        task = found = None if found is None else found[use[answered]]
    contexts, context = _contexts(raw, roles, use)
    time, clock = None, ""
    if "time" in roles:
        every, clock = times_of(raw[roles["time"]], roles["time"], use)
        time = every[use]
    wins = exact_sum(amount[outcome == 1]), exact_sum(amount[outcome == -1])
    no_sides = pairs.no_sides
    if options.get("side") is False:
        no_sides = UNWANTED
    elif not no_sides and pairs.shown_left is None:
        shown_as = rows.one[use], rows.two[use]
        said, by_item = bool(options.get("side")), decoded.reading == "item ids"
        no_sides = why_no_sides(*shown_as, rows.items, roles, wins, task, said, by_item)
    sides = None if no_sides else np.stack([amount, np.zeros(len(amount))], axis=1)
    if sides is not None and pairs.shown_left is not None:
        sides = amount[:, None] * (pairs.shown_left[use][:, None] == [1, -1])
    grade = None if decoded.grade is None else decoded.grade[use[kept]]
    left, right = np.split(pair, 2)
    answers = AnswerColumns(who, left, right, outcome, amount, task, sides, differ, context, grade, time=time)
    tie_word = decoded.tie_word.filter(pl.Series(use[kept]))
    if options.get("both_bad") == "item":
        bad = tie_word.str.strip_chars().str.to_lowercase().is_in(list(BAD_WORDS)).fill_null(False).to_numpy()
        bad = bad if pairs.both_bad is None else bad | pairs.both_bad[use]
        answers, final, more_notes = _against_neither(answers, final, bad)
        tie_word = tie_word.set(pl.Series(bad), None)
        outcome = np.where(bad, UNKNOWN, outcome)
        notes = (*notes, *more_notes)
    tied = pl.DataFrame({"word": tie_word, "weight": amount}).drop_nulls("word")
    n_rows, answers = len(answers.user), canonical_answers(answers)
    if pairs.answered is not None:
        roles["winner"] = pairs.answered.name
    columns = {role: roles[role] for role in _ORDER if role in roles and roles[role] not in pairs.called}
    columns |= {**role_names(covariates), **pairs.used}
    grades = f", from slight to strong: {', '.join(decoded.grades)}" if decoded.grades else ""
    intake = Intake(
        rows_read=len(reason),
        left_out=left_out,
        ties_by_word={
            word: exact_sum(tied.filter(pl.col("word") == word)["weight"].to_numpy())
            for word in tied["word"].unique().sort()
        },
        duplicates=n_rows - len(answers.user),
        left_wins=wins[0],
        right_wins=wins[1],
        ties=exact_sum(amount[outcome == 0]),
        choices_found=0 if found is None else len(np.unique(found[found >= 0])),
        columns=columns,
        ignored_columns=tuple(name for name in raw if name not in (*columns.values(), *pairs.called)),
        winner_reading=f"{decoded.reading}{grades}",
        unused_items=no_items,
        unused_users=no_users if rows.user is not None else (),
        no_sides=no_sides,
        notes=(*notes, *pairs.notes),
        example=rows.example(decoded),
    )
    if options.get("side") is True and no_sides:
        raise DataError(
            f"{option('side', True)} asks for the sides on which items were shown, but left and right do not say them: "
            f"{intake.why_no_sides()}. Leave it out."
        )
    names = tuple(covariates)
    return Assembled(users, final, rows.user is not None, answers, intake, contexts, names, decoded.grades, clock=clock)


def _contexts(raw: Columns, roles: Mapping[str, str], use: NDArray[np.bool_]) -> tuple[Vocabulary | None, Codes | None]:
    """Contexts of the rows in use, and which of them each is of, -1 for none; None and None where no row has one."""
    if "context" not in roles:
        return None, None
    ids = clean_ids(raw[roles["context"]], roles["context"]).filter(pl.Series(use))
    if ids.null_count() == len(ids):
        return None, None
    contexts = Vocabulary(ids.drop_nulls())
    return contexts, contexts.codes(ids, unknown="minus_one")


NEITHER = "(neither)"


def _against_neither(
    rows: AnswerColumns, items: Vocabulary, bad: NDArray[np.bool_]
) -> tuple[AnswerColumns, Vocabulary, tuple[str, ...]]:
    """Rows of which those that are ``bad`` are two, in which each item loses against one more, and a note."""
    if not bad.any():
        return rows, items, ()
    if items.series().dtype != pl.String:
        raise DataError(
            f'items are whole numbers, and so none can be called "{NEITHER}". Turn both columns of items into text.'
        )
    more = items.extend([NEITHER])
    code = more.codes(items.series())
    rows = rows._replace(left=code[rows.left], right=code[rows.right])
    again = rows.at(np.flatnonzero(bad))
    again = again._replace(left=again.right)
    both = AnswerColumns._make(
        None if one is None else np.concatenate([one, two]) for one, two in zip(rows, again, strict=True)
    )
    lost = np.append(bad, np.ones(len(again.user), dtype=bool))
    sides = None if both.sides is None else both.sides * ~lost[:, None]
    covariates = None if both.covariates is None else np.where(lost[:, None], 0.0, both.covariates)
    outcome = np.where(lost, -1, both.outcome).astype(np.int8)
    right = np.where(lost, more.code(NEITHER), both.right).astype(np.int32)
    note = f'{counted(int(bad.sum()), "answer")} that both are bad: each of the two loses against "{NEITHER}".'
    return both._replace(right=right, outcome=outcome, sides=sides, covariates=covariates), more, (note,)


@dataclass
class _Rows(Usable):
    """Rows of a table of pairs while they are read: what is asked of whom, which are left out, and why.

    ``one``, ``two`` and ``who`` are codes in ``items`` and ``people``, -1 where an id is missing; (n_rows,) each.
    """

    options: ReadOptions
    roles: dict[str, str]
    left: pl.Series
    right: pl.Series
    user: pl.Series | None

    def __post_init__(self) -> None:
        left, right, user = self.left, self.right, self.user
        self.items = Vocabulary(present(pl.concat([left, right])))
        self.people = Vocabulary([EVERYONE]) if user is None else Vocabulary(present(user))
        self.one, self.two = (self.items.codes(side, unknown="minus_one") for side in (left, right))
        self.who = np.zeros(len(left), dtype=np.int32) if user is None else self.people.codes(user, unknown="minus_one")
        self.reason = np.zeros(len(left), dtype=np.int8)
        ids = {"left": left, "right": right, **({} if user is None else {"user": user})}
        each = ", ".join(f'"{self.roles[role]}" {one.null_count()}' for role, one in ids.items() if one.null_count())
        message = f"an id is missing in {{where}}; missing or blank values by column: {each}. Fill them in."
        self.leave_out(np.minimum(np.minimum(self.one, self.two), self.who) < 0, "missing id", message)
        self.leave_out_self(self.one, self.two, self.items)
        self.kept = np.flatnonzero(self.in_use)  # those with an answer that is read

    def leave_out_self(self, one: Codes, two: Codes, items: Vocabulary, when: str = "") -> None:
        """Leave out an item that is compared with itself; DataError if that was not said."""
        same = (one == two) & self.in_use
        example = shown(items.labels([one[same.argmax()]])[0]) if same.any() else ""
        self.leave_out(same, "self-pair", f'an item is compared with itself in {{where}}{when}, such as "{example}".')

    def tasks(self, raw: Columns) -> Codes | None:
        """Tasks of the rows in use, by a column; a column that tells none apart loses its role."""
        if "task" not in self.roles:
            return None
        column, use = self.roles["task"], np.flatnonzero(self.in_use)
        codes = task_codes(raw[column], column, self.options.get("task") is not None)
        return None if codes is None else codes[use]

    def example(self, decoded: Decoded) -> tuple[str, str]:
        """The first answer in use, as a sentence."""
        row = int((self.in_use).argmax())
        place = int(np.searchsorted(self.kept, row))
        grade = "" if decoded.grade is None or not decoded.grade[place] else decoded.grades[decoded.grade[place] - 1]
        outcome, left, right = int(decoded.outcome[place]), self.left[row], self.right[row]
        who = None if self.user is None else self.user[row]
        return examples(who, lambda one: pair_sentence(row, one, left, right, outcome, grade))


def _same_kind(raw: Columns, roles: Mapping[str, str]) -> tuple[pl.Series, pl.Series]:
    """Ids of the left and of the right items; DataError if some are text and others integers."""
    left, right = (clean_ids(raw[roles[side]], roles[side]) for side in ("left", "right"))
    if left.dtype == right.dtype:
        return left, right
    if left.null_count() == len(left):
        return left.cast(right.dtype), right
    if right.null_count() == len(right):
        return left, right.cast(left.dtype)
    kinds = [f'"{roles[side]}" holds {"integers" if series.dtype == pl.Int64 else "text"} (first: '
             f"{shown(series.drop_nulls()[0])})" for side, series in (("left", left), ("right", right))]  # fmt: skip
    raise DataError(
        f"column {kinds[0]} but column {kinds[1]}; item ids must be all text or all integers. "
        "Turn both columns into the same kind first."
    )


def _given_outcome(pairs: Pairs, n_read: int, kept: NDArray[np.int64]) -> Decoded:
    """Outcomes that were given, or that columns say which hold no words."""
    options, of_columns = pairs.options, not pairs.given
    ties, grades = as_words(options.get("ties")), options.get("grades", ())
    try:
        given = to_series(pairs.outcome, "outcome")
        if given.dtype.is_nested():
            raise TypeError(given.dtype)
        values = given.cast(pl.Float64)
        if given.dtype == pl.Boolean:
            values = 2.0 * values - 1.0
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise DataError(
            "outcomes must be numbers, 1 (left better), 0 (tie), -1 (right better), or booleans (True: left better). "
            'Pass words or ids as a column "winner" of the frame.'
        ) from error
    if len(values) != n_read:
        raise DataError(f"there are {len(values)} outcomes for {n_read} rows; give one for every row.")
    grades = grades or grades_of_numbers(present(values).unique().to_list())
    numbers = {float(name): code for name, code in numbers_named(grades or ["1"]).items()}
    odd = (~values.is_in(list(numbers))).fill_null(False)
    if odd.any():
        row = int(odd.arg_max() or 0)
        raise DataError(
            "outcomes must be 1 (left better), 0 (tie) or -1 (right better); other values "
            f"came in {counted(int(odd.sum()), 'row')} (first: row {row + 1}, {values[row]:g}). Whole numbers from "
            f"-{MOST_GRADES} to {MOST_GRADES} are grades, if some go beyond 1 and some beyond -1; otherwise name them: "
            f"{option('grades', ['1', '2'])}."
        )
    zero_is_tie = of_columns or any(word in ("0", "0.0") for word in ties)
    if not grades and values.min() == 0 and values.max() == 1 and not zero_is_tie:
        raise DataError(
            "the outcomes are only 1 and 0, and 0 could mean that the right item won, or a tie. For the first give -1 "
            "in place of 0, or booleans, y.astype(bool) (True: the left item won); for the second say "
            f"{option('ties', ['0'])}."
        )
    codes = values.replace_strict(numbers, default=UNKNOWN, return_dtype=pl.Int8).to_numpy()[kept]
    word = pl.Series([None if of_columns else "0"], dtype=pl.String).new_from_index(0, len(codes))
    word = word.set(pl.Series(codes != 0), None)
    sign, grade = taken_apart(codes)
    said = "given grades" if grades else "given outcome"
    return Decoded(sign, said, word, grade if grades else None, tuple(grades))


def map_items(items: Vocabulary, item_map: Mapping[Any, Any]) -> tuple[Vocabulary, NDArray[np.int32]]:
    """Vocabulary of the mapped ids, and the new code of every old code."""
    check_mapping("item_map", item_map)
    columns = list(item_map.values())
    # A dict of two equally long columns is a table and not a mapping of two ids.
    if len(columns) == 2 and all(not isinstance(c, str) and hasattr(c, "__len__") for c in columns):
        keys, values = (to_series(column, "item_map") for column in columns)
    else:
        keys, values = to_series(list(item_map), "item_map"), to_series(columns, "item_map")
    keys, values = clean_ids(keys, "item_map keys"), clean_ids(values, "item_map values")
    if keys.null_count() or values.null_count() or keys.n_unique() < len(keys):
        raise DataError("item_map must give every item one id: it holds missing ids or repeated keys.")
    known = Vocabulary(keys)
    place = known.codes(items.series(), unknown="minus_one")
    if (place < 0).any():
        lost = [items.ids[code] for code in np.flatnonzero(place < 0)[:3]]
        raise DataError(
            f"item_map says nothing about {int((place < 0).sum())} of {len(items)} items "
            f"(first: {', '.join(map(shown, lost))}). Add them, each to itself if it is to stay."
        )
    target = values.gather(np.argsort(known.codes(keys)))
    mapped = Vocabulary(target)
    return mapped, mapped.codes(target)[place]


MOST_OF_A_ROW = 1e12  # answers; from some 1e15 on sums of squares are no numbers


def weights_of(series: pl.Series, column: str, reason: NDArray[np.int8]) -> NDArray[np.float64]:
    """Weights of rows; DataError if one that is in use, with reason 0, is none."""
    instead = f"Name another with {option('weight', 'NAME')}, or use none: {option('weight', False)}."
    weight = numbers_of(series, column, "weight", instead)
    bad = np.flatnonzero((reason == 0) & ~((weight >= 0) & (weight <= MOST_OF_A_ROW)))
    if len(bad):
        value = "empty" if np.isnan(weight[bad[0]]) else f"{weight[bad[0]]:g}"
        wrong = "too large" if MOST_OF_A_ROW < weight[bad[0]] < np.inf else "missing, infinite or negative"
        raise DataError(
            f'column "{shown(column)}" is used as the weight but holds '
            f"{wrong} weights in {counted(len(bad), 'row')} (first: row {bad[0] + 1}, {value}). A weight says "
            f"how many answers a row stands for, from 0 to {MOST_OF_A_ROW:g}: mend them, or use none: "
            f"{option('weight', False)}."
        )
    return weight


def used_only(ids: Vocabulary, codes: NDArray[np.int32]) -> tuple[Vocabulary, NDArray[np.int32], tuple[Any, ...]]:
    """Vocabulary of the ids in use, the new codes, and the other ids."""
    seen = np.zeros(len(ids), dtype=bool)
    seen[codes] = True
    if seen.all():
        return ids, codes, ()
    new = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    mask = pl.Series(seen)
    return Vocabulary(ids.series().filter(mask)), new[codes], tuple(ids.series().filter(~mask).to_list())
