"""Predictive margins of the population model, with unseen items and users."""

from __future__ import annotations

from typing import Any

from predilect._types import FloatArray
from predilect.data.features import FeatureSpace
from predilect.gaussian.posterior import GaussianPosterior
from predilect.models.population.train import extend
from predilect.models.reading import Queries, rows_of_features
from predilect.shards import workers


def population_margins(
    model: Any, queries: Queries, new: FeatureSpace | None, users: Any
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of f_u(left) - f_u(right) for each pair, shapes (n,); population.md section 6."""
    posterior = model.posterior_
    if new is not None:
        posterior = extend(posterior, model.hyperparameters_, model.space_, new, model.functions_)
    if isinstance(posterior, GaussianPosterior):
        return posterior.margins(queries.users, queries.left, queries.right)
    traits = _traits_of_new(model, queries, users)
    with workers(model.n_jobs) as executor:
        mean, var = posterior.margins(queries.users, queries.left, queries.right, traits=traits, executor=executor)
    return mean, var


def _traits_of_new(model: Any, queries: Queries, users: Any) -> FloatArray | None:
    """Traits of unseen users, row by row of the queries; None if they do not matter."""
    people = model.user_features_
    if users is None or model.traits_ is None or people is None or not queries.new_users:
        return None
    return queries.of_new_users(model.traits_.transform(*rows_of_features(queries.new_users, people, users)))
