"""Saving and loading of a fitted population model; docs/model-format.md describes the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from predilect._json import plain, typed
from predilect.data.features import Traits
from predilect.data.keyed_rows import Rows, keys_of, sides_of
from predilect.evaluation.verdict import Verdict
from predilect.gaussian.pooled import GaussianPosterior
from predilect.gaussian.sites import Sites
from predilect.models.checks import check_choice, given_threshold
from predilect.models.fields import LARGEST, Fields, amounts, codes, covariance, numbers, outcomes, positive
from predilect.models.people_models import PEOPLE_ARRAYS, pack_people, unpack_people
from predilect.models.population.basis import BASES, Functions
from predilect.models.population.pooled import Believed, PooledPosterior
from predilect.models.population.prior import check_settings, given_hyperparameters, restored_hyperparameters
from predilect.models.population.updates import begin_updates, consolidate, pooled_rows
from predilect.models.saving import (
    SHARED_ARRAYS,
    number,
    number_within,
    read_model,
    refuse_to_replace,
    restore,
    sizes_of,
    write_model,
)
from predilect.people.distribution import Basis, Effects
from predilect.people.posterior import PopulationPosterior

_BASIS_ARRAYS = ("Phi", "rho", "offset", "offset_variance")


def save_population(model: Any, path: Path, *, overwrite: bool = False) -> None:
    """Write a fitted population model to a folder, whole or not at all; raises FileExistsError, OSError."""
    refuse_to_replace(path, overwrite)
    consolidate(model)
    write_model(path, *to_document(model), overwrite=overwrite)


def load_population(cls: Any, path: Path) -> Any:
    """A fitted ``cls`` from a folder that :func:`save_population` wrote; DataError if it is no such model."""
    return read_model(
        path, ("population", "pooled"), _fields, lambda document, arrays: _from_document(cls, document, arrays)
    )


def to_document(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain values and arrays of a fitted model, consolidated or without changes."""
    posterior = model.posterior_
    arrays: dict[str, Any] = {
        "n_by_item": model.n_by_item_, "feature_matrix": model.space_.matrix, "feature_known": model.space_.known,
    }  # fmt: skip
    if not model.personal_:
        arrays |= {"m": posterior.mean, "C_m": posterior.covariance}
        if posterior.Phi is not None:
            arrays |= {"Phi": posterior.Phi, "points": model.functions_.points}
        rows = pooled_rows(model)
        left, right, outcome = sides_of(rows.key)
        arrays |= {"left": left.astype(np.int32), "right": right.astype(np.int32), "outcome": outcome}
        arrays["weight"] = rows.weight
    else:
        arrays |= {"m": posterior.m, "C_m": posterior.C_m, "Sigma": posterior.Sigma}
        arrays |= pack_people(posterior.people)
        arrays |= {"site_precision": posterior.sites.precision, "site_linear": posterior.sites.linear}
        if posterior.basis is not None:
            arrays |= {name: getattr(posterior.basis, name) for name in _BASIS_ARRAYS}
            arrays["points"] = model.functions_.points
        if posterior.effects is not None:
            arrays |= {"B": posterior.effects.B, "C_B": posterior.effects.covariance}
            arrays |= {"trait_mean": model.traits_.mean, "trait_rotation": model.traits_.rotation}
    people = model.user_features_
    document = {
        "model": "population" if model.personal_ else "pooled",
        "parameters": plain(model.get_params()),
        "hyperparameters": plain(model.hyperparameters_.to_dict()),
        "basis": None if model.functions_ is None else _basis_to_dict(model.functions_, posterior),
        "tie_threshold": model.tie_threshold_,
        "log_evidence": model.log_evidence_,
        "n_answers": model.n_answers_,
        "frame_kind": model.backend_,
        "items": model.items_.ids,
        "users": None if model.users_ is None else model.users_.ids,
        "item_features": None if model.features_ is None else model.features_.to_dict(),
        "user_features": None if people is None else people.to_dict(),
        "report": {key: value for key, value in model.report_.items() if key != "timing"},
    }
    return document, arrays


