"""Joint process given only the utilities that each user keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._json import typed
from predilect.gaussian.dense import factorise, pack_triangle, symmetrise, unpack_triangle
from predilect.models.fields import LARGEST, SMALL, Fields, codes, flags, numbers, small
from predilect.models.joint.covariance import JointKernel, Table
from predilect.models.joint.process import JointProcess, Rows
from predilect.models.kernels import kernel_from_dict, kernel_to_dict
from predilect.models.saving import number_within

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class KeptProcess(JointProcess):
    """Joint process given the utilities of some cells, (user, item), which are its rows; vvm.md 3, not ``local``."""

    @property
    def n_kept(self) -> int:
        """Number of utilities that are kept."""
        return len(self.rows.codes)

    def kept(self, user: int) -> IntArray:
        """Items that one user keeps, ascending."""
        cells = self.rows.codes.astype(np.int64)
        return cells[cells[:, 0] == user, 1]

    def holds(self, users: IntArray, items: IntArray) -> npt.NDArray[np.bool_]:
        """Whether users keep items, (n,); False for an unseen user (-1)."""
        n = self.n_items
        cells = self.rows.codes.astype(np.int64) @ np.array([n, 1])
        inside = (np.asarray(users) >= 0) & (items >= 0) & (items < n)
        return np.asarray(np.isin(np.asarray(users, dtype=np.int64) * n + items, cells) & inside)

    def answer_counts(self, start: int, stop: int) -> FloatArray:
        """Answers of users on the items they keep, (stop - start, n_items): none are counted."""
        return np.zeros((stop - start, self.n_items))

    def pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Plain values and arrays; the features of users and items are among the arrays."""
        kernel, (who, what) = self.kernel, self.rows.codes.T
        users, items = kernel.users, kernel.items
        values = {
            "user_kernel": kernel_to_dict(users.kernel), "item_kernel": kernel_to_dict(items.kernel),
            "nuggets": kernel.nuggets and list(kernel.nuggets), "n_users": self.n_users,
        }  # fmt: skip
        return values, {
            "user": small(who), "item": small(what), "alpha": self.alpha, "reduction": pack_triangle(self.reduction),
            "user_rows": users.features, "user_known": users.known, "feature_matrix": items.features,
            "feature_known": items.known,
        }  # fmt: skip

    @classmethod
    def fields(cls, arrays: Mapping[str, Any]) -> Fields:
        """Expected arrays of K kept utilities, from the types and shapes that a document lists."""
        n_kept = arrays["alpha"][1][0]
        return {
            "user": codes("K", "U", SMALL), "item": codes("K", "I", SMALL), "alpha": numbers("K"),
            "reduction": numbers(str(n_kept * (n_kept + 1) // 2)), "user_rows": numbers("U G|U 0"),
            "user_known": flags("U"), "feature_matrix": numbers("I F"), "feature_known": flags("I"),
        }  # fmt: skip

    @classmethod
    def unpack(cls, values: Mapping[str, Any], arrays: Mapping[str, Any]) -> KeptProcess:
        """What :meth:`pack` packed; ValueError, TypeError or KeyError for damaged input."""
        nuggets = typed(tuple[float, float] | None, values["nuggets"], "nuggets")
        for nugget in nuggets or ():
            number_within("nuggets", nugget, 0.0, LARGEST)
        kernel = JointKernel(
            Table(kernel_from_dict(values["user_kernel"]), arrays["user_rows"], arrays["user_known"]),
            Table(kernel_from_dict(values["item_kernel"]), arrays["feature_matrix"], arrays["feature_known"]), nuggets,
        )  # fmt: skip
        cells = np.column_stack([arrays["user"], arrays["item"]]).astype(np.float64)
        n_users = typed(int, values["n_users"], "n_users")
        return cls(kernel, rows_of(cells), arrays["alpha"], unpack_triangle(arrays["reduction"]), n_users)


def kept_process(process: JointProcess, users: IntArray, items: IntArray) -> KeptProcess:
    """Joint process given only the utilities f_S kept of (``users``, ``items``), S; vvm.md 3.

    Mean K_*S K_SS⁻¹ μ_S and covariance K_** - K_*S (K_SS⁻¹ - K_SS⁻¹ Σ_SS K_SS⁻¹) K_S*: unseen users and items follow
    from their features, as before. The full process where S is every row of the answers. With W = K_SS⁻¹ K_S,rows the
    two are W α and W R Wᵀ: no difference of near-equal matrices. n_kept³ / 3 + n_kept n_rows (n_kept + n_rows)
    operations.
    """
    # Nuggets are of single answers' margins, not of utilities.
    prior = replace(process.kernel, nuggets=None)
    cells = np.column_stack([users, items]).astype(np.float64)
    W = factorise(prior(cells)).solve(_cross(prior, users, items, process.rows.codes))
    reduction = symmetrise(W @ process.reduction @ W.T)
    return KeptProcess(process.kernel, rows_of(cells), W @ process.alpha, reduction, process.n_users)


def rows_of(cells: FloatArray) -> Rows:
    """Utilities of cells as rows that no answer compares."""
    nothing = np.zeros(0, dtype=np.int64)
    return Rows(cells, nothing, nothing)


def _cross(prior: JointKernel, users: IntArray, items: IntArray, codes: FloatArray) -> FloatArray:
    """Prior covariance of utilities with rows, which are utilities or margins; (n_kept, n_rows)."""
    u, a, *b = codes.T.astype(np.int64)
    K_x = prior.items.covariance()
    of_items = K_x[:, a] - K_x[:, b[0]] if b else K_x[:, a]
    return np.asarray(prior.users.covariance()[np.ix_(users, u)] * of_items[items])
