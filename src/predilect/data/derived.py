"""What is made of comparisons: columns of a frame, rows split by side, grades among other names, all but a person."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect.data.canonical import ALONE, canonical_answers
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

if TYPE_CHECKING:
    from predilect.data.comparisons import Comparisons

SIDE = "side"  # the covariate that Comparisons.with_side makes
_DUST = 1e-9  # relative: sums of weights carry rounding errors


def frame_columns(answers: Comparisons) -> dict[str, Any]:
    """Columns of ``Comparisons.to_frame``."""
    columns: dict[str, Any] = {"user": answers.users.labels(answers.user)} if answers.has_users else {}
    words = np.array(["right", "tie", "left"], dtype=object)
    columns |= {
        "left": answers.items.labels(answers.left),
        "right": answers.items.labels(answers.right),
        "winner": words[answers.outcome + 1],
        "outcome": answers.outcome.astype(np.int64),
        "weight": answers.weight,
    }
    if answers.task is not None:
        columns["task"] = pl.Series(answers.task, dtype=pl.Int64).set(pl.Series(answers.task == ALONE), None)
    if answers.covariates is not None:
        columns |= dict(zip(answers.covariate_names, answers.covariates.T, strict=True))
    if answers.sides is not None:
        columns["shown_left"] = answers.sides[:, 0]
    if answers.context is not None and answers.contexts is not None:
        place = pl.Series(answers.context, dtype=pl.Int64).set(pl.Series(answers.context == ALONE), None)
        columns["context"] = answers.contexts.series().gather(place)
    if answers.grade is not None:
        columns["grade"] = [answers.grades[number - 1] if number else None for number in answers.grade.tolist()]
        columns["outcome"] *= np.maximum(answers.grade, 1)
    return columns


def split_by_side(answers: Comparisons) -> Comparisons:
    """As ``Comparisons.with_side``."""
    if SIDE in answers.covariate_names:
        raise DataError(f'there is a covariate called "{SIDE}" already; rename it, or read with side=False.')
    shown = np.zeros((answers.n_rows, 2)) if answers.sides is None else answers.sides
    rest = answers.weight - shown.sum(axis=1)
    parts = np.column_stack([shown, np.where(rest > _DUST * answers.weight, rest, 0.0)])
    row, which = np.nonzero(parts)
    side = np.array([1.0, -1.0, 0.0])[which]
    before = np.zeros((answers.n_rows, 0)) if answers.covariates is None else answers.covariates
    rows = answers._answers()._replace(sides=None)
    split = rows.at(row)._replace(weight=parts[row, which], covariates=np.column_stack([before[row], side]))
    names = (*answers.covariate_names, SIDE)
    return replace(answers, covariate_names=names, **canonical_answers(split)._asdict())


def grade_in(answers: Comparisons, grades: tuple[str, ...]) -> NDArray[np.int8]:
    """Grades of the rows among other names, 0 where theirs is none of them; (n_rows,)."""
    if answers.grade is None:
        return np.zeros(answers.n_rows, dtype=np.int8)
    place = [0, *(1 + grades.index(name) if name in grades else 0 for name in answers.grades)]
    return np.array(place, dtype=np.int8)[answers.grade]


def without_person(answers: Comparisons, user: Any) -> Comparisons:
    """The answers without all that is of one person: rows, id, and contexts that nobody else answered in."""
    gone = answers.users.code(user)
    rows = answers.take(answers.user != gone)
    unused = tuple(one for one in rows.intake.unused_users if str(one) != str(user))
    changed: dict[str, Any] = {"intake": replace(rows.intake, unused_users=unused)}
    if gone >= 0:
        changed |= {
            "users": Vocabulary(rows.users.series().filter(np.arange(rows.n_users) != gone)),
            "user": rows.user - (rows.user > gone),
        }
    if rows.context is not None and rows.contexts is not None:
        used, context = np.unique(rows.context, return_inverse=True)
        alone = int((used == ALONE).any())
        changed |= {"contexts": Vocabulary(rows.contexts.labels(used[alone:])), "context": context - alone}
    return replace(rows, **changed)
