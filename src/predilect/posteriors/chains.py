"""How queried pairs relate to a user's answers: unseen items, and pairs implied by transitivity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predilect.posteriors.compiled.pair_kinds import mark_implied, places_of_items
from predilect.posteriors.people import People

__all__ = ["IMPLIED", "kinds_in"]

IntArray = npt.NDArray[np.integer]

IMPLIED = 3  # after 0, 1 and 2, the number of items without an answer


def kinds_in(people: People, users: IntArray, left: IntArray, right: IntArray) -> npt.NDArray[np.int8]:
    """Kind of each queried pair, int8 (n,): 0 to 2 items without an answer by that user, or :data:`IMPLIED`.

    Implied: a chain of strict answers leads from one item to the other and none leads back. Ties are no part of a
    chain, an answer to the very pair is one. A user of -1 has no answers, an item from ``n_items`` on is new. Sorting,
    and O(n_u + k_u) once per first item.
    """
    users = np.asarray(users, dtype=np.int64)
    sides = [
        places_of_items(users, np.asarray(side, dtype=np.int64), people.item_ptr, people.item_idx)
        for side in (left, right)
    ]
    kind: npt.NDArray[np.int8] = (sides[0] < 0).astype(np.int8) + (sides[1] < 0).astype(np.int8)
    known = np.flatnonzero(kind == 0)
    if not len(known):
        return kind
    known = known[np.lexsort((sides[0][known], users[known]))]
    marks = np.zeros(len(known), dtype=bool)
    mark_implied(
        users[known], sides[0][known], sides[1][known], people.answer_ptr, people.item_ptr, people.left, people.right,
        people.outcome, marks,
    )  # fmt: skip
    kind[known[marks]] = IMPLIED
    return kind
