"""Answers and what was shown in two tables: a design of tasks, and answers that refer to them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from predilect._text import did_you_mean, shown
from predilect._types import IntArray
from predilect.data.frames import as_text, column_names, open_frame, to_columns
from predilect.data.intake import counted
from predilect.data.read.columns import listed
from predilect.data.read.names import CHOSEN, IDENTIFIED, PEOPLE_OF_SETS, PLACED, TASKS, guess_one
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.profiles import NONE, counts_within, numbers_rows
from predilect.data.read.set_columns import best_and_worst, words_of
from predilect.errors import DataError

VERSION = ("version", "block", "ver", "vers", "blk", "questionnaire", "form")
_BEST, _WORST = ("best", "most", "b"), ("worst", "least", "w")
_ROW, _ASKED, _CHOICE = "number of the answer", "question", "answer to the design"


def with_design(
    answers: dict[str, pl.Series], options: ReadOptions
) -> tuple[dict[str, pl.Series], ReadOptions, dict[str, str], tuple[str, ...]]:
    """Answers joined with what was shown, under each other or beside them, options, columns by role, and notes."""
    frame, _ = open_frame(options["design"])
    design = to_columns(frame, column_names(frame))
    if not design or not len(next(iter(design.values()))):
        raise DataError("the design is empty. Is it the right table?")
    user = options.get("user") if options.get("user") is not None else guess_one(list(answers), PEOPLE_OF_SETS)
    task = _task_of(design)
    keys = _versions(design, answers)
    free = [name for name in answers if name not in (user, *keys)]
    own_task = options["task"] if options.get("task") in answers else guess_one(free, TASKS)
    notes: list[str] = []
    if isinstance(own_task, str):
        said = _answers_in([name for name in free if name != own_task], answers, options)
        roles = {role: column.name for role, column in said.items()}
    else:
        answers, said, roles = _a_row_an_answer(answers, free, design[task], options)
        own_task = _ASKED
        if user is None:  # each row was one person
            user = "respondent"
            notes.append("Each row of answers is taken for one person, as no column says who answered.")
            answers = {**answers, user: answers[_ROW]}
    there = ~np.logical_and.reduce([one.is_null().to_numpy() for one in said.values()])
    if not there.all():
        notes.append(f"{counted(int((~there).sum()), 'question')} not answered.")
    answers = {name: one.filter(pl.Series(there)) for name, one in answers.items() if name != _ROW}
    said = {role: one.filter(pl.Series(there)) for role, one in said.items()}
    row, place = _joined(answers, design, {own_task: task, **keys})
    alone = len(np.unique(row)) == len(row)
    if not alone and any((_key(one) == options.get("none", NONE)).any() for one in said.values()):
        # None of these is one more alternative of every task.
        row, place = np.append(row, np.unique(row)), np.append(place, np.full(len(np.unique(row)), -1))
    beside = {name: one for name, one in design.items() if name not in (task, *keys.values())}
    columns = {name: one for name, one in answers.items() if name not in (own_task, *keys, *roles.values(), *beside)}
    columns = {name: one.gather(row) for name, one in columns.items()}
    at = pl.Series(place).set(pl.Series(place < 0), None)
    shown_by = {name: one.gather(at) for name, one in beside.items()}
    read: ReadOptions = {**options, "user": user, "design": None, "winner": None}
    if "winner" in said:
        read["winner"] = _CHOICE
    if alone:
        read["task"] = False
        columns |= _lists_of(shown_by)
        columns |= {(_CHOICE if role == "winner" else role): one.gather(row) for role, one in said.items()}
    else:
        read["task"] = _ROW
        columns |= _marked(shown_by, said, row, options)
    return columns, read, {**roles, "task": task}, tuple(notes)


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


def _answers_in(
    names: Sequence[str], answers: Mapping[str, pl.Series], options: ReadOptions
) -> dict[str, pl.Series]:  # fmt: skip
    """Columns of the answers by role, one row each; DataError without any."""
    winner, ends = options.get("winner"), best_and_worst(names)
    if winner is None and ends is not None:
        return {"best": answers[ends[0]], "worst": answers[ends[1]]}
    found = winner or guess_one(names, CHOSEN)
    if found is None:
        raise _no_answers(names)
    return {"winner": answers[found]}


def _no_answers(names: Sequence[str]) -> DataError:
    return DataError(
        "found no column of the answers that a design belongs to: one of the task and one of the choice, or one for "
        f"each task, such as q1, q2 ...; the columns are {listed(names)}. Name the choice with "
        f"{option('winner', 'NAME')}."
    )


def _a_row_an_answer(
    answers: dict[str, pl.Series], names: Sequence[str], tasks: pl.Series, options: ReadOptions
) -> tuple[dict[str, pl.Series], dict[str, pl.Series], dict[str, str]]:  # fmt: skip
    """Answers that stand in a column a task, under each other: all columns, those of the answers, and their names."""
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
    if None not in ends and families[str(ends[0])].keys() == families[str(ends[1])].keys():
        chosen = {"best": families[str(ends[0])], "worst": families[str(ends[1])]}
    elif len(families) == 1:
        chosen = {"winner": next(iter(families.values()))}
    elif not families:
        raise _no_answers(names)
    else:
        told = "; ".join(f"{next(iter(by.values()))} to {list(by.values())[-1]}" for by in families.values())
        raise DataError(
            f"several columns could hold the answers to the tasks of the design: {told}. Say which: "
            f"{option('winner', next(iter(next(iter(families.values())).values())))}."
        )
    order = list(next(iter(chosen.values())))
    n = len(answers[next(iter(answers))])
    row = np.repeat(np.arange(n), len(order))
    used = {name for by in chosen.values() for name in by.values()}
    under = {name: one.gather(row) for name, one in answers.items() if name not in used}
    said = {}
    for role, by in chosen.items():
        words = pl.DataFrame({by[key]: as_text(answers[by[key]]) for key in order})
        said[role] = pl.Series(words.to_numpy().ravel().tolist(), dtype=pl.String)
    roles = {role: f"{by[order[0]]} to {by[order[-1]]}" for role, by in chosen.items()}
    return {**under, _ASKED: pl.Series(order * n), _ROW: pl.Series(row)}, said, roles


def _key(series: pl.Series) -> pl.Series:
    """Values as they are compared: numbers without leading zeros and a point."""
    word = words_of(series)
    number = word.str.contains(r"^\d{1,18}$").fill_null(False)
    return word.cast(pl.Int64, strict=False).cast(pl.String).zip_with(number, word)


def _joined(
    answers: Mapping[str, pl.Series], design: Mapping[str, pl.Series], keys: Mapping[str, str]
) -> tuple[IntArray, IntArray]:
    """Rows of answers and of the design that belong together; DataError for an answer to what the design lacks."""

    def key(columns: Mapping[str, pl.Series], names: Sequence[str], row: str) -> pl.DataFrame:
        return pl.DataFrame({f"key {k}": _key(columns[name]) for k, name in enumerate(names)}).with_row_index(row)

    one, other = key(answers, list(keys), "row"), key(design, list(keys.values()), "place")
    on = [name for name in one.columns if name != "row"]
    lost = one.join(other, on=on, how="anti")
    if len(lost):
        first = lost.row(0, named=True)
        told = ", ".join(f"{shown(name)} {shown(first[k])}" for name, k in zip(keys, on, strict=True))
        raise DataError(
            f"{counted(len(lost), 'answer')} belong to no task of the design (first: {told}). Is it the design that "
            "was shown?"
        )
    both = one.join(other, on=on).sort("row", "place")
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
) -> dict[str, pl.Series]:
    """Alternatives under each other, with 1 where an answer names one, by its name or its number."""
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
    if any(not flag.equals(found[fit[0]][role]) for name in fit[1:] for role, flag in found[name].items()):
        raise DataError(
            f"the answers may be values of the columns {listed(fit)} of the design, which differ. Say which: "
            f"{option('alternatives', fit[0])} or {option('alternatives', fit[1])}."
        )
    drop = [name for name in fit if name != by_name and by_name is not None and name in counting]
    columns = {name: one for name, one in shown_by.items() if name not in drop}
    own_name = by_name if by_name in columns else fit[0]
    if shown_by[fit[0]].null_count():
        columns[own_name] = as_text(columns[own_name]).fill_null(str(none))
    marks = {(_CHOICE if role == "winner" else role): flag.cast(pl.Int8) for role, flag in found[fit[0]].items()}
    return {**columns, **marks, _ROW: pl.Series(row)}
