"""Answers to add or remove, in the codes of a fitted model, and the log of all of them."""

from __future__ import annotations

import warnings
from array import array
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.arguments import check_positive
from predilect._base.text import did_you_mean, quoted, setting
from predilect._base.types import IntArray
from predilect.data import Comparisons
from predilect.data.comparisons import SIDE, joint_rows
from predilect.data.keyed_rows import DUST, Rows, copies_in_one, copies_of_sides, keys_of, sides_of
from predilect.data.orders import as_orders
from predilect.data.read.names import TIE_WORDS
from predilect.data.vocabulary import EVERYONE
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.models.reading import Said, covariates_of, read_answers

_JOIN = (
    "An item joins by update(..., items=[...]), or at a refit: fit() on all answers. To predict for an item before, "
    "give its features to predict_proba(..., items=...)"
)


class Batch(NamedTuple):
    """Answers in the codes of a model, in order."""

    rows: Rows  # users from the number of known ones on are new; 0 where users are not identified
    new: list[Any]  # ids of new people, in the order of their codes
    names: list[Any]  # who answered, row by row; empty where users are not identified
    effects: CovariateEffects | None = None  # the model's, with the patterns of these answers
    left_out: tuple[dict[str, Any], ...] = ()  # rows that the model cannot take

    def describe(self, model: Any, row: int) -> str:
        """One of the answers in words."""
        left, right, outcome, _ = (int(side[0]) for side in sides_of(self.rows.key[row : row + 1]))
        grades = model.grades_
        first, second = model.items_.ids[left], model.items_.ids[right]
        if outcome == 0:
            what = f"a tie of {first!r} and {second!r}"
        else:
            first, second = (first, second) if outcome > 0 else (second, first)
            what = f"{first!r} over {second!r}"
            what += f" by grade {grades[abs(outcome) - 2]}" if abs(outcome) > 1 else ""
        return f"{self.names[row]!r}: {what}" if self.names else what


def read_batch(
    model: Any, more: Any, y: npt.ArrayLike | None, said: tuple[Said, Said] = (None, None), *, weight: float,
    may_add: bool, **answer: Any,
) -> Batch:  # fmt: skip
    """Answers of a frame or Comparisons, or one ``answer`` of scalars, as :meth:`~predilect.Population.update` takes.

    ``said``: columns of the frame, and how they are read.

    Raises DataError if an item, or a person who may not be new (``may_add``), is not known; if something is missing or
    said twice.
    """
    if more is None:
        if y is not None or said != (None, None):
            what = "y holds the outcomes" if y is not None else "columns and reading are"
            raise DataError(f"{what} of a frame, but there is no frame. Give one answer with outcome=...")
        return _one(model, weight, may_add, **answer)
    if any(value is not None for value in answer.values()):
        raise DataError("give either a frame of answers, or one answer as user=, left=, right=, outcome=; not both")
    return _many(model, more, y, said, may_add)


def _one(
    model: Any, weight: Any, may_add: bool, *, user: Any, left: Any, right: Any, outcome: Any, winner: Any
) -> Batch:
    items, users = model.items_, model.users_
    a, b = items.code(left), items.code(right)
    if a < 0 or b < 0:
        side, value = ("left", left) if a < 0 else ("right", right)
        if value is None:
            raise DataError(
                f"{side} is missing. Give answers as a frame, or one answer: left=, right=, outcome= (1, 0 or -1) or "
                'winner= (an item, or "tie")' + (", and user=" if users is not None else "")
            )
        raise DataError(
            f"{side}={quoted(value)} is not one of the {len(items)} items of the model."
            f"{did_you_mean(value, items)} {_JOIN}"
        )
    if a == b:
        raise DataError(f"left and right are the same item, {quoted(left)}; a comparison needs two")
    thresholds = model.posterior_.thresholds
    y = _outcome(items, a, b, outcome, winner, () if thresholds is None else thresholds.names)
    check_positive("weight, which counts identical answers,", weight)
    count = float(weight)
    new: list[Any] = []
    names: list[Any] = []
    code = 0
    if users is not None:
        if user is None:
            raise DataError("the model tells people apart: say who answered, user=...")
        own = users.own(user)
        if own is None:
            kind = "whole numbers" if users.is_integer else "text or whole numbers"
            raise DataError(f"user={quoted(user)} cannot be an id here: the ids of the model's people are {kind}")
        code, names = _code_of(model, user, own, new, may_add), [own]
    shown = 1.0 if a < b else -1.0
    if a > b:
        a, b, y = b, a, -y
    effects, variant = model.posterior_.covariates, 0
    if effects is not None:
        x = np.array([[shown if name == SIDE else 0.0 for name in effects.names]])
        effects, (variant,) = effects.with_patterns(x / effects.scale)
    key = keys_of(np.array([a]), np.array([b]), np.array([y]), variant)
    return Batch(Rows.new(np.array([code]), key, np.array([count])), new, names, effects)


