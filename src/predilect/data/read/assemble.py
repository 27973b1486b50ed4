"""Coded, canonical answers from the columns of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._text import did_you_mean, first_few, shown
from predilect.data.canonical import (
    Answers,
    Codes,
    canonical_answers,
    choices_in_runs,
    exact_sum,
    may_be_choices,
    task_codes,
    tells_tasks_apart,
)
from predilect.data.frames import Columns, as_text, clean_ids, to_series, without_points
from predilect.data.intake import REASONS, UNWANTED, Intake, counted, examples, from_columns, pair_sentence
from predilect.data.read.columns import guess_columns, listed, require_column
from predilect.data.read.covariates import (
    covariate_columns,
    differences,
    flat,
    refuse_missing,
    role_names,
    why_no_sides,
)
from predilect.data.read.names import (
    BAD_WORDS,
    CHOICE_TASK,
    OPEN_WEIGHT,
    PEOPLE_BY_RANK,
    all_named,
    could_be_side,
    is_called,
    plain,
    positive_side,
    same_thing,
    side_words,
    squeezed,
    tokens,
)
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.winners import (
    MOST_GRADES,
    UNKNOWN,
    Decoded,
    decode_winners,
    grades_of_numbers,
    is_number,
    numbers_named,
    taken_apart,
    unknown_message,
)
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

EVERYONE = "everyone"
_MISSING, _SELF, _UNKNOWN_WINNER, _NO_WEIGHT, _NO_COVARIATE = 1, 2, 3, 4, 5


class Assembled(NamedTuple):
    """What a table of answers says, as the columns of ``Comparisons``."""

    users: Vocabulary
    items: Vocabulary
    has_users: bool
    answers: Answers
    intake: Intake
    contexts: Vocabulary | None = None
    covariate_names: tuple[str, ...] = ()
    grades: tuple[str, ...] = ()
    item_table: pl.DataFrame | None = None


@dataclass(frozen=True)
class Pairs:
    """How a table holds pairs: options that name their columns, and what those do not say.

    ``answers`` are columns that may say who won, the surest first; where none can be read, ``otherwise`` makes what
    other columns say. Without them ``outcome`` does, (n_rows,), made of the columns ``used``, by role. ``table`` stands
    in place of the table that was given, with columns ``called`` as none of it is. ``shown_left`` is 1 where the left
    item was shown on the left, -1 on the right, 0 where that is not known, (n_rows,); ``no_sides`` is why no side is
    known of any. ``both_bad`` tells which ties were of two that are bad.
    """

    options: ReadOptions
    answers: tuple[str, ...] = ()
    otherwise: Callable[[], Pairs | None] = lambda: None
    outcome: Any = None
    used: Mapping[str, str] = field(default_factory=dict)
    table: Mapping[str, pl.Series] | None = None
    called: tuple[str, ...] = ()
    shown_left: NDArray[np.int8] | None = None
    no_sides: str = ""
    both_bad: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()
    tried: bool = False  # whether advice is tried, so that none is wanted


def assemble(raw: Columns, pairs: Pairs) -> Assembled:
    """Answers of a table; raises DataError if it cannot be read in one clear way, or nothing usable remains."""
    raw = raw if pairs.table is None else Columns(pairs.table)
    options, names = pairs.options, raw.names
    given = options.get("outcome")
    need_winner = given is None and pairs.outcome is None
    named: ReadOptions = {**options, "winner": next(iter(pairs.answers), options.get("winner"))}
    roles, covariates = columns_of(names, named, need_winner, raw.index)
    said_in = tuple(dict.fromkeys([roles["winner"], *pairs.answers])) if need_winner else ()
    who_else = other_people(names, options, [*said_in, *flat(covariates), roles["left"], roles["right"]])
    n_read = len(raw[roles["left"]])
    if n_read == 0:
        raise DataError(f"the table has columns ({', '.join(names)}) but no rows. Is it the right file?")

    left, right = _same_kind(
        clean_ids(raw[roles["left"]], roles["left"]), clean_ids(raw[roles["right"]], roles["right"]), roles
    )
    texts = _texts(raw, said_in)
    ids, notes = without_points({"left": left, "right": right, **texts}, {**roles, **{name: name for name in texts}})
    left, right, texts = ids["left"], ids["right"], {name: ids[name] for name in texts}
    user = clean_ids(raw[roles["user"]], roles["user"]) if "user" in roles else None
    if user is not None:
        refuse_other_people(raw, user, roles["user"], who_else)
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
    asked = _Asked(one, two, items, roles, user, kept)
    _refuse_count(raw, roles.get("weight"), options, asked)
    column, decoded = _decoded(texts, asked, options) if texts else (None, None)
    if column is None and texts:
        other = pairs.otherwise()
        if other is not None:
            return assemble(raw, other)
        column, decoded = _decoded(texts, asked, options, needed=True)
    if column is not None:
        roles["winner"] = column
        pairs = replace(pairs, used={}, notes=())
    else:
        roles.pop("winner", None)
    if decoded is None:
        ties = ["0"] if given is None else as_words(options.get("ties"))
        decoded = _given_outcome(
            pairs.outcome if given is None else given, n_read, kept, ties, options.get("grades", ())
        )
        if given is None:  # of columns that hold no words
            decoded = replace(decoded, tie_word=pl.Series([None], dtype=pl.String).new_from_index(0, len(kept)))
    lost = kept[decoded.outcome == UNKNOWN]
    if len(lost) and not options.get("drop_unknown"):
        advice = _advice(raw, pairs, None if column is None else texts[column], decoded.reading, lost)
        if column is not None:
            pair = np.stack([one, two])
            raise DataError(unknown_message(texts[column], lost, decoded.reading, column, items, pair, advice))
        what = "the given outcome is" if given is not None else f"who won ({from_columns(pairs.used)}) is"
        raise DataError(f"{what} missing in {len(lost)} of {n_read} rows (first: row {lost[0] + 1}).{advice}")
    reason[lost] = _UNKNOWN_WINNER
    if column is not None:
        decoded = _turned(decoded, texts[column], asked, options)

    answered, before_map = reason == 0, (who, one, two)
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
    if "task" in roles and options.get("task") is None and options.get("kind") is None:
        _refuse_topic(roles["task"], asked, who, shown, task, np.flatnonzero(use))
    if "task" not in roles and options.get("task") is None and options.get("kind") is None:
        # Of the items as they were shown, since those they are mapped to may be the same.
        answered &= weight > 0
        in_runs = [codes[answered] for codes in (*before_map, weight)]
        found = _runs(in_runs, decoded.outcome[answered[kept]], asked, options.get("runs"), np.flatnonzero(answered))
        task = found = None if found is None else found[use[answered]]
    wins = exact_sum(used_weight[shown == 1]), exact_sum(used_weight[shown == -1])
    no_sides = pairs.no_sides
    if options.get("side") is False:
        no_sides = UNWANTED
    elif not no_sides and pairs.shown_left is None:
        no_sides = why_no_sides(
            before_map[1][use], before_map[2][use], items, roles, wins, task, bool(options.get("side"))
        )
    sides = None if no_sides else np.stack([used_weight, np.zeros(len(used_weight))], axis=1)
    if sides is not None and pairs.shown_left is not None:
        sides = used_weight[:, None] * (pairs.shown_left[use][:, None] == [1, -1])
    grade = None if decoded.grade is None else decoded.grade[use[kept]]
    left_used, right_used = pair[: len(shown)], pair[len(shown) :]
    rows = Answers(who, left_used, right_used, shown, used_weight, task, sides, differ, context, grade)
    tie_word = decoded.tie_word.filter(pl.Series(use[kept]))
    if options.get("both_bad") == "item":
        bad = tie_word.str.strip_chars().str.to_lowercase().is_in(list(BAD_WORDS)).fill_null(False).to_numpy()
        bad = bad if pairs.both_bad is None else bad | pairs.both_bad[use]
        rows, final, more_notes = _against_neither(rows, final, bad)
        tie_word = tie_word.set(pl.Series(bad), None)
        shown = np.where(bad, UNKNOWN, shown)
        notes = (*notes, *more_notes)
    answers = canonical_answers(rows)
    columns = {role: name for role, name in roles.items() if name not in pairs.called}
    columns |= {**role_names(covariates), **pairs.used}
    intake = Intake(
        rows_read=n_read,
        left_out=left_out,
        ties_by_word=_ties_by_word(tie_word, used_weight),
        duplicates=len(rows.user) - len(answers.user),
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
        notes=(*pairs.notes, *notes),
        example=_example(use, left, right, user, decoded, kept),
    )
    if options.get("side") and no_sides:
        raise DataError(
            f"{option('side', True)} asks for the sides on which items were shown, but left and right do not say them: "
            f"{intake.why_no_sides()}. Leave it out."
        )
    return Assembled(
        users,
        final,
        user is not None,
        answers,
        intake,
        contexts,
        covariate_names=tuple(covariates),
        grades=decoded.grades,
    )


NEITHER = "(neither)"


def _against_neither(
    rows: Answers, items: Vocabulary, bad: NDArray[np.bool_]
) -> tuple[Answers, Vocabulary, tuple[str, ...]]:
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
    both = Answers._make(
        None if one is None else np.concatenate([one, two]) for one, two in zip(rows, again, strict=True)
    )
    lost = np.append(bad, np.ones(len(again.user), dtype=bool))
    sides = None if both.sides is None else both.sides * ~lost[:, None]
    covariates = None if both.covariates is None else np.where(lost[:, None], 0.0, both.covariates)
    outcome = np.where(lost, -1, both.outcome).astype(np.int8)
    right = np.where(lost, more.code(NEITHER), both.right).astype(np.int32)
    note = f'{counted(int(bad.sum()), "answer")} that both are bad: each of the two loses against "{NEITHER}".'
    return both._replace(right=right, outcome=outcome, sides=sides, covariates=covariates), more, (note,)


def _example(
    use: NDArray[np.bool_], left: pl.Series, right: pl.Series, user: pl.Series | None, decoded: Decoded,
    kept: NDArray[np.int64],
) -> tuple[str, str]:  # fmt: skip
    """The first answer in use, as a sentence."""
    row = int(use.argmax())
    place = int(np.searchsorted(kept, row))
    grade = "" if decoded.grade is None or not decoded.grade[place] else decoded.grades[decoded.grade[place] - 1]
    outcome = int(decoded.outcome[place])
    who = None if user is None else user[row]
    return examples(who, lambda one: pair_sentence(row, one, left[row], right[row], outcome, grade))


def columns_of(
    names: Sequence[str], options: ReadOptions, need_winner: bool, index: Sequence[str] = ()
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
        need_winner=need_winner,
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


@dataclass(frozen=True)
class _Asked:
    """What rows ask: codes of the items, (n_rows,), who answered, and the rows that are ``kept``."""

    left: Codes
    right: Codes
    items: Vocabulary
    roles: Mapping[str, str]
    user: pl.Series | None
    kept: NDArray[np.int64]

    def who(self, row: int) -> str:
        """Who answered a row."""
        return "somebody" if self.user is None else shown(self.user[int(row)])

    def names(self, row: int) -> tuple[str, str]:
        """The two items of a row."""
        return shown(self.items.ids[self.left[row]]), shown(self.items.ids[self.right[row]])


def _texts(raw: Mapping[str, pl.Series], answers: Sequence[str]) -> dict[str, pl.Series]:
    """Answers as text by column; what can be none is left out, unless there is nothing else."""
    found = {}
    for name in answers:
        try:
            found[name] = as_text(raw[name])
        except DataError:
            if name == answers[-1] and not found:
                raise
    return found


def _decoded(
    texts: Mapping[str, pl.Series], asked: _Asked, options: ReadOptions, *, needed: bool = False
) -> tuple[str | None, Decoded | None]:
    """The column that says who won, and its outcomes; None if none does. DataError if two do, and disagree."""
    own = own_words(options)
    words = side_words(asked.roles["left"], asked.roles["right"], *own)
    given = [*own[0], *own[1]]
    found: dict[str, Decoded] = {}
    errors: dict[str, DataError] = {}
    for name, text in texts.items():
        try:
            found[name] = decode_winners(
                text.gather(asked.kept), asked.left[asked.kept], asked.right[asked.kept], asked.items, sides=words,
                ties=as_words(options.get("ties")), winner_is=options.get("winner_is"), column=name,
                grades=options.get("grades", ()), given=given,
            )  # fmt: skip
        except DataError as error:
            errors[name] = error
    said = {name: one.outcome != UNKNOWN for name, one in found.items()}
    fits = [name for name, one in found.items() if (said[name] & (one.outcome != 0)).any()]
    whole = [name for name in fits if said[name][texts[name].is_not_null().to_numpy()[asked.kept]].all()]
    chosen = next(iter(whole or fits), None)
    open_ones = [name for name in errors if name != chosen]
    if plain(next(iter(texts))) == "winner" and next(iter(texts)) in errors:
        raise errors[next(iter(texts))]
    if chosen is not None and open_ones and plain(chosen) != "winner":
        raise DataError(
            f'columns "{shown(chosen)}" and "{shown(open_ones[0])}" could both say who won. Name the one that does: '
            f"{option('winner', chosen)} or {option('winner', open_ones[0])}."
        )
    if chosen is None and not needed and not errors:
        return None, None
    if chosen is None:
        first = next(iter(errors or texts))
        if first in errors:
            raise errors[first]
        return first, found[first]
    for other in fits if plain(chosen) != "winner" else ():
        differ = said[chosen] & said[other] & (found[chosen].outcome != found[other].outcome)
        if differ.any():
            place = int(differ.argmax())
            row = int(asked.kept[place])
            one, two = asked.names(row)
            say = [
                f'{("neither", one, two)[found[name].outcome[place]]} won by "{shown(name)}" '
                f"({shown(texts[name][row])}), {option('winner', name)}"
                for name in (chosen, other)
            ]
            raise DataError(
                f'columns "{shown(chosen)}" and "{shown(other)}" could both say who won, and differ in '
                f"{counted(int(differ.sum()), 'row')}. In row {row + 1} ({asked.who(row)}: {one} or {two}) {say[0]}, "
                f"and {say[1]}."
            )
    _refuse_other_words(own, texts[chosen], chosen)
    return chosen, found[chosen]


def _refuse_other_words(own: Sequence[Sequence[object]], text: pl.Series, column: str) -> None:
    """DataError for a word for a side that no answer is."""
    there = {squeezed(word): word for word in text.drop_nulls().unique().sort().to_list()}
    for key, words in zip(("left_word", "right_word"), own, strict=True):
        lacking = next((str(word) for word in words if squeezed(str(word)) not in there), None)
        if lacking is not None:
            raise DataError(
                f'{option(key, shown(lacking))} names a word that column "{shown(column)}" never holds; it holds '
                f"{first_few(list(there.values()))}.{did_you_mean(lacking, there.values())}"
            )


def _turned(decoded: Decoded, text: pl.Series, asked: _Asked, options: ReadOptions) -> Decoded:
    """Outcomes of signs with the side for which positive numbers speak; DataError if no word says which."""
    if not decoded.reading.endswith("signs"):
        return decoded
    decided = np.flatnonzero((decoded.outcome != UNKNOWN) & (decoded.outcome != 0))
    column = asked.roles["winner"]
    side = options.get("positive") or positive_side(text.name or column, asked.roles["left"], asked.roles["right"])
    if side is None and len(decided):
        row, who = int(asked.kept[decided[0]]), asked.who(asked.kept[decided[0]])
        one, two = asked.names(row)
        better, other = (one, two) if decoded.outcome[decided[0]] > 0 else (two, one)
        raise DataError(
            f'column "{shown(text.name)}" holds numbers, and no word says which side positive ones speak for. Row '
            f"{row + 1} ({who}: {one} or {two}, {shown(text[row])}) says that {who} prefers {better}, "
            f"{option('positive', 'left')}, or {other}, {option('positive', 'right')}."
        )
    if side != "right":
        return decoded
    return replace(decoded, outcome=np.where(decoded.outcome == UNKNOWN, UNKNOWN, -decoded.outcome).astype(np.int8))


_FEW = 20  # of so many rows at most one is left out for a word that nobody knows


def _advice(raw: Columns, pairs: Pairs, text: pl.Series | None, reading: str, lost: NDArray[np.int64]) -> str:
    """What can be done about rows without a clear winner: only what was tried on the table, and reads all of it."""

    def reads(more: Mapping[str, object]) -> Intake | None:
        told: ReadOptions = {**pairs.options, **more}  # type: ignore[typeddict-item]
        try:
            return assemble(raw, replace(pairs, options=told, tried=True)).intake
        except DataError:
            return None

    if pairs.tried:
        return ""
    unknown = pl.Series([], dtype=pl.String) if text is None else text.gather(lost)
    words = unknown.drop_nulls().unique().sort().to_list()
    of_sides = reading.endswith("side words")
    said = []
    as_shown = all(shown(word) == word and not is_number(word) for word in words)
    if len(words) == 1 and as_shown:
        ties = [*as_words(pairs.options.get("ties")), words[0]]
        found = None if of_sides and could_be_side(words[0]) else reads({"ties": ties, "drop_unknown": True})
        if found is not None and (not of_sides or (found.left_wins and found.right_wins)):
            said.append(f'If "{words[0]}" means a tie, say {option("ties", words)}.')
        elif of_sides and reads({"left_word": words, "drop_unknown": True}) is not None:
            said.append(
                f'If "{words[0]}" means a side, say which: {option("left_word", words)} or '
                f"{option('right_word', words)}."
            )
    elif len(words) == 2 and as_shown and reads({"left_word": words[:1], "right_word": words[1:]}) is not None:
        one, two = words
        said.append(
            f"If they mean the two sides, say which: {option('left_word', one, right_word=two)}, or "
            f"{option('left_word', two, right_word=one)}."
        )
    n_read = len(lost) if text is None else len(text)
    if len(unknown.drop_nulls()) * _FEW <= n_read and reads({"drop_unknown": True}) is not None:
        said.append(f"Leave such rows out with {option('drop_unknown', True)}.")
    return "".join(f" {one}" for one in said)


def other_people(names: Sequence[str], options: ReadOptions, taken: Iterable[str]) -> list[str]:
    """Columns that may say who answered, as surely as each other."""
    if options.get("user") is not None:
        return []
    free = [name for name in names if name not in {*taken}]
    return next((found for words in PEOPLE_BY_RANK if (found := all_named(free, words))), [])


def refuse_other_people(raw: Mapping[str, pl.Series], user: pl.Series, column: str, people: Sequence[str]) -> None:
    """DataError if another column could be who answered, and tells answers apart in another way."""
    for name in people:
        try:
            other = clean_ids(raw[name], name)
        except DataError:
            continue
        if name == column or not other.drop_nulls().len():
            continue
        both = pl.DataFrame({"one": user.cast(pl.String), "two": other.cast(pl.String)})
        counts = {both.n_unique(), both["one"].n_unique(), both["two"].n_unique()}
        if len(counts) > 1 or not (same_thing(tokens(column), tokens(name)) or both["one"].equals(both["two"])):
            raise DataError(
                f'columns "{shown(column)}" and "{shown(name)}" could both say who answered. Row 1 was answered by '
                f"{shown(user[0])}, {option('user', column)}, or by {shown(other[0])}, {option('user', name)}."
            )


def _refuse_count(raw: Mapping[str, pl.Series], column: str | None, options: ReadOptions, asked: _Asked) -> None:
    """DataError for a column called count that may be how often a row was answered, or anything that was counted."""
    if column is None or options.get("weight") is not None or plain(column) not in OPEN_WEIGHT:
        return
    count = as_text(raw[column])
    odd = ((count != "1") & count.is_not_null()).arg_max() if len(count) else None
    if odd is None or count[odd] in (None, "1"):
        return
    one, two = asked.names(odd)
    raise DataError(
        f'column "{shown(column)}" says that row {odd + 1} ({asked.who(odd)}: {one} or {two}) was answered '
        f"{shown(count[odd])} times, {option('weight', column)}, or that {shown(count[odd])} of something else were "
        f"counted, which is no weight, {option('weight', False)}."
    )


def _refuse_topic(
    column: str, asked: _Asked, user: Codes, outcome: NDArray[np.int8], task: Codes | None, use: NDArray[np.int64]
) -> None:
    """DataError for a column called task, if its rows may be one choice each, or about one topic each."""
    if task is None or is_called(column, CHOICE_TASK):
        return
    rows, open_to_doubt = may_be_choices(user, asked.left[use], asked.right[use], outcome, task)
    if rows is None or not open_to_doubt:
        return
    first, second = use[rows[:2]]
    raise DataError(
        f'column "{shown(column)}" could say which rows are one choice, or what they are about. '
        f"{_at_once(asked, first, second, outcome[rows[0]])}, {option('task', column)}, or answered two questions, "
        f"{option('task', False)}."
    )


def _at_once(asked: _Asked, first: int, second: int, outcome: int) -> str:
    """What two rows say if they are one choice, of which the first has an outcome."""
    pair = asked.names(first)
    won = pair[0] if outcome > 0 else pair[1]
    others = [name for name in dict.fromkeys([*pair, *asked.names(second)]) if name != won]
    return (
        f"Rows {first + 1} and {second + 1} say that {asked.who(first)} chose {won} over {' and '.join(others)} at once"
    )


def _runs(
    rows: Sequence[NDArray[Any]], outcome: NDArray[np.int8], asked: _Asked, runs: bool | None, place: NDArray[np.int64]
) -> Codes | None:
    """Choices that were taken apart into rows one after the other, if it is said that they were.

    DataError where it is not said and rows look so: ``rows`` are user, left, right, weight of those in ``place``.
    """
    user, left, right, weight = rows
    if runs is False or (runs is None and asked.user is None):
        return None
    found = choices_in_runs(user, left, right, outcome, weight, told=bool(runs))
    if runs or found is None:
        return found
    first, second = place[np.flatnonzero(found == found[np.argmax(found >= 0)])[:2]]
    raise DataError(
        "rows of one person with one winner lie together, as where choices from several are taken apart. "
        f"{_at_once(asked, first, second, outcome[np.flatnonzero(place == first)[0]])}, {option('runs', True)}, or "
        f"answered two questions, {option('runs', False)}. If a column says which rows are one choice, name it: "
        f"{option('task', 'NAME')}."
    )


def own_words(options: ReadOptions) -> tuple[list[str], list[str]]:
    """Words for the left and for the right side that are given."""
    return as_words(options.get("left_word")), as_words(options.get("right_word"))


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
    if not grades and values.min() == 0 and values.max() == 1 and not any(word in ("0", "0.0") for word in ties):
        raise DataError(
            "the outcomes are only 1 and 0, and 0 could mean that the right item won, or a tie. For the first give -1 "
            f"in place of 0, or booleans (True: the left item won); for the second say {option('ties', ['0'])}."
        )
    codes = values.replace_strict(numbers, default=UNKNOWN, return_dtype=pl.Int8).to_numpy()[kept]
    word = pl.Series(["0"], dtype=pl.String).new_from_index(0, len(codes)).set(pl.Series(codes != 0), None)
    sign, grade = taken_apart(codes)
    said = "given grades" if grades else "given outcome"
    return Decoded(sign, said, word, grade if grades else None, tuple(grades))


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
