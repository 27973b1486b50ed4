"""Choices of one item out of several: what the rows "winner over loser" of a task say together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect._base.types import FloatArray, IntArray
from predilect.data.comparisons import Comparisons, joint_rows
from predilect.data.orders import all_above
from predilect.errors import DataError

_REFUSE = (
    "Choices are of the best, best-worst, and orders of all items or of the first ones. Leave such answers out, or "
    "give their pairs without a task, each as an answer of its own"
)


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices in CSR form, ascending by user.

    Items of choice t are ``item[ptr[t]:ptr[t + 1]]``, the chosen one first; ``ptr`` (n_choices + 1,), ``user``,
    ``weight`` and ``sign`` (n_choices,). ``sign`` is 1 where the best was chosen, -1 where the worst was. An item that
    several alternatives are stands there as often. ``answer`` (n_choices,) is equal for choices that are one answer, as
    those of an order, or the halves of a tie, of which ``share`` (n_choices,) is ½, else 1.
    """

    ptr: IntArray
    item: npt.NDArray[np.int32]
    user: npt.NDArray[np.int32]
    weight: FloatArray
    sign: npt.NDArray[np.int8]
    answer: IntArray
    share: FloatArray
    n_answers: float  # tasks and pairs, each once

    @property
    def n_choices(self) -> int:
        """Number of choices."""
        return len(self.user)


def choices_of(answers: Comparisons) -> Choices:
    """Choices that the answers are; DataError for a task that is neither a choice nor an order.

    The rows of a task are one answer: best of k is one choice, an order one of the best and then of the best of the
    rest, best-worst one of the best and then of the worst of the rest. A row without a task is a choice of two, and a
    tie half a choice of each. O(n log n), and k³ for a task of k items that is more than a choice.
    """
    left, right = answers.alternatives()
    winner, loser = np.where(answers.outcome >= 0, left, right), np.where(answers.outcome >= 0, right, left)
    task = joint_rows(answers)
    alone = np.flatnonzero(task < 0)
    tied = alone[answers.outcome[alone] == 0]
    share = np.where(answers.outcome == 0, 0.5, 1.0)
    weight = answers.weight * share
    # Pairs: two items each.
    pair_winner = np.concatenate([winner[alone], loser[tied]])
    pair_loser = np.concatenate([loser[alone], winner[tied]])
    users = [np.concatenate([answers.user[alone], answers.user[tied]])]
    items = [np.stack([pair_winner, pair_loser], axis=1).ravel()]
    sizes = [np.full(len(pair_winner), 2)]
    weights = [np.concatenate([weight[alone], weight[tied]])]
    signs = [np.ones(len(pair_winner), dtype=np.int8)]
    belongs = [np.concatenate([alone, tied])]  # the first row of the answer
    n_tasks = 0.0
    inside = np.flatnonzero(task >= 0)
    if len(inside):
        inside = inside[np.lexsort((loser[inside], winner[inside], task[inside], answers.user[inside]))]
        fresh = np.diff(answers.user[inside], prepend=-1) != 0
        fresh |= np.diff(task[inside], prepend=-1) != 0
        start = np.append(np.flatnonzero(fresh), len(inside))
        task_weight = weight[inside[start[:-1]]]
        _refuse_unsound(answers, inside, start, task_weight)
        n_tasks = float(task_weight.sum())
        # One winner over all rows: best of k.
        plain = winner[inside[start[:-1]]] == winner[inside[start[1:] - 1]]
        size = np.diff(start) + 1
        whole = np.zeros(int(size[plain].sum()), dtype=np.int64)
        head = np.concatenate([[0], np.cumsum(size[plain])])
        is_head = np.zeros(len(whole), dtype=bool)
        is_head[head[:-1]] = True
        whole[is_head] = winner[inside[start[:-1][plain]]]
        whole[~is_head] = loser[inside[np.repeat(plain, np.diff(start))]]
        items.append(whole)
        sizes.append(size[plain])
        users.append(answers.user[inside[start[:-1][plain]]])
        weights.append(task_weight[plain])
        signs.append(np.ones(int(plain.sum()), dtype=np.int8))
        belongs.append(inside[start[:-1][plain]])
        for t in np.flatnonzero(~plain):
            rows = inside[start[t] : start[t + 1]]
            for chosen, rest, sign in _peeled(answers, rows, winner[rows], loser[rows]):
                items.append(np.append([chosen], rest))
                sizes.append(np.array([len(rest) + 1]))
                users.append(answers.user[rows[:1]])
                weights.append(task_weight[t : t + 1])
                signs.append(np.array([sign], dtype=np.int8))
                belongs.append(rows[:1])
    user, size = np.concatenate(users), np.concatenate(sizes)
    first = np.concatenate([[0], np.cumsum(size)])
    order = np.argsort(user, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(size[order])]).astype(np.int64)
    place = np.repeat(first[order] - ptr[:-1], size[order]) + np.arange(ptr[-1])
    return Choices(
        ptr, (np.concatenate(items)[place] % answers.n_items).astype(np.int32), user[order].astype(np.int32),
        np.concatenate(weights)[order], np.concatenate(signs)[order], np.concatenate(belongs)[order],
        np.concatenate([share[alone], share[tied], np.ones(len(user) - len(pair_winner))])[order],
        n_tasks + float(answers.weight[alone].sum()),
    )  # fmt: skip


