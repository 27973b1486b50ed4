"""Shared by the outputs of ``GaSPK``: codes of people, ranges of attributes, frames of results."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.features import FeatureSpace
from predilect.data.frames import build_frame
from predilect.errors import DataError, DataWarning
from predilect.inference.likelihoods.tabulated import at
from predilect.models.reading import PairQueries, beyond
from predilect.papers.gaspk.posterior.joint import Mixtures, average, mixtures
from predilect.papers.gaspk.posterior.posterior import GaSPKPosterior
from predilect.papers.gaspk.tradeoffs.map import Step, TradeOffMap, round_size


def codes_of(model: Any, user: Any) -> tuple[IntArray, list[Any]] | None:
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


def mixtures_of(model: Any, who: tuple[IntArray, list[Any]] | None) -> Mixtures:
    """Weights of people, as :func:`codes_of` gives them, or the average of all as one person."""
    posterior, answers = model.posterior_, model.answers_
    gamma = posterior.gamma
    F = posterior.basis.forward(posterior.w)
    z = np.einsum("ic,ic->i", gamma[answers.user], F[answers.point])
    precision = answers.weight * at(answers.outcome, z, model.tie_threshold_)[2]
    people = np.arange(len(gamma)) if who is None else who[0]
    found = mixtures(
        gamma, F, answers.user, answers.point, precision, people, posterior.spread, posterior.factors_of(people)
    )
    return average(found) if who is None else found


def limits(model: Any) -> dict[str, tuple[float, float]]:
    """Range of each attribute among the trade-offs learned from, by label, in own units; symmetric if antisymmetric."""
    columns = model.trade_offs_.in_units(model._choices.points)
    if model._settings.antisymmetric:
        columns = {label: np.append(-np.abs(values), np.abs(values)) for label, values in columns.items()}
    return {label: (float(values.min()), float(values.max())) for label, values in columns.items()}


def warn_outside(model: Any, t: FloatArray) -> None:
    """Warn of trade-offs, shape (n, k), outside the range of those learned from, and of half a change of category."""
    n, where = beyond(model.trade_offs_.in_units(t), limits(model))
    if n:
        warnings.warn(
            f"{n} of {len(t)} trade-offs lie outside the range of those the model learned from ({where}): there it "
            "mostly repeats its prior", DataWarning, stacklevel=3,
        )  # fmt: skip


def typical_size(model: Any, step: Step) -> float:
    """A round change of an attribute: near its standard deviation over the items; the difference of its two values."""
    if not step.is_number:
        return 1.0
    trade_offs: TradeOffMap = model.trade_offs_
    if trade_offs.kind == "difference" and model.features_ is not None:
        names = [output.name for output in model.features_.outputs]
        column = model._space.matrix[model._space.known, names.index(step.dimension.name)]
        values = np.unique(np.round(column, 9))
        if len(values) == 2:
            return float(np.round((values[1] - values[0]) * step.dimension.scale, 9))
    return round_size(step.dimension.scale)


def frame_of(model: Any, given: Mapping[str, Any], added: Mapping[str, Any]) -> Any:
    """A frame of the caller's kind from the caller's columns and ours; DataError if a name is among both."""
    taken = [name for name in added if name in given]
    if taken:
        raise DataError(f'an attribute is called "{taken[0]}", as a column of the results. Rename it.')
    return build_frame({**given, **added}, model._backend)


def all_people(model: Any) -> list[Any]:
    """Ids of the people, by their codes; those added after the fit last."""
    ids = list(model.users_.ids)
    added = sorted(model._added_users, key=model._added_users.__getitem__)
    return ids + added


@dataclass(frozen=True, slots=True, eq=False)
class TradeOffQuestions:
    """Pairs of items as trade-offs; (n,) each, but ``trade_offs`` and what follows are of the pairs with attributes."""

    users: IntArray
    known: BoolArray  # whether both items have attributes
    trade_offs: FloatArray  # (q, d)
    code: IntArray
    sign: FloatArray

    def margins(self, posterior: GaSPKPosterior) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(t), shapes (n,); pairs without attributes get the prior."""
        known, gamma = self.known, posterior.gamma
        mean, var = np.zeros(len(known)), np.empty(len(known))
        squares = np.append(np.einsum("uc,uc->u", gamma, gamma), np.trace(posterior.second_moment))
        others = self.users[~known]
        prior = posterior.prior_variance * posterior.factors_of(others) * squares[others]
        var[~known] = posterior.spread * (1.0 + prior) - 1.0
        if known.any():
            value, var[known] = posterior.evaluations(self.users[known], self.trade_offs, self.code)
            mean[known] = value * self.sign
        return mean, var


def questions_of(
    model: Any, queries: PairQueries, new: FeatureSpace | None
) -> tuple[TradeOffQuestions, GaSPKPosterior]:
    """The trade-offs of pairs, and the posterior, which has room for unseen items where items are their attributes."""
    posterior, trade_offs = model.posterior_, model.trade_offs_
    matrix, known = model._space.matrix, model._space.known
    if trade_offs.items_are_attributes:
        matrix, known = None, np.ones(len(model.items_), dtype=bool)
        if new is not None and (more := _with_items(trade_offs, posterior, len(new.known))) is not None:
            trade_offs, posterior = more
            known = np.append(known, np.ones(len(new.known), dtype=bool))
        elif new is not None:
            known = np.append(known, np.zeros(len(new.known), dtype=bool))
    elif new is not None:
        matrix, known = np.vstack([matrix, new.matrix]), np.append(known, new.known)
    left, right = queries.left, queries.right
    asked = known[left] & known[right]
    users = queries.users if model.personal_ else np.zeros(len(left), dtype=np.int32)
    found = trade_offs.points(matrix, left[asked], right[asked], antisymmetric=model._settings.antisymmetric)
    return TradeOffQuestions(users, asked, found.points, found.code, found.sign), posterior


def _with_items(
    trade_offs: TradeOffMap, posterior: GaSPKPosterior, n_new: int
) -> tuple[TradeOffMap, GaSPKPosterior] | None:
    """With unseen items as further dimensions, 0 so far; None on a grid, without room."""
    basis = posterior.basis.widened(n_new)
    if basis is None:
        return None
    n = trade_offs.n_columns
    dimension = replace(trade_offs.dimensions[0], name="new")
    wider = replace(
        trade_offs, n_columns=n + n_new, dimensions=trade_offs.dimensions + (dimension,) * n_new,
        place=(*trade_offs.place, *range(n, n + n_new)),
    )  # fmt: skip
    return wider, replace(posterior, basis=basis)
