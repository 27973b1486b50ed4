"""Answers to add or remove, in the codes of a fitted model, and the log of all of them."""

from __future__ import annotations

import warnings
from array import array
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.arguments import check_positive
from predilect._base.text import did_you_mean, quoted, setting
from predilect._base.types import FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.canonical import canonical_rows
from predilect.data.comparisons import SIDE, joint_rows
from predilect.data.keyed_rows import (
    contents,
    copies_in_one,
    copies_of_sides,
    keys_of,
    sides_of,
)
from predilect.data.orders import as_orders, rows_by_answer
from predilect.data.read.names import TIE_WORDS
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.models.reading import Said, covariates_of, read_answers

_DUST = 1e-9  # weights are counts, and removal leaves rounding errors
_JOIN = (
    "An item joins by update(..., items=[...]), or at a refit: fit() on all answers. To predict for an item before, "
    "give its features to predict_proba(..., items=...)"
)


class BatchedOrders(NamedTuple):
    """Rows of answers about several alternatives, sorted by person and task; arrays of shape (n,)."""

    users: IntArray
    key: IntArray
    copies: IntArray  # as of :func:`~predilect.data.keyed_rows.copies_in_one`
    task: IntArray  # from 0, distinct between people


class Batch(NamedTuple):
    """Answers in the codes of a model, sorted by person, each (person, key) once; arrays of shape (n,).

    Those about several alternatives are ``orders``, and not among the others.
    """

    users: IntArray  # codes, of new people from the number of known ones on; 0 where users are not identified
    key: IntArray
    weight: FloatArray
    new: list[Any]  # ids of new people, in the order of their codes
    names: list[Any]  # who answered, row by row; empty where users are not identified
    effects: CovariateEffects | None = None  # the model's, with the patterns of these answers
    orders: BatchedOrders | None = None
    left_out: tuple[dict[str, Any], ...] = ()  # rows that the model cannot take

    @property
    def every_key(self) -> IntArray:
        """Keys of all rows."""
        return self.key if self.orders is None else np.concatenate((self.key, self.orders.key))

    @property
    def every_weight(self) -> FloatArray:
        """Weights of all rows."""
        return self.weight if self.orders is None else np.append(self.weight, np.ones(len(self.orders.key)))

    def rows(self, start: int, stop: int) -> Batch:
        """Consecutive answers."""
        rows = slice(start, stop)
        return Batch(self.users[rows], self.key[rows], self.weight[rows], [], self.names[rows], self.effects)

    def describe(self, model: Any, row: int) -> str:
        """One of the answers in words."""
        left, right, outcome, _ = (int(side[0]) for side in sides_of(self.key[row : row + 1]))
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
    y = _outcome(items, a, b, outcome, winner, model.grades_)
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
    return Batch(np.array([code]), key, np.array([count]), new, names, effects)


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
    left, right = code[answers.left], code[answers.right]
    lost = (left < 0) | (right < 0)
    if lost.any():
        row = int(np.argmax(lost))
        which = answers.left[row] if left[row] < 0 else answers.right[row]
        unknown = np.union1d(answers.left[left < 0], answers.right[right < 0])
        raise DataError(
            f"{len(unknown)} of the items in these answers are not known to the model (first: "
            f"{answers.items.ids[which]!r}).{did_you_mean(answers.items.ids[which], model.items_)} {_JOIN}"
        )
    who = np.zeros(answers.n_rows, dtype=np.int32)
    new: list[Any] = []
    names: list[Any] = []
    if model.users_ is not None:
        if not answers.has_users:
            raise DataError(
                "the model tells people apart, but these answers do not say who gave them. Add a column user"
            )
        who = _codes_of_people(model, answers, new, may_add)[answers.user]
    x = covariates_of(answers, names_of_covariates)
    x[left > right] *= -1.0
    variant: IntArray = np.zeros(answers.n_rows, dtype=np.int64)
    if effects is not None:
        effects, variant = effects.with_patterns(x / effects.scale)
    orders = _orders(answers, who, left, right, variant)
    alone = slice(None) if orders is None else joint_rows(answers) < 0
    code = _code_among(answers, model.grades_)
    (who, left, right, outcome, weight), variant = _merged(
        who[alone], left[alone], right[alone], code[alone], answers.weight[alone], variant[alone]
    )
    if model.users_ is not None:
        known, n = model.users_.ids, len(model.users_)
        later = [*model._added_users, *new]
        names = [known[user] if user < n else later[user - n] for user in who.tolist()]
    key = keys_of(left, right, outcome, variant)
    return Batch(who.astype(np.int64), key, weight, new, names, effects, orders, left_out)


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


