"""Coded, canonical answers from the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._text import did_you_mean, option, shown
from predilect.data.canonical import (
    Answers,
    Codes,
    canonical_answers,
    choices_in_runs,
    exact_sum,
    task_codes,
    tells_tasks_apart,
)
from predilect.data.frames import as_text, clean_ids, column_names, index_names, to_columns, to_series, without_points
from predilect.data.intake import REASONS, UNWANTED, Intake, counted, from_columns
from predilect.data.read.columns import guess_columns, listed, require_column
from predilect.data.read.covariates import (
    covariate_columns,
    differences,
    flat,
    refuse_missing,
    role_names,
    why_no_sides,
)
from predilect.data.read.winners import (
    MOST_GRADES,
    UNKNOWN,
    Decoded,
    WinnerIs,
    decode_winners,
    grades_of_numbers,
    numbers_named,
    taken_apart,
    unknown_message,
)
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

EVERYONE = "everyone"
Kind = Literal["pairs", "best", "best_worst", "order", "rank", "rating", "approval"]
_MISSING, _SELF, _UNKNOWN_WINNER, _NO_WEIGHT, _NO_COVARIATE = 1, 2, 3, 4, 5


class ReadOptions(TypedDict, total=False):
    """Options of ``Comparisons.from_frame`` and ``read_comparisons``, explained there."""

    user: str | bool | None
    left: str | None
    right: str | None
    winner: str | None
    ties: Iterable[object]
    weight: str | bool | None
    outcome: Any
    item_map: Mapping[Any, Any] | None
    winner_is: WinnerIs | None
    drop_missing: bool
    drop_self: bool
    drop_unknown: bool
    task: str | bool | None
    covariates: Sequence[str]
    side: bool | None
    context: str | None
    kind: Kind | None
    alternatives: str | Sequence[str] | None
    profile: Sequence[str] | None
    none: str
    grades: Sequence[str]
    positive: Literal["left", "right"] | None
    best: Literal["low", "high"] | None
    constants: bool | None
    design: Any


def refuse_other_options(options: Iterable[str], function: str, *more: str) -> None:
    """TypeError for an option that is none, with a near miss among all and ``more`` arguments of the function."""
    known = [*more, *ReadOptions.__annotations__]
    for name in options:
        if name not in known:
            meant = did_you_mean(name, known) or f" It has {', '.join(known)}."
            raise TypeError(f'{function} has no argument "{name}".{meant}')


Assembled = tuple[
    Vocabulary, Vocabulary, Vocabulary | None, Answers, tuple[str, ...], tuple[str, ...], bool, Intake,
    pl.DataFrame | None,
]  # fmt: skip


def assemble(table: Any, options: ReadOptions) -> Assembled:
    """Vocabularies of users, items and contexts, canonical rows, names of covariates and of grades, whether there are
    users, and the intake.

    ``table`` is what ``frames.open_frame`` returned. Raises DataError if it cannot be read in one clear way, or nothing
    usable remains.
    """
    names, outcome = column_names(table), options.get("outcome")
    roles, covariates = columns_of(names, options, index_names(table))
    raw = to_columns(table, [*roles.values(), *flat(covariates)])
    n_read = len(raw[roles["left"]])
    if n_read == 0:
        raise DataError(f"the table has columns ({', '.join(names)}) but no rows. Is it the right file?")

    left, right = _same_kind(
        clean_ids(raw[roles["left"]], roles["left"]), clean_ids(raw[roles["right"]], roles["right"]), roles
    )
    ids = {"left": left, "right": right} | ({} if outcome is not None else {"winner": as_text(raw[roles["winner"]])})
    ids, notes = without_points(ids, roles)
    left, right, words = ids["left"], ids["right"], ids.get("winner")
    user = clean_ids(raw[roles["user"]], roles["user"]) if "user" in roles else None
    reason = np.zeros(n_read, dtype=np.int8)
    absent = left.is_null() | right.is_null()
    if user is not None:
        absent |= user.is_null()
    reason[absent.to_numpy()] = _MISSING
    if not options.get("drop_missing"):
        _refuse_missing(reason, {"left": left, "right": right, "user": user}, roles)

    items = Vocabulary(pl.concat([left, right]).drop_nulls())
    people = Vocabulary([EVERYONE]) if user is None else Vocabulary(user.drop_nulls())
    one, two = items.codes(left, unknown="minus_one"), items.codes(right, unknown="minus_one")
    who = np.zeros(n_read, dtype=np.int32) if user is None else people.codes(user, unknown="minus_one")

    _leave_out_self(reason, one, two, items, bool(options.get("drop_self")), "")
    kept = np.flatnonzero(reason == 0)
    if words is not None:
        decoded = decode_winners(
            words.gather(kept),
            one[kept],
            two[kept],
            items,
            ties=as_words(options.get("ties")),
            winner_is=options.get("winner_is"),
            column=roles["winner"],
            grades=options.get("grades", ()),
        )
    else:
        decoded = _given_outcome(outcome, n_read, kept, as_words(options.get("ties")), options.get("grades", ()))
    lost = kept[decoded.outcome == UNKNOWN]
    if len(lost) and not options.get("drop_unknown"):
        if words is not None:
            raise DataError(unknown_message(words, lost, decoded.reading, roles["winner"], items, np.stack([one, two])))
        raise DataError(
            f"the given outcome is missing in {len(lost)} of {n_read} rows (first: row {lost[0] + 1}). "
            f"Leave such rows out with {option('drop_unknown', True)}."
        )
    reason[lost] = _UNKNOWN_WINNER

    answered, asked = reason == 0, (who, one, two)
    mapped, table_of_codes = items, None
    if options.get("item_map") is not None:
        mapped, table_of_codes = map_items(items, options["item_map"] or {})
        one, two = table_of_codes[one], table_of_codes[two]  # rows with a missing id (-1) stay left out
        _leave_out_self(reason, one, two, mapped, bool(options.get("drop_self")), " after the items were mapped")

    weight = weights_of(raw[roles["weight"]], roles["weight"], reason) if "weight" in roles else np.ones(n_read)
    reason[(reason == 0) & (weight == 0)] = _NO_WEIGHT
    differ: NDArray[np.float64] | None = None
    if covariates:
        rows_left = np.flatnonzero(reason == 0)
        differ = differences(raw, covariates, rows_left)
        if not options.get("drop_missing"):
            refuse_missing(differ, list(covariates), rows_left)
        missing = np.isnan(differ).any(axis=1)
        reason[rows_left[missing]] = _NO_COVARIATE
        differ = differ[~missing]
    left_out = {name: int((reason == code).sum()) for code, name in enumerate(REASONS, 1) if (reason == code).any()}
    use = reason == 0
    if not use.any():
        told = "; ".join(f"{count} × {name}" for name, count in left_out.items())
        raise DataError(
            f"no usable answer: all {n_read} rows were left out ({told}). Check the columns: {from_columns(roles)}."
        )

    shown = decoded.outcome[use[kept]]
    used_weight = weight[use]
    users, who, no_users = used_only(people, who[use])
    final, pair, no_items = used_only(mapped, np.concatenate([one[use], two[use]]))
    task = _tasks(raw, roles, options.get("task") is not None, who, use)
    contexts, context = _contexts(raw, roles, use)
    found: Codes | None = None
    if "task" not in roles and options.get("task") is None and user is not None:
        # Of the items as they were shown, since those they are mapped to may be the same.
        answered &= weight > 0
        by, left_shown, right_shown = (codes[answered] for codes in asked)
        found = choices_in_runs(by, left_shown, right_shown, decoded.outcome[answered[kept]], weight[answered])
        task = found = None if found is None else found[use[answered]]
    wins = exact_sum(used_weight[shown == 1]), exact_sum(used_weight[shown == -1])
    no_sides = UNWANTED
    if options.get("side") is not False:
        no_sides = why_no_sides(asked[1][use], asked[2][use], items, roles, wins, task, bool(options.get("side")))
    sides = None if no_sides else np.stack([used_weight, np.zeros(len(used_weight))], axis=1)
    grade = None if decoded.grade is None else decoded.grade[use[kept]]
    answers = canonical_answers(
        Answers(who, pair[: len(shown)], pair[len(shown) :], shown, used_weight, task, sides, differ, context, grade)
    )
    columns = roles | role_names(covariates)
    intake = Intake(
        rows_read=n_read,
        left_out=left_out,
        ties_by_word=_ties_by_word(decoded.tie_word.filter(pl.Series(use[kept])), used_weight),
        duplicates=len(shown) - len(answers.user),
        left_wins=wins[0],
        right_wins=wins[1],
        ties=exact_sum(used_weight[shown == 0]),
        choices_found=0 if found is None else len(np.unique(found[found >= 0])),
        columns=columns,
        ignored_columns=tuple(name for name in names if name not in columns.values()),
        winner_reading=decoded.reading
        + (f", from slight to strong: {', '.join(decoded.grades)}" if decoded.grades else ""),
        unused_items=no_items,
        unused_users=no_users if user is not None else (),
        no_sides=no_sides,
        notes=notes,
    )
    if options.get("side") and no_sides:
        raise DataError(
            f"{option('side', True)} asks for the sides on which items were shown, but left and right do not say them: "
            f"{intake.why_no_sides()}. Leave it out."
        )
    return users, final, contexts, answers, tuple(covariates), decoded.grades, user is not None, intake, None


def columns_of(
    names: Sequence[str], options: ReadOptions, index: Sequence[str] = ()
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Column of each role, and columns of each covariate; DataError if one is missing, or has two roles."""
    covariates = covariate_columns(names, options.get("covariates"), index)
    taken = flat(covariates)
    context = options.get("context")
    roles = guess_columns(
        names,
        user=options.get("user"),
        left=options.get("left"),
        right=options.get("right"),
        winner=options.get("winner"),
        weight=options.get("weight"),
        task=options.get("task"),
        need_winner=options.get("outcome") is None,
        index=index,
        taken=taken if context is None else [*taken, context],
    )
    if context is not None:
        require_column(context, "context", names, index)
        if context in (*roles.values(), *taken):
            raise DataError(
                f'column "{shown(context)}" cannot be both the context and something else; the columns are '
                f"{listed(names)}. Name another with {option('context', 'NAME')}."
            )
        roles["context"] = context
    for role, column in roles.items():
        if column in taken:
            raise DataError(
                f'column "{shown(column)}" cannot be both {role} and a covariate; the columns are {listed(names)}. '
                f"Name another with {option(role, 'NAME')} or {option('covariates', ['NAME'])}."
            )
    return roles, covariates


