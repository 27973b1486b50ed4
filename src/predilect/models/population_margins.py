"""Margins of the population model, with items and people that it does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.inference.prior import FeatureSpace
from predilect.inference.training import extend
from predilect.inference.warm_up import warm_up
from predilect.models.queries import Queries, rows_of_features
from predilect.posteriors.gaussian import GaussianPosterior
from predilect.scale.shards import workers

__all__ = ["population_margins"]

FloatArray = npt.NDArray[np.float64]


def population_margins(
    model: Any, queries: Queries, new: FeatureSpace | None, users: Any
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of f_u(left) - f_u(right) for each pair asked about; shapes (n,).

    Parameters
    ----------
    model : Population
    queries : Queries
    new : FeatureSpace or None
        Where the items lie that the model does not know.
    users : data frame or None
        Features of people whom the model does not know.

    Notes
    -----
    population.md section 6.
    """
    posterior = model.posterior_
    if new is not None:
        posterior = extend(posterior, model.hyperparameters_, model.space_, new, model.functions_)
    if isinstance(posterior, GaussianPosterior):
        return posterior.margins(queries.users, queries.left, queries.right)
    traits = _traits_of_new(model, queries, users)
    warm_up()
    with workers(model.n_jobs) as executor:
        mean, var = posterior.margins(queries.users, queries.left, queries.right, traits=traits, executor=executor)
    return mean, var


def _traits_of_new(model: Any, queries: Queries, users: Any) -> FloatArray | None:
    """Traits of the people whom the model does not know, row by row of the queries; None if they do not matter."""
    people = model.user_features_
    if users is None or model.traits_ is None or people is None or not queries.new_users:
        return None
    traits = model.traits_.transform(*rows_of_features(queries.new_users, people, users))
    return np.where((queries.unknown_users >= 0)[:, None], traits[queries.unknown_users], 0.0)
