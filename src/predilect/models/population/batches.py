"""Answers to add or remove, in the codes of a fitted model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect.data import Comparisons, Vocabulary
from predilect.data.canonical import canonical_rows
from predilect.data.keyed_rows import key_of, keys_of, sides_of
from predilect.data.read.winners import TIE_WORDS
from predilect.errors import DataError
from predilect.models.reading import read_answers

FloatArray = npt.NDArray[np.float64]


_JOIN = (
    "Items join at a refit: fit() on all answers. To predict for an item before, give its features to "
    "predict_proba(..., items=...)"
)


class Batch(NamedTuple):
    """Answers in the codes of a model, sorted by person, each (person, key) once; arrays of shape (n,).

    ``users`` holds codes, for new people from the number of known ones on, 0 where people are not told apart; ``key``
    and ``weight`` are as in :class:`~predilect.data.keyed_rows.Rows`; ``new`` the ids of new people, in the order of
    their codes; ``names`` who answered, row by row, empty where people are not told apart.
    """

    users: npt.NDArray[np.int64]
    key: npt.NDArray[np.int64]
    weight: FloatArray
    new: list[Any]
    names: list[Any]

    def describe(self, model: Any, row: int) -> str:
        """One of the answers in words."""
        left, right, outcome = (int(side[0]) for side in sides_of(self.key[row : row + 1]))
        first, second = model.items_.ids[left], model.items_.ids[right]
        if outcome == 0:
            what = f"a tie of {first!r} and {second!r}"
        else:
            first, second = (first, second) if outcome > 0 else (second, first)
            what = f"{first!r} over {second!r}"
        return f"{self.names[row]!r}: {what}" if self.names else what


def read_batch(
    model: Any,
    more: Any,
    y: npt.ArrayLike | None,
    *,
    user: Any,
    left: Any,
    right: Any,
    outcome: Any,
    winner: Any,
    weight: float,
    may_add: bool,
) -> Batch:
    """Answers of a frame or Comparisons, or one answer of scalars, as :meth:`~predilect.Population.update` takes them.

    Raises DataError if an item, or a person who may not be new (``may_add``), is not known; if something is missing or
    said twice.
    """
    if more is None:
        if y is not None:
            raise DataError("y holds the outcomes of a frame, but there is no frame. Give one answer with outcome=...")
        return _one(model, user, left, right, outcome, winner, weight, may_add)
    if not (user is None and left is None and right is None and outcome is None and winner is None):
        raise DataError("give either a frame of answers, or one answer as user=, left=, right=, outcome=; not both")
    return _many(model, more, y, may_add)


def _one(model: Any, user: Any, left: Any, right: Any, outcome: Any, winner: Any, weight: Any, may_add: bool) -> Batch:
    items, users = model.items_, model.users_
    a, b = items.code(left), items.code(right)
    if a < 0 or b < 0:
        side, value = ("left", left) if a < 0 else ("right", right)
        if value is None:
            raise DataError(
                f"{side} is missing. Give answers as a frame, or one answer: left=, right=, outcome= (1, 0 or -1) or "
                'winner= (an item, or "tie")' + (", and user=" if users is not None else "")
            )
        raise DataError(f"{side}={value!r} is not one of the {len(items)} items of the model. {_JOIN}")
    if a == b:
        raise DataError(f"left and right are the same item, {left!r}; a comparison needs two")
    y = _outcome(items, a, b, outcome, winner)
    try:
        count = float(weight)
    except (TypeError, ValueError):
        count = -1.0
    if not 0.0 < count < np.inf:
        raise DataError(f"weight must be a positive number, got {weight!r}: it counts identical answers")
    new: list[Any] = []
    names: list[Any] = []
    code = 0
    if users is not None:
        if user is None:
            raise DataError("the model tells people apart: say who answered, user=...")
        own = users.own(user)
        if own is None:
            kind = "whole numbers" if users.is_integer else "text or whole numbers"
            raise DataError(f"user={user!r} cannot be an id here: the ids of the model's people are {kind}")
        code = model.added_users_.get(own, -1)
        if code < 0:
            code = users.code(own)
        if code < 0:
            if not may_add:
                raise _unknown_user(model, user)
            code, new = len(users) + len(model.added_users_), [own]
        names = [own]
    if a > b:
        a, b, y = b, a, -y
    return Batch(np.array([code]), np.array([key_of(a, b, y)]), np.array([count]), new, names)


def _outcome(items: Any, a: int, b: int, outcome: Any, winner: Any) -> int:
    if winner is None and outcome is None:
        raise DataError(
            "neither outcome nor winner says what was answered: give outcome= (1, 0 or -1), or winner= (an item, or "
            '"tie"). None is no answer'
        )
    if winner is None:
        if isinstance(outcome, bool) or outcome not in (1, 0, -1):
            raise DataError(f"outcome must be 1 (left is better), 0 (a tie) or -1 (right), got {outcome!r}")
        return int(outcome)
    if outcome is not None:
        raise DataError("give either outcome or winner, not both")
    code = items.code(winner)
    if code in (a, b):
        return 1 if code == a else -1
    if isinstance(winner, str) and winner.strip().lower() in TIE_WORDS:
        return 0
    raise DataError(
        f"winner={winner!r} is neither the left item, {items.ids[a]!r}, nor the right one, {items.ids[b]!r}, nor a "
        'word for a tie, such as "tie"'
    )


def _many(model: Any, more: Any, y: npt.ArrayLike | None, may_add: bool) -> Batch:
    answers = read_answers(more, y, with_ties=model.tie_threshold_ > 0.0)
    code = model.items_.codes(answers.items.series(), unknown="minus_one")
    left, right = code[answers.left], code[answers.right]
    lost = (left < 0) | (right < 0)
    if lost.any():
        row = int(np.argmax(lost))
        which = answers.left[row] if left[row] < 0 else answers.right[row]
        unknown = np.union1d(answers.left[left < 0], answers.right[right < 0])
        raise DataError(
            f"{len(unknown)} of the items in these answers are not known to the model (first: "
            f"{answers.items.ids[which]!r}). {_JOIN}"
        )
    who = np.zeros(answers.n_rows, dtype=np.int32)
    new: list[Any] = []
    if model.users_ is not None:
        if not answers.has_users:
            raise DataError(
                "the model tells people apart, but these answers do not say who gave them. Add a column user"
            )
        of_user, new = _codes_of_people(model, answers, may_add)
        who = of_user[answers.user]
    users, low, high, outcome, weight = canonical_rows(who, left, right, answers.outcome, answers.weight)
    names: list[Any] = []
    if model.users_ is not None:
        known, n = model.users_.ids, len(model.users_)
        later = [*model.added_users_, *new]
        names = [known[user] if user < n else later[user - n] for user in users.tolist()]
    return Batch(users.astype(np.int64), keys_of(low, high, outcome), weight, new, names)


def _codes_of_people(model: Any, answers: Any, may_add: bool) -> tuple[npt.NDArray[np.int32], list[Any]]:
    """Code of everybody in the vocabulary of the answers, and the new people among those who answered."""
    users, added = model.users_, model.added_users_
    code = users.codes(answers.users.series(), unknown="minus_one", what="user")
    new: list[Any] = []
    answered = np.zeros(len(code), dtype=bool)
    answered[answers.user] = True
    for place in np.flatnonzero((code < 0) & answered).tolist():
        value = answers.users.ids[place]
        own = users.own(value)
        if own is None:
            raise DataError(
                f"the people of the model have ids that are whole numbers, such as {users.ids[0]}, but one of the new "
                f"ids is {value!r}. Ids must be all text or all whole numbers"
            )
        if own in added:
            code[place] = added[own]
        elif may_add:
            code[place] = len(users) + len(added) + len(new)
            new.append(own)
        else:
            raise _unknown_user(model, value)
    return code, new


def _unknown_user(model: Any, user: Any) -> DataError:
    n = len(model.users_) + len(model.added_users_)
    return DataError(f"user {user!r} is not one of the {n} people of the model: there is no answer to take back")


_BLOCK = 256  # notes of single answers that are put together: apart, each takes ten times the memory


class _Note(NamedTuple):
    """Who answered (empty where people are not told apart), keys of the answers, and changes of their weights."""

    people: list[Any]
    key: npt.NDArray[np.int64]
    change: npt.NDArray[np.float64]


_Held = tuple[Comparisons | None, tuple[_Note, ...], tuple[_Note, ...]]  # answers, and blocks and notes since


class Memory:
    """Answer log with tasks, brought up to date when it is read; with ``comparisons`` None nothing is noted."""

    def __init__(self, comparisons: Comparisons | None) -> None:
        self._held: _Held = (comparisons, (), ())

    def plus(self, batch: Batch, sign: int) -> Memory:
        """The log with a batch that was added (sign 1) or removed (sign -1)."""
        comparisons, blocks, notes = self._held
        if comparisons is None:
            return self
        notes = (*notes, _Note(batch.names, batch.key, sign * batch.weight))
        if len(notes) == _BLOCK:
            blocks, notes = (*blocks, _together(notes)), ()
        new = Memory(None)
        new._held = comparisons, blocks, notes
        return new

    @property
    def comparisons(self) -> Comparisons | None:
        """All answers that the model holds; new ones have no task."""
        comparisons, blocks, notes = self._held
        if comparisons is not None and (notes or blocks):
            comparisons = _applied(comparisons, _together((*blocks, *notes)))
            self._held = comparisons, (), ()  # the same answers, in one step for who reads at this moment
        return comparisons


def _together(notes: tuple[_Note, ...]) -> _Note:
    people = [person for note in notes for person in note.people]
    return _Note(people, np.concatenate([note.key for note in notes]), np.concatenate([note.change for note in notes]))


def _applied(answers: Comparisons, note: _Note) -> Comparisons:
    people, key, change = note
    users = answers.users.extend(people) if people else answers.users
    code = users.codes(people, what="user").astype(np.int64) if people else np.zeros(len(key), dtype=np.int64)
    order = np.lexsort((key, code))
    key, change, code = key[order], change[order], code[order]
    starts = np.flatnonzero(np.concatenate(([True], (key[1:] != key[:-1]) | (code[1:] != code[:-1]))))
    net, key, code = np.add.reduceat(change, starts), key[starts], code[starts]
    size = np.maximum.reduceat(np.abs(change), starts)
    gone, came = net < -1e-9 * size, net > 1e-9 * size
    if gone.any():
        answers = _without(answers, users, code[gone], key[gone], -net[gone])
    if came.any():
        left, right, outcome = sides_of(key[came])
        more = Comparisons(
            users, answers.items, code[came].astype(np.int32), left.astype(np.int32), right.astype(np.int32), outcome,
            net[came], has_users=answers.has_users, backend=answers.backend,
        )  # fmt: skip
        answers = answers.append(more)
    return answers


def _without(
    answers: Comparisons,
    users: Vocabulary,
    code: npt.NDArray[np.int64],
    key: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64],
) -> Comparisons:
    """Answers with less weight on some; which of several tasks loses it makes no difference."""
    place_of = answers.users.codes(users.series(), unknown="minus_one", what="user")
    offsets, left = answers.user_offsets, answers.weight.copy()
    for user, wanted, amount in zip(place_of[code].tolist(), key.tolist(), weight.tolist(), strict=True):
        rows = slice(offsets[user], offsets[user + 1])
        own = keys_of(answers.left[rows], answers.right[rows], answers.outcome[rows])
        for row in (np.flatnonzero(own == wanted) + offsets[user]).tolist():
            taken = min(left[row], amount)
            left[row] -= taken
            amount -= taken
    keep = left > 1e-9
    kept = answers.take(keep)
    task = kept.task
    return Comparisons(
        kept.users, kept.items, kept.user, kept.left, kept.right, kept.outcome, left[keep], has_users=kept.has_users,
        intake=kept.intake, backend=kept.backend, task=task,
    )  # fmt: skip
