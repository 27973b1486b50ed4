"""What a loaded population model has besides its stored parts, and whether these fit each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from predilect.inference.people.law import Effects
from predilect.models.population.pooled import PooledPosterior


def restore_population(model: Any, parts: dict[str, Any]) -> None:
    """Complete a model whose stored ``parts`` were set; ValueError if they do not fit each other."""
    from predilect.evaluation.verdict import Verdict

    posterior, functions, verdict = model.posterior_, model._functions, model.report_.get("verdict")
    model.verdict_ = None if verdict is None else Verdict.from_dict(verdict)
    is_pooled, effects, thresholds = isinstance(posterior, PooledPosterior), posterior.covariates, posterior.thresholds
    mean = posterior.mean if is_pooled else posterior.m
    if is_pooled == model.personal_ or is_pooled != (parts["_pooled_columns"] is not None):
        raise ValueError("a model of people without people, or one without people that has some")
    if functions is not None and functions.n_functions != len(mean):
        raise ValueError(f"{functions.n_functions} functions, but {len(mean)} values of them")
    if thresholds is not None and thresholds.tie_threshold != model.tie_threshold_:
        raise ValueError("the cuts do not begin with the tie threshold")
    if effects is not None and tuple(effects.spread) != model.hyperparameters_.in_unit().covariate_spread:
        raise ValueError("effects of covariates that differ between people by another spread")
    if is_pooled:
        model._pooled_rows = parts["_pooled_columns"].rows()
        return
    if model.users_ is None or (functions is None) != (posterior.basis is None):
        raise ValueError("a model of people without people, or a basis without functions")
    _check_effects(model, posterior.effects)
    people = posterior.people
    if effects is not None:
        people = replace(
            people, offset=effects.offsets[people.variant], slope_columns=effects.slope_columns[people.variant]
        )
    calibration = model.hyperparameters_.calibration_of_predictions
    model.posterior_ = replace(posterior, people=people.with_thresholds(thresholds), calibration=calibration)


def _check_effects(model: Any, effects: Effects | None) -> None:
    """ValueError unless segments, and other traits that share a covariance, have effects."""
    from predilect.models.population.segments import segment_columns

    h, people = model.hyperparameters_, model.user_features_
    n_segments = 0 if people is None else sum(len(columns) for _, columns, _ in segment_columns(people))
    found = (0, 0) if effects is None else (len(effects.stack), effects.B.shape[1])
    n_wanted = n_segments + (h.trait_scale > 0.0)
    if len(h.segment_variances) != n_segments or found[0] != n_wanted or found[1] < n_wanted:
        raise ValueError(f"{found[0]} covariances of {found[1]} effects, for {n_segments} segments")
    if (effects is None) != (model._traits is None):
        raise ValueError("effects of traits that are not known, or traits without effects")
