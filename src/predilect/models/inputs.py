"""What an estimator is given, brought into the form that the inference takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.data import Comparisons, ItemFeatures, Vocabulary
from predilect.errors import DataError
from predilect.inference.prior import FeatureSpace

__all__ = ["answers_by_item", "feature_lines", "feature_space", "read_answers"]

FloatArray = npt.NDArray[np.float64]


def read_answers(X: Any, y: npt.ArrayLike | None) -> Comparisons:
    """Comparisons as they are, or made from a frame and, perhaps, separate outcomes."""
    if isinstance(X, Comparisons):
        if y is not None:
            raise DataError("X is a Comparisons, which holds the outcomes already; leave y out")
        return X
    return Comparisons.from_frame(X, outcome=y)


def feature_space(features: ItemFeatures | None, items: Vocabulary) -> FeatureSpace:
    """Where items lie, in the order of a vocabulary."""
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
