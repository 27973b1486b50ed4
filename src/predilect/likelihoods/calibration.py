"""Calibration: probabilities of answers from the mean and variance of their margins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._json import typed
from predilect.likelihoods.probit import outcome_log_probabilities, outcome_probabilities

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibrated predictions: a share 1 - λ of answers has margin N(mean, κ_i vᵉ) and noise τ²; threshold γ δ."""

    factor: float = 1.0  # κ
    factor_unseen: float = 1.0  # κ₀, two items on which the person has no answer; √(κ κ₀) for one
    factor_implied: float = 1.0  # κ₌, the answer follows from others by transitivity
    power: float = 1.0  # e, above 1 where margins of small variance are known better still
    threshold_factor: float = 1.0  # γ
    noise_factor: float = 1.0  # τ², at most that of the fit, 1
    lapse_rate: float = 0.0  # λ, share of careless answers
    lapse_noise: float = math.inf  # variance of their noise; inf is a fair coin
    tie_spread: float = 0.0  # σ_δ, of the logarithm of a person's own tie threshold; 0 where all share one

    @property
    def depends_on_pair(self) -> bool:
        """Whether it depends on how a pair stands to its person's answers."""
        return not self.factor == self.factor_unseen == self.factor_implied

    def components(self, var: FloatArray, kind: npt.ArrayLike = 0) -> list[tuple[float, FloatArray]]:
        """Mixture components: shares, and variances (n,) for likelihoods of noise 1; ``kind`` from ``pair_kinds``."""
        middle = math.sqrt(self.factor * self.factor_unseen)
        steps = np.array([self.factor, middle, self.factor_unseen, self.factor_implied])[np.asarray(kind)]
        spread = np.asarray(steps * (var if self.power == 1.0 else var**self.power))
        # Noise is a variance like the margin's own.
        looked = spread if self.noise_factor == 1.0 else spread + (self.noise_factor - 1.0)
        if self.lapse_rate == 0.0:
            return [(1.0, looked)]
        return [(1.0 - self.lapse_rate, looked), (self.lapse_rate, spread + (self.lapse_noise - 1.0))]

    def log_chances(
        self, log_likelihood: Callable[[FloatArray], FloatArray], var: FloatArray, kind: npt.ArrayLike = 0
    ) -> FloatArray:
        """Log probabilities under the mixture, from those at given variances."""
        parts = [math.log(share) + log_likelihood(v) for share, v in self.components(var, kind)]
        return parts[0] if len(parts) == 1 else np.asarray(np.logaddexp(*parts))

    def outcome_proba(
        self, mean: FloatArray, var: FloatArray, delta: float, tie_factor: FloatArray | float, silent: BoolArray | None,
        kind: npt.ArrayLike,
    ) -> FloatArray:  # fmt: skip
        """Probabilities of left, tie and right, (n, 3); averaged over the thresholds of ``silent`` people, (n,)."""
        threshold = float(self.threshold_factor * delta)
        chances = np.zeros((len(mean), 3))
        for share, v in self.components(var, kind):
            part = outcome_probabilities(mean, v, threshold * tie_factor)
            if silent is not None and silent.any():
                part[silent] = np.exp(outcome_log_probabilities(mean[silent], v[silent], threshold, self.tie_spread))
            chances += share * part
        return chances

    def outcome_log_proba(
        self, mean: FloatArray, var: FloatArray, delta: float, tie_factor: FloatArray | float, silent: BoolArray | None,
        kind: npt.ArrayLike,
    ) -> FloatArray:  # fmt: skip
        """Logarithms of :meth:`outcome_proba`, accurate however small a probability is."""
        threshold = float(self.threshold_factor * delta)

        def log_likelihood(v: FloatArray) -> FloatArray:
            log_p = outcome_log_probabilities(mean, v, threshold * tie_factor)
            if silent is not None and silent.any():
                log_p[silent] = outcome_log_probabilities(mean[silent], v[silent], threshold, self.tie_spread)
            return log_p

        return self.log_chances(log_likelihood, var, kind)


UNCALIBRATED = Calibration()

# Smallest and largest value allowed of each.
RANGES = {
    "factor": (0.0, 1e12), "factor_unseen": (0.0, 1e12), "factor_implied": (0.0, 1e12), "power": (0.0, 2.0),
    "threshold_factor": (1e-3, 1e3), "noise_factor": (1e-6, 1.0), "lapse_rate": (0.0, 0.5),
    "lapse_noise": (1.0, math.inf), "tie_spread": (0.0, 10.0),
}  # fmt: skip
_SMALLEST_SPREAD = 1e-15  # whose square is divided by


def restored_calibration(values: Mapping[str, Any]) -> Calibration:
    """Calibration of a saved model; ValueError or TypeError if a value is out of its range."""
    found: Calibration = typed(Calibration, values, "calibration")
    for name, (low, high) in RANGES.items():
        value = getattr(found, name)
        if not low <= value <= high or (name == "tie_spread" and 0.0 < value < _SMALLEST_SPREAD):
            raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
    return found