def as_words(ties: Iterable[object] | None) -> list[str]:
    """Words for ties as text; DataError for what holds none."""
    try:
        return [ties] if isinstance(ties, str) else [str(word) for word in (() if ties is None else ties)]
    except (TypeError, ValueError) as error:  # nothing to go through; a number of more digits than Python writes
        raise DataError(
            f'ties must be a list of words, such as ["even"], got {type(ties).__name__} ({error}).'
        ) from error


def _same_kind(left: pl.Series, right: pl.Series, roles: Mapping[str, str]) -> tuple[pl.Series, pl.Series]:
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


def _refuse_missing(reason: NDArray[np.int8], ids: Mapping[str, pl.Series | None], roles: Mapping[str, str]) -> None:
    rows = np.flatnonzero(reason == _MISSING)
    if not len(rows):
        return
    per_column = ", ".join(
        f'"{roles[role]}" {series.null_count()}'
        for role, series in ids.items()
        if series is not None and series.null_count()
    )
    first = ", ".join(str(row + 1) for row in rows[:3])
    raise DataError(
        f"an id is missing in {counted(len(rows), 'row')} (missing or blank values by column: "
        f"{per_column}; first: row {first}). Fill them in, or leave such rows "
        f"out with {option('drop_missing', True)}."
    )


