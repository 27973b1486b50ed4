"""Utilities of all users of a joint process at once, through its product structure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import factorise, symmetrise
from predilect.covariance.joint import JointKernel
from predilect.posteriors.joint_process import JointProcess, Rows
from predilect.posteriors.utilities import Utilities

__all__ = ["kept_process", "people_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]

_ENTRIES_AT_ONCE = 5_000_000


def people_of(process: JointProcess, users: IntArray) -> Iterator[Utilities]:
    """Utilities of users by code, one after the other, equal to ``process.person``.

    Covariance K_uu K_x - K_x B_u K_x with B_u[a, b] = Σ k_u R k_u over the rows of items a and b: matrix products for
    all users together, 2 n_users n_rows² operations; one user at a time takes n_items times as many.
    """
    codes = process.rows.codes.astype(np.int64)
    users = np.asarray(users, dtype=np.int64)
    if codes.shape[1] != 2:  # rows are margins, each with two items
        for user in users.tolist():
            yield process.person(user)
        return
    order = np.lexsort((codes[:, 0], codes[:, 1]))
    who, what = codes[order].T
    items, starts = np.unique(what, return_index=True)
    stops = np.append(starts[1:], len(what))
    K_u, K_x = process.kernel.users.covariance(), process.kernel.items.covariance()
    rows_x = K_x[:, items]
    step = max(1, _ENTRIES_AT_ONCE // max(len(who), len(items) ** 2, 1))
    for start in range(0, len(users), step):
        some = users[start : start + step]
        W = K_u[np.ix_(some, who)]
        mean = np.add.reduceat(W * process.alpha[order], starts, axis=1) @ rows_x.T if len(who) else None
        B = np.empty((len(some), len(items), len(items)))
        for position, (first, stop) in enumerate(zip(starts, stops, strict=True)):
            half = W[:, first:stop] @ process.reduction[np.ix_(order[first:stop], order)]
            half *= W
            B[:, position] = np.add.reduceat(half, starts, axis=1)
        for position, user in enumerate(some.tolist()):
            mu = np.zeros(len(K_x)) if mean is None else mean[position]
            yield Utilities.of(mu, symmetrise(K_u[user, user] * K_x - rows_x @ B[position] @ rows_x.T))


def kept_process(process: JointProcess, users: IntArray, items: IntArray) -> JointProcess:
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
    rows = Rows(cells, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    reduction = symmetrise(W @ process.reduction @ W.T)
    return JointProcess(process.kernel, rows, W @ process.alpha, reduction, process.n_users)


def _cross(prior: JointKernel, users: IntArray, items: IntArray, codes: FloatArray) -> FloatArray:
    """Prior covariance of utilities with rows, which are utilities or margins; (n_kept, n_rows)."""
    u, a, *b = codes.T.astype(np.int64)
    K_x = prior.items.covariance()
    of_items = K_x[:, a] - K_x[:, b[0]] if b else K_x[:, a]
    return np.asarray(prior.users.covariance()[np.ix_(users, u)] * of_items[items])
