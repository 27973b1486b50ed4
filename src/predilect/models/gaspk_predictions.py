"""Predictions of ``GaSPK``: from pairs of items to evaluations of their trade-offs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.inference.prior import FeatureSpace
from predilect.models.gaspk_parameters import resolve
from predilect.models.queries import Queries

__all__ = ["margins_of_queries"]

FloatArray = npt.NDArray[np.float64]


def margins_of_queries(model: Any, queries: Queries, new: FeatureSpace | None) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of f_u(t) for each pair, shapes (n,); what lacks attributes gets the prior.

    Notes
    -----
    Each pair of items, and each distinct trade-off, is looked at once.
    """
    posterior, trade_offs = model.posterior_, model.trade_offs_
    antisymmetric = resolve(model).antisymmetric
    matrix, known = model.space_.matrix, np.ones(len(model.items_), dtype=bool)
    if trade_offs.items_are_attributes:
        matrix = None
        if new is not None:
            known = np.append(known, np.zeros(len(new.known), dtype=bool))
    else:
        known = model.space_.known
        if new is not None:
            matrix, known = np.vstack([matrix, new.matrix]), np.append(known, new.known)
    # Without antisymmetry f(-t) is another question: the answers had the item with the smaller code on the left.
    swapped = np.zeros(len(queries.left), dtype=bool) if antisymmetric else queries.left > queries.right
    left = np.where(swapped, queries.right, queries.left)
    right = np.where(swapped, queries.left, queries.right)
    asked = known[left] & known[right]
    users = queries.users if model.personal_ else np.zeros(len(left), dtype=np.int32)
    mean, var = np.zeros(len(left)), np.empty(len(left))
    gamma = posterior.gamma
    squares = np.append(np.einsum("uc,uc->u", gamma, gamma), np.trace(posterior.second_moment))
    var[~asked] = posterior.spread * (1.0 + posterior.prior_variance * squares[users[~asked]]) - 1.0
    if asked.any():
        found = trade_offs.points(matrix, left[asked], right[asked], antisymmetric=antisymmetric)
        value, var[asked] = posterior.evaluations(users[asked], found.points, found.code)
        mean[asked] = value * found.sign
    return np.where(swapped, -mean, mean), var
