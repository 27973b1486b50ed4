"""Median distance of standardised rows, the length-scale of the collaborative Gaussian process."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels.base import check_rows
from predilect.covariance.kernels.distances import squared_distances

__all__ = ["DISTANCE_RULES", "median_distance_scales"]

FloatArray = npt.NDArray[np.float64]

DISTANCE_RULES = ("distance", "half-distance")
_MOST_ROWS = 2000


def median_distance_scales(features: FloatArray, rule: str, random_state: int = 0) -> FloatArray:
    """Standard deviation of every feature times the median distance of standardised rows, (d,).

    ``rule`` is "distance", the median of the distances, as in the paper, or "half-distance", the root of half the
    median of their squares, as in its authors' code. From 2 000 rows at most. 1 for a constant feature; the standard
    deviations themselves where the median is 0. ValueError if there is no such rule. collaborative.md 7 (Houlsby et al.
    2012): features standardised to mean 0 and deviation 1, then one length-scale.
    """
    check_rows(features, None)
    if rule not in DISTANCE_RULES:
        raise ValueError(f"the rule must be one of {', '.join(DISTANCE_RULES)}, not {rule!r}")
    deviation = features.std(axis=0) if len(features) else np.zeros(features.shape[1])
    scales = np.where(deviation > 0.0, deviation, 1.0)
    rows = features
    if len(rows) > _MOST_ROWS:
        rows = rows[np.sort(np.random.default_rng(random_state).choice(len(rows), _MOST_ROWS, replace=False))]
    first, second = np.triu_indices(len(rows), 1)
    squares = squared_distances(rows, None, scales)[first, second]
    median = float(np.median(squares)) if len(squares) else 0.0
    factor = math.sqrt(median if rule == "distance" else 0.5 * median)
    return scales * (factor if factor > 0.0 else 1.0)
