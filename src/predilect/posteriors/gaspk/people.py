"""Scores of the items by all people at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predilect.posteriors.gaspk.curvature import Curvature
from predilect.posteriors.gaspk.scores import ItemScores

__all__ = ["centred_blocks", "centred_scores"]

FloatArray = npt.NDArray[np.float64]


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