def within_choices(rows: FloatArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
    """Deviations of items of choices from the mean of their set, (n, d), and with sign of the chosen, (n_choices, d).

    ``rows`` (n_items, d) are columns of the items.
    """
    size = np.diff(choices.ptr)
    of_items = rows[choices.item]
    mean = np.add.reduceat(of_items, choices.ptr[:-1], axis=0) / size[:, None]
    of_items = of_items - np.repeat(mean, size, axis=0)
    return of_items, of_items[choices.ptr[:-1]] * choices.sign[:, None]


def decided_by(chosen: FloatArray, name: str) -> str:
    """What to know of an attribute that decides every choice, of the chosen (n_choices,); empty for others."""
    least, most = chosen.min(), chosen.max()
    if least < 0.0 < most or least == most == 0.0:
        return ""
    return (
        f'What was chosen never has {"less" if least >= 0.0 else "more"} of "{name}" than the average of what it was '
        "chosen from: answers say that it matters much, but not how much."
    )


def _refuse_unsound(answers: Comparisons, inside: IntArray, start: IntArray, task_weight: FloatArray) -> None:
    size = np.diff(start)
    odd = np.flatnonzero(answers.weight[inside] != np.repeat(task_weight, size))
    tied = np.flatnonzero(answers.outcome[inside] == 0)
    for rows, said in ((tied, "ties"), (odd, "rows with different weights, or the same pair twice")):
        if len(rows):
            user = answers.users.ids[answers.user[inside[rows[0]]]]
            raise DataError(
                f"{len(rows)} rows of a task are {said} (first: user {user!r}): one answer to a set of items has one "
                f"weight, and says of each pair which is better or nothing. {_REFUSE}"
            )


def _peeled(
    answers: Comparisons, rows: IntArray, winner: IntArray, loser: IntArray
) -> list[tuple[int, list[int], int]]:
    """A partial order as choices: the best of what is left, or else the worst, until nothing is said of the rest."""
    items, above = all_above(winner, loser)
    user = answers.users.ids[answers.user[rows[0]]]
    if above.diagonal().any():
        raise DataError(f"the pairs of a task of user {user!r} contradict each other: they go round. {_REFUSE}")
    left = list(range(len(items)))
    found: list[tuple[int, list[int], int]] = []
    while len(left) > 1:
        inner = above[np.ix_(left, left)]
        if not inner.any():
            return found
        beats, beaten = inner.sum(axis=1), inner.sum(axis=0)
        is_best = int(beats.max()) == len(left) - 1
        place = int(np.argmax(beats if is_best else beaten))
        if not is_best and beaten[place] < len(left) - 1:
            names = ", ".join(repr(name) for name in answers.items.labels(items[left[:4]] % answers.n_items))
            raise DataError(
                f"a task of user {user!r} says neither which of {len(left)} items ({names}, ...) is the best nor which "
                f"is the worst. {_REFUSE}"
            )
        chosen = left.pop(place)
        found.append((int(items[chosen]), items[left].tolist(), 1 if is_best else -1))
    return found
