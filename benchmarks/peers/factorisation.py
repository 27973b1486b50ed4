"""Pairwise matrix factorisation: margin b_a - b_b + p_u.(q_a - q_b), logistic loss, L2 penalties, L-BFGS.

Only the product of the penalties of p and q matters, as p c and q / c give the same margins; so they have one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks.peers.scorers import left_share
from benchmarks.peers.tuning import Setting
from benchmarks.task import Task
from predilect.data import Comparisons

__all__ = ["Factorisation", "method"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]

MOST_ITERATIONS = 300
TOLERANCE = 1e-6  # relative fall of the objective in one iteration


@dataclass(frozen=True)
class Factorisation:
    """How the factorisation is fitted: b has penalty ``shared`` / 2, p and q have ``personal`` √n_users / 2.

    The penalty is then one on the nuclear norm of the matrix p q', which grows with √n_users if people are alike; so
    ``personal`` may be chosen on a sample of them.
    """

    axes: Mapping[str, Sequence[float]] = field(
        default_factory=lambda: {
            "personal": (0.015, 0.03, 0.045, 0.07, 0.1, 0.15, 0.22, 0.33, 0.5, 0.8),
            "rank": (2, 3, 5, 8, 16, 32),
            "shared": (0.01, 0.1, 0.3, 1.0, 3.0, 10.0),
        }
    )
    start: Setting = field(default_factory=lambda: {"personal": 0.1, "rank": 5, "shared": 1.0})
    normal: bool = False
    most_rows: int = 50_000
    n_folds: int = 5

    def fit(self, rows: Comparisons, setting: Setting, seed: int) -> FactorisationFit:
        """L-BFGS from small random factors."""
        people, user = np.unique(rows.user, return_inverse=True)
        n_users, n_items, rank = len(people), rows.n_items, min(int(setting["rank"]), rows.n_items)
        sizes = (n_items, n_users * rank, n_items * rank)
        cuts = np.cumsum(sizes)[:-1]
        personal = setting["personal"] * np.sqrt(n_users)
        penalty = np.repeat([setting["shared"], personal, personal], sizes)
        n, target, weight = rows.n_rows, left_share(rows), rows.weight
        row = np.arange(n)
        difference = sparse.csr_array(
            (np.repeat([1.0, -1.0], n), (np.tile(row, 2), np.concatenate([rows.left, rows.right]))), shape=(n, n_items)
        )
        to_items = difference.T.tocsr()
        to_users = sparse.csr_array((np.ones(n), (user, row)), shape=(n_users, n))

        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            b, p, q = np.split(x, cuts)
            p, q = p.reshape(n_users, rank), q.reshape(n_items, rank)
            taste, gap = p[user], difference @ q
            z = difference @ b + np.einsum("nk,nk->n", taste, gap)
            value = float(weight @ (np.logaddexp(0.0, z) - target * z)) + 0.5 * float(penalty @ x**2)
            slope = weight * (expit(z) - target)
            parts = (to_items @ slope, to_users @ (slope[:, None] * gap), to_items @ (slope[:, None] * taste))
            return value, np.concatenate([part.ravel() for part in parts]) + penalty * x

        start = 0.3 * np.random.default_rng(seed).standard_normal(sum(sizes))
        start[:n_items] = 0.0
        found = minimize(
            objective, start, jac=True, method="L-BFGS-B",
            options={"maxiter": MOST_ITERATIONS, "ftol": TOLERANCE, "gtol": 1e-4, "maxcor": 20},
        )  # fmt: skip
        b, p, q = np.split(found.x, cuts)
        tastes = np.zeros((rows.n_users, rank))
        tastes[people] = p.reshape(n_users, rank)
        return FactorisationFit(b, tastes, q.reshape(n_items, rank), int(found.nit))


@dataclass(frozen=True)
class FactorisationFit:
    """b (n_items,), p (n_users, rank), q (n_items, rank)."""

    b: FloatArray
    p: FloatArray
    q: FloatArray
    iterations: int

    def utility(self, user: IntArray, item: IntArray) -> FloatArray:
        """See :class:`~benchmarks.peers.tuning.Scorer`."""
        taste = np.where((user >= 0)[:, None], self.p[user], 0.0)
        values: FloatArray = self.b[item] + np.einsum("nk,nk->n", taste, self.q[item])
        return values

    def margin(self, user: IntArray, left: IntArray, right: IntArray) -> FloatArray:
        """Difference of utilities."""
        return self.utility(user, left) - self.utility(user, right)

    def report(self) -> dict[str, Any]:
        """Iterations."""
        return {"iterations": self.iterations, "converged": self.iterations < MOST_ITERATIONS, "rank": self.p.shape[1]}


def method(task: Task) -> Factorisation:
    """The same for every task."""
    return Factorisation()