def _orders(
    answers: Comparisons, who: npt.NDArray[np.int32], left: npt.NDArray[np.int32], right: npt.NDArray[np.int32],
    variant: IntArray,
) -> BatchedOrders | None:  # fmt: skip
    """Rows of tasks that are one answer each, in the model's codes."""
    task = joint_rows(answers)
    rows = np.flatnonzero(task >= 0)
    if not len(rows):
        return None
    a, b, y = left[rows], right[rows], answers.outcome[rows]
    key = keys_of(np.minimum(a, b), np.maximum(a, b), np.where(a <= b, y, -y), variant[rows])
    copies: IntArray = np.zeros(len(rows), dtype=np.int64)
    if answers.copies is not None:
        one, other = answers.copies[rows].T
        copies = copies_in_one(np.where(a <= b, one, other), np.where(a <= b, other, one))
    order = np.lexsort((copies, key, task[rows], who[rows]))
    return BatchedOrders(
        who[rows][order].astype(np.int64), key[order], copies[order], task[rows][order].astype(np.int64)
    )


def _code_among(answers: Comparisons, grades: tuple[str, ...]) -> npt.NDArray[np.int8]:
    """Outcomes, with the grades of a model that knows some; DataError for one that it does not know."""
    if not grades or answers.grade is None:
        return answers.outcome
    strange = [name for name in answers.with_used_grades(1).grades if name not in grades]
    if strange:
        raise DataError(f"the model has no grade called {strange[0]!r}: its grades are {', '.join(grades)}")
    return answers.with_grades(grades).code


def _refuse_other_covariates(answers: Comparisons, names: tuple[str, ...]) -> None:
    """DataError for covariates that only the answers have."""
    wanted, given = set(names) - {SIDE}, set(answers.covariate_names) - {SIDE}
    if given - wanted:
        told = [", ".join(sorted(one)) or "none" for one in (wanted, given)]
        raise DataError(f"the model has the covariates of answers {told[0]}, and these answers have {told[1]}")


def _merged(
    who: npt.NDArray[np.int32], left: npt.NDArray[np.int32], right: npt.NDArray[np.int32],
    outcome: npt.NDArray[np.int8], weight: FloatArray, variant: IntArray,
) -> tuple[Any, IntArray]:  # fmt: skip
    """Canonical rows, by person, of which only those of one grade with the same covariates are merged; their variants.

    ``outcome`` are codes, as in keys.
    """
    grade = np.maximum(np.abs(outcome).astype(np.int64) - 1, 0)
    known, group = np.unique(who.astype(np.int64) << 32 | variant << 3 | grade, return_inverse=True)
    group, left, right, sign, weight = canonical_rows(group.astype(np.int32), left, right, np.sign(outcome), weight)
    outcome = (sign * (1 + (known[group] & 7))).astype(np.int8)
    return ((known[group] >> 32).astype(np.int32), left, right, outcome, weight), (known[group] & (1 << 32) - 1) >> 3


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


# Sign, who gave each row, and the rows.
_Orders = tuple[tuple[int, list[Any], BatchedOrders], ...]


class AnswerLog:
    """Answers of the fit, with tasks, and all changes since, applied when it is read; None: nothing is noted.

    A log is immutable. Those that follow from it share its lists, to which they append, and each counts its own part.
    """

    def __init__(self, comparisons: Comparisons | None) -> None:
        self._held: tuple[
            Comparisons | None, array[int], array[float], list[Any], int, CovariateEffects | None, _Orders
        ]
        self._held = comparisons, array("q"), array("d"), [], 0, None, ()

    def plus(self, batch: Batch, sign: int, who: list[Any]) -> AnswerLog:
        """The log with a batch that was added (sign 1) or removed (sign -1); ``who`` gave each row of its orders."""
        comparisons, key, change, names, n, _, orders = self._held
        if comparisons is None:
            return self
        if len(key) > n:  # a copy of the model has gone on from here
            key, change, names = key[:n], change[:n], names[:n]
        key.extend(batch.key.tolist())
        change.extend((sign * batch.weight).tolist())
        names.extend(batch.names)
        log = AnswerLog(None)
        if batch.orders is not None:
            orders = (*orders, (sign, who, batch.orders))
        log._held = comparisons, key, change, names, n + len(batch.key), batch.effects, orders
        return log

    @property
    def comparisons(self) -> Comparisons | None:
        """All answers that the model holds; new pairs have no task."""
        comparisons, key, change, names, n, effects, orders = self._held
        if comparisons is not None and (n or orders):
            if n:
                comparisons = _applied(comparisons, np.array(key[:n]), np.array(change[:n]), names[:n], effects)
            comparisons = _with_orders(comparisons, orders, effects)
            # The same answers, in one step for who reads at this moment.
            self._held = comparisons, array("q"), array("d"), [], 0, effects, ()
        return comparisons


