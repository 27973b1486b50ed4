"""One length-scale for all features from the median of distances, as the collaborative Gaussian process has it."""

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
    """A multiple of every feature's standard deviation, shape (d,): the median distance of standardised rows.

    Parameters
    ----------
    features : array of float, shape (n, d)
    rule : {"distance", "half-distance"}
        "distance": the median of the distances, as the paper says. "half-distance": the root of half the median of
        their squares, as its authors' code has it.
    random_state : int
        Seeds the draw of 2 000 rows from more.

    Returns
    -------
    length_scales : array of float, shape (d,)
        1 for a feature that is constant; the standard deviations themselves where the median is 0.

    Raises
    ------
    ValueError
        If there is no such rule.

    Notes
    -----
    collaborative.md 7 (Houlsby et al. 2012): features standardised to mean 0 and deviation 1, then one length-scale.
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
