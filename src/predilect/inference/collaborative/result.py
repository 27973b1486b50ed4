"""Result of the collaborative Gaussian process, and what both presets compute alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.inference.report import Report
from predilect.posteriors.factor import FactorPosterior
from predilect.posteriors.sites import Sites

__all__ = ["USED", "CollaborativeFit", "importances", "moved_threshold"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

USED = 0.01  # of the largest importance
_LARGEST_MOVE = 0.5  # of log δ


@dataclass(frozen=True, slots=True)
class CollaborativeFit:
    """Fitted collaborative Gaussian process."""

    posterior: FactorPosterior
    delta: float
    evidence: float  # by expectation propagation, in nats; no bound
    importances: FloatArray  # (D,), from importances()
    # For "paper", how often a message was kept, as the new one had no positive precision; for "modern", answers without
    # a proper cavity at the end.
    n_rejected: int
    sites: Sites  # of one copy of each row
    report: Report


def importances(user: IntArray, pair: IntArray, weight: FloatArray, mu: FloatArray, delta: FloatArray) -> FloatArray:
    """Mean square of each function's part of the mean margin of an answer, (D,); near 0 for one pruned."""
    parts = mu[user] * delta[pair]
    return np.asarray(weight @ (parts * parts) / weight.sum())


def moved_threshold(threshold: float, slope: float, curvature: float) -> float:
    """Newton step of δ in its logarithm, given slope and curvature of the evidence in δ; at most e^0.5 a step."""
    gradient = threshold * slope
    # In log δ: second derivative δ² h + δ g, negative near the maximum of a log-concave likelihood.
    bend = min(threshold * threshold * curvature + gradient, -1e-12 - 0.5 * abs(gradient))
    return threshold * math.exp(float(np.clip(-gradient / bend, -_LARGEST_MOVE, _LARGEST_MOVE)))