def _leave_out_self(
    reason: NDArray[np.int8], one: NDArray[np.int32], two: NDArray[np.int32], items: Vocabulary, drop: bool, when: str
) -> None:
    rows = np.flatnonzero((reason == 0) & (one == two))
    if len(rows) and not drop:
        first = "; ".join(f'row {row + 1}, "{shown(items.labels([one[row]])[0])}"' for row in rows[:3])
        raise DataError(
            f"an item is compared with itself in {counted(len(rows), 'row')}{when} (first: {first}). "
            f"Leave such rows out with {option('drop_self', True)}."
        )
    reason[rows] = _SELF


def _given_outcome(
    outcome: Any, n_read: int, kept: NDArray[np.int64], ties: list[str], grades: Sequence[str]
) -> Decoded:  # fmt: skip
    try:
        given = to_series(outcome, "outcome")
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
    grades = grades or grades_of_numbers(values.drop_nulls().unique().to_list())
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
    if grades:
        codes = values.replace_strict(numbers, default=UNKNOWN, return_dtype=pl.Int8).to_numpy()[kept]
        word = pl.Series(["0"], dtype=pl.String).new_from_index(0, len(codes)).set(pl.Series(codes != 0), None)
        sign, grade = taken_apart(codes)
        return Decoded(sign, "given grades", word, grade, tuple(grades))
    if values.min() == 0 and values.max() == 1 and not any(word in ("0", "0.0") for word in ties):
        raise DataError(
            "the outcomes are only 1 and 0, and 0 could mean that the right item won, or a tie. For the first give -1 "
            f"in place of 0, or booleans (True: the left item won); for the second say {option('ties', ['0'])}."
        )
    coded = values.fill_null(UNKNOWN).cast(pl.Int8).to_numpy()[kept]
    word = pl.Series(["0"], dtype=pl.String).new_from_index(0, len(coded)).set(pl.Series(coded != 0), None)
    return Decoded(coded, "given outcome", word)


