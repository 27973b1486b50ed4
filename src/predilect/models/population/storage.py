"""A fitted population model as plain values and arrays, and back.

docs/model-format.md describes the arrays that all have. Of U people, T traits, R rows, M functions, A covariates:

- ``task`` (R): equal for rows of a person that are one answer about several alternatives; 0 for others
- ``tie_factor``, ``consistency``, ``consistency_sd`` (U): δ_u / δ; a_u and the standard deviation of its logarithm
- ``traits``, ``trait_mean``, ``trait_rotation`` (U x T, G, G x T): (features of a person - mean) x rotation
- ``B``, ``C_B`` (M x T, M x M or E x M x M): effects of traits, and covariances, with segments one for each
- ``newcomers``, ``newcomer_shift`` (U, M): who came after the fit; w d, by which their mean differs from m
- ``dependence`` (M x M): pooled: D of the sandwich, how much answers of one person hang together
- ``gamma``, ``C_gamma``, ``covariate_rms``, ``patterns``, ``variant`` (A, A x A, A, V x A, R): effects of covariates in
  units of 2^round(log₂ rms); their distinct values, and the row of each answer
- ``cuts``, ``item_ties`` (C, I): cuts of grades, the tie threshold first; ψ
- ``shards`` (S x 2): ranges of people in which sums are taken
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from predilect._json import typed
from predilect.data.features import Traits
from predilect.data.keyed_rows import Rows, keys_of, sides_of
from predilect.evaluation.verdict import Verdict
from predilect.gaussian.covariates import CovariateEffects
from predilect.likelihoods.grades import MOST_GRADES, Thresholds
from predilect.models.checks import LARGEST, check_choice
from predilect.models.people_models import PEOPLE_ARRAYS, pack_crowd, unpack_crowd
from predilect.models.population.pooled import Believed, PooledPosterior, PooledRows, pooled_rows
from predilect.models.population.prior import BASES, Functions
from predilect.models.population.segments import segment_columns
from predilect.models.saving import (
    Fields,
    amounts,
    codes,
    covariance,
    flags,
    graded,
    number_within,
    numbers,
    optional,
    outcomes,
    positive,
)
from predilect.people.law import Basis, Effects
from predilect.people.posterior import PopulationPosterior

_BASIS_ARRAYS = ("Phi", "rho", "offset", "offset_variance")


def pack_population(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The basis as plain values, and the arrays of a posterior with the answers in them."""
    posterior, functions = model.posterior_, model._functions
    values: dict[str, Any] = {"basis": None if functions is None else _basis_to_dict(functions, posterior)}
    arrays: dict[str, Any] = {} if functions is None else {"points": functions.points}
    thresholds = posterior.thresholds
    if thresholds is not None:
        values["grades"] = list(thresholds.names)
        arrays |= {"cuts": thresholds.cuts}
        if len(thresholds.of_items):
            arrays["item_ties"] = thresholds.of_items
    effects = posterior.covariates
    if effects is not None:
        values["covariates"] = list(effects.names)
        C = effects.covariance if model.personal_ else posterior.joint[:, len(posterior.mean) :]
        arrays |= {"gamma": effects.mean, "C_gamma": C, "covariate_rms": effects.rms, "patterns": effects.patterns}
    if not model.personal_:
        arrays |= {"m": posterior.mean, "C_m": posterior.covariance}
        if posterior.Phi is not None:
            arrays["Phi"] = posterior.Phi
        if posterior.dependence is not None:
            arrays["dependence"] = posterior.dependence
        rows = pooled_rows(model)
        left, right, outcome, variant = sides_of(rows.keys)
        if effects is not None:
            arrays["variant"] = variant.astype(np.int32)
        if len(rows.key):
            number = np.unique(rows.task, return_inverse=True)[1]
            arrays["task"] = np.append(np.zeros(len(rows.alone.key)), 1 + number).astype(np.int32)
        arrays |= {"left": left.astype(np.int32), "right": right.astype(np.int32), "outcome": outcome}
        return values, arrays | {"weight": rows.weight}
    arrays |= pack_crowd(posterior)
    if posterior.basis is not None:
        arrays |= {name: getattr(posterior.basis, name) for name in _BASIS_ARRAYS}
    if posterior.effects is not None:
        arrays |= {"B": posterior.effects.B, "C_B": posterior.effects.covariance}
        arrays |= {"trait_mean": model._traits.mean, "trait_rotation": model._traits.rotation}
    return values, arrays