def _outcome(items: Any, a: int, b: int, outcome: Any, winner: Any, grades: tuple[str, ...]) -> int:
    """Code of one answer."""
    from predilect.data.read.winners import numbers_of

    if winner is None and outcome is None:
        raise DataError(
            "neither outcome nor winner says what was answered: give outcome= (1, 0 or -1), or winner= (an item, or "
            '"tie"). None is no answer'
        )
    if winner is None:
        numbers = numbers_of(grades)
        if isinstance(outcome, bool) or outcome not in numbers:
            by_grade = f", or a grade, one of {', '.join(map(str, numbers))}" if grades else ""
            raise DataError(
                f"outcome must be 1 (left is better), 0 (a tie) or -1 (right){by_grade}, got {quoted(outcome)}"
            )
        return numbers[outcome]
    if outcome is not None:
        raise DataError("give either outcome or winner, not both")
    code = items.code(winner)
    if code in (a, b):
        return 1 if code == a else -1
    if isinstance(winner, str) and winner.strip().lower() in TIE_WORDS:
        return 0
    raise DataError(
        f"winner={quoted(winner)} is neither the left item, {items.ids[a]!r}, nor the right one, {items.ids[b]!r}, nor "
        f'a word for a tie, such as "tie".{did_you_mean(winner, (items.ids[a], items.ids[b], "tie"))}'
    )


def _many(model: Any, more: Any, y: npt.ArrayLike | None, said: tuple[Said, Said], may_add: bool) -> Batch:
    effects, names_of_covariates = model.posterior_.covariates, model._covariate_names()
    answers = read_answers(
        more, y, with_ties=model.tie_threshold_ > 0.0, covariates=names_of_covariates, grades=model.grades_,
        columns=said[0], reading=said[1],
    )  # fmt: skip
    answers = as_orders(answers) if model._likelihood.has_normal_noise else answers.by_pairs()
    _refuse_other_covariates(answers, names_of_covariates)
    code = model.items_.codes(answers.items.series(), unknown="minus_one")
    left_out: tuple[dict[str, Any], ...] = ()
    if may_add:
        answers, left_out = _without_unknown(model, answers, code)
    lost = (code[answers.left] < 0) | (code[answers.right] < 0)
    if lost.any():
        unknown = np.union1d(answers.left[lost], answers.right[lost])
        unknown = unknown[code[unknown] < 0]
        row = int(np.argmax(lost))
        which = answers.items.ids[answers.left[row] if code[answers.left[row]] < 0 else answers.right[row]]
        raise DataError(
            f"{len(unknown)} of the items in these answers are not known to the model (first: {which!r})."
            f"{did_you_mean(which, model.items_)} {_JOIN}"
        )
    rows, effects = keyed(_with_grades(answers, model.grades_), model.posterior_.covariates, code)
    new: list[Any] = []
    if model.users_ is None:
        return Batch(rows.of_user(0).merged(), new, [], effects, left_out)
    if not answers.has_users:
        raise DataError("the model tells people apart, but these answers do not say who gave them. Add a column user")
    rows = rows._replace(user=_codes_of_people(model, answers, new, may_add)[answers.user].astype(np.int64)).merged()
    return Batch(rows, new, names_of(model, rows.user, new), effects, left_out)


def names_of(model: Any, users: IntArray, new: list[Any]) -> list[Any]:
    """Ids of ``users``, by code; codes of ``new`` people follow on those of the model's."""
    known, n = model.users_.ids, len(model.users_)
    later = [*model._added_users, *new]
    return [known[user] if user < n else later[user - n] for user in users.tolist()]


def keyed(
    answers: Comparisons, effects: CovariateEffects | None, code: npt.NDArray[np.int32] | None = None
) -> tuple[Rows, CovariateEffects | None]:
    """Rows of answers as they stand, and the effects of covariates with the patterns of these answers.

    ``code`` of each item, by default its own.
    """
    left, right = (side if code is None else code[side] for side in (answers.left, answers.right))
    variant: IntArray | int = 0
    if effects is not None:
        x = covariates_of(answers, effects.names)
        x[left > right] *= -1.0
        effects, variant = effects.with_patterns(x / effects.scale)
    up, outcome = left <= right, answers.code
    key = keys_of(np.minimum(left, right), np.maximum(left, right), np.where(up, outcome, -outcome), variant)
    copies = None
    if answers.copies is not None:
        one, other = answers.copies.T
        copies = copies_in_one(np.where(up, one, other), np.where(up, other, one))
    task = joint_rows(answers).astype(np.int64)
    return Rows.new(answers.user.astype(np.int64), key, answers.weight, copies, task), effects