def _contexts(
    raw: Mapping[str, pl.Series], roles: Mapping[str, str], use: NDArray[np.bool_]
) -> tuple[Vocabulary | None, Codes | None]:
    """Contexts of the rows in use, and their codes, -1 for none; None where no column says them, or no row has one."""
    if "context" not in roles:
        return None, None
    ids = clean_ids(raw[roles["context"]], roles["context"]).filter(pl.Series(use))
    contexts = Vocabulary(ids.drop_nulls())
    return (contexts, contexts.codes(ids, unknown="minus_one")) if len(contexts) else (None, None)


def map_items(items: Vocabulary, item_map: Mapping[Any, Any]) -> tuple[Vocabulary, NDArray[np.int32]]:
    """Vocabulary of the mapped ids, and the new code of every old code."""
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
    said = f'column "{column}" is used as the weight but holds'
    instead = f"Name another with {option('weight', 'NAME')}, or use none: {option('weight', False)}."
    if series.dtype.is_nested() or series.dtype.is_temporal():  # which polars would cast
        raise DataError(f"{said} values of type {series.dtype}. {instead}")
    text = None if series.dtype.is_numeric() else as_text(series).str.strip_chars()
    number = (series if text is None else text).cast(pl.Float64, strict=False)
    if text is not None and (word := text.filter(number.is_null()).drop_nulls()).len():
        raise DataError(
            f"{said} text that is not a number in {counted(len(word), 'row')} (first: row "
            f'{(text == word[0]).arg_max() + 1}, "{shown(word[0])}"). {instead}'
        )
    weight: NDArray[np.float64] = number.fill_null(np.nan).to_numpy().copy()
    bad = np.flatnonzero((reason == 0) & ~((weight >= 0) & (weight <= MOST_OF_A_ROW)))
    if len(bad):
        value = "empty" if np.isnan(weight[bad[0]]) else f"{weight[bad[0]]:g}"
        wrong = "too large" if MOST_OF_A_ROW < weight[bad[0]] < np.inf else "missing, infinite or negative"
        raise DataError(
            f"{said} {wrong} weights in {counted(len(bad), 'row')} (first: row {bad[0] + 1}, {value}). A weight says "
            f"how many answers a row stands for, from 0 to {MOST_OF_A_ROW:g}: mend them, or use none: "
            f"{option('weight', False)}."
        )
    return weight


def _tasks(
    raw: Mapping[str, pl.Series], roles: dict[str, str], named: bool, who: NDArray[np.int32], use: NDArray[np.bool_]
) -> NDArray[np.int32] | None:
    """Codes of the tasks of the rows in use; a column that was guessed wrongly loses its role."""
    if "task" not in roles:
        return None
    codes = task_codes(raw[roles["task"]], roles["task"], named)
    used = None if codes is None else codes[use]
    if not named and (used is None or not tells_tasks_apart(who, used)):
        del roles["task"]
        return None
    return used


def used_only(ids: Vocabulary, codes: NDArray[np.int32]) -> tuple[Vocabulary, NDArray[np.int32], tuple[Any, ...]]:
    """Vocabulary of the ids in use, the new codes, and the other ids."""
    seen = np.zeros(len(ids), dtype=bool)
    seen[codes] = True
    if seen.all():
        return ids, codes, ()
    new = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    mask = pl.Series(seen)
    return Vocabulary(ids.series().filter(mask)), new[codes], tuple(ids.series().filter(~mask).to_list())


def _ties_by_word(words: pl.Series, weight: NDArray[np.float64]) -> dict[str, float]:
    shown = words.is_not_null().to_numpy()
    tied, amount = words.drop_nulls(), weight[shown]
    return {word: exact_sum(amount[(tied == word).to_numpy()]) for word in tied.unique().sort().to_list()}
