"""Loading and checks of what every saved model has: ids, features, numbers, and the specification of its arrays."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from predilect._json import typed
from predilect.data import ItemFeatures, PersonFeatures, Vocabulary
from predilect.inference.prior import FeatureSpace
from predilect.models.fields import LARGEST, Fields, amounts, flags, numbers
from predilect.models.process_parameters import check_count

__all__ = ["SHARED_ARRAYS", "check_computing", "number_within", "restore", "sizes_of"]

# I items, F columns of their features; U people, G columns of theirs.
SHARED_ARRAYS: Fields = {"n_by_item": amounts("I"), "feature_matrix": numbers("I F"), "feature_known": flags("I")}


def sizes_of(document: dict[str, Any]) -> dict[str, int]:
    """Sizes that a document gives: numbers of ids, and of columns of features."""
    features, people = document["item_features"], document["user_features"]
    return {
        "I": len(document["items"]), "U": len(document["users"] or [None]),
        "F": 0 if features is None else len(features["outputs"]),
        "G": 0 if people is None else len(people["outputs"]),
    }  # fmt: skip


def restore(model: Any, document: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Set the attributes that every fitted model has; ValueError, TypeError or KeyError for damaged input."""
    check_computing(model)
    model.items_ = _vocabulary(document["items"], "items")
    model.users_ = None if document["users"] is None else _vocabulary(document["users"], "users")
    model.added_users_ = {}
    model.tie_threshold_ = number_within("tie_threshold", document["tie_threshold"], 0.0, LARGEST)
    if model.tie_threshold_ == 0.0 and np.any(arrays.get("outcome", 1) == 0):
        raise ValueError("ties in a model without them")
    model.n_answers_ = number_within("n_answers", document["n_answers"], 0.0, LARGEST)
    model.backend_ = typed(str, document["frame_kind"], "frame_kind")
    features, people = document["item_features"], document["user_features"]
    model.features_ = None if features is None else ItemFeatures.from_dict(features)
    model.user_features_ = None if people is None else PersonFeatures.from_dict(people)
    if "feature_matrix" in arrays:
        model.space_ = FeatureSpace(arrays["feature_matrix"], arrays["feature_known"])
    else:
        model.space_ = FeatureSpace.empty(len(model.items_))
    model.n_by_item_ = arrays["n_by_item"]
    model.report_ = typed(dict[str, Any], document["report"], "report")
    typed(str, model.report_["model"], "model")
    if "updates" in model.report_:
        counts = model.report_["updates"] = typed(dict[str, int | float], model.report_["updates"], "updates")
        if counts.keys() != {"answers_added", "answers_taken_back", "people_added"}:
            raise ValueError(f"updates are counted as {', '.join(counts)}")


def number_within(name: str, value: Any, low: float, high: float) -> float:
    """A number in a range, else ValueError."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {value!r:.100}")
    return float(value)


def check_computing(model: Any) -> None:
    """ValueError if an argument that says how to compute, which every model has or lacks, is out of its range."""
    check_count("random_state", model.random_state, 0)
    n_jobs = getattr(model, "n_jobs", None)
    if n_jobs != -1:
        check_count("n_jobs", n_jobs, 1, None)
    typed(bool, getattr(model, "strict", False), "strict")


def _vocabulary(ids: Any, what: str) -> Vocabulary:
    found = Vocabulary(ids)
    if found.ids != ids:
        raise ValueError(f"the ids of {what} are not in the order of their codes, or one is there twice")
    return found
