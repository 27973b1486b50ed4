"""Tables that become one with a row an answer, or an alternative, before they are read.

Matrices of wins, judgements in lists, as arena-hard writes them, and columns of annotators; answers that refer
to a design of tasks, which is a table of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from predilect._base.text import did_you_mean, shown
from predilect._base.types import IntArray
from predilect.data.frames import Columns, as_text, open_frame, present
from predilect.data.intake import Intake, counted
from predilect.data.read.assemble import Unclear
from predilect.data.read.columns import guess_pair, listed
from predilect.data.read.names import (
    BOTH_ITEMS,
    CHOSEN,
    IDENTIFIED,
    PEOPLE,
    PEOPLE_OF_SETS,
    PLACED,
    TASKS,
    WINNER,
    best_and_worst,
    guess_one,
    likely_items,
    pair_families,
)
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.profiles import (
    NONE,
    counts_within,
    holds_numbers,
    is_plain,
    numbers_of,
    numbers_rows,
    words_of,
)
from predilect.errors import DataError

_ANNOTATOR = re.compile(r"(?:annotator|rater|judge|grader|labell?er|evaluator|worker)[ _.-]?(\d{1,18})", re.I)
_BETWEEN = (" vs. ", " vs ", "_vs_", "-vs-", " / ", "|", "/", ":", ",", "_")
VERSION = ("version", "block", "ver", "vers", "blk", "questionnaire", "form")
_BEST, _WORST = ("best", "most", "b"), ("worst", "least", "w")
_ROW, _ASKED, _CHOICE, _PERSON = "number of the answer", "question", "answer to the design", "respondent"


@dataclass(frozen=True)
class Reshaped:
    """Columns that are read instead, with what is said of them; ``roles``: columns of the table as it came, or "".

    ``say`` are the options that choose it, ``what`` what the table is taken for.
    """

    columns: dict[str, pl.Series]
    options: ReadOptions
    roles: Mapping[str, str]
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] | None = None
    say: ReadOptions = field(default_factory=ReadOptions)
    what: str = ""

    def account(self, intake: Intake) -> Intake:
        """The account of reading, by the columns that the table has."""
        ignored = intake.ignored_columns if self.ignored is None else self.ignored
        columns = {role: name for role, name in intake.columns.items() if role not in self.roles}
        columns |= {role: name for role, name in self.roles.items() if name}
        return replace(intake, columns=columns, ignored_columns=ignored, notes=(*self.notes, *intake.notes))


def reshaped(raw: Columns, options: ReadOptions) -> Iterator[Reshaped]:
    """What may be read instead of a table that holds no answer a row; DataError if it is one of these, damaged."""
    if options.get("design") is not None:
        yield from _with_design(dict(raw), options)
        return
    if options.get("kind") not in (None, "pairs") or options.get("outcome") is not None:
        return
    yield from _wins(raw, options)
    for form in (_judgements, _annotators):
        if (shape := form(raw, options)) is not None:
            yield shape


def _wins(raw: Columns, options: ReadOptions) -> Iterator[Reshaped]:
    """A square table of how often the item of a row won over that of a column, or the other way round."""
    likely = likely_items(pair_families(raw.names))
    found = None if likely and likely[0].rank in (0, 1) else _square(raw) or _unnamed(raw)
    if found is None or any(options.get(role) for role in ("left", "right", "winner", "alternatives")):
        return
    label, rows, columns = found
    cells = np.stack([_counts(columns[name], name, rows) for name in rows])  # of column, row
    lost = np.isnan(cells) & ~np.isnan(cells.T)
    diagonal = np.nan_to_num(np.diag(cells))
    if diagonal.any():
        item = rows[int(diagonal.argmax())]
        raise DataError(
            f'the matrix says that "{shown(item)}" won over itself {diagonal.max():g} times: row and column '
            f'"{shown(item)}" must hold 0 or nothing where they meet.'
        )
    if lost.any():
        place, row = np.argwhere(lost)[0]
        raise DataError(
            f'the cell of row "{shown(rows[row])}" and column "{shown(rows[place])}" is empty, but not the one across '
            "the diagonal. Write 0 where neither won."
        )
    cells = np.nan_to_num(cells)
    said = options.get("positive")
    if said is None and guess_one([label], (*WINNER, "won", "wins", "row_wins")) is not None:
        said = "left"
    if said is None and guess_one([label], LOSERS) is not None:
        said = "right"
    for side in ("left", "right") if said is None else (said,):
        yield _of_wins(label, rows, cells, side == "left", options, None if said else side)


def _of_wins(
    label: str, rows: list[str], cells: np.ndarray[Any, Any], row_won: bool, options: ReadOptions, asked: str | None
) -> Reshaped:  # fmt: skip
    loser, winner = (place.ravel() for place in np.indices(cells.shape))
    if not row_won:
        loser, winner = winner, loser
    there = cells.ravel() > 0
    items = pl.Series(rows)
    read = {
        "won": items.gather(winner[there]), "lost": items.gather(loser[there]), "times": pl.Series(cells.ravel()[there])
    }  # fmt: skip
    # Rows are winners and losers: of sides nothing is known.
    said: ReadOptions = {
        **options, "user": False, "left": "won", "right": "lost", "weight": "times", "task": False, "side": False,
        "outcome": np.ones(int(there.sum()), dtype=np.int8), "positive": None,
    }  # fmt: skip
    one, other = (winner[there][0], loser[there][0]) if there.any() else (0, 0)
    first = f'"{shown(rows[one])}" won over "{shown(rows[other])}" {cells.ravel()[there][0]:g} times'
    sentence = (
        f"A matrix of wins of {len(rows)} items: the {'row' if row_won else 'column'} won over the "
        f"{'column' if row_won else 'row'}, as in {first}."
    )
    roles = {"right": "", "weight": "", "left": label or "the index"}
    roles |= {f"right {nth}": name for nth, name in enumerate(rows, 1)}
    say: ReadOptions = {} if asked is None else {"positive": asked}  # type: ignore[typeddict-item]
    return Reshaped(
        read, said, roles, (sentence,), (), say, f"a matrix in which the {'row' if row_won else 'column'} won"
    )


def _square(raw: Columns) -> tuple[str, list[str], dict[str, pl.Series]] | None:
    """Name of the column of row names, items in order of the columns, and columns by item, their rows in that order.

    DataError if rows and columns name nearly the same items.
    """
    index = getattr(getattr(raw.table, "to_native", lambda: None)(), "index", None)
    names, n_rows = raw.names, raw.n_rows
    if n_rows < 2 or abs(len(names) - n_rows) > max(2, n_rows // 2):
        return None
    labels = {}
    if index is not None and str(index.dtype) in ("object", "str", "string"):
        labels[""] = [str(name) for name in index]
    text = {name: one for name, one in raw.items() if one.dtype == pl.String}
    labels |= {name: [str(value) for value in one] for name, one in text.items() if one.n_unique() == n_rows}
    for label, rows in labels.items():
        across = [name for name in names if name != label]
        shared = set(rows) & set(across)
        if len(shared) < 2 or 2 * len(shared) <= max(len(rows), len(across)):
            continue
        numeric = {name: raw[name] for name in across}
        for name in shared:  # where an item meets itself there may be a sign
            meets = pl.Series(
                [row == name and not _counts_something(value) for row, value in zip(rows, raw[name], strict=True)]
            )
            numeric[name] = as_text(raw[name]).set(meets, None) if is_plain(raw[name]) else raw[name]
        if not all(holds_numbers(one, least=0.0) for name, one in numeric.items() if name in shared):
            continue
        if set(rows) != set(across):
            raise DataError(
                "the table looks like a matrix of wins, but its rows and columns are not the same items: "
                f"only in rows {listed(sorted(set(rows) - shared))}; only in columns "
                f"{listed(sorted(set(across) - shared))}. Each item needs a row and a column."
            )
        place = [rows.index(name) for name in across]
        return label, across, {name: one.gather(place) for name, one in numeric.items()}
    return None


def _unnamed(raw: Columns) -> tuple[str, list[str], dict[str, pl.Series]] | None:
    """As ``_square``, of rows without names, which are those of the columns: no item won over itself, others did."""
    names = raw.names
    if not 2 < raw.n_rows == len(names) or not all(holds_numbers(raw[name], least=0.0) for name in names):
        return None
    cells = np.nan_to_num([numbers_of(raw[name], name, "count") for name in names])
    counts = (cells == np.round(cells)).all() and cells.any() and not np.diag(cells).any()
    return ("rows in the order of the columns", names, dict(raw)) if counts else None


def _counts_something(value: Any) -> bool:
    try:
        return value is not None and float(value) >= 0.0
    except ValueError:
        return False


def _counts(series: pl.Series, name: str, rows: Sequence[str]) -> np.ndarray[Any, Any]:
    """Counts of a column, NaN where empty; DataError if one is none."""
    count = numbers_of(series, name, "count")
    odd = np.flatnonzero((count != np.round(count)) & ~np.isnan(count))
    if len(odd):
        raise DataError(
            f'a matrix of wins must hold counts, whole numbers from 0; row "{shown(rows[odd[0]])}" has '
            f'{count[odd[0]]:g} in column "{shown(name)}". If it holds shares, multiply them by the number of answers.'
        )
    return count


LOSERS = ("rejected_model", "loser", "rejected", "dispreferred", "worse", "lost")


def _judgements(raw: Columns, options: ReadOptions) -> Reshaped | None:
    """Verdicts of a judge on answers of a model and of the baseline, in both orders, in a list a row."""
    names = raw.names
    games, model = guess_one(names, ("games",)), guess_one(names, ("model", "model_id", "model_name"))
    if games is None or model is None or options.get("left") or options.get("right"):
        return None
    lists = raw[games].to_list()
    if not any(_scores(one) for one in lists):
        return None
    baseline = guess_one(names, ("baseline", "baseline_model", "reference"))
    scores = [_scores(one) for one in lists]
    row = np.repeat(np.arange(len(scores)), [len(one) for one in scores])
    swapped = np.concatenate([np.arange(len(one)) % 2 == 1 for one in scores]) if len(row) else np.zeros(0, dtype=bool)
    others = {name: one.gather(row) for name, one in raw.items() if name != games}
    mine = as_text(others[model])
    theirs = pl.Series(["baseline"] * len(row)) if baseline is None else as_text(others[baseline])
    left = pl.Series(np.where(swapped, mine.to_numpy(), theirs.to_numpy()).tolist(), dtype=pl.String)
    right = pl.Series(np.where(swapped, theirs.to_numpy(), mine.to_numpy()).tolist(), dtype=pl.String)
    read = {name: one for name, one in others.items() if name not in (model, baseline)}
    read |= {"assistant A": left, "assistant B": right, games: pl.Series([label for one in scores for label in one])}
    said: ReadOptions = {**options, "left": "assistant A", "right": "assistant B", "winner": games}
    first = "baseline" if baseline is None else shown(baseline)
    note = f"In the first of the {shown(games)} of a row A is the {first}, in the second the {shown(model)}."
    return Reshaped(read, said, {"left": f"{baseline or 'baseline'} and {model}", "right": ""}, (note,))


def _scores(games: Any) -> list[Any]:
    if not isinstance(games, list | tuple | np.ndarray):
        return []
    return [game.get("score") for game in games if isinstance(game, Mapping) and "score" in game]


def _annotators(raw: Columns, options: ReadOptions) -> Reshaped | None:
    """Answers in one column an annotator, where nothing else tells who answered what; perhaps one names both items."""
    names = raw.names
    number = {name: int(match[1]) for name in names if (match := _ANNOTATOR.fullmatch(name.strip()))}
    each = sorted(number, key=lambda name: (number[name], name))
    given = any(options.get(role) is not None for role in ("user", "winner", "kind", "alternatives"))
    if len(each) < 2 or given or guess_one(names, (*WINNER, *PEOPLE)) is not None:
        return None
    key = None
    if None in guess_pair(names, options.get("left"), options.get("right")):
        key = guess_one(names, BOTH_ITEMS)
        if key is None or options.get("left") or options.get("right"):
            return None
    others = {name: raw[name] for name in names if name not in each}
    place, called = np.arange(raw.n_rows * len(each)), f"{each[0]} to {each[-1]}"
    read = {name: series.gather(place // len(each)) for name, series in others.items()}
    read["annotator"] = pl.Series(each).gather(place % len(each))
    read[called] = _row_by_row([raw[name] for name in each])
    asked = read[called].is_not_null()
    roles = {"user": "", "winner": "", **{f"user and winner {n}": name for n, name in enumerate(each, 1)}}
    said: ReadOptions = {**options, "winner": called}
    if key is not None:
        said |= {"left": key, "right": key}
    return Reshaped({name: series.filter(asked) for name, series in read.items()}, said, roles)


def items_apart(series: pl.Series) -> tuple[pl.Series, pl.Series] | None:
    """The two items that every value of a column names, None if it does not."""
    words = as_text(series)
    first = present(words).head(1)  # which mostly tells that they do not
    for separator in _BETWEEN:
        if (
            all(word.count(separator) == 1 for word in first)
            and (words.str.count_matches(separator, literal=True) == 1).all()
        ):
            parts = words.str.split(separator).list
            return parts.get(0).str.strip_chars(), parts.get(1).str.strip_chars()
    return None


# All columns, those that answer by role, their names by role, and what chooses them where there are several.
_ByRole = tuple[dict[str, pl.Series], dict[str, pl.Series], dict[str, str], ReadOptions]


def _with_design(answers: dict[str, pl.Series], options: ReadOptions) -> Iterator[Reshaped]:
    """Answers joined with what was shown in the tasks that they name, by each way in which columns may answer."""
    design = dict(Columns(open_frame(options["design"])[0]))
    if not design or not len(next(iter(design.values()))):
        raise DataError("the design is empty. Is it the right table?")
    user = options.get("user") if options.get("user") is not None else guess_one(list(answers), PEOPLE_OF_SETS)
    task = _task_of(design)
    keys = _versions(design, answers)
    _refuse_versions_apart(design, answers, [task, *keys.values()])
    free = [name for name in answers if name not in (user, *keys)]
    own_task = options["task"] if options.get("task") in answers else guess_one(free, TASKS)
    if isinstance(own_task, str):
        forms = [_answers_in([name for name in free if name != own_task], answers, options)]
    else:
        own_task, forms = _ASKED, list(_a_row_an_answer(answers, free, design[task], options, user))
    for under, said, roles, say in forms:
        try:
            yield from _joined(under, said, roles, design, {own_task: task, **keys}, options, say, user)
        except DataError as error:
            others = [other for *_, other in forms if other != say]
            if not others:
                raise
            how = [option("winner", one["winner"]) for one in others]
            helps = [(f"Or say what the answers are: {one}.", other) for one, other in zip(how, others, strict=True)]
            raise Unclear(str(error), helps) from error


def _joined(
    answers: dict[str, pl.Series], said: dict[str, pl.Series], roles: dict[str, str], design: dict[str, pl.Series],
    keys: dict[str, str], options: ReadOptions, say: ReadOptions, user: str | bool | None,
) -> Iterator[Reshaped]:  # fmt: skip
    """Answers, ``said`` by role, beside what was shown, under each other or in a list; ``say`` chooses them.

    ``keys``: columns of the design by those of the answers that hold the same, the task first.
    """
    there = ~np.logical_and.reduce([one.is_null().to_numpy() for one in said.values()])
    notes = [] if there.all() else [f"{counted(int((~there).sum()), 'question')} not answered."]
    if user is None and _PERSON in answers:
        user = _PERSON
        notes.insert(0, "Each row of answers is taken for one person, as no column says who answered.")
    answers = {name: one.filter(pl.Series(there)) for name, one in answers.items()}
    said = {role: one.filter(pl.Series(there)) for role, one in said.items()}
    row, place = _rows_of_design(answers, design, keys)
    alone = len(np.unique(row)) == len(row)
    if not alone and any((_key(one) == options.get("none", NONE)).any() for one in said.values()):
        # None of these is one more alternative of every task.
        row, place = np.append(row, np.unique(row)), np.append(place, np.full(len(np.unique(row)), -1))
    beside = {name: one for name, one in design.items() if name not in keys.values()}
    columns = {name: one for name, one in answers.items() if name not in (*keys, *roles.values(), *beside)}
    columns = {name: one.gather(row) for name, one in columns.items()}
    at = pl.Series(place).set(pl.Series(place < 0), None)
    shown_by = {name: one.gather(at) for name, one in beside.items()}
    read: ReadOptions = {**options, "user": user, "design": None, "winner": _CHOICE if "winner" in said else None}
    read["task"] = False if alone else _ROW
    sentence = f"answers in {listed(list(roles.values()))}"
    roles = {**roles, "task": next(iter(keys.values()))}
    if alone:
        columns |= _lists_of(shown_by)
        columns |= {(_CHOICE if role == "winner" else role): one.gather(row) for role, one in said.items()}
        yield Reshaped(columns, read, roles, tuple(notes), say=say, what=sentence)
        return
    ways = _marked(shown_by, said, row, read)
    for name, marked in ways.items():
        how: ReadOptions = {**say, "alternatives": name} if len(ways) > 1 else say
        if read.get("alternatives") not in marked:  # a number that stands beside names
            read["alternatives"] = None
        what = f'{sentence} by "{shown(name)}"'
        yield Reshaped({**columns, **marked}, read, roles, tuple(notes), say=how, what=what)


def _task_of(design: Mapping[str, pl.Series]) -> str:
    """The column of the design that numbers tasks; DataError without one."""
    found = guess_one(list(design), (*TASKS, "q")) or next(
        (name for name, one in design.items() if numbers_rows(one)), None
    )
    if found is None:
        raise DataError(
            f"the design has no column that numbers its tasks; its columns are {listed(list(design))}. Call it task."
        )
    return found


def _versions(design: Mapping[str, pl.Series], answers: Mapping[str, pl.Series]) -> dict[str, str]:
    """Column of the version of the design in the answers, and in the design; none where there is one version."""
    in_design, in_answers = guess_one(list(design), VERSION), guess_one(list(answers), VERSION)
    if in_design is None or (in_answers is None and design[in_design].n_unique() == 1):
        return {}
    if in_answers is None:
        raise DataError(
            f'the design has {design[in_design].n_unique()} versions (column "{shown(in_design)}"), and no column of '
            f"the answers says which one somebody saw; the columns are {listed(list(answers))}. Call it "
            f"{shown(in_design)}."
        )
    return {in_answers: in_design}


def _refuse_versions_apart(
    design: Mapping[str, pl.Series], answers: Mapping[str, pl.Series], keys: Sequence[str]
) -> None:
    """DataError where a task of the design holds an alternative several times, as where versions are not told apart."""
    place = guess_one([name for name in design if name not in keys], (*PLACED, *IDENTIFIED))
    if place is None:
        return
    known = pl.DataFrame({name: _key(design[name]) for name in (*keys, place)})
    twice = known.is_duplicated()
    if not twice.any():
        return
    first = int(twice.arg_max() or 0)
    times = known.filter(*(pl.col(name).eq_missing(pl.lit(known[name][first])) for name in known.columns)).height
    others = [name for name in design if name not in known.columns]
    telling = [name for name in others if not known.with_columns(_key(design[name]).alias(name)).is_duplicated().any()]
    questions = {*keys, guess_one(list(answers), CHOSEN)}
    asked = [name for name in answers if name not in questions and not name.strip()[-1:].isdigit()]
    values = {name: set(_key(answers[name]).drop_nulls()) for name in asked}
    like = [(name, own) for name in telling for own in asked if values[own] == set(_key(design[name]).drop_nulls())]
    how = f"the columns of the design are {listed(list(design))}, those of the answers {listed(list(answers))}"
    if len(like) == 1:
        how = f'it may be "{shown(like[0][0])}" of the design and "{shown(like[0][1])}" of the answers'
    which = ", ".join(f"{shown(name)} {shown(known[name][first])}" for name in known.columns)
    raise DataError(
        f"the design has {times} rows for one alternative ({which}), so that it seems to have several versions, and no "
        f"column says which version somebody saw: {how}. Give that column one name in both, such as version."
    )


def _answers_in(
    names: Sequence[str], answers: dict[str, pl.Series], options: ReadOptions
) -> _ByRole:  # fmt: skip
    """Answers of one row each; DataError without any."""
    winner, ends = options.get("winner"), best_and_worst(names)
    if winner is None and ends is not None:
        roles = {"best": ends[0], "worst": ends[1]}
    elif (found := winner or guess_one(names, CHOSEN)) is not None:
        roles = {"winner": found}
    else:
        raise _no_answers(names)
    return answers, {role: answers[name] for role, name in roles.items()}, roles, {}


def _no_answers(names: Sequence[str]) -> DataError:
    return DataError(
        "found no column of the answers that a design belongs to: one of the task and one of the choice, or one for "
        f"each task, such as q1, q2 ...; the columns are {listed(names)}. Name the choice with "
        f"{option('winner', 'NAME')}."
    )


def _a_row_an_answer(
    answers: dict[str, pl.Series], names: Sequence[str], tasks: pl.Series, options: ReadOptions,
    user: str | bool | None,
) -> Iterator[_ByRole]:  # fmt: skip
    """Answers that stand in a column a task, under each other: by each family of columns that may hold them.

    Without a column of the ``user`` each row was one person.
    """
    known = set(_key(tasks).drop_nulls().unique())
    families: dict[str, dict[str, str]] = {}
    for name in names:
        if name in known:
            families.setdefault("", {})[name] = name
        elif match := re.fullmatch(r"(.*?)[_. ]?0*(\d+)[_. ]?(best|worst|most|least|b|w)?", name.strip(), re.I):
            families.setdefault((match[3] or match[1]).lower(), {})[match[2]] = name
    families = {stem: by for stem, by in families.items() if len(by) > 1 and set(by) <= known}
    winner = options.get("winner")
    if winner is not None:
        families = {stem: by for stem, by in families.items() if stem == str(winner).lower() or winner in by.values()}
    ends = [next((stem for stem in families if stem.strip("_. ") in words), None) for words in (_BEST, _WORST)]
    ways = [{"winner": by} for by in families.values()]
    if None not in ends and families[str(ends[0])].keys() == families[str(ends[1])].keys():
        ways = [{"best": families[str(ends[0])], "worst": families[str(ends[1])]}]
    if not ways:
        raise _no_answers(names)
    for chosen in ways:
        order = list(next(iter(chosen.values())))
        n = len(answers[next(iter(answers))])
        row = np.repeat(np.arange(n), len(order))
        used = {name for by in chosen.values() for name in by.values()}
        under = {name: one.gather(row) for name, one in answers.items() if name not in used}
        said = {role: _row_by_row([answers[by[key]] for key in order]) for role, by in chosen.items()}
        roles = {role: f"{by[order[0]]} to {by[order[-1]]}" for role, by in chosen.items()}
        say: ReadOptions = {"winner": chosen["winner"][order[0]]} if len(ways) > 1 else {}
        numbered = {_ASKED: pl.Series(order * n), **({_PERSON: pl.Series(row)} if user is None else {})}
        yield {**under, **numbered}, said, roles, say


def _row_by_row(columns: Sequence[pl.Series]) -> pl.Series:
    """Values of columns as text, those of one row after those of the other."""
    order = np.arange(len(columns) * len(columns[0])).reshape(len(columns), -1).T.ravel()
    return pl.concat([as_text(column).alias("") for column in columns]).gather(order)


def _key(series: pl.Series) -> pl.Series:
    """Values as they are compared: numbers without leading zeros and a point."""
    word = words_of(series)
    number = word.str.contains(r"^\d{1,18}$").fill_null(False)
    return word.cast(pl.Int64, strict=False).cast(pl.String).zip_with(number, word)


def _rows_of_design(
    answers: Mapping[str, pl.Series], design: Mapping[str, pl.Series], keys: Mapping[str, str]
) -> tuple[IntArray, IntArray]:
    """Rows of answers and of the design that belong together; DataError for an answer to what the design lacks."""

    def key(columns: Mapping[str, pl.Series], names: Sequence[str], row: str) -> pl.DataFrame:
        return pl.DataFrame({f"key {k}": _key(columns[name]) for k, name in enumerate(names)}).with_row_index(row)

    one, other = key(answers, list(keys), "row"), key(design, list(keys.values()), "place")
    on = [name for name in one.columns if name != "row"]
    both = one.join(other, on=on, how="left").sort("row", "place")
    lost = both.filter(pl.col("place").is_null())
    if len(lost):
        first = lost.row(0, named=True)
        which = ", ".join(f"{shown(name)} {shown(first[k])}" for name, k in zip(keys, on, strict=True))
        raise DataError(
            f"{counted(len(lost), 'answer')} belong to no task of the design (first: {which}). Is it the design that "
            "was shown?"
        )
    return both["row"].to_numpy().astype(np.int64), both["place"].to_numpy().astype(np.int64)


def _lists_of(columns: dict[str, pl.Series]) -> dict[str, pl.Series]:
    """What was shown, as a list a row, where a column an item says by one of two numbers whether it was."""
    words = {word for one in columns.values() for word in as_text(one).str.strip_suffix(".0").drop_nulls().unique()}
    if len(columns) < 3 or words not in ({"0", "1"}, {"1", "2"}):
        return columns
    held = np.stack(
        [(as_text(one).str.strip_suffix(".0") == max(words)).to_numpy() for one in columns.values()], axis=1
    )
    names = np.array(list(columns), dtype=object)
    return {"alternatives": pl.Series([names[row].tolist() for row in held])}


def _marked(
    shown_by: dict[str, pl.Series], said: Mapping[str, pl.Series], row: IntArray, options: ReadOptions
) -> dict[str, dict[str, pl.Series]]:
    """Alternatives under each other, with 1 where an answer names one: by each column that tells it otherwise.

    They may be named by an id, or by a number.
    """
    named, none = options.get("alternatives"), options.get("none", NONE)
    by_name = guess_one(list(shown_by), (*IDENTIFIED, *PLACED))
    counting = [name for name, one in shown_by.items() if counts_within(one, np.unique(row, return_inverse=True)[1])]
    tried = [named] if isinstance(named, str) and named in shown_by else [by_name, *counting]
    tried = list(dict.fromkeys(name for name in tried if name is not None))
    if not tried:
        raise DataError(
            "the design has several rows a task, and no column that names or numbers the alternatives of a task; its "
            f"columns are {listed(list(shown_by))}. Name it with {option('alternatives', 'NAME')}."
        )
    word = {role: _key(one) for role, one in said.items()}
    found: dict[str, dict[str, pl.Series]] = {}
    lost: dict[str, list[str]] = {}
    for name in tried:
        own = _key(shown_by[name]).fill_null(str(none))
        found[name] = {role: (own == one.gather(row)).fill_null(False) for role, one in word.items()}
        lost[name] = []
        for role, flag in found[name].items():
            without = np.setdiff1d(np.arange(len(word[role])), row[flag.to_numpy()])
            lost[name] += word[role].gather(without).drop_nulls().to_list()
    fit = [name for name in tried if not lost[name]]
    if not fit and not options.get("drop_unknown"):
        name = min(tried, key=lambda one: len(lost[one]))
        odd = shown(lost[name][0])
        near = did_you_mean(odd, as_text(shown_by[name]).unique().drop_nulls().sort())
        raise DataError(
            f'{counted(len(lost[name]), "answer")} name no alternative of their task (first: "{odd}"): column '
            f'"{shown(name)}" of the design must hold it.{near} If it is the choice of none of them, say '
            f"{option('none', lost[name][0])}."
        )
    fit = fit or tried[:1]
    drop = [name for name in fit if name != by_name and by_name is not None and name in counting]
    columns = {name: one for name, one in shown_by.items() if name not in drop}
    ways: dict[str, dict[str, pl.Series]] = {}
    for name in fit:
        marks = {(_CHOICE if role == "winner" else role): flag.cast(pl.Int8) for role, flag in found[name].items()}
        if any(all(flag.equals(way[role]) for role, flag in marks.items()) for way in ways.values()):
            continue
        own_name, beside = by_name if by_name in columns else name, {**columns}
        if shown_by[name].null_count():
            beside[own_name] = as_text(beside[own_name]).fill_null(str(none))
        ways[name] = {**beside, **marks, _ROW: pl.Series(row)}
    return ways
