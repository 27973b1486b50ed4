"""Predictions of ``GaSPK``: from pairs of items to evaluations of their trade-offs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels import Antisymmetric, Kernel, Scaled
from predilect.data.tradeoffs import TradeOffMap
from predilect.inference.prior import FeatureSpace
from predilect.models.gaspk_bases import kernel_parts
from predilect.models.gaspk_parameters import resolve
from predilect.models.queries import Queries
from predilect.posteriors.gaspk.basis import DenseBasis
from predilect.posteriors.gaspk.posterior import GaSPKPosterior

__all__ = ["margins_of_queries"]

FloatArray = npt.NDArray[np.float64]


def margins_of_queries(model: Any, queries: Queries, new: FeatureSpace | None) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of f_u(t) for each pair, shapes (n,); pairs without attributes get the prior."""
    posterior, trade_offs = model.posterior_, model.trade_offs_
    antisymmetric = resolve(model).antisymmetric
    matrix, known = model.space_.matrix, model.space_.known
    if trade_offs.items_are_attributes:
        matrix, known = None, np.ones(len(model.items_), dtype=bool)
        if new is not None and (more := _with_items(trade_offs, posterior, len(new.known))) is not None:
            trade_offs, posterior = more
            known = np.append(known, np.ones(len(new.known), dtype=bool))
        elif new is not None:
            known = np.append(known, np.zeros(len(new.known), dtype=bool))
    elif new is not None:
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


def _with_items(
    trade_offs: TradeOffMap, posterior: GaSPKPosterior, n_new: int
) -> tuple[TradeOffMap, GaSPKPosterior] | None:
    """With unseen items as further dimensions, where items are their own attributes, 0 in all that was answered about.

    None on a grid or after a projection, which have no place for them.
    """
    basis = posterior.basis
    if not isinstance(basis, DenseBasis) or trade_offs.projection is not None:
        return None
    amplitude, inner, antisymmetric = kernel_parts(basis.kernel)
    lengths = np.broadcast_to(inner.length_scales, basis.pivots.shape[1])
    wider_kernel = replace(inner, length_scales=np.append(lengths, np.full(n_new, lengths.mean())))
    kernel: Kernel = Scaled(wider_kernel, amplitude)
    if antisymmetric:
        kernel = Antisymmetric(kernel)
    n = trade_offs.n_columns
    dimension = replace(trade_offs.dimensions[0], name="new")
    wider = replace(
        trade_offs, n_columns=n + n_new, dimensions=trade_offs.dimensions + (dimension,) * n_new,
        place=(*trade_offs.place, *range(n, n + n_new)),
    )  # fmt: skip
    pivots = np.hstack([basis.pivots, np.zeros((len(basis.pivots), n_new))])
    return wider, replace(posterior, basis=replace(basis, kernel=kernel, pivots=pivots))