def population_fields(document: dict[str, Any]) -> Fields:
    """Specification of the arrays, of M functions of the basis, or items, and T traits."""
    has_basis, arrays = document["posterior"]["basis"] is not None, document["arrays"]
    M = "M" if has_basis else "I"
    fields = {"m": numbers(M), "C_m": covariance(f"{M} {M}")}
    if has_basis:
        fields |= {"Phi": numbers("I M"), "points": numbers("P F")}
    pooled = document["model"] == "pooled"
    if "covariates" in document["posterior"]:  # A of them, in V patterns; with M, J in all
        fields |= {
            "gamma": numbers("A"), "C_gamma": numbers("J A") if pooled else covariance("A A"),
            "covariate_rms": positive("A"), "patterns": numbers("V A"), "variant": codes("R", "V"),
        }  # fmt: skip
    of_answers: Fields = {}
    if "grades" in document["posterior"]:  # the cuts C, one for each grade
        n_grades = len(document["posterior"]["grades"])
        fields |= {"cuts": amounts("C"), "item_ties": optional(numbers("I"))}
        of_answers = {"outcome": graded("R", n_grades)}
    if pooled:
        return fields | {
            "dependence": optional(numbers("J J" if "gamma" in fields else f"{M} {M}")),
            "left": codes("R", "I"), "right": codes("R", "I"), "outcome": outcomes("R"), "weight": positive("R"),
            "task": optional(codes("R", "R")),
        } | of_answers  # fmt: skip
    fields |= PEOPLE_ARRAYS | of_answers | {"Sigma": covariance(f"{M} {M}"), "newcomers": optional(flags("U"))}
    fields["newcomer_shift"] = optional(numbers(M))
    if has_basis:
        fields |= {"rho": amounts("I|0"), "offset": numbers("I|0"), "offset_variance": amounts("I|0")}
    if "B" not in arrays:
        return fields | {"traits": numbers("U 0")}
    return fields | {
        "B": numbers(f"{M} T"), "C_B": covariance(f"{M} {M}|E {M} {M}"), "trait_mean": numbers("G"),
        "trait_rotation": numbers("G T"),
    }  # fmt: skip


def unpack_population(
    model: Any, values: dict[str, Any], arrays: dict[str, Any]
) -> PopulationPosterior | PooledPosterior:
    """The posterior that :func:`pack_population` packed; ValueError if the arrays do not fit each other."""
    plan, verdict = values["basis"], model.report_.get("verdict")
    model.verdict_ = None if verdict is None else Verdict.from_dict(verdict)
    model._functions, model._traits = None if plan is None else _functions(plan, arrays), None
    effects_of_answers, names = None, values.get("covariates")
    if names is not None:
        effects_of_answers = CovariateEffects(
            arrays["gamma"], arrays["C_gamma"], tuple(typed(str, name, "covariate") for name in names),
            arrays["covariate_rms"], arrays["patterns"], np.array(model.hyperparameters_.covariate_spread),
        )  # fmt: skip
        if len(effects_of_answers.spread) not in (0, len(effects_of_answers.mean)):
            raise ValueError(f"{len(effects_of_answers.spread)} spreads of {len(effects_of_answers.mean)} effects")
        if len(set(names)) != len(effects_of_answers.mean):
            raise ValueError(f"{len(effects_of_answers.mean)} effects of the covariates {names}")
    thresholds = _thresholds(model, values, arrays)
    if not model.personal_:
        if (arrays["left"] >= arrays["right"]).any():
            raise ValueError("an answer compares an item with itself, or with one before it")
        keys = keys_of(arrays["left"], arrays["right"], arrays["outcome"], arrays.get("variant", 0))
        task = arrays.get("task", np.zeros(len(keys), dtype=np.int32)).astype(np.int64)
        n = int((task == 0).sum())
        if (np.diff(keys[:n]) <= 0).any() or (np.diff(task) < 0).any():
            raise ValueError("the answers do not ascend")
        if (arrays["weight"][n:] != 1.0).any() or (arrays["outcome"][n:] == 0).any():
            raise ValueError("an answer about several alternatives that is a tie, or counts more than once")
        model._pooled_rows = PooledRows(Rows.of(keys[:n], arrays["weight"][:n]), keys[n:], task[n:])
        believed = Believed(model.hyperparameters_, model._space, model._functions)
        dependence = arrays.get("dependence")
        if dependence is not None and not np.array_equal(dependence, dependence.T):
            raise ValueError("dependence is not symmetric")
        Phi = None if plan is None else arrays["Phi"]
        mean, C = arrays["m"], arrays["C_m"]
        if effects_of_answers is not None:
            mean, cross = np.append(mean, effects_of_answers.mean), arrays["C_gamma"]
            if len(cross) != len(mean):
                raise ValueError(f"covariances of {len(cross)} parameters, for {len(mean)}")
            C = np.block([[C, cross[: len(C)]], [cross.T]])
        return PooledPosterior.of(mean, C, Phi, believed, dependence, effects_of_answers, thresholds)
    if model.users_ is None:
        raise ValueError("a model of people without people")
    basis, effects = None, None
    if plan is not None:
        Phi, rho, offset, variance = (arrays[name] for name in _BASIS_ARRAYS)
        if not len(rho) == len(offset) == len(variance):
            raise ValueError("half of what items have to themselves")
        basis = Basis(Phi, rho, offset, variance, number_within("own_scale", plan["own_scale"], 0.0, LARGEST))
    if "B" in arrays:
        effects = Effects(arrays["B"], arrays["C_B"])
        model._traits = Traits(arrays["trait_mean"], arrays["trait_rotation"])
    _check_effects(model, effects)
    calibration = model.hyperparameters_.calibration_of_predictions
    found = unpack_crowd(arrays, len(model.items_), basis, effects, calibration)
    people = replace(found.people, likelihood=model._likelihood)
    if effects_of_answers is not None:
        of_pattern, variant = effects_of_answers, people.variant
        people = replace(people, offset=of_pattern.offsets[variant], sway=of_pattern.sways[variant])
    people = people.with_thresholds(thresholds)
    return replace(found, people=people, covariates=effects_of_answers)