def _without_unknown(
    model: Any, answers: Comparisons, code: npt.NDArray[np.int32]
) -> tuple[Comparisons, tuple[dict[str, Any], ...]]:
    """Answers that the model can take, and the rows that it cannot; a task is one answer. With a warning."""
    lost = (code[answers.left] < 0) | (code[answers.right] < 0)
    ties = (answers.outcome == 0) & (model.tie_threshold_ == 0.0) & ~lost
    out, task = lost | ties, joint_rows(answers)
    if not out.any():
        return answers, ()
    out |= (task >= 0) & np.isin(task, task[out & (task >= 0)])
    rows = np.flatnonzero(out)
    ids, people = answers.items.ids, answers.users.ids
    said = tuple(
        {
            "user": people[answers.user[row]] if answers.has_users else None, "left": ids[answers.left[row]],
            "right": ids[answers.right[row]], "outcome": int(answers.outcome[row]),
            "weight": float(answers.weight[row]), "why": "tie" if ties[row] else "item",
        }
        for row in rows.tolist()
    )  # fmt: skip
    unknown = [ids[one] for one in np.union1d(answers.left[lost], answers.right[lost]).tolist() if code[one] < 0]
    why = []
    if unknown:
        why.append(
            f"{len(unknown)} of the items are not known to the model (first: {unknown[0]!r})."
            f"{did_you_mean(unknown[0], model.items_)} {_JOIN}"
        )
    if ties.any():
        first = said[rows.tolist().index(int(np.argmax(ties)))]
        why.append(
            f"{int(ties.sum())} are ties (first: {first['left']!r} and {first['right']!r}), but the model was fitted "
            f"without ties and holds them impossible. Fit again on answers with ties, or with {setting('ties', True)}"
        )
    warnings.warn(
        f"{len(rows)} of {answers.n_rows} rows were left out: {'. '.join(why)}", DataWarning, stacklevel=7
    )  # fmt: skip
    return answers.take(~out), said


def _with_grades(answers: Comparisons, grades: tuple[str, ...]) -> Comparisons:
    """Answers with the grades of a model, or none; DataError for one that it does not know."""
    strange = [name for name in answers.with_used_grades(1).grades if name not in grades] if grades else []
    if strange:
        raise DataError(f"the model has no grade called {strange[0]!r}: its grades are {', '.join(grades)}")
    return answers.with_grades(grades)


def _refuse_other_covariates(answers: Comparisons, names: tuple[str, ...]) -> None:
    """DataError for covariates that only the answers have."""
    wanted, given = set(names) - {SIDE}, set(answers.covariate_names) - {SIDE}
    if given - wanted:
        listed = [", ".join(sorted(one)) or "none" for one in (wanted, given)]
        raise DataError(f"the model has the covariates of answers {listed[0]}, and these answers have {listed[1]}")


def _codes_of_people(model: Any, answers: Any, new: list[Any], may_add: bool) -> npt.NDArray[np.int32]:
    """Code of everybody in the vocabulary of the answers; the new people among those who answered join ``new``."""
    users = model.users_
    code: npt.NDArray[np.int32] = users.codes(answers.users.series(), unknown="minus_one", what="user")
    answered = np.bincount(answers.user, minlength=len(code)) > 0
    for place in np.flatnonzero((code < 0) & answered).tolist():
        value = answers.users.ids[place]
        own = users.own(value)
        if own is None:
            raise DataError(
                f"the people of the model have ids that are whole numbers, such as {users.ids[0]}, but one of the new "
                f"ids is {quoted(value)}. Ids must be all text or all whole numbers"
            )
        code[place] = _code_of(model, value, own, new, may_add)
    return code


def _code_of(model: Any, user: Any, own: Any, new: list[Any], may_add: bool) -> int:
    """Code of a person with the id ``own`` among the model's; whoever is not known joins ``new``."""
    users, added = model.users_, model._added_users
    code: int = added[own] if own in added else users.code(own)
    if code >= 0:
        return code
    n = len(users) + len(added)
    if not may_add:
        raise DataError(
            f"user {quoted(user)} is not one of the {n} people of the model: there is no answer to take back."
            f"{did_you_mean(user, [*users, *added])}"
        )
    new.append(own)
    return n + len(new) - 1


