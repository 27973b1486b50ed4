"""Median heuristic for length-scales."""

from __future__ import annotations

import math

import numpy as np

from predilect._types import FloatArray
from predilect.gaussian.kernels.base import check_rows
from predilect.gaussian.kernels.stationary import squared_distances

MEDIAN_RULES = ("per-feature", "root", "preprint", "2020", "code", "arguments")
_MANY_FEATURES = 200
_MAX_ROWS = 1000
_DIFFERENCES = 50_000_000  # in all; beyond it fewer rows are drawn, for 30 000 features some 57


def median_length_scales(features: FloatArray, rule: str = "per-feature", random_state: int = 0) -> FloatArray:
    """Median heuristic for the length-scale of every feature.

    Parameters
    ----------
    features : array of float, shape (n, d)
    rule : str
        With m_d the median of |x_id - x_jd| over pairs of rows, and m'_d that over pairs that differ:
        "root" √d m'_d; "per-feature" and "code" m'_d, times √d for more than 200 features; "2020" m_d; "preprint"
        d m_d; "arguments" 20 √d m_d.
    random_state : int
        Seeds the draw of rows.

    Returns
    -------
    length_scales : array of float, shape (d,)
        In the units of the features. Where m_d is 0, m'_d takes its place; 1 for a constant feature, whose length-scale
        has no effect.

    Raises
    ------
    ValueError
        If there is no such rule, or a feature is not finite.

    Notes
    -----
    crowdgppl.md 2.5 (eq. 37 of the preprint, of the article of 2020, the authors' code, and their setting for
    arguments); modern.md 6 is "per-feature". **Differs from the papers**: "root", since the distance between two rows
    of d features is about √d medians; without the factor, items of ten features and more are almost uncorrelated. Of
    more than 1 000 rows as many are drawn without replacement; fewer for more than 100 features, so that 5 · 10⁷
    differences are taken at most (a few seconds). A feature that is constant in the rows drawn, but not in all, gets
    the median of its nonzero differences from that constant.

    **Differs from the code** in the number of rows drawn, and in that a seed fixes them.
    """
    check_rows(features, None)
    if rule not in MEDIAN_RULES:
        raise ValueError(f"the rule must be one of {', '.join(MEDIAN_RULES)}, not {rule!r}")
    if not np.isfinite(features).all():
        raise ValueError("features must be finite numbers; fill gaps before the length-scales are chosen")
    n_features = features.shape[1]
    drawn = np.ascontiguousarray(_draw(features, random_state).T)
    first, second = np.triu_indices(drawn.shape[1], 1)
    only_different = rule in ("root", "per-feature", "code")
    medians = np.zeros(n_features)
    for d, values in enumerate(drawn):
        medians[d] = _median(np.abs(values[first] - values[second]), only_different)
        if medians[d] == 0.0 and len(values):  # constant in the rows drawn
            medians[d] = _median(np.abs(features[:, d] - values[0]), True)
    root = math.sqrt(n_features)
    factor = {"preprint": float(n_features), "2020": 1.0, "arguments": 20.0 * root, "root": root}.get(
        rule, root if n_features > _MANY_FEATURES else 1.0
    )
    return np.where(medians > 0.0, factor * medians, 1.0)


def _draw(features: FloatArray, random_state: int) -> FloatArray:
    at_most = min(_MAX_ROWS, math.isqrt(2 * _DIFFERENCES // max(1, features.shape[1])))
    if len(features) <= at_most:
        return features
    rows = np.random.default_rng(random_state).choice(len(features), at_most, replace=False)
    return features[np.sort(rows)]


def _median(differences: FloatArray, only_different: bool) -> float:
    """Median of all differences, or of those other than 0, also where that of all would be 0; 0 if all are."""
    n, zeros = len(differences), len(differences) - int(np.count_nonzero(differences))
    if zeros == n:
        return 0.0
    skip = zeros if only_different or zeros > n // 2 else 0
    middle = [skip + (n - skip - 1) // 2, skip + (n - skip) // 2]
    low, high = np.partition(differences, middle)[middle]
    return 0.5 * float(low + high)


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