def _thresholds(model: Any, values: dict[str, Any], arrays: dict[str, Any]) -> Thresholds | None:
    if "grades" not in values:
        return None
    cuts, names = arrays["cuts"], tuple(typed(str, name, "grade") for name in values["grades"])
    without = not names and len(cuts) == 1 and "item_ties" in arrays
    if not without and not 1 < len(names) == len(set(names)) == len(cuts) <= MOST_GRADES:
        raise ValueError(f"{len(cuts)} cuts of the grades {names}")
    if (np.diff(cuts) <= 0.0).any() or cuts[0] != model.tie_threshold_:
        raise ValueError("the cuts do not ascend from the tie threshold")
    return Thresholds(cuts, arrays.get("item_ties", np.zeros(0)), names)


def _check_effects(model: Any, effects: Effects | None) -> None:
    """ValueError unless segments, and other traits that share a covariance, have effects."""
    h, people = model.hyperparameters_, model.user_features_
    n_segments = 0 if people is None else sum(len(columns) for _, columns, _ in segment_columns(people))
    found = (0, 0) if effects is None else (len(effects.stack), effects.B.shape[1])
    n_wanted = n_segments + (h.trait_scale > 0.0)
    if len(h.segment_variances) != n_segments or found[0] != n_wanted or found[1] < n_wanted:
        raise ValueError(f"{found[0]} covariances of {found[1]} effects, for {n_segments} segments")


def _functions(plan: dict[str, Any], arrays: dict[str, Any]) -> Functions:
    own, points, n_columns = typed(bool, plan["own"], "own"), arrays["points"], arrays["feature_matrix"].shape[1]
    scales = (number_within(name, plan[name], 1.0 / LARGEST, LARGEST) for name in ("attribute_scale", "length_scale"))
    check_choice("kind", plan["kind"], BASES[1:])
    attribute_scale, length_scale = scales
    n_attributes = n_columns if plan["kind"].startswith("attributes") else 0
    found = Functions(plan["kind"], n_attributes, attribute_scale, points, length_scale, own)
    if found.n_functions != len(arrays["m"]) or (len(points) and not plan["kind"].endswith("inducing")):
        raise ValueError(f"{found.n_functions} functions, but {len(arrays['m'])} values of them")
    return found


def _basis_to_dict(functions: Functions, posterior: Any) -> dict[str, Any]:
    own_scale = None if isinstance(posterior, PooledPosterior) else posterior.basis.own_scale
    return {
        **functions.to_dict(), "attribute_scale": functions.attribute_scale, "length_scale": functions.length_scale,
        "own_scale": own_scale,
    }  # fmt: skip
