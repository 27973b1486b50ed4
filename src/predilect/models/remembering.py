"""Answer log of a model, for its verdict: the answers of the fit, and notes of those added and removed since."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect.data import Comparisons, Vocabulary
from predilect.models.batches import Batch
from predilect.posteriors.rows import keys_of, sides_of

__all__ = ["Memory"]


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
