"""Number of answers of each person on each item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array

from predilect._types import FloatArray, IntArray
from predilect.data import Comparisons


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Weighted answers by person and item in CSR form: ``ptr`` (n_users + 1,), ``item``, ``count`` (n_entries,)."""

    ptr: IntArray
    item: npt.NDArray[np.int32]
    count: FloatArray
    n_items: int

    @classmethod
    def of(cls, comparisons: Comparisons) -> AnswerCounts:
        """Count the answers. O(answers)."""
        user = np.concatenate([comparisons.user, comparisons.user])
        item = np.concatenate([comparisons.left, comparisons.right])
        weight = np.concatenate([comparisons.weight, comparisons.weight])
        shape = (comparisons.n_users, comparisons.n_items)
        table = coo_array((weight, (user, item)), shape=shape).tocsr()  # adds up what is there twice
        return cls(table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data, comparisons.n_items)

    def of_person(self, user: int) -> FloatArray:
        """Answers of one person on each item, shape (n_items,); zeros for -1, an unseen user."""
        return self.of_people(user, user + 1)[0] if user >= 0 else np.zeros(self.n_items)

    def of_people(self, start: int, stop: int) -> FloatArray:
        """Answers of the people from ``start`` to before ``stop``, shape (stop - start, n_items)."""
        counts = np.zeros((stop - start, self.n_items))
        entries = slice(self.ptr[start], self.ptr[stop])
        who = np.repeat(np.arange(stop - start), np.diff(self.ptr[start : stop + 1]))
        counts[who, self.item[entries]] = self.count[entries]
        return counts
