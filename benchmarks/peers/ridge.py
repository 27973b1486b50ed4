"""Logistic ridge of scikit-learn: a shared utility, and every person's own deviation from it.

``ridge`` has one coefficient an item and one a person and item; ``ridge-attributes`` has one an attribute and one a
person and attribute. Personal columns are multiplied by r, so that one penalty 1/C on all coefficients allows personal
ones r times as large; C and r are tuned. A tie is half an answer each way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from benchmarks.peers.scorers import left_share
from benchmarks.peers.tuning import Setting
from benchmarks.task import Task
from predilect.data import Comparisons, ItemFeatures
from predilect.errors import DataError

__all__ = ["Ridge", "on_attributes", "on_items"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]

TOLERANCE = 1e-6
MOST_ITERATIONS = 2000


@dataclass(frozen=True)
class Ridge:
    """How ridge is fitted; ``basis`` holds the columns of the items, sparse, shape (n_items, n_columns)."""

    basis: Any
    axes: Mapping[str, Sequence[float]] = field(
        default_factory=lambda: {
            "C": (0.01, 0.03, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0),
            "r": (0.06, 0.12, 0.25, 0.5, 1.0, 2.0),
        }
    )
    start: Setting = field(default_factory=lambda: {"C": 2.0, "r": 1.0})
    normal: bool = False
    most_rows: int = 10_000
    n_folds: int = 10

    def fit(self, rows: Comparisons, setting: Setting, seed: int) -> RidgeFit:
        """L-BFGS on the differences of left and right."""
        shared = self.basis[rows.left] - self.basis[rows.right]
        keys, personal = _personal(shared, rows.user, setting["r"])
        x = sparse.hstack([shared, personal], format="csr")
        share, w = left_share(rows), rows.weight
        # A row and its mirror image are the same answer. Every other row is mirrored, since both classes must occur.
        sign = np.where(np.arange(rows.n_rows) % 2, -1.0, 1.0)
        won = np.where(sign > 0, share, 1.0 - share)
        whole, part = np.flatnonzero(won > 0), np.flatnonzero(won < 1)
        x = sparse.diags_array(sign) @ x
        model = LogisticRegression(C=setting["C"], fit_intercept=False, tol=TOLERANCE, max_iter=MOST_ITERATIONS)
        model.fit(
            sparse.vstack([x[whole], x[part]], format="csr"),
            np.repeat([1, -1], [len(whole), len(part)]),
            sample_weight=np.concatenate([(w * won)[whole], (w * (1.0 - won))[part]]),
        )
        n_shared = shared.shape[1]
        coefficients = model.coef_[0]
        return RidgeFit(
            self.basis, coefficients[:n_shared], keys, setting["r"] * coefficients[n_shared:], int(model.n_iter_[0])
        )


@dataclass(frozen=True)
class RidgeFit:
    """Coefficients of the columns, and of (user, column) by sorted ``keys`` = user n_columns + column."""

    basis: Any
    shared: FloatArray
    keys: IntArray
    personal: FloatArray
    iterations: int

    def utility(self, user: IntArray, item: IntArray) -> FloatArray:
        """See :class:`~benchmarks.peers.tuning.Scorer`."""
        return self._value(user, self.basis[item])

    def margin(self, user: IntArray, left: IntArray, right: IntArray) -> FloatArray:
        """Difference of utilities."""
        return self._value(user, self.basis[left] - self.basis[right])

    def report(self) -> dict[str, Any]:
        """Iterations and size."""
        return {"iterations": self.iterations, "coefficients": len(self.shared) + len(self.personal)}

    def _value(self, user: IntArray, x: Any) -> FloatArray:
        x = x.tocoo()
        key = user[x.row].astype(np.int64) * x.shape[1] + x.col
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        own = np.where(self.keys[place] == key, self.personal[place], 0.0)
        values: FloatArray = np.bincount(x.row, x.data * (self.shared[x.col] + own), x.shape[0]).astype(float)
        return values


def on_items(task: Task) -> Ridge:
    """One column an item."""
    return Ridge(sparse.eye_array(task.train.n_items, format="csr"))


def on_attributes(task: Task) -> Ridge:
    """One column an attribute, numbers standardised and categories one-hot.

    Raises
    ------
    DataError
        If the items have no attributes.
    """
    if task.items is None:
        raise DataError(f"the items of {task.name} have no attributes")
    matrix, _ = ItemFeatures.from_frame(task.items, "item").align(task.train.items)
    return Ridge(sparse.csr_array(matrix), most_rows=4_000, n_folds=5)


def _personal(shared: Any, user: IntArray, factor: float) -> tuple[IntArray, Any]:
    """Keys of the (user, column) pairs that occur, and their columns times ``factor``."""
    x = shared.tocoo()
    keys, column = np.unique(user[x.row].astype(np.int64) * x.shape[1] + x.col, return_inverse=True)
    return keys, sparse.csr_array((factor * x.data, (x.row, column)), shape=(x.shape[0], len(keys)))
