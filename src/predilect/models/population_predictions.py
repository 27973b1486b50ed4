"""Margins and answers by the population model, with items and people that it does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.inference.calibration import Calibration, with_lapses
from predilect.inference.prior import FeatureSpace
from predilect.inference.training import extend
from predilect.inference.warm_up import warm_up
from predilect.likelihoods.probit import outcome_log_probabilities, outcome_probabilities
from predilect.models.queries import Queries, rows_of_features
from predilect.posteriors.gaussian import GaussianPosterior
from predilect.scale.shards import workers

__all__ = ["population_chances", "population_log_chances", "population_margins"]

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


def population_chances(model: Any, mean: FloatArray, var: FloatArray, queries: Queries) -> FloatArray:
    """Probabilities of left, tie and right, shape (n, 3).

    Notes
    -----
    Where people have tie thresholds of their own, one without answers may have any: their probabilities are averaged
    over the spread of thresholds.
    """
    var = _variance(model, var, queries)
    chances = outcome_probabilities(mean, var, _thresholds(model, queries.users))
    if (open_ := _open(model, queries.users)).any():
        chances[open_] = np.exp(_averaged(model, mean[open_], var[open_]))
    if rate := model.hyperparameters_.lapse_rate:
        possible = _possible(model)
        chances[:, possible] = (1.0 - rate) * chances[:, possible] + rate / len(possible)
    return chances


def population_log_chances(model: Any, mean: FloatArray, var: FloatArray, queries: Queries) -> FloatArray:
    """Logarithms of :func:`population_chances`."""
    var = _variance(model, var, queries)
    log_p = outcome_log_probabilities(mean, var, _thresholds(model, queries.users))
    if (open_ := _open(model, queries.users)).any():
        log_p[open_] = _averaged(model, mean[open_], var[open_])
    possible = _possible(model)
    log_p[:, possible] = with_lapses(log_p[:, possible], model.hyperparameters_.lapse_rate, len(possible))
    return log_p


def _variance(model: Any, var: FloatArray, queries: Queries) -> FloatArray:
    """The variance of margins that probabilities take, row by row where it matters what people answered on."""
    found, posterior = Calibration.of(model.hyperparameters_), model.posterior_
    if isinstance(posterior, GaussianPosterior) or found.factor == found.factor_unseen:
        return found.variance(var)
    return found.variance(var, posterior.n_unseen(queries.users, queries.left, queries.right))


def _possible(model: Any) -> list[int]:
    """Columns of answers that can be given: without ties left and right."""
    return [0, 1, 2] if model.tie_threshold_ > 0.0 else [0, 2]


def _threshold(model: Any) -> float:
    """The tie threshold that probabilities take."""
    return float(model.hyperparameters_.threshold_factor * model.tie_threshold_)


def _thresholds(model: Any, users: npt.NDArray[np.integer]) -> FloatArray | float:
    """The same row by row where people have their own."""
    if isinstance(model.posterior_, GaussianPosterior) or not model.hyperparameters_.tie_spread:
        return _threshold(model)
    return np.asarray(_threshold(model) * model.posterior_.tie_factors(users))


def _open(model: Any, users: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Which rows are of someone whose own tie threshold nothing is known of."""
    if isinstance(model.posterior_, GaussianPosterior) or not model.hyperparameters_.tie_spread:
        return np.zeros(len(users), dtype=bool)
    return np.asarray(model.posterior_.are_silent(users))


def _averaged(model: Any, mean: FloatArray, var: FloatArray) -> FloatArray:
    return outcome_log_probabilities(mean, var, _threshold(model), model.hyperparameters_.tie_spread)
