"""Mean and variance of mixtures of characteristics, question by question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect._compile import kernel
from predilect.gaussian.dense import symmetrise
from predilect.gaussian.kernels import Kernel
from predilect.models.gaspk.posterior.basis import Basis
from predilect.models.gaspk.posterior.curvature import Curvature

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


def mixed(
    user: IntArray, point: IntArray, gamma: FloatArray, mean: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """γ_uᵀ m_t and γ_uᵀ V_t γ_u of each question (user, point), shapes (n,); 0 where the code of a person is negative.

    ``mean`` (n_points, n_c) and symmetric ``covariance`` (n_points, n_c, n_c) are of the characteristics. n n_c²/2
    operations, fewer where weights are 0, and no memory but the results.
    """
    out = np.zeros((2, len(user)))
    _mixed(
        np.asarray(user, dtype=np.int64), np.asarray(point, dtype=np.int64), np.ascontiguousarray(gamma),
        np.ascontiguousarray(mean), np.ascontiguousarray(covariance), out,
    )  # fmt: skip
    return out[0], out[1]


@kernel
def _mixed(
    user: npt.NDArray[np.int64], point: npt.NDArray[np.int64], gamma: FloatArray, mean: FloatArray, V: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    for i in range(user.shape[0]):
        u, t = user[i], point[i]
        if u < 0:
            continue
        m = v = 0.0
        for c in range(gamma.shape[1]):
            own = gamma[u, c]
            if own == 0.0:
                continue
            m += own * mean[t, c]
            half = 0.5 * V[t, c, c] * own
            for d in range(c):
                half += V[t, c, d] * gamma[u, d]
            v += 2.0 * own * half
        out[0, i], out[1, i] = m, v


_MOST_DENSE = 4000  # trade-offs whose covariance is held at once
_ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True, eq=False)
class ItemScores:
    """Score of item i: the mean over the references j of f(trade-off of i against j), as rows of the basis."""

    rows: FloatArray  # (n_items, rank)
    own: FloatArray  # residual covariance of one characteristic, (n_items, n_items); over 4 000 items its diagonal

    @classmethod
    def of(cls, basis: Basis, kernel: Kernel, trade_offs: FloatArray, signs: FloatArray) -> ItemScores:
        """Scores from the trade-offs of every item against every reference, shape (n_items, n_references, d).

        ``signs`` (n_items, n_references) is -1 where the evaluation favours the reference, and 0 where it does not
        count. n_items² n_references² evaluations of the kernel, of up to 4 000 items; then n_items n_references.
        """
        n_items, n_references, d = trade_offs.shape
        rows = np.empty((n_items, basis.rank))
        step = max(1, _ROWS_AT_ONCE // n_references)
        for start in range(0, n_items, step):
            some = trade_offs[start : start + step]
            phi, _ = basis.rows(some.reshape(-1, d))
            signed = phi.reshape(len(some), n_references, -1) * signs[start : start + step, :, None]
            rows[start : start + step] = signed.mean(axis=1)
        if n_items > _MOST_DENSE:
            flat = trade_offs.mean(axis=1) if n_references > 1 else trade_offs[:, 0]
            own = np.maximum(kernel.diagonal(flat) - np.einsum("ij,ij->i", rows, rows), 0.0)
            return cls(rows, own)
        own = np.empty((n_items, n_items))
        everything = trade_offs.reshape(-1, d)
        for start in range(0, n_items, step):
            part = kernel(trade_offs[start : start + step].reshape(-1, d), everything)
            part *= signs[start : start + step].reshape(-1, 1) * signs.reshape(-1)
            part = part.reshape(-1, n_references, n_items, n_references).mean(axis=(1, 3))
            own[start : start + step] = part - rows[start : start + step] @ rows.T
        return cls(rows, symmetrise(own))


def centred_blocks(curvature: Curvature, scores: ItemScores) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Centred rows (n_items, rank) of the scores, covariances (n_items, n_c, n_c), residual variance (n_items,)."""
    rows = scores.rows - scores.rows.mean(axis=0)
    own, n = scores.own, len(scores.rows)
    if own.ndim == 1:
        own = own * (1.0 - 2.0 / n) + own.mean() / n
    else:
        own = np.diagonal(own) - 2.0 * own.mean(axis=0) + own.mean()
    return rows, curvature.blocks(rows), np.maximum(own, 0.0)


def centred_scores(
    parts: tuple[FloatArray, FloatArray, FloatArray], w: FloatArray, gamma: FloatArray, spread: float
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (n_users, n_items) of people's scores, centred over the items, from :func:`centred_blocks`.

    Equals ``GaSPKPosterior.person`` of each; ``spread`` is T². n_users n_items n_c² operations.
    """
    rows, blocks, own = parts
    n = len(rows)
    mean = gamma @ (rows @ w).T
    pairs = np.einsum("uc,ud->ucd", gamma, gamma).reshape(len(gamma), -1)
    var = pairs @ blocks.reshape(n, -1).T + np.einsum("uc,uc->u", gamma, gamma)[:, None] * own
    return mean, spread * np.maximum(var, 0.0) + 0.5 * (spread - 1.0) * (1.0 - 1.0 / n)
