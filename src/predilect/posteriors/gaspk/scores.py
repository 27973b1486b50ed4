"""Scores of items: mean evaluation against reference items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import symmetrise
from predilect.covariance.kernels import Kernel
from predilect.posteriors.gaspk.basis import Basis

__all__ = ["ItemScores"]

FloatArray = npt.NDArray[np.float64]

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
