"""Scores of items: the mean evaluation of an item against others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predilect._base.types import FloatArray, IntArray
from predilect.data.features import FeatureSpace
from predilect.inference.gaussian.dense import symmetrise
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.projection import centres
from predilect.papers.gaspk.posterior.basis import PointBasis, kernel_parts
from predilect.papers.gaspk.posterior.curvature import Curvature
from predilect.papers.gaspk.tradeoffs.map import TradeOffMap

_SCORED = 4000  # trade-offs that boards are made of
_MOST_DENSE = 4000  # trade-offs whose covariance is held at once
_ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True, eq=False)
class ItemScores:
    """Score of item i: the mean over the references j of f(trade-off of i against j), as rows of the basis."""

    rows: FloatArray  # (n_items, rank)
    own: FloatArray  # residual covariance of one characteristic, (n_items, n_items); over 4 000 items its diagonal

    @classmethod
    def of(cls, basis: PointBasis, kernel: Kernel, trade_offs: FloatArray, signs: FloatArray) -> ItemScores:
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
    parts: tuple[FloatArray, FloatArray, FloatArray], w: FloatArray, gamma: FloatArray, factors: FloatArray,
    spread: float, left_open: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Mean and variance (n_users, n_items) of people's scores, centred over the items, from :func:`centred_blocks`.

    Equals ``GaSPKPosterior.person`` of each; ``factors`` (n_users,) are those of the characteristics' covariance,
    ``spread`` is T², ``left_open`` covariances of weights. Operations: n_users n_items n_c².
    """
    rows, blocks, own = parts
    n = len(rows)
    at_items = rows @ w
    mean = gamma @ at_items.T
    pairs = np.einsum("uc,ud->ucd", gamma, gamma).reshape(len(gamma), -1)
    var = pairs @ blocks.reshape(n, -1).T + np.einsum("uc,uc->u", gamma, gamma)[:, None] * own
    var *= factors[:, None]
    if left_open is not None:
        squares = np.einsum("ic,id->icd", at_items, at_items).reshape(n, -1)
        var += left_open.reshape(len(gamma), -1) @ squares.T
    return mean, spread * np.maximum(var, 0.0) + 0.5 * (spread - 1.0) * (1.0 - 1.0 / n)


def item_scores(
    basis: PointBasis, kernel: Kernel, trade_offs: TradeOffMap, space: FeatureSpace, random_state: int
) -> ItemScores:
    """Scores of the items, each against the same references."""
    n_items = len(space.matrix)
    matrix = None if trade_offs.items_are_attributes else space.matrix
    against = _references(space.matrix if matrix is not None else np.eye(n_items), random_state)
    item, other = np.repeat(np.arange(n_items), len(against)), np.tile(against, n_items)
    signs = np.where(item == other, 0.0, 1.0).reshape(n_items, -1)
    t = trade_offs.pairs(matrix, item, other).reshape(n_items, len(against), -1)
    if not kernel_parts(kernel)[2]:  # the item on the left and on the right, half each
        t = np.concatenate([t, trade_offs.pairs(matrix, other, item).reshape(t.shape)], axis=1)
        signs = np.concatenate([signs, -signs], axis=1)
    return ItemScores.of(basis, kernel, t, signs)


def _references(rows: FloatArray, random_state: int) -> IntArray:
    """The items that every item is scored against: all, or as many as make 4 000 trade-offs, spread over them."""
    n_items = len(rows)
    n = min(n_items, max(1, _SCORED // n_items))
    if n == n_items:
        return np.arange(n_items)
    middle = rows.mean(axis=0)[None, :] if n == 1 else centres(rows, n, random_state)
    return np.unique([int(np.square(rows - centre).sum(axis=1).argmin()) for centre in middle])