def _applied(
    answers: Comparisons, key: IntArray, change: FloatArray, names: list[Any], effects: CovariateEffects | None
) -> Comparisons:
    """Answers after changes of their weights; which of several tasks loses an answer makes no difference."""
    users = answers.users.extend(names) if names else answers.users
    who = users.codes(names, what="user") if names else np.zeros(len(key), dtype=np.int32)
    low, high, kind, variant = sides_of(key)
    (who, left, right, outcome, net), variant = _merged(
        who, low.astype(np.int32), high.astype(np.int32), kind, change, variant
    )
    gone, came = np.flatnonzero(net < -_DUST), net > _DUST
    if len(gone):
        place = answers.users.codes(users.series(), unknown="minus_one", what="user")[who]
        offsets, weight, key = answers.user_offsets, answers.weight.copy(), keys_of(left, right, outcome, variant)
        held = keys_of(answers.left, answers.right, answers.code, variants_of(answers, effects))
        held[joint_rows(answers) >= 0] = -1
        for row in gone.tolist():
            start, stop = offsets[place[row]], offsets[place[row] + 1]
            same = start + np.flatnonzero(held[start:stop] == key[row])
            before = np.cumsum(weight[same]) - weight[same]
            weight[same] -= np.clip(-net[row] - before, 0.0, weight[same])
        answers = replace(answers, weight=weight).take(weight > _DUST)
    if came.any() or len(users) > len(answers.users):  # who came and went stays known, whenever this is read
        more = Comparisons(
            users, answers.items, who[came], left[came], right[came], np.sign(outcome[came]), net[came],
            grade=np.maximum(np.abs(outcome[came]) - 1, 0) if answers.grades else None, grades=answers.grades,
            has_users=answers.has_users, backend=answers.backend, covariate_names=answers.covariate_names,
            covariates=None if effects is None else effects.patterns[variant[came]] * effects.scale,
        )  # fmt: skip
        answers = answers.append(more)
    return answers


def _with_orders(answers: Comparisons, orders: _Orders, effects: CovariateEffects | None) -> Comparisons:
    """Answers after orders came, and went."""
    for sign in (1, -1):
        told = [(who, batch) for one, who, batch in orders if one == sign]
        if not told:
            continue
        names = [name for who, _ in told for name in who]
        key, copies = (np.concatenate([getattr(batch, name) for _, batch in told]) for name in ("key", "copies"))
        place = np.repeat(np.arange(len(told)), [len(batch.key) for _, batch in told])
        task = np.concatenate([batch.task for _, batch in told])
        task = np.unique(np.stack([place, task]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int32)
        users = answers.users.extend(names)
        left, right, outcome, variant = sides_of(key)
        more = Comparisons(
            users, answers.items, users.codes(names, what="user"), left.astype(np.int32), right.astype(np.int32),
            outcome, np.ones(len(key)), has_users=answers.has_users, backend=answers.backend, task=task, joint=True,
            covariate_names=answers.covariate_names,
            covariates=None if effects is None else effects.patterns[variant] * effects.scale,
            copies=np.stack(copies_of_sides(copies), axis=1),
        )  # fmt: skip
        answers = answers.append(more) if sign > 0 else _without_orders(as_orders(answers), more, effects)
    return answers


def _without_orders(answers: Comparisons, gone: Comparisons, effects: CovariateEffects | None) -> Comparisons:
    """Answers without as many tasks of the same rows."""

    def tasks_in(rows: Comparisons) -> dict[tuple[Any, bytes], list[IntArray]]:
        found: dict[tuple[Any, bytes], list[IntArray]] = {}
        index, ptr = rows_by_answer(joint_rows(rows))
        index = index[len(index) - ptr[-1] :]
        keys = keys_of(rows.left, rows.right, rows.outcome, variants_of(rows, effects))
        copies = np.zeros_like(keys) if rows.copies is None else copies_in_one(*rows.copies.T)
        for start, stop in pairwise(ptr.tolist()):
            part = index[start:stop]
            what = (rows.users.ids[rows.user[part[0]]], contents(keys[part], copies[part]))
            found.setdefault(what, []).append(part)
        return found

    held: Any = tasks_in(answers)
    drop: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    for what, parts in tasks_in(gone).items():
        drop += held[what][: len(parts)]
    keep = np.ones(answers.n_rows, dtype=bool)
    keep[np.concatenate(drop)] = False
    return answers.take(keep)


def variants_of(answers: Comparisons, effects: CovariateEffects | None) -> IntArray:
    """Which of the patterns of covariates each row has, (n_rows,)."""
    if effects is None:
        return np.zeros(answers.n_rows, dtype=np.int64)
    return effects.with_patterns(covariates_of(answers, effects.names) / effects.scale)[1]
