"""Shared by the outputs of ``GaSPK``: codes of people, ranges of attributes, frames of results."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.data.frames import build_frame
from predilect.data.tradeoff_steps import Step, round_size
from predilect.data.tradeoffs import TradeOffMap
from predilect.errors import DataError, DataWarning
from predilect.likelihoods.probit import at
from predilect.models.gaspk_parameters import resolve
from predilect.posteriors.gaspk.mixtures import Mixtures, average, mixtures

__all__ = ["BEYOND", "all_people", "codes_of", "frame_of", "limits", "mixtures_of", "typical_size", "warn_outside"]

FloatArray = npt.NDArray[np.float64]

BEYOND = 1e-9  # of a range


def codes_of(model: Any, user: Any) -> tuple[npt.NDArray[np.int64], list[Any]] | None:
    """Codes and ids of the people asked for, None for the average of all; DataError if they are unknown."""
    if user is None:
        return None
    if model.users_ is None:
        raise DataError("the answers did not say who gave them: leave user out.")
    if isinstance(user, str) and user == "all" and "all" not in model.users_.ids:
        ids = all_people(model)
        return np.arange(len(ids)), ids
    ids = list(user) if isinstance(user, Iterable) and not isinstance(user, str | bytes | tuple) else [user]
    if not ids:
        raise DataError('user is an empty list. Name people, or say "all", or leave it out for the average.')
    return np.array([model._user_code(name) for name in ids], dtype=np.int64), ids


def mixtures_of(model: Any, who: tuple[npt.NDArray[np.int64], list[Any]] | None) -> Mixtures:
    """Weights of people, as :func:`codes_of` gives them, or the average of all as one person."""
    posterior, answers = model.posterior_, model.answers_
    gamma = posterior.gamma
    F = posterior.basis.forward(posterior.w)
    z = np.einsum("ic,ic->i", gamma[answers.user], F[answers.point])
    precision = answers.weight * at(answers.outcome, z, model.tie_threshold_)[2]
    people = np.arange(len(gamma)) if who is None else who[0]
    found = mixtures(gamma, F, answers.user, answers.point, precision, people, posterior.spread)
    return average(found) if who is None else found


def limits(model: Any) -> dict[str, tuple[float, float]]:
    """Range of each attribute among the trade-offs learned from, by label, in own units; symmetric if antisymmetric."""
    columns = model.trade_offs_.in_units(model.choices_.points)
    if resolve(model).antisymmetric:
        columns = {label: np.append(-np.abs(values), np.abs(values)) for label, values in columns.items()}
    return {label: (float(values.min()), float(values.max())) for label, values in columns.items()}


def warn_outside(model: Any, t: FloatArray, stacklevel: int = 3) -> None:
    """Warn of trade-offs, shape (n, k), outside the range of those learned from, and of half a change of category."""
    outside = np.zeros(len(t), dtype=bool)
    where, known = [], limits(model)
    in_units: dict[str, FloatArray] = model.trade_offs_.in_units(t)
    for label, values in in_units.items():
        low, high = known[label]
        slack = BEYOND * max(abs(low), abs(high))
        beyond = (values < low - slack) | (values > high + slack)
        if beyond.any():
            where.append(f"{label} from {low:.6g} to {high:.6g}")
        outside |= beyond
    if outside.any():
        more = " ..." if len(where) > 3 else ""
        warnings.warn(
            f"{int(outside.sum())} of {len(t)} trade-offs lie outside the range of those the model learned from "
            f"({'; '.join(where[:3])}{more}): there it mostly repeats its prior", DataWarning, stacklevel=stacklevel,
        )  # fmt: skip


def typical_size(model: Any, step: Step) -> float:
    """A round change of an attribute: near its standard deviation over the items; the difference of its two values."""
    if not step.is_number:
        return 1.0
    trade_offs: TradeOffMap = model.trade_offs_
    if trade_offs.kind == "difference" and model.features_ is not None:
        names = [output.name for output in model.features_.outputs]
        column = model.space_.matrix[model.space_.known, names.index(step.dimension.name)]
        values = np.unique(np.round(column, 9))
        if len(values) == 2:
            return float(np.round((values[1] - values[0]) * step.dimension.scale, 9))
    return round_size(step.dimension.scale)


def frame_of(model: Any, given: Mapping[str, Any], added: Mapping[str, Any]) -> Any:
    """A frame of the caller's kind from the caller's columns and ours; DataError if a name is among both."""
    taken = [name for name in added if name in given]
    if taken:
        raise DataError(f'an attribute is called "{taken[0]}", as a column of the results. Rename it.')
    return build_frame({**given, **added}, model.backend_)


def all_people(model: Any) -> list[Any]:
    """Ids of the people, by their codes; those added after the fit last."""
    ids = list(model.users_.ids)
    added = sorted(model.added_users_, key=model.added_users_.__getitem__)
    return ids + added
