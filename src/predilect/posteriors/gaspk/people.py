"""Everybody's scores of the items at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predilect.posteriors.gaspk.curvature import Curvature
from predilect.posteriors.gaspk.scores import ItemScores

__all__ = ["centred_blocks", "centred_scores"]

FloatArray = npt.NDArray[np.float64]


def centred_blocks(curvature: Curvature, scores: ItemScores) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What the scores of all people, centred over the items, are made of.

    Returns
    -------
    rows : array of float, shape (n_items, rank)
        Less their mean.
    blocks : array of float, shape (n_items, n_c, n_c)
        Covariances of the characteristics there.
    own : array of float, shape (n_items,)
        Variance of one characteristic that the rows do not hold, centred.
    """
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
    """Mean and variance of people's scores, centred over the items; shapes (n_users, n_items).

    Parameters
    ----------
    parts
        Of :func:`centred_blocks`.
    w : array of float, shape (rank, n_c)
    gamma : array of float, shape (n_users, n_c)
    spread : float
        T².

    Notes
    -----
    The same as ``GaSPKPosterior.person`` gives of each; n_users n_items n_c² operations.
    """
    rows, blocks, own = parts
    n = len(rows)
    mean = gamma @ (rows @ w).T
    pairs = np.einsum("uc,ud->ucd", gamma, gamma).reshape(len(gamma), -1)
    var = pairs @ blocks.reshape(n, -1).T + np.einsum("uc,uc->u", gamma, gamma)[:, None] * own
    return mean, spread * np.maximum(var, 0.0) + 0.5 * (spread - 1.0) * (1.0 - 1.0 / n)
