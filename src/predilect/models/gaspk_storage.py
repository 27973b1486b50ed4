"""A fitted ``GaSPK`` as plain values and arrays, and back."""

from __future__ import annotations

from typing import Any

from predilect.covariance.kernels import Kernel
from predilect.data.grids import Grid
from predilect.data.tradeoffs import TauFunction, TradeOffMap
from predilect.inference.gaspk.answers import TradeOffAnswers
from predilect.inference.gaspk.mode import state_at
from predilect.likelihoods.views import Probit
from predilect.models.gaspk_bases import basis_of, posterior_of
from predilect.models.gaspk_choices import Choices
from predilect.posteriors.gaspk.basis import Basis, DenseBasis
from predilect.posteriors.gaspk.posterior import GaSPKPosterior

__all__ = ["pack_gaspk", "unpack_gaspk"]

_COLUMNS = ("user", "point", "outcome", "weight")


def pack_gaspk(
    posterior: GaSPKPosterior, choices: Choices, answers: TradeOffAnswers, backend: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain values and arrays: the mode, the weights, and the answers that the curvature is made of."""
    values: dict[str, Any] = {
        "trade_offs": choices.trade_offs.to_dict(),
        "grid": None if choices.grid is None else choices.grid.to_dict(),
        "backend": backend,
    }
    arrays = {name: getattr(answers, name) for name in _COLUMNS}
    arrays |= {"m": posterior.w, "gamma": posterior.gamma, "points": choices.points}
    if choices.places is not None:
        arrays["places"] = choices.places
    basis = posterior.basis
    if isinstance(basis, DenseBasis):
        # Kept and not made anew: where eigenvalues are nearly equal, another machine might turn the coordinates.
        arrays |= {"pivots": basis.pivots, "root": basis.root, "back": basis.back}
        values["left_out"] = basis.left_out
    return values, arrays


def unpack_gaspk(
    model: Any, values: dict[str, Any], arrays: dict[str, Any], function: TauFunction | None
) -> tuple[GaSPKPosterior, Choices, TradeOffAnswers]:
    """What :func:`pack_gaspk` packed.

    Parameters
    ----------
    model : GaSPK
        With its hyper-parameters and tie threshold.
    function : callable or None
        tau, where it is a function of the caller's.

    Raises
    ------
    ValueError
        If the arrays do not fit each other.
    DataError
        If the trade-offs were made by a function and none is given.
    """
    h = model.hyperparameters_
    grid = None if values["grid"] is None else Grid.from_dict(values["grid"])
    trade_offs = TradeOffMap.from_dict(values["trade_offs"], function)
    points, gamma, w = arrays["points"], arrays["gamma"], arrays["m"]
    choices = Choices(trade_offs, grid, points, arrays.get("places"))
    user, point, outcome, weight = (arrays[name] for name in _COLUMNS)
    answers = TradeOffAnswers(user, point, outcome, weight, n_users=len(gamma), n_points=len(points))
    kernel: Kernel = h.kernel
    basis: Basis
    if "root" in arrays:
        basis = DenseBasis(kernel, arrays["pivots"], arrays["root"], arrays["back"], float(values["left_out"]))
        if basis.n_points != len(points):
            raise ValueError(f"{len(points)} trade-offs, but a basis of {basis.n_points}")
    else:
        basis = basis_of(kernel, choices, values["backend"], h.n_characteristics, answers.n_rows)
    if w.shape != (basis.rank, h.n_characteristics) or gamma.shape[1] != h.n_characteristics:
        raise ValueError(f"{basis.rank} coordinates of {h.n_characteristics} characteristics, but w is {w.shape}")
    if answers.n_rows and (answers.point.max() >= len(points) or answers.user.max() >= len(gamma)):
        raise ValueError("answers about trade-offs or of people that are not there")
    state = state_at(basis, answers, gamma, Probit(model.tie_threshold_), w)
    return posterior_of(model, choices.trade_offs, kernel, basis, w, gamma, state, h.spread), choices, answers
