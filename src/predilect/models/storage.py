"""Save and load a fitted population model; docs/model-format.md describes the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from predilect._json import plain
from predilect.data import ItemFeatures, PersonFeatures, Vocabulary
from predilect.evaluation.verdict import Verdict
from predilect.inference.basis import Functions
from predilect.inference.prior import FeatureSpace, Hyperparameters
from predilect.inference.traits import Traits
from predilect.models.folders import number, read_model, refuse_to_replace, write_model
from predilect.models.people_storage import pack_people, unpack_people
from predilect.models.updating import begin_updates, consolidate, pooled_rows
from predilect.posteriors.basis import Basis, Effects
from predilect.posteriors.gaussian import GaussianPosterior
from predilect.posteriors.people import Sites
from predilect.posteriors.population import PopulationPosterior
from predilect.posteriors.rows import Rows, keys_of, sides_of

__all__ = ["load_population", "save_population"]

_BASIS_ARRAYS = ("Phi", "rho", "offset", "offset_variance")


def save_population(model: Any, path: Path, *, overwrite: bool = False) -> None:
    """Write a fitted :class:`~predilect.Population` to a folder, whole or not at all.

    Raises
    ------
    FileExistsError
        If the path exists and ``overwrite`` is False.
    OSError
        If the folder cannot be written.
    """
    refuse_to_replace(path, overwrite)
    consolidate(model)
    write_model(path, *_to_document(model), overwrite=overwrite)


def load_population(cls: Any, path: Path) -> Any:
    """Read a folder that :func:`save_population` wrote into a fitted ``cls``.

    Raises
    ------
    DataError
        If it is no model, a damaged one, or one of a later format.
    """
    return read_model(path, ("population", "pooled"), lambda document, arrays: _from_document(cls, document, arrays))


def _to_document(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    posterior = model.posterior_
    arrays: dict[str, Any] = {
        "n_by_item": model.n_by_item_, "feature_matrix": model.space_.matrix, "feature_known": model.space_.known,
    }  # fmt: skip
    if isinstance(posterior, GaussianPosterior):
        arrays |= {"m": posterior.mean, "C_m": posterior.covariance}
        if posterior.Phi is not None:
            arrays |= {"Phi": posterior.Phi, "points": model.functions_.points}
        if model.pooled_rows_ is not None or model.comparisons_ is not None:
            rows = pooled_rows(model)
            left, right, outcome = sides_of(rows.key)
            arrays |= {"left": left.astype(np.int32), "right": right.astype(np.int32), "outcome": outcome}
            arrays["weight"] = rows.weight
    else:
        arrays |= {"m": posterior.m, "C_m": posterior.C_m, "Sigma": posterior.Sigma}
        arrays |= pack_people(posterior.people)
        arrays |= {"site_precision": posterior.sites.precision, "site_linear": posterior.sites.linear}
        arrays["shards"] = np.array(posterior.people.shards, dtype=np.int64)
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


def _from_document(cls: Any, document: dict[str, Any], arrays: dict[str, Any]) -> Any:
    model = cls(**{name: number(value) for name, value in document["parameters"].items()})
    model.items_ = Vocabulary(document["items"])
    model.users_ = None if document["users"] is None else Vocabulary(document["users"])
    model.personal_ = document["model"] == "population"
    n_items = len(arrays["Phi"] if document.get("basis") else arrays["m"])
    if len(model.items_) != n_items:
        raise ValueError(f"{len(model.items_)} items, but {n_items} utilities")
    if model.personal_ and len(model.users_) != len(arrays["answer_ptr"]) - 1:
        raise ValueError(f"{len(model.users_)} users, but the answers of {len(arrays['answer_ptr']) - 1}")
    model.hyperparameters_ = Hyperparameters(**{k: number(v) for k, v in document["hyperparameters"].items()})
    model.tie_threshold_ = float(document["tie_threshold"])
    model.log_evidence_ = float(document["log_evidence"])
    model.n_answers_ = float(document["n_answers"])
    model.backend_ = document["frame_kind"]
    features, people = document["item_features"], document["user_features"]
    model.features_ = None if features is None else ItemFeatures.from_dict(features)
    model.user_features_ = None if people is None else PersonFeatures.from_dict(people)
    model.space_ = FeatureSpace(arrays["feature_matrix"], arrays["feature_known"])
    model.n_by_item_ = arrays["n_by_item"]
    model.report_ = dict(document["report"])
    model.functions_, model.traits_ = None, None
    verdict = document["report"].get("verdict")
    model.verdict_ = None if verdict is None else Verdict.from_dict(verdict)
    plan = document.get("basis")
    if plan is not None:
        model.functions_ = Functions(
            plan["kind"], int(plan["n_attributes"]), float(plan["attribute_scale"]), arrays["points"],
            float(plan["length_scale"]), bool(plan["own"]),
        )  # fmt: skip
    if not model.personal_:
        model.posterior_ = GaussianPosterior(arrays["m"], arrays["C_m"], arrays.get("Phi"))
        rows = None
        if "weight" in arrays:  # not in a model of before there were updates
            rows = Rows.of(keys_of(arrays["left"], arrays["right"], arrays["outcome"]), arrays["weight"])
        begin_updates(model, None, rows)
        return model
    begin_updates(model, None)
    layout = unpack_people(arrays, n_items)
    sites = Sites(arrays["site_precision"], arrays["site_linear"])
    basis, effects = None, None
    if plan is not None:
        Phi, rho, offset, variance = (arrays[name] for name in _BASIS_ARRAYS)
        basis = Basis(Phi, rho, offset, variance, float(plan["own_scale"]))
    if "B" in arrays:
        effects = Effects(arrays["B"], arrays["C_B"])
        model.traits_ = Traits(arrays["trait_mean"], arrays["trait_rotation"])
    model.posterior_ = PopulationPosterior(arrays["m"], arrays["C_m"], arrays["Sigma"], layout, sites, basis, effects)
    return model


def _basis_to_dict(functions: Functions, posterior: Any) -> dict[str, Any]:
    own_scale = None if isinstance(posterior, GaussianPosterior) else posterior.basis.own_scale
    return {
        **functions.to_dict(), "attribute_scale": functions.attribute_scale, "length_scale": functions.length_scale,
        "own_scale": own_scale,
    }  # fmt: skip
