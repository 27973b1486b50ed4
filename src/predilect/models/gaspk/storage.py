"""A fitted ``GaSPK`` as plain values and arrays, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from predilect.gaussian.dense import factorise
from predilect.gaussian.kernels import Kernel
from predilect.likelihoods.views import Probit
from predilect.models.checks import LARGEST, check_choice
from predilect.models.gaspk.em.answers import TradeOffAnswers
from predilect.models.gaspk.em.mode import state_at
from predilect.models.gaspk.posterior.basis import Basis, DenseBasis
from predilect.models.gaspk.posterior.curvature import ByCovariance
from predilect.models.gaspk.posterior.posterior import GaSPKPosterior
from predilect.models.gaspk.prior import basis_of
from predilect.models.gaspk.settings import BACKENDS
from predilect.models.gaspk.tradeoffs.choices import Choices
from predilect.models.gaspk.tradeoffs.grids import Grid
from predilect.models.gaspk.tradeoffs.map import TradeOffMap
from predilect.models.gaspk.training import posterior_of
from predilect.models.saving import Fields, amounts, codes, number_within, numbers, optional, outcomes, positive

_COLUMNS = ("user", "point", "outcome", "weight")
_ROUNDING = 1e-6


def gaspk_fields(document: dict[str, Any]) -> Fields:
    """Expected arrays: of T trade-offs of D numbers, C characteristics, R rows of answers, and rank M."""
    fields = {
        "points": numbers("T D"), "places": optional(amounts("T", "int64")), "m": numbers("M C"),
        "gamma": amounts("U C"), "user": codes("R", "U", "int64"), "point": codes("R", "T", "int64"),
        "outcome": outcomes("R"), "weight": positive("R"),
    }  # fmt: skip
    if "root" in document["arrays"]:
        if "covariance" in document["arrays"]:
            fields["covariance"] = numbers("K K")
        if "left_open" in document["arrays"]:
            fields["left_open"] = numbers("U C C")
        fields |= {"root": numbers("T M"), "back": numbers("M M"), "pivots": numbers("M D")}
    return fields


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
        # Stored and not recomputed: where eigenvalues are nearly equal, another machine might turn the coordinates.
        arrays |= {"pivots": basis.pivots, "root": basis.root, "back": basis.back}
        values["left_out"] = basis.left_out
    if isinstance(posterior.curvature, ByCovariance):  # what was learned online does not follow from the answers
        arrays["covariance"] = posterior.curvature.matrix
        if posterior.left_open is not None:
            arrays["left_open"] = posterior.left_open
    return values, arrays


def unpack_gaspk(
    model: Any, values: dict[str, Any], arrays: dict[str, Any]
) -> tuple[GaSPKPosterior, Choices, TradeOffAnswers]:
    """The inverse of :func:`pack_gaspk`; ``model`` has hyper-parameters and tie threshold.

    Raises ValueError if the arrays do not fit each other, DataError if trade-offs were made by a function.
    """
    h = model.hyperparameters_
    grid = None if values["grid"] is None else Grid.from_dict(values["grid"])
    trade_offs = TradeOffMap.from_dict(values["trade_offs"])
    points, gamma, w, places = arrays["points"], arrays["gamma"], arrays["m"], arrays.get("places")
    if trade_offs.n_dimensions != points.shape[1] or (grid is None) != (places is None):
        raise ValueError(f"trade-offs of {trade_offs.n_dimensions} numbers, but points of {points.shape[1]}")
    if grid is not None and places is not None:
        on_grid = places[-1] < grid.n_points and len(grid.levels) == points.shape[1]
        if not on_grid or (np.diff(places) <= 0).any():
            raise ValueError("places that are not on the grid")
    if (np.abs(gamma.sum(axis=1) - 1.0) > 1e-6).any():
        raise ValueError("weights of a person do not sum to 1")
    choices = Choices(trade_offs, grid, points, places)
    user, point, outcome, weight = (arrays[name] for name in _COLUMNS)
    if (np.diff((user * len(points) + point) * 3 + outcome) <= 0).any():
        raise ValueError("the answers do not ascend")
    answers = TradeOffAnswers(user, point, outcome, weight, n_users=len(gamma), n_points=len(points))
    kernel: Kernel = h.kernel
    basis: Basis
    if "root" in arrays:
        left_out = number_within("left_out", values["left_out"], 0.0, 1.0)
        basis = DenseBasis(kernel, arrays["pivots"], arrays["root"], arrays["back"], left_out)
        if basis.n_points != len(points):
            raise ValueError(f"{len(points)} trade-offs, but a basis of {basis.n_points}")
        most = kernel.diagonal(points) * (1.0 + _ROUNDING)
        if not all((np.einsum("ij,ij->i", Phi, Phi) <= most).all() for Phi in (basis.root, basis.rows(points)[0])):
            raise ValueError("a basis of more than the prior variance")
    else:
        check_choice("backend", values["backend"], BACKENDS)
        basis = basis_of(kernel, choices, values["backend"], h.n_components, answers.n_rows)
    if w.shape != (basis.rank, h.n_components) or gamma.shape[1] != h.n_components:
        raise ValueError(f"{basis.rank} coordinates of {h.n_components} characteristics, but w is {w.shape}")
    number_within("spread", h.spread, 1.0, LARGEST)
    state = state_at(basis, answers, gamma, Probit(model.tie_threshold_), w)
    number_within("open_share", h.open_share, 0.0, 1.0)
    number_within("newcomer_factor", h.newcomer_factor, 1.0, LARGEST)
    number_within("usual", h.usual, 0.0, LARGEST)
    alpha = number_within("concentration", h.concentration, 0.0, LARGEST)
    if alpha > 0.0 and not (gamma > 0.0).all():
        raise ValueError("weights of 0 under a prior that has none")
    posterior = posterior_of(model._settings, h, trade_offs, model._space, state, w)
    if "covariance" in arrays:
        covariance = arrays["covariance"]
        if len(covariance) != w.size or not np.isfinite(factorise(covariance).lower).all():
            raise ValueError(f"a covariance of {len(covariance)} coordinates, of which there are {w.size}")
        left_open = arrays.get("left_open", posterior.left_open)
        if (left_open is None) != (posterior.left_open is None):
            raise ValueError("covariances of weights that have no prior, or none of weights that have one")
        online = ByCovariance(covariance, *w.shape)
        posterior = replace(posterior, curvature=online, low_rank=None, left_open=left_open)
    return posterior, choices, answers
