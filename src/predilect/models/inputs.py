"""Input of an estimator in the form that the inference takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._advice import spoken_to
from predilect.data import Comparisons, ItemFeatures, PersonFeatures, Vocabulary
from predilect.errors import DataError
from predilect.inference.prior import FeatureSpace

__all__ = ["Training", "answers_by_item", "feature_lines", "feature_space", "read_answers", "read_training"]

FloatArray = npt.NDArray[np.float64]


def read_answers(X: Any, y: npt.ArrayLike | None, *, with_ties: bool = False) -> Comparisons:
    """Comparisons from a frame and, perhaps, outcomes, in which 0 is a tie for a model ``with_ties``."""
    if isinstance(X, Comparisons):
        if y is not None:
            raise DataError("X is a Comparisons, which holds the outcomes already; leave y out")
        return X
    with spoken_to("fit"):
        return Comparisons.from_frame(X, outcome=y, ties=["0"] if with_ties and y is not None else ())


@dataclass(frozen=True, slots=True)
class Training:
    """Answers, with the items that only the features name, and features; ``space`` is in vocabulary order."""

    comparisons: Comparisons
    features: ItemFeatures | None
    people: PersonFeatures | None
    space: FeatureSpace

    @property
    def personal(self) -> bool:
        """Whether people can be told apart: they are named, and there are at least two."""
        return self.comparisons.has_users and self.comparisons.n_users > 1


def read_training(X: Any, y: npt.ArrayLike | None, items: Any, users: Any, delta: float | None) -> Training:
    """Input of ``fit``; DataError if there is nothing to learn from, or ties that the threshold ``delta`` rules out."""
    comparisons = read_answers(X, y)
    if not comparisons.n_rows:
        raise DataError("there are no answers to learn from. Were they all left out of these comparisons?")
    if not np.any(comparisons.outcome):
        raise DataError(
            f"all {comparisons.n_answers:g} answers are ties: nothing says which item is better. Collect answers "
            "that prefer one, or check which words were read as ties"
        )
    if delta == 0.0 and comparisons.has_ties:
        raise DataError(
            "tie_threshold=0 says that ties cannot happen, but some answers are ties. Use 'auto', or leave them out"
        )
    features = items if isinstance(items, ItemFeatures) or items is None else ItemFeatures.from_frame(items)
    if features is not None:
        comparisons = comparisons.with_items(features.ids)
    people = users if isinstance(users, PersonFeatures) or users is None else PersonFeatures.from_frame(users)
    return Training(comparisons, features, people, feature_space(features, comparisons.items))


def feature_space(features: ItemFeatures | None, items: Vocabulary) -> FeatureSpace:
    """Feature space of the items, in the order of a vocabulary."""
    return FeatureSpace.empty(len(items)) if features is None else FeatureSpace(*features.align(items))


def answers_by_item(comparisons: Comparisons) -> FloatArray:
    """Number of answers on each item; shape (n_items,)."""
    n = comparisons.n_items
    counts = np.bincount(comparisons.left, comparisons.weight, n) + np.bincount(
        comparisons.right, comparisons.weight, n
    )
    return np.asarray(counts)


def feature_lines(features: ItemFeatures, space: FeatureSpace) -> list[str]:
    """What became of the features, in sentences."""
    lines = list(features.report)
    missing = int((~space.known).sum())
    if missing:
        lines.append(f"{missing} of {len(space.known)} items have no features: they are alike to no other item.")
    return lines
