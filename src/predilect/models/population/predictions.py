"""Predictive margins and answers of the population model, with unseen items and users."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.data.space import FeatureSpace
from predilect.gaussian.pooled import GaussianPosterior
from predilect.likelihoods.probit import outcome_log_probabilities, outcome_probabilities
from predilect.models.population.calibration import Calibration
from predilect.models.population.train import extend
from predilect.models.reading import Queries, rows_of_features
from predilect.shards import workers

FloatArray = npt.NDArray[np.float64]


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


def population_chances(model: Any, mean: FloatArray, var: FloatArray, queries: Queries) -> FloatArray:
    """Probabilities of left, tie and right, shape (n, 3), averaged over the tie thresholds of unseen users."""
    found, open_ = model.hyperparameters_.calibration, _open(model, queries.users)
    thresholds = _thresholds(model, queries.users)
    chances = np.zeros((len(mean), 3))
    for share, v in found.components(var, _kinds(model, found, queries)):
        part = outcome_probabilities(mean, v, thresholds)
        if open_.any():
            part[open_] = np.exp(_averaged(model, mean[open_], v[open_]))
        chances += share * part
    return chances


def population_log_chances(model: Any, mean: FloatArray, var: FloatArray, queries: Queries) -> FloatArray:
    """Logarithms of :func:`population_chances`."""
    found, open_ = model.hyperparameters_.calibration, _open(model, queries.users)
    thresholds = _thresholds(model, queries.users)

    def log_likelihood(v: FloatArray) -> FloatArray:
        log_p = outcome_log_probabilities(mean, v, thresholds)
        if open_.any():
            log_p[open_] = _averaged(model, mean[open_], v[open_])
        return log_p

    return found.log_chances(log_likelihood, var, _kinds(model, found, queries))


def _kinds(model: Any, found: Calibration, queries: Queries) -> npt.ArrayLike:
    """Kind of each pair for the calibration: how it stands to what the person answered."""
    posterior = model.posterior_
    if isinstance(posterior, GaussianPosterior) or not found.depends_on_pair:
        return 0
    return np.asarray(posterior.pair_kinds(queries.users, queries.left, queries.right))


def _threshold(model: Any) -> float:
    """The calibrated tie threshold."""
    return float(model.hyperparameters_.calibration.threshold_factor * model.tie_threshold_)


def _thresholds(model: Any, users: npt.NDArray[np.integer]) -> FloatArray | float:
    """Calibrated tie thresholds, row by row where people have their own."""
    if isinstance(model.posterior_, GaussianPosterior) or not model.hyperparameters_.tie_spread:
        return _threshold(model)
    return np.asarray(_threshold(model) * model.posterior_.tie_factors(users))


def _open(model: Any, users: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Mask of the rows of people whose own tie threshold is unknown."""
    if isinstance(model.posterior_, GaussianPosterior) or not model.hyperparameters_.tie_spread:
        return np.zeros(len(users), dtype=bool)
    return np.asarray(model.posterior_.are_silent(users))


def _averaged(model: Any, mean: FloatArray, var: FloatArray) -> FloatArray:
    return outcome_log_probabilities(mean, var, _threshold(model), model.hyperparameters_.tie_spread)