def _fields(document: dict[str, Any]) -> tuple[Fields, dict[str, int]]:
    """Specification of the arrays, of M functions of the basis, or items, and T traits."""
    sizes = sizes_of(document)
    fields = SHARED_ARRAYS | {"m": numbers("M"), "C_m": covariance("M M")}
    if document["basis"] is None:
        sizes["M"] = sizes["I"]
    else:
        fields |= {"Phi": numbers("I M"), "points": numbers("P F")}
    if document["model"] == "pooled":
        fields |= {"left": codes("R", "I"), "right": codes("R", "I"), "outcome": outcomes("R"), "weight": positive("R")}
        return fields, sizes
    fields |= PEOPLE_ARRAYS | {"Sigma": covariance("M M")}
    if document["basis"] is not None:
        fields |= {"rho": amounts("I|0"), "offset": numbers("I|0"), "offset_variance": amounts("I|0")}
    if "B" in document["arrays"]:
        fields |= {
            "B": numbers("M T"), "C_B": covariance("M M"), "trait_mean": numbers("G"), "trait_rotation": numbers("G T"),
        }  # fmt: skip
    else:
        sizes["T"] = 0
    return fields, sizes


def _from_document(cls: Any, document: dict[str, Any], arrays: dict[str, Any]) -> Any:
    model = cls(**{name: number(value) for name, value in document["parameters"].items()})
    check_settings(model)
    given_hyperparameters(model)
    given_threshold(model.tie_threshold)
    restore(model, document, arrays)
    model.personal_ = document["model"] == "population"
    model.hyperparameters_ = restored_hyperparameters(document["hyperparameters"])
    model.log_evidence_ = number_within("log_evidence", document["log_evidence"], -LARGEST, LARGEST)
    model.functions_, model.traits_ = None, None
    verdict = model.report_.get("verdict")
    model.verdict_ = None if verdict is None else Verdict.from_dict(verdict)
    plan = document["basis"]
    if plan is not None:
        model.functions_ = _functions(plan, arrays)
    if not model.personal_:
        model.posterior_ = PooledPosterior.of(
            arrays["m"], arrays["C_m"], arrays.get("Phi"),
            Believed(model.hyperparameters_, model.space_, model.functions_),
        )  # fmt: skip
        if (arrays["left"] >= arrays["right"]).any():
            raise ValueError("an answer compares an item with itself, or with one before it")
        keys = keys_of(arrays["left"], arrays["right"], arrays["outcome"])
        if (np.diff(keys) <= 0).any():
            raise ValueError("the answers do not ascend")
        begin_updates(model, None, Rows.of(keys, arrays["weight"]))
    else:
        if model.users_ is None:
            raise ValueError("a model of people without people")
        begin_updates(model, None)
        sites = Sites(arrays["site_precision"], arrays["site_linear"])
        basis, effects = None, None
        if plan is not None:
            Phi, rho, offset, variance = (arrays[name] for name in _BASIS_ARRAYS)
            if not len(rho) == len(offset) == len(variance):
                raise ValueError("half of what items have to themselves")
            basis = Basis(Phi, rho, offset, variance, number_within("own_scale", plan["own_scale"], 0.0, LARGEST))
        if "B" in arrays:
            effects = Effects(arrays["B"], arrays["C_B"])
            model.traits_ = Traits(arrays["trait_mean"], arrays["trait_rotation"])
        people = unpack_people(arrays, len(model.items_))
        model.posterior_ = PopulationPosterior(
            arrays["m"], arrays["C_m"], arrays["Sigma"], people, sites, basis, effects,
            calibration=model.hyperparameters_.calibration,
        )  # fmt: skip
    return model


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
    own_scale = None if isinstance(posterior, GaussianPosterior) else posterior.basis.own_scale
    return {
        **functions.to_dict(), "attribute_scale": functions.attribute_scale, "length_scale": functions.length_scale,
        "own_scale": own_scale,
    }  # fmt: skip