class AnswerLog:
    """Answers of the fit, with tasks, and all changes since, applied when it is read; None: nothing is noted.

    A log is immutable. Those that follow from it share their columns, to which they append, and each counts its own
    part.
    """

    def __init__(self, comparisons: Comparisons | None) -> None:
        self._held: tuple[Comparisons | None, _Changes, int, CovariateEffects | None]
        self._held = comparisons, _Changes.none(), 0, None

    def plus(self, batch: Batch, sign: int) -> AnswerLog:
        """The log with a batch that was added (sign 1) or removed (sign -1)."""
        comparisons, changes, n, _ = self._held
        if comparisons is None:
            return self
        if len(changes.key) > n:  # a copy of the model has gone on from here
            changes = _Changes._make(column[:n] for column in changes)
        rows, task = batch.rows, batch.rows.task
        if (task >= 0).any():  # tasks of two people, or batches, are not one
            task = np.where(task < 0, -1, n + rows.task_numbers())
        changes.key.extend(rows.key.tolist())
        changes.copies.extend(rows.copies.tolist())
        changes.task.extend(task.tolist())
        changes.weight.extend((sign * rows.weight).tolist())
        changes.names.extend(batch.names or [EVERYONE] * len(task))
        log = AnswerLog(None)
        log._held = comparisons, changes, len(changes.key), batch.effects
        return log

    @property
    def comparisons(self) -> Comparisons | None:
        """All answers that the model holds; new pairs have no task."""
        comparisons, changes, n, effects = self._held
        if comparisons is not None and n:
            comparisons = _applied(comparisons, _Changes._make(column[:n] for column in changes), effects)
            # The same answers, in one step for who reads at this moment.
            self._held = comparisons, _Changes.none(), 0, None
        return comparisons


class _Changes(NamedTuple):
    """Rows of batches, of which those that went have weights below 0."""

    key: array[int]
    copies: array[int]
    task: array[int]
    weight: array[float]
    names: list[Any]  # who gave each

    @classmethod
    def none(cls) -> _Changes:
        return cls(array("q"), array("q"), array("q"), array("d"), [])


def _applied(answers: Comparisons, changes: _Changes, effects: CovariateEffects | None) -> Comparisons:
    """Answers after changes of their weights; which of several tasks loses an answer makes no difference."""
    users = answers.users.extend(changes.names)
    user = users.codes(changes.names, what="user").astype(np.int64)
    came, gone = _net(Rows.new(user, *(np.array(changes[column]) for column in (0, 3, 1, 2))))
    if len(gone.key):
        answers = as_orders(answers) if (gone.task >= 0).any() else answers
        place = users.codes(answers.users.series(), what="user").astype(np.int64)
        held, _ = keyed(answers, effects)
        answers = _without(answers, held._replace(user=place[held.user]), gone)
    if len(came.key) or len(users) > len(answers.users):  # who came and went stays known, whenever this is read
        left, right, outcome, variant = sides_of(came.key)
        more = Comparisons(
            users, answers.items, came.user.astype(np.int32), left.astype(np.int32), right.astype(np.int32),
            np.sign(outcome), came.weight, has_users=answers.has_users, backend=answers.backend,
            grade=np.maximum(np.abs(outcome) - 1, 0) if answers.grades else None, grades=answers.grades,
            covariate_names=answers.covariate_names,
            covariates=None if effects is None else effects.patterns[variant] * effects.scale,
            task=came.task.astype(np.int32), joint=bool((came.task >= 0).any()),
            copies=np.stack(copies_of_sides(came.copies), axis=1),
        )  # fmt: skip
        answers = answers.append(more)
    return answers


def _net(rows: Rows) -> tuple[Rows, Rows]:
    """Answers that came, all in all, and those that went; rows of the latter have weights below 0."""
    alone = rows.at(rows.task < 0).merged()
    came, gone = [alone.at(alone.weight > DUST)], [alone.at(alone.weight < -DUST)]
    for parts in rows.tasks().values():
        n = sum(int(rows.weight[part[0]]) for part in parts)
        found = came if n > 0 else gone
        found += [rows.at(part) for part in parts if rows.weight[part[0]] * n > 0][: abs(n)]
    away = Rows.stacked(gone)
    return Rows.stacked(came), away._replace(weight=-away.weight)


def _without(answers: Comparisons, held: Rows, gone: Rows) -> Comparisons:
    """Answers without others; ``held`` are their rows, of which several may be an equal answer, of other tasks."""
    weight = answers.weight.copy()
    start, stop = (np.searchsorted(held.user, gone.user, side=side) for side in ("left", "right"))
    for row in np.flatnonzero(gone.task < 0).tolist():
        mine = slice(start[row], stop[row])
        same = start[row] + np.flatnonzero((held.key[mine] == gone.key[row]) & (held.task[mine] < 0))
        before = np.cumsum(weight[same]) - weight[same]
        weight[same] -= np.clip(gone.weight[row] - before, 0.0, weight[same])
    tasks = held.tasks()
    for what, parts in gone.tasks().items():
        for part in tasks[what][: len(parts)]:
            weight[part] = 0.0
    return replace(answers, weight=weight).take(weight > DUST)
