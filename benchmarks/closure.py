"""Which test answers follow from a person's own training answers by transitivity."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from predilect.data import Comparisons

__all__ = ["implied_answers"]


def implied_answers(train: Comparisons, test: Comparisons) -> npt.NDArray[np.bool_]:
    """Mark test rows whose two items a chain of the person's strict training answers connects, either way.

    Parameters
    ----------
    train, test : Comparisons
        Over the same items. People are matched by id.

    Returns
    -------
    bool array, shape (test.n_rows,)
        For people who contradict themselves the chain may say the opposite of the answer, or both.

    Notes
    -----
    Warshall's closure on the items each person was asked about: items² + items x answers for sparse answers, items³ at
    worst, a person.
    """
    person = train.users.codes(test.users.series(), unknown="minus_one", what="user")[test.user]
    offsets = train.user_offsets
    winner = np.where(train.outcome > 0, train.left, train.right)
    loser = np.where(train.outcome > 0, train.right, train.left)
    order = np.argsort(person, kind="stable")
    result = np.zeros(test.n_rows, dtype=np.bool_)
    result[order] = _implied(
        offsets, winner, loser, train.outcome != 0, person[order].astype(np.int64), test.left[order],
        test.right[order], train.n_items,
    )  # fmt: skip
    return result


@numba.njit(cache=True)
def _implied(
    offsets: Any, winner: Any, loser: Any, strict: Any, person: Any, left: Any, right: Any, n_items: int
) -> Any:
    """The marks of test rows that are sorted by person; code -1 has no training answers."""
    marks = np.zeros(len(person), dtype=np.bool_)
    local = np.full(n_items, -1, dtype=np.int64)
    start = 0
    while start < len(person):
        stop = start
        while stop < len(person) and person[stop] == person[start]:
            stop += 1
        u = person[start]
        if u >= 0:
            rows = range(offsets[u], offsets[u + 1])
            n = 0
            for p in rows:
                for item in (winner[p], loser[p]):
                    if local[item] < 0:
                        local[item] = n
                        n += 1
            reach = np.zeros((n, n), dtype=np.bool_)
            for p in rows:
                if strict[p]:
                    reach[local[winner[p]], local[loser[p]]] = True
            for k in range(n):
                for i in range(n):
                    if reach[i, k]:
                        for j in range(n):  # row by row as arrays takes twice as long to compile
                            reach[i, j] |= reach[k, j]
            for t in range(start, stop):
                a, b = local[left[t]], local[right[t]]
                marks[t] = a >= 0 and b >= 0 and (reach[a, b] or reach[b, a])
            for p in rows:
                local[winner[p]] = -1
                local[loser[p]] = -1
        start = stop
    return marks
